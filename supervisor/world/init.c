// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Pid 1 is a fork of the supervisor that never execs.  It makes the session's world from inside,
 * installs the filter that everything it forks inherits, and from then on does three things: starts
 * what it is asked to, reaps every orphan, and says who ended.
 *
 * It shares its user with the session, so it must not be open to it: it is not dumpable, and since
 * its memory was born in the host's user namespace, no capability inside reaches it (no ptrace,
 * /proc/1/mem, process_vm_*, pidfd_getfd).  As init of a pid namespace it takes no signal it has
 * no handler for, and it has none; SIGCHLD comes by a signalfd.
 *
 * Exits are reported only when the supervisor's socket has room.  Until then children stay zombies:
 * that is all the queue there is.
 */
#include "supervisor/world/init.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "supervisor/filter/filter.h"
#include "supervisor/rewrite/numbers.h"
#include "supervisor/world/fence.h"
#include "supervisor/world/init_protocol.h"
#include "supervisor/world/ns.h"
#include "supervisor/world/start.h"
#include "supervisor/world/view.h"
#include "supervisor/world/world_config.h"

struct init {
	int sock, signals;
	bool rewritten;	   /* there is no namespace */
	bool view;	   /* then: and paths */
	const struct numbers *numbers; /* and what the session calls its processes */
	int children;	   /* and whom of them we have, by the host's numbers; -1: the kernel does not tell */
	pid_t own;	   /* as the kernel numbers us */
	sigset_t mask;	   /* of the session's processes */
	int net[INIT_NET_MAX]; /* of a virtual network, until they are handed over */
	struct ns_clocks clocks; /* until they are set */
	const struct world_config *early; /* until it has settled; or NULL */
	struct ns_ids ids;
};

/* How many processes live in the session besides pid 1.  Not by opendir(3), which asks fstat. */
static int count_left(void)
{
	_cleanup_close_ int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char data[8192] __attribute__((aligned(8)));
	int n = 0;

	for (;;) {
		ssize_t got = getdents64(fd, data, sizeof(data));

		if (got <= 0)
			return n > 0 ? n - 1 : 0;
		for (char *p = data; p < data + got;) {
			const struct dirent64 *d = (const void *)p;

			n += d->d_name[0] >= '1' && d->d_name[0] <= '9';
			p += d->d_reclen;
		}
	}
}

/* As waitpid(2) has it. */
static int status_of(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return W_EXITCODE(info->si_status, 0);
	return info->si_status | (info->si_code == CLD_DUMPED ? WCOREFLAG : 0);
}

/* Has pid 1 children besides @host?  Orphans come to it, so then somebody is left. */
static bool has_others(const struct init *in, pid_t host)
{
	char text[64], *p = text;
	ssize_t n = pread(in->children, text, sizeof(text) - 1, 0);
	long child;

	text[MAX(n, 0)] = '\0';
	do {
		child = strtol(p, &p, 10);
	} while (child == host);
	return child > 0;
}

/* One whom the rewriter has not met, or of whom the kernel can't tell whether he is the last. */
static bool reap_unseen(struct init *in)
{
	struct init_exit x = {0};
	siginfo_t info;

	x.vpid = waitpid(-1, &x.status, WNOHANG);
	if (x.vpid <= 0)
		return false;
	/* Orphans come to pid 1, so no child at all means nobody. */
	x.left = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
	if (io_send_fds(in->sock, &x, sizeof(x), NULL, 0) < 0)
		_exit(INIT_END_TELL);
	return true;
}

/*
 * Tells of one child that has ended, and takes its number; false if none has.  In this order: of
 * whoever is not in the session any more the supervisor can know (freeze.c relies on it).
 */
static bool reap_one(struct init *in)
{
	struct init_exit x = {0};
	siginfo_t info = {0};

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
		return false;
	/* Our memory is closed to who would write the session's number there. */
	x.vpid = in->rewritten ? numbers_virtual(in->numbers, info.si_pid) : info.si_pid;
	if (in->rewritten && (in->children < 0 || !x.vpid))
		return reap_unseen(in);
	x.status = status_of(&info);
	x.left = in->rewritten ? has_others(in, info.si_pid) : MAX(count_left() - 1, 0);
	if (io_send_fds(in->sock, &x, sizeof(x), NULL, 0) < 0)
		_exit(INIT_END_TELL);
	waitpid(x.vpid, NULL, 0);
	return true;
}

static void answer(const struct init *in, int sock, const struct init_reply *reply, int fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct ucred cred = {reply->vpid > 0 && !in->rewritten ? reply->vpid : in->own, in->ids.uid,
		in->ids.gid};
	struct iovec iov = {(void *)reply, sizeof(*reply)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = CMSG_SPACE(sizeof(cred))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	/* The kernel translates the pid for the receiver: unix(7). */
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_CREDENTIALS;
	c->cmsg_len = CMSG_LEN(sizeof(cred));
	memcpy(CMSG_DATA(c), &cred, sizeof(cred));
	if (fd >= 0) {
		c = (struct cmsghdr *)(control.space + CMSG_SPACE(sizeof(cred)));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		msg.msg_controllen += CMSG_SPACE(sizeof(fd));
	}
	sendmsg(sock, &msg, MSG_NOSIGNAL);
}

static int set_clocks(struct init *in, int64_t monotonic_ns, int64_t boottime_ns)
{
	int r = ns_set_clocks(&in->clocks, monotonic_ns, boottime_ns);

	in->clocks.fd = close_fd(in->clocks.fd);
	return r;
}

/* What a world that was made early lacks; the listener. */
static int settle(struct init *in, const struct init_request *request, struct init_reply *reply)
{
	struct world_config c = *in->early;
	struct err e = {0};
	int r = set_clocks(in, request->monotonic_ns, request->boottime_ns);

	in->early = NULL;
	reply->stage = INIT_CLOCKS;
	if (r == 0) {
		c.mapped = &request->mapped;
		reply->stage = INIT_FILTER;
		r = filter_install(&c, &e);
	}
	if (r >= 0)
		reply->stage = INIT_DONE;
	reply->error = r < 0 ? -r : 0;
	return r;
}

/* One request of the supervisor. */
static void serve(struct init *in)
{
	struct init_request request;
	struct init_reply reply = {0};
	int fds[5], fd = -1;
	size_t n = 0;
	ssize_t got = io_recv_fds(in->sock, &request, sizeof(request), fds, ARRAY_SIZE(fds), &n);

	if (got <= 0)
		_exit(got < 0 ? INIT_END_HEAR : INIT_END_SUPERVISOR);
	if (got == sizeof(request) && request.op == INIT_SEED && n == 1)
		start_seed(&request, &in->mask, in->rewritten, &reply);
	else if (got == sizeof(request) && request.op == INIT_SPAWN && n >= 2)
		start_process(&request, in->view, fds + 1, n - 1, &in->mask, &reply, &fd);
	else if (got == sizeof(request) && request.op == INIT_SETTLE && n == 1 && in->early)
		fd = settle(in, &request, &reply);
	else
		reply = (struct init_reply){.stage = INIT_FORK, .error = EPROTO};
	if (n)
		answer(in, fds[0], &reply, fd);
	close_fd(fd);
	while (n)
		close(fds[--n]);
}

static _Noreturn void run(struct init *in)
{
	bool ended = false; /* there may be a child to reap */

	for (;;) {
		struct pollfd polls[] = {
			{in->sock, (short)(POLLIN | (ended ? POLLOUT : 0)), 0},
			{in->signals, POLLIN, 0},
		};
		struct signalfd_siginfo info;

		if (poll(polls, ARRAY_SIZE(polls), -1) < 0)
			continue;
		if (polls[0].revents & POLLIN)
			serve(in);
		else if (polls[0].revents & (POLLHUP | POLLERR))
			_exit(INIT_END_SUPERVISOR);
		if (polls[1].revents) {
			(void)!read(in->signals, &info, sizeof(info));
			ended = true;
		}
		if (ended && polls[0].revents & POLLOUT)
			ended = reap_one(in);
	}
}

/* Nothing of the supervisor's state may show in the session's processes. */
static void reset_signals(struct init *in)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t chld;

	for (int sig = 1; sig < _NSIG; sig++)
		sigaction(sig, &dfl, NULL);
	sigemptyset(&in->mask);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_SETMASK, &chld, NULL);
	in->signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Keeps nothing open but @sock, which becomes 3, and @rewriter, 4; 0 1 2 become /dev/null. */
static int close_others(int *sock, int *rewriter, struct err *e)
{
	int high[2] = {fcntl(*sock, F_DUPFD_CLOEXEC, 5), -1}, null;

	if (*rewriter >= 0)
		high[1] = fcntl(*rewriter, F_DUPFD_CLOEXEC, 5);
	if (high[0] < 0 || dup3(high[0], 3, O_CLOEXEC) < 0 ||
		(*rewriter >= 0 && dup3(high[1], 4, O_CLOEXEC) < 0))
		return err_errno(e, -errno, "dup");
	*sock = 3;
	*rewriter = *rewriter < 0 ? -1 : 4;
	syscall(SYS_close_range, *rewriter < 0 ? 4 : 5, ~0U, 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return err_errno(e, -errno, "/dev/null");
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close(null);
	return 0;
}

static int private_world(const struct world_config *c, const struct ns_ids *ids, struct init *in,
	int fds[NS_KIND_MAX], struct err *e)
{
	int r = ns_enter(c, ids, &in->clocks, e);

	if (r == 0 && !c->early) {
		r = set_clocks(in, c->monotonic_offset_ns, c->boottime_offset_ns);
		r = r < 0 ? err_errno(e, r, "cannot set the session's clocks") : 0;
	}
	/* While the host's /dev is there. */
	if (r == 0 && c->net == WORLD_NET_VNAT)
		r = ns_network(c, &in->net[INIT_NET_TUN], &in->net[INIT_NET_DIAG], e);
	if (r == 0)
		r = ns_open(fds, e);
	return r < 0 ? r : view_setup(c, e);
}

/* All is the host's but the numbers of tasks; orphans come to us all the same. */
static int rewritten_world(const struct world_config *c, struct init *in, struct err *e)
{
	char path[64];

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_errno(e, -errno, "prctl");
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", in->own);
	in->children = open(path, O_RDONLY | O_CLOEXEC);
	in->view = c->view;
	return 0;
}

/* What lies behind is open already. */
static int put_up_fence(const struct world_config *c, struct err *e)
{
	_cleanup_close_ int fence = -1;
	int r;

	if (!c->rewrite)
		return 0;
	fence = c->view ? fence_create(c, e) : fence_create_bare(e);
	if (err_is(e))
		return e->error;
	r = fence_enter(fence);
	return r < 0 ? err_errno(e, r, "Landlock") : 0;
}

static int become(const struct world_config *c, const struct ns_ids *ids, struct init *in,
	int fds[INIT_FD_NS + NS_KIND_MAX], struct err *e)
{
	int r;

	prctl(PR_SET_NAME, "podrun-init");
	proc_set_title("podrun-init");
	/* After a setuid(2) of the supervisor even its own /proc files would be closed to it. */
	prctl(PR_SET_DUMPABLE, 1);
	setsid();
	reset_signals(in);
	r = c->rewrite ? rewritten_world(c, in, e) : private_world(c, ids, in, fds + INIT_FD_NS, e);
	if (r < 0)
		return r;
	fds[INIT_FD_ROOT] = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fds[INIT_FD_PROC] = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fds[INIT_FD_ROOT] < 0 || fds[INIT_FD_PROC] < 0)
		return err_errno(e, -errno, "cannot open the session's root");
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(e, -errno, "prctl");
	if (put_up_fence(c, e) < 0)
		return e->error;
	fds[INIT_FD_LISTENER] = c->early ? -1 : filter_install(c, e);
	return err_is(e) ? e->error : 0;
}

/* How many of @fds, which may be moved, are sent to the supervisor. */
static size_t hand_over(const struct world_config *c, int rewriter, int *fds)
{
	static_assert(INIT_FD_LISTENER == 0, "what an early world has not comes first");
	if (!c->rewrite) {
		size_t n = INIT_FD_NS + (fds[INIT_FD_NS + NS_TIME] < 0 ? NS_TIME : NS_KIND_MAX);

		if (c->early)
			memmove(fds, fds + 1, --n * sizeof(*fds));
		return n;
	}
	if (io_send_fds(rewriter, "", 1, &fds[INIT_FD_LISTENER], 1) < 0)
		_exit(INIT_END_START);
	close(rewriter);
	return INIT_FD_NS;
}

_Noreturn void init_main(const struct world_config *c, const struct ns_ids *ids, int sock,
	const struct numbers *numbers, int rewriter)
{
	struct init_ready ready = {0};
	struct init in = {.ids = *ids,
		.rewritten = c->rewrite,
		.numbers = numbers,
		.own = getpid(),
		.early = c->early ? c : NULL,
		.clocks = {.fd = -1}};
	int fds[INIT_FD_NS + NS_KIND_MAX];
	size_t n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	log_init(-1, "init");
	if (close_others(&sock, &rewriter, &ready.err) == 0 &&
		become(c, ids, &in, fds, &ready.err) == 0)
		n = hand_over(c, rewriter, fds);
	in.sock = sock;
	if (io_send_fds(sock, &ready, sizeof(ready), fds, n) < 0 || !n)
		_exit(INIT_END_START);
	while (n)
		close(fds[--n]);
	if (c->net == WORLD_NET_VNAT) {
		if (io_send_fds(sock, &ready, sizeof(ready), in.net, INIT_NET_MAX) < 0)
			_exit(INIT_END_START);
		for (int i = 0; i < INIT_NET_MAX; i++)
			close(in.net[i]);
	}
	run(&in);
}

int init_say_end(struct err *e, int status)
{
	static const char *const why[] = {
		[INIT_END_SUPERVISOR] = "its supervisor's end was closed",
		[INIT_END_START] = "it could not start",
		[INIT_END_TELL] = "it could not tell of a process's end",
		[INIT_END_HEAR] = "it could not receive a request",
	};
	int code = WEXITSTATUS(status);

	static_assert(ARRAY_SIZE(why) == INIT_END_MAX, "an exit code without a story");
	if (WIFSIGNALED(status))
		return err_set(e, ERR_FAILED, -ECHILD,
			"the session's pid 1 was killed by signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	return err_set(e, ERR_FAILED, -ECHILD, "the session's pid 1 ended with exit code %d (%s)",
		code, code < INIT_END_MAX ? why[code] : "not one of its own");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Where there are no namespaces, the rewriter stands between us and pid 1 (rewrite/rewriter.h).
 *
 * The supervisor's side of a world: it clones pid 1 (supervisor/world/ns.c), waits for it to say
 * that all is ready, and asks it to start processes (init_protocol.h has the conversation).
 * Waiting here is bounded: pid 1 does nothing between request and answer but fork and exec, and if
 * it dies the reply socket is closed.  None of the calls it makes is one the supervisor has to
 * answer.
 */
#include "supervisor/world/world.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "supervisor/names/users.h"
#include "supervisor/rewrite/host.h"
#include "supervisor/rewrite/ipc/ipc.h"
#include "supervisor/rewrite/numbers.h"
#include "supervisor/rewrite/procfs/place.h"
#include "supervisor/rewrite/rewriter.h"
#include "supervisor/rewrite/view/view.h"
#include "supervisor/world/init.h"
#include "supervisor/world/init_protocol.h"
#include "supervisor/world/ns.h"
#include "supervisor/world/skeleton.h"

/* Of a world without namespaces there is only what shows it. */
static int take_shared(struct world *w, const int *fds, size_t n, struct err *e)
{
	if (n != INIT_FD_NS)
		return err_set(e, ERR_FAILED, -EPROTO, "pid 1 sent %zu descriptors", n);
	close(fds[INIT_FD_LISTENER]);
	w->root_fd = fds[INIT_FD_ROOT];
	w->proc_fd = fds[INIT_FD_PROC];
	return 0;
}

static int receive_ready(struct world *w, bool early, struct err *e)
{
	int fds[INIT_FD_NS + NS_KIND_MAX] = {[INIT_FD_LISTENER] = -1};
	struct init_ready ready;
	size_t n = 0, lacks = early ? 1 : 0;
	ssize_t r = io_recv_fds(w->init_sock, &ready, sizeof(ready), fds + lacks,
		ARRAY_SIZE(fds) - lacks, &n);

	/* It sends no more than that: those that find no place here the kernel lets go. */
	if (r == -EMSGSIZE)
		return err_errno(e, -EMFILE, "descriptors of the session's pid 1");
	if (r != sizeof(ready))
		return err_set(e, ERR_FAILED, r < 0 ? (int)r : -ECHILD,
			"the session's pid 1 ended while it was starting");
	if (ready.err.error) {
		*e = ready.err;
		return e->error;
	}
	if (w->rewriter)
		return take_shared(w, fds, n, e);
	n += lacks;
	if (n == ARRAY_SIZE(fds) - 1)
		fds[n++] = -1; /* no time namespace */
	if (n != ARRAY_SIZE(fds))
		return err_set(e, ERR_FAILED, -EPROTO, "pid 1 sent %zu descriptors", n);
	w->listener = fds[INIT_FD_LISTENER];
	w->root_fd = fds[INIT_FD_ROOT];
	w->proc_fd = fds[INIT_FD_PROC];
	w->ns_user = fds[INIT_FD_NS + NS_USER];
	w->ns_pid = fds[INIT_FD_NS + NS_PID];
	w->ns_mnt = fds[INIT_FD_NS + NS_MNT];
	w->ns_net = fds[INIT_FD_NS + NS_NET];
	w->ns_ipc = fds[INIT_FD_NS + NS_IPC];
	w->ns_uts = fds[INIT_FD_NS + NS_UTS];
	w->ns_time = fds[INIT_FD_NS + NS_TIME];
	return 0;
}

static int receive_network(struct world *w, struct err *e)
{
	struct init_ready ready;
	int fds[INIT_NET_MAX];
	size_t n = 0;
	ssize_t r = io_recv_fds(w->init_sock, &ready, sizeof(ready), fds, ARRAY_SIZE(fds), &n);

	if (r == -EMSGSIZE)
		return err_errno(e, -EMFILE, "descriptors of the session's pid 1");
	if (r != sizeof(ready) || n != INIT_NET_MAX)
		return err_set(e, ERR_FAILED, -ECHILD,
			"the session's pid 1 ended while it was starting");
	w->tun = fds[INIT_NET_TUN];
	w->diag = fds[INIT_NET_DIAG];
	return 0;
}

/* They are held as long as the session stands on it. */
static void hold_skeleton(struct world *w, const struct skeleton *s)
{
	for (int i = 0; s && i < SKELETON_PART_MAX; i++)
		w->skeleton_locks[i] = fcntl(s->lock[i], F_DUPFD_CLOEXEC, 3);
}

static int start_init(struct world *w, const struct world_config *c, int sock, struct err *e)
{
	struct ns_ids ids;

	w->init_pid = ns_clone(c, &ids, &w->init_pidfd, e);
	w->uid = ids.uid;
	w->gid = ids.gid;
	if (w->init_pid == 0)
		init_main(c, &ids, sock, NULL, -1);
	return MIN(w->init_pid, 0);
}

static int start_rewriter(struct world *w, const struct world_config *c, struct world_host *h,
	int sock, struct err *e)
{
	int fds[REWRITER_N_FDS] = {[REWRITER_INIT] = sock}, told, r;
	pid_t pid;

	w->uid = c->as_root ? 0 : c->uid;
	w->gid = c->as_root ? 0 : c->gid;
	w->numbers = h ? h->numbers : NULL;
	w->ipc = h ? h->ipc : NULL;
	w->groups = h ? h->groups : users_groups_new();
	w->rewriter = h ? h->pid : 0;
	r = host_names_begin(&(struct host_names){0}, c, e);
	if (r == 0 && !h)
		r = numbers_create(&w->numbers, e);
	if (r == 0 && !h)
		r = ipc_create(&w->ipc, e);
	if (r == 0 && !w->groups)
		r = err_errno(e, -ENOMEM, "users");
	if (h) /* they are the world's now */
		*h = (struct world_host){.pid = h->pid, .become = h->become, .ctx = h->ctx};
	if (r == 0)
		r = ipc_begin(w->ipc, c->state_dir, e);
	if (r == 0 && c->view)
		r = view_prepare(c, e);
	if (r == 0)
		r = rewriter_ways(fds, &w->rewriter_orders, &told, e);
	if (r < 0)
		return r;
	if (h) {
		r = h->become(h->ctx, c, fds, e);
	} else {
		pid = rewriter_start(c,
			&(struct rewriter_tables){w->numbers, ipc_table(w->ipc), w->groups}, fds,
			e);
		w->rewriter = MAX(pid, 0);
		r = MIN(pid, 0);
	}
	close(fds[REWRITER_ORDERS]);
	close(fds[REWRITER_TOLD]);
	if (r == 0)
		r = io_read_full(told, &w->init_pid, sizeof(w->init_pid)) == sizeof(w->init_pid)
			    ? 0
			    : err_set(e, ERR_FAILED, -ECHILD,
				      "the rewriter ended while it was starting");
	close(told);
	if (r == 0)
		w->init_pidfd = sys_pidfd_open(w->init_pid, 0);
	return r;
}

int world_create(
	struct world *ret, const struct world_config *c, struct world_host *h, struct err *e)
{
	struct world w = {
		.init_pidfd = -1,
		.rewriter_orders = -1,
		.init_sock = -1,
		.listener = -1,
		.root_fd = -1,
		.proc_fd = -1,
		.tun = -1,
		.diag = -1,
		.ns_user = -1,
		.ns_pid = -1,
		.ns_mnt = -1,
		.ns_net = -1,
		.ns_ipc = -1,
		.ns_uts = -1,
		.ns_time = -1,
		.skeleton_locks = {-1, -1},
	};
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "socketpair");
	r = c->rewrite ? start_rewriter(&w, c, h, pair[1], e) : start_init(&w, c, pair[1], e);
	hold_skeleton(&w, c->skeleton);
	close(pair[1]);
	w.init_sock = pair[0];
	if (r == 0)
		r = receive_ready(&w, c->early, e);
	if (r == 0 && c->net == WORLD_NET_VNAT && !w.rewriter)
		r = receive_network(&w, e);
	if (r < 0) {
		world_destroy(&w);
		return r;
	}
	/*
	 * The host's network is not the session's: nobody can join it, and nothing in it is owned.
	 */
	if (c->net == WORLD_NET_HOST)
		w.ns_net = close_fd(w.ns_net);
	*ret = w;
	return 0;
}

void world_end(struct world *w)
{
	pid_t child;

	/* First the listener: a task in a notified call is answered ENOSYS and can be killed. */
	w->listener = close_fd(w->listener);
	/* With the rewriter goes all it traces. */
	child = w->rewriter ? w->rewriter : w->init_pid;
	w->init_pid = 0;
	w->rewriter = 0;
	if (child > 0) {
		kill(child, SIGKILL);
		while (waitpid(child, &w->init_status, 0) < 0 && errno == EINTR)
			;
	}
	if (w->numbers) {
		procfs_place_sweep();
		view_short_sweep();
	}
	/* Nobody makes any more. */
	ipc_end(w->ipc);
	w->ipc = NULL;
}

static void close_all(struct world *w)
{
	int *fds[] = {&w->init_pidfd, &w->init_sock, &w->root_fd, &w->proc_fd, &w->tun,
		&w->diag, &w->ns_user,
		&w->ns_pid, &w->ns_mnt, &w->ns_net, &w->ns_ipc, &w->ns_uts, &w->ns_time,
		&w->skeleton_locks[0], &w->skeleton_locks[1], &w->rewriter_orders};

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		*fds[i] = close_fd(*fds[i]);
}

void world_destroy(struct world *w)
{
	world_end(w);
	numbers_free(w->numbers);
	w->numbers = NULL;
	users_groups_free(w->groups);
	w->groups = NULL;
	close_all(w);
}

void world_abandon(struct world *w)
{
	w->listener = close_fd(w->listener);
	kill(w->init_pid, SIGKILL);
	close_all(w);
}

/* Receives the answer: its struct, the host pid of the process it is about, and a descriptor. */
static int receive_reply(int sock, struct init_reply *ret, pid_t *ret_pid, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {ret, sizeof(*ret)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space)};
	ssize_t r;

	do
		r = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		struct ucred cred;

		if (c->cmsg_type == SCM_RIGHTS) {
			memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
		} else if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			*ret_pid = cred.pid;
		}
	}
	return r == sizeof(*ret) ? 0 : -EPIPE;
}

/* @fds[0] is filled in with the reply socket. */
static int ask(struct world *w, const struct init_request *request, int *fds, size_t n_fds,
	struct init_reply *ret, pid_t *ret_pid, int *ret_fd, struct err *e)
{
	int pair[2], r, on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "socketpair");
	setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	fds[0] = pair[1];
	r = io_send_fds(w->init_sock, request, sizeof(*request), fds, n_fds);
	close(pair[1]);
	if (r == 0)
		r = receive_reply(pair[0], ret, ret_pid, ret_fd);
	close(pair[0]);
	return r < 0 ? err_set(e, ERR_STATE, -ESRCH, "the session has ended") : 0;
}

static int put_strings(const struct world_spawn *s, struct init_request *request, struct err *e)
{
	_cleanup_buf_ struct buf strings = BUF_INIT;
	int fd, r;

	for (char *const *p = s->argv; *p; p++, request->n_args++)
		buf_put(&strings, *p, strlen(*p) + 1);
	for (char *const *p = s->envp; p && *p; p++, request->n_env++)
		buf_put(&strings, *p, strlen(*p) + 1);
	buf_put_str(&strings, s->cwd ? s->cwd : "");
	buf_put_u8(&strings, 0);
	request->cwd = s->cwd != NULL;
	request->size = strings.len;
	r = buf_error(&strings);
	if (r < 0)
		return err_errno(e, r, "arguments");
	fd = memfd_create("podrun-spawn", MFD_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "memfd");
	r = io_write_full(fd, strings.data, strings.len);
	if (r < 0) {
		close(fd);
		return err_errno(e, r, "arguments");
	}
	return fd;
}

/* May the program be executed but not read?  Of one in the session's own view that is not known here. */
static bool is_closed(const struct world_spawn *s)
{
	const char *program = s->argv[0], *below = program[0] == '/' || !s->cwd ? "" : s->cwd;
	char path[PATH_MAX];
	struct stat st;

	if (!strchr(program, '/') ||
		snprintf(path, sizeof(path), "%s/%s", below, program) >= (int)sizeof(path))
		return false;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0 &&
	       access(path, R_OK) < 0;
}

static int spawn_failed(const struct world *w, const struct world_spawn *s,
	const struct init_reply *reply, struct err *e)
{
	switch (reply->stage) {
	case INIT_TTY:
		return err_errno(e, -reply->error, "cannot make a terminal");
	case INIT_CWD:
		/* Not -ENOENT: that is for a program that is not there. */
		err_set(e, ERR_NOT_FOUND, -ENOTDIR, "no working directory '%s' in the session: %s",
			s->cwd, strerror(reply->error));
		if (!strncmp(s->cwd, "/tmp/", 5) || !strncmp(s->cwd, "/run/", 5))
			err_hint(e,
				"its %.4s is its own: -v DIR:DIR shows the host's directory, "
				"-w DIR starts in another one",
				s->cwd);
		return e->error;
	case INIT_EXEC:
		err_errno(e, -reply->error, "cannot run '%s'", s->argv[0]);
		if (reply->error == ENOENT && !strchr(s->argv[0], '/'))
			err_hint(e, "no directory of the session's PATH has it; podrun help lists "
				    "podrun's own commands");
		if (reply->error == EACCES && w->rewriter && is_closed(s))
			err_hint(e, "without namespaces a program must be readable, too, so that "
				    "paths can be rewritten for it; with --view host none are");
		return reply->error == ENOENT ? err_reclass(e, ERR_NOT_FOUND) : e->error;
	default:
		return err_errno(e, -reply->error, "cannot start a process");
	}
}

int world_spawn(struct world *w, const struct world_spawn *s, pid_t *ret_vpid, int *ret_master,
	struct err *e)
{
	struct init_request request = {
		.op = INIT_SPAWN, .tty = s->tty, .rows = s->rows, .cols = s->cols};
	_cleanup_close_ int strings = -1, null = -1;
	struct init_reply reply;
	int fds[5], master = -1, r;
	pid_t pid;

	if (!s->argv || !s->argv[0])
		return err_set(e, ERR_USAGE, -EINVAL, "nothing to run");
	strings = put_strings(s, &request, e);
	if (strings < 0)
		return strings;
	request.umask = s->umask ? s->umask & 0777 : umask(0);
	if (!s->umask)
		umask(request.umask);
	fds[1] = strings;
	for (int i = 0; i < 3 && !s->tty; i++) {
		if (s->stdio[i] < 0 && null < 0)
			null = open("/dev/null", O_RDWR | O_CLOEXEC);
		fds[2 + i] = s->stdio[i] < 0 ? null : s->stdio[i];
	}
	r = ask(w, &request, fds, s->tty ? 2 : 5, &reply, &pid, &master, e);
	if (r < 0)
		return r;
	if (reply.stage != INIT_DONE) {
		close_fd(master);
		return spawn_failed(w, s, &reply, e);
	}
	*ret_vpid = reply.vpid;
	if (s->tty)
		*ret_master = master;
	return 0;
}

int world_seed(struct world *w, pid_t vpid, pid_t *ret_pid, struct err *e)
{
	struct init_request request = {.op = INIT_SEED, .vpid = vpid};
	struct init_reply reply;
	int fds[1], none = -1, r;
	pid_t pid = -1;

	r = ask(w, &request, fds, 1, &reply, &pid, &none, e);
	if (r < 0)
		return r;
	if (reply.stage != INIT_DONE) {
		err_errno(e, -reply.error, "cannot make a task with number %d", vpid);
		/* the session's own --pids, or the user's limit */
		return reply.error == EAGAIN ? err_reclass(e, ERR_HOST) : e->error;
	}
	if (pid <= 0) /* no number to send a signal to */
		return err_set(e, ERR_FAILED, -EPROTO, "pid 1 made a task nobody can see");
	*ret_pid = pid;
	return 0;
}

int world_settle(struct world *w, const struct world_config *c, struct err *e)
{
	struct init_request request = {.op = INIT_SETTLE,
		.monotonic_ns = c->monotonic_offset_ns,
		.boottime_ns = c->boottime_offset_ns};
	struct init_reply reply;
	int fds[1], r;
	pid_t pid;

	if (c->mapped)
		request.mapped = *c->mapped;
	r = ask(w, &request, fds, 1, &reply, &pid, &w->listener, e);
	if (r < 0)
		return r;
	if (reply.stage == INIT_DONE && w->listener >= 0)
		return 0;
	return err_errno(e, reply.error ? -reply.error : -EPROTO, "cannot %s",
		reply.stage == INIT_CLOCKS ? "set the session's clocks"
					   : "install the session's filter");
}

int world_next_exit(struct world *w, struct world_exit *ret, struct err *e)
{
	struct init_exit x;
	ssize_t r;

	do
		r = recv(w->init_sock, &x, sizeof(x), MSG_DONTWAIT);
	while (r < 0 && errno == EINTR);
	if (r < 0 && errno == EAGAIN)
		return 0;
	if (r != sizeof(x))
		return err_set(e, ERR_STATE, -ESRCH, "the session's pid 1 has ended");
	*ret = (struct world_exit){.vpid = x.vpid, .status = x.status, .left = x.left};
	return 1;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A unix socket remembers who connected, who listened and who sent, by number.
 *
 * A living process does it itself, through its remote.  For one that has ended (a shell that made
 * a socketpair for its children) the builder makes a child with its number in the session's pid
 * namespace, which exists just for that call: the kernel keeps the number with the socket.
 *
 * Landlock remembers who made a socket, too, and lets nobody connect to an abstract name of those
 * who are not as confined as himself.  Where that guards a session such sockets are made inside.
 *
 * SCM_CREDENTIALS may name any process that exists in the sender's pid namespace, given
 * CAP_SYS_ADMIN over it.  The builder has that, but is not in that namespace: a child of its is.
 *
 * Where names are rewritten a child does all of it, under whatever number it has on the host: the
 * session is told the right one, as of all that the kernel remembers of its processes.
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ckpt/build.h"
#include "ckpt/kinds/unix.h"
#include "ckpt/survey/take.h"
#include "proto/sockets.pb-c.h"

#define MAX_FDS	    253 /* SCM_MAX_FD of net/scm.h */
#define CHILD_STACK 65536

/* What is to be done. */
struct call {
	enum { LISTEN, CONNECT, PAIR } what;
	int fd;
	int number; /* backlog, or type of a pair */
	const struct unix_address *to;
	int pair[2];
	int teller; /* where a child sends these */
};

static int perform(struct call *c)
{
	int r;

	switch (c->what) {
	case LISTEN:
		r = listen(c->fd, c->number);
		break;
	case CONNECT:
		r = connect(c->fd, (const void *)&c->to->un, c->to->len);
		break;
	default:
		r = socketpair(AF_UNIX, c->number | SOCK_CLOEXEC, 0, c->pair);
	}
	return r < 0 ? -errno : 0;
}

/* ---- inside a living process ---------------------------------------------------------------- */

static int pair_inside(struct ckpt_build *b, struct remote *r, struct call *c, struct err *e)
{
	uint64_t at;
	int32_t *there = remote_data(r, 2 * sizeof(*there), &at), theirs[2];
	int rc, call;

	if (!there)
		return err_errno(e, -ENOSPC, "socketpair");
	call = remote_add(
		r, SYS_socketpair, AF_UNIX, (uint64_t)(c->number | SOCK_CLOEXEC), 0, at, 0, 0);
	rc = remote_run(r, true, e);
	if (rc < 0)
		return rc;
	if (remote_result(r, call) < 0)
		return err_errno(e, (int)remote_result(r, call), "socketpair");
	memcpy(theirs, there, sizeof(theirs));
	rc = ckpt_take(b->world, r, theirs, 2, c->pair, e);
	remote_add(r, SYS_close, (uint64_t)theirs[0], 0, 0, 0, 0, 0);
	remote_add(r, SYS_close, (uint64_t)theirs[1], 0, 0, 0, 0, 0);
	return rc < 0 ? rc : remote_run(r, false, e);
}

static int inside(struct ckpt_build *b, struct ckpt_build_proc *p, struct call *c, struct err *e)
{
	struct remote *r = p->threads[0].remote;
	struct remote_arg args[6] = {{0}};
	int lent, call, rc;
	long result;

	if (c->what == PAIR)
		return pair_inside(b, r, c, e);
	lent = ckpt_build_lend(b, r, c->fd, e);
	if (lent < 0)
		return lent;
	args[0] = REMOTE_RESULT(lent);
	if (c->what == LISTEN) {
		args[1] = REMOTE_ARG(c->number);
	} else {
		args[1] = REMOTE_ARG(remote_put(r, &c->to->un, c->to->len));
		args[2] = REMOTE_ARG(c->to->len);
	}
	call = remote_add_args(r, c->what == LISTEN ? SYS_listen : SYS_connect, args);
	args[1] = args[2] = REMOTE_ARG(0);
	remote_add_args(r, SYS_close, args);
	rc = remote_run(r, false, e);
	if (rc < 0)
		return rc;
	result = remote_result(r, lent) < 0 ? remote_result(r, lent) : remote_result(r, call);
	return result < 0 ? (int)result : 0;
}

/* Any task that can do something. */
static struct remote *somebody(struct ckpt_build *b)
{
	for (size_t i = 0; i < b->n_procs; i++)
		if (!b->procs[i].zombie && b->procs[i].threads[0].remote)
			return b->procs[i].threads[0].remote;
	return NULL;
}

int unix_socket_inside(struct ckpt_build *b, int type, struct err *e)
{
	struct remote *r = somebody(b);
	_cleanup_close_ int fd = -1;
	int theirs, rc;
	long result;

	if (!r)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a socket, and nobody who has it");
	rc = remote_must(
		r, &result, e, SYS_socket, AF_UNIX, (uint64_t)(type | SOCK_CLOEXEC), 0, 0, 0, 0);
	if (rc < 0)
		return rc;
	theirs = (int)result;
	rc = ckpt_take(b->world, r, &theirs, 1, &fd, e);
	if (rc >= 0)
		rc = remote_must(r, &result, e, SYS_close, (uint64_t)theirs, 0, 0, 0, 0, 0);
	return rc < 0 ? rc : take_fd(&fd);
}

/* ---- in a process made for it --------------------------------------------------------------- */

/* A child with number @vpid (0: any) in the session; 0 in the child, -EEXIST when the number is
 * taken. */
static pid_t fork_as(struct ckpt_build *b, pid_t vpid)
{
	const struct ckpt_names *names = b->world->names;
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = vpid ? (uint64_t)(uintptr_t)&vpid : 0,
		.set_tid_size = vpid ? 1 : 0,
	};
	pid_t pid = names ? fork() : (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (names && vpid && pid > 0)
		names->alias(names->ctx, vpid, pid);
	return pid < 0 ? -errno : pid;
}

static int child_status(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

/* What the child does: its exit code. */
static int perform_and_tell(struct call *c)
{
	int r = perform(c);

	if (r == 0 && c->what == PAIR)
		r = io_send_fds(c->teller, "", 1, c->pair, 2);
	return -r;
}

/*
 * As vfork(2), with number @vpid: the child has descriptors of its own and this memory, and this
 * thread sleeps until it has ended.  There are many, and a fork of the builder, whose memory is
 * full of records, costs more than all that the child does.
 */
static pid_t run_as(pid_t vpid, struct call *c)
{
	_Alignas(16) uint8_t stack[CHILD_STACK];
	const struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = sizeof(stack),
		.set_tid = (uint64_t)(uintptr_t)&vpid,
		.set_tid_size = 1,
	};
	long ret = SYS_clone3;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %[ctx], %%rdi\n\t"
			 "call *%[run]\n\t"
			 "mov %%eax, %%edi\n\t"
			 "mov %[end], %%eax\n\t"
			 "syscall\n"
			 "1:"
			 : "+a"(ret)
			 : "D"(&args), "S"(sizeof(args)), [run] "r"(perform_and_tell), [ctx] "r"(c),
			 [end] "i"(SYS_exit_group)
			 : "rcx", "r11", "memory", "cc");
	return (pid_t)ret;
}

/* -EEXIST when nobody can have that number now. */
static int by_child(struct ckpt_build *b, pid_t vpid, struct call *c)
{
	int sock[2], r;
	size_t n = 0;
	pid_t pid;
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) < 0)
		return -errno;
	c->teller = sock[1];
	/* Who rewrites names has to be told of the number first. */
	pid = b->world->names ? fork_as(b, vpid) : run_as(vpid, c);
	if (pid == 0)
		_exit(perform_and_tell(c));
	close(sock[1]);
	if (pid < 0) {
		close(sock[0]);
		return -EEXIST;
	}
	if (c->what == PAIR)
		io_recv_fds(sock[0], &byte, 1, c->pair, 2, &n);
	close(sock[0]);
	r = child_status(pid);
	return r == 0 && c->what == PAIR && n != 2 ? -EPROTO : r;
}

static int call_as(struct ckpt_build *b, pid_t vpid, struct call *c, struct err *e)
{
	static const char *const names[] = {"listen", "connect", "socketpair"};
	struct ckpt_build_proc *p = vpid > 1 ? ckpt_build_proc(b, vpid) : NULL;
	int r = -EEXIST;

	if (vpid > 1 && (!p || b->world->names))
		r = by_child(b, vpid, c);
	else if (p && !p->zombie && p->threads[0].remote)
		r = inside(b, p, c, e);
	if (r == -EEXIST)
		r = perform(c);
	if (r < 0 && !err_is(e))
		err_errno(e, r, "%s as task %d", names[c->what], vpid);
	return r;
}

int unix_listen_as(struct ckpt_build *b, pid_t vpid, int fd, int backlog, struct err *e)
{
	return call_as(b, vpid, &(struct call){.what = LISTEN, .fd = fd, .number = backlog}, e);
}

int unix_connect_as(
	struct ckpt_build *b, pid_t vpid, int fd, const struct unix_address *to, struct err *e)
{
	return call_as(b, vpid, &(struct call){.what = CONNECT, .fd = fd, .to = to}, e);
}

int unix_pair_as(struct ckpt_build *b, pid_t vpid, int type, int ret[2], struct err *e)
{
	struct call c = {.what = PAIR, .number = type};
	int r = call_as(b, vpid, &c, e);

	if (r >= 0) {
		ret[0] = c.pair[0];
		ret[1] = c.pair[1];
	}
	return r;
}

/* ---- sending -------------------------------------------------------------------------------- */

static void put_control(struct msghdr *msg, size_t *used, int type, const void *data, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)msg->msg_control + *used);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	*used += CMSG_SPACE(len);
}

/* Sends the rest from @at on; what follows the first piece of a stream carries nothing besides. */
static int send_rest(const struct unix_send *s, size_t at)
{
	const Pb__SockMessage *m = s->message;

	while (at < m->data.len) {
		ssize_t n = send(
			s->fd, m->data.data + at, m->data.len - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

static int send_one(struct ckpt_build *b, const struct unix_send *s, const struct ucred *cred)
{
	const Pb__SockMessage *m = s->message;
	int fds[MAX_FDS];
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(fds)) + CMSG_SPACE(sizeof(*cred))];
	} control = {0};
	struct iovec iov = {m->data.data, m->data.len};
	struct msghdr msg = {
		.msg_name = s->to ? (void *)&s->to->un : NULL,
		.msg_namelen = s->to ? s->to->len : 0,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
	};
	size_t used = 0;
	ssize_t n;

	if (m->n_files > MAX_FDS)
		return -EINVAL;
	for (size_t i = 0; i < m->n_files; i++) {
		const struct ckpt_build_file *f = ckpt_build_file(b, m->files[i]);

		if (!f || f->fd < 0)
			return -EBADF;
		fds[i] = f->fd;
	}
	if (m->n_files)
		put_control(&msg, &used, SCM_RIGHTS, fds, m->n_files * sizeof(int));
	if (cred)
		put_control(&msg, &used, SCM_CREDENTIALS, cred, sizeof(*cred));
	msg.msg_controllen = used;
	if (!used)
		msg.msg_control = NULL;
	n = sendmsg(s->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return send_rest(s, (size_t)n);
}

static int send_list(struct ckpt_build *b, const struct unix_send *sends, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = send_one(b, &sends[i], NULL);

		if (r < 0)
			return r;
	}
	return 0;
}

/* One with credentials, by a process of the session's pid namespace.  A number that nobody has any
 * more needs somebody to have it meanwhile. */
static int send_named(struct ckpt_build *b, const struct unix_send *s)
{
	const Pb__SockCred *c = s->message->cred;
	const struct ucred cred = {c->pid, c->uid, c->gid};
	pid_t holder = 0;
	int r;

	if (kill(cred.pid, 0) < 0 && errno == ESRCH) {
		holder = fork_as(b, cred.pid);
		if (holder == 0)
			for (;;)
				pause();
	}
	r = send_one(b, s, &cred);
	if (holder > 0) {
		kill(holder, SIGKILL);
		child_status(holder);
	}
	return r;
}

/* Where names are rewritten: by a child that the session takes for its sender. */
static int send_by_child(struct ckpt_build *b, const struct unix_send *s)
{
	const Pb__SockCred *c = s->message->cred;
	pid_t pid = fork_as(b, c->pid);

	if (pid == 0) {
		const struct ckpt_world *w = b->world;
		const struct ucred cred = {getpid(), c->uid == w->uid ? getuid() : c->uid,
			c->gid == w->gid ? getgid() : c->gid};

		_exit(-send_one(b, s, &cred));
	}
	return pid < 0 ? pid : child_status(pid);
}

static int send_by_children(struct ckpt_build *b, const struct unix_send *sends, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		bool named = sends[i].message->cred && sends[i].message->cred->pid > 0;

		r = named ? send_by_child(b, &sends[i]) : send_one(b, &sends[i], NULL);
	}
	return r;
}

static int send_from_session(struct ckpt_build *b, const struct unix_send *sends, size_t n)
{
	pid_t pid = fork_as(b, 0);

	if (pid == 0) {
		int r = 0;

		for (size_t i = 0; i < n && r == 0; i++) {
			bool named = sends[i].message->cred && sends[i].message->cred->pid > 0;

			r = named ? send_named(b, &sends[i]) : send_one(b, &sends[i], NULL);
		}
		_exit(-r);
	}
	return pid < 0 ? pid : child_status(pid);
}

int unix_send_all(struct ckpt_build *b, const struct unix_send *sends, size_t n, struct err *e)
{
	bool named = false;
	int r;

	for (size_t i = 0; i < n; i++)
		named |= sends[i].message->cred && sends[i].message->cred->pid > 0;
	if (named && b->world->names)
		r = send_by_children(b, sends, n);
	else
		r = named ? send_from_session(b, sends, n) : send_list(b, sends, n);
	if (r == -EAGAIN)
		return err_set(e, ERR_HOST, r,
			"this host's socket buffers are too small for what "
			"was in flight (net.core.wmem_max)");
	if (r == -ESRCH)
		return err_set(
			e, ERR_IMAGE, r, "something unread comes from a process that is not there");
	return r < 0 ? err_errno(e, r, "cannot fill the queue of a unix socket") : 0;
}

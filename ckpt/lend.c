// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in lend.h. */
#include "ckpt/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/base.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/where.h"

/* A listening socket in the abstract space of the session's network; the kernel picks its name. */
static int listen_abstract(struct sockaddr_un *ret, socklen_t *ret_len, struct err *e)
{
	struct sockaddr_un any = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret_len = sizeof(*ret);
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any.sun_family)) < 0 ||
		listen(fd, 8) < 0 || getsockname(fd, (struct sockaddr *)ret, ret_len) < 0)
		return err_errno(e, -errno, "a socket for the first task");
	return take_fd(&fd);
}

/* Accepts the connection of @pid; with the host's network others might come too. */
static int accept_from(int listener, pid_t pid, struct err *e)
{
	for (;;) {
		_cleanup_close_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		struct ucred cred;
		socklen_t len = sizeof(cred);

		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
			return err_errno(e, -errno, "a connection from the first task");
		if (cred.pid == pid)
			return take_fd(&fd);
	}
}

static int receive(struct remote *r, int sock, int *ret_fd, struct err *e)
{
	struct {
		struct msghdr msg;
		struct iovec iov;
		char byte[8];
		union {
			struct cmsghdr header;
			char room[CMSG_SPACE(sizeof(int))];
		} control;
	} * m;
	uint64_t at;
	struct cmsghdr *c;
	int rc;

	m = remote_data(r, sizeof(*m), &at);
	m->iov = (struct iovec){(void *)(at + offsetof(__typeof__(*m), byte)), 1};
	m->msg = (struct msghdr){
		.msg_iov = (void *)(at + offsetof(__typeof__(*m), iov)),
		.msg_iovlen = 1,
		.msg_control = (void *)(at + offsetof(__typeof__(*m), control)),
		.msg_controllen = sizeof(m->control),
	};
	remote_add(r, SYS_recvmsg, (uint64_t)sock, at, MSG_CMSG_CLOEXEC, 0, 0, 0);
	remote_add(r, SYS_close, (uint64_t)sock, 0, 0, 0, 0, 0);
	rc = ckpt_run_all(r, "the builder's descriptor", e);
	if (rc < 0)
		return rc;
	c = &m->control.header;
	if (m->msg.msg_controllen < CMSG_LEN(sizeof(int)) || c->cmsg_type != SCM_RIGHTS)
		return err_set(e, ERR_FAILED, -EPROTO, "the builder's descriptor got lost");
	memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return 0;
}

int ckpt_lend_bootstrap(struct ckpt_build *b, struct remote *r, int *ret_fd, struct err *e)
{
	struct sockaddr_un addr;
	socklen_t len;
	_cleanup_close_ int listener = listen_abstract(&addr, &len, e);
	_cleanup_close_ int conn = -1;
	struct remote_arg args[6] = {{0}};
	long sock;
	int rc, at;

	if (listener < 0)
		return listener;
	at = remote_add(r, SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0, 0, 0);
	args[0] = REMOTE_RESULT(at);
	args[1] = REMOTE_ARG(remote_put(r, &addr, len));
	args[2] = REMOTE_ARG(len);
	remote_add_args(r, SYS_connect, args);
	rc = ckpt_run_all(r, "connect to the builder", e);
	if (rc < 0)
		return rc;
	sock = remote_result(r, at);
	conn = accept_from(listener, remote_tid(r), e);
	if (conn < 0)
		return conn;
	rc = io_send_fds(conn, "", 1, &b->self_pidfd, 1);
	if (rc < 0)
		return err_errno(e, rc, "the builder's descriptor");
	return receive(r, (int)sock, ret_fd, e);
}

int ckpt_lend_call(const struct ckpt_names *names, struct remote *r, int fd)
{
	return remote_add(r, names->lend_call, names->lend_key, (uint64_t)fd, 0, 0, 0, 0);
}

static struct ckpt_build_proc *proc_of(struct ckpt_build *b, const struct remote *r)
{
	pid_t tid = remote_tid(r);

	for (size_t i = 0; i < b->n_procs; i++) {
		struct ckpt_build_proc *p = &b->procs[i];

		if (p->pid == tid)
			return p;
		for (size_t k = 0; k < p->n_threads; k++)
			if (p->threads[k].tid == tid)
				return p;
	}
	return NULL;
}

/*
 * The kernel gives no O_PATH descriptor that way.  The task opens it anew: below its directory,
 * which is lent instead.  What it gets has the number that it would have had.
 */
static int lend_path(struct ckpt_build *b, struct remote *r, int fd, struct err *e)
{
	struct remote_arg args[6] = {{0}};
	char link[32];
	_cleanup_free_ char *path = NULL;
	const char *name = ".";
	char *slash;
	struct stat st;
	int dir, lent, opened, last;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	path = io_readlink(AT_FDCWD, link);
	slash = path ? strrchr(path, '/') : NULL;
	if (!slash || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "a path");
	if (!S_ISDIR(st.st_mode) && st.st_nlink == 0) {
		path = ckpt_where_say(b->world, take_ptr(path));
		return err_set(e, ERR_HOST, -EOPNOTSUPP,
			"an O_PATH descriptor of %s can't be had where names are rewritten",
			path ? path : "a deleted file");
	}
	if (!S_ISDIR(st.st_mode)) {
		*slash = '\0';
		name = slash + 1;
	}
	if (S_ISDIR(st.st_mode))
		dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else
		dir = open(*path ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_errno(e, -errno, "a descriptor of a path needs %s to be readable", path);
	buf_put(&b->lent, &dir, sizeof(dir));
	lent = ckpt_lend_call(b->world->names, r, dir);
	args[0] = REMOTE_RESULT(lent);
	args[1] = REMOTE_ARG(remote_put_str(r, name));
	args[2] = REMOTE_ARG(O_PATH | O_NOFOLLOW | O_CLOEXEC);
	opened = remote_add_args(r, SYS_openat, args);
	args[1] = args[2] = REMOTE_ARG(0);
	remote_add_args(r, SYS_close, args);
	args[0] = REMOTE_RESULT(opened);
	args[1] = REMOTE_ARG(F_DUPFD_CLOEXEC);
	last = remote_add_args(r, SYS_fcntl, args);
	args[1] = REMOTE_ARG(0);
	remote_add_args(r, SYS_close, args);
	return last;
}

int ckpt_build_lend(struct ckpt_build *b, struct remote *r, int fd, struct err *e)
{
	const struct ckpt_build_proc *p = proc_of(b, r);
	int at;

	if (b->world->names && p && fd >= 0 && fcntl(fd, F_GETFL) & O_PATH)
		return lend_path(b, r, fd, e);
	if (b->world->names && p && fd >= 0) {
		at = ckpt_lend_call(b->world->names, r, fd);
		return at < 0 ? err_errno(e, at, "a descriptor for task %d", p->vpid) : at;
	}
	if (!p || p->lend_fd < 0 || fd < 0)
		return err_set(e, ERR_FAILED, -EBADF, "no descriptor to be had for task %d",
			remote_tid(r));
	at = remote_add(r, SYS_pidfd_getfd, (uint64_t)p->lend_fd, (uint64_t)fd, 0, 0, 0, 0);
	return at < 0 ? err_errno(e, at, "a descriptor for task %d", p->vpid) : at;
}

static void set_number(struct ckpt_build *b, const struct ckpt_build_proc *p, int fd)
{
	pid_t files = p->files;

	for (size_t i = 0; i < b->n_procs; i++)
		if (b->procs[i].files == files)
			b->procs[i].lend_fd = fd;
}

void ckpt_lend_move(struct ckpt_build *b, struct ckpt_build_proc *p, int fd)
{
	struct remote *r = p->threads[0].remote;

	if (p->lend_fd < 0 || p->lend_fd == fd)
		return;
	remote_add(r, SYS_dup3, (uint64_t)p->lend_fd, (uint64_t)fd, O_CLOEXEC, 0, 0, 0);
	remote_add(r, SYS_close, (uint64_t)p->lend_fd, 0, 0, 0, 0, 0);
	set_number(b, p, fd);
}

void ckpt_lend_end(struct ckpt_build *b, struct ckpt_build_proc *p)
{
	if (p->lend_fd < 0)
		return;
	remote_add(p->threads[0].remote, SYS_close, (uint64_t)p->lend_fd, 0, 0, 0, 0, 0);
	set_number(b, p, -1);
}

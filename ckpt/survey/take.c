// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in take.h. */
#include "ckpt/survey/take.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/lend.h"
#include "ckpt/remote/remote.h"

#define MOST IO_MAX_FDS /* at a time; SCM_MAX_FD of net/scm.h is more */

bool ckpt_take_by_pidfd(void)
{
	static int can = -1;

	if (can < 0)
		can = sys_pidfd_getfd(-1, 0) < 0 && errno == EBADF;
	return can;
}

/* ---- from outside --------------------------------------------------------------------------- */

static int get_all(struct remote *r, const int *theirs, size_t n, int *ret, struct err *e)
{
	_cleanup_close_ int pidfd = sys_pidfd_open(remote_tid(r), 0);

	if (pidfd < 0)
		return err_errno(e, -errno, "pidfd_open");
	for (size_t i = 0; i < n; i++) {
		ret[i] = sys_pidfd_getfd(pidfd, theirs[i]);
		if (ret[i] < 0) {
			int failure = err_errno(e, -errno, "pidfd_getfd");

			while (i)
				close(ret[--i]);
			return failure;
		}
	}
	return 0;
}

/* ---- from inside ---------------------------------------------------------------------------- */

/* A message as the task sends it. */
struct parcel {
	struct msghdr msg;
	struct iovec iov;
	char byte[8];
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(MOST * sizeof(int))];
	} control;
};

static uint64_t put_parcel(struct remote *r, const int *theirs, size_t n)
{
	uint64_t at;
	struct parcel *p = remote_data(r, sizeof(*p), &at);

	if (!p)
		return 0;
	p->iov = (struct iovec){(void *)(at + offsetof(struct parcel, byte)), 1};
	p->msg = (struct msghdr){.msg_iov = (void *)(at + offsetof(struct parcel, iov)),
		.msg_iovlen = 1,
		.msg_control = (void *)(at + offsetof(struct parcel, control)),
		.msg_controllen = CMSG_SPACE(n * sizeof(int))};
	p->control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(n * sizeof(int))};
	memcpy(CMSG_DATA(&p->control.header), theirs, n * sizeof(int));
	return at;
}

/* The task sends them through @sock, which it has not got yet.  What failed as a negative errno. */
static int send_out(const struct ckpt_names *names, struct remote *r, int sock, const int *theirs,
	size_t n, struct err *e)
{
	uint64_t parcel = put_parcel(r, theirs, n);
	int lent = ckpt_lend_call(names, r, sock), sent, k;
	const struct remote_arg with[6] = {REMOTE_RESULT(lent), REMOTE_ARG(parcel),
		REMOTE_ARG(MSG_NOSIGNAL | MSG_DONTWAIT)};
	const struct remote_arg alone[6] = {REMOTE_RESULT(lent)};

	sent = remote_add_args(r, SYS_sendmsg, with);
	remote_add_args(r, SYS_close, alone);
	k = remote_run(r, false, e);
	if (k < 0)
		return k;
	if (remote_result(r, lent) < 0)
		return (int)remote_result(r, lent);
	return (int)MIN(remote_result(r, sent), 0L);
}

int ckpt_take_full(struct err *e)
{
	err_set(e, ERR_UNFREEZABLE, -EMFILE,
		"all open files of a session have to be open in one process of podrun, too");
	return err_hint(e, "a higher hard limit (ulimit -Hn), or fewer that are open");
}

int ckpt_take_raise(pid_t tid, struct rlimit *ret_old)
{
	struct rlimit high;

	if (prlimit(tid, RLIMIT_NOFILE, NULL, ret_old) < 0)
		return -errno;
	high = (struct rlimit){ret_old->rlim_max, ret_old->rlim_max};
	return prlimit(tid, RLIMIT_NOFILE, &high, NULL) < 0 ? -errno : 0;
}

void ckpt_take_lower(pid_t tid, const struct rlimit *old)
{
	prlimit(tid, RLIMIT_NOFILE, old, NULL);
}

/* As send_out, of a task whose limit is in the way. */
static int send_out_raised(const struct ckpt_names *names, struct remote *r, int sock,
	const int *theirs, size_t n, struct err *e)
{
	struct rlimit old;
	int k = ckpt_take_raise(remote_tid(r), &old);

	if (k < 0)
		return k;
	k = send_out(names, r, sock, theirs, n, e);
	ckpt_take_lower(remote_tid(r), &old);
	return k;
}

static int receive_some(
	const struct ckpt_names *names, struct remote *r, const int *theirs, size_t n, int *ret,
	struct err *e)
{
	_cleanup_close_ int ours = -1, lent = -1;
	struct err story = {0};
	int pair[2], k;
	size_t got = 0;
	char byte;
	ssize_t len;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "socketpair");
	ours = pair[0];
	lent = pair[1];
	k = send_out(names, r, lent, theirs, n, &story);
	if (k == -EMFILE || k == -ETOOMANYREFS)
		k = send_out_raised(names, r, lent, theirs, n, &story);
	if (k < 0)
		return err_errno(e, k, "descriptors of task %d%s%s", remote_tid(r),
			err_is(&story) ? ": " : "", story.msg);
	len = io_recv_fds(ours, &byte, 1, ret, n, &got);
	if (len == 1 && got == n)
		return 0;
	if (len == 1)
		while (got)
			close(ret[--got]);
	/* Of those that find no place here the kernel lets go. */
	if (len == 1 || len == -EMSGSIZE)
		return ckpt_take_full(e);
	return err_errno(e, (int)len, "descriptors of task %d", remote_tid(r));
}

static int receive_all(const struct ckpt_names *names, struct remote *r, const int *theirs, size_t n,
	int *ret, struct err *e)
{
	size_t done = 0;

	while (done < n) {
		size_t some = MIN(n - done, (size_t)MOST);
		int k = receive_some(names, r, theirs + done, some, ret + done, e);

		if (k < 0) {
			while (done)
				close(ret[--done]);
			return k;
		}
		done += some;
	}
	return 0;
}

int ckpt_take(const struct ckpt_world *w, struct remote *r, const int *theirs, size_t n, int *ret,
	struct err *e)
{
	if (ckpt_take_by_pidfd())
		return get_all(r, theirs, n, ret, e);
	if (w->names)
		return receive_all(w->names, r, theirs, n, ret, e);
	return err_set(e, ERR_HOST, -EPERM, "this host does not allow pidfd_getfd");
}

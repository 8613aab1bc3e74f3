// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The listener is drained whenever it is readable.  RECV would wait if it came without poll saying
 * so, and returns ENOENT once after a call was interrupted; both are met by polling before each.
 *
 * What is asked is rare under kernel names: what our own worker injects, filters of the session's
 * own, and for a root inside everything about users and owners.
 *
 * Filters of the session's own are not left to the kernel: supervisor/filter/install.h.
 */
#include "supervisor/filter/notify.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "base/base.h"
#include "supervisor/filter/filter_watch.h"
#include "supervisor/filter/install.h"
#include "supervisor/filter/notify_call.h"
#include "supervisor/names/owners.h"
#include "supervisor/names/users.h"
#include "supervisor/world/world.h"

#define MAX_BATCH 64 /* answered before the event loop gets its turn */

struct notify {
	const struct world *world;
	int proc;
	bool trusting;
	struct installs *installs;
	notify_hold *hold; /* calls that are about memory, for now; NULL */
	void *hold_ctx;
	struct owners *owners;	     /* of a root inside */
	struct users_groups *groups; /* likewise */
};

int notify_proc(const struct notify *n)
{
	return n->proc;
}

int notify_root(const struct notify *n)
{
	return n->world->root_fd;
}

struct owners *notify_owners(const struct notify *n)
{
	return n->owners;
}

struct users_groups *notify_groups(const struct notify *n)
{
	return n->groups;
}

int notify_read(const struct notify_call *c, uint64_t addr, void *data, size_t len)
{
	struct iovec local = {data, len}, remote = {(void *)(uintptr_t)addr, len};

	return process_vm_readv(c->tid, &local, 1, &remote, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

static bool still_waiting(const struct notify_call *c)
{
	return ioctl(c->notify->world->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->request->id) ==
	       0;
}

int notify_write(const struct notify_call *c, uint64_t addr, const void *data, size_t len)
{
	struct iovec local = {(void *)data, len}, remote = {(void *)(uintptr_t)addr, len};

	if (!still_waiting(c))
		return -EFAULT;
	return process_vm_writev(c->tid, &local, 1, &remote, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

int notify_read_path(const struct notify_call *c, uint64_t addr, char *path, size_t size)
{
	size_t done = 0;

	/* Page by page: the string may end just before one that is not mapped. */
	while (done < size) {
		size_t n = MIN(size - done, PAGE_SIZE - (addr + done) % PAGE_SIZE);

		if (notify_read(c, addr + done, path + done, n) < 0)
			return -EFAULT;
		if (memchr(path + done, '\0', n))
			return 0;
		done += n;
	}
	return -ENAMETOOLONG;
}

/* clone3 with our mark, userfaultfd: nobody but our own worker gets them. */
static void on_injected_only(struct notify_call *c)
{
	notify_fail(c, -ENOSYS);
}

/* The answer is given by the worker that has the task install it. */
static void install(
	struct notify_call *c, uint32_t flags, struct sock_filter *code, size_t n, bool strict)
{
	const struct installs_call call = {.id = c->request->id,
		.tid = c->tid,
		.flags = flags,
		.code = code,
		.n = n,
		.strict = strict};

	c->later = true;
	installs_begin(c->notify->installs, &call);
}

static void install_strict(struct notify_call *c)
{
	size_t n;
	const struct sock_filter *strict = ckpt_filters_strict(&n);
	struct sock_filter *code = malloc(n * sizeof(*code));

	if (!code)
		return notify_fail(c, -ENOMEM);
	memcpy(code, strict, n * sizeof(*code));
	install(c, 0, code, n, true);
}

/* What we can't read or understand the kernel would refuse with these very errors. */
static void install_filter(struct notify_call *c, uint64_t addr, uint32_t flags)
{
	struct sock_fprog program;
	struct sock_filter *code;
	size_t size;
	int r;

	/*
	 * How libseccomp asks which flags there are; nothing is there that could change meanwhile.
	 */
	if (!addr)
		return notify_continue(c);
	if (notify_read(c, addr, &program, sizeof(program)) < 0)
		return notify_fail(c, -EFAULT);
	size = program.len * sizeof(*code);
	if (!program.filter || !program.len || program.len > BPF_MAXINSNS)
		return notify_fail(c, -EINVAL);
	code = malloc(size);
	r = !code ? -ENOMEM : notify_read(c, (uintptr_t)program.filter, code, size);
	if (r == 0)
		r = ckpt_filters_try(code, program.len);
	if (r == 0)
		return install(c, flags, code, program.len, false);
	free(code);
	if (r != -E2BIG)
		return notify_fail(c, r);
	ckpt_filters_set_foreign(installs_table(c->notify->installs));
	notify_continue(c);
}

/* There can be only one listener on a task, which is ours: the kernel says EBUSY to a second. */
static void on_seccomp(struct notify_call *c)
{
	uint64_t flags = notify_arg(c, 1);

	if (installs_expects(c->notify->installs, c->tid) ||
		flags & SECCOMP_FILTER_FLAG_NEW_LISTENER)
		return notify_continue(c);
	if ((uint32_t)notify_arg(c, 0) == SECCOMP_SET_MODE_FILTER)
		return install_filter(c, notify_arg(c, 2), (uint32_t)flags);
	if ((uint32_t)flags || notify_arg(c, 2))
		return notify_fail(c, -EINVAL);
	install_strict(c);
}

static void on_prctl(struct notify_call *c)
{
	if (notify_arg(c, 0) == PR_SET_KEEPCAPS)
		return users_keep_caps(c);
	if (notify_arg(c, 0) != PR_SET_SECCOMP)
		return notify_continue(c);
	if (notify_arg(c, 1) == SECCOMP_MODE_FILTER)
		return install_filter(c, notify_arg(c, 2), 0);
	if (notify_arg(c, 1) == SECCOMP_MODE_STRICT)
		return install_strict(c);
	notify_continue(c);
}

/*
 * Of who may use io_uring.  A ring that only its own task's table knows (of 6.5) no checkpoint would
 * find; it is refused as by a kernel that has none.  Who asks for another one behind our back has
 * lost it when it is resumed.
 */
static void on_ring(struct notify_call *c)
{
	/* struct io_uring_params; IORING_SETUP_REGISTERED_FD_ONLY */
	enum { FLAGS_AT = 8, REGISTERED_FD_ONLY = 1 << 15 };
	uint32_t flags;

	if (notify_read(c, notify_arg(c, 1) + FLAGS_AT, &flags, sizeof(flags)) == 0 &&
		flags & REGISTERED_FD_ONLY)
		return notify_fail(c, -EINVAL);
	notify_continue(c);
}

static const struct {
	int nr;
	notify_handler *handle;
} handlers[] = {
	{SYS_io_uring_setup, on_ring},
	{SYS_clone3, on_injected_only},
	{SYS_userfaultfd, on_injected_only},
	{SYS_seccomp, on_seccomp},
	{SYS_prctl, on_prctl},
	{SYS_getuid, users_get},
	{SYS_geteuid, users_get},
	{SYS_getgid, users_get},
	{SYS_getegid, users_get},
	{SYS_getresuid, users_get_three},
	{SYS_getresgid, users_get_three},
	{SYS_getgroups, users_get_groups},
	{SYS_setuid, users_set},
	{SYS_setgid, users_set},
	{SYS_setreuid, users_set},
	{SYS_setregid, users_set},
	{SYS_setresuid, users_set},
	{SYS_setresgid, users_set},
	{SYS_setfsuid, users_set_fs},
	{SYS_setfsgid, users_set_fs},
	{SYS_setgroups, users_set_groups},
	{SYS_getsockopt, users_peer},
	{SYS_getrlimit, users_limit},
	{SYS_setrlimit, users_limit},
	{SYS_prlimit64, users_limit},
	{SYS_stat, owners_stat},
	{SYS_lstat, owners_stat},
	{SYS_fstat, owners_stat},
	{SYS_newfstatat, owners_stat},
	{SYS_statx, owners_statx},
	{SYS_chown, owners_chown},
	{SYS_lchown, owners_chown},
	{SYS_fchown, owners_chown},
	{SYS_fchownat, owners_chown},
	{SYS_open, adopt_before},
	{SYS_openat, adopt_before},
	{SYS_creat, adopt_before},
	{SYS_truncate, adopt_before},
	{SYS_link, adopt_before},
	{SYS_linkat, adopt_before},
	{SYS_rename, adopt_before},
	{SYS_renameat, adopt_before},
	{SYS_renameat2, adopt_before},
	{SYS_chmod, adopt_before},
	{SYS_fchmodat, adopt_before},
	{SYS_fchmodat2, adopt_before},
	{SYS_utime, adopt_before},
	{SYS_utimes, adopt_before},
	{SYS_futimesat, adopt_before},
	{SYS_utimensat, adopt_before},
	{SYS_setxattr, adopt_before},
	{SYS_lsetxattr, adopt_before},
};

/*
 * Is it a call that whoever converts memory must see first?  What is recorded is so only once, and
 * what works for a ring in the kernel can't be stopped.
 */
static bool is_held(struct notify_call *c)
{
	struct notify *n = c->notify;
	int nr = c->request->data.nr;

	return n->hold && c->request->data.arch == AUDIT_ARCH_X86_64 &&
	       (filter_watches(nr) || nr == SYS_seccomp || nr == SYS_io_uring_setup) &&
	       n->hold(n->hold_ctx, c->request);
}

/* 32-bit programs have other numbers and structures: what may go on unseen does. */
static void dispatch_i386(struct notify_call *c)
{
	enum { PRCTL = 172, SECCOMP = 354, IO_URING_SETUP = 425 }; /* asm/unistd_32.h */

	if (c->request->data.nr == IO_URING_SETUP)
		return on_ring(c);
	if (c->request->data.nr != PRCTL && c->request->data.nr != SECCOMP)
		return notify_fail(c, -ENOSYS);
	ckpt_filters_set_foreign(installs_table(c->notify->installs));
	notify_continue(c);
}

static void dispatch(struct notify_call *c)
{
	/* Our own worker's: it means what it says. */
	if (c->notify->trusting || installs_stands(c->notify->installs))
		return notify_continue(c);
	if (c->request->data.arch != AUDIT_ARCH_X86_64)
		return dispatch_i386(c);
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (handlers[i].nr == c->request->data.nr) {
			handlers[i].handle(c);
			return;
		}
	}
	if (filter_watches(c->request->data.nr))
		notify_continue(c);
	else
		notify_fail(c, -ENOSYS);
}

/* 1 if one was answered, 0 if none is pending, negative when the session is gone. */
static int answer_one(struct notify *n)
{
	struct pollfd p = {n->world->listener, POLLIN, 0};
	struct seccomp_notif request = {0};
	struct notify_call c = {.notify = n, .request = &request};

	if (poll(&p, 1, 0) <= 0)
		return 0;
	if (!(p.revents & POLLIN))
		return p.revents & (POLLHUP | POLLERR | POLLNVAL) ? -ESRCH : 0;
	if (ioctl(p.fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return errno == ENOENT || errno == EINTR ? 1 : -errno;
	c.tid = (pid_t)request.pid;
	c.answer.id = request.id;
	if (!n->trusting && is_held(&c))
		return 1;
	dispatch(&c);
	/* ENOENT: the task was killed meanwhile. */
	if (!c.later)
		ioctl(p.fd, SECCOMP_IOCTL_NOTIF_SEND, &c.answer);
	return 1;
}

int notify_ready(struct notify *n, struct err *e)
{
	int r = 1;

	installs_ready(n->installs);
	for (int i = 0; r > 0 && i < MAX_BATCH; i++)
		r = answer_one(n);
	return r < 0 ? err_errno(e, r, "the session's calls can't be answered any more") : 0;
}

void notify_set_hold(struct notify *n, notify_hold *hold, void *ctx)
{
	n->hold = hold;
	n->hold_ctx = ctx;
}

void notify_again(struct notify *n, const struct seccomp_notif *call)
{
	struct notify_call c = {.notify = n, .request = call, .tid = (pid_t)call->pid};

	c.answer.id = call->id;
	if (!still_waiting(&c))
		return;
	dispatch(&c);
	if (!c.later)
		ioctl(n->world->listener, SECCOMP_IOCTL_NOTIF_SEND, &c.answer);
}

void notify_refuse(struct notify *n, const struct seccomp_notif *call, int error)
{
	struct seccomp_notif_resp answer = {.id = call->id, .error = error};

	ioctl(n->world->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void notify_set_trusting(struct notify *n, bool on)
{
	n->trusting = on;
}

struct installs *notify_installs(const struct notify *n)
{
	return n->installs;
}

int notify_fd(const struct notify *n)
{
	return installs_fd(n->installs);
}

int notify_create(struct notify **ret, const struct world *w, const struct world_config *c,
	struct err *e)
{
	struct notify *n = calloc(1, sizeof(*n));

	if (!n)
		return err_errno(e, -ENOMEM, "notify");
	n->world = w;
	n->proc = proc_open(e);
	n->groups = users_groups_new();
	if (n->proc < 0 || !n->groups || owners_create(&n->owners, c->files_dir, e) < 0 ||
		installs_create(&n->installs, w->listener, w->init_pid, e) < 0) {
		notify_destroy(n);
		return err_is(e) ? e->error : err_errno(e, -ENOMEM, "notify");
	}
	*ret = n;
	return 0;
}

void notify_destroy(struct notify *n)
{
	if (!n)
		return;
	installs_destroy(n->installs);
	users_groups_free(n->groups);
	owners_free(n->owners);
	close_fd(n->proc);
	free(n);
}

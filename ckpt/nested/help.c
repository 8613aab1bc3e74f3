// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The theory of operation is in nested/help.h.
 *
 * As children of the builder they have numbers in the session's pid namespaces for that long: such
 * as nobody in the image has, from the upper end.
 */
#include "ckpt/nested/help.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/nested/list.h"

#define HIGHEST 32000 /* below the least pid_max */
#define LOWEST	20000

struct helper {
	pid_t pid;
	int pidfd, sock;
	bool lends;
	uint32_t ns;  /* of a lender the user namespace, else the pid namespace */
	pid_t number; /* the session's */
};

/* What one is told: to go into the user namespace of this descriptor, or to write. */
struct order {
	int enter; /* -1: no */
	struct ckpt_helper_text what;
};

/* ---- the helper ------------------------------------------------------------------------------ */

static int enter(int ns)
{
	return setns(ns, CLONE_NEWUSER) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 ? -errno : 0;
}

static int write_text(const struct ckpt_helper_text *t)
{
	_cleanup_close_ int fd = open(t->path, O_WRONLY | O_CLOEXEC);
	size_t n = strlen(t->text);

	return fd < 0 || write(fd, t->text, n) != (ssize_t)n ? -errno : 0;
}

/* Until the builder kills it. */
static void __attribute__((noreturn)) serve(int sock)
{
	struct order o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (io_read_full(sock, &o, sizeof(o)) == sizeof(o)) {
		int r = o.enter >= 0 ? enter(o.enter) : write_text(&o.what);

		io_write_full(sock, &r, sizeof(r));
	}
	_exit(0);
}

/* ---- the builder ----------------------------------------------------------------------------- */

static bool is_used(struct ckpt_build *b, pid_t number)
{
	for (size_t i = 0; i < b->n_procs; i++) {
		const struct ckpt_build_proc *p = &b->procs[i];

		for (size_t k = 0; k < p->depth * MAX(p->n_threads, (size_t)1); k++)
			if (p->inner[k] == number)
				return true;
	}
	return ckpt_build_proc(b, number) || ckpt_build_thread(b, number);
}

/* In pid namespace @ns, by the same number on each level. */
static pid_t fork_sharing_files(struct ckpt_build *b, uint32_t ns, pid_t *ret_number)
{
	size_t levels = ckpt_nested_depth(b->nested, b->n_nested, ns) + 1;

	for (pid_t number = HIGHEST; number > LOWEST; number--) {
		pid_t set[CKPT_MAX_SET], pid;
		struct clone_args args = {
			.flags = CLONE_FILES,
			.exit_signal = SIGCHLD,
			.set_tid = (uint64_t)(uintptr_t)set,
			.set_tid_size = levels,
		};

		for (size_t i = 0; i < levels; i++)
			set[i] = number;
		if (is_used(b, number))
			continue;
		*ret_number = number;
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
		if (pid >= 0 || errno != EEXIST)
			return pid;
	}
	return -1;
}

static const struct helper *find(const struct ckpt_build *b, bool lends, uint32_t ns)
{
	const struct helper *h = (const struct helper *)b->helpers.data;

	for (size_t i = 0; i < b->helpers.len / sizeof(*h); i++)
		if (h[i].lends == lends && h[i].ns == ns)
			return &h[i];
	return NULL;
}

static const struct helper *start(struct ckpt_build *b, bool lends, uint32_t ns, struct err *e)
{
	struct helper h = {.lends = lends, .ns = ns};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		err_errno(e, -errno, "socketpair");
		return NULL;
	}
	/* The other end is the helper's by the same number: it stays open until all end. */
	buf_put(&b->lent, &pair[1], sizeof(pair[1]));
	h.sock = pair[0];
	h.pid = fork_sharing_files(b, lends ? 0 : ns, &h.number);
	if (h.pid == 0)
		serve(pair[1]);
	h.pidfd = h.pid < 0 ? -1 : sys_pidfd_open(h.pid, 0);
	if (h.pidfd < 0) {
		err_errno(e, -errno, "a helper for sandboxes of programs");
		close(h.sock);
		return NULL;
	}
	buf_put(&b->helpers, &h, sizeof(h));
	if (buf_error(&b->helpers) || buf_error(&b->lent)) {
		err_errno(e, -ENOMEM, "namespaces");
		return NULL;
	}
	return find(b, lends, ns);
}

/* What the builder's children are born into from now on; it itself stays where it is. */
static int children_in(struct ckpt_build *b, uint32_t ns, struct err *e)
{
	const struct ckpt_build_proc *founder =
		ns ? ckpt_build_proc(b, b->nested[ns - 1].founder) : NULL;
	_cleanup_close_ int fd = -1;
	char path[48];

	if (founder) {
		snprintf(path, sizeof(path), "/proc/%d/ns/pid", founder->vpid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (setns(founder ? fd : b->world->ns_pid, CLONE_NEWPID) < 0)
		return err_errno(e, -errno, "cannot go into a sandbox's pid namespace");
	return 0;
}

static const struct helper *start_scribe(struct ckpt_build *b, uint32_t ns, struct err *e)
{
	const struct helper *h = NULL;

	if (!ns)
		return start(b, false, 0, e);
	if (children_in(b, ns, e) == 0)
		h = start(b, false, ns, e);
	return children_in(b, 0, h ? e : NULL) < 0 ? NULL : h;
}

static const struct helper *scribe(struct ckpt_build *b, uint32_t ns, struct err *e)
{
	const struct helper *h = find(b, false, ns);

	return h ? h : start_scribe(b, ns, e);
}

static int order(const struct helper *h, const struct order *o, struct err *e)
{
	int r = 0;

	if (io_write_full(h->sock, o, sizeof(*o)) < 0 ||
		io_read_full(h->sock, &r, sizeof(r)) != sizeof(r))
		r = -ECHILD;
	return r < 0 ? err_errno(e, r, "a helper for sandboxes of programs") : 0;
}

static int nobody(uint32_t user, struct err *e)
{
	return err_set(e, ERR_IMAGE, -EINVAL, "nobody has made user namespace %u", user);
}

int ckpt_lender_start(struct ckpt_build *b, uint32_t user, int *ret_pidfd, struct err *e)
{
	const struct helper *h = start(b, true, user, e);

	*ret_pidfd = h ? h->pidfd : -1;
	return h ? 0 : e->error;
}

int ckpt_lender_enter(struct ckpt_build *b, uint32_t user, pid_t host, struct err *e)
{
	const struct helper *h = find(b, true, user);
	_cleanup_close_ int ns = -1;
	char path[32];

	if (!h)
		return nobody(user, e);
	snprintf(path, sizeof(path), "%d/ns/user", host);
	ns = openat(b->host_proc, path, O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return err_errno(e, -errno, "/proc/%s", path);
	return order(h, &(struct order){.enter = ns}, e);
}

int ckpt_scribe_next(struct ckpt_build *b, uint32_t ns, pid_t number, struct err *e)
{
	struct order o = {.enter = -1, .what = {.path = "/proc/sys/kernel/ns_last_pid"}};
	const struct helper *h = scribe(b, ns, e);

	snprintf(o.what.text, sizeof(o.what.text), "%d", number - 1);
	return h ? order(h, &o, e) : e->error;
}

static const struct helper *in_user(struct ckpt_build *b, uint32_t user, struct err *e)
{
	const struct helper *h = user ? find(b, true, user) : scribe(b, 0, e);

	if (!h && user)
		nobody(user, e);
	return h;
}

int ckpt_helper_number(struct ckpt_build *b, uint32_t user, pid_t *ret, struct err *e)
{
	const struct helper *h = in_user(b, user, e);

	*ret = h ? h->number : 0;
	return h ? 0 : e->error;
}

int ckpt_helper_write(
	struct ckpt_build *b, uint32_t user, const struct ckpt_helper_text *t, struct err *e)
{
	const struct helper *h = in_user(b, user, e);
	struct order o = {.enter = -1, .what = *t};

	return h ? order(h, &o, e) : e->error;
}

void ckpt_helpers_end(struct ckpt_build *b)
{
	const struct helper *h = (const struct helper *)b->helpers.data;

	for (size_t i = 0; i < b->helpers.len / sizeof(*h); i++) {
		kill(h[i].pid, SIGKILL);
		waitpid(h[i].pid, NULL, __WALL);
		close(h[i].pidfd);
		close(h[i].sock);
	}
	buf_fini(&b->helpers);
	b->helpers = BUF_INIT;
}

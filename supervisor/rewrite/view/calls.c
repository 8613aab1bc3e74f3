// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in view/calls.h.  The tables are at the bottom. */
#include "supervisor/rewrite/view/calls.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/uio.h>

#include "base/base.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/tasks.h"

#define MAX_PATHS 2

/* Newer than the C library's numbers. */
enum {
	NR_setxattrat = 463,
	NR_getxattrat,
	NR_listxattrat,
	NR_removexattrat,
	NR_file_getattr = 468,
	NR_file_setattr,
};

/* ---- the task's memory ---------------------------------------------------------------------- */

int view_peek(const struct task *task, uint64_t addr, void *data, size_t len)
{
	struct iovec local = {data, len}, there = {(void *)(uintptr_t)addr, len};

	return process_vm_readv(task->host, &local, 1, &there, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

int view_poke(const struct task *task, uint64_t addr, const void *data, size_t len)
{
	struct iovec local = {(void *)data, len}, there = {(void *)(uintptr_t)addr, len};

	return process_vm_writev(task->host, &local, 1, &there, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

ssize_t view_peek_path(const struct task *task, uint64_t addr, char ret[PATH_MAX])
{
	size_t have = 0;

	while (have < PATH_MAX) {
		/* The end of a page may be the end of all. */
		size_t n = MIN(PATH_MAX - have, PAGE_SIZE - (addr + have) % PAGE_SIZE);
		const char *end;

		if (view_peek(task, addr + have, ret + have, n) < 0)
			return -EFAULT;
		end = memchr(ret + have, '\0', n);
		if (end)
			return end - ret;
		have += n;
	}
	return -ENAMETOOLONG;
}

uint64_t view_put_below(struct rewrite *rw, const struct task *task,
	const struct user_regs_struct *regs, const void *data, size_t len)
{
	struct view_scratch *s = &rw->view->scratch[task->number];
	uint64_t addr = view_below(regs, len);
	/* The stack of 64-bit code that makes a call of i386 is out of that call's reach. */
	bool fits = len < regs->rsp && (!task->compat.is || addr + len <= UINT32_MAX);
	void *saved = fits ? realloc(s->saved, len) : NULL;

	s->len = 0;
	if (!saved)
		return 0;
	s->saved = saved;
	if (view_peek(task, addr, saved, len) < 0 || view_poke(task, addr, data, len) < 0)
		return 0;
	s->addr = addr;
	s->len = len;
	return addr;
}

void view_take_back(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	struct view_scratch *s = &rw->view->scratch[task->number];

	if (s->len)
		view_poke(task, s->addr, s->saved, s->len);
	s->len = 0;
}

/* ---- paths ---------------------------------------------------------------------------------- */

/* Is it too long for the kernel, once it is said as the host's? */
static bool is_too_long(const struct view_place *p)
{
	const struct view_entry *in = p->in && p->in->sort == VIEW_MOUNT ? p->in : NULL;

	return in && strlen(in->host) + strlen(p->path + in->len) + strlen("/.") >= PATH_MAX;
}

int view_find_place(struct rewrite *rw, const struct task *task, int dirfd, const char *path,
	unsigned how, struct view_place *ret)
{
	const struct view_entry *deep = NULL;
	char whole[2 * PATH_MAX] = "";
	size_t n = strlen(path), base = 0;
	unsigned from = 0;
	bool leads;
	int r;

	if (!n)
		return 1;
	if (path[0] != '/') {
		r = view_base(rw->view, task, task->host, dirfd, whole);
		if (r < 0)
			return view_is_outside(rw->view, r) ? -EACCES : 1;
		base = strlen(whole);
		whole[base] = '/';
		memcpy(whole + base + 1, path, n + 1);
		leads = view_leads_in_from(rw->view, base, whole, &from);
	} else {
		memcpy(whole, path, n + 1);
		leads = view_leads_in(rw->view, whole);
	}
	if (!leads)
		return 1;
	view_refresh(rw->view);
	r = view_walk(rw->view, task, whole, how | from | VIEW_TEXT, ret);
	if (path[0] != '/' && (r == -ENAMETOOLONG || (r == 0 && is_too_long(ret)))) {
		whole[base] = '\0';
		deep = view_too_deep(rw->view, whole, path);
	}
	if (deep && (r < 0 || ret->in == deep)) {
		view_place_fini(ret);
		*ret = (struct view_place)VIEW_PLACE_INIT;
		ret->in = deep;
		return 1;
	}
	return r == 0 && !ret->in && !ret->walked ? 1 : r;
}

enum follow {
	FOLLOW,
	NOFOLLOW,
	NAMED,	/* nor with a slash behind it */
	UNLESS, /* a flag says otherwise */
	IF,	/* a flag says so */
	OPENED, /* as open(2) has it */
	HOW,	/* as openat2(2) has it */
};

enum {
	WRITES = 1, /* what it changes must not be read-only */
	TAKES = 2,  /* the name away */
	SAME = 4,   /* both paths on one mount */
	MOVES = 8,  /* the working directory */
};

struct path_arg {
	int8_t dirfd, path; /* which arguments; dirfd -1: none */
	uint8_t follow, flags_arg;
	uint32_t flag;
};

struct path_call {
	int nr;
	uint8_t does;
	uint8_t n;
	struct path_arg args[MAX_PATHS];
};

static const struct path_call *call_of(int nr);

static unsigned how_opened(uint64_t flags)
{
	return flags & O_NOFOLLOW || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)
		       ? VIEW_NOFOLLOW
		       : 0;
}

static unsigned how_of(
	const struct path_arg *a, const struct user_regs_struct *regs, uint64_t opened)
{
	uint64_t flags = *view_arg((struct user_regs_struct *)regs, a->flags_arg);

	switch ((enum follow)a->follow) {
	case FOLLOW:
		break;
	case NOFOLLOW:
		return VIEW_NOFOLLOW;
	case NAMED:
		return VIEW_PARENT;
	case UNLESS:
		return flags & a->flag ? VIEW_NOFOLLOW : 0;
	case IF:
		return flags & a->flag ? 0 : VIEW_NOFOLLOW;
	case OPENED:
	case HOW:
		return how_opened(opened);
	}
	return 0;
}

/* Of open(2) and its like: the flags; 1 if the task must say itself where it wants to go. */
static int opened_flags(const struct task *task, const struct path_arg *a,
	struct user_regs_struct *regs, uint64_t *ret)
{
	struct open_how how;

	*ret = *view_arg(regs, a->flags_arg);
	if (a->follow != HOW)
		return 0;
	if (view_peek(task, *ret, &how, sizeof(how)) < 0)
		return 1;
	*ret = how.flags;
	return how.resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT) ? 1 : 0;
}

static bool opens_for_writing(const struct view_place *at, uint64_t flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC ||
	       (flags & O_CREAT && at->fd < 0);
}

static const char *parent_of(const char *path, char ret[PATH_MAX])
{
	strcpy(ret, path);
	*strrchr(ret, '/') = '\0';
	return ret;
}

/* The mount; of what a link of /proc leads to as well. */
static const struct view_entry *place_in(const struct view *v, const struct view_place *at)
{
	return view_in_proc(at) && at->fd >= 0 ? view_jumped_to(v, at) : at->in;
}

/* What the host's mounts would say to this. */
static int check(const struct view *v, const struct path_call *c, const struct path_arg *a,
	const struct view_place *at, uint64_t opened)
{
	const struct view_entry *in = place_in(v, at);
	char parent[PATH_MAX];
	bool mount = in && in->sort == VIEW_MOUNT;
	bool writes = a->follow == OPENED || a->follow == HOW ? opens_for_writing(at, opened)
							      : c->does & WRITES;

	if (mount && c->does & TAKES && !at->dot && strcmp(at->path, in->len ? in->path : "/") == 0)
		return view_mount_of(v, parent_of(at->path, parent)) ? -EBUSY : -EACCES;
	if (writes && mount && in->read_only)
		return -EROFS;
	if (c->nr == SYS_creat || !view_in_proc(at) || at->fd >= 0 || !(c->does & WRITES))
		return 0;
	/* The directory of all belongs to somebody else. */
	return c->does & TAKES && !strchr(at->way.node.path, '/') ? -EACCES : -EPERM;
}

struct found {
	int n;
	bool asks;   /* it will be a question (answers.h) */
	int refused; /* unless both are not on one mount, which comes first */
	int arg[MAX_PATHS];
	char host[MAX_PATHS][PATH_MAX];
	const struct view_entry *in[MAX_PATHS];
};

/*
 * In /proc nothing is ever made, and what is open there only the rewriter can open.  Without
 * O_CREAT, or as openat(2), the call is one that is answered: the kernel asks the filter again when
 * the registers have been looked at.
 */
static bool can_be_asked(const struct user_regs_struct *regs, uint64_t opened)
{
	int nr = (int)regs->orig_rax;

	if (nr == SYS_creat)
		return true;
	return (nr == SYS_open || nr == SYS_openat || nr == SYS_openat2) && !(opened & O_PATH) &&
	       (opened & O_TMPFILE) != O_TMPFILE;
}

static int ask_instead(const struct task *task, struct user_regs_struct *regs, uint64_t opened,
	const struct view_place *at, struct found *f)
{
	struct open_how how = {0};

	f->asks = true;
	if ((opened & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	opened &= ~(uint64_t)O_CREAT;
	switch ((int)regs->orig_rax) {
	case SYS_openat2:
		if (view_peek(task, regs->rdx, &how, sizeof(how)) < 0)
			return -EFAULT;
		if (at->fd >= 0 && how.resolve & (RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS))
			return -ELOOP;
		regs->orig_rax = SYS_openat;
		regs->rdx = opened;
		break;
	case SYS_openat:
		regs->rdx = opened;
		break;
	case SYS_creat:
		regs->orig_rax = SYS_open;
		opened = O_WRONLY | O_TRUNC;
		__attribute__((fallthrough));
	default:
		regs->rsi = opened;
		break;
	}
	return 0;
}

/* 0, or what the call ends with. */
static int find_one(struct rewrite *rw, const struct task *task, struct user_regs_struct *regs,
	const struct path_call *c, int i, struct found *f)
{
	_cleanup_place_ struct view_place at = VIEW_PLACE_INIT;
	const struct path_arg *a = &c->args[i];
	char path[PATH_MAX];
	uint64_t opened = 0;
	int r;

	f->in[i] = NULL;
	/* What is wrong with it the kernel says. */
	if (!*view_arg(regs, a->path) || view_peek_path(task, *view_arg(regs, a->path), path) <= 0)
		return 0;
	if ((a->follow == OPENED || a->follow == HOW) && opened_flags(task, a, regs, &opened))
		return 0;
	r = view_find_place(rw, task, a->dirfd < 0 ? AT_FDCWD : (int)*view_arg(regs, a->dirfd),
		path, how_of(a, regs, opened) | VIEW_CREATE, &at);
	if (r == 1)
		f->in[i] = at.in;
	if (r != 0)
		return MIN(r, 0);
	f->in[i] = place_in(rw->view, &at);
	r = check(rw->view, c, a, &at, opened);
	if (r < 0 && c->does & SAME && view_in_proc(&at)) {
		f->refused = r;
		return 0;
	}
	if (r == 0 && c->does & MOVES && at.in && at.in->sort == VIEW_MOUNT)
		view_moves(rw->view, task, at.path);
	if (r == 0 && view_in_proc(&at) && can_be_asked(regs, opened))
		return ask_instead(task, regs, opened, &at, f);
	/* The mirror of /proc is on another file system. */
	if (r == 0 && c->nr == SYS_statfs && view_in_proc(&at) && at.fd < 0)
		strcpy(f->host[f->n], "/proc");
	else if (r == 0)
		r = view_place_host(rw->view, &at, f->host[f->n]);
	if (r < 0)
		return r;
	f->arg[f->n++] = a->path;
	return 0;
}

static int put_all(struct rewrite *rw, const struct task *task, struct user_regs_struct *regs,
	const struct found *f)
{
	char text[MAX_PATHS * PATH_MAX];
	size_t at[MAX_PATHS], len = 0;
	uint64_t addr;

	for (int i = 0; i < f->n; i++) {
		size_t n = strlen(f->host[i]) + 1;

		at[i] = len;
		memcpy(text + len, f->host[i], n);
		len += n;
	}
	addr = view_put_below(rw, task, regs, text, len);
	if (!addr)
		return -ENOMEM;
	for (int i = 0; i < f->n; i++)
		*view_arg(regs, f->arg[i]) = addr + at[i];
	return 0;
}

static int enter_paths(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	const struct path_call *c = call_of((int)regs->orig_rax);
	struct found f = {0};
	int r = 0;

	if (c->does & MOVES)
		view_moves(rw->view, task, NULL);
	for (int i = 0; r == 0 && i < c->n; i++)
		r = find_one(rw, task, regs, c, i, &f);
	if (r == 0 && c->does & SAME && f.in[0] != f.in[1])
		r = -EXDEV;
	if (r == 0)
		r = f.refused;
	if (r < 0)
		return r;
	if (f.n)
		r = put_all(rw, task, regs, &f);
	/* That it has another directory is seen at the exit. */
	return r < 0 || f.n || f.asks || c->does & MOVES ? r : 1;
}

static void leave_paths(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	const struct path_call *c = call_of((int)regs->orig_rax);

	if (c && c->does & MOVES)
		view_has_moved(rw->view, task, regs->rax == 0);
	view_take_back(rw, task, regs);
}

static int enter_fchdir(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	view_unsettle(rw->view);
	return 0;
}

static void leave_fchdir(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	view_unsettle(rw->view);
}

/* ---- the tables ----------------------------------------------------------------------------- */

#define PATH(path)                     \
	{                              \
		-1, path, FOLLOW, 0, 0 \
	}
#define NAME(path)                    \
	{                             \
		-1, path, NAMED, 0, 0 \
	}
#define NAME_AT(fd, path)             \
	{                             \
		fd, path, NAMED, 0, 0 \
	}
#define LINK(path)                       \
	{                                \
		-1, path, NOFOLLOW, 0, 0 \
	}
#define AT(fd, path)                   \
	{                              \
		fd, path, FOLLOW, 0, 0 \
	}
#define FLAGS(fd, path, flags)                               \
	{                                                    \
		fd, path, UNLESS, flags, AT_SYMLINK_NOFOLLOW \
	}

static const struct path_call paths[] = {
	{SYS_open, 0, 1, {{-1, 0, OPENED, 1, 0}}},
	{SYS_openat, 0, 1, {{0, 1, OPENED, 2, 0}}},
	{SYS_openat2, 0, 1, {{0, 1, HOW, 2, 0}}},
	{SYS_creat, WRITES, 1, {PATH(0)}},
	{SYS_truncate, WRITES, 1, {PATH(0)}},
	{SYS_mkdir, WRITES, 1, {NAME(0)}},
	{SYS_mkdirat, WRITES, 1, {NAME_AT(0, 1)}},
	{SYS_mknod, WRITES, 1, {NAME(0)}},
	{SYS_mknodat, WRITES, 1, {NAME_AT(0, 1)}},
	{SYS_rmdir, WRITES | TAKES, 1, {NAME(0)}},
	{SYS_unlink, WRITES | TAKES, 1, {NAME(0)}},
	{SYS_unlinkat, WRITES | TAKES, 1, {NAME_AT(0, 1)}},
	{SYS_rename, WRITES | TAKES | SAME, 2, {NAME(0), NAME(1)}},
	{SYS_renameat, WRITES | TAKES | SAME, 2, {NAME_AT(0, 1), NAME_AT(2, 3)}},
	{SYS_renameat2, WRITES | TAKES | SAME, 2, {NAME_AT(0, 1), NAME_AT(2, 3)}},
	{SYS_link, WRITES | SAME, 2, {LINK(0), NAME(1)}},
	{SYS_linkat, WRITES | SAME, 2, {{0, 1, IF, 4, AT_SYMLINK_FOLLOW}, NAME_AT(2, 3)}},
	{SYS_symlink, WRITES, 1, {NAME(1)}},
	{SYS_symlinkat, WRITES, 1, {NAME_AT(1, 2)}},
	{SYS_chmod, WRITES, 1, {PATH(0)}},
	{SYS_fchmodat, WRITES, 1, {AT(0, 1)}},
	{SYS_fchmodat2, WRITES, 1, {FLAGS(0, 1, 3)}},
	{SYS_chown, WRITES, 1, {PATH(0)}},
	{SYS_lchown, WRITES, 1, {LINK(0)}},
	{SYS_fchownat, WRITES, 1, {FLAGS(0, 1, 4)}},
	{SYS_utime, WRITES, 1, {PATH(0)}},
	{SYS_utimes, WRITES, 1, {PATH(0)}},
	{SYS_futimesat, WRITES, 1, {AT(0, 1)}},
	{SYS_utimensat, WRITES, 1, {FLAGS(0, 1, 3)}},
	{SYS_statfs, 0, 1, {PATH(0)}},
	{SYS_setxattr, WRITES, 1, {PATH(0)}},
	{SYS_lsetxattr, WRITES, 1, {LINK(0)}},
	{SYS_getxattr, 0, 1, {PATH(0)}},
	{SYS_lgetxattr, 0, 1, {LINK(0)}},
	{SYS_listxattr, 0, 1, {PATH(0)}},
	{SYS_llistxattr, 0, 1, {LINK(0)}},
	{SYS_removexattr, WRITES, 1, {PATH(0)}},
	{SYS_lremovexattr, WRITES, 1, {LINK(0)}},
	{SYS_inotify_add_watch, 0, 1, {{-1, 1, UNLESS, 2, IN_DONT_FOLLOW}}},
	{SYS_name_to_handle_at, 0, 1, {{0, 1, IF, 4, AT_SYMLINK_FOLLOW}}},
	{SYS_chdir, MOVES, 1, {PATH(0)}},
	{NR_setxattrat, WRITES, 1, {FLAGS(0, 1, 2)}},
	{NR_getxattrat, 0, 1, {FLAGS(0, 1, 2)}},
	{NR_listxattrat, 0, 1, {FLAGS(0, 1, 2)}},
	{NR_removexattrat, WRITES, 1, {FLAGS(0, 1, 2)}},
	{NR_file_getattr, 0, 1, {FLAGS(0, 1, 4)}},
	{NR_file_setattr, WRITES, 1, {FLAGS(0, 1, 4)}},
};

static const struct path_call *call_of(int nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (paths[i].nr == nr)
			return &paths[i];
	return NULL;
}

#define ROW(nr)                                                \
	{                                                      \
		nr, .enter = enter_paths, .leave = leave_paths \
	}

const struct rewrite_call view_calls[] = {
	ROW(SYS_open),
	ROW(SYS_openat),
	ROW(SYS_openat2),
	ROW(SYS_creat),
	ROW(SYS_truncate),
	ROW(SYS_mkdir),
	ROW(SYS_mkdirat),
	ROW(SYS_mknod),
	ROW(SYS_mknodat),
	ROW(SYS_rmdir),
	ROW(SYS_unlink),
	ROW(SYS_unlinkat),
	ROW(SYS_rename),
	ROW(SYS_renameat),
	ROW(SYS_renameat2),
	ROW(SYS_link),
	ROW(SYS_linkat),
	ROW(SYS_symlink),
	ROW(SYS_symlinkat),
	ROW(SYS_chmod),
	ROW(SYS_fchmodat),
	ROW(SYS_fchmodat2),
	ROW(SYS_chown),
	ROW(SYS_lchown),
	ROW(SYS_fchownat),
	ROW(SYS_utime),
	ROW(SYS_utimes),
	ROW(SYS_futimesat),
	ROW(SYS_utimensat),
	ROW(SYS_statfs),
	ROW(SYS_setxattr),
	ROW(SYS_lsetxattr),
	ROW(SYS_getxattr),
	ROW(SYS_lgetxattr),
	ROW(SYS_listxattr),
	ROW(SYS_llistxattr),
	ROW(SYS_removexattr),
	ROW(SYS_lremovexattr),
	ROW(SYS_inotify_add_watch),
	ROW(SYS_name_to_handle_at),
	ROW(SYS_chdir),
	ROW(NR_setxattrat),
	ROW(NR_getxattrat),
	ROW(NR_listxattrat),
	ROW(NR_removexattrat),
	ROW(NR_file_getattr),
	ROW(NR_file_setattr),
	{SYS_fchdir, .enter = enter_fchdir, .leave = leave_fchdir},
	{SYS_execve, .enter = view_enter_exec, .leave = view_leave_exec},
	{SYS_execveat, .enter = view_enter_execat, .leave = view_leave_exec},
	{SYS_bind, .enter = view_enter_bind, .leave = view_take_back},
	{SYS_connect, .enter = view_enter_connect, .leave = view_take_back},
	{SYS_sendto, .enter = view_enter_sendto, .leave = view_take_back},
	{SYS_sendmsg, .enter = view_enter_sendmsg, .leave = view_leave_sendmsg},
	{SYS_sendmmsg, .enter = view_enter_sendmmsg, .leave = calls_leave_sendmmsg},
	{SYS_getsockname, .enter = view_enter_sockname, .leave = view_leave_sockname},
	{SYS_getpeername, .enter = view_enter_sockname, .leave = view_leave_sockname},
};
const size_t view_n_calls = ARRAY_SIZE(view_calls);

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * track_wp - writes told by a userfaultfd (UFFD_FEATURE_WP_ASYNC) and PAGEMAP_SCAN; Linux 6.7.
 *
 * The userfaultfd belongs to the memory of the task that makes it, so that one call is made inside;
 * all else is done from outside.  Mappings that move, are replaced or are inherited by a child are
 * not registered there any more, or not yet.  A page that is not there has no protection, and none
 * is left behind for it: a marker in its place would look like a page that is swapped out.  So only
 * pages are protected that are found to be there, and a page that comes later counts as written.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/memory/track.h"
#include "ckpt/survey/survey.h"
#include "ckpt/survey/take.h"

#define THERE (PAGE_IS_PRESENT | PAGE_IS_SWAPPED)

static int set_up(int uffd)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_WP_ASYNC};

	return ioctl(uffd, UFFDIO_API, &api) < 0 ? -errno : 0;
}

static bool wp_probe(void)
{
	_cleanup_close_ int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	return fd >= 0 && set_up(fd) == 0;
}

static int wp_begin(struct ckpt_space *s, struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	uint64_t note = p->closed ? CKPT_NOTE_CLOSED : 0;
	struct remote *rem;
	long theirs;
	int fd, r = ckpt_proc_remote(p, &rem, e);

	/* should we die before it is closed there */
	if (r == 0)
		r = remote_note(rem, note | CKPT_NOTE_WATCHED, e);
	if (r == 0)
		r = remote_call(rem, &theirs, e, SYS_userfaultfd,
			O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY, 0, 0, 0, 0, 0);
	if (r < 0)
		return r;
	if (theirs < 0)
		return err_set(e, ERR_HOST, -EOPNOTSUPP, "userfaultfd: %s", strerror((int)-theirs));
	fault_at(FAULT_AHEAD_WATCHED, NULL);
	fd = (int)theirs;
	r = ckpt_take(d->world, rem, &fd, 1, &s->uffd, e);
	if (remote_must(rem, NULL, r < 0 ? NULL : e, SYS_close, (uint64_t)theirs, 0, 0, 0, 0, 0) <
			0 &&
		r == 0)
		return e->error;
	if (remote_note(rem, note, r < 0 ? NULL : e) < 0 && r == 0)
		return e->error;
	if (r == 0)
		r = set_up(s->uffd);
	if (r < 0) {
		s->uffd = close_fd(s->uffd);
		return err_is(e) ? err_set(e, e->class, -EOPNOTSUPP, "its userfaultfd can't be had")
				 : err_set(e, ERR_HOST, -EOPNOTSUPP, "UFFD_FEATURE_WP_ASYNC: %s",
					   strerror(-r));
	}
	return 0;
}

/* -EPERM: nothing of ours is registered there, in the memory that the process has now. */
static int check(int pagemap, uint64_t at)
{
	struct page_region region;
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.flags = PM_SCAN_CHECK_WPASYNC,
		.start = at,
		.end = at + PAGE_SIZE,
		.vec = (uint64_t)(uintptr_t)&region,
		.vec_len = 1,
		.category_anyof_mask = THERE,
		.return_mask = THERE,
	};

	return ioctl(pagemap, PAGEMAP_SCAN, &arg) < 0 ? -errno : 0;
}

/*
 * A mapping that was moved (mremap) is not registered any more, but before Linux 6.14 its pages
 * stay as they were protected elsewhere.
 */
static int take_up(int uffd, const struct ckpt_run *area)
{
	struct uffdio_register reg = {
		.range = {area->start, area->end - area->start}, .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect off = {.range = reg.range};

	return ioctl(uffd, UFFDIO_REGISTER, &reg) < 0 || ioctl(uffd, UFFDIO_WRITEPROTECT, &off) < 0
		       ? -errno
		       : 0;
}

/*
 * Areas that are registered already stay as they are.  One that can't be, such as that of a
 * userfaultfd of the program's own, counts as written; if not one can be, or the first is not where
 * we look, it is another memory.
 */
static int wp_cover(struct ckpt_space *s, int proc_fd, struct err *e)
{
	const struct ckpt_run *v = (const struct ckpt_run *)s->areas.data;
	size_t n = s->areas.len / sizeof(*v), done = 0;
	_cleanup_close_ int pagemap = proc_open_file(proc_fd, s->pid, "pagemap", O_RDONLY, e);

	if (pagemap < 0)
		return pagemap;
	for (size_t i = 0; i < n; i++) {
		bool known = check(pagemap, v[i].start) == 0;

		if (!known && take_up(s->uffd, &v[i]) < 0)
			continue;
		if (!known && !done && check(pagemap, v[i].start) < 0)
			return -ESTALE;
		done++;
	}
	return n && !done ? -ESTALE : 0;
}

static int scan(int pagemap, struct pm_scan_arg *arg,
	void (*each)(void *ctx, const struct page_region *r), void *ctx)
{
	struct page_region region[512];
	uint64_t end = arg->end;

	arg->size = sizeof(*arg);
	arg->vec = (uint64_t)(uintptr_t)region;
	arg->vec_len = ARRAY_SIZE(region);
	while (arg->start < end) {
		int n = ioctl(pagemap, PAGEMAP_SCAN, arg);

		if (n < 0)
			return -errno;
		for (int i = 0; i < n; i++)
			each(ctx, &region[i]);
		if (arg->walk_end <= arg->start)
			return -EIO;
		arg->start = arg->walk_end;
	}
	return 0;
}

static void put_written(void *ctx, const struct page_region *r)
{
	ckpt_run_put(ctx, r->start, r->end);
}

/* Found and protected in one step; what is not registered is passed over. */
static int wp_take(struct ckpt_space *s, int proc_fd, struct buf *runs, struct err *e)
{
	_cleanup_close_ int pagemap = proc_open_file(proc_fd, s->pid, "pagemap", O_RDONLY, e);
	struct pm_scan_arg arg = {
		.flags = PM_SCAN_WP_MATCHING,
		.end = CKPT_TASK_SIZE,
		.category_inverted = PAGE_IS_PFNZERO,
		.category_mask = PAGE_IS_WPALLOWED | PAGE_IS_WRITTEN | PAGE_IS_PFNZERO,
		.category_anyof_mask = THERE,
		.return_mask = PAGE_IS_WRITTEN,
	};
	int r = pagemap < 0 ? pagemap : scan(pagemap, &arg, put_written, runs);

	return r < 0 ? err_errno(e, r, "PAGEMAP_SCAN") : 0;
}

struct sorted {
	struct buf *dirty, *clean, *guards;
};

static void sort(void *ctx, const struct page_region *r)
{
	const struct sorted *s = ctx;

	ckpt_run_put(r->categories & PAGE_IS_GUARD     ? s->guards
		     : r->categories & PAGE_IS_WRITTEN ? s->dirty
						       : s->clean,
		r->start, r->end);
}

static int wp_look(int pagemap, uint64_t start, uint64_t end, struct buf *dirty, struct buf *clean,
	struct buf *guards)
{
	static bool no_guards; /* before 6.16 */
	struct pm_scan_arg arg = {
		.start = start,
		.end = end,
		.category_inverted = PAGE_IS_PFNZERO,
		.category_mask = PAGE_IS_PFNZERO,
		.category_anyof_mask = THERE,
		.return_mask = PAGE_IS_WRITTEN | (no_guards ? 0 : PAGE_IS_GUARD),
	};
	struct sorted into = {dirty, clean, guards};
	int r = scan(pagemap, &arg, sort, &into);

	if (r != -EINVAL || no_guards)
		return r;
	no_guards = true;
	return wp_look(pagemap, start, end, dirty, clean, guards);
}

const struct ckpt_track_way ckpt_track_wp_async = {
	.name = "wp_async",
	.while_running = true,
	.flag = "uw",
	.probe = wp_probe,
	.begin = wp_begin,
	.cover = wp_cover,
	.take = wp_take,
	.look = wp_look,
};

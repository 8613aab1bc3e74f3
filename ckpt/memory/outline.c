// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * outline - the mappings of a large process with their flags, without a look at each of its pages.
 *
 * Theory of operation
 *
 * Only /proc/PID/smaps tells a mapping's flags, and for each mapping it counts the pages: 10 ms for
 * a gigabyte, in which the session would stand still.  A snapshot has a forked copy made of such a
 * process anyway (fork.c).  In that copy the large mappings are marked such that another fork
 * leaves their pages out (MADV_WIPEONFORK), and that one, which has no pages to be counted, is the
 * outline:
 *
 *      task ---- fork ----> copy ---- marks, fork ----> outline          smaps of this, and then it ends
 *
 * Shared memory, of which a server has as much in each of its processes, needs no mark: a fork finds
 * its pages again when it touches them.  How much of it is in swap is told of the object.
 *
 * Whether a mapping has pages only a kernel with PAGEMAP_SCAN (6.7) tells in no time; on others all
 * would be counted after all, and the scan of the pages wants to know what smaps counts (space.c).
 *
 * A fork inherits all flags but four.  Mappings with DONTFORK are not in the copy, and locked ones
 * are not locked there: who has any is looked at as ever.  WIPEONFORK in the outline is the task's
 * own where nothing was marked, and only mappings are marked whose pages came along into the copy,
 * so that they did not have it.  And memory watched by a userfaultfd of the program's own, which
 * can't be carried, is no more so: but that has a descriptor, which can't either.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ioctl.h>

#include "base/base.h"
#include "ckpt/helper.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"

#define LARGE	 (4UL << 20) /* of a mapping */
#define WORTH_KB (32 * 1024UL)
#define MAX_MARK 64

bool ckpt_pages_scanned(const struct ckpt_proc *p)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;

	return ckpt_pages_open(&pages, p->dump->host_proc, p->look, NULL) == 0 &&
	       ckpt_pages_scans(&pages);
}

bool ckpt_outline_pays(const struct ckpt_proc *p)
{
	const struct proc_status *s = &p->status;

	return p->dump->options.snapshot && p->mm == p->vpid && !s->vm_locked_kb &&
	       !p->threads[0]->own_filters && s->rss_anon_kb + s->rss_shmem_kb >= WORTH_KB &&
	       !ckpt_has_another_pid_1(p->dump, s) && ckpt_pages_scanned(p);
}

/* Has it a page in [@start, @end)?  False also where the kernel does not say. */
static bool has_pages(int pagemap, uint64_t start, uint64_t end)
{
	struct page_region region;
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.start = start,
		.end = end,
		.vec = (uint64_t)(uintptr_t)&region,
		.vec_len = 1,
		.max_pages = 1,
		.category_anyof_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
		.return_mask = PAGE_IS_PRESENT,
	};

	return ioctl(pagemap, PAGEMAP_SCAN, &arg) == 1;
}

/* Marks large mappings of the copy; of those it did, anonymous_kb says so. */
static int mark(struct ckpt_dump *d, struct remote *copy, struct proc_maps *maps, struct err *e)
{
	_cleanup_close_ int pagemap =
		proc_open_file(d->host_proc, remote_tid(copy), "pagemap", O_RDONLY, e);
	struct proc_vma *marked[MAX_MARK];
	size_t n = 0;
	int r;

	if (pagemap < 0)
		return pagemap;
	for (size_t i = 0; i < maps->n && n < MAX_MARK; i++) {
		struct proc_vma *v = &maps->vmas[i];

		if (v->ino || v->shared || v->end - v->start < LARGE || v->end > CKPT_TASK_SIZE ||
			!has_pages(pagemap, v->start, v->end))
			continue;
		remote_add(
			copy, SYS_madvise, v->start, v->end - v->start, MADV_WIPEONFORK, 0, 0, 0);
		marked[n++] = v;
	}
	r = n ? remote_run(copy, false, e) : 0;
	for (size_t i = 0; i < n && r >= 0; i++)
		if (remote_result(copy, (int)i) == 0)
			marked[i]->anonymous_kb = (marked[i]->end - marked[i]->start) / 1024;
	return MIN(r, 0);
}

static const struct proc_vma *find(const struct proc_maps *m, const struct proc_vma *v)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (m->vmas[mid].end <= v->start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < m->n && m->vmas[low].start <= v->start && m->vmas[low].end >= v->end
		       ? &m->vmas[low]
		       : NULL;
}

static void take_flags(struct proc_vma *v, const struct proc_vma *from)
{
	bool marked = v->anonymous_kb;
	char *wipe;

	memcpy(v->vm_flags, from->vm_flags, sizeof(v->vm_flags));
	v->page_kb = from->page_kb;
	v->key = from->key;
	v->swap_kb = from->swap_kb;
	if (!marked)
		v->anonymous_kb = from->anonymous_kb;
	wipe = marked ? strstr(v->vm_flags, "wf") : NULL;
	if (wipe)
		memset(wipe, ' ', 2);
}

static int look(struct ckpt_dump *d, pid_t outline, struct proc_maps *maps, struct err *e)
{
	struct proc_maps its;
	int r = proc_read_maps(d->host_proc, outline, true, &its, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < maps->n && r == 0; i++) {
		const struct proc_vma *from = find(&its, &maps->vmas[i]);

		if (from)
			take_flags(&maps->vmas[i], from);
		else if (maps->vmas[i].start < CKPT_TASK_SIZE)
			r = err_set(e, ERR_FAILED, -ENOENT, "a mapping is not in its copy");
	}
	proc_maps_fini(&its);
	return r;
}

static int take_outline(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	struct remote *outline;
	long vpid;
	int r = ckpt_fork_space(p, e);

	if (r >= 0)
		r = mark(d, p->memory_copy, &p->maps, e);
	if (r >= 0)
		r = ckpt_helper_clone(p->memory_copy, 0, &outline, &vpid, e);
	if (r < 0)
		return r;
	r = look(d, remote_tid(outline), &p->maps, e);
	ckpt_helper_end(outline);
	if (remote_must(p->memory_copy, NULL, r < 0 ? NULL : e, SYS_wait4, (uint64_t)vpid, 0,
		    __WALL, 0, 0, 0) < 0 &&
		r == 0)
		r = e->error;
	return r;
}

/* One that is no good for this may be dead: nothing is to be written from it. */
int ckpt_outline_take(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	int r = take_outline(d, p, e);

	if (r < 0)
		ckpt_fork_drop(p);
	return r;
}

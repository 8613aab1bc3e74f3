// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * track_soft - writes told by the soft-dirty bit: Documentation/admin-guide/mm/soft-dirty.rst.
 *
 * All pages of a process lose it at once, and new mappings count as dirty as a whole.  That
 * clear_refs can be written says nothing: without CONFIG_MEM_SOFT_DIRTY it does nothing.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/memory/track.h"
#include "ckpt/survey/survey.h"

static int clear(int proc_fd, pid_t pid, struct err *e)
{
	_cleanup_close_ int fd = proc_open_file(proc_fd, pid, "clear_refs", O_WRONLY, e);

	if (fd < 0)
		return fd;
	return write(fd, "4", 1) == 1 ? 0 : err_errno(e, -errno, "clear_refs");
}

static bool is_dirty(int pagemap, const void *page)
{
	uint64_t word = 0;

	return pread(pagemap, &word, sizeof(word),
		       (off_t)((uintptr_t)page / PAGE_SIZE * sizeof(word))) == sizeof(word) &&
	       word & PM_SOFT_DIRTY;
}

/* Does a page lose the bit, and get it back when it is written to? */
static bool soft_probe(void)
{
	_cleanup_close_ int proc = proc_open(NULL), pagemap = -1;
	volatile char *page;
	bool works = false;

	if (proc < 0)
		return false;
	pagemap = proc_open_file(proc, getpid(), "pagemap", O_RDONLY, NULL);
	page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return false;
	*page = 1;
	if (pagemap >= 0 && clear(proc, getpid(), NULL) == 0 && !is_dirty(pagemap, (void *)page)) {
		*page = 2;
		works = is_dirty(pagemap, (void *)page);
	}
	munmap((void *)page, PAGE_SIZE);
	return works;
}

static int soft_begin(struct ckpt_space *s, struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	return 0;
}

static int soft_cover(struct ckpt_space *s, int proc_fd, struct err *e)
{
	return 0;
}

struct sorted {
	struct buf *dirty, *clean, *guards;
	bool all;
};

static void sort(void *ctx, uint64_t at, const uint64_t *word, size_t n)
{
	const struct sorted *s = ctx;

	for (size_t i = 0; i < n; i++, at += PAGE_SIZE) {
		struct buf *to = s->all || word[i] & PM_SOFT_DIRTY ? s->dirty : s->clean;

		if (word[i] & PM_GUARD)
			ckpt_run_put(s->guards, at, at + PAGE_SIZE);
		else if ((word[i] & (PM_PRESENT | PM_SWAP)) && !(word[i] & PM_FILE))
			ckpt_run_put(to, at, at + PAGE_SIZE);
	}
}

/* Nothing of the process may run meanwhile. */
static int soft_take(struct ckpt_space *s, int proc_fd, struct buf *runs, struct err *e)
{
	const struct ckpt_run *v = (const struct ckpt_run *)s->areas.data;
	_cleanup_close_ int pagemap = proc_open_file(proc_fd, s->pid, "pagemap", O_RDONLY, e);
	struct sorted into = {.dirty = runs, .all = !s->taken};
	int r = 0;

	if (pagemap < 0)
		return pagemap;
	for (size_t i = 0; i < s->areas.len / sizeof(*v) && r == 0; i++)
		r = ckpt_pages_each_word(pagemap, v[i].start, v[i].end, sort, &into);
	return r < 0 ? err_errno(e, r, "pagemap") : clear(proc_fd, s->pid, e);
}

static int soft_look(int pagemap, uint64_t start, uint64_t end, struct buf *dirty,
	struct buf *clean, struct buf *guards)
{
	struct sorted into = {dirty, clean, guards, false};

	return ckpt_pages_each_word(pagemap, start, end, sort, &into);
}

const struct ckpt_track_way ckpt_track_soft_dirty = {
	.name = "soft_dirty",
	.probe = soft_probe,
	.begin = soft_begin,
	.cover = soft_cover,
	.take = soft_take,
	.look = soft_look,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pages - which pages must be written, and writing them.
 *
 * Theory of operation
 *
 * A private page has to be written when it is anonymous: touched memory of an anonymous mapping,
 * or the copy that a write made of a file's page.  The kernel tells which they are: PAGEMAP_SCAN
 * (Linux 6.7) as ranges, /proc/PID/pagemap as one word per page.  "Present or swapped, and not of
 * a file" is the condition; the shared zero page is left out where the kernel shows it.
 *
 * Guard pages (MADV_GUARD_INSTALL, 6.13) look swapped.  PAGEMAP_SCAN names them since 6.16, the
 * pagemap word since 6.15; before, they can't be told and count as unreadable.
 *
 * Contents go from the task into the writer's buffer in one copy (process_vm_readv).  Where that is
 * refused, because the mapping is PROT_NONE, /proc/PID/mem reads with the tracer's rights.  A
 * page of an anonymous mapping that turns out to be all zero is not written, unless it lies
 * between others and leaving it out would cost more (a frame) than it saves.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/base.h"
#include "ckpt/memory/aside.h"
#include "ckpt/memory/memory.h"
#include "proto/proto.h"

enum method { UNKNOWN = 0, SCAN_GUARD, SCAN, PAGEMAP };

int ckpt_pages_open(struct ckpt_pages *ret, int proc_fd, pid_t pid, struct err *e)
{
	struct ckpt_pages p = CKPT_PAGES_INIT;

	p.pid = pid;
	p.pagemap = proc_open_file(proc_fd, pid, "pagemap", O_RDONLY, e);
	if (p.pagemap < 0)
		return p.pagemap;
	p.mem = proc_open_file(proc_fd, pid, "mem", O_RDONLY, e);
	if (p.mem < 0) {
		close_fd(p.pagemap);
		return p.mem;
	}
	*ret = p;
	return 0;
}

void ckpt_pages_close(struct ckpt_pages *p)
{
	p->pagemap = close_fd(p->pagemap);
	p->mem = close_fd(p->mem);
	if (p->scratch)
		munmap(p->scratch, PROTO_MAX_DATA);
	p->scratch = NULL;
}

void ckpt_run_put(struct buf *b, uint64_t start, uint64_t end)
{
	struct ckpt_run run = {start, end}, *last;

	if (!b)
		return;
	last = b->len ? (struct ckpt_run *)(b->data + b->len) - 1 : NULL;
	if (last && last->end == start)
		last->end = end;
	else
		buf_put(b, &run, sizeof(run));
}

/* What @arg asks for from its start to its end. */
static int scan(
	const struct ckpt_pages *p, struct pm_scan_arg *arg, struct buf *runs, struct buf *guards)
{
	struct page_region region[256];

	arg->size = sizeof(*arg);
	arg->vec = (uint64_t)(uintptr_t)region;
	arg->vec_len = ARRAY_SIZE(region);
	for (; arg->start < arg->end; arg->start = arg->walk_end) {
		int n = ioctl(p->pagemap, PAGEMAP_SCAN, arg);

		if (n < 0)
			return -errno;
		for (int i = 0; i < n; i++)
			ckpt_run_put(region[i].categories & PAGE_IS_GUARD ? guards : runs,
				region[i].start, region[i].end);
		if (arg->walk_end <= arg->start)
			return -EIO;
	}
	return 0;
}

static int find_by_scan(
	struct ckpt_pages *p, uint64_t start, uint64_t end, struct buf *runs, struct buf *guards)
{
	struct pm_scan_arg arg = {
		.category_inverted = PAGE_IS_PFNZERO | (p->no_files ? 0 : PAGE_IS_FILE),
		.category_mask = PAGE_IS_PFNZERO | (p->no_files ? 0 : PAGE_IS_FILE),
		.category_anyof_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
		.return_mask = p->method == SCAN ? PAGE_IS_PRESENT : PAGE_IS_GUARD,
		.start = start,
		.end = end,
	};

	return scan(p, &arg, runs, guards);
}

int ckpt_pages_each_word(int pagemap, uint64_t start, uint64_t end,
	void (*each)(void *ctx, uint64_t at, const uint64_t *words, size_t n), void *ctx)
{
	uint64_t word[512];

	for (uint64_t at = start; at < end;) {
		size_t want = MIN((end - at) / PAGE_SIZE, ARRAY_SIZE(word));
		ssize_t n = io_pread_full(pagemap, word, want * sizeof(*word),
			(off_t)(at / PAGE_SIZE * sizeof(*word)));

		if (n < (ssize_t)sizeof(*word))
			return n < 0 ? (int)n : -EIO;
		each(ctx, at, word, (size_t)n / sizeof(*word));
		at += (size_t)n / sizeof(*word) * PAGE_SIZE;
	}
	return 0;
}

struct found {
	struct buf *runs, *guards;
};

static void sort_words(void *ctx, uint64_t at, const uint64_t *word, size_t n)
{
	struct found *f = ctx;

	for (size_t i = 0; i < n; i++, at += PAGE_SIZE) {
		if (word[i] & PM_GUARD)
			ckpt_run_put(f->guards, at, at + PAGE_SIZE);
		else if ((word[i] & (PM_PRESENT | PM_SWAP)) && !(word[i] & PM_FILE))
			ckpt_run_put(f->runs, at, at + PAGE_SIZE);
	}
}

static int find_by_pagemap(
	struct ckpt_pages *p, uint64_t start, uint64_t end, struct buf *runs, struct buf *guards)
{
	return ckpt_pages_each_word(
		p->pagemap, start, end, sort_words, &(struct found){runs, guards});
}

bool ckpt_pages_scans(struct ckpt_pages *p)
{
	/* the first page, where nothing ever is, is asked about for the kernel's sake */
	if (p->method == UNKNOWN && ckpt_pages_find(p, 0, PAGE_SIZE, NULL, NULL, NULL) < 0)
		return false;
	return p->method == SCAN_GUARD || p->method == SCAN;
}

int ckpt_pages_find(struct ckpt_pages *p, uint64_t start, uint64_t end, struct buf *runs,
	struct buf *guards, struct err *e)
{
	int r;

	if (p->method == UNKNOWN)
		p->method = SCAN_GUARD;
	if (p->method == SCAN_GUARD || p->method == SCAN) {
		r = find_by_scan(p, start, end, runs, guards);
		if (r == -EINVAL && p->method == SCAN_GUARD) {
			p->method = SCAN; /* 6.7 to 6.15 */
			r = find_by_scan(p, start, end, runs, guards);
		}
		if (r != -ENOTTY && r != -EINVAL)
			goto out;
		p->method = PAGEMAP;
	}
	r = find_by_pagemap(p, start, end, runs, guards);
out:
	if (r >= 0 && ((runs && buf_error(runs)) || (guards && buf_error(guards))))
		r = -ENOMEM;
	if (r < 0)
		return err_errno(e, r, "reading the page map at %llx", (unsigned long long)start);
	return 0;
}

int ckpt_pages_find_guards(
	struct ckpt_pages *p, uint64_t start, uint64_t end, struct buf *guards, struct err *e)
{
	struct pm_scan_arg arg = {
		.category_mask = PAGE_IS_GUARD,
		.return_mask = PAGE_IS_GUARD,
		.start = start,
		.end = end,
	};
	int r;

	if (!ckpt_pages_scans(p))
		return ckpt_pages_find(p, start, end, NULL, guards, e);
	r = p->method == SCAN_GUARD ? scan(p, &arg, NULL, guards) : 0;
	if (r >= 0 && buf_error(guards))
		r = -ENOMEM;
	return r < 0 ? err_errno(e, r, "reading the page map at %llx", (unsigned long long)start)
		     : 0;
}

/*
 * process_vm_readv(2) pins pages, for which the kernel gives a forked copy its own of each that it
 * shares.  To read its memory as a file does not.
 */
void ckpt_pages_read(struct ckpt_pages *p, uint64_t addr, uint8_t *to, size_t len)
{
	bool by_file = p->forked;

	if (p->aside) {
		ckpt_aside_read(p->aside, addr, to, len);
		return;
	}
	while (len) {
		struct iovec local = {to, len}, remote = {(void *)(uintptr_t)addr, len};
		ssize_t n = by_file ? pread(p->mem, to, len, (off_t)addr)
				    : process_vm_readv(p->pid, &local, 1, &remote, 1, 0);

		if (n <= 0 && !by_file) {
			by_file = true;
			continue;
		}
		if (n <= 0) {
			/* A page that can't be read is an error; 0 is the end of all memory. */
			p->gone = p->gone || n == 0;
			log_debug("task %d: page %llx can't be read", p->pid,
				(unsigned long long)addr);
			n = PAGE_SIZE;
			memset(to, 0, (size_t)n);
			by_file = p->forked;
		}
		addr += (size_t)n;
		to += n;
		len -= (size_t)n;
	}
}

bool ckpt_page_is_zero(const uint8_t *page)
{
	uint64_t first;

	memcpy(&first, page, sizeof(first));
	return !first && !memcmp(page, page + 8, PAGE_SIZE - 8);
}

size_t ckpt_pages_next(const uint8_t *data, size_t len, size_t *pos)
{
	size_t start = *pos, end, zero;

	while (start < len && ckpt_page_is_zero(data + start))
		start += PAGE_SIZE;
	*pos = start;
	for (end = zero = start; zero < len; zero += PAGE_SIZE) {
		if (!ckpt_page_is_zero(data + zero))
			end = zero + PAGE_SIZE;
		else if (zero + PAGE_SIZE - end >= CKPT_MIN_GAP)
			break;
	}
	return end - start;
}

int ckpt_pages_room(struct ckpt_pages *p, struct err *e)
{
	void *m;

	if (p->scratch)
		return 0;
	m = mmap(NULL, PROTO_MAX_DATA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return err_errno(e, -errno, "room for pages");
	p->scratch = m;
	return 0;
}

/* One frame's room was filled with @len bytes of @addr: writes what is not zero in it. */
static int commit_piece(struct ckpt_pages *p, struct proto_writer *out, enum proto_kind kind,
	uint64_t subject, uint64_t offset, uint8_t *room, size_t len, bool zeros, struct err *e)
{
	size_t pos = 0, n = zeros ? len : ckpt_pages_next(room, len, &pos), rest = len - pos - n;
	int r;

	p->written += n / PAGE_SIZE;
	if (rest) {
		/* the room is gone once its first stretch is committed */
		if (ckpt_pages_room(p, e) < 0)
			return e->error;
		memcpy(p->scratch, room + pos + n, rest);
	}
	if (pos && n)
		memmove(room, room + pos, n);
	r = proto_write_data_commit(out, kind, subject, offset + pos, n, e);
	offset += pos + n;
	for (size_t at = 0; r >= 0 && at < rest; at += n) {
		n = ckpt_pages_next(p->scratch, rest, &at);
		if (!n)
			break;
		p->written += n / PAGE_SIZE;
		r = proto_write_data(out, kind, subject, offset + at, p->scratch + at, n, e);
	}
	return r;
}

int ckpt_pages_write(struct ckpt_pages *p, struct proto_writer *out, enum proto_kind kind,
	uint64_t subject, struct ckpt_run run, uint64_t shift, bool zeros, struct err *e)
{
	for (uint64_t at = run.start; at < run.end;) {
		size_t len = MIN(run.end - at, PROTO_LONG_DATA);
		void *room;
		int r = proto_write_data_begin(out, len, &room, e);

		if (r < 0)
			return r;
		ckpt_pages_read(p, at, room, len);
		r = commit_piece(p, out, kind, subject, at + shift, room, len, zeros, e);
		if (r < 0)
			return r;
		at += len;
	}
	return 0;
}

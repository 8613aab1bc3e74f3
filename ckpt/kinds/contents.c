// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Contents of files which travel inside an image: kinds GHOST and MEMFD.
 *
 * A memfd of huge pages has no holes that lseek(2) would tell of, and nobody can write(2) it: what
 * is zero is left out, and the rest is written where it is mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "ckpt/kinds/common.h"
#include "ckpt/memory/stash.h"
#include "ckpt/survey/leased.h"

#define PIECE (1u << 20)

/* Our own open file of what @f is; a mode which forbids its owner to read is changed for a
 * moment. */
static int open_to_read(const struct ckpt_dump *d, const struct ckpt_file *f, struct err *e)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "self/fd/%d", f->fd);
	fd = openat(d->host_proc, path, O_RDONLY | O_NOATIME | O_CLOEXEC);
	if (fd < 0 && errno == EPERM)
		fd = openat(d->host_proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES &&
		fchmodat(d->host_proc, path, (f->st.st_mode & 07777) | S_IRUSR, 0) == 0) {
		fd = openat(d->host_proc, path, O_RDONLY | O_CLOEXEC);
		fchmodat(d->host_proc, path, f->st.st_mode & 07777, 0);
	}
	return fd < 0 ? err_errno(e, -errno, "cannot read %s", f->link) : fd;
}

static bool is_huge(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC;
}

/* Writes [@from, @to) of @fd. */
static int dump_range(struct ckpt_dump *d, const struct ckpt_file *f, int fd, off_t from, off_t to,
	void *room, struct err *e)
{
	const struct ckpt_stash_place place = {.kind = f->kind->number, .subject = f->id};
	bool huge = is_huge(fd);
	uint64_t done = 0;

	if (!huge && ckpt_stash_file(d, &place, fd, (uint64_t)from, (uint64_t)to, &done, e) < 0)
		return err_wrap(e, "%s", f->link);
	from += (off_t)done;
	while (from < to) {
		ssize_t n = io_pread_full(fd, room, (size_t)MIN(to - from, (off_t)PIECE), from);
		int r = 0;

		if (n < 0)
			return err_errno(e, (int)n, "cannot read %s", f->link);
		if (n == 0)
			return 0;
		if (!huge || !bytes_are_zero(room, (size_t)n))
			r = ckpt_dump_data(d, f->kind, f->id, (uint64_t)from, room, (size_t)n, e);
		if (r < 0)
			return r;
		from += n;
	}
	return 0;
}

/* Without its holes. */
static int dump_data(
	struct ckpt_dump *d, const struct ckpt_file *f, int fd, void *room, struct err *e)
{
	off_t from, to = 0;

	while ((from = lseek(fd, to, SEEK_DATA)) >= 0) {
		int r;

		to = lseek(fd, from, SEEK_HOLE);
		if (to < 0)
			break;
		r = dump_range(d, f, fd, from, to, room, e);
		if (r < 0)
			return r;
	}
	/* ENXIO: nothing but a hole is left.  A file system without holes takes EINVAL. */
	if (errno == EINVAL)
		return dump_range(d, f, fd, 0, f->st.st_size, room, e);
	return errno == ENXIO ? 0 : err_errno(e, -errno, "cannot read %s", f->link);
}

static int open_and_dump(
	struct ckpt_dump *d, const struct ckpt_file *f, void *room, struct err *e)
{
	_cleanup_close_ int fd = open_to_read(d, f, e);

	return fd < 0 ? fd : dump_data(d, f, fd, room, e);
}

int ckpt_contents_dump(struct ckpt_dump *d, const struct ckpt_file *f, struct err *e)
{
	_cleanup_free_ void *room = malloc(PIECE);
	struct ckpt_leased_reading reading;
	int r;

	if (!room)
		return err_errno(e, -ENOMEM, "%s", f->link);
	if (!ckpt_leased(f))
		return open_and_dump(d, f, room, e);
	r = ckpt_leased_begin(&reading, f, e);
	if (r < 0)
		return r;
	/* To look for holes by this open file would move it. */
	r = r ? dump_range(d, f, f->fd, 0, f->st.st_size, room, e) : open_and_dump(d, f, room, e);
	ckpt_leased_end(&reading);
	return r;
}

/* @page: size of a huge page, of which the file has a whole number. */
static int fill_huge(
	int fd, uint64_t page, uint64_t offset, const void *data, size_t len, struct err *e)
{
	uint64_t from = ALIGN_DOWN(offset, page), to = ALIGN_UP(offset + len, page);
	uint8_t *m;

	/* Who touches one that can't be had would be killed. */
	if (fallocate(fd, 0, (off_t)from, (off_t)(to - from)) < 0) {
		err_set(e, ERR_HOST, -errno,
			"this host has not enough huge pages of %llu MiB for a memfd",
			(unsigned long long)page >> 20);
		return err_hint(e, "sysctl vm.nr_hugepages");
	}
	m = mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)from);
	if (m == MAP_FAILED)
		return err_errno(e, -errno, "cannot map a memfd of huge pages");
	memcpy(m + (offset - from), data, len);
	munmap(m, to - from);
	return 0;
}

int ckpt_contents_fill(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset,
	const void *data, size_t len, struct err *e)
{
	struct ckpt_object *o = ckpt_object_get(b, r->kind->number, r->subject);
	struct stat st;
	int x;

	if (!o || o->fd < 0 || fstat(o->fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		offset > (uint64_t)st.st_size || len > (uint64_t)st.st_size - offset)
		return ckpt_common_bad(r, e);
	if (is_huge(o->fd))
		return fill_huge(o->fd, (uint64_t)st.st_blksize, offset, data, len, e);
	x = io_pwrite_full(o->fd, data, len, (off_t)offset);
	return x < 0 ? err_errno(e, x, "cannot write the contents of a %s", r->kind->name) : 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The theory of operation is in view/program.h.
 *
 * Of the file only what its segments have is copied, for who wants to read the rest opens the
 * program itself.  The loader's new path is longer than the old one, so it goes behind all that,
 * where the header of its segment leads; the text in memory, which the loader looks at, is the old
 * one.
 */
#include "supervisor/rewrite/view/program.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"

#define COPIES	   "/copies"
#define NAMES	   "/names"
#define MAX_PHDRS  256
#define KEY_LEN	   33
#define COPY_CHUNK (1u << 30)
#define COPY_MAX   (2ULL << 30) /* all wait for it */

/* What the kernel will look at. */
struct layout {
	bool wide;   /* ELFCLASS64 */
	bool loads;  /* there is a PT_INTERP: */
	uint64_t at; /* where its header is in the file */
	uint64_t offset, size;
	uint64_t end; /* of all segments in the file */
};

/* Program headers of both classes. */
union header {
	unsigned char ident[EI_NIDENT];
	Elf64_Ehdr wide;
	Elf32_Ehdr narrow;
};
union segment {
	Elf64_Phdr wide;
	Elf32_Phdr narrow;
};

static void take_segment(struct layout *l, const union segment *p, uint64_t at)
{
	uint64_t offset = l->wide ? p->wide.p_offset : p->narrow.p_offset;
	uint64_t size = l->wide ? p->wide.p_filesz : p->narrow.p_filesz;

	if (offset > INT64_MAX / 2 || size > INT64_MAX / 2)
		return;
	l->end = MAX(l->end, offset + size);
	/* The first counts, as in the kernel. */
	if ((l->wide ? p->wide.p_type : p->narrow.p_type) != PT_INTERP || l->loads)
		return;
	l->loads = true;
	l->at = at;
	l->offset = offset;
	l->size = size;
}

/* False if @fd is no ELF file. */
static bool take_layout(int fd, struct layout *ret)
{
	union header h = {0};
	uint64_t at;
	size_t n, each;

	*ret = (struct layout){0};
	if (io_pread_full(fd, &h, sizeof(h), 0) < (ssize_t)sizeof(h.narrow) ||
		memcmp(h.ident, ELFMAG, SELFMAG) != 0)
		return false;
	ret->wide = h.ident[EI_CLASS] == ELFCLASS64;
	at = ret->wide ? h.wide.e_phoff : h.narrow.e_phoff;
	n = ret->wide ? h.wide.e_phnum : h.narrow.e_phnum;
	each = ret->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	if (n > MAX_PHDRS || at > INT64_MAX / 2)
		return false;
	for (size_t i = 0; i < n; i++, at += each) {
		union segment p;

		if (io_pread_full(fd, &p, each, (off_t)at) != (ssize_t)each)
			return false;
		take_segment(ret, &p, at);
	}
	ret->end = MAX(ret->end, at);
	return true;
}

int view_program_loader(int fd, char ret[PATH_MAX])
{
	struct layout l;

	if (!take_layout(fd, &l) || !l.loads)
		return 0;
	if (l.size < 2 || l.size > PATH_MAX ||
		io_pread_full(fd, ret, l.size, (off_t)l.offset) != (ssize_t)l.size ||
		ret[l.size - 1])
		return -ENOEXEC;
	return 1;
}

/* ---- copies --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	/* FNV-1a: who names a program so that keys meet gets the wrong one of his own. */
	while (len--)
		h = (h ^ *p++) * 0x100000001b3ULL;
	return h;
}

static uint64_t mix_text(uint64_t h, const char *text)
{
	return mix(h, text, strlen(text));
}

#define MIX_START 0xcbf29ce484222325ULL

static uint64_t key_of(const struct stat *st, const char *loader)
{
	uint64_t h = mix(MIX_START, &st->st_dev, sizeof(st->st_dev));

	h = mix(h, &st->st_ino, sizeof(st->st_ino));
	h = mix(h, &st->st_size, sizeof(st->st_size));
	h = mix(h, &st->st_mtim, sizeof(st->st_mtim));
	h = mix(h, &st->st_ctim, sizeof(st->st_ctim));
	return mix_text(h, loader);
}

static int copy_contents(int from, int to, uint64_t size)
{
	_cleanup_free_ char *room = NULL;
	uint64_t at = 0;
	ssize_t n;

	while (at < size) {
		off_t in = (off_t)at, out = (off_t)at;

		n = copy_file_range(from, &in, to, &out, MIN(size - at, COPY_CHUNK), 0);
		if (n <= 0)
			break;
		at += (uint64_t)n;
	}
	room = at < size ? malloc(1 << 16) : NULL;
	while (at < size) {
		n = room ? io_pread_full(from, room, MIN(size - at, 1 << 16), (off_t)at) : -ENOMEM;
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		if (pwrite(to, room, (size_t)n, (off_t)at) != n)
			return -errno;
		at += (uint64_t)n;
	}
	return 0;
}

/* @loader behind all, and the segment's header says so. */
static int change_loader(int fd, uint64_t size, const struct layout *l, const char *loader)
{
	uint64_t len = strlen(loader) + 1;
	uint32_t narrow[2] = {(uint32_t)size, (uint32_t)len};
	uint64_t field =
		l->at + (l->wide ? offsetof(Elf64_Phdr, p_offset) : offsetof(Elf32_Phdr, p_offset));
	uint64_t field_len =
		l->at + (l->wide ? offsetof(Elf64_Phdr, p_filesz) : offsetof(Elf32_Phdr, p_filesz));
	size_t n = l->wide ? sizeof(uint64_t) : sizeof(uint32_t);

	if (!l->wide && size > UINT32_MAX)
		return -ENOEXEC;
	if (pwrite(fd, loader, len, (off_t)size) != (ssize_t)len ||
		pwrite(fd, l->wide ? (void *)&size : &narrow[0], n, (off_t)field) != (ssize_t)n ||
		pwrite(fd, l->wide ? (void *)&len : &narrow[1], n, (off_t)field_len) != (ssize_t)n)
		return errno ? -errno : -EIO;
	return 0;
}

/* What was there before of the same program. */
static void remove_former(int dir, const char *key)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *one;

	if (!d)
		close_fd(fd);
	while (d && (one = readdir(d)))
		if (one->d_type == DT_REG && strcmp(one->d_name, key) != 0)
			unlinkat(dir, one->d_name, 0);
}

/* Nobody executes it before it is whole. */
static int make_copy(int dir, const char *key, int from, const struct stat *st, const char *loader)
{
	static const char unfinished[] = ".new";
	_cleanup_close_ int fd = -1;
	struct layout l;
	uint64_t size;
	int r;

	if (!take_layout(from, &l) || !l.loads)
		return -ENOEXEC;
	size = MIN(l.end, (uint64_t)st->st_size);
	if (size > COPY_MAX)
		return -EFBIG;
	unlinkat(dir, unfinished, 0);
	fd = openat(dir, unfinished, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = copy_contents(from, fd, size);
	if (r == 0)
		r = change_loader(fd, size, &l, loader);
	if (r == 0 && (fchmod(fd, 0555) < 0 || renameat(dir, unfinished, dir, key) < 0))
		r = -errno;
	if (r == 0)
		remove_former(dir, key);
	else
		unlinkat(dir, unfinished, 0);
	return r;
}

int view_program_copy(
	const char *programs, int fd, const char *path, const char *loader, char ret[PATH_MAX])
{
	_cleanup_close_ int dir = -1;
	char key[KEY_LEN + 1], where[PATH_MAX];
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	snprintf(key, sizeof(key), "%016llx-%llx", (unsigned long long)key_of(&st, loader),
		(unsigned long long)st.st_ino);
	if (snprintf(where, sizeof(where), "%s" COPIES "%s", programs, path) >= PATH_MAX ||
		snprintf(ret, PATH_MAX, "%s/%s", where, key) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (faccessat(AT_FDCWD, ret, X_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	r = io_mkdir_p(AT_FDCWD, where, 0700);
	dir = r < 0 && r != -EEXIST ? r : open(where, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return r < 0 && r != -EEXIST ? r : -errno;
	return make_copy(dir, key, fd, &st, loader);
}

int view_program_path(const char *below, char ret[PATH_MAX], ino_t *ret_inode)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(below), tail = strlen(deleted), top = strlen(COPIES);
	bool gone = n > tail && strcmp(below + n - tail, deleted) == 0;
	const char *dash = strrchr(below, '-');
	int r;

	if (strncmp(below, COPIES "/", top + 1) != 0)
		return -ENOENT;
	n -= gone ? tail : 0;
	/* Without the key. */
	while (n > top && below[n - 1] != '/')
		n--;
	if (n <= top + 1)
		return -ENOENT;
	*ret_inode = gone || !dash || dash < below + n ? 0 : strtoull(dash + 1, NULL, 16);
	r = snprintf(ret, PATH_MAX, "%.*s%s", (int)(n - 1 - top), below + top, gone ? deleted : "");
	return r < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool leads_to(const char *link, const char *host)
{
	char text[PATH_MAX];
	ssize_t n = readlink(link, text, sizeof(text));

	return n > 0 && (size_t)n == strlen(host) && memcmp(text, host, (size_t)n) == 0;
}

int view_program_named(const char *programs, const char *host, const char *name, char ret[PATH_MAX])
{
	const char *last = strrchr(host, '/');
	char where[PATH_MAX];
	int r;

	if (!*name || (last && strcmp(last + 1, name) == 0)) {
		r = snprintf(ret, PATH_MAX, "%s", host);
		return r < PATH_MAX ? 0 : -ENAMETOOLONG;
	}
	if (snprintf(where, sizeof(where), "%s" NAMES "/%016llx", programs,
		    (unsigned long long)mix_text(MIX_START, host)) >= PATH_MAX ||
		snprintf(ret, PATH_MAX, "%s/%s", where, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (leads_to(ret, host))
		return 0;
	r = io_mkdir_p(AT_FDCWD, where, 0700);
	if (r < 0 && r != -EEXIST)
		return r;
	if (symlink(host, ret) < 0 && errno != EEXIST)
		return -errno;
	if (!leads_to(ret, host)) /* another's key */
		snprintf(ret, PATH_MAX, "%s", host);
	return 0;
}

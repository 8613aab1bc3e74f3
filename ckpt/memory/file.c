// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * file - mapped files: described when a session is frozen, recognised when it is resumed.
 *
 * A mapped library is not in the image, only its path and what it is recognised by.  An ELF file
 * with a build-id is the same file when the build-id is the same: that holds across hosts which
 * installed one package.  Any other file is the same when size and modification time are, or
 * else when a sample of its contents is.
 *
 * Whole directories of processes map the same few libraries, so both directions remember what
 * they have asked, in an array that the dump or the build owns (kind_state of MM).
 */
#include <elf.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"
#include "ckpt/where.h"
#include "proto/memory.pb-c.h"

#define SAMPLE_LEN (64UL * 1024)
#define MAX_PHDRS  64
#define MAX_NOTES  4096

/*
 * What has been asked: path and answer.  Each key is at its place or behind it; half of them are
 * free.
 */
struct known {
	uint64_t key; /* 0: free */
	struct ckpt_file_mark mark;
};
struct known_table {
	size_t n, cap; /* cap: a power of two */
	struct known at[];
};
#define FIRST_CAP 256

/* FNV-1a over 64-bit words, the rest byte by byte; starts at @h. */
static uint64_t mix(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		h = (h ^ word) * 0x100000001b3ULL;
		h ^= h >> 29;
	}
	for (; len; p++, len--)
		h = (h ^ *p) * 0x100000001b3ULL;
	return h;
}

#define MIX_START 0xcbf29ce484222325ULL

/* Where @key is, or would be. */
static struct known *place_of(struct known_table *t, uint64_t key)
{
	size_t i = (key ^ key >> 32) & (t->cap - 1);

	while (t->at[i].key && t->at[i].key != key)
		i = (i + 1) & (t->cap - 1);
	return &t->at[i];
}

static const struct known *find_known(void *state, uint64_t key)
{
	const struct known *k = state ? place_of(state, key) : NULL;

	return k && k->key ? k : NULL;
}

static struct known_table *with_room(struct known_table *t)
{
	size_t cap = t ? 2 * t->cap : FIRST_CAP;
	struct known_table *more;

	if (t && 2 * t->n < t->cap)
		return t;
	more = calloc(1, sizeof(*more) + cap * sizeof(more->at[0]));
	if (!more)
		return NULL;
	more->cap = cap;
	for (size_t i = 0; t && i < t->cap; i++)
		if (t->at[i].key)
			*place_of(more, t->at[i].key) = t->at[i];
	more->n = t ? t->n : 0;
	free(t);
	return more;
}

/* Remembering is for speed: when memory is short it is left. */
static void put_known(void **state, uint64_t key, const struct ckpt_file_mark *mark)
{
	struct known_table *t = with_room(*state);

	if (!t)
		return;
	*state = t;
	if (!key || place_of(t, key)->key)
		return;
	*place_of(t, key) = (struct known){key, *mark};
	t->n++;
}

/* MIX_START, size, 64 KiB at the start, in the middle, at the end. */
static uint64_t file_sample(int fd, uint64_t size)
{
	uint8_t block[4096];
	uint64_t h = mix(MIX_START, &size, sizeof(size));
	uint64_t from[] = {0, size / 2, size > SAMPLE_LEN ? size - SAMPLE_LEN : 0};

	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		for (uint64_t at = 0; at < SAMPLE_LEN; at += sizeof(block)) {
			ssize_t n = io_pread_full(fd, block, sizeof(block), (off_t)(from[i] + at));

			if (n <= 0)
				break;
			h = mix(h, block, (size_t)n);
		}
	return h;
}

/* Looks through notes for NT_GNU_BUILD_ID. */
static void find_build_id(const uint8_t *notes, size_t len, struct ckpt_file_mark *ret)
{
	struct cursor c = cursor_of(notes, len);

	while (cursor_left(&c) >= sizeof(Elf64_Nhdr)) {
		uint32_t name_len = cursor_u32(&c), desc_len = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);

		if (name_len > len || desc_len > len)
			return;
		const void *name = cursor_take(&c, ALIGN_UP(name_len, 4));
		const void *desc = cursor_take(&c, MIN(ALIGN_UP(desc_len, 4), cursor_left(&c)));

		if (c.bad)
			return;
		if (type != NT_GNU_BUILD_ID || name_len != 4 || memcmp(name, "GNU", 4))
			continue;
		ret->build_id_len = MIN(desc_len, (uint32_t)sizeof(ret->build_id));
		memcpy(ret->build_id, desc, ret->build_id_len);
		return;
	}
}

/* Also returns how far the file's segments reach: 0 where that is not known. */
static uint64_t read_build_id(int fd, struct ckpt_file_mark *ret)
{
	uint8_t head[4096], notes[MAX_NOTES];
	uint64_t reach = 0;
	ssize_t n = io_pread_full(fd, head, sizeof(head), 0);
	Elf64_Ehdr eh;

	if (n < (ssize_t)sizeof(eh) || memcmp(head, ELFMAG, SELFMAG) ||
		head[EI_CLASS] != ELFCLASS64)
		return 0;
	memcpy(&eh, head, sizeof(eh));
	for (size_t i = 0; i < eh.e_phnum && i < MAX_PHDRS; i++) {
		Elf64_Phdr ph;
		uint64_t at = eh.e_phoff + i * sizeof(ph);

		if (eh.e_phoff > (uint64_t)n || at + sizeof(ph) > (uint64_t)n)
			break;
		memcpy(&ph, head + at, sizeof(ph));
		if (ph.p_type == PT_LOAD && ph.p_filesz <= UINT64_MAX - ph.p_offset)
			reach = MAX(reach, ph.p_offset + ph.p_filesz);
		if (ph.p_type != PT_NOTE || ret->build_id_len || ph.p_filesz > sizeof(notes))
			continue;
		if (ph.p_offset <= (uint64_t)n && ph.p_filesz <= (uint64_t)n - ph.p_offset)
			find_build_id(head + ph.p_offset, ph.p_filesz, ret);
		else if (io_pread_full(fd, notes, ph.p_filesz, (off_t)ph.p_offset) ==
			 (ssize_t)ph.p_filesz)
			find_build_id(notes, ph.p_filesz, ret);
	}
	return reach;
}

static void fill_mark(const struct stat *st, struct ckpt_file_mark *ret)
{
	*ret = (struct ckpt_file_mark){
		.size = (uint64_t)st->st_size,
		.mtime_sec = st->st_mtim.tv_sec,
		.mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
	};
}

void ckpt_file_mark(int fd, const struct stat *st, struct ckpt_file_mark *ret)
{
	fill_mark(st, ret);
	read_build_id(fd, ret);
	if (!ret->build_id_len)
		ret->sample = file_sample(fd, ret->size);
}

int ckpt_file_describe(struct ckpt_dump *d, const char *path, uint64_t ino,
	struct ckpt_file_mark *ret, struct err *e)
{
	uint64_t key = mix(MIX_START, path, strlen(path));
	const struct known *k = find_known(d->kind_state[PROTO_KIND_MM], key);
	struct stat st;

	if (k) {
		*ret = k->mark;
		return 0;
	}
	if (ino && ckpt_before_mark(d->before, path, ino, ret)) {
		put_known(&d->kind_state[PROTO_KIND_MM], key, ret);
		return 0;
	}
	_cleanup_close_ int fd = ckpt_where_open(d->world, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		err_errno(e, fd, "mapped file %s", path);
		return err_reclass(e, ERR_UNFREEZABLE);
	}
	if (fstat(fd, &st) < 0)
		return err_errno(e, -errno, "mapped file %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"a mapping of the device %s is not supported", path);
	ckpt_file_mark(fd, &st, ret);
	put_known(&d->kind_state[PROTO_KIND_MM], key, ret);
	return 0;
}

static bool same_file(
	int fd, const struct stat *st, const struct ckpt_file_mark *want, bool grown_is_fine)
{
	struct ckpt_file_mark have;

	fill_mark(st, &have);
	if (grown_is_fine)
		return have.size >= want->size;
	if (want->build_id_len) {
		/* what is cut off behind it would be missed only when it is touched */
		return read_build_id(fd, &have) <= have.size &&
		       have.build_id_len == want->build_id_len &&
		       !memcmp(have.build_id, want->build_id, have.build_id_len);
	}
	if (have.size != want->size)
		return false;
	return (have.mtime_sec == want->mtime_sec && have.mtime_nsec == want->mtime_nsec) ||
	       file_sample(fd, have.size) == want->sample;
}

static struct ckpt_file_mark mark_of(const Pb__MappedFile *f)
{
	struct ckpt_file_mark mark = {
		.size = f->size,
		.mtime_sec = f->mtime_sec,
		.mtime_nsec = f->mtime_nsec,
		.sample = f->sample,
		.build_id_len = (uint32_t)MIN(f->build_id.len, sizeof(mark.build_id)),
	};

	if (mark.build_id_len)
		memcpy(mark.build_id, f->build_id.data, mark.build_id_len);
	return mark;
}

int ckpt_file_recognise(
	struct ckpt_build *b, const Pb__MappedFile *f, bool grown_is_fine, struct err *e)
{
	const struct ckpt_file_mark mark = mark_of(f);
	const char *path = f->path;
	uint64_t key = mix(MIX_START, path, strlen(path));
	char room[PATH_MAX];
	struct stat st;

	key = mix(key, &mark, sizeof(mark));
	key = mix(key, &grown_is_fine, sizeof(grown_is_fine));
	if (find_known(b->kind_state[PROTO_KIND_MM], key))
		return 0;
	_cleanup_close_ int fd = open(ckpt_where_host(b->world, path, room),
		O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, &st) < 0) {
		err_errno(e, -errno, "mapped file %s", path);
		err_hint(e, "the session needs this file of the host it was started on");
		return err_reclass(e, ERR_HOST);
	}
	if (!S_ISREG(st.st_mode) || !same_file(fd, &st, &mark, grown_is_fine)) {
		err_set(e, ERR_HOST, -ESTALE, "%s is not the file which the session had mapped",
			path);
		return err_hint(e, "this host has another version of it; an image made with "
				   "--with-files carries its own");
	}
	put_known(&b->kind_state[PROTO_KIND_MM], key, &mark);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any records of files from a viewer, while the session does what it likes with the directory.
 *
 * The input is a list of steps.  Of a step's first byte the lower three bits say what it is: a
 * record (0 to 3; two bytes of length and the record follow), the session is about to be frozen or
 * goes on (4), the viewer takes what waits for it (5, 6), or the session does something (7; the
 * other bits say what).  Whatever that was, nothing outside of the directory is read or changed,
 * what the viewer is told makes sense, and of files that have not come whole nothing is left.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "display/files.h"
#include "proto/display.pb-c.h"
#include "tests/fuzz/fuzz.h"

#define PLACE  "tmp/" DISPLAY_FILES_PLACE
#define SECRET "what the session may not read"
#define TOLD   (512u << 10) /* more does not wait for a viewer */

struct room {
	char path[64];
	int dir;
	struct display_files *files;
	bool held;
	bool swapped; /* another directory, or none, is in the place of the first */
	bool linked;  /* a file in it is the secret one */
};

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* ---- the session ----------------------------------------------------------------------------- */

static void unlink_files(struct room *r)
{
	(void)unlinkat(r->dir, PLACE "/a", 0);
	(void)unlinkat(r->dir, PLACE "/b", 0);
	r->linked = false;
}

static void make_files(struct room *r)
{
	(void)mkdirat(r->dir, PLACE, 0700);
	unlink_files(r);
	io_write_file(r->dir, PLACE "/a", "abc", 3, 0600);
	io_write_file(r->dir, PLACE "/b", "def", 3, 0600);
}

static void shorten_file(struct room *r)
{
	if (!r->linked)
		io_write_file(r->dir, PLACE "/a", "", 0, 0600);
}

/* In the place of files that may be on a list. */
static void link_out(struct room *r)
{
	unlink_files(r);
	r->linked = true;
	(void)linkat(r->dir, "secret", r->dir, PLACE "/a", 0);
	(void)symlinkat("../../secret", r->dir, PLACE "/b");
}

static void make_others(struct room *r)
{
	(void)mkfifoat(r->dir, PLACE "/d", 0600);
	(void)mkdirat(r->dir, PLACE "/e", 0700);
}

/* What waits is known, so that any name can be taken. */
static void take_names(struct room *r)
{
	(void)mkdirat(r->dir, PLACE "/f", 0700);
	(void)symlinkat("../../outside/f", r->dir, PLACE "/file");
}

static void lead_out(struct room *r)
{
	r->swapped = true;
	(void)renameat(r->dir, PLACE, r->dir, "tmp/was");
	(void)symlinkat("../outside", r->dir, PLACE);
}

static void remove_all(struct room *r)
{
	r->swapped = true;
	must(io_rm_rf(r->dir, PLACE) == 0);
}

static void put_file(struct room *r)
{
	r->swapped = true;
	(void)renameat(r->dir, PLACE, r->dir, "tmp/was");
	io_write_file(r->dir, PLACE, "abc", 3, 0600);
}

static void (*const acts[])(struct room *r) = {make_files, shorten_file, link_out, make_others,
	take_names, lead_out, remove_all, put_file};

/* ---- the viewer ------------------------------------------------------------------------------ */

static void look_at(const Pb__DisplayFile *m)
{
	switch ((int)m->kind) {
	case PB__DISPLAY_FILE__KIND__OFFER:
		must(m->id >= DISPLAY_FILES_HIGH && m->name[0] && m->name[0] != '.');
		must(!strchr(m->name, '/') && strlen(m->name) <= DISPLAY_FILES_NAME);
		break;
	case PB__DISPLAY_FILE__KIND__DATA:
		must(m->id >= DISPLAY_FILES_HIGH && m->data.len > 0);
		must(!memmem(m->data.data, m->data.len, SECRET, sizeof(SECRET) - 1));
		break;
	case PB__DISPLAY_FILE__KIND__ACCEPT:
		must(m->id < DISPLAY_FILES_HIGH);
		break;
	case PB__DISPLAY_FILE__KIND__END:
	case PB__DISPLAY_FILE__KIND__CANCEL:
		break;
	default:
		abort();
	}
}

static void listen_to(struct room *r, bool bulk)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct display_message m;
	size_t used;

	display_files_put(r->files, &b, bulk);
	must(buf_error(&b) == 0 && b.len <= TOLD);
	while (b.len) {
		Pb__DisplayFile *file;

		must(display_wire_take(b.data, b.len, true, &m, &used, NULL) == 1);
		must(m.type == DISPLAY_FILE);
		file = pb__display_file__unpack(NULL, m.data.len, m.data.data);
		must(file != NULL);
		look_at(file);
		pb__display_file__free_unpacked(file, NULL);
		buf_consume(&b, used);
	}
}

static void step(struct room *r, struct cursor *c)
{
	const uint8_t what = cursor_u8(c);
	struct display_bytes record = {.len = 0};

	switch (what & 7) {
	case 4:
		r->held = !r->held;
		display_files_hold(r->files, r->held);
		break;
	case 5:
	case 6:
		listen_to(r, what & 1);
		break;
	case 7:
		/* A session that is frozen does nothing, and behind a link it would be ours to blame. */
		if (!r->held && !r->swapped)
			acts[(what >> 3) % ARRAY_SIZE(acts)](r);
		break;
	default:
		record.len = cursor_u8(c);
		record.len = MIN(record.len | (size_t)cursor_u8(c) << 8, cursor_left(c));
		record.data = cursor_take(c, record.len);
		if (record.data)
			display_files_take(r->files, &record);
	}
}

/* ---- the room -------------------------------------------------------------------------------- */

static void room_begin(struct room *r)
{
	*r = (struct room){.path = "/tmp/podrun-fuzz-files-XXXXXX"};
	must(mkdtemp(r->path) != NULL);
	r->dir = open(r->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	must(r->dir >= 0);
	must(mkdirat(r->dir, "tmp", 0700) == 0 && mkdirat(r->dir, "outside", 0700) == 0);
	must(io_write_file(r->dir, "secret", SECRET, sizeof(SECRET) - 1, 0600) == 0);
	must(display_files_new(r->dir, &r->files) == 0);
}

/* How many entries it has, or how many whose name begins so; 0 as well if it can't be opened. */
static int entries(struct room *r, const char *path, const char *begins)
{
	int fd = openat(r->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), n = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	for (struct dirent *d; dir && (d = readdir(dir));)
		n += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
		     strncmp(d->d_name, begins, strlen(begins)) == 0;
	if (dir)
		closedir(dir);
	return n;
}

static void room_end(struct room *r)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	display_files_free(r->files);
	/* Nor does anybody give a file a hidden name. */
	must(r->swapped || entries(r, PLACE, ".") == 0);
	must(entries(r, "outside", "") == 0);
	must(io_read_file(r->dir, "secret", 4096, &b) == 0);
	must(b.len == sizeof(SECRET) - 1 && memcmp(b.data, SECRET, b.len) == 0);
	close(r->dir);
	must(io_rm_rf(AT_FDCWD, r->path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	struct room r;

	room_begin(&r);
	while (cursor_left(&c))
		step(&r, &c);
	listen_to(&r, true);
	room_end(&r);
	return 0;
}

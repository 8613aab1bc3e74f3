// SPDX-License-Identifier: GPL-2.0-or-later
/* Files into a session's directory and from there, with viewers and sessions that mean harm. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/files.h"
#include "proto/display.pb-c.h"

#define PLACE "tmp/" DISPLAY_FILES_PLACE

struct room {
	char path[64];
	int dir;
	struct display_files *files;
	struct buf out;
};

static void room_begin(struct room *r)
{
	*r = (struct room){.out = BUF_INIT};
	snprintf(r->path, sizeof(r->path), "/tmp/podrun-files-XXXXXX");
	assert_non_null(mkdtemp(r->path));
	r->dir = open(r->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(r->dir, "tmp", 0700), 0);
	assert_int_equal(display_files_new(r->dir, &r->files), 0);
}

static void room_end(struct room *r)
{
	display_files_free(r->files);
	buf_fini(&r->out);
	close(r->dir);
	assert_int_equal(io_rm_rf(AT_FDCWD, r->path), 0);
}

static void say(struct room *r, Pb__DisplayFile__Kind kind, uint32_t id, const char *name,
	uint64_t number, const void *data, size_t len)
{
	Pb__DisplayFile m = PB__DISPLAY_FILE__INIT;
	static uint8_t bytes[64 << 10];
	struct display_bytes record = {bytes, 0};

	m.kind = kind;
	m.id = id;
	m.name = (char *)name;
	m.size = kind == PB__DISPLAY_FILE__KIND__OFFER ? number : 0;
	m.offset = kind == PB__DISPLAY_FILE__KIND__OFFER ? 0 : number;
	m.data.data = (uint8_t *)data;
	m.data.len = len;
	record.len = pb__display_file__pack(&m, bytes);
	display_files_take(r->files, &record);
}

static void say_short(struct room *r, Pb__DisplayFile__Kind kind, uint32_t id)
{
	say(r, kind, id, "", 0, NULL, 0);
}

/* The next that is told, owned by the caller; NULL if there is nothing. */
static Pb__DisplayFile *told(struct room *r)
{
	struct display_message m;
	Pb__DisplayFile *file;
	size_t used;

	if (!r->out.len)
		display_files_put(r->files, &r->out, true);
	if (!r->out.len)
		return NULL;
	assert_int_equal(display_wire_take(r->out.data, r->out.len, true, &m, &used, NULL), 1);
	assert_int_equal(m.type, DISPLAY_FILE);
	file = pb__display_file__unpack(NULL, m.data.len, m.data.data);
	assert_non_null(file);
	buf_consume(&r->out, used);
	return file;
}

static void is_told(struct room *r, Pb__DisplayFile__Kind kind, uint32_t id, const char *name)
{
	Pb__DisplayFile *m = told(r);

	assert_non_null(m);
	assert_int_equal(m->kind, kind);
	assert_int_equal(m->id, id);
	if (name)
		assert_string_equal(m->name, name);
	pb__display_file__free_unpacked(m, NULL);
}

/* Puts a file of three bytes; the name it has there. */
static void put(struct room *r, const char *name, const char *expected)
{
	say(r, PB__DISPLAY_FILE__KIND__OFFER, 7, name, 3, NULL, 0);
	is_told(r, PB__DISPLAY_FILE__KIND__ACCEPT, 7, NULL);
	say(r, PB__DISPLAY_FILE__KIND__DATA, 7, "", 0, "abc", 3);
	is_told(r, PB__DISPLAY_FILE__KIND__ACCEPT, 7, NULL);
	say_short(r, PB__DISPLAY_FILE__KIND__END, 7);
	is_told(r, PB__DISPLAY_FILE__KIND__END, 7, expected);
}

static void has(struct room *r, const char *name, const char *contents)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	char path[512];

	snprintf(path, sizeof(path), PLACE "/%s", name);
	assert_int_equal(io_read_file(r->dir, path, 4096, &b), 0);
	assert_string_equal(buf_cstr(&b), contents);
}

static int entries(struct room *r, const char *path)
{
	int fd = openat(r->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = -2;
	DIR *dir = fdopendir(fd);

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void make(struct room *r, const char *path, const char *contents)
{
	assert_int_equal(io_write_file(r->dir, path, contents, strlen(contents), 0600), 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void names_are_one_component(void **state)
{
	static const char *const names[][2] = {
		{"a.txt", "a.txt"},
		{"../../etc/passwd", "passwd"},
		{"C:\\Windows\\x.dll", "x.dll"},
		{"..", "_."},
		{".bashrc", "_bashrc"},
		{"/", "file"},
		{"", "file"},
		{"a\nb\x1b[0m\x7f", "a_b_[0m_"},
		{"\xc3\xa9\xe2\x82\xac \xf0\x9f\x99\x82", "\xc3\xa9\xe2\x82\xac \xf0\x9f\x99\x82"},
		{"\xff\xc3", "__"},
		{"\xc2\x9b"
		 "1m",
			"__1m"},
	};
	char name[DISPLAY_FILES_NAME + 1], *long_name = calloc(1, 5001);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		display_files_name(names[i][0], name);
		assert_string_equal(name, names[i][1]);
	}
	assert_non_null(long_name);
	memset(long_name, 'x', 5000);
	display_files_name(long_name, name);
	assert_int_equal(strlen(name), DISPLAY_FILES_NAME);
	free(long_name);
}

static void files_come_and_go(void **state)
{
	Pb__DisplayFile *m;
	struct room r;

	room_begin(&r);
	put(&r, "a.txt", "a.txt");
	put(&r, "a.txt", "a (2).txt");
	put(&r, "../../../a.txt", "a (3).txt");
	has(&r, "a.txt", "abc");
	has(&r, "a (3).txt", "abc");
	assert_int_equal(entries(&r, "."), 1);
	make(&r, PLACE "/b", "from inside");
	assert_int_equal(unlinkat(r.dir, PLACE "/a.txt", 0), 0);
	assert_int_equal(unlinkat(r.dir, PLACE "/a (2).txt", 0), 0);
	assert_int_equal(unlinkat(r.dir, PLACE "/a (3).txt", 0), 0);
	say_short(&r, PB__DISPLAY_FILE__KIND__LIST, 0);
	is_told(&r, PB__DISPLAY_FILE__KIND__OFFER, DISPLAY_FILES_HIGH, "b");
	is_told(&r, PB__DISPLAY_FILE__KIND__END, 0, NULL);
	say_short(&r, PB__DISPLAY_FILE__KIND__ACCEPT, DISPLAY_FILES_HIGH);
	m = told(&r);
	assert_non_null(m);
	assert_int_equal(m->kind, PB__DISPLAY_FILE__KIND__DATA);
	assert_int_equal(m->data.len, 11);
	assert_memory_equal(m->data.data, "from inside", 11);
	pb__display_file__free_unpacked(m, NULL);
	is_told(&r, PB__DISPLAY_FILE__KIND__END, DISPLAY_FILES_HIGH, NULL);
	assert_null(told(&r));
	room_end(&r);
}

static void what_is_not_whole_leaves_nothing(void **state)
{
	struct room r;

	room_begin(&r);
	say(&r, PB__DISPLAY_FILE__KIND__OFFER, 1, "a", 5, NULL, 0);
	is_told(&r, PB__DISPLAY_FILE__KIND__ACCEPT, 1, NULL);
	say(&r, PB__DISPLAY_FILE__KIND__DATA, 1, "", 0, "abc", 3);
	is_told(&r, PB__DISPLAY_FILE__KIND__ACCEPT, 1, NULL);
	say_short(&r, PB__DISPLAY_FILE__KIND__END, 1);
	is_told(&r, PB__DISPLAY_FILE__KIND__CANCEL, 1, NULL);
	/* not where the last one ended, and more than was offered */
	say(&r, PB__DISPLAY_FILE__KIND__OFFER, 2, "a", 5, NULL, 0);
	is_told(&r, PB__DISPLAY_FILE__KIND__ACCEPT, 2, NULL);
	say(&r, PB__DISPLAY_FILE__KIND__DATA, 2, "", 1, "abc", 3);
	is_told(&r, PB__DISPLAY_FILE__KIND__CANCEL, 2, NULL);
	say(&r, PB__DISPLAY_FILE__KIND__OFFER, 3, "a", 5, NULL, 0);
	is_told(&r, PB__DISPLAY_FILE__KIND__ACCEPT, 3, NULL);
	say(&r, PB__DISPLAY_FILE__KIND__DATA, 3, "", 0, "abcdef", 6);
	is_told(&r, PB__DISPLAY_FILE__KIND__CANCEL, 3, NULL);
	say(&r, PB__DISPLAY_FILE__KIND__OFFER, 4, "a", UINT64_MAX, NULL, 0);
	is_told(&r, PB__DISPLAY_FILE__KIND__CANCEL, 4, NULL);
	say(&r, PB__DISPLAY_FILE__KIND__OFFER, DISPLAY_FILES_HIGH, "a", 1, NULL, 0);
	is_told(&r, PB__DISPLAY_FILE__KIND__CANCEL, DISPLAY_FILES_HIGH, NULL);
	assert_int_equal(entries(&r, PLACE), 0);
	/* of a viewer that is gone */
	for (unsigned i = 0; i < 20; i++)
		say(&r, PB__DISPLAY_FILE__KIND__OFFER, i, "a", 5, NULL, 0);
	assert_int_equal(entries(&r, PLACE), 0);
	display_files_free(take_ptr(r.files));
	assert_int_equal(entries(&r, PLACE), 0);
	room_end(&r);
}

/* Links to what the session may not have. */
static void nothing_leads_out(void **state)
{
	struct room r;

	room_begin(&r);
	make(&r, "secret", "secret");
	assert_int_equal(mkdirat(r.dir, "elsewhere", 0700), 0);
	assert_int_equal(symlinkat("../elsewhere", r.dir, PLACE), 0);
	say(&r, PB__DISPLAY_FILE__KIND__OFFER, 1, "a", 1, NULL, 0);
	is_told(&r, PB__DISPLAY_FILE__KIND__CANCEL, 1, NULL);
	assert_int_equal(entries(&r, "elsewhere"), 0);
	assert_int_equal(unlinkat(r.dir, PLACE, 0), 0);
	assert_int_equal(mkdirat(r.dir, PLACE, 0700), 0);
	make(&r, PLACE "/c", "c");
	say_short(&r, PB__DISPLAY_FILE__KIND__LIST, 0);
	is_told(&r, PB__DISPLAY_FILE__KIND__OFFER, DISPLAY_FILES_HIGH, "c");
	is_told(&r, PB__DISPLAY_FILE__KIND__END, 0, NULL);
	/* what was listed becomes something else */
	assert_int_equal(unlinkat(r.dir, PLACE "/c", 0), 0);
	assert_int_equal(symlinkat("../../secret", r.dir, PLACE "/c"), 0);
	say_short(&r, PB__DISPLAY_FILE__KIND__ACCEPT, DISPLAY_FILES_HIGH);
	is_told(&r, PB__DISPLAY_FILE__KIND__CANCEL, DISPLAY_FILES_HIGH, NULL);
	assert_int_equal(unlinkat(r.dir, PLACE "/c", 0), 0);
	assert_int_equal(linkat(r.dir, "secret", r.dir, PLACE "/c", 0), 0);
	say_short(&r, PB__DISPLAY_FILE__KIND__ACCEPT, DISPLAY_FILES_HIGH);
	is_told(&r, PB__DISPLAY_FILE__KIND__CANCEL, DISPLAY_FILES_HIGH, NULL);
	assert_int_equal(unlinkat(r.dir, PLACE "/c", 0), 0);
	assert_int_equal(mkfifoat(r.dir, PLACE "/c", 0600), 0);
	say_short(&r, PB__DISPLAY_FILE__KIND__ACCEPT, DISPLAY_FILES_HIGH);
	is_told(&r, PB__DISPLAY_FILE__KIND__CANCEL, DISPLAY_FILES_HIGH, NULL);
	/* and none of that is listed */
	assert_int_equal(symlinkat("../../secret", r.dir, PLACE "/d"), 0);
	assert_int_equal(linkat(r.dir, "secret", r.dir, PLACE "/e", 0), 0);
	make(&r, PLACE "/.hidden", "");
	make(&r, PLACE "/a\nb", "");
	say_short(&r, PB__DISPLAY_FILE__KIND__LIST, 0);
	is_told(&r, PB__DISPLAY_FILE__KIND__END, 0, NULL);
	say_short(&r, PB__DISPLAY_FILE__KIND__ACCEPT, DISPLAY_FILES_HIGH + 1);
	assert_null(told(&r));
	room_end(&r);
}

static void nothing_is_written_while_held(void **state)
{
	struct room r;

	room_begin(&r);
	display_files_hold(r.files, true);
	say(&r, PB__DISPLAY_FILE__KIND__OFFER, 1, "a", 3, NULL, 0);
	say(&r, PB__DISPLAY_FILE__KIND__DATA, 1, "", 0, "abc", 3);
	say_short(&r, PB__DISPLAY_FILE__KIND__END, 1);
	assert_null(told(&r));
	assert_int_equal(entries(&r, "tmp"), 0);
	for (unsigned i = 0; i < 100000; i++)
		say(&r, PB__DISPLAY_FILE__KIND__OFFER, 2 + i, "more than is kept", 3, NULL, 0);
	display_files_hold(r.files, false);
	has(&r, "a", "abc");
	room_end(&r);
}

/* Of as many files as may come at a time, what may be ahead of an acknowledgement. */
static void all_that_is_ahead_is_kept(void **state)
{
	static uint8_t piece[32 << 10];
	struct room r;

	room_begin(&r);
	for (unsigned i = 0; i < DISPLAY_FILES_AT_A_TIME; i++) {
		say(&r, PB__DISPLAY_FILE__KIND__OFFER, 1000 + i, "a", DISPLAY_FILES_AHEAD, NULL, 0);
		is_told(&r, PB__DISPLAY_FILE__KIND__ACCEPT, 1000 + i, NULL);
	}
	display_files_hold(r.files, true);
	for (unsigned at = 0; at < DISPLAY_FILES_AHEAD; at += sizeof(piece))
		for (unsigned i = 0; i < DISPLAY_FILES_AT_A_TIME; i++)
			say(&r, PB__DISPLAY_FILE__KIND__DATA, 1000 + i, "", at, piece,
				sizeof(piece));
	for (unsigned i = 0; i < DISPLAY_FILES_AT_A_TIME; i++)
		say_short(&r, PB__DISPLAY_FILE__KIND__END, 1000 + i);
	display_files_hold(r.files, false);
	for (unsigned i = 0; i < DISPLAY_FILES_AT_A_TIME; i++)
		is_told(&r, PB__DISPLAY_FILE__KIND__END, 1000 + i, NULL);
	assert_int_equal(entries(&r, PLACE), DISPLAY_FILES_AT_A_TIME);
	room_end(&r);
}

static void lists_that_nobody_reads(void **state)
{
	char path[64];
	struct room r;

	room_begin(&r);
	assert_int_equal(mkdirat(r.dir, PLACE, 0700), 0);
	for (int i = 0; i < DISPLAY_FILES_LIST + 50; i++) {
		snprintf(path, sizeof(path), PLACE "/%d", i);
		make(&r, path, "");
	}
	for (int i = 0; i < 1000; i++)
		say_short(&r, PB__DISPLAY_FILE__KIND__LIST, 0);
	display_files_put(r.files, &r.out, true);
	assert_true(r.out.len > 0 && r.out.len < 400000);
	room_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_one_component),
		cmocka_unit_test(files_come_and_go),
		cmocka_unit_test(what_is_not_whole_leaves_nothing),
		cmocka_unit_test(nothing_leads_out),
		cmocka_unit_test(nothing_is_written_while_held),
		cmocka_unit_test(all_that_is_ahead_is_kept),
		cmocka_unit_test(lists_that_nobody_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

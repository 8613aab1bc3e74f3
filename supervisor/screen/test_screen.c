// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a display server is told, and when.  It is this program again: it
 * writes down each word, and obeys.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/base.h"
#include "display/display.h"
#include "proto/control.pb-c.h"
#include "supervisor/programs.h"
#include "supervisor/screen/screen.h"
#include "supervisor/screen/server.h"
#include "supervisor/session.h"

#define WORDS	    "words" /* below files/ */
#define PATIENCE_NS 30000000000ull

int __wrap_programs_open(const char *name, struct err *e);

int __wrap_programs_open(const char *name, struct err *e)
{
	assert_string_equal(name, PROGRAMS_DISPLAY);
	return open("/proc/self/exe", O_PATH | O_CLOEXEC);
}

/* ---- the display server ---------------------------------------------------------------------- */

static int serve(void)
{
	int log =
		openat(SCREEN_SERVER_FILES, WORDS, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	char word, answer;

	while (recv(DISPLAY_SERVE_CONTROL, &word, 1, 0) == 1) {
		answer = word == DISPLAY_SERVE_LET_GO ? DISPLAY_SERVE_GONE : DISPLAY_SERVE_TAKEN;
		if (write(log, &word, 1) != 1)
			return 1;
		if (word != DISPLAY_SERVE_LET_GO && word != DISPLAY_SERVE_TAKE_UP)
			continue;
		if (send(DISPLAY_SERVE_CONTROL, &answer, 1, MSG_NOSIGNAL) != 1)
			return 1;
	}
	return 0;
}

/* ---- a session, as far as its display goes --------------------------------------------------- */

struct room {
	char path[64], files[80];
	int dir;
	Pb__Display display;
	Pb__Config config;
	Pb__Record record;
	struct session s;
};

static void room_begin(struct room *r)
{
	snprintf(r->path, sizeof(r->path), "/tmp/podrun-screen-XXXXXX");
	assert_non_null(mkdtemp(r->path));
	snprintf(r->files, sizeof(r->files), "%s/files", r->path);
	assert_int_equal(mkdir(r->files, 0700), 0);
	r->dir = open(r->files, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(r->dir, "shm", 0700), 0);
	pb__display__init(&r->display);
	pb__config__init(&r->config);
	pb__record__init(&r->record);
	r->display.server = 2;
	r->display.sound = PB__DISPLAY__SOUND__NONE;
	r->config.display = &r->display;
	r->config.name = (char *)"s";
	r->record.config = &r->config;
	r->s.record = &r->record;
	r->s.dir = r->s.runtime = r->path;
	r->s.rewrite = true;
	r->s.state = SESSION_RUNNING;
	r->s.loop = event_base_new();
	assert_non_null(r->s.loop);
}

static void room_end(struct room *r)
{
	screen_free(&r->s);
	event_base_free(r->s.loop);
	close(r->dir);
	assert_int_equal(io_rm_rf(AT_FDCWD, r->path), 0);
}

/* Goes on until the display server has been told just @words. */
static void until_told(struct room *r, const char *words)
{
	uint64_t end = io_now_ns() + PATIENCE_NS;
	const struct timeval soon = {.tv_usec = 10000};
	_cleanup_buf_ struct buf b = BUF_INIT;

	do {
		event_base_loopexit(r->s.loop, &soon);
		event_base_dispatch(r->s.loop);
		buf_clear(&b);
		io_read_file(r->dir, WORDS, 64, &b);
	} while (io_now_ns() < end && (b.len != strlen(words) || memcmp(b.data, words, b.len)));
	assert_string_equal(buf_cstr(&b), words);
}

static void on_let_go(struct session *s)
{
	fail();
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* The freeze was given up before the answer has come. */
static void taken_up_again_after_a_freeze_that_was_given_up(void **state)
{
	struct room r = {0};

	room_begin(&r);
	screen_resume(&r.s);
	until_told(&r, "T");
	r.s.state = SESSION_FREEZING;
	assert_int_equal(screen_let_go(&r.s, on_let_go), 1);
	r.s.state = SESSION_RUNNING;
	screen_take_up(&r.s);
	until_told(&r, "TLT");
	room_end(&r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken_up_again_after_a_freeze_that_was_given_up),
	};

	if (argc > 1 && strcmp(argv[1], "display") == 0)
		return serve();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

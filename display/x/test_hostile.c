// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The X server is the session's: here it says to have sent more than it has.  A child plays it,
 * and answers what it is asked: by a table for those requests that matter, else with zeros.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/source.h"
#include "display/x/clipboard.h"
#include "display/x/cursor.h"
#include "display/x/patience.h"
#include "display/x/reach.h"
#include "display/x/screen.h"
#include "display/x/x.h"

#define NUMBER	     7
#define FIRST_EVENT  80
#define MAJOR	     140 /* of every extension */
#define MAX_REQUEST  4096
#define HIDDEN_MODES 60000
#define PATIENCE_MS  30000
#define SHORT_MS     100
#define MUTE	     255 /* roots: no greeting */

enum {
	INTERN_ATOM = 16,
	ATOM_NAME = 17,
	GET_PROPERTY = 20,
	SELECTION_OWNER = 23,
	QUERY_EXTENSION = 98
};
enum { RANDR_RESOURCES = 8, RANDR_CREATE_MODE = 16, RANDR_CRTC_INFO = 20 };

struct room {
	char path[64];
	int dir;
	pid_t server;
};

/* ---- the X server ---------------------------------------------------------------------------- */

static void say(int fd, const void *data, size_t n)
{
	if (write(fd, data, n) != (ssize_t)n)
		_exit(1);
}

static void hear(int fd, void *data, size_t n)
{
	if (io_read_full(fd, data, n) != (ssize_t)n)
		_exit(0);
}

static void greet(int fd, unsigned roots)
{
	struct {
		xcb_setup_t setup;
		xcb_screen_t screen;
	} all = {.setup = {.status = 1,
			 .protocol_major_version = 11,
			 .length = (uint16_t)((sizeof(all) - 8) / 4),
			 .resource_id_base = 0x200000,
			 .resource_id_mask = 0x1fffff,
			 .maximum_request_length = 0xffff,
			 .roots_len = (uint8_t)roots,
			 .min_keycode = 8,
			 .max_keycode = 255},
		.screen = {.root = 0x100}};
	uint8_t hello[12], auth[64];

	hear(fd, hello, sizeof(hello));
	hear(fd, auth, (size_t)(hello[6] + 3) / 4 * 4 + (size_t)(hello[8] + 3) / 4 * 4);
	say(fd, &all, sizeof(all));
}

/* A reply's first 32 bytes; what follows them is @more bytes of letters. */
static void reply(int fd, uint8_t head[32], uint16_t sequence, uint32_t more)
{
	uint8_t letters[64];

	memset(letters, 'a', sizeof(letters));
	head[0] = 1;
	memcpy(head + 2, &sequence, 2);
	more /= 4;
	memcpy(head + 4, &more, 4);
	say(fd, head, 32);
	say(fd, letters, (size_t)more * 4);
}

/* What is asked behind the modes is answered, too: who believes in them is to go on with them. */
static void answer_randr(int fd, uint8_t minor, uint16_t sequence)
{
	uint8_t head[32] = {0};
	const uint16_t one = 1, many = HIDDEN_MODES;

	if (minor == RANDR_RESOURCES) {
		memcpy(head + 16, &one, 2);
		memcpy(head + 18, &one, 2);
		memcpy(head + 20, &many, 2);
		reply(fd, head, sequence, 8);
	} else if (minor == RANDR_CRTC_INFO || minor == RANDR_CREATE_MODE) {
		reply(fd, head, sequence, 0);
	}
}

static void answer(int fd, const uint8_t *request, uint16_t sequence)
{
	uint8_t head[32] = {0};
	const uint32_t atom = sequence + 100u, much = 65536;

	switch (request[0]) {
	case INTERN_ATOM:
		memcpy(head + 8, &atom, 4);
		reply(fd, head, sequence, 0);
		break;
	case ATOM_NAME:
		head[0] = 1;
		memcpy(head + 2, &sequence, 2);
		memcpy(head + 4, &much, 4);
		say(fd, head, sizeof(head));
		break;
	case GET_PROPERTY:
		head[1] = 8;
		memcpy(head + 8, &atom, 4);
		memcpy(head + 16, &much, 4);
		reply(fd, head, sequence, 4);
		break;
	case SELECTION_OWNER:
		reply(fd, head, sequence, 0);
		break;
	case QUERY_EXTENSION:
		head[8] = memcmp(request + 8, "BIG-REQUESTS", 12) != 0;
		head[9] = MAJOR;
		head[10] = FIRST_EVENT;
		reply(fd, head, sequence, 0);
		break;
	case MAJOR:
		answer_randr(fd, request[1], sequence);
		break;
	default:
		break;
	}
}

static _Noreturn void serve(int listener, unsigned roots)
{
	int fd = accept(listener, NULL, NULL);
	uint8_t request[MAX_REQUEST];
	uint16_t len;

	while (roots == MUTE)
		pause();
	greet(fd, roots);
	for (uint16_t sequence = 1;; sequence++) {
		hear(fd, request, 4);
		memcpy(&len, request + 2, 2);
		if (!len || len * 4u > sizeof(request))
			_exit(1);
		hear(fd, request + 4, len * 4u - 4);
		answer(fd, request, sequence);
	}
}

/* ---- the session's files --------------------------------------------------------------------- */

static struct room room_new(unsigned roots)
{
	struct room r = {.path = "/tmp/podrun-x-XXXXXX"};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint8_t cookie[32] = {0};
	char path[sizeof(a.sun_path)];

	assert_non_null(mkdtemp(r.path));
	r.dir = open(r.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(io_mkdir_p(r.dir, "run/podrun-display", 0700), 0);
	assert_int_equal(io_mkdir_p(r.dir, "tmp/.X11-unix", 0700), 0);
	assert_int_equal(
		io_write_file(r.dir, "run/" DISPLAY_AUTHORITY, cookie, sizeof(cookie), 0600), 0);
	snprintf(path, sizeof(path), "%s/tmp/.X11-unix/X%d", r.path, NUMBER);
	memcpy(a.sun_path, path, sizeof(path));
	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, 1), 0);
	r.server = fork();
	if (r.server == 0)
		serve(listener, roots);
	close(listener);
	return r;
}

static void room_free(struct room *r)
{
	static const char *const files[] = {"run/" DISPLAY_AUTHORITY, "tmp/.X11-unix/X7"};
	static const char *const dirs[] = {"run/podrun-display", "run", "tmp/.X11-unix", "tmp"};

	kill(r->server, SIGKILL);
	waitpid(r->server, NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		unlinkat(r->dir, files[i], 0);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		unlinkat(r->dir, dirs[i], AT_REMOVEDIR);
	close(r->dir);
	rmdir(r->path);
}

static xcb_connection_t *reach(const struct room *r)
{
	xcb_connection_t *c = NULL;
	struct err e = {0};

	assert_int_equal(display_x_reach(r->dir, NUMBER, PATIENCE_MS, &c, &e), 0);
	return c;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_greeting_without_a_screen(void **state)
{
	struct room r = room_new(0);
	xcb_connection_t *c = NULL;
	struct err e = {0};

	assert_int_equal(display_x_reach(r.dir, NUMBER, PATIENCE_MS, &c, &e), -EBADMSG);
	room_free(&r);
}

static void modes_that_were_not_sent(void **state)
{
	struct room r = room_new(1);
	xcb_connection_t *c = reach(&r);
	struct err e = {0};

	assert_int_equal(display_x_screen_resize(c, 0x100, 640, 480, &e), -EBADMSG);
	xcb_disconnect(c);
	room_free(&r);
}

static void a_server_that_says_nothing(void **state)
{
	struct room r = room_new(MUTE);
	xcb_connection_t *c = NULL;
	struct err e = {0};

	assert_int_equal(display_x_reach(r.dir, NUMBER, SHORT_MS, &c, &e), -ETIMEDOUT);
	room_free(&r);
}

/* It is told that there is much of it, and no more is said. */
static void a_reply_that_does_not_end(void **state)
{
	struct room r = room_new(1);
	xcb_connection_t *c = reach(&r);

	display_x_patience_begin(xcb_get_file_descriptor(c), SHORT_MS);
	assert_null(xcb_get_atom_name_reply(c, xcb_get_atom_name(c, XCB_ATOM_STRING), NULL));
	assert_true(display_x_patience_end());
	assert_int_not_equal(xcb_connection_has_error(c), 0);
	xcb_disconnect(c);
	room_free(&r);
}

static void on_text(void *arg, const char *text, size_t len)
{
	++*(unsigned *)arg;
}

static void a_clipboard_that_was_not_sent(void **state)
{
	unsigned texts = 0;
	struct display_x_clipboard b = {.text = on_text, .arg = &texts};
	struct room r = room_new(1);
	xcb_connection_t *c = reach(&r);
	xcb_selection_notify_event_t n = {.response_type = XCB_SELECTION_NOTIFY};
	struct err e = {0};

	assert_int_equal(display_x_clipboard_open(&b, c, &e), 0);
	n.requestor = b.window;
	n.property = b.atoms[DISPLAY_X_PROPERTY];
	assert_true(display_x_clipboard_event(&b, (const void *)&n));
	assert_int_equal(xcb_connection_has_error(c), 0);
	assert_int_equal(texts, 0);
	display_x_clipboard_fini(&b);
	xcb_disconnect(c);
	room_free(&r);
}

/* Behind the reply there are other things of ours. */
static void a_cursor_that_was_not_sent(void **state)
{
	struct {
		xcb_xfixes_get_cursor_image_reply_t reply;
		uint32_t pixels[16];
	} all = {.reply = {.width = 4, .height = 4, .length = 15}};
	struct display_cursor cursor;
	struct buf b = BUF_INIT;

	memset(all.pixels, 0xff, sizeof(all.pixels));
	display_x_cursor_take(&all.reply, &b, &cursor);
	assert_null(cursor.rgba);
	all.reply.length = 16;
	display_x_cursor_take(&all.reply, &b, &cursor);
	assert_non_null(cursor.rgba);
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_greeting_without_a_screen),
		cmocka_unit_test(modes_that_were_not_sent),
		cmocka_unit_test(a_server_that_says_nothing),
		cmocka_unit_test(a_reply_that_does_not_end),
		cmocka_unit_test(a_clipboard_that_was_not_sent),
		cmocka_unit_test(a_cursor_that_was_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The line to a server that says welcome, and reads nothing from then on. */
#include "display/viewer/native_line.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/viewer/native_sound.h"
#include "proto/display.pb-c.h"

#define TEXT  (1u << 20)
#define TEXTS 16

struct window {
	pthread_mutex_t lock;
	pthread_cond_t woken;
	unsigned n;
};

static void wake(void *ctx)
{
	struct window *w = ctx;

	pthread_mutex_lock(&w->lock);
	w->n++;
	pthread_cond_signal(&w->woken);
	pthread_mutex_unlock(&w->lock);
}

/*
 * Until a line has begun: its welcome takes the notice of the one before away, by an empty
 * one.  That there is no line for a moment may be over before anybody has looked.
 */
static void until_welcome(struct window *w, struct native_line *l)
{
	bool welcome = false;

	pthread_mutex_lock(&w->lock);
	while (!welcome) {
		struct native_news news;

		while (!w->n)
			pthread_cond_wait(&w->woken, &w->lock);
		w->n = 0;
		pthread_mutex_unlock(&w->lock);
		native_line_lock(l, &news);
		native_line_unlock(l);
		welcome = news.connected && news.notice;
		free(news.clipboard);
		free(news.notice);
		free(news.title);
		free(news.cursor_pixels);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
}

static void write_welcome(char path[])
{
	Pb__DisplayWelcome p = PB__DISPLAY_WELCOME__INIT;
	struct display_message m = {.type = DISPLAY_WELCOME};
	_cleanup_buf_ struct buf b = BUF_INIT;
	uint8_t bytes[64];
	int fd = mkstemp(path);

	p.version = DISPLAY_VERSION;
	p.width = p.height = 8;
	m.data = (struct display_bytes){bytes, pb__display_welcome__pack(&p, bytes)};
	display_wire_put(&b, &m);
	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, b.data, b.len), 0);
	close(fd);
}

/* The window goes on, and when too much waits another line is tried. */
static void a_server_that_reads_nothing(void **state)
{
	static uint8_t text[TEXT];
	char path[] = "/tmp/podrun-line-XXXXXX";
	char *const command[] = {(char *)"sh", (char *)"-c",
		(char *)"cat \"$1\"; exec tail --pid=$PPID -f /dev/null > /dev/null", (char *)"sh",
		path, NULL};
	struct window w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
	const struct display_viewer_wish wish = {.name = "test"};
	const struct display_message m = {
		.type = DISPLAY_CLIPBOARD_IN, .data = {text, sizeof(text)}};
	struct native_line *l;
	struct err e = {0};

	memset(text, 'x', sizeof(text));
	write_welcome(path);
	assert_int_equal(native_line_start(&l, command, &wish, NULL, wake, &w, &e), 0);
	until_welcome(&w, l);
	for (int i = 0; i < TEXTS; i++)
		native_line_send(l, &m);
	until_welcome(&w, l);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_reads_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * One libevent loop: the listener hands connections to the server, the supervisor's packets are a
 * table of words.  When the supervisor's end is closed, everything ends: without a supervisor there
 * is no session.
 */
#include "display/serve.h"

#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "display/server.h"
#include "display/sound.h"

struct serve {
	struct event_base *base;
	struct display_server *server;
	struct display_sound *sound; /* NULL: none */
	int listener, control;
	char *name; /* NULL: that of the options */
};

static void answer(struct serve *s, enum display_serve_word word, const char *text)
{
	char packet[1 + DISPLAY_SERVE_TEXT];
	size_t n = MIN(strlen(text), (size_t)DISPLAY_SERVE_TEXT);

	packet[0] = (char)word;
	memcpy(packet + 1, text, n);
	if (send(s->control, packet, 1 + n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_warn("display: the supervisor can't be told '%c': %s", word, strerror(errno));
}

static void let_go(struct serve *s, const char *text)
{
	display_server_let_go(s->server);
	if (s->sound)
		display_sound_let_go(s->sound);
	answer(s, DISPLAY_SERVE_GONE, "");
}

static void take_up(struct serve *s, const char *text)
{
	struct err e = {0};

	if (display_server_take_up(s->server, &e) < 0) {
		answer(s, DISPLAY_SERVE_FAILED, e.msg);
		return;
	}
	if (s->sound)
		display_sound_take_up(s->sound);
	answer(s, DISPLAY_SERVE_TAKEN, "");
}

static void renamed(struct serve *s, const char *text)
{
	char *name = strdup(text), *before = s->name;

	if (!name)
		return;
	s->name = name;
	display_server_rename(s->server, name);
	free(before);
}

static void ended(struct serve *s, const char *text)
{
	display_server_tell(s->server, DISPLAY_STATE_ENDED, text);
	display_server_finish(s->server);
}

static const struct word {
	enum display_serve_word word;
	void (*handle)(struct serve *s, const char *text); /* or NULL: viewers are told */
	enum display_state state;
} words[] = {
	{DISPLAY_SERVE_LET_GO, let_go, 0},
	{DISPLAY_SERVE_TAKE_UP, take_up, 0},
	{DISPLAY_SERVE_RUNNING, NULL, DISPLAY_STATE_RUNNING},
	{DISPLAY_SERVE_PAUSED, NULL, DISPLAY_STATE_PAUSED},
	{DISPLAY_SERVE_SUSPENDED, NULL, DISPLAY_STATE_SUSPENDED},
	{DISPLAY_SERVE_MOVED, NULL, DISPLAY_STATE_MOVED},
	{DISPLAY_SERVE_RENAMED, renamed, 0},
	{DISPLAY_SERVE_ENDED, ended, 0},
};

static void on_control(evutil_socket_t fd, short what, void *arg)
{
	struct serve *s = arg;
	char packet[1 + DISPLAY_SERVE_TEXT + 1];
	ssize_t n = recv(fd, packet, sizeof(packet) - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		event_base_loopbreak(s->base);
		return;
	}
	packet[n] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (packet[0] != (char)words[i].word)
			continue;
		if (words[i].handle)
			words[i].handle(s, packet + 1);
		else
			display_server_tell(s->server, words[i].state, packet + 1);
	}
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
	struct serve *s = arg;
	int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int r;

	if (conn < 0)
		return;
	r = display_server_add(s->server, conn);
	if (r < 0)
		log_warn("display: a viewer was refused: %s", strerror(-r));
}

static void on_lost(void *arg)
{
	answer(arg, DISPLAY_SERVE_LOST, "");
}

static void on_listened(void *arg, bool anybody)
{
	struct serve *s = arg;

	if (s->sound)
		display_sound_listen(s->sound, anybody);
}

static void on_packet(void *arg, uint64_t us, const void *packet, size_t len)
{
	struct serve *s = arg;

	display_server_audio(s->server, us, packet, len);
}

static void on_finished(void *arg)
{
	struct serve *s = arg;

	event_base_loopbreak(s->base);
}

static int loop(struct serve *s, struct err *e)
{
	struct event *control = event_new(s->base, s->control, EV_READ | EV_PERSIST, on_control, s);
	struct event *listener =
		event_new(s->base, s->listener, EV_READ | EV_PERSIST, on_connection, s);
	int r = 0;

	if (!control || !listener || event_add(control, NULL) < 0 ||
		event_add(listener, NULL) < 0 || event_base_dispatch(s->base) < 0)
		r = err_errno(e, -ENOMEM, "display server");
	if (control)
		event_free(control);
	if (listener)
		event_free(listener);
	return r;
}

int display_serve(
	const struct display_serve_options *o, struct display_source *source, struct err *e)
{
	static const struct display_server_ops ops = {
		.lost = on_lost, .listened = on_listened, .finished = on_finished};
	struct serve s = {.base = event_base_new(), .listener = o->listener, .control = o->control};
	int r;

	signal(SIGPIPE, SIG_IGN);
	if (!s.base || io_set_nonblock(s.listener, true) < 0) {
		r = err_errno(e, -ENOMEM, "display server");
		source->ops->destroy(source);
	} else {
		r = display_server_new(s.base, source, o->name, &ops, &s, &s.server, e);
		if (r < 0)
			source->ops->destroy(source);
	}
	if (r == 0 && o->shm >= 0 && display_sound_new(s.base, o->shm, on_packet, &s, &s.sound) < 0)
		log_warn("display: no memory for sound");
	if (r == 0 && o->files >= 0)
		display_server_share(s.server, o->files);
	if (r == 0)
		r = loop(&s, e);
	display_server_free(s.server);
	free(s.name);
	display_sound_free(s.sound);
	if (s.base)
		event_base_free(s.base);
	close_fd(s.listener);
	close_fd(s.control);
	close_fd(o->shm);
	close_fd(o->files);
	return r;
}

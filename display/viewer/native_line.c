// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The line's thread waits for the socket; both threads send, and neither ever waits for that: what
 * does not fit is kept, and goes when there is room.  A server that reads nothing for so long that
 * more than OUT_MAX is kept is left, and another line is tried; with its connection all keys come
 * up.
 */
#include "display/viewer/native_line.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "display/viewer/greet.h"
#include "display/viewer/native_sound.h"
#include "proto/display.pb-c.h"

#define PIECE	 (64u << 10) /* bytes */
#define FIRST_MS 200	     /* until it is tried again */
#define LAST_MS	 5000
#define OUT_MAX	 (4u << 20) /* bytes that wait to be sent: some texts as long as they may be */

struct native_line {
	char *const *command;
	struct display_viewer_wish wish;
	struct native_sound *sound;
	void (*wake)(void *ctx);
	void *ctx;

	pthread_mutex_t lock; /* of what follows */
	struct display_decoder *decoder;
	struct native_news news;
	bool remarked;	/* the last notice was about what had been copied, not the session's state */
	bool told;	/* the window's thread has been woken, and has not looked yet */
	int sock;	/* -1: no line */
	struct buf out; /* to be sent */
	int more;	/* an eventfd: there is something in `out` */
};

/* ---- what comes, with the lock held */

static void changed(void *ctx, const struct display_rect *r)
{
	struct display_rect *all = &((struct native_line *)ctx)->news.changed;
	int x, y;

	if (!all->w) {
		*all = *r;
		return;
	}
	x = MAX(all->x + all->w, r->x + r->w);
	y = MAX(all->y + all->h, r->y + r->h);
	all->x = MIN(all->x, r->x);
	all->y = MIN(all->y, r->y);
	all->w = x - all->x;
	all->h = y - all->y;
}

static void resized(void *ctx, int width, int height)
{
	struct native_news *n = &((struct native_line *)ctx)->news;

	n->resized = true;
	n->changed = (struct display_rect){0, 0, width, height};
}

static void take_text(char **to, const void *data, size_t len)
{
	free(*to);
	*to = strndup(data, len);
}

static void take_cursor(struct native_news *n, const struct display_message *m)
{
	free(n->cursor_pixels);
	n->cursor_pixels = malloc(m->data.len + 1);
	if (!n->cursor_pixels)
		return;
	memcpy(n->cursor_pixels, m->data.data, m->data.len);
	n->cursor = true;
	n->hot_x = m->cursor.hot_x;
	n->hot_y = m->cursor.hot_y;
	n->cursor_w = m->cursor.w;
	n->cursor_h = m->cursor.h;
}

static void take_notice(struct native_line *l, const struct display_message *m)
{
	struct native_news *n = &l->news;
	static const char *const kinds[] = {"", "paused", "suspended", "moved", "ended", "refused"};
	Pb__DisplayNotice *p = pb__display_notice__unpack(NULL, m->data.len, m->data.data);
	const char *kind;

	if (!p)
		return;
	kind = (size_t)p->kind < ARRAY_SIZE(kinds) ? kinds[p->kind] : "";
	free(n->notice);
	if (asprintf(&n->notice, "%s%s%s", kind, kind[0] && p->text[0] ? ": " : "", p->text) < 0)
		n->notice = NULL;
	l->remarked = p->kind == PB__DISPLAY_NOTICE__KIND__RUNNING && p->text[0];
	if (p->name[0])
		take_text(&n->title, p->name, strlen(p->name));
	pb__display_notice__free_unpacked(p, NULL);
}

static void take_welcome(struct native_news *n, const struct display_message *m)
{
	Pb__DisplayWelcome *p = pb__display_welcome__unpack(NULL, m->data.len, m->data.data);

	if (!p)
		return;
	take_text(&n->title, p->session, strlen(p->session));
	take_text(&n->notice, "", 0);
	n->connected = true;
	pb__display_welcome__free_unpacked(p, NULL);
}

static void message(void *ctx, const struct display_message *m)
{
	struct native_line *l = ctx;
	struct display_message ack = {.type = DISPLAY_ACK};

	switch (m->type) {
	case DISPLAY_UPDATED:
	case DISPLAY_MARK:
		ack.serial = m->serial;
		display_wire_put(&l->out, &ack);
		break;
	case DISPLAY_CURSOR:
		take_cursor(&l->news, m);
		break;
	case DISPLAY_CLIPBOARD:
		take_text(&l->news.clipboard, m->data.data, m->data.len);
		if (l->remarked)
			take_text(&l->news.notice, "", 0);
		l->remarked = false;
		break;
	case DISPLAY_AUDIO:
		native_sound_play(l->sound, m->data.data, m->data.len);
		break;
	case DISPLAY_NOTICE:
		take_notice(l, m);
		break;
	case DISPLAY_WELCOME:
		take_welcome(&l->news, m);
		break;
	default:
		break;
	}
}

static const struct display_decoder_ops ops = {changed, resized, message};

/* ---- the thread */

static void tell(struct native_line *l)
{
	bool told = l->told;

	l->told = true;
	pthread_mutex_unlock(&l->lock);
	if (!told)
		l->wake(l->ctx);
}

/* As much as there is room for, with the lock held.  0 or -errno. */
static int flush(struct native_line *l)
{
	if (buf_error(&l->out) < 0 || l->out.len > OUT_MAX)
		return -ENOBUFS;
	while (l->out.len) {
		ssize_t n = send(l->sock, l->out.data, l->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		buf_consume(&l->out, (size_t)n);
	}
	return 0;
}

/* A new picture's decoder; false without memory. */
static bool begin(struct native_line *l, int sock)
{
	struct display_decoder *fresh;

	if (display_decoder_new(&ops, l, &fresh) < 0)
		return false;
	pthread_mutex_lock(&l->lock);
	display_decoder_free(l->decoder);
	l->decoder = fresh;
	l->sock = sock;
	buf_fini(&l->out);
	l->out = BUF_INIT;
	pthread_mutex_unlock(&l->lock);
	return true;
}

/* Bytes that have come, 0 at the end, negative if there is something to be sent. */
static ssize_t await(struct native_line *l, int sock, uint8_t *piece)
{
	struct pollfd all[] = {{sock, POLLIN, 0}, {l->more, POLLIN, 0}};
	eventfd_t ignored;
	ssize_t n;

	pthread_mutex_lock(&l->lock);
	if (l->out.len)
		all[0].events |= POLLOUT;
	pthread_mutex_unlock(&l->lock);
	poll(all, ARRAY_SIZE(all), -1);
	if (all[1].revents)
		eventfd_read(l->more, &ignored);
	n = recv(sock, piece, PIECE, MSG_DONTWAIT);
	return n < 0 && errno != EAGAIN && errno != EINTR ? 0 : n;
}

/* Until it ends.  True if it was a good one. */
static bool follow(struct native_line *l, int sock)
{
	_cleanup_free_ uint8_t *piece = malloc(PIECE);
	bool good = false;
	int r = 0;

	if (!piece || !begin(l, sock) || display_viewer_greet(sock, &l->wish) < 0)
		return false;
	while (r == 0) {
		ssize_t n = await(l, sock, piece);
		struct err e = {0};

		if (n == 0)
			break;
		pthread_mutex_lock(&l->lock);
		if (n > 0)
			r = display_decoder_feed(l->decoder, piece, (size_t)n, &e);
		if (r == 0)
			r = flush(l);
		if (n < 0) {
			pthread_mutex_unlock(&l->lock);
			continue;
		}
		tell(l);
		good = true;
	}
	return good;
}

static pid_t start(char *const command[], int *ret_sock)
{
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		signal(SIGPIPE, SIG_DFL);
		if (dup2(pair[1], STDIN_FILENO) >= 0 && dup2(pair[1], STDOUT_FILENO) >= 0)
			execvp(command[0], command);
		_exit(127);
	}
	close(pair[1]);
	*ret_sock = pair[0];
	return child;
}

static void *live(void *arg)
{
	struct native_line *l = arg;
	int pause = FIRST_MS;

	for (;;) {
		int sock = -1;
		pid_t child = start(l->command, &sock);
		struct timespec nap;

		if (child > 0 && follow(l, sock))
			pause = FIRST_MS;
		pthread_mutex_lock(&l->lock);
		l->sock = -1;
		l->news.connected = false;
		tell(l);
		close_fd(sock);
		/* It may be writing to somebody who doesn't read. */
		if (child > 0 && kill(child, SIGTERM) == 0)
			waitpid(child, NULL, 0);
		nap = (struct timespec){pause / 1000, pause % 1000 * 1000000L};
		nanosleep(&nap, NULL);
		pause = MIN(pause * 2, LAST_MS);
	}
	return NULL;
}

/* ---- for the window's thread */

int native_line_start(struct native_line **ret, char *const command[],
	const struct display_viewer_wish *wish, struct native_sound *sound, void (*wake)(void *ctx),
	void *ctx, struct err *e)
{
	struct native_line *l = calloc(1, sizeof(*l));
	pthread_t thread;

	if (!l || display_decoder_new(&ops, l, &l->decoder) < 0) {
		free(l);
		return err_errno(e, -ENOMEM, "memory");
	}
	*l = (struct native_line){command, *wish, sound, wake, ctx, PTHREAD_MUTEX_INITIALIZER,
		l->decoder, .sock = -1, .out = BUF_INIT,
		.more = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	l->wish.audio = sound != NULL;
	signal(SIGPIPE, SIG_IGN);
	if (l->more < 0 || pthread_create(&thread, NULL, live, l) != 0) {
		close_fd(l->more);
		display_decoder_free(l->decoder);
		free(l);
		return err_errno(e, -EAGAIN, "thread");
	}
	pthread_detach(thread);
	*ret = l;
	return 0;
}

const struct display_frame *native_line_lock(struct native_line *l, struct native_news *ret)
{
	pthread_mutex_lock(&l->lock);
	*ret = l->news;
	l->news = (struct native_news){.connected = ret->connected};
	l->told = false;
	return display_decoder_frame(l->decoder);
}

void native_line_unlock(struct native_line *l)
{
	pthread_mutex_unlock(&l->lock);
}

void native_line_send(struct native_line *l, const struct display_message *m)
{
	pthread_mutex_lock(&l->lock);
	if (l->sock >= 0) {
		display_wire_put(&l->out, m);
		/* The other thread sees what has become of it. */
		if (flush(l) < 0 || l->out.len)
			eventfd_write(l->more, 1);
	}
	pthread_mutex_unlock(&l->lock);
}

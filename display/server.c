// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      source: damaged --> (a timer) --> update: damage, frame -> commands --> each peer's queue
 *
 * An update is made at once when there has been none for a while, and else not before GAP_NS, or
 * as long as the last one took, has passed since: a source that changes all the time gets half of
 * a processor at most, and a key is answered without delay.  Near input the gap is shorter.
 * Without a viewer the source isn't looked at, and the source does not say all that is drawn
 * meanwhile (damaged is told once): all of the picture is compared when one comes.
 *
 * The frame that viewers have is the update's *shadow*, and everything that is sent is read from
 * it.  A viewer that comes gets all of it as commands, later the same ones as all others.
 *
 * Who looks where: a viewer's last click or movement is watched for (display_queue_watch), and
 * after a key the place where the last small change behind a key was, the caret.
 *
 * Each viewer's keys and buttons that are down are known, and come up when it is gone, but for what
 * another one holds as well.  Keys come up also before the session is let go.  Buttons don't, for
 * then something would be dropped; what has become of them is told when it is taken up.
 */
#include "display/server.h"

#include <event2/event.h>
#include <string.h>

#include "base/base.h"
#include "display/files.h"
#include "display/classify.h"
#include "display/film.h"
#include "display/keys.h"
#include "display/peer.h"
#include "display/region.h"
#include "display/text.h"
#include "display/update.h"
#include "display/video.h"

#define GAP_NS	    12000000ull
#define GAP_NEAR_NS 3000000ull	  /* for as long as WATCH_NS behind input */
#define AGAIN_NS    1000000000ull /* without memory for a picture, it is tried again then */
#define WATCH_NS    500000000ull  /* a place is watched for so long */
#define CARET_NS    100000000ull  /* behind a key something may be its answer */
#define CARET_SIDE  96		  /* pixels: what is larger is no caret */
#define WATCH_SIDE  64		  /* pixels around the pointer */
#define RESIZE_MS   50		  /* the last of several wishes counts */
#define MOVES	    16
#define TOO_LONG    "What was copied in the session is longer than 1 MiB: its viewers do not have it."

struct viewer {
	struct display_server *server;
	struct display_peer *peer;
	struct display_files *files; /* NULL: it had nothing to do with any */
	struct display_keys keys;
	uint8_t buttons;
	uint64_t input_ns, key_ns;
	struct display_rect watched;
	struct viewer *next;
};

struct display_server {
	struct event_base *base;
	struct display_source *source;
	const struct display_server_ops *ops;
	void *arg;
	struct event *tick, *resize, *rests;
	struct display_world world;
	struct display_update *update; /* NULL: there is no picture yet */
	struct display_video *video;   /* likewise */
	struct viewer *viewers;
	size_t n_viewers;
	enum display_state state;
	bool damaged, attached, finishes, listened;
	uint64_t (*clock)(void);   /* of films */
	uint64_t last_ns, took_ns; /* of the last update */
	uint64_t input_ns;
	struct display_rect caret;	/* w of 0: unknown */
	int want_w, want_h, want_scale; /* 0: nothing is wished for */
	uint8_t buttons; /* as the source has them */
	int files;	 /* the session's own, O_PATH; -1: not shared */
};

/* The nearest of 0..@most. */
static int within(int n, int most)
{
	return n < 0 ? 0 : MIN(n, most);
}

/* A slot, whose message was made anew, has something to be told. */
static void tell_slot(struct display_server *s, enum display_slot slot, const void *from)
{
	struct buf *b = &s->world.slots[slot].message;

	if (buf_error(b)) {
		/* Not told: the next one is. */
		buf_fini(b);
		return;
	}
	s->world.slots[slot].version++;
	s->world.slots[slot].from = from;
	for (struct viewer *v = s->viewers; v; v = v->next)
		display_peer_kick(v->peer);
}

/* It has something new: @m, or what peers make themselves. */
static void set_slot(struct display_server *s, enum display_slot slot,
	const struct display_message *m, const void *from)
{
	struct buf *b = &s->world.slots[slot].message;

	buf_clear(b);
	if (m)
		display_wire_put(b, m);
	tell_slot(s, slot, from);
}

static void set_notice(struct display_server *s, enum display_slot slot, const char *text)
{
	struct buf *b = &s->world.slots[slot].message;

	buf_clear(b);
	display_notice_put(b, s->state, text, s->world.name);
	tell_slot(s, slot, NULL);
}

/* ---- updates ------------------------------------------------------------------------------- */

static void schedule(struct display_server *s)
{
	uint64_t now = io_now_ns(), gap = MAX(s->took_ns, GAP_NS), at;
	struct timeval t = {0};

	if (!s->n_viewers || event_pending(s->tick, EV_TIMEOUT, NULL))
		return;
	if (now - s->input_ns < WATCH_NS)
		gap = MAX(s->took_ns, GAP_NEAR_NS);
	at = s->last_ns + gap;
	if (at > now) {
		t.tv_sec = (time_t)((at - now) / 1000000000);
		t.tv_usec = (suseconds_t)((at - now) % 1000000000 / 1000);
	}
	event_add(s->tick, &t);
}

/* Where a viewer looks while an update is told. */
static void watch(
	struct display_server *s, struct viewer *v, pixman_region32_t *changed, uint64_t now)
{
	const pixman_box32_t *b = pixman_region32_extents(changed);
	struct display_rect r = display_rect_of(b);

	if (now - v->key_ns < CARET_NS && r.w > 0 && r.w <= CARET_SIDE && r.h <= CARET_SIDE) {
		s->caret = (struct display_rect){r.x - CARET_SIDE / 2, r.y - CARET_SIDE / 4,
			r.w + CARET_SIDE, r.h + CARET_SIDE / 2};
		v->watched = s->caret;
	}
	display_peer_watch(
		v->peer, now - v->input_ns < WATCH_NS && v->watched.w > 0 ? &v->watched : NULL);
}

/* What has changed where films play, as commands for those who are not shown films.  Or -ENOMEM. */
static int put_films(
	struct display_server *s, pixman_region32_t *changed, struct display_commands *out)
{
	pixman_region32_t part;
	bool all = true;
	int r;

	for (struct viewer *v = s->viewers; v; v = v->next)
		all = all && display_peer_shows_films(v->peer);
	if (all || !display_video_plays(s->video))
		return 0;
	pixman_region32_init(&part);
	display_region_intersect(&part, changed, display_video_region(s->video));
	r = display_classify(s->world.frame, &part, out);
	pixman_region32_fini(&part);
	return r;
}

static bool any_shows_films(const struct display_server *s)
{
	for (const struct viewer *v = s->viewers; v; v = v->next)
		if (display_peer_shows_films(v->peer))
			return true;
	return false;
}

/* Looks for films behind an update, or without one (NULL). */
static void look_for_films(struct display_server *s, const struct display_commands *c)
{
	const struct timeval t = {0, DISPLAY_VIDEO_LOOK_NS / 1000};

	if (!any_shows_films(s)) {
		if (!display_video_plays(s->video))
			return;
		display_video_forget(s->video);
	} else if (!display_video_look(s->video, s->clock(), s->world.frame, c)) {
		return;
	}
	display_update_leave(s->update, display_video_region(s->video));
	for (struct viewer *v = s->viewers; v; v = v->next)
		display_peer_films(v->peer);
	if (display_video_plays(s->video))
		event_add(s->rests, &t);
	else
		event_del(s->rests);
}

static void tell_all(struct display_server *s, const struct display_commands *c,
	pixman_region32_t *changed, uint64_t now)
{
	struct display_commands films = {0};
	const int r = put_films(s, changed, &films);

	display_video_change(s->video, s->clock(), changed);
	for (struct viewer *v = s->viewers; v; v = v->next) {
		watch(s, v, changed, now);
		display_peer_update(v->peer, c, &films, changed);
		/* Who isn't told of a film's place gets it with all else. */
		if (r < 0 && !display_peer_shows_films(v->peer))
			display_peer_everything(v->peer);
	}
	display_commands_fini(&films);
	look_for_films(s, c);
}

/* A film may have come to rest. */
static void on_rests(evutil_socket_t fd, short what, void *arg)
{
	struct display_server *s = arg;

	look_for_films(s, NULL);
}

/* The source's picture has a size that the shadow has not: begins anew.  0 or -ENOMEM. */
static int begin(struct display_server *s, const struct display_frame *now)
{
	struct display_video *video = display_video_new(now->width, now->height);
	struct display_update *u;
	int r = video ? display_update_new(now->width, now->height, &u) : -ENOMEM;

	if (r < 0) {
		display_video_free(video);
		return r;
	}
	display_update_free(s->update);
	display_video_free(s->video);
	s->update = u;
	s->video = video;
	s->world.films = display_video_films(video);
	s->world.frame = display_update_shadow(u);
	set_slot(s, DISPLAY_SLOT_SIZE, NULL, NULL);
	for (struct viewer *v = s->viewers; v; v = v->next)
		display_peer_resized(v->peer);
	return 0;
}

/*
 * There was no memory for an update, of which the source won't tell again.  If the shadow has it,
 * all of that is sent, by a command that takes no memory here; otherwise it is tried again later.
 */
static void make_up(struct display_server *s, bool has_it, uint64_t began)
{
	struct display_command all = {.type = DISPLAY_RAW, .hint = DISPLAY_PLAIN};
	const struct display_commands commands = {.list = &all, .n = 1};
	pixman_region32_t changed;

	log_warn("display: no memory for an update");
	if (!has_it) {
		s->damaged = true;
		return;
	}
	for (struct viewer *v = s->viewers; v; v = v->next)
		display_peer_forget_kept(v->peer);
	all.rect.w = s->world.frame->width;
	all.rect.h = s->world.frame->height;
	pixman_region32_init_rect(&changed, 0, 0, (unsigned)all.rect.w, (unsigned)all.rect.h);
	tell_all(s, &commands, &changed, began);
	pixman_region32_fini(&changed);
}

/* Brings the shadow to the source's picture - all of it, or where it says so - and tells all. */
static void run_update(struct display_server *s, bool whole)
{
	struct display_frame now = s->source->ops->frame(s->source);
	struct display_move moves[MOVES];
	struct display_cover covers[MOVES];
	struct display_commands commands = {0};
	pixman_region32_t damage, changed;
	uint64_t began = io_now_ns();
	size_t n = 0, n_covers;
	bool begun;
	int r = 0;

	if (now.width <= 0 || now.height <= 0)
		return;
	pixman_region32_init(&damage);
	pixman_region32_init(&changed);
	s->damaged = false;
	s->source->ops->damage(s->source, &damage);
	if (s->source->ops->moves)
		n = s->source->ops->moves(s->source, moves, MOVES);
	n_covers = s->source->ops->covers(s->source, covers, MOVES);
	now = s->source->ops->frame(s->source);
	if (!s->update || s->world.frame->width != now.width ||
		s->world.frame->height != now.height) {
		r = begin(s, &now);
		whole = true;
	}
	if (whole) {
		pixman_region32_fini(&damage);
		pixman_region32_init_rect(&damage, 0, 0, (unsigned)now.width, (unsigned)now.height);
	}
	begun = r == 0;
	if (begun) {
		display_update_cover(s->update, covers, n_covers);
		r = display_update_run(s->update, &now, &damage, moves, n, &commands, &changed);
	}
	if (r >= 0 && (pixman_region32_not_empty(&changed) || commands.n))
		tell_all(s, &commands, &changed, began);
	else if (r < 0)
		make_up(s, begun, began);
	display_commands_fini(&commands);
	pixman_region32_fini(&damage);
	pixman_region32_fini(&changed);
	s->last_ns = io_now_ns();
	s->took_ns = begun ? s->last_ns - began : AGAIN_NS;
	if (s->damaged)
		schedule(s);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct display_server *s = arg;

	if (s->damaged && s->n_viewers)
		run_update(s, false);
}

/* ---- what the source tells ------------------------------------------------------------------ */

static void on_damaged(void *arg)
{
	struct display_server *s = arg;

	s->damaged = true;
	schedule(s);
}

static void on_cursor(void *arg, const struct display_cursor *c)
{
	struct display_message m = {.type = DISPLAY_CURSOR};

	if (c->width < 0 || c->height < 0 || c->width > DISPLAY_CURSOR_MAX ||
		c->height > DISPLAY_CURSOR_MAX)
		return;
	if (c->width && c->height) {
		m.cursor.hot_x = c->hot_x;
		m.cursor.hot_y = c->hot_y;
		m.cursor.w = c->width;
		m.cursor.h = c->height;
		m.data = (struct display_bytes){c->rgba, (size_t)(c->width * c->height) * 4};
	}
	set_slot(arg, DISPLAY_SLOT_CURSOR, &m, NULL);
}

static void tell_pointer(struct display_server *s, int x, int y, const void *from)
{
	s->world.pointer_x = within(x, DISPLAY_SIZE_MAX);
	s->world.pointer_y = within(y, DISPLAY_SIZE_MAX);
	set_slot(s, DISPLAY_SLOT_POINTER, NULL, from);
}

static void on_pointer_at(void *arg, int x, int y)
{
	tell_pointer(arg, x, y, NULL);
}

static void on_clipboard(void *arg, const char *text, size_t len)
{
	struct display_message m = {
		.type = DISPLAY_CLIPBOARD, .data = {(const uint8_t *)text, len}};

	/* In its place, for this is told to those who would have got it, until there is another. */
	if (!text)
		set_notice(arg, DISPLAY_SLOT_CLIPBOARD, TOO_LONG);
	else if (len <= DISPLAY_CLIPBOARD_MAX)
		set_slot(arg, DISPLAY_SLOT_CLIPBOARD, &m, NULL);
}

static void on_silent(void *arg, bool silent)
{
	display_server_tell(arg, silent ? DISPLAY_STATE_PAUSED : DISPLAY_STATE_RUNNING,
		silent ? "its X server does not answer" : "");
}

static void on_lost(void *arg)
{
	struct display_server *s = arg;

	if (s->ops && s->ops->lost)
		s->ops->lost(s->arg);
}

static const struct display_source_events events = {
	.damaged = on_damaged,
	.resized = on_damaged,
	.cursor = on_cursor,
	.pointer_at = on_pointer_at,
	.clipboard = on_clipboard,
	.silent = on_silent,
	.lost = on_lost,
};

/* ---- what viewers tell ----------------------------------------------------------------------- */

static bool any_has(const struct display_server *s, uint32_t keysym)
{
	for (const struct viewer *v = s->viewers; v; v = v->next)
		if (display_keys_has(&v->keys, keysym))
			return true;
	return false;
}

static void take_key(struct display_server *s, struct viewer *v, const struct display_message *m)
{
	struct display_key k = {m->key.keysym, m->key.scancode};

	if (!display_keys_take(&v->keys, &k, m->key.down))
		return;
	v->key_ns = io_now_ns();
	v->watched = s->caret;
	if (m->key.down || !any_has(s, k.keysym))
		s->source->ops->key(s->source, k.keysym, k.scancode, m->key.down);
}

/* What all viewers together hold. */
static uint8_t all_buttons(const struct display_server *s)
{
	uint8_t all = 0;

	for (const struct viewer *v = s->viewers; v; v = v->next)
		all |= v->buttons;
	return all;
}

static void tell_buttons(struct display_server *s, int x, int y, int wheel_x, int wheel_y)
{
	s->buttons = all_buttons(s);
	s->source->ops->pointer(s->source, x, y, s->buttons, wheel_x, wheel_y);
}

static void take_pointer(
	struct display_server *s, struct viewer *v, const struct display_message *m)
{
	int x = m->pointer.x, y = m->pointer.y;

	display_peer_to_screen(v->peer, &x, &y);
	x = within(x, s->world.frame->width - 1);
	y = within(y, s->world.frame->height - 1);
	v->buttons = m->pointer.buttons;
	v->watched = (struct display_rect){
		x - WATCH_SIDE / 2, y - WATCH_SIDE / 2, WATCH_SIDE, WATCH_SIDE};
	tell_buttons(s, x, y, m->pointer.wheel_x, m->pointer.wheel_y);
	if (s->n_viewers > 1)
		tell_pointer(s, x, y, v->peer);
	s->world.pointer_x = x;
	s->world.pointer_y = y;
}

/* Of whatever system it is. */
static void take_clipboard(
	struct display_server *s, struct viewer *v, const struct display_message *m)
{
	struct display_message out = {.type = DISPLAY_CLIPBOARD};
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (m->data.len > DISPLAY_CLIPBOARD_MAX)
		return;
	display_text_put_lf(&text, m->data.data, m->data.len);
	if (!buf_cstr(&text))
		return;
	out.data = (struct display_bytes){text.data, text.len};
	s->source->ops->clipboard(s->source, (const char *)text.data, text.len);
	set_slot(s, DISPLAY_SLOT_CLIPBOARD, &out, v->peer);
}

static void take_resize(struct display_server *s, const struct display_message *m)
{
	const struct timeval t = {0, RESIZE_MS * 1000};

	if (m->type == DISPLAY_SCALE_IN) {
		s->want_scale = m->percent;
	} else {
		s->want_w = MIN(m->size.w, DISPLAY_SIZE_MAX);
		s->want_h = MIN(m->size.h, DISPLAY_SIZE_MAX);
	}
	event_add(s->resize, &t);
}

static void on_resize_timer(evutil_socket_t fd, short what, void *arg)
{
	struct display_server *s = arg;

	if (!s->attached)
		return; /* it stays a wish */
	if (s->want_w)
		s->source->ops->resize(s->source, s->want_w, s->want_h);
	if (s->want_scale && s->source->ops->scale)
		s->source->ops->scale(s->source, s->want_scale);
	s->want_w = s->want_scale = 0;
}

static void take_file(struct display_server *s, struct viewer *v, const struct display_message *m)
{
	if (s->files < 0 || (!v->files && display_files_new(s->files, &v->files) < 0))
		return;
	display_files_hold(v->files, !s->attached);
	display_files_take(v->files, &m->data);
	display_peer_kick(v->peer);
}

static void on_files(void *arg, struct buf *out, bool bulk)
{
	struct viewer *v = arg;

	if (v->files)
		display_files_put(v->files, out, bulk);
}

static void on_message(void *arg, struct display_peer *p, const struct display_message *m)
{
	struct viewer *v = arg;
	struct display_server *s = v->server;

	if (m->type == DISPLAY_FILE_IN)
		take_file(s, v, m);
	if (m->type == DISPLAY_RESIZE_IN || m->type == DISPLAY_SCALE_IN)
		take_resize(s, m);
	if (!s->attached && m->type == DISPLAY_POINTER)
		v->buttons = m->pointer.buttons;
	if (m->type == DISPLAY_CLIPBOARD_IN)
		take_clipboard(s, v, m);
	if (!s->attached || m->type == DISPLAY_FILE_IN)
		return;
	v->input_ns = s->input_ns = io_now_ns();
	if (m->type == DISPLAY_KEY)
		take_key(s, v, m);
	else if (m->type == DISPLAY_POINTER)
		take_pointer(s, v, m);
}

static void release_keys(struct display_server *s, struct viewer *v)
{
	while (v->keys.n) {
		const struct display_key k = v->keys.all[--v->keys.n];

		if (s->attached && !any_has(s, k.keysym))
			s->source->ops->key(s->source, k.keysym, k.scancode, false);
	}
}

/* To what viewers hold, where the pointer is. */
static void change_buttons(struct display_server *s)
{
	if (s->attached && s->buttons != all_buttons(s))
		tell_buttons(s, s->world.pointer_x, s->world.pointer_y, 0, 0);
}

static void tell_listened(struct display_server *s)
{
	bool anybody = false;

	for (const struct viewer *v = s->viewers; v; v = v->next)
		anybody |= display_peer_listens(v->peer);
	if (anybody == s->listened)
		return;
	s->listened = anybody;
	if (s->ops && s->ops->listened)
		s->ops->listened(s->arg, anybody);
}

static void on_joined(void *arg, struct display_peer *p)
{
	struct viewer *v = arg;

	display_peer_everything(p);
	tell_listened(v->server);
	if (v->server->damaged)
		schedule(v->server);
}

static void tell_finished(struct display_server *s)
{
	s->finishes = false;
	if (s->ops && s->ops->finished)
		s->ops->finished(s->arg);
}

static void drop(struct display_server *s, struct viewer *v)
{
	struct viewer **at = &s->viewers;

	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	s->n_viewers--;
	release_keys(s, v);
	change_buttons(s);
	for (int i = 0; i < DISPLAY_SLOTS; i++)
		if (s->world.slots[i].from == v->peer)
			s->world.slots[i].from = NULL;
	display_peer_free(v->peer);
	display_files_free(v->files);
	free(v);
	tell_listened(s);
	if (s->finishes && !s->n_viewers)
		tell_finished(s);
}

static void on_gone(void *arg, struct display_peer *p)
{
	struct viewer *v = arg;

	drop(v->server, v);
}

static const struct display_peer_ops peer_ops = {
	.joined = on_joined,
	.message = on_message,
	.files = on_files,
	.gone = on_gone,
};

/* ---- the server ------------------------------------------------------------------------------ */

int display_server_new(struct event_base *base, struct display_source *source, const char *name,
	const struct display_server_ops *ops, void *arg, struct display_server **ret_server,
	struct err *e)
{
	struct display_server *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (!s)
		return err_errno(e, r, "display server");
	*s = (struct display_server){.base = base,
		.source = source,
		.ops = ops,
		.arg = arg,
		.attached = true,
		.files = -1,
		.damaged = true,
		.clock = io_now_ns,
		.world = {.base = base, .name = name}};
	s->tick = event_new(base, -1, 0, on_tick, s);
	s->resize = event_new(base, -1, 0, on_resize_timer, s);
	s->rests = event_new(base, -1, EV_PERSIST, on_rests, s);
	if (s->tick && s->resize && s->rests)
		r = display_encoder_new(&s->world.encoder);
	if (r == 0)
		r = display_film_new(&s->world.film);
	if (r < 0)
		err_errno(e, r, "display server");
	else
		r = source->ops->attach(source, base, &events, s, e);
	if (r < 0) {
		s->source = NULL;
		display_server_free(s);
		return r;
	}
	*ret_server = s;
	return 0;
}

void display_server_clock(struct display_server *s, uint64_t (*now_ns)(void))
{
	s->clock = now_ns;
}

void display_server_free(struct display_server *s)
{
	if (!s)
		return;
	s->finishes = false;
	while (s->viewers)
		drop(s, s->viewers);
	if (s->source)
		s->source->ops->destroy(s->source);
	if (s->tick)
		event_free(s->tick);
	if (s->resize)
		event_free(s->resize);
	if (s->rests)
		event_free(s->rests);
	for (int i = 0; i < DISPLAY_SLOTS; i++)
		buf_fini(&s->world.slots[i].message);
	display_encoder_free(s->world.encoder);
	display_film_free(s->world.film);
	display_video_free(s->video);
	display_update_free(s->update);
	free(s);
}

int display_server_add(struct display_server *s, int fd)
{
	struct viewer *v;
	int r;

	if (s->n_viewers == DISPLAY_SERVER_VIEWERS)
		return display_peer_refuse(fd, "there are too many viewers");
	v = calloc(1, sizeof(*v));
	if (!v) {
		close_fd(fd);
		return -ENOMEM;
	}
	v->server = s;
	r = display_peer_new(&s->world, fd, &peer_ops, v, &v->peer);
	if (r < 0) {
		free(v);
		return r;
	}
	v->next = s->viewers;
	s->viewers = v;
	/* The first picture is that of this moment: for a screenshot there is no other. */
	if (s->n_viewers++ == 0)
		run_update(s, true);
	return 0;
}

size_t display_server_viewers(const struct display_server *s)
{
	return s->n_viewers;
}

void display_server_tell(struct display_server *s, enum display_state state, const char *text)
{
	s->state = state;
	set_notice(s, DISPLAY_SLOT_NOTICE, text);
}

void display_server_audio(struct display_server *s, uint64_t us, const void *packet, size_t len)
{
	for (struct viewer *v = s->viewers; v; v = v->next)
		display_peer_audio(v->peer, us, packet, len);
}

void display_server_share(struct display_server *s, int files)
{
	s->files = files;
	s->world.files = true;
}

/* Of the viewers' files. */
static void hold_files(struct display_server *s, bool on)
{
	for (struct viewer *v = s->viewers; v; v = v->next) {
		if (!v->files)
			continue;
		display_files_hold(v->files, on);
		display_peer_kick(v->peer);
	}
}

void display_server_rename(struct display_server *s, const char *name)
{
	s->world.name = name;
	set_notice(s, DISPLAY_SLOT_NOTICE, NULL);
}

void display_server_let_go(struct display_server *s)
{
	for (struct viewer *v = s->viewers; v; v = v->next)
		release_keys(s, v);
	hold_files(s, true);
	s->attached = false;
	s->source->ops->let_go(s->source);
}

int display_server_take_up(struct display_server *s, struct err *e)
{
	int r = s->source->ops->take_up(s->source, e);

	if (r < 0)
		return r;
	s->attached = true;
	change_buttons(s);
	event_active(s->resize, EV_TIMEOUT, 0);
	hold_files(s, false);
	on_damaged(s);
	return 0;
}

void display_server_finish(struct display_server *s)
{
	s->finishes = true;
	for (struct viewer *v = s->viewers; v; v = v->next)
		display_peer_finish(v->peer);
	if (!s->n_viewers)
		tell_finished(s);
}

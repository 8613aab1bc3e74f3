// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * In: bytes are collected until a message is whole, which may be a mebibyte and eight bytes, and is
 * handled in place.  The first must be HELLO, and come soon.  What comes behind it before there is
 * a picture waits for that, as much as the largest message.
 *
 * Out: there is one buffer of encoded bytes, which is filled only when it is empty and the socket
 * takes more, with CHUNK bytes or a little more:
 *
 *      slots that have changed -> commands from the queue, in the order it decides
 *         -> a frame of a film -> UPDATED
 *
 * so that what waits does so in the queue, where it can still be overtaken and painted over.  The
 * socket's own buffer is kept small, and what is on its way beyond it by the pace (pace.h).  What
 * has been encoded is always sent whole: a viewer sees a stream of whole messages.
 *
 * One peer's turn ends after TURN bytes, for there are others, and input.
 */
#include "display/peer.h"

#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "display/classify.h"
#include "display/codec/stream.h"
#include "display/film.h"
#include "display/notice.h"
#include "display/reel.h"
#include "display/region.h"
#include "display/scale.h"
#include "proto/display.pb-c.h"

#define CHUNK	      (32u << 10)
#define TURN	      (256u << 10)
#define READ	      (64u << 10)
#define SOCKET_BUFFER (128 << 10)
#define NOTSENT	      (32 << 10)
#define AUDIO_WAITING 8 /* packets of 20 ms that wait: more would come too late */
#define HELLO_SECONDS 20
#define FILES_NS      100000000ull /* a piece of a file that often, even if more is drawn */
#define WISHES	      64	   /* places to be sent again; of more, all that is around them */
#define REFRESH_MS    300	   /* without a change, until what was sent lossily is sent again */

_Static_assert(DISPLAY_VIDEO_FILMS <= DISPLAY_QUEUE_HELD, "each film is held");

struct display_peer {
	const struct display_world *world;
	const struct display_peer_ops *ops;
	void *arg;
	int fd;
	struct event *read, *write, *timer;
	struct buf in, out;
	size_t off;	   /* of out that is sent */
	unsigned packets;  /* of sound in out */
	uint64_t files_ns; /* when a piece of a file was put */
	struct display_queue *queue;
	pixman_region32_t wishes; /* to be sent again, in its frame */
	struct display_codecs codecs;
	int max_width, max_height;   /* that it wants; 0: any */
	struct display_scale *scale; /* or NULL */
	struct display_pace pace;
	struct display_reel reel;
	struct display_film_stream vp8;
	uint32_t seen[DISPLAY_SLOTS];
	bool said_hello, joined, controls, audio, keeps;
	bool blocked;  /* the socket is full */
	bool told;     /* UPDATED was the last that was sent */
	bool spare;    /* there has been no change for a while */
	bool fresh;    /* there has been one since the timer was set */
	bool finishes; /* the connection ends when all is sent */
};

static void gone(struct display_peer *p)
{
	event_del(p->read);
	event_del(p->write);
	event_del(p->timer);
	p->ops->gone(p->arg, p);
}

static void wait_ms(struct display_peer *p, int ms)
{
	struct timeval t = {ms / 1000, ms % 1000 * 1000};

	event_add(p->timer, &t);
}

void display_peer_kick(struct display_peer *p)
{
	if (!p->blocked)
		event_active(p->write, EV_WRITE, 0);
}

/* What it is shown. */
static const struct display_frame *frame_of(const struct display_peer *p)
{
	return p->scale ? display_scale_frame(p->scale) : p->world->frame;
}

/* The frame is another one: is it to be made smaller?  -ENOMEM or 0. */
static int fit(struct display_peer *p)
{
	const struct display_frame *f = p->world->frame;
	int w, h;

	display_scale_free(p->scale);
	p->scale = NULL;
	if (!display_scale_fit(f->width, f->height, p->max_width, p->max_height, &w, &h))
		return 0;
	return display_scale_new(f->width, f->height, w, h, &p->scale);
}

static void put_packed(struct display_peer *p, enum display_type type, const ProtobufCMessage *pb)
{
	struct display_message m = {.type = type};
	_cleanup_free_ uint8_t *bytes = malloc(protobuf_c_message_get_packed_size(pb) + 1);

	if (!bytes) {
		p->out.failed = true;
		return;
	}
	m.data.data = bytes;
	m.data.len = protobuf_c_message_pack(pb, bytes);
	display_wire_put(&p->out, &m);
}

/* HELLO has been said, and there is a frame. */
static int welcome(struct display_peer *p)
{
	Pb__DisplayWelcome w = PB__DISPLAY_WELCOME__INIT;
	size_t before = p->out.len;

	if (fit(p) < 0)
		return -ENOMEM;
	p->queue = display_queue_new(frame_of(p)->width, frame_of(p)->height);
	if (!p->queue)
		return -ENOMEM;
	if (p->keeps)
		display_queue_keeps(p->queue);
	w.version = DISPLAY_VERSION;
	w.width = (uint32_t)frame_of(p)->width;
	w.height = (uint32_t)frame_of(p)->height;
	w.role = p->controls ? PB__DISPLAY_WELCOME__ROLE__CONTROL : PB__DISPLAY_WELCOME__ROLE__VIEW;
	w.session = (char *)p->world->name;
	w.codecs = p->codecs.mask;
	w.video = p->reel.formats;
	w.audio = p->audio;
	w.files = p->controls && p->world->files;
	put_packed(p, DISPLAY_WELCOME, &w.base);
	if (buf_error(&p->out))
		return -ENOMEM;
	display_pace_sent(&p->pace, p->out.len - before);
	p->seen[DISPLAY_SLOT_SIZE] = p->world->slots[DISPLAY_SLOT_SIZE].version;
	p->joined = true;
	event_active(p->read, EV_READ, 0); /* for what has waited */
	event_del(p->timer);
	p->ops->joined(p->arg, p);
	display_peer_kick(p);
	return 0;
}

static int take_hello(struct display_peer *p, const struct display_message *m)
{
	Pb__DisplayHello *h = pb__display_hello__unpack(NULL, m->data.len, m->data.data);
	int r = 0;

	if (!h)
		return -EBADMSG;
	if (h->version != DISPLAY_VERSION) {
		display_notice_put(&p->out, DISPLAY_STATE_REFUSED,
			"this viewer speaks another version of the protocol", NULL);
		pb__display_hello__free_unpacked(h, NULL);
		display_peer_finish(p);
		return 0;
	}
	p->said_hello = true;
	p->codecs.mask = (h->codecs & ((1u << DISPLAY_CODECS) - 1)) | 1u << DISPLAY_CODEC_NONE;
	if (p->codecs.mask >> DISPLAY_CODEC_LEFT_STREAM)
		r = display_stream_new(&p->codecs.stream);
	p->codecs.quality = (int)MIN(h->quality, 100u);
	p->max_width = (int)MIN(h->max_width, (uint32_t)DISPLAY_SIZE_MAX);
	p->max_height = (int)MIN(h->max_height, (uint32_t)DISPLAY_SIZE_MAX);
	p->controls = !h->view_only;
	p->audio = h->audio;
	p->keeps = h->keeps;
	display_reel_init(&p->reel, h->video, p->codecs.quality);
	if (r == 0 && p->world->frame)
		r = welcome(p);
	pb__display_hello__free_unpacked(h, NULL);
	return r;
}

/* The queue is told when it is looked at: however many of these come, that takes no time. */
static void refresh(struct display_peer *p, const struct display_rect *r)
{
	const struct display_frame *f = frame_of(p);
	struct display_rect all = {0, 0, f->width, f->height}, seen;

	if (!display_rect_intersect(r, &all, &seen))
		return;
	display_region_add(&p->wishes, &seen);
	if (pixman_region32_n_rects(&p->wishes) > WISHES) {
		pixman_box32_t around = *pixman_region32_extents(&p->wishes);

		pixman_region32_reset(&p->wishes, &around);
	}
	display_peer_kick(p);
}

/* Who asks has lost pixels, and may have lost what it has kept as well. */
static void queue_wishes(struct display_peer *p)
{
	int n;
	const pixman_box32_t *b = pixman_region32_rectangles(&p->wishes, &n);

	if (n)
		display_queue_forget_kept(p->queue);
	for (int i = 0; i < n; i++) {
		const struct display_command c = {
			.type = DISPLAY_RAW, .rect = display_rect_of(&b[i]), .hint = DISPLAY_PLAIN};

		display_queue_add(p->queue, &c, 1);
	}
	pixman_region32_clear(&p->wishes);
}

static int take(struct display_peer *p, const struct display_message *m)
{
	if (!p->said_hello)
		return m->type == DISPLAY_HELLO ? take_hello(p, m) : -EBADMSG;
	switch (m->type) {
	case DISPLAY_ACK:
		display_pace_ack(&p->pace, m->serial, io_now_ns());
		display_peer_kick(p);
		return 0;
	case DISPLAY_REFRESH:
		if (p->joined)
			refresh(p, &m->rect);
		return 0;
	case DISPLAY_SKIP:
	case DISPLAY_HELLO:
		return 0;
	default:
		if (p->joined && p->controls)
			p->ops->message(p->arg, p, m);
		return 0;
	}
}

static int take_all(struct display_peer *p)
{
	size_t done = 0, used;
	int r = 0;

	while (!p->finishes && (p->joined || !p->said_hello)) {
		struct display_message m;

		r = display_wire_take(p->in.data + done, p->in.len - done, false, &m, &used, NULL);
		if (r <= 0)
			break;
		done += used;
		r = take(p, &m);
		if (r < 0)
			break;
	}
	buf_consume(&p->in, done);
	return r < 0								? r
	       : p->in.len > DISPLAY_WIRE_HEAD + DISPLAY_WIRE_VIEWER_MAX + READ ? -E2BIG
										: 0;
}

static void on_read(evutil_socket_t fd, short what, void *arg)
{
	struct display_peer *p = arg;
	uint8_t *to = buf_reserve(&p->in, READ);
	ssize_t n;

	if (!to) {
		gone(p);
		return;
	}
	n = recv(p->fd, to, READ, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		gone(p);
		return;
	}
	if (p->finishes)
		return;
	p->in.len += (size_t)MAX(n, 0);
	if (take_all(p) < 0)
		gone(p);
}

static void put_slot(struct display_peer *p, enum display_slot slot)
{
	const struct buf *b = &p->world->slots[slot].message;
	struct display_message m = {0};

	if (slot == DISPLAY_SLOT_SIZE) {
		m.type = DISPLAY_RESIZE;
		m.size.w = frame_of(p)->width;
		m.size.h = frame_of(p)->height;
		display_wire_put(&p->out, &m);
	} else if (slot == DISPLAY_SLOT_POINTER) {
		m.type = DISPLAY_POINTER_AT;
		m.at.x = p->world->pointer_x * frame_of(p)->width / p->world->frame->width;
		m.at.y = p->world->pointer_y * frame_of(p)->height / p->world->frame->height;
		display_wire_put(&p->out, &m);
	} else {
		buf_put(&p->out, b->data, b->len);
	}
}

static void put_slots(struct display_peer *p)
{
	size_t before = p->out.len;

	for (int i = 0; i < DISPLAY_SLOTS; i++) {
		if (p->seen[i] == p->world->slots[i].version)
			continue;
		p->seen[i] = p->world->slots[i].version;
		/* What was copied is not on the screen, and not for those who only look at that. */
		if (p->world->slots[i].from != p && (i != DISPLAY_SLOT_CLIPBOARD || p->controls))
			put_slot(p, i);
	}
	display_pace_sent(&p->pace, p->out.len - before);
}

static void put_serial(struct display_peer *p, enum display_type type)
{
	struct display_message m = {.type = type};

	display_pace_sent(&p->pace, DISPLAY_WIRE_HEAD + sizeof(m.serial));
	m.serial = display_pace_mark(&p->pace, io_now_ns());
	display_wire_put(&p->out, &m);
}

/* One command; 0 if there is none or no room, or -ENOMEM. */
static int put_command(struct display_peer *p)
{
	size_t room = display_pace_room(&p->pace), before = p->out.len, size;
	struct display_command c, as;
	enum display_queue_result q;
	int r;

	if (room == 0)
		return 0;
	q = display_queue_next(p->queue, MIN(room, CHUNK), p->spare, &c);
	if (q == DISPLAY_QUEUE_NONE)
		return 0;
	as = c;
	if (q == DISPLAY_QUEUE_REFRESH) {
		as.hint = DISPLAY_SMOOTH; /* or it would not have been lossy */
		r = display_command_put_exact(
			p->world->encoder, &p->out, &as, frame_of(p), &p->codecs);
	} else {
		r = display_command_put(p->world->encoder, &p->out, &c, frame_of(p), &p->codecs);
	}
	if (r < 0)
		return r;
	size = p->out.len - before;
	display_queue_sent(p->queue, &c, size, r > 0);
	display_reel_paid(&p->reel, size);
	display_pace_sent(&p->pace, size);
	p->told = false;
	p->fresh = true;
	if (display_pace_due(&p->pace))
		put_serial(p, DISPLAY_MARK);
	return 1;
}

/*
 * The newest frame of a film that has one.  Commands have come first, and as many bytes of them as
 * the last frame had, if so many waited: neither waits long for the other.  0 or -ENOMEM.
 */
static int put_film(struct display_peer *p)
{
	struct display_reel_film *f = display_reel_next(&p->reel);
	struct display_film_kind kind;
	size_t before = p->out.len, size;
	int r;

	if (!f || display_queue_copies(p->queue) || display_pace_room(&p->pace) == 0 ||
		(p->reel.owed && !display_queue_empty(p->queue)))
		return 0;
	kind = display_reel_kind(&p->reel, f);
	r = display_film_put(
		p->world->film, &p->out, f->id, f->us, frame_of(p), &f->rect, &kind, &p->vp8);
	if (r < 0 && r != -EMSGSIZE)
		return r;
	size = p->out.len - before;
	display_reel_sent(&p->reel, f, size, p->pace.window);
	display_queue_sent_apart(p->queue, &f->rect, size);
	display_pace_sent(&p->pace, size);
	p->told = false;
	return 0;
}

/* They come last, but now and then also while more is drawn. */
static void put_files(struct display_peer *p)
{
	size_t before = p->out.len;
	uint64_t now = io_now_ns();
	bool bulk = display_queue_empty(p->queue) || now - p->files_ns > FILES_NS;

	if (!p->controls || !p->world->files || !display_pace_room(&p->pace))
		return;
	p->ops->files(p->arg, &p->out, bulk);
	if (bulk && p->out.len > before)
		p->files_ns = now;
	display_pace_sent(&p->pace, p->out.len - before);
}

/* Encodes what comes next; 0 or -ENOMEM. */
static int fill(struct display_peer *p)
{
	int r = 1;

	put_slots(p);
	queue_wishes(p);
	if (!display_queue_empty(p->queue))
		p->spare = false;
	/* What is only sent again, better, is behind a new frame. */
	while (p->out.len < CHUNK && r > 0 &&
		!(display_queue_empty(p->queue) && display_reel_next(&p->reel)))
		r = put_command(p);
	if (r >= 0)
		r = put_film(p);
	if (r < 0)
		return r;
	put_files(p);
	if (display_pace_due(&p->pace))
		put_serial(p, DISPLAY_MARK);
	if (display_queue_empty(p->queue) && !display_reel_next(&p->reel) && !p->told) {
		p->told = true;
		put_serial(p, DISPLAY_UPDATED);
	}
	if (display_queue_empty(p->queue) && !p->spare && display_queue_state(p->queue).lossy &&
		(p->fresh || !event_pending(p->timer, EV_TIMEOUT, NULL))) {
		p->fresh = false;
		wait_ms(p, REFRESH_MS);
	}
	return buf_error(&p->out);
}

/* 1: all is sent, 0: the socket is full, or a negative errno. */
static int send_out(struct display_peer *p)
{
	while (p->off < p->out.len) {
		ssize_t n = send(p->fd, p->out.data + p->off, p->out.len - p->off,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		p->off += (size_t)n;
	}
	p->off = 0;
	p->packets = 0;
	buf_clear(&p->out);
	return 1;
}

static void on_write(evutil_socket_t fd, short what, void *arg)
{
	struct display_peer *p = arg;
	size_t sum = 0;
	int r;

	p->blocked = false;
	for (;;) {
		r = send_out(p);
		if (r <= 0)
			break;
		if (sum > TURN) {
			event_active(p->write, EV_WRITE, 0);
			return;
		}
		if (p->joined && fill(p) < 0) {
			r = -ENOMEM;
			break;
		}
		if (p->out.len == 0)
			break;
		sum += p->out.len;
	}
	if (r == 0) {
		p->blocked = true;
		event_add(p->write, NULL);
	} else if (r < 0 || p->finishes) {
		gone(p);
	}
}

/* No HELLO, or nothing has changed for a while, or what is finished isn't read. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct display_peer *p = arg;

	if (!p->said_hello || p->finishes) {
		gone(p);
		return;
	}
	if (!p->joined || !display_queue_empty(p->queue))
		return;
	/* While a film plays there is always something on its way. */
	if (!display_pace_idle(&p->pace) &&
		!(display_reel_plays(&p->reel) && display_pace_room(&p->pace) > 0)) {
		wait_ms(p, REFRESH_MS);
		return;
	}
	p->spare = true;
	display_peer_kick(p);
}

static void keep_socket_short(int fd)
{
	int on = 1, size = SOCKET_BUFFER, notsent = NOTSENT;

	/* Each is for one family of sockets, and none must succeed. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &notsent, sizeof(notsent));
}

int display_peer_new(const struct display_world *world, int fd, const struct display_peer_ops *ops,
	void *arg, struct display_peer **ret_peer)
{
	struct display_peer *p = calloc(1, sizeof(*p));

	if (!p) {
		close_fd(fd);
		return -ENOMEM;
	}
	*p = (struct display_peer){.world = world, .ops = ops, .arg = arg, .fd = fd, .told = true};
	display_pace_init(&p->pace);
	pixman_region32_init(&p->wishes);
	keep_socket_short(fd);
	p->read = event_new(world->base, fd, EV_READ | EV_PERSIST, on_read, p);
	p->write = event_new(world->base, fd, EV_WRITE, on_write, p);
	p->timer = event_new(world->base, -1, 0, on_timer, p);
	if (!p->read || !p->write || !p->timer || event_add(p->read, NULL) < 0) {
		display_peer_free(p);
		return -ENOMEM;
	}
	wait_ms(p, HELLO_SECONDS * 1000);
	*ret_peer = p;
	return 0;
}

int display_peer_refuse(int fd, const char *why)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	display_notice_put(&b, DISPLAY_STATE_REFUSED, why, NULL);
	if (buf_error(&b) == 0 && send(fd, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("display: a viewer is gone already");
	close_fd(fd);
	return -EUSERS;
}

void display_peer_free(struct display_peer *p)
{
	if (!p)
		return;
	if (p->read)
		event_free(p->read);
	if (p->write)
		event_free(p->write);
	if (p->timer)
		event_free(p->timer);
	close_fd(p->fd);
	buf_fini(&p->in);
	buf_fini(&p->out);
	display_stream_free(p->codecs.stream);
	display_queue_destroy(p->queue);
	display_film_end(p->world->film, &p->vp8);
	pixman_region32_fini(&p->wishes);
	display_scale_free(p->scale);
	free(p);
}

bool display_peer_joined(const struct display_peer *p)
{
	return p->joined;
}

bool display_peer_controls(const struct display_peer *p)
{
	return p->controls;
}

bool display_peer_listens(const struct display_peer *p)
{
	return p->joined && p->audio;
}

void display_peer_resized(struct display_peer *p)
{
	if (p->joined) {
		/* Without memory it is shown nothing any more, and ends. */
		if (fit(p) < 0)
			display_peer_finish(p);
		display_queue_resize(p->queue, frame_of(p)->width, frame_of(p)->height);
		display_reel_clear(&p->reel);
		display_film_end(p->world->film, &p->vp8);
		pixman_region32_clear(&p->wishes);
	} else if (p->said_hello && !p->finishes && welcome(p) < 0) {
		display_peer_finish(p);
	}
	display_peer_kick(p);
}

/* Of its own frame, @area is to be sent; without memory to see how it is best drawn, as it is. */
static void put_area(struct display_peer *p, pixman_region32_t *area)
{
	const struct display_command all = {.type = DISPLAY_RAW,
		.hint = DISPLAY_PLAIN,
		.rect = display_rect_of(pixman_region32_extents(area))};
	struct display_commands c = {0};

	if (display_classify(frame_of(p), area, &c) == 0)
		display_queue_add(p->queue, c.list, c.n);
	else
		display_queue_add(p->queue, &all, 1);
	display_commands_fini(&c);
	display_peer_kick(p);
}

/* Where @r of the world's frame is in its own, with every pixel that it touches. */
static struct display_rect own_rect(const struct display_peer *p, const struct display_rect *r)
{
	const struct display_frame *f = p->world->frame, *s = frame_of(p);
	struct display_rect own = {r->x * s->width / f->width, r->y * s->height / f->height, 0, 0};

	own.w = ((r->x + r->w) * s->width + f->width - 1) / f->width - own.x;
	own.h = ((r->y + r->h) * s->height + f->height - 1) / f->height - own.y;
	return own;
}

/* The smaller picture follows, and is sent where it has changed, but for films. */
static void put_smaller(struct display_peer *p, pixman_region32_t *changed)
{
	pixman_region32_t area;

	pixman_region32_init(&area);
	if (display_scale_run(p->scale, p->world->frame, changed, &area) == 0) {
		for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++)
			if (p->reel.films[i].id)
				display_region_remove(&area, &p->reel.films[i].rect);
		put_area(p, &area);
	} else {
		display_peer_finish(p);
	}
	pixman_region32_fini(&area);
}

/* Of a viewer that has kept nothing: what others uncover is drawn as it is best. */
static void put_uncovered(struct display_peer *p, const struct display_commands *c)
{
	pixman_region32_t area;

	pixman_region32_init(&area);
	for (size_t i = 0; i < c->n && display_command_is_first(&c->list[i]); i++)
		if (c->list[i].type == DISPLAY_UNCOVER)
			display_region_add(&area, &c->list[i].rect);
	if (pixman_region32_not_empty(&area))
		put_area(p, &area);
	pixman_region32_fini(&area);
}

void display_peer_forget_kept(struct display_peer *p)
{
	if (p->joined)
		display_queue_forget_kept(p->queue);
}

void display_peer_update(struct display_peer *p, const struct display_commands *c,
	const struct display_commands *films, pixman_region32_t *changed)
{
	if (!p->joined)
		return;
	queue_wishes(p); /* first: nothing is copied from there */
	if (p->scale) {
		put_smaller(p, changed);
	} else {
		display_queue_add(p->queue, c->list, c->n);
		if (!p->keeps)
			put_uncovered(p, c);
		if (!display_reel_shows(&p->reel))
			display_queue_add(p->queue, films->list, films->n);
	}
	display_reel_note(&p->reel, p->world->films);
	display_peer_kick(p);
}

bool display_peer_shows_films(const struct display_peer *p)
{
	return p->joined && display_reel_shows(&p->reel);
}

void display_peer_films(struct display_peer *p)
{
	const struct display_video_film *films = p->world->films;
	struct display_rect rects[DISPLAY_VIDEO_FILMS], held[DISPLAY_VIDEO_FILMS];
	pixman_region32_t open;
	size_t n;

	if (!display_peer_shows_films(p))
		return;
	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++)
		rects[i] = own_rect(p, &films[i].rect);
	pixman_region32_init(&open);
	n = display_reel_follow(&p->reel, films, rects, held, &open);
	if (!display_reel_has(&p->reel, p->vp8.id))
		display_film_end(p->world->film, &p->vp8);
	display_queue_hold(p->queue, held, n);
	put_area(p, &open);
	pixman_region32_fini(&open);
}

void display_peer_everything(struct display_peer *p)
{
	pixman_region32_t all;

	if (!p->joined)
		return;
	pixman_region32_init_rect(
		&all, 0, 0, (unsigned)p->world->frame->width, (unsigned)p->world->frame->height);
	if (p->scale)
		put_smaller(p, &all);
	else
		put_area(p, &all);
	pixman_region32_fini(&all);
	display_peer_films(p);
}

void display_peer_watch(struct display_peer *p, const struct display_rect *r)
{
	struct display_rect own;

	if (!p->joined)
		return;
	if (r && p->scale) {
		own = own_rect(p, r);
		r = &own;
	}
	display_queue_watch(p->queue, r);
}

void display_peer_to_screen(const struct display_peer *p, int *x, int *y)
{
	if (!p->scale)
		return;
	*x = (int)((long)*x * p->world->frame->width / frame_of(p)->width);
	*y = (int)((long)*y * p->world->frame->height / frame_of(p)->height);
}

void display_peer_audio(struct display_peer *p, uint64_t us, const void *packet, size_t len)
{
	struct display_message m = {.type = DISPLAY_AUDIO, .data = {packet, len}};
	size_t before = p->out.len;

	if (!display_peer_listens(p) || p->packets >= AUDIO_WAITING)
		return;
	p->packets++;
	m.time = us;
	display_wire_put(&p->out, &m);
	display_pace_sent(&p->pace, p->out.len - before);
	display_peer_kick(p);
}

void display_peer_finish(struct display_peer *p)
{
	p->finishes = true;
	wait_ms(p, 2000);
	display_peer_kick(p);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * writer - turns records and data into a signed stream of frames.
 *
 * Theory of operation
 *
 * Hashing a gigabyte takes longer than copying it, so the caller only fills buffers while threads
 * hash (and compress) and write them out.  Between them is a ring of slots:
 *
 *      FREE -> FILLING -> READY -> BUSY -> DONE -> WRITING -> FREE
 *              caller     |  any thread |        one thread at a time, in order
 *
 * A slot holds `small`, whole frames as they will be in the stream, which are handed over together
 * because to hand each over alone would cost more than to copy it (records) or because it would be
 * a matter of moments to hash it (data, which its caller reads straight to its place there); and
 * behind them at most one long data frame in `room`.  Who hashes them writes their digests into
 * their heads.  Pieces of this size are still in a CPU's cache when they are hashed and written.
 * What is in flight is bounded: PROTO_ROOMS long frames, and SLOTS times what `small` takes.  A room is
 * used again as soon as it is free, the last one first.
 *
 * What a thread's step makes possible, the same thread does next.  So nobody is woken for it but
 * the caller, when there is room again.
 *
 * A long payload begins at a multiple of PROTO_ALIGN in the stream.  The padding is part of what
 * is hashed, so the place of a frame must be known before it is hashed: with compression it isn't,
 * and nothing is aligned.
 *
 * While a session stands still nothing of this need happen: frames are put aside then, as they
 * were given, and go their way when it runs again.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "base/base.h"
#include "proto/frame.h"
#include "proto/key.h"
#include "proto/pool.h"
#include "proto/proto.h"
#include "proto/warm.h"

#define SLOTS	   8u
#define SMALL_DATA PROTO_ALIGN_MIN /* shorter data is not aligned, nor worth threads */
#define SMALL_FULL (256u << 10)	   /* so many bytes of small frames fill a slot */
#define MEDIUM	   (256u << 10)	   /* data up to here is handed over with others */

enum slot_state { FREE, FILLING, READY, BUSY, DONE, WRITING };

struct slot {
	enum slot_state state;
	struct buf small;   /* whole frames, but for their digests until they are hashed */
	struct buf digests; /* of those frames, in order */
	bool has_data;
	struct proto_frame_head head; /* of the long frame */
	uint8_t *room;		      /* its payload: PROTO_LONG_DATA bytes */
};

/* A frame that is put aside; its payload follows, filled up to ASIDE_ALIGN. */
struct aside {
	bool data; /* else a record */
	enum proto_kind kind;
	uint64_t subject, offset;
	size_t len;
};

#define ASIDE_ALIGN 16u

struct proto_writer {
	int fd;
	int zstd_level;
	bool hold_last;
	uint8_t held;
	const struct proto_key *key;
	struct proto_warm *warm; /* or NULL */
	struct proto_image_info info;
	struct proto_pool pool;

	/* the caller's */
	struct slot *filling; /* or NULL */
	size_t begun;	      /* bytes promised by proto_write_data_begin */
	bool in_place;	      /* they will be the next frame of filling->small */
	uint8_t *room;	      /* else they are here, for the next long frame; or NULL */
	unsigned made;	      /* rooms there are */
	uint64_t sequence;    /* of the next frame */
	uint64_t planned;     /* where it will begin, unless compressing */
	bool finished;
	uint8_t *aside;	      /* struct aside, with payloads; NULL: nothing is put aside */
	size_t n_aside, most; /* bytes in it, and how many there may be */

	/* under the pool's lock */
	struct slot slots[SLOTS];
	uint64_t first, next; /* oldest slot not yet written, next one to fill; modulo SLOTS */
	uint8_t *rooms[PROTO_ROOMS]; /* those that are free */
	unsigned n_rooms;
	bool writing;
	struct err error; /* of a thread; then nothing more is written */

	/* whoever holds `writing` */
	uint64_t written;
	uint64_t frames;
	struct proto_sha *list;
};

/* ---- output -------------------------------------------------------------------------------- */

static int write_vector(
	struct proto_writer *w, struct proto_worker *by, struct iovec *iov, int n, struct err *e)
{
	while (n > 0) {
		struct pollfd p = {.fd = w->fd, .events = POLLOUT};
		ssize_t r;

		if (iov->iov_len == 0) {
			iov++;
			n--;
			continue;
		}
		proto_worker_may_block(by);
		r = writev(w->fd, iov, n);
		if (r < 0 && errno == EAGAIN)
			r = poll(&p, 1, -1) < 0 ? -1 : 0;
		proto_worker_blocked(by);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_errno(e, -errno, "cannot write the image");
		w->written += (uint64_t)r;
		for (; n > 0 && (size_t)r >= iov->iov_len; iov++, n--)
			r -= (ssize_t)iov->iov_len;
		if (n > 0) {
			iov->iov_base = (uint8_t *)iov->iov_base + r;
			iov->iov_len -= (size_t)r;
		}
	}
	return 0;
}

static int write_slot(
	struct proto_writer *w, struct proto_worker *by, struct slot *s, struct err *e)
{
	static const uint8_t zeros[PROTO_ALIGN];
	uint8_t head[PROTO_FRAME_HEAD_LEN];
	struct iovec iov[4] = {{.iov_base = s->small.data, .iov_len = s->small.len}};
	uint64_t start = w->written;
	int r, n = 1;

	proto_sha_add(w->list, s->digests.data, s->digests.len);
	w->frames += s->digests.len / PROTO_DIGEST_LEN;
	if (s->has_data) {
		proto_frame_encode(&s->head, head);
		proto_sha_add(w->list, s->head.digest, PROTO_DIGEST_LEN);
		w->frames++;
		iov[n++] = (struct iovec){head, sizeof(head)};
		iov[n++] = (struct iovec){(void *)zeros, s->head.pad};
		iov[n++] = (struct iovec){s->room, s->head.stored};
	}
	r = write_vector(w, by, iov, n, e);
	/* The disk may begin now; otherwise all of it is left to the fsync at the end. */
	if (r == 0 && (s->has_data || s->small.len >= SMALL_DATA))
		sync_file_range(
			w->fd, (off_t)start, (off_t)(w->written - start), SYNC_FILE_RANGE_WRITE);
	return r;
}

/* ---- what threads do ----------------------------------------------------------------------- */

/* Compresses the payload in place if that makes it smaller. */
static void compress_slot(const struct proto_writer *w, struct proto_worker *by, struct slot *s)
{
	uint8_t *scratch = proto_worker_scratch(by);
	size_t n = 0;

	if (scratch)
		n = proto_zstd_pack(by->zstd, w->zstd_level, s->room, s->head.length, scratch,
			s->head.length - 1);
	if (n == 0)
		return;
	memcpy(s->room, scratch, n);
	s->head.stored = (uint32_t)n;
	s->head.flags |= PROTO_FRAME_ZSTD;
}

/* The next of the small frames, from @at on; NULL behind the last one. */
static uint8_t *next_small(struct slot *s, size_t *at, struct proto_frame_head *ret)
{
	uint8_t *frame = s->small.data + *at;

	if (*at == s->small.len)
		return NULL;
	if (proto_frame_decode(frame, ret, NULL) < 0)
		abort(); /* it is ours */
	*at += PROTO_FRAME_HEAD_LEN + ret->pad + ret->stored;
	return frame;
}

static void *payload_in(uint8_t *frame, const struct proto_frame_head *h)
{
	return frame + PROTO_FRAME_HEAD_LEN + h->pad;
}

/* The digests of all frames go into their heads, those of small ones also on the slot's list. */
static int hash_slot(struct proto_worker *by, struct slot *s)
{
	struct proto_digests *d = &by->digests;
	struct proto_frame_head h;
	uint8_t *frame;
	int r;

	if (s->small.failed) /* a head may lack its payload */
		return -ENOMEM;
	proto_digests_begin(d, by->sha, PROTO_VERSION);
	for (size_t at = 0; (frame = next_small(s, &at, &h));)
		proto_digests_add(d, &h, payload_in(frame, &h));
	if (s->has_data)
		proto_digests_add(d, &s->head, s->room);
	r = proto_digests_make(d);
	for (size_t at = 0; r == 0 && (frame = next_small(s, &at, &h));) {
		r = proto_digests_take(
			d, &h, payload_in(frame, &h), frame + PROTO_FRAME_HASHED);
		buf_put(&s->digests, frame + PROTO_FRAME_HASHED, PROTO_DIGEST_LEN);
	}
	if (r == 0 && s->has_data)
		r = proto_digests_take(d, &s->head, s->room, s->head.digest);
	return s->digests.failed ? -ENOMEM : r;
}

static int prepare_slot(
	const struct proto_writer *w, struct proto_worker *by, struct slot *s, struct err *e)
{
	int r;

	if (s->has_data && w->zstd_level)
		compress_slot(w, by, s);
	r = hash_slot(by, s);
	if (r == -ENOMEM)
		return err_errno(e, r, "cannot write the image");
	return r < 0 ? err_set(e, ERR_FAILED, -EIO, "libcrypto cannot hash") : 0;
}

/* Memory of a very long record is not kept. */
static void empty_slot(struct slot *s)
{
	if (s->small.cap > 4 * SMALL_FULL)
		buf_fini(&s->small);
	buf_clear(&s->small);
	buf_clear(&s->digests);
	s->has_data = false;
}

/* It has been written. */
static void free_slot(struct proto_writer *w, struct slot *s)
{
	if (s->room)
		w->rooms[w->n_rooms++] = take_ptr(s->room);
	w->writing = false;
	w->first++;
	proto_pool_did(&w->pool);
}

static void step_done(
	struct proto_writer *w, struct slot *s, enum slot_state state, const struct err *e)
{
	if (err_is(e) && !err_is(&w->error))
		w->error = *e;
	s->state = state;
}

static bool step(void *ctx, struct proto_worker *by)
{
	struct proto_writer *w = ctx;
	struct slot *s = &w->slots[w->first % SLOTS];
	struct err e = {0};

	if (s->state == DONE && !w->writing) {
		bool broken = err_is(&w->error);

		s->state = WRITING;
		w->writing = true;
		pthread_mutex_unlock(&w->pool.lock);
		if (!broken)
			write_slot(w, by, s, &e);
		empty_slot(s);
		pthread_mutex_lock(&w->pool.lock);
		free_slot(w, s);
		step_done(w, s, FREE, &e);
		return true;
	}
	for (uint64_t i = w->first; i < w->next; i++) {
		s = &w->slots[i % SLOTS];
		if (s->state != READY)
			continue;
		s->state = BUSY;
		pthread_mutex_unlock(&w->pool.lock);
		prepare_slot(w, by, s, &e);
		pthread_mutex_lock(&w->pool.lock);
		step_done(w, s, DONE, &e);
		return true;
	}
	return false;
}

/* ---- the caller's side --------------------------------------------------------------------- */

static int usable(const struct proto_writer *w, struct err *e)
{
	assert(!w->finished);
	if (!proto_pool_usable(&w->pool))
		return err_set(
			e, ERR_FAILED, -EINVAL, "the image stream was not settled before a fork");
	return 0;
}

/* Copies the error of a thread, with the lock held. */
static int thread_error(const struct proto_writer *w, struct err *e)
{
	if (err_is(&w->error) && e)
		*e = w->error;
	return w->error.error;
}

/* The slot being filled.  What threads have failed in is said when the next one is begun. */
static int fill(struct proto_writer *w, struct slot **ret, struct err *e)
{
	int r = usable(w, e);

	if (r < 0)
		return r;
	*ret = w->filling;
	if (w->filling)
		return 0;
	pthread_mutex_lock(&w->pool.lock);
	w->filling = &w->slots[w->next % SLOTS];
	while (w->filling->state != FREE)
		proto_pool_wait(&w->pool);
	w->filling->state = FILLING;
	w->next++;
	r = thread_error(w, e);
	pthread_mutex_unlock(&w->pool.lock);
	*ret = w->filling;
	return r;
}

static void hand_over(struct proto_writer *w)
{
	if (w->filling->has_data)
		proto_pool_start(&w->pool);
	pthread_mutex_lock(&w->pool.lock);
	w->filling->state = READY;
	w->filling = NULL;
	proto_pool_kick(&w->pool);
	pthread_mutex_unlock(&w->pool.lock);
}

/* Waits until all that was handed over is written. */
static int drain(struct proto_writer *w, struct err *e)
{
	int r = proto_writer_take_up(w, e);

	if (r == 0)
		r = usable(w, e);
	if (r < 0)
		return r;
	if (w->filling)
		hand_over(w);
	pthread_mutex_lock(&w->pool.lock);
	while (w->first < w->next)
		proto_pool_wait(&w->pool);
	r = thread_error(w, e);
	pthread_mutex_unlock(&w->pool.lock);
	return r;
}

/* Zeros in front of data that would begin here: not with compression, see above. */
static size_t pad_of(const struct proto_writer *w, size_t len)
{
	const uint64_t at = w->planned + PROTO_FRAME_HEAD_LEN;

	return w->zstd_level || len < SMALL_DATA ? 0 : (size_t)(ALIGN_UP(at, PROTO_ALIGN) - at);
}

/* Room for a long frame. */
static int take_room(struct proto_writer *w, struct err *e)
{
	if (w->room)
		return 0;
	pthread_mutex_lock(&w->pool.lock);
	while (!w->n_rooms && w->made == PROTO_ROOMS)
		proto_pool_wait(&w->pool);
	if (w->n_rooms)
		w->room = w->rooms[--w->n_rooms];
	pthread_mutex_unlock(&w->pool.lock);
	if (w->room)
		return 0;
	w->room = proto_warm_take(w->warm);
	if (!w->room) {
		w->room = proto_pages_alloc(PROTO_LONG_DATA);
		proto_pages_expect(w->room, PROTO_LONG_DATA);
	}
	if (!w->room)
		return err_errno(e, -ENOMEM, "cannot write the image");
	w->made++;
	return 0;
}

/* Is it handed over with others?  Each is compressed by itself, if it is worth it. */
static bool is_gathered(const struct proto_writer *w, size_t len)
{
	return len < SMALL_DATA || (len <= MEDIUM && !w->zstd_level);
}

/* Where it will be in the stream, behind its head. */
static int begin_in_place(
	struct proto_writer *w, struct slot *s, size_t len, void **ret_room, struct err *e)
{
	const size_t before = PROTO_FRAME_HEAD_LEN + pad_of(w, len);
	uint8_t *p = buf_reserve(&s->small, before + len);

	if (!p)
		return err_errno(e, -ENOMEM, "cannot write the image");
	*ret_room = p + before;
	return 0;
}

/* @begun: bytes there was room for. */
static void commit_in_place(struct proto_writer *w, struct proto_frame_head *h, size_t begun)
{
	struct buf *small = &w->filling->small;
	uint8_t *p = small->data + small->len, *payload;

	h->sequence = w->sequence++;
	h->pad = (uint32_t)pad_of(w, h->stored);
	payload = p + PROTO_FRAME_HEAD_LEN + h->pad;
	/* less than there was room for need not be aligned */
	if (h->pad != pad_of(w, begun))
		memmove(payload, p + PROTO_FRAME_HEAD_LEN + pad_of(w, begun), h->stored);
	proto_frame_encode(h, p);
	memset(p + PROTO_FRAME_HEAD_LEN, 0, h->pad);
	small->len += PROTO_FRAME_HEAD_LEN + h->pad + h->stored;
	w->planned += PROTO_FRAME_HEAD_LEN + h->pad + h->stored;
	if (h->stored >= SMALL_DATA)
		proto_pool_start(&w->pool);
	if (small->len >= SMALL_FULL)
		hand_over(w);
}

/* A frame that is handed over with others. */
static int put_small(
	struct proto_writer *w, struct proto_frame_head *h, const void *payload, struct err *e)
{
	uint8_t head[PROTO_FRAME_HEAD_LEN];
	struct slot *s;
	int r = fill(w, &s, e);

	if (r < 0)
		return r;
	h->sequence = w->sequence++;
	proto_frame_encode(h, head);
	buf_put(&s->small, head, sizeof(head));
	buf_put(&s->small, payload, h->stored);
	if (s->small.failed)
		return err_errno(e, -ENOMEM, "cannot write the image");
	w->planned += sizeof(head) + h->stored;
	if (s->small.len >= SMALL_FULL)
		hand_over(w);
	return 0;
}

/*
 * 1: @len bytes have room to be put aside; 0: they are not.  When it would be too much nothing is
 * any more.
 */
static int room_aside(struct proto_writer *w, size_t len, void **ret, struct err *e)
{
	assert(!w->begun && !w->finished);
	if (!w->aside)
		return 0;
	if (sizeof(struct aside) + ALIGN_UP(len, ASIDE_ALIGN) > w->most - w->n_aside)
		return proto_writer_take_up(w, e);
	*ret = w->aside + w->n_aside + sizeof(struct aside);
	return 1;
}

/* Its payload is where room_aside said. */
static void put_aside(struct proto_writer *w, const struct aside *h)
{
	memcpy(w->aside + w->n_aside, h, sizeof(*h));
	w->n_aside += sizeof(*h) + ALIGN_UP(h->len, ASIDE_ALIGN);
}

void proto_writer_put_aside(struct proto_writer *w, void *pages, size_t most)
{
	w->aside = pages;
	w->most = most;
}

int proto_writer_take_up(struct proto_writer *w, struct err *e)
{
	uint8_t *frames = take_ptr(w->aside);
	const size_t n = w->n_aside;
	struct aside h;
	int r = 0;

	w->n_aside = 0;
	for (size_t at = 0; r == 0 && at < n; at += ALIGN_UP(h.len, ASIDE_ALIGN)) {
		memcpy(&h, frames + at, sizeof(h));
		at += sizeof(h);
		r = h.data ? proto_write_data(w, h.kind, h.subject, h.offset, frames + at, h.len, e)
			   : proto_write_record(w, h.kind, h.subject, frames + at, h.len, e);
	}
	proto_pages_free(frames, w->most);
	return r;
}

int proto_write_record(struct proto_writer *w, enum proto_kind kind, uint64_t subject,
	const void *body, size_t len, struct err *e)
{
	struct proto_frame_head h = {.type = PROTO_WIRE_RECORD,
		.kind = kind,
		.subject = subject,
		.stored = (uint32_t)len,
		.length = (uint32_t)len};
	void *aside = NULL;
	int r;

	if (len > PROTO_MAX_RECORD)
		return err_set(
			e, ERR_FAILED, -E2BIG, "a record of %zu bytes is above the limit", len);
	r = room_aside(w, len, &aside, e);
	if (r <= 0)
		return r < 0 ? r : put_small(w, &h, body, e);
	if (len)
		memcpy(aside, body, len);
	put_aside(w, &(struct aside){.kind = kind, .subject = subject, .len = len});
	return 0;
}

int proto_write_data_begin(struct proto_writer *w, size_t len, void **ret_room, struct err *e)
{
	struct slot *s;
	int r;

	assert(len > 0 && len <= PROTO_LONG_DATA);
	r = room_aside(w, len, ret_room, e);
	if (r > 0)
		w->begun = len;
	if (r != 0)
		return MIN(r, 0);
	r = fill(w, &s, e);
	if (r < 0)
		return r;
	w->in_place = is_gathered(w, len);
	r = w->in_place ? begin_in_place(w, s, len, ret_room, e) : take_room(w, e);
	if (r < 0)
		return r;
	if (!w->in_place)
		*ret_room = w->room;
	w->begun = len;
	return 0;
}

int proto_write_data_commit(struct proto_writer *w, enum proto_kind kind, uint64_t subject,
	uint64_t offset, size_t len, struct err *e)
{
	struct proto_frame_head h = {.type = PROTO_WIRE_DATA,
		.kind = kind,
		.subject = subject,
		.offset = offset,
		.stored = (uint32_t)len,
		.length = (uint32_t)len};
	const size_t begun = w->begun;
	struct slot *s = w->filling;

	assert(begun && len <= begun && (s || w->aside));
	w->begun = 0;
	if (len == 0)
		return 0;
	if (w->aside) {
		put_aside(w, &(struct aside){true, kind, subject, offset, len});
		return 0;
	}
	if (w->in_place) {
		commit_in_place(w, &h, begun);
		return 0;
	}
	if (len < SMALL_DATA)
		return put_small(w, &h, w->room, e);
	h.sequence = w->sequence++;
	h.pad = (uint32_t)pad_of(w, len);
	w->planned += PROTO_FRAME_HEAD_LEN + h.pad + len;
	s->head = h;
	s->room = take_ptr(w->room);
	s->has_data = true;
	hand_over(w);
	return 0;
}

int proto_write_data(struct proto_writer *w, enum proto_kind kind, uint64_t subject,
	uint64_t offset, const void *data, size_t len, struct err *e)
{
	const uint8_t *p = data;

	while (len > 0) {
		size_t n = MIN(len, (size_t)PROTO_LONG_DATA);
		void *room;
		int r = proto_write_data_begin(w, n, &room, e);

		if (r < 0)
			return r;
		memcpy(room, p, n);
		r = proto_write_data_commit(w, kind, subject, offset, n, e);
		if (r < 0)
			return r;
		p += n;
		offset += n;
		len -= n;
	}
	return 0;
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* What is done for the first time finds its code, and whatever of the library is on disk yet. */
static void prepare_sha(void)
{
	static const uint8_t zeros[64];
	struct proto_piece pieces[17]; /* one more than lanes, which libcrypto hashes */
	struct proto_lanes_library *lanes = proto_lanes_load();
	struct proto_sha *sha = proto_sha_new(lanes);

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		pieces[i] = (struct proto_piece){.data = zeros, .len = sizeof(zeros)};
	if (sha)
		proto_sha_each(sha, pieces, ARRAY_SIZE(pieces));
	proto_sha_free(sha);
	free(lanes);
}

void proto_prepare(void)
{
	uint8_t seed[PROTO_SEED_LEN] = {0}, signature[PROTO_SIG_LEN];

	prepare_sha();
	proto_ed25519_sign(seed, seed, sizeof(seed), signature, NULL);
}

static int write_head(struct proto_writer *w, struct err *e)
{
	uint8_t head[PROTO_HEAD_LEN];
	struct iovec iov = {head, sizeof(head)};
	int r = proto_head_encode(&w->info, w->key, head, e);

	if (r < 0)
		return r;
	proto_sha_begin(w->list);
	proto_sha_add(w->list, head, sizeof(head));
	w->planned = sizeof(head);
	return write_vector(w, &w->pool.own, &iov, 1, e);
}

int proto_writer_open(
	struct proto_writer **ret, int fd, const struct proto_write_options *o, struct err *e)
{
	static const uint8_t no_id[sizeof(o->image_id)];
	struct proto_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_errno(e, -ENOMEM, "image stream");
	w->fd = fd;
	w->key = o->key;
	w->zstd_level = o->zstd_level;
	w->hold_last = o->hold_last;
	w->warm = o->warm;
	w->info.copy = o->copy;
	w->info.created = o->created ? o->created : (uint64_t)time(NULL);
	memcpy(w->info.image_id, o->image_id, sizeof(o->image_id));
	r = proto_pool_init(&w->pool, o->threads, true, step, w, e);
	if (r == 0 && !memcmp(o->image_id, no_id, sizeof(no_id)))
		r = proto_random(w->info.image_id, sizeof(w->info.image_id), e);
	if (r == 0) {
		w->list = proto_sha_new(NULL);
		r = w->list ? write_head(w, e) : err_errno(e, -ENOMEM, "image stream");
	}
	if (r < 0) {
		proto_writer_close(w);
		return r;
	}
	*ret = w;
	return 0;
}

int proto_writer_finish(struct proto_writer *w, uint64_t *ret_bytes, struct err *e)
{
	struct proto_frame_head h = {
		.type = PROTO_WIRE_END, .stored = PROTO_END_LEN, .length = PROTO_END_LEN};
	uint8_t head[PROTO_FRAME_HEAD_LEN], payload[PROTO_END_LEN];
	struct iovec iov[2] = {{head, sizeof(head)}, {payload, sizeof(payload)}};
	struct proto_end end = {0};
	int r;

	assert(!w->begun);
	r = drain(w, e);
	if (r < 0)
		return r;
	assert(w->zstd_level || w->written == w->planned);
	end.frames = w->frames;
	end.bytes = w->written;
	r = proto_sha_end(w->list, end.list);
	if (r < 0)
		return err_set(e, ERR_FAILED, r, "libcrypto cannot hash");
	r = proto_end_encode(&end, w->key, payload, e);
	if (r < 0)
		return r;
	h.sequence = w->sequence++;
	r = proto_frame_digest(w->pool.own.sha, &h, payload, h.digest);
	if (r < 0)
		return err_set(e, ERR_FAILED, r, "libcrypto cannot hash");
	proto_frame_encode(&h, head);
	w->held = payload[sizeof(payload) - 1];
	iov[1].iov_len -= w->hold_last;
	r = write_vector(w, &w->pool.own, iov, 2, e);
	if (r < 0)
		return r;
	w->written += w->hold_last;
	w->finished = true;
	if (ret_bytes)
		*ret_bytes = w->written;
	return 0;
}

uint8_t proto_writer_held(const struct proto_writer *w)
{
	return w->held;
}

int proto_writer_settle(struct proto_writer *w, struct err *e)
{
	int r = drain(w, e);

	proto_pool_settle(&w->pool);
	return r;
}

void proto_writer_close(struct proto_writer *w)
{
	if (!w)
		return;
	proto_pool_fini(&w->pool);
	proto_pages_free(w->aside, w->most);
	for (unsigned i = 0; i < SLOTS; i++) {
		buf_fini(&w->slots[i].small);
		buf_fini(&w->slots[i].digests);
		proto_pages_free(w->slots[i].room, PROTO_LONG_DATA);
	}
	while (w->n_rooms)
		proto_pages_free(w->rooms[--w->n_rooms], PROTO_LONG_DATA);
	proto_pages_free(w->room, PROTO_LONG_DATA);
	proto_sha_free(w->list);
	free(w);
}

void proto_writer_id(const struct proto_writer *w, uint8_t ret[16])
{
	memcpy(ret, w->info.image_id, sizeof(w->info.image_id));
}

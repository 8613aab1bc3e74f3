// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * reader - takes a stream of frames apart, trusting nothing in it.
 *
 * Theory of operation
 *
 * Frames are read ahead, strictly in order, into a ring of slots; their digests are checked by
 * threads, the next one before the caller asks for it:
 *
 *      FREE -> READING -> READY -> BUSY -> DONE -> FREE
 *              one thread  |  any thread |   the caller, frame by frame, in order
 *              at a time
 *
 * A slot is a batch: consecutive small frames together, or one long one, so that a record costs no
 * hand-over of its own.  Whatever ends the stream - its END, an error - is remembered in the slot
 * where it happened and the caller meets it after the good frames in front of it.
 *
 * Memory is bounded by SLOTS * (SLOT_SIZE + what decompression gives).  A length is only believed
 * as far as bytes arrive: a record's room grows while it is read.  Regular files are read with
 * pread, so that one that shrinks meanwhile gives an error and no SIGBUS.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "proto/frame.h"
#include "proto/pool.h"
#include "proto/source.h"
#include "proto/proto.h"

#define SLOTS	     4u
#define SLOT_SIZE    ((size_t)PROTO_MAX_DATA)
#define BATCH_FULL   (256u << 10) /* enough small frames for one slot */
#define MUCH	     (1u << 20)	  /* of one frame: worth huge pages */
#define BATCH_MAX    128u	  /* frames of a slot */
#define THREADS_FROM (1u << 20)	  /* so much is worth starting threads early */

enum slot_state { FREE, READING, READY, BUSY, DONE };

struct entry {
	struct proto_frame_head head;
	size_t at;	/* of the payload in `bytes` */
	size_t raw_at;	/* of what decompressing gives in `raw` */
	uint64_t place; /* of the frame in the stream */
	int64_t file_offset;
	bool left; /* its payload was not read */
};

struct slot {
	enum slot_state state;
	uint8_t *bytes; /* payloads as stored: SLOT_SIZE */
	uint8_t *big;	/* a record longer than that, instead */
	uint8_t *raw;	/* decompressed payloads: SLOT_SIZE once needed */
	bool much, much_raw; /* there have been long ones */
	size_t len, raw_len;
	struct entry entries[BATCH_MAX];
	size_t n, given;  /* frames in it, and already handed out */
	struct err error; /* behind the last frame */
};

struct proto_reader {
	struct proto_source source;
	const struct version *version;
	struct proto_image_info info;
	bool skip_digests;
	uint32_t leave_long;
	struct proto_pool pool;

	/* the caller's */
	struct proto_frame last;
	bool unread, ended;
	struct err failed; /* what every further call says */
	struct proto_sha *list;
	uint64_t given;

	/* under the pool's lock */
	struct slot slots[SLOTS];
	uint64_t first, next; /* oldest slot in use, next one to read into; modulo SLOTS */
	bool reading, no_more;

	/* whoever holds `reading` */
	struct proto_frame_head ahead; /* a head whose payload belongs into the next slot */
	bool has_ahead;
	uint64_t ahead_place;
	uint64_t sequence;
};

/* ---- format versions ----------------------------------------------------------------------- */

/* How images of one version are read.  The writer makes the newest. */
struct version {
	uint32_t number;
	size_t head_len;
	int (*decode_head)(const uint8_t *bytes, struct proto_image_info *ret, struct err *e);
	size_t frame_head_len;
	int (*decode_frame)(const uint8_t *bytes, struct proto_frame_head *ret, struct err *e);
};

static const struct version versions[] = {
	/* 1 differs in the digests of data (digest.h). */
	{1, PROTO_HEAD_LEN, proto_head_decode, PROTO_FRAME_HEAD_LEN, proto_frame_decode},
	{PROTO_VERSION, PROTO_HEAD_LEN, proto_head_decode, PROTO_FRAME_HEAD_LEN,
		proto_frame_decode},
};

#define MAX_HEAD_LEN PROTO_HEAD_LEN /* of all versions */

static const struct version *find_version(uint32_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		if (versions[i].number == number)
			return &versions[i];
	}
	return NULL;
}

/* ---- reading ahead ------------------------------------------------------------------------- */

/* Puts "frame 7 at byte 1234" in front of an error in the stream itself. */
static int place(struct err *e, uint64_t sequence, uint64_t at)
{
	if (e->class != ERR_IMAGE)
		return e->error;
	return err_wrap(
		e, "frame %llu at byte %llu", (unsigned long long)sequence, (unsigned long long)at);
}

static int read_frame_head(struct proto_reader *r, struct proto_worker *by, struct err *e)
{
	uint8_t bytes[PROTO_FRAME_HEAD_LEN];
	int res;

	r->ahead_place = r->source.position;
	res = proto_source_read(&r->source, by, bytes, r->version->frame_head_len, e);
	if (res == 0)
		res = r->version->decode_frame(bytes, &r->ahead, e);
	if (res == 0 && r->ahead.sequence != r->sequence)
		res = err_set(e, ERR_IMAGE, -EBADMSG, "it says it is frame %llu",
			(unsigned long long)r->ahead.sequence);
	if (res < 0)
		return place(e, r->sequence, r->ahead_place);
	r->sequence++;
	r->has_ahead = true;
	return 0;
}

/* Is the payload of the frame ahead passed over? */
static bool leaves_ahead(const struct proto_reader *r)
{
	return r->leave_long && r->ahead.kind == r->leave_long &&
	       r->ahead.type == PROTO_WIRE_DATA && !r->ahead.flags &&
	       r->ahead.stored >= PROTO_ALIGN_MIN;
}

/* True if the frame ahead should wait for the next slot. */
static bool slot_full(const struct proto_reader *r, const struct slot *s)
{
	size_t most = leaves_ahead(r) ? 0 : MAX(r->ahead.stored, r->ahead.length);

	if (s->n == 0)
		return false;
	return s->n == BATCH_MAX || s->len + most > BATCH_FULL || s->raw_len + most > BATCH_FULL;
}

/* Before that much is put into a slot's memory, for the first time. */
static void expect(uint8_t *memory, bool *much, size_t len)
{
	if (*much || len < MUCH)
		return;
	proto_pages_expect(memory, SLOT_SIZE);
	*much = true;
}

/* Reads a record longer than a slot; its length is believed bit by bit. */
static int read_big(struct proto_reader *r, struct proto_worker *by, struct slot *s, struct err *e)
{
	size_t have = 0;

	while (have < r->ahead.stored) {
		size_t more = MAX(have, SLOT_SIZE);
		size_t n = MIN(more, r->ahead.stored - have);
		uint8_t *p = realloc(s->big, have + n);
		int res;

		if (!p)
			return err_errno(e, -ENOMEM, "a record of %u bytes", r->ahead.stored);
		s->big = p;
		res = proto_source_read(&r->source, by, p + have, n, e);
		if (res < 0)
			return res;
		have += n;
	}
	return 0;
}

static int read_payload(
	struct proto_reader *r, struct proto_worker *by, struct slot *s, struct err *e)
{
	struct entry *f = &s->entries[s->n];
	int res = proto_source_skip_zeros(&r->source, by, r->ahead.pad, e);

	*f = (struct entry){.head = r->ahead, .at = s->len, .raw_at = s->raw_len};
	f->place = r->ahead_place;
	f->file_offset = -1;
	if (r->ahead.type == PROTO_WIRE_DATA && !r->ahead.flags)
		f->file_offset = proto_source_file_offset(&r->source);
	f->left = leaves_ahead(r);
	if (res == 0 && f->left)
		res = proto_source_skip(&r->source, r->ahead.stored, e);
	else if (res == 0 && r->ahead.stored > SLOT_SIZE)
		res = read_big(r, by, s, e);
	else if (res == 0) {
		expect(s->bytes, &s->much, r->ahead.stored);
		res = proto_source_read(&r->source, by, s->bytes + s->len, r->ahead.stored, e);
	}
	if (res < 0)
		return place(e, r->ahead.sequence, r->ahead_place);
	s->len += f->left ? 0 : r->ahead.stored;
	if (r->ahead.flags & PROTO_FRAME_ZSTD)
		s->raw_len += r->ahead.length;
	s->n++;
	r->has_ahead = false;
	return 0;
}

/* Fills a slot; returns true when nothing follows. */
static bool read_slot(struct proto_reader *r, struct proto_worker *by, struct slot *s)
{
	struct err *e = &s->error;

	if (!s->bytes)
		s->bytes = proto_pages_alloc(SLOT_SIZE);
	if (!s->bytes)
		return err_errno(e, -ENOMEM, "image stream") < 0;
	do {
		if (!r->has_ahead && read_frame_head(r, by, e) < 0)
			return true;
		if (slot_full(r, s))
			return false;
		if (read_payload(r, by, s, e) < 0)
			return true;
		if (s->entries[s->n - 1].head.type == PROTO_WIRE_END)
			return true;
	} while (s->len < BATCH_FULL && s->n < BATCH_MAX &&
		 proto_source_has(&r->source, r->version->frame_head_len));
	return false;
}

/* ---- checking ------------------------------------------------------------------------------ */

static const uint8_t *payload_of(const struct slot *s, const struct entry *f)
{
	return f->head.stored > SLOT_SIZE ? s->big : s->bytes + f->at;
}

static bool is_hashed(const struct proto_reader *r, const struct entry *f)
{
	return !r->skip_digests || f->head.type == PROTO_WIRE_END;
}

/* What can be hashed of all frames of a slot before each one's digest is looked at. */
static int hash_slot(
	const struct proto_reader *r, struct proto_worker *by, const struct slot *s, struct err *e)
{
	int res;

	proto_digests_begin(&by->digests, by->sha, r->version->number);
	for (size_t i = 0; i < s->n; i++) {
		const struct entry *f = &s->entries[i];

		if (is_hashed(r, f))
			proto_digests_add(&by->digests, &f->head, payload_of(s, f));
	}
	res = proto_digests_make(&by->digests);
	if (res == -ENOMEM)
		return err_errno(e, res, "image stream");
	return res < 0 ? err_set(e, ERR_FAILED, res, "libcrypto cannot hash") : 0;
}

static int check_digest(struct proto_worker *by, const struct slot *s, const struct entry *f,
	struct err *e)
{
	uint8_t digest[PROTO_DIGEST_LEN];

	if (proto_digests_take(&by->digests, &f->head, payload_of(s, f), digest) < 0)
		return err_set(e, ERR_FAILED, -EIO, "libcrypto cannot hash");
	if (memcmp(digest, f->head.digest, sizeof(digest)))
		return err_set(e, ERR_IMAGE, -EBADMSG, "its digest does not match");
	return 0;
}

static int check_entry(const struct proto_reader *r, struct proto_worker *by, struct slot *s,
	struct entry *f, struct err *e)
{
	int res = is_hashed(r, f) ? check_digest(by, s, f, e) : 0;

	if (res < 0 || !(f->head.flags & PROTO_FRAME_ZSTD))
		return res;
	if (!s->raw)
		s->raw = proto_pages_alloc(SLOT_SIZE);
	if (!s->raw)
		return err_errno(e, -ENOMEM, "image stream");
	expect(s->raw, &s->much_raw, f->head.length);
	if (proto_zstd_unpack(by->zstd, payload_of(s, f), f->head.stored, s->raw + f->raw_at,
		    f->head.length) < 0)
		return err_set(e, ERR_IMAGE, -EBADMSG, "its data can't be decompressed");
	return 0;
}

static void check_slot(const struct proto_reader *r, struct proto_worker *by, struct slot *s)
{
	struct err e = {0};

	if (hash_slot(r, by, s, &e) < 0) {
		s->error = e;
		s->n = 0;
	}
	for (size_t i = 0; i < s->n; i++) {
		if (check_entry(r, by, s, &s->entries[i], &e) == 0)
			continue;
		place(&e, s->entries[i].head.sequence, s->entries[i].place);
		s->error = e;
		s->n = i;
		return;
	}
}

static bool step(void *ctx, struct proto_worker *by)
{
	struct proto_reader *r = ctx;
	struct slot *s;
	bool last;

	for (uint64_t i = r->first; i < r->next; i++) {
		s = &r->slots[i % SLOTS];
		if (s->state != READY)
			continue;
		s->state = BUSY;
		pthread_mutex_unlock(&r->pool.lock);
		check_slot(r, by, s);
		pthread_mutex_lock(&r->pool.lock);
		s->state = DONE;
		proto_pool_did(&r->pool);
		return true;
	}
	s = &r->slots[r->next % SLOTS];
	if (r->reading || r->no_more || s->state != FREE)
		return false;
	s->state = READING;
	r->reading = true;
	r->next++;
	pthread_mutex_unlock(&r->pool.lock);
	last = read_slot(r, by, s);
	pthread_mutex_lock(&r->pool.lock);
	r->reading = false;
	r->no_more = last;
	s->state = READY;
	/* One may read on while another checks this. */
	proto_pool_kick(&r->pool);
	return true;
}

/* ---- the caller's side --------------------------------------------------------------------- */

static void slot_clear(struct slot *s)
{
	free(take_ptr(s->big));
	s->len = s->raw_len = 0;
	s->n = s->given = 0;
	s->error = (struct err){0};
	s->state = FREE;
}

/*
 * The slot with the next frame, or with the error that stands in its place.  No thread touches a
 * slot that is DONE, so the caller needs no lock for it.
 */
static struct slot *next_slot(struct proto_reader *r)
{
	struct slot *s;

	pthread_mutex_lock(&r->pool.lock);
	for (;;) {
		s = &r->slots[r->first % SLOTS];
		if (s->state != DONE) {
			proto_pool_wait(&r->pool);
		} else if (s->given < s->n || err_is(&s->error)) {
			break;
		} else {
			slot_clear(s);
			r->first++;
			proto_pool_kick(&r->pool);
		}
	}
	pthread_mutex_unlock(&r->pool.lock);
	return s;
}

static int verify_end(
	struct proto_reader *r, const struct slot *s, const struct entry *f, struct err *e)
{
	struct proto_end end;
	uint8_t list[PROTO_DIGEST_LEN];
	int res = proto_end_decode(payload_of(s, f), r->info.signer, &end, e);

	if (res < 0)
		return res;
	if (proto_sha_end(r->list, list) < 0)
		return err_set(e, ERR_FAILED, -EIO, "libcrypto cannot hash");
	if (end.frames != r->given || end.bytes != f->place)
		return err_set(e, ERR_IMAGE, -EBADMSG,
			"its end belongs to %llu frames in %llu bytes, here are %llu in %llu",
			(unsigned long long)end.frames, (unsigned long long)end.bytes,
			(unsigned long long)r->given, (unsigned long long)f->place);
	if (memcmp(end.list, list, sizeof(list)))
		return err_set(
			e, ERR_IMAGE, -EBADMSG, "the signed digests are not those of these frames");
	if (proto_source_trailing(&r->source))
		return err_set(e, ERR_IMAGE, -EBADMSG, "something follows its end");
	return 0;
}

static int give(struct proto_reader *r, struct slot *s, struct err *e)
{
	static const enum proto_frame_type types[] = {[PROTO_WIRE_RECORD] = PROTO_RECORD,
		[PROTO_WIRE_DATA] = PROTO_DATA,
		[PROTO_WIRE_END] = PROTO_END};
	const struct entry *f = &s->entries[s->given++];
	bool end = f->head.type == PROTO_WIRE_END;

	if (end) {
		if (verify_end(r, s, f, e) < 0)
			return place(e, f->head.sequence, f->place);
	} else {
		proto_sha_add(r->list, f->head.digest, PROTO_DIGEST_LEN);
		r->given++;
	}
	r->last = (struct proto_frame){.type = types[f->head.type],
		.kind = f->head.kind,
		.subject = f->head.subject,
		.offset = f->head.offset,
		.data = f->left			       ? NULL
			: f->head.flags & PROTO_FRAME_ZSTD ? s->raw + f->raw_at
							   : payload_of(s, f),
		.len = end ? 0 : f->head.length,
		.file_offset = f->file_offset};
	r->ended = end;
	if (f->head.stored >= PROTO_ALIGN_MIN && !end && !f->left)
		proto_pool_start(&r->pool);
	return 0;
}

static int fail(struct proto_reader *r, const struct err *why, struct err *e)
{
	r->failed = *why;
	if (e)
		*e = *why;
	return why->error;
}

int proto_read(struct proto_reader *r, struct proto_frame *ret, struct err *e)
{
	struct err why = {0};
	struct slot *s;

	if (err_is(&r->failed))
		return fail(r, &r->failed, e);
	if (r->unread) {
		r->unread = false;
		*ret = r->last;
		return 0;
	}
	if (r->ended)
		err_set(&why, ERR_FAILED, -EINVAL, "reading beyond the end of an image");
	else if (!proto_pool_usable(&r->pool))
		err_set(&why, ERR_FAILED, -EINVAL,
			"the image stream was not settled before a fork");
	if (err_is(&why))
		return fail(r, &why, e);
	s = next_slot(r);
	if (s->given == s->n)
		return fail(r, &s->error, e);
	if (give(r, s, &why) < 0)
		return fail(r, &why, e);
	*ret = r->last;
	return 0;
}

void proto_unread(struct proto_reader *r)
{
	assert(!r->unread && !err_is(&r->failed));
	r->unread = true;
}

void proto_reader_start(struct proto_reader *r)
{
	if (proto_source_left(&r->source) >= THREADS_FROM)
		proto_pool_start(&r->pool);
}

void proto_reader_settle(struct proto_reader *r)
{
	proto_pool_settle(&r->pool);
}

/* ---- beginning and end --------------------------------------------------------------------- */

static int read_head(struct proto_reader *r, struct err *e)
{
	uint8_t bytes[MAX_HEAD_LEN];
	struct cursor c = cursor_of(bytes + PROTO_MAGIC_LEN, 4);
	uint32_t number;
	int res = proto_source_read(&r->source, &r->pool.own, bytes, PROTO_PREFIX_LEN, e);

	if (res == -EBADMSG || (res == 0 && memcmp(bytes, PROTO_MAGIC, PROTO_MAGIC_LEN)))
		return err_set(e, ERR_IMAGE, -EBADMSG, "this is not a podrun image");
	if (res < 0)
		return res;
	number = cursor_u32(&c);
	r->version = find_version(number);
	if (!r->version) {
		err_set(e, ERR_IMAGE, -EBADMSG, "images of version %u can't be read", number);
		return err_hint(e, "this podrun reads versions %u to %u", versions[0].number,
			versions[ARRAY_SIZE(versions) - 1].number);
	}
	res = proto_source_read(&r->source, &r->pool.own, bytes + PROTO_PREFIX_LEN,
		r->version->head_len - PROTO_PREFIX_LEN, e);
	if (res == 0)
		res = r->version->decode_head(bytes, &r->info, e);
	if (res < 0)
		return res;
	proto_sha_begin(r->list);
	proto_sha_add(r->list, bytes, r->version->head_len);
	return 0;
}

static int check_signer(
	const struct proto_reader *r, const struct proto_read_options *o, struct err *e)
{
	char text[PROTO_KEY_TEXT_LEN];
	int res;

	if (!o->config_dir)
		return 0;
	if (o->also_trust && !memcmp(o->also_trust, r->info.signer, PROTO_KEY_LEN))
		return 0;
	res = proto_trust_has(o->config_dir, r->info.signer, e);
	if (res != 0)
		return res < 0 ? res : 0;
	proto_key_format(r->info.signer, text);
	err_set(e, ERR_IMAGE, -EKEYREJECTED, "its signer %s is not trusted", text);
	return err_hint(e, "if you know whose key this is: podrun key trust %s", text);
}

int proto_reader_open(
	struct proto_reader **ret, int fd, const struct proto_read_options *o, struct err *e)
{
	struct proto_reader *r = calloc(1, sizeof(*r));
	/* Without digests there is only copying left, and that goes no faster by two. */
	unsigned threads = o->skip_digests && o->threads == 0 ? 1 : o->threads;
	int res;

	if (!r)
		return err_errno(e, -ENOMEM, "image stream");
	r->skip_digests = o->skip_digests;
	res = proto_pool_init(&r->pool, threads, !o->skip_digests, step, r, e);
	if (res == 0)
		res = proto_source_init(&r->source, fd, e);
	if (o->skip_digests && res == 0 && r->source.file)
		r->leave_long = o->leave_long;
	if (res == 0) {
		r->list = proto_sha_new(NULL);
		res = r->list ? read_head(r, e) : err_errno(e, -ENOMEM, "image stream");
	}
	if (res == 0)
		res = check_signer(r, o, e);
	if (res < 0) {
		proto_reader_close(r);
		return res;
	}
	*ret = r;
	return 0;
}

void proto_reader_info(const struct proto_reader *r, struct proto_image_info *ret)
{
	*ret = r->info;
}

bool proto_reader_take(struct proto_reader *r)
{
	return proto_source_take(&r->source);
}

void proto_reader_close(struct proto_reader *r)
{
	if (!r)
		return;
	proto_pool_fini(&r->pool);
	for (unsigned i = 0; i < SLOTS; i++) {
		struct slot *s = &r->slots[i];

		free(s->big);
		proto_pages_free(s->bytes, SLOT_SIZE);
		proto_pages_free(s->raw, SLOT_SIZE);
	}
	proto_source_fini(&r->source);
	proto_sha_free(r->list);
	free(r);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proto - everything that turns records into bytes and back.  The room's public header.
 *
 * proto/SPEC.md is the format; this is its interface:
 *
 *   image stream      writer, reader: frames of records and data, each with a digest, the whole
 *                     signed; written and read strictly in sequence
 *   keys              Ed25519, made on first use; whose images are accepted
 *   control messages  length-prefixed protobuf over a unix socket, with descriptors
 *
 * Generated protobuf-c headers (proto/NAME.pb-c.h) may be included by .c files of other rooms that
 * fill or read a message, never by headers.
 */
#ifndef PROTO_PROTO_H
#define PROTO_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/kinds.h"

struct buf;
struct err;

/* ---- keys ------------------------------------------------------------------------------- */

#define PROTO_KEY_LEN 32 /* Ed25519 public key */
#define PROTO_SIG_LEN 64

struct proto_key; /* a private key */

/* The user's key in @config_dir/key (0600), made on first use. */
int proto_key_open(struct proto_key **ret, const char *config_dir, struct err *e);
void proto_key_close(struct proto_key *k);
/* The public half of the user's own key: 1, or 0 when none was made yet (none is made). */
int proto_key_own(const char *config_dir, uint8_t ret[PROTO_KEY_LEN], struct err *e);
void proto_key_public(const struct proto_key *k, uint8_t ret[PROTO_KEY_LEN]);
/* "ed25519:BASE64" of a public key; parse accepts the same. */
#define PROTO_KEY_TEXT_LEN 64
void proto_key_format(const uint8_t key[PROTO_KEY_LEN], char ret[PROTO_KEY_TEXT_LEN]);
int proto_key_parse(const char *text, uint8_t ret[PROTO_KEY_LEN], struct err *e);

/*
 * Base64 (RFC 4648) of @n bytes, ended by NUL.  Decoding @len characters accepts nothing but what
 * encoding makes, of at most PROTO_BASE64_MAX bytes: how many they were, or -EINVAL, also where
 * they are more than @room.
 */
#define PROTO_BASE64_SIZE(n) (((n) + 2) / 3 * 4 + 1)
#define PROTO_BASE64_MAX     2400
void proto_base64_encode(const void *bytes, size_t n, char *ret);
ssize_t proto_base64_decode(const char *text, size_t len, void *ret, size_t room);

/*
 * Trusted keys: one per line in @config_dir/trusted, "ed25519:... comment". One's own is always
 * trusted.
 */
int proto_trust_add(const char *config_dir, const uint8_t key[PROTO_KEY_LEN], const char *comment,
	struct err *e);
int proto_trust_remove(const char *config_dir, const uint8_t key[PROTO_KEY_LEN], struct err *e);
/* 1 trusted, 0 not. */
int proto_trust_has(const char *config_dir, const uint8_t key[PROTO_KEY_LEN], struct err *e);
/* Calls @each for every line; stops when it returns nonzero. */
int proto_trust_list(const char *config_dir,
	int (*each)(void *ctx, const uint8_t key[PROTO_KEY_LEN], const char *comment), void *ctx,
	struct err *e);

/*
 * Writers and readers start threads once there is long data (>= 32 KiB) to hash; they block all
 * signals and never outlive close.  PROTO_NO_THREADS keeps all work in the caller.  Before a fork
 * whose child goes on with the stream, and before setns or unshare, call proto_*_settle: it ends
 * the threads and they start again when needed.  A child that was forked without it gets an error.
 */
#define PROTO_NO_THREADS (~0u)

/* ---- image stream: writing ---------------------------------------------------------------- */

/* Makes libcrypto load what signing and hashing need, some milliseconds, so that a later
 * proto_writer_open need not. */
void proto_prepare(void);
/*
 * A thread touches memory for the writer that will be opened (options.warm), as much of it as an image
 * of @expect(@ctx) bytes has use for, which the thread asks.  NULL: there is no memory, and none is needed.
 * end: when the writer is closed, or was never opened.  NULL is fine.
 */
struct proto_warm;
struct proto_warm *proto_warm_begin(size_t (*expect)(void *ctx), void *ctx);
void proto_warm_end(struct proto_warm *w);

struct proto_writer;

struct proto_write_options {
	const struct proto_key *key; /* signs; borrowed */
	int zstd_level;		     /* 0: data is written as it is, page aligned */
	unsigned threads;	     /* for digests (and compression); 0: one per CPU, at most 4 */
	uint8_t image_id[16];	     /* random; made when all zero */
	bool copy;	  /* a snapshot or clone (may be resumed again) rather than a move */
	bool hold_last;	  /* the last byte is not written: proto_writer_held */
	uint64_t created; /* unix seconds; 0: now */
	struct proto_warm *warm; /* borrowed; or NULL */
};

/* Frames above this are refused by the reader. */
#define PROTO_MAX_RECORD (16u << 20)
#define PROTO_MAX_DATA	 (4u << 20)
/* What the writer makes of data at most; what is longer is split. */
#define PROTO_LONG_DATA (2u << 20)

/* Writes the signed header to @fd (borrowed; a file, a pipe, a socket). */
int proto_writer_open(
	struct proto_writer **ret, int fd, const struct proto_write_options *o, struct err *e);
int proto_write_record(struct proto_writer *w, enum proto_kind kind, uint64_t subject,
	const void *body, size_t len, struct err *e);
/* Bulk data of (@kind, @subject); any length, split as needed. */
int proto_write_data(struct proto_writer *w, enum proto_kind kind, uint64_t subject,
	uint64_t offset, const void *data, size_t len, struct err *e);
/*
 * The same without a copy: returns room for exactly @len (<= PROTO_LONG_DATA) bytes, which the
 * caller fills and then commits; hashing, compressing and writing go on in the background,
 * in order.  One may be open at a time.
 */
int proto_write_data_begin(struct proto_writer *w, size_t len, void **ret_room, struct err *e);
int proto_write_data_commit(struct proto_writer *w, enum proto_kind kind, uint64_t subject,
	uint64_t offset, size_t len, struct err *e);
/*
 * From here on frames are only kept in memory, in the @most bytes of @pages (of mmap(2); the
 * writer's own from now on), until they are more: to hash and to write them is for later.  take_up
 * (and settle, and finish) lets them go; the image is the same.  NULL: nothing is kept.
 */
void proto_writer_put_aside(struct proto_writer *w, void *pages, size_t most);
int proto_writer_take_up(struct proto_writer *w, struct err *e);
/* Digest list, signature, end mark; everything has been handed to the kernel when it returns. */
int proto_writer_finish(struct proto_writer *w, uint64_t *ret_bytes, struct err *e);
/*
 * After the finish with options.hold_last: the byte that makes the image whole, for whoever decides
 * whether it shall be.
 */
uint8_t proto_writer_held(const struct proto_writer *w);
/* Writes everything so far and ends the threads (see above). */
int proto_writer_settle(struct proto_writer *w, struct err *e);
/* Frees; before finish this leaves a truncated image.  NULL is fine. */
void proto_writer_close(struct proto_writer *w);
void proto_writer_id(const struct proto_writer *w, uint8_t ret[16]);

/* ---- image stream: reading ---------------------------------------------------------------- */

struct proto_reader;

struct proto_image_info {
	uint32_t version;
	uint8_t signer[PROTO_KEY_LEN];
	uint8_t image_id[16];
	bool copy;
	uint64_t created; /* unix seconds */
};

struct proto_read_options {
	const char *config_dir;	   /* whose trusted keys; NULL: any signer (image show) */
	const uint8_t *also_trust; /* a further key, PROTO_KEY_LEN, or NULL (receive over ssh) */
	bool skip_digests;	   /* this host wrote or verified this very file before */
	uint32_t leave_long;	   /* with it: a kind, 0 for none; see proto_frame.data */
	unsigned threads;	   /* for reading ahead and digests; 0: one per CPU, at most 4 */
};

enum proto_frame_type { PROTO_RECORD, PROTO_DATA, PROTO_END };

struct proto_frame {
	enum proto_frame_type type;
	uint32_t kind; /* as found: may be one this version does not know */
	uint64_t subject;
	uint64_t offset;  /* of DATA */
	/*
	 * Valid until the next proto_read.  NULL for uncompressed data of the kind leave_long, of
	 * 32 KiB and more, in a file, which is passed over: it is at file_offset.
	 */
	const void *data;
	size_t len;
	int64_t file_offset; /* where uncompressed data begins in a seekable image, or -1 */
};

/*
 * Reads and verifies the header: version, signer (ERR_IMAGE when unknown, with the key in the
 * message and a hint how to trust it).  @fd is borrowed.
 */
int proto_reader_open(
	struct proto_reader **ret, int fd, const struct proto_read_options *o, struct err *e);
void proto_reader_info(const struct proto_reader *r, struct proto_image_info *ret);
/*
 * The next frame, its digest checked.  PROTO_END is returned only after the list of digests and
 * its signature proved the whole: until then nothing that was read may run.  After an error or
 * PROTO_END every call fails.
 */
int proto_read(struct proto_reader *r, struct proto_frame *ret, struct err *e);
/* Gives the last frame back: the next proto_read returns it again. */
void proto_unread(struct proto_reader *r);
/*
 * Starts the threads now if the image is worth it, rather than with the first long data: for who
 * is about to join a pid namespace, after which the kernel lets a process start no more.
 */
void proto_reader_start(struct proto_reader *r);
/* Ends the threads (see above), after what they are reading now. */
void proto_reader_settle(struct proto_reader *r);
/*
 * The session has been rebuilt and is ours from now on.  Until then the last byte of an image that
 * comes through a pipe is left there, which tells whoever wrote it that it is still his
 * (supervisor/handover.h).  False: he has fetched it back, and the session is not ours.
 */
bool proto_reader_take(struct proto_reader *r);
void proto_reader_close(struct proto_reader *r);

/* ---- control messages ---------------------------------------------------------------------- */

/*
 * Messages are `Control` of control.proto, packed, behind a 32-bit little-endian length, at most
 * PROTO_MAX_CONTROL; those that run a command, and all from another user, at most
 * PROTO_MAX_REQUEST.  Descriptors ride on the first byte.  The socket is a stream.
 */
#define PROTO_MAX_CONTROL (16u << 20) /* all of a session's commands and processes */
#define PROTO_MAX_REQUEST (1u << 20)

struct proto_conn; /* one end, with its partial input and output */

/* @sock becomes the connection's, also on failure. */
int proto_conn_new(struct proto_conn **ret, int sock, struct err *e);
void proto_conn_free(struct proto_conn *c);
int proto_conn_fd(const struct proto_conn *c);
/* From now on nothing longer than @max is received. */
void proto_conn_limit(struct proto_conn *c, size_t max);
/*
 * Queues one message (descriptors are duplicated) and writes what the socket takes.  Returns 1
 * when something is left to write (wait for writability, call proto_conn_flush).  -EMSGSIZE above
 * the limits and -ENOBUFS when eight MiB wait already leave the connection as it was; -EPIPE or
 * -ECONNRESET when the other side has closed: what it said before can still be received.
 */
int proto_conn_send(struct proto_conn *c, const void *body, size_t len, const int *fds,
	size_t n_fds, struct err *e);
int proto_conn_flush(struct proto_conn *c, struct err *e);
/*
 * The next whole message: 1 and *ret_body (valid until the next call) and descriptors (the
 * caller owns them); 0 when more must be read from a non-blocking socket; -ECONNRESET at the
 * end; -EBADMSG for nonsense, more than @max_fds descriptors among it.  After an error every call
 * gives the same one.
 */
int proto_conn_recv(struct proto_conn *c, const void **ret_body, size_t *ret_len, int *ret_fds,
	size_t max_fds, size_t *ret_n_fds, struct err *e);

#endif

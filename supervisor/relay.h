/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * relay - the supervisor's ends of one command's stdio: pipes, or the master of its terminal.
 *
 *      client -> relay_put -> bounded buffer -> stdin (or terminal)
 *      stdout, stderr (or terminal) -> ops.output -> log and clients
 *
 * All descriptors are non-blocking and watched by the event loop.  Input is taken only while
 * there is room, so a command that does not read holds up its own client and nobody else.  Output
 * is read only while ops.ready says so.  While the session is frozen the relay is *held*: it
 * touches no descriptor, because what is in the pipes belongs to the image.
 */
#ifndef SUPERVISOR_RELAY_H
#define SUPERVISOR_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckpt_edge;
struct err;
struct event_base;
struct relay;

/* As in Data.stream of control.proto. */
enum relay_stream { RELAY_IN, RELAY_OUT, RELAY_ERR, RELAY_TTY, RELAY_STREAMS };

struct relay_ops {
	void (*output)(void *ctx, enum relay_stream stream, const void *data, size_t n);
	/* May more output be taken now?  When that changes, call relay_poke. */
	bool (*ready)(void *ctx);
	/* The input buffer has room again after relay_put was short. */
	void (*room)(void *ctx);
};

/* Bytes of input a relay holds. */
#define RELAY_INPUT_MAX (256u << 10)

/* A relay with nothing to relay yet.  Freeing closes what it has adopted; NULL is fine. */
int relay_new(struct relay **ret, struct event_base *loop, const struct relay_ops *ops, void *ctx,
	struct err *e);
void relay_free(struct relay *r);
/* Gives the relay one of its descriptors (it becomes the relay's). */
int relay_adopt(struct relay *r, enum relay_stream stream, int fd, struct err *e);

/* Queues input; returns how much was taken. */
size_t relay_put(struct relay *r, const void *data, size_t n);
/* No more input comes: stdin is closed behind what is queued.  Not for terminals. */
void relay_end_input(struct relay *r);
/* What was taken and not yet written, for the image. */
void relay_pending(const struct relay *r, const uint8_t **ret, size_t *ret_n, bool *ret_ended);
/* Nobody reads this output any more: the writer gets SIGPIPE. */
void relay_close_output(struct relay *r, enum relay_stream stream);
int relay_resize(struct relay *r, uint16_t rows, uint16_t cols, struct err *e);
/* For a new viewer: a full-screen program draws itself again even if the size is the old one. */
void relay_redraw(struct relay *r, uint16_t rows, uint16_t cols);

/* ops.ready may answer otherwise now. */
void relay_poke(struct relay *r);
/* While it is held it touches no descriptor. */
void relay_hold(struct relay *r, bool on);
/* Reads what is there now, without waiting and whatever ops.ready says: the writers are gone. */
void relay_drain(struct relay *r);

/* The edges of this relay, named with @prefix: at most RELAY_STREAMS of them. */
size_t relay_edges(const struct relay *r, const char *prefix, struct ckpt_edge *ret);
/* Bit mask of streams that are open. */
unsigned relay_open_streams(const struct relay *r);

#endif

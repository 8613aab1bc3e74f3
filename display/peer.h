/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peer - the server's side of one connection to a viewer.
 *
 * A peer takes bytes from a stream socket that may be anybody's, and sends what its queue and the
 * *world* have: the frame, and for each *slot* (the cursor, the clipboard ...) the newest message
 * alone.  So what one costs in memory is bounded, and one that does not read costs nothing else.
 *
 * A viewer that asks for no more than so many pixels has a smaller picture of its own (scale.h).
 */
#ifndef DISPLAY_PEER_H
#define DISPLAY_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "display/command.h"
#include "display/pace.h"
#include "display/queue.h"
#include "display/video.h"

struct event;
struct event_base;
struct display_peer;

/* Of what only the newest is of interest; sent in this order, before what is in the queue. */
enum display_slot {
	DISPLAY_SLOT_SIZE, /* of the frame; without a message here, as it is another for each */
	DISPLAY_SLOT_NOTICE,
	DISPLAY_SLOT_CURSOR,
	DISPLAY_SLOT_POINTER, /* at pointer_x, pointer_y; as well */
	DISPLAY_SLOT_CLIPBOARD,
	DISPLAY_SLOTS
};

/* What all peers of a server share, and none of them changes. */
struct display_world {
	struct event_base *base;
	const char *name;		   /* of the session */
	const struct display_frame *frame; /* the shadow */
	struct display_encoder *encoder;
	struct display_film *film;
	const struct display_video_film *films; /* that play; NULL: no frame yet */
	struct {
		struct buf message; /* header and body; empty: none yet */
		uint32_t version;   /* another one for another message */
		const void *from;   /* the peer who knows it already, or NULL */
	} slots[DISPLAY_SLOTS];
	int pointer_x, pointer_y;
	bool files; /* there is a place for them in the session */
};

/* A peer may be freed from within gone, and from outside of these. */
struct display_peer_ops {
	/* It has said HELLO and was sent WELCOME: its queue is to be filled. */
	void (*joined)(void *arg, struct display_peer *p);
	/* Messages that concern the session, of a peer that has joined. */
	void (*message)(void *arg, struct display_peer *p, const struct display_message *m);
	/* To append FILE messages to @out: those that wait, and with @bulk a piece of a file. */
	void (*files)(void *arg, struct buf *out, bool bulk);
	/* It can't be talked to any more: the owner frees it. */
	void (*gone)(void *arg, struct display_peer *p);
};

/*
 * Owns @fd from the call on, also when it fails.  @world and @ops are borrowed for its life.
 * -ENOMEM or 0.
 */
int display_peer_new(const struct display_world *world, int fd, const struct display_peer_ops *ops,
	void *arg, struct display_peer **ret_peer);
/* Who has connected as @fd, which is closed, is told why not, if it listens at once.  -EUSERS. */
int display_peer_refuse(int fd, const char *why);
/* Accepts NULL. */
void display_peer_free(struct display_peer *p);

bool display_peer_joined(const struct display_peer *p);
/* May it do more than look? */
bool display_peer_controls(const struct display_peer *p);
/* Is it told of sound? */
bool display_peer_listens(const struct display_peer *p);
/* The world's frame has another size, and is black: nothing waits any more. */
void display_peer_resized(struct display_peer *p);
/*
 * The frame has changed by these commands, in @changed; @films is what else has changed where films
 * play, for those that are not shown them.  Before it has joined, this and those below do nothing.
 */
void display_peer_update(struct display_peer *p, const struct display_commands *c,
	const struct display_commands *films, pixman_region32_t *changed);
/* What it has kept of what was covered may be anything. */
void display_peer_forget_kept(struct display_peer *p);
/* Is it shown films as such? */
bool display_peer_shows_films(const struct display_peer *p);
/* Others play, or elsewhere. */
void display_peer_films(struct display_peer *p);
/* All of the frame is to be sent. */
void display_peer_everything(struct display_peer *p);
/* Where on the screen its person looks (display_queue_watch), or NULL. */
void display_peer_watch(struct display_peer *p, const struct display_rect *r);
/* From pixels of its picture to those of the screen. */
void display_peer_to_screen(const struct display_peer *p, int *x, int *y);
/* Something is in its queue or in a slot: it is sent as soon as there is room. */
void display_peer_kick(struct display_peer *p);
/* A packet of sound: it is sent at once, or not at all if too many still wait. */
void display_peer_audio(struct display_peer *p, uint64_t us, const void *packet, size_t len);
/* What waits is sent if the viewer reads it, and then the connection ends: gone is called. */
void display_peer_finish(struct display_peer *p);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sound - what is played in a session, as Opus packets.
 *
 * The session's sound server writes samples into a FIFO of the session's own; here they are read,
 * packed and told, 20 ms each.  Silence is not told.
 */
#ifndef DISPLAY_SOUND_H
#define DISPLAY_SOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct display_sound;

/* Below the session's /dev/shm: signed 16 bit samples, little endian, of both channels in turn. */
#define DISPLAY_SOUND_FIFO     ".podrun-sound"
#define DISPLAY_SOUND_RATE     48000
#define DISPLAY_SOUND_CHANNELS 2
#define DISPLAY_SOUND_SAMPLES  960  /* of each channel in a packet: 20 ms */
#define DISPLAY_SOUND_PACKET   1500 /* bytes, at most */

/* @us: when the packet's first sample was played, as times of display_server_audio. */
typedef void display_sound_packet(void *arg, uint64_t us, const void *packet, size_t len);

/* Was podrun built with Opus?  Without it nothing is ever told. */
bool display_sound_built(void);

/* @shm: the session's /dev/shm, borrowed, as is @arg.  -ENOMEM or 0. */
int display_sound_new(struct event_base *base, int shm, display_sound_packet *packet, void *arg,
	struct display_sound **ret_sound);
/* Accepts NULL. */
void display_sound_free(struct display_sound *s);

/* Somebody listens, or nobody does any more: then nothing is read. */
void display_sound_listen(struct display_sound *s, bool on);
/* The session may be reached, and is to be looked at again; or not any more: all is closed. */
void display_sound_take_up(struct display_sound *s);
void display_sound_let_go(struct display_sound *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * screen/sound - the sound server of a session with a display.
 *
 * PulseAudio, where the session has it: a process of the session's, as the X server is.  What is
 * played goes into a FIFO (display/sound.h).
 */
#ifndef SUPERVISOR_SCREEN_SOUND_H
#define SUPERVISOR_SCREEN_SOUND_H

#include <stdbool.h>

struct err;
struct session;
struct Pb__Config;

#define SCREEN_SOUND_LOG "sound.log" /* for screen_place_words */

/* Sets PULSE_SERVER.  -ENOMEM or 0. */
int screen_sound_prepare(struct Pb__Config *c);
/* Starts it; display->sound_server is its process.  If there is none, that ends at once. */
int screen_sound_spawn(struct session *s, struct err *e);
/* Does it take clients? */
bool screen_sound_answers(const struct session *s);

#endif

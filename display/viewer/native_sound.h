/* SPDX-License-Identifier: GPL-2.0-or-later */
/* native_sound - plays a session's sound by SDL; silent where podrun is built without Opus. */
#ifndef DISPLAY_VIEWER_NATIVE_SOUND_H
#define DISPLAY_VIEWER_NATIVE_SOUND_H

#include <stddef.h>
#include <stdint.h>

struct native_sound;

/* NULL: there can be no sound.  All that follows takes NULL, too. */
struct native_sound *native_sound_new(void);
/* An Opus packet, by one thread. */
void native_sound_play(struct native_sound *s, const uint8_t *packet, size_t len);

#endif

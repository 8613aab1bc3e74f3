// SPDX-License-Identifier: GPL-2.0-or-later
/* Where podrun is built without Opus: no sound. */
#include <errno.h>

#include "display/sound.h"

bool display_sound_built(void)
{
	return false;
}

int display_sound_new(struct event_base *base, int shm, display_sound_packet *packet, void *arg,
	struct display_sound **ret_sound)
{
	*ret_sound = NULL;
	return 0;
}

void display_sound_free(struct display_sound *s)
{
}

void display_sound_listen(struct display_sound *s, bool on)
{
}

void display_sound_take_up(struct display_sound *s)
{
}

void display_sound_let_go(struct display_sound *s)
{
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device is opened when there is something to play.  SDL plays what is queued: when that has
 * run dry, a little silence goes first, so that the next packets may be late; when there is too
 * much, for the line has stood still and then sent everything at once, packets are dropped.
 */
#include "display/viewer/native_sound.h"

#include <SDL.h>
#include <opus.h>
#include <stdlib.h>

#include "base/base.h"
#include "display/sound.h"

#define AHEAD_MS     60
#define MOST_MS	     300
#define BYTES_PER_MS ((Uint32)(DISPLAY_SOUND_RATE / 1000 * DISPLAY_SOUND_CHANNELS * 2))

struct native_sound {
	OpusDecoder *decoder;
	SDL_AudioDeviceID device; /* 0: not opened */
	bool none;		  /* there is none that can be opened */
};

struct native_sound *native_sound_new(void)
{
	struct native_sound *s = calloc(1, sizeof(*s));
	int error;

	if (s)
		s->decoder =
			opus_decoder_create(DISPLAY_SOUND_RATE, DISPLAY_SOUND_CHANNELS, &error);
	if (s && s->decoder && SDL_InitSubSystem(SDL_INIT_AUDIO) == 0)
		return s;
	if (s && s->decoder)
		opus_decoder_destroy(s->decoder);
	free(s);
	return NULL;
}

static void open_device(struct native_sound *s)
{
	const SDL_AudioSpec spec = {.freq = DISPLAY_SOUND_RATE,
		.format = AUDIO_S16SYS,
		.channels = DISPLAY_SOUND_CHANNELS,
		.samples = 1024};

	s->device = SDL_OpenAudioDevice(NULL, 0, &spec, NULL, 0);
	s->none = s->device == 0;
	if (s->none)
		fprintf(stderr, "podrun-viewer: no sound: %s\n", SDL_GetError());
	else
		SDL_PauseAudioDevice(s->device, 0);
}

void native_sound_play(struct native_sound *s, const uint8_t *packet, size_t len)
{
	static const uint8_t silence[AHEAD_MS * BYTES_PER_MS];
	opus_int16 pcm[DISPLAY_SOUND_SAMPLES * DISPLAY_SOUND_CHANNELS];
	Uint32 queued;
	int n;

	if (!s || s->none || len == 0 || len > DISPLAY_SOUND_PACKET)
		return;
	if (!s->device)
		open_device(s);
	n = opus_decode(s->decoder, packet, (opus_int32)len, pcm, DISPLAY_SOUND_SAMPLES, 0);
	queued = s->device ? SDL_GetQueuedAudioSize(s->device) : MOST_MS * BYTES_PER_MS;
	if (n <= 0 || queued >= MOST_MS * BYTES_PER_MS)
		return;
	if (queued == 0)
		SDL_QueueAudio(s->device, silence, sizeof(silence));
	SDL_QueueAudio(s->device, pcm, (Uint32)n * DISPLAY_SOUND_CHANNELS * sizeof(*pcm));
}

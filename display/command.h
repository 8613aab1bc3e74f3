/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * command - what is to be drawn by a viewer, and its bytes.
 *
 * A command says where, not what: its pixels are read from the shadow when it is sent, so that a
 * command that has waited (and was clipped meanwhile by newer ones) takes no memory and shows the
 * newest.  Any part of a command is a command, too: narrow its rect (of a COPY its source, too)
 * and put it.  That holds for all types: a BITMAP's colours are in the command, of a PFILL only
 * the period is (the tile is read at the rect's own corner).
 *
 * Nothing of this is trusted when it is put: where the pixels are no longer what the type says (a
 * third colour in a BITMAP, a tile that does not repeat) the command is sent as RAW.  COPY, KEEP
 * and UNCOVER are the exceptions: what a viewer has is not known here.
 */
#ifndef DISPLAY_COMMAND_H
#define DISPLAY_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "display/pixels.h"
#include "display/wire.h"

/* Pixels of one command at most; what is larger is to be cut in bands.  12 MiB of RAW. */
#define DISPLAY_COMMAND_PIXELS (4 << 20)

/* What RAW pixels look like, which decides upon the codec. */
enum display_hint {
	DISPLAY_PLAIN = 0,   /* text, widgets: lossless */
	DISPLAY_FEW_COLOURS, /* a palette may do */
	DISPLAY_SMOOTH,	     /* a picture: may be lossy, if the viewer likes */
};

struct display_command {
	enum display_type type; /* RAW, COPY, SFILL, BITMAP, PFILL, KEEP, UNCOVER */
	struct display_rect rect;
	enum display_hint hint; /* RAW */
	int sx, sy;		/* COPY */
	int tw, th;		/* PFILL: the period, 1..DISPLAY_TILE_MAX */
	uint32_t colour[2];	/* SFILL: [0]; BITMAP */
};

struct display_stream;

/* True of those that work with what a viewer has: they are carried out in their order, and first. */
static inline bool display_command_is_first(const struct display_command *c)
{
	return c->type == DISPLAY_COPY || c->type == DISPLAY_KEEP || c->type == DISPLAY_UNCOVER;
}

/* A growable list. */
struct display_commands {
	struct display_command *list;
	size_t n, room;
};

/* Returns -ENOMEM or 0. */
int display_commands_add(struct display_commands *l, const struct display_command *c);
/* Frees what it holds. */
void display_commands_fini(struct display_commands *l);

/* What a viewer takes. */
struct display_codecs {
	uint32_t mask;		       /* 1 << codec; codec 0 always counts as there */
	int quality;		       /* of JPEG, 1..100; 0: lossless only */
	int level;		       /* of zstd, 1..19; 0: what suits the pixels */
	struct display_stream *stream; /* for codecs of streams; NULL: none of these */
};

/* Scratch memory and compressors, for any number of viewers. */
struct display_encoder;

/* -ENOMEM or 0. */
int display_encoder_new(struct display_encoder **ret_encoder);
/* Accepts NULL. */
void display_encoder_free(struct display_encoder *enc);

/*
 * Appends the message for @c, whose rect lies in @f (a frame of our own) and has at most
 * DISPLAY_COMMAND_PIXELS.  Returns 0 if a viewer will have exactly the pixels, 1 if it was sent
 * lossy (JPEG), -ENOMEM (@out is as it was then; but with a stream nothing else can be sent).
 */
int display_command_put(struct display_encoder *enc, struct buf *out,
	const struct display_command *c, const struct display_frame *f,
	const struct display_codecs *to);

/* The same without a lossy codec, whatever the viewer takes. */
int display_command_put_exact(struct display_encoder *enc, struct buf *out,
	const struct display_command *c, const struct display_frame *f,
	const struct display_codecs *to);

/* About how many bytes it will be when put: for scheduling, without reading any pixel. */
size_t display_command_size(const struct display_command *c);

#endif

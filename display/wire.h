/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire - messages between a display server and its viewers, as bytes.
 *
 *      type (1) | flags 0 (1) | reserved 0 (2) | length of the body (4) | body
 *
 * Everything is little endian.  What the bodies are is in proto/SPEC.md, section "Display"; here
 * each is a member of struct display_message, and display_wire_put and display_wire_take are each
 * other's inverse.  What is taken points into the bytes it was taken from.
 *
 * Taking checks what needs no screen: lengths, and that rectangles and sizes are not empty.
 * Whether a rectangle lies on the screen, and what is in the data, is the receiver's to check.
 */
#ifndef DISPLAY_WIRE_H
#define DISPLAY_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "display/pixels.h"

struct buf;
struct err;

#define DISPLAY_VERSION		1
#define DISPLAY_WIRE_HEAD	8
#define DISPLAY_WIRE_SERVER_MAX (16u << 20) /* bytes of a body from the server */
#define DISPLAY_WIRE_VIEWER_MAX (1u << 20)  /* and from a viewer */
#define DISPLAY_TILE_MAX	64	    /* pixels, a side of PFILL's tile */
#define DISPLAY_CURSOR_MAX	512	    /* pixels, a side of a cursor */

enum display_type {
	DISPLAY_SKIP = 0, /* of a message that display_wire_take does not know */
	/* from the server */
	DISPLAY_WELCOME = 1,
	DISPLAY_RAW = 16,
	DISPLAY_COPY = 17,
	DISPLAY_SFILL = 18,
	DISPLAY_BITMAP = 19,
	DISPLAY_PFILL = 20,
	DISPLAY_VIDEO = 21,
	DISPLAY_CURSOR = 22,
	DISPLAY_POINTER_AT = 23,
	DISPLAY_AUDIO = 24,
	DISPLAY_CLIPBOARD = 25,
	DISPLAY_RESIZE = 26,
	DISPLAY_NOTICE = 27,
	DISPLAY_UPDATED = 28,
	DISPLAY_FILE = 29,
	DISPLAY_MARK = 30,
	DISPLAY_KEEP = 31,
	DISPLAY_UNCOVER = 32,
	/* from a viewer */
	DISPLAY_HELLO = 64,
	DISPLAY_KEY = 65,
	DISPLAY_POINTER = 66,
	DISPLAY_CLIPBOARD_IN = 67,
	DISPLAY_RESIZE_IN = 68,
	DISPLAY_REFRESH = 69,
	DISPLAY_ACK = 70,
	DISPLAY_FILE_IN = 71,
	DISPLAY_SCALE_IN = 72,
};

/* Of RAW; in bit masks 1 << codec. */
enum display_codec {
	DISPLAY_CODEC_NONE = 0,	     /* B, G, R of each pixel */
	DISPLAY_CODEC_LZ4 = 1,	     /* that as an lz4 block */
	DISPLAY_CODEC_LEFT_LZ4 = 2,  /* each byte minus the pixel's to the left, as an lz4 block */
	DISPLAY_CODEC_LEFT_ZSTD = 3, /* the same as a zstd frame */
	DISPLAY_CODEC_JPEG = 4,
	DISPLAY_CODEC_PALETTE = 5, /* 2 to 256 colours and indices */
	DISPLAY_CODEC_PALETTE_LZ4 = 6,
	DISPLAY_CODEC_PALETTE_ZSTD = 7,
	DISPLAY_CODEC_LEFT_STREAM = 8,	  /* as 3, the next piece of the connection's zstd frame */
	DISPLAY_CODEC_PALETTE_STREAM = 9, /* as 7, likewise */
	DISPLAY_CODEC_INDEX_STREAM = 10,  /* indices of the connection's palette, likewise */
	DISPLAY_CODECS
};

enum display_video_format {
	DISPLAY_VIDEO_I420 = 0,
	DISPLAY_VIDEO_MJPEG = 1,
	DISPLAY_VIDEO_VP8 = 2,
};

/* Borrowed. */
struct display_bytes {
	const uint8_t *data;
	size_t len;
};

/* One message of either direction: the members that its type has. */
struct display_message {
	enum display_type type;
	struct display_rect
		rect; /* RAW, COPY, SFILL, BITMAP, PFILL, VIDEO, KEEP, UNCOVER, REFRESH */
	struct display_bytes data; /* the packed record, pixels, bits, text, the frame ...: what is
				    * last in the body */
	union {
		uint8_t codec; /* RAW */
		struct {
			int sx, sy; /* COPY */
		};
		uint32_t colour[2]; /* SFILL: [0]; BITMAP */
		struct {
			uint8_t tw, th; /* PFILL */
		};
		struct {
			uint16_t stream, fw, fh;
			uint8_t format;
			uint64_t time; /* us */
		} video;
		struct {
			int hot_x, hot_y, w, h;
		} cursor; /* data: w * h * 4 bytes RGBA */
		struct {
			int x, y;
		} at;	       /* POINTER_AT */
		uint64_t time; /* AUDIO, us */
		struct {
			int w, h;
		} size;		  /* RESIZE, RESIZE_IN */
		uint16_t percent; /* SCALE_IN */
		uint32_t serial;  /* UPDATED, MARK, ACK */
		struct {
			uint32_t keysym;
			uint16_t scancode; /* evdev's, or 0 */
			bool down;
		} key;
		struct {
			int x, y;	      /* pixels of the screen; anything may come */
			uint8_t buttons;      /* 1 left, 2 middle, 4 right, 8 back, 16 forward */
			int wheel_x, wheel_y; /* notches */
		} pointer;
	};
};

/* Appends the message.  A failure of memory stays in @out. */
void display_wire_put(struct buf *out, const struct display_message *m);

/*
 * For bodies that are made in place: begin appends the head and what of the body is in front of
 * m->data (which is ignored) and returns where the message begins; end sets its length.
 */
size_t display_wire_begin(struct buf *out, const struct display_message *m);
void display_wire_end(struct buf *out, size_t begin);

/*
 * The first message of @len bytes.  Returns 1 with *ret_message and how many bytes it takes, 0 if
 * it is not yet whole (then *ret_used is how many bytes are needed as far as is known), -EMSGSIZE
 * if the body is above the limit, -EBADMSG if it is malformed. A type that is unknown, or of the
 * other direction, is DISPLAY_SKIP.
 */
int display_wire_take(const void *data, size_t len, bool from_server,
	struct display_message *ret_message, size_t *ret_used, struct err *e);

#endif

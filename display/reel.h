/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reel - what one viewer has of the films that play (video.h): which frame was sent, and how the
 * next one is to be.
 *
 * No frames are kept: the newest is made of the screen when there is room for it, and those that
 * came meanwhile are never sent.  On a line that is too slow for frames they become smaller.
 */
#ifndef DISPLAY_REEL_H
#define DISPLAY_REEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "display/film.h"
#include "display/video.h"

/* Zero: shows none. */
struct display_reel {
	unsigned formats; /* that the viewer takes, of DISPLAY_FILM_FORMATS */
	int quality;	  /* 1..100 */
	unsigned best;	  /* level */
	struct display_reel_film {
		uint16_t id;		  /* 0: none */
		struct display_rect rect; /* in the viewer's picture */
		uint64_t newest, sent;	  /* frames */
		uint64_t us;		  /* of the newest */
		unsigned level;		  /* r->best: as good as wished */
		unsigned strikes, calm;	  /* frames that were too large, or small enough */
		unsigned patience;	  /* so much calm before a better level is tried anyhow */
		bool tried;		  /* a better one was */
	} films[DISPLAY_VIDEO_FILMS];
	int last;      /* that was sent */
	uint64_t owed; /* bytes of other things that come before the next frame, if any wait */
};

/*
 * A viewer takes these formats at this quality (0: none).  VP8 is for those alone that take another
 * one as well, for there may be no encoder left.
 */
void display_reel_init(struct display_reel *r, unsigned formats, int quality);
/* Are films shown at all? */
bool display_reel_shows(const struct display_reel *r);
/* Does it show one now? */
bool display_reel_plays(const struct display_reel *r);
/* Is it showing this one? */
bool display_reel_has(const struct display_reel *r, uint16_t id);
/* The viewer's picture is a new one: nothing plays. */
void display_reel_clear(struct display_reel *r);

/*
 * @films play now, and are at @rects of the viewer's picture.  Those of them that do become @held:
 * so many.  To @open (initialised) is added where one has ended whose last frame was not sent.
 */
size_t display_reel_follow(struct display_reel *r, const struct display_video_film *films,
	const struct display_rect *rects, struct display_rect held[DISPLAY_VIDEO_FILMS],
	pixman_region32_t *open);
/* Which frames there are now. */
void display_reel_note(struct display_reel *r, const struct display_video_film *films);

/* A film with a newer frame than was sent, in turn, or NULL. */
struct display_reel_film *display_reel_next(struct display_reel *r);
/* How its frame is to be made. */
struct display_film_kind display_reel_kind(
	const struct display_reel *r, const struct display_reel_film *f);
/*
 * Its newest frame was sent and came to @bytes (0: it could not be made), of @window that may be on
 * their way.
 */
void display_reel_sent(
	struct display_reel *r, struct display_reel_film *f, size_t bytes, uint64_t window);
/* So many bytes of other things have been sent. */
void display_reel_paid(struct display_reel *r, size_t bytes);

#endif

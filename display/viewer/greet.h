/* SPDX-License-Identifier: GPL-2.0-or-later */
/* greet - a viewer's first message. */
#ifndef DISPLAY_VIEWER_GREET_H
#define DISPLAY_VIEWER_GREET_H

#include <stdbool.h>
#include <stdint.h>

struct display_viewer_wish {
	const char *name; /* of the viewer */
	bool view_only;
	bool audio;
	bool keeps;	  /* KEEP and UNCOVER; not who records, for whoever may read that */
	unsigned quality; /* of JPEG; 0: exact */
	unsigned video;	  /* formats, a mask */
	uint32_t codecs;  /* of RAW, a mask; 0: all of our decoder */
};

/* Sends HELLO.  0 or -errno. */
int display_viewer_greet(int fd, const struct display_viewer_wish *wish);

#endif

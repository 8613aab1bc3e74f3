/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pages - the files of display/viewer/web, as they were when podrun was built (embed). */
#ifndef DISPLAY_WEB_PAGES_H
#define DISPLAY_WEB_PAGES_H

#include <stddef.h>
#include <stdint.h>

struct display_page {
	const char *path; /* from / */
	const char *type; /* Content-Type */
	const uint8_t *data;
	size_t len;
};

extern const struct display_page display_pages[];
extern const size_t display_n_pages;

#endif

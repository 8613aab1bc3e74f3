/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * regions - regions that can't be had, for tests whose calls of pixman the linker leads here
 * (display_regions_wraps in meson.build).
 */
#ifndef DISPLAY_TEST_REGIONS_H
#define DISPLAY_TEST_REGIONS_H

/* One of so many calls fails; 0: none. */
extern int regions_fail;
/* Which ones. */
extern unsigned regions_seed;

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * preface - what comes of a stream before the program at its other end speaks.
 *
 * Whoever goes to another host through ssh may hear its login shell first: a text of the day, what sets
 * a terminal's title.  Where podrun speaks in binary there, it begins with a number below 256 in 32 bits,
 * little endian: a byte and three NULs, which no text has.
 */
#ifndef BASE_PREFACE_H
#define BASE_PREFACE_H

#include <stdint.h>

#define PREFACE_NUMBER 4 /* bytes */

/*
 * Reads @in until it has that number: @ret.  -ECONNRESET where the stream ends before it, or there is no
 * end of what comes.  Calls nothing that a child of several threads may not.
 */
int preface_skip(int in, uint8_t ret[PREFACE_NUMBER]);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * images - whole images, signed and with all digests, of frames that the input says: what a hostile
 * author would write.
 *
 * The input is a list of frames, each of 24 bytes and its payload:
 *
 *      0   type: 1 record, 2 data; anything else ends the image, and another may follow
 *      1   kind
 *      2   -
 *      4   bytes of payload that follow, at most what is left
 *      8   subject
 *      16  offset
 */
#ifndef TESTS_FUZZ_IMAGES_H
#define TESTS_FUZZ_IMAGES_H

#include "base/base.h"

/* Takes the frames of one image from @in; returns a file of it, at its beginning. */
int fuzz_image(struct cursor *in);

#endif

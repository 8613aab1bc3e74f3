/* SPDX-License-Identifier: GPL-2.0-or-later */
/* warm - memory for a writer, from before there is one (proto.h has who begins and ends it). */
#ifndef PROTO_WARM_H
#define PROTO_WARM_H

#include <stdint.h>

struct proto_warm;

/* Long frames of a writer that are on their way at the same time. */
#define PROTO_ROOMS 6u

/* PROTO_LONG_DATA bytes, the caller's own, or NULL when there are none; from then on no more are made. */
uint8_t *proto_warm_take(struct proto_warm *w);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/* Built where there is no libIPSec_MB. */
#include <errno.h>

#include "proto/lanes.h"

struct proto_lanes_library *proto_lanes_load(void)
{
	return NULL;
}

struct proto_lanes *proto_lanes_new(const struct proto_lanes_library *library)
{
	return NULL;
}

void proto_lanes_free(struct proto_lanes *l)
{
}

unsigned proto_lanes_width(const struct proto_lanes *l)
{
	return 1;
}

int proto_lanes_hash(struct proto_lanes *l, struct proto_piece *pieces, size_t n)
{
	return -EIO;
}

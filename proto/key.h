/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * key - what the other modules of this room may do with a key.
 */
#ifndef PROTO_KEY_H
#define PROTO_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "proto/proto.h"

/* Ed25519 over @data, which begins with what the signature is for. */
int proto_key_sign(const struct proto_key *k, const void *data, size_t len,
	uint8_t ret_sig[PROTO_SIG_LEN], struct err *e);
/* The public half of the user's own key: 1, or 0 when none was made yet (none is made). */
int proto_key_own(const char *config_dir, uint8_t ret[PROTO_KEY_LEN], struct err *e);

#endif

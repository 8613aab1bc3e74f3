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

#endif

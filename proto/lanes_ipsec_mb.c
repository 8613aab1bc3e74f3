// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in lanes.h. */
#include "proto/lanes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define NO_COMPAT_IMB_API_053 /* or its names take those of others */
#include <intel-ipsec-mb.h>

#include "base/base.h"

/*
 * Of the struct behind IMB_MGR no more is used than what its header says stays where it is.  The
 * name of a library ends with its first number.
 */
#define LIBRARY "libIPSec_MB.so."

struct proto_lanes_library {
	typeof(&alloc_mb_mgr) alloc;
	typeof(&init_mb_mgr_auto) init;
	typeof(&free_mb_mgr) free;
};

struct proto_lanes {
	IMB_MGR *mgr;
	typeof(&free_mb_mgr) free;
	unsigned width;
};

struct proto_lanes_library *proto_lanes_load(void)
{
	struct proto_lanes_library *l = calloc(1, sizeof(*l));
	char name[sizeof(LIBRARY) + 12];

	if (!l)
		return NULL;
	snprintf(name, sizeof(name), LIBRARY "%lu", strtoul(IMB_VERSION_STR, NULL, 10));
	const struct late_symbol symbols[] = {{"alloc_mb_mgr", &l->alloc},
		{"init_mb_mgr_auto", &l->init}, {"free_mb_mgr", &l->free}};
	if (late_load(name, symbols, ARRAY_SIZE(symbols), NULL) == 0)
		return l;
	free(l);
	return NULL;
}

static unsigned width(const IMB_MGR *mgr)
{
	if (mgr->used_arch == IMB_ARCH_AVX512)
		return 16;
	if (mgr->features & IMB_FEATURE_SHANI)
		return 2;
	return mgr->used_arch == IMB_ARCH_AVX2 ? 8 : 4;
}

struct proto_lanes *proto_lanes_new(const struct proto_lanes_library *library)
{
	struct proto_lanes *l = calloc(1, sizeof(*l));
	IMB_ARCH arch;

	if (!l)
		return NULL;
	l->free = library->free;
	l->mgr = library->alloc(0);
	if (l->mgr)
		library->init(l->mgr, &arch);
	if (!l->mgr || l->mgr->imb_errno) {
		proto_lanes_free(l);
		return NULL;
	}
	l->width = width(l->mgr);
	return l;
}

void proto_lanes_free(struct proto_lanes *l)
{
	if (!l)
		return;
	if (l->mgr)
		l->free(l->mgr);
	free(l);
}

unsigned proto_lanes_width(const struct proto_lanes *l)
{
	return l->width;
}

static IMB_JOB *submit(IMB_MGR *mgr, struct proto_piece *piece)
{
	IMB_JOB *job = IMB_GET_NEXT_JOB(mgr);

	*job = (IMB_JOB){.cipher_mode = IMB_CIPHER_NULL,
		.cipher_direction = IMB_DIR_ENCRYPT,
		.chain_order = IMB_ORDER_HASH_CIPHER,
		.hash_alg = IMB_AUTH_SHA_256,
		.src = piece->data,
		.msg_len_to_hash_in_bytes = piece->len,
		.auth_tag_output = piece->digest,
		.auth_tag_output_len_in_bytes = sizeof(piece->digest)};
	return IMB_SUBMIT_JOB(mgr);
}

int proto_lanes_hash(struct proto_lanes *l, struct proto_piece *pieces, size_t n)
{
	size_t completed = 0;
	IMB_JOB *job;

	for (size_t i = 0; i < n; i++) {
		job = submit(l->mgr, &pieces[i]);
		completed += job && job->status == IMB_STATUS_COMPLETED;
	}
	while ((job = IMB_FLUSH_JOB(l->mgr)))
		completed += job->status == IMB_STATUS_COMPLETED;
	return completed == n ? 0 : -EIO;
}

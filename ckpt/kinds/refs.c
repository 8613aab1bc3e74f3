// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * refs - pages of a process that are in another image: ckpt/base.h.
 *
 * The record is empty; it stands for the DATA, which space.c writes with that of the memory.
 */
#include "ckpt/base.h"

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"

static int refs_dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	return !d->options.base || s.proc->state == CKPT_ZOMBIE || s.proc->mm != s.proc->vpid;
}

static int refs_data(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset, const void *data,
	size_t len, struct err *e)
{
	const uint8_t *pages;
	struct ckpt_ref ref;
	size_t at = 0;
	int ret;

	while ((ret = ckpt_ref_read(b->options.base, data, len, &at, &ref, &pages, e)) > 0) {
		ret = ckpt_mm_put(b, (pid_t)r->subject, ref.addr, pages, ref.len, e);
		if (ret < 0)
			return ret;
	}
	return ret;
}

const struct ckpt_kind ckpt_kind_refs = {
	.number = PROTO_KIND_REFS,
	.name = "references",
	.scope = CKPT_PROC,
	.dump = refs_dump,
	.data = refs_data,
};

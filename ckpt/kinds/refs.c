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
#include "ckpt/survey.h"

static int refs_dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	return !d->options.base || s.proc->state == CKPT_ZOMBIE || s.proc->mm != s.proc->vpid;
}

static uint64_t number_at(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 8; i--;)
		v = v << 8 | p[i];
	return v;
}

static int refs_data(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset, const void *data,
	size_t len, struct err *e)
{
	const uint8_t *at = data;
	int ret =
		len % CKPT_REF_LEN ? err_set(e, ERR_IMAGE, -EBADMSG, "references are damaged") : 0;

	for (size_t i = 0; i < len && ret == 0; i += CKPT_REF_LEN) {
		uint64_t addr = number_at(at + i), n = number_at(at + i + 8);
		const uint8_t *pages = ckpt_base_at(
			b->options.base, number_at(at + i + 16), number_at(at + i + 24), n);

		if (!pages || !n || (addr | n) % PAGE_SIZE)
			return err_set(e, ERR_IMAGE, -EBADMSG, "a reference leads nowhere");
		ret = ckpt_mm_put(b, (pid_t)r->subject, addr, pages, n, e);
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

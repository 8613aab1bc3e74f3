// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * space - the private pages of a memory space.
 *
 * Shared mappings belong to their files, to kind SHARED_MEM or to System V segments.  Droppable
 * memory (vgetrandom's state) comes back empty on purpose: a copy must not repeat random numbers.
 */
#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey.h"
#include "proto/memory.pb-c.h"

#define UNFORKED (PB__MAPPING_FLAG__MAPPING_DONTFORK | PB__MAPPING_FLAG__MAPPING_WIPEONFORK)

static bool is_wanted(const Pb__Mapping *m, enum ckpt_space_part part)
{
	if (m->source > PB__MAPPING_SOURCE__MAPPING_SHARED ||
		(m->flags & (PB__MAPPING_FLAG__MAPPING_IS_SHARED |
				    PB__MAPPING_FLAG__MAPPING_DROPPABLE)))
		return false;
	return part == CKPT_SPACE_ALL || !(m->flags & UNFORKED) == (part == CKPT_SPACE_FORKED);
}

static int write_mapping(struct ckpt_dump *d, struct ckpt_pages *pages, const struct proc_vma *v,
	const Pb__Mapping *m, uint64_t subject, struct buf *runs, struct err *e)
{
	bool anon = m->source == PB__MAPPING_SOURCE__MAPPING_ANON;
	struct ckpt_run all = {m->start, m->end};
	int r = 0;

	buf_clear(runs);
	if (anon && v->deleted) {
		/* a deleted file that nobody else has: all of it */
		buf_put(runs, &all, sizeof(all));
		if (buf_error(runs) < 0)
			return err_errno(e, -ENOMEM, "pages");
	} else {
		r = ckpt_pages_find(pages, m->start, m->end, runs, NULL, e);
	}
	for (size_t k = 0; k < runs->len / sizeof(all) && r >= 0; k++)
		r = ckpt_pages_write(pages, d->out, PROTO_KIND_MM, subject,
			((struct ckpt_run *)runs->data)[k], 0, !anon, e);
	return r;
}

int ckpt_space_write(struct ckpt_dump *d, struct ckpt_proc *p, pid_t pid,
	enum ckpt_space_part part, struct err *e)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;
	_cleanup_buf_ struct buf runs = BUF_INIT;
	int r = ckpt_pages_open(&pages, d->host_proc, pid, e);

	for (size_t i = 0; i < p->maps.n && r >= 0; i++) {
		const struct proc_vma *v = &p->maps.vmas[i];
		Pb__Mapping m;

		r = ckpt_mapping_describe(d, p, v, &m, e);
		if (r == 0 && is_wanted(&m, part))
			r = write_mapping(d, &pages, v, &m, (uint64_t)p->vpid, &runs, e);
	}
	d->report.pages += pages.written;
	return r < 0 ? r : 0;
}

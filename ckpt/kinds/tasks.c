// SPDX-License-Identifier: GPL-2.0-or-later
/* See tasks.h. */
#include "ckpt/kinds/tasks.h"

#include "base/base.h"

int ckpt_run_all(struct remote *r, const char *what, struct err *e)
{
	int rc = remote_run(r, true, e);

	if (rc < 0)
		return err_wrap(e, "%s", what);
	for (int i = 0;; i++) {
		long v = remote_result(r, i);

		if (v == -ECANCELED) /* behind the last, for the first that fails ends the batch */
			return 0;
		if (v < 0 && v >= -4095)
			return err_errno(e, (int)v, "%s", what);
	}
}

int ckpt_record_bad(const struct ckpt_record *r, struct err *e)
{
	return err_set(e, ERR_IMAGE, -EINVAL, "the %s record of %llu makes no sense", r->kind->name,
		(unsigned long long)r->subject);
}

struct ckpt_build_thread *ckpt_record_thread(struct ckpt_build *b, const struct ckpt_record *r)
{
	if (r->subject > INT32_MAX)
		return NULL;
	if (r->kind->scope == CKPT_PROC) {
		struct ckpt_build_proc *p = ckpt_build_proc(b, (pid_t)r->subject);

		return p && p->n_threads && p->threads[0].remote ? &p->threads[0] : NULL;
	}
	if (r->kind->scope == CKPT_THREAD) {
		struct ckpt_build_thread *t = ckpt_build_thread(b, (pid_t)r->subject);

		return t && t->remote ? t : NULL;
	}
	return NULL;
}

struct remote *ckpt_record_remote(struct ckpt_build *b, const struct ckpt_record *r)
{
	struct ckpt_build_thread *t = ckpt_record_thread(b, r);

	return t ? t->remote : NULL;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* As missing.c, for the way back. */
#include "base/base.h"
#include "ckpt/ckpt.h"

int ckpt_restore(struct ckpt_build **ret, const struct ckpt_world *w, struct proto_reader *in,
	const struct ckpt_restore_options *o, struct err *e)
{
	return err_set(e, ERR_HOST, -ENOSYS, "this build can't resume sessions yet");
}

int ckpt_restore_release(struct ckpt_build *b, struct err *e)
{
	return err_set(e, ERR_HOST, -ENOSYS, "this build can't resume sessions yet");
}

void ckpt_restore_undo(struct ckpt_build *b)
{
}

const struct ckpt_report *ckpt_build_report(const struct ckpt_build *b)
{
	return NULL;
}

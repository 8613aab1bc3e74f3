// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * device - devices whose state is the hardware's or the host's: kind DEVICE.
 *
 * None can be moved, so all this kind does is to say so by name.  Devices without state are kind
 * REGULAR, terminals PTY.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"

static bool claim(const struct ckpt_file *f)
{
	return (S_ISCHR(f->st.st_mode) || S_ISBLK(f->st.st_mode)) && !(f->flags & O_PATH);
}

static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "device %s (%u:%u) cannot be moved", s.file->link,
		major(s.file->st.st_rdev), minor(s.file->st.st_rdev));
	return err_hint(e, "close it before the session is frozen");
}

const struct ckpt_kind ckpt_kind_device = {
	.number = PROTO_KIND_DEVICE,
	.name = "device",
	.scope = CKPT_FILE,
	.claim = claim,
	.check = check,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/* As long as there is no procfs.c no view has a struct procfs, and none of these is called. */
#include "supervisor/rewrite/procfs.h"

#include <errno.h>

int procfs_walk(struct procfs *p, const struct task *asker, const char *path, bool follow,
	struct procfs_way *ret)
{
	return -ENOENT;
}

void procfs_way_fini(struct procfs_way *w)
{
}

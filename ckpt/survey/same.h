/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * same - which descriptors of ours lead to the same open file.
 *
 * kcmp(2) tells, where it is allowed: container engines refuse it.  Without it something that
 * belongs to the open file is changed through one descriptor, looked at through the others, and put
 * back.  That is the number of the signal for F_SETOWN's process, which does nothing unless O_ASYNC
 * is set; and where it is set, O_NONBLOCK.  So nobody may use the files meanwhile: their tasks
 * stand still.
 *
 * An O_PATH descriptor has neither, nor anything else of its own: those of one name are the same.
 */
#ifndef CKPT_SURVEY_SAME_H
#define CKPT_SURVEY_SAME_H

#include <stdbool.h>
#include <stddef.h>

/* Is kcmp(2) allowed?  Asked once. */
bool ckpt_same_by_kcmp(void);
/*
 * ret[i] is the lowest index whose file is that of fds[i].  Without kcmp(2); works for any files,
 * and costs the least if they look alike already (inode, flags).  -ENOMEM.
 */
int ckpt_same_files(const int *fds, size_t n, size_t *ret);
/* By whichever way is allowed.  False also when it can't be told. */
bool ckpt_same_file(int a, int b);

#endif

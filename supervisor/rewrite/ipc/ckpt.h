/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipc/ckpt - what ckpt has to know of a session's System V objects and queues.  Private to
 * rewrite/.
 *
 * In an ipc namespace of the session's own whoever freezes it has all rights.  Here he is an owner
 * like any other, and modes apply to him: so each object that its owner may not read and write has
 * a wider mode from the moment it is listed, or made again, to ipc_ckpt_close.  The tasks stand
 * still for so long; the table has the mode that the session knows.
 */
#ifndef SUPERVISOR_REWRITE_IPC_CKPT_H
#define SUPERVISOR_REWRITE_IPC_CKPT_H

#include "ckpt/ckpt.h"

struct ipc_names;

struct ckpt_ipc_names ipc_ckpt_names(struct ipc_names *n);
/* All modes are the session's again: before its tasks run. */
void ipc_ckpt_close(struct ipc_names *n);

#endif

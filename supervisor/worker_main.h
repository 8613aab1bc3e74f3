/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker_main - what runs inside a worker.  Both are called in a fresh fork with the worker's end
 * of the socket pair and a struct worker_dump or worker_restore, and never return.
 */
#ifndef SUPERVISOR_WORKER_MAIN_H
#define SUPERVISOR_WORKER_MAIN_H

void worker_main_dump(int sock, const void *what);
void worker_main_restore(int sock, const void *what);

#endif

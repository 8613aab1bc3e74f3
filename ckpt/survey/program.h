/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * program - programs that have been deleted while processes run them.  Private to ckpt.
 */
#ifndef CKPT_SURVEY_PROGRAM_H
#define CKPT_SURVEY_PROGRAM_H

struct ckpt_dump;
struct err;

/* Takes up the program of each process that has none by a path (ckpt_proc.program);
 * before files are checked. */
int ckpt_program_take_up(struct ckpt_dump *d, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * openfiles - the part of the survey that is about descriptor tables, open files, and whose they
 * are.
 */
#ifndef CKPT_SURVEY_OPENFILES_H
#define CKPT_SURVEY_OPENFILES_H

#include "ckpt/survey/survey.h"

/* Reads the descriptor tables of all processes; of /proc alone, by any thread. */
int ckpt_openfiles_read(struct ckpt_dump *d, struct err *e);
void ckpt_openfiles_forget(struct ckpt_dump *d);
/* After that: fills the files of the dump, each once. */
int ckpt_openfiles_survey(struct ckpt_dump *d, struct err *e);
/* Finds a kind for every open file. */
int ckpt_openfiles_claim(struct ckpt_dump *d, struct err *e);
/* Takes up all files that are in flight, those in flight in them, and so on. */
int ckpt_openfiles_gather(struct ckpt_dump *d, struct err *e);
/* Of all of them only our duplicates, so that nobody outside notices us. */
void ckpt_openfiles_close(struct ckpt_dump *d);
void ckpt_openfiles_free(struct ckpt_dump *d);
/* Puts "task 12 (mysqld) fd 7" in front of the story in @e; returns its error. */
int ckpt_file_wrap(const struct ckpt_file *f, struct err *e);

#endif

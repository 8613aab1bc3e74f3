/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dump - the steps of the survey, for the driver in dump.c.  Private to ckpt. */
#ifndef CKPT_DUMP_H
#define CKPT_DUMP_H

#include "ckpt/survey.h"

struct ckpt_frozen;

/* survey.c: processes and threads of what was frozen, their memory maps, what they share. */
int ckpt_survey_tasks(struct ckpt_dump *d, const struct ckpt_frozen *f, struct err *e);
int ckpt_survey_memory(struct ckpt_dump *d, struct err *e);
int ckpt_survey_sharing(struct ckpt_dump *d, struct err *e);
void ckpt_survey_free(struct ckpt_dump *d);
/* Closes all remotes: the tasks are as they were frozen. */
void ckpt_survey_leave(struct ckpt_dump *d);

/* openfiles.c: descriptor tables, open files, and whose they are. */
int ckpt_openfiles_survey(struct ckpt_dump *d, struct err *e);
/* Finds a kind for every open file. */
int ckpt_openfiles_claim(struct ckpt_dump *d, struct err *e);
/* Asks its kind whether the file can be frozen, once. */
int ckpt_openfiles_check(struct ckpt_dump *d, struct ckpt_file *f, struct err *e);
void ckpt_openfiles_free(struct ckpt_dump *d);
/* Puts "task 12 (mysqld) fd 7" in front. */
int ckpt_file_wrap(const struct ckpt_file *f, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lower - the files beneath the session's own that it has in use.  Private to ckpt. */
#ifndef CKPT_SURVEY_LOWER_H
#define CKPT_SURVEY_LOWER_H

#include <stddef.h>

struct ckpt_dump;
struct err;

/*
 * Absolute paths in the session's view, sorted, each once; they may be of any type, or gone.  Freed
 * by ckpt_lower_free.
 */
int ckpt_lower_list(const struct ckpt_dump *d, char ***ret, size_t *ret_n, struct err *e);
void ckpt_lower_free(char **list, size_t n);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nested/survey - which namespaces (ckpt/nested/nested.h) a frozen session has.  Private to
 * ckpt. */
#ifndef CKPT_NESTED_SURVEY_H
#define CKPT_NESTED_SURVEY_H

#include "ckpt/survey/survey.h"

/*
 * Fills the sets of all processes and the list of namespaces.  ERR_UNFREEZABLE: what can't be
 * rebuilt.
 */
int ckpt_nested_survey(struct ckpt_dump *d, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * operation - what is being done for whom (struct session_operation of supervisor/session.h).
 */
#ifndef SUPERVISOR_OPERATION_H
#define SUPERVISOR_OPERATION_H

struct err;
struct session;

/* Answers the operation's client, if it is still there: with @failure, else with what there is to
 * report. */
void session_answer(struct session *s, const struct err *failure);
/*
 * Nothing is under way any more: frees what belonged to it, and removes a file that was not
 * finished.
 */
void session_end_operation(struct session *s);

#endif

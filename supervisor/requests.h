/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * requests - the table of what clients of the control socket may ask, and what is done about it.
 */
#ifndef SUPERVISOR_REQUESTS_H
#define SUPERVISOR_REQUESTS_H

struct control_ops;

/* For session_new. */
extern const struct control_ops requests_ops;

#endif

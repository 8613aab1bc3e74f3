/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outside - connections that lead out of the session: refused, or severed.
 *
 * The other end of a socket, pipe or terminal may be a program of the host, which stays where it
 * is.  By default that is refused, by name.  `--outside=close` and `--outside=reset` (struct
 * ckpt_dump_options) say what the session finds after a resume instead: bytes which had arrived,
 * then the end of the file or ECONNRESET, as if the other program had ended.  Nothing is done to
 * the connection itself: a session that runs on after a snapshot goes on using it.
 */
#ifndef CKPT_KINDS_OUTSIDE_H
#define CKPT_KINDS_OUTSIDE_H

#include <stdbool.h>

struct ckpt_dump;
struct err;

/*
 * What leads out has been found, and is described.  0: it may be severed.  Otherwise the refusal:
 * -EXDEV, ERR_UNFREEZABLE, with a hint.
 */
int ckpt_outside(const struct ckpt_dump *d, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* True if what is severed ends with an error. */
bool ckpt_outside_resets(const struct ckpt_dump *d);

#endif

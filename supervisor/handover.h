/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * handover - the end of a suspend into a pipe: whose is the session?
 *
 *      podrun suspend -o - | podrun resume -
 *
 * A pipe goes one way, but whoever writes to it can see how much nobody has read yet (FIONREAD),
 * and that nobody is left to read it (POLLERR).  So the last byte of the image decides:
 *
 *      suspend   writes all but the last byte, records "suspended" durably, writes the last byte,
 *                and keeps the session frozen until
 *                      the byte has been read          the session ends here
 *                      nobody is left who could        it runs on, and the suspend has failed
 *      resume    looks at the last byte without taking it (proto/source.h), rebuilds and verifies
 *                everything, and takes the byte as its last act before it releases what it made
 *
 * Should the frozen session get loose in between (its worker was killed), or nobody wait for the
 * outcome any more, the byte is fetched back: of two who read it one gets it, and a resume that
 * does not has no session.
 *
 * Whoever reads without resuming (cat, zstd, ssh) takes the byte as any other: for the suspend the
 * image is then in good hands, as it always was.  Between hosts only a migration knows better.
 * A file that is written through stdout gets its last byte the same way, and without waiting.
 */
#ifndef SUPERVISOR_HANDOVER_H
#define SUPERVISOR_HANDOVER_H

#include <stdbool.h>

struct err;

enum handover {
	HANDOVER_WAITS,
	HANDOVER_TAKEN,
	HANDOVER_REFUSED, /* nobody is left who could take it */
};

/* Writes the byte to @fd.  0, -EAGAIN as long as there is no room for it; never waits. */
int handover_write(int fd, unsigned char last, struct err *e);
/* What has become of it. */
enum handover handover_look(int fd);
/* Takes it back, if nobody has read it yet: true, and the image never was. */
bool handover_retract(int fd);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * traffic - packets of a session with a virtual network, while it stands still.
 *
 * Whoever carries them (a gateway) fills in session.traffic, and is asked by freezes and resumes:
 *
 *      dump worker   all tasks stopped     hold >      -> ops.hold
 *                                          < holding   it is in effect: nothing comes or goes, and
 *                                                      nothing is lost
 *                    sockets are looked at
 *                    about to run again    pass >      -> ops.pass; also if the worker was killed
 *      resume        attached, held; `lost` if its connections are another's by now
 *                    connections not accepted  redo >  -> ops.redo
 *                    released                          -> ops.pass
 *
 * What becomes of the packets of a session that ends is for whoever detaches it.
 */
#ifndef SUPERVISOR_NETWORK_TRAFFIC_H
#define SUPERVISOR_NETWORK_TRAFFIC_H

#include <stdint.h>

struct err;
struct session;
struct sockaddr;
struct Pb__Worker;

struct traffic_ops {
	/* Packets both ways are held back; @done(@arg, NULL) once that is in effect - in the
	 * call, or later - or with what went wrong: they are not then.  Not called while an
	 * earlier one is unanswered. */
	void (*hold)(void *ctx, void (*done)(void *arg, const struct err *e), void *arg);
	/* They go on, those that were held first. */
	void (*pass)(void *ctx);
	/* Resume, while they are held: the connection from @client to the session's @port,
	 * which no program had accepted, is to begin anew.  May be NULL. */
	void (*redo)(void *ctx, const struct sockaddr *client, uint16_t port);
};

/* A message of the session's worker that nobody else knows: hold, pass, redo. */
void traffic_message(struct session *s, const struct Pb__Worker *m);
/* The session is about to run, or runs.  Nothing is held: fine. */
void traffic_pass(struct session *s);

#endif

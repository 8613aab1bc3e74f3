/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interrupt - a migrate that is told to end by a signal (SIGINT, SIGTERM, SIGHUP).
 *
 * As soon as it is gone the session runs on here.  So the other side, which may have all of it
 * and wait for GO, is told before that not to keep it: an ABORT, which makes nonsense of an image
 * in the middle, too.  ssh has to live until that has gone through it, and does not hear of the
 * signals of a terminal (interrupt_spare); before anybody is there it is ended with us.  Behind GO the
 * acknowledgement has two seconds yet, and then ssh is ended alone: that nothing is heard any more has to be
 * said, for the move is in doubt then.
 *
 *      interrupt_begin        ssh is started
 *      interrupt_there        somebody has answered
 *      interrupt_hold(true)   GO is about to be said: a signal has to wait
 *      interrupt_hold(false)  it has been, or won't be
 *      interrupt_doubt        it has been
 *      interrupt_end          ssh has ended: signals are as before
 */
#ifndef SUPERVISOR_CLI_INTERRUPT_H
#define SUPERVISOR_CLI_INTERRUPT_H

#include <stdbool.h>
#include <sys/types.h>

/* In the child that becomes ssh. */
void interrupt_spare(void);
void interrupt_begin(pid_t ssh);
/* @fd leads to the other side; -1: an ABORT has been said there, or nothing has to be. */
void interrupt_there(int fd);
void interrupt_hold(bool on);
/* A while after a signal what is read from @fd is at its end.  A second one is ours. */
void interrupt_doubt(int fd);
void interrupt_end(void);

#endif

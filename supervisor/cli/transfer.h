/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * transfer - what migrate and receive say to each other through ssh.
 *
 *      migrate                                  receive
 *      "podrun-receive 2 KEY[ live][ @GATEWAY][ =FORETOLD]\n"
 *                                          ->   trusts KEY for this one image; makes a world for
 *                                               what is foretold (supervisor/arrival.h)
 *                                          <-   "HERE\n": its supervisor waits for the image, and has a
 *                                               line to the session's gateway if that is on another host
 *      (freezes the session)
 *      chunks of the image, then an empty one
 *                                          <-   "READY NAME[ NOTE]\n": rebuilt, verified, frozen
 *      (records durably: given away)
 *      "GO\n", or "ABORT\n"                ->   lets it run, or undoes it
 *                                          <-   "ACK\n"
 *      (ends its own)
 *
 * Instead of an answer there may be "FAIL MESSAGE\n", and before the first one whatever the shell there
 * prints.  Until GO is sent the source may run on; after that an unanswered GO is in doubt, and it stays
 * frozen.  There it runs, if GO was heard, or stays frozen as well.  A receive that can't say
 * READY, or whose stdin has ended while its stdout has not, undoes it as after ABORT: nobody has
 * said GO.  So does one to whom nothing of the image comes for two minutes: of a line that was cut, and of a
 * host that was switched off, it would not hear, as long as it only reads, for hours.
 *
 * Nothing is frozen before the way there is known to lead to a podrun that has begun: a handshake of
 * ssh and the start of three programs would be a part of the pause.  Version 1 is the same without
 * HERE.  Who speaks only that ends at a greeting of the other with the code of a wrong usage, and is
 * asked again by his own; so does one who takes no line as long as FORETOLD makes it, and is greeted
 * again without.
 */
#ifndef SUPERVISOR_CLI_TRANSFER_H
#define SUPERVISOR_CLI_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

struct err;

#define TRANSFER_HELLO	   "podrun-receive 2 "
#define TRANSFER_HELLO_1   "podrun-receive 1 "
#define TRANSFER_LIVE	   "live"
#define TRANSFER_MAX_LINE  4096
#define TRANSFER_MAX_CHUNK (1u << 20)

/*
 * A pipe on the way of an image gets more room.  sshd keeps what its own does not take, and makes room for
 * that some KiB at a time, each time somewhere else: of the first 4 MiB by a connection that made 100 to
 * 200 ms of CPU, in which the session stands still.  Not in a live move: what is on its way when the
 * session stops is what it waits for.
 */
void transfer_widen(int fd);
/* A line without its newline: 0, or -ECONNRESET at the end. */
int transfer_read_line(int fd, char line[TRANSFER_MAX_LINE]);
int transfer_write_line(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Something else that is looked at meanwhile: @ready is called when @fd is readable; a negative errno of
 * its ends what was waited for.
 */
struct transfer_watch {
	int fd;
	int (*ready)(void *ctx);
	void *ctx;
};
/* Until poll(2) tells one of @events of @fd, or an end of it. */
int transfer_await(int fd, short events, const struct transfer_watch *w);
/*
 * Copies chunks from one side of ssh: @from until its end, as chunks to @to, with the empty one.  A line
 * that takes no more does not keep it from looking at @w.
 */
int transfer_send_image(int from, int to, const struct transfer_watch *w);
/*
 * The other way round; 0 once the empty chunk came, -EPIPE when @to takes no more, -ETIMEDOUT when
 * nothing has come for @patience ms.
 */
int transfer_receive_image(int from, int to, int patience);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pty - pseudo terminals, and what waits in them.  See pty.c and pty_bytes.c.
 */
#ifndef CKPT_KINDS_PTY_H
#define CKPT_KINDS_PTY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/survey/survey.h"

struct termios2;

/*
 * Makes a session leader's controlling terminal its own.  To be called when @vpid has become a
 * session leader by @leader's setsid, before it bears processes of that session: they inherit the
 * terminal, and nobody but a leader can take one.  All records must have been read, and the builder
 * must stand in the session's mounts.  @lend_fd: the builder's pidfd in the leader's table
 * (ckpt/lend.h).  Nothing happens for a session without a terminal.
 */
int ckpt_pty_controlling(struct ckpt_build *b, pid_t vpid, struct remote *leader, int lend_fd,
	struct err *e);

/* How the output of a slave stands. */
enum pty_flow { PTY_RUNNING = 0, PTY_STOPPED_BY_CALL = 1, PTY_STOPPED_BY_CHAR = 2 };

/* What has been taken so far, in memory that outlives whoever takes it (ckpt/careful.h). */
#define PTY_MAX_BYTES (256 * 1024)
struct pty_notes {
	bool raw; /* the lines have been taken, and canonical mode was left */
	struct {
		size_t len;
		uint8_t data[PTY_MAX_BYTES + 16384];
	} lines, input, output;
};

/* What waits in a pair for somebody to read it. */
struct pty_bytes {
	struct pty_notes *notes; /* or NULL */
	struct buf lines;  /* whole lines for the slave, each behind its length (u32); one that does
			    * not end in an end-of-line character was ended by the EOF character */
	struct buf input;  /* for the slave: what is no whole line yet, or everything in raw mode */
	struct buf output; /* for the master */
	enum pty_flow flow;
};

/* Frees the buffers. */
void pty_bytes_fini(struct pty_bytes *p);

/*
 * Takes everything out of the pair.  @slave must be non-blocking; @master too if it is to be read
 * (@output).  @t: its settings as they were and have to be again; pty_bytes_put sets them.
 */
int pty_bytes_take(int master, int slave, bool output, const struct termios2 *t,
	struct pty_bytes *ret, struct err *e);
/* Puts it back, or into a new pair with the same settings, and sets them. */
int pty_bytes_put(int master, int slave, const struct termios2 *t, const struct pty_bytes *p,
	struct err *e);

/* Ops of both kinds: pty.c dumps, pty_make.c makes. */
bool ckpt_pty_claim(const struct ckpt_file *f);
bool ckpt_pty_claim_tty(const struct ckpt_file *f);
int ckpt_pty_check(struct ckpt_dump *d, union ckpt_subject s, struct err *e);
int ckpt_pty_dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e);
void ckpt_pty_forget(void *state);
int ckpt_pty_create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e);
int ckpt_pty_link(struct ckpt_build *b, struct ckpt_record *r, struct err *e);
int ckpt_pty_finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e);
void ckpt_pty_show(const void *body, size_t len, bool bare, FILE *out);

#endif

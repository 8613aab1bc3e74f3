/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * init_protocol - what the supervisor and pid 1 of its session say to each other.
 *
 *      supervisor                        pid 1
 *      clone(NEW*)  ------------------->  namespaces, mounts, filter
 *                   <-- init_ready -----  + listener, /, /proc, namespaces
 *                   <-- init_ready -----  once more, with a virtual network: + its TUN, a diag socket
 *      init_request + reply socket ---->  fork, exec
 *                   <-- init_reply -----  on the reply socket; + pty master; host pid by credentials
 *                   <-- init_exit ------  a child has ended
 *
 * A world that is made early has no filter yet, and so no listener: it gets both with INIT_SETTLE, the
 * first request.
 *
 * While the supervisor waits for a reply it answers no notified call, so pid 1 and what it forks
 * must make none before the exec: no stat, no getuid.
 *
 * Both sides are the same binary: messages are plain structs, one per SOCK_SEQPACKET datagram.
 * Each request brings the socket its answer goes to, so that an exit that happens meanwhile can't
 * come between.  Pid 1 ends when the supervisor's end closes, and with it everything inside.
 */
#ifndef SUPERVISOR_WORLD_INIT_PROTOCOL_H
#define SUPERVISOR_WORLD_INIT_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "ckpt/ckpt.h"

/* Descriptors of a virtual network. */
enum init_net { INIT_NET_TUN, INIT_NET_DIAG, INIT_NET_MAX };
/* Descriptors that come with init_ready, in this order; the namespaces follow. */
enum init_fd { INIT_FD_LISTENER, INIT_FD_ROOT, INIT_FD_PROC, INIT_FD_NS };

struct init_ready {
	struct err err; /* if err.error is set, nothing else came */
};

enum init_op { INIT_SPAWN, INIT_SEED, INIT_SETTLE };

/*
 * Descriptors: the reply socket; for INIT_SPAWN the arguments (a memfd with n_args + n_env
 * NUL-terminated strings, then the working directory) and, without tty, 0 1 2.
 */
struct init_request {
	enum init_op op;
	pid_t vpid; /* INIT_SEED */
	/* INIT_SETTLE, of a world that was made early: offsets, and what the filter watches over. */
	int64_t monotonic_ns, boottime_ns;
	struct ckpt_mapped mapped;
	uint32_t n_args, n_env;
	size_t size; /* of the memfd */
	bool tty, cwd;
	uint16_t rows, cols;
	mode_t umask;
};

/* Where starting a process, or settling, stopped. */
enum init_stage { INIT_DONE, INIT_FORK, INIT_TTY, INIT_CWD, INIT_EXEC, INIT_CLOCKS, INIT_FILTER };

struct init_reply {
	enum init_stage stage;
	int error; /* errno at that stage */
	pid_t vpid;
};

/* Pid 1's own exit codes (init_say_end). */
enum init_end {
	INIT_END_SUPERVISOR, /* the supervisor's end has closed */
	INIT_END_START,	     /* init_ready says why, if it could be sent */
	INIT_END_TELL,	     /* it can't tell of a child's end */
	INIT_END_HEAR,	     /* a request can't be received */
	INIT_END_MAX
};

/* A child of pid 1 has ended. */
struct init_exit {
	pid_t vpid;
	int status; /* as wait(2) */
	int left;   /* processes still alive in the session, without pid 1 */
};

#endif

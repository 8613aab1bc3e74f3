/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * world - what a session stands in: namespaces, its view of files, its pid 1.
 *
 * world_create makes user, pid, ipc, uts, mount, net and time namespaces without privilege, puts
 * the file view together, and starts pid 1 (supervisor/world/init.c), which installs the seccomp
 * filter and hands over the listener.  Everything the session runs is a child of pid 1, spawned on
 * request.
 */
#ifndef SUPERVISOR_WORLD_WORLD_H
#define SUPERVISOR_WORLD_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervisor/rewrite/rewriter.h"
#include "supervisor/world/world_config.h"

struct err;
struct ipc;
struct numbers;

struct world {
	pid_t init_pid;
	int init_status; /* after world_end, where it is our child: as wait(2) */
	int init_pidfd;
	uid_t uid; /* of the session, inside */
	gid_t gid;
	pid_t rewriter; /* the process that traces them all, where there are no namespaces; 0 */
	int rewriter_orders;	 /* likewise: rewrite/orders.h; -1 */
	struct numbers *numbers; /* likewise: what its tasks are called; NULL */
	struct ipc *ipc;	 /* likewise: its System V objects and message queues; NULL */
	struct users_groups *groups; /* likewise: of a root inside; NULL */
	int init_sock;		 /* SOCK_SEQPACKET to pid 1: init_protocol.h */
	int listener;		 /* seccomp user notification */
	int root_fd, proc_fd;
	int tun, diag; /* of a virtual network: net0's other end, and who tells of its sockets; -1 */
	int ns_user, ns_pid, ns_mnt, ns_net, ns_ipc, ns_uts, ns_time;
	int skeleton_locks[2]; /* duplicates: supervisor/world/skeleton.h */
};

/* A process that is going to be the rewriter, because it has something to do in the new world. */
struct world_host {
	pid_t pid;		 /* a child of the caller, who kills and awaits it from now on */
	struct numbers *numbers; /* shared with it; these are taken over by world_create */
	struct ipc *ipc;
	struct users_groups *groups;
	/* Has it call rewriter_become, with @c and these descriptors (borrowed). */
	int (*become)(void *ctx, const struct world_config *c, const int fds[REWRITER_N_FDS],
		struct err *e);
	void *ctx;
};

/*
 * Makes the world @c describes.  ERR_HOST, with a hint, where the host does not let an ordinary
 * user do that; on failure nothing is left of it.  The caller has one thread.
 * @h: who becomes the rewriter, where @c->rewrite; NULL: somebody forked for it.
 */
int world_create(
	struct world *ret, const struct world_config *c, struct world_host *h, struct err *e);
/*
 * The rest of one that was made early, before anything is started in it: of @c the offsets of its
 * clocks, and what its filter watches over.
 */
int world_settle(struct world *w, const struct world_config *c, struct err *e);
/* SIGKILLs pid 1, and with it everything inside, and waits for its end. */
void world_end(struct world *w);
/*
 * The same, and closes all, which takes the namespaces apart: the kernel may take a while for it.
 */
void world_destroy(struct world *w);

/*
 * Of one in which nothing was started: kills pid 1, which takes all apart when it ends;
 * world_destroy awaits that.
 */
void world_abandon(struct world *w);

/* What pid 1 is asked to start.  Strings are borrowed. */
struct world_spawn {
	char *const *argv;
	char *const *envp;
	const char *cwd;
	int stdio[3]; /* descriptors for 0, 1, 2 (borrowed), -1 for /dev/null; unused with tty */
	bool tty;     /* a new pty of the session's devpts is its terminal; see ret_master */
	uint16_t rows, cols;
	mode_t umask; /* with WORLD_UMASK; 0: the caller's own */
};
#define WORLD_UMASK 01000 /* marks a mask that has been said, for 0 is one */

/*
 * Starts a child of pid 1 as leader of its own session.  Returns its pid in the session and, with
 * @s->tty, the pty's master.  An exec that fails gives -ENOENT / -EACCES here (so that `run` can
 * answer 127 / 126).
 */
int world_spawn(struct world *w, const struct world_spawn *s, pid_t *ret_vpid, int *ret_master,
	struct err *e);
/* A blank child with number @vpid for ckpt_restore; returns its host pid. */
int world_seed(struct world *w, pid_t vpid, pid_t *ret_pid, struct err *e);

/* What pid 1 tells when init_sock is readable: a child of its has ended. */
struct world_exit {
	pid_t vpid;
	int status; /* as wait(2) */
	int left;   /* processes still alive in the session, without pid 1 */
};
/* 1 and an exit, 0 nothing now, negative when pid 1 is gone. */
int world_next_exit(struct world *w, struct world_exit *ret, struct err *e);

#endif

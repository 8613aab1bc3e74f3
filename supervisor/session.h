/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session - one session as its supervisor sees it: the state machine, the clients and the commands
 * it has, and what is being done.  Which module stands upon which is in session.c.
 *
 *                 run                              resume, receive
 *                  |                                     |
 *               STARTING                             REBUILDING --(frozen)--> ARRIVED
 *                  |                                     |                      | finish
 *                  +------------> RUNNING <--------------+----------------------+
 *                                 |     ^
 *                          freeze |     | thaw, any failure
 *                                 v     |
 *                              FREEZING-+--> PAUSED
 *                                 |            |
 *                               WRITING <------+
 *                                 |    \
 *                     (snapshot)  |     (hold) --> HELD --give away--> IN_DOUBT
 *                      RUNNING <--+                  |                    |
 *                                 |                  v finish             v finish
 *                               LEAVING (the worker ends what is frozen)
 *                                 |
 *                               CLOSING (clients get their last bytes) --> the process exits
 *
 * One operation is under way at most (struct session_operation); a second one is refused.  Nothing
 * here waits: every step is a callback of the event loop, from a client, the worker, or pid 1.
 */
#ifndef SUPERVISOR_SESSION_H
#define SUPERVISOR_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "supervisor/disk/paths.h"
#include "supervisor/disk/record.h"
#include "supervisor/modes.h"
#include "supervisor/world/world.h"

struct chore;
struct client;
struct control_ops;
struct screen;
struct event;
struct event_base;
struct job;
struct mapped;
struct network;
struct notify;
struct proto_conn;
struct relay;
struct session;
struct traffic_ops;
struct worker;
struct Pb__Record;
struct Pb__Report;
struct Pb__ResumeRequest;
struct Pb__RunRequest;
struct Pb__Foretold;
struct Pb__World;

enum session_state {
	SESSION_STARTING,
	SESSION_REBUILDING,
	SESSION_ARRIVED,
	SESSION_RUNNING,
	SESSION_FREEZING,
	SESSION_PAUSED,
	SESSION_WRITING,
	SESSION_COPYING, /* the same from copies of memory: the session runs on */
	SESSION_AHEAD,	 /* its memory is copied while it runs */
	SESSION_HELD,
	SESSION_IN_DOUBT,
	SESSION_LEAVING,
	SESSION_CLOSING,
	SESSION_STATE_MAX
};
/* As ps shows it. */
const char *session_state_name(enum session_state state);
/* Who traces processes in the session that are none of its own (procs_list), 0 for nobody. */
pid_t session_copier(const struct session *s);

/* A connection of control.c. */
#define SESSION_LATER_FDS 2
struct client {
	struct client *next;
	struct session *session;
	struct proto_conn *conn;
	struct event *readable, *writable;
	uid_t uid;
	pid_t pid;		   /* when it connected */
	bool stuffed;		   /* its socket takes no more now */
	bool waiting;		   /* for the end of the session's command */
	bool leaving;		   /* is freed when its output has gone out */
	bool refused;		   /* what it has asked for is not read */
	uint64_t lost;		   /* bytes of output it could not take */
	struct job *job;	   /* attached to */
	struct buf input;	   /* read, and more than the job could take */
	struct Pb__Control *later; /* a request which waits until the session is ready for it */
	int later_fds[SESSION_LATER_FDS];
	size_t n_later_fds;
	bool input_end;
};

/* A command of job.c. */
struct job {
	struct job *next;
	struct session *session;
	unsigned number;
	pid_t vpid;
	bool exited, told, tty;
	bool aside; /* nobody waits for it, and a session in which nothing else is left has ended */
	bool early; /* it had ended already when the session was rebuilt: told of when that runs */
	int status; /* as wait(2), once exited or early */
	char **argv;
	struct relay *relay;
	struct client *primary; /* NULL: detached */
	struct modes modes;	/* of its terminal */
	struct buf entered;	/* what leads there, as told last */
};

/* What is being done for whom. */
struct session_operation {
	enum { OP_NONE, OP_START, OP_PAUSE, OP_UNPAUSE, OP_SUSPEND, OP_SNAPSHOT, OP_RESUME } what;
	struct client *client; /* who waits for the answer; NULL once it went away */
	pid_t client_pid;      /* whoever asked for a freeze */
	bool hold, was_paused, frozen;
	bool stream;  /* the image goes to `image` as it is, not to a file of ours */
	bool discard; /* resume: remove the image file once the session runs */
	bool replace; /* resume: end who has the name */
	bool copy;    /* resume: of a snapshot, or clone */
	bool renamed; /* resume: it gets another name than it had */
	bool foreign; /* resume: the image was not made here, nor sent by a migrate */
	bool barred;  /* resume: whom it lets in elsewhere are not let in here */
	bool known;   /* resume: the image was known to be whole, and is not hashed again */
	int zstd_level;
	bool with_files;
	struct Pb__Live *live; /* suspend: memory is copied ahead; or NULL */
	const char *note;      /* for the report; static */
	/* resume, once it may run: to be called when it does.  Before the worker says so one of its
	 * processes may have ended. */
	void (*released)(struct session *s);
	int outside;	  /* enum ckpt_outside */
	int image;	  /* descriptor, -1 */
	int line;	  /* resume: leads to the gateway that resume->line names, or -1 */
	char *was;	  /* resume, renamed: the name in the image; or NULL */
	char *path, *tmp; /* where the image goes, and a file beside it that must not stay */
	bool placed;	  /* the image has its name, which may have to be taken back */
	bool swapped;	  /* tmp is the file that had the name before */
	bool had_record;  /* resume: the name was this session's before */
	_Atomic bool
		*going; /* resume, shared with the worker: its death does not stop them any more */
	uint64_t began_ns, written_ns; /* io_now_ns(): asked for, the worker has written */
	uint32_t deadline_ms;	       /* for tasks to stop, 0: the usual */
	uint8_t image_id[16];
	struct err failure; /* to be told once the session runs again */
	bool hand_over;	    /* suspend: the stream's last byte is ours to write (handover.h) */
	bool handing;	    /* and has been written, or may be now: the reader decides */
	uint8_t last;
	struct event *handover; /* looks whether it has */
	bool taken;		/* resume: the writer of the stream has been told that it is ours */
	bool mending;		/* the worker was killed, another tidies up behind it */
	bool over;		/* the session has ended, but its snapshot is still being written */
	struct Pb__Report *report;
	struct Pb__RunRequest *run;
	struct Pb__ResumeRequest *resume;
	struct Pb__World *world; /* resume: from the image */
};

struct session {
	struct event_base *loop;
	const struct control_ops *control;
	struct paths paths;
	enum session_state state;
	struct Pb__Record *record; /* with the config */
	char *dir;		   /* sessions/NAME, or a temporary name while rebuilding */
	char *cgroup;		   /* its control group, where memory is limited; or NULL */
	const char *lacking; /* resume: what the host lacks, so that its names are; static, NULL */
	bool rewrite;	     /* its names, for no namespace has them */
	struct world_host *host; /* resume: who is to be its rewriter; NULL */
	struct Pb__Foretold *foretold; /* resume: what its world was made for (arrival.h); or NULL */
	struct world *unused;	       /* and one that was made for nothing; or NULL */
	char *files;		 /* what world_create was told; the directory may have moved */
	char *runtime;		 /* NAME/ of the control socket, once it is there */
	int dir_fd, runtime_fd;	 /* both held open: supervisor/disk/tenure.h; -1 */

	struct world world;
	bool has_world;
	int64_t monotonic_offset_ns, boottime_offset_ns;
	bool init_gone; /* pid 1 has ended while the session was rebuilt */
	int early_left; /* processes, as pid 1 has told while the session was rebuilt */
	struct notify *notify;
	struct event *init_readable, *listener_readable;

	struct job *jobs; /* list; the session's own command is number 0 */
	unsigned next_job;
	struct client *clients; /* list */
	int listeners[2];	/* the control socket, and the one for --allow */
	struct event *acceptors[2];
	struct event *removed;	/* something beside the control socket was, or the socket */
	struct event *looks;	/* whether it is where it was */
	int looks_left;
	int log_fd;
	uint64_t log_bytes;
	bool log_full; /* it takes nothing any more, which has been said */

	struct worker *worker;
	struct worker *leaving; /* one that has nothing left to do but to end; or NULL */
	struct chore *chore; /* of launch.c, before there is a world */
	void (*on_world)(struct session *s, struct err *e); /* what comes after it */
	unsigned chores;				    /* done so far */
	struct periodic *periodic; /* snapshots from time to time; or NULL */
	struct {
		const struct traffic_ops *ops; /* NULL: it has no virtual network */
		void *ctx;
		bool held;     /* or asked to be */
		bool lost;     /* resume: connections can't be kept, and come back as reset */
	} traffic;	       /* traffic.h */
	struct vnet_passthrough
		*passthrough;	 /* network.h: the host's interface that it has; or NULL */
	struct network *network; /* network.h: its virtual network at the gateway; or NULL */
	struct screen *screen; /* screen.h: the process that shows it; or NULL */
	struct mapped *mapped; /* it was resumed with memory mapped from its image; NULL */
	struct session_operation op;
	struct event *retry; /* timer of rebuild.c: the name is not free yet */
	uint64_t retry_until_ns;
	char *aside[2]; /* set aside by the end, to be removed when nobody waits any more */
	bool killed;	/* by us, whatever the worker's end looks like */
	int outcome;	/* exit code of the process */
};

/* @control: supervisor/requests.h.  Freed by session_free (supervisor/end.h). */
int session_new(struct session **ret, struct event_base *loop, const struct control_ops *control,
	struct err *e);
/* Leaves the event loop once the session is closed and no client waits for bytes. */
void session_maybe_exit(struct session *s);
/* Replaces a string of a protobuf message; -ENOMEM leaves it as it was. */
int session_set_string(char **field, const char *value);

/* The session's CLOCK_MONOTONIC and CLOCK_BOOTTIME now. */
int64_t session_monotonic_ns(const struct session *s);
int64_t session_boottime_ns(const struct session *s);

/* Writes the record; failing is logged unless @durable. */
int session_save(struct session *s, enum record_state state, bool durable, struct err *e);
/* Opens the log in the session's directory, and the supervisor's own as stderr. */
int session_open_log(struct session *s, struct err *e);
void session_log(struct session *s, const void *data, size_t n);
/* Appends the end of the log, at most SESSION_LOG_TAIL bytes, to @b: it travels with an image. */
#define SESSION_LOG_TAIL (512u << 10)
/*
 * Appends to the log @path, which stayed here, what it lacks of @tail, the end of the session's log as
 * an image has it: that session may have been elsewhere meanwhile.  0 or a negative errno.
 */
int session_log_join(const char *path, const void *tail, size_t len);
void session_log_tail(struct session *s, struct buf *b);

#endif

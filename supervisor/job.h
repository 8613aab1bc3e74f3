/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * job - a command podrun started in a session (by run or exec), with its stdio.
 *
 * Output goes to the log and to every client attached to the job.  The *primary* client (who
 * started it) holds the job up when it doesn't read, as a pipe would; what others can't take in
 * time they don't get.
 */
#ifndef SUPERVISOR_JOB_H
#define SUPERVISOR_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ckpt_edge;
struct client;
struct err;
struct job;
struct session;
struct Pb__Job;

struct job_spec {
	char *const *argv;
	char *const *envp;
	const char *cwd;
	bool tty;
	bool input; /* stdin is fed by clients; otherwise it is empty */
	uint16_t rows, cols;
};

/* Starts a command and adds it to the session's list. */
int job_start(struct job **ret, struct session *s, const struct job_spec *spec, struct err *e);
/* The exit code of run and exec for a failure of job_start: 127, 126 or 125. */
int job_exit_code(const struct err *e);
/* Are the commands that have not ended really there?  Once a session has been rebuilt. */
int job_check_all(struct session *s, struct err *e);
/*
 * A job as an image tells of it, without descriptors (job_adopt brings them).  How the session's
 * own has ended goes into the record.
 */
int job_revive(struct job **ret, struct session *s, const struct Pb__Job *j, struct err *e);
/* Gives the job its edge named @name ("stdout", "exec3.tty"); @fd becomes the session's. */
int job_adopt(struct session *s, const char *name, int fd, struct err *e);
void job_free(struct job *j);
struct job *job_find(struct session *s, unsigned number);
struct job *job_find_vpid(struct session *s, pid_t vpid);

/* All edges of the session, at most @max. */
size_t job_edges(struct session *s, struct ckpt_edge *ret, size_t max);
void job_hold_all(struct session *s, bool on);
/* Its process has ended: what is left in the pipes goes out. */
void job_ended(struct job *j, int status);
/* Tells @c that its command has ended, or will never be.  @status: as wait(2); @left: who lives. */
void job_tell_end(struct client *c, int status, int left);
/* Tells the clients of all jobs that ended and were not told of; @left processes live on. */
void job_tell_all(struct session *s, int left);
void job_drain_all(struct session *s);
/* The session is over: its command's status for those who came after its end. */
void job_tell_waiting(struct session *s);
/* To one who has come with a terminal of that size: the modes of the job's, and its screen anew. */
void job_show(struct job *j, struct client *c, uint32_t rows, uint32_t cols);
/* Fills @ret with pointers borrowed from the job. */
void job_describe(struct job *j, struct Pb__Job *ret);

#endif

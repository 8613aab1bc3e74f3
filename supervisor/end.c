// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A session ends once: session_close.  It may be called from any state and any callback of the
 * event loop, and does what can be done without waiting: everything inside is killed, what is left
 * on disk is set aside under the lock of the names, clients are told.  The loop is left when no
 * client waits for bytes any more; what takes long (namespaces, directory trees) goes after it, in
 * session_free.
 */
#include "supervisor/end.h"

#include <event2/event.h>
#include <signal.h>
#include <time.h>

#include "proto/control.pb-c.h"
#include "supervisor/control.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/filter/notify.h"
#include "supervisor/job.h"
#include "supervisor/mapped.h"
#include "supervisor/names/users.h"
#include "supervisor/network/network.h"
#include "supervisor/operation.h"
#include "supervisor/periodic.h"
#include "supervisor/rewrite/ipc/ipc.h"
#include "supervisor/rewrite/numbers.h"
#include "supervisor/screen/screen.h"
#include "supervisor/session.h"
#include "supervisor/worker/chore.h"
#include "supervisor/worker/worker.h"
#include "supervisor/world/cgroup.h"

void session_kill(struct session *s)
{
	if (!s->has_world)
		return;
	s->killed = true;
	/* Pid 1 first: the kernel has killed all the rest when a worker's death lets them go. */
	sys_pidfd_send_signal(s->world.init_pidfd, SIGKILL);
	/* While it holds the session nobody sees to pid 1's end; with it goes all it traces. */
	if (s->world.rewriter)
		kill(s->world.rewriter, SIGKILL);
	if (s->worker)
		worker_kill(s->worker);
}

/* Commands that will not end by themselves any more were killed. */
static void end_jobs(struct session *s)
{
	for (struct job *j = s->jobs; j; j = j->next) {
		if (j->exited)
			continue;
		if (j->number == 0) {
			s->record->status = SIGKILL;
			s->record->ended = time(NULL);
		}
		job_ended(j, SIGKILL);
	}
}

/* Whoever waits for a command that goes on elsewhere is told. */
static void tell_moved(struct session *s)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Moved moved = PB__MOVED__INIT;

	moved.image = s->record->image;
	moved.peer = s->record->peer;
	m.body_case = PB__CONTROL__BODY_MOVED;
	m.moved = &moved;
	for (struct client *c = s->clients, *next; c; c = next) {
		next = c->next;
		if ((c->waiting || c->job) && c != s->op.client)
			control_send(c, &m);
	}
}

/* What is left on disk: nothing, or a record and a log. */
static void clean_up(struct session *s, enum record_state state)
{
	bool remove = !s->record || state == RECORD_STATE_MAX ||
		      (state == RECORD_ENDED && s->record->config->remove);
	_cleanup_close_ int lock = tenure_lock(&s->paths, NULL);

	if (lock < 0)
		log_warn("cannot lock the names: tidying up all the same");
	if (tenure_holds(s->dir, s->dir_fd)) {
		_cleanup_free_ char *path = NULL;

		if (remove)
			s->aside[0] = tenure_set_aside(s->dir);
		else if (asprintf(&path, "%s/files", s->dir) > 0)
			s->aside[0] = tenure_set_aside(path);
		if (!remove && state != RECORD_SUSPENDED && state != RECORD_MOVED)
			session_save(s, state, false, NULL);
	}
	if (s->runtime && tenure_holds(s->runtime, s->runtime_fd))
		s->aside[1] = tenure_set_aside(s->runtime);
}

static void stop_watching(struct session *s)
{
	struct event **watches[] = {&s->init_readable, &s->listener_readable};

	for (size_t i = 0; i < ARRAY_SIZE(watches); i++) {
		if (*watches[i])
			event_free(*watches[i]);
		*watches[i] = NULL;
	}
	notify_destroy(take_ptr(s->notify));
}

void session_drop_world(struct session *s)
{
	stop_watching(s);
	if (s->has_world && (s->unused = malloc(sizeof(*s->unused))))
		*s->unused = s->world;
	else if (s->has_world)
		world_destroy(&s->world);
	s->has_world = s->init_gone = false;
	s->early_left = 0;
}

static void end_world(struct session *s)
{
	stop_watching(s);
	if (!s->has_world)
		return;
	if (s->worker)
		session_kill(s);
	worker_free(take_ptr(s->worker));
	worker_free(take_ptr(s->leaving));
	world_end(&s->world);
}

/* An operation that the session's end overtook. */
static void end_operation(struct session *s)
{
	struct session_operation *op = &s->op;
	bool written = op->what == OP_SNAPSHOT && op->report && !err_is(&op->failure);
	struct err e = {0};

	err_set(&e, ERR_STATE, -ESRCH, "the session has ended");
	session_answer(s, written ? NULL : &e);
	session_end_operation(s);
}

void session_close(struct session *s, enum record_state state)
{
	if (s->state == SESSION_CLOSING)
		return;
	if (s->op.what != OP_NONE && state == RECORD_ENDED && s->state != SESSION_REBUILDING)
		end_operation(s);
	if (s->state == SESSION_STARTING && s->record)
		s->record->config->remove = true; /* what never ran leaves no record */
	s->state = SESSION_CLOSING;
	chore_free(take_ptr(s->chore));
	if (s->retry)
		event_free(s->retry);
	s->retry = NULL;
	periodic_free(s);
	mapped_end(s);
	end_world(s);
	screen_end(s, state);
	network_end(s);
	if (state == RECORD_ENDED && s->record) {
		job_drain_all(s);
		end_jobs(s);
	}
	/* Clients hear of it when everything is as they will find it. */
	if (s->dir)
		clean_up(s, state);
	control_unlisten(s);
	if (state == RECORD_ENDED && s->record) {
		job_tell_all(s, 0);
		job_tell_waiting(s);
	} else if (s->record) {
		tell_moved(s);
	}
	session_maybe_exit(s);
}

void session_give_up(struct session *s, struct client *c, const struct err *e)
{
	session_close(s, RECORD_STATE_MAX);
	if (c)
		control_send_failure(c, e, s->outcome);
	session_maybe_exit(s);
}

void session_free(struct session *s)
{
	if (!s)
		return;
	session_end_operation(s);
	chore_free(s->chore);
	worker_free(s->worker);
	worker_free(s->leaving);
	periodic_free(s);
	mapped_free(s);
	network_free(s);
	screen_free(s);
	if (s->foretold)
		pb__foretold__free_unpacked(s->foretold, NULL);
	while (s->clients)
		control_free(s->clients);
	while (s->jobs) {
		struct job *j = s->jobs;

		s->jobs = j->next;
		job_free(j);
	}
	control_unlisten(s);
	/* Nobody waits any more: what takes long comes last. */
	if (s->has_world)
		world_destroy(&s->world);
	if (s->unused)
		world_destroy(s->unused);
	free(s->unused);
	cgroup_remove(s->cgroup);
	for (size_t i = 0; i < ARRAY_SIZE(s->aside); i++)
		tenure_remove(s->aside[i]);
	record_free(s->record);
	close_fd(s->log_fd);
	close_fd(s->dir_fd);
	close_fd(s->runtime_fd);
	free(s->dir);
	free(s->files);
	if (s->host) {
		ipc_end(s->host->ipc);
		numbers_free(s->host->numbers);
		users_groups_free(s->host->groups);
	}
	free(s->host);
	free(s->runtime);
	paths_fini(&s->paths);
	free(s);
}

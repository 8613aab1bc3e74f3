// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * All of them begin by holding the relays (what is in the pipes now belongs to the session) and
 * forking a worker that freezes.  Then the two phases of a suspend: the worker writes and syncs
 * under a temporary name; when it says "written", the supervisor renames, records "suspended" durably,
 * and only then tells the worker to end what is frozen.  Into a stream there is nothing to rename: the
 * last byte of the image does it (handover.h).  Whatever fails before that makes the
 * worker thaw, and the session runs as if nothing had happened.
 *
 * A `hold` request (migrate) stops between the phases: the image has gone down a stream, and the
 * client decides.  Until it says GIVE_AWAY its going away means "run on"; after that nobody but a
 * person (`migrate --finish|--abort`) may decide.  It may run elsewhere then, so its tasks are bound to the worker
 * first: elsewhere a worker that is killed lets them run on, here they end with it, and only the other copy is left.
 */
#include "supervisor/freeze.h"

#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "supervisor/control.h"
#include "supervisor/end.h"
#include "supervisor/filter/filter.h"
#include "supervisor/filter/install.h"
#include "supervisor/filter/notify.h"
#include "supervisor/filter/notify_call.h"
#include "supervisor/front.h"
#include "supervisor/handover.h"
#include "supervisor/introduce.h"
#include "supervisor/job.h"
#include "supervisor/kin.h"
#include "supervisor/launch.h"
#include "supervisor/mapped.h"
#include "supervisor/message.h"
#include "supervisor/names/users.h"
#include "supervisor/network/network.h"
#include "supervisor/network/traffic.h"
#include "supervisor/operation.h"
#include "supervisor/periodic.h"
#include "supervisor/placing.h"
#include "supervisor/screen/screen.h"
#include "supervisor/session.h"
#include "supervisor/worker/worker.h"

#define HANDOVER_MS 5
#define DEADLINE_MS 5000
#define MAX_EDGES   1024

/* ---- the operation ------------------------------------------------------------------------ */

/* The rewriter lets nobody install a filter in the first place. */
static void hold_installs(struct session *s, bool on)
{
	if (s->notify)
		installs_hold(notify_installs(s->notify), on);
}

/* The session runs again. */
static void back_to_running(struct session *s)
{
	worker_free(take_ptr(s->worker));
	traffic_pass(s);
	hold_installs(s, false);
	s->state = SESSION_RUNNING;
	screen_take_up(s);
	control_take_up(s);
	session_set_string(&s->record->peer, "");
	session_save(s, RECORD_RUNNING, false, NULL);
	job_hold_all(s, false);
}

static void tell_worker(struct session *s, Pb__Worker__BodyCase what)
{
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;
	struct err e = {0};

	m.body_case = what;
	m.thaw = &empty;
	if (s->worker && worker_send(s->worker, &m, NULL, 0, &e) < 0)
		log_warn("%s", e.msg);
}

/* ---- writing ------------------------------------------------------------------------------ */

static int start_writing(struct session *s, struct err *e)
{
	_cleanup_free_ Pb__Job *jobs = calloc(MAX_EDGES, sizeof(*jobs));
	_cleanup_free_ Pb__Job **list = calloc(MAX_EDGES, sizeof(*list));
	_cleanup_free_ void *groups = NULL;
	const struct users_groups *sets;
	_cleanup_free_ char *files = NULL;
	_cleanup_close_ int dir = -1;
	Pb__WriteRequest req = PB__WRITE_REQUEST__INIT;
	Pb__Worker m = PB__WORKER__INIT;
	_cleanup_buf_ struct buf log = BUF_INIT;
	struct utsname uts;
	Pb__World world;
	int fds[2];

	if (!jobs || !list || asprintf(&files, "%s/files", s->dir) < 0)
		return err_errno(e, -ENOMEM, "image");
	dir = open(files, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_errno(e, -errno, "%s", files);
	front_describe(s, &world, jobs, list, MAX_EDGES, &uts);
	network_describe(s, &world);
	sets = s->notify ? notify_groups(s->notify) : s->world.groups;
	if (sets && users_groups_dump(sets, &world, &groups) < 0)
		return err_errno(e, -ENOMEM, "image");
	/* What the frozen tasks have written and nobody has read belongs to the log, too. */
	job_drain_all(s);
	session_log_tail(s, &log);
	world.log.data = log.data;
	world.log.len = log.len;
	req.config = s->record->config;
	req.world = &world;
	req.snapshot = s->op.what == OP_SNAPSHOT;
	req.stay = s->op.was_paused;
	req.zstd_level = s->op.zstd_level;
	req.with_files = s->op.with_files;
	req.outside = (uint32_t)s->op.outside;
	req.hold_last = s->op.hand_over;
	m.body_case = PB__WORKER__BODY_WRITE;
	m.write = &req;
	fds[0] = s->op.image;
	fds[1] = dir;
	s->state = SESSION_WRITING;
	/* A worker that has ended is heard of by its end. */
	if (worker_send(s->worker, &m, fds, 2, e) < 0 && e->error != -EPIPE &&
		e->error != -ECONNRESET)
		return e->error;
	*e = (struct err){0};
	/* Whoever reads the stream shall see its end when the worker is done. */
	if (s->op.stream && !s->op.hand_over)
		s->op.image = close_fd(s->op.image);
	return 0;
}

static void give_up_handover(struct session *s)
{
	struct session_operation *op = &s->op;

	if (op->handover)
		event_free(take_ptr(op->handover));
	if (op->hand_over)
		op->image = close_fd(op->image);
	op->handing = false;
}

/*
 * The operation has failed: it is answered when the session runs again, or at once if it was
 * paused and stays so.
 */
static void fail(struct session *s, const struct err *e)
{
	log_warn("%s", e->msg);
	placing_undo(s);
	give_up_handover(s);
	s->op.failure = *e;
	if (!s->op.was_paused) {
		tell_worker(s, PB__WORKER__BODY_THAW);
		return;
	}
	session_answer(s, e);
	session_end_operation(s);
	s->state = SESSION_PAUSED;
}

/* The second phase of a suspend.  From here on the session is its image. */
static void commit(struct session *s)
{
	if (s->op.report)
		s->op.report->frozen_ns += io_now_ns() - s->op.written_ns;
	s->state = SESSION_LEAVING;
	network_suspend(s);
	event_del(s->init_readable); /* pid 1's end is not the session's */
	tell_worker(s, PB__WORKER__BODY_END);
}

static void hand_over(struct session *s);

static void on_handover(evutil_socket_t fd, short what, void *ctx)
{
	hand_over(ctx);
}

/* The last byte is written as soon as there is room for it; then we look until it has been read. */
static void hand_over(struct session *s)
{
	const struct timeval soon = {.tv_usec = HANDOVER_MS * 1000};
	struct session_operation *op = &s->op;
	enum handover now = HANDOVER_WAITS;
	struct err e = {0};
	int r = op->handing ? 0 : handover_write(op->image, op->last, &e);

	if (r == 0) {
		op->handing = true;
		now = handover_look(op->image);
	}
	if (now == HANDOVER_REFUSED)
		r = err_set(&e, ERR_FAILED, -EPIPE, "whoever read the image did not want it");
	if (r < 0 && r != -EAGAIN) {
		fail(s, &e);
	} else if (now == HANDOVER_TAKEN) {
		op->image = close_fd(op->image);
		commit(s);
	} else {
		if (!op->handover)
			op->handover = event_new(s->loop, -1, 0, on_handover, s);
		if (op->handover)
			event_add(op->handover, &soon);
	}
}

static int record_suspended(struct session *s, struct err *e)
{
	struct session_operation *op = &s->op;
	Pb__Record *r = s->record;

	session_set_string(&r->image, op->path ? op->path : "");
	free(r->image_id.data);
	r->image_id.data = malloc(16);
	r->image_id.len = r->image_id.data ? 16 : 0;
	if (r->image_id.data)
		memcpy(r->image_id.data, op->image_id, 16);
	return session_save(s, RECORD_SUSPENDED, true, e);
}

static void on_written(struct session *s, const Pb__Report *report)
{
	struct session_operation *op = &s->op;
	struct err e = {0};
	int r;

	op->written_ns = io_now_ns();
	op->report = (Pb__Report *)message_copy(&report->base);
	if (op->report) {
		op->report->total_ns = op->written_ns - op->began_ns;
		session_set_string(&op->report->image, op->path ? op->path : "");
		if (report->image_id.len == 16)
			memcpy(op->image_id, report->image_id.data, 16);
		if (op->note)
			session_set_string(&op->report->note, op->note);
		if (report->held.len == 1)
			op->last = report->held.data[0];
		op->report->held.len = 0;
	}
	if (op->hold) {
		s->state = SESSION_HELD;
		if (!op->client) {
			session_abandoned(s);
			return;
		}
		session_answer(s, NULL);
		return;
	}
	r = op->report ? fault_at(FAULT_SUSPEND_WRITTEN, &e) : err_errno(&e, -ENOMEM, "report");
	if (r == 0)
		r = placing_commit(s, &e);
	if (r == 0)
		r = fault_at(FAULT_SUSPEND_PLACED, &e);
	if (r == 0 && op->what == OP_SUSPEND)
		r = record_suspended(s, &e);
	if (r == 0 && op->what == OP_SUSPEND)
		r = fault_at(FAULT_SUSPEND_RECORDED, &e);
	if (r < 0) {
		fail(s, &e);
	} else if (op->hand_over) {
		hand_over(s);
	} else if (op->what == OP_SUSPEND) {
		commit(s);
	} else if (op->was_paused) {
		session_answer(s, NULL);
		session_end_operation(s);
		s->state = SESSION_PAUSED;
	} /* else the worker has let the session go and ends: on_gone */
}

/* ---- the worker's messages ---------------------------------------------------------------- */

static void on_frozen(struct session *s)
{
	struct err e = {0};

	/* The survey is done: who was not there any more has been told of, and is no running command. */
	session_hear_exits(s);
	if (s->state == SESSION_CLOSING || s->killed)
		return;
	s->op.frozen = true;
	if (s->op.what == OP_PAUSE) {
		s->state = SESSION_PAUSED;
		screen_paused(s);
		session_save(s, RECORD_PAUSED, false, NULL);
		session_answer(s, NULL);
		session_end_operation(s);
		return;
	}
	if (fault_at(FAULT_SUSPEND_FROZEN, &e) < 0 || start_writing(s, &e) < 0)
		fail(s, &e);
}

static void on_failure(struct session *s, const Pb__Failure *f)
{
	struct err e = {0};

	message_to_err(f, &e);
	fail(s, &e);
}

static void on_ended(struct session *s)
{
	struct session_operation *op = &s->op;
	bool moved = s->record->peer[0];

	fault_at(FAULT_SUSPEND_ENDED, NULL);
	if (op->report) {
		uint64_t all = io_now_ns() - op->began_ns;

		op->report->total_ns = all;
		if (!op->report->frozen_ns)
			op->report->frozen_ns = all;
	}
	/* Whoever is told may resume it at once, and asks the record what it is. */
	network_give_back(s);
	if (moved || op->path)
		control_unlisten(s);
	if (!moved)
		session_answer(s, NULL);
	else if (op->client)
		control_send_done(op->client);
	session_close(s, moved ? RECORD_MOVED : op->path ? RECORD_SUSPENDED : RECORD_STATE_MAX);
	session_end_operation(s);
}

/* It may be given away.  If nobody is there any more who wanted that, it runs already. */
static void on_bound(struct session *s)
{
	struct client *c = s->op.client;
	struct err e = {0};

	if (s->state != SESSION_HELD || !c)
		return;
	if (session_save(s, RECORD_IN_DOUBT, true, &e) < 0) {
		control_send_failure(c, &e, 0);
		return;
	}
	s->state = SESSION_IN_DOUBT;
	control_send_done(c);
}

static void on_progress(struct session *s, Pb__Progress *p);
static void on_ready(struct session *s);

static void on_message(void *ctx, Pb__Worker *m, int *fds, size_t n_fds)
{
	struct session *s = ctx;

	switch (m->body_case) {
	case PB__WORKER__BODY_FROZEN:
		on_frozen(s);
		break;
	case PB__WORKER__BODY_PROGRESS:
		on_progress(s, m->progress);
		break;
	case PB__WORKER__BODY_READY:
		on_ready(s);
		break;
	case PB__WORKER__BODY_WRITTEN:
		on_written(s, m->written);
		break;
	case PB__WORKER__BODY_FAILURE:
		on_failure(s, m->failure);
		break;
	case PB__WORKER__BODY_ENDED:
		on_ended(s);
		break;
	case PB__WORKER__BODY_BOUND:
		on_bound(s);
		break;
	case PB__WORKER__BODY_THAWED: /* a snapshot is written on, else the end of the process follows */
		hold_installs(s, false);
		job_hold_all(s, false);
		if (s->state == SESSION_WRITING && s->op.what == OP_SNAPSHOT) {
			s->state = SESSION_COPYING;
			screen_take_up(s);
			control_take_up(s);
		}
		break;
	default:
		traffic_message(s, m);
		break;
	}
}

static int start_worker(struct session *s, uint32_t deadline_ms, bool mend, struct err *e);

/* 0 once another worker is under way, which removes what this one has left. */
static int mend(struct session *s)
{
	struct err e = {0};
	int r;

	s->op.mending = true;
	fault_armed = false;
	worker_free(take_ptr(s->worker));
	r = start_worker(s, 0, true, &e);
	if (r < 0)
		log_warn("%s", e.msg);
	return r;
}

/* The operation is over, and the session is not. */
static void run_on(struct session *s, struct err *failure)
{
	bool over = s->op.over;

	back_to_running(s);
	periodic_done(s);
	session_answer(s, err_is(failure) ? failure : NULL);
	session_end_operation(s);
	if (over && (s->record->config->end_with_command || screen_processes(s)))
		session_kill(s);
	else if (over)
		session_close(s, RECORD_ENDED);
}

static void on_gone(void *ctx, int status)
{
	struct session *s = ctx;
	struct session_operation *op = &s->op;
	bool done = op->what == OP_NONE || op->what == OP_UNPAUSE ||
		    (op->what == OP_SNAPSHOT && op->report);

	if (s->state == SESSION_CLOSING)
		return;
	if (s->state == SESSION_LEAVING) {
		/* It was killed while ending the session, which was written and recorded. */
		session_kill(s);
		on_ended(s);
		return;
	}
	if (s->state == SESSION_IN_DOUBT && op->what != OP_UNPAUSE) {
		log_warn("the worker was killed: what was given to %s is only there", s->record->peer);
		session_save(s, RECORD_MOVED, true, NULL);
		session_kill(s);
		on_ended(s);
		return;
	}
	if (s->killed) {
		/* Pid 1's end, which follows, is the session's. */
		worker_free(take_ptr(s->worker));
		return;
	}
	if (op->handing && !handover_retract(op->image)) {
		/* The image is another's already. */
		commit(s);
		session_kill(s);
		on_ended(s);
		return;
	}
	if (op->handing || op->handover)
		give_up_handover(s);
	if (!done && !err_is(&op->failure)) {
		worker_say_end(&op->failure, status, s->world.rewriter);
		err_hint(&op->failure, s->world.rewriter && status ? "" : "the session runs on");
	}
	if (WIFSIGNALED(status) && !s->world.rewriter && !op->mending && mend(s) == 0)
		return;
	run_on(s, &op->failure);
}

static const struct worker_ops worker_ops = {on_message, on_gone};

/* The directory of images. */
static int open_images(const struct session *s)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/images", s->paths.state) < 0)
		return -ENOMEM;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int start_worker(struct session *s, uint32_t deadline_ms, bool mend, struct err *e)
{
	_cleanup_free_ struct ckpt_edge *edges = calloc(MAX_EDGES, sizeof(*edges));
	const struct world_config names_of = {
		.as_root = s->record->config->as_root,
		.mapped = mapped_info(s),
		.io_uring = s->record->config->io_uring};
	struct installs *installs = s->notify ? notify_installs(s->notify) : NULL;
	long notified[FILTER_MAX_NOTIFIED];
	_cleanup_close_ int images = -1;
	struct worker_dump what = {.images = -1,
		.config_dir = s->paths.config,
		.options = {.snapshot = s->op.what == OP_SNAPSHOT,
			.portable = s->record->config->portable,
			.outside = (enum ckpt_outside)s->op.outside,
			.deadline_ms = deadline_ms ? deadline_ms : DEADLINE_MS}};

	if (!edges)
		return err_errno(e, -ENOMEM, "edges");
	screen_visited(s, what.options.visited, sizeof(what.options.visited));
	what.world = introduce_world(&s->world, s->record->config);
	what.world.vnet = s->traffic.ops != NULL;
	what.world.wired = s->passthrough != NULL;
	what.world.edges = edges;
	what.world.n_edges = job_edges(s, edges, MAX_EDGES);
	what.options.notified = notified;
	what.options.n_notified = filter_notified(&names_of, notified);
	what.options.phase = installs_phase;
	what.options.unhold = installs_unhold;
	what.client = s->op.client_pid;
	what.ahead = s->op.live && !mend;
	what.older = s->world.rewriter ? NULL : periodic_older(s);
	if (what.older && !mend)
		what.images = images = open_images(s);
	if (s->world.rewriter)
		return worker_start_order(&s->worker, s->loop, s->world.rewriter,
			s->world.rewriter_orders, &what, &worker_ops, s, e);
	what.options.filters = installs_table(installs);
	what.options.ctx = installs;
	what.listener = s->world.listener;
	if (!what.ahead)
		installs_hold(installs, true);
	return (mend ? worker_start_mend : worker_start_dump)(
		&s->worker, s->loop, &what, &worker_ops, s, e);
}

/* One that has copied memory ahead is there already. */
static int stop_or_start(struct session *s, struct err *e)
{
	if (!s->worker)
		return start_worker(s, s->op.deadline_ms, false, e);
	tell_worker(s, PB__WORKER__BODY_FREEZE);
	return 0;
}

/* The last filter that was being installed is in place. */
static void freeze_now(void *ctx)
{
	struct session *s = ctx;
	struct err e = {0};

	if (stop_or_start(s, &e) == 0)
		return;
	run_on(s, &e);
}

/* The display server's connection does not lead into the session any more. */
static int freeze_when_idle(struct session *s, struct err *e)
{
	struct installs *installs = s->notify ? notify_installs(s->notify) : NULL;

	if (!installs || !installs_busy(installs))
		return stop_or_start(s, e);
	installs_when_idle(installs, freeze_now, s);
	return 0;
}

static void on_let_go(struct session *s)
{
	struct err e = {0};

	if (s->state != SESSION_FREEZING || s->killed || freeze_when_idle(s, &e) == 0)
		return;
	run_on(s, &e);
}

static int freeze(struct session *s, uint32_t deadline_ms, struct err *e)
{
	int r = 0;

	job_hold_all(s, true);
	s->op.deadline_ms = deadline_ms;
	hold_installs(s, true);
	if (screen_let_go(s, on_let_go) == 0)
		r = freeze_when_idle(s, e);
	if (r < 0) {
		hold_installs(s, false);
		job_hold_all(s, false);
		screen_take_up(s);
		return r;
	}
	s->state = SESSION_FREEZING;
	return 0;
}

/* ---- copying ahead ------------------------------------------------------------------------ */

/* While the session runs as ever, but for its commands: who is there is known when the worker is forked. */
static int begin_ahead(struct session *s, uint32_t deadline_ms, struct err *e)
{
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Ahead req = PB__AHEAD__INIT;
	int r = start_worker(s, deadline_ms, false, e);

	s->op.deadline_ms = deadline_ms;
	req.live = s->op.live;
	req.zstd_level = s->op.zstd_level;
	m.body_case = PB__WORKER__BODY_AHEAD;
	m.ahead = &req;
	if (r == 0)
		r = worker_send(s->worker, &m, &s->op.image, 1, e);
	if (r < 0)
		worker_free(take_ptr(s->worker));
	else
		s->state = SESSION_AHEAD;
	return r;
}

static void on_progress(struct session *s, Pb__Progress *p)
{
	Pb__Control m = PB__CONTROL__INIT;

	m.body_case = PB__CONTROL__BODY_PROGRESS;
	m.progress = p;
	if (s->op.client)
		control_send(s->op.client, &m);
}

/* Little is left: now it stops. */
static void on_ready(struct session *s)
{
	struct err e = {0};
	int r = fault_at(FAULT_AHEAD_READY, &e);

	if (s->state != SESSION_AHEAD)
		return;
	if (r == 0 && !s->op.client)
		r = err_set(&e, ERR_FAILED, -ECANCELED, "nobody waits for it any more");
	if (r == 0)
		r = freeze(s, s->op.deadline_ms, &e);
	if (r < 0)
		fail(s, &e);
}

/* ---- requests ----------------------------------------------------------------------------- */

int session_pause(struct session *s, struct client *c, struct err *e)
{
	int r;

	s->op.what = OP_PAUSE;
	/* Nothing is lost by a pause: what is written afterwards decides. */
	s->op.outside = CKPT_OUTSIDE_CLOSE;
	s->op.began_ns = io_now_ns();
	s->op.client_pid = c->pid;
	fault_load(c->pid);
	r = freeze(s, 0, e);
	if (r < 0)
		session_end_operation(s);
	else
		s->op.client = c;
	return r;
}

int session_unpause(struct session *s, struct client *c, struct err *e)
{
	s->op.what = OP_UNPAUSE;
	s->op.client = c;
	tell_worker(s, PB__WORKER__BODY_THAW);
	return 0;
}

/* What is to become of connections that lead out: as asked for now, or when it was started. */
static int choose_outside(const struct session *s, const Pb__SuspendRequest *req, struct err *e)
{
	const char *wish = req->outside[0] ? req->outside : s->record->config->outside;
	enum ckpt_outside outside = CKPT_OUTSIDE_REFUSE;

	if (wish[0] && ckpt_outside_parse(wish, &outside) < 0)
		return err_set(e, ERR_USAGE, -EINVAL,
			"--outside: '%s' is not valid here: it takes refuse|close|reset", wish);
	return (int)outside;
}

/* Where it can't be done, or needs not be, it is said so. */
static int choose_live(struct session *s, const Pb__SuspendRequest *req, struct err *e)
{
	struct session_operation *op = &s->op;

	if (!op->hold)
		return err_set(e, ERR_USAGE, -EINVAL, "memory is copied ahead to another host only");
	if (op->was_paused)
		op->note = "it was paused: nothing was copied ahead";
	else if (s->world.rewriter)
		op->note = "its names are rewritten: it was copied while it stood still";
	if (op->note)
		return 0;
	op->live = (Pb__Live *)message_copy(&req->live->base);
	return op->live ? 0 : err_errno(e, -ENOMEM, "live");
}

int session_suspend(struct session *s, struct client *c, const Pb__SuspendRequest *req, int stream,
	struct err *e)
{
	struct session_operation *op = &s->op;
	int r = choose_outside(s, req, e);

	if (r < 0) {
		close_fd(stream);
		return r;
	}
	op->outside = r;

	s->op.client_pid = c ? c->pid : 0;
	fault_load(s->op.client_pid);
	op->what = req->snapshot ? OP_SNAPSHOT : OP_SUSPEND;
	if (req->snapshot && kin_volume(s->record->config))
		op->note = KIN_NOTE;
	op->began_ns = io_now_ns();
	op->hold = req->hold && !req->snapshot;
	op->was_paused = s->state == SESSION_PAUSED;
	op->zstd_level = req->zstd_level;
	op->with_files = req->with_files;
	r = placing_open(s, req, stream, e);
	op->hand_over = op->stream && op->what == OP_SUSPEND && !op->hold;
	if (r == 0 && req->live)
		r = choose_live(s, req, e);
	if (r == 0 && op->live)
		r = begin_ahead(s, req->deadline_ms, e);
	else if (r == 0)
		r = op->was_paused ? start_writing(s, e) : freeze(s, req->deadline_ms, e);
	if (r < 0) {
		s->state = op->was_paused ? SESSION_PAUSED : SESSION_RUNNING;
		session_end_operation(s);
		return r;
	}
	op->client = c;
	return 0;
}

/* The image is not wanted after all: who was paused stays so, and others run on. */
static void keep(struct session *s, struct client *c)
{
	bool paused = s->op.was_paused;

	session_end_operation(s);
	if (!paused) {
		tell_worker(s, PB__WORKER__BODY_THAW);
		s->op.what = OP_UNPAUSE;
		s->op.client = c;
		return;
	}
	tell_worker(s, PB__WORKER__BODY_UNBIND);
	s->state = SESSION_PAUSED;
	session_set_string(&s->record->peer, "");
	session_save(s, RECORD_PAUSED, false, NULL);
	if (c)
		control_send_done(c);
}

void session_abandoned(struct session *s)
{
	if (s->state == SESSION_HELD)
		keep(s, NULL);
	if (s->op.handing && handover_retract(s->op.image)) {
		struct err e = {0};

		err_set(&e, ERR_FAILED, -ECANCELED, "nobody waits for the end of the suspend");
		fail(s, &e);
	}
}

int session_decide(struct session *s, struct client *c, const Pb__Decision *d, struct err *e)
{
	if (s->op.client && s->op.client != c)
		return err_set(e, ERR_STATE, -EBUSY, "a migration of it is under way");
	if (s->op.what == OP_UNPAUSE)
		return err_set(e, ERR_STATE, -EALREADY, "it is being let run already");
	switch (d->what) {
	case PB__DECISION__WHAT__ABORT:
		keep(s, c);
		return 0;
	case PB__DECISION__WHAT__GIVE_AWAY:
		if (s->state != SESSION_HELD)
			return err_set(e, ERR_STATE, -EALREADY, "it was given away before");
		session_set_string(&s->record->peer, d->peer[0] ? d->peer : "?");
		s->op.client = c;
		tell_worker(s, PB__WORKER__BODY_BIND);
		return 0;
	default:
		s->op.client = c;
		if (!s->record->peer[0])
			session_set_string(&s->record->peer, "?");
		if (session_save(s, RECORD_MOVED, true, e) < 0)
			return e->error;
		commit(s);
		return 0;
	}
}

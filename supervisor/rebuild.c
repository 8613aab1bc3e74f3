// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A worker reads the image; the supervisor makes what the image asks for as it learns of it:
 *
 *      image      who is it, may it be resumed: name, ledger              a directory without a name
 *      unpacked   its files are there: world with pid 1
 *      seed, edge blank children, the supervisor's ends of stdio
 *      restored   everything is rebuilt and verified, nothing has run yet
 *                 -> the name is taken, the image claimed, then release: the worker confirms the claim
 *                    durably (ledger.h) and lets the tasks go
 *
 * The directory gets its name only at "restored": a failed resume leaves nothing behind, and a session
 * may be resumed from a pipe under its own name while the suspend that feeds the pipe still has it;
 * then that is told that the image is ours (handover.h), and the name is waited for.
 *
 * A `frozen` request stops at "restored" in state ARRIVED, durably recorded, and waits for a
 * decision, whatever happens to the client.
 */
#include "supervisor/periodic.h"
#include "supervisor/rebuild.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/arrival.h"
#include "supervisor/check.h"
#include "supervisor/client.h"
#include "supervisor/control.h"
#include "supervisor/disk/ledger.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/end.h"
#include "supervisor/filter/install.h"
#include "supervisor/filter/notify.h"
#include "supervisor/filter/notify_call.h"
#include "supervisor/identity.h"
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
#include "supervisor/placing.h"
#include "supervisor/relay.h"
#include "supervisor/rename.h"
#include "supervisor/rewrite/ipc/ipc.h"
#include "supervisor/rewrite/numbers.h"
#include "supervisor/screen/screen.h"
#include "supervisor/session.h"
#include "supervisor/worker/begin.h"
#include "supervisor/worker/worker.h"
#include "supervisor/world/init.h"
#include "supervisor/world/upper.h"

#define RETRY_MS      20
#define NAME_PATIENCE 60 /* seconds to wait for a name that is about to be free */

static const struct worker_ops worker_ops;

/* Nothing has run: all that was made goes, and the client learns why. */
static void fail(struct session *s, const struct err *e)
{
	bool lost_init = session_lost_init(s);
	bool named = s->runtime != NULL, keep = named && s->op.path && s->op.had_record;
	struct err own = *e; /* may be the operation's */

	log_warn("%s", own.msg);
	/* The name was taken, perhaps from the record of this very image. */
	if (!s->op.copy && s->record)
		ledger_give_back(s->paths.state, s->op.image_id, NULL);
	if (keep)
		rename_save_suspended(s, true);
	session_close(s, keep ? RECORD_SUSPENDED : RECORD_STATE_MAX);
	if (lost_init)
		init_say_end(&own, s->world.init_status);
	if (s->op.client)
		control_send_failure(s->op.client, &own, 0);
	session_end_operation(s);
}

static void send_worker(struct session *s, const Pb__Worker *m, const int *fds, size_t n_fds)
{
	struct err e = {0};

	/* One that has ended has said why, or its end will be told. */
	if (worker_send(s->worker, m, fds, n_fds, &e) < 0 && e.error != -EPIPE &&
		e.error != -ECONNRESET)
		fail(s, &e);
}

/* ---- image: who is it --------------------------------------------------------------------- */

static void write_log(struct session *s)
{
	const ProtobufCBinaryData *log = &s->op.world->log;

	if (log->len && io_write_file(s->dir_fd, "log", log->data, log->len, 0600) < 0)
		log_warn("what the session said before is lost");
}

static void on_image(struct session *s, const Pb__ImageInfo *info)
{
	struct session_operation *op = &s->op;
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Unpack unpack = PB__UNPACK__INIT;
	_cleanup_close_ int dir = -1;
	struct err e = {0};
	bool live, there = false;
	int r;

	r = identity_take(s, info, &e);
	if (r == 0)
		r = op->copy ? 0 : -(ledger_check(s->paths.state, op->image_id, &e) != 0);
	if (r == 0)
		r = op->resume->copy ? identity_check_clone(s->record->config, &e)
				     : kin_check(s, &e);
	if (r == 0 && !op->replace && rename_look(s, &live) == NAME_TAKEN)
		r = rename_taken(s, &e);
	if (r == 0)
		r = dir = arrival_directory(s, &there, &e);
	if (r >= 0)
		write_log(s);
	if (r >= 0)
		r = session_open_log(s, &e);
	if (r >= 0)
		r = fault_at(FAULT_RESUME_IMAGE, &e);
	if (r < 0) {
		fail(s, &e);
		return;
	}
	unpack.there = there;
	m.body_case = PB__WORKER__BODY_UNPACK;
	m.unpack = &unpack;
	send_worker(s, &m, &dir, 1);
}

/* ---- unpacked: the world ------------------------------------------------------------------ */

static void send_world(struct session *s)
{
	const Pb__Config *c = s->record->config;
	struct ckpt_world w = introduce_world(&s->world, c);
	int fds[3 + WORKER_N_NS] = {w.init_pidfd, w.root_fd, w.proc_fd}, *ns[WORKER_N_NS];
	Pb__RestoreWorld body = PB__RESTORE_WORLD__INIT;
	Pb__Worker m = PB__WORKER__INIT;
	size_t n = 3;

	worker_ns_slots(&w, ns);
	for (unsigned i = 0; i < WORKER_N_NS; i++) {
		if (*ns[i] < 0)
			continue;
		body.namespaces |= 1u << i;
		fds[n++] = *ns[i];
	}
	body.name = c->name;
	body.init_pid = w.init_pid;
	body.uid = w.uid;
	body.gid = w.gid;
	/* Under the name of the original it is in its place: there can be but one. */
	body.copy = s->op.copy && s->op.renamed;
	body.vnet = s->traffic.ops != NULL;
	body.vnet_lost = s->traffic.lost;
	m.body_case = PB__WORKER__BODY_WORLD;
	m.world = &body;
	send_worker(s, &m, fds, n);
}

/* The kernel's namespaces would have held its names, and are not to be had. */
static bool falls_back(struct session *s, struct err *e)
{
	bool refused = e->class == ERR_HOST || e->error == -EPERM || e->error == -EACCES;
	bool free = !s->op.resume->names[0] || strcmp(s->op.resume->names, "auto") == 0;
	bool can = !s->rewrite && !s->has_world && !mapped_info(s);
	const struct check *lacking = refused && free && can ? check_lacking_names() : NULL;

	if (!lacking)
		return false;
	s->lacking = lacking->name;
	s->rewrite = true;
	*e = (struct err){0};
	return true;
}

static void make_world(struct session *s);

static void on_world(struct session *s, struct err *e)
{
	const Pb__World *w = s->op.world;
	struct users_groups *groups;
	struct job *j;

	if (err_is(e) && falls_back(s, e)) {
		make_world(s);
		return;
	}
	session_set_string(&s->record->config->names, s->rewrite ? "rewrite" : "kernel");
	if (!err_is(e))
		network_check_host(s, e);
	if (!err_is(e))
		fault_at(FAULT_RESUME_WORLD, e);
	for (size_t i = 0; !err_is(e) && i < w->n_jobs; i++)
		job_revive(&j, s, w->jobs[i], e);
	groups = s->notify ? notify_groups(s->notify) : s->world.groups;
	if (!err_is(e) && groups)
		users_groups_restore(groups, w, e);
	if (err_is(e)) {
		err_blame_image(e);
		fail(s, e);
		return;
	}
	job_hold_all(s, true);
	/* Nothing of the session's runs before it is released. */
	if (s->notify)
		notify_set_trusting(s->notify, true);
	send_world(s);
}

/* The worker becomes the new world's rewriter. */
static int become(
	void *ctx, const struct world_config *c, const int fds[REWRITER_N_FDS], struct err *e)
{
	struct session *s = ctx;
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Become body = PB__BECOME__INIT;
	int r;

	body.config = s->record->config;
	body.files = s->files;
	body.monotonic_offset_ns = s->monotonic_offset_ns;
	body.boottime_offset_ns = s->boottime_offset_ns;
	m.body_case = PB__WORKER__BODY_BECOME;
	m.become = &body;
	/* what it says then is waited for */
	r = worker_send_all(s->worker, &m, fds, REWRITER_N_FDS, e);
	if (r == 0)
		worker_become_rewriter(s->worker);
	return r;
}

/* Where names are rewritten there are no layers over the host's files, and no other network. */
static int check_rewritten(const struct session *s, struct err *e)
{
	const Pb__Config *c = s->record->config;
	_cleanup_free_ char *changed = NULL;
	const char *what = NULL;

	if (upper_changed(s->dir_fd, "files", c->root, &changed) == 1)
		what = c->root[0] ? "a layer of its own over --root"
				  : "a layer of its own over the host's files";
	else if (c->net_said && strcmp(c->net, "none") == 0)
		what = "--net none (a loopback that nobody else has)";
	if (!what)
		return 0;
	err_set(e, ERR_HOST, -EOPNOTSUPP, "it has %s%s%s%s, which needs a namespace", what,
		changed ? " (" : "", changed ? changed : "", changed ? ")" : "");
	return err_hint(e, "podrun check says what this host lacks");
}

static void make_world(struct session *s)
{
	struct err e = {0};

	if (s->rewrite && check_rewritten(s, &e) < 0)
		fail(s, &e);
	else
		session_make_world(s, on_world);
}

static void on_unpacked(struct session *s, const Pb__Unpacked *unpacked)
{
	const Pb__World *w = s->op.world;
	struct err e = {0};

	s->monotonic_offset_ns = w->monotonic_ns - session_monotonic_ns(s);
	s->boottime_offset_ns = w->boottime_ns - session_boottime_ns(s);
	s->rewrite = strcmp(s->op.resume->names, "rewrite") == 0;
	s->host->pid = worker_pid(s->worker);
	if (fault_at(FAULT_RESUME_UNPACKED, &e) < 0)
		fail(s, &e);
	else if (!arrival_keep(s, unpacked->changed, on_world))
		make_world(s);
}

static void on_seed(struct session *s, const Pb__Seed *seed)
{
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Seed answer = PB__SEED__INIT;
	Pb__Failure failure;
	struct err e = {0};
	pid_t pid = 0;

	if (!s->has_world)
		return;
	if (world_seed(&s->world, seed->vpid, &pid, &e) < 0) {
		err_blame_image(&e);
		message_of_err(&failure, &e);
		answer.failure = &failure;
	}
	answer.vpid = seed->vpid;
	answer.pid = pid;
	m.body_case = PB__WORKER__BODY_SEEDED;
	m.seeded = &answer;
	send_worker(s, &m, NULL, 0);
}

static void on_edge(struct session *s, const Pb__Edge *edge, int *fds, size_t n_fds)
{
	struct err e = {0};

	if (n_fds == 1 && job_adopt(s, edge->name, take_fd(&fds[0]), &e) < 0)
		fail(s, &e);
}

/* What tasks have for filters, the supervisor must know. */
static void on_filters(struct session *s, const int *fds, size_t n_fds)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct err e = {0};
	int r = n_fds == 1 && s->notify ? 0 : -EBADMSG;
	ssize_t n;

	while (r == 0) {
		void *room = buf_reserve(&b, 1 << 20);

		n = room ? pread(fds[0], room, 1 << 20, (off_t)b.len) : -1;
		if (n <= 0)
			break;
		b.len += (size_t)n;
	}
	if (r < 0)
		err_errno(&e, r, "filters");
	else
		r = ckpt_filters_load(
			installs_table(notify_installs(s->notify)), b.data, b.len, &e);
	if (r < 0)
		fail(s, &e);
}

/* ---- restored: name, ledger, release ------------------------------------------------------ */

static void send_started(struct session *s, struct client *c, bool frozen)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Started started = PB__STARTED__INIT;
	struct job *j = job_find(s, 0);
	_cleanup_free_ char *note = identity_note(s);

	started.name = s->record->config->name;
	started.frozen = frozen;
	started.report = s->op.report;
	started.lacking = (char *)(s->lacking ? s->lacking : "");
	started.note = note ? note : started.note;
	started.root = s->lacking ? s->record->config->root : (char *)"";
	if (j) {
		started.vpid = j->vpid;
		started.tty = j->tty;
	}
	m.body_case = PB__CONTROL__BODY_STARTED;
	m.started = &started;
	control_send(c, &m);
}

/* What the session's commands had not read yet is theirs; then stdin ends unless somebody feeds it. */
static void revive_input(struct session *s)
{
	const Pb__World *w = s->op.world;

	for (size_t i = 0; i < w->n_jobs; i++) {
		struct job *j = job_find(s, w->jobs[i]->number);
		bool fed = j && j->number == 0 &&
			   (s->record->config->keep_stdin || (j->primary && s->op.resume->input));

		if (!j)
			continue;
		relay_put(j->relay, w->jobs[i]->input.data, w->jobs[i]->input.len);
		if (!j->tty && (w->jobs[i]->input_ended || !fed))
			relay_end_input(j->relay);
	}
}

static void on_released(struct session *s)
{
	struct session_operation *op = &s->op;
	struct job *j = job_find(s, 0);
	struct client *c = op->client;

	fault_at(FAULT_RESUME_RELEASED, NULL);
	/* The next operation may come with one of its own; what this one has read takes the kernel
	 * some time to give back, and nobody is to wait for that. */
	worker_free(take_ptr(s->leaving));
	worker_leave(&s->leaving, take_ptr(s->worker));
	traffic_pass(s);
	if (s->unused)
		world_abandon(s->unused);
	s->state = SESSION_RUNNING;
	network_tell(s);
	mapped_begin(s);
	session_save(s, RECORD_RUNNING, false, NULL);
	rename_forget(s);
	periodic_begin(s);
	if (op->report)
		op->report->total_ns = io_now_ns() - op->began_ns;
	if (c && op->resume->attach && j && !j->exited) {
		c->job = j;
		j->primary = c;
	}
	revive_input(s);
	job_hold_all(s, false);
	screen_resume(s);
	if (c)
		send_started(s, c, false);
	if (c && j && c->job == j)
		job_show(j, c, op->resume->rows, op->resume->cols);
	if (c && op->resume->attach && j && j->exited)
		job_tell_end(c, j->status, session_left(s));
	if (op->discard && op->path)
		unlink(op->path);
	session_end_operation(s);
	control_take_up(s);
	session_tell_early(s);
	/* Under kernel names all has gone with it. */
	if (s->init_gone && s->state != SESSION_CLOSING)
		session_close(s, RECORD_ENDED);
}

/* Behind this the session is nowhere but here: whoever wrote the stream ends what he has. */
static void take(struct session *s)
{
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;

	if (s->op.taken)
		return;
	s->op.taken = true;
	m.body_case = PB__WORKER__BODY_TAKE;
	m.take = &empty;
	send_worker(s, &m, NULL, 0);
}

static void release(struct session *s)
{
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Release go = PB__RELEASE__INIT;
	struct err e = {0};
	int r = mapped_check(s, &e);

	if (r < 0) {
		fail(s, &e);
		return;
	}
	if (fault_at(FAULT_RESUME_CONSUMED, &e) < 0) {
		fail(s, &e);
		return;
	}
	take(s);
	mapped_guard(s);
	if (s->notify)
		notify_set_trusting(s->notify, false);
	s->op.released = on_released;
	m.body_case = PB__WORKER__BODY_RELEASE;
	go.claimed = !s->op.copy;
	m.release = &go;
	send_worker(s, &m, NULL, 0);
}

static void on_retry(evutil_socket_t fd, short what, void *ctx);

static void try_again(struct session *s)
{
	const struct timeval soon = {.tv_usec = RETRY_MS * 1000};

	if (!s->retry)
		s->retry = event_new(s->loop, -1, 0, on_retry, s);
	if (s->retry)
		event_add(s->retry, &soon);
}

/* The name is free: it becomes ours. */
static void settle(struct session *s)
{
	struct err e = {0};
	int r = 0;

	/* Before the name, which may be that of another who is resumed from this image. */
	if (!s->op.copy)
		r = ledger_claim(s->paths.state, s->op.image_id, s->record->config->name, &e);
	if (r == 0)
		r = rename_take(s, &e);
	if (r == -EAGAIN && io_now_ns() < s->retry_until_ns) {
		if (!s->op.copy)
			ledger_give_back(s->paths.state, s->op.image_id, NULL);
		try_again(s);
		return;
	}
	if (r == 0)
		r = fault_at(FAULT_RESUME_NAMED, &e);
	if (r == 0)
		r = control_listen(s, &e);
	if (r == 0)
		r = fault_at(FAULT_RESUME_LISTENING, &e);
	if (r < 0) {
		fail(s, &e);
		return;
	}
	if (!s->op.resume->frozen) {
		release(s);
		return;
	}
	mapped_wait(s);
	r = session_save(s, RECORD_ARRIVED, true, &e);
	if (r < 0) {
		fail(s, &e);
		return;
	}
	s->state = SESSION_ARRIVED;
	if (s->op.client)
		send_started(s, s->op.client, true);
	s->op.client = NULL; /* its going away decides nothing */
}

static void try_name(struct session *s);

static void on_retry(evutil_socket_t fd, short what, void *ctx)
{
	try_name(ctx);
}

static void try_name(struct session *s)
{
	const char *name = s->record->config->name;
	struct err e = {0};
	bool live;
	enum name_use use = rename_look(s, &live);

	/* Who has the name may be of this very image: another was faster. */
	if (!s->op.copy && ledger_check(s->paths.state, s->op.image_id, &e) != 0) {
		fail(s, &e);
		return;
	}
	if (use != NAME_FREE && s->op.replace) {
		if (live)
			client_ask_kill(&s->paths, name);
		use = live || use == NAME_WAIT ? NAME_WAIT : NAME_FREE;
	}
	if (use == NAME_FREE) {
		settle(s);
		return;
	}
	/* One that is being migrated would be waited for by the very migration that waits for us. */
	if (use == NAME_WAIT && live && s->op.resume->frozen)
		use = NAME_TAKEN;
	/* The writer of our stream has the name until he knows that the image is ours. */
	if (use == NAME_WAIT && live && s->op.stream)
		take(s);
	if (s->op.taken || (use == NAME_WAIT && io_now_ns() < s->retry_until_ns)) {
		try_again(s);
		return;
	}
	rename_taken(s, &e);
	fail(s, &e);
}

/* What was read is what is known to be whole, now if not before. */
static int check_image(struct session *s, struct err *e)
{
	bool live;

	/* Another who resumes it, at the same time, has had it first. */
	if (s->op.known && !ledger_knows_file(s->paths.state, s->op.image))
		return !s->op.replace && rename_look(s, &live) != NAME_FREE
			       ? rename_taken(s, e)
			       : err_set(e, ERR_STATE, -EBUSY, "the image was changed while it was read");
	if (!s->op.known && mapped_image_is_whole(s))
		ledger_know_file(s->paths.state, s->op.image);
	return 0;
}

static void on_restored(struct session *s, const Pb__Report *report)
{
	struct err e = {0};

	s->op.report = (Pb__Report *)message_copy(&report->base);
	/* Who is not there any more has been told of. */
	session_hear_exits(s);
	/* Only who traces it knows how, and is about to say so. */
	if (s->init_gone && s->world.rewriter)
		return;
	if (s->init_gone)
		err_set(&e, ERR_FAILED, -ECHILD, "the session's pid 1 was killed");
	if (err_is(&e) || check_image(s, &e) < 0 || job_check_all(s, &e) < 0) {
		fail(s, &e);
		return;
	}
	s->retry_until_ns = io_now_ns() + NAME_PATIENCE * 1000000000ull;
	if (fault_at(FAULT_RESUME_RESTORED, &e) < 0)
		fail(s, &e);
	else
		try_name(s);
}

/* ---- the worker --------------------------------------------------------------------------- */

static void on_message(void *ctx, Pb__Worker *m, int *fds, size_t n_fds)
{
	struct session *s = ctx;
	struct err e = {0};

	if (s->state == SESSION_CLOSING)
		return;
	switch (m->body_case) {
	case PB__WORKER__BODY_IMAGE:
		on_image(s, m->image);
		break;
	case PB__WORKER__BODY_UNPACKED:
		on_unpacked(s, m->unpacked);
		break;
	case PB__WORKER__BODY_SEED:
		on_seed(s, m->seed);
		break;
	case PB__WORKER__BODY_EDGE:
		on_edge(s, m->edge, fds, n_fds);
		break;
	case PB__WORKER__BODY_FILTERS:
		on_filters(s, fds, n_fds);
		break;
	case PB__WORKER__BODY_WATCH:
		mapped_watch(s, m->watch, n_fds == 1 ? take_fd(&fds[0]) : -1);
		break;
	case PB__WORKER__BODY_PIECES:
		mapped_pieces(s, m->pieces);
		break;
	case PB__WORKER__BODY_RESTORED:
		on_restored(s, m->restored);
		break;
	case PB__WORKER__BODY_RELEASED:
		if (s->op.released)
			on_released(s);
		break;
	case PB__WORKER__BODY_FAILURE:
		message_to_err(m->failure, &e);
		fail(s, &e);
		break;
	default:
		traffic_message(s, m);
		break;
	}
}

static void on_gone(void *ctx, int status)
{
	struct session *s = ctx;
	struct err e = {0};

	if (s->state == SESSION_CLOSING)
		return;
	if (s->op.released && s->op.going && *s->op.going) {
		/* It died while letting the tasks go: the kernel has done the rest. */
		on_released(s);
		return;
	}
	if (s->killed)
		err_set(&e, ERR_STATE, -ECANCELED, "the session was killed");
	else
		worker_say_end(&e, status, s->world.rewriter);
	fail(s, &e);
}

static const struct worker_ops worker_ops = {on_message, on_gone};

/* What can be done before the image comes has been. */
static void tell_begun(struct client *c)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Progress nothing = PB__PROGRESS__INIT;

	m.body_case = PB__CONTROL__BODY_PROGRESS;
	m.progress = &nothing;
	control_send(c, &m);
}

int session_resume(
	struct session *s, struct client *c, const Pb__ResumeRequest *req, int image, struct err *e)
{
	struct session_operation *op = &s->op;
	_cleanup_close_ int dir = -1;
	struct worker_restore what = {.image = image,
		.dir = -1,
		.config_dir = s->paths.config,
		.state_dir = s->paths.state,
		.supervisor = getpid()};
	struct rewriter_tables tables;
	int r;

	fault_load(c->pid);
	op->what = OP_RESUME;
	op->began_ns = io_now_ns();
	op->image = image;
	op->stream = lseek(image, 0, SEEK_CUR) < 0;
	op->discard = req->discard;
	op->replace = req->replace;
	op->resume = (Pb__ResumeRequest *)message_copy(&req->base);
	if (!op->resume || (req->image[0] && !(op->path = strdup(req->image))))
		return err_errno(e, -ENOMEM, "resume");
	if (req->trust.len == PROTO_KEY_LEN)
		what.also_trust = req->trust.data;
	op->going = mmap(NULL, sizeof(*op->going), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (op->going == MAP_FAILED) {
		op->going = NULL;
		return err_errno(e, -ENOMEM, "resume");
	}
	what.going = op->going;
	s->host = calloc(1, sizeof(*s->host));
	if (!s->host || !(s->host->groups = users_groups_new()))
		return err_errno(e, -ENOMEM, "resume");
	if (numbers_create(&s->host->numbers, e) < 0 || ipc_create(&s->host->ipc, e) < 0)
		return e->error;
	tables = (struct rewriter_tables){
		s->host->numbers, ipc_table(s->host->ipc), s->host->groups};
	s->host->become = become;
	s->host->ctx = s;
	what.paths = &s->paths;
	what.tables = &tables;
	what.stream = op->stream;
	s->state = SESSION_REBUILDING;
	arrival_prepare(s, req->foretold.data, req->foretold.len);
	/* The lease first: what is known then is what will be read, and mapped. */
	if (!op->stream && mapped_lease(s, image))
		op->known = what.skip_digests = ledger_knows_file(s->paths.state, image);
	if (op->known && !req->frozen && (req->map || getenv("PODRUN_MAP_RUN")))
		what.map = mapped_options(s);
	else if (op->stream)
		what.map = mapped_arrivals(s);
	if (op->path)
		what.dir = dir = placing_parent(op->path, O_RDONLY | O_DIRECTORY);
	r = worker_start_restore(&s->worker, s->loop, &what, &worker_ops, s, e);
	if (r < 0)
		return r;
	op->client = c;
	if (req->tell)
		tell_begun(c);
	return 0;
}

bool session_resume_cancel(struct session *s, int number)
{
	struct session_operation *op = &s->op;
	struct client *c = op->client;
	struct err e = {0};

	if (op->released || op->taken || op->resume->frozen)
		return false;
	op->client = NULL; /* it is no failure */
	err_set(&e, ERR_STATE, -ECANCELED, "signal %d has given it up", number);
	fail(s, &e);
	job_tell_end(c, number, 0);
	return true;
}

int session_resume_decide(struct session *s, struct client *c, const Pb__Decision *d, struct err *e)
{
	if (d->what == PB__DECISION__WHAT__GIVE_AWAY)
		return err_set(
			e, ERR_STATE, -EINVAL, "it arrived here, it is not to be given away");
	if (s->op.released)
		return err_set(e, ERR_STATE, -EALREADY, "it is being let run already");
	if (d->what == PB__DECISION__WHAT__ABORT) {
		control_send_done(c);
		session_close(s, RECORD_STATE_MAX);
		session_end_operation(s);
		return 0;
	}
	s->op.client = c;
	release(s);
	return 0;
}

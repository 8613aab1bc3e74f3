// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Requests are rows of a table, with the states of the session in which they may be asked.  A
 * handler that fails says why in @e, and that is the client's answer; one that succeeds has
 * answered, or has begun what will.
 */
#include "supervisor/requests.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/control.pb-c.h"
#include "supervisor/control.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/end.h"
#include "supervisor/freeze.h"
#include "supervisor/job.h"
#include "supervisor/launch.h"
#include "supervisor/mapped.h"
#include "supervisor/network/network.h"
#include "supervisor/procs.h"
#include "supervisor/rebuild.h"
#include "supervisor/relay.h"
#include "supervisor/rewrite/orders.h"
#include "supervisor/screen/screen.h"
#include "supervisor/session.h"

/* ---- input for jobs ----------------------------------------------------------------------- */

static int do_input(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	if (!c->job)
		return 0;
	buf_put(&c->input, m->input->data.data, m->input->data.len);
	c->input_end |= m->input->end;
	if (c->input.failed)
		return err_errno(e, -ENOMEM, "input");
	event_del(c->readable); /* control_feed goes on once all of it is taken */
	control_feed(c);
	return 0;
}

static int do_close_output(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	if (c->job && c->job->primary == c)
		relay_close_output(c->job->relay, (enum relay_stream)m->close_output->stream);
	return 0;
}

static int do_resize(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	if (c->job)
		relay_resize(c->job->relay, (uint16_t)m->resize->rows,
			(uint16_t)m->resize->cols, NULL);
	return 0;
}

/* ---- requests ---------------------------------------------------------------------------- */

static int do_run(struct session *s, struct client *c, const Pb__Control *m, int *fds, size_t n_fds,
	struct err *e)
{
	if (s->record)
		return err_set(e, ERR_STATE, -EBUSY, "a session is starting already");
	session_start(s, c, m->run);
	return 0;
}

static int do_resume(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	struct err failure = {0};

	if (s->record)
		return err_set(e, ERR_STATE, -EBUSY, "a session is starting already");
	if (n_fds != 1 + (m->resume->line[0] != 0))
		return err_set(e, ERR_USAGE, -EINVAL, "no image");
	s->op.line = n_fds > 1 ? take_fd(&fds[1]) : -1;
	if (session_resume(s, c, m->resume, take_fd(&fds[0]), &failure) < 0)
		session_give_up(s, c, &failure);
	return 0;
}

static void send_started(struct client *c, const struct job *j)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Started started = PB__STARTED__INIT;

	started.name = c->session->record->config->name;
	started.job = j->number;
	started.vpid = j->vpid;
	started.tty = j->tty;
	m.body_case = PB__CONTROL__BODY_STARTED;
	m.started = &started;
	control_send(c, &m);
}

/* The session's environment with @over on top: pointers into both; caller frees the array. */
static char **merge_env(const Pb__Config *config, char *const *over, size_t n_over)
{
	char **env = calloc(config->n_env + n_over + 1, sizeof(*env));
	size_t n = 0;

	for (size_t i = 0; env && i < config->n_env; i++) {
		size_t key = strcspn(config->env[i], "=") + 1;
		bool hidden = false;

		for (size_t k = 0; k < n_over; k++)
			hidden |= strncmp(config->env[i], over[k], key) == 0;
		if (!hidden)
			env[n++] = config->env[i];
	}
	for (size_t k = 0; env && k < n_over; k++)
		env[n++] = over[k];
	return env;
}

static int do_exec(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	const Pb__ExecRequest *x = m->exec;
	const Pb__Config *config = s->record->config;
	_cleanup_free_ char **env = merge_env(config, x->env, x->n_env);
	_cleanup_free_ char **argv = calloc(x->n_argv + 1, sizeof(*argv));
	struct job_spec spec = {.argv = argv,
		.envp = env,
		.cwd = x->cwd[0] ? x->cwd : config->cwd,
		.tty = x->tty,
		.input = x->input,
		.rows = (uint16_t)x->rows,
		.cols = (uint16_t)x->cols};
	struct job *j;
	int r;

	if (!env || !argv)
		return err_errno(e, -ENOMEM, "exec");
	if (!x->n_argv)
		return err_set(e, ERR_USAGE, -EINVAL, "no command");
	memcpy(argv, x->argv, x->n_argv * sizeof(*argv));
	r = job_start(&j, s, &spec, e);
	if (r < 0) {
		control_send_failure(c, e, job_exit_code(e));
		*e = (struct err){0};
		return 0;
	}
	s->op.over = false;
	if (!x->detach) {
		c->job = j;
		j->primary = c;
	}
	send_started(c, j);
	return 0;
}

static int do_attach(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	struct job *j = job_find(s, 0);

	if (!j || j->exited)
		return err_set(e, ERR_STATE, -ESRCH, "the command of '%s' has ended",
			s->record->config->name);
	c->job = j;
	send_started(c, j);
	job_show(j, c, m->attach->rows, m->attach->cols);
	return 0;
}

static int do_info(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	Pb__Control reply = PB__CONTROL__INIT;
	Pb__Info info = PB__INFO__INIT;
	Pb__Job jobs[64], *job_list[64];
	struct procs procs = {0};

	if (s->has_world && procs_list(&s->world, session_copier(s), &procs, e) < 0)
		return e->error;
	info.record = s->record;
	info.state = (char *)session_state_name(s->state);
	info.processes = procs.all;
	info.n_processes = procs.n;
	info.init_pid = s->has_world ? s->world.init_pid : 0;
	info.jobs = job_list;
	for (struct job *j = s->jobs; j && info.n_jobs < ARRAY_SIZE(jobs); j = j->next) {
		job_describe(j, &jobs[info.n_jobs]);
		jobs[info.n_jobs].input.len = 0;
		job_list[info.n_jobs] = &jobs[info.n_jobs];
		info.n_jobs++;
	}
	for (struct client *other = s->clients; other; other = other->next)
		info.clients += other->job != NULL;
	reply.body_case = PB__CONTROL__BODY_INFORMATION;
	reply.information = &info;
	control_send(c, &reply);
	procs_fini(&procs);
	return 0;
}

/* It may run elsewhere, so that it is a person's to say whether it ends here. */
static bool is_undecided(const struct session *s)
{
	return s->state == SESSION_IN_DOUBT || s->state == SESSION_ARRIVED;
}

static int not_now(const struct session *s, struct err *e)
{
	const char *name = s->record && s->record->config ? s->record->config->name : "";

	if (!is_undecided(s))
		return err_set(e, ERR_STATE, -EBUSY, "the session is %s", session_state_name(s->state));
	if (s->op.client)
		return err_set(e, ERR_STATE, -EBUSY, "a migration of it is under way");
	if (s->state == SESSION_IN_DOUBT) {
		err_set(e, ERR_STATE, -EBUSY, "its move to %s is in doubt", s->record->peer);
		return err_hint(e,
			"if it runs there: podrun migrate --finish %s; if not: --abort it there, then here", name);
	}
	err_set(e, ERR_STATE, -EBUSY, "it arrived, frozen, and nobody said that it may run");
	return err_hint(e,
		"if it runs where it came from: podrun migrate --abort %s; if it is in doubt "
		"there, --finish it there first, then here", name);
}

/*
 * Whoever waits for a session gives it up before it is there; if it is too late for that, the
 * signal is the command's.
 */
static int cancel(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	int number = m->signal->signal;

	if (!m->signal->job || s->op.client != c || number <= 0 || number > SIGRTMAX)
		return err_set(e, ERR_STATE, -EBUSY, "the session is %s",
			session_state_name(s->state));
	if (s->state == SESSION_REBUILDING)
		return session_resume_cancel(s, number) ? 0 : control_defer(c, m, fds, n_fds, e);
	s->op.client = NULL; /* it is told as whoever waits */
	s->record->status = number;
	c->waiting = true;
	session_close(s, RECORD_ENDED);
	return 0;
}

static int do_signal(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	int number = m->signal->signal;
	struct job *j = m->signal->job ? c->job : job_find(s, 0);
	pid_t vpid = m->signal->vpid;
	bool group = false;
	int r;

	if (s->state == SESSION_STARTING || s->state == SESSION_REBUILDING)
		return cancel(s, c, m, fds, n_fds, e);
	if (is_undecided(s) && !m->signal->job)
		return not_now(s, e);
	if (number < 0 || number > SIGRTMAX)
		return err_set(e, ERR_USAGE, -EINVAL, "no signal %d", number);
	if (vpid == 1)
		return err_set(e, ERR_STATE, -EPERM, "pid 1 is the session itself");
	if (!vpid) {
		if (!j || j->exited)
			return err_set(e, ERR_STATE, -ESRCH, "the command of '%s' has ended",
				s->record->config->name);
		vpid = j->vpid;
		/* What a terminal would send goes to all that a terminal would send it to. */
		group = m->signal->job &&
			(number == SIGINT || number == SIGQUIT || number == SIGHUP);
	}
	r = procs_signal(&s->world, vpid, group, number, e);
	if (r == 0 && !m->signal->job)
		control_send_done(c);
	return m->signal->job ? 0 : r;
}

static int do_pause(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	return session_pause(s, c, e);
}

static int do_unpause(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	return session_unpause(s, c, e);
}

static int do_wait(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	struct job *j = job_find(s, 0);

	c->waiting = true;
	if (j && j->exited)
		job_tell_end(c, j->status, 0);
	return 0;
}

static int do_suspend(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	const Pb__SuspendRequest *req = m->suspend;

	if (req->stream != (n_fds == 1))
		return err_set(e, ERR_USAGE, -EINVAL, "no place for the image");
	if (req->path[0] && c->uid != geteuid())
		return err_set(e, ERR_USAGE, -EPERM, "only the owner names a file; use -o -");
	return session_suspend(s, c, req, req->stream ? take_fd(&fds[0]) : -1, e);
}

/* The rewriter must not wait for who reads them: a file takes all. */
static int do_stacks(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	struct stat st;
	int r;

	if (c->uid != geteuid())
		return err_set(e, ERR_USAGE, -EPERM, "only the owner sees its stacks");
	if (!n_fds) { /* it runs */
		control_send_done(c);
		return 0;
	}
	if (!s->world.rewriter || n_fds != 2 || fstat(fds[0], &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_FAILED, -EINVAL, "nobody can tell the stacks");
	r = orders_send_stacks(s->world.rewriter_orders, m->stacks->json, fds, e);
	if (r == 0)
		control_send_done(c);
	return r;
}

/* Both of its directories, or none. */
static int move_directories(struct session *s, const char *dir, const char *runtime, struct err *e)
{
	int error;

	if (rename(s->dir, dir) < 0)
		return err_errno(e, -errno, "%s", dir);
	if (rename(s->runtime, runtime) == 0)
		return 0;
	error = -errno;
	if (rename(dir, s->dir) < 0)
		log_error("cannot rename %s back", dir);
	return err_errno(e, error, "%s", runtime);
}

/* The record says it first: where that cannot be written the session keeps its name. */
static int save_name(struct session *s, const char *name, struct err *e)
{
	int r = session_set_string(&s->record->config->name, name);

	return r < 0 ? err_errno(e, r, "rename")
		     : session_save(s, record_state_of(s->record->state), false, e);
}

static int do_rename(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	_cleanup_free_ char *dir = NULL, *runtime = NULL, *before = NULL;
	_cleanup_close_ int lock = -1;
	int r;

	if (paths_check_name(m->rename->name, e) < 0)
		return e->error;
	dir = paths_session(&s->paths, m->rename->name, NULL);
	runtime = paths_runtime(&s->paths, m->rename->name, NULL);
	before = strdup(s->record->config->name);
	if (!dir || !runtime || !before)
		return err_errno(e, -ENOMEM, "rename");
	lock = tenure_lock(&s->paths, e);
	if (lock < 0)
		return lock;
	if (access(dir, F_OK) == 0) {
		err_set(e, ERR_STATE, -EEXIST, "the name '%s' is in use", m->rename->name);
		return err_hint(e, "podrun ps -a shows by what; podrun rm %s removes what ended",
			m->rename->name);
	}
	r = save_name(s, m->rename->name, e);
	if (r >= 0)
		r = move_directories(s, dir, runtime, e);
	if (r < 0) {
		save_name(s, before, NULL);
		return r;
	}
	free(s->dir);
	free(s->runtime);
	s->dir = take_ptr(dir);
	s->runtime = take_ptr(runtime);
	control_renamed(s);
	network_renamed(s);
	screen_renamed(s);
	control_send_done(c);
	return 0;
}

static int do_kill(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	if (is_undecided(s) && !m->kill->force)
		return not_now(s, e);
	c->waiting = true; /* the exit is the answer */
	if (s->state == SESSION_STARTING)
		session_close(s, RECORD_ENDED);
	else
		session_kill(s);
	return 0;
}

static int do_decision(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	if (s->state == SESSION_ARRIVED)
		return session_resume_decide(s, c, m->decision, e);
	return session_decide(s, c, m->decision, e);
}

#define IN(state) (1u << SESSION_##state)
#define ALIVE                                                                                      \
	(IN(RUNNING) | IN(FREEZING) | IN(PAUSED) | IN(WRITING) | IN(COPYING) | IN(AHEAD) |         \
		IN(HELD) | IN(IN_DOUBT) | IN(ARRIVED))

/* What may be asked, in which states. */
static const struct request {
	Pb__Control__BodyCase what;
	unsigned states;
	int (*handle)(struct session *s, struct client *c, const Pb__Control *m, int *fds,
		size_t n_fds, struct err *e);
	bool freezes; /* waits until no memory is mapped from an image (mapped.h) */
	bool settled; /* as what freezes does, waits for a snapshot that nobody has asked for */
} requests[] = {
	{PB__CONTROL__BODY_RUN, IN(STARTING), do_run},
	{PB__CONTROL__BODY_RESUME, IN(STARTING), do_resume},
	{PB__CONTROL__BODY_EXEC, IN(RUNNING) | IN(COPYING), do_exec},
	{PB__CONTROL__BODY_ATTACH, ALIVE, do_attach},
	{PB__CONTROL__BODY_INFO, ~0u, do_info},
	{PB__CONTROL__BODY_SIGNAL, ALIVE | IN(STARTING) | IN(REBUILDING), do_signal},
	{PB__CONTROL__BODY_PAUSE, IN(RUNNING), do_pause, true},
	{PB__CONTROL__BODY_UNPAUSE, IN(PAUSED), do_unpause},
	{PB__CONTROL__BODY_WAIT, ALIVE | IN(STARTING) | IN(REBUILDING), do_wait},
	{PB__CONTROL__BODY_SUSPEND, IN(RUNNING) | IN(PAUSED), do_suspend, true},
	{PB__CONTROL__BODY_STACKS, IN(RUNNING), do_stacks, .settled = true},
	{PB__CONTROL__BODY_RENAME, IN(RUNNING) | IN(PAUSED), do_rename, .settled = true},
	{PB__CONTROL__BODY_KILL, ALIVE | IN(STARTING), do_kill},
	{PB__CONTROL__BODY_DECISION, IN(HELD) | IN(IN_DOUBT) | IN(ARRIVED), do_decision},
	{PB__CONTROL__BODY_INPUT, ~0u, do_input},
	{PB__CONTROL__BODY_RESIZE, ~0u, do_resize},
	{PB__CONTROL__BODY_CLOSE_OUTPUT, ~0u, do_close_output},
};

/* A snapshot stops the session for a moment only: who wants it to run waits. */
static bool runs_soon(const struct session *s)
{
	return s->op.what == OP_SNAPSHOT && !s->op.was_paused &&
		(s->state == SESSION_FREEZING || s->state == SESSION_WRITING);
}

/* A snapshot that nobody has asked for just now is in nobody's way: who wants to freeze the
 * session, or to have it run, waits for it. */
static bool is_unasked(const struct session *s)
{
	return s->op.what == OP_SNAPSHOT && !s->op.client && !s->op.over &&
	       (s->state == SESSION_FREEZING || s->state == SESSION_WRITING ||
		       s->state == SESSION_COPYING);
}

static void handle(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds)
{
	const struct request *q = NULL;
	struct err e = {0};

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		if (requests[i].what == m->body_case)
			q = &requests[i];
	if (!q) {
		err_set(&e, ERR_FAILED, -EPROTO, "this supervisor does not know the request");
		err_hint(&e, "it may be of another version of podrun");
	} else if (q->what == PB__CONTROL__BODY_EXEC && runs_soon(s)) {
		control_defer(c, m, fds, n_fds, &e);
	} else if ((q->freezes || q->settled) && is_unasked(s)) {
		control_defer(c, m, fds, n_fds, &e);
	} else if (!(q->states & 1u << s->state)) {
		not_now(s, &e);
	} else if (q->freezes && mapped_hurry(s, &e) > 0) {
		control_defer(c, m, fds, n_fds, &e);
	} else if (err_is(&e)) {
		log_warn("%s", e.msg);
	} else {
		q->handle(s, c, m, fds, n_fds, &e);
	}
	if (err_is(&e) && !c->leaving)
		control_send_failure(c, &e, 0);
}

static void abandoned(struct session *s)
{
	if (s->state == SESSION_STARTING)
		session_close(s, RECORD_ENDED);
	else
		session_abandoned(s);
}

/* One that nobody has asked for just now. */
static int snapshot(struct session *s, char *path, struct err *e)
{
	Pb__SuspendRequest q = PB__SUSPEND_REQUEST__INIT;

	q.snapshot = true;
	q.path = path;
	return session_suspend(s, NULL, &q, -1, e);
}

const struct control_ops requests_ops = {handle, abandoned, snapshot};

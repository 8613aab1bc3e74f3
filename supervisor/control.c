// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Each client is one connection with one request under way; requests are rows of a table.  What
 * a handler can't answer at once is answered later by whoever finishes it (freeze.c, rebuild.c,
 * job.c).  A client that sends nonsense or goes away is forgotten; nothing it started ends with
 * it, except what was waiting for its decision (session_abandoned).
 *
 * Who may connect: the owner, root, and the users of --allow, by SO_PEERCRED.  Those can't reach the
 * owner's runtime directory, so sessions with --allow listen at an abstract address as well:
 * @podrun/UID/NAME, where clients check in turn that the owner is who listens.
 */
#include "supervisor/control.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/job.h"
#include "supervisor/message.h"
#include "supervisor/procs.h"
#include "supervisor/relay.h"
#include "supervisor/session.h"

#define MAX_CLIENTS 64

/* ---- sending ----------------------------------------------------------------------------- */

/* The connection is of no use any more; it is freed from its own event. */
static void give_up(struct client *c)
{
	shutdown(proto_conn_fd(c->conn), SHUT_RDWR);
	c->stuffed = false;
	event_add(c->readable, NULL);
}

void control_send(struct client *c, const Pb__Control *m)
{
	struct err e = {0};
	int r = message_send(c->conn, m, NULL, 0, &e);

	if (r < 0) {
		give_up(c);
		return;
	}
	if (r == 1 && !c->stuffed) {
		c->stuffed = true;
		event_add(c->writable, NULL);
		if (c->job && c->job->primary == c)
			relay_poke(c->job->relay);
	}
}

void control_send_done(struct client *c)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;

	m.body_case = PB__CONTROL__BODY_DONE;
	m.done = &empty;
	control_send(c, &m);
}

void control_send_failure(struct client *c, const struct err *e, int exit_code)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Failure f;

	message_of_err(&f, e);
	f.exit_code = (uint32_t)exit_code;
	m.body_case = PB__CONTROL__BODY_FAILURE;
	m.failure = &f;
	control_send(c, &m);
}

void control_send_output(struct client *c, unsigned stream, const void *data, size_t n)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Data d = PB__DATA__INIT;

	d.stream = stream;
	d.data.data = (uint8_t *)data;
	d.data.len = n;
	m.body_case = PB__CONTROL__BODY_OUTPUT;
	m.output = &d;
	control_send(c, &m);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx)
{
	struct client *c = ctx;
	struct session *s = c->session;
	struct err e = {0};
	int r = proto_conn_flush(c->conn, &e);

	if (r > 0)
		return;
	event_del(c->writable);
	c->stuffed = false;
	if (r < 0) {
		give_up(c);
		return;
	}
	if (c->job && c->job->primary == c)
		relay_poke(c->job->relay);
	session_maybe_exit(s);
}

/* ---- input for jobs ---------------------------------------------------------------------- */

void control_feed(struct client *c)
{
	size_t taken;

	if (!c->job)
		return;
	taken = relay_put(c->job->relay, c->input.data, c->input.len);
	buf_consume(&c->input, taken);
	if (c->input.len)
		return;
	if (c->input_end)
		relay_end_input(c->job->relay);
	c->input_end = false;
	event_add(c->readable, NULL);
	event_active(c->readable, EV_READ, 0);
}

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
		relay_resize(c->job->relay, (uint16_t)m->resize->rows, (uint16_t)m->resize->cols, NULL);
	return 0;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* There is no session: the supervisor ends when the client knows. */
static void start_failed(struct session *s, struct client *c, struct err *e)
{
	session_close(s, RECORD_STATE_MAX);
	control_send_failure(c, e, s->outcome);
	*e = (struct err){0};
	session_maybe_exit(s);
}

static int do_run(struct session *s, struct client *c, const Pb__Control *m, int *fds, size_t n_fds,
	struct err *e)
{
	if (session_start(s, c, m->run, e) < 0)
		start_failed(s, c, e);
	return 0;
}

static int do_resume(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	if (n_fds != 1)
		return err_set(e, ERR_USAGE, -EINVAL, "no image");
	if (session_resume(s, c, m->resume, take_fd(&fds[0]), e) < 0)
		start_failed(s, c, e);
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
	if (j->tty && m->attach->rows && m->attach->cols) {
		/* Twice, so that a full-screen program draws itself again even at the old size. */
		relay_resize(j->relay, (uint16_t)(m->attach->rows + 1), (uint16_t)m->attach->cols, NULL);
		relay_resize(j->relay, (uint16_t)m->attach->rows, (uint16_t)m->attach->cols, NULL);
	}
	return 0;
}

static int do_info(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	Pb__Control reply = PB__CONTROL__INIT;
	Pb__Info info = PB__INFO__INIT;
	Pb__Job jobs[64], *job_list[64];
	struct procs procs = {0};

	if (s->has_world && procs_list(s->world.init_pid, &procs, e) < 0)
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

static int do_signal(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	int number = m->signal->signal;
	struct job *j = m->signal->job ? c->job : job_find(s, 0);
	pid_t vpid = m->signal->vpid;
	bool group = false;
	int r;

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
	r = procs_signal(s->world.init_pid, vpid, group, number, e);
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
	Pb__Control reply = PB__CONTROL__INIT;
	Pb__Exited x = PB__EXITED__INIT;

	c->waiting = true;
	if (!j || !j->exited)
		return 0;
	x.status = j->status;
	reply.body_case = PB__CONTROL__BODY_EXITED;
	reply.exited = &x;
	control_send(c, &reply);
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

static int do_rename(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	_cleanup_free_ char *dir = NULL, *runtime = NULL;

	if (paths_check_name(m->rename->name, e) < 0)
		return e->error;
	dir = paths_session(&s->paths, m->rename->name, NULL);
	runtime = paths_runtime(&s->paths, m->rename->name, NULL);
	if (!dir || !runtime)
		return err_errno(e, -ENOMEM, "rename");
	if (access(dir, F_OK) == 0 || rename(s->dir, dir) < 0) {
		err_set(e, ERR_STATE, -EEXIST, "the name '%s' is in use", m->rename->name);
		return err_hint(e, "podrun rm %s removes what ended", m->rename->name);
	}
	if (rename(s->runtime, runtime) < 0) {
		int error = -errno;

		if (rename(dir, s->dir) < 0)
			log_error("cannot rename %s back", dir);
		return err_errno(e, error, "%s", runtime);
	}
	free(s->dir);
	free(s->runtime);
	s->dir = take_ptr(dir);
	s->runtime = take_ptr(runtime);
	session_set_string(&s->record->config->name, m->rename->name);
	session_save(s, record_state_of(s->record->state), false, NULL);
	control_send_done(c);
	return 0;
}

static int do_kill(struct session *s, struct client *c, const Pb__Control *m, int *fds,
	size_t n_fds, struct err *e)
{
	c->waiting = true; /* the exit is the answer */
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
	(IN(RUNNING) | IN(FREEZING) | IN(PAUSED) | IN(WRITING) | IN(HELD) | IN(IN_DOUBT) |         \
		IN(ARRIVED))

/* What may be asked, in which states. */
static const struct request {
	Pb__Control__BodyCase what;
	unsigned states;
	int (*handle)(struct session *s, struct client *c, const Pb__Control *m, int *fds,
		size_t n_fds, struct err *e);
} requests[] = {
	{PB__CONTROL__BODY_RUN, IN(STARTING), do_run},
	{PB__CONTROL__BODY_RESUME, IN(STARTING), do_resume},
	{PB__CONTROL__BODY_EXEC, IN(RUNNING), do_exec},
	{PB__CONTROL__BODY_ATTACH, ALIVE, do_attach},
	{PB__CONTROL__BODY_INFO, ~0u, do_info},
	{PB__CONTROL__BODY_SIGNAL, ALIVE, do_signal},
	{PB__CONTROL__BODY_PAUSE, IN(RUNNING), do_pause},
	{PB__CONTROL__BODY_UNPAUSE, IN(PAUSED), do_unpause},
	{PB__CONTROL__BODY_WAIT, ALIVE | IN(REBUILDING), do_wait},
	{PB__CONTROL__BODY_SUSPEND, IN(RUNNING) | IN(PAUSED), do_suspend},
	{PB__CONTROL__BODY_RENAME, IN(RUNNING) | IN(PAUSED), do_rename},
	{PB__CONTROL__BODY_KILL, ALIVE, do_kill},
	{PB__CONTROL__BODY_DECISION, IN(HELD) | IN(IN_DOUBT) | IN(ARRIVED), do_decision},
	{PB__CONTROL__BODY_INPUT, ~0u, do_input},
	{PB__CONTROL__BODY_RESIZE, ~0u, do_resize},
	{PB__CONTROL__BODY_CLOSE_OUTPUT, ~0u, do_close_output},
};

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
	} else if (!(q->states & 1u << s->state)) {
		err_set(&e, ERR_STATE, -EBUSY, "the session is %s", session_state_name(s->state));
	} else {
		q->handle(s, c, m, fds, n_fds, &e);
	}
	if (err_is(&e) && !c->leaving)
		control_send_failure(c, &e, 0);
}

/* ---- connections ------------------------------------------------------------------------- */

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct client *c = ctx;
	int fds[MESSAGE_MAX_FDS];
	struct err e = {0};
	Pb__Control *m;
	size_t n_fds;
	int r;

	/* One at a time: a handler may stop this client's input, or free it. */
	r = message_recv(c->conn, &m, fds, MESSAGE_MAX_FDS, &n_fds, &e);
	if (r == 0)
		return;
	if (r < 0) {
		control_free(c);
		return;
	}
	/* More may be buffered than the socket shows. */
	event_active(c->readable, EV_READ, 0);
	handle(c->session, c, m, fds, n_fds);
	message_free(m);
	while (n_fds)
		close_fd(fds[--n_fds]);
}

int control_adopt(struct client **ret, struct session *s, int sock, struct err *e)
{
	struct client *c = calloc(1, sizeof(*c));
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (!c || io_set_nonblock(sock, true) < 0 || io_set_cloexec(sock, true) < 0 ||
		getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
		proto_conn_new(&c->conn, sock, e) < 0) {
		free(c);
		close(sock);
		return err_set(e, ERR_FAILED, -ENOMEM, "cannot take a client");
	}
	c->session = s;
	c->uid = cred.uid;
	c->readable = event_new(s->loop, sock, EV_READ | EV_PERSIST, on_readable, c);
	c->writable = event_new(s->loop, sock, EV_WRITE | EV_PERSIST, on_writable, c);
	c->next = s->clients;
	s->clients = c;
	if (!c->readable || !c->writable) {
		control_free(c);
		return err_errno(e, -ENOMEM, "client");
	}
	event_add(c->readable, NULL);
	if (ret)
		*ret = c;
	return 0;
}

void control_free(struct client *c)
{
	struct session *s = c->session;
	struct client **at = &s->clients;
	struct job *j = c->job;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	if (c->readable)
		event_free(c->readable);
	if (c->writable)
		event_free(c->writable);
	proto_conn_free(c->conn);
	buf_fini(&c->input);
	if (j && j->primary == c) {
		j->primary = NULL;
		if (!j->tty && !(j->number == 0 && s->record && s->record->config->keep_stdin))
			relay_end_input(j->relay);
		relay_poke(j->relay);
	}
	if (s->op.client == c) {
		s->op.client = NULL;
		session_abandoned(s);
	}
	free(c);
	session_maybe_exit(s);
}

void control_detach_job(struct session *s, struct job *j)
{
	for (struct client *c = s->clients; c; c = c->next)
		if (c->job == j) {
			c->job = NULL;
			buf_clear(&c->input);
			event_add(c->readable, NULL);
		}
}

/* ---- listening --------------------------------------------------------------------------- */

static bool may_connect(const struct session *s, uid_t uid)
{
	const Pb__Config *config = s->record->config;

	if (uid == geteuid() || uid == 0)
		return true;
	for (size_t i = 0; i < config->n_allow; i++)
		if (config->allow[i] == uid)
			return true;
	return false;
}

static void on_connection(evutil_socket_t fd, short what, void *ctx)
{
	struct session *s = ctx;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct client *c;
	struct err e = {0};
	unsigned n = 0;
	int sock = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (sock < 0)
		return;
	for (c = s->clients; c; c = c->next)
		n++;
	if (n >= MAX_CLIENTS || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		close(sock);
		return;
	}
	if (control_adopt(&c, s, sock, &e) < 0) {
		log_warn("%s", e.msg);
		return;
	}
	if (!may_connect(s, cred.uid)) {
		err_set(&e, ERR_FAILED, -EACCES, "user %u is not allowed to use this session", cred.uid);
		err_hint(&e, "podrun run --allow USER lets others in");
		control_send_failure(c, &e, 0);
		give_up(c);
	}
}

static int listen_at(struct session *s, int slot, const struct sockaddr_un *a, socklen_t len,
	struct err *e)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)a, len) < 0 || listen(fd, 16) < 0)
		return err_errno(e, -errno, "control socket");
	s->acceptors[slot] = event_new(s->loop, fd, EV_READ | EV_PERSIST, on_connection, s);
	if (!s->acceptors[slot])
		return err_errno(e, -ENOMEM, "control socket");
	event_add(s->acceptors[slot], NULL);
	s->listeners[slot] = take_fd(&fd);
	return 0;
}

int control_listen(struct session *s, struct err *e)
{
	const Pb__Config *config = s->record->config;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	_cleanup_close_ int dir = open(s->runtime, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int n, r;

	if (dir < 0)
		return err_errno(e, -errno, "%s", s->runtime);
	unlinkat(dir, "control", 0);
	/* Through /proc, since the directory's own path may be longer than an address. */
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/control", dir);
	r = listen_at(s, 0, &a, sizeof(a), e);
	if (r < 0 || !config->n_allow)
		return r;
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "podrun/%u/%s", geteuid(), config->name);
	a.sun_path[0] = '\0';
	return listen_at(s, 1, &a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n),
		e);
}

void control_unlisten(struct session *s)
{
	for (int i = 0; i < 2; i++) {
		if (s->acceptors[i])
			event_free(s->acceptors[i]);
		s->acceptors[i] = NULL;
		s->listeners[i] = close_fd(s->listeners[i]);
	}
}

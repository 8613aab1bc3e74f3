// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/session.h"
#include "supervisor/tenure.h"

#include <assert.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "proto/control.pb-c.h"
#include "supervisor/control.h"
#include "supervisor/job.h"
#include "supervisor/notify.h"
#include "supervisor/worker.h"

#define MAX_LOG (64ull << 20) /* then the log begins anew, the old one is kept as log.1 */

static const char *const state_names[] = {
	[SESSION_STARTING] = "starting",
	[SESSION_REBUILDING] = "resuming",
	[SESSION_ARRIVED] = "arrived",
	[SESSION_RUNNING] = "running",
	[SESSION_FREEZING] = "freezing",
	[SESSION_PAUSED] = "paused",
	[SESSION_WRITING] = "writing",
	[SESSION_HELD] = "held",
	[SESSION_IN_DOUBT] = "in-doubt",
	[SESSION_LEAVING] = "leaving",
	[SESSION_CLOSING] = "ended",
};
static_assert(ARRAY_SIZE(state_names) == SESSION_STATE_MAX, "a state without a name");

const char *session_state_name(enum session_state state)
{
	return state_names[state];
}

int session_set_string(char **field, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	if (*field != protobuf_c_empty_string)
		free(*field);
	*field = copy;
	return 0;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t session_monotonic_ns(const struct session *s)
{
	return clock_ns(CLOCK_MONOTONIC) + s->monotonic_offset_ns;
}

int64_t session_boottime_ns(const struct session *s)
{
	return clock_ns(CLOCK_BOOTTIME) + s->boottime_offset_ns;
}

int session_new(struct session **ret, struct event_base *loop, struct err *e)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return err_errno(e, -ENOMEM, "session");
	s->loop = loop;
	s->log_fd = -1;
	s->dir_fd = s->runtime_fd = -1;
	s->op.image = -1;
	s->listeners[0] = s->listeners[1] = -1;
	if (paths_init(&s->paths, e) < 0) {
		session_free(s);
		return e->error;
	}
	*ret = s;
	return 0;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	session_end_operation(s);
	worker_free(s->worker);
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
	for (size_t i = 0; i < ARRAY_SIZE(s->aside); i++)
		tenure_remove(s->aside[i]);
	record_free(s->record);
	close_fd(s->log_fd);
	close_fd(s->dir_fd);
	close_fd(s->runtime_fd);
	free(s->dir);
	free(s->files);
	free(s->runtime);
	paths_fini(&s->paths);
	free(s);
}

/* ---- record and log ----------------------------------------------------------------------- */

int session_save(struct session *s, enum record_state state, bool durable, struct err *e)
{
	struct err own = {0};
	int r;

	session_set_string(&s->record->state, record_state_name(state));
	s->record->supervisor = getpid();
	r = record_save(s->record, s->dir, durable, &own);
	if (r < 0)
		log_error("%s", own.msg);
	if (r < 0 && e)
		*e = own;
	return r;
}

int session_open_log(struct session *s, struct err *e)
{
	_cleanup_free_ char *log = NULL, *own = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (asprintf(&log, "%s/log", s->dir) < 0 || asprintf(&own, "%s/supervisor.log", s->dir) < 0)
		return err_errno(e, -ENOMEM, "log");
	close_fd(s->log_fd);
	s->log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (s->log_fd < 0)
		return err_errno(e, -errno, "cannot open %s", log);
	s->log_bytes = fstat(s->log_fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	/* What libraries or crashes print on stderr belongs there as well. */
	fd = open(own, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		return err_errno(e, -errno, "cannot open %s", own);
	log_init(STDERR_FILENO, "supervisor");
	return 0;
}

void session_log(struct session *s, const void *data, size_t n)
{
	struct err e = {0};

	if (s->log_bytes > MAX_LOG) {
		_cleanup_free_ char *log = NULL, *old = NULL;

		if (asprintf(&log, "%s/log", s->dir) > 0 && asprintf(&old, "%s/log.1", s->dir) > 0 &&
			rename(log, old) == 0)
			session_open_log(s, &e);
		s->log_bytes = 0;
	}
	if (s->log_fd >= 0 && io_write_full(s->log_fd, data, n) < 0)
		log_debug("the log takes nothing");
	s->log_bytes += n;
}

void session_log_tail(struct session *s, struct buf *b)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;
	off_t from;
	ssize_t n;
	void *room;

	if (asprintf(&path, "%s/log", s->dir) < 0)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	from = MAX(st.st_size - (off_t)SESSION_LOG_TAIL, 0);
	room = buf_reserve(b, SESSION_LOG_TAIL);
	n = room ? io_pread_full(fd, room, SESSION_LOG_TAIL, from) : 0;
	if (n > 0)
		b->len += (size_t)n;
}

/* ---- beginning ---------------------------------------------------------------------------- */

static int name_in_use(const char *name, struct err *e)
{
	err_set(e, ERR_STATE, -EEXIST, "the name '%s' is in use", name);
	return err_hint(e, "podrun ps -a shows by what; podrun rm %s removes what ended", name);
}

/* Makes sessions/NAME and the runtime directory. */
static int reserve_name(struct session *s, const char *name, struct err *e)
{
	_cleanup_free_ char *dir = paths_session(&s->paths, name, NULL);
	_cleanup_free_ char *runtime = paths_runtime(&s->paths, name, NULL);

	if (!dir || !runtime)
		return err_errno(e, -ENOMEM, "session");
	if (mkdir(dir, 0700) < 0)
		return errno == EEXIST ? name_in_use(name, e) :
					 err_errno(e, -errno, "cannot make %s", dir);
	/* One left over by a supervisor that was killed has no session directory any more. */
	if (mkdir(runtime, 0700) < 0 && errno != EEXIST) {
		int r = err_errno(e, -errno, "cannot make %s", runtime);

		rmdir(dir);
		return r;
	}
	s->dir_fd = tenure_open(dir, e);
	s->runtime_fd = tenure_open(runtime, e);
	s->dir = take_ptr(dir);
	s->runtime = take_ptr(runtime);
	return s->dir_fd < 0 || s->runtime_fd < 0 ? e->error : 0;
}

int session_reserve(struct session *s, bool generated, struct err *e)
{
	Pb__Config *config = s->record->config;
	char name[PATHS_MAX_NAME];
	unsigned seed;
	int r;

	if (!generated) {
		r = paths_check_name(config->name, e);
		return r < 0 ? r : reserve_name(s, config->name, e);
	}
	for (int attempt = 0; attempt < 1000; attempt++) {
		if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
			seed = (unsigned)io_now_ns();
		paths_make_name(seed, name);
		r = reserve_name(s, name, e);
		if (r != -EEXIST)
			return r < 0 ? r : session_set_string(&config->name, name);
		*e = (struct err){0};
	}
	return r;
}

static void on_init_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct session *s = ctx;
	struct world_exit x;
	struct err e = {0};
	struct job *j;
	int r;

	while ((r = world_next_exit(&s->world, &x, &e)) == 1) {
		log_debug("task %d ended with status %#x, %d left", x.vpid, x.status, x.left);
		if (s->op.released)
			session_released(s);
		if (s->state == SESSION_REBUILDING)
			continue; /* undone by the worker, which says why */
		j = job_find_vpid(s, x.vpid);
		if (j && j->number == 0) {
			s->record->status = x.status;
			s->record->ended = time(NULL);
		}
		if (j)
			job_ended(j, x.status);
		j = job_find(s, 0);
		if (j && j->exited && x.left == 0) {
			session_close(s, RECORD_ENDED);
			return;
		}
		if (j && j->exited && s->record->config->end_with_command)
			session_kill(s);
		else
			job_tell_all(s, x.left);
	}
	if (r < 0 && s->state == SESSION_REBUILDING)
		event_del(s->init_readable);
	else if (r < 0)
		session_close(s, RECORD_ENDED);
}

static void on_listener_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct session *s = ctx;
	struct err e = {0};

	/* Nobody is left who could call: pid 1's end is what ends the session. */
	if (notify_ready(s->notify, &e) < 0)
		event_del(s->listener_readable);
}

/* Watches what comes from the new world: its calls, and the ends of its processes. */
static int watch_world(struct session *s, const struct world_config *w, struct err *e)
{
	io_set_nonblock(s->world.init_sock, true);
	s->init_readable = event_new(s->loop, s->world.init_sock, EV_READ | EV_PERSIST,
		on_init_readable, s);
	s->listener_readable = event_new(s->loop, s->world.listener, EV_READ | EV_PERSIST,
		on_listener_readable, s);
	if (!s->init_readable || !s->listener_readable)
		return err_errno(e, -ENOMEM, "world");
	if (notify_create(&s->notify, &s->world, w, e) < 0)
		return e->error;
	event_add(s->init_readable, NULL);
	event_add(s->listener_readable, NULL);
	return 0;
}

int session_make_world(struct session *s, struct err *e)
{
	const Pb__Config *c = s->record->config;
	struct world_bind *binds = calloc(c->n_binds + 1, sizeof(*binds));
	const char *home = getenv("HOME");
	const char *const places[] = {c->cwd, home ? home : "/"};
	const char *const hidden[] = {s->paths.state, s->paths.runtime, s->paths.config};
	struct world_config w = {.name = c->name,
		.hostname = c->hostname,
		.root = c->root[0] ? c->root : NULL,
		.as_root = c->as_root,
		.net = strcmp(c->net, "host") == 0 ? WORLD_NET_HOST : WORLD_NET_NONE,
		.binds = binds,
		.n_binds = c->n_binds,
		.monotonic_offset_ns = s->monotonic_offset_ns,
		.boottime_offset_ns = s->boottime_offset_ns,
		.max_pids = c->pids,
		.places = places,
		.n_places = ARRAY_SIZE(places),
		.hidden = hidden,
		.n_hidden = ARRAY_SIZE(hidden),
		.parent_userns = -1};
	int r;

	if (!binds || asprintf(&s->files, "%s/files", s->dir) < 0) {
		free(binds);
		return err_errno(e, -ENOMEM, "world");
	}
	for (size_t i = 0; i < c->n_binds; i++)
		binds[i] = (struct world_bind){.source = c->binds[i]->source,
			.target = c->binds[i]->target,
			.read_only = c->binds[i]->read_only};
	w.files_dir = s->files;
	r = io_mkdir_p(AT_FDCWD, s->files, 0700);
	if (r < 0 && r != -EEXIST)
		r = err_errno(e, r, "cannot make %s", s->files);
	else
		r = world_create(&s->world, &w, e);
	if (r == 0) {
		s->has_world = true;
		r = watch_world(s, &w, e);
	}
	free(binds);
	return r;
}

static int take_config(struct session *s, const Pb__Config *config, struct err *e)
{
	Pb__Record fresh = PB__RECORD__INIT;
	_cleanup_free_ uint8_t *data = NULL;

	/* A message is copied by packing it. */
	fresh.config = (Pb__Config *)config;
	data = malloc(pb__record__get_packed_size(&fresh) + 1);
	if (data)
		s->record = pb__record__unpack(NULL, pb__record__pack(&fresh, data), data);
	if (!s->record)
		return err_errno(e, -ENOMEM, "session");
	s->record->started = time(NULL);
	return 0;
}

static int fresh_id(Pb__Config *config, struct err *e)
{
	free(config->session_id.data);
	config->session_id.data = malloc(16);
	config->session_id.len = 16;
	if (!config->session_id.data || getrandom(config->session_id.data, 16, 0) != 16)
		return err_errno(e, -EIO, "random numbers");
	return 0;
}

/* argv and environment with the NULL at their ends that exec wants. */
static char **terminated(char **v, size_t n)
{
	char **copy = calloc(n + 1, sizeof(*copy));

	if (copy && n)
		memcpy(copy, v, n * sizeof(*copy));
	return copy;
}

static int start_command(struct session *s, struct client *c, const Pb__RunRequest *run,
	struct err *e)
{
	const Pb__Config *config = s->record->config;
	_cleanup_free_ char **argv = terminated(config->argv, config->n_argv);
	_cleanup_free_ char **env = terminated(config->env, config->n_env);
	struct job_spec spec = {.argv = argv,
		.envp = env,
		.cwd = config->cwd,
		.tty = config->tty,
		.input = config->keep_stdin || (run->attach && run->input),
		.rows = (uint16_t)run->rows,
		.cols = (uint16_t)run->cols};
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Started started = PB__STARTED__INIT;
	struct job *j;
	int r;

	if (!argv || !env)
		return err_errno(e, -ENOMEM, "command");
	r = job_start(&j, s, &spec, e);
	if (r < 0) {
		s->outcome = job_exit_code(e);
		return r;
	}
	s->state = SESSION_RUNNING;
	session_save(s, RECORD_RUNNING, false, NULL);
	if (run->attach) {
		c->job = j;
		j->primary = c;
	}
	started.name = config->name;
	started.vpid = j->vpid;
	started.tty = j->tty;
	m.body_case = PB__CONTROL__BODY_STARTED;
	m.started = &started;
	control_send(c, &m);
	return 0;
}

int session_start(struct session *s, struct client *c, const Pb__RunRequest *run, struct err *e)
{
	Pb__Config *config;
	int r;

	if (!run->config || !run->config->n_argv)
		return err_set(e, ERR_USAGE, -EINVAL, "no command");
	r = take_config(s, run->config, e);
	if (r < 0)
		return r;
	config = s->record->config;
	r = fresh_id(config, e);
	if (r == 0)
		r = session_reserve(s, run->generated, e);
	if (r == 0 && !config->hostname[0])
		r = session_set_string(&config->hostname, config->name);
	if (r == 0)
		r = session_open_log(s, e);
	if (r == 0)
		r = session_save(s, RECORD_STARTING, false, e);
	if (r == 0)
		r = session_make_world(s, e);
	if (r == 0)
		r = control_listen(s, e);
	if (r == 0)
		r = start_command(s, c, run, e);
	if (r < 0)
		config->remove = true; /* what never ran leaves no record */
	return r;
}

/* ---- end ---------------------------------------------------------------------------------- */

void session_kill(struct session *s)
{
	if (!s->has_world)
		return;
	/* Pid 1 first: the kernel has killed all the rest when a worker's death lets them go. */
	sys_pidfd_send_signal(s->world.init_pidfd, SIGKILL);
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
	bool remove = (state == RECORD_ENDED && s->record->config->remove) ||
		state == RECORD_STATE_MAX;
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

static void end_world(struct session *s)
{
	struct event **watches[] = {&s->init_readable, &s->listener_readable};

	for (size_t i = 0; i < ARRAY_SIZE(watches); i++) {
		if (*watches[i])
			event_free(*watches[i]);
		*watches[i] = NULL;
	}
	notify_destroy(take_ptr(s->notify));
	if (!s->has_world)
		return;
	if (s->worker)
		session_kill(s);
	worker_free(take_ptr(s->worker));
	world_end(&s->world);
}

/* An operation that the session's end overtook. */
static void end_operation(struct session *s)
{
	struct err e = {0};

	err_set(&e, ERR_STATE, -ESRCH, "the session has ended");
	session_answer(s, &e);
	session_end_operation(s);
}

void session_close(struct session *s, enum record_state state)
{
	if (s->state == SESSION_CLOSING)
		return;
	if (s->op.what != OP_NONE && state == RECORD_ENDED && s->state != SESSION_REBUILDING)
		end_operation(s);
	s->state = SESSION_CLOSING;
	if (s->retry)
		event_free(s->retry);
	s->retry = NULL;
	end_world(s);
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

void session_maybe_exit(struct session *s)
{
	if (s->state != SESSION_CLOSING)
		return;
	for (struct client *c = s->clients; c; c = c->next)
		if (c->stuffed)
			return;
	event_base_loopbreak(s->loop);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A session begins with a name: the directory of that name can be made once, and whoever makes it
 * has the name.  Then come the log, the record, the control socket, the world, and the command; a
 * failure anywhere undoes all of it (end.c), for what never ran leaves no record.  The layer which
 * a root inside stands on is built by a child (chore.c) when it is missing, and may take long;
 * meanwhile the session is "starting", and can be killed.  A resumed session goes the same way in
 * another order (rebuild.c).
 *
 * From then on the world is watched: its notified calls are answered (notify.c), and pid 1 tells
 * whose process has ended.  The end of the last one ends the session.
 */
#include "supervisor/launch.h"

#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "proto/control.pb-c.h"
#include "supervisor/control.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/end.h"
#include "supervisor/filter/notify.h"
#include "supervisor/job.h"
#include "supervisor/mapped.h"
#include "supervisor/message.h"
#include "supervisor/network/network.h"
#include "supervisor/operation.h"
#include "supervisor/periodic.h"
#include "supervisor/procs.h"
#include "supervisor/screen/screen.h"
#include "supervisor/session.h"
#include "supervisor/worker/chore.h"
#include "supervisor/world/cgroup.h"
#include "supervisor/world/plan.h"
#include "supervisor/world/skeleton.h"

#define MAX_CHORES 3 /* the host may change while the skeleton layer is built for it */
#define LOOKS	   3 /* at who is left */

/* ---- the name ----------------------------------------------------------------------------- */

static int name_in_use(const char *name, struct err *e)
{
	err_set(e, ERR_STATE, -EEXIST, "the name '%s' is in use", name);
	return err_hint(e, "podrun ps -a shows by what; podrun rm %s removes what ended", name);
}

/* One that a supervisor left which was killed before it had a record is no obstacle. */
static int make_own(const char *dir, char **ret_aside, struct err *e)
{
	if (mkdir(dir, 0700) == 0)
		return 0;
	if (errno == EEXIST && tenure_is_forsaken(dir)) {
		*ret_aside = tenure_set_aside(dir);
		if (*ret_aside && mkdir(dir, 0700) == 0)
			return 0;
	}
	return err_errno(e, -errno, "cannot make %s", dir);
}

static int make_both(
	struct session *s, const char *dir, const char *runtime, char **ret_aside, struct err *e)
{
	int r = make_own(dir, ret_aside, e);

	if (r < 0)
		return r;
	/* One left over by a supervisor that was killed has no session directory any more. */
	if (mkdir(runtime, 0700) < 0 && errno != EEXIST) {
		r = err_errno(e, -errno, "cannot make %s", runtime);
		rmdir(dir);
		return r;
	}
	s->dir_fd = tenure_open(dir, e);
	if (s->dir_fd < 0)
		return s->dir_fd;
	s->runtime_fd = tenure_open(runtime, e);
	return MIN(s->runtime_fd, 0);
}

/* Makes sessions/NAME and the runtime directory. */
static int reserve_name(struct session *s, const char *name, struct err *e)
{
	_cleanup_free_ char *dir = paths_session(&s->paths, name, NULL);
	_cleanup_free_ char *runtime = paths_runtime(&s->paths, name, NULL);
	_cleanup_close_ int lock = -1;
	char *aside = NULL;
	int r;

	if (!dir || !runtime)
		return err_errno(e, -ENOMEM, "session");
	lock = tenure_lock(&s->paths, e);
	if (lock < 0)
		return lock;
	r = make_both(s, dir, runtime, &aside, e);
	lock = close_fd(lock);
	tenure_remove(aside);
	if (r == -EEXIST)
		return name_in_use(name, e);
	if (s->dir_fd >= 0) {
		s->dir = take_ptr(dir);
		s->runtime = take_ptr(runtime);
	}
	return r;
}

static int reserve(struct session *s, bool generated, struct err *e)
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

/* ---- the world ---------------------------------------------------------------------------- */

/* Each command that podrun starts is the leader of a group of its own. */
static bool is_aside(const struct session *s, pid_t group)
{
	for (const struct job *j = s->jobs; j; j = j->next)
		if (j->aside && !j->exited && j->vpid == group)
			return true;
	return false;
}

static bool has_aside(const struct session *s)
{
	for (const struct job *j = s->jobs; j; j = j->next)
		if (j->aside && !j->exited)
			return true;
	return false;
}

/* How many there are besides pid 1, commands that are aside, and @gone, which has ended and
 * whose number pid 1 is about to take; -1: who knows. */
static int count_others(const struct session *s, pid_t gone)
{
	struct err ignored = {0};
	struct procs procs;
	int n;

	if (procs_list(&s->world, session_copier(s), &procs, &ignored) < 0)
		return -1;
	n = (int)procs.n;
	for (size_t i = 0; i < procs.n; i++)
		n -= (procs.all[i]->vpid == gone && procs.all[i]->state[0] == 'Z') ||
		     is_aside(s, procs.pgids[i]);
	procs_fini(&procs);
	return n;
}

/*
 * A snapshot's copies of memory are processes, too, but none of the session's.  Nor can pid 1
 * count them where it has no /proc of its own.  The list of its children leaves one out when
 * it takes the number of the one before in that moment (proc(5), task children): that nobody
 * is left has to be seen more than once.  Who is there for the display only does not count, nor
 * who is aside.
 */
static int really_left(const struct session *s, pid_t gone, int left)
{
	int n = 0, display = screen_processes(s);

	if (!left || (!session_copier(s) && !s->world.rewriter && !has_aside(s)))
		return MAX(left - display, 0);
	for (int i = 0; i < LOOKS && n >= 0 && n <= display; i++)
		n = count_others(s, gone);
	return MAX((n < 0 ? left : n) - display, 0);
}

int session_left(const struct session *s)
{
	return MAX(count_others(s, 0) - screen_processes(s), 0);
}

/*
 * A snapshot that has its copies of memory, or is about to let the session go on, needs nothing of
 * it any more: a session that ends by itself waits for it (freeze.c ends it then).
 */
static bool waits_for_snapshot(struct session *s)
{
	const struct session_operation *op = &s->op;

	if (op->what != OP_SNAPSHOT || op->was_paused || s->killed || !s->worker)
		return false;
	return s->state == SESSION_WRITING || s->state == SESSION_COPYING;
}

/* Nobody is left, or nobody who should be. */
static void end(struct session *s, bool somebody_left)
{
	if (waits_for_snapshot(s))
		s->op.over = true;
	else if (somebody_left)
		session_kill(s);
	else
		session_close(s, RECORD_ENDED);
}

/* Is there a command of exec whose end pid 1 still has to tell? */
static bool awaits_command(const struct session *s)
{
	for (const struct job *j = s->jobs; j; j = j->next)
		if (j->number != 0 && !j->exited && !j->aside)
			return true;
	return false;
}

static void on_exit_of(struct session *s, pid_t gone, int status, int left)
{
	struct job *j = job_find_vpid(s, gone);
	int now;

	screen_exited(s, gone);
	if (s->state == SESSION_CLOSING)
		return;
	if (j && j->number == 0) {
		s->record->status = status;
		s->record->ended = time(NULL);
	}
	if (j)
		job_ended(j, status);
	j = job_find(s, 0);
	now = really_left(s, gone, left);
	/*
	 * Whom pid 1 has seen has ended since: it tells so next, and how, which a client may wait
	 * for.  Unless it was a copy that a snapshot is written of.
	 */
	if (left > screen_processes(s) && !now && !session_copier(s) && s->state != SESSION_COPYING &&
		awaits_command(s) && !s->record->config->end_with_command)
		return;
	if (j && j->exited && (now == 0 || s->record->config->end_with_command))
		end(s, now || screen_processes(s) || has_aside(s));
	else
		job_tell_all(s, now);
}

/* A zombie of the image, which pid 1 has taken at once; or the worker undoes what it has
 * rebuilt, and says why. */
static void note_early(struct session *s, const struct world_exit *x)
{
	struct job *j = job_find_vpid(s, x->vpid);

	s->early_left = x->left;
	if (!j || j->exited)
		return;
	j->early = true;
	j->status = x->status;
}

void session_tell_early(struct session *s)
{
	struct job *j = s->jobs;

	while (j && s->state != SESSION_CLOSING) {
		if (!j->early) {
			j = j->next;
			continue;
		}
		j->early = false;
		on_exit_of(s, j->vpid, j->status, s->early_left);
		j = s->jobs;
	}
}

void session_hear_exits(struct session *s)
{
	struct world_exit x;
	struct err e = {0};
	int r;

	while ((r = world_next_exit(&s->world, &x, &e)) == 1) {
		log_debug("task %d ended with status %#x, %d left", x.vpid, x.status, x.left);
		if (s->op.released && s->op.going && *s->op.going)
			s->op.released(s);
		if (s->state == SESSION_REBUILDING)
			note_early(s, &x);
		else
			on_exit_of(s, x.vpid, x.status, x.left);
		if (s->state == SESSION_CLOSING)
			return;
	}
	if (r < 0 && s->state == SESSION_REBUILDING) {
		event_del(s->init_readable);
		s->init_gone = true;
	} else if (r < 0) {
		session_close(s, RECORD_ENDED);
	}
}

bool session_lost_init(struct session *s)
{
	if (!s->has_world || s->world.rewriter || s->killed || s->op.released ||
		s->state != SESSION_REBUILDING)
		return false;
	if (!s->init_gone && s->init_readable)
		session_hear_exits(s);
	return s->init_gone;
}

static void on_init_readable(evutil_socket_t fd, short what, void *ctx)
{
	session_hear_exits(ctx);
}

static void on_listener_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct session *s = ctx;
	struct err e = {0};

	/* Nobody is left who could call: pid 1's end is what ends the session. */
	if (notify_ready(s->notify, &e) < 0)
		event_del(s->listener_readable);
}

/* Watches for the ends of the new world's processes. */
static int watch_init(struct session *s, struct err *e)
{
	io_set_nonblock(s->world.init_sock, true);
	s->init_readable =
		event_new(s->loop, s->world.init_sock, EV_READ | EV_PERSIST, on_init_readable, s);
	if (!s->init_readable)
		return err_errno(e, -ENOMEM, "world");
	event_add(s->init_readable, NULL);
	return 0;
}

/* Hears its calls, unless its rewriter answers them. */
static int watch_calls(struct session *s, const struct world_config *w, struct err *e)
{
	if (s->world.rewriter)
		return 0;
	if (notify_create(&s->notify, &s->world, w, e) < 0)
		return e->error;
	s->listener_readable = event_new(
		s->loop, notify_fd(s->notify), EV_READ | EV_PERSIST, on_listener_readable, s);
	if (!s->listener_readable)
		return err_errno(e, -ENOMEM, "world");
	event_add(s->listener_readable, NULL);
	return 0;
}

/* What it is to be, now. */
static int make_plan(struct plan *ret, const struct session *s, const Pb__Config *c, struct err *e)
{
	struct world_config *w = &ret->config;
	int r = plan_make(ret, c, &s->paths, s->files, e);

	if (r < 0)
		return r;
	w->rewrite = s->rewrite;
	w->monotonic_offset_ns = s->monotonic_offset_ns;
	w->boottime_offset_ns = s->boottime_offset_ns;
	w->mapped = mapped_info(s);
	if (c->network && !s->op.resume)
		vnet_search(c->network->gateway, ret->search);
	w->network.search = ret->search;
	return 0;
}

static int make_world(struct session *s, const Pb__Config *c, const struct skeleton *skeleton,
	bool early, struct err *e)
{
	struct plan plan;
	struct world_config *w = &plan.config;
	int r;

	free(take_ptr(s->files));
	if (asprintf(&s->files, "%s/files", s->dir) < 0)
		return err_errno(e, -ENOMEM, "world");
	r = make_plan(&plan, s, c, e);
	if (r < 0)
		return r;
	w->early = early;
	w->skeleton = skeleton;
	r = io_mkdir_p(AT_FDCWD, s->files, 0700);
	r = r < 0 && r != -EEXIST ? err_errno(e, r, "cannot make %s", s->files) : 0;
	if (r == 0 && c->memory)
		r = cgroup_create(c->name, c->memory, &s->cgroup, e);
	if (r == 0)
		r = world_create(&s->world, w, s->rewrite ? s->host : NULL, e);
	if (r == 0) {
		s->has_world = true;
		r = watch_init(s, e);
	}
	if (r == 0 && !early)
		r = watch_calls(s, w, e);
	/* Before it has started anything. */
	if (r == 0 && s->cgroup)
		r = cgroup_enter(s->cgroup, s->world.init_pid, e);
	plan_fini(&plan);
	return r;
}

/* Root inside on the host's own files stands on the skeleton layer. */
static bool wants_skeleton(const struct session *s)
{
	const Pb__Config *c = s->record->config;

	return c->as_root && !s->rewrite && !c->root[0] && geteuid() != 0;
}

static void on_skeleton(void *ctx, struct err *e)
{
	struct session *s = ctx;

	chore_free(take_ptr(s->chore));
	s->chores++;
	if (err_is(e)) {
		log_warn("%s", e->msg);
		s->chores = MAX_CHORES;
	}
	session_make_world(s, s->on_world);
}

void session_make_world(struct session *s, void (*then)(struct session *s, struct err *e))
{
	struct skeleton skeleton = {.lock = {-1, -1}};
	struct err e = {0};
	int r = wants_skeleton(s) ? skeleton_open(&skeleton, &e) : 1;

	s->on_world = then;
	if (r == 1 && wants_skeleton(s) && s->chores < MAX_CHORES &&
		chore_start(&s->chore, s->loop, skeleton_build, on_skeleton, s, &e) == 0)
		return;
	/* Without it less can be changed, that is all. */
	if (r != 0 && wants_skeleton(s))
		log_warn("most of the host's files can't be changed inside: %s", e.msg);
	e = (struct err){0};
	make_world(s, s->record->config, r == 0 ? &skeleton : NULL, false, &e);
	skeleton_fini(&skeleton);
	if (err_is(&e) || network_begin(s, then, &e) <= 0)
		then(s, &e);
}

int session_make_early_world(struct session *s, const Pb__Config *c, struct err *e)
{
	return make_world(s, c, NULL, true, e);
}

int session_use_early_world(
	struct session *s, void (*then)(struct session *s, struct err *e), struct err *e)
{
	struct plan plan;
	int r = make_plan(&plan, s, s->record->config, e);

	if (r < 0)
		return r;
	r = world_settle(&s->world, &plan.config, e);
	if (r == 0)
		r = watch_calls(s, &plan.config, e);
	plan_fini(&plan);
	if (r < 0)
		return r;
	s->on_world = then;
	if (network_begin(s, then, e) <= 0)
		then(s, e);
	return 0;
}

/* ---- the command -------------------------------------------------------------------------- */

static int take_config(struct session *s, const Pb__Config *config, struct err *e)
{
	Pb__Record fresh = PB__RECORD__INIT;

	fresh.config = (Pb__Config *)config;
	s->record = (Pb__Record *)message_copy(&fresh.base);
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

static int start_command(struct session *s, struct err *e)
{
	const Pb__Config *config = s->record->config;
	const Pb__RunRequest *run = s->op.run;
	struct client *c = s->op.client;
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
	network_tell(s);
	periodic_begin(s);
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

static void on_display(struct session *s, struct err *e)
{
	if (!err_is(e))
		start_command(s, e);
	if (err_is(e))
		session_give_up(s, s->op.client, e);
	session_end_operation(s);
}

static void on_world(struct session *s, struct err *e)
{
	if (err_is(e) || screen_begin(s, on_display, e) <= 0)
		on_display(s, e);
}

/* What the session is to see of it wherever it goes: without a namespace that is the host's own. */
static int default_hostname(Pb__Config *config)
{
	struct utsname u;

	if (strcmp(config->names, "rewrite") == 0 && uname(&u) == 0)
		return session_set_string(&config->hostname, u.nodename);
	return session_set_string(&config->hostname, config->name);
}

/* All that comes before the world. */
static int prepare(struct session *s, const Pb__RunRequest *run, struct err *e)
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
		r = reserve(s, run->generated, e);
	if (r == 0)
		r = screen_prepare(s, e);
	if (r == 0 && !config->hostname[0])
		r = default_hostname(config);
	if (r == 0)
		r = session_open_log(s, e);
	if (r == 0)
		r = session_save(s, RECORD_STARTING, false, e);
	if (r == 0)
		r = control_listen(s, e);
	return r;
}

void session_start(struct session *s, struct client *c, const Pb__RunRequest *run)
{
	struct err e = {0};
	int r = prepare(s, run, &e);

	s->op.run = r < 0 ? NULL : (Pb__RunRequest *)message_copy(&run->base);
	if (r == 0 && !s->op.run)
		r = err_errno(&e, -ENOMEM, "run");
	if (r < 0) {
		session_give_up(s, c, &e);
		return;
	}
	s->op.what = OP_START;
	s->op.client = c;
	s->rewrite = strcmp(s->record->config->names, "rewrite") == 0;
	session_make_world(s, on_world);
}

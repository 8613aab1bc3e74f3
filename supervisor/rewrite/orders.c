// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The thread that traces waits in waitpid(2), for which nothing can be watched besides.  So a
 * thread of its own receives the orders, and signals to the other one until that has seen it; a
 * signal that comes just before the wait would be lost.
 */
#include "supervisor/rewrite/orders.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/hold.h"
#include "supervisor/rewrite/ipc/ckpt.h"
#include "supervisor/rewrite/rewriter_state.h"
#include "supervisor/rewrite/view/view.h"
#include "supervisor/worker/begin.h"

#define WAKE	  SIGUSR1
#define WAKE_NS	  (200 * 1000L)
#define MAX_EDGES (IO_MAX_FDS - 1)

struct order {
	enum { DUMP, STACKS } what;
	bool portable, snapshot;
	bool json;    /* stacks */
	pid_t client; /* who asked for it, for the faults of tests */
	uint32_t deadline_ms;
	int outside;
	char visited[CKPT_VISITED_SIZE];
	uint32_t n_edges;
	char edges[MAX_EDGES][sizeof(((struct ckpt_edge *)NULL)->name)];
};

/* What has come and is not carried out yet. */
static struct {
	_Atomic bool there;
	struct order order;
	int fds[1 + MAX_EDGES];
	size_t n_fds;
	pthread_t tracer;
} pending;

int orders_send_dump(int sock, const struct worker_dump *what, int to_worker, struct err *e)
{
	const struct ckpt_world *world = &what->world;
	struct order o = {.portable = what->options.portable,
		.snapshot = what->options.snapshot,
		.deadline_ms = what->options.deadline_ms,
		.client = what->client,
		.outside = (int)what->options.outside,
		.n_edges = (uint32_t)world->n_edges};
	int fds[1 + MAX_EDGES] = {to_worker}, r;

	memcpy(o.visited, what->options.visited, sizeof(o.visited));
	if (world->n_edges > MAX_EDGES)
		return err_set(e, ERR_UNFREEZABLE, -E2BIG,
			"more than %d streams and terminals are attached", MAX_EDGES);
	for (size_t i = 0; i < world->n_edges; i++) {
		memcpy(o.edges[i], world->edges[i].name, sizeof(o.edges[i]));
		fds[1 + i] = world->edges[i].fd;
	}
	r = io_send_fds(sock, &o, sizeof(o), fds, 1 + world->n_edges);
	return r < 0 ? err_errno(e, r, "the rewriter") : 0;
}

int orders_send_stacks(int sock, bool json, const int fds[2], struct err *e)
{
	const struct order o = {.what = STACKS, .json = json};
	int r = io_send_fds(sock, &o, sizeof(o), fds, 2);

	return r < 0 ? err_errno(e, r, "the rewriter") : 0;
}

/* ---- in the rewriter ------------------------------------------------------------------------ */

static void no_handler(int sig)
{
}

static void *wait_for_orders(void *arg)
{
	struct rewriter *w = arg;
	const struct timespec nap = {.tv_nsec = WAKE_NS};

	while (io_recv_fds(w->order, &pending.order, sizeof(pending.order), pending.fds,
		       ARRAY_SIZE(pending.fds), &pending.n_fds) == sizeof(pending.order)) {
		pending.there = true;
		while (pending.there) {
			pthread_kill(pending.tracer, WAKE);
			nanosleep(&nap, NULL);
		}
	}
	return NULL; /* the supervisor has ended, and with it goes all */
}

int orders_start(struct rewriter *w)
{
	struct sigaction action = {.sa_handler = no_handler};
	pthread_t thread;

	sigaction(WAKE, &action, NULL);
	pending.tracer = pthread_self();
	return -pthread_create(&thread, NULL, wait_for_orders, w);
}

/* ---- what takes long, while the session runs ------------------------------------------------- */

struct errand {
	void (*work)(void *arg);
	void *arg;
	_Atomic bool done, seen;
};

static void *run_errand(void *arg)
{
	const struct timespec nap = {.tv_nsec = WAKE_NS};
	struct errand *x = arg;

	x->work(x->arg);
	x->done = true;
	while (!x->seen) {
		pthread_kill(pending.tracer, WAKE);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

/* In a thread without signals, while this one follows the session's tasks. */
static void meanwhile(void *rewriter, void (*work)(void *arg), void *arg)
{
	struct errand x = {.work = work, .arg = arg};
	sigset_t all, before;
	pthread_t thread;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, run_errand, &x);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0) {
		work(arg);
		return;
	}
	while (!x.done)
		rewriter_wait(rewriter);
	x.seen = true;
	pthread_join(thread, NULL);
}

/* ---- orders --------------------------------------------------------------------------------- */

static void dump(struct rewriter *w, const struct order *o, const int *fds)
{
	struct ckpt_names names;
	struct ckpt_paths paths;
	struct ckpt_ipc_names ipc;
	struct ckpt_edge edges[MAX_EDGES];
	long notified[ANSWERS_MAX];
	struct worker_dump what = {.images = -1, .config_dir = w->config_dir,
		.world = {.name = w->name,
			.init_pid = w->init,
			.init_pidfd = sys_pidfd_open(w->init, 0),
			.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
			.proc_fd = -1,
			.ns_user = -1,
			.ns_pid = -1,
			.ns_mnt = -1,
			.ns_net = -1,
			.ns_ipc = -1,
			.ns_uts = -1,
			.ns_time = -1,
			.names = &names,
			.paths = w->rw.view ? &paths : NULL,
			.ipc = &ipc,
			.uid = w->uid,
			.gid = w->gid,
			.edges = edges,
			.n_edges = o->n_edges},
		.options = {.portable = o->portable,
			.snapshot = o->snapshot,
			.meanwhile = meanwhile,
			.meanwhile_ctx = w,
			.outside = (enum ckpt_outside)o->outside,
			.deadline_ms = o->deadline_ms,
			.filters = w->rw.filters,
			.notified = notified,
			.n_notified = answers_list(notified)}};

	hold_describe(w, &names, &paths, &ipc);
	memcpy(what.options.visited, o->visited, sizeof(o->visited) - 1);
	for (size_t i = 0; i < o->n_edges; i++) {
		memcpy(edges[i].name, o->edges[i], sizeof(edges[i].name));
		edges[i].fd = fds[1 + i];
	}
	fault_load(o->client);
	fault_in_worker();
	worker_dump_here(fds[0], &what);
	fault_armed = false;
	close_fd(what.world.init_pidfd);
	close_fd(what.world.root_fd);
}

/* Takes @fds. */
static void stacks(struct rewriter *w, const struct order *o, int fds[2])
{
	long notified[ANSWERS_MAX];
	struct ckpt_names names;
	struct ckpt_paths paths;
	struct ckpt_ipc_names ipc;
	const struct ckpt_world world = {.init_pid = w->init, .proc_fd = -1, .names = &names};
	const struct ckpt_dump_options options = {
		.notified = notified, .n_notified = answers_list(notified)};
	FILE *out = fdopen(fds[0], "w");
	struct proto_conn *conn;
	struct err e = {0};

	if (!out || proto_conn_new(&conn, fds[1], &e) < 0) {
		out ? fclose(out) : close(fds[0]);
		close(fds[1]);
		return;
	}
	hold_describe(w, &names, &paths, &ipc);
	ckpt_stacks(&world, &options, out, o->json, &e);
	if (fclose(out) != 0 && !err_is(&e))
		err_errno(&e, -errno, "stacks");
	if (err_is(&e))
		worker_reply_failure(conn, &e);
	else
		worker_reply(conn, PB__WORKER__BODY_ENDED, NULL);
	proto_conn_free(conn);
}

/* Takes the first of @fds, or the first two. */
static void obey(struct rewriter *w, const struct order *o, int *fds, size_t n)
{
	if (o->what == STACKS && n == 2) {
		stacks(w, o, fds);
		fds[1] = -1;
	} else if (o->what == DUMP && n == 1 + o->n_edges && o->n_edges <= MAX_EDGES) {
		dump(w, o, fds);
	} else if (n) {
		close(fds[0]);
	}
}

void orders_look(struct rewriter *w)
{
	struct order o;
	int fds[1 + MAX_EDGES];
	size_t n;

	if (!pending.there)
		return;
	o = pending.order;
	n = pending.n_fds;
	memcpy(fds, pending.fds, sizeof(fds));
	pending.there = false;
	obey(w, &o, fds, n);
	for (size_t i = 1; i < n; i++)
		close_fd(fds[i]);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/mapped.h"

#include <event2/event.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "supervisor/check.h"
#include "supervisor/control.h"
#include "supervisor/disk/lease.h"
#include "supervisor/filter/filter.h"
#include "supervisor/filter/filter_watch.h"
#include "supervisor/filter/notify.h"
#include "supervisor/introduce.h"
#include "supervisor/session.h"
#include "supervisor/worker/worker.h"

#define MIN_RUN	    (1UL << 20)
#define MIN_TOTAL   (32UL << 20)
#define SURE_PER_S  (128UL << 20) /* bytes that are converted in a second on any machine */
#define MIN_LEASE_S 10		  /* lease-break-time; less is too risky */
#define MARGIN_S    3 /* before the kernel breaks it */
#define RESTART_MS  20
#define PATIENCE_S  60 /* of a suspend, until all is converted */

struct mapped {
	struct ckpt_mapped_options options;
	struct ckpt_mapped info;
	struct lease *lease; /* of an image; NULL: there is none, or it was given up */
	int arrived;	     /* a file that nobody else has, instead of an image; -1 */
	struct event *restart, *late, *expiry;
	bool failed, hurry, too_late;
	struct ckpt_piece *pieces;
	size_t n_pieces;
	struct worker *worker;
	struct seccomp_notif *held;
	size_t n_held, cap_held;
};

/* ---- the image ----------------------------------------------------------------------------- */

static void tell(struct mapped *m, Pb__Worker__BodyCase what, Pb__Held *body)
{
	Pb__Worker w = PB__WORKER__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;
	struct err e = {0};

	w.body_case = what;
	w.held = body ? body : (Pb__Held *)&empty;
	if (m->worker && worker_send(m->worker, &w, NULL, 0, &e) < 0)
		log_warn("%s", e.msg);
}

/* What memory is mapped from; -1: nothing any more. */
static int source(const struct mapped *m)
{
	return m->lease ? lease_fd(m->lease) : m->arrived;
}

static bool hurry(struct mapped *m)
{
	if (!m || source(m) < 0 || !m->n_pieces)
		return false;
	if (!m->hurry)
		tell(m, PB__WORKER__BODY_HURRY, NULL);
	m->hurry = true;
	return true;
}

/*
 * A task can't be stopped, and the kernel lets the writer go on soon: better no session than one
 * whose memory somebody else writes to.
 */
static void on_expired(evutil_socket_t fd, short what, void *ctx)
{
	struct session *s = ctx;

	log_error("memory is still mapped from an image that is about to be changed: "
		  "the session is killed");
	s->killed = true;
	sys_pidfd_send_signal(s->world.init_pidfd, SIGKILL);
}

static void on_lease_break(void *ctx)
{
	const struct timeval expires = {.tv_sec = lease_seconds() - MARGIN_S};
	struct session *s = ctx;
	struct mapped *m = s->mapped;

	log_info("somebody wants to write to the image");
	if (!hurry(m))
		return;
	m->expiry = event_new(s->loop, -1, 0, on_expired, s);
	if (m->expiry)
		event_add(m->expiry, &expires);
}

/* KiB of the least run; 0 for what pays, else small programs, too. */
static void choose_sizes(struct ckpt_mapped_options *o)
{
	const char *run = getenv("PODRUN_MAP_RUN");
	unsigned long kib = run ? strtoul(run, NULL, 10) : 0;

	o->min_run = kib ? MIN(kib, MIN_RUN >> 10) << 10 : MIN_RUN;
	o->min_total = kib ? 1 : MIN_TOTAL;
	o->max_total = UINT64_MAX;
}

static int begin(struct session *s)
{
	s->mapped = calloc(1, sizeof(*s->mapped));
	if (!s->mapped)
		return -ENOMEM;
	s->mapped->arrived = -1;
	return 0;
}

bool mapped_lease(struct session *s, int image)
{
	int r = begin(s);

	if (r == 0)
		r = lease_take(&s->mapped->lease, s->loop, image, on_lease_break, s);

	if (r == 0)
		return true;
	log_info("the image is hashed, and memory copied: no lease: %s", strerror(-r));
	mapped_free(s);
	return false;
}

/*
 * What is mapped is seen to by a tracer, which only where the kernel holds the names can come
 * later.
 */
static bool kernel_will_name(const struct session *s)
{
	const char *names = s->op.resume->names;

	return strcmp(names, "kernel") == 0 || s->has_world ||
		(strcmp(names, "rewrite") != 0 && !check_lacking_names());
}

static const struct ckpt_mapped_options *choose(struct session *s)
{
	struct ckpt_mapped_options *o = &s->mapped->options;

	/* Memory is counted twice for a moment, which may not be had with strict accounting. */
	if (!kernel_will_name(s) || proc_read_setting("/proc/sys/vm/overcommit_memory") == 2 ||
		getrandom(&o->cookie, sizeof(o->cookie), 0) < 0)
		return NULL;
	o->cookie |= 1;
	choose_sizes(o);
	return o;
}

const struct ckpt_mapped_options *mapped_options(struct session *s)
{
	const struct ckpt_mapped_options *o = choose(s);
	long lease_s = lease_seconds();

	if (!o || lease_s < MIN_LEASE_S)
		return NULL;
	s->mapped->options.max_total = (uint64_t)lease_s * SURE_PER_S;
	return o;
}

const struct ckpt_mapped_options *mapped_arrivals(struct session *s)
{
	return begin(s) == 0 ? choose(s) : NULL;
}

bool mapped_image_is_whole(const struct session *s)
{
	return s->mapped && s->mapped->lease && lease_is_whole(s->mapped->lease);
}

/* ---- what is mapped ------------------------------------------------------------------------ */

void mapped_watch(struct session *s, const Pb__Watch *w, int arrived)
{
	struct mapped *m = s->mapped;

	if (!m || w->n_bounds > 2 * CKPT_MAX_MAPPED || m->arrived >= 0 || m->info.n) {
		close_fd(arrived);
		return;
	}
	m->arrived = arrived;
	for (size_t i = 0; i + 1 < w->n_bounds; i += 2)
		m->info.ranges[m->info.n++] = (struct ckpt_range){w->bounds[i], w->bounds[i + 1]};
	m->info.cookie = w->cookie;
}

static int compare_offset(const void *a, const void *b)
{
	const struct ckpt_piece *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

void mapped_pieces(struct session *s, const Pb__Data *d)
{
	struct mapped *m = s->mapped;
	size_t n = d->data.len / sizeof(*m->pieces);

	if (!m || !n)
		return;
	m->pieces = malloc(n * sizeof(*m->pieces));
	if (!m->pieces) {
		m->failed = true;
		return;
	}
	memcpy(m->pieces, d->data.data, n * sizeof(*m->pieces));
	m->n_pieces = n;
	qsort(m->pieces, n, sizeof(*m->pieces), compare_offset);
}

const struct ckpt_mapped *mapped_info(const struct session *s)
{
	return s->mapped && s->mapped->info.n ? &s->mapped->info : NULL;
}

int mapped_check(const struct session *s, struct err *e)
{
	const struct mapped *m = s->mapped;

	if (!m || !m->info.n)
		return 0;
	if (m->failed)
		return err_errno(e, -ENOMEM, "memory that is mapped");
	if (m->lease && !lease_is_whole(m->lease))
		return err_set(e, ERR_STATE, -EBUSY, "somebody is writing to the image");
	if (source(m) < 0)
		return err_set(e, ERR_FAILED, -EBADF, "what memory is mapped from is gone");
	return 0;
}

/* ---- calls that are held ------------------------------------------------------------------- */

/* Calls that look at the memory of others, and so wait for all of them. */
static bool is_about_others(int nr)
{
	static const int calls[] = {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
		SYS_process_madvise, SYS_move_pages, SYS_migrate_pages, SYS_prlimit64};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i] == nr)
			return true;
	return false;
}

static void tell_held(struct mapped *m, const struct seccomp_notif *call)
{
	Pb__Held h = PB__HELD__INIT;

	h.id = call->id;
	h.tid = (int32_t)call->pid;
	h.everything = is_about_others(call->data.nr);
	if (!filter_watched_range(&call->data, &h.start, &h.end))
		h.start = h.end = 0;
	tell(m, PB__WORKER__BODY_HELD, &h);
}

static bool hold(void *ctx, const struct seccomp_notif *call)
{
	struct mapped *m = ((struct session *)ctx)->mapped;

	if (m->n_held == m->cap_held) {
		size_t cap = m->cap_held ? 2 * m->cap_held : 16;
		struct seccomp_notif *more = reallocarray(m->held, cap, sizeof(*more));

		if (!more)
			return false;
		m->held = more;
		m->cap_held = cap;
	}
	m->held[m->n_held++] = *call;
	tell_held(m, call);
	return true;
}

/* True and the call, which is not ours any more, if one with @id is being held. */
static bool take_held(struct mapped *m, uint64_t id, struct seccomp_notif *ret)
{
	for (size_t i = 0; i < m->n_held; i++)
		if (m->held[i].id == id) {
			*ret = m->held[i];
			m->held[i] = m->held[--m->n_held];
			return true;
		}
	return false;
}

static void let_go(struct session *s, const Pb__Held *h)
{
	struct seccomp_notif call;

	if (!take_held(s->mapped, h->id, &call))
		return;
	if (h->error)
		notify_refuse(s->notify, &call, h->error);
	else
		notify_again(s->notify, &call);
}

/* ---- the converter ------------------------------------------------------------------------- */

static void start(struct session *s);

static void on_restart(evutil_socket_t fd, short what, void *ctx)
{
	start(ctx);
}

static void restart_soon(struct session *s)
{
	const struct timeval soon = {.tv_usec = RESTART_MS * 1000};
	struct mapped *m = s->mapped;

	if (!m->restart)
		m->restart = event_new(s->loop, -1, 0, on_restart, s);
	if (m->restart)
		event_add(m->restart, &soon);
}

static void on_converted(struct session *s)
{
	log_debug("nothing is mapped from the image any more");
	mapped_end(s);
	control_take_up(s);
}

static void on_message(void *ctx, Pb__Worker *m, int *fds, size_t n_fds)
{
	struct session *s = ctx;
	struct seccomp_notif call;

	if (s->state == SESSION_CLOSING)
		return;
	if (m->body_case == PB__WORKER__BODY_CLEARED)
		let_go(s, m->cleared);
	else if (m->body_case == PB__WORKER__BODY_REPEATED)
		take_held(s->mapped, m->repeated->id, &call);
	else if (m->body_case == PB__WORKER__BODY_CONVERTED)
		on_converted(s);
}

static void on_gone(void *ctx, int status)
{
	struct session *s = ctx;

	worker_free(take_ptr(s->mapped->worker));
	if (s->state == SESSION_CLOSING)
		return;
	log_info("the converter was killed (status %#x): another goes on", status);
	restart_soon(s);
}

static const struct worker_ops worker_ops = {on_message, on_gone};

static void start(struct session *s)
{
	struct mapped *m = s->mapped;
	const struct world_config names_of = {
		.as_root = s->record->config->as_root, .mapped = &m->info};
	long notified[FILTER_MAX_NOTIFIED];
	struct worker_convert what = {.image = source(m),
		.listener = s->world.listener,
		.cookie = m->info.cookie,
		.pieces = m->pieces,
		.n_pieces = m->n_pieces,
		.notified = notified};
	struct err e = {0};

	what.world =
		introduce_world(&s->world, s->record->config);
	what.n_notified = filter_notified(&names_of, notified);
	if (worker_start_convert(&m->worker, s->loop, &what, &worker_ops, s, &e) < 0) {
		log_warn("%s", e.msg);
		restart_soon(s);
		return;
	}
	for (size_t i = 0; i < m->n_held; i++)
		tell_held(m, &m->held[i]);
	if (m->hurry)
		tell(m, PB__WORKER__BODY_HURRY, NULL);
}

void mapped_guard(struct session *s)
{
	if (s->mapped && s->mapped->n_pieces)
		notify_set_hold(s->notify, hold, s);
}

void mapped_begin(struct session *s)
{
	struct mapped *m = s->mapped;

	if (!m)
		return;
	if (m->n_pieces)
		start(s);
	else
		mapped_end(s);
}

/* Somebody can't be stopped: who waits for the end of it is told so. */
static void on_late(evutil_socket_t fd, short what, void *ctx)
{
	struct session *s = ctx;

	s->mapped->too_late = true;
	control_take_up(s);
}

int mapped_hurry(struct session *s, struct err *e)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct mapped *m = s->mapped;

	if (!hurry(m))
		return 0;
	if (m->too_late) {
		m->too_late = false;
		return err_set(e, ERR_UNFREEZABLE, -ETIMEDOUT,
			"memory is still mapped from its image: a task can't be stopped");
	}
	if (!m->late)
		m->late = event_new(s->loop, -1, 0, on_late, s);
	if (!m->late)
		return err_errno(e, -ENOMEM, "timer");
	if (!event_pending(m->late, EV_TIMEOUT, NULL))
		event_add(m->late, &patience);
	return 1;
}

void mapped_end(struct session *s)
{
	struct mapped *m = s->mapped;

	if (!m)
		return;
	worker_free(take_ptr(m->worker));
	if (m->restart)
		event_free(m->restart);
	if (m->late)
		event_free(m->late);
	if (m->expiry)
		event_free(m->expiry);
	m->restart = m->late = m->expiry = NULL;
	lease_give_up(take_ptr(m->lease));
	m->arrived = close_fd(m->arrived);
	if (s->notify)
		notify_set_hold(s->notify, NULL, NULL);
	for (size_t i = 0; i < m->n_held && s->notify && s->state != SESSION_CLOSING; i++)
		notify_again(s->notify, &m->held[i]);
	free(take_ptr(m->held));
	free(take_ptr(m->pieces));
	m->n_held = m->cap_held = m->n_pieces = 0;
}

void mapped_wait(struct session *s)
{
	if (s->mapped && s->mapped->lease)
		mapped_end(s);
}

void mapped_free(struct session *s)
{
	mapped_end(s);
	free(take_ptr(s->mapped));
}

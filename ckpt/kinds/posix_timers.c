// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * POSIX timers: /proc/PID/timers says which there are, timer_gettime from inside what is left.
 *
 * Their ids are the kernel's choice, but since 6.16 it can be told (PR_TIMER_CREATE_RESTORE_IDS).
 * Before, ids were given out in ascending order, so timers are made and deleted until the wanted
 * one comes. A timer that was set to a point in time goes on with what was left of it: whether it
 * was set so can't be seen.  Overruns that were already counted are lost.
 *
 * The clock of a thread or process (pthread_getcpuclockid(3)) is a number with a task's in it, as
 * the task that made the timer said it: where no namespace holds the names, the host's.  One whose
 * task has ended can't be had again; a timer of it, which never expires, comes back with the
 * maker's own, disarmed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/nested/build.h"
#include "ckpt/said.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

#define MAX_TIMERS 4096
#define MAX_TRIES  65536

#define CLOCK_OF_FILE 3 /* CLOCKFD of linux/posix-timers.h */

struct timers {
	Pb__PosixTimers m;
	Pb__PosixTimer *timers;
	Pb__PosixTimer **list;
};

static void timers_fini(struct timers *t)
{
	free(t->timers);
	free(t->list);
}

/* One field of /proc/PID/timers.  False at a line of something else. */
static bool parse_line(Pb__PosixTimer *t, const char *line)
{
	unsigned long long value;
	char how[32], what[16];
	int sig, pid, clock, id;

	if (sscanf(line, "ID: %d", &id) == 1) {
		pb__posix_timer__init(t);
		t->id = id;
	} else if (sscanf(line, "signal: %d/%llx", &sig, &value) == 2) {
		t->sig = sig;
		t->value = value;
	} else if (sscanf(line, "notify: %31[^/]/%15[^.].%d", how, what, &pid) == 3) {
		t->notify = !strcmp(how, "none") ? SIGEV_NONE : SIGEV_SIGNAL;
		if (!strcmp(what, "tid")) {
			t->notify |= SIGEV_THREAD_ID;
			t->tid = pid;
		}
	} else if (sscanf(line, "ClockID: %d", &clock) == 1) {
		t->clock = clock;
		return true;
	}
	return false;
}

static int by_id(const void *x, const void *y)
{
	const Pb__PosixTimer *a = x, *b = y;

	return a->id < b->id ? -1 : a->id > b->id;
}

static int parse(struct timers *t, char *text, struct err *e)
{
	char *save = NULL;
	size_t max = 1;

	for (const char *p = text; (p = strstr(p, "ID: ")); p++)
		max++;
	if (max > 2 * MAX_TIMERS)
		return err_set(e, ERR_UNFREEZABLE, -E2BIG, "too many timers");
	t->timers = calloc(max, sizeof(*t->timers));
	t->list = calloc(max, sizeof(*t->list));
	if (!t->timers || !t->list)
		return err_errno(e, -ENOMEM, "timers");
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!parse_line(&t->timers[t->m.n_timers], line))
			continue;
		t->list[t->m.n_timers] = &t->timers[t->m.n_timers];
		if (++t->m.n_timers == max)
			break;
	}
	sort_array(t->timers, t->m.n_timers, sizeof(*t->timers), by_id);
	t->m.timers = t->list;
	return 0;
}

/* The numbers of /proc's threads are the host's. */
static int name_threads(struct timers *t, const struct ckpt_proc *p, struct err *e)
{
	for (size_t i = 0; i < t->m.n_timers; i++) {
		Pb__PosixTimer *pt = &t->timers[i];
		pid_t vtid = 0;

		if (!(pt->notify & SIGEV_THREAD_ID))
			continue;
		for (size_t k = 0; k < p->n_threads; k++)
			if (p->threads[k]->tid == pt->tid)
				vtid = p->threads[k]->vtid;
		if (!vtid) { /* the thread has ended: nobody will ever be told */
			pt->notify = SIGEV_NONE;
			vtid = 0;
		}
		pt->tid = vtid;
	}
	return 0;
}

/* CPUCLOCK_PID of linux/posix-timers.h; 0: no other task's. */
static pid_t task_of_clock(int clock)
{
	return clock >= 0 || (clock & 7) == CLOCK_OF_FILE ? 0 : ~(clock >> 3);
}

static int with_task(int clock, pid_t task)
{
	return (int)(~(unsigned)task << 3 | ((unsigned)clock & 7));
}

static void name_clocks(struct timers *t, const struct ckpt_dump *d)
{
	for (size_t i = 0; i < t->m.n_timers; i++) {
		Pb__PosixTimer *pt = &t->timers[i];
		pid_t task = task_of_clock(pt->clock);

		if (task)
			pt->clock = with_task(pt->clock, ckpt_told_number(d, task));
	}
}

static int ask(struct timers *t, struct ckpt_proc *p, struct err *e)
{
	struct remote *remote;
	int r = ckpt_proc_remote(p, &remote, e);

	for (size_t from = 0; r == 0 && from < t->m.n_timers;) {
		struct itimerspec *room[REMOTE_MAX_CALLS];
		size_t n = 0;

		for (; n < REMOTE_MAX_CALLS && from + n < t->m.n_timers; n++) {
			uint64_t addr;

			room[n] = remote_data(remote, sizeof(*room[n]), &addr);
			remote_add(remote, SYS_timer_gettime, (uint64_t)t->timers[from + n].id,
				addr, 0, 0, 0, 0);
		}
		r = ckpt_run_all(remote, "timer_gettime", e);
		for (size_t i = 0; r == 0 && i < n; i++) {
			t->timers[from + i].left_ns = io_ns_of(room[i]->it_value);
			t->timers[from + i].interval_ns = io_ns_of(room[i]->it_interval);
		}
		from += n;
	}
	return r;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	_cleanup_(timers_fini) struct timers t = {.m = PB__POSIX_TIMERS__INIT};
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[32];
	int r;

	if (s.proc->state == CKPT_ZOMBIE)
		return 1;
	snprintf(path, sizeof(path), "%d/timers", s.proc->look);
	r = io_read_file(d->host_proc, path, 1 << 20, &text);
	if (r < 0)
		return err_errno(e, r, "/proc/%s", path);
	if (!text.len)
		return 1;
	if (!buf_cstr(&text))
		return err_errno(e, -ENOMEM, "timers");
	r = parse(&t, buf_cstr(&text), e);
	if (r == 0)
		r = name_threads(&t, s.proc, e);
	name_clocks(&t, d);
	if (r == 0)
		r = ask(&t, s.proc, e);
	return r < 0 ? r : ckpt_pack(&t.m.base, body, e);
}

/* As the kernel has to be told them. */
struct told {
	pid_t tid;
	int clock;
};

/* One timer_create; *ret_id is the id it got. */
static int create_once(struct remote *remote, const Pb__PosixTimer *t, const struct told *told,
	int *ret_id, struct err *e)
{
	struct sigevent sev = {0};
	uint64_t sev_addr, id_addr;
	int *id, r;

	sev.sigev_value.sival_ptr = (void *)t->value;
	sev.sigev_signo = t->sig;
	sev.sigev_notify = t->notify;
	memcpy((char *)&sev + 16, &told->tid, sizeof(told->tid)); /* sigev_notify_thread_id */
	sev_addr = remote_put(remote, &sev, sizeof(sev));
	id = remote_data(remote, sizeof(*id), &id_addr);
	*id = t->id;
	r = remote_must(remote, NULL, e, SYS_timer_create, (uint64_t)(int64_t)told->clock, sev_addr,
		id_addr, 0, 0, 0);
	if (r < 0)
		return err_wrap(e, "timer %d", t->id);
	*ret_id = *id;
	return 0;
}

static int create_timer(
	struct remote *remote, const Pb__PosixTimer *t, const struct told *told, struct err *e)
{
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		int id = -1, r = create_once(remote, t, told, &id, e);

		if (r < 0 || id == t->id)
			return r;
		r = remote_must(remote, NULL, e, SYS_timer_delete, (uint64_t)id, 0, 0, 0, 0, 0);
		if (r < 0)
			return r;
		if (id > t->id)
			break;
	}
	return err_set(e, ERR_HOST, -EOPNOTSUPP, "this kernel does not give timer id %d", t->id);
}

static int set_timer(struct remote *remote, const Pb__PosixTimer *t, struct err *e)
{
	struct itimerspec v = {io_timespec_of(t->interval_ns), io_timespec_of(t->left_ns)};

	if (!t->left_ns)
		return 0;
	return remote_must(remote, NULL, e, SYS_timer_settime, (uint64_t)t->id, 0,
		remote_put(remote, &v, sizeof(v)), 0, 0, 0);
}

/*
 * A clock that can't be had is one whose task has ended.  It is asked for: an attempt to make a
 * timer of it would take the timer's id on kernels before 6.16.
 */
static int replace_ended(
	struct remote *remote, const Pb__PosixTimer *t, struct told *told, struct err *e)
{
	long v;
	int r;

	if (t->left_ns || !task_of_clock(told->clock))
		return 0;
	r = remote_call(
		remote, &v, e, SYS_clock_getres, (uint64_t)(int64_t)told->clock, 0, 0, 0, 0, 0);
	if (r >= 0 && v == -EINVAL)
		told->clock = with_task(told->clock, 0);
	return MIN(r, 0);
}

static struct told tell(
	struct ckpt_build *b, const struct ckpt_record *rec, const Pb__PosixTimer *t)
{
	pid_t task = task_of_clock(t->clock);

	return (struct told){
		.tid = ckpt_nested_said(b, ckpt_record_thread(b, rec)->proc, t->tid),
		.clock = task ? with_task(t->clock, ckpt_said(b->world, task)) : t->clock,
	};
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__PosixTimers *m = pb__posix_timers__unpack(NULL, rec->len, rec->body);
	struct remote *remote = ckpt_record_remote(b, rec);
	long v;
	int r = 0;

	if (!m || !remote || m->n_timers > 2 * MAX_TIMERS)
		r = ckpt_record_bad(rec, e);
	for (size_t i = 0; r == 0 && i < m->n_timers; i++)
		if (m->timers[i]->id < 0 || m->timers[i]->left_ns < 0 ||
			m->timers[i]->interval_ns < 0 ||
			(i && m->timers[i]->id <= m->timers[i - 1]->id))
			r = ckpt_record_bad(rec, e);
	if (r == 0)
		r = remote_call(remote, &v, e, SYS_prctl, PR_TIMER_CREATE_RESTORE_IDS,
			PR_TIMER_CREATE_RESTORE_IDS_ON, 0, 0, 0, 0);
	for (size_t i = 0; r == 0 && i < m->n_timers; i++) {
		struct told told = tell(b, rec, m->timers[i]);

		r = replace_ended(remote, m->timers[i], &told, e);
		if (r == 0)
			r = create_timer(remote, m->timers[i], &told, e);
	}
	for (size_t i = 0; r == 0 && i < m->n_timers; i++)
		r = set_timer(remote, m->timers[i], e);
	if (r == 0)
		r = remote_call(remote, &v, e, SYS_prctl, PR_TIMER_CREATE_RESTORE_IDS,
			PR_TIMER_CREATE_RESTORE_IDS_OFF, 0, 0, 0, 0);
	pb__posix_timers__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__PosixTimers *m = pb__posix_timers__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_timers; i++)
		fprintf(out, "%s%d: clock %d, %lld ns left", i ? ", " : "", m->timers[i]->id,
			m->timers[i]->clock, (long long)m->timers[i]->left_ns);
	pb__posix_timers__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_posix_timers = {
	.number = PROTO_KIND_POSIX_TIMERS,
	.name = "posix-timers",
	.scope = CKPT_PROC,
	.dump = dump,
	.finish = finish,
	.show = show,
};

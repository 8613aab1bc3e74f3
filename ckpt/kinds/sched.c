// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scheduling of a thread: nice, policy, CPUs, io priority; and its personality.
 *
 * The slice of an ordinary policy (sched_runtime, Linux 6.12) is told also of who has not asked for
 * one, and is the host's then: which is what pid 1 has.
 *
 * What this host does not grant (a lower nice value, a real-time policy, CPUs it does not have) is
 * left as it is: a session goes on slower rather than not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/personality.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

#define MASK_BYTES	   1024 /* 8192 CPUs */
#define IOPRIO_WHO_PROCESS 1

/* linux/sched/types.h, first version */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
#define ATTR_RESET_ON_FORK 1

static int read_personality(int host_proc, pid_t tid, uint32_t *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%d/personality", tid);
	r = io_read_file(host_proc, path, 64, &text);
	if (r < 0 || !buf_cstr(&text))
		return r < 0 ? r : -ENOMEM;
	*ret = (uint32_t)strtoul(buf_cstr(&text), NULL, 16);
	return 0;
}

/* The CPUs of @tid, unless they are all that pid 1 has: then nobody asked for them. */
static long read_affinity(const struct ckpt_dump *d, pid_t tid, uint8_t mask[MASK_BYTES])
{
	uint8_t all[MASK_BYTES] = {0};
	long n = syscall(SYS_sched_getaffinity, tid, MASK_BYTES, mask);
	long k = syscall(SYS_sched_getaffinity, d->world->init_pid, sizeof(all), all);

	if (n < 0 || (n == k && !memcmp(mask, all, (size_t)n)))
		return 0;
	while (n && !mask[n - 1])
		n--;
	return n;
}

/* What the thread has asked for, or 0. */
static uint64_t read_slice(const struct ckpt_dump *d, const struct attr *a)
{
	struct attr usual = {.size = sizeof(usual)};

	if ((a->policy != SCHED_OTHER && a->policy != SCHED_BATCH) ||
		syscall(SYS_sched_getattr, d->world->init_pid, &usual, sizeof(usual), 0) < 0)
		return 0;
	return a->runtime != usual.runtime ? a->runtime : 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__Sched m = PB__SCHED__INIT;
	uint8_t mask[MASK_BYTES] = {0};
	struct attr a = {.size = sizeof(a)};
	pid_t tid = s.thread->tid;
	long n;
	int r;

	if (s.thread->proc->state == CKPT_ZOMBIE)
		return 1;
	if (syscall(SYS_sched_getattr, tid, &a, sizeof(a), 0) < 0)
		return err_errno(e, -errno, "sched_getattr");
	m.policy = (int)a.policy;
	m.nice = a.nice;
	m.priority = a.priority;
	m.reset_on_fork = a.flags & ATTR_RESET_ON_FORK;
	if (a.policy != SCHED_OTHER && a.policy != SCHED_BATCH)
		m.nice = (int)s.thread->status.nice;
	m.slice_ns = read_slice(d, &a);
	n = read_affinity(d, tid, mask);
	m.affinity.len = (size_t)n;
	m.affinity.data = mask;
	n = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, tid);
	m.ioprio = n > 0 ? (int)n : 0;
	r = read_personality(d->host_proc, tid, &m.personality);
	if (r < 0)
		return err_errno(e, r, "personality");
	return ckpt_pack(&m.base, body, e);
}

/* Those of its CPUs which are here: they are set at the very end (ckpt/restore/restore.c). */
static int choose_cpus(const struct ckpt_build *b, const Pb__Sched *m, struct ckpt_build_thread *t,
	struct err *e)
{
	bool any = false;

	if (!m->affinity.len)
		return 0;
	t->cpus = calloc(1, sizeof(*t->cpus));
	if (!t->cpus)
		return err_errno(e, -ENOMEM, "CPUs");
	for (size_t i = 0; i < CPU_SETSIZE; i++) {
		if (i / 8 >= m->affinity.len || !(m->affinity.data[i / 8] & (1 << i % 8)) ||
			!CPU_ISSET(i, &b->cpus))
			continue;
		CPU_SET(i, t->cpus);
		any = true;
	}
	if (!any) {
		log_info("thread %d may use other CPUs than before", t->vtid);
		free(take_ptr(t->cpus));
	}
	return 0;
}

/*
 * A blank task has pid 1's, and that has ours; one that has executed its program may have got
 * another.
 */
static int read_blank(const struct ckpt_build *b, const struct ckpt_build_thread *t, uint32_t *ret)
{
	if (b->world->names)
		return read_personality(b->host_proc, t->tid, ret);
	*ret = (uint32_t)personality(0xffffffff);
	return 0;
}

/* Container engines allow some. */
static int set_personality(struct remote *remote, uint32_t personality, struct err *e)
{
	long v;
	int r = remote_call(remote, &v, e, SYS_personality, personality, 0, 0, 0, 0, 0);

	if (r < 0 || v >= 0)
		return r;
	return err_set(e, ERR_HOST, (int)v, "this host does not allow personality %#x", personality);
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Sched *m = pb__sched__unpack(NULL, rec->len, rec->body);
	struct ckpt_build_thread *t = ckpt_record_thread(b, rec);
	struct attr a = {.size = sizeof(a)};
	uint32_t now;
	int r = 0;

	if (!m || !t) {
		r = ckpt_record_bad(rec, e);
		goto out;
	}
	r = choose_cpus(b, m, t, e);
	if (r < 0)
		goto out;
	a.policy = (uint32_t)m->policy;
	a.flags = m->reset_on_fork ? ATTR_RESET_ON_FORK : 0;
	a.nice = m->nice;
	a.priority = m->priority;
	a.runtime = m->slice_ns;
	if ((m->policy != SCHED_OTHER || m->nice || m->reset_on_fork || m->slice_ns) &&
		syscall(SYS_sched_setattr, t->tid, &a, 0) < 0)
		log_info("thread %d keeps this host's priority: %s", t->vtid, strerror(errno));
	if (m->ioprio && syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, t->tid, m->ioprio) < 0)
		log_info("thread %d keeps this host's io priority: %s", t->vtid, strerror(errno));
	r = read_blank(b, t, &now);
	if (r < 0)
		r = err_errno(e, r, "personality");
	else if (m->personality != now)
		r = set_personality(t->remote, m->personality, e);
out:
	pb__sched__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Sched *m = pb__sched__unpack(NULL, len, body);

	if (m)
		fprintf(out, "policy %d nice %d%s", m->policy, m->nice,
			m->affinity.len ? " on some CPUs" : "");
	pb__sched__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_sched = {
	.number = PROTO_KIND_SCHED,
	.name = "sched",
	.scope = CKPT_THREAD,
	.dump = dump,
	.apart = true,
	.finish = finish,
	.show = show,
};

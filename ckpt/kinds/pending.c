// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pending signals, those of a process and those of a thread.
 *
 * ptrace(2) lets their siginfo be read; only the task itself may queue one with a code that says it
 * came from the kernel or from somebody else.  All signals are blocked while it does.  Before that,
 * whatever the rebuilding itself has left in the queue (SIGCHLD of zombies) is taken out. SIGSTOP
 * can't be blocked, so it is sent by the builder at the very end (ckpt/restore/restore.c).  For the
 * same reason our own calls in a task may have taken it from the queue by the time that this is
 * read (it is let through, or sent again when they are over, ckpt/remote): /proc had told of it
 * before.  Of all others it had told too early: timers go on while a session stands still, and it
 * may be paused for days.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/nested/build.h"
#include "ckpt/said.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

#define SIGINFO_SIZE 128
#define MAX_PENDING  4096 /* of one queue; RLIMIT_SIGPENDING is per user and seldom higher */
#define MAX_DRAIN    256

static_assert(sizeof(siginfo_t) == SIGINFO_SIZE, "siginfo_t");

static int read_queue(pid_t tid, bool shared, struct buf *ret, struct err *e)
{
	struct __ptrace_peeksiginfo_args args = {
		.flags = shared ? PTRACE_PEEKSIGINFO_SHARED : 0, .nr = 32};

	for (;;) {
		void *room = buf_reserve(ret, (size_t)args.nr * SIGINFO_SIZE);
		long n;

		if (!room)
			return err_errno(e, -ENOMEM, "pending signals");
		n = ptrace(PTRACE_PEEKSIGINFO, tid, &args, room);
		if (n < 0)
			return err_errno(e, -errno, "pending signals");
		if (n == 0)
			return 0;
		ret->len += (size_t)n * SIGINFO_SIZE;
		args.off += (uint64_t)n;
		if (args.off > MAX_PENDING)
			return err_set(e, ERR_UNFREEZABLE, -E2BIG, "more than %d pending signals",
				MAX_PENDING);
	}
}

static int pack(const struct buf *queue, struct buf *body, struct err *e)
{
	Pb__Pending m = PB__PENDING__INIT;
	_cleanup_free_ ProtobufCBinaryData *list = NULL;
	size_t n = queue->len / SIGINFO_SIZE;

	if (!n)
		return 1;
	list = calloc(n, sizeof(*list));
	if (!list)
		return err_errno(e, -ENOMEM, "pending signals");
	for (size_t i = 0; i < n; i++)
		list[i] = (ProtobufCBinaryData){SIGINFO_SIZE, queue->data + i * SIGINFO_SIZE};
	m.n_siginfo = n;
	m.siginfo = list;
	return ckpt_pack(&m.base, body, e);
}

/* As the session is to see them. */
static void rename_senders(const struct ckpt_dump *d, struct buf *queue)
{
	const struct ckpt_names *names = d->world->names;

	for (size_t at = 0; names && at + SIGINFO_SIZE <= queue->len; at += SIGINFO_SIZE) {
		siginfo_t info;

		memcpy(&info, queue->data + at, sizeof(info));
		names->signal(names->ctx, &info);
		memcpy(queue->data + at, &info, sizeof(info));
	}
}

/* @pending: what was in the queue before any call of ours. */
static void put_taken_stop(struct buf *queue, uint64_t pending)
{
	const siginfo_t stop = {.si_signo = SIGSTOP};
	int sig;

	if (!(pending & 1ULL << (SIGSTOP - 1)))
		return;
	for (size_t at = 0; at + SIGINFO_SIZE <= queue->len; at += SIGINFO_SIZE) {
		memcpy(&sig, queue->data + at, sizeof(sig));
		if (sig == SIGSTOP)
			return;
	}
	buf_put(queue, &stop, sizeof(stop));
}

static int dump_queue(struct ckpt_dump *d, pid_t tid, bool shared, uint64_t pending,
	struct buf *body, struct err *e)
{
	_cleanup_buf_ struct buf queue = BUF_INIT;
	int r = read_queue(tid, shared, &queue, e);

	if (r < 0)
		return r;
	put_taken_stop(&queue, pending);
	if (buf_error(&queue) < 0)
		return err_errno(e, -ENOMEM, "pending signals");
	rename_senders(d, &queue);
	return pack(&queue, body, e);
}

static int dump_process(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	if (s.proc->state == CKPT_ZOMBIE)
		return 1;
	return dump_queue(
		d, s.proc->threads[0]->tid, true, s.proc->status.shared_pending, body, e);
}

static int dump_thread(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	if (s.thread->proc->state == CKPT_ZOMBIE)
		return 1;
	return dump_queue(d, s.thread->tid, false, s.thread->status.sig_pending, body, e);
}

/* Costs no stop, unlike asking the task; and mostly there is nothing. */
static bool is_empty(pid_t tid)
{
	char room[SIGINFO_SIZE];

	for (unsigned shared = 0; shared < 2; shared++) {
		struct __ptrace_peeksiginfo_args args = {
			.flags = shared ? PTRACE_PEEKSIGINFO_SHARED : 0, .nr = 1};

		if (ptrace(PTRACE_PEEKSIGINFO, tid, &args, room) != 0)
			return false;
	}
	return true;
}

int ckpt_pending_drain(struct remote *remote, struct err *e)
{
	uint64_t all = ~0UL;
	struct timespec none = {0};
	long v;

	for (int i = 0; i < MAX_DRAIN && !is_empty(remote_tid(remote)); i++) {
		uint64_t mask = remote_put(remote, &all, sizeof(all));
		uint64_t zero = remote_put(remote, &none, sizeof(none));
		int r = remote_call(remote, &v, e, SYS_rt_sigtimedwait, mask, 0, zero, 8, 0, 0);

		if (r < 0)
			return r;
		if (v == -EAGAIN)
			return err_set(e, ERR_FAILED, -EBUSY, "a signal can't be taken");
	}
	return is_empty(remote_tid(remote)) ? 0
					    : err_set(e, ERR_FAILED, -EBUSY, "signals keep coming");
}

static int queue_one(struct ckpt_build *b, struct remote *remote,
	const struct ckpt_build_thread *t, bool shared, const ProtobufCBinaryData *info,
	struct err *e)
{
	pid_t process = ckpt_nested_said(b, t->proc, t->proc->vpid);
	siginfo_t si;
	uint64_t addr;
	long v;

	memcpy(&si, info->data, sizeof(si));
	if (si.si_signo < 1 || si.si_signo > 64)
		return err_set(e, ERR_IMAGE, -EINVAL, "pending signal %d", si.si_signo);
	if (si.si_signo == SIGKILL)
		return 0;
	if (si.si_signo == SIGSTOP) {
		t->proc->stop_pending = true;
		return 0;
	}
	if (b->world->names)
		b->world->names->queued(b->world->names->ctx, &si);
	addr = remote_put(remote, &si, sizeof(si));
	if (shared)
		return remote_must(remote, &v, e, SYS_rt_sigqueueinfo,
			(uint64_t)process, (uint64_t)si.si_signo, addr, 0, 0, 0);
	return remote_must(remote, &v, e, SYS_rt_tgsigqueueinfo,
		(uint64_t)process, (uint64_t)ckpt_nested_said(b, t->proc, t->vtid),
		(uint64_t)si.si_signo, addr, 0, 0);
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Pending *m = pb__pending__unpack(NULL, rec->len, rec->body);
	struct ckpt_build_thread *t = ckpt_record_thread(b, rec);
	int r = 0;

	if (!m || !t || m->n_siginfo > MAX_PENDING + 32)
		r = ckpt_record_bad(rec, e);
	for (size_t i = 0; r >= 0 && i < m->n_siginfo; i++) {
		if (m->siginfo[i].len != SIGINFO_SIZE)
			r = ckpt_record_bad(rec, e);
		else
			r = queue_one(b, t->remote, t, rec->kind->scope == CKPT_PROC,
				&m->siginfo[i], e);
	}
	pb__pending__free_unpacked(m, NULL);
	return MIN(r, 0);
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Pending *m = pb__pending__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_siginfo; i++) {
		int sig = 0;

		if (m->siginfo[i].len >= sizeof(sig))
			memcpy(&sig, m->siginfo[i].data, sizeof(sig));
		fprintf(out, "%s%d", i ? " " : "", sig);
	}
	pb__pending__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_pending = {
	.number = PROTO_KIND_PENDING,
	.name = "pending",
	.scope = CKPT_PROC,
	.dump = dump_process,
	.finish = finish,
	.show = show,
};

const struct ckpt_kind ckpt_kind_tpending = {
	.number = PROTO_KIND_TPENDING,
	.name = "tpending",
	.scope = CKPT_THREAD,
	.dump = dump_thread,
	.finish = finish,
	.show = show,
};

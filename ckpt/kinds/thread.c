// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A thread: its registers, and what the kernel keeps for it at addresses of its memory.
 *
 * Dump reads registers as they were when the thread was stopped; what only the thread itself can
 * ask for comes in one batch.  A thread inside a restartable sequence is recorded at the abort
 * handler of that: it may go on on another CPU.  Restore is the last kind of all: the addresses
 * mean something only when memory is there, and the registers are loaded when the executor leaves.
 */
#include <asm/prctl.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/freeze/restart.h"
#include "ckpt/kinds/ask.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/kinds/tcp_repair.h"
#include "ckpt/lend.h"
#include "ckpt/remote/i386.h"
#include "ckpt/sigframe.h"
#include "ckpt/survey/survey.h"
#include "ckpt/xstate.h"
#include "proto/tasks.pb-c.h"

#define NAME_LEN     16
#define N_REGS	     27
#define USER_END     0x800000000000ULL
#define ALTSTACK_KEPT (SS_DISABLE | (int)(1U << 31)) /* SS_AUTODISARM */
#define ERESTARTSYS    512 /* linux/errno.h of the kernel */
#define ERESTARTNOINTR 513

static_assert(sizeof(struct user_regs_struct) == N_REGS * 8, "registers");

/* linux/rseq.h */
struct rseq_cs {
	uint32_t version, flags;
	uint64_t start, length, abort;
};
#define RSEQ_AT_CS 8

static void leave_rseq(struct remote *r, uint64_t rseq, struct user_regs_struct *regs)
{
	struct rseq_cs cs;
	uint64_t at;

	if (remote_peek(r, rseq + RSEQ_AT_CS, &at, sizeof(at), NULL) < 0 || !at ||
		remote_peek(r, at, &cs, sizeof(cs), NULL) < 0)
		return;
	if (regs->rip - cs.start >= cs.length)
		return;
	regs->rip = cs.abort;
	regs->orig_rax = (unsigned long long)-1;
}

/* ---- segments of 32-bit code's thread storage ------------------------------------------------ */

/* asm/ldt.h; asm/segment.h */
struct user_desc {
	uint32_t entry, base, limit, flags;
};
#define FIRST_TLS 12
#define N_TLS	  3
#define TLS_EMPTY 0x28 /* read_exec_only, seg_not_present */

struct segments {
	Pb__TlsSegment all[N_TLS], *list[N_TLS];
	size_t n;
};

/* A 64-bit program may have some, too, by int 0x80.  A kernel without 32-bit programs has none. */
static void get_segments(pid_t tid, struct segments *s)
{
	for (uint32_t i = FIRST_TLS; i < FIRST_TLS + N_TLS; i++) {
		Pb__TlsSegment *m = &s->all[s->n];
		struct user_desc d;

		if (ptrace(PTRACE_GET_THREAD_AREA, tid, i, &d) < 0 ||
			(!d.base && !d.limit && d.flags == TLS_EMPTY))
			continue;
		pb__tls_segment__init(m);
		m->entry = i;
		m->address = d.base;
		m->limit = d.limit;
		m->flags = d.flags;
		s->list[s->n++] = m;
	}
}

static int set_segments(pid_t tid, const Pb__Thread *m, struct err *e)
{
	for (size_t i = 0; i < m->n_tls; i++) {
		const Pb__TlsSegment *s = m->tls[i];
		struct user_desc d = {s->entry, s->address, s->limit, s->flags};

		if (s->entry < FIRST_TLS || s->entry >= FIRST_TLS + N_TLS)
			return err_set(e, ERR_IMAGE, -EBADMSG, "a segment that is nobody's");
		if (ptrace(PTRACE_SET_THREAD_AREA, tid, s->entry, &d) < 0)
			return err_errno(e, -errno, "segment %u of thread storage", s->entry);
	}
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	struct ckpt_thread *t = s.thread;
	struct user_regs_struct regs = t->regs;
	struct __ptrace_rseq_configuration rseq = {0};
	_cleanup_free_ void *xstate = NULL;
	Pb__Thread m = PB__THREAD__INIT;
	Pb__Rseq mr = PB__RSEQ__INIT;
	struct segments segments = {0};
	struct remote *r;
	const struct ckpt_asked *a;
	char name[NAME_LEN + 1] = "";
	int rc;

	if (t->proc->state == CKPT_ZOMBIE)
		return 1;
	rc = ckpt_thread_remote(t, &r, e);
	if (rc == 0)
		rc = ckpt_ask(t, &a, e);
	if (rc == 0)
		rc = ckpt_xstate_dump(t->tid, &m, &xstate, e);
	if (rc < 0)
		return rc;
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(rseq), &rseq) > 0 &&
		rseq.rseq_abi_pointer) {
		mr.address = rseq.rseq_abi_pointer;
		mr.length = rseq.rseq_abi_size;
		mr.signature = rseq.signature;
		m.rseq = &mr;
		leave_rseq(r, mr.address, &regs);
	}
	/* The thread itself, should it run on, must not see its call fail either. */
	ckpt_restart_note(&regs);
	ckpt_restart_note(remote_regs(r));
	m.regs = (ProtobufCBinaryData){sizeof(regs), (uint8_t *)&regs};
	m.sigmask = *remote_sigmask(r);
	m.altstack_address = (uint64_t)a->altstack.ss_sp;
	m.altstack_size = a->altstack.ss_size;
	m.altstack_flags = (uint32_t)(a->altstack.ss_flags & ALTSTACK_KEPT);
	m.robust_list = a->robust;
	m.robust_list_length = a->robust_length;
	m.robust_list_i386 = a->robust_i386;
	m.robust_list_i386_length = a->robust_i386_length;
	get_segments(t->tid, &segments);
	m.tls = segments.list;
	m.n_tls = segments.n;
	m.clear_child_tid = a->tid_address;
	m.timer_slack_ns = a->timer_slack;
	m.pdeathsig = a->pdeathsig;
	m.tsc = a->tsc != PR_TSC_ENABLE ? (uint32_t)a->tsc : 0;
	m.mce_kill = a->mce_kill != PR_MCE_KILL_DEFAULT ? 1 + (uint32_t)a->mce_kill : 0;
	m.no_cpuid = !a->cpuid;
	memcpy(name, a->name, NAME_LEN);
	m.name = name;
	m.asleep_ns = t->asleep_ns;
	return ckpt_pack(&m.base, body, e);
}

/* Of a selector the kernel takes 16 bits, and none of more rights than a user's. */
static bool is_users(unsigned long long selector)
{
	return (selector & 0xffff) == 0 || (selector & 3) == 3;
}

/* False of registers that the kernel would refuse, or that lead out of user space. */
static bool sane(const struct user_regs_struct *g)
{
	if (i386_runs(g) && (g->rip >= END_32 || g->rsp >= END_32))
		return false;
	return (g->cs == CODE_64 || g->cs == CODE_32) && (g->ss & 0xffff) && is_users(g->ss) && is_users(g->ds) &&
	       is_users(g->es) && is_users(g->fs) && is_users(g->gs) && g->rip < USER_END &&
	       g->fs_base < USER_END - PAGE_SIZE && g->gs_base < USER_END - PAGE_SIZE;
}

static int tell(struct ckpt_build *b, struct ckpt_build_thread *t, const Pb__Thread *m,
	struct err *e)
{
	struct remote *r = t->remote;
	stack_t ss = {
		.ss_sp = (void *)m->altstack_address,
		.ss_flags = (int)m->altstack_flags & ALTSTACK_KEPT,
		.ss_size = m->altstack_size,
	};
	char name[NAME_LEN] = "";

	strncpy(name, m->name, NAME_LEN - 1);
	remote_add(r, SYS_prctl, PR_SET_NAME, remote_put(r, name, sizeof(name)), 0, 0, 0, 0);
	remote_add(r, SYS_prctl, PR_SET_TIMERSLACK, m->timer_slack_ns, 0, 0, 0, 0);
	remote_add(r, SYS_sigaltstack, remote_put(r, &ss, sizeof(ss)), 0, 0, 0, 0, 0);
	if (m->robust_list)
		remote_add(r, SYS_set_robust_list, m->robust_list, m->robust_list_length, 0, 0, 0,
			0);
	if (m->robust_list_i386)
		remote_add_i386(r, I386_SET_ROBUST_LIST, m->robust_list_i386,
			m->robust_list_i386_length, 0, 0);
	remote_add(r, SYS_set_tid_address, m->clear_child_tid, 0, 0, 0, 0, 0);
	if (m->rseq)
		remote_add(r, SYS_rseq, m->rseq->address, m->rseq->length, 0, m->rseq->signature,
			0, 0);
	if (m->pdeathsig)
		remote_add(r, SYS_prctl, PR_SET_PDEATHSIG, (uint64_t)m->pdeathsig, 0, 0, 0, 0);
	if (t == t->proc->threads)
		ckpt_lend_end(b, t->proc);
	if (ckpt_run_all(r, "state of a thread", e) == 0)
		return 0;
	/* an alternate stack too small for anything */
	return e->error == -ENOMEM ? err_reclass(e, ERR_IMAGE) : e->error;
}

/* What few threads have asked for. */
static int tell_rare(struct remote *r, const Pb__Thread *m, struct err *e)
{
	int k, cpuid = -1;

	if (!m->tsc && !m->mce_kill && !m->no_cpuid)
		return 0;
	if (m->tsc)
		remote_add(r, SYS_prctl, PR_SET_TSC, m->tsc, 0, 0, 0, 0);
	if (m->mce_kill)
		remote_add(r, SYS_prctl, PR_MCE_KILL, PR_MCE_KILL_SET, m->mce_kill - 1, 0, 0, 0);
	if (m->no_cpuid)
		cpuid = remote_add(r, SYS_arch_prctl, ARCH_SET_CPUID, 0, 0, 0, 0, 0);
	k = remote_run(r, false, e);
	if (k == 0 && cpuid >= 0 && remote_result(r, cpuid) < 0)
		log_info("task %d: this CPU can't be kept from telling what it is", remote_tid(r));
	return k;
}

/*
 * A connect(2) that had been answered when its thread was frozen, which had not seen it yet.  Made
 * again it would be told of success by the kernel that it waited in, and that it is connected
 * already (EISCONN) by this one, in which the socket never was on its way.
 */
static void end_connect(const struct ckpt_build_thread *t, struct user_regs_struct *g)
{
	_cleanup_close_ int pidfd = -1, fd = -1;
	bool again = (long)g->rax == -ERESTARTSYS || (long)g->rax == -ERESTARTNOINTR;
	int state;

	if (!again || i386_runs(g) || g->orig_rax != SYS_connect)
		return;
	pidfd = sys_pidfd_open(t->proc->pid, 0);
	fd = pidfd < 0 ? -1 : sys_pidfd_getfd(pidfd, (int)g->rdi);
	state = fd < 0 ? -1 : tcp_repair_state(fd);
	if (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT)
		return;
	g->rax = 0;
	g->orig_rax = (unsigned long long)-1;
}

static int restore_extended(struct ckpt_build *b, const struct ckpt_build_thread *t,
	const Pb__Thread *m, uint64_t sp, struct err *e)
{
	struct ckpt_sigframes *frames = b->kind_state[PROTO_KIND_CPU];
	int r = ckpt_xstate_restore(t->tid, m, b->xcr0, e);

	if (r == 0 && frames) {
		r = ckpt_sigframes_mend(&frames, t->tid, (uint64_t)t->proc->mm, sp, e);
		b->kind_state[PROTO_KIND_CPU] = frames;
	}
	if (r == 0 || !e || e->class != ERR_HOST)
		return r;
	if (b->portable)
		return err_hint(e, "a program has asked the CPU itself for what it has, which "
				   "--portable can't hide: it can go only where there is as much");
	return err_hint(e, "podrun run --portable keeps programs from using them");
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Thread *m = pb__thread__unpack(NULL, rec->len, rec->body);
	struct ckpt_build_thread *t = ckpt_record_thread(b, rec);
	struct user_regs_struct regs;
	int r = 0;

	if (!m || !t || m->regs.len != sizeof(regs))
		r = ckpt_record_bad(rec, e);
	if (r == 0) {
		memcpy(&regs, m->regs.data, sizeof(regs));
		if (!sane(&regs) || ((i386_runs(&regs) || m->robust_list_i386) && !b->i386))
			r = ckpt_record_bad(rec, e);
	}
	if (r == 0)
		r = tell(b, t, m, e);
	if (r == 0)
		r = tell_rare(t->remote, m, e);
	if (r == 0)
		r = set_segments(t->tid, m, e);
	if (r == 0)
		r = restore_extended(b, t, m, regs.rsp, e);
	if (r == 0) {
		ckpt_restart_resume(t->remote, &regs, m->asleep_ns);
		end_connect(t, &regs);
		*remote_regs(t->remote) = regs;
		*remote_sigmask(t->remote) = m->sigmask;
	}
	pb__thread__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Thread *m = pb__thread__unpack(NULL, len, body);
	struct user_regs_struct g = {0};

	if (m && m->regs.len == sizeof(g)) {
		memcpy(&g, m->regs.data, sizeof(g));
		fprintf(out, "%s%s rip %llx", m->name, i386_runs(&g) ? " (32-bit)" : "", g.rip);
		if ((long)g.orig_rax >= 0)
			fprintf(out, " in system call %lld", (long long)g.orig_rax);
	}
	pb__thread__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_thread = {
	.number = PROTO_KIND_THREAD,
	.name = "thread",
	.scope = CKPT_THREAD,
	.dump = dump,
	.finish = finish,
	.show = show,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What prctl(2) sets on a process and nothing else records: the table of options in ask.c.
 * Attributes of threads (name, pdeathsig, timer slack) are of kind THREAD, those of rights of kind
 * CREDS. With them go three that are set elsewhere: membarrier(2) registrations, and the files
 * oom_score_adj and coredump_filter of /proc/PID.
 */
#include <sys/prctl.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/ask.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

static long read_number(int host_proc, pid_t pid, const char *name, int base)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[48];

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	if (io_read_file(host_proc, path, 64, &text) < 0 || !buf_cstr(&text))
		return 0;
	return strtol(buf_cstr(&text), NULL, base);
}

static void write_number(int host_proc, pid_t pid, const char *name, long value)
{
	char path[48], text[24];

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	snprintf(text, sizeof(text), "%ld", value);
	if (io_write_str(host_proc, path, text) < 0)
		log_info("task %d keeps this host's %s", pid, name);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__Prctl m = PB__PRCTL__INIT;
	Pb__PrctlValue values[CKPT_N_PRCTL], *list[CKPT_N_PRCTL];
	const struct ckpt_asked *asked;
	int r;

	if (s.proc->state == CKPT_ZOMBIE)
		return 1;
	r = ckpt_ask_proc(s.proc, &asked, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < CKPT_N_PRCTL; i++) {
		const struct ckpt_prctl_option *o = &ckpt_prctl_options[i];
		Pb__PrctlValue *v = &values[m.n_values];

		if (asked->prctl[i] < 0 || asked->prctl[i] == o->standard)
			continue;
		pb__prctl_value__init(v);
		v->option = o->set;
		v->value = (uint64_t)asked->prctl[i];
		list[m.n_values++] = v;
	}
	m.values = list;
	m.membarrier = asked->membarrier;
	m.oom_score_adj = (int)read_number(d->host_proc, s.proc->look, "oom_score_adj", 10);
	m.coredump_filter =
		(uint32_t)read_number(d->host_proc, s.proc->look, "coredump_filter", 16);
	return ckpt_pack(&m.base, body, e);
}

static bool known(int set)
{
	for (size_t i = 0; i < CKPT_N_PRCTL; i++)
		if (ckpt_prctl_options[i].set == set)
			return true;
	return false;
}

/* In one batch; what this kernel does not have is done without. */
static int tell(struct remote *remote, const Pb__Prctl *m, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->n_values; i++) {
		uint64_t value = m->values[i]->value, flags = 0;

		/* Linux 6.18: what is set by two arguments is told in one number. */
		if (m->values[i]->option == PR_SET_THP_DISABLE) {
			flags = value & ~1ULL;
			value &= 1;
		}
		r = remote_add(remote, SYS_prctl, (uint64_t)m->values[i]->option, value, flags, 0,
			0, 0);
	}
	for (int i = 0; r >= 0 && i < 32; i++)
		if (m->membarrier & (1U << i))
			r = remote_add(remote, SYS_membarrier, 1UL << i, 0, 0, 0, 0, 0);
	if (r < 0)
		return err_errno(e, r, "prctl");
	r = remote_run(remote, false, e);
	for (size_t i = 0; r == 0 && i < m->n_values; i++)
		if (remote_result(remote, (int)i) < 0)
			log_info("task %d: prctl %d is not to be had here", remote_tid(remote),
				m->values[i]->option);
	return r;
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Prctl *m = pb__prctl__unpack(NULL, rec->len, rec->body);
	struct remote *remote = ckpt_record_remote(b, rec);
	int r = 0;

	if (!m || !remote || m->n_values > CKPT_N_PRCTL)
		r = ckpt_record_bad(rec, e);
	for (size_t i = 0; r == 0 && i < m->n_values; i++)
		if (!known(m->values[i]->option))
			r = ckpt_record_bad(rec, e);
	if (r == 0)
		r = tell(remote, m, e);
	if (r == 0 && m->oom_score_adj)
		write_number(b->host_proc, remote_tid(remote), "oom_score_adj", m->oom_score_adj);
	if (r == 0 && m->coredump_filter)
		write_number(b->host_proc, remote_tid(remote), "coredump_filter",
			m->coredump_filter);
	pb__prctl__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Prctl *m = pb__prctl__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_values; i++)
		fprintf(out, "%s%d=%llu", i ? " " : "", m->values[i]->option,
			(unsigned long long)m->values[i]->value);
	pb__prctl__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_prctl = {
	.number = PROTO_KIND_PRCTL,
	.name = "prctl",
	.scope = CKPT_PROC,
	.dump = dump,
	.finish = finish,
	.show = show,
};

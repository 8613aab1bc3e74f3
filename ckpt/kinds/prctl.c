// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What prctl(2) sets on a process and nothing else records: one table of options.  Attributes of
 * threads (name, pdeathsig, timer slack) are of kind THREAD, those of rights of kind CREDS.
 * With them go three that are set elsewhere: membarrier(2) registrations, and the files
 * oom_score_adj and coredump_filter of /proc/PID.
 */
#include <linux/prctl.h>
#include <sys/prctl.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/survey.h"
#include "proto/tasks.pb-c.h"

/* linux/prctl.h, 6.3 and 6.4 */
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif

static const struct option {
	int set, get;
	bool by_pointer; /* the getter writes an int where its argument points */
	int standard;	 /* value that needs no record */
} options[] = {
	{PR_SET_DUMPABLE, PR_GET_DUMPABLE, false, -1},
	{PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER, true, 0},
	{PR_SET_THP_DISABLE, PR_GET_THP_DISABLE, false, 0},
	{PR_SET_TSC, PR_GET_TSC, true, PR_TSC_ENABLE},
	{PR_SET_MEMORY_MERGE, PR_GET_MEMORY_MERGE, false, 0},
	{PR_SET_MDWE, PR_GET_MDWE, false, 0},
};

/* linux/membarrier.h, 6.3 */
#define GET_REGISTRATIONS (1 << 9)

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
	Pb__PrctlValue values[ARRAY_SIZE(options)], *list[ARRAY_SIZE(options)];
	int *room[ARRAY_SIZE(options)];
	struct remote *remote;
	long bits;
	int r;

	if (s.proc->state == CKPT_ZOMBIE)
		return 1;
	r = ckpt_proc_remote(s.proc, &remote, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		uint64_t addr;

		room[i] = remote_data(remote, sizeof(uint64_t), &addr);
		remote_add(remote, SYS_prctl, (uint64_t)options[i].get,
			options[i].by_pointer ? addr : 0, 0, 0, 0, 0);
	}
	remote_add(remote, SYS_membarrier, GET_REGISTRATIONS, 0, 0, 0, 0, 0);
	r = remote_run(remote, false, e);
	if (r < 0)
		return r;
	bits = remote_result(remote, ARRAY_SIZE(options));
	m.membarrier = bits > 0 ? (uint32_t)bits : 0;
	m.oom_score_adj = (int)read_number(d->host_proc, s.proc->pid, "oom_score_adj", 10);
	m.coredump_filter = (uint32_t)read_number(d->host_proc, s.proc->pid, "coredump_filter", 16);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		Pb__PrctlValue *v = &values[m.n_values];
		long value = remote_result(remote, (int)i);

		if (value < 0) /* an option this kernel does not have */
			continue;
		if (options[i].by_pointer)
			value = *room[i];
		if (value == options[i].standard)
			continue;
		pb__prctl_value__init(v);
		v->option = options[i].set;
		v->value = (uint64_t)value;
		list[m.n_values++] = v;
	}
	m.values = list;
	return ckpt_pack(&m.base, body, e);
}

static const struct option *find(int set)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (options[i].set == set)
			return &options[i];
	return NULL;
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Prctl *m = pb__prctl__unpack(NULL, rec->len, rec->body);
	struct remote *remote = ckpt_record_remote(b, rec);
	int r = 0;

	if (!m || !remote || m->n_values > 64)
		r = ckpt_record_bad(rec, e);
	for (size_t i = 0; r == 0 && i < m->n_values; i++) {
		const Pb__PrctlValue *v = m->values[i];
		long result;

		if (!find(v->option))
			r = ckpt_record_bad(rec, e);
		else
			r = remote_call(remote, &result, e, SYS_prctl, (uint64_t)v->option,
				v->value, 0, 0, 0, 0);
		if (r == 0 && result < 0)
			log_warn("task %llu: prctl %d is not to be had here",
				(unsigned long long)rec->subject, v->option);
	}
	for (int i = 0; r == 0 && i < 32; i++) {
		long result;

		if (m->membarrier & (1U << i))
			r = remote_call(remote, &result, e, SYS_membarrier, 1UL << i, 0, 0, 0, 0,
				0);
	}
	if (r == 0 && m->oom_score_adj)
		write_number(b->host_proc, remote_tid(remote), "oom_score_adj", m->oom_score_adj);
	if (r == 0 && m->coredump_filter)
		write_number(b->host_proc, remote_tid(remote), "coredump_filter",
			m->coredump_filter);
	pb__prctl__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, FILE *out)
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

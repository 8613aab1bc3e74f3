// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where every thread of a session is: frozen for a moment, unwound through ptrace, let go.
 *
 * libunwind reads unwind tables and symbols from the files the session has mapped, as far as it
 * can open them; what it can't name is shown as file and offset.
 */
#include <errno.h>
#include <libunwind-ptrace.h>

#include "base/base.h"
#include "ckpt/freeze/freeze.h"
#include "ckpt/inspect/stack_text.h"
#include "ckpt/remote/i386.h"
#include "ckpt/survey/survey.h"

#define MAX_FRAMES 256

static const struct proc_vma *find_vma(const struct proc_maps *m, uint64_t at)
{
	for (size_t i = 0; i < m->n; i++)
		if (at >= m->vmas[i].start && at < m->vmas[i].end)
			return &m->vmas[i];
	return NULL;
}

/* @c: NULL where libunwind does not know its way, in 32-bit code. */
static void show_frame(const struct proc_maps *maps, unw_cursor_t *c, int i, uint64_t ip,
	struct ckpt_stack_text *text)
{
	const struct proc_vma *v = find_vma(maps, ip);
	struct ckpt_stack_frame f = {.number = i, .ip = ip};
	unw_word_t into = 0;
	char name[256];

	if (c && unw_get_proc_name(c, name, sizeof(name), &into) == 0) {
		f.function = name;
		f.into = into;
	}
	if (v && *v->path) {
		f.file = v->path;
		f.offset = ip - v->start + v->offset;
	}
	ckpt_stack_put(text, &f);
}

static void show_frames(const struct proc_maps *maps, unw_addr_space_t space, pid_t tid,
	struct ckpt_stack_text *text)
{
	void *info = _UPT_create(tid);
	unw_cursor_t c;
	unw_word_t ip;

	if (!info)
		return;
	if (unw_init_remote(&c, space, info) == 0) {
		int i = 0;

		do {
			if (unw_get_reg(&c, UNW_REG_IP, &ip) < 0 || !ip)
				break;
			show_frame(maps, &c, i++, ip, text);
		} while (i < MAX_FRAMES && unw_step(&c) > 0);
	}
	_UPT_destroy(info);
}

static int show_process(const struct ckpt_dump *d, const struct ckpt_proc *p,
	struct ckpt_stack_text *text, struct err *e)
{
	struct proc_maps maps = {0};
	unw_addr_space_t space;

	ckpt_stack_process(text, p->vpid, p->status.comm, p->state == CKPT_ZOMBIE);
	if (p->state == CKPT_ZOMBIE)
		return 0;
	space = unw_create_addr_space(&_UPT_accessors, 0);
	if (!space)
		return err_errno(e, -ENOMEM, "stacks");
	/* All threads of one process share what has been found out about it. */
	unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
	proc_read_maps(d->host_proc, p->look, false, &maps, NULL);
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct ckpt_thread *t = p->threads[i];

		ckpt_stack_thread(text, p->vpid, t->vtid, t->status.comm);
		if (i386_runs(&t->regs))
			show_frame(&maps, NULL, 0, t->regs.rip, text);
		else
			show_frames(&maps, space, t->tid, text);
		ckpt_stack_thread_end(text);
	}
	unw_destroy_addr_space(space);
	proc_maps_fini(&maps);
	return 0;
}

int ckpt_stacks(const struct ckpt_world *w, const struct ckpt_dump_options *o, FILE *out, bool json,
	struct err *e)
{
	struct ckpt_dump d = {.world = w};
	struct ckpt_freeze_options f = {.session_proc = w->proc_fd,
		.init_pid = w->init_pid,
		.names = w->names,
		.ring_workers = w->io_uring};
	struct ckpt_stack_text text;
	int r;

	if (o) {
		f.notified = o->notified;
		f.n_notified = o->n_notified;
	}
	d.host_proc = f.host_proc = proc_open(e);
	if (d.host_proc < 0)
		return d.host_proc;
	d.level = proc_level(d.host_proc, w->init_pid);
	r = ckpt_frozen_make(&d.frozen, &f, e);
	if (r == 0)
		r = ckpt_survey_tasks(&d, d.frozen, e);
	ckpt_stack_begin(&text, out, json);
	for (size_t i = 0; i < d.n_procs && r == 0; i++)
		r = show_process(&d, d.procs[i], &text, e);
	ckpt_stack_end(&text);
	ckpt_survey_free(&d);
	ckpt_frozen_release(d.frozen);
	close_fd(d.host_proc);
	return r;
}

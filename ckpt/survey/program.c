// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * An upgrade deletes programs that run, and others run what they have made in a memfd or deleted
 * themselves. /proc/PID/exe still opens such a file, whole.  It is taken up as an open file that
 * nobody holds: one of kind GHOST or MEMFD carries its contents then, and mappings find it as they
 * find all that is open (ckpt/kinds/sharedmem.c).  At a resume the process is given it by
 * descriptor, when nobody can write to it any more (mm.c); where names are rewritten nobody can
 * give it, for lack of a capability.
 *
 * One that may be run and not read (mode 0111) can't be opened, by nobody here: its mappings are
 * written as they are in memory, and the process has no program of its own afterwards.
 */
#include "ckpt/survey/program.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/survey/survey.h"

static bool has_path(const struct ckpt_dump *d, const struct ckpt_proc *p)
{
	static const char mark[] = " (deleted)";
	char name[32];
	_cleanup_free_ char *path = NULL;
	size_t len, tail = strlen(mark);

	snprintf(name, sizeof(name), "%d/exe", p->look);
	path = io_readlink(d->host_proc, name);
	len = path ? strlen(path) : 0;
	/*
	 * Without a program that could be given it again a process has what it was made of
	 * (supervisor/world/start.c).
	 */
	return len <= tail || strcmp(path + len - tail, mark) != 0 ||
	       !strcmp(path, "/memfd:podrun-seed (deleted)");
}

static int take_up(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	struct ckpt_file *f;
	struct err why = {0};
	int fd = proc_open_file(d->host_proc, p->look, "exe", O_RDONLY, &why), r;

	if (fd == -EACCES) {
		log_info("task %d (%s): %s", p->vpid, p->status.comm, why.msg);
		return 0;
	}
	if (fd < 0) {
		*e = why;
		return fd;
	}
	r = ckpt_file_add(d, fd, &f, e);
	if (r == 0)
		p->program = f->id;
	return r;
}

int ckpt_program_take_up(struct ckpt_dump *d, struct err *e)
{
	for (size_t i = 0; i < d->n_procs; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (p->state == CKPT_ZOMBIE || p->mm != p->vpid || has_path(d, p))
			continue;
		if (take_up(d, p, e) < 0)
			return err_wrap(e, "the program of task %d (%s)", p->vpid, p->status.comm);
	}
	return 0;
}

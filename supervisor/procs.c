// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every process of the session has pid 1 as an ancestor, since orphans become its children: a walk
 * over /proc/PID/task/TID/children from pid 1 finds them all, except one that is moved to another
 * parent during the walk; the walk is for people and for signals, not for freezing.
 */
#include "supervisor/procs.h"

#include <fcntl.h>
#include <string.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/rewrite/numbers.h"
#include "supervisor/world/world.h"

#define MAX_PROCS    65536
#define MAX_COMMAND  512
#define MAX_COMMANDS (4u << 20) /* together; all that is told is one message (proto/proto.h) */

struct walk {
	pid_t *pids;
	size_t n, cap;
};

static int walk_add(struct walk *w, const pid_t *pids, size_t n)
{
	if (w->n + n > MAX_PROCS)
		return -E2BIG;
	if (w->n + n > w->cap) {
		size_t cap = MAX(w->cap * 2, w->n + n + 16);
		pid_t *grown = realloc(w->pids, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		w->pids = grown;
		w->cap = cap;
	}
	if (n)
		memcpy(w->pids + w->n, pids, n * sizeof(*pids));
	w->n += n;
	return 0;
}

/* Appends the children of all threads of @pid; a process that is gone has none. */
static int walk_children(int proc_fd, pid_t pid, struct walk *w)
{
	_cleanup_free_ int *tids = NULL;
	struct err ignored = {0};
	char task[32];
	size_t n = 0;
	int r = 0;

	snprintf(task, sizeof(task), "%d/task", pid);
	if (proc_list_numbers(proc_fd, task, &tids, &n, &ignored) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		_cleanup_free_ pid_t *children = NULL;
		size_t n_children = 0;

		if (proc_read_children(proc_fd, pid, tids[i], &children, &n_children, &ignored) >= 0)
			r = walk_add(w, children, n_children);
	}
	return r;
}

static int walk(int proc_fd, pid_t init, struct walk *w, struct err *e)
{
	int r = walk_children(proc_fd, init, w);

	for (size_t i = 0; r == 0 && i < w->n; i++)
		r = walk_children(proc_fd, w->pids[i], w);
	return r < 0 ? err_errno(e, r, "list of processes") : 0;
}

/* The number a process has in the session: that of its namespace, or the one it was given. */
static pid_t inner(const struct world *w, const pid_t *numbers, const struct proc_status *s, size_t level)
{
	pid_t number = proc_at_level(numbers, s, level);

	return w->numbers ? numbers_virtual(w->numbers, number) : number;
}

/* The command line with spaces between its words, unprintable bytes as '?'; of less than @max. */
static char *command_line(int proc_fd, pid_t pid, const char *comm, size_t max)
{
	char path[32], text[MAX_COMMAND];
	_cleanup_close_ int fd = -1;
	ssize_t n;
	char *s;

	snprintf(path, sizeof(path), "%d/cmdline", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? io_read_full(fd, text, max - 1) : -1;
	if (n <= 0)
		return asprintf(&s, "[%s]", comm) < 0 ? NULL : s;
	for (ssize_t i = 0; i < n; i++) {
		if (text[i] == '\0')
			text[i] = ' ';
		else if ((unsigned char)text[i] < ' ' || text[i] == 127)
			text[i] = '?';
	}
	text[n] = '\0';
	while (n > 0 && text[n - 1] == ' ')
		text[--n] = '\0';
	return strdup(text);
}

/* utime + stime of /proc/PID/stat, in milliseconds. */
static uint64_t cpu_ms(int proc_fd, pid_t pid)
{
	char path[32];
	_cleanup_buf_ struct buf b = BUF_INIT;
	unsigned long utime = 0, stime = 0;
	const char *p;

	snprintf(path, sizeof(path), "%d/stat", pid);
	if (io_read_file(proc_fd, path, 4096, &b) < 0 || !buf_cstr(&b))
		return 0;
	p = strrchr(buf_cstr(&b), ')');
	if (!p || sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &utime, &stime) != 2)
		return 0;
	return (utime + stime) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

static Pb__Process *describe(const struct world *w, int proc_fd, size_t level, pid_t pid,
	size_t max_command, pid_t copier, pid_t *ret_pgid)
{
	struct proc_status st;
	struct err ignored = {0};
	Pb__Process *p;

	if (proc_read_status(proc_fd, pid, &st, &ignored) < 0 || (copier && st.tracer == copier))
		return NULL;
	p = malloc(sizeof(*p));
	if (!p)
		return NULL;
	pb__process__init(p);
	p->pid = pid;
	p->vpid = inner(w, st.ns_tgid, &st, level);
	p->vppid = st.ppid; /* still the host's */
	p->comm = strdup(st.comm);
	p->state = strndup(&st.state, 1);
	p->threads = (uint32_t)st.threads;
	p->rss_kb = st.vm_rss_kb;
	p->cpu_ms = cpu_ms(proc_fd, pid);
	p->command = command_line(proc_fd, pid, st.comm, max_command);
	*ret_pgid = inner(w, st.ns_pgid, &st, level);
	/* A snapshot's copy of memory is none of the session's, and has no number. */
	if ((w->numbers && !p->vpid) || !p->comm || !p->state || !p->command) {
		pb__process__free_unpacked(p, NULL);
		return NULL;
	}
	return p;
}

int procs_list(const struct world *world, pid_t copier, struct procs *ret, struct err *e)
{
	_cleanup_close_ int proc_fd = proc_open(e);
	struct walk w = {0};
	struct procs p = {0};
	size_t level;
	int r;

	if (proc_fd < 0)
		return proc_fd;
	level = proc_level(proc_fd, world->numbers ? 0 : world->init_pid);
	r = walk(proc_fd, world->init_pid, &w, e);
	p.all = calloc(w.n + 1, sizeof(*p.all));
	p.pgids = calloc(w.n + 1, sizeof(*p.pgids));
	if (r == 0 && (!p.all || !p.pgids))
		r = err_errno(e, -ENOMEM, "list of processes");
	for (size_t i = 0; r == 0 && i < w.n; i++) {
		p.all[p.n] = describe(world, proc_fd, level, w.pids[i],
			MIN(MAX_COMMANDS / w.n, (size_t)MAX_COMMAND), copier, &p.pgids[p.n]);
		if (p.all[p.n])
			p.n++;
	}
	free(w.pids);
	if (r < 0) {
		procs_fini(&p);
		return r;
	}
	/* Parents came before their children, so the host's numbers can be looked up in place. */
	for (size_t i = p.n; i-- > 0;) {
		pid_t parent = p.all[i]->vppid;

		p.all[i]->vppid = 1;
		for (size_t k = 0; k < p.n; k++)
			if (p.all[k]->pid == parent)
				p.all[i]->vppid = p.all[k]->vpid;
	}
	*ret = p;
	return 0;
}

void procs_fini(struct procs *p)
{
	for (size_t i = 0; i < p->n; i++)
		pb__process__free_unpacked(p->all[i], NULL);
	free(p->all);
	free(p->pgids);
	*p = (struct procs){0};
}

int procs_signal(const struct world *w, pid_t vpid, bool group, int signal, struct err *e)
{
	struct procs p;
	int sent = 0, r = procs_list(w, 0, &p, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < p.n; i++) {
		_cleanup_close_ int pidfd = -1;

		if (group ? p.pgids[i] != vpid : p.all[i]->vpid != vpid)
			continue;
		pidfd = sys_pidfd_open(p.all[i]->pid, 0);
		if (pidfd < 0)
			continue;
		if (sys_pidfd_send_signal(pidfd, signal) == 0)
			sent++;
		else if (errno != ESRCH)
			r = err_errno(e, -errno, "task %d", vpid);
	}
	procs_fini(&p);
	if (r < 0 || sent)
		return r;
	return err_set(e, ERR_NOT_FOUND, -ESRCH, "no process %d in the session", vpid);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in foreseen.h. */
#include "ckpt/freeze/foreseen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/freeze/restart.h"

#define PART	   4 /* of the descriptors this process may have; the session's are to come */
#define FILES	   3 /* of a thread */
#define RAN_LENGTH 64

struct process {
	pid_t pid;
	int task; /* its directory */
	struct proc_status status;
};

struct thread {
	pid_t tid;
	int stat, status, schedstat;
	bool slept;	   /* the next two are known */
	bool moved;	   /* it has run since it was met */
	char ran[RAN_LENGTH]; /* what schedstat said */
	uint64_t since_ns; /* of io_now_ns; 0: nobody wants to know */
};

struct ckpt_foreseen {
	int host_proc;
	size_t room; /* for so many more descriptors */
	struct ckpt_restart_clocks clocks;
	struct buf processes, threads; /* sorted, once all have been met */
};

static struct process *processes(const struct ckpt_foreseen *s, size_t *ret_n)
{
	*ret_n = s ? s->processes.len / sizeof(struct process) : 0;
	return s ? (struct process *)s->processes.data : NULL;
}

static struct thread *threads(const struct ckpt_foreseen *s, size_t *ret_n)
{
	*ret_n = s ? s->threads.len / sizeof(struct thread) : 0;
	return s ? (struct thread *)s->threads.data : NULL;
}

static int compare_process(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int compare_thread(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static const struct process *find_process(const struct ckpt_foreseen *s, pid_t pid)
{
	struct process key = {.pid = pid};
	size_t n;
	const struct process *all = processes(s, &n);

	return sort_find(&key, all, n, sizeof(key), compare_process);
}

static const struct thread *find_thread(const struct ckpt_foreseen *s, pid_t tid)
{
	struct thread key = {.tid = tid};
	size_t n;
	const struct thread *all = threads(s, &n);

	return sort_find(&key, all, n, sizeof(key), compare_thread);
}

/* ---- while it runs -------------------------------------------------------------------------- */

/* False where the kernel does not tell: all zero then. */
static bool read_ran(int fd, char ret[RAN_LENGTH])
{
	ssize_t n = fd < 0 ? -1 : pread(fd, ret, RAN_LENGTH - 1, 0);

	if (n <= 0)
		return false;
	ret[n] = '\0';
	return n < RAN_LENGTH - 1 && strcmp(ret, "0 0 0\n") != 0;
}

/* In this order: who has not run since the first has slept since the second. */
static void look_at(struct ckpt_foreseen *s, struct thread *t)
{
	uint64_t asleep_ns = 0;

	t->slept = read_ran(t->schedstat, t->ran) &&
		   ckpt_restart_sleeps(s->host_proc, t->tid, &s->clocks, &asleep_ns);
	t->since_ns = asleep_ns ? io_now_ns() - asleep_ns : 0;
}

static int open_file(const struct ckpt_foreseen *s, pid_t pid, pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/task/%d/%s", pid, tid, name);
	return openat(s->host_proc, path, O_RDONLY | O_CLOEXEC);
}

static void meet_thread(struct ckpt_foreseen *s, pid_t pid, pid_t tid)
{
	struct thread t = {.tid = tid};

	if (s->room < FILES)
		return;
	s->room -= FILES;
	t.stat = open_file(s, pid, tid, "stat");
	t.status = open_file(s, pid, tid, "status");
	t.schedstat = open_file(s, pid, tid, "schedstat");
	look_at(s, &t);
	buf_put(&s->threads, &t, sizeof(t));
}

/* The process, its threads, and all below. */
static void meet(struct ckpt_foreseen *s, pid_t pid, bool is_init, struct buf *below)
{
	_cleanup_free_ int *tids = NULL;
	struct process p = {.pid = pid};
	char path[32];
	size_t n = 0;

	if (!s->room)
		return;
	snprintf(path, sizeof(path), "%d/task", pid);
	p.task = openat(s->host_proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p.task < 0)
		return;
	if (proc_list_numbers_of(p.task, &tids, &n) < 0 || is_init ||
		proc_read_status(s->host_proc, pid, &p.status, NULL) < 0) {
		close_fd(p.task);
	} else {
		s->room--;
		buf_put(&s->processes, &p, sizeof(p));
	}
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ pid_t *children = NULL;
		size_t count = 0;

		if (!is_init)
			meet_thread(s, pid, tids[i]);
		if (proc_read_children(s->host_proc, pid, tids[i], &children, &count, NULL) == 0)
			buf_put(below, children, count * sizeof(*children));
	}
}

struct ckpt_foreseen *ckpt_foreseen_look(int host_proc, pid_t init_pid)
{
	struct ckpt_foreseen *s = calloc(1, sizeof(*s));
	_cleanup_buf_ struct buf pids = BUF_INIT;

	if (!s)
		return NULL;
	s->host_proc = host_proc;
	s->room = MIN(io_allow_fds(), (size_t)1 << 20) / PART;
	meet(s, init_pid, true, &pids);
	for (size_t i = 0; i < pids.len / sizeof(pid_t); i++)
		meet(s, ((pid_t *)pids.data)[i], false, &pids);
	if (buf_error(&pids) < 0 || buf_error(&s->processes) < 0 || buf_error(&s->threads) < 0) {
		ckpt_foreseen_free(s);
		return NULL;
	}
	sort_array(s->processes.data, s->processes.len / sizeof(struct process),
		sizeof(struct process), compare_process);
	sort_array(s->threads.data, s->threads.len / sizeof(struct thread), sizeof(struct thread),
		compare_thread);
	return s;
}

static bool has_run(const struct thread *t)
{
	char ran[RAN_LENGTH];

	return !t->slept || !read_ran(t->schedstat, ran) || strcmp(ran, t->ran) != 0;
}

void ckpt_foreseen_refresh(struct ckpt_foreseen *s)
{
	size_t n;
	struct thread *t = threads(s, &n);

	for (size_t i = 0; i < n; i++) {
		if (!has_run(&t[i]))
			continue;
		t[i].moved = true;
		look_at(s, &t[i]);
	}
	if (s)
		s->host_proc = -1;
}

void ckpt_foreseen_free(struct ckpt_foreseen *s)
{
	size_t n, n_threads;
	const struct process *p = processes(s, &n);
	const struct thread *t = threads(s, &n_threads);

	if (!s)
		return;
	for (size_t i = 0; i < n; i++)
		close_fd(p[i].task);
	for (size_t i = 0; i < n_threads; i++) {
		close_fd(t[i].stat);
		close_fd(t[i].status);
		close_fd(t[i].schedstat);
	}
	buf_fini(&s->processes);
	buf_fini(&s->threads);
	free(s);
}

/* ---- while it is stopped -------------------------------------------------------------------- */

pid_t ckpt_foreseen_process(const struct ckpt_foreseen *s, size_t i)
{
	size_t n;
	const struct process *p = processes(s, &n);

	return i < n ? p[i].pid : 0;
}

int ckpt_foreseen_list(const struct ckpt_foreseen *s, pid_t pid, int **ret, size_t *ret_n)
{
	const struct process *p = find_process(s, pid);

	return p ? proc_list_numbers_of(p->task, ret, ret_n) : -ESRCH;
}

int ckpt_foreseen_count(const struct ckpt_foreseen *s, pid_t pid, size_t level, pid_t *ret_number)
{
	const struct process *p = find_process(s, pid);
	int n = p ? proc_count_threads(p->task) : -ESRCH;

	if (n > 0)
		*ret_number = proc_at_level(p->status.ns_pid, &p->status, level);
	return n;
}

bool ckpt_foreseen_asleep(
	const struct ckpt_foreseen *s, pid_t tid, uint64_t *ret_ns, bool *ret_all_the_time)
{
	const struct thread *t = find_thread(s, tid);

	if (!t || has_run(t))
		return false;
	*ret_ns = t->since_ns ? io_now_ns() - t->since_ns : 0;
	*ret_all_the_time = !t->moved;
	return true;
}

int ckpt_foreseen_status(const struct ckpt_foreseen *s, pid_t tid, struct proc_status *ret)
{
	const struct thread *t = find_thread(s, tid);

	if (!t || t->stat < 0 || t->status < 0)
		return -ESRCH;
	return proc_read_status_of(t->stat, t->status, ret, NULL);
}

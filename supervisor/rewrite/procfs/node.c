// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in procfs/node.h.  The table is in the middle. */
#include "supervisor/rewrite/procfs/node.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/tasks.h"

#define PID_1	   1
#define STATUS_MAX (64u << 10)

/* ---- directories that are listed ------------------------------------------------------------ */

static int list_top(const struct procfs *p, const struct procfs_node *n, struct mirror_list *list)
{
	const struct mirror_list *always = &p->always;
	const struct tasks *t = p->tasks;
	int r = 0;

	for (size_t i = 0; r == 0 && i < always->n; i++)
		r = mirror_list_add(list, always->v[i].name, always->v[i].type);
	for (int i = 1; r == 0 && i < NUMBERS_MAX; i++) {
		const struct task *one = t->all[i];
		char name[16];

		if (!one || one->tgid != one->host || one->waits || !tasks_host_task(t, i))
			continue;
		snprintf(name, sizeof(name), "%d", i);
		r = mirror_list_add(list, name, DT_DIR);
	}
	return r;
}

/* The same names as on the host. */
static int list_same(const struct procfs *p, const struct procfs_node *n, struct mirror_list *list)
{
	return mirror_list_read(list, n->dir, n->host);
}

static int list_threads(
	const struct procfs *p, const struct procfs_node *n, struct mirror_list *list)
{
	size_t kept = 0;
	int r = mirror_list_read(list, n->dir, n->host);

	if (r < 0)
		return r;
	for (size_t i = 0; i < list->n; i++) {
		pid_t number = numbers_virtual(p->tasks->numbers, (pid_t)atol(list->v[i].name));

		if (!number)
			continue;
		snprintf(list->v[kept].name, sizeof(list->v[kept].name), "%d", number);
		list->v[kept++].type = DT_DIR;
	}
	list->n = kept;
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct procfs_row table[] = {
	/* of a process or a thread */
	{"", true, .list = list_same},
	{"task", true, .list = list_threads},
	{"fd", true, .list = list_same},
	{"fdinfo", true, .list = list_same},
	{"fdinfo/", true, PROCFS_FDINFO, .text = procfs_text_fdinfo},
	{"status", true, .text = procfs_text_status},
	{"stat", true, .text = procfs_text_stat},
	{"children", true, .text = procfs_text_children},
	{"sched", true, .text = procfs_text_sched},
	{"timers", true, .text = procfs_text_timers},
	{"maps", true, PROCFS_PATHS, .text = procfs_text_maps},
	{"smaps", true, PROCFS_PATHS, .text = procfs_text_maps},
	{"mounts", true, PROCFS_MOUNTS, .text = procfs_text_mounts},
	{"mountstats", true, PROCFS_MOUNTS, .text = procfs_text_mountstats},
	{"mem", true, .sort = PROCFS_MEMORY},
	{"root", true, .sort = PROCFS_ROOT},
	{"cwd", true, .sort = PROCFS_MAGIC},
	{"exe", true, .sort = PROCFS_MAGIC},
	{"fd/", true, .sort = PROCFS_MAGIC},
	{"map_files/", true, .sort = PROCFS_MAGIC},
	{"ns/", true, .sort = PROCFS_MAGIC},
	/* of all */
	{"", false, .list = list_top},
	{"self", false, .sort = PROCFS_SELF},
	{"thread-self", false, .sort = PROCFS_SELF},
	{"locks", false, .text = procfs_text_locks},
	{"sys/kernel/pid_max", false, .text = procfs_text_pid_max},
	{"sys/kernel/hostname", false, .text = procfs_text_hostname},
	{"sys/kernel/domainname", false, .text = procfs_text_domainname},
	{"uptime", false, PROCFS_CLOCK, .text = procfs_text_uptime},
	{"sysvipc/", false, .sort = PROCFS_IPC},
};

static bool matches(const char *name, const char *rest)
{
	size_t n = strlen(name);

	if (!n || name[n - 1] != '/')
		return !strcmp(name, rest);
	return !strncmp(name, rest, n) && rest[n] && !strchr(rest + n, '/');
}

static const struct procfs_row *find_row(const char *rest, bool of_process)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].of_process == of_process && matches(table[i].name, rest))
			return &table[i];
	return NULL;
}

/* ---- paths ---------------------------------------------------------------------------------- */

/* "12" or "12/...": the number, what is behind it.  0: it begins otherwise ("012", "1a"). */
static pid_t take_number(const char *path, long max, const char **ret_rest)
{
	char *end;
	long n;

	if (!isdigit((unsigned char)*path) || *path == '0')
		return 0;
	n = strtol(path, &end, 10);
	if (n > max || (*end && *end != '/'))
		return 0;
	*ret_rest = end + (*end == '/');
	return (pid_t)n;
}

/* "12/task/13/...".  What is no path of a process has number 0 and the whole as its rest. */
static void parse(
	const char *below, long max, pid_t *ret_number, pid_t *ret_thread, const char **ret_rest)
{
	static const char task[] = "task/";
	const char *rest = below;

	*ret_number = take_number(below, max, &rest);
	*ret_thread = 0;
	if (*ret_number && !strncmp(rest, task, strlen(task))) {
		const char *behind = rest;

		*ret_thread = take_number(rest + strlen(task), max, &behind);
		if (*ret_thread)
			rest = behind;
	}
	*ret_rest = rest;
}

bool procfs_node_is_dir(const char *path)
{
	static const char *const dirs[] = {"", "task", "fd", "fdinfo", "ns", "attr", "map_files"};
	pid_t number, thread;
	const char *rest;

	parse(path, NUMBERS_MAX - 1, &number, &thread, &rest);
	for (size_t i = 0; number && i < ARRAY_SIZE(dirs); i++)
		if (!strcmp(rest, dirs[i]))
			return true;
	return false;
}

static bool is_ours(const struct procfs *p, int dir)
{
	_cleanup_buf_ struct buf status = BUF_INIT;

	return io_read_file(dir, "status", STATUS_MAX, &status) == 0 && buf_cstr(&status) &&
	       procfs_text_is_ours(p->tasks->numbers, buf_cstr(&status), p->tracer);
}

/* The directory of the process and thread of @s. */
static int open_task(const struct procfs *p, const struct task *asker, struct procfs_node *n)
{
	pid_t process = tasks_host_task(p->tasks, n->number);
	pid_t thread = n->thread ? tasks_host_task(p->tasks, n->thread) : process;
	char path[64];

	if (!process || !thread)
		return -ENOENT;
	if (n->thread)
		snprintf(path, sizeof(path), "%d/task/%d", process, thread);
	else
		snprintf(path, sizeof(path), "%d", process);
	n->dir = openat(p->host, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (n->dir < 0)
		return errno == ESRCH ? -ENOENT : -errno;
	n->task = tasks_find(p->tasks, thread);
	/*
	 * Whoever waits for this answer has its numbers until then, and nobody hears it if it was
	 * killed.
	 */
	return (asker && process == asker->tgid) || is_ours(p, n->dir) ? 0 : -ENOENT;
}

/* Where it is to be found. */
static int open_dir(const struct procfs *p, const struct task *asker, struct procfs_node *n)
{
	if (n->number)
		return open_task(p, asker, n);
	if (isdigit((unsigned char)*n->path))
		return -ENOENT;
	n->dir = openat(p->host, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return n->dir < 0 ? -errno : 0;
}

int procfs_node_find(
	const struct procfs *p, const struct task *asker, const char *path, struct procfs_node *ret)
{
	int r;

	*ret = (struct procfs_node){.dir = -1};
	if (strlen(path) >= sizeof(ret->path))
		return -ENAMETOOLONG;
	strcpy(ret->path, path);
	parse(ret->path, NUMBERS_MAX - 1, &ret->number, &ret->thread, &ret->rest);
	r = open_dir(p, asker, ret);
	/* A thread has no threads, and what is called by a number there would be the host's. */
	if (r == 0 && ret->number && !strncmp(ret->rest, "task/", strlen("task/")))
		r = -ENOENT;
	if (r < 0)
		return r;
	strcpy(ret->host, *ret->rest ? ret->rest : ".");
	if (fstatat(ret->dir, ret->host, &ret->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ESRCH ? -ENOENT : -errno;
	ret->type = ret->st.st_mode & S_IFMT;
	ret->row = find_row(ret->rest, ret->number);
	if (ret->row && ((ret->row->sort == PROCFS_IPC && !p->ops->sysvipc) ||
				(ret->row->sort == PROCFS_CLOCK && !p->ops->boottime_ns)))
		ret->row = NULL;
	return 0;
}

void procfs_node_fini(struct procfs_node *n)
{
	n->dir = close_fd(n->dir);
}

bool procfs_node_self(
	const struct procfs *p, const struct task *asker, const char *path, char ret[PATH_MAX])
{
	pid_t number = numbers_virtual(p->tasks->numbers, asker->tgid);

	if (!strcmp(path, "self"))
		snprintf(ret, PATH_MAX, "%d", number);
	else if (!strcmp(path, "thread-self"))
		snprintf(ret, PATH_MAX, "%d/task/%d", number, asker->number);
	else
		return false;
	return true;
}

/* ---- the way back --------------------------------------------------------------------------- */

int procfs_name_of(int fd, char ret[PATH_MAX])
{
	char self[64];
	ssize_t n;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, ret, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

/* @below is behind the host's /proc. */
static int print_renamed(const struct procfs *p, const char *below, char *buf, size_t size)
{
	pid_t process, thread, number;
	const char *rest;
	char by[64];
	int n;

	parse(below, INT_MAX, &process, &thread, &rest);
	if (!process)
		return snprintf(buf, size, "%s", below);
	number = numbers_virtual(p->tasks->numbers, process);
	if (!number || (thread && !numbers_virtual(p->tasks->numbers, thread)))
		return -EACCES;
	n = snprintf(by, sizeof(by), "%d", number);
	if (thread)
		snprintf(by + n, sizeof(by) - (size_t)n, "/task/%d",
			numbers_virtual(p->tasks->numbers, thread));
	return snprintf(buf, size, "%s%s%s", by, *rest ? "/" : "", rest);
}

int procfs_from_host(const struct procfs *p, const char *host, char *buf, size_t size)
{
	static const char proc[] = "/proc", deleted[] = " (deleted)";
	const char *below = procfs_mirror_below(p->mirror, host);
	size_t n = strlen(proc), end;
	int r;

	if (below)
		r = snprintf(buf, size, "%s", below);
	else if (!strncmp(host, proc, n) && (!host[n] || host[n] == '/'))
		r = print_renamed(p, host + n + (host[n] == '/'), buf, size);
	else
		return -ENOENT;
	if (r < 0 || (size_t)r >= size)
		return r < 0 ? r : -ENAMETOOLONG;
	/* Of what has ended meanwhile. */
	end = strlen(deleted);
	if ((size_t)r > end && !strcmp(buf + r - end, deleted)) {
		r -= (int)end;
		buf[r] = '\0';
	}
	return r;
}

int procfs_of_copy(const char *host, char *buf, size_t size)
{
	static const char before[] = "/memfd:/proc/", behind[] = " (deleted)";
	size_t n = strlen(host), first = strlen(before), last = strlen(behind);

	if (n < first + last || strncmp(host, before, first) != 0 ||
		strcmp(host + n - last, behind) != 0)
		return -ENOENT;
	n -= first + last;
	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(buf, host + first, n);
	buf[n] = '\0';
	return (int)n;
}

int procfs_to_host(const struct procfs *p, const char *below, char ret[PATH_MAX])
{
	pid_t number, thread, process, task;
	const char *rest;
	char by[64] = "/proc";
	int n;

	parse(below, NUMBERS_MAX - 1, &number, &thread, &rest);
	process = number ? tasks_host_task(p->tasks, number) : 0;
	task = thread ? tasks_host_task(p->tasks, thread) : 0;
	if ((number ? !process : isdigit((unsigned char)*below)) || (thread && !task))
		return -ENOENT;
	if (thread)
		snprintf(by, sizeof(by), "/proc/%d/task/%d", process, task);
	else if (number)
		snprintf(by, sizeof(by), "/proc/%d", process);
	n = snprintf(ret, PATH_MAX, "%s%s%s", by, *rest ? "/" : "", rest);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* ---- who may -------------------------------------------------------------------------------- */

/*
 * Nobody but pid 1 itself, which is not of the session, is asked for more than what all may read.
 */
bool procfs_node_is_open(const struct procfs_node *n, bool write)
{
	static const char *const closed[] = {
		"maps", "smaps", "smaps_rollup", "numa_maps", "map_files"};

	if (n->number != PID_1 && n->thread != PID_1)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
		if (!strcmp(n->rest, closed[i]))
			return false;
	if (S_ISLNK(n->st.st_mode))
		return false;
	return !write && (n->st.st_mode & S_IROTH);
}

static bool is_ancestor(pid_t host, pid_t of)
{
	char state;

	for (int i = 0; i < 4096 && of > 1 && of != host; i++)
		if (!tasks_look(of, &state, &of))
			return false;
	return of == host;
}

bool procfs_node_may_trace(
	const struct procfs *p, const struct task *asker, const struct procfs_node *n)
{
	return !asker || p->ptrace_scope < 1 || n->task->tgid == asker->tgid ||
	       (p->ptrace_scope == 1 && is_ancestor(asker->tgid, n->task->tgid));
}

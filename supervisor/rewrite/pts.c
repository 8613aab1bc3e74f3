// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in pts.h. */
#include "supervisor/rewrite/pts.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/tasks.h"
#include "supervisor/rewrite/view/view.h"

#define DIR "/dev/pts/"

/* Of the one rewriter that this process is: numbers are given by threads that answer, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void path_of(unsigned number, char ret[VIEW_TERMINAL])
{
	snprintf(ret, VIEW_TERMINAL, DIR "%u", number);
}

/* The N of /dev/pts/N, -1 if it is none. */
static int number_of(const char *path)
{
	size_t n = strlen(DIR), digits;

	if (strncmp(path, DIR, n) != 0)
		return -1;
	digits = strspn(path + n, "0123456789");
	return digits == 0 || digits > 7 || path[n + digits] ? -1 : atoi(path + n);
}

bool view_is_terminal(const char *host)
{
	return number_of(host) >= 0;
}

bool view_is_gone(const struct view_entry *one)
{
	struct stat st;

	return fstat(one->fd, &st) < 0 || st.st_nlink == 0;
}

/* What is at @path in the session. */
static const struct view_entry *at(const struct view *v, const char *path)
{
	const struct view_entry *one = view_find(v, path, strlen(path));

	return one && one->terminal ? one : NULL;
}

/* What leads to the host's @host. */
static const struct view_entry *to(const struct view *v, const char *host)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct view_entry *one = &v->entries[i];

		if (one->terminal && strcmp(one->host, host) == 0 && !view_is_gone(one))
			return one;
	}
	return NULL;
}

static int lead(struct view *v, const char *path, const char *host)
{
	_cleanup_close_ int fd = open(host, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : view_lead_terminal(v, path, host, fd);
}

/* The lowest that nobody has.  It ends: there are only so many terminals. */
static void find_free(const struct view *v, char ret[VIEW_TERMINAL])
{
	for (unsigned i = 0;; i++) {
		const struct view_entry *one;

		path_of(i, ret);
		one = at(v, ret);
		if (one ? view_is_gone(one) && access(ret, F_OK) < 0 : access(ret, F_OK) < 0)
			return;
	}
}

static int say(struct view *v, const char *host, char ret[PATH_MAX])
{
	const struct view_entry *one = to(v, host), *other = one ? NULL : at(v, host);
	char path[VIEW_TERMINAL];

	snprintf(path, sizeof(path), "%s", host);
	if (one)
		snprintf(path, sizeof(path), "%s", one->path);
	else if (other && !view_is_gone(other))
		find_free(v, path);
	snprintf(ret, PATH_MAX, "%s", path);
	return other ? lead(v, path, host) : 0;
}

int view_say_terminal(struct view *v, const char *host, char ret[PATH_MAX])
{
	int r;

	pthread_mutex_lock(&lock);
	r = say(v, host, ret);
	pthread_mutex_unlock(&lock);
	return r;
}

static int born(struct view *v, const char *path, const char *host)
{
	const struct view_entry *one = at(v, path);

	if (one && !view_is_gone(one))
		return -EEXIST;
	return !one && strcmp(path, host) == 0 ? 0 : lead(v, path, host);
}

int pts_born(struct view *v, unsigned number, unsigned host)
{
	char path[VIEW_TERMINAL], theirs[VIEW_TERMINAL];
	int r;

	path_of(number, path);
	path_of(host, theirs);
	pthread_mutex_lock(&lock);
	r = born(v, path, theirs);
	pthread_mutex_unlock(&lock);
	return r;
}

/* ---- TIOCGPTN ------------------------------------------------------------------------------- */

/* The host's number of what @task has as @fd; -1: no master of a terminal. */
static int index_of(const struct task *task, int fd)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	const char *text, *line;
	char path[64];
	int n;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", task->host, fd);
	if (io_read_file(AT_FDCWD, path, 4096, &b) < 0 || !(text = buf_cstr(&b)))
		return -1;
	line = strstr(text, "\ntty-index:");
	return line && sscanf(line, "\ntty-index: %d", &n) == 1 ? n : -1;
}

void pts_told(struct rewrite *rw, const struct task *task, struct user_regs_struct *regs)
{
	char host[VIEW_TERMINAL], path[PATH_MAX];
	int n = rw->view ? index_of(task, (int)task->call.args[0]) : -1, r;
	unsigned number;

	if (n < 0)
		return;
	path_of((unsigned)n, host);
	r = view_say_terminal(rw->view, host, path);
	number = r < 0 ? 0 : (unsigned)number_of(path);
	if (r == 0)
		r = task_poke(task, task->call.args[2], &number, sizeof(number));
	if (r < 0)
		regs->rax = (unsigned long long)(long long)r;
}

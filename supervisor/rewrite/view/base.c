// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where relative paths begin.  The host's /proc tells for a descriptor; for a working directory it
 * is asked once, until some task of the session changes directory (tasks may share one, so that it
 * is anybody).  Until then a child stands where its maker does: what is known of one is known of
 * both, unless there is somebody who might have changed directory while the child was being made.
 *
 * The threads of a process stand where it does, until one of them makes itself a directory of its
 * own, or is made with one: each is asked about from then on.
 *
 * What stands so deep that no path says it the kernel finds by itself, as it does everywhere: from
 * the directory that the task has, which is the host's.  There is no other entry so deep; a symlink
 * there leads where it leads on the host, if Landlock lets it.
 */
#include "supervisor/rewrite/view/view.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/numbers.h"
#include "supervisor/rewrite/tasks.h"

int view_say(const struct view *v, const char *host, char ret[PATH_MAX])
{
	int n;

	if (host[0] != '/')
		return -ENOTDIR;
	if (v->procfs) {
		memcpy(ret, "/proc/", 6);
		n = procfs_from_host(v->procfs, host, ret + 6, PATH_MAX - 6);
		if (n == 0)
			strcpy(ret, "/proc");
		if (n >= 0)
			return 0;
		if (n != -ENOENT)
			return n;
	}
	return view_session_path(v, host, ret);
}

static int read_host(const char *link, char ret[PATH_MAX])
{
	ssize_t n = readlink(link, ret, PATH_MAX - 1);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

static int say_now(struct view *v, const char *host, char ret[PATH_MAX])
{
	int r = view_say(v, host, ret);

	if (r != -ENOENT)
		return r;
	view_refresh(v);
	return view_say(v, host, ret);
}

/* Was @process last known to be at @host, by whatever path? */
static bool is_at(const struct view *v, const struct task *process, const char *host, char ret[PATH_MAX])
{
	const struct view_cwd *known = process ? &v->cwds[process->number] : NULL;
	char path[PATH_MAX];

	if (!known || known->host != process->host || view_host_path(v, known->path, path) < 0 ||
		strcmp(path, host) != 0)
		return false;
	strcpy(ret, known->path);
	return true;
}

/*
 * @ret is one path of @host.  In a volume there may be another, by which it or its parent has gone
 * there.
 */
static void choose(const struct view *v, const struct task *asker, const char *host, char ret[PATH_MAX])
{
	const struct view_entry *in = view_mount_of(v, ret);
	pid_t parent;
	char state;

	if (!in || in->own || !in->len || in->sort != VIEW_MOUNT || !v->tasks || is_at(v, asker, host, ret))
		return;
	if (tasks_look(asker->host, &state, &parent))
		is_at(v, tasks_find(v->tasks, parent), host, ret);
}

/* Goes up, too, when a task is gone in the middle of a call, which may have been chdir(2). */
static unsigned generation(const struct view *v)
{
	return v->generation + (v->tasks ? v->tasks->lost : 0);
}

static void know(struct view *v, const struct task *process, char *path)
{
	struct view_cwd *known = &v->cwds[process->number];

	free(known->path);
	known->path = path;
	known->host = path ? process->host : 0;
	known->generation = generation(v);
}

/*
 * In the view directories may be renamed and removed by others; elsewhere it is enough that it is
 * elsewhere.
 */
static bool is_known(const struct view *v, const struct task *process)
{
	const struct view_cwd *known = &v->cwds[process->number];

	return known->host == process->host && known->generation == generation(v) &&
	       !view_mount_of(v, known->path);
}

/* Who stands where @process does, for nobody has moved since that was born; NULL if unknown. */
static const struct task *maker_of(const struct view *v, const struct task *process)
{
	const struct view_cwd *child = &v->cwds[process->number];
	const struct task *maker = NULL;

	if (child->from && child->born == generation(v))
		maker = tasks_find(v->tasks, child->from);
	return maker && !maker->gone && maker->serial < process->serial ? maker : NULL;
}

static int working_directory(struct view *v, const struct task *asker, char ret[PATH_MAX])
{
	const struct task *maker = maker_of(v, asker), *knows = asker;
	char link[32], host[PATH_MAX];
	int r;

	if (!is_known(v, asker) && maker)
		knows = maker;
	if (is_known(v, knows)) {
		strcpy(ret, v->cwds[knows->number].path);
		if (knows != asker)
			know(v, asker, strdup(ret));
		return 0;
	}
	snprintf(link, sizeof(link), "/proc/%d/cwd", asker->host);
	r = read_host(link, host);
	if (r == 0)
		r = say_now(v, host, ret);
	if (r < 0)
		return r;
	choose(v, asker, host, ret);
	know(v, asker, strdup(ret));
	if (maker && !view_mount_of(v, ret))
		know(v, maker, strdup(ret));
	return 0;
}

void view_born(struct view *v, const struct task *task)
{
	struct view_cwd *cwd = &v->cwds[task->number];

	/* Somebody else had the number. */
	cwd->host = cwd->from = 0;
	cwd->born = generation(v);
}

void view_stands(struct view *v, const struct task *process, const struct task *maker)
{
	v->cwds[process->number].from = maker->host;
}

/* Whose working directory is @task's: its process's, if that has one for all of its threads. */
static const struct task *who_stands(const struct view *v, const struct task *task)
{
	const struct task *process = NULL;

	if (v->tasks && task->tgid != task->host)
		process = tasks_find(v->tasks, task->tgid);
	return process && !process->gone && !process->parted ? process : task;
}

void view_moves(struct view *v, const struct task *task, const char *path)
{
	struct view_cwd *known = &v->cwds[who_stands(v, task)->number];

	v->generation++;
	free(known->next);
	known->next = path ? strdup(path) : NULL;
}

void view_has_moved(struct view *v, const struct task *task, bool done)
{
	const struct task *process = who_stands(v, task);
	char *next = take_ptr(v->cwds[process->number].next);

	v->generation++;
	if (done && next)
		know(v, process, take_ptr(next));
	free(next);
}

int view_base(struct view *v, const struct task *asker, pid_t tid, int dirfd, char ret[PATH_MAX])
{
	const struct task *stands;
	char link[48], host[PATH_MAX];
	int r;

	if (dirfd == AT_FDCWD) {
		stands = who_stands(v, asker);
		r = working_directory(v, stands, ret);
		/* The first thread may have ended before others. */
		return r == -ENOENT && stands != asker ? working_directory(v, asker, ret) : r;
	}
	if (dirfd < 0)
		return -EBADF;
	snprintf(link, sizeof(link), "/proc/%d/fd/%d", tid, dirfd);
	r = read_host(link, host);
	return r < 0 ? r : say_now(v, host, ret);
}

const struct view_entry *view_too_deep(const struct view *v, const char *base, const char *path)
{
	const struct view_entry *in = view_mount_of(v, base);
	int depth = 0;

	if (!in || in->sort != VIEW_MOUNT || in->read_only)
		return NULL;
	for (const char *p = base + in->len; *p; p++)
		depth += *p == '/';
	/* Not out of the mount, by the text. */
	for (const char *p = path + strspn(path, "/"); *p && depth >= 0; p += strspn(p, "/")) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.')
			depth--;
		else if (n > 1 || p[0] != '.')
			depth++;
		p += n;
	}
	return depth > 0 ? in : NULL;
}

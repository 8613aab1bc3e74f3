// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A group that hands a controller on to its children may have no processes of its own (cgroups(7):
 * "no internal processes").  So whoever is in the delegated group moves into a leaf beside the
 * sessions, once:
 *
 *      delegated group         cgroup.subtree_control: memory
 *      |- podrun-others        the user's shell, supervisors: who was in the delegated group
 *      '- podrun-PID-NAME      one session; PID is its supervisor's
 *
 * A supervisor that starts in podrun-others makes its group beside it.  What a killed supervisor
 * has left is removed by the next one.
 */
#include "supervisor/world/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"

#define OTHERS	   "podrun-others"
#define ROUNDS	   20 /* processes may be born while they are moved */
#define REMOVE_MS  1000
#define MAX_FILE   (1 << 20)

/* ---- where ---------------------------------------------------------------------------------- */

/* Where version 2's hierarchy is mounted. */
static bool find_mount(char *ret, size_t size)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char *save = NULL;

	if (io_read_file(AT_FDCWD, "/proc/self/mountinfo", MAX_FILE, &text) < 0 || !buf_cstr(&text))
		return false;
	for (char *line = strtok_r(buf_cstr(&text), "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		char root[PATH_MAX], point[PATH_MAX];

		if (!strstr(line, " - cgroup2 ") ||
			sscanf(line, "%*d %*d %*s %4095s %4095s", root, point) != 2 ||
			strcmp(root, "/") != 0)
			continue;
		return snprintf(ret, size, "%s", point) < (int)size;
	}
	return false;
}

/* The caller's own group: the line that begins with "0::". */
static bool find_own(char *ret, size_t size)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char *save = NULL;

	if (io_read_file(AT_FDCWD, "/proc/self/cgroup", MAX_FILE, &text) < 0 || !buf_cstr(&text))
		return false;
	for (char *line = strtok_r(buf_cstr(&text), "\n", &save); line;
		line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, "0::/", 4) == 0)
			return snprintf(ret, size, "%s", line + 3) < (int)size;
	return false;
}

static bool has_word(int dir, const char *file, const char *word)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char *save = NULL;

	if (io_read_file(dir, file, MAX_FILE, &text) < 0 || !buf_cstr(&text))
		return false;
	for (char *w = strtok_r(buf_cstr(&text), " \n", &save); w; w = strtok_r(NULL, " \n", &save))
		if (strcmp(w, word) == 0)
			return true;
	return false;
}

/* The delegated group in which sessions get theirs; a descriptor, or -1. */
static int open_delegated(char *ret_path, size_t size)
{
	static const char *const needed[] = {"cgroup.procs", "cgroup.subtree_control", "."};
	_cleanup_close_ int dir = -1;
	char mount[PATH_MAX], own[PATH_MAX], *base;

	if (!find_mount(mount, sizeof(mount)) || !find_own(own, sizeof(own)))
		return -1;
	base = strrchr(own, '/');
	if (strcmp(base + 1, OTHERS) == 0)
		*base = '\0';
	if (snprintf(ret_path, size, "%s%s", mount, own) >= (int)size)
		return -1;
	dir = open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; dir >= 0 && i < ARRAY_SIZE(needed); i++)
		if (faccessat(dir, needed[i], W_OK, AT_EACCESS) < 0)
			return -1;
	if (dir < 0 || !has_word(dir, "cgroup.controllers", "memory"))
		return -1;
	return take_fd(&dir);
}

bool cgroup_is_delegated(void)
{
	char path[PATH_MAX];
	_cleanup_close_ int dir = open_delegated(path, sizeof(path));

	return dir >= 0;
}

/* ---- room for children ---------------------------------------------------------------------- */

/* Everybody in @dir moves to the leaf.  1 if there was somebody. */
static int move_others(int dir)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char *save = NULL;
	int moved = 0, r;

	if (mkdirat(dir, OTHERS, 0755) < 0 && errno != EEXIST)
		return -errno;
	r = io_read_file(dir, "cgroup.procs", MAX_FILE, &text);
	if (r < 0)
		return r;
	for (char *pid = strtok_r(buf_cstr(&text), "\n", &save); pid; pid = strtok_r(NULL, "\n", &save)) {
		r = io_write_str(dir, OTHERS "/cgroup.procs", pid);
		if (r < 0 && r != -ESRCH)
			return r;
		moved = 1;
	}
	return moved;
}

static int hand_on_memory(int dir)
{
	int r = 1;

	if (has_word(dir, "cgroup.subtree_control", "memory"))
		return 0;
	for (int i = 0; i < ROUNDS && r > 0; i++)
		r = move_others(dir);
	return r < 0 ? r : io_write_str(dir, "cgroup.subtree_control", "+memory");
}

/* Groups of supervisors that were killed. */
static void remove_stale(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	int pid;

	if (!d && copy >= 0)
		close(copy);
	while (d && (e = readdir(d)))
		if (sscanf(e->d_name, "podrun-%d-", &pid) == 1 && kill(pid, 0) < 0 && errno == ESRCH)
			unlinkat(dir, e->d_name, AT_REMOVEDIR);
}

/* ---- interface ------------------------------------------------------------------------------ */

static int refuse(struct err *e)
{
	err_set(e, ERR_HOST, -EOPNOTSUPP, "--memory needs a cgroup that is delegated to you");
	return err_hint(e, "systemd-run --user --scope -p Delegate=yes podrun ...");
}

int cgroup_create(const char *name, uint64_t memory, char **ret, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int dir = -1, own = -1;
	char parent[PATH_MAX], limit[24];
	int r;

	dir = open_delegated(parent, sizeof(parent));
	if (dir < 0)
		return refuse(e);
	r = hand_on_memory(dir);
	if (r < 0) {
		err_errno(e, r, "cannot hand the memory controller of %s on", parent);
		return err_reclass(e, ERR_HOST);
	}
	remove_stale(dir);
	if (asprintf(&path, "%s/podrun-%d-%s", parent, getpid(), name) < 0)
		return err_errno(e, -ENOMEM, "cgroup");
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", path);
	own = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(limit, sizeof(limit), "%" PRIu64, memory);
	r = own < 0 ? -errno : io_write_str(own, "memory.max", limit);
	if (r < 0) {
		rmdir(path);
		return err_errno(e, r, "cannot limit memory to %s bytes", limit);
	}
	*ret = take_ptr(path);
	return 0;
}

int cgroup_enter(const char *path, pid_t pid, struct err *e)
{
	_cleanup_free_ char *procs = NULL;
	char text[16];
	int r;

	if (asprintf(&procs, "%s/cgroup.procs", path) < 0)
		return err_errno(e, -ENOMEM, "cgroup");
	snprintf(text, sizeof(text), "%d", pid);
	r = io_write_str(AT_FDCWD, procs, text);
	return r < 0 ? err_errno(e, r, "cannot put the session into %s", path) : 0;
}

void cgroup_remove(char *path)
{
	uint64_t end = io_now_ns() + REMOVE_MS * 1000000ULL;

	/* What was killed a moment ago may still be on its way out. */
	while (path && rmdir(path) < 0 && errno == EBUSY && io_now_ns() < end)
		usleep(2000);
	free(path);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in tenure.h. */
#include "supervisor/disk/tenure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/base.h"
#include "supervisor/disk/paths.h"
#include "supervisor/rewrite/ipc/ipc.h"
#include "supervisor/rewrite/procfs/place.h"
#include "supervisor/rewrite/view/view.h"

#define OPEN_TRIES  100
#define OPEN_NAP_US 1000

static int lock_names(const struct paths *p, int how, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	if (asprintf(&path, "%s/names.lock", p->state) < 0)
		return err_errno(e, -ENOMEM, "lock");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	while (flock(fd, how) < 0)
		if (errno != EINTR)
			return err_errno(e, -errno, "%s", path);
	return take_fd(&fd);
}

int tenure_lock(const struct paths *p, struct err *e)
{
	return lock_names(p, LOCK_EX, e);
}

int tenure_try_lock(const struct paths *p)
{
	return lock_names(p, LOCK_EX | LOCK_NB, NULL);
}

int tenure_open(const char *path, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	/* who looks whether it is somebody's has it for a moment */
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (i == OPEN_TRIES || errno != EWOULDBLOCK)
			return err_errno(e, -errno, "%s", path);
		usleep(OPEN_NAP_US);
	}
	return take_fd(&fd);
}

/* True if @path is a directory that nobody has open as its own. */
static bool is_free(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

bool tenure_is_held(const char *path)
{
	return access(path, F_OK) == 0 && !is_free(path);
}

bool tenure_is_forsaken(const char *path)
{
	_cleanup_free_ char *record = NULL;

	return asprintf(&record, "%s/record", path) > 0 && access(record, F_OK) < 0 &&
		errno == ENOENT && is_free(path);
}

bool tenure_holds(const char *path, int fd)
{
	struct stat there, ours;

	return fd >= 0 && stat(path, &there) == 0 && fstat(fd, &ours) == 0 &&
		there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

char *tenure_set_aside(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *aside = NULL;

	for (unsigned i = 0; slash && i < 1000; i++) {
		if (asprintf(&aside, "%.*s/.gone-%d-%u", (int)(slash - path), path, getpid(), i) <
			0)
			return NULL;
		if (access(aside, F_OK) < 0 && rename(path, aside) == 0)
			return aside;
		free(take_ptr(aside));
		if (access(path, F_OK) < 0)
			return NULL;
	}
	return NULL;
}

void tenure_remove(char *aside)
{
	if (aside)
		io_rm_rf(AT_FDCWD, aside);
	free(aside);
}

#define MAX_SWEPT 64 /* at once; the next one goes on */

struct swept {
	char *aside[MAX_SWEPT];
	size_t n;
};

static void set_aside(struct swept *s, const char *path)
{
	if (s->n < MAX_SWEPT && (s->aside[s->n] = tenure_set_aside(path)))
		s->n++;
}

/* The entries of @top that begin with @with. */
static void sweep(struct swept *s, const char *top, const char *with, const char *runtime)
{
	_cleanup_closedir_ DIR *d = opendir(top);
	struct dirent *entry;

	while (d && s->n < MAX_SWEPT && (entry = readdir(d))) {
		_cleanup_free_ char *path = NULL, *socket = NULL;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			strncmp(entry->d_name, with, strlen(with)) != 0 ||
			asprintf(&path, "%s/%s", top, entry->d_name) < 0)
			continue;
		/* A dot is no session's: what is being taken apart, or resumed. */
		if (entry->d_name[0] == '.' ? !is_free(path) : !tenure_is_forsaken(path))
			continue;
		set_aside(s, path);
		if (runtime && asprintf(&socket, "%s/%s", runtime, entry->d_name) > 0 &&
			is_free(socket))
			set_aside(s, socket);
	}
}

void tenure_sweep(const struct paths *p)
{
	_cleanup_free_ char *sessions = NULL;
	_cleanup_close_ int lock = -1;
	struct swept s = {0};

	ipc_sweep(p->state);
	procfs_place_sweep();
	view_short_sweep();
	if (asprintf(&sessions, "%s/sessions", p->state) < 0)
		return;
	lock = tenure_lock(p, NULL);
	if (lock < 0)
		return;
	sweep(&s, sessions, "", p->runtime);
	sweep(&s, p->runtime, ".gone-", NULL);
	lock = close_fd(lock);
	for (size_t i = 0; i < s.n; i++)
		tenure_remove(s.aside[i]);
}

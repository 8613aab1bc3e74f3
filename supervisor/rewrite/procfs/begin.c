// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/rewrite/procfs/begin.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "supervisor/rewrite/ipc/proc.h"
#include "supervisor/rewrite/procfs/place.h"
#include "supervisor/rewrite/procfs/procfs.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/view/view.h"

static int session_path(void *arg, const char *host, char *buf, size_t size)
{
	const struct rewrite *rw = arg;
	const char *queue = ipc_names_queue(rw->ipc, ipc_names_host_slot(rw->ipc, host + 1));
	char path[PATH_MAX];
	int r;

	if (host[0] == '/' && queue) { /* a message queue's is below the root of its own mount */
		r = snprintf(buf, size, "/%s", queue);
		return (size_t)r < size ? r : -ENAMETOOLONG;
	}
	r = view_session_path(rw->view, host, path);
	if (r == -ENOENT) { /* the session may have another name by now */
		view_refresh(rw->view);
		r = view_session_path(rw->view, host, path);
	}
	if (r < 0)
		return r;
	r = snprintf(buf, size, "%s", path);
	return (size_t)r < size ? r : -ENAMETOOLONG;
}

static bool is_hosts(void *arg, const char *path)
{
	const struct rewrite *rw = arg;

	return view_is_hosts(rw->view, path);
}

static int program(void *arg, const char *host)
{
	const struct rewrite *rw = arg;
	const char *programs = rw->view->programs;
	char path[PATH_MAX], source[PATH_MAX];
	int fd;

	if (strncmp(host, programs, strlen(programs)) != 0 || view_session_path(rw->view, host, path) < 0 ||
		view_host_path(rw->view, path, source) < 0)
		return -ENOENT;
	fd = open(source, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -ENOENT : fd;
}

static int sysvipc(void *arg, const char *name, struct buf *text)
{
	static const char *const names[IPC_SORTS] = {"shm", "sem", "msg"};
	const struct rewrite *rw = arg;

	for (enum ipc_sort i = 0; i < IPC_SORTS; i++)
		if (!strcmp(name, names[i]))
			return ipc_proc_show(rw->ipc, &rw->tasks, i, text);
	return -ENOENT;
}

int procfs_begin(struct rewrite *rw, const char *files, struct err *e)
{
	static struct procfs_ops ops = {.session_path = session_path,
		.program = program,
		.is_hosts = is_hosts,
		.sysvipc = sysvipc};
	_cleanup_free_ char *instead = NULL;
	char place[PATH_MAX];
	int r;

	ops.arg = rw;
	ops.host = &rw->host;
	ops.boottime_ns = rw->clocks.offset.boottime_ns;
	ops.rooted = rw->view->rooted;
	if (asprintf(&instead, "%s/proc", files) < 0)
		return err_errno(e, -ENOMEM, "/proc");
	r = procfs_place_make(instead, place, e); /* open, and so locked, until the end */
	return r < 0 ? r : procfs_create(&rw->view->procfs, &rw->tasks, place, &ops, e);
}

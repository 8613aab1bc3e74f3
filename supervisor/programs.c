// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/programs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* Beside us, as a copy or as built; as installed, also if all of it was moved. */
static const char *const places[] = {
	"", "display/viewer/", "../libexec/podrun/", PODRUN_LIBEXEC "/"};

char *programs_find(const char *name, struct err *e)
{
	_cleanup_free_ char *us = io_readlink(AT_FDCWD, "/proc/self/exe");
	const char *slash = us ? strrchr(us, '/') : NULL;
	char *path;

	for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
		int here = places[i][0] == '/' ? 0 : (int)(slash + 1 - us);

		if (asprintf(&path, "%.*s%s%s", here, us, places[i], name) < 0)
			break;
		if (access(path, X_OK) == 0)
			return path;
		free(path);
	}
	err_set(e, ERR_HOST, -ENOENT, "%s is not installed", name);
	return NULL;
}

int programs_open(const char *name, struct err *e)
{
	_cleanup_free_ char *path = programs_find(name, e);
	int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;

	if (path && fd < 0)
		return err_errno(e, -errno, "%s", path);
	return path ? fd : e->error;
}

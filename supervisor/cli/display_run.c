// SPDX-License-Identifier: GPL-2.0-or-later
/* What podrun display does, in podrun-display. */
#include "supervisor/cli/display.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "display/display.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/view_vnc.h"
#include "supervisor/cli/view_way.h"
#include "supervisor/cli/vnc_port.h"
#include "supervisor/screen/server.h"

static int misused(struct err *e)
{
	err_set(e, ERR_USAGE, -EINVAL, "podrun display is for sessions, which start it");
	return err_hint(e, "podrun run --display gives one a screen, podrun view shows it");
}

/* Called by a supervisor: all its descriptors are there. */
static bool was_called(void)
{
	for (int fd = DISPLAY_SERVE_LISTENER; fd <= SCREEN_SERVER_SHM; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return false;
	return true;
}

/* Called by podrun run: its port is there. */
static int serve_vnc(struct cli *c, const char *name, struct err *e)
{
	struct vnc_port port = {.listener = DISPLAY_VNC_LISTENER};
	struct view_way way;
	int r;

	if (fcntl(port.listener, F_SETFD, FD_CLOEXEC) < 0 ||
		io_read_full(STDIN_FILENO, port.password, sizeof(port.password) - 1) < 0)
		return misused(e);
	r = view_way_parse(&way, c, name, e);
	if (r < 0)
		return r;
	r = view_vnc_serve(&port, &way, false, 0, e);
	view_way_fini(&way);
	return r;
}

static int serve(const struct display_options *o, const char *name, struct err *e)
{
	struct display_x_options x = {.number = (unsigned)o->number,
		.files = SCREEN_SERVER_FILES,
		.shm = SCREEN_SERVER_SHM};
	struct display_serve_options serve = {.name = name,
		.listener = DISPLAY_SERVE_LISTENER,
		.control = DISPLAY_SERVE_CONTROL,
		.shm = -1,
		.files = -1};
	struct display_source *source;

	if (!was_called())
		return misused(e);
	log_init(STDERR_FILENO, "display");
	if (o->size && sscanf(o->size, "%5dx%5d", &x.width, &x.height) != 2)
		return err_set(e, ERR_USAGE, -EINVAL, "--size: '%s' is not valid here", o->size);
	serve.files = fcntl(SCREEN_SERVER_FILES, F_DUPFD_CLOEXEC, 0);
	serve.shm = fcntl(SCREEN_SERVER_SHM, F_DUPFD_CLOEXEC, 0);
	if (display_x_create(&source, &x, e) < 0) {
		close_fd(serve.shm);
		close_fd(serve.files);
		return e->error;
	}
	return display_serve(&serve, source, e);
}

int display_run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct display_options *o = opts;
	const char *name = argc ? argv[0] : "";

	return o->serve ? serve(o, name, e) : o->vnc ? serve_vnc(c, name, e) : misused(e);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun display: the process that shows a session's display.  Supervisors start it
 * (supervisor/screen_server.h); viewers are podrun view.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "display/display.h"
#include "supervisor/cli/cli.h"
#include "supervisor/screen_server.h"

struct display_options {
	bool serve;
	uint64_t number;
	const char *size;
};

#define AT(member) offsetof(struct display_options, member)
static const struct cli_option options[] = {
	{"serve", 0, NULL, "be a session's display server; its supervisor starts it so", CLI_FLAG,
		AT(serve)},
	{"number", 0, "N", "of the session's display", CLI_NUMBER, AT(number)},
	{"size", 0, "WxH", "of its screen at first", CLI_STRING, AT(size)},
};

/* Called by a supervisor: all its descriptors are there. */
static bool was_called(void)
{
	for (int fd = DISPLAY_SERVE_LISTENER; fd <= SCREEN_SERVER_SHM; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return false;
	return true;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct display_options *o = opts;
	struct display_x_options x = {.number = (unsigned)o->number,
		.files = SCREEN_SERVER_FILES,
		.shm = SCREEN_SERVER_SHM};
	struct display_serve_options serve = {.name = argc ? argv[0] : "",
		.listener = DISPLAY_SERVE_LISTENER,
		.control = DISPLAY_SERVE_CONTROL,
		.shm = -1,
		.files = -1};
	struct display_source *source;

	if (!o->serve || !was_called()) {
		err_set(e, ERR_USAGE, -EINVAL, "podrun display is for sessions, which start it");
		return err_hint(e, "podrun run --display gives one a screen, podrun view shows it");
	}
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

const struct cli_command cli_display = {
	.name = "display",
	.usage = "--serve",
	.help = "the process that shows a session's display",
	.text = "A session that was started with *--display* has an X server inside, and outside a process like this "
		"one: it reads the X server's picture and sends changes to viewers (*podrun view*), and what they "
		"type back. The session's supervisor starts it, and another one if it ends.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct display_options),
	.group = CLI_MORE,
	.max_operands = 1,
	.run = run,
};

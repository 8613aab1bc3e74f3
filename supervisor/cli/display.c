// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun display: the process that shows a session's display.  Supervisors start it
 * (supervisor/screen/server.h); viewers are podrun view.
 */
#include "supervisor/cli/display.h"

#include <stddef.h>

#include "supervisor/cli/cli.h"
#include "supervisor/programs.h"

#define AT(member) offsetof(struct display_options, member)
static const struct cli_option options[] = {
	{"serve", 0, NULL, "be a session's display server; its supervisor starts it so", CLI_FLAG,
		AT(serve)},
	{"vnc", 0, NULL, "serve VNC viewers of a session; podrun run --vnc starts it so", CLI_FLAG,
		AT(vnc)},
	{"number", 0, "N", "of the session's display", CLI_NUMBER, AT(number)},
	{"size", 0, "WxH", "of its screen at first", CLI_STRING, AT(size)},
};

const struct cli_command cli_display = {
	.name = "display",
	.usage = "--serve|--vnc NAME",
	.help = "the process that shows a session's display",
	.text = "A session that was started with *--display* has an X server inside, and outside a process like this "
		"one: it reads the X server's picture and sends changes to viewers (*podrun view*), and what they "
		"type back. The session's supervisor starts it, and another one if it ends. "
		"*podrun run --vnc* has another one, for VNC viewers.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct display_options),
	.group = CLI_MORE,
	.max_operands = 1,
	.program = PROGRAMS_DISPLAY,
};

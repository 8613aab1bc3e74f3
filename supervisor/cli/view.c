// SPDX-License-Identifier: GPL-2.0-or-later
/* view: a session's display, in a browser, in a window of its own, or as a picture. */
#include "supervisor/cli/view.h"

#include <stddef.h>

#include "supervisor/cli/cli.h"
#include "supervisor/programs.h"

static const struct cli_option options[] = {
	{"no-open", 0, NULL, "only print the address", CLI_FLAG,
		offsetof(struct view_options, no_open)},
	{"view-only", 0, NULL, "without keyboard and pointer", CLI_FLAG,
		offsetof(struct view_options, view_only)},
	{"listen", 0, "ADDR:PORT", "serve browsers on other machines, by https", CLI_STRING,
		offsetof(struct view_options, listen)},
	{"lossless", 0, NULL, "exact pictures on slow lines, too", CLI_FLAG,
		offsetof(struct view_options, lossless)},
	{"quality", 0, "1-100", "of JPEG where a picture may differ a little", CLI_STRING,
		offsetof(struct view_options, quality)},
	{"screenshot", 0, "FILE", "write what is shown as .png or .ppm, and end", CLI_STRING,
		offsetof(struct view_options, screenshot)},
	{"vnc", 0, "[ADDR:]PORT", "serve VNC viewers; a PORT of 0 is the first free one", CLI_STRING,
		offsetof(struct view_options, vnc)},
	{"record", 0, "FILE|-", "write what is shown from now on, until interrupted", CLI_STRING,
		offsetof(struct view_options, record)},
	{"replay", 0, "FILE", "show what --record has written", CLI_STRING,
		offsetof(struct view_options, replay)},
	{"stdio", 0, NULL, "the display protocol on stdin and stdout; ssh starts it so", CLI_FLAG,
		offsetof(struct view_options, stdio)},
	{"native", 0, NULL, "in a window of its own (podrun-viewer)", CLI_FLAG,
		offsetof(struct view_options, native)},
	{"podrun", 0, "PATH", "where podrun is on the other host", CLI_STRING,
		offsetof(struct view_options, podrun)},
};

const struct cli_command cli_view = {
	.name = "view",
	.usage = "[[[USER@]HOST:]NAME]",
	.help = "a session's display in a browser",
	.text = "Serves the display of a session that was started with *--display* to a browser on this machine, and "
		"prints its address, which lets one browser in, once; on a desktop it is opened, too. The page "
		"connects again by itself when the connection ends, also after the session was suspended and "
		"resumed. Interrupt it to end.\n\n"
		"A display on another host comes through *ssh*, where podrun must be installed. With *--listen* "
		"browsers on other machines are served by https, with a key of podrun's own: compare the "
		"fingerprint that is printed with the one the browser shows before you trust it. Each address that "
		"has been used is followed by another.\n\n"
		"*--vnc* serves VNC viewers on this machine, or at ADDR; where, and the password they need, is "
		"printed. VNC encrypts nothing: for other machines take an *ssh* tunnel. What *--record* writes can "
		"be shown again by *--replay*, as long as it took.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct view_options),
	.group = CLI_LOOK,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.program = PROGRAMS_DISPLAY,
};

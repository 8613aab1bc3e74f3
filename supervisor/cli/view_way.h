/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_way - the way to a session's display server, here or on another host. */
#ifndef SUPERVISOR_CLI_VIEW_WAY_H
#define SUPERVISOR_CLI_VIEW_WAY_H

#include <stdbool.h>

struct cli;
struct err;

struct view_way {
	struct cli *cli;
	char *host;	    /* NULL: this one */
	char *name;	    /* of the session */
	const char *podrun; /* the command on the other host; NULL: podrun */
};

/* "NAME" or "[USER@]HOST:NAME".  ERR_USAGE. */
int view_way_parse(struct view_way *w, struct cli *c, const char *text, struct err *e);
void view_way_fini(struct view_way *w);
/*
 * A connected stream socket, the caller's; as display_web_options.connect.  Whether another host
 * has such a session is told there, on stderr, and by the stream's end.
 */
int view_way_connect(void *way, struct err *e);
/*
 * Says what is in the way, if a connection would lead to no display.  Another host is asked, too:
 * what ssh or podrun there have to say becomes the error.
 */
int view_way_try(struct view_way *w, struct err *e);
/* Our stdin and stdout become the stream's ends, until either closes. */
int view_way_stdio(struct view_way *w, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view_way - the way to a session's display server, here or on another host.
 *
 * A session is found by its name, and is the one that was there first: another one of the same name
 * is not shown to those who were let in to that, and it is followed where it gets another name.  Of
 * other hosts only the name is known.
 */
#ifndef SUPERVISOR_CLI_VIEW_WAY_H
#define SUPERVISOR_CLI_VIEW_WAY_H

#include <stdbool.h>
#include <stdint.h>

struct Pb__Record;
struct cli;
struct err;

struct view_way {
	struct cli *cli;
	char *host;	    /* NULL: this one */
	char *name;	    /* of the session */
	const char *podrun; /* the command on the other host; NULL: podrun */
	bool never_waits;   /* for a display server that does not answer */
	bool far;	    /* it has led to another host */
	bool known;
	uint8_t session[16]; /* once it is known: its number, which it keeps wherever it goes */
};

/* "NAME" or "[USER@]HOST:NAME".  ERR_USAGE. */
int view_way_parse(struct view_way *w, struct cli *c, const char *text, struct err *e);
void view_way_fini(struct view_way *w);
/* From now on it is the session that has the name now, if there is one. */
void view_way_know(struct view_way *w);
/* If it is called otherwise by now, by that name; no more than this changes the way's. */
void view_way_follow(struct view_way *w);
/* @r, of that name, is of another session. */
bool view_way_is_other(const struct view_way *w, const struct Pb__Record *r);
/*
 * A connected stream socket, the caller's; as display_web_options.connect.  -ESTALE: another
 * session has the name.  Whether another host
 * has such a session is told there, on stderr, and by the stream's end.
 */
int view_way_connect(void *way, struct err *e);
/* For how many milliseconds whoever has been reached may say nothing at first. */
int view_way_patience(const struct view_way *w);
/*
 * Says what is in the way, if a connection would lead to no display.  Another host is asked, too:
 * what ssh or podrun there have to say becomes the error.
 */
int view_way_try(struct view_way *w, struct err *e);
/* Our stdin and stdout become the stream's ends, until either closes. */
int view_way_stdio(struct view_way *w, struct err *e);

#endif

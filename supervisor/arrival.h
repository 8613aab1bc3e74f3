/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arrival - where a session is rebuilt: its directory, and a world that is made before its image
 * comes.
 *
 * Theory of operation
 *
 * A session that is moved stands still while the other side makes its namespaces, mounts and
 * network, as long as all that follows takes.  They depend on its config, and on what it has for
 * files.  So the other side is foretold of the config, as far as that matters, in the greeting
 * (cli/transfer.h), and makes the world while the session still runs:
 *
 *      migrate    arrival_foretell     its config, and the directories of its layers: not of one
 *                                      that has changed anything in these
 *      resume     arrival_prepare      a directory, and in it a world as for a new session
 *      image      arrival_directory    is its config what was foretold?
 *      unpacked   arrival_keep         the files are there, and the layers what was foretold: the
 *                                      world might have been made now.  It gets its clocks and
 *                                      its filter
 *
 * Where something is not as it was foretold the world goes, and another is made when it is needed,
 * as it is for an image whose config nobody has foretold.
 */
#ifndef SUPERVISOR_ARRIVAL_H
#define SUPERVISOR_ARRIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Pb__Config;
struct buf;
struct err;
struct session;

/*
 * Appends to @ret what the world of @c, whose session's directory is open as @dir, depends on;
 * nothing where it could not be made early.
 */
void arrival_foretell(const struct Pb__Config *c, int dir, struct buf *ret);
/* What `run` would have refused of it: ERR_IMAGE. */
int arrival_check(const struct Pb__Config *c, struct err *e);
/*
 * Makes directory and world if @foretold makes sense; if not, or if it fails, that is no
 * misfortune.
 */
void arrival_prepare(struct session *s, const uint8_t *foretold, size_t len);
/*
 * s->record is there.  Makes s->dir, which nobody looks for by its name yet, with files/ in it, and
 * returns that, to be closed.  *ret_there: they are there already, and a world that was foretold of
 * the record stands.
 */
int arrival_directory(struct session *s, bool *ret_there, struct err *e);
/*
 * The files are there; @changed: they made the layers something else.  True if a world stands and
 * is kept: @then is called as by session_make_world.
 */
bool arrival_keep(
	struct session *s, bool changed, void (*then)(struct session *s, struct err *e));

#endif

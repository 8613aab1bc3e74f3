/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapped - a session that runs before all of its memory has been copied from its image.
 *
 * Theory of operation
 *
 * Where it can be done safely, long runs of memory are mapped from the image for the moment
 * (ckpt/memory/mapped.c), and a worker, the converter, turns them into memory of the session's
 * own while it runs.  Until that is done
 *
 *      the image       is held open with a read lease: who wants to write to it or to shorten it is
 *                      kept waiting by the kernel, for lease-break-time (45 s), and the
 *                      converter hurries.  Removing it is fine
 *      calls           that would find out (madvise, mremap ...) are notified by the filter and held here
 *                      until the converter has done that memory
 *      suspend, pause  wait in their client until it is done, which is hurried, too
 *
 * What came ahead of a session that was moved while it ran (ckpt/memory/arrived.h) lies in a
 * nameless file that nobody else has: it is mapped like an image, without a lease, also while the
 * session waits for its GO.
 *
 * A converter that is killed is started again; nothing of the session is lost with it.
 *
 * The filter stays as it is: later calls on those ranges cost a notification each, and are let go
 * on at once.
 */
#ifndef SUPERVISOR_MAPPED_H
#define SUPERVISOR_MAPPED_H

#include <stdbool.h>
#include <stddef.h>

struct ckpt_mapped;
struct ckpt_mapped_options;
struct err;
struct session;
struct Pb__Data;
struct Pb__Watch;

/*
 * True if @image can't be changed from here on (lease.h).  Only then may be asked whether it is
 * known to be whole.
 */
bool mapped_lease(struct session *s, int image);
/*
 * What the worker that reads it must know to map memory from it; NULL: this host does not let us.
 */
const struct ckpt_mapped_options *mapped_options(struct session *s);
/* The same of what comes ahead of a session, in a stream. */
const struct ckpt_mapped_options *mapped_arrivals(struct session *s);
/* Nobody has wanted to change it yet. */
bool mapped_image_is_whole(const struct session *s);
/* The worker's messages: what it will map, and what it has. */
/* @arrived: the file it comes from, if that is what came ahead, which is ours to close; or -1. */
void mapped_watch(struct session *s, const struct Pb__Watch *m, int arrived);
void mapped_pieces(struct session *s, const struct Pb__Data *m);
/* What the filter watches over, all the session's life; NULL: nothing. */
const struct ckpt_mapped *mapped_info(const struct session *s);
/*
 * Before anything runs: may it, with what is mapped?  ERR_STATE: somebody wants to write to the
 * image; or ERR_FAILED: the resume must fail.
 */
int mapped_check(const struct session *s, struct err *e);

/* Before the first task runs: from here on calls that would find out are held. */
void mapped_guard(struct session *s);
/* The session runs: converts what is mapped.  If nothing is, the image is given up. */
void mapped_begin(struct session *s);
/* 0: nothing is mapped.  1: it is hurried, and control_take_up follows.  Negative: that has taken
 * a minute already. */
int mapped_hurry(struct session *s, struct err *e);
/*
 * The session stands still for who knows how long: an image file is not to be kept from others
 * meanwhile.
 */
void mapped_wait(struct session *s);
/* Gives the image up, whatever was going on. */
void mapped_end(struct session *s);
void mapped_free(struct session *s);

#endif

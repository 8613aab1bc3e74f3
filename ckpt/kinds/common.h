/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * common - what every kind of open file has: flags, position, owner, locks; and objects that
 * several open files share.
 *
 * A FILE kind's message has a `FileCommon common = 1` (proto/files.proto).  It is filled by
 * ckpt_common_dump from our duplicate of the descriptor, which is the session's own open file:
 * nothing is changed in it.  ckpt_common_restore does the reverse with the builder's descriptor,
 * which is the one the tasks will get.
 */
#ifndef CKPT_KINDS_COMMON_H
#define CKPT_KINDS_COMMON_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ckpt/build.h"
#include "ckpt/survey/survey.h"

typedef struct Pb__FileCommon Pb__FileCommon;

/* ---- dump ------------------------------------------------------------------------------------ */

/* Makes *ret (freed by ckpt_common_free, NULL is fine) of @f.  An owner which is not of the session
 * (it may have ended) is left out. */
int ckpt_common_dump(struct ckpt_dump *d, const struct ckpt_file *f, Pb__FileCommon **ret,
	struct err *e);
void ckpt_common_free(Pb__FileCommon *c);
DEFINE_CLEANUP(common, Pb__FileCommon *, ckpt_common_free);

/* The text of our duplicate's fdinfo as it is now (the survey's may be older than a change we
 * made), appended to @b. */
int ckpt_common_fdinfo(const struct ckpt_dump *d, const struct ckpt_file *f, struct buf *b,
	struct err *e);
/* The number behind "key:\t" of @text in @base; false if there is none. */
bool ckpt_fdinfo_number(const char *text, const char *key, int base, uint64_t *ret);

/* The path of @f without the kernel's " (deleted)" behind the name of a file without one; caller
 * frees. */
char *ckpt_common_path(const struct ckpt_file *f);

/* Virtual numbers of host numbers: 0 for one that is not of the session. */
pid_t ckpt_common_vpid(const struct ckpt_dump *d, pid_t pid);
pid_t ckpt_common_vtid(const struct ckpt_dump *d, pid_t tid);
pid_t ckpt_common_vpgid(const struct ckpt_dump *d, pid_t pgid);

/* All open files whose inode has number @ino, by device and id; returns how many.  *ret is valid
 * until a file is taken up. */
size_t ckpt_common_by_inode(struct ckpt_dump *d, ino_t ino, const struct ckpt_file *const **ret);
/* The first open file (by id) of the same kind and inode as @f; @f itself if it is the first. */
const struct ckpt_file *ckpt_common_first(struct ckpt_dump *d, const struct ckpt_file *f);

/*
 * The open file which carries the contents of the nameless inode @dev:@ino in its own record and
 * DATA (kinds GHOST and MEMFD), or NULL: then whoever maps it has to write them.  @dev and @ino as
 * stat(2) and /proc/PID/maps give them.
 */
const struct ckpt_file *ckpt_common_carrier(const struct ckpt_dump *d, dev_t dev, ino_t ino);

/* Writes the contents of @f's inode, without its holes, as DATA of @f. */
int ckpt_contents_dump(struct ckpt_dump *d, const struct ckpt_file *f, struct err *e);

/* ---- restore --------------------------------------------------------------------------------- */

/*
 * Gives @fd the recorded status flags, position, owner and signal.  Flags which only open(2) sets
 * must have been given there.  @c may be NULL (a hostile image).
 */
int ckpt_common_restore(struct ckpt_build *b, int fd, const Pb__FileCommon *c, struct err *e);
/* Takes the recorded locks again; for link, when every open file exists. */
int ckpt_common_lock(int fd, const Pb__FileCommon *c, struct err *e);
/*
 * And leases; for finish, when only the session has the file open.  The signal that tells of a
 * lease's end tells the descriptor by which it was taken, so a task that has @f takes it.
 */
void ckpt_common_lease(struct ckpt_build *b, const struct ckpt_build_file *f, const Pb__FileCommon *c);

/* Flags for open(2) of a recorded F_GETFL: without what creates or truncates, with O_CLOEXEC,
 * O_NOCTTY and O_NONBLOCK (ckpt_common_restore takes the last one back). */
int ckpt_common_open_flags(const Pb__FileCommon *c);

/*
 * Opens a recorded path in the session's view.  The path may lead over the session's symbolic
 * links but not through /proc/PID/fd and its like, which could lead out of it.  The error names
 * the path.
 */
int ckpt_common_open(const char *path, int flags, struct err *e);
/* The same, also where the mode of one's own file closes it to its owner. */
int ckpt_common_open_own(struct ckpt_build *b, const char *path, int flags, struct err *e);

/*
 * Of a failure to open by its path what an image does not carry: what is not there, or may not be
 * opened, this host lacks (ERR_HOST, with a hint).  Returns e->error.
 */
int ckpt_common_blame_host(struct err *e);

/* A new open file of what @fd refers to, with flags of its own. */
int ckpt_common_reopen(struct ckpt_build *b, int fd, int flags, struct err *e);

/* An open file of the object that the builder's @fd refers to, with all that was recorded of it.
 * Returns the descriptor, the caller's. */
int ckpt_common_view(struct ckpt_build *b, int fd, const Pb__FileCommon *c, struct err *e);

/*
 * A directory that has been removed and was @path (the host's), open for reading: it is made there
 * for a moment, with those above it that are gone, or else in the session's /tmp.  The descriptor
 * or -errno.
 */
int ckpt_common_gone_dir(const struct ckpt_build *b, const char *path);

/* Copies a recorded path (not terminated) as a string: true if it is absolute and can be one. */
bool ckpt_common_check_path(const void *data, size_t len, char ret[PATH_MAX]);

/* "ERR_IMAGE: a NAME record makes no sense". */
int ckpt_common_bad(const struct ckpt_record *r, struct err *e);

/*
 * Something that several open files are views of: a pipe, a nameless inode, a pair of terminals.
 * Descriptors in it are the builder's own, beside those of the files; closed by
 * ckpt_objects_close once everything has been written.
 */
struct ckpt_object {
	uint64_t key;
	int fd;	 /* -1 at first */
	int fd2; /* -1 at first */
	bool done;
};

/* The object of @kind with @key, made if there is none.  Valid until the next call for @kind; NULL
 * when memory is out. */
struct ckpt_object *ckpt_object_get(struct ckpt_build *b, enum proto_kind kind, uint64_t key);
/* Closes the descriptors of all objects of @kind. */
void ckpt_objects_close(struct ckpt_build *b, enum proto_kind kind);

/*
 * A descriptor, open for reading and writing unless seals forbid, of the contents that the record
 * of open file @file carries (kinds GHOST and MEMFD).  Borrowed from the build; there from create
 * on, filled once DATA has been read.  -ENOENT with ERR_IMAGE when @file is none of those kinds.
 */
int ckpt_common_contents(struct ckpt_build *b, uint32_t file, struct err *e);

/* The `data` op of a kind whose objects (key: file id) have the contents behind `fd`; the size
 * must have been set. */
int ckpt_contents_fill(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset,
	const void *data, size_t len, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * err - how a failure travels from where it happens to the one line the user reads.
 *
 * A function that can fail takes a `struct err *e` as its last parameter before the outputs'
 * prefix rules of the house apply, returns a negative errno and leaves the story in *e.  The
 * struct has a fixed size, lives on the stack of whoever asks first and allocates nothing: it
 * survives fork, fits through a pipe in one write, and can be filled when memory is gone.
 *
 *     at the bottom     return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "io_uring is not supported");
 *     on the way up     return err_wrap(e, "task %d (%s) fd %d", vpid, comm, fd);
 *     at the top        podrun: cannot suspend 'work': task 12 (mysqld) fd 7: io_uring is ...
 *                       hint: ...
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stddef.h>

/* What kind of failure; one table in err.c maps each to exit code, JSON name and meaning. */
enum err_class {
	ERR_NONE = 0,
	ERR_FAILED,	 /* anything without a class of its own */
	ERR_USAGE,	 /* the command line is wrong */
	ERR_UNFREEZABLE, /* something in the session can't be frozen; the session runs on */
	ERR_HOST,	 /* this host lacks a feature */
	ERR_NOT_FOUND,	 /* no such session, file, key */
	ERR_STATE,	 /* it exists, in the wrong state */
	ERR_IMAGE,	 /* an image is corrupt, truncated, or not trusted */
	ERR_PEER,	 /* the other side of a migration failed; ours runs on */
	ERR_IN_DOUBT,	 /* of a move nobody knows which side has it; here it is frozen */
	ERR_MOVED,	 /* the session was suspended and goes on elsewhere */
	ERR_CLASS_MAX
};

struct err {
	enum err_class class;
	int error;	/* negative errno, 0 while nothing has failed */
	char msg[448];	/* context first, cause last, no newline */
	char hint[256]; /* what the user can do; empty if there is nothing */
};

/* One row of the table of classes. */
struct err_class_info {
	const char *name; /* as --json shows it */
	int exit_code;	  /* of the podrun command */
	const char *text; /* for the manual page */
};

/* The row of @class.  Never NULL. */
const struct err_class_info *err_class_info(enum err_class class);

/*
 * Records a failure: @error is a negative errno, the message says what failed and why.
 * Overwrites what *e held.  @e may be NULL.  Returns @error, so that it can be returned at once.
 */
int err_set(struct err *e, enum err_class class, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same with ": strerror" appended, for a system call that failed with errno @error < 0. */
int err_errno(struct err *e, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the message on the way up.  Returns e->error. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Says what the user can do about it; the last hint wins.  Returns e->error. */
int err_hint(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Changes the class of a failure on the way up, where the caller knows better.  Returns e->error.
 */
int err_reclass(struct err *e, enum err_class class);

/*
 * Of a failure of class "failed" that met values from an image: by its errno, is it the image that
 * asks for what cannot be (class image), or this host that does not let us (class host)?  What a
 * host may run out of - memory, descriptors, space - stays as it is.  What is too large (EFBIG) is
 * the host's, with a hint, where setrlimit(2) limits files.  Returns e->error.
 */
int err_blame_image(struct err *e);

/* True once *e holds a failure. */
static inline int err_is(const struct err *e)
{
	return e->error != 0;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view - which files a session sees where there is no mount namespace.  Private to rewrite/.
 *
 * The view is a table of *mounts*: below a path of the session stands a directory (or a file, with
 * -v) of the host.  /tmp, /run and /dev/shm are directories of the session's own files, the very
 * same that a mount namespace would show there (supervisor/world/view.c), so that an image fits
 * both.  All other paths are the host's.
 *
 *      /tmp/a/b        session        what programs say
 *      FILES/tmp/a/b   host           what the kernel is asked for
 *
 * Three steps, each dearer than the one before:
 *
 *      view_leads_in     the text alone: nearly every path leads nowhere near a mount, and the
 *                        kernel is told to go on
 *      view_walk         below a mount, one component after the other, by descriptors: symlinks
 *                        and ".." are the session's, whatever they look like on the host
 *      the call          open, stat and their like are answered (view/answers.c); all else the
 *                        task does itself, with the host's path in its registers (view/calls.c)
 *
 * With --root the mount at / is that directory, and all paths lead into the view but those below
 * /dev and /sys.
 *
 * The host's part of the tree is never walked here.  A symlink out there that leads into the view
 * is known if it was there at the start, in one of the directories where systems have such
 * (*alias*), for /var/run and its like.
 *
 * Isolation doesn't rest on any of this: a path can be changed by another task once it has been
 * looked at.  What the kernel then finds is what Landlock lets it find (fence.h).
 */
#ifndef SUPERVISOR_REWRITE_VIEW_VIEW_H
#define SUPERVISOR_REWRITE_VIEW_VIEW_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "supervisor/rewrite/procfs/procfs.h"

struct err;
struct task;
struct tasks;
struct world_config;

enum view_sort {
	VIEW_MOUNT, /* what is below is elsewhere on the host */
	VIEW_PROC,  /* what is below is made (procfs.h) */
	VIEW_ALIAS, /* a symlink of the host that leads in */
	VIEW_SPLIT, /* itself the host's, but not all that is below */
	VIEW_HOST,  /* the host's, below a root of the session's own */
};

struct view_entry {
	enum view_sort sort;
	char *path; /* in the session: absolute, normal; "" is / */
	size_t len;
	char *host; /* a mount's, on the host, absolute; an alias's text */
	bool read_only;
	bool own; /* the session's own files */
	bool terminal; /* pts.h: @host is of VIEW_TERMINAL bytes */
	int fd;	  /* O_PATH, of a mount; -1 */
	dev_t dev;
};

#define VIEW_MAX 256 /* entries */
#define VIEW_TERMINAL 32 /* room for the path of a terminal */

/* Where a process (or thread) stands, as long as nobody has changed directory since. */
struct view_cwd {
	pid_t host; /* whose; 0: of nobody */
	unsigned generation;
	char *path; /* in the session */
	char *next; /* where it is about to go; NULL */
	pid_t from;    /* its maker, if that stood there and nobody could change it; 0: unknown */
	unsigned born; /* the generation when it was seen first, before it did anything */
};

/* What a task has below its stack while it makes a call, and what it execs. */
struct view_scratch {
	uint64_t addr;
	size_t len; /* 0: nothing */
	void *saved;
	char *host, *path; /* of the program; NULL: none */
};

struct view {
	struct view_entry entries[VIEW_MAX];
	size_t n;
	uint64_t lengths[64];  /* a bit for each length of path that an entry has, modulo 4096 */
	const struct tasks *tasks; /* borrowed; NULL before view_open */
	struct procfs *procfs; /* borrowed; NULL: /proc is the host's */
	struct view_cwd *cwds; /* by number of the process, or thread; NULL before view_open */
	struct view_scratch *scratch; /* likewise, of the task */
	unsigned generation;	      /* goes up when a task changes directory */
	int fence;		      /* as of fence_create; -1: there is none */
	bool rooted;		      /* there is a mount at / */
	bool unread_told;	      /* a program that can't be read was refused, and the log says so */
	char *programs;		      /* the directory of the host for view/program.h */
	int programs_fd;	      /* O_PATH, of it */
	int self_fds;		      /* O_PATH, of /proc/self/fd */
	char *short_dir;	      /* view/short.c; NULL: not needed yet */
	int short_fd;		      /* of it, if so */
	char **short_deep;	      /* what its links d0, d1, ... say */
	size_t n_short;
};

/* ---- the table ------------------------------------------------------------------------------ */

/*
 * In the supervisor, before anything of the world is there: the directories that the view of @c is
 * made of.
 */
int view_prepare(const struct world_config *c, struct err *e);
/* The table for @c, without descriptors; freed with view_free. */
int view_create(struct view **ret, const struct world_config *c, struct err *e);
/* In the process that will walk. */
int view_open(struct view *v, const struct tasks *tasks);
void view_free(struct view *v);
/* The session has perhaps another name by now (podrun rename), and its files are elsewhere. */
void view_refresh(struct view *v);

/*
 * Opens what @fd (O_PATH), of this process, leads to, with @flags.  A descriptor or a negative
 * errno.
 */
int view_open_again(const struct view *v, int fd, int flags);

/*
 * For pts.c, while others look: the session's terminal @path is the host's @host from now on, which
 * @fd (O_PATH) is of. 0, -ENOSPC, -ENOMEM.
 */
int view_lead_terminal(struct view *v, const char *path, const char *host, int fd);

/* May @path (absolute) lead to an entry, as far as its text tells? */
bool view_leads_in(const struct view *v, const char *path);
/*
 * The same of a path below a directory, whose own (normal) is the first @base bytes of @whole.
 * *ret_how: what view_walk is to know of that.
 */
bool view_leads_in_from(const struct view *v, size_t base, const char *whole, unsigned *ret_how);
/*
 * Did view_base fail because a session with a root of its own holds a directory outside?  Nothing
 * is below it.
 */
static inline bool view_is_outside(const struct view *v, int error)
{
	return v->rooted && error == -ENOENT;
}
/* The entry that has exactly @path (normal); NULL if none. */
const struct view_entry *view_find(const struct view *v, const char *path, size_t len);
/* The mount that the session's @path (normal) is in, NULL for none. */
const struct view_entry *view_mount_of(const struct view *v, const char *path);
/*
 * A path of the host as the session would say it (a terminal that it holds may get its number here,
 * pts.h): -ENOENT if it can't say it, -ENAMETOOLONG.  Of the host's own paths it is the same.
 * @host may carry the " (deleted)" that /proc puts there: so does the result then.
 */
int view_session_path(const struct view *v, const char *host, char ret[PATH_MAX]);
/*
 * Does the session find what the host has at @path (absolute, normal), or a mount of its own in its
 * very place?  False for what is hidden below such a mount.
 */
bool view_is_hosts(const struct view *v, const char *path);
/* By text alone, symlinks of the session unseen, for paths that the session has no hand in. */
int view_host_path(const struct view *v, const char *path, char ret[PATH_MAX]);

/* ---- terminals (pts.c) ---------------------------------------------------------------------- */

/* Is @host the path of a terminal? */
bool view_is_terminal(const char *host);
/*
 * What the session calls terminal @host, which it holds.  -ENOENT if there is no such; -ENOSPC if
 * there can't be more that have other numbers.
 */
int view_say_terminal(struct view *v, const char *host, char ret[PATH_MAX]);
/* Has the terminal that @one leads to been closed? */
bool view_is_gone(const struct view_entry *one);

/* The innermost mount that the host's path @host is in; NULL for none. */
const struct view_entry *view_mount_of_host(const struct view *v, const char *host);

/* ---- short names of sockets (view/short.c) --------------------------------------------------- */

/*
 * Another path, of at most @size bytes, that leads where the host's @host does, in a mount.  0 or
 * -ENAMETOOLONG.
 */
int view_short(struct view *v, const char *host, char *ret, size_t size);
/* Is @name one that view_short has made?  Then the session's own path for it. */
bool view_short_said(const struct view *v, const char *name, char ret[PATH_MAX]);
/* Removes what sessions have left who were killed. */
void view_short_sweep(void);
void view_short_fini(struct view *v);

/* ---- the walk ------------------------------------------------------------------------------- */

/* Where a path leads. */
struct view_place {
	const struct view_entry *in; /* the mount or /proc; NULL: the host's */
	char path[PATH_MAX]; /* in the session, normal; the host's as text, with what is in it */
	int fd; /* O_PATH, of what is there; -1 in /proc, on the host's side, and with -ENOENT */
	mode_t mode;  /* its type */
	bool looked;  /* @st is of it */
	struct stat st;
	bool walked;  /* a symlink or ".." has made another text of it */
	bool foreign; /* on another file system than the mount: it may take long */
	bool dot;     /* the last component was "." or ".." */
	bool slash;   /* there was a slash behind it */
	bool has_way;
	struct procfs_way way; /* in the session's /proc: a node, or fd is where it jumped to */
};
#define VIEW_PLACE_INIT  \
	{                \
		.fd = -1 \
	}

enum {
	VIEW_NOFOLLOW = 1, /* the last component, if it is a symlink */
	VIEW_CREATE = 2,   /* the last component need not be there: fd is -1 then */
	VIEW_PARENT = 16,  /* the same with a slash behind it: the call is about the name */
	VIEW_WAIT = 4,	   /* other file systems may be entered; else -EAGAIN */
	VIEW_TEXT = 8,	   /* on another file system the rest is text for the kernel */
	VIEW_FROM_MOUNT = 32, /* the path was a relative one: on the host's side the kernel has to be told another */
};

/*
 * Walks @path (absolute, at most PATH_MAX with its end).  0 or what the call is to return: -ENOENT,
 * -ELOOP... @asker is for /proc (rw->lock held) and may be NULL where the view has none.
 */
int view_walk(const struct view *v, const struct task *asker, const char *path, unsigned how,
	struct view_place *ret);
void view_place_fini(struct view_place *p);
#define _cleanup_place_ __attribute__((cleanup(view_place_fini)))

/*
 * The session's path that @dirfd stands for when @asker (thread @tid on the host) says it; AT_FDCWD
 * is where it stands.  Of PATH_MAX.  A negative errno if there is none that the session could say.
 * rw->lock held.
 */
int view_base(struct view *v, const struct task *asker, pid_t tid, int dirfd, char ret[PATH_MAX]);
/*
 * view_walk has said ENAMETOOLONG of @path behind @base: may the kernel walk it from there, for it
 * is a relative one that is too long only with what it begins at?  The mount if so, else NULL.
 */
const struct view_entry *view_too_deep(const struct view *v, const char *base, const char *path);
/*
 * @task changes directory to @path (in the view; NULL: elsewhere), and has done so or not.  A
 * directory of the host may be at two places: whoever has gone to one of them is there, and so are
 * his children.
 */
void view_moves(struct view *v, const struct task *task, const char *path);
void view_has_moved(struct view *v, const struct task *task, bool done);
/* Perhaps somebody has changed directory, unseen: where all of them stand is asked anew. */
static inline void view_unsettle(struct view *v)
{
	v->generation++;
}
/*
 * @task has just been born: neither it has gone on nor, from the call that made it, has its maker.
 * Then, once its maker tells of it: its working directory is a copy of @maker's, and none of the
 * two shares it with anybody else.
 */
void view_born(struct view *v, const struct task *task);
void view_stands(struct view *v, const struct task *process, const struct task *maker);
/* A path of the host, as /proc tells it, in the words of the session. */
int view_say(const struct view *v, const char *host, char ret[PATH_MAX]);

/* Is it in a /proc that is ours? */
static inline bool view_in_proc(const struct view_place *p)
{
	return p->in && p->in->sort == VIEW_PROC && p->has_way;
}

/* The mount with what a link of /proc has led to; NULL if that is in none. */
const struct view_entry *view_jumped_to(const struct view *v, const struct view_place *p);

/* The path for the kernel of what view_walk has found. */
int view_place_host(const struct view *v, const struct view_place *p, char ret[PATH_MAX]);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procfs/node - a file of the session's /proc, found in the host's.  Private to rewrite/.
 *
 * Of a process or thread it is the directory that is opened first, and looked at to be the one it
 * ought to be; it names the task from then on, whatever becomes of its number.
 */
#ifndef SUPERVISOR_REWRITE_PROCFS_NODE_H
#define SUPERVISOR_REWRITE_PROCFS_NODE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "supervisor/rewrite/procfs/mirror.h"
#include "supervisor/rewrite/procfs/text.h"

struct buf;
struct task;
struct tasks;

/*
 * What /proc needs of others; a member that is NULL: nothing of theirs is there.  @session_path
 * puts what the session calls the host's path @host, which may end in " (deleted)", into @buf: its
 * length or a negative errno. @program opens (O_PATH) the program that the host's @host is a copy
 * of; -ENOENT if it is none.  @is_hosts: does @path lead to the same for the host and the session,
 * or to what stands for it there?  @sysvipc prints the session's own /proc/sysvipc/@name ("shm",
 * "sem", "msg"), with its heading.  @host: what sys/kernel/hostname and domainname say.
 */
struct procfs_ops {
	int (*session_path)(void *arg, const char *host, char *buf, size_t size);
	int (*program)(void *arg, const char *host);
	bool (*is_hosts)(void *arg, const char *path);
	int (*sysvipc)(void *arg, const char *name, struct buf *text);
	const struct host_names *host;
	int64_t boottime_ns; /* the session's less the host's */
	bool rooted; /* the session calls all files otherwise than the host */
	void *arg;
};

struct procfs {
	const struct tasks *tasks;
	const struct procfs_ops *ops;
	struct procfs_mirror *mirror;
	int host;		   /* O_PATH: the host's /proc */
	struct mirror_list always; /* what /proc lists beside processes */
	pid_t tracer;		   /* of the session's tasks */
	long ptrace_scope;	   /* Yama's; less than 1 is no restriction */
};

struct procfs_node;

enum procfs_sort {
	PROCFS_PLAIN,
	PROCFS_SELF,   /* a link whose text is the asker's number */
	PROCFS_ROOT,   /* a link to "/", whoever asks */
	PROCFS_MAGIC,  /* a link to what has perhaps no name */
	PROCFS_MEMORY, /* opened by whoever may ptrace */
	PROCFS_FDINFO, /* of some files it has numbers */
	PROCFS_IPC,    /* what another room prints */
	PROCFS_CLOCK,  /* special where the session's boot time is not the host's */
	PROCFS_PATHS,  /* has paths, and is a copy where all are others */
	PROCFS_MOUNTS, /* a copy where the session does not see all of them */
};

/* What is special about a file or a directory. */
struct procfs_row {
	const char *
		name; /* behind the process's directory, or behind /proc; "fd/": all that is in it */
	bool of_process;
	enum procfs_sort sort;
	procfs_text_fn *text; /* a file with numbers in it */
	int (*list)(const struct procfs *p, const struct procfs_node *n, struct mirror_list *list);
};

struct procfs_node {
	char path[PATH_MAX]; /* below the session's /proc */
	const char *rest;    /* of it, behind the process or thread; all if it is nobody's */
	pid_t number,
		thread; /* of the process, and of the thread if the path goes by "task"; 0: none */
	const struct task
		*task;	     /* whose: the thread, or the process; as long as the lock is held */
	int dir;	     /* O_PATH: the task's directory or /proc, on the host */
	char host[PATH_MAX]; /* the path below that */
	const struct procfs_row *row; /* NULL: nothing special */
	mode_t type;		      /* S_IFDIR, S_IFREG, S_IFLNK */
	struct stat st;		      /* of it, on the host, no link followed */
};

/*
 * @path: without "." and "..", and with no link but as its last.  0 or the error of the call; to be
 * finished in any case. @asker is NULL for us.
 */
int procfs_node_find(const struct procfs *p, const struct task *asker, const char *path,
	struct procfs_node *ret);
void procfs_node_fini(struct procfs_node *n);

/*
 * May only a link at the end of @path be one?  What leads from a process to its threads and to
 * files of theirs is known to be directories.
 */
bool procfs_node_is_dir(const char *path);
/* May the session have it at all?  What the kernel says comes on top of that. */
bool procfs_node_is_open(const struct procfs_node *n, bool write);
/* Would Yama let @asker ptrace the process of @n? */
bool procfs_node_may_trace(
	const struct procfs *p, const struct task *asker, const struct procfs_node *n);
/* What "self" or "thread-self" says to @asker; false if @path is neither. */
bool procfs_node_self(
	const struct procfs *p, const struct task *asker, const char *path, char ret[PATH_MAX]);
/* What descriptor @fd of this process is, as the host names it.  0 or a negative errno. */
int procfs_name_of(int fd, char ret[PATH_MAX]);

/*
 * A path of the host that is in the mirror or in the host's /proc, as one below the session's /proc
 * ("" is /proc itself).  This is how what a descriptor or a working directory names is found again.
 * Its length; -ENOENT if it is neither; -EACCES if it is of a process outside.
 */
int procfs_from_host(const struct procfs *p, const char *host, char *buf, size_t size);
/*
 * Likewise of what the host calls a copy that procfs_open has made ("/memfd:..."); -ENOENT if it is
 * none.
 */
int procfs_of_copy(const char *host, char *buf, size_t size);
/*
 * And back: the path on the host of what is @below the session's /proc.  By text alone, and for
 * what is no link. 0; -ENOENT if no process of the session has the number.
 */
int procfs_to_host(const struct procfs *p, const char *below, char ret[PATH_MAX]);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proc - what /proc/PID says, parsed.  proc(5), Documentation/filesystems/proc.rst.
 *
 * Every function takes the directory to look below (`proc_fd`, a descriptor of a proc mount,
 * AT_FDCWD is not accepted) and a pid as that mount numbers it.  Contents are written by the
 * kernel but names in them (comm, paths) come from the session: they are bounded and never
 * trusted to be printable.
 */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define PROC_MAX_NS_DEPTH 8

/* Of /proc/PID/stat and /proc/PID/status. */
struct proc_status {
	char comm[64];
	char state; /* R S D T t Z X I */
	pid_t pid, ppid, tgid, pgid, sid;
	pid_t tracer; /* 0: none, or one that can't be seen */
	pid_t ns_tgid[PROC_MAX_NS_DEPTH], ns_pid[PROC_MAX_NS_DEPTH]; /* outermost first */
	pid_t ns_pgid[PROC_MAX_NS_DEPTH], ns_sid[PROC_MAX_NS_DEPTH];
	size_t ns_depth;
	int tty_nr, tty_pgrp;
	uint32_t flags; /* PF_* */
	int exit_signal;
	int exit_code; /* of a zombie, as wait(2) encodes it; 0 where it can't be seen */
	long nice;
	uint64_t start_time; /* clock ticks since boot */
	uint64_t start_code, end_code, start_stack, start_data, end_data, start_brk;
	uint64_t arg_start, arg_end, env_start, env_end;
	uid_t uid[4]; /* real, effective, saved, fs */
	gid_t gid[4];
	uint32_t umask;
	uint64_t sig_pending, shared_pending, sig_blocked, sig_ignored, sig_caught;
	uint64_t cap_inh, cap_prm, cap_eff, cap_bnd, cap_amb;
	bool no_new_privs;
	int seccomp, seccomp_filters;
	int threads;
	uint64_t vm_locked_kb, vm_rss_kb, rss_anon_kb, rss_shmem_kb;
	uint64_t switches, forced_switches; /* how often it has given up its CPU */
};

/* /proc/PID/status, proc_pid_status(5).  @proc_fd: a /proc that numbers processes as @pid does.
 * -ESRCH when it has gone. */
int proc_read_status(int proc_fd, pid_t pid, struct proc_status *ret, struct err *e);
/* The same for one thread. */
int proc_read_task_status(int proc_fd, pid_t pid, pid_t tid, struct proc_status *ret,
	struct err *e);

/* The same by its files stat and status, opened before. */
int proc_read_status_of(int stat_fd, int status_fd, struct proc_status *ret, struct err *e);
/*
 * How many threads the process has whose directory "task" that is, without a look at them.  -ESRCH
 * when it has gone, also where its number is another's by now.
 */
int proc_count_threads(int task_fd);

/*
 * Of a task in several pid namespaces the lists above have a number for each: the one @pid is in
 * itself, told by its place in them.  PROC_INNERMOST when @pid is 0 or has gone.
 */
#define PROC_INNERMOST SIZE_MAX
size_t proc_level(int proc_fd, pid_t pid);
/* The number at that place in @numbers, one of @s's lists.  0: it has none there. */
pid_t proc_at_level(const pid_t *numbers, const struct proc_status *s, size_t level);

/* One mapping of /proc/PID/smaps (or maps: then vm_flags is empty). */
struct proc_vma {
	uint64_t start, end;
	uint64_t offset;
	uint32_t prot; /* PROT_* */
	bool shared;
	uint32_t dev_major, dev_minor;
	uint64_t ino;
	char *path; /* "" for anonymous; "[heap]" and the like as the kernel spells them;
		     * without its " (deleted)", which is: */
	bool deleted;
	char vm_flags[128]; /* VmFlags: of smaps, space separated two-letter codes */
	uint64_t swap_kb, rss_kb, anonymous_kb;
	uint64_t page_kb; /* more than PAGE_SIZE only for MAP_HUGETLB and the like */
	uint64_t key;	  /* ProtectionKey: of smaps; 0 where there are none */
};

struct proc_maps {
	struct proc_vma *vmas;
	size_t n;
};

/* @detail also fills vm_flags and the kilobytes (smaps, slower). */
int proc_read_maps(int proc_fd, pid_t pid, bool detail, struct proc_maps *ret, struct err *e);
void proc_maps_fini(struct proc_maps *m);
/* True if @vma has the two-letter flag @code ("dd", "wf", "gd"...). */
bool proc_vma_has(const struct proc_vma *vma, const char *code);

/* Bytes in memory that are no file's: the second and third number of /proc/PID/statm.  -errno. */
int64_t proc_own_memory(int proc_fd, pid_t pid);
/* Lists the numeric names of a directory ("task", "fd", or "." of proc itself), sorted; caller
 * frees *ret. */
int proc_list_numbers(int dirfd, const char *path, int **ret, size_t *ret_n, struct err *e);
/* The same of a directory that is open already. */
int proc_list_numbers_of(int fd, int **ret, size_t *ret_n);
/* /proc/PID/task/TID/children. */
int proc_read_children(int proc_fd, pid_t pid, pid_t tid, pid_t **ret, size_t *ret_n,
	struct err *e);

/* The number in a file such as /proc/sys/vm/overcommit_memory; -1 if there is none. */
long proc_read_setting(const char *path);

/* Opens the host's /proc.  Returns the descriptor. */
int proc_open(struct err *e);
/*
 * What ps shows as this process's command line, for good: @title is written over its arguments, cut
 * to their length.  A failure leaves it as it was.
 */
void proc_set_title(const char *title);
/*
 * Limits what this process may take of memory of its own (RLIMIT_DATA), and those that it starts.
 * With the address sanitizer, which has terabytes that are none, nothing is limited.
 */
void proc_limit_memory(uint64_t bytes);
/* Opens /proc/PID/@name below @proc_fd with @flags (O_CLOEXEC is added). */
int proc_open_file(int proc_fd, pid_t pid, const char *name, int flags, struct err *e);

#endif

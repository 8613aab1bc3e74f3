/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io - descriptors: whole reads and writes, files at once, descriptors over sockets.
 *
 * All return 0 or a positive count on success and a negative errno on failure, unless said
 * otherwise; EINTR is never returned.
 */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct buf;

/* Reads until @n bytes or the end; returns how many were read. */
ssize_t io_read_full(int fd, void *data, size_t n);
ssize_t io_pread_full(int fd, void *data, size_t n, off_t offset);
/*
 * Writes all @n bytes.  -EIO when nothing more is taken, as by /proc/PID/mem of a task that ended.
 */
int io_write_full(int fd, const void *data, size_t n);
int io_pwrite_full(int fd, const void *data, size_t n, off_t offset);

/* Appends what is left to be read to @b, at most @max bytes (-EFBIG beyond). */
int io_read_fd(int fd, size_t max, struct buf *b);
/* Appends the whole file to @b, at most @max bytes (-EFBIG beyond).  @dirfd/@path as openat. */
int io_read_file(int dirfd, const char *path, size_t max, struct buf *b);
/* Opens (O_CREAT|O_TRUNC, @mode) and writes; not atomic. */
int io_write_file(int dirfd, const char *path, const void *data, size_t n, mode_t mode);
/* Writes a string to an existing file such as /proc/self/uid_map in one write. */
int io_write_str(int dirfd, const char *path, const char *s);
/* Writes to a temporary name beside @path, syncs, renames. */
int io_replace_file(int dirfd, const char *path, const void *data, size_t n, mode_t mode);
/* readlinkat as a fresh string, caller frees.  NULL with errno on failure. */
char *io_readlink(int dirfd, const char *path);

#define IO_MAX_FDS 64
/*
 * One message with up to IO_MAX_FDS descriptors.  io_recv_fds receives one message: returns its
 * length (0 at the end), stores at most @max descriptors (close-on-exec) and their number; the
 * caller owns them.  A message with more descriptors than @max gives -EMSGSIZE and closes all.
 */
int io_send_fds(int sock, const void *data, size_t n, const int *fds, size_t n_fds);
ssize_t io_recv_fds(int sock, void *data, size_t n, int *ret_fds, size_t max, size_t *ret_n);

/* 0 or -errno, of fcntl(2). */
int io_set_cloexec(int fd, bool on);
int io_set_nonblock(int fd, bool on);
/* Allows as many descriptors as may be allowed (RLIMIT_NOFILE): how many that is, 0 if unknown. */
size_t io_allow_fds(void);
/*
 * Makes room for @n descriptors at once, as far as so many are allowed.  In a process with threads the
 * kernel waits for all CPUs each time its table of descriptors grows, 10 to 20 ms (expand_fdtable in
 * fs/file.c): this is for before they are started.  @any_fd is any that is open.
 */
void io_make_fd_room(int any_fd, size_t n);
/* mkdir -p of @path (absolute or relative to @dirfd). */
int io_mkdir_p(int dirfd, const char *path, mode_t mode);
/* rm -rf of @path below @dirfd; never follows a symlink, never leaves the file system's entries
 * unreadable directories behind (they are chmod'ed first).  0 if it did not exist. */
int io_rm_rf(int dirfd, const char *path);
/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t io_now_ns(void);
/* Times as images hold them: nanoseconds, before 1970 negative. */
int64_t io_ns_of(struct timespec t);
struct timespec io_timespec_of(int64_t ns);

#endif

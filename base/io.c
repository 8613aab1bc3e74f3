// SPDX-License-Identifier: GPL-2.0-or-later
/* System calls done to their end: short reads and writes, EINTR, descriptors with messages. */
#include "base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

ssize_t io_read_full(int fd, void *data, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = read(fd, (char *)data + done, n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

ssize_t io_pread_full(int fd, void *data, size_t n, off_t offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pread(fd, (char *)data + done, n - done, offset + (off_t)done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

int io_write_full(int fd, const void *data, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = write(fd, (const char *)data + done, n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		done += (size_t)r;
	}
	return 0;
}

int io_pwrite_full(int fd, const void *data, size_t n, off_t offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pwrite(fd, (const char *)data + done, n - done, offset + (off_t)done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		done += (size_t)r;
	}
	return 0;
}

int io_read_fd(int fd, size_t max, struct buf *b)
{
	size_t start = b->len;

	for (;;) {
		uint8_t *p = buf_reserve(b, 4096);
		ssize_t r;

		if (!p)
			return -ENOMEM;
		r = read(fd, p, b->cap - b->len);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			return 0;
		b->len += (size_t)r;
		if (b->len - start > max)
			return -EFBIG;
	}
}

int io_read_file(int dirfd, const char *path, size_t max, struct buf *b)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : io_read_fd(fd, max, b);
}

int io_write_file(int dirfd, const char *path, const void *data, size_t n, mode_t mode)
{
	_cleanup_close_ int fd =
		openat(dirfd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0)
		return -errno;
	return io_write_full(fd, data, n);
}

int io_write_str(int dirfd, const char *path, const char *s)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
	ssize_t r;

	if (fd < 0)
		return -errno;
	r = write(fd, s, strlen(s));
	if (r < 0)
		return -errno;
	return (size_t)r == strlen(s) ? 0 : -EIO;
}

int io_replace_file(int dirfd, const char *path, const void *data, size_t n, mode_t mode)
{
	char tmp[PATH_MAX];
	_cleanup_close_ int fd = -1;
	int r;

	if ((size_t)snprintf(tmp, sizeof(tmp), "%s.%d.tmp", path, getpid()) >= sizeof(tmp))
		return -ENAMETOOLONG;
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	r = io_write_full(fd, data, n);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, tmp, dirfd, path) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dirfd, tmp, 0);
	return r;
}

char *io_readlink(int dirfd, const char *path)
{
	char target[PATH_MAX + 64];
	ssize_t n = readlinkat(dirfd, path, target, sizeof(target) - 1);

	if (n < 0)
		return NULL;
	target[n] = '\0';
	return strdup(target);
}

int io_send_fds(int sock, const void *data, size_t n, const int *fds, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * IO_MAX_FDS)];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t r;

	if (n_fds > IO_MAX_FDS)
		return -E2BIG;
	if (n_fds) {
		struct cmsghdr *c;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	do
		r = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	/* What is left of a stream's message carries no descriptors. */
	if ((size_t)r < n)
		return io_write_full(sock, (const char *)data + r, n - (size_t)r);
	return 0;
}

ssize_t io_recv_fds(int sock, void *data, size_t n, int *ret_fds, size_t max, size_t *ret_n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * IO_MAX_FDS)];
	} control;
	struct iovec iov = {.iov_base = data, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space)};
	size_t got = 0;
	bool too_many;
	ssize_t r;

	do
		r = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	too_many = msg.msg_flags & MSG_CTRUNC;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t count;
		int fd;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (got < max) {
				ret_fds[got++] = fd;
			} else {
				close(fd);
				too_many = true;
			}
		}
	}
	if (too_many) {
		while (got)
			close(ret_fds[--got]);
		return -EMSGSIZE;
	}
	*ret_n = got;
	return r;
}

int io_set_cloexec(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFD);

	if (flags < 0)
		return -errno;
	flags = on ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC;
	return fcntl(fd, F_SETFD, flags) < 0 ? -errno : 0;
}

int io_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

size_t io_allow_fds(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return 0;
	if (l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
	return (size_t)l.rlim_max;
}

void io_make_fd_room(int any_fd, size_t n)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	n = MIN(n, (size_t)l.rlim_cur);
	if (n && n <= INT_MAX)
		close_fd(fcntl(any_fd, F_DUPFD_CLOEXEC, (int)n - 1));
}

int io_mkdir_p(int dirfd, const char *path, mode_t mode)
{
	char partial[PATH_MAX];
	size_t len = strlen(path);

	if (len >= sizeof(partial))
		return -ENAMETOOLONG;
	memcpy(partial, path, len + 1);
	for (char *p = partial + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdirat(dirfd, partial, mode) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdirat(dirfd, partial, mode) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

int io_rm_rf(int dirfd, const char *path)
{
	_cleanup_closedir_ DIR *dir = NULL;
	int fd, r = 0;

	if (unlinkat(dirfd, path, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == EACCES) {
		fchmodat(dirfd, path, 0700, 0);
		fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* somebody else removes it as well */
	fchmod(fd, 0700);
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	for (struct dirent *d; (d = readdir(dir));) {
		int one;

		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		one = io_rm_rf(fd, d->d_name);
		if (one < 0)
			r = one;
	}
	if (r == 0 && unlinkat(dirfd, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

uint64_t io_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int64_t io_ns_of(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct timespec io_timespec_of(int64_t ns)
{
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	if (t.tv_nsec < 0) {
		t.tv_nsec += 1000000000;
		t.tv_sec--;
	}
	return t;
}

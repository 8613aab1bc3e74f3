// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A label of TAI64N is eight bytes of seconds and four of nanoseconds, both big endian, so that
 * memcmp compares times.  The low bits of the nanoseconds are left out: nobody needs to know our
 * clock that well, and twenty initiations in a second are enough.
 */
#include "vnet/tunnel/stamp.h"

#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/base.h"

#define TAI_BASE 0x400000000000000aULL
#define STEP	 (1u << 24) /* nanoseconds; 59 of them are a second */
#define SECOND	 1000000000u

static void put(uint8_t ret[VNET_STAMP_LEN], uint64_t seconds, uint32_t ns)
{
	seconds = htobe64(seconds);
	ns = htobe32(ns);
	memcpy(ret, &seconds, sizeof(seconds));
	memcpy(ret + sizeof(seconds), &ns, sizeof(ns));
}

static void above(uint8_t stamp[VNET_STAMP_LEN])
{
	uint64_t seconds;
	uint32_t ns;

	memcpy(&seconds, stamp, sizeof(seconds));
	memcpy(&ns, stamp + sizeof(seconds), sizeof(ns));
	seconds = be64toh(seconds);
	ns = ALIGN_DOWN(be32toh(ns), STEP) + STEP;
	if (ns >= SECOND) {
		ns = 0;
		seconds++;
	}
	put(stamp, seconds, ns);
}

void vnet_stamp_init(struct vnet_stamp *s)
{
	*s = (struct vnet_stamp){.fd = -1};
}

int vnet_stamp_open(struct vnet_stamp *s, const char *directory, const char *name, struct err *e)
{
	_cleanup_close_ int dir = -1, fd = -1;
	uint8_t last[VNET_STAMP_LEN];
	ssize_t n;
	int r;

	vnet_stamp_init(s);
	if ((r = io_mkdir_p(AT_FDCWD, directory, 0700)) < 0)
		return err_errno(e, r, "%s", directory);
	dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = dir < 0 ? -1 : openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(e, -errno, "%s/%s", directory, name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_errno(e, -errno, "%s/%s", directory, name);
		return err_set(e, ERR_STATE, -EBUSY, "another live session has this key");
	}
	n = io_pread_full(fd, last, sizeof(last), 0);
	if (n < 0)
		return err_errno(e, (int)n, "%s/%s", directory, name);
	if (n == sizeof(last))
		memcpy(s->last, last, sizeof(last));
	s->fd = take_fd(&fd);
	return 0;
}

void vnet_stamp_close(struct vnet_stamp *s)
{
	s->fd = close_fd(s->fd);
}

static void *sync_thread(void *ctx)
{
	int *fd = ctx;

	fdatasync(*fd);
	close(*fd);
	free(fd);
	return NULL;
}

/*
 * Opened anew, for a duplicate would hold the lock.  Where that or the thread can't be had the disk
 * has it a little later, as it has all files.
 */
static void sync_behind(int stamp)
{
	int *fd = malloc(sizeof(*fd));
	char path[64];
	sigset_t all, old;
	pthread_t t;
	int r;

	if (!fd)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", stamp);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	r = *fd < 0 ? -errno : -pthread_create(&t, NULL, sync_thread, fd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r == 0) {
		pthread_detach(t);
		return;
	}
	close_fd(*fd);
	free(fd);
}

int vnet_stamp_next(struct vnet_stamp *s, uint64_t unix_ns, uint8_t ret[VNET_STAMP_LEN])
{
	uint8_t next[VNET_STAMP_LEN];
	int r;

	put(next, TAI_BASE + unix_ns / SECOND, ALIGN_DOWN((uint32_t)(unix_ns % SECOND), STEP));
	if (memcmp(next, s->last, sizeof(next)) <= 0) {
		memcpy(next, s->last, sizeof(next));
		above(next);
	}
	if (s->fd >= 0) {
		if ((r = io_pwrite_full(s->fd, next, sizeof(next), 0)) < 0)
			return r;
		sync_behind(s->fd);
	}
	memcpy(s->last, next, sizeof(next));
	memcpy(ret, next, sizeof(next));
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in source.h. */
#include "proto/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/frame.h"
#include "proto/pool.h"

#define BUFFER (64u << 10)
#define GLANCE (8u << 10) /* behind what was passed over there is a head to be read */

int proto_source_init(struct proto_source *s, int fd, struct err *e)
{
	struct stat st;

	*s = (struct proto_source){.fd = fd, .beside = {-1, -1}};
	if (fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot read the image");
	if (S_ISDIR(st.st_mode))
		return err_errno(e, -EISDIR, "cannot read the image");
	if (S_ISREG(st.st_mode)) {
		off_t start = lseek(fd, 0, SEEK_CUR);

		if (start < 0)
			return err_errno(e, -errno, "cannot read the image");
		s->file = true;
		s->start = (uint64_t)start;
		s->size = (uint64_t)(st.st_size > start ? st.st_size - start : 0);
	}
	if (S_ISFIFO(st.st_mode) && pipe2(s->beside, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot read the image");
	s->buffer = malloc(BUFFER);
	return s->buffer ? 0 : err_errno(e, -ENOMEM, "image stream");
}

void proto_source_fini(struct proto_source *s)
{
	free(s->buffer);
	s->buffer = NULL;
	for (int i = 0; i < 2; i++)
		s->beside[i] = close_fd(s->beside[i]);
}

/* Like read(2), but for the last byte that is there: that is only looked at. */
static ssize_t read_pipe(struct proto_source *s, void *data, size_t n)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	int waiting = 0;
	ssize_t r;

	/* There is more to come, so it was not the last. */
	proto_source_take(s);
	if (poll(&p, 1, -1) < 0 || ioctl(s->fd, FIONREAD, &waiting) < 0)
		return -1;
	if (waiting == 0)
		return read(s->fd, data, n);
	if (waiting > 1)
		return read(s->fd, data, MIN(n, (size_t)waiting - 1));
	r = tee(s->fd, s->beside[1], 1, SPLICE_F_NONBLOCK);
	if (r == 1)
		r = read(s->beside[0], data, 1);
	s->seen = r == 1;
	return r;
}

bool proto_source_take(struct proto_source *s)
{
	char byte;

	if (!s->seen)
		return true;
	s->seen = false;
	/* Never waits: whoever wrote it may have fetched it back, and write nothing any more. */
	return splice(s->fd, NULL, s->beside[1], NULL, 1, SPLICE_F_NONBLOCK) == 1 &&
	       read(s->beside[0], &byte, 1) == 1;
}

/* One read of at most @n bytes at the position (the buffer is empty); 0 at the end. */
static ssize_t read_some(struct proto_source *s, struct proto_worker *by, void *data, size_t n)
{
	for (;;) {
		struct pollfd p = {.fd = s->fd, .events = POLLIN};
		ssize_t r;
		int error;

		proto_worker_may_block(by);
		if (s->file)
			r = pread(s->fd, data, n, (off_t)(s->start + s->position));
		else if (s->beside[0] >= 0)
			r = read_pipe(s, data, n);
		else
			r = read(s->fd, data, n);
		error = errno;
		if (r < 0 && error == EAGAIN && poll(&p, 1, -1) >= 0)
			error = EINTR;
		proto_worker_blocked(by);
		if (r >= 0)
			return r;
		if (error != EINTR)
			return -error;
	}
}

static int truncated(const struct proto_source *s, struct err *e)
{
	return err_set(e, ERR_IMAGE, -EBADMSG, "the image ends too early, after byte %llu",
		(unsigned long long)(s->position + (s->filled - s->at)));
}

int proto_source_read(
	struct proto_source *s, struct proto_worker *by, void *data, size_t n, struct err *e)
{
	uint8_t *p = data;

	if (s->file && (s->position > s->size || n > s->size - s->position))
		return err_set(e, ERR_IMAGE, -EBADMSG, "the image ends too early, after byte %llu",
			(unsigned long long)s->size);
	while (n > 0) {
		size_t have = MIN(n, s->filled - s->at);
		ssize_t r;

		if (have) {
			memcpy(p, s->buffer + s->at, have);
			s->at += have;
			s->position += have;
			p += have;
			n -= have;
			continue;
		}
		if (n >= BUFFER) {
			r = read_some(s, by, p, n);
			if (r > 0) {
				s->position += (uint64_t)r;
				p += r;
				n -= (size_t)r;
			}
		} else {
			r = read_some(s, by, s->buffer, s->skipped ? MAX(n, GLANCE) : BUFFER);
			s->skipped = false;
			s->at = 0;
			s->filled = r > 0 ? (size_t)r : 0;
		}
		if (r < 0)
			return err_errno(e, (int)r, "cannot read the image");
		if (r == 0)
			return truncated(s, e);
	}
	return 0;
}

int proto_source_skip(struct proto_source *s, size_t n, struct err *e)
{
	assert(s->file);
	if (s->position > s->size || n > s->size - s->position)
		return err_set(e, ERR_IMAGE, -EBADMSG, "the image ends too early, after byte %llu",
			(unsigned long long)s->size);
	s->at = MIN(s->at + n, s->filled);
	s->position += n;
	s->skipped = true;
	return 0;
}

int proto_source_skip_zeros(
	struct proto_source *s, struct proto_worker *by, size_t n, struct err *e)
{
	static const uint8_t zeros[PROTO_ALIGN];
	uint8_t pad[PROTO_ALIGN];
	int r;

	assert(n <= sizeof(pad));
	r = proto_source_read(s, by, pad, n, e);
	if (r == 0 && memcmp(pad, zeros, n))
		r = err_set(e, ERR_IMAGE, -EBADMSG, "its padding is not zero");
	return r;
}

bool proto_source_has(const struct proto_source *s, size_t n)
{
	return s->file || s->filled - s->at >= n;
}

uint64_t proto_source_left(const struct proto_source *s)
{
	if (!s->file)
		return UINT64_MAX;
	return s->position < s->size ? s->size - s->position : 0;
}

int64_t proto_source_file_offset(const struct proto_source *s)
{
	return s->file ? (int64_t)(s->start + s->position) : -1;
}

bool proto_source_trailing(const struct proto_source *s)
{
	return s->file && s->position < s->size;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/fuzz/images.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/proto.h"

#define FRAME 24

/* A new one would do, but would have to be made for every input. */
static const struct proto_key *key(void)
{
	static struct proto_key *once;
	char dir[] = "/tmp/podrun-fuzz-XXXXXX";
	struct err e = {0};

	if (once)
		return once;
	if (!mkdtemp(dir) || proto_key_open(&once, dir, &e) < 0)
		abort();
	io_rm_rf(AT_FDCWD, dir);
	return once;
}

/* What the writer does not take is left out. */
static bool put_frame(struct proto_writer *w, struct cursor *in)
{
	uint8_t type = cursor_u8(in), kind = cursor_u8(in);
	uint64_t subject, offset;
	struct err e = {0};
	size_t len;

	cursor_take(in, 2);
	len = cursor_u32(in);
	subject = cursor_u64(in);
	offset = cursor_u64(in);
	len = MIN(len, cursor_left(in));
	if (type == PROTO_RECORD)
		proto_write_record(w, kind, subject, cursor_take(in, len), len, &e);
	else if (type == PROTO_DATA && len)
		proto_write_data(w, kind, subject, offset, cursor_take(in, len), len, &e);
	return type == PROTO_RECORD || type == PROTO_DATA;
}

int fuzz_image(struct cursor *in)
{
	struct proto_write_options o = {.key = key(), .threads = PROTO_NO_THREADS};
	int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_writer *w;
	struct err e = {0};

	if (fd < 0 || proto_writer_open(&w, fd, &o, &e) < 0)
		abort();
	while (cursor_left(in) >= FRAME && put_frame(w, in))
		;
	if (proto_writer_finish(w, NULL, &e) < 0)
		abort();
	proto_writer_close(w);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

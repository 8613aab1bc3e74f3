// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bench image - how fast an image of one process with much memory is written and read.
 *
 *     image FILE [MiB [ZSTD-LEVEL]]
 *
 * Prints one JSON object; times are milliseconds.  Put FILE on a tmpfs to leave the disk out.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/proto.h"

static void check(int r, const struct err *e)
{
	if (r < 0) {
		fprintf(stderr, "image: %s\n", e->msg);
		exit(1);
	}
}

static double ms_since(uint64_t start)
{
	return (double)(io_now_ns() - start) / 1e6;
}

static double write_image(int fd, const struct proto_write_options *o, size_t mib, bool fresh)
{
	uint64_t start = io_now_ns();
	struct proto_writer *w;
	struct err e = {0};

	if (fresh)
		check(ftruncate(fd, 0), &e);
	lseek(fd, 0, SEEK_SET);
	check(proto_writer_open(&w, fd, o, &e), &e);
	for (size_t i = 0; i < mib; i += 4) {
		void *room;

		check(proto_write_data_begin(w, PROTO_MAX_DATA, &room, &e), &e);
		memset(room, (int)i, PROTO_MAX_DATA); /* stands for process_vm_readv */
		check(proto_write_data_commit(w, PROTO_KIND_MM, 1, i << 20, PROTO_MAX_DATA, &e),
			&e);
	}
	check(proto_writer_finish(w, NULL, &e), &e);
	proto_writer_close(w);
	return ms_since(start);
}

static double read_image(int fd, const struct proto_read_options *o, void *copy)
{
	uint64_t start = io_now_ns();
	struct proto_reader *r;
	struct proto_frame f;
	struct err e = {0};

	lseek(fd, 0, SEEK_SET);
	check(proto_reader_open(&r, fd, o, &e), &e);
	do {
		check(proto_read(r, &f, &e), &e);
		if (copy && f.type == PROTO_DATA) /* stands for process_vm_writev */
			memcpy(copy, f.data, f.len);
	} while (f.type != PROTO_END);
	proto_reader_close(r);
	return ms_since(start);
}

int main(int argc, char **argv)
{
	size_t mib = argc > 2 ? (size_t)atoi(argv[2]) : 1024;
	struct proto_write_options o = {.zstd_level = argc > 3 ? atoi(argv[3]) : 0};
	char dir[] = "/tmp/podrun-bench-XXXXXX";
	void *copy = malloc(PROTO_MAX_DATA);
	struct proto_key *key;
	struct err e = {0};
	int fd;

	if (argc < 2 || !mkdtemp(dir)) {
		fprintf(stderr, "usage: image FILE [MiB [ZSTD-LEVEL]]\n");
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(proto_key_open(&key, dir, &e), &e);
	o.key = key;
	printf("{\"mib\": %zu, \"zstd\": %d", mib, o.zstd_level);
	printf(", \"write_ms\": %.0f", write_image(fd, &o, mib, true));
	printf(", \"rewrite_ms\": %.0f", write_image(fd, &o, mib, false));
	o.threads = PROTO_NO_THREADS;
	printf(", \"write_alone_ms\": %.0f", write_image(fd, &o, mib, true));
	printf(", \"verify_ms\": %.0f", read_image(fd, &(struct proto_read_options){0}, NULL));
	printf(", \"read_ms\": %.0f", read_image(fd, &(struct proto_read_options){0}, copy));
	printf(", \"read_alone_ms\": %.0f",
		read_image(fd, &(struct proto_read_options){.threads = PROTO_NO_THREADS}, copy));
	printf(", \"read_trusted_ms\": %.0f}\n",
		read_image(fd, &(struct proto_read_options){.skip_digests = true}, copy));
	proto_key_close(key);
	io_rm_rf(AT_FDCWD, dir);
	free(copy);
	close(fd);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any files of a session's own, out of an image (images.h) of any signer, into a directory: an
 * empty one, or (bit 0 of the first byte) that of a world which is there already, with what programs
 * could have left there.  Bit 1: the rest is a layer that a migration foretells instead.
 *
 * Whatever they were, nothing outside of the directory is made, read or changed, and all of it can
 * be removed again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/proto.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/images.h"

#define SECRET "what no image may change"

enum { THERE = 1, LAYER = 2 };

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* What every session begins with, and links that lead out. */
static void furnish(int dir)
{
	static const char *const dirs[] = {"upper", "upper/root", "work", "run", "tmp"};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		must(mkdirat(dir, dirs[i], 0700) == 0);
	must(io_write_file(dir, "run/file", "abc", 3, 0600) == 0);
	must(symlinkat("../../outside", dir, "tmp/out") == 0);
	must(symlinkat("../../secret", dir, "run/secret") == 0);
	must(linkat(dir, "../secret", dir, "run/linked", 0) == 0);
}

static void read_tree(int dir, struct cursor *in, bool there)
{
	struct proto_read_options any = {.threads = PROTO_NO_THREADS};
	struct proto_reader *reader;
	bool changed = false;
	struct err e = {0};
	int fd = fuzz_image(in);

	must(proto_reader_open(&reader, fd, &any, &e) == 0);
	if (ckpt_tree_read(dir, reader, there ? &changed : NULL, &e) < 0)
		must(e.error < 0 && e.msg[0]);
	proto_reader_close(reader);
	close(fd);
}

static int entries(int top, const char *path)
{
	DIR *dir = fdopendir(openat(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	int n = 0;

	must(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Still what it was, and nothing else has come beside it. */
static void look_around(int top)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stat st;

	must(entries(top, ".") == 2 + 3 && entries(top, "outside") == 2);
	must(fstatat(top, "outside", &st, 0) == 0 && (st.st_mode & 07777) == 0700);
	must(fstatat(top, "secret", &st, 0) == 0 && (st.st_mode & 07777) == 0600);
	must(io_read_file(top, "secret", 4096, &b) == 0);
	must(b.len == sizeof(SECRET) - 1 && memcmp(b.data, SECRET, b.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor in = cursor_of(data, size);
	uint8_t how = cursor_u8(&in);
	char path[] = "/tmp/podrun-fuzz-tree-XXXXXX";
	struct err e = {0};
	int top, dir;

	if (!size)
		return 0;
	must(mkdtemp(path) != NULL);
	top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(mkdirat(top, "outside", 0700) == 0 && mkdirat(top, "files", 0700) == 0);
	must(io_write_file(top, "secret", SECRET, sizeof(SECRET) - 1, 0600) == 0);
	dir = openat(top, "files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (how & THERE)
		furnish(dir);
	if (how & LAYER)
		ckpt_tree_make_layer(dir, data + 1, size - 1, &e);
	else
		read_tree(dir, &in, how & THERE);
	look_around(top);
	close(dir);
	close(top);
	must(io_rm_rf(AT_FDCWD, path) == 0);
	return 0;
}

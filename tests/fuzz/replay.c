// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * replay TARGET's corpus without a fuzzer: `replay_TARGET FILE|DIRECTORY...` gives each file to the
 * target once.  It passes unless something crashes.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/fuzz/fuzz.h"

static int replay_file(int dirfd, const char *path)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	int r = io_read_file(dirfd, path, 64u << 20, &b);

	if (r < 0)
		return r;
	LLVMFuzzerTestOneInput(b.data, b.len);
	return 1;
}

/* Returns how many files were replayed. */
static int replay(const char *path)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		return replay_file(AT_FDCWD, path);
	for (struct dirent *d; (d = readdir(dir));) {
		int r;

		if (d->d_name[0] == '.')
			continue;
		r = replay_file(dirfd(dir), d->d_name);
		if (r < 0)
			return r;
		n += r;
	}
	return n;
}

int main(int argc, char **argv)
{
	int n = 0;

	for (int i = 1; i < argc; i++) {
		int r = replay(argv[i]);

		if (r < 0) {
			fprintf(stderr, "replay: %s: %s\n", argv[i], strerror(-r));
			return 1;
		}
		n += r;
	}
	printf("%d inputs\n", n);
	return n == 0;
}

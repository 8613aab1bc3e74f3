// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any two images (images.h) of any signer, looked into: their differences both ways, what is in
 * them, where their threads stand, and the cores of their processes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ckpt/ckpt.h"
#include "proto/proto.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/images.h"

struct opened {
	struct ckpt_image image;
	struct ckpt_base *base;
};

static bool open_it(struct opened *o, int fd)
{
	struct proto_read_options any = {.threads = PROTO_NO_THREADS};
	struct err e = {0};

	*o = (struct opened){.image.fd = fd};
	lseek(fd, 0, SEEK_SET);
	if (proto_reader_open(&o->image.in, fd, &any, &e) < 0)
		return false;
	/* There is no directory in which others would be looked for. */
	return ckpt_base_read(&o->base, o->image.in, -1, NULL, NULL, &e) == 0;
}

static void close_it(struct opened *o)
{
	proto_reader_close(o->image.in);
	ckpt_base_free(o->base);
}

static FILE *nowhere(void)
{
	FILE *out = fopen("/dev/null", "we");

	if (!out)
		abort();
	return out;
}

static void diff(int a, int b, bool json)
{
	FILE *out = nowhere();
	struct opened x, y;
	struct err e = {0};
	bool first = open_it(&x, a), second = open_it(&y, b);

	if (first && second)
		ckpt_image_diff(&x.image, &y.image, out, json, &e);
	close_it(&x);
	close_it(&y);
	fclose(out);
}

static void stacks(int fd)
{
	FILE *out = nowhere();
	struct err e = {0};
	struct opened x;

	if (open_it(&x, fd))
		ckpt_image_stacks(&x.image, out, false, &e);
	close_it(&x);
	fclose(out);
}

static void show(int fd)
{
	struct proto_read_options any = {.threads = PROTO_NO_THREADS};
	struct proto_reader *in;
	FILE *out = nowhere();
	struct err e = {0};

	lseek(fd, 0, SEEK_SET);
	if (proto_reader_open(&in, fd, &any, &e) < 0)
		abort();
	ckpt_image_show(in, out, false, &e);
	proto_reader_close(in);
	fclose(out);
}

static void forget(void *ctx, const char *path)
{
	if (unlink(path) < 0)
		abort();
}

/* Nothing is left but what is told. */
static void core(int fd)
{
	char dir[] = "/tmp/podrun-fuzz-core-XXXXXX", path[sizeof(dir) + 8];
	struct err e = {0};
	struct opened x;

	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/core", dir);
	if (open_it(&x, fd))
		ckpt_image_core(&x.image, path, forget, NULL, &e);
	close_it(&x);
	if (rmdir(dir) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor in = cursor_of(data, size);
	int a = fuzz_image(&in), b = fuzz_image(&in);

	diff(a, b, false);
	diff(b, a, true);
	stacks(a);
	show(a);
	core(a);
	close(a);
	close(b);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kinds of open files against records that nobody wrote: whatever is in them, making them
 * either fails or gives a descriptor, and nothing is left behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "proto/files.pb-c.h"

static const struct ckpt_kind *const kinds[] = {
	&ckpt_kind_memfd,
	&ckpt_kind_ghost,
	&ckpt_kind_procfile,
	&ckpt_kind_regular,
	&ckpt_kind_pty,
	&ckpt_kind_tty,
	&ckpt_kind_pipe,
	&ckpt_kind_fifo,
	&ckpt_kind_eventfd,
	&ckpt_kind_timerfd,
	&ckpt_kind_signalfd,
	&ckpt_kind_pidfd,
	&ckpt_kind_nsfile,
	&ckpt_kind_epoll,
	&ckpt_kind_inotify,
};

/* An image of one file, and a builder that stands in this process's own world. */
struct image {
	struct ckpt_world world;
	struct ckpt_build build;
	struct ckpt_build_file file;
	struct ckpt_record record;
};

static void make_image(struct image *m, const struct ckpt_kind *k, const void *body, size_t len)
{
	struct err e = {0};

	memset(m, 0, sizeof(*m));
	m->world = (struct ckpt_world){.init_pid = 1,
		.ns_user = -1, .ns_pid = -1, .ns_mnt = -1, .ns_net = -1, .ns_ipc = -1,
		.ns_uts = -1, .ns_time = -1};
	m->record = (struct ckpt_record){.kind = k, .subject = 1, .body = body, .len = len};
	m->file = (struct ckpt_build_file){.id = 1, .fd = -1, .record = &m->record};
	m->build.world = &m->world;
	m->build.host_proc = proc_open(&e);
	m->build.records = &m->record;
	m->build.n_records = 1;
	m->build.files = &m->file;
	m->build.n_files = 1;
	assert_true(m->build.host_proc >= 0);
}

/* All stages, as a restore would, until one fails. */
static int restore(struct image *m, struct err *e)
{
	const struct ckpt_kind *k = m->record.kind;
	int r = k->create(&m->build, &m->record, &m->file.fd, e);

	if (r == 0)
		assert_true(m->file.fd >= 0);
	if (r == 0 && k->data)
		r = k->data(&m->build, &m->record, 0, "data", 4, e);
	if (r == 0 && k->link)
		r = k->link(&m->build, &m->record, e);
	if (r == 0 && k->finish)
		r = k->finish(&m->build, &m->record, e);
	return r;
}

static void free_image(struct image *m)
{
	for (int i = 0; i < PROTO_KIND_MAX; i++) {
		if (m->build.kind_state[i])
			ckpt_objects_close(&m->build, (enum proto_kind)i);
		free(m->build.kind_state[i]);
	}
	close_fd(m->file.fd);
	close(m->build.host_proc);
}

static int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Whatever happens: an error has a story, and no descriptor is lost. */
static void try_record(const struct ckpt_kind *k, const void *body, size_t len)
{
	int before = count_descriptors();
	struct err e = {0};
	struct image m;
	int r;

	make_image(&m, k, body, len);
	r = restore(&m, &e);
	if (r < 0)
		assert_true(err_is(&e) && e.msg[0]);
	free_image(&m);
	assert_int_equal(count_descriptors(), before);
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void garbage(void **state)
{
	uint64_t seed = 1;
	uint8_t body[64];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		try_record(kinds[i], "", 0);
		for (int round = 0; round < 100; round++) {
			size_t len = next_random(&seed) % sizeof(body);

			for (size_t b = 0; b < len; b++)
				body[b] = (uint8_t)next_random(&seed);
			try_record(kinds[i], body, len);
		}
	}
}

/*
 * Every field of a message that parses: small numbers, huge ones, strings, and a common part.  The
 * numbers of fields are what all messages share, so one generator does for all of them.
 */
static size_t put_number(uint8_t *p, unsigned field, uint64_t v)
{
	size_t n = 0;

	p[n++] = (uint8_t)(field << 3);
	do {
		p[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		v >>= 7;
	} while (v);
	return n;
}

static size_t put_bytes(uint8_t *p, unsigned field, const void *data, size_t len)
{
	p[0] = (uint8_t)(field << 3 | 2);
	p[1] = (uint8_t)len;
	memcpy(p + 2, data, len);
	return len + 2;
}

static size_t put_field(uint8_t *p, unsigned field, uint64_t *seed)
{
	static const uint64_t numbers[] = {0, 1, 2, 3, 100, 4096, 1 << 20, INT32_MAX, UINT32_MAX,
		INT64_MAX, UINT64_MAX};
	static const char *const strings[] = {"", "/", "/tmp", "/dev/null", "/nowhere/at/all", "..",
		"relative", "/proc/1/root/etc/passwd", "/proc/self/fd/0", "net", "\x08\x01\x10\x02"};
	uint32_t pick = next_random(seed);

	if (field > 15)
		return 0;
	if (pick & 1)
		return put_number(p, field, numbers[(pick >> 1) % ARRAY_SIZE(numbers)]);
	pick = (pick >> 1) % ARRAY_SIZE(strings);
	return put_bytes(p, field, strings[pick], strlen(strings[pick]));
}

static void plausible(void **state)
{
	static const uint64_t flags[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_APPEND | O_NONBLOCK,
		O_PATH, O_RDONLY | O_DIRECTORY, UINT32_MAX, O_TMPFILE | O_RDWR};
	uint64_t seed = 2;
	uint8_t body[1024], common[64];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (int round = 0; round < 300; round++) {
			size_t n = put_number(common, 1, flags[next_random(&seed) % 8]), len;

			n += put_number(common + n, 2, next_random(&seed) % 3 * 1000);
			n += put_number(common + n, 3, next_random(&seed) % 5);
			n += put_number(common + n, 4, next_random(&seed) % 3);
			len = put_bytes(body, 1, common, n);
			for (unsigned field = 2; field < 12; field++)
				if (next_random(&seed) % 3)
					len += put_field(body + len, field, &seed);
			try_record(kinds[i], body, len);
		}
	}
}

/* Files named in a record are opened, but never through the links of /proc. */
static void no_way_out(void **state)
{
	Pb__FileCommon common = PB__FILE_COMMON__INIT;
	Pb__Regular m = PB__REGULAR__INIT;
	char path[64], target[] = "/tmp/podrun-test-XXXXXX";
	uint8_t body[256];
	struct err e = {0};
	struct image image;
	int fd = mkstemp(target);
	size_t len;

	assert_true(fd >= 0);
	unlink(target);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	m.common = &common;
	m.mode = S_IFREG | 0600;
	m.path.data = (uint8_t *)path;
	m.path.len = strlen(path);
	len = pb__regular__pack(&m, body);
	make_image(&image, &ckpt_kind_regular, body, len);
	assert_int_equal(restore(&image, &e), -ELOOP);
	free_image(&image);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage),
		cmocka_unit_test(plausible),
		cmocka_unit_test(no_way_out),
	};

	log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), "test");
	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* What is said on the command line and in key files; messages meet a server in tests/it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/nsupdate.h"

static void said(void **state)
{
	char text[VNET_ENDPOINT_TEXT];
	struct vnet_nsupdate u;
	struct err e = {0};

	assert_int_equal(vnet_nsupdate_parse("example.org/web@192.0.2.53", &u, &e), 0);
	assert_string_equal(u.zone, "example.org");
	assert_string_equal(u.name, "web.example.org");
	assert_string_equal(vnet_endpoint_format(&u.server, text), "192.0.2.53:53");
	assert_string_equal(u.key_file, "");
	assert_int_equal(vnet_nsupdate_parse("example.org./@@[2001:db8::53]#5353:/a:b", &u, &e), 0);
	assert_string_equal(u.name, "example.org");
	assert_int_equal(
		vnet_nsupdate_parse("example.org./a.b@[2001:db8::53]#5353:/a:b", &u, &e), 0);
	assert_string_equal(u.name, "a.b.example.org");
	assert_string_equal(vnet_endpoint_format(&u.server, text), "[2001:db8::53]:5353");
	assert_string_equal(u.key_file, "/a:b");
}

static void said_badly(void **state)
{
	static const char *const bad[] = {"", "example.org", "example.org/web", "/web@192.0.2.1",
		"example.org/@192.0.2.1", "example.org/web@", "example.org/web@host",
		"example.org/web@192.0.2.1:", "example.org/web@192.0.2.1#0",
		"example.org/web@192.0.2.1#65536", "example.org/web@192.0.2.1#53x",
		"example.org/web@[192.0.2.1]", "example.org/web@[::1", "example.org/web@::1",
		"example..org/web@192.0.2.1", "example.org/we b@192.0.2.1",
		("example.org/"
		 "0123456789012345678901234567890123456789012345678901234567890123@192.0.2.1")};
	struct vnet_nsupdate u;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = {0};

		if (vnet_nsupdate_parse(bad[i], &u, &e) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(e.class, ERR_USAGE);
	}
}

static int load(const char *text, struct vnet_nsupdate_key *ret)
{
	char path[] = "/tmp/podrun-key-XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	struct err e = {0};
	int r;

	assert_int_equal(io_write_full(fd, text, strlen(text)), 0);
	r = vnet_nsupdate_key_load(path, ret, &e);
	unlink(path);
	return r;
}

/* Whoever waited for it would wait for ever. */
static void no_file(void **state)
{
	char dir[] = "/tmp/podrun-key-XXXXXX", path[64];
	struct vnet_nsupdate_key key;
	struct err e = {0};

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/pipe", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(30);
	assert_int_equal(vnet_nsupdate_key_load(path, &key, &e), -EINVAL);
	alarm(0);
	unlink(path);
	e = (struct err){0};
	assert_int_equal(vnet_nsupdate_key_load(dir, &key, &e), -EINVAL);
	rmdir(dir);
}

static void keys(void **state)
{
	static const char *const bad[] = {"", "key", "key \"k\" {};",
		"key \"k\" { algorithm hmac-sha256; };",
		"key \"k\" { algorithm hmac-md5; secret \"YWJj\"; };",
		"key \"k\" { algorithm hmac-sha256; secret \"YWJ\"; };",
		"key \"k\" { algorithm hmac-sha256; secret \"\"; };",
		"key \"k k\" { algorithm hmac-sha256; secret \"YWJj\"; };"};
	struct vnet_nsupdate_key key;

	assert_int_equal(
		load("key \"k.example\" {\n\talgorithm hmac-sha256;\n\tsecret \"YWJjZA==\";\n};\n",
			&key),
		0);
	assert_string_equal(key.name, "k.example");
	assert_int_equal(key.len, 4);
	assert_memory_equal(key.secret, "abcd", 4);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (load(bad[i], &key) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
}

static void messages(void **state)
{
	static const uint8_t refused[] = {0x12, 0x34, 0xa8, 0x05, 0, 0, 0, 0, 0, 0, 0, 0};
	struct vnet_nsupdate_key key = {.name = "k", .secret = "abcd", .len = 4};
	struct vnet_endpoint a = {.family = AF_INET};
	uint8_t out[VNET_NSUPDATE_ROOM];
	struct vnet_nsupdate u;
	struct err e = {0};
	ssize_t n;

	assert_int_equal(vnet_nsupdate_parse("example.org/web@192.0.2.53", &u, &e), 0);
	n = vnet_nsupdate_make(
		&u, VNET_NSUPDATE_LEAVES, NULL, 0x1234, 1700000000, &a, 1, out, sizeof(out));
	assert_int_equal(n, 12 + sizeof("?example.org") + 4 + sizeof("?web.example.org") + 10 + 4);
	assert_int_equal(out[9], 1);
	/* class NONE, for no time: that record goes, and no other */
	assert_memory_equal(out + n - 14, "\0\1\0\376\0\0\0\0\0\4", 10);
	n = vnet_nsupdate_make(
		&u, VNET_NSUPDATE_HAS, &key, 0x1234, 1700000000, &a, 1, out, sizeof(out));
	assert_in_range(n, 100, 300);
	for (size_t room = 0; room < (size_t)n; room++)
		assert_int_equal(vnet_nsupdate_make(&u, VNET_NSUPDATE_HAS, &key, 0x1234, 1700000000,
					 &a, 1, out, room),
			-ENOSPC);
	assert_int_equal(vnet_nsupdate_answer(refused, sizeof(refused), 0x1234), 5);
	assert_string_equal(vnet_nsupdate_rcode(5), "REFUSED");
	assert_int_equal(vnet_nsupdate_answer(refused, sizeof(refused), 0x1235), -EBADMSG);
	assert_int_equal(vnet_nsupdate_answer(refused, sizeof(refused) - 1, 0x1234), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(said),
		cmocka_unit_test(said_badly),
		cmocka_unit_test(keys),
		cmocka_unit_test(no_file),
		cmocka_unit_test(messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

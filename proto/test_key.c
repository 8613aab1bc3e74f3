// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/crypto.h"
#include "proto/key.h"
#include "proto/proto.h"

/* A directory, and the configuration directory to be made in it. */
struct place {
	char dir[40], config[64], key[80], trusted[80];
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, "/tmp/podrun-key-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->config, sizeof(p->config), "%s/config/podrun", p->dir);
	snprintf(p->key, sizeof(p->key), "%s/key", p->config);
	snprintf(p->trusted, sizeof(p->trusted), "%s/trusted", p->config);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	io_rm_rf(AT_FDCWD, p->dir);
	free(p);
	return 0;
}

static void unhex(const char *hex, uint8_t *ret)
{
	for (; *hex; hex += 2)
		assert_int_equal(sscanf(hex, "%2hhx", ret++), 1);
}

/* RFC 8032, 7.1, test 3. */
static void ed25519_is_the_standard_one(void **state)
{
	uint8_t seed[32], key[32], sig[64], made_key[32], made_sig[64];
	static const uint8_t text[] = {0xaf, 0x82};
	struct err e = {0};

	unhex("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", seed);
	unhex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", key);
	unhex("6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
	      "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
		sig);
	assert_int_equal(proto_ed25519_public(seed, made_key, &e), 0);
	assert_memory_equal(made_key, key, 32);
	assert_int_equal(proto_ed25519_sign(seed, text, sizeof(text), made_sig, &e), 0);
	assert_memory_equal(made_sig, sig, 64);
	assert_true(proto_ed25519_verify(key, text, sizeof(text), sig));
	assert_false(proto_ed25519_verify(key, text, 1, sig));
	sig[63] ^= 1;
	assert_false(proto_ed25519_verify(key, text, sizeof(text), sig));
}

static void key_is_made_once_and_kept_private(void **state)
{
	struct place *p = *state;
	uint8_t a[PROTO_KEY_LEN], b[PROTO_KEY_LEN];
	struct proto_key *k;
	struct err e = {0};
	struct stat st;

	assert_int_equal(proto_key_own(p->config, a, &e), 0);
	assert_int_equal(proto_key_open(&k, p->config, &e), 0);
	proto_key_public(k, a);
	proto_key_close(k);
	assert_int_equal(proto_key_open(&k, p->config, &e), 0);
	proto_key_public(k, b);
	proto_key_close(k);
	assert_memory_equal(a, b, sizeof(a));
	assert_int_equal(stat(p->key, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(p->config, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

static void open_key_in_child(struct place *p, int out)
{
	uint8_t key[PROTO_KEY_LEN];
	struct proto_key *k;

	if (proto_key_open(&k, p->config, NULL) < 0)
		_exit(1);
	proto_key_public(k, key);
	_exit(io_write_full(out, key, PROTO_KEY_LEN) < 0);
}

static void podruns_at_once_agree(void **state)
{
	struct place *p = *state;
	uint8_t keys[8][PROTO_KEY_LEN];
	int fds[2], status;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (fork() == 0)
			open_key_in_child(p, fds[1]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(io_read_full(fds[0], keys, sizeof(keys)), sizeof(keys));
	for (size_t i = 1; i < ARRAY_SIZE(keys); i++)
		assert_memory_equal(keys[i], keys[0], PROTO_KEY_LEN);
	close(fds[0]);
	close(fds[1]);
}

static void bad_key_files_are_refused(void **state)
{
	struct place *p = *state;
	struct proto_key *k;
	struct err e = {0};

	assert_int_equal(proto_key_open(&k, p->config, &e), 0);
	proto_key_close(k);
	chmod(p->key, 0640);
	assert_int_equal(proto_key_open(&k, p->config, &e), -EPERM);
	assert_non_null(strstr(e.hint, "chmod 600"));
	chmod(p->key, 0600);
	assert_int_equal(truncate(p->key, 40), 0);
	assert_int_equal(proto_key_open(&k, p->config, &e), -EINVAL);
	assert_int_equal(truncate(p->key, 0), 0);
	assert_int_equal(proto_key_open(&k, p->config, &e), -EINVAL);
}

static void text_has_one_spelling(void **state)
{
	uint8_t key[PROTO_KEY_LEN], back[PROTO_KEY_LEN];
	char text[PROTO_KEY_TEXT_LEN + 8];
	struct err e = {0};

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 37);
	proto_key_format(key, text);
	assert_string_equal(text, "ed25519:ACVKb5S53gMoTXKXvOEGK1B1mr/kCS5TeJ3C5wwxVns=");
	assert_int_equal(proto_key_parse(text, back, &e), 0);
	assert_memory_equal(key, back, sizeof(key));
	strcat(text, " ");
	assert_int_equal(proto_key_parse(text, back, &e), -EINVAL);
	text[strlen(text) - 1] = '\0';
	text[8 + 42] ^= 1; /* bits that decoding would drop */
	assert_int_equal(proto_key_parse(text, back, &e), -EINVAL);
	assert_int_equal(proto_key_parse("ed25519:", back, &e), -EINVAL);
	assert_int_equal(proto_key_parse("", back, &e), -EINVAL);
	assert_int_equal(e.class, ERR_USAGE);
}

static int collect(void *ctx, const uint8_t key[PROTO_KEY_LEN], const char *comment)
{
	buf_printf(ctx, "%d:%s\n", key[0], comment);
	return 0;
}

static void trusted_keys_come_and_go(void **state)
{
	struct place *p = *state;
	static const uint8_t a[PROTO_KEY_LEN] = {1}, b[PROTO_KEY_LEN] = {2}, c[PROTO_KEY_LEN] = {3};
	_cleanup_buf_ struct buf seen = BUF_INIT;
	struct err e = {0};

	assert_int_equal(proto_trust_has(p->config, a, &e), 0);
	assert_int_equal(proto_trust_list(p->config, collect, &seen, &e), 0);
	assert_int_equal(seen.len, 0);
	assert_int_equal(proto_trust_add(p->config, a, "me on\nthe laptop", &e), 0);
	assert_int_equal(proto_trust_add(p->config, b, NULL, &e), 0);
	assert_int_equal(proto_trust_add(p->config, a, "again", &e), 0);
	assert_int_equal(proto_trust_has(p->config, a, &e), 1);
	assert_int_equal(proto_trust_has(p->config, c, &e), 0);
	assert_int_equal(proto_trust_list(p->config, collect, &seen, &e), 0);
	assert_string_equal(buf_cstr(&seen), "1:me on the laptop\n2:\n");
	assert_int_equal(proto_trust_remove(p->config, c, &e), -ENOENT);
	assert_int_equal(e.class, ERR_NOT_FOUND);
	assert_int_equal(proto_trust_remove(p->config, a, &e), 0);
	assert_int_equal(proto_trust_has(p->config, a, &e), 0);
	assert_int_equal(proto_trust_has(p->config, b, &e), 1);
}

static void other_lines_stay(void **state)
{
	struct place *p = *state;
	static const uint8_t a[PROTO_KEY_LEN] = {1};
	static const char text[] = "# my machines\n\nnonsense\n  # more";
	_cleanup_buf_ struct buf file = BUF_INIT;
	struct err e = {0};

	assert_int_equal(io_mkdir_p(AT_FDCWD, p->config, 0700), 0);
	assert_int_equal(io_write_file(AT_FDCWD, p->trusted, text, strlen(text), 0600), 0);
	assert_int_equal(proto_trust_add(p->config, a, "x", &e), 0);
	assert_int_equal(proto_trust_has(p->config, a, &e), 1);
	assert_int_equal(proto_trust_remove(p->config, a, &e), 0);
	assert_int_equal(io_read_file(AT_FDCWD, p->trusted, 1000, &file), 0);
	assert_string_equal(buf_cstr(&file), "# my machines\n\nnonsense\n  # more\n");
}

static void ones_own_key_is_trusted(void **state)
{
	struct place *p = *state;
	uint8_t own[PROTO_KEY_LEN];
	struct proto_key *k;
	struct err e = {0};

	assert_int_equal(proto_key_open(&k, p->config, &e), 0);
	proto_key_public(k, own);
	proto_key_close(k);
	assert_int_equal(proto_trust_has(p->config, own, &e), 1);
}

int main(void)
{
#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ed25519_is_the_standard_one),
		PLACE_TEST(key_is_made_once_and_kept_private),
		PLACE_TEST(podruns_at_once_agree),
		PLACE_TEST(bad_key_files_are_refused),
		cmocka_unit_test(text_has_one_spelling),
		PLACE_TEST(trusted_keys_come_and_go),
		PLACE_TEST(other_lines_stay),
		PLACE_TEST(ones_own_key_is_trusted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

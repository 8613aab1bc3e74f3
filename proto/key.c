// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * key - the user's own Ed25519 key.
 *
 * Theory of operation
 *
 * The key lives in CONFIG/key as one line, "ed25519-private:BASE64", readable by its owner alone.
 * It is made when first needed.  Two podruns may need it at the same moment, so a new key is
 * written under a name of its own and then *linked* to its place: link(2) refuses an existing
 * name, and whoever loses uses the winner's key.
 */
#include "proto/key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/crypto.h"

#define PREFIX	      "ed25519:"
#define SECRET	      "ed25519-private:"
#define SECRET_LEN    (sizeof(SECRET) - 1)
#define SEED_TEXT_LEN PROTO_BASE64_SIZE(PROTO_SEED_LEN)
#define KEY_FILE_LEN  (SECRET_LEN + SEED_TEXT_LEN) /* the NUL's place holds the newline */

struct proto_key {
	uint8_t seed[PROTO_SEED_LEN];
	uint8_t public[PROTO_KEY_LEN];
};

static int key_path(const char *config_dir, char ret[PATH_MAX], struct err *e)
{
	if (snprintf(ret, PATH_MAX, "%s/key", config_dir) >= PATH_MAX)
		return err_errno(e, -ENAMETOOLONG, "key file");
	return 0;
}

/* 1 and the key, 0 when there is no file. */
static int load(const char *path, struct proto_key *k, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[KEY_FILE_LEN + 1];
	struct stat st;
	ssize_t n;
	bool ok;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_errno(e, -errno, "cannot open key file %s", path);
	if (fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot look at key file %s", path);
	if (st.st_mode & 077) {
		err_set(e, ERR_STATE, -EPERM, "key file %s is open to others", path);
		return err_hint(e, "chmod 600 %s, or remove it to get a new key", path);
	}
	n = io_read_full(fd, text, sizeof(text));
	if (n < 0)
		return err_errno(e, (int)n, "cannot read key file %s", path);
	ok = n == KEY_FILE_LEN && text[n - 1] == '\n' && memcmp(text, SECRET, SECRET_LEN) == 0 &&
	     proto_base64_decode(text + SECRET_LEN, SEED_TEXT_LEN - 1, k->seed,
		     sizeof(k->seed)) == PROTO_SEED_LEN;
	proto_wipe(text, sizeof(text));
	if (!ok) {
		err_set(e, ERR_STATE, -EINVAL, "key file %s is damaged", path);
		return err_hint(e, "remove it to get a new key");
	}
	if (proto_ed25519_public(k->seed, k->public, e) < 0)
		return err_wrap(e, "%s", path);
	return 1;
}

/* Makes a key file unless another podrun was faster. */
static int create(const char *path, struct err *e)
{
	_cleanup_close_ int fd = -1;
	uint8_t seed[PROTO_SEED_LEN];
	char text[KEY_FILE_LEN + 1] = SECRET;
	char tmp[PATH_MAX];
	int r;

	if (snprintf(tmp, sizeof(tmp), "%s.%d.tmp", path, getpid()) >= PATH_MAX)
		return err_errno(e, -ENAMETOOLONG, "key file");
	r = proto_random(seed, sizeof(seed), e);
	if (r < 0)
		return r;
	proto_base64_encode(seed, sizeof(seed), text + SECRET_LEN);
	text[KEY_FILE_LEN - 1] = '\n';
	unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		r = err_errno(e, -errno, "cannot make key file %s", tmp);
	if (r == 0) {
		r = io_write_full(fd, text, KEY_FILE_LEN);
		if (r == 0 && fsync(fd) < 0)
			r = -errno;
		if (r == 0 && link(tmp, path) < 0 && errno != EEXIST)
			r = -errno;
		if (r < 0)
			err_errno(e, r, "cannot write key file %s", path);
		unlink(tmp);
	}
	proto_wipe(seed, sizeof(seed));
	proto_wipe(text, sizeof(text));
	return r;
}

int proto_key_open(struct proto_key **ret, const char *config_dir, struct err *e)
{
	struct proto_key *k = calloc(1, sizeof(*k));
	char path[PATH_MAX];
	int r;

	if (!k)
		return err_errno(e, -ENOMEM, "key");
	r = key_path(config_dir, path, e);
	if (r == 0)
		r = load(path, k, e);
	if (r == 0) {
		r = io_mkdir_p(AT_FDCWD, config_dir, 0700);
		if (r < 0)
			err_errno(e, r, "cannot make %s", config_dir);
		else
			r = create(path, e);
		if (r == 0)
			r = load(path, k, e);
		if (r == 0)
			r = err_set(e, ERR_FAILED, -ENOENT, "key file %s vanished", path);
	}
	if (r < 0) {
		proto_key_close(k);
		return r;
	}
	*ret = k;
	return 0;
}

void proto_key_close(struct proto_key *k)
{
	if (!k)
		return;
	proto_wipe(k, sizeof(*k));
	free(k);
}

void proto_key_public(const struct proto_key *k, uint8_t ret[PROTO_KEY_LEN])
{
	memcpy(ret, k->public, PROTO_KEY_LEN);
}

int proto_key_sign(const struct proto_key *k, const void *data, size_t len,
	uint8_t ret_sig[PROTO_SIG_LEN], struct err *e)
{
	return proto_ed25519_sign(k->seed, data, len, ret_sig, e);
}

int proto_key_own(const char *config_dir, uint8_t ret[PROTO_KEY_LEN], struct err *e)
{
	struct proto_key k;
	char path[PATH_MAX];
	int r = key_path(config_dir, path, e);

	if (r == 0)
		r = load(path, &k, e);
	if (r > 0)
		memcpy(ret, k.public, PROTO_KEY_LEN);
	proto_wipe(&k, sizeof(k));
	return r;
}

void proto_key_format(const uint8_t key[PROTO_KEY_LEN], char ret[PROTO_KEY_TEXT_LEN])
{
	memcpy(ret, PREFIX, sizeof(PREFIX) - 1);
	proto_base64_encode(key, PROTO_KEY_LEN, ret + sizeof(PREFIX) - 1);
}

int proto_key_parse(const char *text, uint8_t ret[PROTO_KEY_LEN], struct err *e)
{
	size_t n = sizeof(PREFIX) - 1;

	if (strncmp(text, PREFIX, n) != 0 ||
		proto_base64_decode(text + n, strlen(text + n), ret, PROTO_KEY_LEN) !=
			PROTO_KEY_LEN) {
		err_set(e, ERR_USAGE, -EINVAL, "'%.80s' is not a key", text);
		return err_hint(
			e, "a key looks like ed25519: and 44 characters; see podrun key show");
	}
	return 0;
}

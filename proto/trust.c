// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * trust - whose images are accepted: CONFIG/trusted, one "ed25519:BASE64 comment" per line.
 *
 * The file is small and people edit it by hand, so every change reads it whole, writes it whole
 * beside itself and renames: other lines, '#' comments among them, stay as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "proto/key.h"
#include "proto/proto.h"

#define MAX_FILE (1u << 20)

static int trust_path(const char *config_dir, char ret[PATH_MAX], struct err *e)
{
	if (snprintf(ret, PATH_MAX, "%s/trusted", config_dir) >= PATH_MAX)
		return err_errno(e, -ENAMETOOLONG, "list of trusted keys");
	return 0;
}

/* Appends the file to @b; a missing one is empty. */
static int load(const char *path, struct buf *b, struct err *e)
{
	int r = io_read_file(AT_FDCWD, path, MAX_FILE, b);

	if (r < 0 && r != -ENOENT)
		return err_errno(e, r, "cannot read %s", path);
	if (!buf_cstr(b))
		return err_errno(e, -ENOMEM, "cannot read %s", path);
	return 0;
}

static int store(const char *path, const struct buf *b, struct err *e)
{
	int r = buf_error(b);

	if (r == 0)
		r = io_replace_file(AT_FDCWD, path, b->data, b->len, 0600);
	return r < 0 ? err_errno(e, r, "cannot write %s", path) : 0;
}

/* The key of one line (its comment in *ret_comment); false for anything else. */
static bool parse_line(char *line, uint8_t ret[PROTO_KEY_LEN], const char **ret_comment)
{
	char *text = line + strspn(line, " \t");
	size_t n = strcspn(text, " \t");
	char *rest = text + n;

	rest += strspn(rest, " \t");
	text[n] = '\0';
	*ret_comment = rest;
	return proto_key_parse(text, ret, NULL) == 0;
}

int proto_trust_list(const char *config_dir,
	int (*each)(void *ctx, const uint8_t key[PROTO_KEY_LEN], const char *comment), void *ctx,
	struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	char path[PATH_MAX];
	char *save = NULL;
	int r = trust_path(config_dir, path, e);

	if (r == 0)
		r = load(path, &b, e);
	if (r < 0)
		return r;
	for (char *line = strtok_r((char *)b.data, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		uint8_t key[PROTO_KEY_LEN];
		const char *comment;

		if (!parse_line(line, key, &comment))
			continue;
		if (each(ctx, key, comment))
			break;
	}
	return 0;
}

struct search {
	const uint8_t *key;
	int found;
};

static int compare(void *ctx, const uint8_t key[PROTO_KEY_LEN], const char *comment)
{
	struct search *s = ctx;

	s->found = memcmp(s->key, key, PROTO_KEY_LEN) == 0;
	return s->found;
}

/* In the file itself, one's own key aside. */
static int listed(const char *config_dir, const uint8_t key[PROTO_KEY_LEN], struct err *e)
{
	struct search s = {.key = key};
	int r = proto_trust_list(config_dir, compare, &s, e);

	return r < 0 ? r : s.found;
}

int proto_trust_has(const char *config_dir, const uint8_t key[PROTO_KEY_LEN], struct err *e)
{
	uint8_t own[PROTO_KEY_LEN];
	int r = proto_key_own(config_dir, own, e);

	if (r < 0)
		return r;
	if (r == 1 && memcmp(own, key, PROTO_KEY_LEN) == 0)
		return 1;
	return listed(config_dir, key, e);
}

int proto_trust_add(const char *config_dir, const uint8_t key[PROTO_KEY_LEN], const char *comment,
	struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	char text[PROTO_KEY_TEXT_LEN];
	char path[PATH_MAX];
	int r = listed(config_dir, key, e);

	if (r != 0)
		return r < 0 ? r : 0;
	r = trust_path(config_dir, path, e);
	if (r == 0)
		r = load(path, &b, e);
	if (r < 0)
		return r;
	r = io_mkdir_p(AT_FDCWD, config_dir, 0700);
	if (r < 0)
		return err_errno(e, r, "cannot make %s", config_dir);
	if (b.len && b.data[b.len - 1] != '\n')
		buf_put_u8(&b, '\n');
	proto_key_format(key, text);
	buf_put_str(&b, text);
	if (comment && *comment)
		buf_put_u8(&b, ' ');
	/* A comment is one line, whatever it came from. */
	for (const char *p = comment ? comment : ""; *p; p++)
		buf_put_u8(&b, (uint8_t)((unsigned char)*p < ' ' ? ' ' : *p));
	buf_put_u8(&b, '\n');
	return store(path, &b, e);
}

int proto_trust_remove(const char *config_dir, const uint8_t key[PROTO_KEY_LEN], struct err *e)
{
	_cleanup_buf_ struct buf old = BUF_INIT, b = BUF_INIT;
	char path[PATH_MAX];
	bool found = false;
	int r = trust_path(config_dir, path, e);

	if (r == 0)
		r = load(path, &old, e);
	if (r < 0)
		return r;
	for (const char *p = (const char *)old.data, *end = p + old.len; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) + 1 : (size_t)(end - p);
		_cleanup_free_ char *line = strndup(p, nl ? n - 1 : n);
		uint8_t this[PROTO_KEY_LEN];
		const char *comment;

		if (!line)
			return err_errno(e, -ENOMEM, "%s", path);
		if (parse_line(line, this, &comment) && memcmp(this, key, PROTO_KEY_LEN) == 0)
			found = true;
		else
			buf_put(&b, p, n);
		p += n;
	}
	if (!found)
		return err_set(e, ERR_NOT_FOUND, -ENOENT, "this key is not among the trusted ones");
	return store(path, &b, e);
}

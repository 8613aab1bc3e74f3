// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files of `name = value` lines: the user's defaults ($XDG_CONFIG_HOME/podrun/config) and sessions
 * described in a file (`run --file`).  Names are those of long options; `#` begins a comment, and a
 * name alone is a flag that is on.
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "supervisor/cli/cli.h"

#define MAX_FILE (1u << 20)

static char *trim(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return s;
}

/* One line, cut into name and value in place.  False for an empty one. */
static bool cut(char *line, char **ret_name, char **ret_value)
{
	char *equals;

	line = trim(line);
	if (!*line || *line == '#')
		return false;
	equals = strchr(line, '=');
	if (equals)
		*equals = '\0';
	*ret_name = trim(line);
	*ret_value = equals ? trim(equals + 1) : NULL;
	return true;
}

int cli_settings_read(const char *path, bool optional,
	int (*each)(void *ctx, const char *name, const char *value, const char *where, struct err *e),
	void *ctx, struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	int r = io_read_file(AT_FDCWD, path, MAX_FILE, &b), number = 0;
	char *next, *name, *value;

	if (r == -ENOENT && optional)
		return 0;
	if (r < 0) {
		err_errno(e, r, "%s", path);
		return r == -ENOENT ? err_reclass(e, ERR_NOT_FOUND) : r;
	}
	if (!buf_cstr(&b))
		return err_errno(e, -ENOMEM, "%s", path);
	for (char *line = buf_cstr(&b); line; line = next) {
		char where[PATH_MAX + 16];

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		if (!cut(line, &name, &value))
			continue;
		snprintf(where, sizeof(where), "%s:%d", path, number);
		r = each(ctx, name, value, where, e);
		if (r < 0)
			return r;
	}
	return 0;
}

struct wanted {
	const char *name;
	char *value;
};

static int take_wanted(void *ctx, const char *name, const char *value, const char *where,
	struct err *e)
{
	struct wanted *w = ctx;

	if (strcmp(name, w->name) == 0 && value) {
		free(w->value);
		w->value = strdup(value);
	}
	return 0;
}

char *cli_setting(struct cli *c, const char *name)
{
	_cleanup_free_ char *path = NULL;
	struct wanted w = {.name = name};
	struct err e = {0};

	if (asprintf(&path, "%s/config", c->paths.config) < 0)
		return NULL;
	cli_settings_read(path, true, take_wanted, &w, &e);
	return w.value;
}

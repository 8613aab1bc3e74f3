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

int cli_text(struct buf *b, char **ret, const char *where, struct err *e)
{
	const char *nul;
	int line = 1;

	*ret = buf_cstr(b);
	if (!*ret)
		return err_errno(e, -ENOMEM, "%s", where);
	nul = memchr(*ret, '\0', b->len);
	for (const char *p = *ret; nul && p < nul; p++)
		line += *p == '\n';
	return nul ? err_set(e, ERR_USAGE, -EINVAL, "%s:%d: a NUL byte is in this line", where, line)
		   : 0;
}

int cli_settings_read(const char *path, bool optional,
	int (*each)(void *ctx, const char *name, const char *value, const char *where, struct err *e),
	void *ctx, struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	int r = io_read_file(AT_FDCWD, path, MAX_FILE, &b), number = 0;
	char *text, *next, *name, *value;

	if (r == -ENOENT && optional)
		return 0;
	if (r < 0) {
		err_errno(e, r, "%s", path);
		return r == -ENOENT ? err_reclass(e, ERR_NOT_FOUND) : r;
	}
	if (cli_text(&b, &text, path, e) < 0)
		return e->error;
	for (char *line = text; line; line = next) {
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

/* ---- options of a command, from the command line and from files -------------------------------- */

struct apply {
	struct cli_settings *settings;
	const struct cli_command *cmd;
	void *options;
	bool defaults; /* the user's config file, which has other settings as well */
};

static int apply_line(
	void *ctx, const char *name, const char *value, const char *where, struct err *e)
{
	static const char *const others[] = {"ssh"};
	struct apply *a = ctx;
	struct cli_settings *s = a->settings;
	struct cli_setting *grown, *line;

	for (size_t i = 0; a->defaults && i < ARRAY_SIZE(others); i++)
		if (strcmp(name, others[i]) == 0)
			return 0;
	grown = realloc(s->lines, (s->n + 1) * sizeof(*grown));
	if (!grown)
		return err_errno(e, -ENOMEM, "%s", where);
	s->lines = grown;
	line = &s->lines[s->n++];
	*line = (struct cli_setting){strdup(name), value ? strdup(value) : NULL, strdup(where)};
	if (!line->name || !line->where || (value && !line->value))
		return err_errno(e, -ENOMEM, "%s", where);
	return cli_set(a->cmd, a->options, name, line->value, where, e);
}

/* What the command line said of @o once more, on top. */
static int put_over(const struct cli_command *cmd, const struct cli_option *o, const void *line,
	void *files, struct err *e)
{
	const void *from = (const char *)line + o->offset;
	void *to = (char *)files + o->offset;

	switch (o->type) {
	case CLI_FLAG:
		*(bool *)to |= *(const bool *)from;
		break;
	case CLI_STRING:
	case CLI_CHOICE:
	case CLI_MAYBE:
		if (*(const char *const *)from)
			*(const char **)to = *(const char *const *)from;
		break;
	case CLI_NUMBER:
	case CLI_SIZE:
		if (*(const uint64_t *)from)
			*(uint64_t *)to = *(const uint64_t *)from;
		break;
	case CLI_LIST:
		for (size_t i = 0; i < ((const struct cli_list *)from)->n; i++)
			if (cli_set(cmd, files, o->name, ((const struct cli_list *)from)->items[i],
				    "", e) < 0)
				return e->error;
		break;
	case CLI_REFUSED:
		break;
	}
	return 0;
}

/* Of a line that the command line's word has replaced nobody is to be told. */
static void forget_replaced(
	struct cli_settings *s, const struct cli_option *o, const void *line)
{
	const void *from = (const char *)line + o->offset;
	bool said = false;

	if (o->type == CLI_STRING || o->type == CLI_CHOICE || o->type == CLI_MAYBE)
		said = *(const char *const *)from;
	else if (o->type == CLI_NUMBER || o->type == CLI_SIZE)
		said = *(const uint64_t *)from;
	for (size_t i = 0; said && i < s->n; i++)
		if (strcmp(s->lines[i].name, o->name) == 0)
			free(take_ptr(s->lines[i].where));
}

int cli_settings_apply(struct cli_settings *s, struct cli *c, const struct cli_command *cmd, void *o,
	const char *path, struct err *e)
{
	_cleanup_free_ char *config = NULL;
	_cleanup_free_ void *files = calloc(1, cmd->size + 1);
	struct apply a = {.settings = s, .cmd = cmd, .options = files, .defaults = true};
	int r;

	if (!files || asprintf(&config, "%s/config", c->paths.config) < 0)
		return err_errno(e, -ENOMEM, "config");
	r = cli_settings_read(config, true, apply_line, &a, e);
	a.defaults = false;
	if (r == 0 && path)
		r = cli_settings_read(path, false, apply_line, &a, e);
	for (size_t i = 0; r == 0 && i < cmd->n_options; i++) {
		forget_replaced(s, &cmd->options[i], o);
		r = put_over(cmd, &cmd->options[i], o, files, e);
	}
	if (r < 0) {
		cli_free_options(cmd, files);
		return r;
	}
	cli_free_options(cmd, o);
	memcpy(o, files, cmd->size);
	return 0;
}

/* Does @msg begin with this option, as messages spell it: "--net: ...", "--keep belongs ..."? */
static bool is_about(const char *msg, const struct cli_option *o)
{
	size_t n = strlen(o->name);

	if (o->letter && msg[0] == '-' && msg[1] == o->letter && msg[2] == ' ')
		return true;
	return strncmp(msg, "--", 2) == 0 && strncmp(msg + 2, o->name, n) == 0 &&
	       (msg[2 + n] == ':' || msg[2 + n] == ' ');
}

int cli_settings_blame(const struct cli_settings *s, const struct cli_command *cmd, struct err *e)
{
	const struct cli_option *o = NULL;

	for (size_t i = 0; i < cmd->n_options && !o; i++)
		if (is_about(e->msg, &cmd->options[i]))
			o = &cmd->options[i];
	for (size_t i = s->n; o && i-- > 0;) {
		const struct cli_setting *line = &s->lines[i];

		if (!line->where || strcmp(line->name, o->name) != 0)
			continue;
		/* one of several that were said: the one that is complained of */
		if (o->type == CLI_LIST && line->value && !strstr(e->msg, line->value))
			continue;
		return err_wrap(e, "%s", line->where);
	}
	return e->error;
}

void cli_settings_fini(struct cli_settings *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->lines[i].name);
		free(s->lines[i].value);
		free(s->lines[i].where);
	}
	free(take_ptr(s->lines));
	s->n = 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/screen/place.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/session.h"

int screen_place_files(const struct session *s)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/files", s->dir) < 0)
		return -ENOMEM;
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int screen_place_open(int dir, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

void screen_place_words(const struct session *s, const char *log, char *ret, size_t size)
{
	_cleanup_close_ int files = screen_place_files(s), fd = -1;
	char path[64], text[4096], *line;
	ssize_t n;

	*ret = '\0';
	snprintf(path, sizeof(path), "run/" SCREEN_PLACE "/%s", log);
	fd = files < 0 ? -1 : screen_place_open(files, path, O_RDONLY | O_NONBLOCK);
	n = fd < 0 ? -1 : io_read_full(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	while (n > 0 && strchr("\n ", text[n - 1]))
		n--;
	text[n] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	line[MIN(strlen(line), size - 1)] = '\0';
	strcpy(ret, line);
	for (char *p = ret; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
			*p = '?';
}

int screen_place_set(Pb__Config *c, const char *name, char *text)
{
	size_t n = strlen(name);
	char **grown;

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_env; i++) {
		if (strncmp(c->env[i], name, n) != 0 || c->env[i][n] != '=')
			continue;
		free(c->env[i]);
		c->env[i] = text;
		return 0;
	}
	grown = realloc(c->env, (c->n_env + 1) * sizeof(*grown));
	if (!grown) {
		free(text);
		return -ENOMEM;
	}
	c->env = grown;
	c->env[c->n_env++] = text;
	return 0;
}

int screen_place_spawn(struct session *s, char *const argv[], pid_t *ret, struct err *e)
{
	const Pb__Config *c = s->record->config;
	_cleanup_free_ char **env = calloc(c->n_env + 1, sizeof(*env));
	const struct world_spawn spawn = {.argv = argv,
		.envp = env,
		.cwd = "/",
		.stdio = {-1, -1, -1},
		.umask = 077 | WORLD_UMASK};
	int none = -1;

	if (!env)
		return err_errno(e, -ENOMEM, "display");
	if (c->n_env)
		memcpy(env, c->env, c->n_env * sizeof(*env));
	return world_spawn(&s->world, &spawn, ret, &none, e);
}

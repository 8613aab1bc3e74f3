// SPDX-License-Identifier: GPL-2.0-or-later
/* The mount table is read once: while the session's root is put together it would only grow. */
#include "supervisor/world/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/world/world_config.h"

#define MAX_MOUNTINFO (4 << 20)

/* Undoes the octal escapes of /proc/PID/mountinfo, in place. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

/* proc_pid_mountinfo(5): the fifth field is the mount point, the file system type follows " - ". */
static int read_mounts(struct tree *t, struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char *line, *next;
	int r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", MAX_MOUNTINFO, &text);

	buf_put_u8(&text, 0);
	if (r < 0 || buf_error(&text))
		return err_errno(e, r < 0 ? r : -ENOMEM, "cannot read the mount table");
	for (line = (char *)text.data; *line; line = next) {
		struct host_mount *more;
		char *field = line, *type, *end;

		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		for (int i = 0; field && i < 4; i++) {
			field = strchr(field, ' ');
			field += field != NULL;
		}
		type = strstr(line, " - ");
		end = field ? strchr(field, ' ') : NULL;
		if (!end || !type)
			continue;
		*end = '\0';
		unescape(field);
		more = reallocarray(t->mounts, t->n_mounts + 1, sizeof(*more));
		if (!more)
			return err_errno(e, -ENOMEM, "mount table");
		t->mounts = more;
		more[t->n_mounts].path = strdup(field);
		more[t->n_mounts].autofs = !strncmp(type + 3, "autofs ", 7);
		if (!more[t->n_mounts++].path)
			return err_errno(e, -ENOMEM, "mount table");
	}
	return 0;
}

bool tree_mounts_below(const struct tree *t, const char *path)
{
	size_t real = strlen(t->real), n = strlen(path);

	for (size_t i = 0; i < t->n_mounts; i++) {
		const char *m = t->mounts[i].path;

		if (!strncmp(m, t->real, real) && !strncmp(m + real, path, n) &&
			m[real + n] == '/' && m[real + n + 1])
			return true;
	}
	return false;
}

bool tree_is_autofs(const struct tree *t, const char *path)
{
	size_t real = strlen(t->real);

	for (size_t i = 0; i < t->n_mounts; i++)
		if (t->mounts[i].autofs && !strncmp(t->mounts[i].path, t->real, real) &&
			!strcmp(t->mounts[i].path + real, path))
			return true;
	return false;
}

bool tree_may_write(const struct tree *t, const char *host_path)
{
	return t->c->as_root || access(host_path, W_OK) == 0;
}

mode_t tree_shown_mode(const struct tree *t, const char *host_path, mode_t mode)
{
	mode &= 07777;
	return tree_may_write(t, host_path) ? mode | 0200 : mode & ~0222;
}

int tree_join(char out[PATH_MAX], const char *a, const char *b, struct err *e)
{
	if (snprintf(out, PATH_MAX, "%s%s", a, b) >= PATH_MAX)
		return err_set(e, ERR_FAILED, -ENAMETOOLONG, "path too long: %s%s", a, b);
	return 0;
}

const char *const tree_private[TREE_N_PRIVATE] = {"dev", "proc", "sys", "tmp", "run"};

bool tree_is_private(const char *name)
{
	for (size_t i = 0; i < TREE_N_PRIVATE; i++)
		if (!strcmp(name, tree_private[i]))
			return true;
	return false;
}

bool tree_top_is_private(const char *path)
{
	char name[8];

	snprintf(name, sizeof(name), "%.*s", (int)(strchrnul(path + 1, '/') - path - 1), path + 1);
	return tree_is_private(name);
}

int tree_init(struct tree *ret, const struct world_config *c, const char *source, struct err *e)
{
	struct tree t = {.c = c, .source = source};
	int r;

	t.real = *source ? io_readlink(AT_FDCWD, source) : strdup("");
	if (!t.real)
		return err_errno(e, -ENOENT, "cannot tell where the session's root is");
	r = read_mounts(&t, e);
	if (r < 0)
		tree_fini(&t);
	else
		*ret = t;
	return r;
}

void tree_fini(struct tree *t)
{
	for (size_t i = 0; i < t->n_mounts; i++)
		free(t->mounts[i].path);
	free(t->mounts);
	free(t->real);
}

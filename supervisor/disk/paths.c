// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in paths.h. */
#include "supervisor/disk/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"

static const char *home(void)
{
	const char *h = getenv("HOME");

	return h && h[0] == '/' ? h : "/";
}

/* Makes @path (0700) unless it is there; it must be a directory of ours. */
static int own_directory(const char *path, struct err *e)
{
	struct stat st;
	int r = io_mkdir_p(AT_FDCWD, path, 0700);

	if (r < 0 && r != -EEXIST)
		return err_errno(e, r, "cannot make %s", path);
	if (lstat(path, &st) < 0)
		return err_errno(e, -errno, "%s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return err_set(e, ERR_FAILED, -EPERM, "%s is not a directory of yours", path);
	return 0;
}

static int make_runtime(const char *path, struct err *e)
{
	if (own_directory(path, e) < 0) {
		err_hint(e, "set XDG_RUNTIME_DIR to a directory of yours");
		return err_wrap(e, "runtime directory");
	}
	/* In the temporary directory somebody else may have made it first, with other rights. */
	if (chmod(path, 0700) < 0)
		return err_errno(e, -errno, "%s", path);
	return 0;
}

static int runtime_place(char **ret, struct err *e)
{
	const char *x = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	char run_user[64];
	struct stat st;
	int n;

	snprintf(run_user, sizeof(run_user), "/run/user/%u", geteuid());
	if (!x || x[0] != '/')
		x = run_user;
	if (stat(x, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
		access(x, W_OK) == 0)
		n = asprintf(ret, "%s/podrun", x);
	else
		n = asprintf(ret, "%s/podrun-%u", tmp && tmp[0] == '/' ? tmp : "/tmp", geteuid());
	if (n < 0)
		return err_errno(e, -ENOMEM, "paths");
	return make_runtime(*ret, e);
}

int paths_renew_runtime(const struct paths *p, struct err *e)
{
	return make_runtime(p->runtime, e);
}

static int home_place(char **ret, const char *variable, const char *below, struct err *e)
{
	const char *x = getenv(variable);
	int n;

	if (x && x[0] == '/')
		n = asprintf(ret, "%s/podrun", x);
	else
		n = asprintf(ret, "%s/%s/podrun", home(), below);
	if (n < 0)
		return err_errno(e, -ENOMEM, "paths");
	if (own_directory(*ret, e) < 0)
		return err_hint(e, "set HOME or %s to a directory of yours", variable);
	return 0;
}

int paths_init(struct paths *ret, struct err *e)
{
	static const char *const below[] = {"sessions", "images"};
	struct paths p = {0};
	int r;

	r = runtime_place(&p.runtime, e);
	if (r == 0)
		r = home_place(&p.state, "XDG_STATE_HOME", ".local/state", e);
	if (r == 0)
		r = home_place(&p.config, "XDG_CONFIG_HOME", ".config", e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(below); i++) {
		_cleanup_free_ char *dir = NULL;

		if (asprintf(&dir, "%s/%s", p.state, below[i]) < 0)
			r = err_errno(e, -ENOMEM, "paths");
		else
			r = own_directory(dir, e);
	}
	if (r < 0) {
		paths_fini(&p);
		return r;
	}
	*ret = p;
	return 0;
}

void paths_fini(struct paths *p)
{
	free(p->runtime);
	free(p->state);
	free(p->config);
	*p = (struct paths){0};
}

bool paths_valid_name(const char *name)
{
	static const char first[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	return name[0] && strchr(first, name[0]) && strlen(name) <= PATHS_MAX_NAME - 1 &&
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
			strlen(name);
}

bool paths_valid_target(const char *path)
{
	if (path[0] != '/' || path[1] == '\0' || strlen(path) >= PATH_MAX)
		return false;
	while (*path) {
		const char *name = path + strspn(path, "/"), *end = strchrnul(name, '/');
		size_t n = (size_t)(end - name);

		if (n > NAME_MAX || (n && n <= 2 && strncmp(name, "..", n) == 0))
			return false;
		path = end;
	}
	return true;
}

int paths_check_name(const char *name, struct err *e)
{
	if (paths_valid_name(name))
		return 0;
	err_set(e, ERR_USAGE, -EINVAL, "'%.64s' can't be the name of a session", name);
	return err_hint(e, "at most %d letters, digits, '_', '.' and '-', beginning with a letter or digit",
		PATHS_MAX_NAME - 1);
}

int paths_check_own(const char *name, struct err *e)
{
	if (!strchr(name, '/'))
		return 0;
	return err_set(e, ERR_USAGE, -EPERM, "'%.64s' is another user's: only the owner can do that",
		name);
}

void paths_make_name(unsigned seed, char ret[PATHS_MAX_NAME])
{
	static const char *const how[] = {"amber", "brave", "calm", "clear", "early", "fresh", "gentle",
		"happy", "keen", "light", "lucky", "mellow", "noble", "proud", "quick", "quiet", "rapid",
		"ready", "shiny", "silent", "smart", "solid", "steady", "still", "sunny", "swift", "tidy",
		"vivid", "warm", "wise", "witty", "young"};
	static const char *const what[] = {"acorn", "beetle", "birch", "breeze", "cedar", "cloud",
		"comet", "coral", "crane", "delta", "dune", "falcon", "fern", "finch", "grove", "harbor",
		"heron", "island", "lark", "maple", "meadow", "otter", "pebble", "pine", "raven", "reef",
		"river", "robin", "spruce", "stone", "thrush", "willow"};

	snprintf(ret, PATHS_MAX_NAME, "%s-%s", how[seed % ARRAY_SIZE(how)],
		what[seed / ARRAY_SIZE(how) % ARRAY_SIZE(what)]);
}

static char *below(const char *base, const char *folder, const char *name, const char *file)
{
	char *s;

	if (asprintf(&s, "%s/%s%s%s%s", base, folder, name, file ? "/" : "", file ? file : "") < 0)
		return NULL;
	return s;
}

char *paths_session(const struct paths *p, const char *name, const char *file)
{
	return below(p->state, "sessions/", name, file);
}

char *paths_runtime(const struct paths *p, const char *name, const char *file)
{
	return below(p->runtime, "", name, file);
}

char *paths_image(const struct paths *p, const char *name, unsigned copy)
{
	char *s;
	int n;

	if (copy)
		n = asprintf(&s, "%s/images/%s.img@%u", p->state, name, copy);
	else
		n = asprintf(&s, "%s/images/%s.img", p->state, name);
	return n < 0 ? NULL : s;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int paths_list(const struct paths *p, char ***ret, size_t *ret_n, struct err *e)
{
	_cleanup_free_ char *dir = below(p->state, "", "sessions", NULL);
	_cleanup_closedir_ DIR *d = dir ? opendir(dir) : NULL;
	char **names = NULL;
	size_t n = 0;
	struct dirent *entry;

	if (!d)
		return err_errno(e, -errno, "cannot list %s", dir ? dir : "sessions");
	while ((entry = readdir(d))) {
		char **grown;

		if (!paths_valid_name(entry->d_name))
			continue;
		grown = realloc(names, (n + 1) * sizeof(*names));
		if (grown)
			names = grown;
		if (!grown || !(names[n] = strdup(entry->d_name))) {
			while (n)
				free(names[--n]);
			free(names);
			return err_errno(e, -ENOMEM, "list of sessions");
		}
		n++;
	}
	if (n)
		sort_array(names, n, sizeof(*names), by_name);
	*ret = names;
	*ret_n = n;
	return 0;
}

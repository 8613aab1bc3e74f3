// SPDX-License-Identifier: GPL-2.0-or-later
/* From a path of the host, as /proc and the kernel tell it, to what the session calls
 * it: by the text alone. */
#include "supervisor/rewrite/view/view.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "supervisor/rewrite/view/program.h"

/* The length of what is above the last of the first @len bytes' components. */
static size_t parent_of(const char *path, size_t len)
{
	while (len > 0 && path[len - 1] != '/')
		len--;
	return len > 0 ? len - 1 : 0;
}

static bool below(const char *path, const char *top, size_t len)
{
	return strncmp(path, top, len) == 0 &&
	       (path[len] == '/' || !path[len] || strcmp(path + len, " (deleted)") == 0);
}

/*
 * A session's directory is called like the session, which may have had another name when a socket
 * was bound: SESSIONS/NAME/files/tmp.  What is behind it in @host, NULL if that is none.
 */
static const char *behind_former_name(const struct view_entry *one, const char *host)
{
	size_t files = parent_of(one->host, strlen(one->host));
	size_t name = parent_of(one->host, parent_of(one->host, files));
	const char *rest;
	size_t len;

	if (!name || strncmp(host, one->host, name + 1) != 0)
		return NULL;
	rest = host + name + 1;
	rest += strcspn(rest, "/");
	/* From "/files". */
	name = parent_of(one->host, files);
	len = strlen(one->host + name);
	return below(rest, one->host + name, len) ? rest + len : NULL;
}

static int say_former(const struct view *v, const char *host, char ret[PATH_MAX])
{
	for (size_t i = 0; i < v->n; i++) {
		const struct view_entry *one = &v->entries[i];
		const char *rest = NULL;
		int n;

		if (one->sort == VIEW_MOUNT && one->own)
			rest = behind_former_name(one, host);
		if (!rest)
			continue;
		n = snprintf(ret, PATH_MAX, "%s%s", one->path, rest);
		return n < PATH_MAX ? 0 : -ENAMETOOLONG;
	}
	return -ENOENT;
}

/* A copy of a program is said as the program; if that is there no more, as the kernel would. */
static int say_program(const struct view *v, const char *below_programs, char ret[PATH_MAX])
{
	static const char deleted[] = " (deleted)";
	char source[PATH_MAX];
	struct stat st;
	ino_t inode;
	size_t n, tail = strlen(deleted);
	int r = view_program_path(below_programs, ret, &inode);

	if (r < 0 || !inode || (view_host_path(v, ret, source) == 0 && lstat(source, &st) == 0 &&
				       st.st_ino == inode))
		return r;
	n = strlen(ret);
	if (n > tail && strcmp(ret + n - tail, deleted) == 0) /* it never was */
		return 0;
	return snprintf(ret + n, PATH_MAX - n, "%s", deleted) < (int)(PATH_MAX - n) ? 0
										    : -ENAMETOOLONG;
}

const struct view_entry *view_mount_of_host(const struct view *v, const char *host)
{
	const struct view_entry *best = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < v->n; i++) {
		const struct view_entry *one = &v->entries[i];
		size_t len = one->sort == VIEW_MOUNT ? strlen(one->host) : 0;

		if (len > longest && below(host, one->host, len)) {
			best = one;
			longest = len;
		}
	}
	return best;
}

int view_session_path(const struct view *v, const char *host, char ret[PATH_MAX])
{
	const struct view_entry *best;
	int n;

	if (view_is_terminal(host))
		return view_say_terminal((struct view *)v, host, ret);
	if (v->programs && below(host, v->programs, strlen(v->programs)))
		return say_program(v, host + strlen(v->programs), ret);
	if (view_short_said(v, host, ret))
		return 0;
	best = view_mount_of_host(v, host);
	if (!best && view_mount_of(v, host))
		return say_former(v, host, ret);
	n = snprintf(ret, PATH_MAX, "%s%s", best ? best->path : "",
		host + (best ? strlen(best->host) : 0));
	if (n == 0)
		strcpy(ret, "/");
	return n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

bool view_is_hosts(const struct view *v, const char *path)
{
	const struct view_entry *in = view_mount_of(v, path);

	return !in || in->sort != VIEW_MOUNT || in->len == strlen(path) || strcmp(path, "/") == 0;
}

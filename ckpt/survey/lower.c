// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lower - which files beneath the session's own it has in use: what `--with-files` takes along.
 *
 * In use is what is mapped (the program and its libraries among it), what is open by name, and
 * the directories processes stand in.  What a session would open only later - a module not loaded
 * yet, the next program of a script - is not known, and not among it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/survey/lower.h"
#include "ckpt/survey/survey.h"
#include "ckpt/where.h"

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The kernel's own file systems and the session's private directories are not beneath anything. */
static bool is_private(const char *path)
{
	static const char *const tops[] = {"/dev", "/proc", "/sys", "/tmp", "/run"};

	for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
		size_t n = strlen(tops[i]);

		if (!strncmp(path, tops[i], n) && (path[n] == '/' || !path[n]))
			return true;
	}
	return false;
}

static void add(struct buf *list, const char *path)
{
	char *copy;

	if (!path || path[0] != '/' || !path[1] || is_private(path))
		return;
	copy = strdup(path);
	if (copy)
		buf_put(list, &copy, sizeof(copy));
	else
		list->failed = true;
}

static void add_link(struct buf *list, const struct ckpt_dump *d, pid_t pid, const char *what)
{
	_cleanup_free_ char *path = NULL;
	char name[32];

	snprintf(name, sizeof(name), "%d/%s", pid, what);
	path = ckpt_where_say(d->world, io_readlink(d->host_proc, name));
	add(list, path);
}

static void add_proc(struct buf *list, const struct ckpt_dump *d, const struct ckpt_proc *p)
{
	for (size_t i = 0; i < p->maps.n; i++)
		if (!p->maps.vmas[i].deleted && (!i || strcmp(p->maps.vmas[i].path,
						 p->maps.vmas[i - 1].path)))
			add(list, p->maps.vmas[i].path);
	if (p->state == CKPT_ZOMBIE)
		return;
	add_link(list, d, p->look, "exe");
	add_link(list, d, p->look, "cwd");
}

int ckpt_lower_list(const struct ckpt_dump *d, char ***ret, size_t *ret_n, struct err *e)
{
	_cleanup_buf_ struct buf list = BUF_INIT;
	size_t n, kept = 0;
	char **at;

	for (size_t i = 0; i < d->n_procs; i++)
		add_proc(&list, d, d->procs[i]);
	for (size_t i = 0; i < d->n_files; i++)
		if (d->files[i]->kind && d->files[i]->kind->number == PROTO_KIND_REGULAR)
			add(&list, d->files[i]->link);
	at = (char **)list.data;
	n = list.len / sizeof(*at);
	if (n)
		sort_array(at, n, sizeof(*at), compare);
	for (size_t i = 0; i < n; i++) {
		if (kept && !strcmp(at[kept - 1], at[i]))
			free(at[i]);
		else
			at[kept++] = at[i];
	}
	if (buf_error(&list) < 0) {
		ckpt_lower_free(at, kept);
		list.data = NULL;
		return err_errno(e, -ENOMEM, "files in use");
	}
	list.data = NULL;
	*ret = at;
	*ret_n = kept;
	return 0;
}

void ckpt_lower_free(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

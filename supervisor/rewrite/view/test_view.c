// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/rewrite/view/test_view.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/pts.h"
#include "supervisor/rewrite/tasks.h"
#include "supervisor/rewrite/view/calls.h"
#include "supervisor/world/world_config.h"

struct fixture {
	char dir[64], files[96], bind[96], hidden[96];
	struct world_bind binds[2];
	const char *hide[1];
	struct world_config config;
	struct view *view;
};

static void fill(struct fixture *f)
{
	put(f->bind, "bound", "x");
	make_dir(f->files, "tmp/d/e");
	put(f->files, "tmp/file", "x");
	put(f->files, "tmp/d/e/deep", "x");
	make_link(f->files, "/etc/passwd", "tmp/out");
	make_link(f->files, "d/e", "tmp/short");
	make_link(f->files, "/tmp/d", "tmp/long");
	make_link(f->files, "../../../../../../../../etc/passwd", "tmp/up");
	make_link(f->files, "../tmp/file", "tmp/back");
	make_link(f->files, "loop2", "tmp/loop1");
	make_link(f->files, "loop1", "tmp/loop2");
	make_link(f->files, "/tmp/nothing", "tmp/dangling");
	make_link(f->files, "file/", "tmp/slash");
	make_link(f->files, "/vol/bound", "tmp/volume");
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = {0};

	assert_non_null(f);
	snprintf(f->dir, sizeof(f->dir), "/var/tmp/podrun-view-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->files, sizeof(f->files), "%s/files", f->dir);
	snprintf(f->bind, sizeof(f->bind), "%s/bind", f->dir);
	snprintf(f->hidden, sizeof(f->hidden), "%s/hidden", f->dir);
	make_dir(f->dir, "files");
	make_dir(f->dir, "bind");
	make_dir(f->dir, "hidden");
	f->binds[0] = (struct world_bind){f->bind, (char *)"/vol", true};
	f->binds[1] = (struct world_bind){f->bind, (char *)"/tmp/in", false};
	f->hide[0] = f->hidden;
	f->config = (struct world_config){.files_dir = f->files,
		.binds = f->binds,
		.n_binds = 2,
		.hidden = f->hide,
		.n_hidden = 1};
	assert_int_equal(view_prepare(&f->config, &e), 0);
	assert_int_equal(view_create(&f->view, &f->config, &e), 0);
	assert_int_equal(view_open(f->view, NULL), 0);
	fill(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	view_free(f->view);
	io_rm_rf(AT_FDCWD, f->dir);
	free(f);
	return 0;
}

/* Texts that may lead in, and some that do not. */
static void texts(void **state)
{
	const struct fixture *f = *state;
	static const char *const in[] = {"/tmp", "/tmp/", "//tmp//x", "/./tmp", "/usr/../tmp/x",
		"/tmp/../etc/passwd", "/dev/shm/x", "/dev/../run", "/", "/..", "/usr/..", "/dev",
		"/vol", "/vol/bound", "/var/run/x", "/proc/self", "/../tmp"};
	static const char *const out[] = {"/etc/passwd", "/tmpx", "/usr/tmp/x", "/home/tmp",
		"/dev/null", "/usr/lib/../bin/sh", "/vo", "/volx", "/etc/../usr", "/tm",
		"/usr/./run"};

	check_texts(f->view, in, ARRAY_SIZE(in), out, ARRAY_SIZE(out));
}

static void walks(void **state)
{
	static const struct walk_case cases[] = {
		{"/tmp", 0, 0, "/tmp", "tmp"},
		{"//tmp//file", 0, 0, "/tmp/file", "tmp/file"},
		{"/tmp/file/", 0, -ENOTDIR, 0, 0},
		{"/tmp/file/x", 0, -ENOTDIR, 0, 0},
		{"/tmp/d/e/", 0, 0, "/tmp/d/e", "tmp/d/e/"},
		{"/tmp/d/../file", 0, 0, "/tmp/file", "tmp/file"},
		{"/tmp/nothing/../file", 0, -ENOENT, 0, 0},
		{"/tmp/../tmp/file", 0, 0, "/tmp/file", "tmp/file"},
		{"/tmp/..", 0, 0, "/", "/"},
		{"/tmp/../../../etc/passwd", 0, 0, "/etc/passwd", "/etc/passwd"},
		{"/usr/../tmp/file", 0, 0, "/tmp/file", "tmp/file"},
		{"/tmp/out", 0, 0, "/etc/passwd", "/etc/passwd"},
		{"/tmp/out", VIEW_NOFOLLOW, 0, "/tmp/out", "tmp/out"},
		{"/tmp/up", 0, 0, "/etc/passwd", "/etc/passwd"},
		{"/tmp/short/deep", 0, 0, "/tmp/d/e/deep", "tmp/d/e/deep"},
		{"/tmp/short/../e/deep", 0, 0, "/tmp/d/e/deep", "tmp/d/e/deep"},
		{"/tmp/long/e/deep", 0, 0, "/tmp/d/e/deep", "tmp/d/e/deep"},
		{"/tmp/long/", VIEW_NOFOLLOW, 0, "/tmp/d", "tmp/d/"},
		{"/tmp/back", 0, 0, "/tmp/file", "tmp/file"},
		{"/tmp/loop1", 0, -ELOOP, 0, 0},
		{"/tmp/loop1", VIEW_NOFOLLOW, 0, "/tmp/loop1", "tmp/loop1"},
		{"/tmp/dangling", 0, -ENOENT, 0, 0},
		{"/tmp/dangling", VIEW_CREATE, 0, "/tmp/nothing", "tmp/nothing"},
		{"/tmp/slash", 0, -ENOTDIR, 0, 0},
		{"/tmp/long/", VIEW_PARENT, -ENOTDIR, 0, 0},
		{"/tmp/long/", VIEW_PARENT | VIEW_CREATE, 0, "/tmp/long", "tmp/long/"},
		{"/tmp/file/", VIEW_CREATE, 0, "/tmp/file", "tmp/file/"},
		{"/tmp/new", VIEW_CREATE, 0, "/tmp/new", "tmp/new"},
		{"/tmp/new/er", VIEW_CREATE, -ENOENT, 0, 0},
		{"/tmp/new", 0, -ENOENT, 0, 0},
		{"/vol/bound", 0, 0, "/vol/bound", "=bind/bound"},
		{"/vol/../etc", 0, 0, "/etc", "/etc"},
		{"/tmp/volume", 0, 0, "/vol/bound", "=bind/bound"},
		{"/tmp/in/bound", 0, 0, "/tmp/in/bound", "=bind/bound"},
		{"/tmp/in/../file", 0, 0, "/tmp/file", "tmp/file"},
		{"/var/run/lock", 0, 0, "/run/lock", "run/lock"},
		{"/var/run", VIEW_NOFOLLOW, 0, "/var/run", "/var/run"},
		{"/etc/passwd", 0, 0, "/etc/passwd", "/etc/passwd"},
	};

	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_walk(f->view, f->files, f->dir, &cases[i]);
}

static void long_paths(void **state)
{
	const struct fixture *f = *state;
	char path[2 * PATH_MAX];

	for (size_t n = PATH_MAX - 10; n < sizeof(path); n += 5) {
		_cleanup_place_ struct view_place p = VIEW_PLACE_INIT;

		memcpy(path, "/tmp/", 5);
		memset(path + 5, 'a', n - 6);
		path[n - 1] = '\0';
		assert_int_equal(view_walk(f->view, NULL, path, 0, &p), -ENAMETOOLONG);
		for (size_t i = 4; i + 1 < n; i += 2)
			path[i] = '/';
		assert_true(view_walk(f->view, NULL, path, 0, &p) < 0);
		assert_true(view_leads_in(f->view, path));
	}
}

/* Somebody looks through all of it with links that grow at every step. */
static void growing_links(void **state)
{
	const struct fixture *f = *state;
	_cleanup_place_ struct view_place p = VIEW_PLACE_INIT;
	char text[2000];

	memset(text, '/', sizeof(text));
	memcpy(text, "/tmp", 4);
	memcpy(text + sizeof(text) - 7, "/grows", 7);
	make_link(f->files, text, "tmp/grows");
	assert_int_equal(view_walk(f->view, NULL, "/tmp/grows/grows/grows", 0, &p), -ELOOP);
}

static void back_to_the_session(void **state)
{
	const struct fixture *f = *state;
	char host[PATH_MAX], path[PATH_MAX];

	snprintf(host, sizeof(host), "%s/tmp/d", f->files);
	assert_int_equal(view_session_path(f->view, host, path), 0);
	assert_string_equal(path, "/tmp/d");
	snprintf(host, sizeof(host), "%s/tmp (deleted)", f->files);
	assert_int_equal(view_session_path(f->view, host, path), 0);
	assert_string_equal(path, "/tmp (deleted)");
	snprintf(host, sizeof(host), "%s/tmpx", f->files);
	assert_int_equal(view_session_path(f->view, host, path), 0);
	assert_string_equal(path, host);
	assert_int_equal(view_session_path(f->view, "/usr/lib", path), 0);
	assert_string_equal(path, "/usr/lib");
	assert_int_equal(view_session_path(f->view, "/tmp/x", path), -ENOENT);
	assert_int_equal(view_session_path(f->view, f->hidden, path), -ENOENT);
}

static void what_is_the_hosts(void **state)
{
	static const char *const is[] = {"/", "/run", "/tmp", "/dev", "/dev/shm", "/usr/lib",
		"/runs/x", "/proc", "/proc/sys/fs", "/sys"};
	static const char *const is_not[] = {"/run/user/1", "/tmp/x", "/dev/shm/x", "/run/netns"};
	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(is); i++)
		assert_true(view_is_hosts(f->view, is[i]));
	for (size_t i = 0; i < ARRAY_SIZE(is_not); i++)
		assert_false(view_is_hosts(f->view, is_not[i]));
}

static void former_names(void **state)
{
	struct fixture *f = *state;
	char host[PATH_MAX], path[PATH_MAX];

	/* As they lie in podrun's state. */
	f->hide[0] = f->dir;
	make_dir(f->dir, "one/files");
	snprintf(f->files, sizeof(f->files), "%s/one/files", f->dir);
	view_free(f->view);
	assert_int_equal(view_prepare(&f->config, NULL), 0);
	assert_int_equal(view_create(&f->view, &f->config, NULL), 0);
	snprintf(host, sizeof(host), "%s/former/files/tmp/s", f->dir);
	assert_int_equal(view_session_path(f->view, host, path), 0);
	assert_string_equal(path, "/tmp/s");
	snprintf(host, sizeof(host), "%s/former/files/shm", f->dir);
	assert_int_equal(view_session_path(f->view, host, path), 0);
	assert_string_equal(path, "/dev/shm");
	snprintf(host, sizeof(host), "%s/former/files/tmpx", f->dir);
	assert_int_equal(view_session_path(f->view, host, path), -ENOENT);
	snprintf(host, sizeof(host), "%s/former/log", f->dir);
	assert_int_equal(view_session_path(f->view, host, path), -ENOENT);
}

static void short_names(void **state)
{
	struct fixture *f = *state;
	char host[PATH_MAX], name[108], path[PATH_MAX], text[PATH_MAX], dir[64];
	struct view *v = f->view;
	struct stat st, other;

	/* A volume in /tmp: the innermost. */
	snprintf(host, sizeof(host), "%s/s", f->bind);
	assert_int_equal(io_write_file(AT_FDCWD, host, "", 0, 0600), 0);
	assert_false(view_short_said(v, host, path));
	assert_int_equal(view_short(v, host, name, sizeof(name)), 0);
	assert_in_range(strlen(name), 1, 23);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(stat(host, &other), 0);
	assert_true(st.st_ino == other.st_ino && st.st_dev == other.st_dev);
	assert_int_equal(view_session_path(v, name, path), 0);
	assert_true(strcmp(path, "/vol/s") == 0 || strcmp(path, "/tmp/in/s") == 0);

	/* Everything in it that is none of ours, and what does not fit after all. */
	snprintf(dir, sizeof(dir), "%s", v->short_dir);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	for (const char *const *p = (const char *const[]){"", "/", "/x", "/-1", "/0x", "/999/s",
		     "/d", "/d0/s", "/ 0/s", NULL};
		*p; p++) {
		snprintf(text, sizeof(text), "%s%s", dir, *p);
		assert_false(view_short_said(v, text, path));
	}
	snprintf(text, sizeof(text), "%s/%.107s", f->bind, f->dir);
	assert_int_equal(view_short(v, text, name, strlen(text)), 0);
	assert_int_equal(view_short(v, text, name, 20), -ENAMETOOLONG);

	/* By the directory, which may have been there before. */
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "%s/%090d%d/s", f->bind, 0, i / 2);
		assert_int_equal(view_short(v, text, name, sizeof(name)), 0);
		assert_in_range(strlen(name), 1, 24);
		assert_int_equal(name[strlen(name) - 3], '0' + i / 2);
		assert_true(view_short_said(v, name, path));
		snprintf(text, sizeof(text), "/%090d%d/s", 0, i / 2);
		assert_true(strncmp(path, "/vol", 4) == 0 || strncmp(path, "/tmp/in", 7) == 0);
		assert_string_equal(path + strlen(path) - strlen(text), text);
	}
	snprintf(text, sizeof(text), "%s/d2/s", dir);
	assert_false(view_short_said(v, text, path));
	snprintf(text, sizeof(text), "%s/%0107d", f->bind, 0);
	assert_int_equal(view_short(v, text, name, sizeof(name)), -ENAMETOOLONG);
	assert_int_equal(view_short(v, "/etc/passwd", name, sizeof(name)), -ENAMETOOLONG);

	/* Whoever uses it keeps it; then it goes. */
	view_short_sweep();
	assert_int_equal(access(dir, F_OK), 0);
	view_free(v);
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(view_create(&f->view, &f->config, NULL), 0);
}

static void to_the_host(void **state)
{
	const struct fixture *f = *state;
	char host[PATH_MAX], want[PATH_MAX];

	snprintf(want, sizeof(want), "%s/tmp/a", f->files);
	assert_int_equal(view_host_path(f->view, "/usr/..//tmp/./a", host), 0);
	assert_string_equal(host, want);
	assert_int_equal(view_host_path(f->view, "/tmp/../etc", host), 0);
	assert_string_equal(host, "/etc");
	snprintf(want, sizeof(want), "%s/a", f->bind);
	assert_int_equal(view_host_path(f->view, "/tmp/in/a", host), 0);
	assert_string_equal(host, want);
	snprintf(want, sizeof(want), "%s/run/a", f->files);
	assert_int_equal(view_host_path(f->view, "/var/run/a", host), 0);
	assert_string_equal(host, want);
}

static void what_is_hidden_looks_empty(void **state)
{
	const struct fixture *f = *state;
	_cleanup_place_ struct view_place p = VIEW_PLACE_INIT;
	char path[PATH_MAX];

	put(f->hidden, "key", "x");
	snprintf(path, sizeof(path), "%s/key", f->hidden);
	assert_int_equal(view_walk(f->view, NULL, path, 0, &p), -ENOENT);
	assert_int_equal(view_walk(f->view, NULL, f->hidden, 0, &p), 0);
	assert_true(p.in->read_only);
}

/* A terminal of the host, and its number. */
static int open_terminal(unsigned *ret)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	assert_true(fd >= 0 && ioctl(fd, TIOCGPTN, ret) == 0);
	return fd;
}

static const char *terminal_path(unsigned n)
{
	static char path[4][32];
	static int i;

	i = (i + 1) % 4;
	snprintf(path[i], sizeof(path[i]), "/dev/pts/%u", n);
	return path[i];
}

static void assert_walks(const struct view *v, const char *path, int result, const char *host)
{
	_cleanup_place_ struct view_place p = VIEW_PLACE_INIT;
	char got[PATH_MAX];

	assert_int_equal(view_walk(v, NULL, path, 0, &p), result);
	if (result < 0)
		return;
	assert_int_equal(view_place_host(v, &p, got), 0);
	assert_string_equal(got, host);
}

static void terminals(void **state)
{
	const struct fixture *f = *state;
	struct view *v = f->view;
	char path[PATH_MAX], third[PATH_MAX];
	unsigned a, b, n;
	int fa = open_terminal(&a), fb = open_terminal(&b);
	size_t entries = v->n;

	/* As the host calls it. */
	assert_int_equal(view_session_path(v, terminal_path(a), path), 0);
	assert_string_equal(path, terminal_path(a));
	assert_int_equal(pts_born(v, a, a), 0);
	assert_int_equal(v->n, entries);
	/* Terminal b is called a; what is called a then has another name. */
	assert_int_equal(pts_born(v, a, b), 0);
	assert_int_equal(pts_born(v, a, a), -EEXIST);
	assert_int_equal(view_session_path(v, terminal_path(b), path), 0);
	assert_string_equal(path, terminal_path(a));
	assert_walks(v, terminal_path(a), 0, terminal_path(b));
	assert_int_equal(view_host_path(v, terminal_path(a), path), 0);
	assert_string_equal(path, terminal_path(b));
	assert_int_equal(view_session_path(v, terminal_path(a), third), 0);
	assert_string_not_equal(third, terminal_path(a));
	assert_string_not_equal(third, terminal_path(b));
	assert_int_equal(view_session_path(v, terminal_path(a), path), 0);
	assert_string_equal(path, third);
	assert_walks(v, third, 0, terminal_path(a));
	/* It is gone: nothing is there, whoever has b now, until the session has a terminal a. */
	close(fb);
	assert_walks(v, terminal_path(a), -ENOENT, NULL);
	fb = open_terminal(&n);
	assert_walks(v, terminal_path(a), -ENOENT, NULL);
	assert_int_equal(pts_born(v, a, n), 0);
	assert_walks(v, terminal_path(a), 0, terminal_path(n));
	close(fa);
	close(fb);
	assert_walks(v, third, -ENOENT, NULL);
}

/*
 * Who has ended and was not waited for: nobody else has the number, and of where he stood /proc
 * tells nothing.
 */
static pid_t nobody(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	return pid;
}

static struct task *born(struct view *v, struct tasks *t, pid_t host)
{
	struct task *task = tasks_born(t, host);

	assert_non_null(task);
	view_born(v, task);
	return task;
}

static void assert_stands(struct view *v, const struct task *task, int result, const char *where)
{
	char path[PATH_MAX] = "";

	assert_int_equal(view_base(v, task, task->host, AT_FDCWD, path), result);
	if (result == 0)
		assert_string_equal(path, where);
}

static void check_children(const struct fixture *f, struct tasks *t, const char *here)
{
	struct view *v = f->view;
	struct task *self = tasks_add(t, getpid()), *child, *other;

	/* A child whose maker is known, and its own. */
	child = born(v, t, nobody());
	view_stands(v, child, self);
	assert_stands(v, self, 0, here);
	assert_stands(v, child, 0, here);
	other = born(v, t, nobody());
	assert_stands(v, other, -ENOENT, NULL);
	view_stands(v, other, child);
	assert_stands(v, other, 0, here);
	/* Somebody moves: all are asked anew. */
	view_moves(v, self, NULL);
	view_has_moved(v, self, true);
	assert_stands(v, child, -ENOENT, NULL);
	assert_stands(v, self, 0, here);
	assert_stands(v, child, -ENOENT, NULL);
	/* So it is between the birth and what the maker tells. */
	child = born(v, t, nobody());
	view_moves(v, child, NULL);
	view_stands(v, child, self);
	assert_stands(v, self, 0, here);
	assert_stands(v, child, -ENOENT, NULL);
	/* Who has the number of another maker that is gone. */
	child = born(v, t, nobody());
	view_stands(v, child, self);
	self->gone = true;
	assert_stands(v, self, 0, here);
	assert_stands(v, child, -ENOENT, NULL);
}

/* What is known of the child is known of its maker, but not in the view. */
static void check_maker(const struct fixture *f, struct tasks *t, const char *here)
{
	struct task *maker = born(f->view, t, nobody()), *child;
	char path[PATH_MAX];

	child = born(f->view, t, getpid());
	view_stands(f->view, child, maker);
	assert_stands(f->view, maker, -ENOENT, NULL);
	assert_stands(f->view, child, 0, here);
	assert_stands(f->view, maker, 0, here);

	maker = born(f->view, t, nobody());
	child = born(f->view, t, getpid());
	view_stands(f->view, child, maker);
	snprintf(path, sizeof(path), "%s/tmp/d", f->files);
	assert_int_equal(chdir(path), 0);
	assert_stands(f->view, child, 0, "/tmp/d");
	assert_stands(f->view, maker, -ENOENT, NULL);
	assert_int_equal(chdir(here), 0);
}

/* Who stands at @was, as far as is known, goes to @to while nobody looks. */
static void assert_unseen(
	const struct fixture *f, struct task *task, const char *was, const char *to)
{
	assert_stands(f->view, task, 0, was);
	assert_int_equal(chdir(to), 0);
	assert_stands(f->view, task, 0, was);
}

/* A task that is gone in the middle of a call, which was perhaps chdir(2). */
static void check_lost(const struct fixture *f, struct tasks *t, const char *here)
{
	static const struct rewrite_call call;
	struct task *self = tasks_add(t, getpid()), *other = born(f->view, t, nobody());

	other->call.row = &call;
	assert_unseen(f, self, here, "/");
	tasks_end(t, other);
	assert_stands(f->view, self, 0, "/");
	/* A thread calls exec, and its first thread was in such a call. */
	other = born(f->view, t, nobody());
	other->tgid = self->host;
	self->threaded = true;
	assert_unseen(f, self, "/", here);
	tasks_exec(t, self, other->host);
	assert_stands(f->view, self, 0, here);
	/* Nobody was. */
	other = born(f->view, t, nobody());
	assert_unseen(f, self, here, "/");
	tasks_end(t, other);
	tasks_exec(t, self, self->host);
	assert_stands(f->view, self, 0, here);
	assert_int_equal(chdir(here), 0);
}

/* One of a process that ended before it, and of one whose threads stand here and there. */
static void check_threads(const struct fixture *f, struct tasks *t, const char *here)
{
	struct task *first = born(f->view, t, nobody()), *thread = tasks_add(t, getpid());

	thread->tgid = first->host;
	assert_stands(f->view, first, -ENOENT, NULL);
	assert_stands(f->view, thread, 0, here);
	first = tasks_add(t, getppid());
	thread->tgid = first->host;
	view_unsettle(f->view);
	first->parted = true;
	assert_int_equal(chdir("/"), 0);
	assert_stands(f->view, thread, 0, "/");
	assert_int_equal(chdir(here), 0);
	view_unsettle(f->view);
	assert_stands(f->view, thread, 0, here);
}

/* A test of where tasks stand, which has a table of them. */
static void with_tasks(
	void **state, void (*check)(const struct fixture *f, struct tasks *t, const char *here))
{
	const struct fixture *f = *state;
	_cleanup_free_ char *here = realpath(".", NULL);
	struct tasks *t = calloc(1, sizeof(*t));
	struct err e = {0};

	assert_non_null(t);
	assert_non_null(here);
	assert_int_equal(numbers_create(&t->numbers, &e), 0);
	f->view->tasks = t;
	check(f, t, here);
	f->view->tasks = NULL;
	for (int i = 1; i < NUMBERS_MAX; i++)
		free(t->all[i]);
	numbers_free(t->numbers);
	free(t);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* Of whom nothing is asked because it is known of another. */
static void where_children_stand(void **state)
{
	with_tasks(state, check_children);
	with_tasks(state, check_maker);
}

static void moves_that_nobody_saw(void **state)
{
	with_tasks(state, check_lost);
}

static void where_threads_stand(void **state)
{
	with_tasks(state, check_threads);
}

/* A vector of @n entries and its end, of words of @width bytes, that ends @before the end of memory. */
static void check_vector(size_t n, size_t width, size_t before)
{
	const size_t size = (size_t)2 * PAGE_SIZE;
	char *memory = mmap(NULL, size + PAGE_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = memory + size - before - 2 * (n + 1) * width;
	const struct task self = {.host = getpid(), .number = 2};
	struct view_auxiliary found[VIEW_VECTOR];

	assert_true(memory != MAP_FAILED);
	assert_int_equal(munmap(memory + size, PAGE_SIZE), 0);
	for (size_t i = 0; i < 2 * n; i++)
		memcpy(at + i * width, &(uint64_t){i % 2 ? 1000 + i : 1 + i}, width);
	assert_int_equal(view_read_vector(&self, (uintptr_t)at, width, found), MIN(n, VIEW_VECTOR));
	for (size_t i = 0; i < MIN(n, VIEW_VECTOR); i++)
		assert_true(found[i].sort == 1 + 2 * i && found[i].value == 1001 + 2 * i);
	munmap(memory, size);
}

/* Where it ends with memory, on two pages, with a word of an entry on each, too long. */
static void auxiliary_vectors(void **state)
{
	for (size_t width = 4; width <= 8; width += 4) {
		check_vector(20, width, 0);
		check_vector(20, width, width);
		check_vector(0, width, 0);
		check_vector(20, width, PAGE_SIZE - 8 * width);
		check_vector(20, width, PAGE_SIZE - 9 * width);
		check_vector(VIEW_VECTOR, width, 0);
		check_vector(VIEW_VECTOR + 1, width, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(texts, setup, teardown),
		cmocka_unit_test_setup_teardown(walks, setup, teardown),
		cmocka_unit_test_setup_teardown(long_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(growing_links, setup, teardown),
		cmocka_unit_test_setup_teardown(back_to_the_session, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_the_hosts, setup, teardown),
		cmocka_unit_test_setup_teardown(former_names, setup, teardown),
		cmocka_unit_test_setup_teardown(short_names, setup, teardown),
		cmocka_unit_test_setup_teardown(to_the_host, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_hidden_looks_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(terminals, setup, teardown),
		cmocka_unit_test_setup_teardown(where_children_stand, setup, teardown),
		cmocka_unit_test_setup_teardown(moves_that_nobody_saw, setup, teardown),
		cmocka_unit_test_setup_teardown(where_threads_stand, setup, teardown),
		cmocka_unit_test(auxiliary_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

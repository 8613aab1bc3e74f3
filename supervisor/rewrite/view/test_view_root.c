// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/rewrite/view/test_view.h"

#include <sys/mman.h>
#include <sys/sendfile.h>

#include "supervisor/rewrite/view/program.h"
#include "supervisor/world/world_config.h"

struct fixture {
	char dir[64], files[96], root[96], inside[128];
	struct world_bind binds[1];
	const char *hide[2];
	struct world_config config;
	struct view *view;
};

static void fill(const struct fixture *f)
{
	make_dir(f->root, "usr/bin");
	make_dir(f->root, "vol");
	make_dir(f->root, "dev/within");
	make_dir(f->root, "hidden/below");
	put(f->root, "usr/bin/prog", "x");
	put(f->root, "dev/within/file", "x");
	make_link(f->root, "usr/bin", "bin");
	make_link(f->root, "/usr/bin/prog", "abs");
	make_link(f->root, "../../../../../usr/bin/prog", "up");
	make_link(f->root, "/tmp", "own");
	make_link(f->root, "/dev/null", "null");
	make_link(f->root, "/dev/../usr", "round");
	make_link(f->root, "/etc/passwd", "out");
	make_link(f->root, "loop", "loop");
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = {0};

	assert_non_null(f);
	snprintf(f->dir, sizeof(f->dir), "/var/tmp/podrun-root-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->files, sizeof(f->files), "%s/files", f->dir);
	snprintf(f->root, sizeof(f->root), "%s/root", f->dir);
	snprintf(f->inside, sizeof(f->inside), "%s/hidden", f->root);
	make_dir(f->dir, "files");
	make_dir(f->dir, "bind");
	make_dir(f->dir, "root");
	fill(f);
	f->binds[0] = (struct world_bind){f->dir, (char *)"/vol", false};
	f->hide[0] = f->inside;
	f->hide[1] = "/etc";
	f->config = (struct world_config){.files_dir = f->files,
		.root = f->root,
		.binds = f->binds,
		.n_binds = 1,
		.hidden = f->hide,
		.n_hidden = 2};
	assert_int_equal(view_prepare(&f->config, &e), 0);
	assert_int_equal(view_create(&f->view, &f->config, &e), 0);
	assert_int_equal(view_open(f->view, NULL), 0);
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

/* The kernel is left only what stays below a directory of the host's, whatever the text. */
static void texts(void **state)
{
	const struct fixture *f = *state;
	static const char *const in[] = {"/", "//", "/etc/passwd", "/dev", "/dev/", "/dev/.",
		"/dev/..", "/dev/../etc", "/dev/pts/..", "/dev/pts/../..", "/usr/../dev/null",
		"/dev/shm", "/dev/shm/x", "/dev/fd/3", "/sys", "/sys/..", "/sys/../dev/null",
		"/devx", "/proc/self", "/./..", "/..//dev/null"};
	static const char *const out[] = {"/dev/null", "//dev//null", "/./dev/./null",
		"/dev/pts/ptmx", "/sys/kernel", "/sys/class/net/../block", "/dev/pts/x/../ptmx"};
	unsigned how;

	check_texts(f->view, in, ARRAY_SIZE(in), out, ARRAY_SIZE(out));
	/* What the kernel calls dev/null there is in the tree. */
	assert_true(view_leads_in_from(f->view, 1, "//dev/null", &how) && how == VIEW_FROM_MOUNT);
	assert_false(view_leads_in_from(f->view, 4, "/dev/null", &how));
	assert_true(view_leads_in_from(f->view, 4, "/dev/../etc", &how) && !how);
}

static void walks(void **state)
{
	static const struct walk_case cases[] = {
		{"/", 0, 0, "/", "root/."},
		{"/../..", 0, 0, "/", "root/."},
		{"/usr/bin/prog", 0, 0, "/usr/bin/prog", "root/usr/bin/prog"},
		{"/usr/bin/prog/", 0, -ENOTDIR, NULL, NULL},
		{"/usr/bin/prog/x", 0, -ENOTDIR, NULL, NULL},
		{"/bin/prog", 0, 0, "/usr/bin/prog", "root/usr/bin/prog"},
		{"/bin", VIEW_NOFOLLOW, 0, "/bin", "root/bin"},
		{"/bin/", VIEW_NOFOLLOW, 0, "/usr/bin", "root/usr/bin/"},
		{"/bin/../bin", 0, 0, "/usr/bin", "root/usr/bin"},
		{"/abs", 0, 0, "/usr/bin/prog", "root/usr/bin/prog"},
		{"/abs", VIEW_NOFOLLOW, 0, "/abs", "root/abs"},
		{"/up", 0, 0, "/usr/bin/prog", "root/usr/bin/prog"},
		{"/round/bin/prog", 0, 0, "/usr/bin/prog", "root/usr/bin/prog"},
		{"/own/new", VIEW_CREATE, 0, "/tmp/new", "files/tmp/new"},
		{"/own/..", 0, 0, "/", "root/."},
		{"/own/../usr", 0, 0, "/usr", "root/usr"},
		{"/null", 0, 0, "/dev/null", "/dev/null"},
		{"/null/", 0, 0, "/dev/null", "/dev/null/"},
		{"/dev/within/file", 0, 0, "/dev/within/file", "/dev/within/file"},
		{"/out", 0, -ENOENT, NULL, NULL},
		{"/etc/passwd", 0, -ENOENT, NULL, NULL},
		{"/loop", 0, -ELOOP, NULL, NULL},
		{"/new", VIEW_CREATE, 0, "/new", "root/new"},
		{"/no/new", VIEW_CREATE, -ENOENT, NULL, NULL},
		{"/vol/files", 0, 0, "/vol/files", "files"},
		{"/vol/../usr", 0, 0, "/usr", "root/usr"},
		{"/hidden", 0, 0, "/hidden", "files/empty"},
		{"/hidden/below", 0, -ENOENT, NULL, NULL},
	};

	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_walk(f->view, f->dir, f->dir, &cases[i]);
}

static void names(void **state)
{
	const struct fixture *f = *state;
	static const char *const both[][2] = {{"/", "root"}, {"/usr/bin", "root/usr/bin"},
		{"/tmp/x", "files/tmp/x"}, {"/dev/null", "/dev/null"},
		{"/sys/kernel", "/sys/kernel"}, {"/usr/x (deleted)", "root/usr/x (deleted)"}};
	char host[PATH_MAX], got[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		bool whole = both[i][1][0] == '/';

		snprintf(host, sizeof(host), "%s%s%s", whole ? "" : f->dir, whole ? "" : "/",
			both[i][1]);
		assert_int_equal(view_session_path(f->view, host, got), 0);
		assert_string_equal(got, both[i][0]);
		assert_int_equal(view_host_path(f->view, both[i][0], got), 0);
		assert_string_equal(got, host);
	}
	/* What is not shown has no name. */
	assert_int_equal(view_session_path(f->view, "/etc/passwd", got), -ENOENT);
	assert_int_equal(view_session_path(f->view, "/", got), -ENOENT);
	assert_true(view_is_hosts(f->view, "/") && view_is_hosts(f->view, "/sys/kernel"));
	assert_false(view_is_hosts(f->view, "/home") || view_is_hosts(f->view, "/run/x"));
}

static void copies_of_programs(void **state)
{
	const struct fixture *f = *state;
	char path[PATH_MAX], host[PATH_MAX], got[PATH_MAX], again[PATH_MAX];
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd, copy;
	struct stat st, was;

	assert_int_equal(fstat(self, &was), 0);
	snprintf(path, sizeof(path), "%s/usr/bin/x", f->root);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(sendfile(fd, self, NULL, (size_t)was.st_size), was.st_size);
	close(self);
	assert_int_equal(view_program_loader(fd, path), 1);
	assert_int_equal(
		view_program_copy(f->view->programs, fd, "/usr/bin/x", "/some/loader", got), 0);
	assert_int_equal(view_session_path(f->view, got, host), 0);
	assert_string_equal(host, "/usr/bin/x");
	copy = open(got, O_RDONLY | O_CLOEXEC);
	assert_int_equal(view_program_loader(copy, path), 1);
	assert_string_equal(path, "/some/loader");
	assert_int_equal(fstat(copy, &was), 0);
	/* It is made once, and again for another loader: then the former goes. */
	assert_int_equal(
		view_program_copy(f->view->programs, fd, "/usr/bin/x", "/some/loader", again), 0);
	assert_string_equal(got, again);
	assert_int_equal(stat(got, &st), 0);
	assert_int_equal(st.st_ino, was.st_ino);
	assert_int_equal(fstat(fd, &was), 0);
	assert_true(st.st_size < was.st_size); /* without what is not loaded */
	/* Of a program that is another by now. */
	snprintf(path, sizeof(path), "%s/usr/bin/x", f->root);
	snprintf(host, sizeof(host), "%s/usr/bin/y", f->root);
	assert_int_equal(rename(path, host), 0);
	assert_int_equal(view_session_path(f->view, got, host), 0);
	assert_string_equal(host, "/usr/bin/x (deleted)");
	assert_int_equal(
		view_program_copy(f->view->programs, fd, "/usr/bin/x", "/other", again), 0);
	assert_int_equal(access(got, F_OK), -1);
	close(copy);
	close(fd);
}

/* Whoever wrote it means no good. */
static void broken_programs(void **state)
{
	const struct fixture *f = *state;
	char path[PATH_MAX];
	ino_t inode;
	uint64_t seed = 88172645463325252ULL;
	uint8_t good[4096], bad[4096];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
	    m = memfd_create("broken", MFD_CLOEXEC);

	assert_int_equal(pread(fd, good, sizeof(good), 0), sizeof(good));
	for (int i = 0; i < 20000; i++) {
		memcpy(bad, good, sizeof(bad));
		for (int k = 0; k < 1 + i % 4; k++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			bad[seed % 700] = (uint8_t)(seed >> 32);
		}
		assert_int_equal(pwrite(m, bad, sizeof(bad), 0), sizeof(bad));
		if (view_program_loader(m, path) == 1)
			assert_true(strlen(path) < sizeof(path));
		if (i % 40 == 0)
			view_program_copy(f->view->programs, m, "/broken", "/loader", path);
	}
	assert_int_equal(view_program_path("/names/0/x", path, &inode), -ENOENT);
	assert_int_equal(view_program_path("/copies", path, &inode), -ENOENT);
	assert_int_equal(view_program_path("/copies/key", path, &inode), -ENOENT);
	assert_int_equal(view_program_path("/copies/a-1/key (deleted)", path, &inode), 0);
	assert_true(strcmp(path, "/a-1 (deleted)") == 0 && inode == 0);
	assert_int_equal(view_program_path("/copies/a-1/key-ff", path, &inode), 0);
	assert_true(strcmp(path, "/a-1") == 0 && inode == 255);
	close(m);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(texts, setup, teardown),
		cmocka_unit_test_setup_teardown(walks, setup, teardown),
		cmocka_unit_test_setup_teardown(names, setup, teardown),
		cmocka_unit_test_setup_teardown(copies_of_programs, setup, teardown),
		cmocka_unit_test_setup_teardown(broken_programs, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

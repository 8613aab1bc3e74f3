// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /proc of a session: its texts, and its calls with three children that this test traces in the
 * rewriter's place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/base.h"
#include "supervisor/rewrite/procfs/procfs.h"
#include "supervisor/rewrite/procfs/text.h"
#include "supervisor/rewrite/tasks.h"

/* ---- texts ---------------------------------------------------------------------------------- */

static struct numbers *numbers;
static struct procfs_facts facts;

static void check(procfs_text_fn *fn, const char *text, const char *want)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	fn(&facts, text, &out);
	assert_string_equal(buf_cstr(&out), want);
}

/* 4001 is 1, 4002 is 2, 4003 is 3. */
static int make_numbers(void **state)
{
	if (numbers_create(&numbers, NULL) < 0)
		return -1;
	for (pid_t host = 4001; host <= 4003; host++)
		assert_int_equal(numbers_add(numbers, host), host - 4000);
	facts = (struct procfs_facts){.numbers = numbers};
	return 0;
}

static int free_numbers(void **state)
{
	numbers_free(numbers);
	return 0;
}

static void test_status(void **state)
{
	check(procfs_text_status,
		"Name:\tPid: 4001\nState:\tt (tracing stop)\nTgid:\t4002\nNgid:\t0\nPid:\t4003\n"
		"PPid:\t77\nTracerPid:\t77\nUid:\t4001\nNStgid:\t4002\t4001\nNSpid:\t4003\nThreads:\t2\n"
		"Pid:",
		"Name:\tPid: 4001\nState:\tR (running)\nTgid:\t2\nNgid:\t0\nPid:\t3\n"
		"PPid:\t0\nTracerPid:\t0\nUid:\t4001\nNStgid:\t2\nNSpid:\t3\nThreads:\t2\nPid:");
	facts.stopped = true;
	check(procfs_text_status, "State:\tt (tracing stop)\n", "State:\tT (stopped)\n");
	facts.asks = true;
	check(procfs_text_status, "State:\tS (sleeping)\n", "State:\tR (running)\n");
	check(procfs_text_status, "State:\tZ (zombie)\n", "State:\tZ (zombie)\n");
}

static void test_status_of_users(void **state)
{
	const gid_t groups[] = {5, 65534};
	const struct procfs_ids ids = {.uid = {0, 33, 0, 33},
		.gid = {1, 2, 3, 2},
		.groups = groups,
		.n_groups = 2,
		.has_caps = true,
		.caps = {0, 1, 0x1ffffffffff, 2, 3}};

	facts.ids = &ids;
	check(procfs_text_status,
		"Name:\tUid:\nUid:\t1\t1\t1\t1\nGid:\t9\t9\t9\t9\nGroups:\t9 \nNStgid:\t4002\nCapInh:\tf\n"
		"CapPrm:\tf\nCapEff:\tf\nCapBnd:\tf\nCapAmb:\tf\nNoNewPrivs:\t1\n",
		"Name:\tUid:\nUid:\t0\t33\t0\t33\nGid:\t1\t2\t3\t2\nGroups:\t5 65534 \nNStgid:\t2\n"
		"CapInh:\t0000000000000000\nCapPrm:\t0000000000000001\nCapEff:\t000001ffffffffff\n"
		"CapBnd:\t0000000000000002\nCapAmb:\t0000000000000003\nNoNewPrivs:\t1\n");
}

static void test_stat(void **state)
{
	check(procfs_text_stat, "4002 (a) 4003 ) S 4001 4002 77 34816 -1 4194304 4001 0\n",
		"2 (a) 4003 ) S 1 2 0 34816 -1 4194304 4001 0\n");
	check(procfs_text_stat, "4002 (x) t 4001 4002 4002 0 4003 0\n", "2 (x) R 1 2 2 0 3 0\n");
	check(procfs_text_stat, "nonsense", "");
	check(procfs_text_stat, "4002 (x)", "2 (x)");
	facts.boottime_ns = 86400000000000;
	check(procfs_text_stat, "4002 (x) S 4001 4001 4001 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 77 99 5\n",
		"2 (x) S 1 1 1 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 8640077 99 5\n");
	check(procfs_text_uptime, "350735.47 234388.90\n", "437135.47 234388.90\n");
	facts.boottime_ns = -350735460000000;
	check(procfs_text_uptime, "350735.47 234388.90\n", "0.01 234388.90\n");
	check(procfs_text_uptime, "nonsense", "nonsense");
	check(procfs_text_stat, "4002 (x) S 4001 4001 4001 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 77 99 5\n",
		"2 (x) S 1 1 1 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 0 99 5\n");
	/* a clock that is behind by less than the unit is not ahead of itself */
	facts.boottime_ns = -1;
	check(procfs_text_uptime, "350735.00 234388.90\n", "350734.99 234388.90\n");
	check(procfs_text_stat, "4002 (x) S 4001 4001 4001 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 77 99 5\n",
		"2 (x) S 1 1 1 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 76 99 5\n");
	facts.boottime_ns = 0;
}

static void test_small_texts(void **state)
{
	check(procfs_text_children, "4003 77 4002 ", "3 2 ");
	check(procfs_text_children, "", "");
	check(procfs_text_sched, "a (b) (4002, #threads: 1)\n---\nx (4002, 1)\n",
		"a (b) (2, #threads: 1)\n---\nx (4002, 1)\n");
	check(procfs_text_sched, "", "");
	check(procfs_text_pid_max, "4194304\n", "32768\n");
	check(procfs_text_timers, "ID: 0\nsignal: 14/00\nnotify: thread/tid.4003\nClockID: 1\n",
		"ID: 0\nsignal: 14/00\nnotify: thread/tid.3\nClockID: 1\n");
}

static bool not_below_run(void *arg, const char *path)
{
	return strncmp(path, "/run/", 5) != 0;
}

static void test_mounts(void **state)
{
	facts.is_hosts = not_below_run;
	check(procfs_text_mounts,
		"/dev/vda / ext4 rw 0 0\ntmpfs /run tmpfs rw 0 0\ntmpfs /run/user/1 tmpfs rw 0 0\n"
		"x /run\\040y z rw 0 0\nx /ru\\156/z z rw 0 0\nx /mnt/run/a z rw 0 0\nodd\n",
		"/dev/vda / ext4 rw 0 0\ntmpfs /run tmpfs rw 0 0\n"
		"x /run\\040y z rw 0 0\nx /mnt/run/a z rw 0 0\nodd\n");
	check(procfs_text_mountstats,
		"device a mounted on /run/n with fstype nfs statvers=1.1\n\topts:\trw\n"
		"device b mounted on /b with fstype nfs statvers=1.1\n\topts:\tro\n",
		"device b mounted on /b with fstype nfs statvers=1.1\n\topts:\tro\n");
	facts.is_hosts = NULL;
	check(procfs_text_mounts, "x /run/x y\n", "x /run/x y\n");
}

static void test_locks(void **state)
{
	check(procfs_text_locks,
		"1: POSIX  ADVISORY  WRITE 4002 08:01:4001 0 EOF\n"
		"1: -> POSIX  ADVISORY  READ 4003 08:01:4001 0 EOF\n"
		"2: FLOCK  ADVISORY  WRITE 77 08:01:4001 0 EOF\n"
		"3: OFDLCK ADVISORY  READ -1 08:01:4001 0 EOF\nodd\n",
		"1: POSIX  ADVISORY  WRITE 2 08:01:4001 0 EOF\n"
		"1: -> POSIX  ADVISORY  READ 3 08:01:4001 0 EOF\n"
		"3: OFDLCK ADVISORY  READ -1 08:01:4001 0 EOF\nodd\n");
	check(procfs_text_fdinfo,
		"pos:\t4001\nlock:\t1: POSIX  ADVISORY  WRITE 4002 08:01:4001 0 EOF\nPid:\t4003\n"
		"NSpid:\t4003\t1\n",
		"pos:\t4001\nlock:\t1: POSIX  ADVISORY  WRITE 2 08:01:4001 0 EOF\nPid:\t3\nNSpid:\t3\n");
	check(procfs_text_fdinfo, "Pid:\t-1\nNSpid:\t-1\n", "Pid:\t-1\nNSpid:\t-1\n");
}

static void test_whose(void **state)
{
	assert_true(
		procfs_text_is_ours(numbers, "Name:\tx\nState:\tS\nPPid:\t5\nTracerPid:\t9\n", 9));
	assert_false(procfs_text_is_ours(
		numbers, "Name:\tx\nState:\tS\nPPid:\t4001\nTracerPid:\t8\n", 9));
	assert_true(procfs_text_is_ours(
		numbers, "Name:\tx\nState:\tZ\nPPid:\t4001\nTracerPid:\t0\n", 9));
	assert_false(
		procfs_text_is_ours(numbers, "Name:\tx\nState:\tZ\nPPid:\t5\nTracerPid:\t0\n", 9));
}

/* ---- three processes ------------------------------------------------------------------------ */

static struct tasks tasks;
static struct procfs *proc;
static char mirror[64];
static pid_t first, second, stranger; /* 1, 2, nobody */
static struct task *asker;	      /* the second */

static const struct procfs_ops no_ops;

static pid_t make_child(void)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "a child");
		dup2(open("/dev/null", O_RDWR), 50);
		dup2(open("/proc", O_RDONLY | O_DIRECTORY), 51);
		write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static int make_session(void **state)
{
	/* Its directories list in an order there. */
	snprintf(mirror, sizeof(mirror), "/dev/shm/podrun-procfs-XXXXXX");
	if (!mkdtemp(mirror)) {
		snprintf(mirror, sizeof(mirror), "/tmp/podrun-procfs-XXXXXX");
		assert_non_null(mkdtemp(mirror));
	}
	tasks = (struct tasks){0};
	assert_int_equal(numbers_create(&tasks.numbers, NULL), 0);
	first = make_child();
	second = make_child();
	stranger = make_child();
	assert_int_equal(ptrace(PTRACE_SEIZE, first, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_SEIZE, second, 0, 0), 0);
	tasks_add(&tasks, first);
	asker = tasks_add(&tasks, second);
	assert_int_equal(asker->number, 2);
	return procfs_create(&proc, &tasks, mirror, &no_ops, NULL);
}

static int end_session(void **state)
{
	const pid_t all[] = {first, second, stranger};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		kill(all[i], SIGKILL);
		waitpid(all[i], NULL, 0);
	}
	for (int i = 0; i < NUMBERS_MAX; i++)
		free(tasks.all[i]);
	procfs_free(proc);
	numbers_free(tasks.numbers);
	return io_rm_rf(AT_FDCWD, mirror);
}

/* ---- calls, as the view makes them ---------------------------------------------------------- */

static int do_open(const char *path, int flags)
{
	_cleanup_way_ struct procfs_way way;
	char self[64];
	int r = procfs_walk(proc, asker, path, !(flags & O_NOFOLLOW), &way);

	if (r == 0 && way.end == PROCFS_NODE)
		return procfs_open(proc, asker, &way.node, flags);
	if (r == 0 && (way.end == PROCFS_ELSEWHERE || *way.rest))
		return -EXDEV;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", way.fd);
	return r < 0 ? r : open(self, (flags & ~O_NOFOLLOW) | O_CLOEXEC);
}

static int do_stat(const char *path, bool nofollow, struct stat *ret)
{
	_cleanup_way_ struct procfs_way way;
	int r = procfs_walk(proc, asker, path, !nofollow, &way);

	if (r == 0 && way.end == PROCFS_NODE)
		return procfs_stat(proc, &way.node, ret);
	if (r == 0 && way.end == PROCFS_ELSEWHERE)
		return -EXDEV;
	return r < 0 ? r : fstat(way.fd, ret);
}

static int do_access(const char *path, int mode)
{
	_cleanup_way_ struct procfs_way way;
	int r = procfs_walk(proc, asker, path, true, &way);

	return r < 0 ? r : procfs_access(proc, &way.node, mode);
}

static int do_readlink(const char *path, char *text, size_t size)
{
	_cleanup_way_ struct procfs_way way;
	int r = procfs_walk(proc, asker, path, false, &way);

	if (r == 0 && way.end != PROCFS_NODE)
		return -EXDEV;
	return r < 0 ? r : procfs_readlink(proc, asker, &way.node, text, size);
}

static int do_host(const char *path, char ret[PATH_MAX])
{
	_cleanup_way_ struct procfs_way way;
	int r = procfs_walk(proc, asker, path, false, &way);

	return r < 0 ? r : procfs_host(proc, &way.node, ret);
}

static char *text_of(const char *below)
{
	static char text[65536];
	_cleanup_close_ int fd = do_open(below, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	n = io_read_full(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

static void test_files(void **state)
{
	char path[64];
	struct stat st, host;
	int fd;

	assert_non_null(strstr(text_of("2/status"), "\nTgid:\t2\n"));
	assert_non_null(strstr(text_of("2/task/2/status"), "\nTracerPid:\t0\n"));
	assert_ptr_equal(strstr(text_of("1/stat"), "1 (a child) "), text_of("1/stat"));
	assert_string_equal(text_of("2/comm"), "a child\n");
	assert_non_null(strstr(text_of("meminfo"), "MemTotal"));
	fd = do_open("2/status", O_RDONLY);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0444);
	assert_true(fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE);
	close(fd);
	assert_int_equal(do_open("2/status", O_RDWR), -EACCES);
	assert_int_equal(do_open("2/status", O_RDONLY | O_DIRECTORY), -ENOTDIR);
	assert_int_equal(do_open("2/status", O_RDONLY | O_CREAT | O_EXCL), -EEXIST);
	assert_int_equal(do_open("2/none", O_RDONLY | O_CREAT), -ENOENT);
	snprintf(path, sizeof(path), "/proc/%d/environ", second);
	assert_int_equal(stat(path, &host), 0);
	assert_int_equal(do_stat("2/environ", false, &st), 0);
	assert_int_equal(st.st_ino, host.st_ino);
	assert_int_equal(do_access("2/environ", R_OK), 0);
	assert_int_equal(do_access("2/status", W_OK), geteuid() ? -EACCES : 0);
	fd = do_open("2/comm", O_WRONLY | O_TRUNC | O_CREAT);
	assert_true(fd >= 0);
	close(fd);
}

/* Nobody of the host, not even one that has been given a number of ours. */
static void test_nobody_else(void **state)
{
	char path[64], name[PATH_MAX];
	struct stat st;
	struct task *gone;

	snprintf(path, sizeof(path), "%d/status", stranger);
	assert_int_equal(do_open(path, O_RDONLY), -ENOENT);
	snprintf(path, sizeof(path), "2/task/%d/status", stranger);
	assert_int_equal(do_open(path, O_RDONLY), -ENOENT);
	snprintf(path, sizeof(path), "2/task/%d", second);
	assert_int_equal(do_stat(path, true, &st), -ENOENT);
	assert_int_equal(do_stat("2/task/1", true, &st), -ENOENT);
	assert_int_equal(do_stat("2/task/2/task/2", true, &st), -ENOENT);
	assert_int_equal(do_stat("02", true, &st), -ENOENT);
	assert_int_equal(do_stat("99999999999999999999", true, &st), -ENOENT);
	gone = tasks_add(&tasks, stranger);
	snprintf(path, sizeof(path), "%d/status", gone->number);
	assert_int_equal(do_open(path, O_RDONLY), -ENOENT);
	tasks_end(&tasks, gone);
	assert_int_equal(do_open(path, O_RDONLY), -ENOENT);
	snprintf(path, sizeof(path), "/proc/%d/ns", getpid());
	assert_int_equal(procfs_from_host(proc, path, name, sizeof(name)), -EACCES);
}

static void test_pid_1(void **state)
{
	struct stat st;

	assert_int_equal(do_open("1/environ", O_RDONLY), -EACCES);
	assert_int_equal(do_open("1/mem", O_RDONLY), -EACCES);
	assert_int_equal(do_open("1/maps", O_RDONLY), -EACCES);
	assert_int_equal(do_open("1/task/1/mem", O_RDWR), -EACCES);
	assert_int_equal(do_open("1/fd", O_RDONLY | O_DIRECTORY), -EACCES);
	assert_int_equal(do_open("1/fd/50", O_RDONLY), -EACCES);
	assert_int_equal(do_stat("1/exe", false, &st), -EACCES);
	assert_int_equal(do_open("1/comm", O_WRONLY), -EACCES);
	assert_int_equal(do_access("1/environ", R_OK), -EACCES);
	assert_int_equal(do_access("1/environ", F_OK), 0);
	assert_string_equal(text_of("1/comm"), "a child\n");
}

static void check_link(const char *below, const char *want)
{
	char text[PATH_MAX];
	ssize_t n = do_readlink(below, text, sizeof(text) - 1);

	assert_true(n >= 0);
	text[n] = '\0';
	assert_string_equal(text, want);
}

static void test_links(void **state)
{
	_cleanup_close_ int fd = -1, dir = -1;
	struct stat st, null;
	char text[8], path[64], name[PATH_MAX];

	check_link("self", "2");
	check_link("thread-self", "2/task/2");
	check_link("2/root", "/");
	check_link("2/fd/50", "/dev/null");
	check_link("2/fd/51", "/proc");
	check_link("mounts", "self/mounts");
	assert_int_equal(do_readlink("self", text, 0), 0);
	assert_int_equal(do_readlink("2/status", text, sizeof(text)), -EINVAL);
	assert_int_equal(do_readlink("2/fd/1000", text, sizeof(text)), -ENOENT);
	assert_int_equal(do_open("2/fd/50", O_RDONLY | O_NOFOLLOW), -ELOOP);
	fd = do_open("2/fd/50", O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(stat("/dev/null", &null), 0);
	assert_int_equal(st.st_rdev, null.st_rdev);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(do_stat("2/fd/50", false, &st), 0);
	assert_int_equal(st.st_rdev, null.st_rdev);
	/* The host's /proc, opened again, is the session's. */
	dir = do_open("2/fd/51", O_RDONLY | O_DIRECTORY);
	assert_true(dir >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	assert_true(readlink(path, name, sizeof(name)) > 0);
	assert_int_equal(strncmp(name, mirror, strlen(mirror)), 0);
}

/* The names in @below, each with a blank behind it. */
static char *list(const char *below)
{
	static char names[65536];
	_cleanup_closedir_ DIR *dir = fdopendir(do_open(below, O_RDONLY | O_DIRECTORY));
	size_t n = 0;

	assert_non_null(dir);
	names[0] = '\0';
	for (const struct dirent *d; (d = readdir(dir));)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s ", d->d_name);
	return names;
}

static void test_lists(void **state)
{
	char path[64], name[PATH_MAX];
	struct stat st, by_path;
	const char *names;
	int fd;

	names = list("");
	assert_non_null(strstr(names, " meminfo "));
	assert_non_null(strstr(names, " self "));
	if (!strncmp(mirror, "/dev/shm", strlen("/dev/shm")))
		assert_string_equal(names + strlen(names) - strlen(" 1 2 "), " 1 2 ");
	snprintf(path, sizeof(path), " %d ", stranger);
	assert_null(strstr(names, path));
	assert_non_null(strstr(list("2"), " status "));
	assert_non_null(strstr(list("2/task"), "2 "));
	assert_non_null(strstr(list("2/fd"), " 50 "));
	assert_null(strstr(list("2/fd"), " 49 "));
	/* fts(3) and its like compare them. */
	fd = do_open("2/task", O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(do_stat("2/task", true, &by_path), 0);
	assert_true(st.st_ino == by_path.st_ino && st.st_dev == by_path.st_dev);
	assert_int_equal(by_path.st_mode, S_IFDIR | 0555);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	name[readlink(path, name, sizeof(name) - 1)] = '\0';
	close(fd);
	assert_true(procfs_from_host(proc, name, name, sizeof(name)) >= 0);
	assert_string_equal(name, "2/task");
	assert_int_equal(do_open("2/task", O_RDWR), -EISDIR);
	/* Those of others are the host's own; what is behind their names is found again, too. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/ns", second, second);
	assert_true(procfs_from_host(proc, path, name, sizeof(name)) >= 0);
	assert_string_equal(name, "2/task/2/ns");
	assert_int_equal(procfs_from_host(proc, "/process", name, sizeof(name)), -ENOENT);
}

/* Who comes and goes is in the list, and in its place. */
static void test_list_changes(void **state)
{
	pid_t third = make_child();
	struct task *task;
	const char *names;

	list("");
	assert_int_equal(ptrace(PTRACE_SEIZE, third, 0, 0), 0);
	task = tasks_add(&tasks, third);
	names = list("");
	if (!strncmp(mirror, "/dev/shm", strlen("/dev/shm")))
		assert_string_equal(names + strlen(names) - strlen(" 1 2 3 "), " 1 2 3 ");
	assert_non_null(strstr(names, " 3 "));
	kill(third, SIGKILL);
	waitpid(third, NULL, 0);
	tasks_end(&tasks, task);
	assert_null(strstr(list(""), " 3 "));
}

/* Entries of the mirror and of the directories in it. */
static size_t count_entries(const char *path)
{
	_cleanup_list_ struct mirror_list l = {0};
	size_t n;

	assert_int_equal(mirror_list_read(&l, AT_FDCWD, path), 0);
	n = l.n;
	for (size_t i = 0; i < l.n; i++) {
		char below[PATH_MAX];

		snprintf(below, sizeof(below), "%s/%s", path, l.v[i].name);
		if (l.v[i].type == DT_DIR)
			n += count_entries(below);
	}
	return n;
}

static void test_many(void **state)
{
	_cleanup_list_ struct mirror_list l = {0};
	struct procfs_mirror *m;
	char name[32], path[128];

	snprintf(path, sizeof(path), "%s/many", mirror);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(procfs_mirror_create(&m, path, NULL), 0);
	for (int i = 0; i < 17000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(mirror_list_add(&l, name, DT_LNK), 0);
	}
	for (int i = 1; i <= 5; i++) {
		_cleanup_close_ int fd = -1;

		snprintf(name, sizeof(name), "%d/fd", i);
		fd = procfs_mirror_open(m, name, &l, O_RDONLY);
		assert_true(fd >= 0);
		assert_true(count_entries(path) <= MIRROR_MAX + 8);
	}
	while (l.n < MIRROR_MAX)
		assert_int_equal(mirror_list_add(&l, "x", DT_REG), 0);
	assert_int_equal(mirror_list_add(&l, "x", DT_REG), -ENOMEM);
	procfs_mirror_free(m);
}

static void check_way(const char *path, enum procfs_end end, const char *rest)
{
	_cleanup_way_ struct procfs_way way;

	assert_int_equal(procfs_walk(proc, asker, path, true, &way), 0);
	assert_int_equal(way.end, end);
	assert_string_equal(end == PROCFS_NODE ? way.node.path : way.rest, rest);
}

static void check_no_way(const char *path, int error)
{
	_cleanup_way_ struct procfs_way way;

	assert_int_equal(procfs_walk(proc, asker, path, true, &way), error);
}

static void test_ways(void **state)
{
	check_way("", PROCFS_NODE, "");
	check_way("./self//./status", PROCFS_NODE, "2/status");
	check_way("self/", PROCFS_NODE, "2");
	check_way("self/../1/../self/task/../task/2/stat", PROCFS_NODE, "2/task/2/stat");
	check_way("thread-self/../../stat", PROCFS_NODE, "2/stat");
	check_way("mounts", PROCFS_NODE, "2/mounts");
	check_way("2/fd/51", PROCFS_NODE, "");
	check_way("2/fd/51/", PROCFS_NODE, "");
	check_way("2/fd/51/2/fd/51/self/status", PROCFS_NODE, "2/status");
	check_way("self/fd/50", PROCFS_JUMP, "");
	check_way("self/cwd/a/../b/", PROCFS_JUMP, "a/../b/");
	check_way("..", PROCFS_ELSEWHERE, "/");
	check_way("self/../../etc", PROCFS_ELSEWHERE, "//etc");
	check_way("self/root/../etc/", PROCFS_ELSEWHERE, "//../etc/");
	check_way("2/fd/51/..", PROCFS_ELSEWHERE, "/");
	check_no_way("self/status/", -ENOTDIR);
	check_no_way("self/status/..", -ENOTDIR);
	check_no_way("self/fd/50/", -ENOTDIR);
	check_no_way("self/exe/..", -ENOTDIR);
	check_no_way("77/../meminfo", -ENOENT);
	check_no_way("self/fd/51/77", -ENOENT);
	check_no_way("1/cwd", -EACCES);
	check_no_way("1/root/etc", -EACCES);
}

static size_t count_fds(void)
{
	int *fds;
	size_t n;

	assert_int_equal(proc_list_numbers(AT_FDCWD, "/proc/self/fd", &fds, &n, NULL), 0);
	free(fds);
	return n;
}

/* Whatever is said, nothing is left open, and what is opened is of no stranger. */
static void test_any_path(void **state)
{
	static const char *const parts[] = {"", ".", "..", "self", "thread-self", "1", "2", "02",
		"77", "task", "fd", "fdinfo", "50", "51", "ns", "pid", "net", "root", "cwd", "exe",
		"status", "stat", "mem", "environ", "attr", "sys", "kernel", "pid_max", "mounts",
		"meminfo", "map_files", "locks", "sysvipc", "shm", "-1", "4294967298", "%s",
		"children"};
	static const int flags[] = {O_RDONLY, O_PATH, O_WRONLY, O_RDONLY | O_DIRECTORY,
		O_RDONLY | O_NOFOLLOW, O_PATH | O_NOFOLLOW};
	size_t before = count_fds();
	char host[32];

	snprintf(host, sizeof(host), "%d", stranger);
	srandom(4711);
	for (int i = 0; i < 4000; i++) {
		_cleanup_close_ int fd = -1;
		char path[PATH_MAX] = "", name[PATH_MAX] = "", below[PATH_MAX], self[64];
		struct stat st;

		for (long n = random() % 7; n >= 0; n--) {
			const char *part = parts[(size_t)random() % ARRAY_SIZE(parts)];

			strcat(path, random() % 16 ? part : host);
			strcat(path, n ? "/" : "");
		}
		do_stat(path, random() % 2, &st);
		do_readlink(path, name, 8);
		fd = do_open(path, flags[(size_t)random() % ARRAY_SIZE(flags)]);
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		memset(name, 0, sizeof(name));
		if (fd >= 0 && readlink(self, name, sizeof(name) - 1) > 0 &&
			!strncmp(name, "/proc/", strlen("/proc/")))
			if (procfs_from_host(proc, name, below, sizeof(below)) < 0)
				fail_msg("%s is %s", path, name);
	}
	assert_int_equal(count_fds(), before);
}

static void test_host(void **state)
{
	char path[PATH_MAX], want[64];

	assert_int_equal(do_host("2/task", path), 0);
	assert_int_equal(strncmp(path, mirror, strlen(mirror)), 0);
	assert_int_equal(do_host("2/exe", path), 0);
	snprintf(want, sizeof(want), "/proc/%d/exe", second);
	assert_string_equal(path, want);
	assert_int_equal(do_host("1/exe", path), -EACCES);
	assert_int_equal(do_host("77", path), -ENOENT);
	assert_int_equal(procfs_to_host(proc, "2/task/2/stat", path), 0);
	snprintf(want, sizeof(want), "/proc/%d/task/%d/stat", second, second);
	assert_string_equal(path, want);
	assert_int_equal(procfs_to_host(proc, "meminfo", path), 0);
	assert_string_equal(path, "/proc/meminfo");
	assert_int_equal(procfs_to_host(proc, "", path), 0);
	assert_string_equal(path, "/proc");
	assert_int_equal(procfs_to_host(proc, "77/stat", path), -ENOENT);
	assert_int_equal(procfs_to_host(proc, "077/stat", path), -ENOENT);
	assert_true(procfs_of_copy("/memfd:/proc/2/stat (deleted)", path, sizeof(path)) > 0);
	assert_string_equal(path, "2/stat");
	assert_int_equal(procfs_of_copy("/memfd:x (deleted)", path, sizeof(path)), -ENOENT);
	assert_int_equal(procfs_of_copy("/memfd:/proc/2/stat", path, sizeof(path)), -ENOENT);
}

int main(void)
{
#define TEXT(f)	   cmocka_unit_test_setup_teardown(f, make_numbers, free_numbers)
#define SESSION(f) cmocka_unit_test_setup_teardown(f, make_session, end_session)
	const struct CMUnitTest tests[] = {
		TEXT(test_status),
		TEXT(test_status_of_users),
		TEXT(test_stat),
		TEXT(test_small_texts),
		TEXT(test_mounts),
		TEXT(test_locks),
		TEXT(test_whose),
		SESSION(test_files),
		SESSION(test_nobody_else),
		SESSION(test_pid_1),
		SESSION(test_links),
		SESSION(test_lists),
		SESSION(test_many),
		SESSION(test_list_changes),
		SESSION(test_ways),
		SESSION(test_any_path),
		SESSION(test_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* A whole world: made, run in, looked at from inside, destroyed.  Skipped where hosts forbid it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "supervisor/filter/notify.h"
#include "supervisor/world/world.h"

struct fixture {
	char dir[64];
	struct world world;
	struct world_config config;
	struct world_bind binds[3];
	struct notify *notify;
	bool made;
};

static void fail_err(const struct err *e)
{
	if (e->error)
		fail_msg("%s (%s)", e->msg, e->hint);
}

static int setup(void **state, bool as_root)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = {0};
	char files[80], shared[80], program[96];
	_cleanup_buf_ struct buf self = BUF_INIT;

	strcpy(f->dir, "/tmp/podrun-test-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(files, sizeof(files), "%s/files", f->dir);
	mkdir(files, 0700);
	snprintf(shared, sizeof(shared), "%s/shared", f->dir);
	mkdir(shared, 0755);
	snprintf(program, sizeof(program), "%s/probe", shared);
	if (io_read_file(AT_FDCWD, "/proc/self/exe", 64 << 20, &self) < 0)
		return -1;
	io_write_file(AT_FDCWD, program, self.data, self.len, 0755);
	f->binds[0] = (struct world_bind){shared, (char *)"/usr/share/podrun-test", false};
	f->binds[1] = (struct world_bind){shared, (char *)"/there/is/none", true};
	f->binds[2] = (struct world_bind){(char *)"/etc/passwd", (char *)"/run/p", true};
	f->config = (struct world_config){
		.name = "testworld",
		.files_dir = strdup(files),
		.as_root = as_root,
		.uid = getuid(),
		.gid = getgid(),
		.parent_userns = -1,
		.binds = f->binds,
		.n_binds = ARRAY_SIZE(f->binds),
	};
	if (world_create(&f->world, &f->config, NULL, &e) < 0)
		fprintf(stderr, "world_create: %s (%s)\n", e.msg, e.hint);
	else
		f->made = notify_create(&f->notify, &f->world, &f->config, &e) == 0;
	*state = f;
	return 0;
}

static int setup_me(void **state)
{
	return setup(state, false);
}

static int setup_root(void **state)
{
	return setup(state, true);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	notify_destroy(f->notify);
	if (f->made)
		world_destroy(&f->world);
	io_rm_rf(AT_FDCWD, f->dir);
	free((char *)f->config.files_dir);
	free(f);
	return 0;
}

/* What a supervisor's loop does; true once @vpid has ended. */
static bool serve(struct fixture *f, pid_t vpid, int *ret_status)
{
	struct pollfd p[] = {{f->world.init_sock, POLLIN, 0}, {notify_fd(f->notify), POLLIN, 0}};
	struct world_exit x;
	struct err e = {0};

	assert_true(poll(p, ARRAY_SIZE(p), 10000) > 0);
	if (p[1].revents)
		notify_ready(f->notify, &e);
	if (!p[0].revents)
		return false;
	world_next_exit(&f->world, &x, &e);
	fail_err(&e);
	*ret_status = x.status;
	return x.vpid == vpid;
}

/* Runs a shell command, returns its wait status and what it wrote (as much as a pipe holds). */
static int shell(struct fixture *f, const char *command, char *out, size_t size)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
	char *envp[] = {(char *)"PATH=/usr/bin:/bin:/usr/sbin:/sbin", NULL};
	struct world_spawn s = {.argv = argv, .envp = envp, .cwd = "/", .stdio = {-1, -1, -1}};
	struct err e = {0};
	int pipes[2], status = -1;
	ssize_t n;
	pid_t vpid;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	s.stdio[1] = s.stdio[2] = pipes[1];
	world_spawn(&f->world, &s, &vpid, NULL, &e);
	fail_err(&e);
	while (!serve(f, vpid, &status))
		;
	close(pipes[1]);
	n = io_read_full(pipes[0], out, size - 1);
	close(pipes[0]);
	out[n > 0 ? n : 0] = '\0';
	return status;
}

static struct fixture *get(void **state)
{
	struct fixture *f = *state;

	if (!f->made)
		skip();
	return f;
}

static void runs_and_reports(void **state)
{
	struct fixture *f = get(state);
	char out[4096];

	assert_int_equal(shell(f, "echo hello; exit 7", out, sizeof(out)), 7 << 8);
	assert_string_equal(out, "hello\n");
	assert_int_equal(shell(f, "kill -9 $$", out, sizeof(out)), SIGKILL);
}

static void exec_errors(void **state)
{
	struct fixture *f = get(state);
	char *argv[] = {(char *)"/no/such", NULL}, *etc[] = {(char *)"/etc", NULL};
	struct world_spawn s = {.argv = argv, .stdio = {-1, -1, -1}};
	struct err e = {0};
	pid_t vpid;

	assert_int_equal(world_spawn(&f->world, &s, &vpid, NULL, &e), -ENOENT);
	s.argv = etc;
	assert_int_equal(world_spawn(&f->world, &s, &vpid, NULL, &e), -EACCES);
	s.cwd = "/no/such";
	assert_int_equal(world_spawn(&f->world, &s, &vpid, NULL, &e), -ENOTDIR);
}

/* Each prints nothing when all is as it should be. */
static void is_isolated(void **state)
{
	static const char *const checks[] = {
		"test $(hostname) = testworld || hostname",
		"test -d /usr/bin && ls / | grep -qx etc || ls /",
		"ls /tmp; ls /run | grep -vE '^(p|lock|user)$'",
		"for p in /proc/[0-9]*; do case $(cat $p/comm) in podrun-init|sh|cat) ;; *) cat $p/comm;; esac; done",
		"test $(cat /proc/1/comm) = podrun-init || cat /proc/1/comm",
		"kill -9 1 2>/dev/null; kill -STOP 1 2>/dev/null; sleep 0.05; grep State: /proc/1/status | grep -v sleeping",
		"ls -l /proc/1/fd /proc/1/root/ >/dev/null 2>&1 && echo open",
		"head -c1 /proc/1/mem >/dev/null 2>&1 && echo readable",
		"test $(echo /proc/self/fd/*  | wc -w) -le 4 || ls -l /proc/self/fd",
		"test -c /dev/null && test -c /dev/tty && test -e /dev/ptmx && echo x >/dev/null || ls /dev",
		"echo x >/dev/shm/x && test -f /dev/shm/x || echo shm",
		"ls /dev | grep -E '^(vda|sda|mem|kmsg|fuse|net)'",
		"test \"$(ls /sys/class/net)\" = lo || ls /sys/class/net",
		"cut -d' ' -f5 /proc/self/mountinfo | grep -E '^/(tmp|run)/.' | grep -v ^/run/p",
		"echo x >/usr/share/podrun-test/x && cat /there/is/none/x | grep -v x",
		"(echo x >/there/is/none/y) 2>/dev/null && echo writable",
		"grep -q ^root: /run/p || echo no file bound",
		"grep -q 'NoNewPrivs:.1' /proc/self/status || echo privs",
	};
	struct fixture *f = get(state);
	char out[4096];

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		shell(f, checks[i], out, sizeof(out));
		if (out[0])
			fail_msg("%s: %s", checks[i], out);
	}
}

static void writes_stay_inside(void **state)
{
	struct fixture *f = get(state);
	char out[4096], path[160];

	shell(f, "echo mine >/tmp/mine && echo v >/var/tmp/podrun-world-test", out, sizeof(out));
	assert_string_equal(out, "");
	snprintf(path, sizeof(path), "%s/tmp/mine", f->config.files_dir);
	assert_int_equal(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/upper/var/tmp/podrun-world-test", f->config.files_dir);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_not_equal(access("/var/tmp/podrun-world-test", F_OK), 0);
}

static void has_terminal(void **state)
{
	char *argv[] = {(char *)"tty", NULL}, buf[64] = "";
	struct fixture *f = get(state);
	struct world_spawn s = {.argv = argv, .tty = true, .rows = 20, .cols = 70};
	struct err e = {0};
	int master = -1;
	pid_t vpid;
	ssize_t n;

	world_spawn(&f->world, &s, &vpid, &master, &e);
	fail_err(&e);
	n = read(master, buf, sizeof(buf) - 1);
	assert_true(n > 0);
	assert_string_equal(buf, "/dev/pts/0\r\n");
	close(master);
}

/* One that nobody looks at yet, or by a terminal that does not know how large it is. */
static void terminal_of_no_size(void **state)
{
	static const struct {
		unsigned short rows, cols;
		const char *told;
	} cases[] = {{0, 0, "24 80\r\n"}, {20, 70, "20 70\r\n"}, {0, 70, "24 80\r\n"}};
	char *argv[] = {(char *)"stty", (char *)"size", NULL};
	struct fixture *f = get(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world_spawn s = {
			.argv = argv, .tty = true, .rows = cases[i].rows, .cols = cases[i].cols};
		char buf[64] = "";
		struct err e = {0};
		int master = -1;
		pid_t vpid;

		world_spawn(&f->world, &s, &vpid, &master, &e);
		fail_err(&e);
		assert_true(read(master, buf, sizeof(buf) - 1) > 0);
		assert_string_equal(buf, cases[i].told);
		close(master);
	}
}

static void seeds(void **state)
{
	struct fixture *f = get(state);
	struct err e = {0};
	char path[64], text[256] = "";
	_cleanup_buf_ struct buf b = BUF_INIT;
	pid_t pid;

	world_seed(&f->world, 4321, &pid, &e);
	fail_err(&e);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 16, &b) < 0, 0);
	assert_non_null(strstr(buf_cstr(&b), "\t4321\n"));
	/* The supervisor may look into it. */
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	while (!strstr(text, "podrun-seed")) {
		(void)!readlink(path, text, sizeof(text) - 1);
		usleep(1000);
	}
}

static void root_inside(void **state)
{
	struct fixture *f = get(state);
	char out[4096];

	shell(f, "id -u; touch /newfile && rm /newfile && echo ok", out, sizeof(out));
	assert_string_equal(out, "0\nok\n");
}

/* Each prints what it says. */
static void users_inside(void **state)
{
	static const struct {
		const char *command, *expected;
	} checks[] = {
		{"setpriv --reuid 33 --regid 33 --clear-groups id",
			"uid=33(www-data) gid=33(www-data) groups=33(www-data)\n"},
		{"touch /tmp/f; chown 33:34 /tmp/f; stat -c %u:%g /tmp/f; cd /tmp; stat -c %u ../tmp/f",
			"33:34\n33\n"},
		{"chown 0:0 /tmp/f; stat -c %u:%g /tmp/f", "0:0\n"},
		{"touch /tmp/r; chmod 444 /tmp/r; chown 33:34 /tmp/r; stat -c %u:%g:%a /tmp/r",
			"33:34:444\n"},
		{"chown 0:0 /tmp/r; stat -c %u:%g:%a /tmp/r", "0:0:444\n"},
		{"setpriv --reuid 33 --clear-groups sh -c 'sh -c \"id -u\"; mkdir /tmp/d; stat -c %u /tmp/d; chown 0 /tmp/d 2>&1'",
			"33\n33\nchown: changing ownership of '/tmp/d': Operation not permitted\n"},
		{"perl -e '$) = \"33 33\"; $< = $> = 33; print \"$< $> $)\\n\"; $> = 0; print \"$>\\n\"'; id -u",
			"33 33 33 33\n33\n0\n"},
		{"chown 33 /dev/null /proc/self/exe 2>/dev/null; ls -ld / /etc >/dev/null; echo $?",
			"0\n"},
	};
	struct fixture *f = get(state);
	char out[4096];

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		shell(f, checks[i].command, out, sizeof(out));
		if (strcmp(out, checks[i].expected))
			fail_msg("%s: %s", checks[i].command, out);
	}
}

/* ---- the filter, from inside: this program again --------------------------------------------- */

static long int80(long nr, long a, long b, long c)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return r;
}

static long call(long nr, long a, long b, long c)
{
	return syscall(nr, a, b, c, 0, 0, 0) < 0 ? -errno : 0;
}

/* Says what is not as the policy has it. */
static int probe(void)
{
	static struct {
		uint64_t flags, rest[10];
	} clone_args = {.flags = CLONE_NEWUSER};
	const struct {
		const char *what;
		long got, expected;
	} rows[] = {
		{"unshare(NEWNS)", call(SYS_unshare, CLONE_NEWNS, 0, 0), -EPERM},
		{"unshare(NEWUSER|NEWNS)", call(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS, 0, 0),
			-EPERM},
		{"unshare(NEWCGROUP)", call(SYS_unshare, CLONE_NEWCGROUP, 0, 0), -EPERM},
		{"unshare(FS)", call(SYS_unshare, CLONE_FS, 0, 0), 0},
		{"clone(NEWNS)", call(SYS_clone, CLONE_NEWNS | SIGCHLD, 0, 0), -EPERM},
		{"clone3", call(SYS_clone3, (long)&clone_args, sizeof(clone_args), 0), -ENOSYS},
		{"clone3, marked",
			syscall(SYS_clone3, &clone_args, sizeof(clone_args), 0, 0, 0,
				SYS_PODRUN_CLONE3_MARK) < 0
				? -errno
				: 0,
			-ENOSYS},
		{"mount", call(SYS_mount, 0, (long)"/tmp", 0), -EPERM},
		{"setns", call(SYS_setns, 0, 0, 0), -EPERM},
		{"bpf", call(SYS_bpf, 0, 0, 0), -EPERM},
		{"io_uring_setup", call(SYS_io_uring_setup, 1, 0, 0), -ENOSYS},
		{"userfaultfd", call(SYS_userfaultfd, 1, 0, 0), -ENOSYS},
		{"TIOCSTI", call(SYS_ioctl, 0, 0x5412, 0), -EPERM},
		{"TIOCSTI, high bits", call(SYS_ioctl, 0, 0x100005412, 0), -EPERM},
		{"prlimit of pid 1", call(SYS_prlimit64, 1, 0, 0), -EPERM},
		{"sentinel", call(SYS_PODRUN_SENTINEL, PODRUN_SENTINEL_ARG, 0, 0), -ENOSYS},
		{"number 9999", call(9999, 0, 0, 0), -ENOSYS},
		{"x32 getpid", call(0x40000000 | SYS_getpid, 0, 0, 0), -ENOSYS},
		{"i386 unshare(NEWNS)", int80(310, CLONE_NEWNS, 0, 0), -EPERM},
		{"i386 mount", int80(21, 0, 0, 0), -EPERM},
		{"i386 clone3", int80(435, 0, 0, 0), -ENOSYS},
		{"i386 userfaultfd", int80(374, 1, 0, 0), -ENOSYS},
		{"i386 getppid", int80(64, 0, 0, 0) > 0, 1},
	};
	int bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].got == rows[i].expected)
			continue;
		bad++;
		printf("%s: %ld instead of %ld\n", rows[i].what, rows[i].got, rows[i].expected);
	}
	printf("probed\n");
	return bad;
}

static void policy_holds(void **state)
{
	struct fixture *f = get(state);
	char out[4096], command[80];

	snprintf(command, sizeof(command), "exec %s/probe --probe", "/there/is/none");
	shell(f, command, out, sizeof(out));
	assert_string_equal(out, "probed\n");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest me[] = {
		cmocka_unit_test(runs_and_reports),
		cmocka_unit_test(exec_errors),
		cmocka_unit_test(policy_holds),
		cmocka_unit_test(is_isolated),
		cmocka_unit_test(writes_stay_inside),
		cmocka_unit_test(has_terminal),
		cmocka_unit_test(terminal_of_no_size),
		cmocka_unit_test(seeds),
	};
	const struct CMUnitTest root[] = {
		cmocka_unit_test(runs_and_reports),
		cmocka_unit_test(policy_holds),
		cmocka_unit_test(is_isolated),
		cmocka_unit_test(root_inside),
		cmocka_unit_test(users_inside),
	};

	if (argc > 1 && !strcmp(argv[1], "--probe"))
		return probe();
	/* As an ordinary user, also where a build runs as root. */
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(65500) < 0 || setuid(65500) < 0))
		return 77;
	return cmocka_run_group_tests_name("me", me, setup_me, teardown) |
	       cmocka_run_group_tests_name("root", root, setup_root, teardown);
}

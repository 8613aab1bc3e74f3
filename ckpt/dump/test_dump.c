// SPDX-License-Identifier: GPL-2.0-or-later
/* A small session without namespaces: frozen, looked at, written, let go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "ckpt/remote/testtask.h"
#include "ckpt/survey/survey.h"

#define NO_NAMESPACES                                                                        \
	.ns_user = -1, .ns_pid = -1, .ns_mnt = -1, .ns_net = -1, .ns_ipc = -1, .ns_uts = -1, \
	.ns_time = -1

static int root_fd;

/* A pid 1 of sorts with one child, which has nothing but @out as descriptor 1. */
static pid_t start(int out, int (*body)(void))
{
	pid_t init = fork();

	if (init == 0) {
		int status = 0, code = 1;
		pid_t first;

		prctl(PR_SET_CHILD_SUBREAPER, 1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		first = fork();
		if (first == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			dup2(out, 1);
			close(0);
			close(2);
			close_range(3, ~0U, 0);
			testtask_filter();
			_exit(body());
		}
		for (pid_t p; (p = wait(&status)) > 0;)
			if (p == first)
				code = WIFEXITED(status) ? WEXITSTATUS(status) : 100;
		_exit(code);
	}
	return init;
}

static void await_line(int fd)
{
	char c;

	do
		assert_int_equal(read(fd, &c, 1), 1);
	while (c != '\n');
}

static struct ckpt_dump *freeze(const struct ckpt_world *w)
{
	struct ckpt_dump_options o = {.snapshot = true};
	struct ckpt_dump *d;
	struct err e = {0};

	if (ckpt_freeze(&d, w, &o, &e) < 0)
		fail_msg("%s", e.msg);
	return d;
}

/* ---- what is shared, and what is the same file -------------------------------------------- */

static void *sleeper(void *arg)
{
	pause();
	return NULL;
}

/*
 * fd 0 and 3: the same open file.  4: the same file, opened again.  5: an eventfd.
 * The child has the same table contents but a table of its own, with 5 close-on-exec.
 */
static int body_files(void)
{
	pthread_t t;
	pid_t pid;

	if (open("/dev/null", O_RDWR) != 0 || dup(0) != 2 || dup(0) != 3 ||
		open("/dev/null", O_RDWR) != 4 || eventfd(7, 0) != 5)
		return 1;
	close(2);
	if (pthread_create(&t, NULL, sleeper, NULL))
		return 2;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fcntl(5, F_SETFD, FD_CLOEXEC);
		if (write(1, "ready\n", 6) != 6)
			return 3;
		pause();
		return 0;
	}
	pause();
	return 0;
}

static void open_files_are_merged(void **state)
{
	struct ckpt_world w = {.name = "t", .proc_fd = -1, .root_fd = root_fd, NO_NAMESPACES};
	struct ckpt_edge edge = {.name = "stdout"};
	const struct ckpt_proc *a, *b;
	struct ckpt_dump *d;
	int out[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	w.init_pid = start(out[1], body_files);
	close(out[1]);
	edge.fd = out[0];
	w.edges = &edge;
	w.n_edges = 1;
	await_line(out[0]);

	for (int round = 0; round < 3; round++) {
		d = freeze(&w);
		assert_int_equal(d->n_procs, 2);
		a = d->procs[0];
		b = d->procs[1];
		assert_int_equal(a->vppid, 1);
		assert_int_equal(b->vppid, a->vpid);
		assert_int_equal(a->n_threads, 2);
		assert_int_equal(b->n_threads, 1);
		assert_int_equal(b->mm, b->vpid);
		assert_int_equal(b->files, b->vpid);
		assert_int_equal(a->n_fds, 5); /* 0 1 3 4 5 */
		assert_int_equal(b->n_fds, 5);
		assert_int_equal(d->n_files, 4);
		assert_ptr_equal(a->fds[0].file, a->fds[2].file);
		assert_ptr_not_equal(a->fds[0].file, a->fds[3].file);
		for (int i = 0; i < 5; i++)
			assert_ptr_equal(a->fds[i].file, b->fds[i].file);
		assert_false(a->fds[4].cloexec);
		assert_true(b->fds[4].cloexec);
		assert_int_equal(a->fds[0].file->id, 1);
		assert_string_equal(a->fds[0].file->link, "/dev/null");
		assert_ptr_equal(a->fds[4].file->holder, a);
		assert_int_equal(
			strncmp(ckpt_fdinfo_get(a->fds[4].file, "eventfd-count"), "7", 1), 0);
		assert_ptr_equal(ckpt_edge_of_pipe(d, &a->fds[1].file->st), &edge);
		assert_true(a->maps.n > 5);
		ckpt_thaw(d, NULL);
	}
	kill(w.init_pid, SIGKILL);
	testtask_end(w.init_pid);
	close(out[0]);
}

/* ---- what nobody claims -------------------------------------------------------------------- */

static int body_unclaimed(void)
{
	if (socket(AF_ALG, SOCK_SEQPACKET, 0) < 0 && socket(AF_PACKET, SOCK_RAW, 0) < 0 &&
		syscall(SYS_fanotify_init, 0, O_RDONLY) < 0 &&
		syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY) < 0)
		return write(1, "skip\n", 5) == 5 ? 9 : 8;
	if (write(1, "ready\n", 6) != 6)
		return 1;
	pause();
	return 0;
}

static void what_nobody_claims_is_named(void **state)
{
	struct ckpt_world w = {.name = "t", .proc_fd = -1, .root_fd = root_fd, NO_NAMESPACES};
	struct ckpt_dump_options o = {0};
	struct ckpt_edge edge = {.name = "stdout"};
	struct ckpt_dump *d = NULL;
	struct err e = {0};
	char wanted[64];
	int out[2], r;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	w.init_pid = start(out[1], body_unclaimed);
	close(out[1]);
	edge.fd = out[0];
	w.edges = &edge;
	w.n_edges = 1;
	await_line(out[0]);
	r = ckpt_freeze(&d, &w, &o, &e);
	if (r == 0)
		skip(); /* none of them is to be had here */
	assert_int_equal(e.class, ERR_UNFREEZABLE);
	snprintf(wanted, sizeof(wanted), "(test_dump) fd 0: ");
	assert_non_null(strstr(e.msg, wanted));
	assert_non_null(strstr(e.msg, "is not supported"));
	kill(w.init_pid, SIGKILL);
	testtask_end(w.init_pid);
	close(out[0]);
}

/* ---- what can't be recorded ----------------------------------------------------------------- */

static pid_t outside;

static int body_pidfd(void)
{
	sigset_t usr1;
	int sig;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	if (sys_pidfd_open(outside, 0) < 0 || write(1, "ready\n", 6) != 6)
		return 1;
	while (sigwait(&usr1, &sig) == 0)
		if (write(1, "here\n", 5) != 5)
			return 2;
	return 3;
}

/* Found out when it is recorded, by a thread of its own (recording.h). */
static void a_file_that_cant_be_recorded_is_named(void **state)
{
	char dir[] = "/tmp/podrun-test-XXXXXX", what[64] = "";
	struct ckpt_world w = {.name = "t", .proc_fd = -1, .root_fd = root_fd, NO_NAMESPACES};
	struct ckpt_edge edge = {.name = "stdout"};
	struct proto_write_options o = {.copy = true};
	struct proto_key *key;
	struct err e = {0};
	int out[2];

	assert_non_null(mkdtemp(dir));
	assert_int_equal(proto_key_open(&key, dir, &e), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	outside = getpid();
	w.init_pid = start(out[1], body_pidfd);
	close(out[1]);
	edge.fd = out[0];
	w.edges = &edge;
	w.n_edges = 1;
	await_line(out[0]);
	o.key = key;
	for (int round = 0; round < 20; round++) {
		_cleanup_close_ int image = memfd_create("image", MFD_CLOEXEC);
		struct proto_writer *to;
		struct ckpt_dump *d;
		pid_t pid;

		e = (struct err){0};
		assert_int_equal(proto_writer_open(&to, image, &o, &e), 0);
		d = freeze(&w);
		pid = d->procs[0]->threads[0]->tid;
		assert_int_equal(ckpt_write(d, to, &e), -EOPNOTSUPP);
		snprintf(what, sizeof(what), "(test_dump) fd 0: a pidfd of a process outside");
		assert_non_null(strstr(e.msg, what));
		ckpt_thaw(d, NULL);
		proto_writer_close(to);
		kill(pid, SIGUSR1);
		await_line(out[0]);
	}
	kill(w.init_pid, SIGKILL);
	testtask_end(w.init_pid);
	proto_key_close(key);
	close(out[0]);
	io_rm_rf(AT_FDCWD, dir);
}

/* ---- written while it works ----------------------------------------------------------------- */

static int body_work(void)
{
	static char memory[1 << 20];
	int ends[2];

	memset(memory, 'm', sizeof(memory));
	if (pipe(ends) < 0 || write(1, "ready\n", 6) != 6)
		return 1;
	for (int i = 0; i < 2000; i++) {
		char c = (char)i;

		memory[(i * 7919) & (sizeof(memory) - 1)] ^= c;
		if (write(ends[1], &c, 1) != 1 || read(ends[0], &c, 1) != 1 || c != (char)i)
			return 2;
		if (i % 20 == 0)
			usleep(500);
	}
	return 11;
}

static void write_image(struct ckpt_dump *d, int fd, const struct proto_key *key)
{
	struct proto_write_options o = {.key = key, .copy = true};
	struct proto_writer *out;
	struct err e = {0};
	uint64_t bytes;

	if (proto_writer_open(&out, fd, &o, &e) < 0 || ckpt_write(d, out, &e) < 0 ||
		proto_writer_finish(out, &bytes, &e) < 0)
		fail_msg("%s", e.msg);
	proto_writer_close(out);
}

static void show_image(int fd)
{
	struct proto_read_options o = {0};
	_cleanup_free_ char *text = NULL;
	struct proto_reader *in;
	struct err e = {0};
	size_t len;
	FILE *f = open_memstream(&text, &len);

	lseek(fd, 0, SEEK_SET);
	if (proto_reader_open(&in, fd, &o, &e) < 0 || ckpt_image_show(in, f, false, &e) < 0)
		fail_msg("%s", e.msg);
	proto_reader_close(in);
	fclose(f);
	assert_non_null(strstr(text, "task "));
	assert_non_null(strstr(text, "bytes of data in"));
	assert_non_null(strstr(text, "pipe "));
}

static void a_dump_disturbs_nothing(void **state)
{
	char dir[] = "/tmp/podrun-test-XXXXXX";
	struct ckpt_world w = {.name = "t", .proc_fd = -1, .root_fd = root_fd, NO_NAMESPACES};
	struct ckpt_edge edge = {.name = "stdout"};
	struct proto_key *key;
	struct err e = {0};
	int out[2], status, rounds = 0;
	uint64_t frozen = 0;
	pid_t ended = 0;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(proto_key_open(&key, dir, &e), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	w.init_pid = start(out[1], body_work);
	close(out[1]);
	edge.fd = out[0];
	w.edges = &edge;
	w.n_edges = 1;
	await_line(out[0]);
	while (rounds < 20 && (ended = waitpid(w.init_pid, &status, WNOHANG)) == 0) {
		_cleanup_close_ int image = memfd_create("image", MFD_CLOEXEC);
		struct ckpt_dump *d = freeze(&w);

		/* who is dead already has no memory to be seen in the image */
		if (d->n_procs && d->procs[0]->state != CKPT_ZOMBIE) {
			write_image(d, image, key);
			show_image(image);
			rounds++;
			frozen += ckpt_dump_report(d)->frozen_ns;
		}
		ckpt_thaw(d, NULL);
	}
	if (!ended)
		ended = waitpid(w.init_pid, &status, 0);
	assert_int_equal(ended, w.init_pid);
	assert_int_equal(WEXITSTATUS(status), 11);
	assert_true(rounds > 0);
	print_message("%d rounds, frozen for %lu us each\n", rounds, frozen / 1000 / rounds);
	proto_key_close(key);
	close(out[0]);
	io_rm_rf(AT_FDCWD, dir);
}

/* ---- stacks --------------------------------------------------------------------------------- */

static __attribute__((noinline)) int sleep_in_a_named_function(int depth)
{
	if (depth)
		return sleep_in_a_named_function(depth - 1) + 1;
	if (write(1, "ready\n", 6) != 6)
		return 1;
	return pause();
}

static int body_deep(void)
{
	return sleep_in_a_named_function(5);
}

static void every_thread_is_unwound(void **state)
{
	struct ckpt_world w = {.name = "t", .proc_fd = -1, .root_fd = root_fd};
	_cleanup_free_ char *text = NULL;
	struct err e = {0};
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int out[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	w.init_pid = start(out[1], body_deep);
	close(out[1]);
	await_line(out[0]);
	if (ckpt_stacks(&w, NULL, f, false, &e) < 0)
		fail_msg("%s", e.msg);
	fclose(f);
	assert_non_null(strstr(text, "sleep_in_a_named_function"));
	assert_non_null(strstr(text, "main"));
	kill(w.init_pid, SIGKILL);
	testtask_end(w.init_pid);
	close(out[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_files_are_merged),
		cmocka_unit_test(what_nobody_claims_is_named),
		cmocka_unit_test(a_file_that_cant_be_recorded_is_named),
		cmocka_unit_test(a_dump_disturbs_nothing),
		cmocka_unit_test(every_thread_is_unwound),
	};
	root_fd = open("/", O_PATH | O_CLOEXEC);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

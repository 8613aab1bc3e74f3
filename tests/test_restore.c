// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The restore side by itself: an image is put together record by record, rebuilt in a world of its
 * own, and looked at before anything in it runs.  Skipped where hosts forbid worlds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "proto/config.pb-c.h"
#include "proto/memory.pb-c.h"
#include "proto/proto.h"
#include "proto/tasks.pb-c.h"
#include "supervisor/introduce.h"
#include "supervisor/world/world.h"
#include "tests/lib/testworld.h"

#define CODE 0x400000UL

/* mov $60,%eax; mov $42,%edi; syscall */
static const uint8_t exit_42[] = {0xb8, 60, 0, 0, 0, 0xbf, 42, 0, 0, 0, 0x0f, 0x05};

struct proc {
	pid_t vpid, ppid, pgid, sid;
	char state; /* R T Z */
	int status; /* of Z */
	pid_t threads[3];
};

/* A shell with a stopped job, a zombie killed by a signal, an orphan of a dead session. */
static const struct proc procs[] = {
	{10, 1, 10, 10, 'R', 0, {0}},
	{11, 10, 11, 10, 'T', 0, {30, 31}},
	{12, 10, 12, 10, 'Z', SIGSEGV, {0}},
	{13, 10, 12, 10, 'R', 0, {0}},
	{14, 1, 77, 70, 'R', 0, {32}},
	{15, 14, 15, 15, 'R', 0, {0}},
	{16, 15, 77, 70, 'R', 0, {0}},
	{17, 10, 17, 10, 'Z', 3 << 8, {0}},
};

static void put(struct proto_writer *w, enum proto_kind kind, uint64_t subject,
	const ProtobufCMessage *m)
{
	struct err e = {0};
	size_t len = protobuf_c_message_get_packed_size(m);
	_cleanup_free_ uint8_t *body = malloc(len + 1);

	protobuf_c_message_pack(m, body);
	if (proto_write_record(w, kind, subject, body, len, &e) < 0)
		fail_msg("%s", e.msg);
}

static void put_task(struct proto_writer *w, const struct proc *p)
{
	Pb__Task m = PB__TASK__INIT;
	int32_t threads[3];

	m.ppid = p->ppid;
	m.pgid = p->pgid;
	m.sid = p->sid;
	m.state = p->state == 'Z' ? PB__TASK_STATE__TASK_ZOMBIE :
		  p->state == 'T' ? PB__TASK_STATE__TASK_STOPPED :
				    PB__TASK_STATE__TASK_RUNNING;
	m.exit_signal = SIGCHLD;
	m.stop_signal = p->state == 'T' ? SIGTSTP : 0;
	m.wait_status = p->status;
	m.mm = m.files = m.fs = m.sighand = p->vpid;
	while (m.n_threads < 3 && p->threads[m.n_threads]) {
		threads[m.n_threads] = p->threads[m.n_threads];
		m.n_threads++;
	}
	m.threads = threads;
	put(w, PROTO_KIND_TASK, (uint64_t)p->vpid, &m.base);
}

static void put_thread(struct proto_writer *w, pid_t vtid)
{
	struct user_regs_struct regs = {
		.rip = CODE, .cs = 0x33, .ss = 0x2b, .orig_rax = (unsigned long long)-1};
	uint8_t fxsave[512] = {0};
	Pb__Thread m = PB__THREAD__INIT;

	fxsave[0] = 0x7f;
	fxsave[1] = 3;
	fxsave[24] = 0x80;
	fxsave[25] = 0x1f;
	m.regs = (ProtobufCBinaryData){sizeof(regs), (uint8_t *)&regs};
	m.fxsave = (ProtobufCBinaryData){sizeof(fxsave), fxsave};
	m.name = (char *)"built";
	m.altstack_flags = 2;
	put(w, PROTO_KIND_THREAD, (uint64_t)vtid, &m.base);
}

static void put_memory(struct proto_writer *w, pid_t vpid)
{
	Pb__Mapping map = PB__MAPPING__INIT, *list[] = {&map};
	Pb__Mm m = PB__MM__INIT;

	map.start = CODE;
	map.end = CODE + PAGE_SIZE;
	map.prot = PROT_READ | PROT_EXEC;
	m.n_mappings = 1;
	m.mappings = list;
	m.start_code = m.start_data = m.start_stack = m.arg_start = m.env_start = CODE;
	m.end_code = m.end_data = m.arg_end = m.env_end = CODE + PAGE_SIZE;
	m.start_brk = m.brk = CODE + PAGE_SIZE;
	put(w, PROTO_KIND_MM, (uint64_t)vpid, &m.base);
}

static void write_image(const char *path, const char *config, size_t n)
{
	uint8_t page[PAGE_SIZE] = {0};
	struct proto_write_options o = {.threads = 1};
	struct proto_writer *w;
	struct proto_key *key;
	struct err e = {0};
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	memcpy(page, exit_42, sizeof(exit_42));
	proto_key_open(&key, config, &e);
	o.key = key;
	if (proto_writer_open(&w, fd, &o, &e) < 0)
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < n; i++)
		put_task(w, &procs[i]);
	for (size_t i = 0; i < n; i++) {
		if (procs[i].state == 'Z')
			continue;
		put_memory(w, procs[i].vpid);
		put_thread(w, procs[i].vpid);
		for (size_t k = 0; k < 3 && procs[i].threads[k]; k++)
			put_thread(w, procs[i].threads[k]);
	}
	for (size_t i = 0; i < n; i++)
		if (procs[i].state != 'Z')
			proto_write_data(w, PROTO_KIND_MM, (uint64_t)procs[i].vpid, CODE, page,
				sizeof(page), &e);
	if (proto_writer_finish(w, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	proto_writer_close(w);
	proto_key_close(key);
	close(fd);
}

enum bad { BAD_KIND, BAD_TWICE, BAD_SHARED, BAD_REGISTERS, BAD_PARENT, BAD_N };

static void write_bad(const char *path, const char *config, enum bad bad)
{
	struct proc p = procs[0], q = procs[0];
	struct proto_write_options o = {.threads = 1};
	struct proto_writer *w;
	struct proto_key *key;
	struct err e = {0};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	proto_key_open(&key, config, &e);
	o.key = key;
	if (proto_writer_open(&w, fd, &o, &e) < 0)
		fail_msg("%s", e.msg);
	if (bad == BAD_PARENT)
		p.ppid = 99;
	q.vpid = bad == BAD_TWICE ? p.vpid : 50;
	q.ppid = p.vpid;
	q.threads[0] = bad == BAD_SHARED ? p.vpid : 51;
	put_task(w, &p);
	put_task(w, &q);
	if (bad == BAD_KIND)
		proto_write_record(w, PROTO_KIND_MAX - 1, 0, "x", 1, &e);
	put_memory(w, p.vpid);
	put_thread(w, p.vpid);
	put_thread(w, q.vpid);
	if (bad != BAD_REGISTERS)
		put_thread(w, q.threads[0]);
	if (proto_writer_finish(w, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	proto_writer_close(w);
	proto_key_close(key);
	close(fd);
}

/* ---- a world --------------------------------------------------------------------------------- */

struct fixture {
	char dir[64], files[80], image[80];
	struct testworld tw;
	bool made;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = {0};

	strcpy(f->dir, "/tmp/podrun-test-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->files, sizeof(f->files), "%s/files", f->dir);
	snprintf(f->image, sizeof(f->image), "%s/image", f->dir);
	mkdir(f->files, 0700);
	f->made = testworld_make(&f->tw, "restore", f->files, &e) == 0;
	if (!f->made)
		fprintf(stderr, "no world: %s (%s)\n", e.msg, e.hint);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	testworld_end(&f->tw);
	io_rm_rf(AT_FDCWD, f->dir);
	free(f);
	return 0;
}

static int seed(void *ctx, pid_t vpid, pid_t *ret_pid, struct err *e)
{
	struct fixture *f = ctx;

	return world_seed(&f->tw.world, vpid, ret_pid, e);
}

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static pid_t inner(const pid_t *ns, const struct proc_status *s)
{
	return ns[s->ns_depth - 1];
}

static void look_at(struct ckpt_build *b, const struct proc *want)
{
	struct ckpt_build_proc *p = ckpt_build_proc(b, want->vpid);
	struct proc_status s, parent;
	struct err e = {0};
	size_t threads = 1;

	CHECK(p && proc_read_status(b->host_proc, p->pid, &s, &e) == 0);
	CHECK(inner(s.ns_tgid, &s) == want->vpid);
	CHECK(inner(s.ns_pgid, &s) == want->pgid);
	CHECK(inner(s.ns_sid, &s) == want->sid);
	CHECK(proc_read_status(b->host_proc, s.ppid, &parent, &e) == 0);
	CHECK(inner(parent.ns_tgid, &parent) == want->ppid);
	if (want->state == 'Z') {
		CHECK(s.state == 'Z');
		CHECK(s.exit_code == want->status);
		return;
	}
	CHECK(s.state == 't');
	CHECK(s.exit_signal == SIGCHLD);
	while (threads < 4 && want->threads[threads - 1]) {
		CHECK(ckpt_build_thread(b, want->threads[threads - 1])->proc == p);
		threads++;
	}
	CHECK(s.threads == (int)threads);
	CHECK(!strcmp(s.comm, "built"));
	CHECK(!s.shared_pending && !s.sig_pending && !s.sig_blocked);
}

static void builder(struct fixture *f, size_t n, bool release, bool refuse)
{
	const struct ckpt_restore_options o = {0};
	const struct proto_read_options ro = {.config_dir = f->dir};
	struct ckpt_world view = introduce_world(&f->tw.world, &(Pb__Config){.name = (char *)"restore"});
	struct proto_reader *in;
	struct ckpt_build *b;
	struct err e = {0};
	int fd = open(f->image, O_RDONLY | O_CLOEXEC);

	view.seed = seed;
	view.ctx = f;
	if (proto_reader_open(&in, fd, &ro, &e) < 0 || ckpt_restore_begin(&b, in, &o, &e) < 0 ||
		ckpt_restore(b, &view, &e) < 0) {
		if (refuse && e.class == ERR_IMAGE)
			_exit(0);
		fprintf(stderr, "%s\n", e.msg);
		_exit(1);
	}
	CHECK(!refuse);
	for (size_t i = 0; i < n; i++)
		look_at(b, &procs[i]);
	if (release)
		CHECK(ckpt_restore_release(b, &e) == 0);
	else
		ckpt_restore_undo(b);
	_exit(0);
}

static void build(struct fixture *f, size_t n, bool release, bool refuse)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		builder(f, n, release, refuse);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static int next_exit(struct fixture *f, struct world_exit *x)
{
	struct pollfd p = {f->tw.world.init_sock, POLLIN, 0};
	struct err e = {0};

	return poll(&p, 1, 5000) == 1 ? world_next_exit(&f->tw.world, x, &e) : 0;
}

static void one_process_runs(void **state)
{
	struct fixture *f = *state;
	struct world_exit x;

	if (!f->made)
		skip();
	write_image(f->image, f->dir, 1);
	build(f, 1, true, false);
	assert_int_equal(next_exit(f, &x), 1);
	assert_int_equal(x.vpid, 10);
	assert_int_equal(x.status, 42 << 8);
}

/* Until pid 1 has reaped what was killed. */
static void await_empty(struct fixture *f)
{
	for (int i = 0; i < 1000; i++) {
		_cleanup_free_ int *pids = NULL;
		struct err e = {0};
		size_t n = 0;

		if (proc_list_numbers(f->tw.world.proc_fd, ".", &pids, &n, &e) < 0)
			fail_msg("%s", e.msg);
		if (n == 1)
			return;
		usleep(5000);
	}
	fail_msg("something is left");
}

static void tree_is_the_same(void **state)
{
	struct fixture *f = *state;

	if (!f->made)
		skip();
	write_image(f->image, f->dir, ARRAY_SIZE(procs));
	build(f, ARRAY_SIZE(procs), false, false);
	await_empty(f);
	/* and nothing is left: it can be done again in the same world */
	build(f, ARRAY_SIZE(procs), false, false);
}

static void nonsense_is_refused(void **state)
{
	struct fixture *f = *state;

	if (!f->made)
		skip();
	for (enum bad bad = 0; bad < BAD_N; bad++) {
		write_bad(f->image, f->dir, bad);
		build(f, 0, false, true);
		await_empty(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_process_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(tree_is_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(nonsense_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

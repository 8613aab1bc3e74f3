// SPDX-License-Identifier: GPL-2.0-or-later
/* paths, record, ledger, relay, chore: what a supervisor is made of, without a session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/config.pb-c.h"
#include "supervisor/disk/ledger.h"
#include "supervisor/disk/paths.h"
#include "supervisor/disk/record.h"
#include "supervisor/relay.h"
#include "supervisor/session.h"
#include "supervisor/worker/chore.h"

static char dir[] = "/tmp/test_session.XXXXXX";

static int set_up(void **state)
{
	static char run[64], st[64], config[64];

	if (!mkdtemp(dir))
		return -1;
	snprintf(run, sizeof(run), "%s/run", dir);
	snprintf(st, sizeof(st), "%s/state", dir);
	snprintf(config, sizeof(config), "%s/config", dir);
	mkdir(run, 0700);
	setenv("XDG_RUNTIME_DIR", run, 1);
	setenv("XDG_STATE_HOME", st, 1);
	setenv("XDG_CONFIG_HOME", config, 1);
	return 0;
}

static int tear_down(void **state)
{
	return io_rm_rf(AT_FDCWD, dir);
}

static void names_are_checked(void **state)
{
	static const char *const good[] = {"a", "A9", "0.b_c-d"};
	static const char *const bad[] = {"", ".", "..", "-a", "_a", "a/b", "a b", "\xc3\xa4"};
	char name[PATHS_MAX_NAME], longest[PATHS_MAX_NAME + 1];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(paths_valid_name(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(paths_valid_name(bad[i]));
	memset(longest, 'a', sizeof(longest));
	longest[PATHS_MAX_NAME] = '\0';
	assert_false(paths_valid_name(longest));
	for (unsigned seed = 0; seed < 3000; seed += 7) {
		paths_make_name(seed, name);
		assert_true(paths_valid_name(name));
	}
}

static void records_survive(void **state)
{
	struct paths p;
	struct err e = {0};
	Pb__Record r = PB__RECORD__INIT, *back;
	Pb__Config c = PB__CONFIG__INIT;
	_cleanup_free_ char *session = NULL;

	assert_int_equal(paths_init(&p, &e), 0);
	assert_int_equal(record_load(&back, &p, "x", &e), -ENOENT);
	assert_int_equal(e.class, ERR_NOT_FOUND);
	session = paths_session(&p, "x", NULL);
	assert_int_equal(mkdir(session, 0700), 0);
	c.name = (char *)"x";
	r.config = &c;
	r.state = (char *)record_state_name(RECORD_SUSPENDED);
	r.status = 42;
	assert_int_equal(record_save(&r, session, true, &e), 0);
	assert_int_equal(record_load(&back, &p, "x", &e), 0);
	assert_int_equal(record_state_of(back->state), RECORD_SUSPENDED);
	assert_int_equal(back->status, 42);
	record_free(back);
	assert_int_equal(record_remove(&p, "x", &e), 0);
	assert_int_equal(access(session, F_OK), -1);
	paths_fini(&p);
}

/* What a log lacks of its own end, which has been elsewhere. */
static void logs_are_joined(void **state)
{
	static const struct {
		const char *here, *came, *is;
	} all[] = {
		{"one\ntwo\n", "one\ntwo\n", "one\ntwo\n"},
		{"one\ntwo\n", "two\n", "one\ntwo\n"},
		{"one\ntwo\n", "", "one\ntwo\n"},
		{"one\ntwo\n", "one\ntwo\nthree\n", "one\ntwo\nthree\n"},
		{"one\ntwo\n", "two\nthree\n", "one\ntwo\nthree\n"},
		{"one\ntwo\n", "three\n", "one\ntwo\nthree\n"},
		{"one\ntwo\nthree\n", "one\ntwo\n", "one\ntwo\nthree\n"}, /* an older image */
		{"aaaa", "aaaaaa", "aaaaaa"},
		{"xabab", "ababab", "xababab"},
		{"", "one\n", "one\n"},
	};
	char path[128];

	snprintf(path, sizeof(path), "%s/joined", dir);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		_cleanup_buf_ struct buf is = BUF_INIT;

		assert_int_equal(
			io_write_file(AT_FDCWD, path, all[i].here, strlen(all[i].here), 0600), 0);
		assert_int_equal(session_log_join(path, all[i].came, strlen(all[i].came)), 0);
		assert_int_equal(io_read_file(AT_FDCWD, path, 1000, &is), 0);
		assert_string_equal(buf_cstr(&is), all[i].is);
	}
	assert_int_equal(session_log_join("/nowhere/log", "x", 1), -ENOENT);
}

static int confirm(const uint8_t id[16], pid_t pid)
{
	struct ledger_claimant c;
	struct err e = {0};
	int r = ledger_claimant_open(&c, dir, pid, &e);

	if (r == 0)
		r = ledger_confirm(&c, id, &e);
	ledger_claimant_fini(&c);
	return r;
}

static void images_are_consumed_once(void **state)
{
	const uint8_t a[16] = {1, 2, 3}, b[16] = {4}, c[16] = {5};
	struct err e = {0};
	int status;
	pid_t pid;

	assert_int_equal(ledger_check(dir, a, &e), 0);
	assert_int_equal(ledger_claim(dir, a, "one", &e), 0);
	assert_int_equal(ledger_claim(dir, a, "two", &e), -EALREADY);
	assert_int_equal(e.class, ERR_STATE);
	assert_non_null(strstr(e.msg, "'one'"));
	assert_int_equal(ledger_claim(dir, b, "two", &e), 0);
	assert_int_equal(ledger_give_back(dir, a, &e), 0);
	assert_int_equal(ledger_check(dir, a, &e), 0);
	assert_int_equal(ledger_check(dir, b, &e), 1);
	assert_int_equal(ledger_claim(dir, a, "three", &e), 0);
	assert_int_equal(confirm(a, getppid()), -ESTALE);
	assert_int_equal(confirm(a, getpid()), 0);
	assert_int_equal(ledger_claim(dir, a, "four", &e), -EALREADY);

	/* Others who end behind a claim, and behind a confirmed one. */
	for (int confirmed = 0; confirmed < 2; confirmed++) {
		pid = fork();
		if (pid == 0)
			_exit(ledger_claim(dir, c, "child", &e) < 0 ||
				(confirmed && confirm(c, getpid()) < 0));
		assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
		assert_int_equal(ledger_give_back(dir, c, &e), 0); /* not ours */
		assert_int_equal(ledger_check(dir, c, &e), confirmed);
		assert_int_equal(confirm(c, pid), -ESTALE);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_int_equal(ledger_claim(dir, c, "me", &e), -EALREADY);
}

/* As on a disk that is full, with any part of the line. */
static void a_claim_that_can_not_be_written_is_none(void **state)
{
	struct rlimit before, little;
	uint8_t id[16] = {7};
	char path[128];
	struct err e = {0};
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/ledger", dir);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (unsigned i = 0; i < 200; i++) {
		assert_true(stat(path, &st) == 0 && st.st_size > 0);
		little = (struct rlimit){(rlim_t)st.st_size + i, before.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
		if (ledger_claim(dir, id, "a-name-of-some-length", &e) == 0)
			break;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_int_equal(e.error, -EFBIG);
		assert_int_equal(ledger_check(dir, id, &e), 0);
	}
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(ledger_check(dir, id, &e), 1);
	/* what an older version or a crash has left */
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(dprintf(fd, "08000000000000000000000000000000 1 half"), 39);
	close(fd);
	id[0] = 8;
	assert_int_equal(ledger_check(dir, id, &e), 0);
	id[0] = 9;
	assert_int_equal(ledger_claim(dir, id, "one", &e), 0);
	assert_int_equal(confirm(id, getpid()), 0);
	id[0] = 8;
	assert_int_equal(ledger_check(dir, id, &e), 0);
	signal(SIGXFSZ, SIG_DFL);
}

static void changed_files_are_not_known(void **state)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	assert_true(asprintf(&path, "%s/image", dir) > 0);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(io_write_full(fd, "whole", 5), 0);
	assert_false(ledger_knows_file(dir, fd));
	ledger_know_file(dir, fd);
	assert_true(ledger_knows_file(dir, fd));
	assert_int_equal(io_write_full(fd, "more", 4), 0);
	assert_false(ledger_knows_file(dir, fd));
}

struct sink {
	struct buf out;
	bool ready;
	unsigned rooms;
};

static void on_output(void *ctx, enum relay_stream stream, const void *data, size_t n)
{
	struct sink *s = ctx;

	assert_int_equal(stream, RELAY_OUT);
	buf_put(&s->out, data, n);
}

static bool on_ready(void *ctx)
{
	return ((struct sink *)ctx)->ready;
}

static void on_room(void *ctx)
{
	((struct sink *)ctx)->rooms++;
}

static const struct relay_ops ops = {on_output, on_ready, on_room};

/* Everything that comes, a slow sink, and nothing while it is held. */
static void output_is_relayed(void **state)
{
	struct event_base *loop = event_base_new();
	struct sink sink = {.ready = false};
	struct err e = {0};
	struct relay *r;
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(relay_new(&r, loop, &ops, &sink, &e), 0);
	assert_int_equal(relay_adopt(r, RELAY_OUT, p[0], &e), 0);
	assert_int_equal(io_write_full(p[1], "hello", 5), 0);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_int_equal(sink.out.len, 0);
	sink.ready = true;
	relay_hold(r, true);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_int_equal(sink.out.len, 0);
	relay_hold(r, false);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_memory_equal(sink.out.data, "hello", 5);
	assert_int_equal(relay_open_streams(r), 1u << RELAY_OUT);
	close(p[1]);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_int_equal(relay_open_streams(r), 0);
	relay_free(r);
	buf_fini(&sink.out);
	event_base_free(loop);
}

/* Input stops at its bound, goes on when there is room, and ends behind what was taken. */
static void input_is_bounded(void **state)
{
	static uint8_t much[RELAY_INPUT_MAX + 1000], chunk[65536];
	struct event_base *loop = event_base_new();
	struct sink sink = {.ready = true};
	struct err e = {0};
	size_t taken, read_back = 0;
	const uint8_t *pending;
	struct relay *r;
	bool ended;
	ssize_t n;
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	io_set_nonblock(p[0], true);
	assert_int_equal(relay_new(&r, loop, &ops, &sink, &e), 0);
	assert_int_equal(relay_adopt(r, RELAY_IN, p[1], &e), 0);
	taken = relay_put(r, much, sizeof(much));
	assert_int_equal(taken, RELAY_INPUT_MAX);
	relay_pending(r, &pending, &taken, &ended);
	assert_int_equal(taken, RELAY_INPUT_MAX);
	assert_false(ended);
	relay_end_input(r);
	for (int i = 0; i < 100; i++) {
		event_base_loop(loop, EVLOOP_NONBLOCK);
		n = read(p[0], chunk, sizeof(chunk));
		if (n == 0)
			break;
		read_back += n > 0 ? (size_t)n : 0;
	}
	assert_int_equal(n, 0);
	assert_int_equal(read_back, RELAY_INPUT_MAX);
	assert_true(sink.rooms > 0);
	relay_free(r);
	close(p[0]);
	event_base_free(loop);
}

/* ---- chores ------------------------------------------------------------------------------- */

static int refuse(struct err *e)
{
	return err_set(e, ERR_HOST, -EPERM, "not here");
}

static int succeed(struct err *e)
{
	return 0;
}

static int wait_for_ever(struct err *e)
{
	for (;;)
		pause();
	return 0;
}

static int be_killed(struct err *e)
{
	return raise(SIGKILL);
}

struct told {
	unsigned times;
	struct err e;
	struct chore *c;
};

static void on_done(void *ctx, struct err *e)
{
	struct told *t = ctx;

	t->times++;
	t->e = *e;
	chore_free(take_ptr(t->c));
}

static void chores_tell_how_they_ended(void **state)
{
	int (*const runs[])(struct err *e) = {succeed, refuse, be_killed};
	const int errors[] = {0, -EPERM, -ECHILD};
	struct event_base *loop = event_base_new();

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct told t = {0};
		struct err e = {0};

		assert_int_equal(chore_start(&t.c, loop, runs[i], on_done, &t, &e), 0);
		event_base_loop(loop, EVLOOP_ONCE);
		assert_int_equal(t.times, 1);
		assert_int_equal(t.e.error, errors[i]);
		assert_null(t.c);
	}
	event_base_free(loop);
}

/* One that never ends is no reason for the loop to wait. */
static void chores_can_be_dropped(void **state)
{
	struct event_base *loop = event_base_new();
	struct told t = {0};
	struct err e = {0};

	assert_int_equal(chore_start(&t.c, loop, wait_for_ever, on_done, &t, &e), 0);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	chore_free(t.c);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_int_equal(t.times, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	event_base_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_checked),
		cmocka_unit_test(records_survive),
		cmocka_unit_test(logs_are_joined),
		cmocka_unit_test(images_are_consumed_once),
		cmocka_unit_test(a_claim_that_can_not_be_written_is_none),
		cmocka_unit_test(changed_files_are_not_known),
		cmocka_unit_test(output_is_relayed),
		cmocka_unit_test(input_is_bounded),
		cmocka_unit_test(chores_tell_how_they_ended),
		cmocka_unit_test(chores_can_be_dropped),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

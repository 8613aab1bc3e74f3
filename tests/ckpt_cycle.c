// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ckpt_cycle - freezes and rebuilds a program with ckpt alone, without a supervisor.
 *
 *      build/tests/ckpt_cycle [-n TIMES] [-s] [-k] [-v] -- PROGRAM ARGUMENTS...
 *
 * A world is made (supervisor/world/world.h), PROGRAM runs in it until it says "ready" on its
 * standard output, is frozen into an image, ended with its world, and rebuilt from the image in a
 * new one; TIMES times.  Then /tmp/go is made inside, what the program writes is passed on, and its
 * exit code is ours.  The programs of tests/state do what is wanted:
 *
 *      build/tests/ckpt_cycle -- $PWD/build/tests/state/counter /tmp/go
 *
 *      -n TIMES   how often (1)
 *      -s         snapshot: thaw it instead of ending it, and let that one finish as well
 *      -m SEED    (with -o: of TCP records) change some bytes of the image's records and sign it again: the rebuilding may
 *                 fail, but must end in good order; nothing of it runs (exit code 0: so it did)
 *      -o         its network is virtual, with a host outside (tests/lib/outsidenet.h); with -s it is not rebuilt
 *      -l         with -o: its connections are lost meanwhile
 *      -w N       that many connections from outside are to be made once more
 *      -k         keep the directory, and say where it is
 *      -v         say what happens and how long it takes
 *
 * PODRUN_LOG=debug shows more.  To debug the builder: gdb --args ..., set follow-fork-mode child.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/config.pb-c.h"
#include "proto/kinds.h"
#include "proto/proto.h"
#include "proto/sockets.pb-c.h"
#include "supervisor/introduce.h"
#include "supervisor/world/world.h"
#include "tests/lib/outsidenet.h"
#include "tests/lib/testworld.h"

static struct {
	int times, waiting;
	bool snapshot, keep, verbose, mutate, outside, lost;
	unsigned seed;
} options = {.times = 1, .waiting = -1};

#define SAY(...)                                                                                   \
	do {                                                                                       \
		if (options.verbose)                                                               \
			fprintf(stderr, "ckpt_cycle: " __VA_ARGS__);                               \
	} while (0)

static const char *const edge_names[3] = {"stdin", "stdout", "stderr"};

struct cycle {
	char dir[64], files[80], image[80];
	struct testworld tw;
	struct outsidenet out;
	pid_t vpid;	  /* of the program */
	int ends[3];	  /* our ends of its stdio */
	struct proto_key *key;
};

static _Noreturn void die(const struct err *e, const char *what)
{
	fprintf(stderr, "ckpt_cycle: %s: %s%s%s\n", what, e->msg, e->hint[0] ? "; " : "", e->hint);
	exit(2);
}

/* ---- the world ------------------------------------------------------------------------------ */

static void make_world(struct cycle *c)
{
	struct err e = {0};

	if (testworld_make(&c->tw, "cycle", c->files, &e) < 0)
		die(&e, "world");
	if (options.outside)
		outsidenet_attach(&c->out, c->tw.world.ns_user, c->tw.world.ns_net);
}

static int hold(void *ctx, enum ckpt_packets what, struct err *e)
{
	struct cycle *c = ctx;

	if (what != CKPT_PACKETS_HELD)
		outsidenet_hold(&c->out, what == CKPT_PACKETS_HOLD);
	return 0;
}

static void start(struct cycle *c, char **argv)
{
	char *envp[] = {(char *)"PATH=/usr/bin:/bin", (char *)"HOME=/tmp", NULL};
	struct world_spawn s = {.argv = argv, .envp = envp, .cwd = "/tmp"};
	struct err e = {0};
	int in[2], out[2], err[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		exit(2);
	s.stdio[0] = in[0];
	s.stdio[1] = out[1];
	s.stdio[2] = err[1];
	if (world_spawn(&c->tw.world, &s, &c->vpid, NULL, &e) < 0)
		die(&e, "spawn");
	c->ends[0] = in[1];
	c->ends[1] = out[0];
	c->ends[2] = err[0];
	close(in[0]);
	close(out[1]);
	close(err[1]);
}

static void await_ready(struct cycle *c)
{
	char line[256];
	size_t n = 0;

	while (n < sizeof(line) - 1 && read(c->ends[1], line + n, 1) == 1)
		if (line[n++] == '\n')
			break;
	line[n] = '\0';
	if (!strcmp(line, "ready\n"))
		return;
	fprintf(stderr, "ckpt_cycle: not ready but '%s'\n", line);
	while ((n = (size_t)read(c->ends[2], line, sizeof(line))) > 0 && n <= sizeof(line))
		fwrite(line, 1, n, stderr);
	exit(2);
}

/* ---- both directions, each in a worker of its own -------------------------------------------- */

static int get_seed(void *ctx, pid_t vpid, pid_t *ret_pid, struct err *e)
{
	struct cycle *c = ctx;

	return world_seed(&c->tw.world, vpid, ret_pid, e);
}

struct give {
	struct cycle *c;
	int sock;
};

static int seed_for_worker(void *ctx, pid_t vpid, pid_t *ret_pid, struct err *e)
{
	return get_seed(((struct give *)ctx)->c, vpid, ret_pid, e);
}

static int give_edge(void *ctx, const char *name, int fd, struct err *e)
{
	struct give *g = ctx;
	int r = io_send_fds(g->sock, name, strlen(name) + 1, &fd, 1);

	return r < 0 ? err_errno(e, r, "edge %s", name) : 0;
}

static struct ckpt_world view(struct cycle *c, struct ckpt_edge edges[3])
{
	struct ckpt_world v = introduce_world(&c->tw.world, &(Pb__Config){.name = (char *)"cycle"});

	v.edges = edges;
	v.vnet = options.outside;
	v.vnet_lost = options.lost;
	for (int i = 0; edges && i < 3; i++) {
		if (c->ends[i] < 0)
			continue;
		snprintf(edges[v.n_edges].name, sizeof(edges[0].name), "%s", edge_names[i]);
		edges[v.n_edges++].fd = c->ends[i];
	}
	return v;
}

static void report(const char *what, const struct ckpt_report *r)
{
	struct rusage used;
	struct timeval cpu;

	getrusage(RUSAGE_SELF, &used);
	timeradd(&used.ru_utime, &used.ru_stime, &cpu);
	SAY("%s: of its worker's time %.2f ms on a CPU\n", what,
		(double)cpu.tv_sec * 1e3 + (double)cpu.tv_usec / 1e3);
	SAY("%s: %.2f ms, %u processes, %u tasks, %llu pages\n", what, (double)r->total_ns / 1e6,
		r->processes, r->tasks, (unsigned long long)r->pages);
	for (size_t i = 0; i < r->n_stages; i++)
		SAY("    %-10s %8.2f ms\n", r->stages[i].name, (double)r->stages[i].ns / 1e6);
}

static _Noreturn void dump_worker(struct cycle *c)
{
	const struct ckpt_dump_options o = {.snapshot = options.snapshot,
		.deadline_ms = 3000,
		.hold = options.outside ? hold : NULL,
		.hold_ctx = c};
	const struct proto_write_options wo = {.key = c->key, .threads = 1};
	struct ckpt_edge edges[3];
	struct ckpt_world w = view(c, edges);
	struct proto_writer *out;
	struct ckpt_dump *d;
	struct err e = {0};
	int fd = open(c->image, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (ckpt_freeze(&d, &w, &o, &e) < 0)
		die(&e, "freeze");
	if (proto_writer_open(&out, fd, &wo, &e) < 0 || ckpt_write(d, out, &e) < 0 ||
		proto_writer_finish(out, NULL, &e) < 0)
		die(&e, "write");
	report("dump", ckpt_dump_report(d));
	if (!options.snapshot)
		kill(c->tw.world.init_pid, SIGKILL);
	else if (ckpt_thaw(d, &e) < 0)
		die(&e, "thaw");
	exit(0);
}

/* With -o: what a TCP record claims of its connection is no more true, in one field. */
static uint8_t *twist(const struct proto_frame *f, size_t *ret_len)
{
	static const uint64_t values[] = {0, 1, 14, 15, 255, 1 << 16, 1u << 30, 1u << 31,
		UINT32_MAX, 1ull << 32, 1ull << 40, UINT64_MAX};
	uint64_t value = values[(size_t)rand() % ARRAY_SIZE(values)];
	Pb__Tcp *m = pb__tcp__unpack(NULL, f->len, f->data);
	Pb__TcpLive *l = m ? m->live : NULL;
	uint32_t *numbers[13];
	uint8_t *body;

	if (!l) {
		pb__tcp__free_unpacked(m, NULL);
		return NULL;
	}
	memcpy(numbers,
		(uint32_t *[]){&l->state, &l->receive_seq, &l->send_seq, &l->mss, &l->options,
			&l->send_scale, &l->receive_scale, &l->timestamp, &l->send_wl1,
			&l->send_window, &l->max_window, &l->receive_window, &l->receive_wup},
		sizeof(numbers));
	switch (rand() % 5) {
	case 0:
		l->sent = value;
		break;
	case 1:
		l->unsent = value;
		break;
	case 2:
		m->received = value;
		break;
	default:
		*numbers[(size_t)rand() % ARRAY_SIZE(numbers)] = (uint32_t)value;
	}
	body = malloc(pb__tcp__get_packed_size(m));
	*ret_len = body ? pb__tcp__pack(m, body) : 0;
	pb__tcp__free_unpacked(m, NULL);
	return body;
}

/* Copies the image, with a few bytes of a few records changed. */
static void mutate(struct cycle *c)
{
	const struct proto_read_options ro = {.config_dir = c->dir};
	const struct proto_write_options wo = {.key = c->key, .threads = 1};
	char path[96];
	struct proto_reader *in;
	struct proto_writer *out;
	struct proto_frame f;
	struct err e = {0};
	int from = open(c->image, O_RDONLY | O_CLOEXEC), to;

	snprintf(path, sizeof(path), "%s.bad", c->image);
	to = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	srand(options.seed);
	if (proto_reader_open(&in, from, &ro, &e) < 0 || proto_writer_open(&out, to, &wo, &e) < 0)
		die(&e, "mutate");
	while (proto_read(in, &f, &e) == 0 && f.type != PROTO_END) {
		bool tcp = options.outside && f.type == PROTO_RECORD && f.kind == PROTO_KIND_TCP;
		size_t len = f.len;
		uint8_t *twisted = tcp && rand() % 30 == 0 ? twist(&f, &len) : NULL;
		_cleanup_free_ uint8_t *body = twisted ? twisted : malloc(f.len + 1);

		if (options.outside && f.type == PROTO_RECORD) {
			if (!twisted)
				memcpy(body, f.data, f.len);
			proto_write_record(out, f.kind, f.subject, body, len, &e);
			continue;
		}
		if (f.type == PROTO_DATA) {
			proto_write_data(out, f.kind, f.subject, f.offset, f.data, f.len, &e);
			continue;
		}
		memcpy(body, f.data, f.len);
		for (int n = rand() % 24 ? 0 : 1 + rand() % 2; n && f.len; n--)
			body[(size_t)rand() % f.len] = (uint8_t)(rand() % 3 ? rand() : rand() % 4);
		proto_write_record(out, f.kind, f.subject + (rand() % 400 ? 0 : 1), body, f.len, &e);
	}
	if (proto_writer_finish(out, NULL, &e) < 0)
		die(&e, "mutate");
	proto_writer_close(out);
	proto_reader_close(in);
	close(from);
	close(to);
	rename(path, c->image);
}

static int n_redo;

static int count_redo(void *ctx, const struct sockaddr *client, uint16_t port, struct err *e)
{
	n_redo += client->sa_family == AF_INET && port;
	return 0;
}

static _Noreturn void restore_worker(struct cycle *c, int sock)
{
	const struct ckpt_restore_options o = {0};
	const struct proto_read_options ro = {.config_dir = c->dir};
	struct give give = {c, sock};
	struct ckpt_world w = view(c, NULL);
	struct proto_reader *in;
	struct ckpt_build *b;
	struct err e = {0};
	int fd = open(c->image, O_RDONLY | O_CLOEXEC);

	w.ctx = &give;
	w.seed = seed_for_worker;
	w.edge = give_edge;
	w.redo = count_redo;
	if (options.mutate) {
		alarm(60);
		if (proto_reader_open(&in, fd, &ro, &e) < 0 ||
			ckpt_restore_begin(&b, in, &o, &e) < 0 || ckpt_restore(b, &w, &e) < 0)
			SAY("%s: %s\n", err_class_info(e.class)->name, e.msg);
		else
			ckpt_restore_undo(b);
		exit(0);
	}
	if (proto_reader_open(&in, fd, &ro, &e) < 0 || ckpt_restore_begin(&b, in, &o, &e) < 0 ||
		ckpt_restore(b, &w, &e) < 0)
		die(&e, "restore");
	report("restore", ckpt_build_report(b));
	if (options.waiting >= 0 && n_redo != options.waiting) {
		fprintf(stderr, "ckpt_cycle: %d are to be made once more\n", n_redo);
		exit(2);
	}
	if (ckpt_restore_release(b, &e) < 0)
		die(&e, "release");
	if (options.outside)
		outsidenet_hold(&c->out, false);
	exit(0);
}

static void finish_worker(pid_t pid, const char *what)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "ckpt_cycle: %s: worker ended with %x\n", what, status);
		exit(2);
	}
}

static void dump(struct cycle *c)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		dump_worker(c);
	finish_worker(pid, "dump");
}

static void take_edges(struct cycle *c, int sock)
{
	char name[32];
	size_t n;
	int fd;

	while (io_recv_fds(sock, name, sizeof(name), &fd, 1, &n) > 0) {
		name[sizeof(name) - 1] = '\0';
		for (int i = 0; i < 3; i++)
			if (n && !strcmp(name, edge_names[i]))
				c->ends[i] = fd;
	}
}

static void restore(struct cycle *c)
{
	int sock[2];
	pid_t pid;

	c->ends[0] = c->ends[1] = c->ends[2] = -1;
	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
		exit(2);
	pid = fork();
	if (pid == 0) {
		close(sock[0]);
		restore_worker(c, sock[1]);
	}
	close(sock[1]);
	take_edges(c, sock[0]);
	close(sock[0]);
	finish_worker(pid, "restore");
}

/* ---- to the end ------------------------------------------------------------------------------ */

static void go(struct cycle *c)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/tmp/go", c->files);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static void no_go(struct cycle *c)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/tmp/go", c->files);
	unlink(path);
}

static void pass_on(struct cycle *c)
{
	struct pollfd p[2] = {{c->ends[1], POLLIN, 0}, {c->ends[2], POLLIN, 0}};
	char text[4096];

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, 2, 30000) <= 0) {
			fprintf(stderr, "ckpt_cycle: nothing heard for 30 s\n");
			exit(2);
		}
		for (int i = 0; i < 2; i++) {
			ssize_t n = p[i].revents ? read(p[i].fd, text, sizeof(text)) : 1;

			if (p[i].revents && n > 0)
				io_write_full(i + 1, text, (size_t)n);
			if (n <= 0)
				p[i].fd = -1;
		}
	}
}

static int await_exit(struct cycle *c)
{
	struct world_exit x;
	struct err e = {0};

	pass_on(c);
	for (;;) {
		struct pollfd p = {c->tw.world.init_sock, POLLIN, 0};

		if (poll(&p, 1, 10000) <= 0) {
			fprintf(stderr, "ckpt_cycle: the program does not end\n");
			return 2;
		}
		if (world_next_exit(&c->tw.world, &x, &e) < 0)
			die(&e, "exit");
		if (x.vpid == c->vpid)
			break;
	}
	SAY("the program ended with status %x\n", x.status);
	return WIFEXITED(x.status) ? WEXITSTATUS(x.status) : 128 + WTERMSIG(x.status);
}

static int run(struct cycle *c, char **argv)
{
	if (options.outside)
		outsidenet_make(&c->out);
	make_world(c);
	if (options.outside)
		outsidenet_hold(&c->out, false);
	start(c, argv);
	await_ready(c);
	for (int i = 0; i < options.times; i++) {
		dump(c);
		if (options.snapshot) {
			go(c);
			if (await_exit(c) != 0)
				return 1;
			no_go(c);
			if (options.outside)
				return 0;
		}
		testworld_end(&c->tw);
		make_world(c);
		if (options.mutate)
			mutate(c);
		restore(c);
		if (options.mutate)
			return 0;
	}
	go(c);
	return await_exit(c);
}

int main(int argc, char **argv)
{
	struct cycle c = {.dir = "/tmp/ckpt_cycle-XXXXXX"};
	struct err e = {0};
	int opt, r;

	while ((opt = getopt(argc, argv, "+n:m:w:solkv")) != -1) {
		switch (opt) {
		case 'n':
			options.times = atoi(optarg);
			break;
		case 'm':
			options.mutate = true;
			options.seed = (unsigned)atoi(optarg);
			break;
		case 's':
			options.snapshot = true;
			break;
		case 'o':
			options.outside = true;
			break;
		case 'w':
			options.waiting = atoi(optarg);
			break;
		case 'l':
			options.lost = true;
			break;
		case 'k':
			options.keep = true;
			break;
		case 'v':
			options.verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (optind == argc || !mkdtemp(c.dir))
		return 2;
	log_init(2, "cycle");
	snprintf(c.files, sizeof(c.files), "%s/files", c.dir);
	snprintf(c.image, sizeof(c.image), "%s/image", c.dir);
	mkdir(c.files, 0700);
	if (proto_key_open(&c.key, c.dir, &e) < 0)
		die(&e, "key");
	r = run(&c, argv + optind);
	testworld_end(&c.tw);
	if (options.keep)
		fprintf(stderr, "ckpt_cycle: %s\n", c.dir);
	else
		io_rm_rf(AT_FDCWD, c.dir);
	return r;
}

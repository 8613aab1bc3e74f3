// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in worker/dump.h. */
#include "supervisor/worker/dump.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/message.h"
#include "supervisor/worker/begin.h"

#define ARENAS 4

struct dump {
	struct proto_conn *conn;
	/* memory is being copied ahead: into what will be the image */
	struct ckpt_ahead *ahead;
	struct proto_writer *out;
	struct proto_key *key;
	struct ckpt_base *base; /* an earlier image, or NULL */
	int image;
	const char *note;
	const struct worker_dump *what;
	struct ckpt_dump *frozen;
	bool bound; /* its tasks end with us (ckpt_bind) */
	struct ckpt_report report;
	uint64_t began;
	struct proto_warm *warm; /* for `out`, or NULL */
};

/* What is beneath a volume comes with the volume. */
static int write_tree(const struct dump *d, const Pb__Config *c, int files,
	struct proto_writer *out, struct err *e)
{
	_cleanup_free_ char **volumes = calloc(c->n_binds + 1, sizeof(*volumes));

	if (!volumes)
		return err_errno(e, -ENOMEM, "volumes");
	for (size_t i = 0; i < c->n_binds; i++)
		volumes[i] = c->binds[i]->target;
	return ckpt_tree_write_all(files, d->frozen, volumes, c->n_binds, out, e);
}

/* A root inside may have changed it. */
static int note_host_name(const struct dump *d, Pb__Config *c, struct err *e)
{
	char name[CKPT_HOST_NAME], *copy;
	int r = c->as_root ? ckpt_host_name(&d->what->world, name, e) : 0;

	if (r < 0 || !c->as_root || strcmp(name, c->hostname) == 0)
		return r;
	copy = strdup(name);
	if (!copy)
		return err_errno(e, -ENOMEM, "host name");
	if (c->hostname != protobuf_c_empty_string)
		free(c->hostname);
	c->hostname = copy;
	return 0;
}

static int write_front(const struct dump *d, struct proto_writer *out, const Pb__WriteRequest *req,
	int files, struct err *e)
{
	const ProtobufCMessage *bodies[] = {&req->config->base, &req->world->base};
	static const enum proto_kind kinds[] = {PROTO_KIND_CONFIG, PROTO_KIND_WORLD};
	int r = note_host_name(d, req->config, e);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++) {
		size_t len = protobuf_c_message_get_packed_size(bodies[i]);
		_cleanup_free_ uint8_t *data = malloc(len + 1);

		if (!data)
			return err_errno(e, -ENOMEM, "record");
		protobuf_c_message_pack(bodies[i], data);
		r = proto_write_record(out, kinds[i], 0, data, len, e);
	}
	if (r == 0 && req->with_files)
		return write_tree(d, req->config, files, out, e);
	return r < 0 ? r : ckpt_tree_write(files, d->frozen, out, e);
}

/* The end of the stream, its signature, and all of it on the disk. */
static int finish(struct dump *d, int fd, struct proto_writer *out, struct err *e)
{
	uint64_t then = io_now_ns();
	int r = proto_writer_finish(out, &d->report.bytes, e);

	if (r == 0)
		r = fault_at(FAULT_WRITE_FINISH, e);
	if (r < 0)
		return r;
	/* A pipe or a socket can't be synced, and need not be. */
	if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
		return err_errno(e, -errno, "cannot sync the image");
	ckpt_report_stage(&d->report, "finish", then);
	return fault_at(FAULT_WRITE_SYNC, e);
}

struct finishing {
	struct dump *d;
	int fd, r;
	struct proto_writer *out;
	struct err *e;
};

static void finish_later(void *arg)
{
	struct finishing *f = arg;

	f->r = finish(f->d, f->fd, f->out, f->e);
}

/* The session runs. */
static int finish_meanwhile(struct dump *d, int fd, struct proto_writer *out, struct err *e)
{
	struct finishing f = {.d = d, .fd = fd, .out = out, .e = e};

	ckpt_meanwhile(&d->what->options, finish_later, &f);
	return f.r;
}

static int thaw(struct dump *d, struct err *e)
{
	int r = ckpt_thaw(take_ptr(d->frozen), e);

	if (r < 0)
		return r;
	if (!d->report.frozen_ns)
		d->report.frozen_ns = io_now_ns() - d->began;
	return fault_at(FAULT_WRITE_THAW, e);
}

static void put_aside(const struct dump *d, struct proto_writer *out)
{
	size_t size;
	void *pages = ckpt_dump_room(d->frozen, &size);

	proto_writer_put_aside(out, pages, size);
}

/* Is it no file? */
static bool is_read_meanwhile(int image)
{
	struct stat st;

	return fstat(image, &st) == 0 && !S_ISREG(st.st_mode);
}

/* Everything between "frozen" and "written".  @fds: the image, the files directory. */
static int write_image(struct dump *d, const Pb__WriteRequest *req, const int *fds,
	struct proto_writer *out, struct err *e)
{
	uint64_t then = io_now_ns(), tree;
	int r;

	/* Unless it is much, it is hashed and written when the session runs again. */
	if (req->snapshot && !req->stay)
		put_aside(d, out);
	r = d->base ? ckpt_base_write(d->base, out, e) : 0;
	if (r == 0)
		r = write_front(d, out, req, fds[1], e);
	/* Whoever reads it makes the world while the rest is written; of a snapshot nobody is waited for. */
	if (r == 0 && !req->snapshot && is_read_meanwhile(d->ahead ? d->image : fds[0]))
		r = proto_writer_settle(out, e);
	if (r == 0)
		r = fault_at(FAULT_WRITE_FRONT, e);
	if (r < 0)
		return r;
	tree = io_now_ns() - then;
	ckpt_dump_set_outside(d->frozen, (enum ckpt_outside)req->outside);
	r = ckpt_write(d->frozen, out, e);
	if (r < 0)
		return r;
	d->report = *ckpt_dump_report(d->frozen);
	ckpt_report_stage(&d->report, "tree", io_now_ns() - tree);
	if (req->snapshot && !req->stay)
		r = thaw(d, e);
	if (r == 0)
		r = (d->frozen ? finish : finish_meanwhile)(d, fds[0], out, e);
	if (r == 0 && d->frozen)
		d->report.frozen_ns = ckpt_dump_report(d->frozen)->frozen_ns;
	return r;
}

static int open_out(struct dump *d, int fd, const struct proto_write_options *how, struct err *e)
{
	struct proto_write_options o = *how;
	int r = proto_key_open(&d->key, d->what->config_dir, e);

	o.key = d->key;
	o.warm = d->warm;
	return r == 0 ? proto_writer_open(&d->out, fd, &o, e) : r;
}

static void close_out(struct dump *d)
{
	proto_writer_close(take_ptr(d->out));
	proto_key_close(take_ptr(d->key));
}

static void add_ahead(const struct dump *d, struct ckpt_report *r)
{
	r->note = d->note;
	if (d->ahead)
		ckpt_ahead_sum(d->ahead, &r->rounds, &r->ahead, &r->tracker);
}

static void do_write(struct dump *d, const Pb__WriteRequest *req, const int *fds, size_t n_fds)
{
	struct proto_write_options o = {
		.zstd_level = req->zstd_level, .copy = req->snapshot, .hold_last = req->hold_last};
	struct err e = {0};
	uint8_t id[16] = {0}, held = 0;
	int r;

	if (n_fds != 2 || !req->config || !req->world) {
		r = err_set(&e, ERR_FAILED, -EBADMSG, "nonsense from the supervisor");
	} else {
		r = fault_at(FAULT_WRITE_BEGIN, &e);
		if (r == 0 && !d->out)
			r = open_out(d, fds[0], &o, &e);
		if (r == 0)
			proto_writer_id(d->out, id);
		if (r == 0)
			r = write_image(d, req, fds, d->out, &e);
	}
	if (r == 0)
		held = proto_writer_held(d->out);
	add_ahead(d, &d->report);
	if (r < 0)
		worker_reply_failure(d->conn, &e);
	else
		worker_reply_report(d->conn, PB__WORKER__BODY_WRITTEN, &d->report, id,
			req->hold_last ? &held : NULL);
	close_out(d);
	/* whoever reads the stream shall see its end */
	d->image = close_fd(d->image);
}

/* ---- ahead --------------------------------------------------------------------------------- */

static void tell_progress(void *ctx, const struct ckpt_ahead_progress *p)
{
	struct dump *d = ctx;
	Pb__Progress m = PB__PROGRESS__INIT;

	m.round = p->round;
	m.done = p->done;
	m.all = p->all;
	m.rate = p->rate;
	m.dirty = p->dirty;
	worker_reply(d->conn, PB__WORKER__BODY_PROGRESS, &m.base);
}

static int copy_ahead(struct dump *d, const Pb__Ahead *req, struct err *e)
{
	const Pb__Live *live = req->live;
	struct ckpt_ahead_options o = {.tracker = live->tracker,
		.rounds = live->rounds,
		.seconds = live->seconds,
		.rest = live->rest,
		.force = live->force,
		.progress = tell_progress,
		.ctx = d};
	int r = fault_at(FAULT_AHEAD_BEGIN, e);

	if (r == 0)
		r = open_out(d, d->image,
			&(struct proto_write_options){.zstd_level = req->zstd_level}, e);
	if (r == 0)
		r = ckpt_ahead_copy(&d->ahead, &d->what->world, &d->what->options, &o, d->out, e);
	if (r != -EOPNOTSUPP || *live->tracker)
		return r;
	d->note =
		"it was copied while it stood still: this host can't tell which memory was written to";
	*e = (struct err){0};
	return 0;
}

/* True when it is to be frozen. */
static bool do_ahead(struct dump *d)
{
	int fds[MESSAGE_MAX_FDS];
	struct err e = {0};
	Pb__Worker *m;
	bool go = false;
	size_t n = 0;

	if (message_recv_worker(d->conn, &m, fds, MESSAGE_MAX_FDS, &n, &e) != 1)
		return false;
	if (m->body_case == PB__WORKER__BODY_AHEAD && n == 1 && m->ahead->live) {
		d->image = take_fd(&fds[0]);
		go = copy_ahead(d, m->ahead, &e) == 0;
	} else {
		err_set(&e, ERR_FAILED, -EBADMSG, "nonsense from the supervisor");
	}
	message_free_worker(m);
	while (n)
		close_fd(fds[--n]);
	if (!go) {
		worker_reply_failure(d->conn, &e);
		return false;
	}
	worker_reply(d->conn, PB__WORKER__BODY_READY, NULL);
	if (message_recv_worker(d->conn, &m, fds, MESSAGE_MAX_FDS, &n, &e) != 1)
		return false;
	go = m->body_case == PB__WORKER__BODY_FREEZE;
	message_free_worker(m);
	return go;
}

static void unbind(struct dump *d)
{
	struct err e = {0};

	if (d->bound && ckpt_bind(d->frozen, false, &e) < 0)
		log_warn("%s", e.msg);
	d->bound = false;
}

static void do_thaw(struct dump *d)
{
	struct err e = {0};

	unbind(d);
	if (ckpt_thaw(take_ptr(d->frozen), &e) < 0)
		worker_reply_failure(d->conn, &e);
	else
		worker_reply(d->conn, PB__WORKER__BODY_THAWED, NULL);
}

/*
 * The end of a suspended session: pid 1 is killed while everything is frozen, then the rest, which
 * never runs again.  As their tracer we reap them first.
 */
static void end_frozen(struct dump *d)
{
	int status;
	pid_t pid;

	if (d->frozen)
		ckpt_let_go(d->frozen);
	sys_pidfd_send_signal(d->what->world.init_pidfd, SIGKILL);
	fault_at(FAULT_END_KILLED, NULL);
	if (d->frozen)
		ckpt_kill(d->frozen);
	while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR)
		if (pid > 0 && WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_EXIT)
			ptrace(PTRACE_CONT, pid, 0, 0);
	if (d->frozen)
		ckpt_leave(d->frozen);
}

static void do_end(struct dump *d)
{
	fault_at(FAULT_END_BEGIN, NULL);
	end_frozen(d);
	worker_reply(d->conn, PB__WORKER__BODY_ENDED, NULL);
	_exit(0);
}

/* A worker that is killed lets its tasks run on. */
static void do_bind(struct dump *d)
{
	struct err e = {0};

	d->bound = true;
	if (ckpt_bind(d->frozen, true, &e) < 0)
		worker_reply_failure(d->conn, &e);
	else
		worker_reply(d->conn, PB__WORKER__BODY_BOUND, NULL);
}

/* Until the session runs again; its end is the worker's. */
static void dump_loop(struct dump *d)
{
	int fds[MESSAGE_MAX_FDS];
	struct err e = {0};
	Pb__Worker *m;
	size_t n;

	while (d->frozen && message_recv_worker(d->conn, &m, fds, MESSAGE_MAX_FDS, &n, &e) == 1) {
		switch (m->body_case) {
		case PB__WORKER__BODY_WRITE:
			do_write(d, m->write, fds, n);
			break;
		case PB__WORKER__BODY_BIND:
			do_bind(d);
			break;
		case PB__WORKER__BODY_UNBIND:
			unbind(d);
			break;
		case PB__WORKER__BODY_END:
			do_end(d);
			break;
		default:
			do_thaw(d);
			break;
		}
		message_free_worker(m);
		while (n)
			close_fd(fds[--n]);
	}
	if (!d->frozen)
		return;
	/* The supervisor is dead, and with it the session.  It does not run again for a moment: the
	 * image may be whole already. */
	end_frozen(d);
	_exit(1);
}

/* What the image will be about as large as; proto_warm_begin's. */
static size_t expect_bytes(void *ctx)
{
	const struct ckpt_world *w = ctx;
	_cleanup_free_ int *pids = NULL;
	size_t n = 0, sum = w->vnet ? PROTO_LONG_DATA : 0; /* what is on its way over TCP */

	/* without a pid namespace it is not so easily told who is of the session */
	if (w->names || proc_list_numbers(w->proc_fd, ".", &pids, &n, NULL) < 0)
		return sum;
	for (size_t i = 0; i < n; i++)
		sum += (size_t)MAX(proc_own_memory(w->proc_fd, pids[i]), 0);
	return sum;
}

static void tell_thawed(void *ctx)
{
	worker_reply(((struct dump *)ctx)->conn, PB__WORKER__BODY_THAWED, NULL);
}

static void end_ahead(struct dump *d)
{
	ckpt_ahead_free(take_ptr(d->ahead));
	ckpt_base_free(take_ptr(d->base));
	close_out(d);
	proto_warm_end(take_ptr(d->warm));
	d->image = close_fd(d->image);
}

/* ckpt_dump_options.hold: the supervisor has the line to whoever carries the packets. */
static int hold_packets(void *ctx, enum ckpt_packets what, struct err *e)
{
	struct dump *d = ctx;
	int fds[MESSAGE_MAX_FDS], r = 0;
	Pb__Worker *m;
	size_t n;

	if (what != CKPT_PACKETS_HELD) {
		worker_reply(d->conn,
			what == CKPT_PACKETS_HOLD ? PB__WORKER__BODY_HOLD : PB__WORKER__BODY_PASS, NULL);
		return 0;
	}
	if (message_recv_worker(d->conn, &m, fds, MESSAGE_MAX_FDS, &n, e) != 1)
		return err_set(e, ERR_FAILED, -EPIPE, "the supervisor gave up");
	if (m->body_case != PB__WORKER__BODY_HOLDING)
		r = err_set(e, ERR_FAILED, -EPIPE, "the supervisor gave up");
	else if (m->holding->failure)
		r = message_to_err(m->holding->failure, e);
	message_free_worker(m);
	while (n)
		close_fd(fds[--n]);
	return r;
}

/* An image that can't be referred to is no misfortune: the new one is whole in itself. */
static void open_base(struct dump *d)
{
	struct err e = {0};

	if (ckpt_base_open(&d->base, d->what->images, d->what->older, &e) < 0)
		log_info("the snapshot refers to no other: %s", e.msg);
}

/* True if it could be frozen, and runs again. */
static bool dump_all(struct proto_conn *conn, const struct worker_dump *what)
{
	struct ckpt_dump_options options = what->options;
	struct dump d = {.conn = conn, .what = what, .began = io_now_ns(), .image = -1};
	struct err e = {0};

	/* while the session still runs */
	proto_prepare();
	if (!what->options.snapshot)
		d.warm = proto_warm_begin(expect_bytes, (void *)&what->world);
	if (what->ahead && !do_ahead(&d)) {
		end_ahead(&d);
		return false;
	}
	if (what->images >= 0)
		open_base(&d);
	options.ahead = d.ahead;
	options.base = d.base;
	d.began = io_now_ns();
	options.thawed = tell_thawed;
	options.thawed_ctx = &d;
	options.hold = what->world.vnet ? hold_packets : NULL;
	options.hold_ctx = &d;
	if (fault_at(FAULT_FREEZE_BEGIN, &e) < 0 ||
		ckpt_freeze(&d.frozen, &what->world, &options, &e) < 0) {
		worker_reply_failure(d.conn, &e);
		end_ahead(&d);
		return false;
	}
	worker_reply(d.conn, PB__WORKER__BODY_FROZEN, NULL);
	dump_loop(&d);
	end_ahead(&d);
	return true;
}

void worker_main_dump(int sock, const void *arg)
{
	const struct worker_dump *what = arg;
	const int fds[] = {what->listener, what->images};

	/* The supervisor has one thread; here two wait for each other at every allocation. */
	mallopt(M_ARENA_MAX, ARENAS);
	_exit(dump_all(worker_begin(sock, &what->world, fds, 2, "podrun-freeze"), what) ? 0 : 1);
}

void worker_dump_here(int sock, const struct worker_dump *what)
{
	struct proto_conn *conn;
	struct err e = {0};

	if (proto_conn_new(&conn, sock, &e) < 0) {
		close(sock);
		return;
	}
	dump_all(conn, what);
	proto_conn_free(conn);
}

void worker_main_mend(int sock, const void *arg)
{
	const struct worker_dump *what = arg;
	struct err e = {0};

	worker_begin(sock, &what->world, &what->listener, 1, "podrun-mend");
	if (ckpt_mend(&what->world, &what->options, &e) < 0)
		log_warn("%s", e.msg);
	_exit(0);
}

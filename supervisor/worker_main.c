// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A worker begins as a copy of the supervisor.  It first closes every descriptor that is not in
 * its struct, or a client's connection would stay open as long as the worker lives.  Then it is an
 * ordinary, blocking program: do one step, answer, wait for what to do next.  The supervisor's death
 * is an end of file on the socket: a session dies with it, so what is frozen is ended, and what is
 * being rebuilt is undone.
 */
#include "supervisor/worker_main.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/ledger.h"
#include "supervisor/message.h"

#define MAX_KEEP 4096

void worker_ns_slots(struct ckpt_world *w, int *ret_slots[WORKER_N_NS])
{
	ret_slots[0] = &w->ns_user;
	ret_slots[1] = &w->ns_pid;
	ret_slots[2] = &w->ns_mnt;
	ret_slots[3] = &w->ns_net;
	ret_slots[4] = &w->ns_ipc;
	ret_slots[5] = &w->ns_uts;
	ret_slots[6] = &w->ns_time;
}

struct keep {
	int fds[MAX_KEEP];
	size_t n;
};

static void keep_fd(struct keep *k, int fd)
{
	if (fd >= 0 && k->n < MAX_KEEP)
		k->fds[k->n++] = fd;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes all descriptors above 2 that are not in @k. */
static void close_others(struct keep *k)
{
	unsigned from = 3;

	sort_array(k->fds, k->n, sizeof(k->fds[0]), by_number);
	for (size_t i = 0; i < k->n; i++) {
		if (k->fds[i] < (int)from)
			continue;
		if (k->fds[i] > (int)from)
			close_range(from, (unsigned)k->fds[i] - 1, 0);
		from = (unsigned)k->fds[i] + 1;
	}
	close_range(from, ~0u, 0);
}

static void keep_world(struct keep *k, const struct ckpt_world *world)
{
	struct ckpt_world w = *world;
	int *slots[WORKER_N_NS];

	keep_fd(k, w.init_pidfd);
	keep_fd(k, w.root_fd);
	keep_fd(k, w.proc_fd);
	worker_ns_slots(&w, slots);
	for (int i = 0; i < WORKER_N_NS; i++)
		keep_fd(k, *slots[i]);
	for (size_t i = 0; i < w.n_edges; i++)
		keep_fd(k, w.edges[i].fd);
}

struct proto_conn *worker_begin(
	int sock, const struct ckpt_world *w, const int *fds, size_t n_fds, const char *name)
{
	struct keep *keep = calloc(1, sizeof(*keep));
	struct proto_conn *conn;
	struct err e = {0};

	if (!keep)
		_exit(1);
	if (w)
		keep_world(keep, w);
	for (size_t i = 0; i < n_fds; i++)
		keep_fd(keep, fds[i]);
	keep_fd(keep, sock);
	close_others(keep);
	free(keep);
	signal(SIGTERM, SIG_DFL);
	fault_in_worker();
	prctl(PR_SET_NAME, name);
	if (proto_conn_new(&conn, sock, &e) < 0)
		_exit(1);
	return conn;
}

static void reply(struct proto_conn *conn, Pb__Worker__BodyCase what, ProtobufCMessage *body)
{
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;
	struct err e = {0};

	m.body_case = what;
	/* All members of the union are pointers to messages. */
	m.frozen = body ? (Pb__Empty *)body : &empty;
	if (message_send_worker(conn, &m, NULL, 0, &e) < 0)
		log_warn("worker: %s", e.msg);
}

static void reply_failure(struct proto_conn *conn, const struct err *e)
{
	Pb__Failure f;

	message_of_err(&f, e);
	reply(conn, PB__WORKER__BODY_FAILURE, &f.base);
}

static void reply_report(struct proto_conn *conn, Pb__Worker__BodyCase what,
	const struct ckpt_report *report, const uint8_t *image_id, const uint8_t *held)
{
	struct message_report scratch;
	Pb__Report r;

	message_of_report(&r, report, &scratch);
	if (held) {
		r.held.data = (uint8_t *)held;
		r.held.len = 1;
	}
	if (image_id) {
		r.image_id.data = (uint8_t *)image_id;
		r.image_id.len = 16;
	}
	reply(conn, what, &r.base);
}

/* ---- dump --------------------------------------------------------------------------------- */

struct dump {
	struct proto_conn *conn;
	const struct worker_dump *what;
	struct ckpt_dump *frozen;
	struct ckpt_report report;
	uint64_t began;
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

static int write_front(const struct dump *d, struct proto_writer *out, const Pb__WriteRequest *req,
	int files, struct err *e)
{
	const ProtobufCMessage *bodies[] = {&req->config->base, &req->world->base};
	static const enum proto_kind kinds[] = {PROTO_KIND_CONFIG, PROTO_KIND_WORLD};
	int r = 0;

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
	return r < 0 ? r : ckpt_tree_write(files, out, e);
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

static int thaw(struct dump *d, struct err *e)
{
	int r = ckpt_thaw(take_ptr(d->frozen), e);

	if (r < 0)
		return r;
	if (!d->report.frozen_ns)
		d->report.frozen_ns = io_now_ns() - d->began;
	return fault_at(FAULT_WRITE_THAW, e);
}

/* Everything between "frozen" and "written".  @fds: the image, the files directory. */
static int write_image(struct dump *d, const Pb__WriteRequest *req, const int *fds,
	struct proto_writer *out, struct err *e)
{
	uint64_t then = io_now_ns(), tree;
	int r = write_front(d, out, req, fds[1], e);

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
		r = finish(d, fds[0], out, e);
	if (r == 0 && d->frozen)
		d->report.frozen_ns = ckpt_dump_report(d->frozen)->frozen_ns;
	return r;
}

static void do_write(struct dump *d, const Pb__WriteRequest *req, const int *fds, size_t n_fds)
{
	struct proto_write_options o = {
		.zstd_level = req->zstd_level, .copy = req->snapshot, .hold_last = req->hold_last};
	struct proto_writer *out = NULL;
	struct proto_key *key = NULL;
	struct err e = {0};
	uint8_t id[16] = {0}, held = 0;
	int r;

	if (n_fds != 2 || !req->config || !req->world) {
		r = err_set(&e, ERR_FAILED, -EBADMSG, "nonsense from the supervisor");
	} else {
		r = fault_at(FAULT_WRITE_BEGIN, &e);
		if (r == 0)
			r = proto_key_open(&key, d->what->config_dir, &e);
		o.key = key;
		if (r == 0)
			r = proto_writer_open(&out, fds[0], &o, &e);
		if (r == 0)
			proto_writer_id(out, id);
		if (r == 0)
			r = write_image(d, req, fds, out, &e);
	}
	if (r == 0)
		held = proto_writer_held(out);
	if (r < 0)
		reply_failure(d->conn, &e);
	else
		reply_report(d->conn, PB__WORKER__BODY_WRITTEN, &d->report, id,
			req->hold_last ? &held : NULL);
	proto_writer_close(out);
	proto_key_close(key);
}

static void do_thaw(struct dump *d)
{
	struct err e = {0};

	if (ckpt_thaw(take_ptr(d->frozen), &e) < 0)
		reply_failure(d->conn, &e);
	else
		reply(d->conn, PB__WORKER__BODY_THAWED, NULL);
}

/*
 * The end of a suspended session: pid 1 is killed while everything is frozen, then the rest, which
 * never runs again.  As their tracer we reap them first.
 */
static void end_frozen(struct dump *d)
{
	int status;
	pid_t pid;

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
	reply(d->conn, PB__WORKER__BODY_ENDED, NULL);
	_exit(0);
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

static void tell_thawed(void *ctx)
{
	reply(((struct dump *)ctx)->conn, PB__WORKER__BODY_THAWED, NULL);
}

/* True if it could be frozen, and runs again. */
static bool dump_all(struct proto_conn *conn, const struct worker_dump *what)
{
	struct ckpt_dump_options options = what->options;
	struct dump d = {.conn = conn, .what = what, .began = io_now_ns()};
	struct err e = {0};

	proto_prepare(); /* while the session still runs */
	options.thawed = tell_thawed;
	options.thawed_ctx = &d;
	if (fault_at(FAULT_FREEZE_BEGIN, &e) < 0 ||
		ckpt_freeze(&d.frozen, &what->world, &options, &e) < 0) {
		reply_failure(d.conn, &e);
		return false;
	}
	reply(d.conn, PB__WORKER__BODY_FROZEN, NULL);
	dump_loop(&d);
	return true;
}

void worker_main_dump(int sock, const void *arg)
{
	const struct worker_dump *what = arg;

	_exit(dump_all(worker_begin(sock, &what->world, &what->listener, 1, "podrun-freeze"), what)
			? 0
			: 1);
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

/* ---- restore ------------------------------------------------------------------------------ */

struct restore {
	struct proto_conn *conn;
	struct proto_reader *in;
	struct ckpt_world world;
	struct ledger_claimant claimant;
};

/* Receives the one message the supervisor is due to send; anything else ends the worker. */
static Pb__Worker *expect(struct restore *r, Pb__Worker__BodyCase what, int *fds, size_t *ret_n)
{
	struct err e = {0};
	Pb__Worker *m;

	if (message_recv_worker(r->conn, &m, fds, MESSAGE_MAX_FDS, ret_n, &e) != 1)
		return NULL;
	if (m->body_case == what)
		return m;
	message_free_worker(m);
	return NULL;
}

static int ask_seed(void *ctx, pid_t vpid, pid_t *ret_pid, struct err *e)
{
	struct restore *r = ctx;
	Pb__Seed seed = PB__SEED__INIT;
	int fds[MESSAGE_MAX_FDS], error = 0;
	Pb__Worker *m;
	size_t n;

	seed.vpid = vpid;
	reply(r->conn, PB__WORKER__BODY_SEED, &seed.base);
	m = expect(r, PB__WORKER__BODY_SEEDED, fds, &n);
	if (!m)
		return err_set(e, ERR_FAILED, -EPIPE, "the supervisor is gone");
	if (m->seeded->failure)
		error = message_to_err(m->seeded->failure, e);
	else
		*ret_pid = m->seeded->pid;
	message_free_worker(m);
	return error;
}

static int give_edge(void *ctx, const char *name, int fd, struct err *e)
{
	struct restore *r = ctx;
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Edge edge = PB__EDGE__INIT;
	int error;

	edge.name = (char *)name;
	m.body_case = PB__WORKER__BODY_EDGE;
	m.edge = &edge;
	error = message_send_worker(r->conn, &m, &fd, 1, e);
	return error < 0 ? error : 0;
}

/* In a file, for it may be larger than a message. */
static int give_filters(void *ctx, const void *record, size_t len, struct err *e)
{
	struct restore *r = ctx;
	_cleanup_close_ int fd = memfd_create("podrun-filters", MFD_CLOEXEC);
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;
	int error = fd < 0 ? -errno : io_write_full(fd, record, len);

	if (error < 0)
		return err_errno(e, error, "filters");
	m.body_case = PB__WORKER__BODY_FILTERS;
	m.filters = &empty;
	error = message_send_worker(r->conn, &m, &fd, 1, e);
	return MIN(error, 0);
}

/* The record that must come next, as a copy in @b. */
static int read_front(struct proto_reader *in, enum proto_kind kind, struct buf *b, struct err *e)
{
	struct proto_frame f;
	int r = proto_read(in, &f, e);

	if (r < 0)
		return r;
	if (f.type != PROTO_RECORD || f.kind != kind)
		return err_set(e, ERR_IMAGE, -EBADMSG, "the image does not begin like a session");
	buf_put(b, f.data, f.len);
	return buf_error(b) < 0 ? err_errno(e, -ENOMEM, "image") : 0;
}

static int send_front(struct restore *r, struct err *e)
{
	_cleanup_buf_ struct buf config = BUF_INIT, world = BUF_INIT;
	Pb__ImageInfo m = PB__IMAGE_INFO__INIT;
	struct proto_image_info info;
	int error = read_front(r->in, PROTO_KIND_CONFIG, &config, e);

	if (error == 0)
		error = read_front(r->in, PROTO_KIND_WORLD, &world, e);
	if (error < 0)
		return error;
	proto_reader_info(r->in, &info);
	m.image_id.data = info.image_id;
	m.image_id.len = sizeof(info.image_id);
	m.copy = info.copy;
	m.signer.data = info.signer;
	m.signer.len = sizeof(info.signer);
	m.config.data = config.data;
	m.config.len = config.len;
	m.world.data = world.data;
	m.world.len = world.len;
	reply(r->conn, PB__WORKER__BODY_IMAGE, &m.base);
	return 0;
}

/* Takes the ways into the new world from the supervisor's message. */
static int take_world(struct restore *r, struct err *e)
{
	int fds[MESSAGE_MAX_FDS], *slots[WORKER_N_NS];
	struct ckpt_world *w = &r->world;
	size_t n, next = 3;
	Pb__Worker *m = expect(r, PB__WORKER__BODY_WORLD, fds, &n);

	if (!m || n < next)
		return err_set(e, ERR_FAILED, -EPIPE, "the supervisor gave up");
	w->name = strdup(m->world->name);
	w->init_pid = m->world->init_pid;
	w->uid = m->world->uid;
	w->gid = m->world->gid;
	w->init_pidfd = fds[0];
	w->root_fd = fds[1];
	w->proc_fd = fds[2];
	worker_ns_slots(w, slots);
	for (int i = 0; i < WORKER_N_NS; i++)
		*slots[i] = m->world->namespaces & 1u << i && next < n ? fds[next++] : -1;
	w->seed = ask_seed;
	w->edge = give_edge;
	w->filters = give_filters;
	w->ctx = r;
	message_free_worker(m);
	return 0;
}

static int unpack(struct restore *r, struct err *e)
{
	int fds[MESSAGE_MAX_FDS];
	size_t n;
	Pb__Worker *m = expect(r, PB__WORKER__BODY_UNPACK, fds, &n);

	if (!m || n != 1)
		return err_set(e, ERR_FAILED, -EPIPE, "the supervisor gave up");
	message_free_worker(m);
	if (ckpt_tree_read(fds[0], r->in, e) < 0) {
		err_wrap(e, "the session's own files");
		return err_blame_image(e);
	}
	close(fds[0]);
	if (fault_at(FAULT_RESTORE_UNPACK, e) < 0)
		return e->error;
	reply(r->conn, PB__WORKER__BODY_UNPACKED, NULL);
	return 0;
}

/* NULL when it is not to be released after all. */
static Pb__Worker *await_release(struct restore *r)
{
	int fds[MESSAGE_MAX_FDS];
	struct err e = {0};
	Pb__Worker *m;
	size_t n;

	while (message_recv_worker(r->conn, &m, fds, MESSAGE_MAX_FDS, &n, &e) == 1) {
		if (m->body_case == PB__WORKER__BODY_RELEASE)
			return m;
		if (m->body_case == PB__WORKER__BODY_TAKE)
			proto_reader_take(r->in);
		message_free_worker(m);
	}
	return NULL;
}

/*
 * The last step before something runs: from here on the image is used up.  0 only while the supervisor, and
 * with it the session, lives.
 */
static int confirm(
	struct restore *r, const struct worker_restore *what, bool claimed, struct err *e)
{
	struct proto_image_info info;

	if (getppid() != what->supervisor)
		return err_set(e, ERR_FAILED, -EPIPE, "the supervisor is gone");
	if (!claimed)
		return 0;
	proto_reader_info(r->in, &info);
	return ledger_confirm(&r->claimant, info.image_id, e);
}

/* The first look at the image: what will be mapped from it is told before the world is made. */
static void look_ahead(
	struct restore *r, const struct worker_restore *what, struct ckpt_mapped *ret)
{
	uint64_t bounds[2 * CKPT_MAX_MAPPED];
	Pb__Watch m = PB__WATCH__INIT;
	struct err e = {0};

	if (ckpt_mapped_survey(ret, what->image, what->map, &e) < 0) {
		ret->n = 0; /* who reads it all says what is wrong with it */
		return;
	}
	for (size_t i = 0; i < ret->n; i++) {
		bounds[2 * i] = ret->ranges[i].start;
		bounds[2 * i + 1] = ret->ranges[i].end;
	}
	m.bounds = bounds;
	m.n_bounds = 2 * ret->n;
	m.cookie = ret->cookie;
	reply(r->conn, PB__WORKER__BODY_WATCH, &m.base);
}

static void tell_pieces(struct restore *r, const struct ckpt_build *b)
{
	Pb__Data m = PB__DATA__INIT;
	size_t n;

	m.data.data = (uint8_t *)ckpt_build_pieces(b, &n);
	m.data.len = n * sizeof(struct ckpt_piece);
	reply(r->conn, PB__WORKER__BODY_PIECES, &m.base);
}

static int rebuild(struct restore *r, const struct worker_restore *what, struct err *e)
{
	struct proto_read_options o = {.config_dir = what->config_dir,
		.also_trust = what->also_trust,
		.skip_digests = what->skip_digests};
	struct ckpt_restore_options options = {.paused = true, .going = what->going};
	struct ckpt_mapped mapped = {0};
	struct ckpt_build *build = NULL;
	Pb__Worker *m;
	int error;

	if (what->map)
		look_ahead(r, what, &mapped);
	o.leave_long = mapped.n ? PROTO_KIND_MM : 0;
	options.mapped = mapped.n ? &mapped : NULL;
	error = fault_at(FAULT_RESTORE_BEGIN, e);
	if (error == 0)
		error = ledger_claimant_open(&r->claimant, what->state_dir, what->supervisor, e);
	if (error == 0)
		error = proto_reader_open(&r->in, what->image, &o, e);
	if (error == 0)
		error = send_front(r, e);
	if (error == 0)
		error = fault_at(FAULT_RESTORE_FRONT, e);
	if (error == 0)
		error = unpack(r, e);
	if (error == 0)
		error = take_world(r, e);
	if (error == 0 && ckpt_restore(&build, &r->world, r->in, &options, e) < 0)
		error = err_blame_image(e);
	if (error < 0)
		return error;
	tell_pieces(r, build);
	reply_report(r->conn, PB__WORKER__BODY_RESTORED, ckpt_build_report(build), NULL, NULL);
	m = await_release(r);
	if (!m) {
		ckpt_restore_undo(build);
		return err_set(e, ERR_FAILED, -ECANCELED, "undone");
	}
	error = fault_at(FAULT_RELEASE_BEGIN, e);
	if (error == 0)
		error = confirm(r, what, m->release->claimed, e);
	message_free_worker(m);
	if (error < 0)
		ckpt_restore_undo(build);
	else
		error = ckpt_restore_release(build, e);
	if (error == 0)
		reply(r->conn, PB__WORKER__BODY_RELEASED, NULL);
	return error;
}

void worker_main_restore(int sock, const void *arg)
{
	const struct worker_restore *what = arg;
	struct restore r = {0};
	struct err e = {0};

	r.conn = worker_begin(sock, NULL, &what->image, 1, "podrun-rebuild");
	if (rebuild(&r, what, &e) < 0) {
		reply_failure(r.conn, &e);
		_exit(1);
	}
	_exit(0);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A restore worker does what its name says, one message at a time (worker.h).  The supervisor's
 * death is an end of file on the socket: what is being rebuilt is undone.  Where no namespaces are
 * to be had it becomes the rewriter of the new session before it rebuilds it, and stays that.
 */
#include "supervisor/worker/main.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/disk/ledger.h"
#include "supervisor/message.h"
#include "supervisor/rewrite/rewriter.h"
#include "supervisor/worker/begin.h"
#include "supervisor/world/init.h"
#include "supervisor/world/plan.h"

/* ---- restore ------------------------------------------------------------------------------ */

struct restore {
	const struct worker_restore *what;
	int sock;
	struct rewriter *rewriter; /* that we have become, or NULL */
	struct ckpt_names names;   /* then */
	struct ckpt_paths paths;
	struct ckpt_ipc_names ipc;
	struct proto_conn *conn;
	struct proto_reader *in;
	struct ckpt_base *base; /* images it refers to, or NULL */
	struct ckpt_arrived *arrived; /* memory that came ahead of the session, or NULL */
	int arrived_image;	      /* its file, if it may be mapped */
	const uint8_t *mapped;	      /* the image, NULL if it is not known */
	size_t mapped_len;
	struct ckpt_world world;
	struct ledger_claimant claimant;
};

/* As message_recv_worker; pid 1's stops are dealt with meanwhile, where that is up to us. */
static int receive(struct restore *r, Pb__Worker **ret, int *fds, size_t *ret_n)
{
	struct err e = {0};
	int got;

	if (!r->rewriter)
		return message_recv_worker(r->conn, ret, fds, MESSAGE_MAX_FDS, ret_n, &e);
	io_set_nonblock(r->sock, true);
	while ((got = message_recv_worker(r->conn, ret, fds, MESSAGE_MAX_FDS, ret_n, &e)) == 0)
		rewriter_await(r->rewriter, r->sock);
	io_set_nonblock(r->sock, false);
	return got;
}

/* Receives the one message the supervisor is due to send; anything else ends the worker. */
static Pb__Worker *expect(struct restore *r, Pb__Worker__BodyCase what, int *fds, size_t *ret_n)
{
	Pb__Worker *m;

	if (receive(r, &m, fds, ret_n) != 1)
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
	if (r->rewriter)
		r->names.last(r->names.ctx, vpid - 1);
	worker_reply(r->conn, PB__WORKER__BODY_SEED, &seed.base);
	m = expect(r, PB__WORKER__BODY_SEEDED, fds, &n);
	if (!m)
		return err_set(e, ERR_FAILED, -EPIPE, "the supervisor is gone");
	if (m->seeded->failure)
		error = message_to_err(m->seeded->failure, e);
	else
		*ret_pid = r->rewriter ? r->names.host(r->names.ctx, vpid) : m->seeded->pid;
	message_free_worker(m);
	/* It has closed its end before its own can be waited for. */
	if (error == -ESRCH && r->rewriter)
		rewriter_await_end(r->rewriter);
	if (error == 0 && r->rewriter && rewriter_await_exec(r->rewriter, vpid) < 0)
		error = err_set(e, ERR_FAILED, -ETIMEDOUT, "the first process does not start");
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

/*
 * They are known to whoever installs more of them: the rewriter, which is us, or the supervisor.
 * In a file, for it may be larger than a message.
 */
static int give_filters(void *ctx, const void *record, size_t len, struct err *e)
{
	struct restore *r = ctx;
	_cleanup_close_ int fd = memfd_create("podrun-filters", MFD_CLOEXEC);
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;
	int error = fd < 0 ? -errno : io_write_full(fd, record, len);

	if (r->rewriter)
		return rewriter_filters(r->rewriter, record, len, e);
	if (error < 0)
		return err_errno(e, error, "filters");
	m.body_case = PB__WORKER__BODY_FILTERS;
	m.filters = &empty;
	error = message_send_worker(r->conn, &m, &fd, 1, e);
	return MIN(error, 0);
}

static int give_redo(void *ctx, const struct sockaddr *client, uint16_t port, struct err *e)
{
	struct restore *r = ctx;
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Redo redo = PB__REDO__INIT;
	int error;

	redo.client.data = (uint8_t *)client;
	redo.client.len = client->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						       : sizeof(struct sockaddr_in6);
	redo.port = port;
	m.body_case = PB__WORKER__BODY_REDO;
	m.redo = &redo;
	error = message_send_worker(r->conn, &m, NULL, 0, e);
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
	worker_reply(r->conn, PB__WORKER__BODY_IMAGE, &m.base);
	return 0;
}

/* In nobody's message: that is when the supervisor's are waited for. */
static void tell_init_end(void *ctx, int status)
{
	struct restore *r = ctx;
	struct err e = {0};

	init_say_end(&e, status);
	worker_reply_failure(r->conn, &e);
}

static int become(struct restore *r, const Pb__Become *m, const int *fds, struct err *e)
{
	struct plan plan;
	int error = plan_make(&plan, m->config, r->what->paths, m->files, e);

	if (error < 0)
		return error;
	plan.config.rewrite = true;
	plan.config.monotonic_offset_ns = m->monotonic_offset_ns;
	plan.config.boottime_offset_ns = m->boottime_offset_ns;
	error = rewriter_become(&r->rewriter, &plan.config, r->what->tables, fds, e);
	plan_fini(&plan);
	if (error < 0)
		return error;
	rewriter_on_end(r->rewriter, tell_init_end, r);
	if (rewriter_describe(r->rewriter, &r->names, &r->paths, &r->ipc))
		r->world.paths = &r->paths;
	r->world.names = &r->names;
	r->world.ipc = &r->ipc;
	r->world.clocks = (struct ckpt_clocks){m->monotonic_offset_ns, m->boottime_offset_ns};
	return 0;
}

/* The message that tells of the new world; before it we may be told to be its rewriter. */
static Pb__Worker *expect_world(struct restore *r, int *fds, size_t *ret_n, struct err *e)
{
	Pb__Worker *m;
	int error;

	if (receive(r, &m, fds, ret_n) != 1)
		return NULL;
	if (m->body_case == PB__WORKER__BODY_WORLD)
		return m;
	error = m->body_case == PB__WORKER__BODY_BECOME && *ret_n == REWRITER_N_FDS &&
				m->become->config
			? become(r, m->become, fds, e)
			: -EPROTO;
	message_free_worker(m);
	return error < 0 ? NULL : expect(r, PB__WORKER__BODY_WORLD, fds, ret_n);
}

/* Takes the ways into the new world from the supervisor's message. */
static int take_world(struct restore *r, struct err *e)
{
	int fds[MESSAGE_MAX_FDS], *slots[WORKER_N_NS];
	struct ckpt_world *w = &r->world;
	size_t n, next = 3;
	Pb__Worker *m = expect_world(r, fds, &n, e);

	if (!m && err_is(e))
		return e->error;
	if (!m || n < next)
		return err_set(e, ERR_FAILED, -EPIPE, "the supervisor gave up");
	w->name = strdup(m->world->name);
	w->init_pid = m->world->init_pid;
	w->uid = m->world->uid;
	w->gid = m->world->gid;
	w->copy = m->world->copy;
	w->vnet = m->world->vnet;
	w->vnet_lost = m->world->vnet_lost;
	w->init_pidfd = fds[0];
	w->root_fd = fds[1];
	w->proc_fd = fds[2];
	worker_ns_slots(w, slots);
	for (int i = 0; i < WORKER_N_NS; i++)
		*slots[i] = m->world->namespaces & 1u << i && next < n ? fds[next++] : -1;
	w->seed = ask_seed;
	w->edge = give_edge;
	w->filters = give_filters;
	w->redo = give_redo;
	w->ctx = r;
	message_free_worker(m);
	return 0;
}

/*
 * What the session's world stands on are directories, and a file of owners
 * (supervisor/names/owners.c): a link would lead out of its files.
 */
static int check_unpacked(int files, struct err *e)
{
	int fd = openat(files, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	struct stat st;

	if (!dir)
		return err_errno(e, -errno, "files");
	while ((d = readdir(dir)))
		if (fstatat(files, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			(!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
			return err_set(e, ERR_IMAGE, -EBADMSG,
				"'%s' is neither a directory nor a file", d->d_name);
	return 0;
}

static int unpack(struct restore *r, struct err *e)
{
	int fds[MESSAGE_MAX_FDS];
	size_t n;
	Pb__Worker *m = expect(r, PB__WORKER__BODY_UNPACK, fds, &n);
	Pb__Unpacked reply = PB__UNPACKED__INIT;
	bool changed = false, there;

	if (!m || n != 1)
		return err_set(e, ERR_FAILED, -EPIPE, "the supervisor gave up");
	there = m->unpack->there;
	message_free_worker(m);
	if (ckpt_tree_read(fds[0], r->in, there ? &changed : NULL, e) < 0 ||
		check_unpacked(fds[0], e) < 0) {
		err_wrap(e, "the session's own files");
		return err_blame_image(e);
	}
	close(fds[0]);
	if (fault_at(FAULT_RESTORE_UNPACK, e) < 0)
		return e->error;
	reply.changed = changed;
	worker_reply(r->conn, PB__WORKER__BODY_UNPACKED, &reply.base);
	return 0;
}

/* Negative when it is not to be released after all. */
static int await_release(struct restore *r, Pb__Worker **ret, struct err *e)
{
	int fds[MESSAGE_MAX_FDS];
	Pb__Worker *m;
	size_t n;

	while (receive(r, &m, fds, &n) == 1) {
		bool take = m->body_case == PB__WORKER__BODY_TAKE;

		if (m->body_case == PB__WORKER__BODY_RELEASE) {
			*ret = m;
			return 0;
		}
		message_free_worker(m);
		if (take && !proto_reader_take(r->in))
			return err_set(e, ERR_STATE, -ESTALE,
				"its suspend was given up meanwhile: it runs on where it was");
	}
	return err_set(e, ERR_FAILED, -ECANCELED, "undone");
}

/*
 * The last step before something runs: from here on the image is used up.  0 only while the
 * supervisor, and with it the session, lives.
 */
static int confirm(
	struct restore *r, const struct worker_restore *what, bool claimed, struct err *e)
{
	struct proto_image_info info;

	if (r->rewriter)
		rewriter_check_end(r->rewriter);
	if (getppid() != what->supervisor)
		return err_set(e, ERR_FAILED, -EPIPE, "the supervisor is gone");
	if (!claimed)
		return 0;
	proto_reader_info(r->in, &info);
	return ledger_confirm(&r->claimant, info.image_id, e);
}

/*
 * What will be mapped is told before the world is made.  @fd: from there, if the supervisor does
 * not have it.
 */
static int tell_watch(struct restore *r, const struct ckpt_mapped *mapped, int fd, struct err *e)
{
	uint64_t bounds[2 * CKPT_MAX_MAPPED];
	Pb__Worker w = PB__WORKER__INIT;
	Pb__Watch m = PB__WATCH__INIT;

	for (size_t i = 0; i < mapped->n; i++) {
		bounds[2 * i] = mapped->ranges[i].start;
		bounds[2 * i + 1] = mapped->ranges[i].end;
	}
	m.bounds = bounds;
	m.n_bounds = 2 * mapped->n;
	m.cookie = mapped->cookie;
	w.body_case = PB__WORKER__BODY_WATCH;
	w.watch = &m;
	return MIN(message_send_worker(r->conn, &w, &fd, fd >= 0, e), 0);
}

/* The first look at the image. */
static int look_ahead(struct restore *r, struct ckpt_mapped *ret, struct err *e)
{
	struct err ignored = {0};

	if (!r->mapped || ckpt_mapped_survey(ret, r->what->image, r->what->map, &ignored) < 0)
		ret->n = 0; /* who reads it all says what is wrong with it */
	return tell_watch(r, ret, -1, e);
}

/* All that was copied ahead has come. */
static int look_at_arrived(struct restore *r, struct ckpt_mapped *ret, struct err *e)
{
	r->arrived_image = ckpt_arrived_image(r->arrived);
	if (r->arrived_image < 0)
		return err_errno(e, r->arrived_image, "memory copied ahead");
	if (ckpt_mapped_arrived(ret, r->arrived, r->what->map, r->arrived_image) < 0)
		return err_errno(e, -ENOMEM, "memory copied ahead");
	return ret->n ? tell_watch(r, ret, r->arrived_image, e) : 0;
}

/* What comes ahead of the session, if anything does. */
static int take_arrived(struct restore *r, struct ckpt_mapped *mapped, struct err *e)
{
	int error = ckpt_arrived_read(&r->arrived, r->in, r->what->state_dir, e);

	if (error == 0 && r->arrived)
		error = fault_at(FAULT_AHEAD_ARRIVED, e);
	if (error == 0 && r->arrived && r->what->map && r->what->stream)
		error = look_at_arrived(r, mapped, e);
	return error;
}

static void tell_pieces(struct restore *r, const struct ckpt_build *b)
{
	Pb__Data m = PB__DATA__INIT;
	size_t n;

	m.data.data = (uint8_t *)ckpt_build_pieces(b, &n);
	m.data.len = n * sizeof(struct ckpt_piece);
	worker_reply(r->conn, PB__WORKER__BODY_PIECES, &m.base);
}

/* An image that this one refers to: is it whole, and one that would be accepted itself? */
static int check_base(void *ctx, int fd, struct err *e)
{
	struct restore *r = ctx;
	struct proto_read_options o = {.config_dir = r->what->config_dir,
		.also_trust = r->what->also_trust,
		.threads = PROTO_NO_THREADS};
	struct proto_reader *in;
	struct proto_frame f;
	int error = proto_reader_open(&in, fd, &o, e);

	if (error < 0 || ledger_knows_file(r->what->state_dir, fd)) {
		if (error == 0)
			proto_reader_close(in);
		return error;
	}
	do
		error = proto_read(in, &f, e);
	while (error == 0 && f.type != PROTO_END);
	proto_reader_close(in);
	if (error == 0)
		ledger_know_file(r->what->state_dir, fd);
	return error;
}

/*
 * An image that is known is mapped, if it is a file that can be: its pages need not be read
 * first.  Nothing here looks at them, so that of a file which shrinks nothing but an error
 * comes.
 */
static void map_image(struct restore *r)
{
	struct stat st;
	void *m;

	if (fstat(r->what->image, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size)
		return;
	m = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, r->what->image, 0);
	if (m == MAP_FAILED)
		return;
	/* once, in order: then the kernel need not note of each page that it was looked at */
	madvise(m, (size_t)st.st_size, MADV_SEQUENTIAL);
	r->mapped = m;
	r->mapped_len = (size_t)st.st_size;
}

/*
 * The supervisor makes the world while the records are read.  What is wrong with these is told
 * when it is there: before that we may be about to become its rewriter.
 */
static int build_in_world(struct restore *r, const struct ckpt_restore_options *o,
	struct ckpt_build **ret, struct err *e)
{
	struct ckpt_build *build = NULL;
	struct err early = {0};

	ckpt_restore_begin(&build, r->in, o, &early);
	if (take_world(r, e) < 0) {
		ckpt_restore_undo(build);
		return e->error;
	}
	if (err_is(&early))
		*e = early;
	if (err_is(e) || ckpt_restore(build, &r->world, e) < 0)
		return err_blame_image(e);
	*ret = build;
	return 0;
}

static int rebuild(struct restore *r, const struct worker_restore *what, struct err *e)
{
	struct proto_read_options o = {.config_dir = what->config_dir,
		.also_trust = what->also_trust,
		.skip_digests = what->skip_digests};
	struct ckpt_restore_options options = {.paused = true, .going = what->going};
	struct ckpt_mapped mapped = {0};
	struct ckpt_build *build = NULL;
	Pb__Worker *m = NULL;
	int error = 0;

	if (what->skip_digests)
		map_image(r);
	if (what->map && !what->stream)
		error = look_ahead(r, &mapped, e);
	o.leave_long = r->mapped ? PROTO_KIND_MM : 0;
	options.left = r->mapped;
	options.left_len = r->mapped_len;
	if (error == 0)
		error = fault_at(FAULT_RESTORE_BEGIN, e);
	if (error == 0)
		error = ledger_claimant_open(&r->claimant, what->state_dir, what->supervisor, e);
	if (error == 0)
		error = proto_reader_open(&r->in, what->image, &o, e);
	if (error == 0)
		error = take_arrived(r, &mapped, e);
	options.mapped = mapped.n ? &mapped : NULL;
	options.arrived = r->arrived;
	if (error == 0)
		error = ckpt_base_read(&r->base, r->in, what->dir, check_base, r, e);
	options.base = r->base;
	if (error == 0)
		error = send_front(r, e);
	if (error == 0)
		error = fault_at(FAULT_RESTORE_FRONT, e);
	if (error == 0)
		error = unpack(r, e);
	if (error == 0)
		error = build_in_world(r, &options, &build, e);
	if (error < 0)
		return error;
	tell_pieces(r, build);
	worker_reply_report(
		r->conn, PB__WORKER__BODY_RESTORED, ckpt_build_report(build), NULL, NULL);
	if (await_release(r, &m, e) < 0) {
		ckpt_restore_undo(build);
		return e->error;
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
		worker_reply(r->conn, PB__WORKER__BODY_RELEASED, NULL);
	return error;
}

/* Nothing is left of the rebuilding but the session, and us. */
static _Noreturn void go_on(struct restore *r)
{
	struct ckpt_world *w = &r->world;

	rewriter_on_end(r->rewriter, NULL, NULL);
	proto_reader_close(take_ptr(r->in));
	if (r->mapped)
		munmap((void *)r->mapped, r->mapped_len);
	ckpt_arrived_free(take_ptr(r->arrived));
	close_fd(r->arrived_image);
	ckpt_base_free(take_ptr(r->base));
	proto_conn_free(take_ptr(r->conn));
	ledger_claimant_fini(&r->claimant);
	close_fd(r->what->image);
	close_fd(r->what->dir);
	close_fd(w->init_pidfd);
	close_fd(w->root_fd);
	close_fd(w->proc_fd);
	prctl(PR_SET_DUMPABLE, 0);
	rewriter_follow(r->rewriter);
}

void worker_main_restore(int sock, const void *arg)
{
	const struct worker_restore *what = arg;
	struct restore r = {.what = what, .sock = sock, .arrived_image = -1};
	const int fds[] = {what->image, what->dir};
	struct err e = {0};

	r.conn = worker_begin(sock, NULL, fds, 2, "podrun-rebuild");
	if (rebuild(&r, what, &e) < 0) {
		worker_reply_failure(r.conn, &e);
		_exit(1);
	}
	if (r.rewriter)
		go_on(&r);
	_exit(0);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in worker/begin.h. */
#include "supervisor/worker/begin.h"

#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/message.h"

#define MAX_KEEP    4096
#define EXPECTED_FDS 4096

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
	io_allow_fds();
	io_make_fd_room(sock, EXPECTED_FDS);
	free(keep);
	signal(SIGTERM, SIG_DFL);
	signal(SIGRTMIN, SIG_IGN);
	fault_in_worker();
	prctl(PR_SET_NAME, name);
	if (proto_conn_new(&conn, sock, &e) < 0)
		_exit(1);
	return conn;
}

void worker_reply(struct proto_conn *conn, int what, ProtobufCMessage *body)
{
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;
	struct err e = {0};

	m.body_case = (Pb__Worker__BodyCase)what;
	/* All members of the union are pointers to messages. */
	m.frozen = body ? (Pb__Empty *)body : &empty;
	if (message_send_worker(conn, &m, NULL, 0, &e) < 0)
		log_warn("worker: %s", e.msg);
}

void worker_reply_failure(struct proto_conn *conn, const struct err *e)
{
	Pb__Failure f;

	message_of_err(&f, e);
	worker_reply(conn, PB__WORKER__BODY_FAILURE, &f.base);
}

void worker_reply_report(struct proto_conn *conn, int what,
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
	worker_reply(conn, what, &r.base);
}

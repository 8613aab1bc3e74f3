// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A worker begins by putting the house in order: descriptors that no record holds are adopted,
 * where they can be told - a connection that was accepted and not yet written down - or closed.
 * Then each part watches what the arena says there is.  The first worker finds an empty arena and
 * does the same.
 *
 * The keeper may be killed as well.  Its worker notices, and becomes the keeper of a new worker:
 * memory and descriptors are its own as much as they were the keeper's.
 */
#include "vnet/gateway/worker.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/base.h"
#include "vnet/gateway/capture.h"
#include "vnet/gateway/control.h"
#include "vnet/gateway/datagram.h"
#include "vnet/gateway/dynamic.h"
#include "vnet/gateway/flow.h"
#include "vnet/gateway/gather.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/inbound.h"
#include "vnet/gateway/inner.h"
#include "vnet/gateway/keeper.h"
#include "vnet/gateway/link.h"
#include "vnet/gateway/outbound.h"
#include "vnet/gateway/publish.h"
#include "vnet/gateway/pump.h"
#include "vnet/gateway/remote.h"
#include "vnet/gateway/session.h"
#include "vnet/gateway/shortcut.h"
#include "vnet/gateway/veth.h"
#include "vnet/gateway/wire.h"
#include "vnet/vnat.h"

#define STRAYS 4096

struct keeper_watch {
	struct gateway_watch watch;
	struct gateway_loop *loop;
	int fd; /* pidfd */
	bool gone;
};

/* Sockets that a killed worker had taken and not written down yet. */
struct strays {
	struct vnet_gateway *g;
	int *fds;
	size_t n, room;
};

static void on_stray(void *ctx, int fd)
{
	struct strays *s = ctx;
	struct stat st;

	if (fd == gateway_loop_fd(s->g->loop))
		return;
	if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode) || s->n == s->room)
		close(fd);
	else
		s->fds[s->n++] = fd;
}

static int find_strays(struct strays *ret, struct err *e)
{
	struct rlimit limit;
	struct gateway_fds s = {0};
	int r;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return err_errno(e, -errno, "limits");
	s.n = (size_t)limit.rlim_cur;
	s.bits = calloc(s.n / 8 + 1, 1);
	ret->room = STRAYS;
	ret->fds = calloc(ret->room, sizeof(*ret->fds));
	if (!s.bits || !ret->fds) {
		free(s.bits);
		return err_errno(e, -ENOMEM, "descriptors");
	}
	gateway_arena_keep(ret->g->arena, &s);
	gateway_datagram_keep(ret->g->arena, &s);
	r = gateway_fds_stray(&s, on_stray, ret, e);
	free(s.bits);
	return r;
}

static void adopt(struct strays *s)
{
	while (s->n) {
		int fd = s->fds[--s->n];

		if (!gateway_control_adopt(s->g, fd) && !gateway_outbound_adopt(s->g, fd) &&
			!gateway_publish_adopt(s->g, fd))
			close(fd);
	}
	free(s->fds);
}

static void on_keeper_gone(struct gateway_watch *w, uint32_t events)
{
	struct keeper_watch *k = gateway_container(w, struct keeper_watch, watch);

	k->gone = true;
	gateway_loop_stop(k->loop);
}

static int watch_keeper(
	struct keeper_watch *k, struct gateway_loop *loop, pid_t keeper, struct err *e)
{
	int r;

	k->watch.ready = on_keeper_gone;
	k->loop = loop;
	k->fd = sys_pidfd_open(keeper, 0);
	r = k->fd < 0 ? -errno : gateway_loop_add(loop, k->fd, EPOLLIN, &k->watch);
	k->gone = r < 0 || getppid() != keeper;
	if (k->gone)
		gateway_loop_stop(loop);
	return r < 0 && r != -ESRCH ? err_errno(e, r, "the gateway's keeper") : 0;
}

static int begin(struct vnet_gateway *g, struct err *e)
{
	struct gateway_arena *a = g->arena;
	struct strays strays = {.g = g};

	if (gateway_loop_new(&g->loop, e) < 0 || find_strays(&strays, e) < 0 ||
		gateway_inner_start(g, e) < 0 || gateway_veth_start(g, e) < 0 ||
		gateway_shortcut_start(g, e) < 0 ||
		vnet_vnat_new(gateway_arena_vnat(a), GATEWAY_MAX_SESSIONS, GATEWAY_MAX_FLOWS,
			a->gate_port, a->gate_port, &g->vnat, e) < 0 ||
		gateway_capture_start(g, e) < 0 || gateway_wire_start(g, e) < 0 ||
		gateway_gather_start(g, e) < 0 || gateway_datagram_start(g, e) < 0 ||
		gateway_pump_start(g, e) < 0 || gateway_flow_start(g, e) < 0 ||
		gateway_outbound_start(g, e) < 0 || gateway_inbound_start(g, e) < 0 ||
		gateway_link_start(g, e) < 0 || gateway_remote_start(g, e) < 0 ||
		gateway_dynamic_start(g, e) < 0 || gateway_publish_start(g, e) < 0 ||
		gateway_control_start(g, e) < 0 || gateway_session_start(g, e) < 0)
		return e->error;
	adopt(&strays);
	gateway_flow_take_up(g);
	return 0;
}

int gateway_worker_run(struct gateway_arena *a)
{
	struct vnet_gateway g = {.arena = a};
	struct keeper_watch k = {.fd = -1};
	struct err e = {0};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	log_init(STDERR_FILENO, "gateway");
	if (begin(&g, &e) < 0 || watch_keeper(&k, g.loop, a->keeper, &e) < 0) {
		log_error("%s", e.msg);
		a->failure = e;
		return 1;
	}
	a->failure = (struct err){0};
	gateway_loop_run(g.loop);
	close_fd(k.fd);
	if (!k.gone)
		return 0;
	log_warn("the keeper was killed, this worker takes its place");
	return gateway_keeper_run(a, gateway_worker_run);
}

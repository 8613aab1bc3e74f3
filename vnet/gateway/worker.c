// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A worker begins by putting the house in order: descriptors that no record holds are adopted, where they
 * can be told - a connection that was accepted and not yet written down - or closed.  Then each part
 * watches what the arena says there is.  The first worker finds an empty arena and does the same.
 */
#include "vnet/gateway/worker.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/base.h"
#include "vnet/gateway/control.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/session.h"

static void on_stray(void *ctx, int fd)
{
	struct vnet_gateway *g = ctx;

	if (fd == gateway_loop_fd(g->loop) || gateway_control_adopt(g, fd))
		return;
	close(fd);
}

static int tidy(struct vnet_gateway *g, struct err *e)
{
	struct rlimit limit;
	struct gateway_fds s = {0};
	int r;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return err_errno(e, -errno, "limits");
	s.n = (size_t)limit.rlim_cur;
	s.bits = calloc(s.n / 8 + 1, 1);
	if (!s.bits)
		return err_errno(e, -ENOMEM, "descriptors");
	gateway_arena_keep(g->arena, &s);
	r = gateway_fds_stray(&s, on_stray, g, e);
	free(s.bits);
	return r;
}

int gateway_worker_run(struct gateway_arena *a)
{
	struct vnet_gateway g = {.arena = a};
	struct err e = {0};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	log_init(STDERR_FILENO, "gateway");
	if (gateway_loop_new(&g.loop, &e) < 0 || gateway_control_start(&g, &e) < 0 ||
		tidy(&g, &e) < 0 || gateway_session_start(&g, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	gateway_loop_run(g.loop);
	return 0;
}

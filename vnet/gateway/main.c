// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The process stays in the host's network namespace, where its outside sockets are, and gets a user
 * namespace of its own, with no ids but its user's, by which it owns the inner network namespace.
 * Where the host allows no user namespaces it can't be; then it says so to everybody who asks.
 */
#include "vnet/gateway/main.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/base.h"
#include "proto/gateway.pb-c.h"
#include "vnet/gateway/arena.h"
#include "vnet/gateway/datagram.h"
#include "vnet/gateway/keeper.h"
#include "vnet/gateway/worker.h"
#include "vnet/message.h"
#include "vnet/ondemand.h"
#include "vnet/vnat.h"

/* Room for 8000 connections: new ones come many at a time, and none is to wait for it. */
#define FDS_AT_FIRST 16384

static int own_userns(struct err *e)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char line[64];
	int r;

	if (unshare(CLONE_NEWUSER) < 0) {
		err_set(e, ERR_HOST, -errno, "the gateway needs a user namespace: %s",
			strerror(errno));
		return err_hint(e, "podrun check says what this host allows");
	}
	snprintf(line, sizeof(line), "%u %u 1", uid, uid);
	r = io_write_str(AT_FDCWD, "/proc/self/uid_map", line);
	if (r == 0)
		r = io_write_str(AT_FDCWD, "/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "%u %u 1", gid, gid);
	if (r == 0)
		r = io_write_str(AT_FDCWD, "/proc/self/gid_map", line);
	return r < 0 ? err_errno(e, r, "the gateway's user namespace") : 0;
}

/* Tells whoever has connected why there is no gateway. */
static void refuse(int listener, const struct err *e)
{
	Pb__GatewayReply m = PB__GATEWAY_REPLY__INIT;
	Pb__GatewayFailure f = PB__GATEWAY_FAILURE__INIT;
	int fd;

	m.serial = 1;
	f.err_class = e->class;
	f.error = e->error;
	f.msg = (char *)e->msg;
	f.hint = (char *)e->hint;
	m.body_case = PB__GATEWAY_REPLY__BODY_FAILURE;
	m.failure = &f;
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		vnet_message_send(fd, &m.base, NULL, 0, NULL);
		close(fd);
	}
}

bool vnet_gateway_called(void)
{
	int on = 0;
	socklen_t n = sizeof(on);

	return getsockopt(VNET_ONDEMAND_LISTENER, SOL_SOCKET, SO_ACCEPTCONN, &on, &n) == 0 && on;
}

int vnet_gateway_main(void)
{
	struct gateway_arena *a;
	struct err e = {0};
	int r;

	log_init(STDERR_FILENO, "gateway");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* of a capture's file */
	umask(077);
	/* Two sockets per connection are more than most shells allow at first. */
	io_allow_fds();
	io_make_fd_room(VNET_ONDEMAND_LISTENER, FDS_AT_FIRST);
	io_set_cloexec(VNET_ONDEMAND_LISTENER, true);
	io_set_cloexec(VNET_ONDEMAND_DIRECTORY, true);
	if (own_userns(&e) < 0 ||
		gateway_arena_new(&a, vnet_vnat_size(GATEWAY_MAX_SESSIONS, GATEWAY_MAX_FLOWS),
			gateway_datagram_room(), &e) < 0) {
		log_error("%s", e.msg);
		while (!vnet_ondemand_retire(VNET_ONDEMAND_DIRECTORY, VNET_ONDEMAND_LISTENER))
			refuse(VNET_ONDEMAND_LISTENER, &e);
		return 1;
	}
	a->directory = VNET_ONDEMAND_DIRECTORY;
	a->listener = VNET_ONDEMAND_LISTENER;
	r = gateway_keeper_run(a, gateway_worker_run);
	while (r && !vnet_ondemand_retire(VNET_ONDEMAND_DIRECTORY, VNET_ONDEMAND_LISTENER) &&
		err_is(&a->failure))
		refuse(VNET_ONDEMAND_LISTENER, &a->failure);
	return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A name points to where the session's published ports are, and that is the gateway's host: so its
 * gateway tells the server, each time that the session begins to have packets there - at its start, at
 * a resume, after a migrate to another gateway.  The key is a file of the gateway's host, read
 * when it is needed.
 *
 * Which address is the host's depends on who asks.  Of the server's family it is the one by which
 * the server is reached; of the other it is the one with which the host would go to the internet
 * (connect() to an address of documentation, which sends nothing).
 *
 * A datagram may be lost: it is sent again every AGAIN_NS until there is an answer.  A server that
 * refuses is asked again after REFUSED_NS, and so is one that has not answered TRIES times: it may be
 * down.
 */
#include "vnet/gateway/dynamic.h"

#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "base/base.h"
#include "vnet/gateway/gateway.h"
#include "vnet/nsupdate.h"

#define AGAIN_NS   1000000000ull
#define REFUSED_NS 60000000000ull
#define TRIES	   5

struct told {
	struct gateway_watch watch;
	struct gateway_timer due;
	struct vnet_gateway *g;
	int fd; /* -1: nothing is to be told */
	uint16_t id;
	unsigned tries;
	struct vnet_nsupdate what;
};

struct gateway_dynamic {
	struct told of[GATEWAY_MAX_SESSIONS];
};

static const char *name_of(const struct told *t)
{
	return t->g->arena->sessions[t - t->g->dynamic->of].name;
}

static void close_socket(struct told *t)
{
	int fd = t->fd;

	t->fd = -1;
	if (fd < 0)
		return;
	gateway_loop_remove(t->g->loop, fd);
	close(fd);
}

/* The host's own address when it sends to @to; false if there is none that others could use. */
static bool own_address(const struct vnet_endpoint *to, int *ret_fd, struct vnet_endpoint *ret)
{
	_cleanup_close_ int fd = socket(to->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_storage sa;
	socklen_t len = vnet_endpoint_to_sockaddr(to, &sa);

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, len) < 0)
		return false;
	len = sizeof(sa);
	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
		vnet_endpoint_from_sockaddr(&sa, len, ret) < 0)
		return false;
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return !vnet_endpoint_is_loopback(ret) && !vnet_endpoint_is_of_host(ret);
}

/* Where the internet is, as far as routes go. */
static struct vnet_endpoint internet(int family)
{
	const struct in_addr v4 = {htonl(0xc0000201)}; /* 192.0.2.1 */
	const struct in6_addr v6 = {{{0x20, 0x01, 0x0d, 0xb8, [15] = 1}}};

	return family == AF_INET ? vnet_endpoint_v4(v4, 53) : vnet_endpoint_v6(&v6, 53);
}

void gateway_dynamic_own(struct in_addr *ret4, struct in6_addr *ret6)
{
	struct vnet_endpoint to4 = internet(AF_INET), to6 = internet(AF_INET6), own;

	*ret4 = (struct in_addr){0};
	*ret6 = in6addr_any;
	if (own_address(&to4, NULL, &own))
		*ret4 = own.v4;
	if (own_address(&to6, NULL, &own))
		*ret6 = own.v6;
}

/* One of each family, as far as there are; the socket to the server is open then. */
static size_t own_addresses(struct told *t, struct vnet_endpoint ret[2])
{
	struct vnet_endpoint other =
		internet(t->what.server.family == AF_INET ? AF_INET6 : AF_INET);
	size_t n = 0;

	n += own_address(&t->what.server, &t->fd, &ret[n]);
	n += own_address(&other, NULL, &ret[n]);
	return n;
}

static void send_update(struct told *t);

static void try_again(struct told *t, uint64_t ns)
{
	close_socket(t);
	if (ns == REFUSED_NS)
		t->tries = 0;
	gateway_loop_timer(t->g->loop, &t->due, ns);
}

static void on_due(struct gateway_timer *timer)
{
	struct told *t = gateway_container(timer, struct told, due);

	if (t->tries < TRIES) {
		send_update(t);
		return;
	}
	log_warn("%s: the name server of %s does not answer", name_of(t), t->what.name);
	try_again(t, REFUSED_NS);
}

static void on_answer(struct gateway_watch *w, uint32_t events)
{
	struct told *t = gateway_container(w, struct told, watch);
	uint8_t message[VNET_NSUPDATE_ROOM];
	ssize_t n;
	int rcode;

	if (t->fd < 0)
		return;
	n = recv(t->fd, message, sizeof(message), MSG_DONTWAIT);
	rcode = n < 0 ? -EBADMSG : vnet_nsupdate_answer(message, (size_t)n, t->id);
	if (rcode < 0)
		return;
	if (rcode) {
		log_warn("%s: the name server of %s says %s", name_of(t), t->what.name,
			vnet_nsupdate_rcode(rcode));
		try_again(t, REFUSED_NS);
		return;
	}
	log_info("%s: %s points here now", name_of(t), t->what.name);
	close_socket(t);
	gateway_loop_timer_clear(t->g->loop, &t->due);
}

static int make_and_send(struct told *t, struct err *e)
{
	struct vnet_nsupdate_key key;
	bool is_signed = t->what.key_file[0];
	uint8_t message[VNET_NSUPDATE_ROOM];
	struct vnet_endpoint own[2];
	size_t n;
	ssize_t len;

	if (is_signed && vnet_nsupdate_key_load(t->what.key_file, &key, e) < 0)
		return e->error;
	n = own_addresses(t, own);
	if (t->fd < 0 || !n)
		return err_set(e, ERR_FAILED, -ENETUNREACH, "there is no way to the name server");
	if (getrandom(&t->id, sizeof(t->id), 0) != sizeof(t->id))
		return err_set(e, ERR_FAILED, -EIO, "random numbers");
	len = vnet_nsupdate_make(&t->what, is_signed ? &key : NULL, t->id, (uint64_t)time(NULL),
		own, n, message, sizeof(message));
	explicit_bzero(&key, sizeof(key));
	if (len < 0)
		return err_errno(e, (int)len, "%s", t->what.name);
	gateway_loop_add(t->g->loop, t->fd, EPOLLIN, &t->watch);
	/* One that is lost is sent again. */
	send(t->fd, message, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return 0;
}

static void send_update(struct told *t)
{
	struct err e = {0};

	close_socket(t);
	t->tries++;
	if (make_and_send(t, &e) < 0) {
		log_warn("%s: %s: %s", name_of(t), t->what.name, e.msg);
		try_again(t, REFUSED_NS);
		return;
	}
	gateway_loop_timer(t->g->loop, &t->due, AGAIN_NS);
}

void gateway_dynamic_tell(struct vnet_gateway *g, uint32_t session)
{
	const char *text = g->arena->sessions[session].dns_update;
	struct told *t = &g->dynamic->of[session];
	struct err e = {0};

	gateway_dynamic_stop(g, session);
	if (!text[0])
		return;
	if (vnet_nsupdate_parse(text, &t->what, &e) < 0) {
		log_warn("%s: %s", name_of(t), e.msg);
		return;
	}
	t->tries = 0;
	send_update(t);
}

void gateway_dynamic_stop(struct vnet_gateway *g, uint32_t session)
{
	struct told *t = &g->dynamic->of[session];

	close_socket(t);
	gateway_loop_timer_clear(g->loop, &t->due);
}

int gateway_dynamic_start(struct vnet_gateway *g, struct err *e)
{
	g->dynamic = calloc(1, sizeof(*g->dynamic));
	if (!g->dynamic)
		return err_errno(e, -ENOMEM, "gateway");
	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		struct told *t = &g->dynamic->of[i];

		t->g = g;
		t->fd = -1;
		t->watch.ready = on_answer;
		t->due.fire = on_due;
	}
	return 0;
}

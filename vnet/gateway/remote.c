// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      session --TUN--> own address becomes the file's --> carrier ==> server
 *              <--TUN-- and back                       <--
 *
 * The session keeps its virtual address; the server knows only the address that the file gives, so
 * one file is one session at a time (its key's stamp is locked).  Connections end in the session's
 * kernel and at their other ends, nothing of them is here: a session that comes back from an image
 * goes on when it has sent something, from wherever it is then.
 *
 * The session's name server is the gateway's address.  Where the file has one (DNS), questions go
 * there, and the address of the family of which it has none is a closed port; else this gateway
 * answers them, as it answers whatever else is sent to itself.
 *
 * An endpoint may be a name, which is looked up in a thread of the C library's (getaddrinfo_a).  A
 * worker that takes a session up again makes a new handshake, with a later stamp.
 */
#include "vnet/gateway/remote.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "vnet/gateway/gateway.h"
#include "vnet/tunnel/tunnel.h"

#define SCHEME	  "wg:"
#define LOOK_NS	  50000000ull	/* between two looks at a name that is looked up */
#define AGAIN_NS  5000000000ull /* before another try */
#define REOPEN_NS 100000000ull
#define DNS_PORT  53

/* Not in the remote: the library writes to it until it is done, whatever became of the session. */
struct lookup {
	struct gaicb request;
	char host[VNET_CONFIG_HOST_MAX], port[8];
};

struct remote {
	struct gateway_watch watch;
	struct gateway_timer due, look, reopen;
	struct gateway_later last; /* when nothing that epoll has said of it is still to be told */
	struct vnet_gateway *g;
	uint32_t session;
	struct vnet_carrier *carrier;		     /* NULL until it is open */
	bool writing;				     /* EPOLLOUT is asked for */
	struct vnet_endpoint own4, own6, dns4, dns6; /* of the file; family 0: none */
	struct lookup *lookup;			     /* of the first peer's name */
	char host[VNET_CONFIG_HOST_MAX];
	uint16_t port;
};

struct gateway_remotes {
	struct remote *of[GATEWAY_MAX_SESSIONS];
};

int gateway_remote_start(struct vnet_gateway *g, struct err *e)
{
	g->remotes = calloc(1, sizeof(*g->remotes));
	return g->remotes ? 0 : err_errno(e, -ENOMEM, "gateway");
}

/* ---- time and descriptors ---------------------------------------------------------------- */

static void arrange(struct remote *r)
{
	const struct vnet_carrier_watch w = vnet_carrier_watch(r->carrier, 0);
	const uint64_t due = vnet_carrier_deadline(r->carrier), now = io_now_ns();

	if (w.write != r->writing) {
		r->writing = w.write;
		gateway_loop_change(
			r->g->loop, w.fd, EPOLLIN | (w.write ? EPOLLOUT : 0), &r->watch);
	}
	if (due == VNET_CARRIER_NEVER)
		gateway_loop_timer_clear(r->g->loop, &r->due);
	else if (!r->due.due || due < r->due.due)
		gateway_loop_timer(r->g->loop, &r->due, due > now ? due - now : 0);
}

static void run(struct remote *r)
{
	struct err e = {0};

	if (vnet_carrier_run(r->carrier, &e) < 0)
		log_warn("%s: %s", r->g->arena->sessions[r->session].name, e.msg);
	arrange(r);
}

static void on_ready(struct gateway_watch *w, uint32_t events)
{
	struct remote *r = gateway_container(w, struct remote, watch);

	if (r->carrier)
		run(r);
}

static void on_due(struct gateway_timer *t)
{
	run(gateway_container(t, struct remote, due));
}

/* ---- names ------------------------------------------------------------------------------- */

static void look_up(struct remote *r)
{
	struct lookup *l = calloc(1, sizeof(*l));
	struct gaicb *list[1];

	if (!l)
		return;
	snprintf(l->host, sizeof(l->host), "%s", r->host);
	snprintf(l->port, sizeof(l->port), "%u", r->port);
	l->request.ar_name = l->host;
	l->request.ar_service = l->port;
	list[0] = &l->request;
	if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) != 0) {
		free(l);
		gateway_loop_timer(r->g->loop, &r->look, AGAIN_NS);
		return;
	}
	r->lookup = l;
	gateway_loop_timer(r->g->loop, &r->look, LOOK_NS);
}

static void found(struct remote *r, const struct addrinfo *a)
{
	struct sockaddr_storage sa = {0};
	struct vnet_endpoint at;

	memcpy(&sa, a->ai_addr, MIN((size_t)a->ai_addrlen, sizeof(sa)));
	if (vnet_endpoint_from_sockaddr(&sa, a->ai_addrlen, &at) < 0)
		return;
	vnet_tunnel_set_endpoint(r->carrier, 0, &at);
	vnet_tunnel_greet(r->carrier, 0);
	arrange(r);
}

static void on_look(struct gateway_timer *t)
{
	struct remote *r = gateway_container(t, struct remote, look);
	struct lookup *l = take_ptr(r->lookup);
	int error;

	if (!l) {
		look_up(r);
		return;
	}
	error = gai_error(&l->request);
	if (error == EAI_INPROGRESS) {
		r->lookup = l;
		gateway_loop_timer(r->g->loop, t, LOOK_NS);
		return;
	}
	if (!error && l->request.ar_result) {
		found(r, l->request.ar_result);
	} else {
		log_warn("%s: %s: %s", r->g->arena->sessions[r->session].name, r->host,
			gai_strerror(error));
		gateway_loop_timer(r->g->loop, t, AGAIN_NS);
	}
	if (l->request.ar_result)
		freeaddrinfo(l->request.ar_result);
	free(l);
}

/* What the library can't stop is never freed: nobody would know when. */
static void forget_lookup(struct remote *r)
{
	struct lookup *l = take_ptr(r->lookup);

	if (l && gai_cancel(&l->request) != EAI_NOTCANCELED) {
		if (l->request.ar_result)
			freeaddrinfo(l->request.ar_result);
		free(l);
	}
}

/* ---- packets ----------------------------------------------------------------------------- */

static struct vnet_endpoint gateway_address(const struct gateway_session *s, int family)
{
	if (family == AF_INET)
		return vnet_endpoint_v4(s->gateway4, DNS_PORT);
	return vnet_endpoint_v6(&s->gateway6, DNS_PORT);
}

static struct vnet_endpoint session_address(const struct gateway_session *s, int family)
{
	if (family == AF_INET)
		return vnet_endpoint_v4(s->address4, 0);
	return vnet_endpoint_v6(&s->address6, 0);
}

/* @ep gets the address of @with, if it has that of @from. */
static void exchange(struct vnet_endpoint *ep, const struct vnet_endpoint *from,
	const struct vnet_endpoint *with)
{
	const uint16_t port = ep->port;

	if (from->family != ep->family || !vnet_endpoint_same_address(ep, from))
		return;
	*ep = *with;
	ep->port = port;
}

/*
 * An error quotes a packet that went the other way, with the addresses that it had there: @here is
 * what @there was called where it came from, and so are the name servers' two.  Nobody else would
 * know his own packet.
 */
static void translate_error(struct vnet_packet *p, const struct vnet_endpoint *there,
	const struct vnet_endpoint *here, const struct vnet_endpoint *dns_there,
	const struct vnet_endpoint *dns_here)
{
	struct vnet_embedded about;
	struct vnet_endpoint src, dst;

	if (vnet_packet_embedded(p, &about) < 0)
		return;
	src = about.src;
	dst = about.dst;
	exchange(&src, there, here);
	exchange(&dst, there, here);
	if (src.port == DNS_PORT)
		exchange(&src, dns_there, dns_here);
	if (dst.port == DNS_PORT)
		exchange(&dst, dns_there, dns_here);
	vnet_packet_set_embedded(p, &about, &src, &dst);
}

static void deliver(void *ctx, uint32_t from, struct vnet_packet *p)
{
	struct remote *r = ctx;
	struct gateway_session *s = &r->g->arena->sessions[r->session];
	const int family = p->dst.family;
	const struct vnet_endpoint *own = family == AF_INET ? &r->own4 : &r->own6;
	const struct vnet_endpoint *dns = family == AF_INET ? &r->dns4 : &r->dns6;
	const struct vnet_endpoint gateway = gateway_address(s, family);
	struct vnet_endpoint to = session_address(s, family);

	if (own->family != family || !vnet_endpoint_same_address(&p->dst, own)) {
		s->counts.dropped++;
		return;
	}
	if (dns->family == family && p->src.port == DNS_PORT &&
		vnet_endpoint_same_address(&p->src, dns))
		vnet_packet_set_src(p, &gateway);
	translate_error(p, own, &to, dns, &gateway);
	to.port = p->dst.port;
	vnet_packet_set_dst(p, &to);
	vnet_gateway_to_session(r->g, r->session, p);
}

static void refuse(struct remote *r, struct vnet_packet *p, uint8_t code, uint8_t code6)
{
	const struct vnet_icmp icmp = {
		.type = p->version == 4 ? ICMP_DEST_UNREACH : ICMP6_DST_UNREACH,
		.code = p->version == 4 ? code : code6,
	};
	struct gateway_session *s = &r->g->arena->sessions[r->session];
	struct vnet_endpoint from = gateway_address(s, p->dst.family);

	if (vnet_packet_make_icmp_error(p, p, &from, &icmp) == 0)
		vnet_gateway_to_session(r->g, r->session, p);
}

static void unreachable(struct remote *r, struct vnet_packet *p)
{
	refuse(r, p, ICMP_NET_UNREACH, ICMP6_DST_UNREACH_NOROUTE);
}

bool gateway_remote_take(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p)
{
	struct remote *r = g->remotes->of[session];
	struct gateway_session *s = &g->arena->sessions[session];
	const struct vnet_endpoint *own, *dns;
	struct vnet_endpoint gateway, session_own, src;
	int sent;

	if (!r)
		return false;
	own = p->version == 4 ? &r->own4 : &r->own6;
	dns = p->version == 4 ? &r->dns4 : &r->dns6;
	gateway = gateway_address(s, p->dst.family);
	if (vnet_endpoint_same_address(&p->dst, &gateway)) {
		if (p->dst.port != DNS_PORT || (!r->dns4.family && !r->dns6.family))
			return false;
		if (!dns->family) {
			refuse(r, p, ICMP_PORT_UNREACH, ICMP6_DST_UNREACH_NOPORT);
			return true;
		}
		vnet_packet_set_dst(p, dns);
	}
	if (!r->carrier) {
		s->counts.dropped++;
		return true;
	}
	if (!own->family) {
		unreachable(r, p);
		return true;
	}
	session_own = session_address(s, p->dst.family);
	translate_error(p, &session_own, own, &gateway, dns->family ? dns : &gateway);
	src = *own;
	src.port = p->src.port;
	vnet_packet_set_src(p, &src);
	sent = vnet_carrier_send(r->carrier, VNET_CARRIER_BY_ADDRESS, p);
	if (sent == -EHOSTUNREACH) {
		struct vnet_endpoint back = session_address(s, p->src.family);

		back.port = p->src.port;
		vnet_packet_set_src(p, &back);
		unreachable(r, p);
	} else if (sent < 0) {
		s->counts.dropped++;
	}
	return true;
}

void gateway_remote_flush(struct vnet_gateway *g, uint32_t session)
{
	struct remote *r = g->remotes->of[session];

	if (!r || !r->carrier)
		return;
	vnet_carrier_flush(r->carrier);
	arrange(r);
}

/* ---- open and close ---------------------------------------------------------------------- */

static struct vnet_endpoint first_of(
	const struct vnet_prefix *prefixes, size_t n, int family, uint16_t port)
{
	struct vnet_endpoint ep = {0};

	for (size_t i = 0; i < n && !ep.family; i++)
		if (prefixes[i].family == family) {
			ep.family = (uint8_t)family;
			ep.port = port;
			memcpy(&ep.v6, prefixes[i].address, family == AF_INET ? 4 : 16);
		}
	return ep;
}

static int state_directory(char ret[PATH_MAX], struct err *e)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (state && state[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s/podrun/tunnels", state);
	else if (home && home[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s/.local/state/podrun/tunnels", home);
	else
		return err_set(e, ERR_HOST, -ENOENT, "neither XDG_STATE_HOME nor HOME is set");
	return n < PATH_MAX ? 0 : err_set(e, ERR_HOST, -ENAMETOOLONG, "XDG_STATE_HOME is too long");
}

static int check(const struct vnet_config *c, const char *path, struct err *e)
{
	if (c->n_peers != 1)
		return err_set(e, ERR_USAGE, -EINVAL,
			"%s: a session's gateway is one peer, not %zu", path, c->n_peers);
	if (!c->peers[0].host[0])
		return err_set(e, ERR_USAGE, -EINVAL, "%s: the peer has no Endpoint", path);
	if (!c->n_addresses)
		return err_set(e, ERR_USAGE, -EINVAL, "%s: [Interface] has no Address", path);
	return 0;
}

static int open_carrier(struct remote *r, struct err *e)
{
	const char *path = r->g->arena->sessions[r->session].remote + strlen(SCHEME);
	char state[PATH_MAX];
	const struct vnet_tunnel_options o = {
		.owner = {deliver, r},
		.state = state,
		.no_super_tcp = !r->g->arena->whole,
		.no_super_udp = !r->g->arena->whole,
	};
	struct vnet_tunnel_peer_stats peer;
	struct vnet_config c;

	if (state_directory(state, e) < 0 || vnet_config_load(&c, path, e) < 0)
		return e->error;
	if (check(&c, path, e) < 0 || vnet_tunnel_open(&r->carrier, &c, &o, e) < 0) {
		vnet_config_fini(&c);
		return e->error;
	}
	r->own4 = first_of(c.addresses, c.n_addresses, AF_INET, 0);
	r->own6 = first_of(c.addresses, c.n_addresses, AF_INET6, 0);
	r->dns4 = first_of(c.dns, c.n_dns, AF_INET, DNS_PORT);
	r->dns6 = first_of(c.dns, c.n_dns, AF_INET6, DNS_PORT);
	if (vnet_tunnel_peer_stats(r->carrier, 0, &peer) == 0 && !peer.at.family) {
		memcpy(r->host, c.peers[0].host, sizeof(r->host));
		r->port = c.peers[0].port;
		look_up(r);
	}
	vnet_config_fini(&c);
	r->watch.ready = on_ready;
	gateway_loop_add(r->g->loop, vnet_carrier_watch(r->carrier, 0).fd, EPOLLIN, &r->watch);
	arrange(r);
	return 0;
}

static void on_reopen(struct gateway_timer *t)
{
	struct remote *r = gateway_container(t, struct remote, reopen);
	struct err e = {0};

	if (open_carrier(r, &e) < 0) {
		log_warn("%s: %s", r->g->arena->sessions[r->session].name, e.msg);
		gateway_loop_timer(r->g->loop, t, AGAIN_NS);
	}
}

int gateway_remote_open(struct vnet_gateway *g, uint32_t session, bool again, struct err *e)
{
	const char *remote = g->arena->sessions[session].remote;
	struct remote *r;

	if (!remote[0])
		return 0;
	if (strncmp(remote, SCHEME "/", strlen(SCHEME) + 1) != 0)
		return err_set(
			e, ERR_HOST, -EOPNOTSUPP, "the gateway '%s' is not supported", remote);
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_errno(e, -ENOMEM, "gateway");
	r->g = g;
	r->session = session;
	r->due.fire = on_due;
	r->look.fire = on_look;
	r->reopen.fire = on_reopen;
	g->remotes->of[session] = r;
	if (again) {
		gateway_loop_timer(g->loop, &r->reopen, REOPEN_NS);
	} else if (open_carrier(r, e) < 0) {
		gateway_remote_close(g, session);
		return e->error;
	}
	return 0;
}

static void on_last(struct gateway_later *l)
{
	free(gateway_container(l, struct remote, last));
}

void gateway_remote_close(struct vnet_gateway *g, uint32_t session)
{
	struct remote *r = take_ptr(g->remotes->of[session]);

	if (!r)
		return;
	gateway_loop_timer_clear(g->loop, &r->due);
	gateway_loop_timer_clear(g->loop, &r->look);
	gateway_loop_timer_clear(g->loop, &r->reopen);
	forget_lookup(r);
	if (r->carrier)
		gateway_loop_remove(g->loop, vnet_carrier_watch(r->carrier, 0).fd);
	vnet_carrier_close(take_ptr(r->carrier));
	r->last.run = on_last;
	gateway_loop_later(g->loop, &r->last);
}

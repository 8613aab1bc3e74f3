// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      run       attach              -> attached                      then the command is started
 *      freeze    hold                -> held: it is in effect         then sockets are looked at
 *      thaw      go
 *      suspend   hold ... detach, suspended                           when the image is recorded
 *      resume    attach with claim, frozen -> attached, perhaps lost  then sockets are made; go
 *      end       the connection to the gateway ends
 *
 * All of these are messages on one connection (vnet/client.h), answered in order; nobody here waits
 * for one.
 *
 * A session that comes from another host, where its gateway is, may find that gateway lent to it
 * (vnet/away.h).  Then it goes on with it, and its configuration says `through` whom, until the
 * line is gone, or the session has moved on: what a host then finds is its own gateway, which has
 * the connections if it is theirs.  As soon as no connection needs it, and no published port, it
 * changes over to the gateway of this host.
 *
 * An image that somebody else has made, or the same user on another host, is trusted to be what it
 * says (proto_trust_has).  That does not mean that its session may have what is this host's: its
 * loopback, and gateways of this user's, by ssh or a file with keys.  `migrate` is another matter,
 * for who sends a session by it could log in.
 *
 * What has much to carry goes by a pair of interfaces (vnet/veth.h), which only the owner of both
 * user namespaces can make: the gateway says when, and which connections.  Before it is asked to
 * hold, all of them are on net0 again.
 *
 * A session with an interface of the host's (--net passthrough:IF) has no gateway: the interface is
 * taken when its world is made, and given back when everything in it has ended.
 *
 * A gateway that is gone altogether has taken the outside halves of all connections with it.  The
 * session keeps its interface, so another gateway is started and attached to: old connections are
 * reset then, new ones work.
 */
#include "supervisor/network/network.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <string.h>

#include "proto/control.pb-c.h"
#include "proto/gateway.pb-c.h"
#include "proto/proto.h"
#include "supervisor/network/interface.h"
#include "supervisor/network/traffic.h"
#include "supervisor/network/whereabouts.h"
#include "supervisor/network/wish.h"
#include "supervisor/session.h"
#include "vnet/vnet.h"

#define FIRST_RETRY_MS 50
#define LAST_RETRY_MS  5000
#define LENT_LOOK_S    10 /* between two looks whether a lent gateway is needed */
#define TRIES	       3  /* of a gateway of this host that ends before it has answered */
#define HOLD_S	       30 /* a line to another host has to say that a session is held */

struct network {
	struct session *session;
	struct vnet_client *client; /* NULL between two gateways */
	struct event *readable, *retry;
	struct event *patience; /* with a hold that a gateway on another host does not answer */
	uint64_t asked;		/* the serial of the last hold */
	uint64_t attaching;	/* and of the attach */
	struct event *look; /* at what a lent gateway is good for */
	bool may_borrow;    /* it arrives: its gateway may be there, lent */
	bool leaving;	    /* a hold was asked for, to see whether it can be left */
	unsigned retry_ms, tried;
	bool attached, left, lost;
	bool reset;	/* what is claimed is not wanted: its outside ends are to hear of it */
	uint32_t flows; /* connections that there were at the last hold */
	void (*then)(struct session *s, struct err *e); /* who waits for the attach */
	void (*held)(void *arg, const struct err *e);	/* who waits for the hold */
	void *held_arg;
	struct vnet_veth *veth; /* NULL: everything goes by net0 */
	char opened[256];	/* what an image made elsewhere has opened here, in words */
	char note[512];
	char outside[2 *
		     INET6_ADDRSTRLEN]; /* by what the outside knows it, as whereabouts.h wants it */
	char told[2 * INET6_ADDRSTRLEN]; /* and what the session has been told of that */
	struct vnet_claim claim;	 /* label 0: none */
	Pb__GatewayClaim message;	 /* the same, for an image */
};

static int connect_gateway(struct network *n, struct err *e);

static Pb__VirtualNetwork *virtual_of(const struct network *n)
{
	return n->session->record->config->network;
}

static void id_of(const struct network *n, char ret[33])
{
	network_wish_id(n->session->record->config, ret);
}

static int attach(struct network *n, bool frozen, struct err *e)
{
	const struct session *s = n->session;
	struct network_wish w;

	if (network_wish_make(s, &w, e) < 0)
		return e->error;
	w.attach.frozen = frozen;
	w.attach.claim = n->claim;
	if (vnet_client_attach(n->client, &w.attach, s->world.tun, s->world.diag, e) < 0)
		return e->error;
	n->attaching = vnet_client_asked(n->client);
	return 0;
}

/* ---- what is answered --------------------------------------------------------------------- */

static void tell_then(struct network *n, struct err *e)
{
	void (*then)(struct session * s, struct err * e) = n->then;

	n->then = NULL;
	if (then)
		then(n->session, e);
}

static void tell_held(struct network *n, const struct err *e)
{
	void (*held)(void *arg, const struct err *e) = n->held;

	n->held = NULL;
	if (n->patience)
		event_del(n->patience);
	if (held)
		held(n->held_arg, e);
}

static void on_failure(struct network *n, struct err *e);

static void take_outside(struct network *n, const struct vnet_answer *a)
{
	char v4[INET6_ADDRSTRLEN] = "", v6[INET6_ADDRSTRLEN] = "";

	if (a->outside4.s_addr)
		inet_ntop(AF_INET, &a->outside4, v4, sizeof(v4));
	if (!IN6_IS_ADDR_UNSPECIFIED(&a->outside6))
		inet_ntop(AF_INET6, &a->outside6, v6, sizeof(v6));
	snprintf(n->outside, sizeof(n->outside), "%s%s%s", v4, v4[0] && v6[0] ? " " : "", v6);
}

void network_tell(struct session *s)
{
	struct network *n = s->network;

	if (!n || !n->attached || s->state != SESSION_RUNNING || s->traffic.held ||
		strcmp(n->outside, n->told) == 0)
		return;
	memcpy(n->told, n->outside, sizeof(n->told));
	whereabouts_tell(s, n->told);
}

/* The end of the line that has claimed them is the end of the old connections. */
static void attach_anew(struct network *n)
{
	struct err e = {0};

	n->reset = n->leaving = false;
	n->claim = (struct vnet_claim){0};
	event_free(take_ptr(n->readable));
	vnet_client_detach(n->client, false, &e);
	vnet_client_free(take_ptr(n->client));
	e = (struct err){0};
	if (connect_gateway(n, &e) < 0)
		on_failure(n, &e);
}

static void on_attached(struct network *n, const struct vnet_answer *a)
{
	struct session *s = n->session;
	bool had_claim = n->claim.label;
	struct err none = {0};

	if (n->attached && a->lost)
		log_warn("the gateway was restarted: connections to the outside are reset");
	if (n->reset) {
		attach_anew(n);
		return;
	}
	n->attached = true;
	n->retry_ms = FIRST_RETRY_MS;
	n->claim = a->claim;
	take_outside(n, a);
	if (n->then && s->op.resume) {
		s->traffic.lost = a->lost || !had_claim;
		n->lost = a->lost && s->op.world->connections;
		if (n->lost)
			log_warn("%s", NETWORK_LOST);
	}
	tell_then(n, &none);
	network_tell(s);
}

/* ---- a gateway that is lent ----------------------------------------------------------------- */

static void on_look(evutil_socket_t fd, short what, void *ctx)
{
	struct network *n = ctx;
	struct err ignored = {0};

	if (n->client && n->attached && !n->leaving && !n->left && !n->session->traffic.held)
		vnet_client_list(n->client, NULL, &ignored);
}

/* Only while nothing passes it is certain that there are none. */
static void on_sessions(struct network *n, const Pb__GatewaySessions *all)
{
	struct err ignored = {0};
	char id[33];

	id_of(n, id);
	for (size_t i = 0; i < all->n_sessions; i++) {
		const Pb__GatewaySession *s = all->sessions[i];

		if (strcmp(s->id, id) != 0 || s->suspended || s->flows || n->session->traffic.held)
			continue;
		n->leaving = vnet_client_hold(n->client, &ignored) == 0;
		return;
	}
}

/* That hold is in effect.  A freeze that came meanwhile is answered next. */
static void leave(struct network *n, uint32_t flows)
{
	struct err ignored = {0};

	n->leaving = false;
	if (n->session->traffic.held || n->left)
		return;
	if (flows) {
		vnet_client_go(n->client, &ignored);
		return;
	}
	log_info("no connection needs the gateway of %s any more", virtual_of(n)->through);
	attach_anew(n);
}

/* 0 when there is one, -ENOENT when there is none. */
static int borrow(struct network *n, struct err *e)
{
	const struct timeval often = {.tv_sec = LENT_LOOK_S};
	struct session *s = n->session;
	const char *from = s->op.world && s->op.world->host[0] ? s->op.world->host : "its old host";
	char id[33];
	int r;

	id_of(n, id);
	r = vnet_client_connect_lent(&n->client, s->paths.runtime, id, e);
	if (r < 0)
		return r;
	session_set_string(&virtual_of(n)->through, from);
	if (!virtual_of(n)->n_publish)
		n->look = event_new(s->loop, -1, EV_PERSIST, on_look, n);
	if (n->look)
		event_add(n->look, &often);
	return 0;
}

/* Whether its gateway was asked for by the name of a host. */
static bool is_elsewhere(const Pb__VirtualNetwork *v)
{
	return !network_wish_is_local(v) && strncmp(v->gateway, "wg:", 3) != 0;
}

static void on_failure(struct network *n, struct err *e)
{
	log_warn("gateway: %s", e->msg);
	if (n->then) {
		/* "this host", of which it may speak, is that one */
		if (is_elsewhere(virtual_of(n)))
			err_wrap(e, "cannot attach the session to its gateway on %s",
				virtual_of(n)->gateway);
		else
			err_wrap(e, "cannot attach the session to its gateway");
		tell_then(n, e);
	} else {
		tell_held(n, e);
	}
}

static void on_retry(evutil_socket_t fd, short what, void *ctx);

/*
 * One that stands still needs no gateway, and its connections may be claimed where it is going to
 * run: its gateway lets go of it then.
 */
static bool stands_still(const struct network *n)
{
	return n->left || n->session->traffic.held;
}

/* Another gateway is to take its place, soon, and ever later if that fails. */
static void begin_anew(struct network *n)
{
	struct timeval t = {n->retry_ms / 1000, (n->retry_ms % 1000) * 1000};

	if (n->readable)
		event_free(take_ptr(n->readable));
	vnet_client_free(take_ptr(n->client));
	if (stands_still(n))
		return;
	if (!n->retry)
		n->retry = event_new(n->session->loop, -1, 0, on_retry, n);
	if (n->retry)
		event_add(n->retry, &t);
	n->retry_ms = MIN(n->retry_ms * 2, (unsigned)LAST_RETRY_MS);
}

/* What is in the way, a port of the session's that somebody else has by now, may be gone soon. */
static void on_refused(struct network *n, struct err *e)
{
	if (n->then) {
		on_failure(n, e);
		return;
	}
	if (n->retry_ms < LAST_RETRY_MS)
		log_warn("gateway: %s", e->msg);
	tell_held(n, NULL);
	begin_anew(n);
}

/* It went before it had answered. */
static void say_who_is_gone(const struct network *n, struct err *e)
{
	const Pb__VirtualNetwork *v = virtual_of(n);

	if (!is_elsewhere(v)) {
		err_hint(e, "podrun check tells what it needs");
		return;
	}
	err_set(e, ERR_FAILED, -EHOSTUNREACH, "%s can't be reached", v->gateway);
	err_hint(e, "see what ssh %s podrun gateway says", v->gateway);
}

/*
 * Who connects to a gateway that is just being killed is reset, and whoever starts the next has no
 * part in that.
 */
static bool try_another(struct network *n)
{
	const Pb__VirtualNetwork *v = virtual_of(n);
	struct err e = {0};

	if (!network_wish_is_local(v) || v->through[0] || ++n->tried >= TRIES)
		return false;
	event_free(take_ptr(n->readable));
	vnet_client_free(take_ptr(n->client));
	if (connect_gateway(n, &e) < 0)
		on_failure(n, &e);
	return true;
}

static void on_gone(struct network *n, struct err *e)
{
	if (n->then && e->error == -ECONNRESET && try_another(n))
		return;
	if (n->then) {
		vnet_client_free(take_ptr(n->client));
		say_who_is_gone(n, e);
		on_failure(n, e);
		return;
	}
	/* Nothing passes where there is no gateway. */
	tell_held(n, NULL);
	if (stands_still(n))
		log_info("the gateway has let go of the session");
	else
		log_warn("the gateway is gone: another is started");
	begin_anew(n);
}

/* ---- the kernel's own way ------------------------------------------------------------------ */

static void on_wire(struct network *n, const struct vnet_answer *a)
{
	struct err e = {0};
	int r;

	vnet_veth_free(take_ptr(n->veth));
	r = vnet_veth_new(
		&n->veth, n->session->world.ns_net, a->netns, a->name, virtual_of(n)->mtu, &e);
	if (r < 0)
		log_info("%s: everything goes by net0", e.msg);
	e = (struct err){0};
	vnet_client_wired(n->client, r < 0 ? NULL : a->name, &e);
}

static void on_fast(struct network *n, const struct vnet_answer *a)
{
	struct err e = {0};

	/* One that is held was all on net0 before the gateway was told. */
	if (n->veth && !n->session->traffic.held && !n->held &&
		vnet_veth_fast(n->veth, &a->inside, &a->outside, a->fast, &e) < 0) {
		log_info("everything goes by net0: %s", e.msg);
		e = (struct err){0};
		if (a->fast)
			vnet_client_wired(n->client, NULL, &e);
	}
}

static void on_answer(evutil_socket_t fd, short what, void *ctx)
{
	struct network *n = ctx;
	struct vnet_answer a;
	struct err e = {0};
	int r;

	while (n->client && (r = vnet_client_receive(n->client, &a, &e)) != 0) {
		if (r < 0) {
			on_gone(n, &e);
			return;
		}
		if (a.kind == VNET_ANSWER_ATTACHED) {
			on_attached(n, &a);
		} else if (a.kind == VNET_ANSWER_FAILED && a.serial == n->attaching) {
			on_refused(n, &a.failure);
		} else if (a.kind == VNET_ANSWER_FAILED) {
			on_failure(n, &a.failure);
		} else if (a.kind == VNET_ANSWER_WIRE) {
			on_wire(n, &a);
		} else if (a.kind == VNET_ANSWER_FAST) {
			on_fast(n, &a);
		} else if (a.kind == VNET_ANSWER_CARRIER) {
			virtual_of(n)->by_tunnel = a.tunnel;
		} else if (a.kind == VNET_ANSWER_SESSIONS) {
			on_sessions(n, a.sessions);
		} else if (a.kind == VNET_ANSWER_FLOWS && n->leaving) {
			leave(n, a.flows);
		} else if (a.kind == VNET_ANSWER_FLOWS && a.serial == n->asked) {
			n->flows = a.flows;
			tell_held(n, NULL);
		}
		vnet_answer_fini(&a);
	}
}

static int reach_gateway(struct network *n, struct err *e)
{
	Pb__VirtualNetwork *v = virtual_of(n);
	bool may_borrow = n->may_borrow && network_wish_is_local(v);
	int r = -ENOENT;

	n->may_borrow = n->leaving = false;
	v->by_tunnel = false;
	if (may_borrow)
		r = borrow(n, e);
	if (r != -ENOENT)
		return r;
	session_set_string(&v->through, "");
	if (n->look)
		event_free(take_ptr(n->look));
	if (!is_elsewhere(v))
		return vnet_client_connect(&n->client, n->session->paths.runtime, true, e);
	/* Whoever received it has been there already, while it still ran on the other host. */
	if (n->session->op.line >= 0 && strcmp(n->session->op.resume->line, v->gateway) == 0)
		return vnet_client_connect_by(&n->client, take_fd(&n->session->op.line), e);
	return vnet_client_connect_away(&n->client, v->gateway, e);
}

static int connect_gateway(struct network *n, struct err *e)
{
	struct session *s = n->session;

	/* A gateway that is gone has taken its end along. */
	vnet_veth_free(take_ptr(n->veth));
	if (reach_gateway(n, e) < 0)
		return e->error;
	n->readable =
		event_new(s->loop, vnet_client_fd(n->client), EV_READ | EV_PERSIST, on_answer, n);
	if (!n->readable || event_add(n->readable, NULL) < 0)
		return err_errno(e, -ENOMEM, "gateway");
	return attach(n, s->traffic.held, e);
}

static void on_retry(evutil_socket_t fd, short what, void *ctx)
{
	struct network *n = ctx;
	struct err e = {0};

	if (connect_gateway(n, &e) == 0)
		return;
	log_warn("gateway: %s", e.msg);
	begin_anew(n);
}

/* ---- freezing ----------------------------------------------------------------------------- */

/*
 * A host that was switched off does not say so, and TCP gives up a line that is silent after a
 * quarter of an hour: no session is to stand still for that long.
 */
static void on_silence(evutil_socket_t fd, short what, void *ctx)
{
	struct network *n = ctx;
	const Pb__VirtualNetwork *v = virtual_of(n);
	struct err e = {0}, ignored = {0};

	if (!n->client || !n->held)
		return;
	err_set(&e, ERR_FAILED, -ETIMEDOUT, "its gateway on %s does not answer",
		v->through[0] ? v->through : v->gateway);
	err_hint(&e, "the session runs on; its connections end when the line there does");
	/* Once it hears of the hold after all. */
	vnet_client_go(n->client, &ignored);
	tell_held(n, &e);
}

static void wait_for_hold(struct network *n)
{
	const Pb__VirtualNetwork *v = virtual_of(n);
	const struct timeval t = {.tv_sec = HOLD_S};

	n->asked = vnet_client_asked(n->client);
	if (!v->through[0] && !is_elsewhere(v))
		return;
	if (!n->patience)
		n->patience = event_new(n->session->loop, -1, 0, on_silence, n);
	if (n->patience)
		event_add(n->patience, &t);
}

static void hold(void *ctx, void (*done)(void *arg, const struct err *e), void *arg)
{
	struct network *n = ctx;
	struct err e = {0};

	n->held = done;
	n->held_arg = arg;
	vnet_veth_slow(n->veth);
	if (!n->client)
		tell_held(n, NULL);
	else if (vnet_client_hold(n->client, &e) < 0)
		on_gone(n, &e);
	else
		wait_for_hold(n);
}

static void pass(void *ctx)
{
	struct network *n = ctx;
	struct err e = {0};

	if (!n->client && !n->left)
		begin_anew(n);
	else if (n->client && vnet_client_go(n->client, &e) < 0)
		on_gone(n, &e);
}

static void redo(void *ctx, const struct sockaddr *client, uint16_t port)
{
	struct network *n = ctx;
	struct err e = {0};

	if (n->client && vnet_client_redo(n->client, client, port, NULL, 0, &e) < 0)
		on_gone(n, &e);
}

void network_renamed(struct session *s)
{
	struct network *n = s->network;
	struct err e = {0};

	/* One that is not attached yet says its name when it is. */
	if (n && n->client && vnet_client_rename(n->client, s->record->config->name, &e) < 0)
		on_gone(n, &e);
}

static const struct traffic_ops traffic_ops = {hold, pass, redo};

/* ---- beginning and end -------------------------------------------------------------------- */

/* What the image says, unless they are not to be had back. */
static void take_claim(struct network *n, const Pb__GatewayClaim *m, const char *wish)
{
	if (!m || m->ticket.len != sizeof(n->claim.ticket) ||
		m->gateway.len != sizeof(n->claim.gateway))
		return;
	n->reset = strcmp(wish, "reset") == 0;
	n->claim.label = m->label;
	n->claim.epoch = m->epoch;
	memcpy(n->claim.ticket, m->ticket.data, sizeof(n->claim.ticket));
	memcpy(n->claim.gateway, m->gateway.data, sizeof(n->claim.gateway));
}

static int refuse_foreign(const char *what, struct err *e)
{
	err_set(e, ERR_IMAGE, -EPERM, "the image was made elsewhere, and its session is to %s",
		what);
	return err_hint(e, "resume --trust-network if it may have that here");
}

int network_check_image(const struct session *s, struct err *e)
{
	const Pb__VirtualNetwork *v = s->record->config->network;
	const char *interface = vnet_passthrough_of(s->record->config->net), *what = NULL;
	struct vnet_passthrough_name name;

	if (interface && vnet_passthrough_parse(interface, &name, e) < 0)
		return err_reclass(e, ERR_IMAGE);
	if ((!v && !interface) || !s->op.foreign || s->op.resume->trust_network)
		return 0;
	if (interface)
		what = "have an interface of its host";
	else if (v->host_loopback[0])
		what = "reach the loopback of its host";
	else if (v->link_local)
		what = "reach link-local addresses of its host";
	else if (v->dns_update[0])
		what = "have a name in DNS changed";
	else if (!network_wish_is_local(v))
		what = "have a gateway that is not its host's";
	return what ? refuse_foreign(what, e) : 0;
}

int network_check_host(const struct session *s, struct err *e)
{
	if (s->rewrite || !s->op.foreign || s->op.resume->trust_network ||
		strcmp(s->record->config->net, "host") != 0)
		return 0;
	return refuse_foreign("have the network of its host", e);
}

/* A port of this host's is open for whoever made the image. */
static void say_ports(struct network *n)
{
	const Pb__VirtualNetwork *v = virtual_of(n);
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (!n->session->op.foreign || !v->n_publish)
		return;
	for (size_t i = 0; i < v->n_publish && i < 4; i++)
		buf_printf(&b, "%s%s%s%u->%u%s", i ? ", " : "", v->publish[i]->address,
			v->publish[i]->address[0] ? " " : "", v->publish[i]->host,
			v->publish[i]->session, v->publish[i]->udp ? "/udp" : "");
	if (v->n_publish > 4)
		buf_printf(&b, " and %zu more", v->n_publish - 4);
	snprintf(n->opened, sizeof(n->opened),
		"the image was made elsewhere, and publishes here %s",
		b.len && buf_cstr(&b) ? buf_cstr(&b) : "ports");
}

/* A copy beside its original can't have the same ports of the host, nor its name. */
static void drop_ports(Pb__VirtualNetwork *v)
{
	session_set_string(&v->dns_update, "");
	while (v->n_publish)
		pb__published_port__free_unpacked(v->publish[--v->n_publish], NULL);
}

int network_begin(struct session *s, void (*then)(struct session *s, struct err *e), struct err *e)
{
	const char *interface = vnet_passthrough_of(s->record->config->net);
	struct network *n;

	if (interface)
		return interface_take(s, interface, e);
	if (s->world.tun < 0)
		return 0;
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_errno(e, -ENOMEM, "network");
	s->network = n;
	n->session = s;
	n->then = then;
	n->retry_ms = FIRST_RETRY_MS;
	s->traffic.ops = &traffic_ops;
	s->traffic.ctx = n;
	/* A session that has left may have left somebody behind who has its ports. */
	if (s->record->config->network->n_publish)
		vnet_forward_stop(s->paths.runtime);
	if (s->op.resume && s->op.copy && s->op.renamed)
		drop_ports(s->record->config->network);
	if (s->op.resume) {
		take_claim(n, s->op.world->claim, s->op.resume->connections);
		say_ports(n);
		s->traffic.held = true;
		n->may_borrow = s->op.resume->frozen;
	}
	return connect_gateway(n, e) < 0 ? e->error : 1;
}

void network_describe(const struct session *s, Pb__World *w)
{
	struct network *n = s->network;

	if (!n || !n->claim.label || s->op.what == OP_SNAPSHOT)
		return;
	pb__gateway_claim__init(&n->message);
	n->message.label = n->claim.label;
	n->message.epoch = n->claim.epoch;
	n->message.ticket = (ProtobufCBinaryData){sizeof(n->claim.ticket), n->claim.ticket};
	n->message.gateway = (ProtobufCBinaryData){sizeof(n->claim.gateway), n->claim.gateway};
	w->claim = &n->message;
	w->connections = n->flows;
}

const char *network_note(const struct session *s)
{
	struct network *n = s->network;

	if (!n)
		return "";
	snprintf(n->note, sizeof(n->note), "%s%s%s", n->lost ? NETWORK_LOST : "",
		n->lost && n->opened[0] ? "; " : "", n->opened);
	return n->note;
}

/* Nobody on another host can claim what a gateway of this one has. */
static bool out_of_reach(const struct session *s)
{
	return s->record->peer[0] && network_wish_is_local(s->record->config->network);
}

void network_suspend(struct session *s)
{
	struct network *n = s->network;
	struct err e = {0};

	if (!n || n->left)
		return;
	n->left = true;
	if (n->client && vnet_client_detach(n->client, !out_of_reach(s), &e) < 0)
		log_warn("gateway: %s", e.msg);
}

void network_give_back(struct session *s)
{
	struct err e = {0};

	if (vnet_passthrough_give_back(take_ptr(s->passthrough), &e) < 0)
		log_warn("%s", e.msg);
}

void network_end(struct session *s)
{
	struct network *n = s->network;

	s->traffic.ops = NULL;
	network_give_back(s);
	if (!n)
		return;
	n->left = true;
	n->then = NULL;
	n->held = NULL;
	if (n->readable)
		event_free(take_ptr(n->readable));
	if (n->retry)
		event_free(take_ptr(n->retry));
	if (n->patience)
		event_free(take_ptr(n->patience));
	if (n->look)
		event_free(take_ptr(n->look));
	vnet_client_free(take_ptr(n->client));
	vnet_veth_free(take_ptr(n->veth));
}

void network_free(struct session *s)
{
	network_end(s);
	free(take_ptr(s->network));
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Packs requests and unpacks answers: nobody else outside the gateway sees gateway.proto. */
#include "vnet/client.h"

#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "proto/gateway.pb-c.h"
#include "vnet/away.h"
#include "vnet/away_lent.h"
#include "vnet/message.h"
#include "vnet/ondemand.h"

struct vnet_client {
	int sock;
	uint64_t serial;   /* of the last request */
	uint64_t answered; /* and of the last answer: one may come twice (vnet/message.c) */
};

static int client_of(struct vnet_client **ret, int sock, struct err *e)
{
	struct vnet_client *c;

	if (sock < 0)
		return sock;
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(sock);
		return err_errno(e, -ENOMEM, "gateway");
	}
	c->sock = sock;
	*ret = c;
	return 0;
}

int vnet_client_connect(struct vnet_client **ret, const char *runtime, bool start, struct err *e)
{
	return client_of(ret, vnet_ondemand_connect(runtime, start, e), e);
}

int vnet_client_connect_away(struct vnet_client **ret, const char *host, struct err *e)
{
	return client_of(ret, vnet_away_connect(host, e), e);
}

int vnet_client_connect_lent(
	struct vnet_client **ret, const char *runtime, const char *id, struct err *e)
{
	return client_of(ret, vnet_away_connect_lent(runtime, id, e), e);
}

int vnet_client_connect_by(struct vnet_client **ret, int sock, struct err *e)
{
	return client_of(ret, sock, e);
}

void vnet_client_free(struct vnet_client *c)
{
	if (!c)
		return;
	close_fd(c->sock);
	free(c);
}

int vnet_client_fd(const struct vnet_client *c)
{
	return c->sock;
}

/* ---- requests ---------------------------------------------------------------------------- */

static int ask(
	struct vnet_client *c, Pb__GatewayRequest *m, const int *fds, size_t n_fds, struct err *e)
{
	struct err own = {0};
	int r;

	m->serial = c->serial + 1;
	r = vnet_message_send(c->sock, &m->base, fds, n_fds, &own);
	/* Of a gateway at its end the last words are what is read next. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET) {
		*e = own;
		return r;
	}
	c->serial++;
	return 0;
}

static ProtobufCBinaryData bytes_of(const void *p, size_t n)
{
	static const uint8_t none[16];

	return (ProtobufCBinaryData){memcmp(p, none, n) ? n : 0, (uint8_t *)p};
}

static void claim_message(Pb__GatewayClaim *ret, const struct vnet_claim *c)
{
	pb__gateway_claim__init(ret);
	ret->label = c->label;
	ret->epoch = c->epoch;
	ret->ticket = (ProtobufCBinaryData){sizeof(c->ticket), (uint8_t *)c->ticket};
	ret->gateway = (ProtobufCBinaryData){sizeof(c->gateway), (uint8_t *)c->gateway};
}

static void port_message(Pb__GatewayPort *ret, const struct vnet_port *p)
{
	pb__gateway_port__init(ret);
	ret->protocol = p->protocol;
	ret->outside = p->outside;
	ret->session = p->session;
	if (p->family)
		ret->address = (ProtobufCBinaryData){
			p->family == AF_INET ? 4 : 16, (uint8_t *)&p->address};
}

int vnet_client_attach(
	struct vnet_client *c, const struct vnet_attach *a, int tun, int diag, struct err *e)
{
	Pb__GatewayPort ports[VNET_MAX_PORTS], *pointers[VNET_MAX_PORTS];
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayAttach attach = PB__GATEWAY_ATTACH__INIT;
	Pb__GatewayTunnel tunnel = PB__GATEWAY_TUNNEL__INIT;
	Pb__GatewayClaim claim;
	int fds[] = {tun, diag};

	if (a->n_ports > VNET_MAX_PORTS)
		return err_set(e, ERR_USAGE, -E2BIG, "more than %d ports", VNET_MAX_PORTS);
	attach.name = (char *)a->name;
	attach.id = (char *)(a->id ? a->id : "");
	attach.address4 = bytes_of(&a->address4, 4);
	attach.address6 = bytes_of(&a->address6, 16);
	attach.gateway4 = bytes_of(&a->gateway4, 4);
	attach.gateway6 = bytes_of(&a->gateway6, 16);
	attach.loopback4 = bytes_of(&a->loopback4, 4);
	attach.loopback6 = bytes_of(&a->loopback6, 16);
	attach.mtu = a->mtu;
	attach.link_local = a->link_local;
	attach.frozen = a->frozen;
	attach.arriving = a->arriving;
	attach.remote = (char *)(a->remote ? a->remote : "");
	attach.dns_update = (char *)(a->dns_update ? a->dns_update : "");
	attach.max_flows = a->max_flows;
	attach.replaces = (char *)(a->replaces ? a->replaces : "");
	attach.wires = a->wires;
	if (a->tunnel)
		attach.tunnel = &tunnel;
	if (a->claim.label) {
		claim_message(&claim, &a->claim);
		attach.claim = &claim;
	}
	for (size_t i = 0; i < a->n_ports; i++) {
		port_message(&ports[i], &a->ports[i]);
		pointers[i] = &ports[i];
	}
	attach.ports = pointers;
	attach.n_ports = a->n_ports;
	m.body_case = PB__GATEWAY_REQUEST__BODY_ATTACH;
	m.attach = &attach;
	return ask(c, &m, fds, diag >= 0 ? 2 : 1, e);
}

static int ask_plain(struct vnet_client *c, Pb__GatewayRequest__BodyCase which, struct err *e)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayNothing nothing = PB__GATEWAY_NOTHING__INIT;

	m.body_case = which;
	m.hold = &nothing;
	return ask(c, &m, NULL, 0, e);
}

int vnet_client_hold(struct vnet_client *c, struct err *e)
{
	return ask_plain(c, PB__GATEWAY_REQUEST__BODY_HOLD, e);
}

uint64_t vnet_client_asked(const struct vnet_client *c)
{
	return c->serial;
}

int vnet_client_go(struct vnet_client *c, struct err *e)
{
	return ask_plain(c, PB__GATEWAY_REQUEST__BODY_GO, e);
}

int vnet_client_detach(struct vnet_client *c, bool suspended, struct err *e)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayDetach detach = PB__GATEWAY_DETACH__INIT;

	detach.suspended = suspended;
	m.body_case = PB__GATEWAY_REQUEST__BODY_DETACH;
	m.detach = &detach;
	return ask(c, &m, NULL, 0, e);
}

int vnet_client_redo(struct vnet_client *c, const struct sockaddr *client, uint16_t session_port,
	const void *data, size_t n, struct err *e)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)client;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)client;
	bool is_v4 = client->sa_family == AF_INET;
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayRedo redo = PB__GATEWAY_REDO__INIT;
	_cleanup_close_ int memory = memfd_create("received", MFD_CLOEXEC);

	if (memory < 0 || io_write_full(memory, data, n) < 0)
		return err_errno(e, -errno, "gateway");
	redo.client = (ProtobufCBinaryData){
		is_v4 ? 4 : 16, is_v4 ? (uint8_t *)&v4->sin_addr : (uint8_t *)&v6->sin6_addr};
	redo.client_port = ntohs(is_v4 ? v4->sin_port : v6->sin6_port);
	redo.session_port = session_port;
	m.body_case = PB__GATEWAY_REQUEST__BODY_REDO;
	m.redo = &redo;
	return ask(c, &m, &memory, 1, e);
}

int vnet_client_forget(struct vnet_client *c, const struct vnet_claim *claim, struct err *e)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayClaim forget;

	claim_message(&forget, claim);
	m.body_case = PB__GATEWAY_REQUEST__BODY_FORGET;
	m.forget = &forget;
	return ask(c, &m, NULL, 0, e);
}

int vnet_client_wired(struct vnet_client *c, const char *name, struct err *e)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayWire wire = PB__GATEWAY_WIRE__INIT;

	wire.name = (char *)(name ? name : "");
	m.body_case = PB__GATEWAY_REQUEST__BODY_WIRED;
	m.wired = &wire;
	return ask(c, &m, NULL, 0, e);
}

int vnet_client_rename(struct vnet_client *c, const char *name, struct err *e)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayRename rename = PB__GATEWAY_RENAME__INIT;

	rename.name = (char *)name;
	m.body_case = PB__GATEWAY_REQUEST__BODY_RENAME;
	m.rename = &rename;
	return ask(c, &m, NULL, 0, e);
}

static int ask_port(struct vnet_client *c, Pb__GatewayRequest__BodyCase which,
	const struct vnet_port *p, struct err *e)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayPort port;

	port_message(&port, p);
	m.body_case = which;
	m.publish = &port;
	return ask(c, &m, NULL, 0, e);
}

int vnet_client_publish(struct vnet_client *c, const struct vnet_port *p, struct err *e)
{
	return ask_port(c, PB__GATEWAY_REQUEST__BODY_PUBLISH, p, e);
}

int vnet_client_unpublish(struct vnet_client *c, const struct vnet_port *p, struct err *e)
{
	return ask_port(c, PB__GATEWAY_REQUEST__BODY_UNPUBLISH, p, e);
}

int vnet_client_list(struct vnet_client *c, const char *name, struct err *e)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayStatsRequest list = PB__GATEWAY_STATS_REQUEST__INIT;

	list.name = (char *)(name ? name : "");
	m.body_case = PB__GATEWAY_REQUEST__BODY_LIST;
	m.list = &list;
	return ask(c, &m, NULL, 0, e);
}

int vnet_client_capture(struct vnet_client *c, const char *name, int fd, int end, struct err *e)
{
	const int fds[] = {fd, end};
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayCapture capture = PB__GATEWAY_CAPTURE__INIT;

	capture.name = (char *)name;
	capture.stop = fd < 0;
	m.body_case = PB__GATEWAY_REQUEST__BODY_CAPTURE;
	m.capture = &capture;
	return ask(c, &m, fds, fd >= 0 ? ARRAY_SIZE(fds) : 0, e);
}

int vnet_capture_ended(int pipe)
{
	int32_t why;

	return read(pipe, &why, sizeof(why)) == sizeof(why) && why <= 0 ? why : -ENODATA;
}

/* ---- answers ----------------------------------------------------------------------------- */

static void failure_of(struct err *ret, const Pb__GatewayFailure *f)
{
	err_set(ret, f->err_class < ERR_CLASS_MAX ? (enum err_class)f->err_class : ERR_FAILED,
		f->error < 0 ? f->error : -EIO, "%s", f->msg);
	if (f->hint[0])
		err_hint(ret, "%s", f->hint);
}

static bool claim_of(struct vnet_claim *ret, const Pb__GatewayClaim *m)
{
	if (!m || m->ticket.len != sizeof(ret->ticket) || m->gateway.len != sizeof(ret->gateway))
		return false;
	ret->label = m->label;
	ret->epoch = m->epoch;
	memcpy(ret->ticket, m->ticket.data, sizeof(ret->ticket));
	memcpy(ret->gateway, m->gateway.data, sizeof(ret->gateway));
	return true;
}

static bool end_of(struct vnet_endpoint *ret, ProtobufCBinaryData address, uint32_t port)
{
	if ((address.len != 4 && address.len != 16) || !port || port > UINT16_MAX)
		return false;
	*ret = (struct vnet_endpoint){
		.family = address.len == 4 ? AF_INET : AF_INET6, .port = (uint16_t)port};
	memcpy(&ret->v6, address.data, address.len);
	return true;
}

/* What nobody has asked for: 1, 0 if it is an answer, or -EBADMSG.  Takes the descriptor. */
static int unasked(struct vnet_answer *a, const Pb__GatewayReply *m, int *fds, size_t *n_fds)
{
	if (m->body_case == PB__GATEWAY_REPLY__BODY_WIRE) {
		if (*n_fds != 1 || !m->wire->name[0] || strlen(m->wire->name) >= sizeof(a->name))
			return -EBADMSG;
		a->kind = VNET_ANSWER_WIRE;
		a->netns = fds[--*n_fds];
		strcpy(a->name, m->wire->name);
		return 1;
	}
	if (m->body_case == PB__GATEWAY_REPLY__BODY_CARRIER) {
		a->kind = VNET_ANSWER_CARRIER;
		a->tunnel = m->carrier->tunnel;
		return 1;
	}
	if (m->body_case != PB__GATEWAY_REPLY__BODY_FAST)
		return 0;
	a->kind = VNET_ANSWER_FAST;
	a->fast = !m->fast->slow;
	if (!end_of(&a->inside, m->fast->inside, m->fast->inside_port) ||
		!end_of(&a->outside, m->fast->outside, m->fast->outside_port) ||
		a->inside.family != a->outside.family)
		return -EBADMSG;
	return 1;
}

/* 0, or -EBADMSG. */
static int answer_of(struct vnet_answer *a, Pb__GatewayReply *m)
{
	a->serial = m->serial;
	switch (m->body_case) {
	case PB__GATEWAY_REPLY__BODY_FAILURE:
		a->kind = VNET_ANSWER_FAILED;
		failure_of(&a->failure, m->failure);
		return 0;
	case PB__GATEWAY_REPLY__BODY_ATTACHED:
		a->kind = VNET_ANSWER_ATTACHED;
		a->lost = m->attached->lost;
		a->flows = m->attached->flows;
		if (m->attached->outside4.len == sizeof(a->outside4))
			memcpy(&a->outside4, m->attached->outside4.data, sizeof(a->outside4));
		if (m->attached->outside6.len == sizeof(a->outside6))
			memcpy(&a->outside6, m->attached->outside6.data, sizeof(a->outside6));
		return claim_of(&a->claim, m->attached->claim) ? 0 : -EBADMSG;
	case PB__GATEWAY_REPLY__BODY_FLOWS:
		a->kind = VNET_ANSWER_FLOWS;
		a->flows = m->flows->flows;
		return 0;
	case PB__GATEWAY_REPLY__BODY_DONE:
		a->kind = VNET_ANSWER_DONE;
		return 0;
	case PB__GATEWAY_REPLY__BODY_SESSIONS:
		a->kind = VNET_ANSWER_SESSIONS;
		a->sessions = take_ptr(m->sessions);
		m->body_case = PB__GATEWAY_REPLY__BODY__NOT_SET;
		return 0;
	default:
		return -EBADMSG;
	}
}

int vnet_client_receive(struct vnet_client *c, struct vnet_answer *ret, struct err *e)
{
	int fds[VNET_MESSAGE_MAX_FDS], r;
	struct vnet_answer a = {0};
	ProtobufCMessage *m;
	bool unrequested;
	size_t n_fds;

	for (;;) {
		r = vnet_message_receive(
			c->sock, false, &pb__gateway_reply__descriptor, &m, fds, &n_fds, e);
		if (r <= 0)
			return r;
		r = unasked(&a, (Pb__GatewayReply *)m, fds, &n_fds);
		unrequested = r == 1;
		while (n_fds)
			close_fd(fds[--n_fds]);
		if (r == 0)
			r = answer_of(&a, (Pb__GatewayReply *)m);
		protobuf_c_message_free_unpacked(m, NULL);
		if (r < 0)
			return err_set(e, ERR_FAILED, r, "the gateway speaks another language");
		if (unrequested) {
			*ret = a;
			return 1;
		}
		if (a.serial > c->answered)
			break;
		vnet_answer_fini(&a);
	}
	c->answered = a.serial;
	*ret = a;
	return 1;
}

int vnet_client_wait(struct vnet_client *c, struct vnet_answer *ret, struct err *e)
{
	struct pollfd p = {.fd = c->sock, .events = POLLIN};
	int r;

	while ((r = vnet_client_receive(c, ret, e)) == 0)
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return err_errno(e, -errno, "gateway");
	if (r < 0)
		return r;
	if (ret->kind == VNET_ANSWER_FAILED) {
		*e = ret->failure;
		return e->error;
	}
	return 0;
}

int vnet_client_look(const char *runtime, const char *name, struct vnet_answer *ret, struct err *e)
{
	struct vnet_client *client;
	int r = vnet_client_connect(&client, runtime, false, e);

	*ret = (struct vnet_answer){0};
	if (r < 0)
		return r;
	r = vnet_client_list(client, name, e);
	if (r == 0)
		r = vnet_client_wait(client, ret, e);
	vnet_client_free(client);
	if (r == -ECONNRESET)
		return err_set(e, ERR_NOT_FOUND, -ENOENT, "the gateway has just ended");
	if (r == 0 && !ret->sessions)
		return err_set(e, ERR_FAILED, -EPROTO, "the gateway speaks another language");
	return r;
}

void vnet_answer_fini(struct vnet_answer *a)
{
	if (a->sessions)
		pb__gateway_sessions__free_unpacked(a->sessions, NULL);
	a->sessions = NULL;
	if (a->kind == VNET_ANSWER_WIRE)
		a->netns = close_fd(a->netns);
}

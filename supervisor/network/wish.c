// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in network.c. */
#include "supervisor/network/wish.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/session.h"

bool network_wish_is_local(const Pb__VirtualNetwork *v)
{
	return !v->gateway[0] || strcmp(v->gateway, "local") == 0;
}

void network_wish_id(const Pb__Config *c, char ret[33])
{
	const ProtobufCBinaryData *id = &c->session_id;

	ret[0] = '\0';
	for (size_t i = 0; i < id->len && i < 16; i++)
		snprintf(ret + 2 * i, 3, "%02x", id->data[i]);
}

/* Who has the name runs until this one is whole, and has the ports until then. */
static void id_of_replaced(const struct session *s, char ret[33])
{
	struct err ignored = {0};
	Pb__Record *r = NULL;

	ret[0] = '\0';
	if (!s->op.replace || record_load(&r, &s->paths, s->record->config->name, &ignored) < 0)
		return;
	network_wish_id(r->config, ret);
	record_free(r);
}

static void take_address4(const char *text, struct in_addr *ret)
{
	if (inet_pton(AF_INET, text, ret) != 1)
		ret->s_addr = 0;
}

static void take_address6(const char *text, struct in6_addr *ret)
{
	if (inet_pton(AF_INET6, text, ret) != 1)
		*ret = in6addr_any;
}

static int take_ports(const Pb__VirtualNetwork *v, struct vnet_attach *a, struct err *e)
{
	if (v->n_publish > VNET_MAX_PORTS)
		return err_set(e, ERR_USAGE, -E2BIG, "a session can publish %d ports, not %zu",
			VNET_MAX_PORTS, v->n_publish);
	for (size_t i = 0; i < v->n_publish; i++) {
		const Pb__PublishedPort *from = v->publish[i];
		struct vnet_port *p = &a->ports[a->n_ports++];

		/* The command line's are checked; an image may say anything. */
		if (from->host > UINT16_MAX || from->session > UINT16_MAX)
			return err_set(e, ERR_IMAGE, -EBADMSG, "a published port that is none");
		*p = (struct vnet_port){.protocol = from->udp ? IPPROTO_UDP : IPPROTO_TCP,
			.outside = (uint16_t)from->host,
			.session = (uint16_t)from->session};
		if (from->address[0]) {
			p->family = strchr(from->address, ':') ? AF_INET6 : AF_INET;
			/* Not everywhere instead of there. */
			if (inet_pton(p->family, from->address, &p->address) != 1)
				return err_set(e, ERR_IMAGE, -EBADMSG,
					"a port published at an address that is none");
		}
	}
	return 0;
}

int network_wish_make(const struct session *s, struct network_wish *ret, struct err *e)
{
	const Pb__Config *c = s->record->config;
	const Pb__VirtualNetwork *v = c->network;
	struct vnet_attach *a = &ret->attach;
	bool local = network_wish_is_local(v);

	*a = (struct vnet_attach){.name = c->name,
		.id = ret->id,
		.replaces = ret->replaces,
		.arriving = s->op.resume && s->op.resume->frozen,
		.mtu = v->mtu,
		.link_local = v->link_local,
		.dns_update = v->dns_update,
		.wires = local && !v->through[0] && s->world.ns_net >= 0,
		.tunnel = strcmp(v->carrier, "auto") == 0 && (!local || v->through[0])};
	network_wish_id(c, ret->id);
	id_of_replaced(s, ret->replaces);
	take_address4(v->address4, &a->address4);
	take_address6(v->address6, &a->address6);
	take_address4(v->gateway4, &a->gateway4);
	take_address6(v->gateway6, &a->gateway6);
	take_address4(v->host_loopback, &a->loopback4);
	take_address6(v->host_loopback, &a->loopback6);
	/* Of a gateway on another host the one who carries things there knows. */
	if (strncmp(v->gateway, "wg:", 3) == 0)
		a->remote = v->gateway;
	return take_ports(v, a, e);
}

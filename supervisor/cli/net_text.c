// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/cli/net_text.h"

#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/client.h"

#define TUNNEL "wg:"

static bool is_local(const Pb__VirtualNetwork *n)
{
	return !n->gateway[0] || strcmp(n->gateway, "local") == 0;
}

/* What is told may come from an image, and goes to a terminal. */
static void make_printable(struct buf *b)
{
	char *line = buf_cstr(b);

	if (!line)
		return;
	text_tame(line, SIZE_MAX);
	b->len = strlen(line);
}

void net_text_put_port(
	struct buf *b, const char *address, uint32_t host, uint32_t session, bool udp)
{
	if (address[0])
		buf_printf(b, strchr(address, ':') ? "[%s]:" : "%s:", address);
	buf_printf(b, "%u->%u%s", host, session, udp ? "/udp" : "");
}

void net_text_put_cell(struct buf *b, const struct client_session *s)
{
	const Pb__Config *c = s->record->config;
	const Pb__VirtualNetwork *n = c->network;

	/* where names are rewritten there is no other, whatever it had and may have again */
	if (s->live && strcmp(c->names, "rewrite") == 0 && strcmp(c->net, "host") != 0) {
		buf_printf(b, "host (%s elsewhere)", c->net);
		make_printable(b);
		return;
	}
	buf_put_str(b, c->net);
	if (!n) {
		make_printable(b);
		return;
	}
	if (s->live && n->through[0])
		buf_printf(b, " (through %s)", n->through);
	buf_printf(b, " %s, %s", n->address4, n->address6);
	for (size_t i = 0; i < n->n_publish; i++) {
		const Pb__PublishedPort *p = n->publish[i];

		buf_put_str(b, ", ");
		net_text_put_port(b, p->address, p->host, p->session, p->udp);
	}
	if (!is_local(n))
		buf_printf(b, ", gateway: %s", n->gateway);
	make_printable(b);
}

void net_text_put_dependency(struct buf *b, const struct client_session *s)
{
	const Pb__VirtualNetwork *n = s->record->config->network;
	bool suspended = strcmp(s->state, "suspended") == 0;
	bool ended = strcmp(s->state, "ended") == 0; /* its supervisor may be there for a moment */

	if (!n || ended || (!s->live && !suspended))
		return;
	if (strncmp(n->gateway, TUNNEL, strlen(TUNNEL)) == 0)
		buf_printf(b,
			"the WireGuard server of %s: all packets go there, from wherever the session is",
			n->gateway + strlen(TUNNEL));
	else if (!is_local(n))
		buf_printf(b,
			"the gateway on %s, which keeps the outside ends of its connections, wherever the "
			"session is",
			n->gateway);
	else if (n->through[0])
		buf_printf(b,
			"%s, from where it was moved: the gateway there keeps the outside ends of its "
			"connections",
			n->through);
	else if (suspended)
		buf_put_str(b,
			"the gateway on this host, if it has connections to the outside: resumed anywhere "
			"else it finds them reset");
	make_printable(b);
}

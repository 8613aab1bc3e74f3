// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun gateway: the process through which sessions reach the outside.  Sessions start it by
 * themselves; this looks at it, or is it.
 */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "proto/gateway.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"
#include "vnet/vnet.h"

struct gateway_options {
	bool serve, json, join, withdraw;
	const char *carry, *lend, *borrow, *podrun, *forward, *ports, *reach;
};

static const struct cli_option options[] = {
	{"serve", 0, NULL, "be the gateway; sessions start it so when there is none", CLI_FLAG,
		offsetof(struct gateway_options, serve)},
	{"carry", 0, "HOST", "be a session's way to the gateway at HOST; sessions start it so",
		CLI_STRING, offsetof(struct gateway_options, carry)},
	{"join", 0, NULL, "be the other end of that way, on stdin and stdout", CLI_FLAG,
		offsetof(struct gateway_options, join)},
	{"lend", 0, "HOST", "be a moved session's way back from HOST; migrate starts it so",
		CLI_STRING, offsetof(struct gateway_options, lend)},
	{"borrow", 0, "ID", "which session: of --lend, or alone the other end of that way",
		CLI_STRING, offsetof(struct gateway_options, borrow)},
	{"forward", 0, "HOST",
		"pass on connections to a session that was moved to HOST; migrate starts it so",
		CLI_STRING, offsetof(struct gateway_options, forward)},
	{"ports", 0, "[IP:]PORT,...", "of --forward: which", CLI_STRING,
		offsetof(struct gateway_options, ports)},
	{"reach", 0, "[IP:]PORT", "be the other end of such a connection, on stdin and stdout",
		CLI_STRING, offsetof(struct gateway_options, reach)},
	{"withdraw", 0, NULL,
		"take a name that stdin tells back from DNS; rm of a session elsewhere starts it so",
		CLI_FLAG, offsetof(struct gateway_options, withdraw)},
	{"podrun", 0, "PATH", "of --lend and --forward: where podrun is on the other host",
		CLI_STRING, offsetof(struct gateway_options, podrun)},
	{"json", 0, NULL, "as JSON", CLI_FLAG, offsetof(struct gateway_options, json)},
};

struct totals {
	uint32_t attached, suspended, connections;
};

static struct totals count(const Pb__GatewaySessions *all)
{
	struct totals t = {0};

	for (size_t i = 0; i < all->n_sessions; i++) {
		t.attached += !all->sessions[i]->suspended;
		t.suspended += all->sessions[i]->suspended;
		t.connections += all->sessions[i]->flows;
	}
	return t;
}

static void print(const Pb__GatewaySessions *all, bool json)
{
	struct totals t = count(all);

	if (json) {
		json_print(json_pack("{s:b, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "running", 1,
			"keeper", (int)all->keeper, "worker", (int)all->worker, "restarts",
			(int)all->restarts, "sessions", (int)t.attached, "suspended",
			(int)t.suspended, "connections", (int)t.connections, "connections_max",
			(int)all->flows_max));
		return;
	}
	printf("running: process %d, its worker %d", all->keeper, all->worker);
	if (all->restarts)
		printf(" (started again %u times)", all->restarts);
	printf("\nsessions: %u attached, %u suspended\nconnections: %u of at most %u\n", t.attached,
		t.suspended, t.connections, all->flows_max);
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct gateway_options *o = opts;
	struct vnet_answer a;
	int r;

	if (o->serve && vnet_gateway_called())
		return vnet_gateway_main();
	if (o->serve) {
		err_set(e, ERR_USAGE, -EINVAL,
			"--serve is for sessions, which start a gateway when they need one");
		return err_hint(e, "podrun run --net vnat");
	}
	if (o->carry && fcntl(VNET_AWAY_SOCKET, F_GETFD) < 0)
		return err_set(e, ERR_USAGE, -EINVAL,
			"--carry is for sessions whose gateway is on another host");
	if (o->carry)
		return vnet_away_carry(o->carry)
			       ? err_set(e, ERR_FAILED, -EIO, "%s can't be reached", o->carry)
			       : 0;
	if (o->lend && !o->borrow)
		return err_set(e, ERR_USAGE, -EINVAL, "--lend needs --borrow");
	if (o->lend)
		return vnet_away_lend(
			c->paths.runtime, o->lend, o->podrun ? o->podrun : "podrun", o->borrow, e);
	if (o->borrow)
		return vnet_away_borrow(c->paths.runtime, o->borrow, e);
	if (o->forward && !o->ports)
		return err_set(e, ERR_USAGE, -EINVAL, "--forward needs --ports");
	if (o->forward)
		return vnet_forward_serve(c->paths.runtime, o->forward,
			o->podrun ? o->podrun : "podrun", o->ports, e);
	if (o->reach)
		return vnet_forward_reach(o->reach, e);
	if (o->join)
		return vnet_away_join(c->paths.runtime, e);
	if (o->withdraw) {
		vnet_away_withdraw_here();
		return 0;
	}
	r = vnet_client_look(c->paths.runtime, NULL, &a, e);
	if (r == -ENOENT) {
		*e = (struct err){0};
		if (o->json)
			json_print(json_pack("{s:b}", "running", 0));
		else
			printf("not running: no session needs it\n");
		return 0;
	}
	if (r == 0)
		print(a.sessions, o->json);
	vnet_answer_fini(&a);
	return r;
}

const struct cli_command cli_gateway = {
	.name = "gateway",
	.usage = "[--json]",
	.help = "the process through which sessions reach the outside",
	.text = "Sessions that were started with *--net vnat* reach the outside through a process of their user "
		"which stays where it is while they are suspended or moved, and keeps the outside ends of their "
		"connections meanwhile. The first one that needs it starts it, and it ends when none does, attached "
		"or suspended. Without an option it is told whether it runs, and what it has. With *podrun run "
		"--gateway HOST* it is your process on HOST, reached by *ssh*.\n\n"
		"It works without privilege. Ports below net.ipv4.ip\\_unprivileged\\_port\\_start can't be "
		"published therefore; pings need a line in net.ipv4.ping\\_group\\_range.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct gateway_options),
	.group = CLI_MORE,
	.run = run,
};

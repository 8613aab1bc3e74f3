// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun net: what the user's gateway says of the sessions that are attached to it.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/signalfd.h>

#include "proto/config.pb-c.h"
#include "proto/gateway.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"
#include "supervisor/cli/net_text.h"
#include "supervisor/client.h"
#include "vnet/vnet.h"

struct net_options {
	const char *write;
	bool json;
};

static const struct cli_option options[] = {
	{"write", 'w', "FILE|-", "of capture: where the packets go, as pcap", CLI_STRING,
		offsetof(struct net_options, write)},
	{"json", 0, NULL, "of ls and stats: as JSON", CLI_FLAG, offsetof(struct net_options, json)},
};

/* ---- what is asked ------------------------------------------------------------------------ */

/* @name NULL: of all.  No gateway at all is one without sessions, where that is an answer. */
static int ask(struct cli *c, const char *name, struct vnet_answer *ret, struct err *e)
{
	int r = vnet_client_look(c->paths.runtime, name, ret, e);

	if (r == -ENOENT && !name) {
		*e = (struct err){0};
		return 0;
	}
	return r;
}

static void address_text(const ProtobufCBinaryData *b, char *ret, size_t size)
{
	ret[0] = '\0';
	if (b->len == 4 || b->len == 16)
		inet_ntop(b->len == 4 ? AF_INET : AF_INET6, b->data, ret, (socklen_t)size);
}

static const char *state_of(const Pb__GatewaySession *s)
{
	return s->suspended ? "suspended" : s->held ? "held" : "attached";
}

/* ---- ls ----------------------------------------------------------------------------------- */

/* "127.0.0.1:8080->80", with "(closed)" where the session does not listen. */
static void put_port(struct buf *b, const Pb__GatewaySession *s, size_t i)
{
	const Pb__GatewayPort *p = s->ports[i];
	bool open = i < s->n_listening && s->listening[i];
	char address[INET6_ADDRSTRLEN];

	address_text(&p->address, address, sizeof(address));
	buf_printf(b, "%s", b->len ? " " : "");
	net_text_put_port(b, address, p->outside, p->session, p->protocol == IPPROTO_UDP);
	buf_put_str(b, open ? "" : " (closed)");
}

static void print_list(const Pb__GatewaySessions *all)
{
	struct cli_table t = {.columns = 6};
	static const char *const titles[] = {
		"SESSION", "STATE", "CONNECTIONS", "IPV4", "IPV6", "PORTS"};

	for (size_t i = 0; i < ARRAY_SIZE(titles); i++)
		cli_table_add(&t, "%s", titles[i]);
	for (size_t i = 0; all && i < all->n_sessions; i++) {
		const Pb__GatewaySession *s = all->sessions[i];
		char v4[INET6_ADDRSTRLEN], v6[INET6_ADDRSTRLEN];
		_cleanup_buf_ struct buf ports = BUF_INIT;

		address_text(&s->address4, v4, sizeof(v4));
		address_text(&s->address6, v6, sizeof(v6));
		for (size_t k = 0; k < s->n_ports; k++)
			put_port(&ports, s, k);
		cli_table_add(&t, "%s", s->name);
		cli_table_add(&t, "%s", state_of(s));
		cli_table_add(&t, "%u", s->flows);
		cli_table_add(&t, "%s", v4);
		cli_table_add(&t, "%s", v6);
		cli_table_add(&t, "%s", ports.len && buf_cstr(&ports) ? buf_cstr(&ports) : "-");
	}
	cli_table_print(&t, stdout);
}

static json_t *json_of_open_port(const Pb__GatewaySession *s, size_t i)
{
	const Pb__GatewayPort *p = s->ports[i];
	char address[INET6_ADDRSTRLEN];
	json_t *j;

	address_text(&p->address, address, sizeof(address));
	j = json_of_port(address, p->outside, p->session, p->protocol == IPPROTO_UDP);
	json_object_set_new(j, "open", json_boolean(i < s->n_listening && s->listening[i]));
	return j;
}

static json_t *json_of(const Pb__GatewaySession *s)
{
	char v4[INET6_ADDRSTRLEN], v6[INET6_ADDRSTRLEN];
	json_t *ports = json_array(), *j;

	address_text(&s->address4, v4, sizeof(v4));
	address_text(&s->address6, v6, sizeof(v6));
	for (size_t i = 0; i < s->n_ports; i++)
		json_array_append_new(ports, json_of_open_port(s, i));
	j = json_pack("{s:o, s:o, s:s, s:[s,s], s:i, s:i, s:I, s:i, s:I, s:o}", "name",
		json_text(s->name), "id", json_text(s->id), "state", state_of(s), "addresses", v4,
		v6, "mtu", (int)s->mtu, "connections", (int)s->flows, "label", (json_int_t)s->label,
		"epoch", (int)s->epoch, "opened", (json_int_t)s->opened, "ports", ports);
	json_object_update_new(j,
		json_pack("{s:{s:I, s:I}, s:{s:I, s:I}, s:I, s:I}", "sent", "packets",
			(json_int_t)s->from_packets, "bytes", (json_int_t)s->from_bytes, "received",
			"packets", (json_int_t)s->to_packets, "bytes", (json_int_t)s->to_bytes,
			"dropped", (json_int_t)s->dropped, "refused", (json_int_t)s->refused));
	json_object_set_new(j, "fast", json_integer(s->fast));
	json_object_set_new(j, "tunnel", json_boolean(s->tunnel));
	return j;
}

static void print_json(const Pb__GatewaySessions *all)
{
	json_t *list = json_array();

	for (size_t i = 0; all && i < all->n_sessions; i++)
		json_array_append_new(list, json_of(all->sessions[i]));
	json_print(list);
}

static int list(struct cli *c, const struct net_options *o, const char *name, struct err *e)
{
	struct vnet_answer a;

	if (ask(c, name, &a, e) < 0)
		return e->error;
	(o->json ? print_json : print_list)(a.sessions);
	vnet_answer_fini(&a);
	return 0;
}

/* ---- stats -------------------------------------------------------------------------------- */

static void print_stats(const Pb__GatewaySession *s)
{
	char from[32], to[32];

	cli_bytes(s->from_bytes, from, sizeof(from));
	cli_bytes(s->to_bytes, to, sizeof(to));
	printf("%s\n", s->name);
	printf("  connections  %u open, %llu so far, %llu refused for too many\n", s->flows,
		(unsigned long long)s->opened, (unsigned long long)s->refused);
	if (s->fast)
		printf("  fast         %u connections, by a pair of interfaces\n", s->fast);
	if (s->tunnel)
		printf("  carrier      a tunnel, from another host\n");
	printf("  sent         %llu packets, %s\n", (unsigned long long)s->from_packets, from);
	printf("  received     %llu packets, %s\n", (unsigned long long)s->to_packets, to);
	printf("  dropped      %llu packets\n", (unsigned long long)s->dropped);
}

static int stats(struct cli *c, const struct net_options *o, const char *name, struct err *e)
{
	struct vnet_answer a;

	if (ask(c, name, &a, e) < 0)
		return e->error;
	if (o->json)
		print_json(a.sessions);
	for (size_t i = 0; !o->json && a.sessions && i < a.sessions->n_sessions; i++)
		print_stats(a.sessions->sessions[i]);
	vnet_answer_fini(&a);
	return 0;
}

/* ---- capture ------------------------------------------------------------------------------ */

/* A capture, and what it waits for. */
struct capture {
	const char *name, *to; /* of the session, and of the file */
	int file, end, signals;
};

/* The gateway says that nothing follows, or nobody would read it. */
static int ended(const struct capture *c, bool unread, struct err *e)
{
	const int why = unread ? -EPIPE : vnet_capture_ended(c->end);

	if (why == -ENODATA)
		return err_set(e, ERR_FAILED, why,
			"the gateway's worker was killed, and the capture with it");
	if (why < 0 && why != -EPIPE)
		return err_errno(e, why, "cannot write %s", c->to);
	if (!why)
		fprintf(stderr, "%s has left the gateway\n", c->name);
	return 0;
}

/* Until a signal (1), or the end of the capture or of the gateway. */
static int wait_for_end(const struct capture *c, struct vnet_client *client, struct err *e)
{
	struct pollfd polls[] = {{vnet_client_fd(client), POLLIN, 0}, {c->signals, POLLIN, 0},
		{c->end, POLLIN, 0}, {c->file, 0, 0}};

	for (;;) {
		struct vnet_answer a;

		if (poll(polls, ARRAY_SIZE(polls), -1) < 0) {
			if (errno != EINTR)
				return err_errno(e, -errno, "poll");
			continue;
		}
		if (polls[1].revents)
			return 1;
		if (polls[2].revents || polls[3].revents)
			return ended(c, !polls[2].revents, e);
		if (vnet_client_receive(client, &a, e) < 0)
			return err_set(e, ERR_FAILED, -ECONNRESET, "the gateway is gone");
	}
}

static int open_signals(struct capture *c, struct err *e)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	c->signals = signalfd(-1, &mask, SFD_CLOEXEC);
	return c->signals < 0 ? err_errno(e, -errno, "signalfd") : 0;
}

static int open_file(struct capture *c, struct err *e)
{
	/* The gateway takes from a file what it had, once it has taken the file. */
	c->file = strcmp(c->to, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
					  : open(c->to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return c->file < 0 ? err_errno(e, -errno, "cannot write %s", c->to) : 0;
}

/* Has the gateway begin: the pipe's other end is its own alone. */
static int begin(struct capture *c, struct vnet_client *client, struct err *e)
{
	struct vnet_answer a;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_errno(e, -errno, "pipe");
	c->end = ends[0];
	r = vnet_client_capture(client, c->name, c->file, ends[1], e);
	close(ends[1]);
	return r < 0 ? r : vnet_client_wait(client, &a, e);
}

static int run_capture(struct capture *c, struct vnet_client *client, struct err *e)
{
	struct vnet_answer a;
	int r;

	/* before a file is made for nobody */
	if (vnet_client_list(client, c->name, e) < 0 || vnet_client_wait(client, &a, e) < 0)
		return e->error;
	vnet_answer_fini(&a);
	if (open_file(c, e) < 0 || open_signals(c, e) < 0 || begin(c, client, e) < 0)
		return e->error;
	fprintf(stderr, "capturing; ctrl-c ends it\n");
	r = wait_for_end(c, client, e);
	if (r <= 0)
		return r;
	if (vnet_client_capture(client, c->name, -1, -1, e) < 0 ||
		vnet_client_wait(client, &a, e) < 0)
		return e->error;
	r = vnet_capture_ended(c->end);
	return r < 0 && r != -EPIPE ? err_errno(e, r, "cannot write %s", c->to) : 0;
}

static int capture(struct cli *c, const struct net_options *o, const char *name, struct err *e)
{
	struct capture of = {.name = name, .to = o->write, .file = -1, .end = -1, .signals = -1};
	struct vnet_client *client;
	int r;

	if (!o->write)
		return err_set(
			e, ERR_USAGE, -EINVAL, "usage: podrun net capture SESSION -w FILE|-");
	if (strcmp(o->write, "-") == 0 && isatty(STDOUT_FILENO))
		return err_set(
			e, ERR_USAGE, -ENOTTY, "packets are not for a terminal: say -w FILE");
	if (vnet_client_connect(&client, c->paths.runtime, false, e) < 0)
		return e->error;
	r = run_capture(&of, client, e);
	vnet_client_free(client);
	close_fd(of.file);
	close_fd(of.end);
	close_fd(of.signals);
	return r;
}

/* ---- the command -------------------------------------------------------------------------- */

static const struct {
	const char *name;
	bool session; /* needs one */
	int (*run)(struct cli *c, const struct net_options *o, const char *name, struct err *e);
} verbs[] = {
	{"ls", false, list},
	{"stats", false, stats},
	{"capture", true, capture},
};

/* Why the gateway here does not know a session of this host's. */
static void tell_where(struct cli *c, const char *name, struct err *e)
{
	const Pb__VirtualNetwork *v;
	struct client_session s;
	struct err ignored = {0};
	const char *host;

	if (client_look(&s, &c->paths, name, &ignored) < 0)
		return;
	v = s.record->config->network;
	host = !v ? "" : v->through[0] ? v->through : v->gateway;
	if (!v)
		err_set(e, ERR_NOT_FOUND, -ENOENT,
			"'%s' has no gateway: it was not started with --net vnat", name);
	else if (host[0] && strcmp(host, "local") != 0 && strncmp(host, "wg:", 3) != 0)
		err_set(e, ERR_NOT_FOUND, -ENOENT,
			"the gateway of '%s' is on %s, where podrun net tells of it", name, host);
	client_session_fini(&s);
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	_cleanup_free_ char *only = NULL;
	const char *name = argc > 1 ? argv[1] : NULL;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (strcmp(argv[0], verbs[i].name) != 0)
			continue;
		if (verbs[i].session && !name) {
			if (cli_only_session(c, &only, e) < 0)
				return e->error;
			name = only;
		}
		r = verbs[i].run(c, opts, name, e);
		if (r == -ENOENT && e->class == ERR_NOT_FOUND && name)
			tell_where(c, name, e);
		return r;
	}
	return err_set(e, ERR_USAGE, -EINVAL,
		"usage: podrun net ls | stats [SESSION] | capture SESSION -w FILE");
}

const struct cli_command cli_net = {
	.name = "net",
	.usage = "ls | stats [SESSION] | capture SESSION -w FILE|-",
	.help = "networks of sessions: who is attached, how much passes, and what",
	.text = "Of sessions that were started with *--net vnat*. *ls* lists those attached to the gateway "
		"here, and those whose connections wait for a resume; *stats* counts connections, packets and "
		"bytes; *capture* writes what crosses a session's interface, for *tcpdump*(8) or *wireshark*(1), "
		"until it is interrupted, nobody reads them any more, or the session ends, or is "
		"suspended without connections. None of them needs a privilege.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct net_options),
	.verbs = "ls stats capture",
	.group = CLI_LOOK,
	.operand = CLI_SESSION,
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};

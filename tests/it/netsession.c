// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * netsession - a network as sessions have it, attached to a gateway, and nothing else of a session.
 *
 *      netsession RUNTIME NAME [wg:FILE] [flows=N] [link-local] [update=SPEC]
 *              [OUTSIDE:SESSION]...
 *
 * The gateway (this program is also that) runs where this was started; then a user and network
 * namespace is entered in which net0 is all there is.  Says "ready PID", and obeys lines: hold, go,
 * suspend (detach, keep the claim), resume (attach with it), frozen (the same, and nothing passes),
 * redo, late (attach with the one before), end, list.  Each is answered by one line.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/base.h"
#include "proto/gateway.pb-c.h"
#include "vnet/vnet.h"

static struct vnet_client *client;
static struct vnet_attach what;
static struct vnet_claim before;
static int tun, diag;

static void die(const char *doing, const struct err *e)
{
	fprintf(stderr, "netsession: %s: %s\n", doing, e->msg);
	exit(1);
}

static struct vnet_answer wait_answer(struct err *e)
{
	struct vnet_answer a = {0};

	vnet_client_wait(client, &a, e);
	return a;
}

static void attach(void)
{
	struct err e = {0};
	struct vnet_answer a;

	if (vnet_client_attach(client, &what, tun, diag, &e) == 0)
		a = wait_answer(&e);
	if (err_is(&e)) {
		printf("failed %s\n", e.msg);
		return;
	}
	before = what.claim;
	what.claim = a.claim;
	printf("attached label %u epoch %llu lost %d flows %u\n", a.claim.label,
		(unsigned long long)a.claim.epoch, a.lost, a.flows);
}

static void show(const Pb__GatewaySessions *all)
{
	printf("worker %d keeper %d restarts %u", all->worker, all->keeper, all->restarts);
	for (size_t i = 0; i < all->n_sessions; i++) {
		const Pb__GatewaySession *s = all->sessions[i];

		printf(" session %s flows %u dropped %llu refused %llu opened %llu suspended %d listening ",
			s->name, s->flows, (unsigned long long)s->dropped,
			(unsigned long long)s->refused, (unsigned long long)s->opened,
			s->suspended);
		for (size_t p = 0; p < s->n_listening; p++)
			printf("%d", s->listening[p]);
		if (!s->n_listening)
			printf("-");
	}
	printf("\n");
}

static void simple(int (*ask)(struct vnet_client *, struct err *))
{
	struct err e = {0};
	struct vnet_answer a = {0};

	if (ask(client, &e) == 0)
		a = wait_answer(&e);
	if (err_is(&e))
		printf("failed %s\n", e.msg);
	else if (a.kind == VNET_ANSWER_SESSIONS)
		show(a.sessions);
	else
		printf("done flows %u\n", a.flows);
	vnet_answer_fini(&a);
}

static int suspend(struct vnet_client *c, struct err *e)
{
	return vnet_client_detach(c, true, e);
}

static int end(struct vnet_client *c, struct err *e)
{
	return vnet_client_detach(c, false, e);
}

static int list(struct vnet_client *c, struct err *e)
{
	return vnet_client_list(c, NULL, e);
}

static void late(void)
{
	what.claim = before;
	attach();
}

static void resume_frozen(void)
{
	what.frozen = true;
	attach();
}

/* "redo ADDRESS PORT SESSION-PORT TEXT": the text is what the session's kernel has received. */
static void redo(const char *line)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	char address[40], text[64];
	unsigned port, own;
	struct vnet_answer answer = {0};
	struct err e = {0};

	if (sscanf(line, "redo %39s %u %u %63s", address, &port, &own, text) != 4) {
		printf("what?\n");
		return;
	}
	inet_pton(AF_INET, address, &a.sin_addr);
	a.sin_port = htons((uint16_t)port);
	if (vnet_client_redo(
		    client, (struct sockaddr *)&a, (uint16_t)own, text, strlen(text), &e) == 0)
		answer = wait_answer(&e);
	printf("%s\n", err_is(&e) ? e.msg : "done");
	vnet_answer_fini(&answer);
}

static void obey(const char *line)
{
	if (!strcmp(line, "hold\n"))
		simple(vnet_client_hold);
	else if (!strcmp(line, "go\n"))
		simple(vnet_client_go);
	else if (!strcmp(line, "suspend\n"))
		simple(suspend);
	else if (!strcmp(line, "end\n"))
		simple(end);
	else if (!strcmp(line, "list\n"))
		simple(list);
	else if (!strcmp(line, "resume\n"))
		attach();
	else if (!strcmp(line, "frozen\n"))
		resume_frozen();
	else if (!strncmp(line, "redo ", 5))
		redo(line);
	else if (!strcmp(line, "late\n"))
		late();
	else
		printf("what?\n");
	fflush(stdout);
}

/* As the supervisor does it for a session: one that nobody else can look into. */
static void enter(void)
{
	char map[64];
	uid_t uid = geteuid();
	struct err e = {0};

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) {
		err_errno(&e, -errno, "unshare");
		die("namespaces", &e);
	}
	snprintf(map, sizeof(map), "0 %u 1", uid);
	io_write_str(AT_FDCWD, "/proc/self/uid_map", map);
	io_write_str(AT_FDCWD, "/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", getegid());
	io_write_str(AT_FDCWD, "/proc/self/gid_map", map);
}

static void make_network(void)
{
	struct vnet_interface net0 = {.name = "net0", .mtu = VNET_MTU, .default_routes = true};
	struct vnet_netlink nl = VNET_NETLINK_INIT;
	const struct vnet_link up = {.up = true};
	struct err e = {0};
	int lo;

	inet_pton(AF_INET, "10.171.0.2", &what.address4);
	inet_pton(AF_INET, "10.171.0.1", &what.gateway4);
	inet_pton(AF_INET, "10.171.0.3", &what.loopback4);
	inet_pton(AF_INET6, "fd7a:706f:6472::2", &what.address6);
	inet_pton(AF_INET6, "fd7a:706f:6472::1", &what.gateway6);
	net0.v4 = vnet_endpoint_v4(what.address4, 0);
	net0.v6 = vnet_endpoint_v6(&what.address6, 0);
	what.mtu = VNET_MTU;
	if (vnet_netlink_open(&nl, &e) < 0)
		die("netlink", &e);
	lo = vnet_netlink_index(&nl, "lo", &e);
	if (lo < 0 || vnet_netlink_link_set(&nl, lo, &up, &e) < 0)
		die("lo", &e);
	tun = vnet_tun_make(&net0, &e);
	if (tun < 0)
		die("net0", &e);
	diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

int main(int argc, char **argv)
{
	struct err e = {0};
	char line[256];

	if (argc == 3 && strcmp(argv[1], "gateway") == 0)
		return vnet_gateway_main();
	if (argc < 3)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (vnet_client_connect(&client, argv[1], true, &e) < 0)
		die("gateway", &e);
	enter();
	make_network();
	what.name = argv[2];
	what.id = "test";
	for (int i = 3; i < argc; i++) {
		struct vnet_port *p = &what.ports[what.n_ports];
		unsigned outside, session;

		if (sscanf(argv[i], "flows=%u", &what.max_flows) == 1)
			continue;
		if (!strcmp(argv[i], "link-local")) {
			what.link_local = true;
			continue;
		}
		if (!strncmp(argv[i], "update=", 7)) {
			what.dns_update = argv[i] + 7;
			continue;
		}
		if (!strncmp(argv[i], "wg:", 3)) {
			what.remote = argv[i];
			continue;
		}
		what.n_ports++;
		if (sscanf(argv[i], "%u:%u", &outside, &session) != 2)
			return 2;
		*p = (struct vnet_port){.protocol = IPPROTO_TCP,
			.outside = (uint16_t)outside,
			.session = (uint16_t)session};
	}
	printf("ready %d\n", getpid());
	attach();
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}

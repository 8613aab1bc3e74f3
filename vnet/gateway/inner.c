// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A socket belongs to the network namespace of the thread that made it, whoever uses it.  So one
 * thread lives in the inner namespace and makes what is needed there; everything else in the
 * gateway happens in the host's namespace.  (A thread that may enter the inner namespace can't come
 * back: the host's is not its user namespace's.)
 *
 *      gw0             a TUN: translated packets of sessions are written there and read from there
 *      198.18.0.0/15   physical addresses of sessions: out of gw0           (and fd65::/16)
 *      100.64.0.0/10   aliases of everybody else: all local, on lo          (and fd64::/16)
 *      gate            the one listener, for all of them
 *      pool            sockets for inbound connections, a few in advance
 *
 * The inner legs are to last while a session is away for days, so the kernel's patience is set to
 * its most.  What they cross is no network but two queues, so their congestion control is the one
 * that asks least of the CPU, whatever the host's default is: BBR would pace them with a timer
 * for each super-packet.
 */
#include "vnet/gateway/inner.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/base.h"
#include "vnet/gateway/gateway.h"
#include "vnet/netlink.h"
#include "vnet/rewrite.h"
#include "vnet/tun.h"
#include "vnet/vnat.h"

#define EMPTY_TRIES 20 /* of a millisecond */
#define BACKLOG	    4096
#define PATIENCE_MS 0x7fffffff /* 24 days: TCP_USER_TIMEOUT */

struct gateway_inner {
	struct gateway_arena *arena;
	int wanted;	/* eventfd: the pool is to be filled */
	unsigned taken; /* since it was filled */
	pthread_t thread;
	/* The outcome of the beginning. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ready;
	struct err failure;
};

/* ---- the namespace ----------------------------------------------------------------------- */

static int enter_ns(struct gateway_arena *a, struct err *e)
{
	int fd;

	if (a->inner_ns >= 0) {
		if (setns(a->inner_ns, CLONE_NEWNET) < 0)
			return err_errno(e, -errno, "cannot enter the gateway's network namespace");
		return 0;
	}
	if (unshare(CLONE_NEWNET) < 0) {
		err_set(e, ERR_HOST, -errno, "cannot make a network namespace: %s",
			strerror(errno));
		return err_hint(e, "podrun check says what this host allows");
	}
	fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "network namespace");
	a->inner_ns = fd;
	return 0;
}

/* What one kernel lacks is no failure: each is an improvement only. */
static void set_kernel(void)
{
	static const struct {
		const char *name, *value;
	} settings[] = {
		{"ipv4/tcp_rmem", "4096 131072 16777216"},
		{"ipv4/tcp_wmem", "4096 262144 16777216"},
		{"ipv4/tcp_congestion_control", "reno"},
		{"ipv4/tcp_retries2", "255"},
		{"ipv4/tcp_syn_retries", "6"},
		{"ipv4/tcp_slow_start_after_idle", "0"},
		{"ipv4/tcp_no_metrics_save", "1"},
		/*
		 * From one clock for all: a session that keeps a connection for a minute
		 * (TIME_WAIT) knows by it that one from the same port is a new one, though it
		 * comes from a socket of ours with another name.
		 */
		{"ipv4/tcp_timestamps", "2"},
		{"ipv4/tcp_keepalive_time", "32767"},
		{"ipv4/ip_forward", "1"}, /* what the packet filter lets on (rewrite.h) */
		{"ipv6/conf/all/forwarding", "1"},
		{"ipv4/conf/all/rp_filter", "0"},
		{"ipv4/conf/default/rp_filter", "0"},
		{"ipv4/ip_local_port_range", "1024 65535"},
		{"ipv6/conf/default/router_solicitations", "0"},
		{"ipv6/conf/default/accept_ra", "0"},
		{"core/somaxconn", "4096"},
		{"mptcp/enabled", "0"},
	};
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		snprintf(path, sizeof(path), "/proc/sys/net/%s", settings[i].name);
		io_write_str(AT_FDCWD, path, settings[i].value);
	}
}

/* Where /proc/sys is only to be read it does not, and nobody would say what became of packets. */
static bool forwards(const char *path)
{
	char value[8] = "";
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, value, sizeof(value) - 1) > 0 && value[0] == '1';
}

static int set_route(struct vnet_netlink *nl, const struct vnet_endpoint *dst, unsigned prefix,
	int index, bool local, struct err *e)
{
	struct vnet_route r = {.dst = *dst, .prefix = prefix, .index = index, .local = local};

	return vnet_netlink_route_add(nl, &r, e);
}

static int set_routes(struct vnet_netlink *nl, bool v6, int lo, int gw, struct err *e)
{
	struct vnet_endpoint physical = {.family = AF_INET}, alias = {.family = AF_INET};
	int r;

	physical.v4.s_addr = htonl(VNET_PHYSICAL_V4);
	alias.v4.s_addr = htonl(VNET_ALIAS_V4);
	r = set_route(nl, &physical, VNET_PHYSICAL_V4_BITS, gw, false, e);
	if (r == 0)
		r = set_route(nl, &alias, VNET_ALIAS_V4_BITS, lo, true, e);
	if (r < 0 || !v6)
		return r;
	physical.family = alias.family = AF_INET6;
	inet_pton(AF_INET6, VNET_PHYSICAL_V6, &physical.v6);
	inet_pton(AF_INET6, VNET_ALIAS_V6, &alias.v6);
	r = set_route(nl, &physical, VNET_V6_BITS, gw, false, e);
	return r < 0 ? r : set_route(nl, &alias, VNET_V6_BITS, lo, true, e);
}

static int make_gw0(struct gateway_arena *a, struct err *e)
{
	const struct vnet_interface want = {.name = "gw0", .mtu = VNET_MTU};
	_cleanup_netlink_ struct vnet_netlink nl = VNET_NETLINK_INIT;
	const struct vnet_link up = {.up = true};
	_cleanup_close_ int tun = vnet_tun_make(&want, e);
	int lo, gw;

	if (tun < 0)
		return tun;
	if (vnet_netlink_open(&nl, e) < 0)
		return e->error;
	lo = vnet_netlink_index(&nl, "lo", e);
	gw = lo < 0 ? lo : vnet_netlink_index(&nl, "gw0", e);
	if (gw < 0 || vnet_netlink_link_set(&nl, lo, &up, e) < 0 ||
		set_routes(&nl, a->v6, lo, gw, e) < 0)
		return err_wrap(e, "the gateway's network namespace");
	a->whole = vnet_tun_probe(tun) != 0;
	if (!a->whole && vnet_tun_set_segmentation(tun, false, e) < 0)
		return e->error;
	a->gw_tun = take_fd(&tun);
	return 0;
}

/* ---- sockets ----------------------------------------------------------------------------- */

static void set_int(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

/* Accepted sockets inherit all of this from the gate. */
static int new_socket(const struct gateway_arena *a)
{
	int fd = socket(a->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (a->v6)
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	set_int(fd, SOL_IP, IP_FREEBIND, 1);	  /* aliases are local, but nobody's address */
	set_int(fd, SOL_SOCKET, SO_OOBINLINE, 1); /* pump.c */
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, PATIENCE_MS);
	return fd;
}

static int make_gate(struct gateway_arena *a, struct err *e)
{
	_cleanup_close_ int fd = new_socket(a);
	struct sockaddr_storage at = {.ss_family = a->v6 ? AF_INET6 : AF_INET};
	struct vnet_endpoint ep;
	socklen_t len = sizeof(at);

	if (fd < 0)
		return err_errno(e, fd, "the gateway's listener");
	if (bind(fd, (struct sockaddr *)&at,
		    a->v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) < 0 ||
		listen(fd, BACKLOG) < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return err_errno(e, -errno, "the gateway's listener");
	if (vnet_endpoint_from_sockaddr(&at, len, &ep) < 0)
		return err_set(e, ERR_FAILED, -EIO, "the gateway's listener");
	a->gate_port = ep.port;
	a->gate = take_fd(&fd);
	return 0;
}

static void fill_pool(struct gateway_arena *a)
{
	for (size_t i = 0; i < GATEWAY_POOL; i++) {
		int fd;

		if (__atomic_load_n(&a->pool[i], __ATOMIC_ACQUIRE) >= 0)
			continue;
		fd = new_socket(a);
		if (fd < 0)
			return;
		__atomic_store_n(&a->pool[i], fd, __ATOMIC_RELEASE);
	}
}

/* ---- the thread -------------------------------------------------------------------------- */

static bool have_v6(void)
{
	_cleanup_close_ int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && access("/proc/sys/net/ipv6/conf/lo", F_OK) == 0;
}

/* For the worker.  Without them everything goes by the TUNs. */
static void open_kernel(struct gateway_arena *a)
{
	struct vnet_netlink nl = VNET_NETLINK_INIT;
	struct err e = {0};

	if (a->inner_route < 0 && vnet_netlink_open(&nl, &e) == 0)
		a->inner_route = nl.fd;
	if (a->inner_rewrite < 0)
		a->inner_rewrite = MAX(vnet_rewrite_open(&e), -1);
	if (a->inner_links < 0)
		a->inner_links = MAX(vnet_netlink_watch(&e), -1);
	if (err_is(&e))
		log_info("everything goes by the TUNs: %s", e.msg);
}

static int begin(struct gateway_arena *a, struct err *e)
{
	if (enter_ns(a, e) < 0)
		return e->error;
	if (a->gate >= 0 && a->gw_tun >= 0)
		return 0;
	set_kernel();
	a->forwards4 = forwards("/proc/sys/net/ipv4/ip_forward");
	a->forwards6 = forwards("/proc/sys/net/ipv6/conf/all/forwarding");
	a->v6 = have_v6();
	open_kernel(a);
	if (a->gw_tun < 0 && make_gw0(a, e) < 0)
		return e->error;
	return a->gate < 0 ? make_gate(a, e) : 0;
}

static void *inner_thread(void *ctx)
{
	struct gateway_inner *in = ctx;
	struct err e = {0};
	uint64_t n;

	begin(in->arena, &e);
	pthread_mutex_lock(&in->lock);
	in->failure = e;
	in->ready = true;
	pthread_cond_signal(&in->changed);
	pthread_mutex_unlock(&in->lock);
	if (err_is(&e))
		return NULL;
	do
		fill_pool(in->arena);
	while (read(in->wanted, &n, sizeof(n)) == sizeof(n));
	return NULL;
}

int gateway_inner_start(struct vnet_gateway *g, struct err *e)
{
	struct gateway_inner *in = calloc(1, sizeof(*in));
	sigset_t all, old;
	int r;

	if (!in)
		return err_errno(e, -ENOMEM, "gateway");
	g->inner = in;
	in->arena = g->arena;
	in->wanted = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&in->lock, NULL);
	pthread_cond_init(&in->changed, NULL);
	if (in->wanted < 0)
		return err_errno(e, -errno, "gateway");
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	r = pthread_create(&in->thread, NULL, inner_thread, in);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return err_errno(e, -r, "gateway");
	pthread_mutex_lock(&in->lock);
	while (!in->ready)
		pthread_cond_wait(&in->changed, &in->lock);
	pthread_mutex_unlock(&in->lock);
	if (err_is(&in->failure))
		*e = in->failure;
	return in->failure.error;
}

static int take_socket(struct gateway_arena *a)
{
	for (size_t i = 0; i < GATEWAY_POOL; i++) {
		int fd = __atomic_load_n(&a->pool[i], __ATOMIC_ACQUIRE);

		if (fd < 0)
			continue;
		__atomic_store_n(&a->pool[i], -1, __ATOMIC_RELEASE);
		return fd;
	}
	return -EAGAIN;
}

int gateway_inner_socket(struct vnet_gateway *g)
{
	struct gateway_inner *in = g->inner;
	const uint64_t one = 1;
	int fd = take_socket(g->arena);

	if (fd >= 0 && ++in->taken < GATEWAY_POOL / 2)
		return fd;
	in->taken = 0;
	if (write(in->wanted, &one, sizeof(one)) < 0)
		return fd;
	/* A burst has used them all up; making one takes some microseconds. */
	for (int i = 0; fd < 0 && i < EMPTY_TRIES; i++) {
		poll(NULL, 0, 1);
		fd = take_socket(g->arena);
	}
	return fd;
}

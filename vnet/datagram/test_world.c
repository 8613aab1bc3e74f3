// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/datagram/datagram.h"
#include "vnet/datagram/test_world.h"
#include "vnet/tun.h"

static bool get(void *data, uint32_t id, struct vnet_datagram_session *ret)
{
	struct world *w = data;

	if (id >= WORLD_SESSIONS || !w->session[id].name)
		return false;
	*ret = w->session[id];
	return true;
}

static bool by_name(void *data, const char *name, uint32_t *ret)
{
	struct vnet_datagram_session s;

	for (*ret = 0; get(data, *ret, &s); ++*ret)
		if (strcasecmp(s.name, name) == 0)
			return true;
	return false;
}

static bool by_physical(void *data, int family, const void *address, uint32_t *ret)
{
	struct vnet_datagram_session s;

	for (*ret = 0; get(data, *ret, &s); ++*ret)
		if (family == AF_INET ? memcmp(&s.physical4, address, sizeof(s.physical4)) == 0
				      : memcmp(&s.physical6, address, sizeof(s.physical6)) == 0)
			return true;
	return false;
}

static void to_session(void *data, uint32_t id, struct vnet_packet *p)
{
	struct world *w = data;

	assert_false(w->session[id].held);
	w->super_in += p->vh.gso_type != 0;
	assert_int_equal(vnet_tun_write(w->tun[id], p), 0);
}

static const struct vnet_datagram_sessions SESSIONS = {
	.get = get, .by_name = by_name, .by_physical = by_physical, .to_session = to_session};

static void write_map(const char *path, unsigned id)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u 1", id, id);
	assert_int_equal(io_write_str(AT_FDCWD, path, text), 0);
}

static int enter(int flags)
{
	assert_int_equal(unshare(flags), 0);
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static void allow_ping(void)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u", getegid(), getegid());
	assert_int_equal(io_write_str(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", text), 0);
}

static void link_up(const char *name)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {.ifr_flags = IFF_UP};

	strcpy(ifr.ifr_name, name);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
}

struct vnet_endpoint world_endpoint(const char *text, uint16_t port)
{
	struct vnet_endpoint ep = {.port = port, .family = AF_INET};

	if (inet_pton(AF_INET, text, &ep.v4) == 1)
		return ep;
	ep.family = AF_INET6;
	assert_int_equal(inet_pton(AF_INET6, text, &ep.v6), 1);
	return ep;
}

/* Addresses and routes of IPv6 are there some moments after the kernel has said so. */
static void wait_for_route(const char *text)
{
	struct vnet_endpoint to = world_endpoint(text, 9);
	struct sockaddr_storage sa;
	socklen_t len = vnet_endpoint_to_sockaddr(&to, &sa);
	_cleanup_close_ int fd = socket(to.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	while (connect(fd, (struct sockaddr *)&sa, len) < 0)
		sched_yield();
}

/* A TUN is a way to have an interface with addresses in a namespace without anything else. */
static void make_outside(void)
{
	struct err e = {0};
	struct vnet_interface out = {.name = "out0",
		.mtu = 1500,
		.v4 = world_endpoint("192.0.2.1", 0),
		.v6 = world_endpoint("2001:db8::1", 0),
		.default_routes = false};

	link_up("lo");
	if (vnet_tun_make(&out, &e) < 0)
		fail_msg("%s", e.msg);
	wait_for_route("2001:db8::1");
	allow_ping();
}

static void make_session(struct world *w, unsigned i)
{
	struct vnet_datagram_session *s = &w->session[i];
	struct err e = {0};
	struct vnet_interface net0 = {.name = "net0",
		.mtu = VNET_MTU,
		.v4 = world_endpoint("10.171.0.2", 0),
		.v6 = world_endpoint("fd7a:706f:6472::2", 0),
		.default_routes = true};

	w->ns[i] = enter(CLONE_NEWNET);
	link_up("lo");
	allow_ping();
	w->tun[i] = vnet_tun_make(&net0, &e);
	if (w->tun[i] < 0)
		fail_msg("%s", e.msg);
	wait_for_route("2001:db8::1");
	*s = (struct vnet_datagram_session){.name = i ? "other" : "work", .mtu = VNET_MTU};
	s->address4 = net0.v4.v4;
	s->address6 = net0.v6.v6;
	s->gateway4 = world_endpoint("10.171.0.1", 0).v4;
	s->gateway6 = world_endpoint("fd7a:706f:6472::1", 0).v6;
	s->loopback4 = world_endpoint("10.171.0.3", 0).v4;
	s->loopback6 = world_endpoint("fd7a:706f:6472::3", 0).v6;
	s->physical4 = world_endpoint(i ? "10.200.0.2" : "10.200.0.1", 0).v4;
	s->physical6 = world_endpoint(i ? "fd64:1::2" : "fd64:1::1", 0).v6;
	assert_int_equal(setns(w->host_ns, CLONE_NEWNET), 0);
}

static void start(struct world *w)
{
	struct err e = {0};

	if (vnet_datagram_new(&w->datagrams, w->arena, &SESSIONS, w, w->resolv, &e) < 0)
		fail_msg("%s", e.msg);
}

int world_make(struct world *w)
{
	const unsigned uid = getuid(), gid = getgid();

	*w = (struct world){0};
	if (unshare(CLONE_NEWUSER) < 0)
		return 1;
	io_write_str(AT_FDCWD, "/proc/self/setgroups", "deny");
	write_map("/proc/self/uid_map", uid);
	write_map("/proc/self/gid_map", gid);
	w->host_ns = enter(CLONE_NEWNET);
	make_outside();
	for (unsigned i = 0; i < WORLD_SESSIONS; i++)
		make_session(w, i);
	strcpy(w->resolv, "/tmp/podrun-resolv.XXXXXX");
	close_fd(mkstemp(w->resolv));
	w->arena = mmap(NULL, vnet_datagram_arena_size(), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	start(w);
	return 0;
}

void world_end(struct world *w)
{
	for (unsigned i = 0; i < WORLD_SESSIONS; i++)
		vnet_datagram_forget(w->datagrams, i);
	vnet_datagram_free(w->datagrams);
	unlink(w->resolv);
}

void world_restart(struct world *w)
{
	vnet_datagram_free(w->datagrams);
	start(w);
}

int world_socket(struct world *w, int i, int family, int type, int protocol)
{
	int fd;

	if (i >= 0)
		assert_int_equal(setns(w->ns[i], CLONE_NEWNET), 0);
	fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	assert_true(fd >= 0);
	assert_int_equal(setns(w->host_ns, CLONE_NEWNET), 0);
	return fd;
}

int world_bound(struct world *w, int i, int type, const char *text, uint16_t port)
{
	struct vnet_endpoint at = world_endpoint(text, port);
	struct sockaddr_storage sa;
	socklen_t len = vnet_endpoint_to_sockaddr(&at, &sa);
	int fd = world_socket(w, i, at.family, type, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	return fd;
}

/* True if a packet was there. */
static bool from_session(struct world *w, unsigned i)
{
	static uint8_t data[VNET_PACKET_MAX] __attribute__((aligned(8)));
	struct vnet_packet p = {.data = data, .room = sizeof(data)};

	if (vnet_tun_read(w->tun[i], &p) < 0)
		return false;
	if (vnet_packet_parse(&p) == 0) {
		w->super_out += p.vh.gso_type != 0;
		vnet_datagram_take(w->datagrams, i, &p);
	}
	return true;
}

static void pass(struct world *w, const struct pollfd *ready)
{
	for (unsigned i = 0; i < WORLD_SESSIONS; i++)
		while (ready[i].revents && from_session(w, i))
			;
	vnet_datagram_flush(w->datagrams);
	if (ready[WORLD_SESSIONS].revents)
		vnet_datagram_run(w->datagrams);
}

static int look(struct world *w, int fd, short events, int timeout)
{
	struct pollfd p[WORLD_SESSIONS + 2] = {0};
	int r;

	for (unsigned i = 0; i < WORLD_SESSIONS; i++)
		p[i] = (struct pollfd){w->session[i].held ? -1 : w->tun[i], POLLIN, 0};
	p[WORLD_SESSIONS] = (struct pollfd){vnet_datagram_fd(w->datagrams), POLLIN, 0};
	p[WORLD_SESSIONS + 1] = (struct pollfd){fd, events, 0};
	r = poll(p, ARRAY_SIZE(p), timeout);
	assert_true(r >= 0);
	if (p[WORLD_SESSIONS + 1].revents)
		return -1;
	pass(w, p);
	return r;
}

void world_wait(struct world *w, int fd, short events)
{
	while (look(w, fd, events, -1) >= 0)
		;
}

void world_settle(struct world *w)
{
	while (look(w, -1, 0, 0) > 0)
		;
}

void world_send(int fd, const struct vnet_endpoint *to, const void *data, size_t len)
{
	struct sockaddr_storage sa;
	socklen_t n = vnet_endpoint_to_sockaddr(to, &sa);

	assert_int_equal(sendto(fd, data, len, 0, (struct sockaddr *)&sa, n), len);
}

size_t world_receive(struct world *w, int fd, void *data, size_t room, struct vnet_endpoint *from)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	ssize_t n;

	world_wait(w, fd, POLLIN);
	n = recvfrom(fd, data, room, 0, (struct sockaddr *)&sa, &len);
	assert_true(n >= 0);
	if (from)
		assert_int_equal(vnet_endpoint_from_sockaddr(&sa, len, from), 0);
	return (size_t)n;
}

uint16_t world_port(int fd)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct vnet_endpoint ep;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(vnet_endpoint_from_sockaddr(&sa, len, &ep), 0);
	return ep.port;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two kernels and the translator between them: a session's TUN and a gateway's, each in a user and
 * network namespace of its own, and this process, which has no privilege over either, hands packets
 * from one to the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/netlink.h"
#include "vnet/test_packets.h"
#include "vnet/tun.h"
#include "vnet/vnat.h"

#define GATE	 4000
#define SESSIONS 4
#define FLOWS	 64
#define BYTES	 (48u << 20)

enum { SESSION, GATEWAY };

/* A process in namespaces of its own. */
struct side {
	pid_t pid;
	int go; /* it waits for a byte here */
	int tun;
};

static struct test_buffer buffer;
static void *arena;

static int write_to(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* 0 in a new user and network namespace whose loopback is up. */
static int enter(void)
{
	struct vnet_link up = {.up = true};
	_cleanup_netlink_ struct vnet_netlink nl = VNET_NETLINK_INIT;
	char map[64];
	int index;

	snprintf(map, sizeof(map), "0 %d 1", (int)getuid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 ||
		write_to("/proc/self/setgroups", "deny") < 0 ||
		write_to("/proc/self/uid_map", map) < 0)
		return -1;
	if (vnet_netlink_open(&nl, NULL) < 0)
		return -1;
	index = vnet_netlink_index(&nl, "lo", NULL);
	return index < 0 ? -1 : vnet_netlink_link_set(&nl, index, &up, NULL);
}

static int route(struct vnet_netlink *nl, const char *dst, unsigned int prefix, const char *dev)
{
	struct vnet_route r = {.dst = test_ep(dst, 0), .prefix = prefix};

	r.local = strcmp(dev, "lo") == 0;
	r.index = vnet_netlink_index(nl, dev, NULL);
	return vnet_netlink_route_add(nl, &r, NULL);
}

/* Has any interface of this namespace a link-local address? */
static bool has_link_local(void)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	return io_read_file(AT_FDCWD, "/proc/self/net/if_inet6", 4096, &text) < 0 ||
	       !buf_cstr(&text) || strncmp(buf_cstr(&text), "fe80", 4) == 0 ||
	       strstr(buf_cstr(&text), "\nfe80");
}

/* The TUN of this side, with its routes. */
static int make_tun(int which)
{
	struct vnet_interface want = {.name = "net0", .mtu = VNET_MTU, .default_routes = true};
	_cleanup_netlink_ struct vnet_netlink nl = VNET_NETLINK_INIT;
	int fd;

	if (which == SESSION) {
		want.v4 = test_ep("10.171.0.2", 0);
		want.v6 = test_ep("fd7a:706f:6472::2", 0);
		fd = vnet_tun_make(&want, NULL);
		return fd >= 0 && has_link_local() ? -1 : fd;
	}
	want.name = "gw0";
	want.default_routes = false;
	want.v4 = test_ep("100.64.0.0", 0);
	want.v6 = test_ep("fd64::", 0);
	fd = vnet_tun_make(&want, NULL);
	if (fd < 0 || vnet_netlink_open(&nl, NULL) < 0 || route(&nl, "198.18.0.0", 15, "gw0") < 0 ||
		route(&nl, "fd65::", 16, "gw0") < 0 || route(&nl, "100.64.0.0", 10, "lo") < 0 ||
		route(&nl, VNET_ALIAS_V6, 16, "lo") < 0)
		return -1;
	return fd;
}

static void send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {(char[]){0}, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(sock, &msg, 0) != 1)
		_exit(20);
}

static int receive_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Byte @at of what @side sends. */
static uint8_t pattern(size_t at, int side)
{
	return (uint8_t)(at * 2654435761u >> 13) + (uint8_t)side;
}

/* Sends and receives BYTES at the same time, and then sees the end. */
static int exchange(int fd, int me)
{
	static uint8_t out[65536], in[65536];
	size_t sent = 0, got = 0, ready = 0;

	for (;;) {
		struct pollfd p = {fd, POLLIN | (sent < BYTES ? POLLOUT : 0), 0};
		ssize_t n;

		poll(&p, 1, -1);
		if (sent < BYTES && p.revents & POLLOUT) {
			for (; ready < sizeof(out) && sent + ready < BYTES; ready++)
				out[ready] = pattern(sent + ready, me);
			n = send(fd, out, ready, MSG_DONTWAIT);
			if (n < 0 && errno != EAGAIN)
				return 31;
			n = MAX(n, (ssize_t)0);
			memmove(out, out + n, ready - (size_t)n);
			ready -= (size_t)n;
			sent += (size_t)n;
			if (sent == BYTES)
				shutdown(fd, SHUT_WR);
		}
		n = recv(fd, in, sizeof(in), MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			return 32;
		for (ssize_t i = 0; i < n; i++)
			if (in[i] != pattern(got++, !me))
				return 33;
		if (n == 0 && sent == BYTES)
			return got == BYTES ? 0 : 34;
	}
}

static int connect_to(const char *address)
{
	struct vnet_endpoint to = test_ep(address, 80);
	struct sockaddr_storage sa;
	int fd = socket(to.family, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&sa, vnet_endpoint_to_sockaddr(&to, &sa)) < 0)
		return -1;
	return fd;
}

/*
 * In the session: a stream to servers of both families, which are told by what only the translator
 * knows.
 */
static int session_main(int go)
{
	const char *servers[] = {"192.0.2.7", "2001:db8::7"};
	int r = 0;
	char byte;

	if (read(go, &byte, 1) != 1)
		return 11;
	for (size_t i = 0; i < ARRAY_SIZE(servers) && r == 0; i++) {
		int fd = connect_to(servers[i]);

		r = fd < 0 ? 12 : exchange(fd, SESSION);
		close(fd);
	}
	return r;
}

/* In the gateway: the one listener, and whoever is accepted. */
static int gateway_main(int go)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(GATE)};
	int fd = socket(AF_INET6, SOCK_STREAM, 0), r = 0;
	char byte;

	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 || listen(fd, 16) < 0)
		return 21;
	if (write(go, "", 1) != 1 || read(go, &byte, 1) != 1)
		return 22;
	for (int i = 0; i < 2 && r == 0; i++) {
		struct sockaddr_storage sa;
		socklen_t len = sizeof(sa);
		struct vnet_endpoint near, far;
		struct vnet_vnat *v;
		uint32_t flow;
		int conn = accept(fd, (struct sockaddr *)&sa, &len);

		vnet_endpoint_from_sockaddr(&sa, len, &near);
		len = sizeof(sa);
		getsockname(conn, (struct sockaddr *)&sa, &len);
		vnet_endpoint_from_sockaddr(&sa, len, &far);
		/* The arena is shared: whoever looks into it knows whose connection this is. */
		if (vnet_vnat_new(arena, SESSIONS, FLOWS, GATE, GATE, &v, NULL) < 0)
			return 23;
		flow = vnet_flow_by_inner(v, &near, &far);
		if (flow == VNET_NONE || vnet_flow_get(v, flow)->outside.port != 80)
			return 24;
		r = exchange(conn, GATEWAY);
		close(conn);
	}
	return r;
}

/* False if this host lets nobody make namespaces. */
static bool start(struct side *s, int which)
{
	int pair[2], ok;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0) {
		int tun;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		if (enter() < 0)
			_exit(77);
		tun = make_tun(which);
		if (tun < 0)
			_exit(10);
		send_fd(pair[1], tun);
		close(tun);
		_exit(which == SESSION ? session_main(pair[1]) : gateway_main(pair[1]));
	}
	close(pair[1]);
	s->go = pair[0];
	s->tun = receive_fd(pair[0]);
	if (s->tun >= 0)
		return true;
	assert_int_equal(waitpid(s->pid, &ok, 0), s->pid);
	assert_int_equal(WEXITSTATUS(ok), 77);
	return false;
}

struct seen {
	size_t super, packets, errors;
};

/* One packet from a TUN through the translator.  False if there was none. */
static bool pump(struct vnet_vnat *v, const struct side *sides, int from, struct seen *seen)
{
	struct vnet_packet *p = test_reset(&buffer);
	enum vnat_verdict verdict;
	uint32_t flow, session;
	int to = sides[!from].tun, r = vnet_tun_read(sides[from].tun, p);

	if (r == -EAGAIN)
		return false;
	assert_int_equal(r, 0);
	seen->packets++;
	if (vnet_packet_parse(p) < 0) {
		seen->errors++;
		return true;
	}
	seen->super += p->vh.gso_size != 0;
	verdict = from == SESSION ? vnet_vnat_from_session(v, 0, p, &flow)
				  : vnet_vnat_from_gateway(v, p, &session, &flow);
	if (verdict == VNAT_NEW) {
		assert_int_equal(vnet_flow_open(v, 0, p, &flow), 0);
		vnet_flow_release(v, flow, p);
		verdict = VNAT_PASS;
	}
	if (verdict == VNAT_ANSWER)
		to = sides[from].tun;
	if (verdict == VNAT_PASS || verdict == VNAT_ANSWER)
		assert_int_equal(vnet_tun_write(to, p), 0);
	return true;
}

static void stream_through_the_translator(void **state)
{
	struct vnet_endpoint v4 = test_ep("10.171.0.2", 0), v6 = test_ep("fd7a:706f:6472::2", 0);
	struct side sides[2];
	struct seen seen = {0};
	struct vnet_vnat *v;
	int running = 2, status;
	char byte;

	arena = mmap(NULL, vnet_vnat_size(SESSIONS, FLOWS), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(vnet_vnat_new(arena, SESSIONS, FLOWS, GATE, GATE, &v, NULL), 0);
	assert_int_equal(vnet_session_add(v, 0, &v4, &v6), 0);
	if (!start(&sides[SESSION], SESSION)) {
		print_message("this host lets nobody make namespaces\n");
		vnet_vnat_free(v);
		skip();
	}
	assert_true(start(&sides[GATEWAY], GATEWAY));
	assert_int_equal(read(sides[GATEWAY].go, &byte, 1), 1);
	assert_int_equal(vnet_tun_probe(sides[GATEWAY].tun), 1);
	assert_int_equal(write(sides[GATEWAY].go, "", 1), 1);
	assert_int_equal(write(sides[SESSION].go, "", 1), 1);
	while (running) {
		/* Their ends of the sockets are closed when they exit. */
		struct pollfd p[4] = {{sides[0].tun, POLLIN}, {sides[1].tun, POLLIN},
			{sides[0].go, POLLIN}, {sides[1].go, POLLIN}};

		assert_true(poll(p, 4, -1) > 0);
		for (int i = 0; i < 2; i++) {
			for (int n = 0; n < 16 && p[i].revents & POLLIN; n++)
				if (!pump(v, sides, i, &seen))
					break;
			if (!p[2 + i].revents)
				continue;
			assert_int_equal(waitpid(sides[i].pid, &status, 0), sides[i].pid);
			assert_int_equal(status, 0);
			close(sides[i].go);
			sides[i].go = -1;
			running--;
		}
	}
	assert_true(seen.super > 100);
	assert_int_equal(seen.errors, 0);
	assert_int_equal(vnet_session_get(v, 0)->counters.flows, 2);
	for (uint32_t i = VNET_NONE; (i = vnet_flow_next(v, 0, i)) != VNET_NONE;)
		assert_true(vnet_flow_ends(vnet_flow_get(v, i)));
	close(sides[0].tun);
	close(sides[1].tun);
	vnet_vnat_free(v);
	munmap(arena, vnet_vnat_size(SESSIONS, FLOWS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_through_the_translator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

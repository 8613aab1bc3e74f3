// SPDX-License-Identifier: GPL-2.0-or-later
/* Options of sockets, of each family: what was set is told again, and filters go on to decide. */
#include <linux/filter.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "tests/state/state.h"

enum { UNIX, TCP, LISTENER, TCP6, UDP, UDP6, LITE, NETLINK, N };

static int socks[N];

static const struct {
	int sock, level, name, value;
} numbers[] = {
	{UNIX, SOL_SOCKET, SO_PASSCRED, 1},
	{UNIX, SOL_SOCKET, SO_RCVLOWAT, 12},
	{UNIX, SOL_SOCKET, SO_PEEK_OFF, 3},
	{UNIX, SOL_SOCKET, 82 /* SO_RCVPRIORITY */, 1},
	{TCP, SOL_SOCKET, SO_OOBINLINE, 1},
	{TCP, SOL_SOCKET, SO_PRIORITY, 4},
	{TCP, SOL_SOCKET, SO_RCVLOWAT, 100},
	{TCP, SOL_SOCKET, SO_KEEPALIVE, 1},
	{TCP, SOL_SOCKET, SO_TIMESTAMPNS, 1},
	{TCP, SOL_SOCKET, SO_ZEROCOPY, 1},
	{TCP, IPPROTO_TCP, TCP_CORK, 1},
	{TCP, IPPROTO_TCP, TCP_KEEPIDLE, 60},
	{TCP, IPPROTO_TCP, TCP_KEEPINTVL, 11},
	{TCP, IPPROTO_TCP, TCP_KEEPCNT, 5},
	{TCP, IPPROTO_TCP, TCP_SYNCNT, 3},
	{TCP, IPPROTO_TCP, TCP_LINGER2, 17},
	{TCP, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384},
	{TCP, SOL_SOCKET, 74 /* SO_TXREHASH */, 0},
	{TCP, IPPROTO_TCP, 34 /* TCP_FASTOPEN_NO_COOKIE */, 1},
	{TCP, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1},
	{TCP, IPPROTO_IP, IP_TTL, 33},
	{TCP, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO},
	{LISTENER, SOL_SOCKET, SO_REUSEADDR, 1},
	{LISTENER, SOL_SOCKET, SO_INCOMING_CPU, 0},
	{LISTENER, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1},
	{LISTENER, IPPROTO_TCP, TCP_FASTOPEN, 16},
	{LISTENER, IPPROTO_IP, IP_FREEBIND, 1},
	{TCP6, IPPROTO_IPV6, IPV6_V6ONLY, 1},
	{TCP6, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 9},
	{TCP6, IPPROTO_IPV6, IPV6_TCLASS, 0x20},
	{TCP6, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1},
	{TCP6, IPPROTO_IPV6, 33 /* IPV6_FLOWINFO_SEND */, 1},
	{UDP, SOL_SOCKET, SO_BROADCAST, 1},
	{UDP, SOL_SOCKET, SO_DONTROUTE, 1},
	{UDP, SOL_SOCKET, SO_NO_CHECK, 1},
	{UDP, SOL_SOCKET, SO_RXQ_OVFL, 1},
	{UDP, SOL_SOCKET, SO_TIMESTAMP, 1},
	{UDP, SOL_SOCKET, SO_WIFI_STATUS, 1},
	{UDP, SOL_SOCKET, SO_NOFCS, 1},
	{UDP, IPPROTO_IP, IP_TOS, 0x10},
	{UDP, SOL_SOCKET, SO_PRIORITY, 2}, /* the one before has set it */
	{UDP, IPPROTO_IP, IP_PKTINFO, 1},
	{UDP, IPPROTO_IP, IP_RECVERR, 1},
	{UDP, IPPROTO_IP, IP_RECVTOS, 1},
	{UDP, IPPROTO_IP, IP_PASSSEC, 1},
	{UDP, IPPROTO_IP, IP_MULTICAST_TTL, 7},
	{UDP, IPPROTO_IP, IP_MULTICAST_LOOP, 0},
	{UDP, IPPROTO_UDP, UDP_SEGMENT, 1200},
	{UDP, IPPROTO_UDP, UDP_GRO, 1},
	{UDP6, SOL_SOCKET, 65 /* SO_TIMESTAMPING_NEW */, 0x18},
	{UDP6, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 6},
	{UDP6, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1},
	{UDP6, IPPROTO_IPV6, IPV6_RECVERR, 1},
	{UDP6, IPPROTO_IPV6, IPV6_DONTFRAG, 1},
	{UDP6, IPPROTO_IPV6, IPV6_2292HOPOPTS, 1},
	{UDP6, IPPROTO_IPV6, IPV6_2292DSTOPTS, 1},
	{UDP6, IPPROTO_IPV6, IPV6_2292RTHDR, 1},
	{UDP6, IPPROTO_IPV6, 30 /* IPV6_ROUTER_ALERT_ISOLATE */, 1},
	{LITE, IPPROTO_UDPLITE, UDP_CORK, 1},
	{LITE, IPPROTO_UDPLITE, UDP_NO_CHECK6_RX, 1},
	{NETLINK, SOL_SOCKET, SO_PASSCRED, 1},
};
#define N_NUMBERS (sizeof(numbers) / sizeof(*numbers))
static int told[N_NUMBERS]; /* some the kernel rounds */

static int get(size_t i)
{
	int value = -1;
	socklen_t len = sizeof(value);

	STATE_CHECK(getsockopt(socks[numbers[i].sock], numbers[i].level, numbers[i].name, &value,
			    &len) == 0 ||
		    errno == ENOPROTOOPT);
	return value;
}

static void set_numbers(void)
{
	for (size_t i = 0; i < N_NUMBERS; i++) {
		int r = setsockopt(socks[numbers[i].sock], numbers[i].level, numbers[i].name,
			&numbers[i].value, sizeof(int));

		/* SO_RCVPRIORITY is of Linux 6.14. */
		STATE_CHECK(r == 0 || errno == ENOPROTOOPT);
		told[i] = get(i);
	}
}

static void check_numbers(void)
{
	for (size_t i = 0; i < N_NUMBERS; i++) {
		/* One of the two kernels does not know it. */
		if (told[i] < 0 || get(i) < 0)
			continue;
		if (get(i) != told[i])
			printf("option %d of level %d of socket %d was %d, is %d\n",
				numbers[i].name, numbers[i].level, numbers[i].sock, told[i],
				get(i));
		STATE_CHECK(get(i) == told[i]);
	}
}

static const struct timeval patience = {3, 250000}, haste = {0, 500000};
static const struct linger linger = {.l_onoff = 1, .l_linger = 21};

static const char key[] = "of cookies of it"; /* without the end */

static void set_structs(void)
{
	STATE_CHECK(setsockopt(socks[LISTENER], IPPROTO_TCP, TCP_FASTOPEN_KEY, key, 16) == 0);
	STATE_CHECK(
		setsockopt(socks[TCP], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
	STATE_CHECK(setsockopt(socks[UNIX], SOL_SOCKET, SO_SNDTIMEO, &haste, sizeof(haste)) == 0);
	STATE_CHECK(
		setsockopt(socks[LISTENER], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
	STATE_CHECK(setsockopt(socks[TCP6], IPPROTO_TCP, TCP_CONGESTION, "reno", 4) == 0);
	STATE_CHECK(setsockopt(socks[UDP], SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) == 0);
}

static void check_structs(void)
{
	struct timeval t;
	struct linger l;
	char text[32] = "";
	socklen_t len = sizeof(text);

	STATE_CHECK(getsockopt(socks[LISTENER], IPPROTO_TCP, TCP_FASTOPEN_KEY, text, &len) == 0);
	STATE_CHECK(len == 16 && !memcmp(text, key, 16));
	len = sizeof(t);
	STATE_CHECK(getsockopt(socks[TCP], SOL_SOCKET, SO_RCVTIMEO, &t, &len) == 0);
	STATE_CHECK(t.tv_sec == 3 && t.tv_usec >= 250000 && t.tv_usec < 260000); /* a tick */
	STATE_CHECK(getsockopt(socks[UNIX], SOL_SOCKET, SO_SNDTIMEO, &t, &len) == 0);
	STATE_CHECK(t.tv_sec == 0 && t.tv_usec >= 500000 && t.tv_usec < 510000);
	len = sizeof(l);
	STATE_CHECK(getsockopt(socks[LISTENER], SOL_SOCKET, SO_LINGER, &l, &len) == 0);
	STATE_CHECK(!memcmp(&l, &linger, sizeof(l)));
	len = sizeof(text);
	STATE_CHECK(getsockopt(socks[TCP6], IPPROTO_TCP, TCP_CONGESTION, text, &len) == 0);
	STATE_CHECK(!strcmp(text, "reno"));
	len = sizeof(text);
	STATE_CHECK(getsockopt(socks[UDP], SOL_SOCKET, SO_BINDTODEVICE, text, &len) == 0);
	STATE_CHECK(!strcmp(text, "lo"));
}

/* ---- a filter on datagrams, and one that may not be taken off any more ----------------------- */

static int filtered[2], locked[2];

static void set_filters(void)
{
	/* Those that begin with 'y', and of them five bytes. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'y', 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 5),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {.len = 4, .filter = code};
	int one = 1;

	STATE_CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, filtered) == 0);
	STATE_CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, locked) == 0);
	STATE_CHECK(send(filtered[0], "early", 5, 0) == 5);
	STATE_CHECK(setsockopt(filtered[1], SOL_SOCKET, SO_ATTACH_FILTER, &program,
			    sizeof(program)) == 0);
	STATE_CHECK(setsockopt(locked[1], SOL_SOCKET, SO_ATTACH_FILTER, &program,
			    sizeof(program)) == 0);
	STATE_CHECK(setsockopt(locked[1], SOL_SOCKET, SO_LOCK_FILTER, &one, sizeof(one)) == 0);
	STATE_CHECK(send(filtered[0], "yes, queued", 11, 0) == 11);
}

static void check_filters(void)
{
	char buf[16];
	int off = 0;

	STATE_CHECK(recv(filtered[1], buf, sizeof(buf), 0) == 5 && !memcmp(buf, "early", 5));
	STATE_CHECK(recv(filtered[1], buf, sizeof(buf), 0) == 5 && !memcmp(buf, "yes, ", 5));
	send(filtered[0], "no", 2, 0);
	STATE_CHECK(send(filtered[0], "yes, later", 10, 0) == 10);
	STATE_CHECK(recv(filtered[1], buf, sizeof(buf), 0) == 5 && !memcmp(buf, "yes, ", 5));
	STATE_CHECK(recv(filtered[1], buf, sizeof(buf), MSG_DONTWAIT) == -1 && errno == EAGAIN);
	STATE_CHECK(setsockopt(filtered[1], SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof(off)) == 0);
	STATE_CHECK(setsockopt(locked[1], SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof(off)) == -1 &&
		    errno == EPERM);
}

int main(int argc, char **argv)
{
	socks[UNIX] = socket(AF_UNIX, SOCK_STREAM, 0);
	socks[TCP] = socket(AF_INET, SOCK_STREAM, 0);
	socks[LISTENER] = socket(AF_INET, SOCK_STREAM, 0);
	socks[TCP6] = socket(AF_INET6, SOCK_STREAM, 0);
	socks[UDP] = socket(AF_INET, SOCK_DGRAM, 0);
	socks[UDP6] = socket(AF_INET6, SOCK_DGRAM, 0);
	socks[LITE] = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE);
	socks[NETLINK] = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	set_numbers();
	set_structs();
	STATE_CHECK(listen(socks[LISTENER], 3) == 0);
	set_filters();
	state_ready(argc, argv);
	check_numbers();
	check_structs();
	check_filters();
	return state_ok();
}

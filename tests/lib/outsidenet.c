// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in outsidenet.h. */
#include "tests/lib/outsidenet.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"

#define MTU	1420
#define SUPER	(65536 + 256)
#define PREFIX6 16

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "outsidenet: %s: %m\n", what);
	_exit(2);
}

static void must(bool ok, const char *what)
{
	if (!ok)
		die(what);
}

/* ---- a TUN in the network of the calling process
 * ---------------------------------------------- */

/* An address of the calling thread's network may still be tentative. */
static bool has_tentative(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/thread-self/net/if_inet6", "re");
	unsigned flags;
	char line[128];

	must(f, "if_inet6");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %*x %*x %*x %x", &flags) == 1 && flags & IFA_F_TENTATIVE)
			return true;
	return false;
}

/*
 * Nobody is asked on a TUN whether the address is his, but even that the kernel finds out later,
 * when it has time.  Who connects before that comes from ::1, and gets no answer.
 */
static void await_address6(void)
{
	while (has_tentative())
		usleep(1000);
}

static void set_address6(const char *six, int ifindex)
{
	_cleanup_close_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct in6_ifreq req = {.ifr6_prefixlen = PREFIX6, .ifr6_ifindex = ifindex};

	if (fd >= 0 && inet_pton(AF_INET6, six, &req.ifr6_addr) == 1)
		must(ioctl(fd, SIOCSIFADDR, &req) == 0, "IPv6 address");
}

static int make_tun(const char *name, const char *four, const char *six)
{
	int tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
	struct sockaddr_in *a = (void *)&req.ifr_addr;
	int ifindex;

	strcpy(req.ifr_name, name);
	must(tun >= 0 && fd >= 0 && ioctl(tun, TUNSETIFF, &req) == 0, "TUN");
	must(ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) == 0, "offload");
	must(ioctl(fd, SIOCGIFINDEX, &req) == 0, "index");
	ifindex = req.ifr_ifindex;
	*a = (struct sockaddr_in){.sin_family = AF_INET};
	inet_pton(AF_INET, four, &a->sin_addr);
	must(ioctl(fd, SIOCSIFADDR, &req) == 0, "address");
	inet_pton(AF_INET, "255.0.0.0", &a->sin_addr);
	must(ioctl(fd, SIOCSIFNETMASK, &req) == 0, "mask");
	req.ifr_mtu = MTU;
	must(ioctl(fd, SIOCSIFMTU, &req) == 0, "MTU");
	req.ifr_flags = IFF_UP;
	must(ioctl(fd, SIOCSIFFLAGS, &req) == 0, "up");
	set_address6(six, ifindex);
	strcpy(req.ifr_name, "lo");
	req.ifr_flags = IFF_UP;
	ioctl(fd, SIOCSIFFLAGS, &req);
	await_address6();
	return tun;
}

/* ---- the peer
 * --------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_read;
static long results[OUTSIDENET_MAX]; /* plus one; 0: not known yet */

static void *peer(void *arg);

static void start_peer(int fd)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	must(pthread_create(&t, &attr, peer, (void *)(long)fd) == 0, "thread");
}

static void call(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, OUTSIDENET_SESSION4, &to.sin_addr);
	if (fd >= 0 && connect(fd, (void *)&to, sizeof(to)) == 0)
		start_peer(fd);
}

/* From port OUTSIDENET_PORT + 1. */
static void send_datagram(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)}, own;
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	own = to;
	own.sin_port = htons(OUTSIDENET_PORT + 1);
	inet_pton(AF_INET, OUTSIDENET_SESSION4, &to.sin_addr);
	must(fd >= 0 && bind(fd, (void *)&own, sizeof(own)) == 0, "datagram");
	must(sendto(fd, "hello", 5, 0, (void *)&to, sizeof(to)) == 5, "datagram");
}

static bool read_line(int fd, char *line, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && read(fd, line + n, 1) == 1)
		if (line[n++] == '\n')
			break;
	line[n] = '\0';
	return n > 0;
}

static void control(int fd)
{
	char line[64];
	int number;

	while (read_line(fd, line, sizeof(line))) {
		pthread_mutex_lock(&lock);
		if (strcmp(line, "go\n") == 0) {
			may_read = true;
			pthread_cond_broadcast(&changed);
		} else if (sscanf(line, "result %d", &number) == 1 && number < OUTSIDENET_MAX) {
			while (!results[number])
				pthread_cond_wait(&changed, &lock);
			dprintf(fd, "%ld\n", results[number] > 0 ? results[number] - 1 : -1);
		} else if (sscanf(line, "datagram %d", &number) == 1) {
			send_datagram(number);
		} else if (sscanf(line, "call %d", &number) == 1) {
			pthread_mutex_unlock(&lock);
			call(number);
			pthread_mutex_lock(&lock);
		}
		pthread_mutex_unlock(&lock);
	}
}

static void echo(int fd)
{
	char text[4096];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		io_write_full(fd, text, (size_t)n);
}

static bool send_bytes(int fd, size_t n)
{
	unsigned char block[16384];

	for (size_t at = 0; at < n; at += sizeof(block)) {
		for (size_t i = 0; i < sizeof(block); i++)
			block[i] = outsidenet_byte(at + i);
		if (io_write_full(fd, block, MIN(sizeof(block), n - at)) < 0)
			return false;
	}
	return true;
}

static long read_bytes(int fd)
{
	unsigned char block[16384];
	long all = 0;
	ssize_t n;

	while ((n = read(fd, block, sizeof(block))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (block[i] != outsidenet_byte((size_t)(all + i)))
				return -1;
		all += n;
	}
	return n < 0 ? -1 : all;
}

static void serve(int fd, int id, size_t bytes, bool fin)
{
	long result;

	bool sent = send_bytes(fd, bytes);

	if (fin)
		shutdown(fd, SHUT_WR);
	pthread_mutex_lock(&lock);
	while (!may_read)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	result = sent ? read_bytes(fd) : -1;
	if (!fin && result >= 0)
		io_write_full(fd, "bye", 3);
	pthread_mutex_lock(&lock);
	results[id] = result < 0 ? -1 : result + 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void *peer(void *arg)
{
	int fd = (int)(long)arg, id, fin;
	unsigned long bytes;
	char line[64];

	if (!read_line(fd, line, sizeof(line)))
		;
	else if (strcmp(line, "echo\n") == 0)
		echo(fd);
	else if (strcmp(line, "0\n") == 0)
		control(fd);
	else if (sscanf(line, "%d %lu %d", &id, &bytes, &fin) == 3 && id > 0 && id < OUTSIDENET_MAX)
		serve(fd, id, bytes, fin);
	close(fd);
	return NULL;
}

static int listen_at(int port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, no = 0;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	must(fd >= 0 && bind(fd, (void *)&at, sizeof(at)) == 0 && listen(fd, 4096) == 0, "listen");
	return fd;
}

static _Noreturn void be_outside(int sock)
{
	struct pollfd p[2] = {{.events = POLLIN}, {.events = POLLIN}};
	struct rlimit many;
	int tun;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	getrlimit(RLIMIT_NOFILE, &many);
	many.rlim_cur = many.rlim_max;
	setrlimit(RLIMIT_NOFILE, &many);
	must(unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0, "namespaces");
	tun = make_tun("out0", OUTSIDENET_HOST4, OUTSIDENET_HOST6);
	p[0].fd = listen_at(OUTSIDENET_PORT);
	p[1].fd = listen_at(OUTSIDENET_DEAF);
	must(io_send_fds(sock, "t", 1, &tun, 1) >= 0, "send");
	close(tun);
	while (poll(p, 2, -1) > 0)
		for (int i = 0; i < 2; i++) {
			int fd = p[i].revents ? accept4(p[i].fd, NULL, NULL, SOCK_CLOEXEC) : -1;

			if (fd >= 0)
				start_peer(fd);
		}
	_exit(0);
}

/* ---- the pump
 * --------------------------------------------------------------------------------- */

struct pump {
	int sock, inside, outside;
	bool held, heard;
};

/* A TCP packet to the port nobody answers at. */
static bool is_deaf(const struct pump *p, const uint8_t *packet, ssize_t n)
{
	const uint8_t *ip = packet + sizeof(struct virtio_net_hdr);

	return !p->heard && n > (ssize_t)sizeof(struct virtio_net_hdr) + 40 && ip[0] == 0x45 &&
	       ip[9] == IPPROTO_TCP && (ip[22] << 8 | ip[23]) == OUTSIDENET_DEAF;
}

static void move(const struct pump *p, int from, int to)
{
	static uint8_t packet[SUPER];

	for (int i = 0; i < 64; i++) {
		ssize_t n = read(from, packet, sizeof(packet));

		if (n <= 0)
			return;
		if (!is_deaf(p, packet, n) && write(to, packet, (size_t)n) < 0 && errno != EIO)
			fprintf(stderr, "outsidenet: a packet of %zd bytes: %m\n", n);
	}
}

static void *remove_tun(void *arg)
{
	close((int)(long)arg);
	return NULL;
}

/*
 * A kernel that has lost count of who uses an interface removes it only when its last connection
 * has given up, minutes later: that need not be waited for.
 */
static void let_go(int tun)
{
	pthread_t t;

	must(tun < 0 || pthread_create(&t, NULL, remove_tun, (void *)(long)tun) == 0, "thread");
	if (tun >= 0)
		pthread_detach(t);
}

static void obey(struct pump *p)
{
	int fd = -1;
	size_t n = 0;
	char c;

	if (io_recv_fds(p->sock, &c, 1, &fd, 1, &n) <= 0)
		_exit(0);
	if (n) {
		let_go(p->inside);
		p->inside = fd;
		p->held = true;
	} else {
		p->held = c == 'h';
		p->heard = p->heard || p->held;
	}
	io_write_full(p->sock, "k", 1);
}

static _Noreturn void pump(int sock, int outside)
{
	struct pump p = {.sock = sock, .inside = -1, .outside = outside, .held = true};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		bool on = !p.held && p.inside >= 0;
		struct pollfd all[] = {{sock, POLLIN, 0}, {on ? p.inside : -1, POLLIN, 0},
			{on ? p.outside : -1, POLLIN, 0}};

		poll(all, 3, -1);
		if (all[0].revents)
			obey(&p);
		else if (all[1].revents || all[2].revents) {
			move(&p, p.inside, p.outside);
			move(&p, p.outside, p.inside);
		}
	}
}

/* ---- for the test
 * ------------------------------------------------------------------------------ */

static int receive_tun(int sock)
{
	int fd = -1;
	size_t n = 0;
	char c;

	must(io_recv_fds(sock, &c, 1, &fd, 1, &n) > 0 && n == 1, "no TUN");
	return fd;
}

void outsidenet_make(struct outsidenet *o)
{
	int sock[2], tun;
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) == 0, "socketpair");
	pid = fork();
	if (pid == 0)
		be_outside(sock[1]);
	close(sock[1]);
	tun = receive_tun(sock[0]);
	close(sock[0]);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) == 0, "socketpair");
	pid = fork();
	if (pid == 0) {
		close(sock[0]);
		pump(sock[1], tun);
	}
	close(sock[1]);
	close(tun);
	o->pump = sock[0];
}

static void await_pump(const struct outsidenet *o)
{
	char c;

	must(read(o->pump, &c, 1) == 1, "the pump has ended");
}

void outsidenet_attach(struct outsidenet *o, int ns_user, int ns_net)
{
	int sock[2], tun;
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) == 0, "socketpair");
	pid = fork();
	if (pid == 0) {
		must(setns(ns_user, CLONE_NEWUSER) == 0 && setns(ns_net, CLONE_NEWNET) == 0,
			"join");
		tun = make_tun("net0", OUTSIDENET_SESSION4, OUTSIDENET_SESSION6);
		must(io_send_fds(sock[1], "t", 1, &tun, 1) >= 0, "send");
		_exit(0);
	}
	close(sock[1]);
	tun = receive_tun(sock[0]);
	close(sock[0]);
	must(io_send_fds(o->pump, "a", 1, &tun, 1) >= 0, "send");
	close(tun);
	await_pump(o);
}

void outsidenet_hold(struct outsidenet *o, bool on)
{
	must(io_write_full(o->pump, on ? "h" : "g", 1) >= 0, "send");
	await_pump(o);
}

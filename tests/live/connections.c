// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * connections GO [N [lost]] - TCP connections with a host outside (tests/lib/outsidenet.h), in
 * every state, that are moved: both families, queues full both ways, ends said by one side, the
 * other, or both, one not answered yet, N idle ones.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "tests/lib/outsidenet.h"
#include "tests/state/state.h"

#define MUCH	 3000000
#define MORE	 100000
#define BUF_LOCK 72 /* asm-generic/socket.h, 5.14 */

struct connection {
	int fd;
	int id;
	size_t sent, to_read;
	bool fin;  /* the peer's */
	int state; /* TCP_* */
};

static int dial(bool six, int port, int flags)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | flags, 0), r;

	STATE_CHECK(fd >= 0);
	STATE_CHECK(inet_pton(AF_INET, OUTSIDENET_HOST4, &to.sin_addr) == 1);
	STATE_CHECK(inet_pton(AF_INET6, OUTSIDENET_HOST6, &to6.sin6_addr) == 1);
	r = connect(fd, six ? (void *)&to6 : (void *)&to, six ? sizeof(to6) : sizeof(to));
	STATE_CHECK(r == 0 || (flags && errno == EINPROGRESS));
	return fd;
}

static int state_of(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	STATE_CHECK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
	return info.tcpi_state;
}

static void await(int fd, int state)
{
	while (state_of(fd) != state)
		state_nap();
}

static int queued(int fd, unsigned long what)
{
	int n;

	STATE_CHECK(ioctl(fd, what, &n) == 0);
	return n;
}

/*
 * The peer has no room left: it has all that was sent, there is more, and a probe (RFC 9293, 3.8.6.1)
 * found its window closed.  Where the pump gets no CPU nothing moves either, but that is not enough:
 * an end that is said then arrives.
 */
static bool is_shut(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	STATE_CHECK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
	return info.tcpi_unacked == 0 && info.tcpi_backoff > 0 && queued(fd, SIOCOUTQNSD);
}

/* Writes until nothing more is taken because the peer has no room left, or @most. */
static void stuff(struct connection *c, size_t most)
{
	static unsigned char block[16384];
	int dry = 0, before = 0;

	STATE_CHECK(fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0);
	while (dry < 10 && c->sent < most) {
		size_t len = most - c->sent < sizeof(block) ? most - c->sent : sizeof(block);
		ssize_t n;

		for (size_t i = 0; i < len; i++)
			block[i] = outsidenet_byte(c->sent + i);
		n = write(c->fd, block, len);
		STATE_CHECK(n > 0 || errno == EAGAIN);
		if (n > 0) {
			c->sent += (size_t)n;
			dry = 0;
			continue;
		}
		state_nap();
		dry = is_shut(c->fd) && queued(c->fd, SIOCOUTQ) == before ? dry + 1 : 0;
		before = queued(c->fd, SIOCOUTQ);
	}
	STATE_CHECK(fcntl(c->fd, F_SETFL, 0) == 0);
}

static void drain(struct connection *c, size_t until)
{
	static unsigned char block[16384];

	for (size_t at = MUCH - c->to_read; at < until;) {
		size_t len = until - at < sizeof(block) ? until - at : sizeof(block);
		ssize_t n = read(c->fd, block, len);

		STATE_CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			STATE_CHECK(block[i] == outsidenet_byte(at + (size_t)i));
		at += (size_t)n;
		c->to_read -= (size_t)n;
	}
}

/* The peer's bytes are the last @bytes of MUCH. */
static void begin(struct connection *c, int id, int state)
{
	char line[64];

	*c = (struct connection){.id = id, .state = state, .fd = dial(id % 2, OUTSIDENET_PORT, 0)};
	c->fin = state == TCP_CLOSE_WAIT || state == TCP_LAST_ACK || state == TCP_CLOSING;
	c->to_read = state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 ? 0 : MUCH;
	snprintf(line, sizeof(line), "%d %zu %d\n", id, c->to_read, c->fin);
	STATE_CHECK(write(c->fd, line, strlen(line)) == (ssize_t)strlen(line));
}

static void bring(struct connection *c)
{
	switch (c->state) {
	case TCP_CLOSE_WAIT:
	case TCP_LAST_ACK:
		drain(c, MUCH - 1000); /* its end arrives behind the rest */
		await(c->fd, TCP_CLOSE_WAIT);
		stuff(c, c->state == TCP_LAST_ACK ? SIZE_MAX : 1000);
		break;
	case TCP_FIN_WAIT2:
		stuff(c, 1000);
		break;
	default:
		stuff(c, SIZE_MAX);
		break;
	}
	if (c->state != TCP_ESTABLISHED && c->state != TCP_CLOSE_WAIT)
		STATE_CHECK(shutdown(c->fd, SHUT_WR) == 0);
	if (c->state == TCP_CLOSING)
		drain(c, MUCH - 1000);
	await(c->fd, c->state);
}

/* After the move: all that is left to be said is said, and heard. */
static void end(struct connection *c)
{
	char text[4];

	/* The peer reads when it has sent all. */
	if (c->to_read)
		drain(c, MUCH);
	if (c->state == TCP_ESTABLISHED || c->state == TCP_CLOSE_WAIT) {
		for (size_t until = c->sent + MORE; c->sent < until;)
			stuff(c, until);
		STATE_CHECK(shutdown(c->fd, SHUT_WR) == 0);
	}
	if (!c->fin)
		STATE_CHECK(recv(c->fd, text, 3, MSG_WAITALL) == 3 && !memcmp(text, "bye", 3));
	STATE_CHECK(read(c->fd, text, 1) == 0);
}

static void check_result(int control, const struct connection *c)
{
	char line[64];
	size_t n = 0;

	snprintf(line, sizeof(line), "result %d\n", c->id);
	STATE_CHECK(write(control, line, strlen(line)) == (ssize_t)strlen(line));
	while (n < sizeof(line) - 1 && read(control, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	STATE_CHECK(strtoul(line, NULL, 10) == c->sent);
}

/* Two UDP sockets, bound to any address and connected, each with a datagram that waits. */
static void make_udp(int control, int fd[2])
{
	for (int i = 0; i < 2; i++) {
		struct sockaddr_in at = {.sin_family = AF_INET}, to = at;
		socklen_t len = sizeof(at);
		char line[64];

		fd[i] = socket(AF_INET, SOCK_DGRAM, 0);
		to.sin_port = htons(OUTSIDENET_PORT + 1);
		inet_pton(AF_INET, OUTSIDENET_HOST4, &to.sin_addr);
		STATE_CHECK(bind(fd[i], (void *)&at, sizeof(at)) == 0);
		STATE_CHECK(!i || connect(fd[i], (void *)&to, sizeof(to)) == 0);
		STATE_CHECK(getsockname(fd[i], (void *)&at, &len) == 0);
		snprintf(line, sizeof(line), "datagram %d\n", ntohs(at.sin_port));
		STATE_CHECK(write(control, line, strlen(line)) == (ssize_t)strlen(line));
		STATE_CHECK(poll(&(struct pollfd){.fd = fd[i], .events = POLLIN}, 1, -1) == 1);
	}
}

static void check_udp(const int fd[2])
{
	for (int i = 0; i < 2; i++) {
		struct sockaddr_in from, host = {.sin_family = AF_INET};
		socklen_t len = sizeof(from);
		char text[8];

		inet_pton(AF_INET, OUTSIDENET_HOST4, &host.sin_addr);
		STATE_CHECK(recvfrom(fd[i], text, sizeof(text), MSG_DONTWAIT, (void *)&from,
				    &len) == 5);
		STATE_CHECK(!memcmp(text, "hello", 5));
		STATE_CHECK(from.sin_addr.s_addr == host.sin_addr.s_addr &&
			    ntohs(from.sin_port) == OUTSIDENET_PORT + 1);
		len = sizeof(from);
		STATE_CHECK(!i || (getpeername(fd[i], (void *)&from, &len) == 0 &&
					  ntohs(from.sin_port) == OUTSIDENET_PORT + 1));
	}
}

static void check_echo(int fd, char c)
{
	char back = 0;

	STATE_CHECK(write(fd, &c, 1) == 1);
	STATE_CHECK(read(fd, &back, 1) == 1 && back == c);
}

static int dial_echo(bool six)
{
	int fd = dial(six, OUTSIDENET_PORT, 0);

	STATE_CHECK(write(fd, "echo\n", 5) == 5);
	check_echo(fd, 'a');
	return fd;
}

/* A listening socket of both families, and one from outside that waits to be accepted. */
static int make_listener(int control)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	char line[64];

	STATE_CHECK(bind(fd, (void *)&at, sizeof(at)) == 0 && listen(fd, 5) == 0);
	STATE_CHECK(getsockname(fd, (void *)&at, &len) == 0);
	snprintf(line, sizeof(line), "call %d\n", ntohs(at.sin6_port));
	STATE_CHECK(write(control, line, strlen(line)) == (ssize_t)strlen(line));
	STATE_CHECK(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1) == 1);
	return fd;
}

/* It listens on: another comes, if the first has not stayed. */
static void check_listener(int control, int fd)
{
	struct sockaddr_in6 at;
	socklen_t len = sizeof(at);
	char line[64];
	int got;

	STATE_CHECK(getsockname(fd, (void *)&at, &len) == 0);
	snprintf(line, sizeof(line), "call %d\n", ntohs(at.sin6_port));
	STATE_CHECK(write(control, line, strlen(line)) == (ssize_t)strlen(line));
	got = accept(fd, NULL, NULL);
	STATE_CHECK(got >= 0 && write(got, "echo\n", 5) == 5);
	check_echo(got, 'd');
}

/*
 * Of the second idle one, which is of IPv6: options that its program has chosen, and some that
 * nobody has.
 */
static const struct option {
	int level, name, value; /* -1: as it was */
} options[] = {
	{SOL_SOCKET, SO_OOBINLINE, 1},
	{SOL_SOCKET, SO_REUSEPORT, 1},
	{SOL_SOCKET, SO_RCVBUF, 70000},
	{SOL_SOCKET, BUF_LOCK, -1},
	{SOL_SOCKET, SO_KEEPALIVE, -1},
	{IPPROTO_IP, IP_TTL, 33},
	{IPPROTO_IP, IP_MTU_DISCOVER, -1},
	{IPPROTO_IPV6, IPV6_UNICAST_HOPS, 44},
	{IPPROTO_IPV6, IPV6_RECVTCLASS, 1},
	{IPPROTO_TCP, TCP_USER_TIMEOUT, 123456},
	{IPPROTO_TCP, TCP_NOTSENT_LOWAT, 4096},
	{IPPROTO_TCP, TCP_SYNCNT, 3},
	{IPPROTO_TCP, TCP_KEEPINTVL, -1},
	{IPPROTO_TCP, TCP_LINGER2, -1},
};
enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };

static int option_of(int fd, const struct option *o)
{
	int value = 0;
	socklen_t len = sizeof(value);

	STATE_CHECK(getsockopt(fd, o->level, o->name, &value, &len) == 0);
	return value;
}

static void choose_options(int fd, int ret[N_OPTIONS])
{
	for (int i = 0; i < N_OPTIONS; i++)
		STATE_CHECK(
			options[i].value < 0 || setsockopt(fd, options[i].level, options[i].name,
							&options[i].value, sizeof(int)) == 0);
	for (int i = 0; i < N_OPTIONS; i++)
		ret[i] = option_of(fd, &options[i]);
}

static void check_options(int fd, const int before[N_OPTIONS])
{
	for (int i = 0; i < N_OPTIONS; i++)
		STATE_CHECK(option_of(fd, &options[i]) == before[i]);
}

/* They are another's by now: what had arrived can be read, then comes the error. */
static void check_lost(const struct connection *c, size_t n, const int *many, int n_many)
{
	unsigned char text[4096];
	ssize_t got;

	for (size_t i = 0; i < n; i++) {
		size_t at = MUCH - c[i].to_read, before = at;

		while ((got = read(c[i].fd, text, sizeof(text))) > 0)
			for (ssize_t k = 0; k < got; k++, at++)
				STATE_CHECK(text[k] == outsidenet_byte(at));
		STATE_CHECK(got < 0 && errno == ECONNRESET);
		STATE_CHECK(c[i].state != TCP_CLOSE_WAIT || at == MUCH);
		STATE_CHECK(c[i].state != TCP_ESTABLISHED || at > before);
		STATE_CHECK(write(c[i].fd, "x", 1) < 0 && errno == EPIPE);
	}
	for (int i = 0; i < n_many; i++)
		STATE_CHECK(read(many[i], text, 1) < 0 && errno == ECONNRESET);
}

int main(int argc, char **argv)
{
	static const int states[] = {TCP_ESTABLISHED, TCP_ESTABLISHED, TCP_CLOSE_WAIT,
		TCP_CLOSE_WAIT, TCP_FIN_WAIT1, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_FIN_WAIT2,
		TCP_LAST_ACK, TCP_LAST_ACK, TCP_CLOSING, TCP_CLOSING};
	enum { N = sizeof(states) / sizeof(states[0]) };
	struct connection c[N];
	int n = argc > 2 ? atoi(argv[2]) : 20, control, deaf, one = 1, idle = 77, on = 0;
	int *many = calloc((size_t)n + 1, sizeof(*many));
	struct rlimit most;
	struct pollfd p;
	socklen_t len = sizeof(on);
	int udp[2], listener, chosen[N_OPTIONS];

	signal(SIGPIPE, SIG_IGN);

	getrlimit(RLIMIT_NOFILE, &most);
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
	control = dial(false, OUTSIDENET_PORT, 0);
	STATE_CHECK(write(control, "0\n", 2) == 2);
	for (int i = 0; i < n; i++)
		many[i] = dial_echo(i % 2);
	STATE_CHECK(setsockopt(many[0], SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)) == 0);
	STATE_CHECK(setsockopt(many[0], IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)) == 0);
	STATE_CHECK(setsockopt(many[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
	choose_options(many[1], chosen);
	make_udp(control, udp);
	listener = make_listener(control);
	for (int i = 0; i < N; i++)
		begin(&c[i], i + 1, states[i]);
	for (int i = 0; i < N; i++)
		bring(&c[i]);
	deaf = dial(false, OUTSIDENET_DEAF, SOCK_NONBLOCK);
	STATE_CHECK(state_of(deaf) == TCP_SYN_SENT);
	state_ready(argc, argv);

	check_udp(udp);
	if (argc > 3) {
		check_lost(c, N, many, n);
		free(many);
		return state_ok();
	}
	check_listener(control, listener);
	for (int i = 0; i < N; i++)
		await(c[i].fd, c[i].state);
	for (int i = 0; i < n; i++)
		check_echo(many[i], 'b');
	STATE_CHECK(getsockopt(many[0], IPPROTO_TCP, TCP_KEEPIDLE, &on, &len) == 0 && on == idle);
	STATE_CHECK(getsockopt(many[0], IPPROTO_TCP, TCP_NODELAY, &on, &len) == 0 && on == 1);
	STATE_CHECK(getsockopt(many[0], SOL_SOCKET, SO_REUSEADDR, &on, &len) == 0 && on == 0);
	check_options(many[1], chosen);
	p = (struct pollfd){.fd = deaf, .events = POLLOUT};
	STATE_CHECK(poll(&p, 1, -1) == 1);
	STATE_CHECK(getsockopt(deaf, SOL_SOCKET, SO_ERROR, &on, &len) == 0 && on == 0);
	STATE_CHECK(fcntl(deaf, F_SETFL, 0) == 0 && write(deaf, "echo\n", 5) == 5);
	check_echo(deaf, 'c');
	STATE_CHECK(write(control, "go\n", 3) == 3);
	for (int i = 0; i < N; i++)
		end(&c[i]);
	for (int i = 0; i < N; i++)
		check_result(control, &c[i]);
	free(many);
	return state_ok();
}

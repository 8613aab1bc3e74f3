// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * usage: relay PID NAME PID NAME
 *
 * A line between two network namespaces which delays, loses and reorders packets, for kernels that
 * have no netem: a TUN device in each, and this program between them.  It does what lines on stdin
 * say, and answers each with "ok":
 *
 *     delay MS          each packet takes so long
 *     loss PERMILLE     so many are lost
 *     reorder PERMILLE  so many take three times as long as the others, and at least 1 ms
 *     cut               all are lost, also those on their way
 *
 * Begins with none of these, and says "ready".  Must own both network namespaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define MTU  1500
#define HELD 8192 /* more are lost, as in a router */

struct packet {
	uint64_t due;
	int to;
	uint16_t len;
	uint8_t data[MTU];
};

static struct packet *held[HELD]; /* by `due` */
static size_t count;
static uint64_t delay;
static unsigned loss, reorder;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int open_tun(const char *pid, const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	char path[64];
	int ns, tun;

	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET) < 0)
		die(path);
	close(ns);
	tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (tun < 0 || ioctl(tun, TUNSETIFF, &request) < 0)
		die(name);
	return tun;
}

static bool happens(unsigned permille)
{
	return (unsigned)(random() % 1000) < permille;
}

/* Sorted from the end: most come in the order in which they are due. */
static void hold(struct packet *p)
{
	size_t at = count++;

	for (; at > 0 && held[at - 1]->due > p->due; at--)
		held[at] = held[at - 1];
	held[at] = p;
}

static void take(int from, int to)
{
	uint8_t data[MTU];
	ssize_t len;

	while ((len = read(from, data, sizeof(data))) > 0) {
		struct packet *p;

		if (count == HELD || happens(loss))
			continue;
		p = malloc(sizeof(*p));
		if (!p)
			die("memory");
		p->due = now() + delay;
		if (happens(reorder))
			p->due += delay ? 2 * delay : 1000000;
		p->to = to;
		p->len = (uint16_t)len;
		memcpy(p->data, data, (size_t)len);
		hold(p);
	}
}

static void drop_first(size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(held[i]);
	memmove(held, held + n, (count - n) * sizeof(*held));
	count -= n;
}

/* What is due goes out, or is lost where the device takes no more. */
static void send_due(void)
{
	uint64_t t = now();
	size_t n = 0;

	for (; n < count && held[n]->due <= t; n++)
		if (write(held[n]->to, held[n]->data, held[n]->len) < 0 && errno != EAGAIN &&
			errno != EIO)
			die("write");
	if (n)
		drop_first(n);
}

static void obey(void)
{
	char line[64];
	unsigned n = 0;

	if (!fgets(line, sizeof(line), stdin))
		exit(0);
	if (sscanf(line, "delay %u", &n) == 1) {
		delay = (uint64_t)n * 1000000;
	} else if (sscanf(line, "loss %u", &n) == 1) {
		loss = n;
	} else if (sscanf(line, "reorder %u", &n) == 1) {
		reorder = n;
	} else if (strcmp(line, "cut\n") == 0) {
		loss = 1000;
		drop_first(count);
	} else {
		errno = EINVAL;
		die(line);
	}
	puts("ok");
}

int main(int argc, char **argv)
{
	struct pollfd fds[3] = {{.fd = 0, .events = POLLIN}};

	if (argc != 5) {
		fputs("usage: relay PID NAME PID NAME\n", stderr);
		return 2;
	}
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < 3; i++) {
		fds[i].fd = open_tun(argv[2 * i - 1], argv[2 * i]);
		fds[i].events = POLLIN;
	}
	puts("ready");
	for (;;) {
		uint64_t t = now();
		uint64_t left = count && held[0]->due > t ? held[0]->due - t : 0;
		struct timespec wait = {.tv_sec = (time_t)(left / 1000000000u),
			.tv_nsec = (long)(left % 1000000000u)};

		if (ppoll(fds, 3, count ? &wait : NULL, NULL) < 0 && errno != EINTR)
			die("poll");
		for (int i = 1; i < 3; i++)
			if (fds[i].revents & POLLIN)
				take(fds[i].fd, fds[3 - i].fd);
		send_due();
		if (fds[0].revents)
			obey();
	}
}

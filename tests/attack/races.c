// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is checked in memory, or behind a descriptor's number, and exchanged by a second thread
 * before it is used. One that has won gives no error, but a victim that is dead.
 */
#include "tests/attack/attack.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 3000
#define N(a)   (sizeof(a) / sizeof((a)[0]))

static volatile bool over;

/*
 * ---- a number in memory ---------------------------------------------------------------------
 */

static struct f_owner_ex owner = {.type = F_OWNER_PID};
static volatile int group;
static pid_t own, theirs;

static void *change_numbers(void *arg)
{
	while (!over) {
		*(volatile pid_t *)&owner.pid = own;
		group = own;
		*(volatile pid_t *)&owner.pid = theirs;
		group = theirs;
	}
	return NULL;
}

static void owners_race(const struct victim *v)
{
	int pair[2];
	pthread_t t;

	own = getpid();
	theirs = v->pid;
	/* Its own signal shall not end us: SIGIO of a value that is ignored. */
	signal(SIGUSR2, SIG_IGN);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return;
	fcntl(pair[0], F_SETSIG, SIGUSR2);
	fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK);
	pthread_create(&t, NULL, change_numbers, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		char c;

		if (i & 1)
			fcntl(pair[0], F_SETOWN_EX, &owner);
		else
			ioctl(pair[0], SIOCSPGRP, &group);
		(void)!write(pair[1], "x", 1);
		(void)!read(pair[0], &c, 1);
	}
	over = true;
	pthread_join(t, NULL);
}

/*
 * ---- what is behind a descriptor ------------------------------------------------------------
 */

static int mine, peers_own, target;

static void *change_descriptors(void *arg)
{
	while (!over) {
		dup2(mine, target);
		dup2(peers_own, target);
	}
	return NULL;
}

static int pidfd_of_peer(const struct victim *v)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), pidfd = -1;
	socklen_t len = sizeof(pidfd);

	memcpy(a.sun_path, v->socket, sizeof(a.sun_path));
	if (connect(fd, (void *)&a, sizeof(a)) < 0 ||
		getsockopt(fd, SOL_SOCKET, 77 /* SO_PEERPIDFD */, &pidfd, &len) < 0)
		return -1;
	return pidfd;
}

static void pidfd_race(const struct victim *v)
{
	pthread_t t;

	signal(SIGUSR2, SIG_IGN);
	mine = (int)syscall(SYS_pidfd_open, getpid(), 0);
	peers_own = pidfd_of_peer(v);
	target = dup(mine);
	if (peers_own < 0)
		return;
	pthread_create(&t, NULL, change_descriptors, NULL);
	for (int i = 0; i < ROUNDS; i++)
		syscall(SYS_pidfd_send_signal, target, SIGUSR2, NULL, 0);
	over = true;
	pthread_join(t, NULL);
}

/*
 * ---- a number that is given away again ------------------------------------------------------
 */

/* Children end in great numbers while they are signalled by theirs. */
static void *kill_lately(void *arg)
{
	pid_t last = getpid();

	while (!over)
		for (pid_t p = last; p < last + 64; p++)
			if (p != getpid())
				kill(p, 0);
	return NULL;
}

static void reuse(const struct victim *v)
{
	pthread_t t;

	pthread_create(&t, NULL, kill_lately, NULL);
	for (int i = 0; i < 300; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		kill(child, SIGKILL);
		kill(-child, SIGKILL);
		waitpid(child, NULL, 0);
		reached(kill(child, SIGKILL), "kill of one who has been waited for");
	}
	over = true;
	pthread_join(t, NULL);
}

const struct attack race_attacks[] = {
	{"owners_race", owners_race},
	{"pidfd_race", pidfd_race},
	{"reuse", reuse},
};
const size_t n_race_attacks = N(race_attacks);

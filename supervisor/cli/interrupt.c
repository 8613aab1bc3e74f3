// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in interrupt.h. */
#include "supervisor/cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/base.h"

#define PATIENCE_S 2 /* with an acknowledgement that may be on its way */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* What a handler looks at. */
static volatile pid_t ssh_pid;
static volatile sig_atomic_t there = -1, awaited = -1;

/* It has not come. */
static void on_patience(int number)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* whoever reads is woken; others than ssh may have the other end */
	if (awaited >= 0 && null >= 0)
		dup2(null, awaited);
	if (ssh_pid > 0)
		kill(ssh_pid, SIGTERM);
}

/*
 * Where there is no room in the pipe, as on a line that has stalled, the other side has not got all of
 * it, and without ssh never will.
 */
static void on_signal(int number)
{
	static const char word[] = "ABORT\n";

	if (awaited >= 0 && ssh_pid > 0) {
		alarm(PATIENCE_S);
		return;
	}
	if (there >= 0) {
		fcntl(there, F_SETFL, O_NONBLOCK);
		if (write(there, word, sizeof(word) - 1) < 0)
			there = -1;
	}
	if (there < 0 && ssh_pid > 0)
		kill(ssh_pid, SIGTERM);
	raise(number);
}

static void handle(void (*with)(int))
{
	struct sigaction a = {.sa_flags = (int)(SA_RESETHAND | SA_NODEFER)}, old;

	alarm(0);
	signal(SIGALRM, on_patience);
	a.sa_handler = with;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &a, NULL);
}

void interrupt_spare(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

void interrupt_begin(pid_t ssh)
{
	there = awaited = -1;
	ssh_pid = ssh;
	handle(on_signal);
}

void interrupt_there(int fd)
{
	there = fd;
}

void interrupt_hold(bool on)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	if (!on)
		there = -1;
	sigprocmask(on ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void interrupt_doubt(int fd)
{
	awaited = fd;
}

void interrupt_end(void)
{
	ssh_pid = 0;
	there = awaited = -1;
	handle(SIG_DFL);
}

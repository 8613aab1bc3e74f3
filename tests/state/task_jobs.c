// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a shell has: jobs that were stopped by the terminal, by a key, one its shell has not heard
 * of, one that was continued; groups and sessions whose leaders are gone or dead; orphans that a
 * subreaper has adopted, or will adopt.
 */
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static struct shared {
	volatile pid_t orphan, leaderless, member, grandchild;
	volatile int leave;
} * shared;

static void wait_for_leave(void)
{
	while (!shared->leave)
		state_nap();
}

/* A child in a group of its own; @what is its work. */
static pid_t job(void (*what)(void))
{
	pid_t pid = fork();

	STATE_CHECK(pid >= 0);
	if (pid == 0) {
		setpgid(0, 0);
		if (what)
			what();
		for (;;)
			pause();
	}
	STATE_CHECK(setpgid(pid, pid) == 0 || getpgid(pid) == pid);
	return pid;
}

static void await_stop(pid_t pid, int sig, int options)
{
	siginfo_t si = {0};

	STATE_CHECK(waitid(P_PID, (id_t)pid, &si, WSTOPPED | options) == 0);
	STATE_CHECK(si.si_code == CLD_STOPPED && (!sig || si.si_status == sig));
}

/* ---- a shell on a terminal ------------------------------------------------------------------- */

static void read_terminal(void)
{
	char c;

	if (read(0, &c, 1) != 1 || c != 'r')
		_exit(2);
	_exit(7);
}

/* Tells what it finds by its exit status. */
static int be_shell(int started)
{
	pid_t reader, suspended, unheard, went_on;
	int status;

	signal(SIGTTOU, SIG_IGN);
	reader = job(read_terminal);
	await_stop(reader, SIGTTIN, 0);
	suspended = job(NULL);
	kill(suspended, SIGTSTP);
	await_stop(suspended, SIGTSTP, 0);
	unheard = job(NULL);
	kill(unheard, SIGSTOP);
	await_stop(unheard, SIGSTOP, WNOWAIT);
	went_on = job(NULL);
	kill(went_on, SIGSTOP);
	await_stop(went_on, SIGSTOP, 0);
	kill(went_on, SIGCONT);
	STATE_CHECK(waitpid(went_on, &status, WCONTINUED) == went_on && WIFCONTINUED(status));
	STATE_CHECK(write(started, "x", 1) == 1);
	while (!shared->leave)
		state_nap();

	if (waitpid(reader, &status, WUNTRACED | WNOHANG) != 0)
		return 10;
	if (waitpid(unheard, &status, WUNTRACED) != unheard || !WIFSTOPPED(status))
		return 11;
	if (kill(suspended, SIGCONT) < 0 || waitpid(suspended, &status, WCONTINUED) != suspended ||
		!WIFCONTINUED(status))
		return 12;
	/* Into the foreground, where it may read what is typed. */
	if (tcsetpgrp(0, reader) < 0 || kill(reader, SIGCONT) < 0)
		return 13;
	if (write(1, "p", 1) != 1)
		return 14;
	if (waitpid(reader, &status, 0) != reader || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		return 15;
	kill(unheard, SIGKILL);
	kill(suspended, SIGKILL);
	kill(went_on, SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}

static int master;
static pid_t shell;

static void make_shell(void)
{
	int started[2];
	char c;

	STATE_CHECK(pipe(started) == 0);
	shell = forkpty(&master, NULL, NULL, NULL);
	STATE_CHECK(shell >= 0);
	if (shell == 0)
		_exit(be_shell(started[1]));
	STATE_CHECK(read(started[0], &c, 1) == 1);
}

static void check_shell(void)
{
	char c;
	int status;

	shared->leave = 1;
	STATE_CHECK(read(master, &c, 1) == 1 && c == 'p');
	STATE_CHECK(write(master, "r\n", 2) == 2);
	STATE_CHECK(waitpid(shell, &status, 0) == shell);
	STATE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- groups and sessions without their leaders ----------------------------------------------- */

static pid_t dead_group, reaped_group, dead_session;

static pid_t member_of(pid_t group)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	STATE_CHECK(setpgid(pid, group) == 0);
	return pid;
}

static pid_t in_dead, in_reaped;

static void make_leaderless(void)
{
	siginfo_t si;

	/* One is a zombie, the other not even that. */
	dead_group = job(NULL);
	in_dead = member_of(dead_group);
	kill(dead_group, SIGKILL);
	STATE_CHECK(waitid(P_PID, (id_t)dead_group, &si, WEXITED | WNOWAIT) == 0);
	reaped_group = job(NULL);
	in_reaped = member_of(reaped_group);
	kill(reaped_group, SIGKILL);
	STATE_CHECK(waitpid(reaped_group, NULL, 0) == reaped_group);
	/* A session whose leader is a zombie, and who is in it. */
	dead_session = fork();
	if (dead_session == 0) {
		setsid();
		if (fork() == 0) {
			shared->member = getpid();
			for (;;)
				pause();
		}
		_exit(3);
	}
	STATE_CHECK(waitid(P_PID, (id_t)dead_session, &si, WEXITED | WNOWAIT) == 0);
	while (!shared->member)
		state_nap();
}

static void check_leaderless(void)
{
	int status;

	STATE_CHECK(getpgid(in_dead) == dead_group && getpgid(in_reaped) == reaped_group);
	STATE_CHECK(kill(-reaped_group, SIGUSR1) == 0);
	STATE_CHECK(waitpid(-reaped_group, &status, 0) == in_reaped && WTERMSIG(status) == SIGUSR1);
	STATE_CHECK(getsid(shared->member) == dead_session);
	STATE_CHECK(waitpid(dead_session, &status, 0) == dead_session && WEXITSTATUS(status) == 3);
	STATE_CHECK(waitpid(dead_group, &status, 0) == dead_group && WTERMSIG(status) == SIGKILL);
	kill(in_dead, SIGKILL);
	STATE_CHECK(waitpid(-dead_group, &status, 0) == in_dead);
	kill(shared->member, SIGKILL);
}

/* ---- adopted --------------------------------------------------------------------------------- */

static pid_t reaper;

/* Who is between us and an orphan ends, and led its session, if @leads. */
static void leave_orphan(bool leads, volatile pid_t *orphan, int code)
{
	pid_t between = fork(), session;

	if (between == 0) {
		if (leads)
			setsid();
		session = getsid(0);
		if (fork() == 0) {
			*orphan = getpid();
			wait_for_leave();
			_exit(getppid() == reaper && getsid(0) == session ? code : code + 100);
		}
		_exit(0);
	}
	STATE_CHECK(waitpid(between, NULL, 0) == between);
}

/* Has a child of its own from before it took to that, and adopts children of others. */
static void be_reaper(void)
{
	pid_t existing = fork();
	int status, adopted = 0;

	if (existing == 0) {
		if (fork() == 0) {
			shared->grandchild = getpid();
			wait_for_leave();
			_exit(20);
		}
		wait_for_leave();
		_exit(21); /* which makes one more orphan */
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	leave_orphan(false, &shared->orphan, 22);
	leave_orphan(true, &shared->leaderless, 24);
	wait_for_leave();
	while (wait(&status) > 0)
		adopted += WEXITSTATUS(status);
	_exit(adopted == 20 + 21 + 22 + 24 ? 0 : 1);
}

static void make_families(void)
{
	reaper = fork();
	if (reaper == 0) {
		reaper = getpid();
		be_reaper();
	}
	while (!shared->orphan || !shared->leaderless || !shared->grandchild)
		state_nap();
}

static void check_families(void)
{
	int status;

	STATE_CHECK(waitpid(reaper, &status, 0) == reaper && status == 0);
}

int main(int argc, char **argv)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	make_leaderless();
	make_families();
	make_shell();
	state_ready(argc, argv);
	check_leaderless();
	check_shell();
	check_families();
	return state_ok();
}

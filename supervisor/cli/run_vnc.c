// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The port is taken before the session begins, so that one which is not free is told at once.  Then
 * the process that serves it is left to itself: it stays while the session is suspended, follows it
 * to another host, and ends when there is none any more.
 */
#include "supervisor/cli/run_vnc.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/display.h"
#include "supervisor/programs.h"

int run_vnc_open(struct run_vnc *v, const char *listen, struct err *e)
{
	*v = (struct run_vnc){.port.listener = -1, .program = -1};
	if (!listen)
		return 0;
	v->program = programs_open(PROGRAMS_DISPLAY, e);
	if (v->program < 0)
		return v->program;
	return vnc_port_open(&v->port, listen[0] ? listen : "0", e);
}

static void close_all(struct run_vnc *v)
{
	vnc_port_close(&v->port);
	v->program = close_fd(v->program);
}

/* Nothing of whoever started us is kept but the port; the password is on stdin. */
static _Noreturn void become(struct run_vnc *v, int password, const char *name)
{
	enum { PROGRAM = DISPLAY_VNC_LISTENER + 1, HIGH };
	char *const argv[] = {(char *)"podrun", (char *)"display", (char *)"--vnc", (char *)name, NULL};
	int listener = fcntl(v->port.listener, F_DUPFD, HIGH), program = fcntl(v->program, F_DUPFD, HIGH);
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	setsid();
	if (null < 0 || listener < 0 || program < 0 || dup2(password, STDIN_FILENO) < 0 ||
		dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
		dup2(listener, DISPLAY_VNC_LISTENER) < 0 ||
		dup3(program, PROGRAM, O_CLOEXEC) < 0 || chdir("/") < 0)
		_exit(1);
	close_range(HIGH, ~0u, 0);
	for (int sig = 1; sig < _NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fexecve(PROGRAM, argv, environ);
	_exit(1);
}

static bool start(struct run_vnc *v, const char *name)
{
	const char *password = v->port.password;
	int line[2];
	pid_t pid;

	if (pipe2(line, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0)
		become(v, line[0], name);
	if (pid > 0)
		io_write_full(line[1], password, strlen(password));
	close(line[0]);
	close(line[1]);
	return pid > 0;
}

void run_vnc_started(void *ctx, const char *name)
{
	struct run_vnc *v = ctx;

	if (v->program < 0)
		return;
	if (start(v, name))
		fprintf(stderr, "vnc %s password %s\n", v->port.where, v->port.password);
	else
		fprintf(stderr, "podrun: no VNC: can't fork\n");
	close_all(v);
}

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
#include <unistd.h>

#include "base/base.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/view_way.h"

int run_vnc_open(struct run_vnc *v, struct cli *c, const char *listen, struct err *e)
{
	*v = (struct run_vnc){.cli = c, .asked = listen != NULL};
	return listen ? view_vnc_open(&v->vnc, listen[0] ? listen : "0", e) : 0;
}

/* Nothing of whoever started us is kept but the port. */
static void go_into_the_background(struct run_vnc *v)
{
	enum { LISTENER = 3 };
	sigset_t none;
	int null;

	setsid();
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			_exit(1);
	if (v->vnc.listener != LISTENER && dup2(v->vnc.listener, LISTENER) < 0)
		_exit(1);
	v->vnc.listener = LISTENER;
	close_range(LISTENER + 1, ~0u, 0);
	for (int sig = 1; sig < _NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir("/") < 0)
		_exit(1);
}

static _Noreturn void serve(struct run_vnc *v, const char *name)
{
	struct err e = {0};
	struct view_way way;

	go_into_the_background(v);
	if (view_way_parse(&way, v->cli, name, &e) == 0)
		view_vnc_serve(&v->vnc, &way, false, 0, &e);
	_exit(e.error < 0);
}

void run_vnc_started(void *ctx, const char *name)
{
	struct run_vnc *v = ctx;
	pid_t pid;

	if (!v->asked)
		return;
	pid = fork();
	if (pid == 0)
		serve(v, name);
	view_vnc_close(&v->vnc);
	if (pid > 0)
		fprintf(stderr, "vnc %s password %s\n", v->vnc.where, v->vnc.password);
	else
		fprintf(stderr, "podrun: no VNC: can't fork\n");
}

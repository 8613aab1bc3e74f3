// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      who listens --- fork ---> a process for each VNC viewer === display server
 *           ^                        |          (vnc_client.h)
 *           '--------- a pipe -------'  "admitted", "over", or its end
 *
 * A place is a child.  Until it has told that its viewer was admitted it is a stranger's, of which
 * there are only so many, and who comes takes the place of another one (display/web/strangers.h);
 * and it ends by itself when that takes too long.
 *
 * Nothing that a viewer sends is read here.
 */
#include "display/viewer/vnc.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/base.h"
#include "display/viewer/vnc_library.h"
#include "display/web/strangers.h"

#define PLACES	(DISPLAY_STRANGERS + DISPLAY_VNC_CLIENTS)
#define LOOK_MS	2000 /* whether it is over, while nobody looks */

struct place {
	pid_t pid; /* 0: free */
	int line;
	bool admitted;
};

struct vnc {
	int listener;
	const struct display_vnc_options *options;
	struct place places[PLACES];
	struct display_strangers strangers;
	unsigned n_admitted;
	uint64_t look_ns; /* whether all is over, next */
	bool over;
};

/* ---- places ---------------------------------------------------------------------------------- */

static void leave(struct vnc *v, struct place *p)
{
	kill(p->pid, SIGKILL);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_fd(p->line);
	if (p->admitted)
		v->n_admitted--;
	else
		display_strangers_remove(&v->strangers, p);
	*p = (struct place){0};
}

/* In the child. */
static _Noreturn void become(const struct vnc *v, int conn, int line, pid_t parent)
{
	enum { CONN = 3, LINE, FDS };
	int high_conn = fcntl(conn, F_DUPFD, FDS), high_line = fcntl(line, F_DUPFD, FDS);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(high_conn, CONN) < 0 || dup2(high_line, LINE) < 0)
		_exit(1);
	close_range(FDS, ~0u, 0);
	/* ssh, of which nobody wants to know how it ends; it has neither of the two */
	signal(SIGCHLD, SIG_IGN);
	fcntl(CONN, F_SETFD, FD_CLOEXEC);
	fcntl(LINE, F_SETFD, FD_CLOEXEC);
	display_vnc_client(CONN, LINE, v->options);
}

static struct place *free_place(struct vnc *v)
{
	for (size_t i = 0; i < PLACES; i++)
		if (!v->places[i].pid)
			return &v->places[i];
	return NULL;
}

static void admit_stranger(struct vnc *v, int conn, const struct sockaddr_storage *from)
{
	struct place *p, *other;
	pid_t self = getpid();
	int pair[2];

	/* Room first: of those who are admitted there are fewer than places. */
	p = free_place(v);
	if (!p) {
		p = display_strangers_least_welcome(&v->strangers);
		if (!p)
			return;
		leave(v, p);
	}
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	*p = (struct place){.pid = fork(), .line = pair[0]};
	if (p->pid == 0)
		become(v, conn, pair[1], self);
	close(pair[1]);
	if (p->pid < 0) {
		close(pair[0]);
		*p = (struct place){0};
		return;
	}
	other = display_strangers_add(&v->strangers, p, from);
	if (other)
		leave(v, other);
}

static void on_connection(struct vnc *v)
{
	struct sockaddr_storage from = {0};
	socklen_t len = sizeof(from);
	int conn = accept4(v->listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);

	if (conn < 0)
		return;
	admit_stranger(v, conn, &from);
	close(conn);
}

static void on_word(struct vnc *v, struct place *p)
{
	char word = 0;
	ssize_t n = read(p->line, &word, 1);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == 1 && word == DISPLAY_VNC_OVER)
		v->over = true;
	if (n == 1 && word == DISPLAY_VNC_ADMITTED && !p->admitted &&
		v->n_admitted < DISPLAY_VNC_CLIENTS) {
		display_strangers_remove(&v->strangers, p);
		p->admitted = true;
		v->n_admitted++;
		return;
	}
	leave(v, p);
}

static void serve(struct vnc *v)
{
	struct pollfd all[1 + PLACES];
	int n;

	all[0] = (struct pollfd){.fd = v->listener, .events = POLLIN};
	for (size_t i = 0; i < PLACES; i++)
		all[1 + i] = (struct pollfd){
			.fd = v->places[i].pid ? v->places[i].line : -1, .events = POLLIN};
	n = poll(all, 1 + PLACES, v->options->over ? LOOK_MS : -1);
	/* However many come in between. */
	if (v->options->over && io_now_ns() >= v->look_ns) {
		v->over = v->options->over(v->options->ctx);
		v->look_ns = io_now_ns() + LOOK_MS * 1000000ull;
	}
	if (n <= 0)
		return;
	for (size_t i = 0; i < PLACES; i++)
		if (all[1 + i].revents)
			on_word(v, &v->places[i]);
	if (all[0].revents)
		on_connection(v);
}

int display_vnc(int listener, const struct display_vnc_options *o, struct err *e)
{
	struct vnc *v = calloc(1, sizeof(*v));

	if (!v)
		return err_errno(e, -ENOMEM, "VNC");
	if (display_vnc_load(e) < 0) {
		free(v);
		return e->error;
	}
	v->listener = listener;
	v->options = o;
	v->look_ns = io_now_ns() + LOOK_MS * 1000000ull;
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	while (!v->over)
		serve(v);
	for (size_t i = 0; i < PLACES; i++)
		if (v->places[i].pid)
			leave(v, &v->places[i]);
	free(v);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/cli/view_way.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "supervisor/record.h"

#define PIECE (32u << 10) /* bytes */

int view_way_parse(struct view_way *w, struct cli *c, const char *text, struct err *e)
{
	const char *colon = strrchr(text, ':');

	*w = (struct view_way){.cli = c};
	if (colon && (colon == text || text[0] == '-'))
		return err_set(e, ERR_USAGE, -EINVAL, "'%.64s' is no [USER@]HOST:NAME", text);
	w->host = colon ? strndup(text, (size_t)(colon - text)) : NULL;
	w->name = strdup(colon ? colon + 1 : text);
	if (!w->name || (colon && !w->host)) {
		view_way_fini(w);
		return err_errno(e, -ENOMEM, "memory");
	}
	if (paths_check_name(w->name, e) < 0)
		view_way_fini(w);
	return e->error;
}

void view_way_fini(struct view_way *w)
{
	free(take_ptr(w->host));
	free(take_ptr(w->name));
}

/* ---- here */

static int no_display(struct view_way *w, int error, struct err *e)
{
	struct client_session s;

	if (error != -ENOENT && error != -ECONNREFUSED)
		return err_errno(e, error, "can't reach the display of '%s'", w->name);
	if (client_look(&s, &w->cli->paths, w->name, e) < 0)
		return e->error;
	if (s.live) {
		err_set(e, ERR_STATE, error, "'%s' has no display", w->name);
		err_hint(e, "podrun run --display gives a session one");
	} else {
		err_set(e, ERR_STATE, error, "'%s' is not running: %s", w->name, s.state);
	}
	client_session_fini(&s);
	return error;
}

static int connect_here(struct view_way *w, struct err *e)
{
	_cleanup_free_ char *runtime = paths_runtime(&w->cli->paths, w->name, NULL);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	_cleanup_close_ int dir = -1, sock = -1;

	dir = runtime ? open(runtime, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0)
		return no_display(w, -errno, e);
	/* The directory's own path may be longer than an address. */
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/display", dir);
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (struct sockaddr *)&a, sizeof(a)) < 0)
		return no_display(w, -errno, e);
	return take_fd(&sock);
}

/* The host that a session of ours was moved to, or NULL; it may come back. */
static char *moved_to(struct view_way *w)
{
	struct client_session s;
	struct err ignored = {0};
	char *host = NULL;

	if (client_look(&s, &w->cli->paths, w->name, &ignored) < 0)
		return NULL;
	/* "?": whoever took it has not said who it is */
	if (!s.live && s.record && record_state_of(s.record->state) == RECORD_MOVED &&
		s.record->peer[0] && s.record->peer[0] != '-' && strcmp(s.record->peer, "?") != 0)
		host = strdup(s.record->peer);
	client_session_fini(&s);
	return host;
}

/* ---- on another host */

/* In the child: becomes ssh, with @sock as its stdin and stdout. */
static void become_ssh(const char *script, const char *host, const char *remote, int sock)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	if (dup2(sock, STDIN_FILENO) >= 0 && dup2(sock, STDOUT_FILENO) >= 0)
		execl("/bin/sh", "sh", "-c", script, "sh", host, remote, (char *)NULL);
	_exit(127);
}

static int connect_there(struct view_way *w, const char *host, struct err *e)
{
	const char *told = getenv("PODRUN_SSH");
	_cleanup_free_ char *configured = told ? NULL : cli_setting(w->cli, "ssh");
	_cleanup_free_ char *script = NULL, *remote = NULL;
	const char *command = told ? told : configured ? configured : "ssh";
	int pair[2];
	pid_t child;

	/* Words of the command are for the shell; the host and what runs there are arguments. */
	if (asprintf(&script, "exec %s \"$@\"", command) < 0 ||
		asprintf(&remote, "%s view --stdio %s", w->podrun ? w->podrun : "podrun", w->name) <
			0)
		return err_errno(e, -ENOMEM, "ssh");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "socket");
	child = fork();
	if (child == 0)
		become_ssh(script, host, remote, pair[1]);
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		return err_errno(e, -errno, "fork");
	}
	return pair[0];
}

int view_way_connect(void *way, struct err *e)
{
	_cleanup_free_ char *host = NULL;
	struct view_way *w = way;
	int sock;

	if (w->host)
		return connect_there(w, w->host, e);
	sock = connect_here(w, e);
	host = sock < 0 ? moved_to(w) : NULL;
	return host ? connect_there(w, host, e) : sock;
}

/* ---- stdio */

struct copy {
	int from, to;
};

static void *copy(void *arg)
{
	const struct copy *c = arg;
	uint8_t piece[PIECE];
	ssize_t n;

	do {
		n = read(c->from, piece, sizeof(piece));
	} while ((n < 0 && errno == EINTR) ||
		 (n > 0 && io_write_full(c->to, piece, (size_t)n) == 0));
	/* The other direction of the stream ends with this one. */
	shutdown(c->from, SHUT_RDWR);
	shutdown(c->to, SHUT_RDWR);
	return NULL;
}

/* A thread for each direction, so that one that is full never stops the other. */
int view_way_stdio(struct view_way *w, struct err *e)
{
	_cleanup_close_ int sock = view_way_connect(w, e);
	struct copy in = {STDIN_FILENO, sock}, out = {sock, STDOUT_FILENO};
	pthread_t reader;

	if (sock < 0)
		return sock;
	signal(SIGPIPE, SIG_IGN);
	if (pthread_create(&reader, NULL, copy, &in) != 0)
		return err_errno(e, -EAGAIN, "thread");
	pthread_detach(reader);
	copy(&out);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/cli/view_way.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "display/display.h"
#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "supervisor/disk/record.h"

#define PIECE	      (32u << 10) /* bytes */
#define SAID_MAX      4096	  /* bytes of what ssh has to say */
#define LAST_WORDS_MS 1000	  /* for them, when it has ended */
#define PATIENCE_S    15	  /* with a display server that takes nobody, or says nothing */
/* With ssh, which may ask for a password: as long as sshd gives for that (LoginGraceTime). */
#define FAR_PATIENCE_MS 120000

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
	if (paths_check_own(w->name, e) < 0 || paths_check_name(w->name, e) < 0)
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

bool view_way_is_other(const struct view_way *w, const Pb__Record *r)
{
	return w->known && r && r->config && r->config->session_id.len == sizeof(w->session) &&
	       memcmp(r->config->session_id.data, w->session, sizeof(w->session)) != 0;
}

/*
 * A session's record is there before its display is, so that of one who has been reached it is
 * either its own or a later one's.
 */
static int check_session(struct view_way *w, struct err *e)
{
	struct err ignored = {0};
	Pb__Record *r;

	if (record_load(&r, &w->cli->paths, w->name, &ignored) < 0)
		return 0;
	if (view_way_is_other(w, r)) {
		err_set(e, ERR_STATE, -ESTALE,
			"'%s' has ended, and another session is called so now", w->name);
	} else if (!w->known && r->config && r->config->session_id.len == sizeof(w->session)) {
		memcpy(w->session, r->config->session_id.data, sizeof(w->session));
		w->known = true;
	}
	record_free(r);
	return e->error;
}

static bool is_known(struct view_way *w, const char *name)
{
	struct err ignored = {0};
	Pb__Record *r;
	bool yes;

	if (record_load(&r, &w->cli->paths, name, &ignored) < 0)
		return false;
	yes = r->config && !view_way_is_other(w, r);
	record_free(r);
	return yes;
}

void view_way_follow(struct view_way *w)
{
	struct err ignored = {0};
	char **names, *found = NULL;
	size_t n;

	if (w->host || !w->known || is_known(w, w->name) ||
		paths_list(&w->cli->paths, &names, &n, &ignored) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (!found && is_known(w, names[i]))
			found = take_ptr(names[i]);
		free(names[i]);
	}
	free(names);
	if (found) {
		free(w->name);
		w->name = found;
	}
}

void view_way_know(struct view_way *w)
{
	struct err none = {0};

	if (!w->host)
		check_session(w, &none);
}

/* A connected socket, which waits, or a negative errno. */
static int connect_to(struct view_way *w, int dir)
{
	const struct timeval patience = {w->never_waits ? 0 : PATIENCE_S}, for_ever = {0};
	int nonblock = w->never_waits ? SOCK_NONBLOCK : 0;
	_cleanup_close_ int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | nonblock, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	/* The directory's own path may be longer than an address. */
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/display", dir);
	if (sock < 0 ||
		setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
		connect(sock, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &for_ever, sizeof(for_ever)) < 0 ||
		io_set_nonblock(sock, false) < 0)
		return -errno;
	return take_fd(&sock);
}

static int connect_here(struct view_way *w, struct err *e)
{
	_cleanup_free_ char *runtime = paths_runtime(&w->cli->paths, w->name, NULL);
	_cleanup_close_ int dir = -1, sock = -1;

	dir = runtime ? open(runtime, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0)
		return no_display(w, -errno, e);
	sock = connect_to(w, dir);
	if (sock == -EAGAIN)
		return err_set(e, ERR_STATE, sock, "the display server of '%s' does not answer",
			w->name);
	if (sock < 0)
		return no_display(w, sock, e);
	if (check_session(w, e) < 0)
		return e->error;
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
	if (!s.live && s.record && !view_way_is_other(w, s.record) &&
		record_state_of(s.record->state) == RECORD_MOVED &&
		s.record->peer[0] && s.record->peer[0] != '-' && strcmp(s.record->peer, "?") != 0)
		host = strdup(s.record->peer);
	client_session_fini(&s);
	return host;
}

/* ---- on another host */

int view_way_patience(const struct view_way *w)
{
	return w->far ? FAR_PATIENCE_MS : PATIENCE_S * 1000;
}

/* What comes from stdin but for what the shell there has said goes to stdout, a socket. */
static _Noreturn void pass_on(void)
{
	uint8_t number[PREFACE_NUMBER];
	ssize_t n;

	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	if (preface_skip(STDIN_FILENO, number) < 0 ||
		io_write_full(STDOUT_FILENO, number, sizeof(number)) < 0)
		_exit(1);
	do
		n = splice(STDIN_FILENO, NULL, STDOUT_FILENO, NULL, PIECE, 0);
	while (n > 0 || (n < 0 && errno == EINTR));
	_exit(0);
}

/* Beside ssh, but not its child, which it knows nothing of: the end of a pipe for ssh, or -1. */
static int start_passing(int sock)
{
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		if (fork() == 0 && dup2(ends[0], STDIN_FILENO) >= 0 && dup2(sock, STDOUT_FILENO) >= 0)
			pass_on();
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
	close(ends[0]);
	return ends[1];
}

/*
 * In the child: becomes ssh, with @sock as its stdin and stdout, and @said for what it says or -1.
 */
static void become_ssh(const char *script, const char *host, const char *remote, int sock, int said)
{
	sigset_t none;
	int out;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	if (said >= 0 && dup2(said, STDERR_FILENO) < 0)
		_exit(127);
	out = start_passing(sock);
	if (dup2(sock, STDIN_FILENO) >= 0 && out >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execl("/bin/sh", "sh", "-c", script, "sh", host, remote, (char *)NULL);
	_exit(127);
}

static int start_ssh(
	struct view_way *w, const char *host, int said, pid_t *ret_child, struct err *e)
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
		become_ssh(script, host, remote, pair[1], said);
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		return err_errno(e, -errno, "fork");
	}
	*ret_child = child;
	return pair[0];
}

static int connect_there(struct view_way *w, const char *host, struct err *e)
{
	pid_t child;

	w->far = true;
	return start_ssh(w, host, -1, &child, e);
}

/* Its last line but for hints, as far as it can be shown; used up. */
static const char *last_line(struct buf *said)
{
	char *text = (char *)buf_cstr(said), *line;

	if (!text)
		return "";
	do {
		while (said->len && (unsigned char)text[said->len - 1] <= ' ')
			text[--said->len] = '\0';
		line = strrchr(text, '\n');
		line = line ? line + 1 : text;
		said->len = (size_t)(line - text);
	} while (said->len && strncmp(line, "hint: ", 6) == 0);
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = '?';
	return strncmp(line, "podrun: ", 8) == 0 ? line + 8 : line;
}

/*
 * Until @sock has something, or its end, or it takes too long; what comes of @said meanwhile is
 * collected.  True if it has.
 */
static bool hear(int sock, int said, struct buf *ret)
{
	struct pollfd all[] = {{sock, POLLIN, 0}, {said, POLLIN, 0}};
	uint64_t until = io_now_ns() + FAR_PATIENCE_MS * 1000000ull;
	char piece[256];
	bool ended = false;

	for (;;) {
		uint64_t now = io_now_ns();
		int left = until > now ? (int)((until - now) / 1000000 + 1) : 0,
		    there = poll(all, ARRAY_SIZE(all), ended ? LAST_WORDS_MS : left);
		ssize_t n;

		if (there < 0 && errno == EINTR)
			continue;
		if (there <= 0)
			return false;
		if (all[1].revents) {
			n = read(said, piece, sizeof(piece));
			if (n <= 0)
				all[1].fd = -1;
			else if (ret->len < SAID_MAX)
				buf_put(ret, piece, (size_t)n);
		} else if (read(sock, piece, 1) == 1) {
			return true;
		} else {
			all[0].fd = -1;
			ended = true;
		}
		if (ended && all[1].fd < 0)
			return false;
	}
}

static int try_there(struct view_way *w, const char *host, struct err *e)
{
	const struct display_viewer_wish wish = {.name = "podrun view", .view_only = true};
	_cleanup_buf_ struct buf said = BUF_INIT;
	_cleanup_close_ int sock = -1;
	const char *why;
	pid_t child;
	int pair[2];
	bool there;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "pipe");
	signal(SIGPIPE, SIG_IGN);
	sock = start_ssh(w, host, pair[1], &child, e);
	close(pair[1]);
	if (sock < 0) {
		close(pair[0]);
		return sock;
	}
	/* If that can't be sent, the reason is heard. */
	display_viewer_greet(sock, &wish);
	there = hear(sock, pair[0], &said);
	kill(child, SIGTERM);
	waitpid(child, NULL, 0);
	close(pair[0]);
	if (there) {
		fwrite(said.data, 1, said.len, stderr);
		return 0;
	}
	why = last_line(&said);
	return err_set(e, ERR_FAILED, -EHOSTUNREACH, "can't reach the display of '%s' on %s: %s",
		w->name, host, why[0] ? why : "nothing is heard of it");
}

int view_way_try(struct view_way *w, struct err *e)
{
	_cleanup_free_ char *host = NULL;
	int sock;

	if (w->host)
		return try_there(w, w->host, e);
	sock = connect_here(w, e);
	if (sock >= 0) {
		close(sock);
		return 0;
	}
	host = moved_to(w);
	if (!host)
		return sock;
	*e = (struct err){0};
	return try_there(w, host, e);
}

int view_way_connect(void *way, struct err *e)
{
	_cleanup_free_ char *host = NULL;
	struct view_way *w = way;
	int sock;

	if (w->host)
		return connect_there(w, w->host, e);
	view_way_follow(w);
	sock = connect_here(w, e);
	host = sock < 0 && sock != -ESTALE ? moved_to(w) : NULL;
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

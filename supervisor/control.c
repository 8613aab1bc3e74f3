// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Each client is one connection with one request under way.  What it asks is handed to
 * control_ops.request; the answer may come later, from whoever finishes it (freeze.c, rebuild.c,
 * job.c).  A client that sends nonsense or goes away is forgotten; nothing it started ends with
 * it, except what was waiting for its decision (control_ops.abandoned).
 *
 * Who may connect: the owner, root, and the users of --allow, by SO_PEERCRED.  Those can't reach
 * the owner's runtime directory, so sessions with --allow listen at an abstract address as well:
 * @podrun/UID/NAME, where clients check in turn that the owner is who listens.  The owner has no
 * business there: sessions that have the host's network reach it, too, and to the kernel they are
 * the owner, who may have more done than is theirs to do.  However many of
 * theirs are connected, there is room for the owner's.
 *
 * The control socket may be removed with all of the runtime directory, while the session runs on.
 * dnotify tells, and it is made again as soon as it can be.
 */
#include "supervisor/control.h"

#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/message.h"
#include "supervisor/relay.h"
#include "supervisor/session.h"

#define LOOK_SECONDS 5
#define LOOKS	    12 /* at a socket that is there again */
#define MAX_CLIENTS 64 /* the owner has as many again */

/* ---- sending ----------------------------------------------------------------------------- */

/* The connection is of no use any more; it is freed from its own event. */
static void give_up(struct client *c)
{
	shutdown(proto_conn_fd(c->conn), SHUT_RDWR);
	c->stuffed = false;
	event_add(c->readable, NULL);
}

void control_send(struct client *c, const Pb__Control *m)
{
	struct err e = {0};
	int r = message_send(c->conn, m, NULL, 0, &e);

	if (r < 0) {
		give_up(c);
		return;
	}
	if (r == 1 && !c->stuffed) {
		c->stuffed = true;
		event_add(c->writable, NULL);
		if (c->job && c->job->primary == c)
			relay_poke(c->job->relay);
	}
}

void control_send_done(struct client *c)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;

	m.body_case = PB__CONTROL__BODY_DONE;
	m.done = &empty;
	control_send(c, &m);
}

void control_send_failure(struct client *c, const struct err *e, int exit_code)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Failure f;

	message_of_err(&f, e);
	f.exit_code = (uint32_t)exit_code;
	m.body_case = PB__CONTROL__BODY_FAILURE;
	m.failure = &f;
	control_send(c, &m);
}

void control_send_output(struct client *c, unsigned stream, const void *data, size_t n)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Data d = PB__DATA__INIT;

	d.stream = stream;
	d.data.data = (uint8_t *)data;
	d.data.len = n;
	m.body_case = PB__CONTROL__BODY_OUTPUT;
	m.output = &d;
	control_send(c, &m);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx)
{
	struct client *c = ctx;
	struct session *s = c->session;
	struct err e = {0};
	int r = proto_conn_flush(c->conn, &e);

	if (r > 0)
		return;
	event_del(c->writable);
	c->stuffed = false;
	if (r < 0) {
		give_up(c);
		return;
	}
	if (c->job && c->job->primary == c)
		relay_poke(c->job->relay);
	session_maybe_exit(s);
}

/* ---- input for jobs ---------------------------------------------------------------------- */

void control_feed(struct client *c)
{
	size_t taken;

	if (!c->job)
		return;
	taken = relay_put(c->job->relay, c->input.data, c->input.len);
	buf_consume(&c->input, taken);
	if (c->input.len)
		return;
	if (c->input_end)
		relay_end_input(c->job->relay);
	c->input_end = false;
	event_add(c->readable, NULL);
	event_active(c->readable, EV_READ, 0);
}

/* ---- connections ------------------------------------------------------------------------- */

int control_defer(struct client *c, const Pb__Control *m, int *fds, size_t n_fds, struct err *e)
{
	size_t len = pb__control__get_packed_size(m);
	_cleanup_free_ uint8_t *data = malloc(len + 1);

	if (n_fds > ARRAY_SIZE(c->later_fds))
		return err_set(e, ERR_USAGE, -E2BIG, "too many descriptors");
	if (data)
		c->later = pb__control__unpack(NULL, pb__control__pack(m, data), data);
	if (!c->later)
		return err_errno(e, -ENOMEM, "request");
	for (size_t i = 0; i < n_fds; i++)
		c->later_fds[i] = take_fd(&fds[i]);
	c->n_later_fds = n_fds;
	event_del(c->readable);
	return 0;
}

void control_take_up(struct session *s)
{
	for (struct client *c = s->clients; c; c = c->next) {
		if (!c->later)
			continue;
		event_add(c->readable, NULL);
		event_active(c->readable, EV_READ, 0);
	}
}

static size_t take_later_fds(struct client *c, int *fds)
{
	size_t n = c->n_later_fds;

	memcpy(fds, c->later_fds, n * sizeof(*fds));
	c->n_later_fds = 0;
	return n;
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct client *c = ctx;
	int fds[MESSAGE_MAX_FDS];
	struct err e = {0};
	Pb__Control *m;
	size_t n_fds;
	int r;

	if (c->refused) {
		control_free(c);
		return;
	}
	if (c->later) {
		m = take_ptr(c->later);
		n_fds = take_later_fds(c, fds);
		r = 1;
	} else {
		/* One at a time: a handler may stop this client's input, or free it. */
		r = message_recv(c->conn, &m, fds, MESSAGE_MAX_FDS, &n_fds, &e);
	}
	if (r == 0)
		return;
	if (r < 0) {
		control_free(c);
		return;
	}
	/* More may be buffered than the socket shows. */
	event_active(c->readable, EV_READ, 0);
	c->session->control->request(c->session, c, m, fds, n_fds);
	message_free(m);
	while (n_fds)
		close_fd(fds[--n_fds]);
}

int control_adopt(struct client **ret, struct session *s, int sock, struct err *e)
{
	struct client *c = calloc(1, sizeof(*c));
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (!c || io_set_nonblock(sock, true) < 0 || io_set_cloexec(sock, true) < 0 ||
		getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
		proto_conn_new(&c->conn, sock, e) < 0) {
		free(c);
		close(sock);
		return err_set(e, ERR_FAILED, -ENOMEM, "cannot take a client");
	}
	c->session = s;
	c->uid = cred.uid;
	if (c->uid != getuid())
		proto_conn_limit(c->conn, PROTO_MAX_REQUEST);
	c->pid = cred.pid;
	c->readable = event_new(s->loop, sock, EV_READ | EV_PERSIST, on_readable, c);
	c->writable = event_new(s->loop, sock, EV_WRITE | EV_PERSIST, on_writable, c);
	c->next = s->clients;
	s->clients = c;
	if (!c->readable || !c->writable) {
		control_free(c);
		return err_errno(e, -ENOMEM, "client");
	}
	event_add(c->readable, NULL);
	if (ret)
		*ret = c;
	return 0;
}

void control_free(struct client *c)
{
	struct session *s = c->session;
	struct client **at = &s->clients;
	struct job *j = c->job;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	if (c->readable)
		event_free(c->readable);
	if (c->writable)
		event_free(c->writable);
	proto_conn_free(c->conn);
	buf_fini(&c->input);
	if (c->later)
		message_free(c->later);
	while (c->n_later_fds)
		close_fd(c->later_fds[--c->n_later_fds]);
	if (j && j->primary == c) {
		j->primary = NULL;
		if (!j->tty && !(j->number == 0 && s->record && s->record->config->keep_stdin))
			relay_end_input(j->relay);
		relay_poke(j->relay);
	}
	/* The first one may go before it has asked for anything: then nobody ever will. */
	if (s->op.client == c || (s->state == SESSION_STARTING && s->op.what == OP_NONE)) {
		s->op.client = NULL;
		s->control->abandoned(s);
	}
	free(c);
	session_maybe_exit(s);
}

void control_detach_job(struct session *s, struct job *j)
{
	for (struct client *c = s->clients; c; c = c->next)
		if (c->job == j) {
			c->job = NULL;
			buf_clear(&c->input);
			event_add(c->readable, NULL);
		}
}

/* ---- listening --------------------------------------------------------------------------- */

static bool is_owner(uid_t uid)
{
	return uid == geteuid() || uid == 0;
}

static bool may_connect(const struct session *s, int listener, uid_t uid)
{
	const Pb__Config *config = s->record->config;

	if (uid == 0 || (is_owner(uid) && listener == s->listeners[0]))
		return true;
	for (size_t i = 0; i < config->n_allow; i++)
		if (config->allow[i] == uid)
			return true;
	return false;
}

/*
 * While a command does not take what a client has sent it, no more is read from that one, so that its
 * end is not heard of.  What it sent is the command's, as in a pipe, until others need the room.
 */
static struct client *find_gone(const struct session *s)
{
	for (struct client *c = s->clients; c; c = c->next) {
		struct pollfd p = {.fd = proto_conn_fd(c->conn), .events = POLLRDHUP};

		if (c->input.len && poll(&p, 1, 0) == 1)
			return c;
	}
	return NULL;
}

static unsigned count_clients(const struct session *s)
{
	unsigned n = 0;

	for (const struct client *c = s->clients; c; c = c->next)
		n++;
	return n;
}

/* It may have asked for something before it was accepted: nobody listens to that. */
static void refuse(struct client *c, const struct err *e)
{
	c->refused = true;
	control_send_failure(c, e, 0);
	give_up(c);
}

static void on_connection(evutil_socket_t fd, short what, void *ctx)
{
	struct session *s = ctx;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct client *c;
	struct err e = {0};
	unsigned n;
	int sock = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (sock < 0)
		return;
	while ((n = count_clients(s)) >= MAX_CLIENTS && (c = find_gone(s)))
		control_free(c);
	if (n >= 3 * MAX_CLIENTS || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		close(sock);
		return;
	}
	if (control_adopt(&c, s, sock, &e) < 0) {
		log_warn("%s", e.msg);
		return;
	}
	if (!may_connect(s, fd, cred.uid)) {
		err_set(&e, ERR_FAILED, -EACCES, "user %u is not allowed to use this session", cred.uid);
		err_hint(&e, "podrun run --allow USER lets others in");
		refuse(c, &e);
	} else if (n >= (is_owner(cred.uid) ? 2 : 1) * MAX_CLIENTS) {
		err_set(&e, ERR_STATE, -EBUSY, "too many commands are connected to this session");
		refuse(c, &e);
	}
}

static int listen_at(struct session *s, int slot, const struct sockaddr_un *a, socklen_t len,
	struct err *e)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)a, len) < 0 || listen(fd, 16) < 0)
		return err_errno(e, -errno, "control socket");
	s->acceptors[slot] = event_new(s->loop, fd, EV_READ | EV_PERSIST, on_connection, s);
	if (!s->acceptors[slot])
		return err_errno(e, -ENOMEM, "control socket");
	event_add(s->acceptors[slot], NULL);
	s->listeners[slot] = take_fd(&fd);
	return 0;
}

/* Where those find it whom --allow lets in: nowhere, unless there are some. */
static int listen_to_others(struct session *s, struct err *e)
{
	const Pb__Config *config = s->record->config;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int n, r;

	if (!config->n_allow)
		return 0;
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "podrun/%u/%s", geteuid(),
		config->name);
	r = listen_at(s, 1, &a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n),
		e);
	if (r != -EADDRINUSE)
		return r;
	err_set(e, ERR_STATE, r, "somebody else has the address for those of --allow, @%s",
		a.sun_path + 1);
	return err_hint(e, "--name gives the session another");
}

static int listen_to_owner(struct session *s, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	_cleanup_close_ int dir = open(s->runtime, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_errno(e, -errno, "%s", s->runtime);
	unlinkat(dir, "control", 0);
	/*
	 * Whether the socket is still there is told by dnotify: a user has more sessions than instances
	 * of inotify.
	 */
	if (fcntl(s->runtime_fd, F_SETSIG, SIGRTMIN) < 0 ||
		fcntl(s->runtime_fd, F_NOTIFY, DN_DELETE | DN_RENAME | DN_MULTISHOT) < 0)
		log_info("nobody tells when %s is removed: %s", s->runtime, strerror(errno));
	/* Through /proc, since the directory's own path may be longer than an address. */
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/control", dir);
	return listen_at(s, 0, &a, sizeof(a), e);
}

static void unlisten(struct session *s, int slot)
{
	if (s->acceptors[slot])
		event_free(s->acceptors[slot]);
	s->acceptors[slot] = NULL;
	s->listeners[slot] = close_fd(s->listeners[slot]);
}

/* The session's runtime directory is there, and its own. */
static int renew_runtime(struct session *s, struct err *e)
{
	int fd, r = paths_renew_runtime(&s->paths, e);

	if (r < 0)
		return r;
	if (mkdir(s->runtime, 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", s->runtime);
	if (tenure_holds(s->runtime, s->runtime_fd))
		return 0;
	fd = tenure_open(s->runtime, e);
	if (fd < 0)
		return fd;
	close_fd(s->runtime_fd);
	s->runtime_fd = fd;
	return 0;
}

static void look_again(struct session *s)
{
	const struct timeval soon = {.tv_sec = LOOK_SECONDS};

	if (s->looks)
		event_add(s->looks, &soon);
}

/*
 * /run/user/UID goes when its user logs out, and comes back, empty, when he logs in again.  Until
 * then nobody can ask for anything.  What is made while it is being emptied may go with it, so it is
 * looked for some more.
 */
static void look_for_socket(evutil_socket_t fd, short what, void *ctx)
{
	struct session *s = ctx;
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int lock = -1;
	struct err e = {0};

	if (asprintf(&path, "%s/control", s->runtime) < 0)
		return;
	if (access(path, F_OK) == 0) {
		if (--s->looks_left > 0)
			look_again(s);
		return;
	}
	s->looks_left = LOOKS;
	look_again(s);
	lock = tenure_lock(&s->paths, &e);
	if (lock < 0 || renew_runtime(s, &e) < 0)
		return;
	unlisten(s, 0);
	if (listen_to_owner(s, &e) < 0)
		log_warn("%s", e.msg);
}

static void on_removed(evutil_socket_t signal, short what, void *ctx)
{
	struct session *s = ctx;

	s->looks_left = LOOKS;
	look_again(s);
}

int control_listen(struct session *s, struct err *e)
{
	int r;

	if (!s->removed)
		s->removed = evsignal_new(s->loop, SIGRTMIN, on_removed, s);
	if (!s->looks)
		s->looks = event_new(s->loop, -1, 0, look_for_socket, s);
	if (!s->looks || !s->removed || event_add(s->removed, NULL) < 0)
		return err_errno(e, -ENOMEM, "control socket");
	r = listen_to_owner(s, e);
	return r < 0 ? r : listen_to_others(s, e);
}

void control_renamed(struct session *s)
{
	struct err e = {0};

	if (!s->record->config->n_allow)
		return;
	unlisten(s, 1);
	if (listen_to_others(s, &e) < 0)
		log_warn("others can't reach it under its new name: %s", e.msg);
}

void control_unlisten(struct session *s)
{
	if (s->looks)
		event_free(take_ptr(s->looks));
	if (s->removed)
		event_free(take_ptr(s->removed));
	for (int i = 0; i < 2; i++)
		unlisten(s, i);
}

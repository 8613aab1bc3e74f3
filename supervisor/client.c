// SPDX-License-Identifier: GPL-2.0-or-later
/* A client is a blocking program: it sends one request and waits for what comes. */
#include "supervisor/client.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/background.h"
#include "supervisor/disk/images.h"
#include "supervisor/disk/record.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/message.h"

#define PATIENCE_MS 5000 /* of who looks at all sessions, with one that is stuck */

/* Connects to the socket in the session's runtime directory: a descriptor or negative errno. */
static int connect_own(const struct paths *p, const char *name)
{
	_cleanup_free_ char *runtime = paths_runtime(p, name, NULL);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	_cleanup_close_ int dir = -1, sock = -1;

	dir = runtime ? open(runtime, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0)
		return -errno;
	/* The directory's own path may be longer than an address. */
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/control", dir);
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	return take_fd(&sock);
}

/* OWNER/NAME: at the abstract address, if it is the owner who listens there. */
static int connect_other(const char *owner, const char *name, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const struct passwd *pw = getpwnam(owner);
	_cleanup_close_ int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int n;

	if (!pw)
		return err_set(e, ERR_NOT_FOUND, -ENOENT, "no user '%s'", owner);
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "podrun/%u/%s", pw->pw_uid, name);
	if (sock < 0 ||
		connect(sock, (struct sockaddr *)&a,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0 ||
		getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid != pw->pw_uid) {
		err_set(e, ERR_NOT_FOUND, -ENOENT, "no session '%s' of %s that lets others in", name,
			owner);
		return err_hint(e, "it must have been started with --allow");
	}
	return take_fd(&sock);
}

/* Is there a supervisor, whether or not it can be reached? */
static bool is_held(const struct paths *p, const char *name)
{
	_cleanup_free_ char *dir = paths_session(p, name, NULL);

	return dir && tenure_is_held(dir);
}

/* What is left of it are its snapshots, if it made any: who is told of rm is told of them. */
static int lost(const struct paths *p, const char *name, struct err *e)
{
	unsigned last = images_newest_in_sight(p, name);

	err_set(e, ERR_STATE, -ESRCH, "'%s' lost its supervisor", name);
	if (!last)
		return err_hint(e, "podrun rm %s removes what is left of it", name);
	return err_hint(e,
		"podrun resume %s@%u goes on from its last snapshot; podrun rm %s removes what is "
		"left of it, and all of its snapshots",
		name, last, name);
}

/* Why a session that has a record has no supervisor. */
static int not_live(const struct paths *p, const char *name, struct err *e)
{
	Pb__Record *r;
	enum record_state state;

	if (record_load(&r, p, name, e) < 0)
		return e->error;
	state = record_state_of(r->state);
	if (state == RECORD_SUSPENDED) {
		err_set(e, ERR_STATE, -ESRCH, "'%s' is suspended", name);
		err_hint(e, "podrun resume %s", name);
	} else if (state == RECORD_MOVED) {
		err_set(e, ERR_STATE, -ESRCH, "'%s' was moved to %s", name, r->peer);
	} else if (state == RECORD_ENDED) {
		err_set(e, ERR_STATE, -ESRCH, "'%s' has ended", name);
	} else if (is_held(p, name)) {
		err_set(e, ERR_STATE, -ESRCH, "'%s' is running, but has no socket in %s", name, p->runtime);
		err_hint(e, "was XDG_RUNTIME_DIR another when it was started? if not, it makes one within "
			    "seconds, when it can");
	} else if (state == RECORD_IN_DOUBT && r->peer[0]) {
		err_set(e, ERR_STATE, -ESRCH,
			"'%s' lost its supervisor when it was in doubt: what is left of it is on %s", name,
			r->peer);
		err_hint(e, "podrun ps there; if it has arrived: podrun migrate --finish %s there", name);
	} else {
		lost(p, name, e);
	}
	record_free(r);
	return e->error;
}

int client_connect(struct proto_conn **ret, const struct paths *p, const char *name, struct err *e)
{
	const char *slash = strchr(name, '/');
	int sock;

	if (slash) {
		_cleanup_free_ char *owner = strndup(name, (size_t)(slash - name));

		sock = owner ? connect_other(owner, slash + 1, e) : err_errno(e, -ENOMEM, "client");
		if (sock < 0)
			return sock;
	} else {
		if (!paths_valid_name(name))
			return err_set(e, ERR_NOT_FOUND, -ENOENT, "no session '%.64s'", name);
		sock = connect_own(p, name);
		if (sock == -ENOENT || sock == -ECONNREFUSED)
			return not_live(p, name, e);
		if (sock < 0)
			return err_errno(e, sock, "cannot reach the supervisor of '%s'", name);
	}
	if (proto_conn_new(ret, sock, e) < 0) {
		close(sock);
		return e->error;
	}
	return 0;
}

int client_start(struct proto_conn **ret, struct err *e)
{
	int sock = background_start(e);

	if (sock < 0)
		return sock;
	if (proto_conn_new(ret, sock, e) < 0) {
		close(sock);
		return e->error;
	}
	return 0;
}

int client_receive(struct proto_conn *c, Pb__Control **ret, struct err *e)
{
	int fds[MESSAGE_MAX_FDS], r;
	Pb__Control *m;
	size_t n_fds;

	r = message_recv(c, &m, fds, MESSAGE_MAX_FDS, &n_fds, e);
	if (r <= 0)
		return err_set(e, ERR_STATE, -ECONNRESET, "the session's supervisor has ended");
	while (n_fds)
		close_fd(fds[--n_fds]);
	if (m->body_case == PB__CONTROL__BODY_FAILURE) {
		message_to_err(m->failure, e);
		message_free(m);
		return e->error;
	}
	*ret = m;
	return 0;
}

int client_send(struct proto_conn *c, const Pb__Control *m, const int *fds, size_t n_fds,
	struct err *e)
{
	struct err own = {0};
	int r = message_send(c, m, fds, n_fds, &own);

	/* A supervisor that is at its end: its last words, or none, are what is read next. */
	if (r >= 0 || r == -EPIPE || r == -ECONNRESET)
		return 0;
	*e = own;
	return r;
}

int client_call(struct proto_conn *c, const Pb__Control *m, const int *fds, size_t n_fds,
	Pb__Control **ret, struct err *e)
{
	int r = client_send(c, m, fds, n_fds, e);

	return r < 0 ? r : client_receive(c, ret, e);
}

int client_lost(const struct paths *p, const char *name, struct err *e)
{
	enum record_state state = RECORD_ENDED;
	struct err why = {0};
	Pb__Record *r;

	/* who was told where it is knows more than its name does, which may be another by now */
	if (e->class == ERR_MOVED || e->error != -ECONNRESET || strchr(name, '/'))
		return e->error;
	if (record_load(&r, p, name, &why) == 0) {
		state = record_state_of(r->state);
		record_free(r);
	} else if (why.error != -ENOENT) { /* run --rm */
		return e->error;
	}
	if (state == RECORD_ENDED)
		return err_set(e, ERR_STATE, -ESRCH, "'%s' has ended", name);
	if (state != RECORD_MOVED && state != RECORD_SUSPENDED)
		return e->error;
	*e = (struct err){0};
	return not_live(p, name, e);
}

int client_simple(const struct paths *p, const char *name, const Pb__Control *m, struct err *e)
{
	struct proto_conn *c;
	Pb__Control *reply;
	int r = client_connect(&c, p, name, e);

	if (r < 0)
		return r;
	r = client_call(c, m, NULL, 0, &reply, e);
	if (r == 0)
		message_free(reply);
	proto_conn_free(c);
	return r < 0 ? client_lost(p, name, e) : 0;
}

bool client_is_live(const struct paths *p, const char *name)
{
	_cleanup_close_ int sock = connect_own(p, name);

	return sock >= 0;
}

void client_ask_kill(const struct paths *p, const char *name)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__KillRequest q = PB__KILL_REQUEST__INIT;
	struct proto_conn *c;
	struct err e = {0};

	q.force = true;
	m.body_case = PB__CONTROL__BODY_KILL;
	m.kill = &q;
	if (client_connect(&c, p, name, &e) < 0)
		return;
	message_send(c, &m, NULL, 0, &e);
	proto_conn_free(c);
}

/* ---- looking ------------------------------------------------------------------------------ */

/* @patience_ms: how long to wait for the answer, or -1. */
static int ask_info(struct proto_conn *c, int patience_ms, Pb__Control **ret, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;
	struct pollfd p = {.fd = proto_conn_fd(c), .events = POLLIN};
	int r;

	m.body_case = PB__CONTROL__BODY_INFO;
	m.info = &empty;
	r = client_send(c, &m, NULL, 0, e);
	if (r >= 0 && patience_ms >= 0 && poll(&p, 1, patience_ms) == 0)
		return err_set(e, ERR_FAILED, -ETIMEDOUT, "the supervisor does not answer");
	if (r >= 0)
		r = client_receive(c, ret, e);
	if (r < 0)
		return r;
	if ((*ret)->body_case == PB__CONTROL__BODY_INFORMATION && (*ret)->information->record &&
		(*ret)->information->record->config)
		return 0;
	message_free(take_ptr(*ret));
	return err_set(e, ERR_FAILED, -EPROTO, "the supervisor speaks another language");
}

static int look(struct client_session *ret, const struct paths *p, const char *name,
	int patience_ms, struct err *e)
{
	struct client_session s = {0};
	struct proto_conn *c = NULL;
	Pb__Control *info = NULL;
	int r = client_connect(&c, p, name, e);

	if (r == 0)
		r = ask_info(c, patience_ms, &info, e);
	proto_conn_free(c);
	if (r == 0) {
		s.live = true;
		s.info = info;
		s.record = info->information->record;
		snprintf(s.state, sizeof(s.state), "%.15s", info->information->state);
	} else if (strchr(name, '/') || record_load(&s.record, p, name, e) < 0) {
		return e->error;
	} else {
		enum record_state state = record_state_of(s.record->state);
		bool settled = state == RECORD_SUSPENDED || state == RECORD_MOVED || state == RECORD_ENDED;

		/* one that is there and does not answer is not lost */
		s.live = !settled && (client_is_live(p, name) || is_held(p, name));
		settled |= s.live;
		snprintf(s.state, sizeof(s.state), "%s", settled ? record_state_name(state) : "lost");
		*e = (struct err){0};
	}
	s.name = strdup(name);
	if (!s.name) {
		client_session_fini(&s);
		return err_errno(e, -ENOMEM, "session");
	}
	*ret = s;
	return 0;
}

int client_look(struct client_session *ret, const struct paths *p, const char *name, struct err *e)
{
	return look(ret, p, name, -1, e);
}

void client_session_fini(struct client_session *s)
{
	free(s->name);
	if (s->info)
		message_free(s->info);
	else
		record_free(s->record);
	*s = (struct client_session){0};
}

int client_list(const struct paths *p, struct client_session **ret, size_t *ret_n, struct err *e)
{
	struct client_session *all;
	char **names;
	size_t n, found = 0;
	int r;

	tenure_sweep(p);
	r = paths_list(p, &names, &n, e);

	if (r < 0)
		return r;
	all = calloc(n + 1, sizeof(*all));
	for (size_t i = 0; i < n; i++) {
		struct err gone = {0};

		/* One that is removed while we look is no failure, nor is one that is stuck. */
		if (all && look(&all[found], p, names[i], PATIENCE_MS, &gone) == 0)
			found++;
		free(names[i]);
	}
	free(names);
	if (!all)
		return err_errno(e, -ENOMEM, "list of sessions");
	*ret = all;
	*ret_n = found;
	return 0;
}

void client_list_free(struct client_session *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		client_session_fini(&s[i]);
	free(s);
}

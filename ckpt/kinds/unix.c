// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unix sockets, from the kernel into records; unix_build.c is the way back.
 *
 * A descriptor tells its own name and options, but neither its peer nor its backlog: those come
 * from UNIX_DIAG, asked once for the whole session (sock_diag.c), and are tied together by inode
 * numbers, since a socket is exactly one open file.  Where the node of a bound path is now - it
 * may have been renamed or deleted, and the name may be relative to a directory nobody remembers -
 * tells SIOCUNIXFILE, which the owner of the network namespace may ask.
 *
 * Unread bytes and the descriptors among them are peeked at.  A descriptor in flight may be one
 * that no table holds: it is taken up with ckpt_file_add, before the checks, so that it gets a
 * record like every other.
 *
 * A peer outside the session, or in another network, is refused or severed (outside.h).
 *
 * What the kernel shows nobody makes the session unfreezable, by name: data sent over a
 * connection that has not been accepted yet, and an urgent byte.
 */
#include "ckpt/kinds/unix.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>

#include "ckpt/enter.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/outside.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/nested/sock.h"
#include "ckpt/survey/survey.h"
#include "ckpt/where.h"
#include "proto/sockets.pb-c.h"

#define DELETED	       " (deleted)" /* behind a name that is gone, in /proc/PID/fd */
#define IOCTL_UNIXFILE (SIOCPROTOPRIVATE + 0) /* SIOCUNIXFILE of linux/un.h */

static bool claim(const struct ckpt_file *f)
{
	return f->domain == AF_UNIX;
}

/* ---- what is kept during a dump ------------------------------------------------------------- */

struct state {
	struct ckpt_unix_diag_list *list;
	/* struct kept, each followed by a packed Unix with nothing but a queue */
	struct buf queues;
	size_t next;	  /* where the one asked for last ended: files are asked for in order */
	struct buf peers; /* struct peer, of those whose peer is no living process of the session */
};

struct peer {
	uint32_t file;
	struct ucred cred; /* as the session knows it */
};

struct kept {
	uint32_t file, len;
};

/* Those of ->peers, each at its socket. */
struct asked {
	const int *fds;
	struct peer *peers;
	size_t n;
};

static void forget(void *p)
{
	struct state *s = p;

	free(s->list);
	buf_fini(&s->queues);
	buf_fini(&s->peers);
	free(s);
}

static struct state *state_of(struct ckpt_dump *d)
{
	void **slot = &d->kind_state[PROTO_KIND_UNIX];

	if (!*slot)
		*slot = calloc(1, sizeof(struct state));
	return *slot;
}

/* The session's unix sockets, listed on first use. */
static int list_of(struct ckpt_dump *d, struct ckpt_unix_diag_list **ret, struct err *e)
{
	struct state *s = state_of(d);
	int r;

	if (!s)
		return err_errno(e, -ENOMEM, "unix sockets");
	if (!s->list) {
		_cleanup_buf_ struct buf nets = BUF_INIT;

		r = ckpt_nested_nets(d, &nets, e);
		if (r == 0)
			r = ckpt_sock_diag_unix(d->world, d->diag, (const int *)nets.data,
				nets.len / sizeof(int), &s->list, e);
		for (size_t i = 0; i < nets.len / sizeof(int); i++)
			close(((const int *)nets.data)[i]);
		if (r < 0)
			return r;
	}
	*ret = s->list;
	return 0;
}

/*
 * Keeps @f's queue from the check to the dump.  It can be looked at only once: the kernel hides an
 * empty packet from whoever peeks a second time.
 */
static int keep_queue(
	struct ckpt_dump *d, const struct ckpt_file *f, const Pb__Unix *m, struct err *e)
{
	struct state *s = state_of(d);
	_cleanup_buf_ struct buf body = BUF_INIT;
	Pb__Unix only = PB__UNIX__INIT;
	int r;

	only.queue = m->queue;
	only.n_queue = m->n_queue;
	r = ckpt_pack(&only.base, &body, e);
	if (r < 0)
		return r;
	buf_put(&s->queues, &(struct kept){f->id, (uint32_t)body.len}, sizeof(struct kept));
	buf_put(&s->queues, body.data, body.len);
	return buf_error(&s->queues);
}

/* Looks for @file between @from and @end of what is kept; moves s->next behind it. */
static Pb__Unix *search(struct state *s, uint32_t file, size_t from, size_t end)
{
	struct cursor c = cursor_of(s->queues.data + from, end - from);

	while (cursor_left(&c)) {
		const void *head = cursor_take(&c, sizeof(struct kept));
		const void *body;
		struct kept k;

		if (!head)
			break;
		memcpy(&k, head, sizeof(k));
		body = cursor_take(&c, k.len);
		if (!body || k.file != file)
			continue;
		s->next = end - cursor_left(&c);
		return pb__unix__unpack(NULL, k.len, body);
	}
	return NULL;
}

/* A message with @f's queue; NULL if it has none. */
static Pb__Unix *kept_queue(struct ckpt_dump *d, const struct ckpt_file *f)
{
	struct state *s = state_of(d);
	Pb__Unix *m;

	if (!s || !s->queues.len)
		return NULL;
	m = search(s, f->id, s->next, s->queues.len);
	return m ? m : search(s, f->id, 0, s->next);
}

/* ---- who is who ------------------------------------------------------------------------------ */

/* What UNIX_DIAG knows of @f; NULL if it belongs to another network. */
static int diag_of(struct ckpt_dump *d, const struct ckpt_file *f,
	const struct ckpt_unix_diag **ret, struct ckpt_unix_diag_list **ret_list, struct err *e)
{
	int r = list_of(d, ret_list, e);

	if (r < 0)
		return r;
	*ret = ckpt_sock_unix_by_ino(*ret_list, (uint32_t)f->st.st_ino);
	return 0;
}

/* By what the socket tells itself: one made in another network is in no list. */
static Pb__Unix__State unix_state(const struct ckpt_file *f)
{
	struct sockaddr_un a;
	socklen_t len = sizeof(a);

	if (f->type == SOCK_DGRAM)
		return PB__UNIX__STATE__IDLE;
	if (ckpt_sock_get_int(f->fd, SOL_SOCKET, SO_ACCEPTCONN) == 1)
		return PB__UNIX__STATE__LISTENING;
	return getpeername(f->fd, (struct sockaddr *)&a, &len) == 0 ? PB__UNIX__STATE__CONNECTED
								    : PB__UNIX__STATE__IDLE;
}

/* The name as bind(2) had it in the session; @which is getsockname or getpeername. */
static int name_of(const struct ckpt_dump *d, int fd,
	int (*which)(int, struct sockaddr *, socklen_t *), ProtobufCBinaryData *ret)
{
	struct sockaddr_un a;
	socklen_t len = sizeof(a);
	size_t n;

	if (which(fd, (struct sockaddr *)&a, &len) < 0)
		return -errno;
	if (len <= offsetof(struct sockaddr_un, sun_path))
		return 0;
	n = MIN((size_t)len, sizeof(a)) - offsetof(struct sockaddr_un, sun_path);
	if (a.sun_path[0])
		n = strnlen(a.sun_path, n);
	ret->data = malloc(n);
	if (!ret->data)
		return -ENOMEM;
	memcpy(ret->data, a.sun_path, n);
	ret->len = n;
	return ckpt_where_say_name(d->world, &ret->data, &ret->len);
}

/* The listening socket in whose backlog the connection of @ino waits. */
static const struct ckpt_unix_diag *backlog_with(
	const struct ckpt_unix_diag_list *list, uint32_t ino)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct ckpt_unix_diag *l = &list->entries[i];

		for (size_t k = 0; k < l->n_pending; k++)
			if (list->pending[l->pending_at + k] == ino)
				return l;
	}
	return NULL;
}

/* @f is connected to @ino, which is not the session's. */
static int sever(const struct ckpt_dump *d, const struct ckpt_file *f, uint32_t ino, Pb__Unix *m,
	struct err *e)
{
	ProtobufCBinaryData name = {0};
	char text[sizeof(struct sockaddr_un)] = "an unnamed socket";

	if (name_of(d, f->fd, getpeername, &name) >= 0 && name.len)
		snprintf(text, sizeof(text), "%s%.*s", name.data[0] ? "" : "@",
			(int)name.len - !name.data[0], (char *)name.data + !name.data[0]);
	free(name.data);
	m->peer_kind = PB__UNIX__PEER__SEVERED;
	m->peer_reset = ckpt_outside_resets(d);
	return ckpt_outside(d, e,
		"unix socket is connected to %s (inode %u), which is outside the session", text,
		ino);
}

/* Nothing comes, and nothing can be sent: unix_poll() has it so once the other end is closed. */
static bool is_over(const struct ckpt_file *f)
{
	struct pollfd p = {.fd = f->fd};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

/*
 * A socket made outside and passed in, or accepted from there: the connecting end makes both, in
 * its own network.  All that can be told of it is what it tells itself.
 */
static int look_at_foreign(
	const struct ckpt_dump *d, const struct ckpt_file *f, Pb__Unix *m, struct err *e)
{
	struct sockaddr_un a;
	socklen_t len = sizeof(a);

	if (m->state == PB__UNIX__STATE__LISTENING ||
		getpeername(f->fd, (struct sockaddr *)&a, &len) < 0)
		return err_set(e, ERR_UNFREEZABLE, -EXDEV,
			"this unix socket belongs to another network than the session's");
	if (is_over(f)) {
		m->peer_kind = PB__UNIX__PEER__GONE;
		m->shutdown = 3;
		return 0;
	}
	return sever(d, f, (uint32_t)f->st.st_ino, m, e);
}

/*
 * True if @diag's connection waits to be accepted by somebody outside.  A peer that was closed has
 * no inode, either, but has shut both directions down.
 */
static bool waits_outside(const Pb__Unix *m, const struct ckpt_unix_diag *diag)
{
	return m->state == PB__UNIX__STATE__CONNECTED && diag->shutdown != 3;
}

/* Who is at the other end. */
static int find_peer(struct ckpt_dump *d, const struct ckpt_file *f,
	const struct ckpt_unix_diag_list *list, const struct ckpt_unix_diag *diag, Pb__Unix *m,
	struct err *e)
{
	const struct ckpt_unix_diag *listener;
	struct ckpt_file *peer;

	m->shutdown = diag->shutdown;
	if (!diag->has_peer || m->state == PB__UNIX__STATE__LISTENING)
		return 0;
	if (diag->peer) {
		peer = ckpt_sock_file(d, &ckpt_kind_unix, f, diag->peer);
		if (!peer)
			return sever(d, f, diag->peer, m, e);
		m->peer_kind = PB__UNIX__PEER__FILE;
		m->peer = peer->id;
		return 0;
	}
	listener = backlog_with(list, diag->ino);
	if (!listener && waits_outside(m, diag))
		return sever(d, f, diag->ino, m, e);
	if (!listener) {
		m->peer_kind = PB__UNIX__PEER__GONE;
		return 0;
	}
	peer = ckpt_sock_file(d, &ckpt_kind_unix, NULL, listener->ino);
	if (!peer)
		return sever(d, f, listener->ino, m, e);
	m->peer_kind = PB__UNIX__PEER__PENDING;
	m->peer = peer->id;
	return 0;
}

/* A connection from outside that nobody has accepted yet does not come along. */
static int drop_pending(const struct ckpt_dump *d, uint32_t ino, struct err *e)
{
	return ckpt_outside(d, e,
		"a connection from outside the session (inode %u) has not been accepted yet", ino);
}

/* Is @f an X server's?  It answers whoever greets it, and without an answer nothing happens. */
static bool forgets_who_left(const struct ckpt_dump *d, const struct ckpt_file *f)
{
	const char *visited = d->options.visited;
	ProtobufCBinaryData name = {0};
	bool same;

	if (!visited[0] || name_of(d, f->fd, getsockname, &name) < 0)
		return false;
	same = name.len == strlen(visited) && memcmp(name.data, visited, name.len) == 0;
	free(name.data);
	return same;
}

/* The backlog of a listening socket; what has been sent over such a connection nobody can see. */
static int find_pending(struct ckpt_dump *d, const struct ckpt_file *f, Pb__Unix *m, struct err *e)
{
	struct ckpt_unix_diag_list *list;
	const struct ckpt_unix_diag *diag;
	int r = diag_of(d, f, &diag, &list, e);

	if (r < 0)
		return r;
	m->backlog = (int32_t)diag->backlog;
	m->pending = calloc(diag->n_pending + 1, sizeof(*m->pending));
	if (!m->pending)
		return err_errno(e, -ENOMEM, "backlog");
	for (size_t i = 0; i < diag->n_pending; i++) {
		uint32_t ino = list->pending[diag->pending_at + i];
		struct ckpt_file *client = ino ? ckpt_sock_file(d, &ckpt_kind_unix, f, ino) : NULL;
		int unread = 0;

		if (ino && !client) {
			r = drop_pending(d, ino, e);
			if (r < 0)
				return r;
			continue;
		}
		if (!client && forgets_who_left(d, f))
			continue;
		if (!client || ioctl(client->fd, SIOCOUTQ, &unread) < 0 || unread) {
			err_set(e, ERR_UNFREEZABLE, -EAGAIN,
				client ? "a connection that has not been accepted yet holds data"
				       : "a connection that has not been accepted yet may hold "
					 "data, its client has gone");
			return err_hint(e, "try again when the server has accepted it");
		}
		m->pending[m->n_pending++] = client->id;
	}
	return 0;
}

static bool get_cred(int fd, struct ucred *ret)
{
	socklen_t len = sizeof(*ret);

	*ret = (struct ucred){0};
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &len) == 0 && ret->pid;
}

/* In the session's numbers, which the kernel tells those who are in there. */
static int tell_creds(void *ctx, struct err *e)
{
	const struct asked *a = ctx;

	for (size_t i = 0; i < a->n; i++)
		get_cred(a->fds[i], &a->peers[i].cred);
	return 0;
}

/* Of all sockets at once: somebody has to be made for the question. */
static int ask_peers(struct ckpt_dump *d, struct state *s, struct err *e)
{
	_cleanup_buf_ struct buf fds = BUF_INIT;
	struct asked a;

	for (size_t i = 0; i < d->n_files; i++) {
		struct peer p = {.file = d->files[i]->id};

		if (d->files[i]->kind != &ckpt_kind_unix || !get_cred(d->files[i]->fd, &p.cred) ||
			ckpt_proc_by_pid(d, p.cred.pid))
			continue;
		buf_put(&fds, &d->files[i]->fd, sizeof(int));
		buf_put(&s->peers, &p, sizeof(p));
	}
	if (buf_error(&fds) < 0 || buf_error(&s->peers) < 0)
		return err_errno(e, -ENOMEM, "credentials");
	a = (struct asked){.fds = (const int *)fds.data,
		.peers = (struct peer *)s->peers.data,
		.n = fds.len / sizeof(int)};
	return ckpt_enter_call(d->world, CLONE_NEWPID, tell_creds, &a, e);
}

/* The number by which the session knew @f's peer, 0 if it never did. */
static int number_of_peer(struct ckpt_dump *d, const struct ckpt_file *f, pid_t *ret, struct err *e)
{
	struct state *s = state_of(d);
	int r = !s ? err_errno(e, -ENOMEM, "unix sockets") : s->peers.len ? 0 : ask_peers(d, s, e);

	*ret = 0;
	for (size_t i = 0; r >= 0 && i < s->peers.len / sizeof(struct peer); i++)
		if (((struct peer *)s->peers.data)[i].file == f->id)
			*ret = ((struct peer *)s->peers.data)[i].cred.pid;
	return MIN(r, 0);
}

/* SO_PEERCRED in the session's numbers; of an ended process only the session knows its. */
static int dump_cred(struct ckpt_dump *d, const struct ckpt_file *f, Pb__Unix *m, struct err *e)
{
	struct ucred cred;
	pid_t pid;
	int r = 0;

	if (!get_cred(f->fd, &cred))
		return 0;
	m->peer_cred = malloc(sizeof(*m->peer_cred));
	if (!m->peer_cred)
		return err_errno(e, -ENOMEM, "credentials");
	pb__sock_cred__init(m->peer_cred);
	m->peer_cred->uid = ckpt_sock_uid(d, cred.uid);
	m->peer_cred->gid = ckpt_sock_gid(d, cred.gid);
	if (ckpt_proc_by_pid(d, cred.pid) || d->world->names)
		pid = ckpt_common_vpid(d, cred.pid);
	else
		r = number_of_peer(d, f, &pid, e);
	if (r == 0)
		m->peer_cred->pid = pid;
	return r;
}

/* A relative name is believed to be seen from where its holder stands.  NULL: no memory. */
static char *guess_node(const struct ckpt_dump *d, const struct ckpt_file *f, const Pb__Unix *m)
{
	char name[32], *path;
	_cleanup_free_ char *cwd = NULL;

	if (m->name.data[0] == '/' || !f->holder)
		return strndup((char *)m->name.data, m->name.len);
	snprintf(name, sizeof(name), "%d/cwd", f->holder->look);
	cwd = ckpt_where_say(d->world, io_readlink(d->host_proc, name));
	if (asprintf(&path, "%s/%.*s", cwd ? cwd : "", (int)m->name.len, (char *)m->name.data) < 0)
		return NULL;
	return path;
}

/* On the host's own network nobody may ask for the node, but its number is told. */
static int search_node(struct ckpt_dump *d, const struct ckpt_file *f, Pb__Unix *m, struct err *e)
{
	_cleanup_free_ char *guess = guess_node(d, f, m);
	struct ckpt_unix_diag_list *list = NULL;
	const struct ckpt_unix_diag *diag = NULL;
	mode_t mode;
	char *node;
	int r = guess ? diag_of(d, f, &diag, &list, e) : err_errno(e, -ENOMEM, "name of a socket");

	if (r < 0 || !diag || !diag->has_node)
		return MIN(r, 0);
	node = unix_find_node(d->world, guess, diag->node_ino, &mode);
	if (node) {
		m->node = node;
		m->node_mode = mode & 07777;
	}
	return 0;
}

/* The kernel says behind @path that this name of node @st is gone. */
static bool has_lost_name(const struct ckpt_dump *d, const char *path, const struct stat *st)
{
	size_t len = strlen(path), tail = strlen(DELETED);
	char room[PATH_MAX];
	struct stat now;

	if (len <= tail || strcmp(path + len - tail, DELETED) != 0)
		return false;
	/* or it is called so */
	return fstatat(d->world->root_fd, ckpt_where_below(d->world, path, room), &now,
		       AT_SYMLINK_NOFOLLOW) < 0 ||
	       now.st_ino != st->st_ino;
}

/*
 * Another name is left: some bind to one of the moment, link(2) the one they want to it, and remove
 * the first.
 */
static int find_other_name(
	struct ckpt_dump *d, char *path, const struct stat *st, Pb__Unix *m, struct err *e)
{
	mode_t mode;
	char *node;

	path[strlen(path) - strlen(DELETED)] = '\0';
	node = unix_find_node(d->world, path, (uint32_t)st->st_ino, &mode);
	if (!node)
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"the name that the socket bound to %s has now cannot be found", path);
	m->node = node;
	return 0;
}

/* Where the node of a bound path is now. */
static int dump_node(struct ckpt_dump *d, const struct ckpt_file *f, Pb__Unix *m, struct err *e)
{
	_cleanup_close_ int node = ioctl(f->fd, IOCTL_UNIXFILE);
	_cleanup_free_ char *path = NULL;
	char link[64];
	struct stat st;

	if (node < 0)
		return search_node(d, f, m, e);
	if (fstat(node, &st) < 0)
		return err_errno(e, -errno, "node of a socket");
	m->node_mode = st.st_mode & 07777;
	if (!st.st_nlink)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", node);
	path = ckpt_where_say(d->world, io_readlink(AT_FDCWD, link));
	if (!path)
		return err_errno(e, -errno, "node of a socket");
	if (has_lost_name(d, path, &st))
		return find_other_name(d, path, &st, m, e);
	m->node = take_ptr(path);
	return 0;
}

static int look(struct ckpt_dump *d, const struct ckpt_file *f, Pb__Unix *m, struct err *e)
{
	struct ckpt_unix_diag_list *list;
	const struct ckpt_unix_diag *diag;
	int r = diag_of(d, f, &diag, &list, e);

	if (r < 0)
		return r;
	m->state = unix_state(f);
	return diag ? find_peer(d, f, list, diag, m, e) : look_at_foreign(d, f, m, e);
}

/* True if something waits to be read.  Where nothing does, a peek would tell a waiting error. */
static bool has_queue(const struct ckpt_file *f, const Pb__Unix *m)
{
	struct pollfd p = {.fd = f->fd, .events = POLLIN};
	int waiting = 0;

	if (f->type != SOCK_STREAM)
		return m->state != PB__UNIX__STATE__LISTENING && poll(&p, 1, 0) == 1 &&
		       (p.revents & POLLIN);
	return m->state == PB__UNIX__STATE__CONNECTED && ioctl(f->fd, SIOCINQ, &waiting) == 0 &&
	       waiting > 0;
}

static void fini(Pb__Unix *m)
{
	if (m->common)
		ckpt_sock_common_fini(m->common);
	free(m->name.data);
	if (m->node != protobuf_c_empty_string)
		free(m->node);
	free(m->peer_name.data);
	free(m->peer_cred);
	free(m->pending);
	ckpt_sock_queue_free(m->queue, m->n_queue);
}

/* Keeps what @f holds, which is in state @m; what that carries is taken up. */
static int take_queue(struct ckpt_dump *d, const struct ckpt_file *f, Pb__Unix *m, struct err *e)
{
	char byte;
	int r = 0;

	if (m->state == PB__UNIX__STATE__CONNECTED &&
		recv(f->fd, &byte, 1, MSG_OOB | MSG_PEEK | MSG_DONTWAIT) == 1)
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"an urgent byte (MSG_OOB) in flight is not supported");
	if (has_queue(f, m))
		r = ckpt_sock_queue_dump(d, f->fd, &m->queue, &m->n_queue, e);
	return r >= 0 && m->n_queue ? keep_queue(d, f, m, e) : r;
}

/* Before anybody looks for peers: one end may be in flight in the queue of another socket. */
static int gather(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	Pb__Unix m = PB__UNIX__INIT;
	int r;

	m.state = unix_state(s.file);
	r = take_queue(d, s.file, &m, e);
	fini(&m);
	return r;
}

/* Before anything is written: its peer is known. */
static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	Pb__Unix m = PB__UNIX__INIT;
	int r = look(d, s.file, &m, e);

	if (r >= 0 && m.state == PB__UNIX__STATE__LISTENING)
		r = find_pending(d, s.file, &m, e);
	fini(&m);
	return r;
}

static int fill(struct ckpt_dump *d, const struct ckpt_file *f, Pb__Unix *m, struct err *e)
{
	struct pollfd p = {.fd = f->fd};
	int r = ckpt_sock_common_dump(d, f, m->common, e);

	if (r >= 0)
		r = look(d, f, m, e);
	if (r < 0)
		return r;
	r = name_of(d, f->fd, getsockname, &m->name);
	if (r < 0)
		return err_errno(e, r, "name of a socket");
	if (m->name.len && m->name.data[0])
		r = dump_node(d, f, m, e);
	if (r >= 0 && m->state == PB__UNIX__STATE__LISTENING)
		r = find_pending(d, f, m, e);
	if (r >= 0)
		r = dump_cred(d, f, m, e);
	if (r < 0)
		return r;
	if (m->peer_kind == PB__UNIX__PEER__GONE) {
		name_of(d, f->fd, getpeername, &m->peer_name);
		m->peer_reset = poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
	} else if (m->peer_kind == PB__UNIX__PEER__SEVERED) {
		name_of(d, f->fd, getpeername, &m->peer_name);
		/* An abstract name still belongs to the other program. */
		if (m->peer_name.len && !m->peer_name.data[0])
			m->peer_name.len = 0;
	}
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__SockCommon common = PB__SOCK_COMMON__INIT;
	Pb__Unix m = PB__UNIX__INIT, *queue = kept_queue(d, s.file);
	int r;

	m.common = &common;
	r = fill(d, s.file, &m, e);
	if (queue) {
		m.queue = queue->queue;
		m.n_queue = queue->n_queue;
	}
	if (r >= 0)
		r = ckpt_pack(&m.base, body, e);
	m.queue = NULL;
	m.n_queue = 0;
	pb__unix__free_unpacked(queue, NULL);
	fini(&m);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	static const char *const states[] = {"", " listening", " connected"};
	static const char *const peers[] = {
		"", " to file", " peer gone", " pending at file", " severed"};
	Pb__Unix *m = pb__unix__unpack(NULL, len, body);

	if (!m)
		return;
	fprintf(out, "%s%s", m->common && m->common->type == SOCK_DGRAM ? "datagram" : "stream",
		(unsigned)m->state < ARRAY_SIZE(states) ? states[m->state] : "?");
	if (m->name.len)
		fprintf(out, " %s%.*s", m->name.data[0] ? "" : "@",
			(int)m->name.len - !m->name.data[0],
			(char *)m->name.data + !m->name.data[0]);
	fputs((unsigned)m->peer_kind < ARRAY_SIZE(peers) ? peers[m->peer_kind] : "?", out);
	if (m->peer)
		fprintf(out, " %u", bare ? 0 : m->peer);
	if (m->n_queue)
		fprintf(out, ", %zu bytes unread", ckpt_sock_queue_bytes(m->queue, m->n_queue));
	pb__unix__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_unix = {
	.number = PROTO_KIND_UNIX,
	.name = "unix",
	.scope = CKPT_FILE,
	.claim = claim,
	.gather = gather,
	.check = check,
	.dump = dump,
	.forget = forget,
	.create = unix_create,
	.link = unix_link,
	.finish = unix_finish,
	.show = show,
};

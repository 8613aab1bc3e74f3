// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * POSIX message queues of the session's ipc namespace.
 *
 * Messages can't be looked at without being received.  While all tasks are stopped (a stopped one
 * waits in no queue) they are received and sent again in the same order, which the kernel keeps
 * among equal priorities.  Should we be killed in between, that is finished before any of them runs
 * (ckpt/careful.h): which is for somebody outside, so the session's user namespace is entered only to
 * open what is another user's.  A registration of mq_notify would notice the first one; and what it is
 * to tell is nowhere to be read.  So a queue with one is refused by name.
 *
 * Where there is no ipc namespace they are the host's, and whoever rewrites names knows what they
 * are called there (struct ckpt_ipc_names).
 */
#include "ckpt/kinds/mqueue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "ckpt/build.h"
#include "ckpt/careful.h"
#include "ckpt/enter.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/survey/survey.h"
#include "ckpt/where.h"
#include "proto/ipc.pb-c.h"

#define MAX_QUEUES   65536
#define MAX_MESSAGES 65536
#define MAX_SIZE     (16 << 20) /* HARD_MSGSIZEMAX of linux/ipc_namespace.h */

/* ---- one queue ------------------------------------------------------------------------------ */

bool mqueue_check_name(const char *name)
{
	return name[0] && strlen(name) <= MQUEUE_NAME_MAX && !strchr(name, '/') &&
	       strcmp(name, ".") && strcmp(name, "..");
}

int mqueue_host_path(
	const struct ckpt_world *w, const char *name, char ret[MQUEUE_PATH], struct err *e)
{
	char host[CKPT_IPC_HOST_NAME];
	const char *one;
	int r = 0;

	if (!w->ipc) {
		snprintf(ret, MQUEUE_PATH, "/%s", name);
		return 0;
	}
	for (unsigned i = 0; r >= 0; i++) {
		r = w->ipc->queue(w->ipc->ctx, i, &one, host);
		if (r > 0 && !strcmp(one, name)) {
			snprintf(ret, MQUEUE_PATH, "/%s", host);
			return 0;
		}
	}
	return err_set(e, ERR_FAILED, -ENOENT, "no message queue /%s", name);
}

int mqueue_name(const struct ckpt_world *w, const char *host, char ret[MQUEUE_PATH], struct err *e)
{
	char one_host[CKPT_IPC_HOST_NAME];
	const char *one;
	int r = 0;

	if (!w->ipc) {
		snprintf(ret, MQUEUE_PATH, "%s", host);
		return 0;
	}
	for (unsigned i = 0; r >= 0; i++) {
		r = w->ipc->queue(w->ipc->ctx, i, &one, one_host);
		if (r > 0 && !strcmp(one_host, host)) {
			snprintf(ret, MQUEUE_PATH, "%s", one);
			return 0;
		}
	}
	return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
		"message queue /%s, which is not the session's, is not supported", host);
}

/* "QSIZE:129        NOTIFY:2    SIGNO:0    NOTIFY_PID:8260" */
static int check_notify(int fd, struct err *e)
{
	char text[128] = "";
	const char *pid;

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		return err_errno(e, -errno, "message queue");
	pid = strstr(text, "NOTIFY_PID:");
	if (!pid || !atoi(pid + strlen("NOTIFY_PID:")))
		return 0;
	return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
		"a message queue with a registration of mq_notify is not supported");
}

static int fill(int fd, const Pb__Mqueue *m, struct err *e)
{
	for (size_t i = 0; i < m->n_messages; i++) {
		const Pb__MqMessage *one = m->messages[i];
		/* an empty one has no data, and mq_send(3) wants an address */
		const char *data = one->data.len ? (const char *)one->data.data : "";

		if (mq_send(fd, data, one->data.len, one->priority) < 0)
			return err_errno(e, -errno, "cannot fill a message queue");
	}
	return 0;
}

/* ---- looking at messages: taking them out and putting them back ------------------------------ */

/*
 * Notes of the step below, in memory that is shared (ckpt/careful.h).  Behind it are the messages.
 */
struct taking {
	int fd;
	size_t total, bytes; /* in the queue at first */
	size_t n, used;	     /* taken for certain, with their heads */
	size_t sum;	     /* of the bytes of those */
	size_t max_size;
	bool receiving; /* one more is being taken */
	bool putting;
};

/* Behind it are the bytes, to a multiple of 8. */
struct message {
	uint32_t len;
	unsigned priority;
};

static struct message *message_at(struct taking *t, size_t at)
{
	return (struct message *)((uint8_t *)(t + 1) + at);
}

static int count(int fd, size_t *ret_n, size_t *ret_bytes, struct err *e)
{
	struct mq_attr attr;
	char text[128] = "";
	unsigned long bytes;

	if (mq_getattr(fd, &attr) < 0 || pread(fd, text, sizeof(text) - 1, 0) < 0 ||
		sscanf(text, "QSIZE:%lu", &bytes) != 1)
		return err_errno(e, -errno, "message queue");
	*ret_n = (size_t)attr.mq_curmsgs;
	*ret_bytes = bytes;
	return 0;
}

static void note_message(struct taking *t, size_t len)
{
	struct message *m = message_at(t, t->used);

	m->len = (uint32_t)len;
	t->sum += len;
	t->used += sizeof(*m) + ALIGN_UP(len, 8);
	t->n++;
	t->receiving = false;
}

/* Whoever was here before us may have been killed with one message received and not noted. */
static int find_stray(struct taking *t, struct err *e)
{
	size_t n, bytes;
	int r = count(t->fd, &n, &bytes, e);

	if (r == 0 && t->receiving && n + t->n < t->total)
		note_message(t, t->bytes - t->sum - bytes);
	return r;
}

static int take_all(struct taking *t, struct err *e)
{
	while (t->n < t->total) {
		struct message *m = message_at(t, t->used);
		ssize_t n;

		t->receiving = true;
		n = mq_receive(t->fd, (char *)(m + 1), t->max_size, &m->priority);
		if (n < 0)
			return err_errno(e, -errno, "cannot read a message queue");
		note_message(t, (size_t)n);
	}
	return 0;
}

static int put_all(struct taking *t, struct err *e)
{
	size_t there = 0, bytes, at = 0;

	if (t->putting && count(t->fd, &there, &bytes, e) < 0)
		return e->error;
	t->putting = true;
	for (size_t i = 0; i < t->n; i++) {
		const struct message *m = message_at(t, at);

		if (i >= there && mq_send(t->fd, (const char *)(m + 1), m->len, m->priority) < 0)
			return err_errno(e, -errno, "cannot fill a message queue");
		at += sizeof(*m) + ALIGN_UP(m->len, 8);
	}
	return 0;
}

static int take_and_put(void *shared, struct err *e)
{
	struct taking *t = shared;
	struct err own = {0};
	int r = t->putting ? 0 : find_stray(t, &own), back;

	if (r == 0 && !t->putting)
		r = take_all(t, &own);
	fault_at(FAULT_TAKE_QUEUE, NULL);
	back = put_all(t, r < 0 ? &(struct err){0} : &own);
	if (e)
		*e = own;
	return r < 0 ? r : back;
}

static int copy_messages(struct taking *t, Pb__Mqueue *m, struct err *e)
{
	size_t at = 0;

	m->messages = calloc(t->n + 1, sizeof(*m->messages));
	if (!m->messages)
		return err_errno(e, -ENOMEM, "message queue");
	for (size_t i = 0; i < t->n; i++) {
		const struct message *from = message_at(t, at);
		Pb__MqMessage *one = malloc(sizeof(*one) + from->len);

		if (!one)
			return err_errno(e, -ENOMEM, "message queue");
		pb__mq_message__init(one);
		one->priority = from->priority;
		one->data.data = memcpy(one + 1, from + 1, from->len);
		one->data.len = from->len;
		m->messages[m->n_messages++] = one;
		at += sizeof(*from) + ALIGN_UP(from->len, 8);
	}
	return 0;
}

static int look_at_messages(
	const struct ckpt_dump *d, int fd, size_t max_size, Pb__Mqueue *m, struct err *e)
{
	struct taking *t;
	size_t n, bytes, room;
	int r = count(fd, &n, &bytes, e);

	if (r < 0 || n == 0)
		return r;
	room = sizeof(*t) + bytes + n * (sizeof(struct message) + 8) + max_size + 8;
	t = ckpt_careful_alloc(room);
	if (!t)
		return err_errno(e, -ENOMEM, "message queue");
	*t = (struct taking){.fd = fd, .total = n, .bytes = bytes, .max_size = max_size};
	r = ckpt_careful(d->tracer, take_and_put, t, e);
	if (r == 0)
		r = copy_messages(t, m, e);
	ckpt_careful_free(t, room);
	return r;
}

int mqueue_read(const struct ckpt_dump *d, int fd, Pb__Mqueue *m, struct err *e)
{
	struct mq_attr attr;
	struct stat st;
	int r;

	if (mq_getattr(fd, &attr) < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "message queue");
	m->mode = st.st_mode & 0777;
	m->max_messages = attr.mq_maxmsg;
	m->max_size = attr.mq_msgsize;
	r = check_notify(fd, e);
	return r < 0 ? r : look_at_messages(d, fd, (size_t)attr.mq_msgsize, m, e);
}

void mqueue_fini(Pb__Mqueue *m)
{
	for (size_t i = 0; i < m->n_messages; i++)
		free(m->messages[i]);
	free(m->messages);
}

int mqueue_make(const struct ckpt_world *w, const char *name, const Pb__Mqueue *m, struct err *e)
{
	struct mq_attr attr = {.mq_maxmsg = m->max_messages, .mq_msgsize = m->max_size};
	char path[MQUEUE_PATH] = "/";
	int fd, r = 0;

	if (!mqueue_check_name(name) || m->n_messages > MAX_MESSAGES || m->max_size > MAX_SIZE ||
		m->n_messages > (size_t)MAX(m->max_messages, (int64_t)0))
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad message queue");
	if (w->ipc)
		r = w->ipc->make_queue(w->ipc->ctx, name, path + 1, e);
	else
		snprintf(path, sizeof(path), "/%s", name);
	if (r < 0)
		return r;
	fd = mq_open(path, O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK | O_CLOEXEC, 0600, &attr);
	if (fd < 0) {
		r = err_errno(e, -errno, "cannot make message queue /%s", name);
		if (r == -EINVAL)
			err_hint(e, "fs.mqueue.msg_max or fs.mqueue.msgsize_max is less here");
		return r;
	}
	r = fill(fd, m, e);
	if (r >= 0 && fchmod(fd, m->mode & 0777) < 0)
		r = err_errno(e, -errno, "message queue /%s", name);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

/* ---- all with names: dump ------------------------------------------------------------------- */

struct there {
	int dir;
	const char *name;
};

static int open_as_root(int sock, void *ctx, struct err *e)
{
	const struct there *t = ctx;
	_cleanup_close_ int fd = openat(t->dir, t->name, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : io_send_fds(sock, "", 1, &fd, 1);
}

static int open_named(const struct ckpt_world *w, int dir, const char *name, struct err *e)
{
	struct there t = {dir, name};
	int fd = openat(dir, name, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		fd = ckpt_enter_fd(w, 0, open_as_root, &t, e);
	else if (fd < 0)
		err_errno(e, -errno, "open");
	return fd < 0 ? err_wrap(e, "message queue /%s", name) : fd;
}

/* Takes @fd, which is of the queue @name. */
static int add_queue(
	const struct ckpt_dump *d, Pb__Mqueues *m, int taken, const char *name, struct err *e)
{
	_cleanup_close_ int fd = taken;
	Pb__Mqueue *q = malloc(sizeof(*q));
	int r;

	if (!q || m->n_queues == MAX_QUEUES) {
		free(q);
		return err_errno(e, -ENOMEM, "message queues");
	}
	pb__mqueue__init(q);
	m->queues[m->n_queues++] = q;
	q->name = strdup(name);
	if (!q->name)
		return err_errno(e, -ENOMEM, "message queue");
	r = mqueue_read(d, fd, q, e);
	return r < 0 ? err_wrap(e, "/%s", name) : 0;
}

/* All of the session's ipc namespace. */
static int read_all(const struct ckpt_dump *d, Pb__Mqueues *m, struct err *e)
{
	int fd = ckpt_where_open(d->world, "/dev/mqueue", O_RDONLY | O_DIRECTORY), r = 0;
	struct statfs fs;
	DIR *dir;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0 || fstatfs(fd, &fs) < 0 || !(dir = fdopendir(fd))) {
		r = fd < 0 ? fd : -errno;
		close_fd(fd);
		return err_errno(e, r, "/dev/mqueue");
	}
	for (struct dirent *n; r >= 0 && (uint32_t)fs.f_type == MQUEUE_MAGIC && (n = readdir(dir));) {
		if (n->d_name[0] == '.' && !mqueue_check_name(n->d_name))
			continue;
		r = open_named(d->world, fd, n->d_name, e);
		if (r >= 0)
			r = add_queue(d, m, r, n->d_name, e);
	}
	closedir(dir);
	return r;
}

/* Those of the host's that are the session's. */
static int read_hosts(const struct ckpt_dump *d, Pb__Mqueues *m, struct err *e)
{
	const struct ckpt_ipc_names *ipc = d->world->ipc;
	char path[CKPT_IPC_HOST_NAME + 1] = "/";
	const char *name;
	int r = 0, found;

	for (unsigned i = 0; r >= 0; i++) {
		found = ipc->queue(ipc->ctx, i, &name, path + 1);
		if (found < 0)
			break;
		if (!found)
			continue;
		r = mq_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (r < 0)
			return err_errno(e, -errno, "cannot open message queue /%s", name);
		r = add_queue(d, m, r, name, e);
	}
	return r;
}

static void free_queues(Pb__Mqueues *m)
{
	for (size_t i = 0; i < m->n_queues; i++) {
		if (m->queues[i]->name != protobuf_c_empty_string)
			free(m->queues[i]->name);
		mqueue_fini(m->queues[i]);
		free(m->queues[i]);
	}
	free(m->queues);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__Mqueues m = PB__MQUEUES__INIT;
	int r = 0;

	if (!d->world->ipc && d->world->ns_ipc < 0)
		return 1;
	m.queues = calloc(MAX_QUEUES, sizeof(*m.queues));
	if (!m.queues)
		return err_errno(e, -ENOMEM, "message queues");
	r = d->world->ipc ? read_hosts(d, &m, e) : read_all(d, &m, e);
	if (r >= 0)
		r = m.n_queues ? ckpt_pack(&m.base, body, e) : 1;
	free_queues(&m);
	return r;
}

/* ---- all with names: restore ---------------------------------------------------------------- */

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Mqueues *m = pb__mqueues__unpack(NULL, r->len, r->body);
	int rc = 0;

	if (!m || m->n_queues > MAX_QUEUES)
		rc = ckpt_common_bad(r, e);
	for (size_t i = 0; rc >= 0 && i < m->n_queues; i++) {
		rc = mqueue_make(b->world, m->queues[i]->name, m->queues[i], e);
		close_fd(rc);
	}
	pb__mqueues__free_unpacked(m, NULL);
	return MIN(rc, 0);
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Mqueues *m = pb__mqueues__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_queues; i++)
		fprintf(out, "%s/%s %zu messages", i ? ", " : "", m->queues[i]->name,
			m->queues[i]->n_messages);
	pb__mqueues__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_mqueue = {
	.number = PROTO_KIND_MQUEUE,
	.name = "mqueue",
	.scope = CKPT_SESSION,
	.dump = dump,
	.create = create,
	.show = show,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * POSIX message queues of the session's ipc namespace.
 *
 * Messages can't be looked at without being received.  While all tasks are stopped (a stopped one
 * waits in no queue) they are received and sent again in the same order, which the kernel keeps
 * among equal priorities.  A registration of mq_notify would notice the first one; and what it is
 * to tell is nowhere to be read.  So a queue with one is refused by name.
 */
#include "ckpt/kinds/mqueue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt/answers.h"
#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/survey.h"
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

static int receive(int fd, Pb__Mqueue *m, char *room, size_t size, struct err *e)
{
	unsigned priority;
	ssize_t n = mq_receive(fd, room, size, &priority);
	Pb__MqMessage *one;

	if (n < 0)
		return errno == EAGAIN ? 0 : err_errno(e, -errno, "cannot read a message queue");
	one = malloc(sizeof(*one) + (size_t)n);
	if (!one) {
		mq_send(fd, room, (size_t)n, priority);
		return err_errno(e, -ENOMEM, "message queue");
	}
	pb__mq_message__init(one);
	one->priority = priority;
	one->data.data = memcpy(one + 1, room, (size_t)n);
	one->data.len = (size_t)n;
	m->messages[m->n_messages++] = one;
	return 1;
}

static int fill(int fd, const Pb__Mqueue *m, struct err *e)
{
	for (size_t i = 0; i < m->n_messages; i++) {
		const Pb__MqMessage *one = m->messages[i];

		if (mq_send(fd, (const char *)one->data.data, one->data.len, one->priority) < 0)
			return err_errno(e, -errno, "cannot fill a message queue");
	}
	return 0;
}

int mqueue_read(int fd, Pb__Mqueue *m, struct err *e)
{
	_cleanup_free_ char *room = NULL;
	struct mq_attr attr;
	struct stat st;
	int r, back;

	if (mq_getattr(fd, &attr) < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "message queue");
	m->mode = st.st_mode & 0777;
	m->max_messages = attr.mq_maxmsg;
	m->max_size = attr.mq_msgsize;
	r = check_notify(fd, e);
	if (r < 0)
		return r;
	room = malloc((size_t)attr.mq_msgsize + 1);
	m->messages = calloc((size_t)attr.mq_maxmsg + 1, sizeof(*m->messages));
	if (!room || !m->messages)
		return err_errno(e, -ENOMEM, "message queue");
	do
		r = receive(fd, m, room, (size_t)attr.mq_msgsize, e);
	while (r > 0 && m->n_messages < (size_t)attr.mq_maxmsg);
	back = fill(fd, m, r < 0 ? NULL : e);
	return r < 0 ? r : back;
}

void mqueue_fini(Pb__Mqueue *m)
{
	for (size_t i = 0; i < m->n_messages; i++)
		free(m->messages[i]);
	free(m->messages);
}

int mqueue_make(const char *name, const Pb__Mqueue *m, struct err *e)
{
	struct mq_attr attr = {.mq_maxmsg = m->max_messages, .mq_msgsize = m->max_size};
	char path[MQUEUE_NAME_MAX + 2];
	int fd, r;

	if (!mqueue_check_name(name) || m->n_messages > MAX_MESSAGES || m->max_size > MAX_SIZE ||
		m->n_messages > (size_t)MAX(m->max_messages, (int64_t)0))
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad message queue");
	snprintf(path, sizeof(path), "/%s", name);
	fd = mq_open(path, O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK | O_CLOEXEC, 0600, &attr);
	if (fd < 0)
		return err_errno(e, -errno, "cannot make message queue %s", path);
	r = fill(fd, m, e);
	if (r >= 0 && fchmod(fd, m->mode & 0777) < 0)
		r = err_errno(e, -errno, "message queue %s", path);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

/* ---- all with names: dump ------------------------------------------------------------------- */

static int read_named(int dir, const char *name, Pb__Mqueue *m, struct err *e)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int r;

	m->name = strdup(name);
	if (!m->name)
		return err_errno(e, -ENOMEM, "message queue");
	if (fd < 0)
		return err_errno(e, -errno, "cannot open message queue /%s", name);
	r = mqueue_read(fd, m, e);
	return r < 0 ? err_wrap(e, "/%s", name) : 0;
}

/* In the helper, which ends with all its memory. */
static int ask(const struct ckpt_world *w, struct buf *answer, struct err *e)
{
	Pb__Mqueues m = PB__MQUEUES__INIT;
	int fd = openat(w->root_fd, "dev/mqueue", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return errno == ENOENT ? 0 : err_errno(e, -errno, "/dev/mqueue");
	m.queues = calloc(MAX_QUEUES, sizeof(*m.queues));
	for (struct dirent *d; m.queues && r >= 0 && (d = readdir(dir));) {
		Pb__Mqueue *q;

		if (d->d_name[0] == '.' && !mqueue_check_name(d->d_name))
			continue;
		q = malloc(sizeof(*q));
		if (!q || m.n_queues == MAX_QUEUES)
			return err_errno(e, -ENOMEM, "message queues");
		pb__mqueue__init(q);
		m.queues[m.n_queues++] = q;
		r = read_named(fd, d->d_name, q, e);
	}
	closedir(dir);
	if (!m.queues)
		return err_errno(e, -ENOMEM, "message queues");
	if (r >= 0 && m.n_queues)
		r = ckpt_pack(&m.base, answer, e);
	return r;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct buf *answer;
	int r = ckpt_answer(d, &ckpt_kind_mqueue, &answer, e);

	if (r < 0)
		return r;
	if (!answer->len)
		return 1;
	buf_put(body, answer->data, answer->len);
	return 0;
}

/* ---- all with names: restore ---------------------------------------------------------------- */

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Mqueues *m = pb__mqueues__unpack(NULL, r->len, r->body);
	int rc = 0;

	if (!m || m->n_queues > MAX_QUEUES)
		rc = ckpt_common_bad(r, e);
	for (size_t i = 0; rc >= 0 && i < m->n_queues; i++) {
		rc = mqueue_make(m->queues[i]->name, m->queues[i], e);
		close_fd(rc);
	}
	pb__mqueues__free_unpacked(m, NULL);
	return MIN(rc, 0);
}

static void show(const void *body, size_t len, FILE *out)
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
	.ask = ask,
	.dump = dump,
	.create = create,
	.show = show,
};

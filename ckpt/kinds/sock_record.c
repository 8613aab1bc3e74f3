// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A queue as messages of the image.
 *
 * Ancillary data shows processes by the number the reader sees: of the host, here.  One that lives
 * is known to the survey.  For one that has ended (whoever wrote the last line to a log's socket
 * often has) the queue is looked at once more by a helper with a number of the session's own.
 */
#include <errno.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "ckpt/enter.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/survey/survey.h"
#include "ckpt/where.h"
#include "proto/sockets.pb-c.h"

#define MAX_MESSAGES 100000

struct collector {
	struct ckpt_dump *d;
	Pb__SockMessage **messages;
	size_t n, cap;
	bool strangers; /* some sender's number is not known */
};

uint32_t ckpt_sock_uid(const struct ckpt_dump *d, uid_t uid)
{
	return uid == geteuid() ? d->world->uid : uid;
}

uint32_t ckpt_sock_gid(const struct ckpt_dump *d, gid_t gid)
{
	return gid == getegid() ? d->world->gid : gid;
}

static void free_message(Pb__SockMessage *m)
{
	if (!m)
		return;
	free(m->data.data);
	free(m->files);
	free(m->cred);
	free(m->from.data);
	ckpt_sock_addr_free(m->source);
	free(m);
}

static int take_files(
	struct collector *c, Pb__SockMessage *m, struct ckpt_sock_message *from, struct err *e)
{
	m->files = calloc(from->n_fds, sizeof(*m->files));
	if (!m->files)
		return err_errno(e, -ENOMEM, "queue of a socket");
	for (size_t i = 0; i < from->n_fds; i++) {
		struct ckpt_file *f;
		int r = ckpt_file_add(c->d, take_fd(&from->fds[i]), &f, e);

		if (r < 0)
			return err_wrap(e, "in flight in a socket");
		m->files[m->n_files++] = f->id;
	}
	return 0;
}

static int take_cred(struct collector *c, Pb__SockMessage *m, const struct ucred *cred)
{
	const struct ckpt_proc *p = ckpt_proc_by_pid(c->d, cred->pid);

	m->cred = malloc(sizeof(*m->cred));
	if (!m->cred)
		return -ENOMEM;
	pb__sock_cred__init(m->cred);
	m->cred->pid = p || c->d->world->names ? ckpt_common_vpid(c->d, cred->pid) : 0;
	m->cred->uid = ckpt_sock_uid(c->d, cred->uid);
	m->cred->gid = ckpt_sock_gid(c->d, cred->gid);
	if (!p && !c->d->world->names)
		c->strangers = true;
	return 0;
}

static int take_source(struct collector *c, Pb__SockMessage *m, const struct ckpt_sock_message *from)
{
	const struct sockaddr_un *un = (const void *)from->from;
	size_t len;

	if (!from->from)
		return 0;
	if (un->sun_family != AF_UNIX) {
		m->source = ckpt_sock_addr_pack((const void *)from->from);
		return m->source ? 0 : -ENOMEM;
	}
	if (from->from_len <= offsetof(struct sockaddr_un, sun_path))
		return 0;
	len = from->from_len - offsetof(struct sockaddr_un, sun_path);
	if (un->sun_path[0])
		len = strnlen(un->sun_path, len);
	m->from.data = malloc(len);
	if (!m->from.data)
		return -ENOMEM;
	memcpy(m->from.data, un->sun_path, len);
	m->from.len = len;
	return ckpt_where_say_name(c->d->world, &m->from.data, &m->from.len);
}

static int collect(void *ctx, struct ckpt_sock_message *from, struct err *e)
{
	struct collector *c = ctx;
	Pb__SockMessage *m;
	int r = 0;

	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 16;
		void *p = cap > MAX_MESSAGES ? NULL : realloc(c->messages, cap * sizeof(m));

		if (!p)
			return err_errno(e, -ENOMEM, "queue of a socket");
		c->messages = p;
		c->cap = cap;
	}
	m = malloc(sizeof(*m));
	if (!m)
		return err_errno(e, -ENOMEM, "queue of a socket");
	pb__sock_message__init(m);
	c->messages[c->n++] = m;
	m->data.data = malloc(from->len + 1);
	if (m->data.data) {
		memcpy(m->data.data, from->data, from->len);
		m->data.len = from->len;
	}
	if (!m->data.data || take_source(c, m, from) < 0 ||
		(from->has_cred && take_cred(c, m, &from->cred) < 0))
		return err_errno(e, -ENOMEM, "queue of a socket");
	if (from->n_fds)
		r = take_files(c, m, from, e);
	return r;
}

static int tell_pid(void *ctx, struct ckpt_sock_message *m, struct err *e)
{
	int32_t pid = m->has_cred ? m->cred.pid : 0;

	return io_write_full(*(const int *)ctx, &pid, sizeof(pid));
}

static int tell_pids(int sock, void *ctx, struct err *e)
{
	return ckpt_sock_peek(*(const int *)ctx, tell_pid, &sock, e);
}

/* The senders' numbers as the session knows them, for those that are not alive. */
static int name_strangers(struct collector *c, int fd, struct err *e)
{
	_cleanup_buf_ struct buf pids = BUF_INIT;
	int r = ckpt_enter_read(c->d->world, CLONE_NEWPID, tell_pids, &fd,
		MAX_MESSAGES * sizeof(int32_t), &pids, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < c->n && (i + 1) * sizeof(int32_t) <= pids.len; i++)
		if (c->messages[i]->cred && !c->messages[i]->cred->pid)
			memcpy(&c->messages[i]->cred->pid, pids.data + i * sizeof(int32_t),
				sizeof(int32_t));
	return 0;
}

int ckpt_sock_queue_dump(
	struct ckpt_dump *d, int fd, Pb__SockMessage ***ret, size_t *ret_n, struct err *e)
{
	struct collector c = {.d = d};
	int r = ckpt_sock_peek(fd, collect, &c, e);

	if (r >= 0 && c.strangers)
		r = name_strangers(&c, fd, e);
	if (r < 0) {
		ckpt_sock_queue_free(c.messages, c.n);
		return r;
	}
	*ret = c.messages;
	*ret_n = c.n;
	return 0;
}

void ckpt_sock_queue_free(Pb__SockMessage **messages, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free_message(messages[i]);
	free(messages);
}

size_t ckpt_sock_queue_bytes(Pb__SockMessage *const *messages, size_t n)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += messages[i]->data.len;
	return bytes;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * System V message queues.  MSG_COPY shows messages by their position and takes none out; it needs
 * a kernel with CONFIG_CHECKPOINT_RESTORE.  Lost: times, and who sent and received last.
 */
#include <errno.h>
#include <string.h>
#include <sys/msg.h>

#include "ckpt/answers.h"
#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/sysv.h"
#include "ckpt/survey/survey.h"
#include "proto/ipc.pb-c.h"

#define MAX_MESSAGE  (64u << 20)
#define MAX_MESSAGES (1u << 20)

/* ---- inside --------------------------------------------------------------------------------- */

/*
 * The helper fills the record itself and sends it packed.  Memory it takes goes with it, so
 * nothing is freed there.
 */
static int copy_message(
	int id, int at, struct msgbuf *room, size_t size, Pb__Msg **ret, struct err *e)
{
	ssize_t n = msgrcv(id, room, size, at, MSG_COPY | IPC_NOWAIT);
	Pb__Msg *m;

	if (n < 0 && errno == ENOMSG)
		return 0;
	if (n < 0 && errno == ENOSYS)
		return err_set(e, ERR_HOST, -ENOSYS,
			"this kernel can't copy System V messages (CONFIG_CHECKPOINT_RESTORE)");
	if (n < 0)
		return err_errno(e, -errno, "cannot copy a message of queue %d", id);
	m = malloc(sizeof(*m) + (size_t)n);
	if (!m)
		return err_errno(e, -ENOMEM, "messages");
	pb__msg__init(m);
	m->type = room->mtype;
	m->data.data = memcpy(m + 1, room->mtext, (size_t)n);
	m->data.len = (size_t)n;
	*ret = m;
	return 1;
}

static int copy_queue(const struct ckpt_ipc_object *o, const struct msqid_ds *ds,
	Pb__MsgQueue **ret, struct err *e)
{
	size_t size = MIN((size_t)ds->__msg_cbytes + 1, (size_t)MAX_MESSAGE);
	struct msgbuf *room = malloc(sizeof(*room) + size);
	Pb__MsgQueue *q = malloc(sizeof(*q));
	int r = 1;

	if (!room || !q)
		return err_errno(e, -ENOMEM, "messages");
	pb__msg_queue__init(q);
	q->perm = sysv_perm_dump(o->id, &ds->msg_perm);
	q->max_bytes = ds->msg_qbytes;
	q->messages = calloc(ds->msg_qnum + 1, sizeof(*q->messages));
	if (!q->perm || !q->messages)
		return err_errno(e, -ENOMEM, "messages");
	while (r > 0 && q->n_messages < ds->msg_qnum) {
		r = copy_message(
			o->host, (int)q->n_messages, room, size, &q->messages[q->n_messages], e);
		q->n_messages += r > 0;
	}
	*ret = q;
	return r < 0 ? r : 0;
}

static int ask(const struct ckpt_world *w, struct buf *answer, struct err *e)
{
	Pb__SysvMsg m = PB__SYSV_MSG__INIT;
	struct ckpt_ipc_object *all;
	struct msqid_ds ds;
	ssize_t n = sysv_list(w, CKPT_IPC_MSG, &all, e);
	int r;

	if (n < 0)
		return (int)n;
	m.queues = calloc((size_t)n + 1, sizeof(*m.queues));
	if (!m.queues)
		return err_errno(e, -ENOMEM, "messages");
	for (ssize_t i = 0; i < n; i++) {
		if (msgctl(all[i].host, IPC_STAT, &ds) < 0)
			return err_errno(e, -errno, "message queue %d", all[i].id);
		sysv_name(w, &all[i], &ds.msg_perm);
		r = copy_queue(&all[i], &ds, &m.queues[m.n_queues++], e);
		if (r < 0)
			return r;
	}
	if (!m.n_queues)
		return 0;
	return ckpt_pack(&m.base, answer, e);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct buf *answer;
	int r = ckpt_answer(d, &ckpt_kind_sysv_msg, &answer, e);

	if (r < 0)
		return r;
	if (!answer->len)
		return 1;
	buf_put(body, answer->data, answer->len);
	return 0;
}

/* ---- restore -------------------------------------------------------------------------------- */

static int send_message(int id, const Pb__Msg *m, struct err *e)
{
	struct msgbuf *room;
	int r = 0;

	if (m->data.len > MAX_MESSAGE || m->type <= 0)
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad System V message");
	room = malloc(sizeof(*room) + m->data.len);
	if (!room)
		return err_errno(e, -ENOMEM, "messages");
	room->mtype = m->type;
	if (m->data.len)
		memcpy(room->mtext, m->data.data, m->data.len);
	if (msgsnd(id, room, m->data.len, IPC_NOWAIT) < 0)
		r = errno == EAGAIN ? err_set(e, ERR_HOST, -EAGAIN,
					      "message queue %d holds more than one may here", id)
				    : err_errno(e, -errno, "cannot fill message queue %d", id);
	free(room);
	return r;
}

static int make(struct ckpt_build *b, const Pb__MsgQueue *q, struct err *e)
{
	struct msqid_ds ds;
	int id, r;

	if (!q->perm || q->n_messages > MAX_MESSAGES)
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad message queue");
	id = r = sysv_make(b, CKPT_IPC_MSG, q->perm, 0, e);
	for (size_t i = 0; r >= 0 && i < q->n_messages; i++)
		r = send_message(id, q->messages[i], e);
	if (r < 0)
		return r;
	if (msgctl(id, IPC_STAT, &ds) < 0)
		return err_errno(e, -errno, "message queue %d", id);
	sysv_set_owner(b, q->perm, &ds.msg_perm);
	ds.msg_qbytes = q->max_bytes;
	if (msgctl(id, IPC_SET, &ds) < 0)
		return err_errno(
			e, -errno, "cannot set the owner and size of message queue %d", id);
	return 0;
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__SysvMsg *m = pb__sysv_msg__unpack(NULL, r->len, r->body);
	int rc = 0;

	if (!m || m->n_queues > SYSV_MAX_OBJECTS)
		rc = ckpt_common_bad(r, e);
	for (size_t i = 0; rc >= 0 && i < m->n_queues; i++)
		rc = make(b, m->queues[i], e);
	pb__sysv_msg__free_unpacked(m, NULL);
	return rc;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__SysvMsg *m = pb__sysv_msg__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_queues; i++)
		if (m->queues[i]->perm)
			fprintf(out, "%sid %d key 0x%x %zu messages", i ? ", " : "",
				m->queues[i]->perm->id, (unsigned)m->queues[i]->perm->key,
				m->queues[i]->n_messages);
	pb__sysv_msg__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_sysv_msg = {
	.number = PROTO_KIND_SYSV_MSG,
	.name = "sysv msg",
	.scope = CKPT_SESSION,
	.ask = ask,
	.dump = dump,
	.create = create,
	.show = show,
};

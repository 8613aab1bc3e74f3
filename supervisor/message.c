// SPDX-License-Identifier: GPL-2.0-or-later
/* One place packs and unpacks what goes over a proto_conn, so that no other knows how. */
#include "supervisor/message.h"

#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"

static int send_packed(struct proto_conn *c, const ProtobufCMessage *m, const int *fds,
	size_t n_fds, struct err *e)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	_cleanup_free_ uint8_t *data = malloc(len ? len : 1);

	if (!data)
		return err_errno(e, -ENOMEM, "message");
	protobuf_c_message_pack(m, data);
	return proto_conn_send(c, data, len, fds, n_fds, e);
}

int message_send(struct proto_conn *c, const Pb__Control *m, const int *fds, size_t n_fds,
	struct err *e)
{
	bool runs = m->body_case == PB__CONTROL__BODY_RUN || m->body_case == PB__CONTROL__BODY_EXEC;

	/* what is told of the session has them twice, and those of other commands */
	if (runs && protobuf_c_message_get_packed_size(&m->base) > PROTO_MAX_REQUEST)
		return err_set(e, ERR_USAGE, -E2BIG, "arguments and environment are too long");
	return send_packed(c, &m->base, fds, n_fds, e);
}

int message_send_worker(struct proto_conn *c, const Pb__Worker *m, const int *fds, size_t n_fds,
	struct err *e)
{
	return send_packed(c, &m->base, fds, n_fds, e);
}

static int recv_packed(struct proto_conn *c, const ProtobufCMessageDescriptor *type,
	ProtobufCMessage **ret, int *fds, size_t max, size_t *ret_n, struct err *e)
{
	const void *body;
	size_t len, n_fds = 0;
	int r = proto_conn_recv(c, &body, &len, fds, max, &n_fds, e);

	if (r <= 0)
		return r;
	*ret = protobuf_c_message_unpack(type, NULL, len, body);
	if (!*ret) {
		while (n_fds)
			close_fd(fds[--n_fds]);
		return err_set(e, ERR_FAILED, -EBADMSG, "nonsense on the control socket");
	}
	*ret_n = n_fds;
	return 1;
}

int message_recv(struct proto_conn *c, Pb__Control **ret, int *fds, size_t max, size_t *ret_n,
	struct err *e)
{
	ProtobufCMessage *m;
	int r = recv_packed(c, &pb__control__descriptor, &m, fds, max, ret_n, e);

	if (r == 1)
		*ret = (Pb__Control *)m;
	return r;
}

int message_recv_worker(struct proto_conn *c, Pb__Worker **ret, int *fds, size_t max, size_t *ret_n,
	struct err *e)
{
	ProtobufCMessage *m;
	int r = recv_packed(c, &pb__worker__descriptor, &m, fds, max, ret_n, e);

	if (r == 1)
		*ret = (Pb__Worker *)m;
	return r;
}

void message_free(Pb__Control *m)
{
	if (m)
		pb__control__free_unpacked(m, NULL);
}

void message_free_worker(Pb__Worker *m)
{
	if (m)
		pb__worker__free_unpacked(m, NULL);
}

void message_of_err(Pb__Failure *ret, const struct err *e)
{
	pb__failure__init(ret);
	ret->err_class = e->class ? e->class : ERR_FAILED;
	ret->error = e->error ? e->error : -EIO;
	ret->msg = (char *)e->msg;
	ret->hint = (char *)e->hint;
}

int message_to_err(const Pb__Failure *f, struct err *ret)
{
	err_set(ret, f->err_class < ERR_CLASS_MAX ? (enum err_class)f->err_class : ERR_FAILED,
		f->error < 0 ? f->error : -EIO, "%s", f->msg);
	if (f->hint[0])
		err_hint(ret, "%s", f->hint);
	return ret->error;
}

void message_of_report(Pb__Report *ret, const struct ckpt_report *r, struct message_report *scratch)
{
	static_assert(sizeof(Pb__Stage) <= sizeof(scratch->room) / CKPT_MAX_STAGES, "room for a stage");
	static_assert(ARRAY_SIZE(scratch->stages) >= CKPT_MAX_STAGES, "room for all stages");

	pb__report__init(ret);
	ret->frozen_ns = r->frozen_ns;
	ret->total_ns = r->total_ns;
	ret->bytes = r->bytes;
	ret->tasks = r->tasks;
	ret->processes = r->processes;
	ret->pages = r->pages;
	ret->rounds = r->rounds;
	ret->ahead = r->ahead;
	ret->tracker = (char *)(r->tracker ? r->tracker : "");
	ret->note = (char *)(r->note ? r->note : "");
	ret->n_stages = MIN(r->n_stages, (size_t)CKPT_MAX_STAGES);
	ret->stages = (Pb__Stage **)scratch->stages;
	for (size_t i = 0; i < ret->n_stages; i++) {
		Pb__Stage *s = (Pb__Stage *)(scratch->room + i * sizeof(scratch->room) / CKPT_MAX_STAGES);

		pb__stage__init(s);
		s->name = (char *)r->stages[i].name;
		s->ns = r->stages[i].ns;
		scratch->stages[i] = s;
	}
}

struct ProtobufCMessage *message_copy(const struct ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	_cleanup_free_ uint8_t *data = malloc(len + 1);

	return data ? protobuf_c_message_unpack(m->descriptor, NULL,
			      protobuf_c_message_pack(m, data), data)
		    : NULL;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A capture is the worker's own: it ends when the worker is killed, and whoever reads it sees the
 * end of the file.  So does who asked for it, by his pipe.
 */
#include "vnet/gateway/capture.h"

#include "base/base.h"
#include "vnet/capture.h"

int gateway_capture_start(struct vnet_gateway *g, struct err *e)
{
	g->captures = calloc(1, sizeof(*g->captures));
	if (!g->captures)
		return err_errno(e, -ENOMEM, "gateway");
	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		g->captures->sessions[i].end = -1;
	return 0;
}

int gateway_capture_begin(
	struct vnet_gateway *g, uint32_t session, int conn, int fd, int end, struct err *e)
{
	struct gateway_capture *c = &g->captures->sessions[session];

	if (c->file) {
		close(fd);
		close(end);
		return err_set(e, ERR_STATE, -EBUSY, "its packets are being captured already");
	}
	if (vnet_capture_open(fd, &c->file, e) < 0) {
		close(end);
		return e->error;
	}
	c->conn = conn;
	c->end = end;
	return 0;
}

void gateway_capture_end(struct vnet_gateway *g, uint32_t session, int why)
{
	struct gateway_capture *c = &g->captures->sessions[session];
	const int last = c->file ? vnet_capture_close(take_ptr(c->file)) : 0;
	const int32_t told = why < 0 ? why : last;

	if (c->end >= 0 && write(c->end, &told, sizeof(told)) < 0)
		log_debug("capture: nobody waits for its end");
	c->end = close_fd(c->end);
}

void gateway_capture_forget(struct vnet_gateway *g, int conn)
{
	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		if (g->captures->sessions[i].file && g->captures->sessions[i].conn == conn)
			gateway_capture_end(g, i, 0);
}

void gateway_capture_write(struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p)
{
	int r = vnet_capture_packet(g->captures->sessions[session].file, p);

	if (r < 0 && r != -ENOBUFS)
		gateway_capture_end(g, session, r);
}

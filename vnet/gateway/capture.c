// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A capture is the worker's own: it ends when the worker is killed, and whoever reads it sees the
 * end of the file.
 */
#include "vnet/gateway/capture.h"

#include "base/base.h"
#include "vnet/capture.h"

int gateway_capture_start(struct vnet_gateway *g, struct err *e)
{
	g->captures = calloc(1, sizeof(*g->captures));
	return g->captures ? 0 : err_errno(e, -ENOMEM, "gateway");
}

int gateway_capture_begin(struct vnet_gateway *g, uint32_t session, int conn, int fd, struct err *e)
{
	struct gateway_capture *c = &g->captures->sessions[session];

	if (c->file) {
		close(fd);
		return err_set(e, ERR_STATE, -EBUSY, "its packets are being captured already");
	}
	if (vnet_capture_open(fd, &c->file, e) < 0)
		return e->error;
	c->conn = conn;
	return 0;
}

void gateway_capture_end(struct vnet_gateway *g, uint32_t session)
{
	struct gateway_capture *c = &g->captures->sessions[session];

	vnet_capture_close(c->file);
	c->file = NULL;
}

void gateway_capture_forget(struct vnet_gateway *g, int conn)
{
	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		if (g->captures->sessions[i].file && g->captures->sessions[i].conn == conn)
			gateway_capture_end(g, i);
}

void gateway_capture_write(struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p)
{
	int r = vnet_capture_packet(g->captures->sessions[session].file, p);

	if (r < 0 && r != -ENOBUFS)
		gateway_capture_end(g, session);
}

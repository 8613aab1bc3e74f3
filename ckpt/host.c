// SPDX-License-Identifier: GPL-2.0-or-later
/* The host name that a session has by now: its uts namespace's, or what who
 * rewrites its names says. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "ckpt/ckpt.h"
#include "ckpt/enter.h"

static int ask(int sock, void *ctx, struct err *e)
{
	struct utsname u;
	int r = uname(&u) < 0 ? -errno : io_write_full(sock, u.nodename, sizeof(u.nodename));

	return r < 0 ? err_errno(e, r, "host name") : 0;
}

int ckpt_host_name(const struct ckpt_world *w, char ret[CKPT_HOST_NAME], struct err *e)
{
	_cleanup_buf_ struct buf answer = BUF_INIT;
	int r;

	if (w->names) {
		snprintf(ret, CKPT_HOST_NAME, "%s", w->names->host_name(w->names->ctx));
		return 0;
	}
	r = ckpt_enter_read(w, CLONE_NEWUSER | CLONE_NEWUTS, ask, NULL, CKPT_HOST_NAME, &answer, e);
	if (r < 0)
		return r;
	if (answer.len != CKPT_HOST_NAME || answer.data[CKPT_HOST_NAME - 1])
		return err_set(e, ERR_FAILED, -EPROTO, "host name");
	memcpy(ret, answer.data, CKPT_HOST_NAME);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/cli/vnc_port.h"

#include <sys/random.h>

#include "base/base.h"

/* 40 bits of characters that are not mistaken for others. */
static int make_password(struct vnc_port *v, struct err *e)
{
	static const char letters[] = "abcdefghjkmnpqrstuvwxyz23456789x";
	uint8_t any[DISPLAY_VNC_PASSWORD];

	if (getrandom(any, sizeof(any), 0) != sizeof(any))
		return err_errno(e, -errno, "a password");
	for (size_t i = 0; i < sizeof(any); i++)
		v->password[i] = letters[any[i] % 32];
	return 0;
}

int vnc_port_open(struct vnc_port *v, const char *listen, struct err *e)
{
	*v = (struct vnc_port){.listener = -1};
	if (make_password(v, e) < 0)
		return e->error;
	v->listener = display_vnc_listen(listen, v->where, sizeof(v->where), e);
	return MIN(v->listener, 0);
}

void vnc_port_close(struct vnc_port *v)
{
	v->listener = close_fd(v->listener);
}

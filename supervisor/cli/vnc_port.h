/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vnc_port - where VNC viewers connect, and what they have to know. */
#ifndef SUPERVISOR_CLI_VNC_PORT_H
#define SUPERVISOR_CLI_VNC_PORT_H

#include "display/display.h"

struct err;

struct vnc_port {
	int listener;
	char where[64]; /* "ADDR:PORT" */
	char password[DISPLAY_VNC_PASSWORD + 1];
};

/* Listens at "[ADDR:]PORT", numbers only; a port of 0 is the first free one.  ERR_USAGE. */
int vnc_port_open(struct vnc_port *v, const char *listen, struct err *e);
void vnc_port_close(struct vnc_port *v);

#endif

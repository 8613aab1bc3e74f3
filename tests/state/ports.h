/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A local port that two connections have, as by chance any two have on a busy host. */
#ifndef TESTS_STATE_PORTS_H
#define TESTS_STATE_PORTS_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/state/state.h"

#define STATE_LOCAL_PORT_RANGE 51 /* IP_LOCAL_PORT_RANGE, which older headers lack */

/*
 * On Linux 6.3 and later: another connection, to elsewhere, from the address of @fd; it has ended
 * and is in TIME_WAIT, which keeps anybody from binding to the port.
 */
static inline void share_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} at, to;
	socklen_t len = sizeof(at), to_len;
	int l, other, accepted, one = 1;
	uint32_t only;
	char c;

	STATE_CHECK(getsockname(fd, &at.any, &len) == 0);
	to_len = len;
	only = ntohs(at.in.sin_port) * 0x10001u;
	at.in.sin_port = 0; /* where that of IPv6 is as well */
	to = at;
	l = socket(at.any.sa_family, SOCK_STREAM, 0);
	STATE_CHECK(l >= 0 && bind(l, &to.any, len) == 0 && listen(l, 1) == 0);
	STATE_CHECK(getsockname(l, &to.any, &to_len) == 0);
	other = socket(at.any.sa_family, SOCK_STREAM, 0);
	if (setsockopt(other, IPPROTO_IP, STATE_LOCAL_PORT_RANGE, &only, sizeof(only)) == 0) {
		setsockopt(other, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		STATE_CHECK(bind(other, &at.any, len) == 0);
		STATE_CHECK(connect(other, &to.any, len) == 0);
		STATE_CHECK(getsockname(other, &at.any, &len) == 0);
		STATE_CHECK(at.in.sin_port == htons(only & 0xffff));
		accepted = accept(l, NULL, NULL);
		STATE_CHECK(accepted >= 0 && shutdown(other, SHUT_WR) == 0);
		STATE_CHECK(read(accepted, &c, 1) == 0 && close(accepted) == 0);
		STATE_CHECK(read(other, &c, 1) == 0);
	}
	STATE_CHECK(close(other) == 0 && close(l) == 0);
}

#endif

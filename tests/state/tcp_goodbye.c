// SPDX-License-Identifier: GPL-2.0-or-later
/* A peer that has written much and closed: everything arrives, whoever reads it late. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/state/state.h"

int main(int argc, char **argv)
{
	static unsigned char block[65536];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0), s, dry = 0;
	size_t sent = 0, got = 0;
	ssize_t n;

	STATE_CHECK(bind(l, (void *)&a, len) == 0 && listen(l, 1) == 0);
	STATE_CHECK(getsockname(l, (void *)&a, &len) == 0 && connect(c, (void *)&a, len) == 0);
	s = accept(l, NULL, NULL);
	STATE_CHECK(s >= 0 && fcntl(s, F_SETFL, O_NONBLOCK) == 0);
	while (dry < 10) {
		for (size_t i = 0; i < sizeof(block); i++)
			block[i] = (unsigned char)((sent + i) * 2654435761u >> 24);
		n = write(s, block, sizeof(block));
		if (n > 0) {
			sent += n;
		} else {
			dry++;
			state_nap();
		}
	}
	STATE_CHECK(sent > 1000000 && close(s) == 0);

	state_ready(argc, argv);

	while ((n = read(c, block, sizeof(block))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			STATE_CHECK(block[i] == (unsigned char)((got + i) * 2654435761u >> 24));
		got += n;
	}
	STATE_CHECK(n == 0 && got == sent);
	return state_ok();
}

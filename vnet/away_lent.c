// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/away_lent.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/ondemand.h"

int vnet_away_lent_address(int dir, const char *id, struct sockaddr_un *ret, struct err *e)
{
	int n;

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!id[0] || strspn(id, "0123456789abcdef") != strlen(id))
		return err_set(e, ERR_USAGE, -EINVAL, "'%.64s' is no session", id);
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/lent-%s", dir, id);
	return n < (int)sizeof(ret->sun_path)
		       ? 0
		       : err_set(e, ERR_USAGE, -ENAMETOOLONG, "'%.64s' is no session", id);
}

int vnet_away_connect_lent(const char *runtime, const char *id, struct err *e)
{
	_cleanup_close_ int dir = vnet_ondemand_directory(runtime, e), sock = -1;
	struct sockaddr_un a;

	if (dir < 0 || vnet_away_lent_address(dir, id, &a, e) < 0)
		return e->error;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return err_errno(e, -errno, "socket");
	if (connect(sock, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -ENOENT;
	return take_fd(&sock);
}

int vnet_away_accept_one(int listener, int in)
{
	struct pollfd fds[] = {{.fd = listener, .events = POLLIN}, {.fd = in, .events = POLLIN}};

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		continue;
	if (!(fds[0].revents & POLLIN))
		return -ECONNRESET;
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

void *vnet_away_await_word(void *ctx)
{
	char word;
	ssize_t n;

	do
		n = read(STDIN_FILENO, &word, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(0);
	return NULL;
}

bool vnet_away_await_session(int in)
{
	struct pollfd fds[] = {{.fd = in, .events = POLLIN}, {STDIN_FILENO, POLLIN, 0}};

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		continue;
	return fds[0].revents & POLLIN;
}

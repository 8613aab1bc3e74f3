// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/nsupdate_send.h"

#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "base/base.h"
#include "vnet/nsupdate.h"

#define TRIES	 3
#define AGAIN_MS 1000

/* The host's own address when it sends to @to; false if there is none that others could use. */
static bool own_address(const struct vnet_endpoint *to, int *ret_fd, struct vnet_endpoint *ret)
{
	_cleanup_close_ int fd = socket(to->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_storage sa;
	socklen_t len = vnet_endpoint_to_sockaddr(to, &sa);

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, len) < 0)
		return false;
	len = sizeof(sa);
	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
		vnet_endpoint_from_sockaddr(&sa, len, ret) < 0)
		return false;
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return !vnet_endpoint_is_loopback(ret) && !vnet_endpoint_is_of_host(ret);
}

/* Where the internet is, as far as routes go. */
static struct vnet_endpoint internet(int family)
{
	const struct in_addr v4 = {htonl(0xc0000201)}; /* 192.0.2.1 */
	const struct in6_addr v6 = {{{0x20, 0x01, 0x0d, 0xb8, [15] = 1}}};

	return family == AF_INET ? vnet_endpoint_v4(v4, 53) : vnet_endpoint_v6(&v6, 53);
}

struct vnet_endpoint vnet_nsupdate_own_of(int family)
{
	struct vnet_endpoint to = internet(family), own = {0};

	return own_address(&to, NULL, &own) ? own : (struct vnet_endpoint){0};
}

size_t vnet_nsupdate_own(
	const struct vnet_endpoint *server, struct vnet_endpoint ret[2], int *ret_fd)
{
	struct vnet_endpoint other = internet(server->family == AF_INET ? AF_INET6 : AF_INET);
	size_t n = 0;

	*ret_fd = -1;
	n += own_address(server, ret_fd, &ret[n]);
	n += own_address(&other, NULL, &ret[n]);
	return n;
}

/* The rcode of its answer, or a negative errno. */
static int ask(int fd, uint16_t id, const uint8_t *message, size_t len)
{
	uint8_t answer[VNET_NSUPDATE_ROOM];
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (int i = 0; i < TRIES; i++) {
		uint64_t until = io_now_ns() + AGAIN_MS * 1000000ull;

		/* One that is lost is sent again. */
		send(fd, message, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		for (uint64_t now = io_now_ns(); now < until; now = io_now_ns()) {
			ssize_t n;
			int r;

			if (poll(&p, 1, (int)((until - now) / 1000000) + 1) != 1)
				break;
			n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
			if (n < 0 && errno != EAGAIN)
				break; /* nobody is there, at the moment */
			r = n < 0 ? -EBADMSG : vnet_nsupdate_answer(answer, (size_t)n, id);
			if (r >= 0)
				return r;
		}
	}
	return -ETIMEDOUT;
}

int vnet_nsupdate_withdraw(const char *update, struct err *e)
{
	struct vnet_nsupdate_key key = {0};
	uint8_t message[VNET_NSUPDATE_ROOM];
	_cleanup_close_ int fd = -1;
	struct vnet_endpoint own[2];
	struct vnet_nsupdate u;
	uint16_t id;
	ssize_t len;
	size_t n;
	int r;

	if (vnet_nsupdate_parse(update, &u, e) < 0)
		return e->error;
	if (u.key_file[0] && vnet_nsupdate_key_load(u.key_file, &key, e) < 0)
		return e->error;
	n = vnet_nsupdate_own(&u.server, own, &fd);
	if (fd < 0 || !n || getrandom(&id, sizeof(id), 0) != sizeof(id)) {
		explicit_bzero(&key, sizeof(key));
		return err_set(e, ERR_FAILED, -ENETUNREACH, "there is no way to the name server");
	}
	len = vnet_nsupdate_make(&u, VNET_NSUPDATE_LEAVES, u.key_file[0] ? &key : NULL, id,
		(uint64_t)time(NULL), own, n, message, sizeof(message));
	explicit_bzero(&key, sizeof(key));
	r = len < 0 ? (int)len : ask(fd, id, message, (size_t)len);
	if (r > 0)
		return err_set(e, ERR_FAILED, -EACCES, "the name server of %s says %s", u.name,
			vnet_nsupdate_rcode(r));
	return r < 0 ? err_errno(e, r, "the name server of %s", u.name) : 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A packet arrives whole or not at all, so neither side keeps half of a message in its memory.
 * That is what lets a gateway's worker be killed at any moment: it looks at a request (MSG_PEEK),
 * does it, answers, and only then takes the packet out.  Requests are such that doing one twice is
 * as good as once.
 */
#include "vnet/message.h"

#include <protobuf-c/protobuf-c.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"

int vnet_message_send(
	int sock, const ProtobufCMessage *m, const int *fds, size_t n_fds, struct err *e)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	_cleanup_free_ uint8_t *data = malloc(len + 1);
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * VNET_MESSAGE_MAX_FDS)];
	} control = {0};
	struct iovec iov = {data, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t r;

	if (!data)
		return err_errno(e, -ENOMEM, "message");
	if (len > VNET_MESSAGE_MAX || n_fds > VNET_MESSAGE_MAX_FDS)
		return err_set(e, ERR_FAILED, -EMSGSIZE, "a message to the gateway is too long");
	protobuf_c_message_pack(m, data);
	if (n_fds) {
		struct cmsghdr *h;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(h), fds, sizeof(int) * n_fds);
	}
	do
		r = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (r < 0 && errno == EINTR);
	return r < 0 ? err_errno(e, -errno, "gateway") : 0;
}

/* The descriptors of a received packet; false when they are not as they should be. */
static bool take_fds(struct msghdr *msg, int *fds, size_t *n)
{
	bool good = !(msg->msg_flags & (MSG_CTRUNC | MSG_TRUNC));

	*n = 0;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (h->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(fd));
			if (*n < VNET_MESSAGE_MAX_FDS) {
				fds[(*n)++] = fd;
			} else {
				close(fd);
				good = false;
			}
		}
	}
	return good;
}

int vnet_message_receive(int sock, bool peek, const ProtobufCMessageDescriptor *type,
	ProtobufCMessage **ret, int *fds, size_t *ret_n_fds, struct err *e)
{
	_cleanup_free_ uint8_t *data = malloc(VNET_MESSAGE_MAX);
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * (VNET_MESSAGE_MAX_FDS + 1))];
	} control;
	struct iovec iov = {data, VNET_MESSAGE_MAX};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space)};
	ProtobufCMessage *m = NULL;
	ssize_t r;
	size_t n;

	if (!data)
		return err_errno(e, -ENOMEM, "message");
	do
		r = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | (peek ? MSG_PEEK : 0));
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == EAGAIN ? 0 : err_errno(e, -errno, "gateway");
	if (take_fds(&msg, fds, &n) && r > 0)
		m = protobuf_c_message_unpack(type, NULL, (size_t)r, data);
	if (m) {
		*ret = m;
		*ret_n_fds = n;
		return 1;
	}
	while (n)
		close_fd(fds[--n]);
	if (r == 0)
		return err_set(e, ERR_FAILED, -ECONNRESET, "the gateway has gone");
	return err_set(e, ERR_FAILED, -EBADMSG, "nonsense on the gateway's socket");
}

void vnet_message_consume(int sock)
{
	char byte;

	while (recv(sock, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) < 0 && errno == EINTR)
		;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * message - protobuf messages with descriptors as packets of a SOCK_SEQPACKET socket.
 */
#ifndef VNET_MESSAGE_H
#define VNET_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;
struct err;

#define VNET_MESSAGE_MAX     (128u << 10)
#define VNET_MESSAGE_MAX_FDS 4

/* Never waits: -EAGAIN when the other side does not read. */
int vnet_message_send(
	int sock, const struct ProtobufCMessage *m, const int *fds, size_t n_fds, struct err *e);
/*
 * 1 and a message (freed with protobuf_c_message_free_unpacked) and its descriptors, which are the
 * caller's; 0 when there is none; -ECONNRESET at the end, -EBADMSG for nonsense.  With @peek it
 * stays in the socket, and comes again.
 */
int vnet_message_receive(int sock, bool peek, const struct ProtobufCMessageDescriptor *type,
	struct ProtobufCMessage **ret, int *fds, size_t *ret_n_fds, struct err *e);
/* Removes the packet that was peeked at. */
void vnet_message_consume(int sock);

#endif

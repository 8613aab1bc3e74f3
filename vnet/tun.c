// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "base/base.h"
#include "vnet/netlink.h"
#include "vnet/tun.h"

/* linux/if_tun.h, 6.2 */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define SEGMENTATION (TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN)

/* Everything, or without what is younger than this kernel. */
static int set_offload(int fd, unsigned int segmentation)
{
	if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | segmentation) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	segmentation &= SEGMENTATION;
	return ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | segmentation) < 0 ? -errno : 0;
}

int vnet_tun_open(const char *name, struct err *e)
{
	_cleanup_close_ int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	struct ifreq ifr = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
	int r;

	if (fd < 0) {
		err_errno(e, -errno, "/dev/net/tun");
		err_reclass(e, ERR_HOST);
		return err_hint(e, "a session's network needs the kernel's module 'tun'");
	}
	if (strlen(name) >= sizeof(ifr.ifr_name))
		return err_set(e, ERR_FAILED, -EINVAL, "interface %s: the name is too long", name);
	strcpy(ifr.ifr_name, name);
	if (ioctl(fd, TUNSETIFF, &ifr) < 0)
		return err_errno(e, -errno, "interface %s", name);
	r = set_offload(fd, SEGMENTATION | TUN_F_USO4 | TUN_F_USO6);
	if (r < 0)
		return err_errno(e, r, "interface %s: offloads", name);
	return take_fd(&fd);
}

int vnet_tun_set_segmentation(int fd, bool on, struct err *e)
{
	int r = set_offload(fd, on ? SEGMENTATION | TUN_F_USO4 | TUN_F_USO6 : 0);

	return r < 0 ? err_errno(e, r, "TUN: offloads") : 0;
}

/* Address and default route of one family. */
static int make_family(struct vnet_netlink *nl, int index, const struct vnet_endpoint *address,
	bool default_route, struct err *e)
{
	struct vnet_route route = {.index = index, .dst = {.family = address->family}};
	int r;

	if (!address->family)
		return 0;
	r = vnet_netlink_address_add(nl, index, address, address->family == AF_INET ? 32 : 128, e);
	if (r < 0 || !default_route)
		return r;
	return vnet_netlink_route_add(nl, &route, e);
}

/*
 * The kernel would choose one at random as the interface comes up, which nobody else knows, and
 * another after every move.  Where there is no IPv6 there is none.
 */
static int without_link_local(struct vnet_netlink *nl, int index, struct err *e)
{
	const struct vnet_link link = {.no_link_local = true};
	int r = vnet_netlink_link_set(nl, index, &link, e);

	if (r != -EAFNOSUPPORT)
		return r;
	if (e)
		*e = (struct err){0};
	return 0;
}

int vnet_tun_make(const struct vnet_interface *want, struct err *e)
{
	_cleanup_netlink_ struct vnet_netlink nl = VNET_NETLINK_INIT;
	struct vnet_link link = {
		.mtu = want->mtu, .gso_max_size = VNET_GSO_MAX, .queue = VNET_QUEUE, .up = true};
	_cleanup_close_ int fd = vnet_tun_open(want->name, e);
	int index, r;

	if (fd < 0)
		return fd;
	r = vnet_netlink_open(&nl, e);
	if (r < 0)
		return r;
	index = vnet_netlink_index(&nl, want->name, e);
	if (index < 0)
		return index;
	r = without_link_local(&nl, index, e);
	if (r == 0)
		r = vnet_netlink_link_set(&nl, index, &link, e);
	if (r == 0)
		r = make_family(&nl, index, &want->v4, want->default_routes, e);
	if (r == 0)
		r = make_family(&nl, index, &want->v6, want->default_routes, e);
	if (r < 0)
		return err_wrap(e, "interface %s", want->name);
	return take_fd(&fd);
}

int vnet_tun_read(int fd, struct vnet_packet *p)
{
	struct iovec iov[2] = {{&p->vh, sizeof(p->vh)}, {p->data, p->room}};
	ssize_t n = readv(fd, iov, 2);

	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(p->vh))
		return -EBADFD;
	p->len = (size_t)n - sizeof(p->vh);
	return 0;
}

int vnet_tun_write(int fd, const struct vnet_packet *p)
{
	struct iovec iov[2] = {{(void *)&p->vh, sizeof(p->vh)}, {p->data, p->len}};

	return writev(fd, iov, 2) < 0 ? -errno : 0;
}

int vnet_tun_probe(int fd)
{
	_Alignas(4) uint8_t bytes[512];
	uint8_t payload[256] = {0};
	struct vnet_packet p = {.data = bytes, .room = sizeof(bytes)};
	struct vnet_endpoint nobody = vnet_endpoint_v4((struct in_addr){htonl(0xf0000001)}, 9);
	struct vnet_endpoint from = vnet_endpoint_v4((struct in_addr){htonl(0xf0000002)}, 9);
	int r = vnet_packet_make_udp(&p, &from, &nobody, payload, sizeof(payload), 0);

	if (r < 0)
		return r;
	/*
	 * What is refused there is the header of a super-packet of TCP whose checksum is partial.
	 */
	((struct iphdr *)(void *)p.data)->protocol = IPPROTO_TCP;
	p.data[p.l4 + 12] = 5 << 4;
	p.vh.csum_offset = offsetof(struct tcphdr, check);
	p.vh.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	p.vh.gso_size = 100;
	p.vh.hdr_len = p.l4 + sizeof(struct tcphdr);
	r = vnet_tun_write(fd, &p);
	return r == 0 ? 1 : r == -EINVAL ? 0 : r;
}

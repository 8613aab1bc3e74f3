// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A TUN and a carrier joined, as wireguard-go joins them: what tests and benchmarks of tunnels run.
 *
 *     tunnel_join [options] CONFIG NAME
 *
 * CONFIG is a WireGuard configuration file; NAME the interface, which is made in the network
 * namespace this runs in and gets the configuration's addresses and MTU; routes are the caller's
 * affair.  Says "ready" when packets pass, and ends when standard input does.
 *
 *     --state DIR    keep the last time stamp there
 *     --stream FD    packets go over this descriptor instead of UDP
 *     --no-runs      as on a kernel without UDP_SEGMENT and UDP_GRO
 *     --no-super     as with a TUN that takes no super-packets
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "vnet/tun.h"
#include "vnet/tunnel/stream.h"
#include "vnet/tunnel/tunnel.h"

#define PACKETS 64 /* from the TUN before anything else is looked at */

struct joined {
	int tun;
	struct vnet_carrier *c;
	unsigned lost; /* packets the TUN did not take */
};

static void deliver(void *ctx, uint32_t from, struct vnet_packet *p)
{
	struct joined *j = ctx;

	if (vnet_tun_write(j->tun, p) < 0)
		j->lost++;
}

/* Packets of the TUN until there are none, or the carrier has no room: then false. */
static bool carry(struct joined *j)
{
	static uint8_t room[VNET_PACKET_MAX] __attribute__((aligned(8)));
	static struct vnet_packet kept; /* was read, and has not gone */
	int r = 0;

	for (int i = 0; i < PACKETS && !r; i++) {
		if (!kept.len) {
			kept = (struct vnet_packet){.data = room, .room = sizeof(room)};
			if (vnet_tun_read(j->tun, &kept) < 0) {
				kept.len = 0;
				break;
			}
			if (vnet_packet_parse(&kept) < 0) {
				kept.len = 0;
				continue;
			}
		}
		r = vnet_carrier_send(j->c, VNET_CARRIER_BY_ADDRESS, &kept);
		if (r != -EAGAIN) {
			kept.len = 0;
			r = 0;
		}
	}
	vnet_carrier_flush(j->c);
	return r != -EAGAIN;
}

static int timeout_of(const struct joined *j)
{
	uint64_t at = vnet_carrier_deadline(j->c), now = io_now_ns();

	if (at == VNET_CARRIER_NEVER)
		return -1;
	return at <= now ? 0 : (int)MIN((at - now + 999999) / 1000000, (uint64_t)60000);
}

static int run(struct joined *j, struct err *e)
{
	struct pollfd p[2 + VNET_CARRIER_WATCHES] = {{.fd = STDIN_FILENO}, {.fd = j->tun}};
	bool room = true;
	int r;

	for (;;) {
		p[0].events = POLLIN;
		p[1].events = room ? POLLIN : 0;
		for (unsigned i = 0; i < VNET_CARRIER_WATCHES; i++) {
			struct vnet_carrier_watch w = vnet_carrier_watch(j->c, i);

			p[2 + i].fd = w.fd;
			p[2 + i].events = (short)((w.read ? POLLIN : 0) | (w.write ? POLLOUT : 0));
		}
		if (poll(p, ARRAY_SIZE(p), timeout_of(j)) < 0 && errno != EINTR)
			return err_errno(e, -errno, "poll");
		if (p[0].revents)
			return 0;
		if ((r = vnet_carrier_run(j->c, e)) < 0)
			return r;
		room = carry(j);
	}
}

static int make_tun(const struct vnet_config *c, const char *name, struct err *e)
{
	struct vnet_interface want = {.name = name, .mtu = c->mtu ? c->mtu : VNET_TUNNEL_MTU};

	for (size_t i = 0; i < c->n_addresses; i++) {
		const struct vnet_prefix *a = &c->addresses[i];
		struct vnet_endpoint *to = a->family == AF_INET ? &want.v4 : &want.v6;

		to->family = (uint8_t)a->family;
		memcpy(&to->v6, a->address, a->family == AF_INET ? 4 : 16);
	}
	return vnet_tun_make(&want, e);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"state", required_argument, NULL, 's'},
		{"stream", required_argument, NULL, 'f'},
		{"no-runs", no_argument, NULL, 'r'},
		{"no-super", no_argument, NULL, 'p'},
		{0},
	};
	struct joined j = {0};
	struct vnet_tunnel_options t = {.owner = {deliver, &j}};
	struct vnet_stream_options s = {.owner = {deliver, &j}, .in = -1};
	struct vnet_config c;
	struct err e = {0};
	int o, super = 1, r;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 's')
			t.state = optarg;
		else if (o == 'f')
			s.in = s.out = atoi(optarg);
		else if (o == 'r')
			t.no_udp_runs = true;
		else if (o == 'p')
			super = 0;
		else
			return 2;
	}
	if (argc - optind != 2)
		return 2;
	(void)((r = vnet_config_load(&c, argv[optind], &e)) < 0 ||
		(r = j.tun = make_tun(&c, argv[optind + 1], &e)) < 0 ||
		(super && (r = super = vnet_tun_probe(j.tun)) < 0));
	t.no_super_tcp = t.no_super_udp = !super;
	if (r >= 0)
		r = s.in >= 0 ? vnet_stream_open(&j.c, &s, &e) : vnet_tunnel_open(&j.c, &c, &t, &e);
	if (r >= 0) {
		puts("ready");
		fflush(stdout);
		r = run(&j, &e);
	}
	if (r < 0)
		fprintf(stderr, "tunnel_join: %s\n", e.msg);
	vnet_carrier_close(j.c);
	return r < 0;
}

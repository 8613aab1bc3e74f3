// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>

#include "base/base.h"
#include "vnet/vnat_keep.h"

/*
 * What is written before is in memory before what comes after, for a process that finds the record.
 */
static void in_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

int vnat_keep(struct vnet_flow *f, const struct vnet_packet *p, size_t payload)
{
	struct vnet_packet copy = *p;

	if (p->payload > VNET_KEPT)
		return -EMSGSIZE;
	payload = MIN(payload, (size_t)VNET_KEPT - p->payload);
	payload = MIN(payload, (size_t)p->payload_len);
	f->kept_valid = false;
	in_order();
	memcpy(f->kept, p->data, p->payload + payload);
	copy.data = f->kept;
	copy.room = VNET_KEPT;
	vnet_packet_truncate(&copy, payload);
	f->kept_vh = copy.vh;
	f->kept_len = (uint16_t)copy.len;
	in_order();
	f->kept_valid = true;
	return 0;
}

static uint32_t sequence(const uint8_t *tcp)
{
	return ntohl(((const struct tcphdr *)(const void *)tcp)->seq);
}

bool vnat_keep_wanted(const struct vnet_flow *f, const struct vnet_packet *p)
{
	const struct tcphdr *tcp = vnet_packet_tcp(p);

	if (p->payload_len == 0 && !tcp->syn && !tcp->fin)
		return false;
	/* kept_vh.csum_start is where its TCP header begins, for its checksum is partial. */
	return !f->kept_valid ||
	       (int32_t)(ntohl(tcp->seq) - sequence(f->kept + f->kept_vh.csum_start)) < 0;
}

void vnat_kept(const struct vnet_flow *f, struct vnet_packet *p)
{
	int r;

	assert(f->kept_valid && p->room >= f->kept_len);
	memcpy(p->data, f->kept, f->kept_len);
	p->len = f->kept_len;
	p->vh = f->kept_vh;
	r = vnet_packet_parse(p);
	assert(r == 0);
	(void)r;
}

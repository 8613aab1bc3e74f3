/* SPDX-License-Identifier: GPL-2.0-or-later */
/* report - errors outside become ICMP messages inside; the other half of it is in state.h. */
#ifndef VNET_DATAGRAM_REPORT_H
#define VNET_DATAGRAM_REPORT_H

struct vnet_datagram;
struct vnet_datagram_session;
struct vnet_mapping;

#define VNET_REPORT_BATCH 16 /* from one socket at a time */

/* Everything (a batch) on the error queue of a mapping's socket, to its session. */
void vnet_report_errors(struct vnet_datagram *d, const struct vnet_mapping *m,
	const struct vnet_datagram_session *s);

#endif

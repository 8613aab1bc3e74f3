// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as a query from a session, as an answer to it from the outside, and as a resolv.conf.
 *
 * The first two bytes say how long the query is, the next two how much room there is for an
 * answer; what is left behind the query is the answer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/fuzz/fuzz.h"
#include "vnet/datagram/dns_message.h"
#include "vnet/datagram/dns_names.h"
#include "vnet/datagram/resolv.h"
#include "vnet/datagram/sessions.h"

static bool get(void *data, uint32_t id, struct vnet_datagram_session *ret)
{
	*ret = (struct vnet_datagram_session){.name = "work",
		.address4.s_addr = htonl(0x0aab0002),
		.gateway4.s_addr = htonl(0x0aab0001),
		.physical4.s_addr = htonl(0x0a000002),
		.loopback4.s_addr = htonl(0x0aab0003)};
	ret->gateway6.s6_addr[0] = ret->address6.s6_addr[0] = ret->physical6.s6_addr[0] = 0xfd;
	ret->gateway6.s6_addr[15] = 1;
	ret->address6.s6_addr[15] = 2;
	ret->physical6.s6_addr[15] = 3;
	return id == 0;
}

static bool by_name(void *data, const char *name, uint32_t *ret)
{
	*ret = 0;
	return strcmp(name, "work") == 0;
}

static bool by_physical(void *data, int family, const void *address, uint32_t *ret)
{
	*ret = 0;
	return *(const uint8_t *)address == 0x0a || *(const uint8_t *)address == 0xfd;
}

/* What we answer is an answer, and cut it is still one. */
static void answer(const uint8_t *query, size_t len, size_t room)
{
	static const struct vnet_datagram_sessions ops = {
		.get = get, .by_name = by_name, .by_physical = by_physical};
	_cleanup_free_ uint8_t *out = malloc(room);
	struct vnet_dns_names_answer a;
	struct vnet_dns_question q;

	if (!out || vnet_dns_parse(query, len, &q) < 0 || q.response)
		return;
	if (!vnet_dns_names_answer(&ops, NULL, 0, &q, &a))
		a = (struct vnet_dns_names_answer){.rcode = VNET_DNS_SERVFAIL};
	len = vnet_dns_reply(query, &q, a.rcode, true, a.records, a.n, out, room);
	if (len && !vnet_dns_answers(query, q.end, out, len))
		abort();
	if (len && vnet_dns_truncate(out, len) != q.end)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vnet_resolv r = {0};
	_cleanup_free_ uint8_t *copy = NULL;
	size_t n, room;

	vnet_resolv_parse(&r, (const char *)data, size);
	if (size < 4)
		return 0;
	n = MIN((size_t)data[0] << 8 | data[1], size - 4);
	room = (size_t)data[2] << 8 | data[3];
	answer(data + 4, n, room + 1);
	vnet_dns_answers(data + 4, n, data + 4 + n, size - 4 - n);
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 4 + n, size - 4 - n);
	vnet_dns_truncate(copy, size - 4 - n);
	return 0;
}

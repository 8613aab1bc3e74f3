// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dns_names - a question is taken apart from behind: the zone, and what is before it as a name of
 * ours. Addresses are not searched for: a name below in-addr.arpa or ip6.arpa is turned into its
 * address, and whoever gave that out is asked whose it is.
 *
 * A session reaches another one by that one's physical address, which is unique within this
 * gateway, and itself by its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "vnet/datagram/dns_names.h"
#include "vnet/datagram/sessions.h"

#define ZONE	 "podrun.internal"
#define CLASS_IN 1
/* Sessions come and go, and their names with them: seconds. */
#define TTL 5

static void add4(struct vnet_dns_names_answer *a, uint16_t asked, struct in_addr v4)
{
	if ((asked == VNET_DNS_A || asked == VNET_DNS_ANY) && v4.s_addr)
		a->records[a->n++] =
			(struct vnet_dns_record){.type = VNET_DNS_A, .ttl = TTL, .v4 = v4};
}

static void add6(struct vnet_dns_names_answer *a, uint16_t asked, struct in6_addr v6)
{
	if ((asked == VNET_DNS_AAAA || asked == VNET_DNS_ANY) && !IN6_IS_ADDR_UNSPECIFIED(&v6))
		a->records[a->n++] =
			(struct vnet_dns_record){.type = VNET_DNS_AAAA, .ttl = TTL, .v6 = v6};
}

/* If @name ends with ".@zone" or is @zone, how much of it is before that; else -1. */
static int before(const char *name, const char *zone)
{
	size_t n = strlen(name), z = strlen(zone);

	if (n < z || strcmp(name + n - z, zone) != 0)
		return -1;
	if (n == z)
		return 0;
	return name[n - z - 1] == '.' ? (int)(n - z - 1) : -1;
}

static bool has_loopback(const struct vnet_datagram_session *s)
{
	return s->loopback4.s_addr || !IN6_IS_ADDR_UNSPECIFIED(&s->loopback6);
}

static void answer_name(const struct vnet_datagram_sessions *sessions, void *data, uint32_t asking,
	const char *name, uint16_t type, struct vnet_dns_names_answer *ret)
{
	struct vnet_datagram_session self, other;
	uint32_t id;

	ret->rcode = VNET_DNS_NXDOMAIN;
	if (!sessions->get(data, asking, &self))
		return;
	if (strcmp(name, "gateway") == 0) {
		ret->rcode = VNET_DNS_NOERROR;
		add4(ret, type, self.gateway4);
		add6(ret, type, self.gateway6);
	} else if (strcmp(name, "host") == 0 && has_loopback(&self)) {
		ret->rcode = VNET_DNS_NOERROR;
		add4(ret, type, self.loopback4);
		add6(ret, type, self.loopback6);
	} else if (sessions->by_name(data, name, &id) && sessions->get(data, id, &other)) {
		ret->rcode = VNET_DNS_NOERROR;
		add4(ret, type, id == asking ? other.address4 : other.physical4);
		add6(ret, type, id == asking ? other.address6 : other.physical6);
	}
}

/* "4.3.2.1" before in-addr.arpa. */
static bool reverse4(const char *name, size_t len, struct in_addr *ret)
{
	uint8_t *a = (uint8_t *)&ret->s_addr;
	const char *end = name + len;

	for (int i = 3; i >= 0; i--) {
		unsigned v = 0;
		int digits = 0;

		for (; name < end && *name >= '0' && *name <= '9' && digits < 4; digits++)
			v = v * 10 + (unsigned)(*name++ - '0');
		if (!digits || v > 255 || (i ? name == end || *name++ != '.' : name != end))
			return false;
		a[i] = (uint8_t)v;
	}
	return true;
}

/* 32 digits with dots between before ip6.arpa. */
static bool reverse6(const char *name, size_t len, struct in6_addr *ret)
{
	if (len != 63)
		return false;
	*ret = (struct in6_addr){0};
	for (int i = 0; i < 32; i++) {
		char digit[2] = {name[2 * i], 0}, *end;
		unsigned long v = strtoul(digit, &end, 16);

		if (end == digit || (i < 31 && name[2 * i + 1] != '.'))
			return false;
		ret->s6_addr[15 - i / 2] |= (uint8_t)(i % 2 ? v << 4 : v);
	}
	return true;
}

static bool is_address(
	int family, const void *address, const struct in_addr *v4, const struct in6_addr *v6)
{
	return family == AF_INET ? memcmp(address, v4, sizeof(*v4)) == 0
				 : memcmp(address, v6, sizeof(*v6)) == 0;
}

/* Whose address it is, for session @asking; false if it is nobody's here. */
static bool owner(const struct vnet_datagram_sessions *sessions, void *data, uint32_t asking,
	int family, const void *address, char *ret, size_t size)
{
	struct vnet_datagram_session self, other;
	uint32_t id;

	if (!sessions->get(data, asking, &self))
		return false;
	if (is_address(family, address, &self.gateway4, &self.gateway6))
		snprintf(ret, size, "gateway." ZONE);
	else if (has_loopback(&self) &&
		 is_address(family, address, &self.loopback4, &self.loopback6))
		snprintf(ret, size, "host." ZONE);
	else if (is_address(family, address, &self.address4, &self.address6))
		snprintf(ret, size, "%s." ZONE, self.name);
	else if (sessions->by_physical(data, family, address, &id) &&
		 sessions->get(data, id, &other))
		snprintf(ret, size, "%s." ZONE, other.name);
	else
		return false;
	return true;
}

static bool answer_reverse(const struct vnet_datagram_sessions *sessions, void *data,
	uint32_t asking, const struct vnet_dns_question *q, struct vnet_dns_names_answer *ret)
{
	struct in6_addr address;
	int len, family = AF_INET;

	len = before(q->name, "in-addr.arpa");
	if (len <= 0) {
		len = before(q->name, "ip6.arpa");
		family = AF_INET6;
	}
	if (len <= 0)
		return false;
	if (family == AF_INET ? !reverse4(q->name, (size_t)len, (struct in_addr *)&address)
			      : !reverse6(q->name, (size_t)len, &address))
		return false;
	if (!owner(sessions, data, asking, family, &address, ret->name, sizeof(ret->name)))
		return false;
	ret->rcode = VNET_DNS_NOERROR;
	if (q->type == VNET_DNS_PTR || q->type == VNET_DNS_ANY)
		ret->records[ret->n++] = (struct vnet_dns_record){
			.type = VNET_DNS_PTR, .ttl = TTL, .name = ret->name};
	return true;
}

bool vnet_dns_names_answer(const struct vnet_datagram_sessions *sessions, void *data,
	uint32_t asking, const struct vnet_dns_question *q, struct vnet_dns_names_answer *ret)
{
	int len = before(q->name, ZONE);
	char name[256];

	*ret = (struct vnet_dns_names_answer){0};
	if (q->class != CLASS_IN)
		return false;
	if (len < 0)
		return answer_reverse(sessions, data, asking, q, ret);
	/* The zone itself is there, and has nothing. */
	if (len > 0) {
		snprintf(name, sizeof(name), "%.*s", len, q->name);
		answer_name(sessions, data, asking, name, q->type, ret);
	}
	return true;
}

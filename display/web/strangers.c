// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/web/strangers.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "base/base.h"

/* Who has 64 bits of an IPv6 network has all its addresses. */
static void origin(const struct sockaddr_storage *a, uint64_t ret[2])
{
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)a)->sin6_addr;

	ret[0] = a->ss_family;
	ret[1] = 0;
	if (a->ss_family == AF_INET) {
		ret[1] = ((const struct sockaddr_in *)a)->sin_addr.s_addr;
	} else if (a->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6)) {
		ret[0] = AF_INET;
		memcpy(&ret[1], v6->s6_addr + 12, 4);
	} else if (a->ss_family == AF_INET6) {
		memcpy(&ret[1], v6->s6_addr, 8);
	}
}

/* Of those from @from, with how many there are. */
static struct display_stranger *oldest(
	struct display_strangers *s, const uint64_t from[2], size_t *ret_n)
{
	struct display_stranger *found = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < DISPLAY_STRANGERS; i++) {
		struct display_stranger *x = &s->all[i];

		if (!x->who || memcmp(x->from, from, sizeof(x->from)) != 0)
			continue;
		++*ret_n;
		if (!found || x->came < found->came)
			found = x;
	}
	return found;
}

/* Of those from where most are; NULL if nobody is there. */
static struct display_stranger *oldest_of_most(struct display_strangers *s)
{
	struct display_stranger *found = NULL;
	size_t most = 0, n;

	for (size_t i = 0; i < DISPLAY_STRANGERS; i++) {
		struct display_stranger *x = s->all[i].who ? oldest(s, s->all[i].from, &n) : NULL;

		if (!x || n < most || (n == most && x->came > found->came))
			continue;
		found = x;
		most = n;
	}
	return found;
}

static struct display_stranger *free_place(struct display_strangers *s)
{
	for (size_t i = 0; i < DISPLAY_STRANGERS; i++)
		if (!s->all[i].who)
			return &s->all[i];
	return NULL;
}

void *display_strangers_add(
	struct display_strangers *s, void *who, const struct sockaddr_storage *a)
{
	struct display_stranger *place, fresh = {.who = who, .came = ++s->n_came};
	void *goes = NULL;
	size_t n;

	origin(a, fresh.from);
	place = oldest(s, fresh.from, &n);
	if (n < DISPLAY_STRANGERS_FROM)
		place = free_place(s);
	if (!place)
		place = oldest_of_most(s);
	goes = place->who;
	*place = fresh;
	return goes;
}

void display_strangers_remove(struct display_strangers *s, const void *who)
{
	for (size_t i = 0; i < DISPLAY_STRANGERS; i++)
		if (s->all[i].who == who)
			s->all[i].who = NULL;
}

void *display_strangers_least_welcome(struct display_strangers *s)
{
	struct display_stranger *x = oldest_of_most(s);

	return x ? take_ptr(x->who) : NULL;
}

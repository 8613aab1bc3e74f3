// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dns_message - a cursor over the message reads the header and the question.  A question's name is
 * the first in the message and can't be compressed by anybody who is serious (RFC 1035 4.1.4), so a
 * pointer there is refused, and there is no way to go round in circles.  Of the records behind it
 * only their outer form is walked, to find OPT, with a limit on how many.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "vnet/datagram/dns_message.h"

#define FLAG_QR 0x8000
#define FLAG_AA 0x0400
#define FLAG_TC 0x0200
#define FLAG_RD 0x0100
#define FLAG_RA 0x0080
#define FLAG_CD 0x0010

#define CLASS_IN     1
#define MAX_LABEL    63
#define MAX_NAME     255
#define MAX_RECORDS  512 /* walked in search of OPT */
#define OUR_UDP_SIZE 1232
/* A name that is a pointer to the question's. */
#define POINTER_TO_QUESTION 0xc00c

static uint16_t get_u16(struct cursor *c)
{
	uint16_t hi = cursor_u8(c);

	return (uint16_t)(hi << 8 | cursor_u8(c));
}

static bool is_plain(uint8_t b)
{
	return isalnum(b) || b == '-' || b == '_';
}

/* The question's name; -EBADMSG unless it is one without pointers. */
static int get_name(struct cursor *c, char *ret)
{
	size_t wire = 1, n = 0;
	bool plain = true;

	for (uint8_t len; (len = cursor_u8(c));) {
		const uint8_t *label = len <= MAX_LABEL ? cursor_take(c, len) : NULL;

		wire += len + 1u;
		if (!label || wire > MAX_NAME)
			return -EBADMSG;
		if (n)
			ret[n++] = '.';
		for (size_t i = 0; i < len; i++) {
			plain = plain && is_plain(label[i]);
			ret[n++] = (char)tolower(label[i]);
		}
	}
	ret[plain ? n : 0] = 0;
	return c->bad ? -EBADMSG : 0;
}

/* Passes a record's name, whatever it is. */
static void skip_name(struct cursor *c)
{
	for (uint8_t len; (len = cursor_u8(c));) {
		if (len >= 0xc0) {
			cursor_u8(c);
			return;
		}
		cursor_take(c, len);
	}
}

/* Walks @n records for OPT, whose class is a size (RFC 6891 6.1.2). */
static void find_edns(struct cursor *c, unsigned n, struct vnet_dns_question *q)
{
	for (unsigned i = 0; i < MIN(n, (unsigned)MAX_RECORDS) && !c->bad; i++) {
		uint16_t type, class;

		skip_name(c);
		type = get_u16(c);
		class = get_u16(c);
		cursor_take(c, 4);
		cursor_take(c, get_u16(c));
		if (type == VNET_DNS_OPT && !c->bad) {
			q->edns = true;
			q->udp_size = MAX(class, (uint16_t)VNET_DNS_PLAIN);
			return;
		}
	}
}

int vnet_dns_parse(const void *msg, size_t len, struct vnet_dns_question *ret)
{
	struct cursor c = cursor_of(msg, len);
	unsigned flags, questions, records;

	*ret = (struct vnet_dns_question){.udp_size = VNET_DNS_PLAIN, .end = VNET_DNS_HEADER};
	ret->id = get_u16(&c);
	flags = get_u16(&c);
	questions = get_u16(&c);
	records = get_u16(&c);
	records += get_u16(&c);
	records += get_u16(&c);
	ret->response = flags & FLAG_QR;
	ret->truncated = flags & FLAG_TC;
	ret->opcode = flags >> 11 & 15;
	ret->rcode = flags & 15;
	if (c.bad || questions > 1 || (!ret->response && questions != 1))
		return -EBADMSG;
	if (!questions)
		return 0;
	if (get_name(&c, ret->name) < 0)
		return -EBADMSG;
	ret->type = get_u16(&c);
	ret->class = get_u16(&c);
	if (c.bad)
		return -EBADMSG;
	ret->end = len - cursor_left(&c);
	find_edns(&c, records, ret);
	return 0;
}

void vnet_dns_set_id(void *msg, uint16_t id)
{
	uint8_t *p = msg;

	p[0] = (uint8_t)(id >> 8);
	p[1] = (uint8_t)id;
}

/* Lengths of labels are below 'A', so the whole question can be compared as text would be. */
static bool same_question(const uint8_t *a, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (tolower(a[i]) != tolower(b[i]))
			return false;
	return true;
}

bool vnet_dns_answers(const void *query, size_t query_len, const void *answer, size_t len)
{
	struct vnet_dns_question q, a;
	const size_t h = VNET_DNS_HEADER;

	if (vnet_dns_parse(query, query_len, &q) < 0 || vnet_dns_parse(answer, len, &a) < 0)
		return false;
	if (q.response || !a.response || q.id != a.id || q.opcode != a.opcode)
		return false;
	if (a.end == h)
		return a.rcode != VNET_DNS_NOERROR;
	return a.type == q.type && a.class == q.class && a.end == q.end &&
	       same_question(
		       (const uint8_t *)query + h, (const uint8_t *)answer + h, q.end - h - 4);
}

/* Where an answer is being written; `len` stays within `room`, or `full` is set. */
struct out {
	uint8_t *data;
	size_t len, room;
	bool full;
};

static void put(struct out *o, const void *data, size_t n)
{
	if (n > o->room - o->len) {
		o->full = true;
		return;
	}
	memcpy(o->data + o->len, data, n);
	o->len += n;
}

static void put_u16(struct out *o, unsigned v)
{
	put(o, (uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

static void put_u32(struct out *o, uint32_t v)
{
	put_u16(o, v >> 16);
	put_u16(o, v & 0xffff);
}

static void put_name(struct out *o, const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");
		uint8_t len = (uint8_t)MIN(n, (size_t)MAX_LABEL);

		put(o, &len, 1);
		put(o, name, len);
		name += n + (name[n] == '.');
	}
	put(o, "", 1);
}

/* Of a name as put_name writes it. */
static size_t name_size(const char *name)
{
	return *name ? strlen(name) + 2 : 1;
}

static void put_record(struct out *o, const struct vnet_dns_record *r)
{
	put_u16(o, POINTER_TO_QUESTION);
	put_u16(o, r->type);
	put_u16(o, CLASS_IN);
	put_u32(o, r->ttl);
	switch (r->type) {
	case VNET_DNS_A:
		put_u16(o, sizeof(r->v4));
		put(o, &r->v4, sizeof(r->v4));
		break;
	case VNET_DNS_AAAA:
		put_u16(o, sizeof(r->v6));
		put(o, &r->v6, sizeof(r->v6));
		break;
	default:
		put_u16(o, (unsigned)name_size(r->name));
		put_name(o, r->name);
	}
}

/* As many records as fit; returns how many. */
static unsigned put_records(struct out *o, const struct vnet_dns_record *records, size_t n)
{
	for (unsigned i = 0; i < n; i++) {
		struct out before = *o;

		put_record(o, &records[i]);
		if (o->full) {
			*o = before;
			o->full = true;
			return i;
		}
	}
	return (unsigned)n;
}

static void put_opt(struct out *o)
{
	put(o, "", 1);
	put_u16(o, VNET_DNS_OPT);
	put_u16(o, OUR_UDP_SIZE);
	put_u32(o, 0);
	put_u16(o, 0);
}

/* A two-byte field of the header. */
static void set_u16(uint8_t *at, unsigned v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

size_t vnet_dns_reply(const void *query, const struct vnet_dns_question *q,
	enum vnet_dns_rcode rcode, bool authoritative, const struct vnet_dns_record *records,
	size_t n, void *out, size_t room)
{
	struct out o = {out, 0, room, false};
	const uint8_t *in = query;
	unsigned asked = (unsigned)in[2] << 8 | in[3];
	unsigned flags = FLAG_QR | FLAG_RA | (unsigned)q->opcode << 11 |
			 (asked & (FLAG_RD | FLAG_CD)) | (authoritative ? FLAG_AA : 0) | rcode;
	const size_t opt = q->edns ? 11 : 0;

	if (room < q->end + opt)
		return 0;
	put(&o, query, q->end);
	memset(o.data + 4, 0, 8);
	o.data[5] = q->end > VNET_DNS_HEADER;
	o.room -= opt;
	if (rcode == VNET_DNS_NOERROR)
		set_u16(o.data + 6, put_records(&o, records, n));
	o.room += opt;
	if (o.full)
		flags |= FLAG_TC;
	if (q->edns) {
		put_opt(&o);
		o.data[11] = 1;
	}
	set_u16(o.data + 2, flags);
	return o.len;
}

size_t vnet_dns_truncate(void *answer, size_t len)
{
	struct vnet_dns_question a;
	uint8_t *p = answer;

	if (len < VNET_DNS_HEADER || vnet_dns_parse(answer, len, &a) < 0)
		return 0;
	p[2] |= FLAG_TC >> 8;
	memset(p + 6, 0, 6);
	return a.end;
}

void vnet_dns_reverse_name(int family, const void *address, char *name)
{
	const uint8_t *a = address;

	if (family == AF_INET) {
		sprintf(name, "%u.%u.%u.%u.in-addr.arpa", a[3], a[2], a[1], a[0]);
		return;
	}
	for (int i = 15; i >= 0; i--)
		name += sprintf(name, "%x.%x.", a[i] & 15u, (unsigned)a[i] >> 4);
	strcpy(name, "ip6.arpa");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* What is read from DNS messages, what is answered here, and which servers are asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/datagram/dns_message.h"
#include "vnet/datagram/dns_names.h"
#include "vnet/datagram/resolv.h"
#include "vnet/datagram/sessions.h"

#define ID 0x1234

/* A query as dig makes it; with an OPT record for @edns bytes if that is not 0. */
static size_t query(uint8_t *out, const char *name, uint16_t type, uint16_t edns)
{
	uint8_t *p = out;

	memcpy(p, "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00", 11);
	p[11] = edns != 0;
	p += 12;
	while (*name) {
		size_t n = strcspn(name, ".");

		*p++ = (uint8_t)n;
		memcpy(p, name, n);
		p += n;
		name += n + (name[n] == '.');
	}
	*p++ = 0;
	*p++ = (uint8_t)(type >> 8);
	*p++ = (uint8_t)type;
	*p++ = 0;
	*p++ = 1;
	if (edns) {
		memcpy(p, "\0\0\x29", 3);
		p[3] = (uint8_t)(edns >> 8);
		p[4] = (uint8_t)edns;
		memset(p + 5, 0, 6);
		p += 11;
	}
	return (size_t)(p - out);
}

static void test_question(void **state)
{
	struct vnet_dns_question q;
	uint8_t m[600];
	size_t n = query(m, "WWW.Example.org", VNET_DNS_A, 0);

	assert_int_equal(vnet_dns_parse(m, n, &q), 0);
	assert_string_equal(q.name, "www.example.org");
	assert_int_equal(q.id, ID);
	assert_int_equal(q.type, VNET_DNS_A);
	assert_int_equal(q.class, 1);
	assert_int_equal(q.udp_size, 512);
	assert_int_equal(q.end, n);
	assert_false(q.edns);
	assert_false(q.response);

	n = query(m, "www.example.org", VNET_DNS_AAAA, 1232);
	assert_int_equal(vnet_dns_parse(m, n, &q), 0);
	assert_true(q.edns);
	assert_int_equal(q.udp_size, 1232);
	assert_int_equal(q.end, n - 11);
	n = query(m, "www.example.org", VNET_DNS_AAAA, 100);
	assert_int_equal(vnet_dns_parse(m, n, &q), 0);
	assert_int_equal(q.udp_size, 512);
}

/* Each prefix of a query but the whole is none, and neither are these. */
static void test_nonsense(void **state)
{
	struct vnet_dns_question q;
	uint8_t m[600];
	size_t n = query(m, "www.example.org", VNET_DNS_A, 0);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(vnet_dns_parse(m, i, &q), -EBADMSG);
	m[12] = 0xc0; /* a pointer */
	assert_int_equal(vnet_dns_parse(m, n, &q), -EBADMSG);
	m[12] = 64; /* a label of the kind there is not */
	assert_int_equal(vnet_dns_parse(m, n, &q), -EBADMSG);
	m[12] = 3;
	m[5] = 2; /* two questions */
	assert_int_equal(vnet_dns_parse(m, n, &q), -EBADMSG);
	m[5] = 0;
	assert_int_equal(vnet_dns_parse(m, n, &q), -EBADMSG);
	m[5] = 1;
	m[11] = 200; /* records that are not there do not matter */
	assert_int_equal(vnet_dns_parse(m, n, &q), 0);
	/* Bytes a text has not: a name that we have nothing to do with. */
	m[13] = '.';
	assert_int_equal(vnet_dns_parse(m, n, &q), 0);
	assert_string_equal(q.name, "");

	/* A name of more than 255 bytes. */
	memset(m, 0, sizeof(m));
	m[5] = 1;
	for (int i = 0; i < 5; i++) {
		m[12 + 64 * i] = 63;
		memset(m + 13 + 64 * i, 'a', 63);
	}
	assert_int_equal(vnet_dns_parse(m, 600, &q), -EBADMSG);
}

static void test_belongs(void **state)
{
	uint8_t m[600], a[600];
	size_t n = query(m, "www.example.org", VNET_DNS_A, 1232);

	memcpy(a, m, n);
	a[2] |= 0x80;
	assert_true(vnet_dns_answers(m, n, a, n));
	a[13] = 'W';
	assert_true(vnet_dns_answers(m, n, a, n));
	a[13] = 'v';
	assert_false(vnet_dns_answers(m, n, a, n));
	a[13] = 'w';
	a[0]++;
	assert_false(vnet_dns_answers(m, n, a, n));
	a[0]--;
	a[2] &= 0x7f;
	assert_false(vnet_dns_answers(m, n, a, n));
	query(a, "www.example.org", VNET_DNS_AAAA, 0);
	a[2] |= 0x80;
	assert_false(vnet_dns_answers(m, n, a, n));
	/* An error without the question. */
	a[5] = 0;
	assert_false(vnet_dns_answers(m, n, a, 12));
	a[3] |= VNET_DNS_FORMERR;
	assert_true(vnet_dns_answers(m, n, a, 12));
}

static void test_reply(void **state)
{
	const struct vnet_dns_record records[] = {
		{.type = VNET_DNS_A, .ttl = 5, .v4.s_addr = htonl(0x0aab0001)},
		{.type = VNET_DNS_PTR, .ttl = 5, .name = "a.podrun.internal"},
	};
	struct vnet_dns_question q, r;
	uint8_t m[600], out[600];
	size_t n = query(m, "gateway.podrun.internal", VNET_DNS_A, 1232), len;

	assert_int_equal(vnet_dns_parse(m, n, &q), 0);
	len = vnet_dns_reply(m, &q, VNET_DNS_NOERROR, true, records, 2, out, sizeof(out));
	assert_int_equal(len, q.end + 12 + 4 + 12 + 19 + 11);
	assert_memory_equal(out, "\x12\x34\x85\x80\0\1\0\2\0\0\0\1", 12);
	assert_memory_equal(out + q.end, "\xc0\x0c\0\1\0\1\0\0\0\5\0\4\x0a\xab\0\1", 16);
	assert_memory_equal(
		out + q.end + 16, "\xc0\x0c\0\x0c\0\1\0\0\0\5\0\x13\1a\6podrun\10internal", 31);
	assert_true(vnet_dns_answers(m, n, out, len));
	assert_int_equal(vnet_dns_parse(out, len, &r), 0);
	assert_true(r.edns);
	assert_false(r.truncated);

	/* The second does not fit. */
	len = vnet_dns_reply(m, &q, VNET_DNS_NOERROR, true, records, 2, out, q.end + 11 + 20);
	assert_int_equal(len, q.end + 16 + 11);
	assert_int_equal(vnet_dns_parse(out, len, &r), 0);
	assert_true(r.truncated);
	assert_int_equal(out[7], 1);

	len = vnet_dns_reply(m, &q, VNET_DNS_NXDOMAIN, true, records, 2, out, sizeof(out));
	assert_int_equal(len, q.end + 11);
	assert_int_equal(out[3] & 15, VNET_DNS_NXDOMAIN);
	assert_int_equal(vnet_dns_reply(m, &q, 0, true, records, 2, out, q.end), 0);

	len = vnet_dns_reply(m, &q, VNET_DNS_NOERROR, true, records, 2, out, sizeof(out));
	assert_int_equal(vnet_dns_truncate(out, len), q.end);
	assert_int_equal(vnet_dns_parse(out, q.end, &r), 0);
	assert_true(r.truncated);
	assert_false(r.edns);
}

static const struct vnet_datagram_session SESSIONS[] = {
	{.name = "work"},
	{.name = "other"},
};

static bool get(void *data, uint32_t id, struct vnet_datagram_session *ret)
{
	char text[80];

	if (id >= ARRAY_SIZE(SESSIONS))
		return false;
	*ret = SESSIONS[id];
	inet_pton(AF_INET, "10.171.0.1", &ret->gateway4);
	inet_pton(AF_INET6, "fd7a:706f:6472::1", &ret->gateway6);
	if (id == 0) {
		inet_pton(AF_INET, "10.171.0.3", &ret->loopback4);
		inet_pton(AF_INET6, "fd7a:706f:6472::3", &ret->loopback6);
	}
	inet_pton(AF_INET, "10.171.0.2", &ret->address4);
	inet_pton(AF_INET6, "fd7a:706f:6472::2", &ret->address6);
	snprintf(text, sizeof(text), "10.200.0.%u", id + 1);
	inet_pton(AF_INET, text, &ret->physical4);
	snprintf(text, sizeof(text), "fd64:1::%x", id + 1);
	inet_pton(AF_INET6, text, &ret->physical6);
	return true;
}

static bool by_name(void *data, const char *name, uint32_t *ret)
{
	for (*ret = 0; *ret < ARRAY_SIZE(SESSIONS); ++*ret)
		if (strcasecmp(SESSIONS[*ret].name, name) == 0)
			return true;
	return false;
}

static bool by_physical(void *data, int family, const void *address, uint32_t *ret)
{
	struct vnet_datagram_session s;

	for (*ret = 0; get(NULL, *ret, &s); ++*ret)
		if (family == AF_INET ? memcmp(&s.physical4, address, 4) == 0
				      : memcmp(&s.physical6, address, 16) == 0)
			return true;
	return false;
}

static const struct vnet_datagram_sessions OPS = {
	.get = get, .by_name = by_name, .by_physical = by_physical};

/*
 * What session @asking is told of @name: "-" that others are asked, "NX", "" nothing, or a value.
 */
static const char *ask(uint32_t asking, const char *name, uint16_t type)
{
	static char text[300];
	struct vnet_dns_names_answer a;
	struct vnet_dns_question q;
	uint8_t m[600];

	assert_int_equal(vnet_dns_parse(m, query(m, name, type, 0), &q), 0);
	if (!vnet_dns_names_answer(&OPS, NULL, asking, &q, &a))
		return "-";
	if (a.rcode == VNET_DNS_NXDOMAIN)
		return "NX";
	if (!a.n)
		return "";
	assert_int_equal(a.n, 1);
	assert_int_equal(a.records[0].type, type);
	if (type == VNET_DNS_PTR)
		return strcpy(text, a.records[0].name);
	return inet_ntop(
		type == VNET_DNS_A ? AF_INET : AF_INET6, &a.records[0].v4, text, sizeof(text));
}

static void test_names(void **state)
{
	struct in6_addr v6;
	char name[80];

	assert_string_equal(ask(0, "host.podrun.internal", VNET_DNS_A), "10.171.0.3");
	assert_string_equal(ask(0, "HOST.Podrun.Internal", VNET_DNS_AAAA), "fd7a:706f:6472::3");
	assert_string_equal(ask(0, "host.podrun.internal", VNET_DNS_SOA), "");
	assert_string_equal(ask(1, "host.podrun.internal", VNET_DNS_A), "NX");
	assert_string_equal(ask(1, "gateway.podrun.internal", VNET_DNS_A), "10.171.0.1");
	assert_string_equal(ask(0, "other.podrun.internal", VNET_DNS_A), "10.200.0.2");
	assert_string_equal(ask(0, "work.podrun.internal", VNET_DNS_A), "10.171.0.2");
	assert_string_equal(ask(1, "work.podrun.internal", VNET_DNS_AAAA), "fd64:1::1");
	assert_string_equal(ask(0, "none.podrun.internal", VNET_DNS_A), "NX");
	assert_string_equal(ask(0, "podrun.internal", VNET_DNS_A), "");
	assert_string_equal(ask(0, "xpodrun.internal", VNET_DNS_A), "-");
	assert_string_equal(ask(0, "example.org", VNET_DNS_A), "-");
	assert_string_equal(ask(0, "", VNET_DNS_A), "-");

	assert_string_equal(
		ask(0, "1.0.171.10.in-addr.arpa", VNET_DNS_PTR), "gateway.podrun.internal");
	assert_string_equal(
		ask(0, "2.0.171.10.in-addr.arpa", VNET_DNS_PTR), "work.podrun.internal");
	assert_string_equal(
		ask(0, "2.0.200.10.in-addr.arpa", VNET_DNS_PTR), "other.podrun.internal");
	assert_string_equal(ask(0, "2.0.200.10.in-addr.arpa", VNET_DNS_A), "");
	assert_string_equal(ask(0, "8.8.8.8.in-addr.arpa", VNET_DNS_PTR), "-");
	assert_string_equal(ask(0, "1.0.171.10.11.in-addr.arpa", VNET_DNS_PTR), "-");
	assert_string_equal(ask(0, "0.171.10.in-addr.arpa", VNET_DNS_PTR), "-");
	assert_string_equal(ask(0, "256.0.171.10.in-addr.arpa", VNET_DNS_PTR), "-");
	inet_pton(AF_INET6, "fd64:1::2", &v6);
	vnet_dns_reverse_name(AF_INET6, &v6, name);
	assert_int_equal(strlen(name), 72);
	assert_string_equal(ask(0, name, VNET_DNS_PTR), "other.podrun.internal");
	name[0] = 'x';
	assert_string_equal(ask(0, name, VNET_DNS_PTR), "-");
	vnet_dns_reverse_name(AF_INET, &(struct in_addr){htonl(0x0aab0001)}, name);
	assert_string_equal(name, "1.0.171.10.in-addr.arpa");
}

static void parse(struct vnet_resolv *r, const char *text)
{
	*r = (struct vnet_resolv){0};
	vnet_resolv_parse(r, text, strlen(text));
}

static const char *server(const struct vnet_resolv *r, unsigned i)
{
	static char text[96];
	char address[INET6_ADDRSTRLEN];
	const union vnet_resolv_server *s = &r->servers[i];

	inet_ntop(s->sa.sa_family,
		s->sa.sa_family == AF_INET ? (void *)&s->v4.sin_addr : &s->v6.sin6_addr, address,
		sizeof(address));
	snprintf(text, sizeof(text), "%s %u %u", address, ntohs(s->v4.sin_port),
		s->sa.sa_family == AF_INET ? 0 : s->v6.sin6_scope_id);
	return text;
}

static void check_search(const char *text, const char *want)
{
	char got[24];

	vnet_resolv_search(text, strlen(text), got, sizeof(got));
	assert_string_equal(got, want);
}

static void test_search(void **state)
{
	check_search("", "");
	check_search("nameserver 1.2.3.4\nsearch  a.example\tb\r\noptions ndots:2", "a.example b");
	check_search("domain one\nsearch two\n# search three\n", "two");
	check_search("search a\ndomain b", "b");
	check_search("search x;y $(z) ok . -- a\0b\n", "ok . -- a");
	check_search("search 012345678901234567890123 012345678901234567890 a b",
		"012345678901234567890 a");
}

static void test_servers(void **state)
{
	struct vnet_resolv r;

	parse(&r, "# nameserver 1.2.3.4\nsearch a b\nnameserver 127.0.0.53\n"
		  "nameserver\t2001:db8::1  # x\n"
		  "nameserver fe80::1%lo\nnameserver fe80::1%7\nnameserver nonsense\nnameserver\n"
		  "options edns0\nnameserver [127.0.0.1]:5353\nnameserver [::1]:0\n"
		  "nameserver 9.9.9.9");
	assert_int_equal(r.n, 6);
	assert_string_equal(server(&r, 0), "127.0.0.53 53 0");
	assert_string_equal(server(&r, 1), "2001:db8::1 53 0");
	assert_string_equal(server(&r, 2), "fe80::1 53 1");
	assert_string_equal(server(&r, 3), "fe80::1 53 7");
	assert_string_equal(server(&r, 4), "127.0.0.1 5353 0");
	assert_string_equal(server(&r, 5), "9.9.9.9 53 0");
	assert_int_equal(vnet_resolv_server_len(&r.servers[0]), sizeof(struct sockaddr_in));
	parse(&r, "");
	assert_int_equal(r.n, 0);
}

static void write_file(const char *path, const char *text)
{
	assert_int_equal(io_replace_file(AT_FDCWD, path, text, strlen(text), 0600), 0);
}

static void test_refresh(void **state)
{
	char path[] = "/tmp/podrun-resolv.XXXXXX";
	struct vnet_resolv r = {.path = path};

	close_fd(mkstemp(path));
	write_file(path, "nameserver 1.1.1.1\n");
	assert_int_equal(vnet_resolv_refresh(&r), 1);
	assert_string_equal(server(&r, 0), "1.1.1.1 53 0");
	assert_int_equal(vnet_resolv_refresh(&r), 0);
	write_file(path, "nameserver 2.2.2.2\n");
	assert_int_equal(vnet_resolv_refresh(&r), 1);
	assert_int_equal(r.n, 1);
	assert_string_equal(server(&r, 0), "2.2.2.2 53 0");
	unlink(path);
	assert_int_equal(vnet_resolv_refresh(&r), 1);
	assert_string_equal(server(&r, 0), "127.0.0.1 53 0");
	assert_int_equal(vnet_resolv_refresh(&r), 0);
	write_file(path, "nameserver 3.3.3.3\n");
	assert_int_equal(vnet_resolv_refresh(&r), 1);
	assert_string_equal(server(&r, 0), "3.3.3.3 53 0");
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_belongs),
		cmocka_unit_test(test_reply),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_refresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

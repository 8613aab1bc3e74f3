// SPDX-License-Identifier: GPL-2.0-or-later
/* Who may come in over http, and what may pass. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/display.h"
#include "display/web/address.h"
#include "display/web/filter.h"
#include "display/web/strangers.h"
#include "display/web/tickets.h"
#include "display/web/tls.h"
#include "proto/display.pb-c.h"

#define MAKERS 8 /* of a key, at the same time */

/* ---- tickets */

static void a_token_is_good_once(void **state)
{
	struct display_tickets t;
	struct err e = {0};
	struct display_seat *s;
	char token[DISPLAY_TICKET_LEN + 1];

	assert_int_equal(display_tickets_init(&t, false, &e), 0);
	strcpy(token, t.token);
	assert_int_equal(strlen(token), DISPLAY_TICKET_LEN);
	assert_null(display_tickets_admit(&t, ""));
	assert_null(display_tickets_return(&t, token));
	token[5] ^= 1;
	assert_null(display_tickets_admit(&t, token));
	token[5] ^= 1;
	s = display_tickets_admit(&t, token);
	assert_non_null(s);
	assert_string_not_equal(s->ticket, token);
	assert_null(display_tickets_admit(&t, token));
	assert_null(display_tickets_admit(&t, ""));
	assert_ptr_equal(display_tickets_return(&t, s->ticket), s);
	assert_null(display_tickets_return(&t, ""));
}

static void there_are_so_many_seats(void **state)
{
	struct display_tickets t;
	struct err e = {0};
	char token[DISPLAY_TICKET_LEN + 1];

	assert_int_equal(display_tickets_init(&t, true, &e), 0);
	for (int i = 0; i < DISPLAY_SEATS; i++) {
		strcpy(token, t.token);
		assert_non_null(display_tickets_admit(&t, token));
		assert_string_not_equal(token, t.token);
	}
	assert_string_equal(t.token, "");
	assert_null(display_tickets_admit(&t, token));
	assert_null(display_tickets_admit(&t, t.token));
}

/* ---- filter */

static void put(struct buf *b, enum display_type type, const void *body, size_t n)
{
	struct display_message m = {.type = type};
	size_t begin = display_wire_begin(b, &m);

	/* The body alone: what begin has put of it is taken back. */
	b->len = begin + DISPLAY_WIRE_HEAD;
	buf_put(b, body, n);
	display_wire_end(b, begin);
}

static void put_hello(struct buf *b, bool view_only)
{
	Pb__DisplayHello h = PB__DISPLAY_HELLO__INIT;
	uint8_t body[128];
	uint8_t secret[] = "secret";

	h.version = 1;
	h.codecs = 3;
	h.view_only = view_only;
	h.token.data = secret;
	h.token.len = sizeof(secret);
	assert_true(pb__display_hello__get_packed_size(&h) <= sizeof(body));
	put(b, DISPLAY_HELLO, body, pb__display_hello__pack(&h, body));
}

/* Feeds @in in pieces of at most @piece bytes. */
static int feed(bool view_only, const struct buf *in, size_t piece, struct buf *out)
{
	struct display_filter f;
	int r = 0;

	display_filter_init(&f, view_only);
	for (size_t at = 0; at < in->len && r == 0; at += piece)
		r = display_filter_feed(&f, in->data + at, MIN(piece, in->len - at), out);
	display_filter_fini(&f);
	return r;
}

static void put_everything(struct buf *b)
{
	static const uint8_t body[3000] = {[4] = 1, [6] = 1}; /* of REFRESH, one pixel */

	put_hello(b, false);
	put(b, DISPLAY_KEY, body, 8);
	put(b, DISPLAY_ACK, body, 4);
	put(b, DISPLAY_CLIPBOARD_IN, body, sizeof(body));
	put(b, DISPLAY_POINTER, body, 8);
	put(b, DISPLAY_CLIPBOARD_IN, body, 0);
	put(b, DISPLAY_REFRESH, body, 8);
	put(b, DISPLAY_RESIZE_IN, body, 4);
}

static void pieces_of_any_size_are_the_same(void **state)
{
	_cleanup_buf_ struct buf in = BUF_INIT;

	put_everything(&in);
	for (int view_only = 0; view_only < 2; view_only++) {
		_cleanup_buf_ struct buf whole = BUF_INIT;

		assert_int_equal(feed(view_only, &in, in.len, &whole), 0);
		assert_true(view_only ? whole.len < 100 : whole.len > 3000);
		for (size_t piece = 1; piece < 40; piece++) {
			_cleanup_buf_ struct buf out = BUF_INIT;

			assert_int_equal(feed(view_only, &in, piece, &out), 0);
			assert_int_equal(out.len, whole.len);
			assert_memory_equal(out.data, whole.data, whole.len);
		}
	}
}

static void who_only_looks(void **state)
{
	_cleanup_buf_ struct buf in = BUF_INIT, out = BUF_INIT;
	static const enum display_type passed[] = {DISPLAY_HELLO, DISPLAY_ACK, DISPLAY_REFRESH};
	size_t at = 0;

	put_everything(&in);
	assert_int_equal(feed(true, &in, 5, &out), 0);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
		struct display_message m;
		struct err e = {0};
		size_t used;

		assert_int_equal(
			display_wire_take(out.data + at, out.len - at, false, &m, &used, &e), 1);
		assert_int_equal(m.type, passed[i]);
		if (m.type == DISPLAY_HELLO) {
			Pb__DisplayHello *h =
				pb__display_hello__unpack(NULL, m.data.len, m.data.data);

			assert_true(h->view_only);
			assert_int_equal(h->token.len, 0);
			assert_int_equal(h->codecs, 3);
			pb__display_hello__free_unpacked(h, NULL);
		}
		at += used;
	}
	assert_int_equal(at, out.len);
}

static void what_is_not_the_protocol(void **state)
{
	static const uint8_t too_long[] = {DISPLAY_KEY, 0, 0, 0, 1, 0, 16, 0};
	_cleanup_buf_ struct buf in = BUF_INIT, out = BUF_INIT;

	put(&in, DISPLAY_KEY, too_long, 8);
	assert_int_equal(feed(false, &in, 3, &out), -EBADMSG); /* before HELLO */
	buf_clear(&in);
	put(&in, DISPLAY_HELLO, "\xff\xff\xff", 3);
	assert_int_equal(feed(false, &in, 3, &out), -EBADMSG);
	buf_clear(&in);
	put_hello(&in, false);
	put_hello(&in, false);
	assert_int_equal(feed(false, &in, 100, &out), -EBADMSG);
	buf_clear(&in);
	put_hello(&in, false);
	buf_put(&in, too_long, sizeof(too_long));
	assert_int_equal(feed(false, &in, 100, &out), -EMSGSIZE);
}

/* ---- addresses */

static void addresses_are_numbers(void **state)
{
	static const char *const good[] = {"127.0.0.1:0", "[::1]:0", ":0"};
	static const char *const bad[] = {"", ":", "127.0.0.1", "127.0.0.1:", "localhost:1",
		"127.0.0.1:http", "[::1]", "1.2.3.4.5:6", "127.0.0.1:70000", "127.0.0.1:-1",
		"127.0.0.1: 1"};
	struct display_address a;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct err e = {0};

		assert_int_equal(display_address_parse(&a, good[i], &e), 0);
		assert_true(a.https);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = {0};

		assert_int_equal(display_address_parse(&a, bad[i], &e), -EINVAL);
		assert_int_equal(e.class, ERR_USAGE);
	}
}

static void names_of_ours(void **state)
{
	struct display_address a;
	struct err e = {0};
	char url[64], port[8], host[32], origin[64];
	int fd;

	display_address_loopback(&a);
	fd = display_address_listen(&a, &e);
	assert_true(fd >= 0);
	assert_true(a.port > 0);
	snprintf(port, sizeof(port), "%d", a.port);
	snprintf(host, sizeof(host), "127.0.0.1:%s", port);
	snprintf(origin, sizeof(origin), "http://%s", host);
	display_address_url(&a, url, sizeof(url));
	assert_memory_equal(url, origin, strlen(origin));
	assert_string_equal(url + strlen(origin), "/");
	assert_true(display_address_host_is_ours(&a, host));
	assert_false(display_address_host_is_ours(&a, NULL));
	assert_false(display_address_host_is_ours(&a, ""));
	assert_false(display_address_host_is_ours(&a, "127.0.0.1"));
	assert_false(display_address_host_is_ours(&a, "example.org:80"));
	assert_true(display_address_origin_is_ours(&a, host, origin));
	assert_false(display_address_origin_is_ours(&a, host, NULL));
	assert_false(display_address_origin_is_ours(&a, host, "null"));
	assert_false(display_address_origin_is_ours(&a, "localhost:1", origin));
	origin[4] = 's';
	assert_false(display_address_origin_is_ours(&a, host, origin));
	close(fd);
}

/* ---- strangers */

static struct sockaddr_storage from(const char *text)
{
	union {
		struct sockaddr_storage any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = {0};

	a.any.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(
		inet_pton(a.any.ss_family, text,
			strchr(text, ':') ? (void *)&a.v6.sin6_addr : (void *)&a.v4.sin_addr),
		1);
	return a.any;
}

static void who_fills_all_places_is_in_his_own_way(void **state)
{
	static const char *const same[] = {"2001:db8::1", "2001:db8::2:3:4:5"};
	const struct sockaddr_storage friend = from("192.0.2.1"), flood = from("192.0.2.2"),
				      mapped = from("::ffff:192.0.2.2");
	struct display_strangers s = {0};
	char who[200];

	assert_null(display_strangers_add(&s, &who[0], &friend));
	for (int i = 1; i < 100; i++)
		assert_ptr_equal(display_strangers_add(&s, &who[i], i % 2 ? &flood : &mapped),
			i > DISPLAY_STRANGERS_FROM ? &who[i - DISPLAY_STRANGERS_FROM] : NULL);
	display_strangers_remove(&s, &who[99]);
	assert_null(display_strangers_add(&s, &who[100], &flood));
	for (int i = 101; i < 101 + DISPLAY_STRANGERS_FROM; i++) {
		const struct sockaddr_storage a = from(same[i % 2]);

		assert_null(display_strangers_add(&s, &who[i], &a));
	}
	assert_ptr_equal(display_strangers_least_welcome(&s), &who[84]);
}

/* From many addresses: the one that was there first goes. */
static void there_are_so_many_strangers(void **state)
{
	struct display_strangers s = {0};
	char who[DISPLAY_STRANGERS + 1];

	for (int i = 0; i <= DISPLAY_STRANGERS; i++) {
		char text[32];
		struct sockaddr_storage a;

		snprintf(text, sizeof(text), "2001:db8:0:%x::1", i);
		a = from(text);
		assert_ptr_equal(display_strangers_add(&s, &who[i], &a),
			i < DISPLAY_STRANGERS ? NULL : &who[0]);
	}
	for (int i = 1; i <= DISPLAY_STRANGERS; i++)
		assert_ptr_equal(display_strangers_least_welcome(&s), &who[i]);
	assert_null(display_strangers_least_welcome(&s));
}

/* ---- the key */

/* What each of several has that want it when there is none yet. */
static void one_key_for_all(void **state)
{
	char dir[] = "/tmp/podrun-tls-XXXXXX";
	char first[DISPLAY_FINGERPRINT], other[DISPLAY_FINGERPRINT];
	int begin[2], told[2];
	struct display_tls t;
	struct err e = {0};
	char c;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(pipe(begin), 0);
	assert_int_equal(pipe(told), 0);
	for (int i = 0; i < MAKERS; i++)
		if (fork() == 0) {
			close(begin[1]);
			if (read(begin[0], &c, 1) != 0 || display_tls_init(&t, dir, &e) < 0 ||
				io_write_full(told[1], t.fingerprint, DISPLAY_FINGERPRINT) < 0)
				_exit(1);
			_exit(0);
		}
	close(begin[1]);
	for (int i = 0, status; i < MAKERS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(display_tls_init(&t, dir, &e), 0);
	strcpy(first, t.fingerprint);
	for (int i = 0; i < MAKERS; i++) {
		assert_int_equal(io_read_full(told[0], other, sizeof(other)), sizeof(other));
		assert_string_equal(other, first);
	}
	display_tls_fini(&t);
	close(begin[0]);
	close(told[0]);
	close(told[1]);
	assert_int_equal(io_rm_rf(AT_FDCWD, dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_good_once),
		cmocka_unit_test(there_are_so_many_seats),
		cmocka_unit_test(pieces_of_any_size_are_the_same),
		cmocka_unit_test(who_only_looks),
		cmocka_unit_test(what_is_not_the_protocol),
		cmocka_unit_test(addresses_are_numbers),
		cmocka_unit_test(names_of_ours),
		cmocka_unit_test(who_fills_all_places_is_in_his_own_way),
		cmocka_unit_test(there_are_so_many_strangers),
		cmocka_unit_test(one_key_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "proto/control.pb-c.h"
#include "supervisor/cli/run_net.h"

static void published_ports(void **state)
{
	static const struct {
		const char *text, *address;
		uint32_t host, session;
		bool udp;
	} rows[] = {
		{"8080:80", "", 8080, 80, false},
		{"8080:80/tcp", "", 8080, 80, false},
		{"53:53/udp", "", 53, 53, true},
		{"127.0.0.1:1:65535", "127.0.0.1", 1, 65535, false},
		{"[::1]:8080:80", "::1", 8080, 80, false},
		{"[fe80::1:2]:53:5353/udp", "fe80::1:2", 53, 5353, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		Pb__PublishedPort p;
		struct err e = {0};

		assert_int_equal(run_net_parse_publish(rows[i].text, &p, &e), 0);
		assert_string_equal(p.address, rows[i].address);
		assert_int_equal(p.host, rows[i].host);
		assert_int_equal(p.session, rows[i].session);
		assert_int_equal(p.udp, rows[i].udp);
		if (rows[i].address[0])
			free(p.address);
	}
}

static void not_published(void **state)
{
	static const char *const bad[] = {"", "80", ":80", "80:", "0:80", "80:0", "65536:80",
		"80:65536", "a:80", "80:b", "80:80/sctp", "80:80/", "1.2.3:80:80", "::1:80:80",
		"[::1]80:80", "[1.2.3.4]:80:80", "[::1]:80", "1.2.3.4:80", "-1:80", "+1:80",
		"80:80:80:80", " 80:80", "[]:80:80", "[:80:80", "8080:80 ", "000000080:80"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		Pb__PublishedPort p;
		struct err e = {0};

		if (run_net_parse_publish(bad[i], &p, &e) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(e.class, ERR_USAGE);
		assert_true(e.hint[0]);
	}
}

/* Fills a config and frees what it got. */
static int fill(const struct run_net *o, Pb__Config *c, struct err *e)
{
	*c = (Pb__Config)PB__CONFIG__INIT;
	*e = (struct err){0};
	return run_net_fill(o, c, e);
}

static void release(Pb__Config *c)
{
	Pb__VirtualNetwork *n = c->network;

	for (size_t i = 0; n && i < n->n_publish; i++) {
		if (n->publish[i]->address[0])
			free(n->publish[i]->address);
		free(n->publish[i]);
	}
	if (n)
		free(n->publish);
	free(n);
}

static void which_network(void **state)
{
	const char *ports[] = {"8080:80"}, *addresses[] = {"192.0.2.7", "2001:db8::7"};
	const struct run_net none = {0}, host = {.net = "host"},
			     ports_only = {.publish = {ports, 1}},
			     both = {.net = "none", .publish = {ports, 1}},
			     clouds = {.link_local = true},
			     own = {.net = "vnat", .address = {addresses, 2}},
			     udp = {.gateway = "there", .carrier = "auto"},
			     tunnel = {.gateway = "wg:/etc/a.conf", .publish = {ports, 1}},
			     twice = {.gateway = "wg:/etc/a.conf", .carrier = "auto"};
	struct err e;
	Pb__Config c;

	assert_int_equal(fill(&none, &c, &e), 0);
	assert_string_equal(c.net, "none");
	assert_null(c.network);
	assert_int_equal(fill(&host, &c, &e), 0);
	assert_string_equal(c.net, "host");
	assert_null(c.network);
	assert_int_equal(fill(&ports_only, &c, &e), 0);
	assert_string_equal(c.net, "vnat");
	assert_int_equal(c.network->publish[0]->host, 8080);
	assert_string_equal(c.network->gateway, "local");
	assert_string_equal(c.network->host_loopback, "");
	assert_false(c.network->link_local);
	release(&c);
	assert_int_equal(fill(&clouds, &c, &e), 0);
	assert_string_equal(c.net, "vnat");
	assert_true(c.network->link_local);
	release(&c);
	assert_int_equal(fill(&both, &c, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "--publish"));
	release(&c);
	assert_int_equal(fill(&udp, &c, &e), 0);
	assert_string_equal(c.net, "vnat");
	assert_string_equal(c.network->carrier, "auto");
	release(&c);
	assert_int_equal(fill(&twice, &c, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "--carrier does not go with"));
	release(&c);
	assert_int_equal(fill(&tunnel, &c, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "wg:FILE"));
	release(&c);
	assert_int_equal(fill(&own, &c, &e), 0);
	assert_string_equal(c.network->address4, "192.0.2.7");
	assert_string_equal(c.network->address6, "2001:db8::7");
	release(&c);
}

static void names_that_follow(void **state)
{
	const struct run_net unsigned_one = {.dns_update = "example.org/web@192.0.2.53"},
			     no_key = {.dns_update = "example.org/web@192.0.2.53:/nowhere/key"},
			     there = {.dns_update = "example.org/web@192.0.2.53:key",
				     .gateway = "some.host"},
			     bad = {.dns_update = "example.org"},
			     tunnel = {.dns_update = "example.org/web@192.0.2.53",
				     .gateway = "wg:/etc/a.conf"};
	struct err e;
	Pb__Config c;

	assert_int_equal(fill(&unsigned_one, &c, &e), 0);
	assert_string_equal(c.net, "vnat");
	assert_string_equal(c.network->dns_update, "example.org/web@192.0.2.53");
	release(&c);
	assert_int_equal(fill(&no_key, &c, &e), -ENOENT);
	release(&c);
	assert_int_equal(fill(&there, &c, &e), -EINVAL);
	release(&c);
	assert_int_equal(fill(&bad, &c, &e), -EINVAL);
	release(&c);
	assert_int_equal(fill(&tunnel, &c, &e), -EINVAL);
	release(&c);
}

/* Whether two ports can be published by one session. */
static void ports_that_clash(void **state)
{
	static const struct {
		const char *ports[2];
		bool clash;
	} cases[] = {
		{{"8080:80", "8080:81"}, true},
		{{"8080:80", "8080:80/tcp"}, false}, /* said twice */
		{{"8080:80", "8081:80"}, false},
		{{"8080:80", "8080:80/udp"}, false},
		{{"8080:80", "127.0.0.1:8080:80"}, true},
		{{"[::1]:8080:80", "8080:80"}, true},
		{{"0.0.0.0:8080:80", "127.0.0.1:8080:80"}, true},
		{{"[::]:8080:80", "127.0.0.1:8080:80"}, false},
		{{"[::]:8080:80", "[::1]:8080:80"}, true},
		{{"[::1]:8080:80", "[0:0::1]:8080:81"}, true},
		{{"[::1]:8080:80", "[0:0::1]:8080:80"}, false},
		{{"127.0.0.2:8080:80", "127.0.0.1:8080:81"}, false},
	};
	struct err e;
	Pb__Config c;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct run_net o = {.publish = {(const char **)cases[i].ports, 2}};

		if (fill(&o, &c, &e) != (cases[i].clash ? -EINVAL : 0))
			fail_msg("'%s' and '%s'", cases[i].ports[0], cases[i].ports[1]);
		assert_true(!cases[i].clash || strstr(e.msg, "the same port"));
		release(&c);
	}
}

static void addresses_nobody_can_have(void **state)
{
	static const char *const bad[] = {"", "1.2.3", "0.0.0.0", "127.0.0.1", "224.0.0.1",
		"255.255.255.255", "::", "::1", "ff02::1", "fe80::1", "::ffff:1.2.3.4",
		"10.171.0.1", "fd7a:706f:6472::1", "host"};
	struct err e;
	Pb__Config c;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *item = bad[i];
		const struct run_net o = {.address = {&item, 1}};

		if (fill(&o, &c, &e) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(e.class, ERR_USAGE);
		release(&c);
	}
}

static void two_of_a_kind(void **state)
{
	const char *two[] = {"192.0.2.7", "192.0.2.8"};
	const struct run_net o = {.address = {two, 2}};
	struct err e;
	Pb__Config c;

	assert_int_equal(fill(&o, &c, &e), -EINVAL);
	release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_ports),
		cmocka_unit_test(not_published),
		cmocka_unit_test(which_network),
		cmocka_unit_test(names_that_follow),
		cmocka_unit_test(ports_that_clash),
		cmocka_unit_test(addresses_nobody_can_have),
		cmocka_unit_test(two_of_a_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

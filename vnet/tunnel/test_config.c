// SPDX-License-Identifier: GPL-2.0-or-later
/* Files as people have them, and what is wrong with others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "base/base.h"
#include "vnet/tunnel/config.h"

#define KEY1 "QKyd1J2pBQxoZdBTzHFyqEgkP0mQ5xHcJ6jXrj0pUFo="
#define KEY2 "aKpQ0fV4m5yM6x0n3Jm5m1i9vZt8bZq1k1t1m1l1yBE="

static int parse(struct vnet_config *c, const char *text, struct err *e)
{
	*e = (struct err){0};
	return vnet_config_parse(c, text, strlen(text), "wg0.conf", e);
}

static void ordinary(void **state)
{
	static const char text[] = "# from the provider\r\n"
				   "[interface]\r\n"
				   "privatekey=" KEY1 "\r\n"
				   "Address = 10.66.0.2/32 , fc00:bbbb::2/128\n"
				   "DNS = 10.64.0.1, example.org, no name, other.example\n"
				   "\tMTU = 1380 # small\n"
				   "ListenPort = 51820\n"
				   "PostUp = iptables -A FORWARD -i %i -j ACCEPT\n"
				   "\n"
				   "[Peer]\n"
				   "PublicKey = " KEY2 "\n"
				   "PresharedKey = " KEY1 "\n"
				   "AllowedIPs = 0.0.0.0/0,::/0\n"
				   "AllowedIPs = 192.168.7.9/23\n"
				   "Endpoint = vpn.example.org:51820\n"
				   "PersistentKeepalive = 25\n"
				   "[Peer]\n"
				   "PublicKey = " KEY1 "\n"
				   "AllowedIPs =\n"
				   "Endpoint = [2001:db8::1]:4\n"
				   "PersistentKeepalive = off";
	struct vnet_config c;
	struct err e;

	if (parse(&c, text, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(c.private[0], 0x40);
	assert_int_equal(c.private[1], 0xac);
	assert_int_equal(c.private[31], 0x5a);
	assert_int_equal(c.n_addresses, 2);
	assert_int_equal(c.addresses[1].family, AF_INET6);
	assert_int_equal(c.addresses[1].bits, 128);
	assert_int_equal(c.addresses[0].address[3], 2);
	assert_int_equal(c.n_dns, 1);
	assert_string_equal(c.search, "example.org other.example");
	assert_int_equal(c.mtu, 1380);
	assert_int_equal(c.listen_port, 51820);
	assert_string_equal(c.left_out, "PostUp");
	assert_int_equal(c.n_peers, 2);
	assert_int_equal(c.peers[0].n_allowed, 3);
	assert_int_equal(c.peers[0].allowed[2].bits, 23);
	assert_memory_equal(c.peers[0].allowed[2].address, "\300\250\6\0", 4);
	assert_string_equal(c.peers[0].host, "vpn.example.org");
	assert_int_equal(c.peers[0].keepalive, 25);
	assert_int_equal(c.peers[1].n_allowed, 0);
	assert_string_equal(c.peers[1].host, "2001:db8::1");
	assert_int_equal(c.peers[1].port, 4);
	assert_int_equal(c.peers[1].keepalive, 0);
	vnet_config_fini(&c);
	assert_int_equal(c.n_peers, 0);
}

#define HEAD "[Interface]\nPrivateKey = " KEY1 "\n"
#define PEER HEAD "[Peer]\nPublicKey = " KEY2 "\n"

static const struct {
	const char *text, *says;
} wrong[] = {
	{"", "no PrivateKey"},
	{"PrivateKey = " KEY1, "wg0.conf:1: PrivateKey stands before"},
	{"[Interface]\nPrivateKey = abc", "wg0.conf:2: PrivateKey is not a key"},
	{"[Interface]\nPrivateKey = " KEY1 "=", "wg0.conf:2"},
	{"[Interface]\nPrivateKey = QKyd1J2pBQxoZdBTzHFyqEgkP0mQ5xHcJ6jXrj0pUFp=", "wg0.conf:2"},
	{"[Interface]\nPrivateKey =", "wg0.conf:2: PrivateKey has no value"},
	{HEAD "PrivateKey = " KEY1, "wg0.conf:3: PrivateKey is there twice"},
	{HEAD "PublicKey = " KEY1, "wg0.conf:3: PublicKey is not a key of this section"},
	{HEAD "Address = 10.0.0.300", "wg0.conf:3: Address"},
	{HEAD "Address = 10.0.0.3/33", "wg0.conf:3: Address"},
	{HEAD "Address = 10.0.0.3/", "wg0.conf:3: Address"},
	{HEAD "Address = 10.0.0.3,,", "wg0.conf:3: Address"},
	{HEAD "Address = ::1/129", "wg0.conf:3: Address"},
	{HEAD "DNS = ,", "wg0.conf:3: DNS"},
	{HEAD "MTU = 500", "wg0.conf:3: MTU"},
	{HEAD "MTU = 99999999999999999999", "wg0.conf:3: MTU"},
	{HEAD "ListenPort = 65536", "wg0.conf:3: ListenPort"},
	{HEAD "ListenPort = -1", "wg0.conf:3: ListenPort"},
	{HEAD "[Pear]", "wg0.conf:3: [Pear]"},
	{HEAD "[Peer]", "peer 1 has no PublicKey"},
	{PEER "Endpoint = vpn", "wg0.conf:5: Endpoint"},
	{PEER "Endpoint = vpn:0", "wg0.conf:5: Endpoint"},
	{PEER "Endpoint = :1", "wg0.conf:5: Endpoint"},
	{PEER "Endpoint = []:1", "wg0.conf:5: Endpoint"},
	{PEER "Endpoint = [:1", "wg0.conf:5: Endpoint"},
	{PEER "Endpoint = 1::2:1", "wg0.conf:5: Endpoint"},
	{PEER "Endpoint = a b:1", "wg0.conf:5: Endpoint"},
	{PEER "PersistentKeepalive = 65536", "wg0.conf:5: PersistentKeepalive"},
	{PEER "AllowedIPs = 1.2.3.4/8, x", "wg0.conf:5: AllowedIPs"},
	{PEER "[Peer]\nPublicKey = " KEY2, "peers 1 and 2 have the same PublicKey"},
};

static void refused(void **state)
{
	struct vnet_config c;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (parse(&c, wrong[i].text, &e) == 0 || !strstr(e.msg, wrong[i].says))
			fail_msg("%s: \"%s\", not \"%s\"", wrong[i].text, e.msg, wrong[i].says);
		assert_true(e.class == ERR_USAGE && c.n_peers == 0);
		assert_null(strstr(e.msg, KEY1)); /* never in a message */
	}
	assert_true(vnet_config_parse(&c, HEAD "\0", sizeof(HEAD), "wg0.conf", &e) < 0);
}

static void bounded(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct vnet_config c;
	struct err e;

	buf_printf(&b, PEER);
	for (int i = 0; i <= VNET_CONFIG_PREFIXES_MAX; i++)
		buf_printf(&b, "AllowedIPs = 10.1.%d.%d\n", i / 256, i % 256);
	assert_int_equal(parse(&c, buf_cstr(&b), &e), -EINVAL);
	assert_non_null(strstr(e.msg, "wg0.conf:4101: AllowedIPs makes more than"));
	buf_clear(&b);
	buf_printf(&b, PEER);
	for (int i = 0; i < VNET_CONFIG_PEERS_MAX; i++)
		buf_printf(&b, "[Peer]\n");
	assert_int_equal(parse(&c, buf_cstr(&b), &e), -EINVAL);
	assert_non_null(strstr(e.msg, "one peer more"));
	buf_clear(&b);
	for (int i = 0; i < 5000; i++)
		buf_printf(&b, " ");
	assert_int_equal(parse(&c, buf_cstr(&b), &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary),
		cmocka_unit_test(refused),
		cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

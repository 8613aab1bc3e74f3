// SPDX-License-Identifier: GPL-2.0-or-later
/* Looking at queues, and asking who is connected to whom. */
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "ckpt/enter.h"
#include "ckpt/kinds/sock.h"

#define MAX_SEEN 8

struct seen {
	size_t n, fds[MAX_SEEN], len[MAX_SEEN];
	char data[MAX_SEEN][16];
	pid_t pid[MAX_SEEN];
};

static int see(void *ctx, struct ckpt_sock_message *m, struct err *e)
{
	struct seen *s = ctx;

	assert_true(s->n < MAX_SEEN);
	s->fds[s->n] = m->n_fds;
	s->len[s->n] = m->len;
	s->pid[s->n] = m->has_cred ? m->cred.pid : 0;
	memcpy(s->data[s->n++], m->data, MIN(m->len, (size_t)15));
	return 0;
}

static void test_stream(void **state)
{
	struct seen s = {0};
	struct err err = {0};
	char back[32];
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(io_write_full(sv[0], "abc", 3), 0);
	assert_int_equal(io_send_fds(sv[0], "def", 3, sv, 2), 0);
	assert_int_equal(io_write_full(sv[0], "ghi", 3), 0);
	for (int round = 0; round < 2; round++) {
		memset(&s, 0, sizeof(s));
		assert_int_equal(ckpt_sock_peek(sv[1], see, &s, &err), 0);
		assert_int_equal(s.n, 3);
		assert_string_equal(s.data[0], "abc");
		assert_string_equal(s.data[1], "def");
		assert_string_equal(s.data[2], "ghi");
		assert_int_equal(s.fds[0], 0);
		assert_int_equal(s.fds[1], 2);
		assert_int_equal(s.fds[2], 0);
	}
	assert_int_equal(ckpt_sock_get_int(sv[1], SOL_SOCKET, SO_PEEK_OFF), -1);
	assert_int_equal(ckpt_sock_get_int(sv[1], SOL_SOCKET, SO_PASSCRED), 0);
	assert_int_equal(read(sv[1], back, sizeof(back)), 6);
	close(sv[0]);
	close(sv[1]);
}

static void test_datagrams(void **state)
{
	struct seen s = {0};
	struct err err = {0};
	int sv[2], one = 1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(setsockopt(sv[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)), 0);
	assert_int_equal(send(sv[0], "one", 3, 0), 3);
	assert_int_equal(send(sv[0], "", 0, 0), 0);
	assert_int_equal(send(sv[0], "three", 5, 0), 5);
	close(sv[0]);
	assert_int_equal(ckpt_sock_peek(sv[1], see, &s, &err), 0);
	assert_int_equal(s.n, 3);
	assert_int_equal(s.len[1], 0);
	assert_string_equal(s.data[2], "three");
	assert_int_equal(s.pid[0], getpid());
	close(sv[1]);
}

static const struct ckpt_world here = {
	.ns_user = -1,
	.ns_pid = -1,
	.ns_mnt = -1,
	.ns_net = -1,
	.ns_ipc = -1,
	.ns_uts = -1,
	.ns_time = -1,
};

static void test_diag(void **state)
{
	struct ckpt_unix_diag_list *list;
	struct err err = {0};
	struct stat a, b;
	bool found = false;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	fstat(sv[0], &a);
	fstat(sv[1], &b);
	if (ckpt_sock_diag_unix(&here, -1, NULL, 0, &list, &err) < 0)
		skip();
	for (size_t i = 0; i < list->n; i++)
		found |= list->entries[i].ino == a.st_ino && list->entries[i].peer == b.st_ino;
	assert_true(found);
	free(list);
	close(sv[0]);
	close(sv[1]);
}

/* Both ends of a connection over the loopback device; false where there is no such family. */
static bool connect_pair(int domain, int *ret_server, int *ret_client)
{
	union ckpt_sockaddr a = {.any.sa_family = (sa_family_t)domain};
	socklen_t len = domain == AF_INET ? sizeof(a.in) : sizeof(a.in6);
	_cleanup_close_ int listener = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (domain == AF_INET)
		a.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		a.in6.sin6_addr = in6addr_loopback;
	if (listener < 0 || bind(listener, &a.any, len) < 0)
		return false;
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, &a.any, &len), 0);
	*ret_client = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(*ret_client, &a.any, len), 0);
	*ret_server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*ret_server >= 0);
	return true;
}

static const struct ckpt_inet_diag *entry_of(const struct ckpt_inet_diag_list *list, int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return ckpt_sock_inet_by_ino(list, (uint32_t)st.st_ino);
}

static void expect_pair(const struct ckpt_inet_diag_list *list, int domain, int server, int client)
{
	const struct ckpt_inet_diag *s = entry_of(list, server), *c = entry_of(list, client);

	assert_non_null(s);
	assert_non_null(c);
	assert_int_equal(s->domain, domain);
	assert_int_equal(c->domain, domain);
	assert_ptr_equal(&list->entries[s->peer], c);
	assert_ptr_equal(&list->entries[c->peer], s);
	assert_int_equal(s->shutdown, 0);
	assert_int_equal(c->shutdown, 1 << SHUT_RD);
}

/* Connections of both families, once each; who has no more than an address is not told of. */
static void test_tcp_diag(void **state)
{
	static const int domains[2] = {AF_INET, AF_INET6};
	struct sockaddr_in any = {.sin_family = AF_INET};
	int idle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), server[2], client[2];
	struct ckpt_inet_diag_list *list;
	struct err err = {0};
	bool there[2];

	assert_int_equal(bind(idle, (struct sockaddr *)&any, sizeof(any)), 0);
	for (size_t i = 0; i < 2; i++) {
		there[i] = connect_pair(domains[i], &server[i], &client[i]);
		if (there[i])
			shutdown(client[i], SHUT_RD);
	}
	if (ckpt_sock_diag_tcp(&here, -1, &list, &err) < 0)
		skip();
	for (size_t i = 0; i < 2; i++)
		if (there[i])
			expect_pair(list, domains[i], server[i], client[i]);
	for (size_t i = 0; i + 1 < list->n; i++)
		assert_true(
			!list->entries[i].ino || list->entries[i].ino != list->entries[i + 1].ino);
	assert_null(entry_of(list, idle));
	free(list);
	close(idle);
	for (size_t i = 0; i < 2; i++) {
		close_fd(there[i] ? server[i] : -1);
		close_fd(there[i] ? client[i] : -1);
	}
}

static void set_of(int fd, int level, int name, int value)
{
	assert_int_equal(setsockopt(fd, level, name, &value, sizeof(value)), 0);
}

static void expect_told(const struct ckpt_inet_diag *x, int fd)
{
	char name[16] = "";
	socklen_t len = sizeof(name);

	assert_non_null(x);
	assert_true(x->told);
	assert_int_equal(x->tos, ckpt_sock_get_int(fd, IPPROTO_IP, IP_TOS));
	assert_int_equal(x->recverr, ckpt_sock_get_int(fd, IPPROTO_IP, IP_RECVERR));
	assert_int_equal(x->recverr_rfc4884, ckpt_sock_get_int(fd, IPPROTO_IP, 26));
	assert_int_equal(x->freebind, ckpt_sock_get_int(fd, IPPROTO_IP, IP_FREEBIND));
	assert_int_equal(x->transparent, ckpt_sock_get_int(fd, IPPROTO_IP, IP_TRANSPARENT));
	assert_int_equal(x->bind_address_no_port,
		ckpt_sock_get_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT));
	assert_int_equal(x->receive_buffer, ckpt_sock_get_int(fd, SOL_SOCKET, SO_RCVBUF));
	assert_int_equal(x->send_buffer, ckpt_sock_get_int(fd, SOL_SOCKET, SO_SNDBUF));
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
	assert_memory_equal(x->congestion, name, len);
}

/* What the list says of options is what the socket says, of one that was left alone and another. */
static void test_told_options(void **state)
{
	static const int domains[2] = {AF_INET, AF_INET6};
	struct ckpt_inet_diag_list *list;
	struct err err = {0};
	int server, client;

	for (size_t i = 0; i < 2; i++) {
		if (!connect_pair(domains[i], &server, &client))
			continue;
		for (int name = 0; name < 3; name++)
			set_of(client, IPPROTO_IP, (int[]){IP_FREEBIND, IP_RECVERR, 26}[name], 1);
		set_of(client, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
		set_of(client, IPPROTO_IP, IP_TOS, 0x10);
		set_of(client, SOL_SOCKET, SO_RCVBUF, 20000);
		set_of(client, SOL_SOCKET, SO_SNDBUF, 30000);
		assert_int_equal(setsockopt(client, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
		if (ckpt_sock_diag_tcp(&here, -1, &list, &err) < 0)
			skip();
		expect_told(entry_of(list, server), server);
		expect_told(entry_of(list, client), client);
		assert_int_equal(entry_of(list, client)->tos, 0x10);
		assert_string_equal(entry_of(list, client)->congestion, "reno");
		free(list);
		close(server);
		close(client);
	}
}

/* A list that the kernel could not finish is none. */
static void test_half_a_list(void **state)
{
	struct {
		struct nlmsghdr head;
		int error;
	} done = {{.nlmsg_len = sizeof(done), .nlmsg_type = NLMSG_DONE}, -ENOMEM};
	struct ckpt_inet_diag_list *list;
	struct err err = {0};
	int diag[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, diag), 0);
	assert_int_equal(write(diag[1], &done, sizeof(done)), sizeof(done));
	assert_int_equal(ckpt_sock_diag_tcp(&here, diag[0], &list, &err), -ENOMEM);
	/* That there is no such protocol is said to each request. */
	done.error = -ENOENT;
	for (int i = 0; i < 3; i++)
		assert_int_equal(write(diag[1], &done, sizeof(done)), sizeof(done));
	assert_int_equal(ckpt_sock_diag_tcp(&here, diag[0], &list, &err), 0);
	assert_int_equal(list->n, 0);
	free(list);
	close(diag[0]);
	close(diag[1]);
}

static int answer(int sock, void *ctx, struct err *e)
{
	if (*(int *)ctx)
		return err_set(e, ERR_HOST, -ENOSYS, "not today");
	return io_write_full(sock, "hello", 5);
}

static void test_enter(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct err err = {0};
	int fail = 0;

	assert_int_equal(ckpt_enter_read(&here, 0, answer, &fail, 100, &b, &err), 0);
	assert_string_equal(buf_cstr(&b), "hello");
	fail = 1;
	assert_int_equal(ckpt_enter_read(&here, 0, answer, &fail, 100, &b, &err), -ENOSYS);
	assert_int_equal(err.class, ERR_HOST);
	assert_string_equal(err.msg, "not today");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_diag),
		cmocka_unit_test(test_tcp_diag),
		cmocka_unit_test(test_told_options),
		cmocka_unit_test(test_half_a_list),
		cmocka_unit_test(test_enter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

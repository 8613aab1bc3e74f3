// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/capture.h"
#include "vnet/test_packets.h"

static struct test_buffer buffer;
static struct vnet_endpoint a, b;

static struct vnet_packet *segment(size_t len)
{
	static char payload[60000];

	return test_tcp(&buffer, &a, &b, &(struct test_tcp){TEST_ACK, 1, 2, payload, len, 1380});
}

/* What was written is what libpcap reads. */
static void packets_are_read_again(void **state)
{
	char error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr h;
	struct vnet_capture *c;
	const uint8_t *data;
	int fd = memfd_create("pcap", 0);
	pcap_t *pcap;

	a = test_ep("10.171.0.2", 1);
	b = test_ep("192.0.2.7", 2);
	assert_int_equal(vnet_capture_open(dup(fd), &c, NULL), 0);
	assert_int_equal(vnet_capture_packet(c, segment(10)), 0);
	assert_int_equal(vnet_capture_packet(c, segment(60000)), 0);
	assert_int_equal(vnet_capture_close(c), 0);
	lseek(fd, 0, SEEK_SET);
	pcap = pcap_fopen_offline(fdopen(fd, "r"), error);
	assert_non_null(pcap);
	assert_int_equal(pcap_datalink(pcap), DLT_RAW);
	data = pcap_next(pcap, &h);
	assert_non_null(data);
	assert_int_equal(h.len, 50);
	data = pcap_next(pcap, &h);
	assert_non_null(data);
	assert_int_equal(h.caplen, 60040);
	assert_memory_equal(data, buffer.bytes, h.caplen);
	assert_null(pcap_next(pcap, &h));
	pcap_close(pcap);
}

/* What a file had is gone, if it is not to be added to. */
static void a_file_begins_anew(void **state)
{
	struct vnet_capture *c;
	struct stat st;
	int fd = memfd_create("pcap", 0);

	assert_int_equal(write(fd, "before", 6), 6);
	assert_int_equal(vnet_capture_open(dup(fd), &c, NULL), 0);
	assert_int_equal(vnet_capture_close(c), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 6 + 24);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(vnet_capture_open(dup(fd), &c, NULL), 0);
	assert_int_equal(vnet_capture_close(c), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 24);
	close(fd);
}

/* Nobody reads: packets are left out, whole ones, and nothing waits. */
static void a_slow_reader_loses_packets(void **state)
{
	struct pcap_pkthdr h;
	char error[PCAP_ERRBUF_SIZE];
	struct vnet_capture *c;
	int fds[2], n = 0, status;
	pcap_t *pcap;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(vnet_capture_open(dup(fds[1]), &c, NULL), 0);
	for (int i = 0; i < 200; i++) {
		int r = vnet_capture_packet(c, segment(60000));

		assert_true(r == 0 || r == -ENOBUFS);
	}
	assert_in_range(vnet_capture_lost(c), 100, 199);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/*
		 * Whatever is there now has to be whole packets, but for the end that close() cut
		 * off.
		 */
		dup2(fds[0], 0);
		close_range(3, ~0u, 0);
		pcap = pcap_fopen_offline(stdin, error);
		while (pcap && pcap_next(pcap, &h) && h.len == 60040)
			n++;
		_exit(n > 0 ? 0 : 1);
	}
	close(fds[0]);
	close(fds[1]);
	signal(SIGPIPE, SIG_IGN);
	vnet_capture_close(c);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The reader has gone: an error, no signal that ends us. */
static void a_reader_that_has_gone(void **state)
{
	struct vnet_capture *c;
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(vnet_capture_open(fds[1], &c, NULL), 0);
	close(fds[0]);
	assert_int_equal(vnet_capture_packet(c, segment(10)), -EPIPE);
	vnet_capture_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_are_read_again),
		cmocka_unit_test(a_file_begins_anew),
		cmocka_unit_test(a_slow_reader_loses_packets),
		cmocka_unit_test(a_reader_that_has_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

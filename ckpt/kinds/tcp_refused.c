// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Was a connect(2) refused?  The error tells, but it is told once, and to the program.  What the
 * kernel has counted tells the same.  In a file of its own because libc's struct tcp_info is older
 * than these counters, and excludes the kernel's.
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "ckpt/kinds/tcp.h"

bool tcp_was_refused(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       len > offsetof(struct tcp_info, tcpi_min_rtt) && info.tcpi_segs_in <= 1 &&
	       info.tcpi_min_rtt == UINT32_MAX;
}

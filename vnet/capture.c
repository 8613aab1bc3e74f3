// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/capture.h"
#include "vnet/packet.h"

struct vnet_capture {
	int fd;
	bool file; /* writing never waits for anybody */
	struct buf waiting;
	pcap_t *pcap;
	FILE *stream; /* pcap's dumper owns it once there is one */
	pcap_dumper_t *dumper;
	uint64_t lost;
};

/* libpcap, of which no other command knows. */
static struct {
	typeof(&pcap_open_dead_with_tstamp_precision) pcap_open_dead_with_tstamp_precision;
	typeof(&pcap_dump_fopen) pcap_dump_fopen;
	typeof(&pcap_dump) pcap_dump;
	typeof(&pcap_dump_flush) pcap_dump_flush;
	typeof(&pcap_dump_close) pcap_dump_close;
	typeof(&pcap_close) pcap_close;
} lib;

static int load(struct err *e)
{
	const struct late_symbol symbols[] = {
		LATE(lib, pcap_open_dead_with_tstamp_precision),
		LATE(lib, pcap_dump_fopen),
		LATE(lib, pcap_dump),
		LATE(lib, pcap_dump_flush),
		LATE(lib, pcap_dump_close),
		LATE(lib, pcap_close),
	};

	/* Debian's name for what others call .so.1 */
	if (late_load("libpcap.so.0.8", symbols, ARRAY_SIZE(symbols), NULL) == 0)
		return 0;
	return late_load("libpcap.so.1", symbols, ARRAY_SIZE(symbols), e);
}

/* libpcap writes to a FILE: this one is a buffer of ours. */
static ssize_t keep(void *cookie, const char *data, size_t n)
{
	struct vnet_capture *c = cookie;

	buf_put(&c->waiting, data, n);
	return c->waiting.failed ? -1 : (ssize_t)n;
}

/* Writes what waits, as far as nobody has to be waited for. */
static int flush(struct vnet_capture *c)
{
	while (c->waiting.len) {
		/*
		 * A pipe that can be written to takes as much as this without blocking (pipe(7)).
		 */
		size_t n = c->file ? c->waiting.len : MIN(c->waiting.len, (size_t)PIPE_BUF);
		struct pollfd p = {c->fd, POLLOUT, 0};
		ssize_t done;

		if (!c->file && (poll(&p, 1, 0) < 1 || !(p.revents & (POLLOUT | POLLERR))))
			return 0;
		done = write(c->fd, c->waiting.data, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return errno == EAGAIN ? 0 : -errno;
		buf_consume(&c->waiting, (size_t)done);
	}
	return 0;
}

/* What is written from its beginning, and not at the end of what is there. */
static void begin_anew(const struct vnet_capture *c)
{
	if (c->file && lseek(c->fd, 0, SEEK_CUR) == 0 && !(fcntl(c->fd, F_GETFL) & O_APPEND) &&
		ftruncate(c->fd, 0) < 0)
		log_debug("capture: %s", strerror(errno));
}

int vnet_capture_open(int fd, struct vnet_capture **ret, struct err *e)
{
	struct vnet_capture *c;
	struct stat st;
	int r = load(e);

	if (r < 0) {
		close_fd(fd);
		return r;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		close_fd(fd);
		return err_errno(e, -ENOMEM, "capture");
	}
	c->fd = fd;
	c->file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	c->pcap = lib.pcap_open_dead_with_tstamp_precision(
		DLT_RAW, VNET_PACKET_MAX, PCAP_TSTAMP_PRECISION_NANO);
	c->stream = fopencookie(c, "w", (cookie_io_functions_t){.write = keep});
	if (c->pcap && c->stream)
		c->dumper = lib.pcap_dump_fopen(c->pcap, c->stream);
	if (!c->dumper) {
		if (c->stream)
			fclose(c->stream);
		vnet_capture_close(c);
		return err_errno(e, -ENOMEM, "capture");
	}
	begin_anew(c);
	*ret = c;
	return 0;
}

int vnet_capture_packet(struct vnet_capture *c, const struct vnet_packet *p)
{
	struct pcap_pkthdr h = {.caplen = (bpf_u_int32)p->len, .len = (bpf_u_int32)p->len};
	struct timespec now;

	if (c->waiting.len + p->len > VNET_CAPTURE_WAITING) {
		c->lost++;
		return flush(c) < 0 ? -EPIPE : -ENOBUFS;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	h.ts.tv_sec = now.tv_sec;
	h.ts.tv_usec = now.tv_nsec; /* nanoseconds, as the file's head says */
	lib.pcap_dump((u_char *)c->dumper, &h, p->data);
	if (lib.pcap_dump_flush(c->dumper) < 0)
		return -ENOMEM;
	return flush(c);
}

uint64_t vnet_capture_lost(const struct vnet_capture *c)
{
	return c->lost;
}

int vnet_capture_close(struct vnet_capture *c)
{
	int r;

	if (!c)
		return 0;
	if (c->dumper)
		lib.pcap_dump_close(c->dumper);
	if (c->pcap)
		lib.pcap_close(c->pcap);
	r = flush(c);
	close_fd(c->fd);
	buf_fini(&c->waiting);
	free(c);
	return r;
}

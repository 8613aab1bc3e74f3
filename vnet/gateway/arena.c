// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in arena.h. */
#include "vnet/gateway/arena.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/base.h"

#define ROUND_UP(n) (((n) + 4095) & ~(size_t)4095)

int gateway_arena_new(
	struct gateway_arena **ret, size_t vnat_room, size_t datagram_room, struct err *e)
{
	size_t vnat = ROUND_UP(sizeof(struct gateway_arena)),
	       datagrams = vnat + ROUND_UP(vnat_room), size = datagrams + ROUND_UP(datagram_room);
	struct gateway_arena *a =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (a == MAP_FAILED)
		return err_errno(e, -errno, "the gateway's memory");
	if (getrandom(a->identity, sizeof(a->identity), 0) != sizeof(a->identity)) {
		munmap(a, size);
		return err_errno(e, -EIO, "random numbers");
	}
	a->vnat_offset = vnat;
	a->datagram_offset = datagrams;
	a->size = size;
	a->inner_ns = a->gw_tun = a->gate = a->inner_route = a->inner_rewrite = a->inner_links = -1;
	for (size_t i = 0; i < GATEWAY_POOL; i++)
		a->pool[i] = -1;
	for (size_t i = 0; i < GATEWAY_MAX_PIPES; i++)
		a->pipes[i] = (struct gateway_pipe){.fd = {-1, -1}, .flow = -1};
	*ret = a;
	return 0;
}

void *gateway_arena_vnat(struct gateway_arena *a)
{
	return (char *)a + a->vnat_offset;
}

void *gateway_arena_datagrams(struct gateway_arena *a)
{
	return (char *)a + a->datagram_offset;
}

/* ---- descriptors ------------------------------------------------------------------------- */

void gateway_fds_keep(struct gateway_fds *s, int fd)
{
	if (fd >= 0 && (size_t)fd < s->n)
		s->bits[fd / 8] |= (uint8_t)(1u << (fd % 8));
}

static void keep_session(const struct gateway_session *one, struct gateway_fds *s)
{
	if (one->state == GATEWAY_SESSION_FREE)
		return;
	gateway_fds_keep(s, one->tun);
	gateway_fds_keep(s, one->diag);
	for (size_t i = 0; i < VNET_MAX_PORTS; i++)
		if (one->ports[i].used)
			gateway_fds_keep(s, one->ports[i].fd);
}

void gateway_arena_keep(const struct gateway_arena *a, struct gateway_fds *s)
{
	const int single[] = {0, 1, 2, a->directory, a->listener, a->inner_ns, a->gw_tun, a->gate,
		a->inner_route, a->inner_rewrite, a->inner_links};

	for (size_t i = 0; i < ARRAY_SIZE(single); i++)
		gateway_fds_keep(s, single[i]);
	for (size_t i = 0; i < GATEWAY_POOL; i++)
		gateway_fds_keep(s, a->pool[i]);
	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		keep_session(&a->sessions[i], s);
	for (size_t i = 0; i < GATEWAY_MAX_CONNS; i++)
		if (a->conns[i].used)
			gateway_fds_keep(s, a->conns[i].fd);
	for (size_t i = 0; i < GATEWAY_MAX_FLOWS; i++)
		if (a->flows[i].state != GATEWAY_FLOW_FREE)
			for (int side = 0; side < 2; side++)
				gateway_fds_keep(s, a->flows[i].fd[side]);
	for (size_t i = 0; i < GATEWAY_MAX_PIPES; i++)
		for (int end = 0; end < 2; end++)
			gateway_fds_keep(s, a->pipes[i].fd[end]);
}

int gateway_fds_stray(
	struct gateway_fds *s, void (*stray)(void *ctx, int fd), void *ctx, struct err *e)
{
	_cleanup_closedir_ DIR *d = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (!d)
		return err_errno(e, -errno, "/proc/self/fd");
	while ((entry = readdir(d))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || fd == dirfd(d) || (size_t)fd >= s->n)
			continue;
		if (!(s->bits[fd / 8] & (1u << (fd % 8))))
			stray(ctx, fd);
	}
	return 0;
}

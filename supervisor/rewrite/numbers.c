// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two arrays, one for each direction, indexed by the number itself: the host has at most 4 Mi
 * tasks. Only pages that are written to take memory.
 */
#include "supervisor/rewrite/numbers.h"

#include <stdint.h>
#include <sys/mman.h>

#include "base/base.h"

#define HOST_MAX (4 << 20) /* PID_MAX_LIMIT of the kernel */
#define AGAIN	 300	   /* RESERVED_PIDS: where it begins again */

struct numbers {
	pid_t last;
	_Atomic pid_t host[NUMBERS_MAX];
	_Atomic uint16_t number[HOST_MAX + 1];
};

int numbers_create(struct numbers **ret, struct err *e)
{
	struct numbers *n = mmap(NULL, sizeof(*n), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (n == MAP_FAILED)
		return err_errno(e, -errno, "numbers of tasks");
	*ret = n;
	return 0;
}

void numbers_free(struct numbers *n)
{
	if (n)
		munmap(n, sizeof(*n));
}

pid_t numbers_add(struct numbers *n, pid_t host)
{
	pid_t number = n->last;

	for (int i = 0; i < NUMBERS_MAX; i++) {
		number = number + 1 < NUMBERS_MAX ? number + 1 : AGAIN;
		if (n->host[number])
			continue;
		n->last = number;
		numbers_set(n, number, host);
		return number;
	}
	return -EAGAIN;
}

void numbers_go_on(struct numbers *n, pid_t number)
{
	if (number > 0 && number < NUMBERS_MAX)
		n->last = number;
}

void numbers_set(struct numbers *n, pid_t number, pid_t host)
{
	if (numbers_host(n, number))
		n->number[n->host[number]] = 0;
	n->host[number] = host;
	n->number[host] = (uint16_t)number;
}

void numbers_alias(struct numbers *n, pid_t number, pid_t host)
{
	if (number > 0 && number < NUMBERS_MAX && host > 0 && host <= HOST_MAX && !n->number[host])
		n->number[host] = (uint16_t)number;
}

void numbers_remove(struct numbers *n, pid_t number)
{
	pid_t host = numbers_host(n, number);

	if (!host)
		return;
	n->number[host] = 0;
	n->host[number] = 0;
}

pid_t numbers_host(const struct numbers *n, pid_t number)
{
	return number > 0 && number < NUMBERS_MAX ? n->host[number] : 0;
}

pid_t numbers_virtual(const struct numbers *n, pid_t host)
{
	return host > 0 && host <= HOST_MAX ? n->number[host] : 0;
}

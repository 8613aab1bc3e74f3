// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in place.h. */
#include "supervisor/rewrite/place.h"

void place_follow(struct place *p, pid_t host)
{
	cpu_set_t may;

	if (!p->asked || sched_getaffinity(host, sizeof(may), &may) < 0 ||
		CPU_EQUAL(&may, &p->now))
		return;
	if (sched_setaffinity(0, sizeof(may), &may) == 0)
		p->now = may;
}

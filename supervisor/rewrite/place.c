// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in place.h. */
#include "supervisor/rewrite/place.h"

#include "supervisor/rewrite/tasks.h"

void place_follow(struct place *p, struct task *task)
{
	cpu_set_t may;

	if (!p->asked || task->placed == p->turn ||
		sched_getaffinity(task->host, sizeof(may), &may) < 0)
		return;
	if (!CPU_EQUAL(&may, &p->now)) {
		if (sched_setaffinity(0, sizeof(may), &may) < 0)
			return;
		p->now = may;
		p->turn++;
	}
	task->placed = p->turn;
}

void place_again(struct place *p)
{
	p->turn++;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints the table of base/fault.c: one line a point, for the tests that walk it. */
#include <stdio.h>

#include "base/base.h"

int main(void)
{
	for (int p = 0; p < FAULT_POINT_MAX; p++) {
		const struct fault_info *f = fault_info((enum fault_point)p);

		printf("%s %s %s %s\n", f->name, f->worker ? "worker" : "supervisor",
			f->fails ? "fails" : "dies", f->ways);
	}
	return 0;
}

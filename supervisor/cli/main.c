// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>

int main(void)
{
	fprintf(stderr, "podrun: no command yet\n");
	return 2;
}

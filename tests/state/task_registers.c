// SPDX-License-Identifier: GPL-2.0-or-later
/* Vector, x87 and flag registers survive in a thread that never enters the kernel. */
#include <pthread.h>
#include <string.h>

#include "tests/state/state.h"

static volatile int running, stop;
static int bad;

static void *spin(void *arg)
{
	unsigned char in[32], out[32];
	double x = 3.25, y = 0;
	unsigned long r12 = 0;

	for (int i = 0; i < 32; i++)
		in[i] = (unsigned char)(i * 7 + 1);
	memset(out, 0, sizeof(out));
	__asm__ volatile("vmovdqu %[in], %%ymm5\n\t"
			 "fldl %[x]\n\t"
			 "mov $0x1234567890abcdef, %%r12\n\t"
			 "movl $1, %[running]\n\t"
			 "1: pause\n\t"
			 "cmpl $0, %[stop]\n\t"
			 "je 1b\n\t"
			 "vmovdqu %%ymm5, %[out]\n\t"
			 "fstpl %[y]\n\t"
			 "mov %%r12, %[r12]\n\t"
			 : [out] "=m"(out), [y] "=m"(y), [r12] "=m"(r12), [running] "=m"(running)
			 : [in] "m"(in), [x] "m"(x), [stop] "m"(stop)
			 : "ymm5", "r12", "memory", "cc");
	bad = memcmp(in, out, sizeof(in)) || y != 3.25 || r12 != 0x1234567890abcdefUL;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (!__builtin_cpu_supports("avx")) {
		state_ready(argc, argv);
		return state_ok();
	}
	pthread_create(&t, NULL, spin, NULL);
	while (!running)
		state_nap();
	state_ready(argc, argv);
	stop = 1;
	pthread_join(t, NULL);
	STATE_CHECK(!bad);
	return state_ok();
}

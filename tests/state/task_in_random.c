// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads ask the vDSO for random bytes, which newer C libraries do for getrandom (Linux 6.11), and
 * for so many that they are within it at almost any moment: they get all of them.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "tests/state/state.h"

#define N   2
#define LEN (1024 * 1024)

/* linux/random.h has them only in newer versions. */
struct params {
	uint32_t size, prot, flags, reserved[13];
};
typedef ssize_t ask_fn(void *buf, size_t len, unsigned int flags, void *state, size_t state_len);

static ask_fn *ask;
static bool over;

static void *work(void *arg)
{
	struct params p;
	uint8_t *buf = malloc(LEN);
	void *state;

	STATE_CHECK(buf && ask(NULL, 0, 0, &p, ~0UL) == 0);
	state = mmap(NULL, p.size, (int)p.prot, (int)p.flags, -1, 0);
	STATE_CHECK(state != MAP_FAILED);
	do {
		uint8_t seen = 0;

		memset(buf + LEN - 64, 0, 64);
		STATE_CHECK(ask(buf, LEN, 0, state, p.size) == LEN);
		for (int i = 0; i < 64; i++)
			seen |= buf[LEN - 1 - i];
		STATE_CHECK(seen);
	} while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE));
	free(buf);
	return NULL;
}

int main(int argc, char **argv)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	pthread_t threads[N];

	ask = vdso ? (ask_fn *)(uintptr_t)dlsym(vdso, "__vdso_getrandom") : NULL;
	for (int i = 0; ask && i < N; i++)
		STATE_CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
	state_ready(argc, argv);
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	for (int i = 0; ask && i < N; i++)
		STATE_CHECK(pthread_join(threads[i], NULL) == 0);
	return state_ok();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Locked memory, and other advice that shows in /proc/self/smaps. */
#include <fcntl.h>

#include "tests/state/maps.h"

static int resident(void *p, size_t pages)
{
	unsigned char there[16];
	int n = 0;

	STATE_CHECK(pages <= sizeof(there) && mincore(p, pages * PAGE, there) == 0);
	for (size_t i = 0; i < pages; i++)
		n += there[i] & 1;
	return n;
}

int main(int argc, char **argv)
{
	uint8_t *locked = state_map(4), *dump = state_map(4), *huge = state_map(1024);
	uint8_t *nohuge = state_map(1024), *lazy = state_map(4);
	uint8_t *big = mmap(
		NULL, 1UL << 42, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *none = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int can_huge, told;

	memset(locked, 1, 4 * PAGE);
	STATE_CHECK(mlock(locked, 4 * PAGE) == 0);
	STATE_CHECK(mlock2(lazy, 4 * PAGE, MLOCK_ONFAULT) == 0);
	lazy[0] = 1;
	/* It is locked, and says that it has no pages. */
	STATE_CHECK(none != MAP_FAILED && mprotect(none + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
	none[PAGE] = 7;
	STATE_CHECK(mlock(none, 4 * PAGE) == -1 && errno == ENOMEM && state_has_flag(none, "lo"));
	STATE_CHECK(mlock(none + PAGE, PAGE) == 0 && mlock(none + 2 * PAGE, 2 * PAGE) == -1);
	told = state_has_flag(lazy, "lf"); /* not by Linux 6.1 */
	STATE_CHECK(madvise(dump, 4 * PAGE, MADV_DONTDUMP) == 0);
	can_huge = madvise(huge, 1024 * PAGE, MADV_HUGEPAGE) == 0;
	madvise(nohuge, 1024 * PAGE, MADV_NOHUGEPAGE);
	memset(huge, 5, 1024 * PAGE);
	STATE_CHECK(big != MAP_FAILED && mprotect(big + (1UL << 41), PAGE, 3) == 0);
	big[1UL << 41] = 6;
	state_ready(argc, argv);
	STATE_CHECK(state_all(locked, 1, 4) && state_has_flag(locked, "lo"));
	/* On fault: nobody has touched it, and so nothing is there yet. */
	STATE_CHECK(state_has_flag(lazy, "lo") && (!told || resident(lazy, 4) == 1));
	lazy[2 * PAGE] = 1;
	STATE_CHECK(!told || resident(lazy, 4) == 2);
	STATE_CHECK(state_has_flag(none, "lo") && state_has_flag(none + PAGE, "lo"));
	STATE_CHECK(state_has_flag(none + 2 * PAGE, "lo") && !state_has_flag(none, "lf"));
	STATE_CHECK(none[PAGE] == 7 && resident(none + PAGE, 1) == 1);
	STATE_CHECK(state_has_flag(dump, "dd"));
	STATE_CHECK(!can_huge || state_has_flag(huge, "hg"));
	STATE_CHECK(!can_huge || state_has_flag(nohuge, "nh"));
	STATE_CHECK(state_all(huge, 5, 1024));
	STATE_CHECK(big[1UL << 41] == 6 && state_has_flag(big, "nr"));
	STATE_CHECK(strstr(state_mapping(big), "---p"));
	return state_ok();
}

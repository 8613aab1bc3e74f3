// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * memfds with seals and mappings: one that may not be written any more but is by an older mapping,
 * one that is read through a mapping, a descriptor that only reads, private mappings, a mode.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/state/maps.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define SIZES (F_SEAL_SHRINK | F_SEAL_GROW)

static int make(const char *name)
{
	int fd = memfd_create(name, MFD_ALLOW_SEALING | MFD_CLOEXEC);

	STATE_CHECK(fd >= 0 && ftruncate(fd, 8 * PAGE) == 0);
	return fd;
}

static uint8_t *map(int fd, int prot, int flags)
{
	uint8_t *p = mmap(NULL, 8 * PAGE, prot, flags, fd, 0);

	STATE_CHECK(p != MAP_FAILED);
	return p;
}

static int read_only(int fd)
{
	char link[64];
	int ro;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ro = open(link, O_RDONLY | O_CLOEXEC);
	STATE_CHECK(ro >= 0);
	return ro;
}

int main(int argc, char **argv)
{
	int future = make("future"), fixed = make("fixed"), both = make("both"), plain = make("plain");
	int ro;
	uint8_t *before, *after, *seen, *own, *reads, byte = 0;
	struct stat st;

	/* As Firefox freezes what it has given to others. */
	before = map(future, PROT_READ | PROT_WRITE, MAP_SHARED);
	before[0] = 1;
	STATE_CHECK(fcntl(future, F_ADD_SEALS, SIZES | F_SEAL_FUTURE_WRITE) == 0);
	after = map(read_only(future), PROT_READ, MAP_SHARED);

	/* As a compositor gives out its keymap. */
	STATE_CHECK(pwrite(fixed, "fixed", 5, PAGE) == 5);
	STATE_CHECK(fcntl(fixed, F_ADD_SEALS, SIZES | F_SEAL_WRITE | F_SEAL_SEAL) == 0);
	seen = map(read_only(fixed), PROT_READ, MAP_SHARED);
	own = map(fixed, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	own[PAGE] = 'F';

	/* As Chromium hands out read-only regions. */
	ro = read_only(plain);
	reads = map(ro, PROT_READ, MAP_SHARED);
	STATE_CHECK(pwrite(plain, "plain", 5, 0) == 5);

	/* Mapped both ways, and sealed against any other size. */
	uint8_t *shared = map(both, PROT_READ | PROT_WRITE, MAP_SHARED);
	uint8_t *priv = map(both, PROT_READ | PROT_WRITE, MAP_PRIVATE);

	shared[0] = shared[PAGE] = 5;
	priv[PAGE] = 6;
	STATE_CHECK(fcntl(both, F_ADD_SEALS, SIZES | F_SEAL_SEAL) == 0);
	STATE_CHECK(fchmod(plain, 0640) == 0);

	state_ready(argc, argv);

	STATE_CHECK(fcntl(future, F_GET_SEALS) == (SIZES | F_SEAL_FUTURE_WRITE));
	STATE_CHECK(pwrite(future, "x", 1, 0) == -1 && errno == EPERM);
	before[PAGE] = 2;
	STATE_CHECK(before[0] == 1 && after[0] == 1 && after[PAGE] == 2);
	STATE_CHECK(mprotect(after, PAGE, PROT_READ | PROT_WRITE) == -1);
	STATE_CHECK(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, future, 0) == MAP_FAILED);

	STATE_CHECK(fcntl(fixed, F_GET_SEALS) == (SIZES | F_SEAL_WRITE | F_SEAL_SEAL));
	STATE_CHECK(!memcmp(seen + PAGE, "fixed", 5) && !memcmp(own + PAGE, "Fixed", 5));
	STATE_CHECK(pwrite(fixed, "x", 1, 0) == -1 && errno == EPERM);
	STATE_CHECK(mprotect(seen, PAGE, PROT_READ | PROT_WRITE) == -1);
	own[2 * PAGE] = 1;
	STATE_CHECK(seen[2 * PAGE] == 0);

	STATE_CHECK(!memcmp(reads, "plain", 5));
	STATE_CHECK(mprotect(reads, PAGE, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	STATE_CHECK(pwrite(ro, "x", 1, 0) == -1 && errno == EBADF);
	STATE_CHECK(pwrite(plain, "P", 1, 0) == 1 && reads[0] == 'P');
	STATE_CHECK(fstat(plain, &st) == 0 && (st.st_mode & 07777) == 0640);

	STATE_CHECK(fcntl(both, F_GET_SEALS) == (SIZES | F_SEAL_SEAL));
	STATE_CHECK(ftruncate(both, PAGE) == -1 && errno == EPERM);
	STATE_CHECK(shared[0] == 5 && priv[0] == 5 && priv[PAGE] == 6 && shared[PAGE] == 5);
	shared[2 * PAGE] = 7;
	STATE_CHECK(priv[2 * PAGE] == 7 && pread(both, &byte, 1, 2 * PAGE) == 1 && byte == 7);
	return state_ok();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* memfds: contents, offsets, seals, holes, opened twice, shared with a mapping. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/state/state.h"

#define NOEXEC_SEAL 8	 /* MFD_NOEXEC_SEAL, Linux 6.3 */
#define SEAL_EXEC   0x20 /* F_SEAL_EXEC */

/* What a kernel gives a memfd that is not to be executed; without the seal where it has none. */
static int seals_known(int seals)
{
	int fd = memfd_create("known", NOEXEC_SEAL);

	if (fd < 0)
		return seals & ~SEAL_EXEC;
	close(fd);
	return seals;
}

int main(int argc, char **argv)
{
	int plain = memfd_create("plain", 0), sealed, mapped, again, noexec, seals;
	char buf[64], link[64], *map;
	struct stat st;
	mode_t mode;
	ssize_t n;

	STATE_CHECK(plain >= 0 && write(plain, "contents", 8) == 8);
	STATE_CHECK(ftruncate(plain, 1 << 30) == 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", plain);
	again = open(link, O_RDONLY);
	STATE_CHECK(again >= 0 && lseek(again, 4, SEEK_SET) == 4);
	sealed = memfd_create("sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	STATE_CHECK(sealed >= 0 && write(sealed, "fixed", 5) == 5);
	STATE_CHECK(fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
	noexec = memfd_create("noexec", NOEXEC_SEAL);
	if (noexec < 0)
		noexec = memfd_create("noexec", MFD_ALLOW_SEALING);
	STATE_CHECK(noexec >= 0 && fcntl(noexec, F_ADD_SEALS, F_SEAL_GROW) == 0);
	seals = fcntl(noexec, F_GET_SEALS);
	STATE_CHECK(fstat(noexec, &st) == 0);
	mode = st.st_mode;
	mapped = memfd_create("mapped", 0);
	STATE_CHECK(mapped >= 0 && ftruncate(mapped, 8192) == 0);
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0);
	STATE_CHECK(map != MAP_FAILED);
	strcpy(map + 4096, "by memory");

	state_ready(argc, argv);

	STATE_CHECK(lseek(plain, 0, SEEK_CUR) == 8 && fstat(plain, &st) == 0);
	STATE_CHECK(st.st_size == 1 << 30 && st.st_blocks < 1000);
	STATE_CHECK(pread(plain, buf, 8, 0) == 8 && !memcmp(buf, "contents", 8));
	STATE_CHECK(read(again, buf, 4) == 4 && !memcmp(buf, "ents", 4));
	STATE_CHECK(write(again, "x", 1) == -1 && errno == EBADF);
	STATE_CHECK(pwrite(plain, "C", 1, 4) == 1 && pread(again, buf, 1, 4) == 1 && buf[0] == 'C');
	STATE_CHECK(fcntl(plain, F_GET_SEALS) == F_SEAL_SEAL);
	STATE_CHECK(fcntl(sealed, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
	STATE_CHECK(fcntl(noexec, F_GET_SEALS) == seals_known(seals));
	STATE_CHECK(fstat(noexec, &st) == 0 && st.st_mode == mode);
	STATE_CHECK(pwrite(sealed, "x", 1, 0) == -1 && errno == EPERM);
	STATE_CHECK(pread(sealed, buf, 9, 0) == 5 && !memcmp(buf, "fixed", 5));
	n = readlink(link, buf, sizeof(buf));
	STATE_CHECK(n > 0 && !memcmp(buf, "/memfd:plain (deleted)", (size_t)n));
	STATE_CHECK(!strcmp(map + 4096, "by memory"));
	STATE_CHECK(pwrite(mapped, "by file", 8, 0) == 8 && !strcmp(map, "by file"));
	strcpy(map, "back");
	STATE_CHECK(pread(mapped, buf, 5, 0) == 5 && !strcmp(buf, "back"));
	return state_ok();
}

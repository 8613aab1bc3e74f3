/* SPDX-License-Identifier: GPL-2.0-or-later */
/* maps - what the kernel says about a mapping, for state programs about memory. */
#ifndef TESTS_STATE_MAPS_H
#define TESTS_STATE_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "tests/state/state.h"

#define PAGE 4096UL

/* The line of smaps for the mapping that holds @p, with VmFlags appended.  Static buffer. */
static inline const char *state_mapping(const void *p)
{
	static char found[1024];
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	bool in = false;

	STATE_CHECK(f);
	found[0] = '\0';
	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end;
		char dash;

		if (sscanf(line, "%lx%c%lx ", &start, &dash, &end) == 3 && dash == '-') {
			in = (uintptr_t)p >= start && (uintptr_t)p < end;
			if (in)
				snprintf(found, sizeof(found), "%.500s", line);
		} else if (in && !strncmp(line, "VmFlags:", 8)) {
			strncat(found, line, sizeof(found) - strlen(found) - 1);
		}
	}
	fclose(f);
	return found;
}

/* True if the mapping that holds @p has the two-letter flag @code. */
static inline bool state_has_flag(const void *p, const char *code)
{
	const char *flags = strstr(state_mapping(p), "VmFlags:");
	char word[8];

	snprintf(word, sizeof(word), " %s ", code);
	return flags && strstr(flags, word);
}

/* Anonymous private memory of @n pages, read-write. */
static inline uint8_t *state_map(size_t n)
{
	uint8_t *p = (uint8_t *)mmap(
		NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	STATE_CHECK(p != MAP_FAILED);
	return p;
}

/* True if all of the @n pages at @p hold @byte. */
static inline bool state_all(const void *p, int byte, size_t n)
{
	const uint8_t *b = (const uint8_t *)p;

	for (size_t i = 0; i < n * PAGE; i++)
		if (b[i] != (uint8_t)byte)
			return false;
	return true;
}

/* True if reading @p works. */
static inline bool state_readable(const void *p)
{
	int fd[2];
	bool ok;

	STATE_CHECK(pipe(fd) == 0);
	ok = write(fd[1], p, 1) == 1;
	close(fd[0]);
	close(fd[1]);
	return ok;
}

#endif

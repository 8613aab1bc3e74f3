/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * call - what a program has that has no C library (old.c): system calls, and a way to say what is
 * wrong.
 */
#ifndef TESTS_IMAGES_CALL_H
#define TESTS_IMAGES_CALL_H

#include <stdbool.h>
#include <sys/syscall.h>

#define PATTERN "an old image is read for ever"

/* A group of objects: makes them, and looks at them when the image is resumed. */
struct part {
	void (*set_up)(void);
	void (*look)(void);
};

extern const struct part part_memory, part_files, part_descriptors, part_sockets, part_network, part_ipc,
	part_tasks, part_thread, part_root, part_terminal;
extern char pattern[sizeof(PATTERN)];

/* The result, or -errno. */
long call6(long nr, long a, long b, long c, long d, long e, long f);

static inline long call(long nr, long a, long b, long c, long d)
{
	return call6(nr, a, b, c, d, 0, 0);
}

/* @f begins in a thread of this process, whose stack ends at @top (of 16 bytes); it never returns. */
long begin_thread(void (*f)(void), char *top);

void say(const char *text);
/* Ends everything with "FAIL @what" unless it is @right. */
void check(bool right, const char *what);
bool same(const char *a, const char *b, long n);
/* Until somebody makes /tmp/go. */
void wait_for_go(void);
void end(int status);

/* A read from @fd gives these @n bytes, at most 64, and no more. */
bool reads(int fd, const char *text, long n);
/* The file begins with them; its offset stays. */
bool begins(int fd, const char *text, long n);
int open_at(const char *path, int flags);

#endif

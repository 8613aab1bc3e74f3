/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * restless - a session that is never in the same state for long, and knows what it must hold.
 *
 * Each worker is a process (with children and threads of its own) that changes one sort of thing at
 * random: memory, processes, threads, signals, files, pipes and sockets, queues.  From how often it
 * has changed what follows what all of it must be, and it looks at that as it goes along.  When the
 * board says so each looks at everything it holds, and says so there; who finds anything else than
 * what must be there says "FAIL" with the line, and stays as it is, to be looked at.
 *
 *      restless DIRECTORY SEED         the session
 *      restless DIRECTORY ask          all have looked, and nothing is amiss (exit code 0)
 *      restless DIRECTORY end          the same, and the session ends: it says "ok"
 *
 * What nobody in a session can see is that it runs twice.  So it counts aloud, with each number
 * another random one: whoever reads all that it has said, wherever it was, knows what was said by
 * two.
 */
#ifndef TESTS_TORTURE_RESTLESS_H
#define TESTS_TORTURE_RESTLESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HOLDS(condition)                                        \
	do {                                                    \
		if (!(condition))                               \
			broken(__FILE__, __LINE__, #condition); \
	} while (0)

struct worker {
	const char *name;
	void (*begin)(void);
	void (*step)(void);
	void (*look)(void);
};

extern const struct worker worker_memory, worker_births, worker_executes, worker_threads,
	worker_signals, worker_files, worker_streams, worker_connections, worker_queues,
	worker_beat;

/* Shared by all of a session, in DIRECTORY/board. */
#define N_WORKERS 10
struct board {
	_Atomic uint32_t ask, said[N_WORKERS];
	_Atomic uint32_t end, failed;
};
#define ASK_END	 UINT32_MAX
#define LINE_LEN 16 /* of what it says */

extern const char *self, *directory;
extern struct board *board;

_Noreturn void broken(const char *file, int line, const char *what);
/* A number below @n; each process has its own sequence. */
unsigned any(unsigned n);
void seed_any(unsigned seed);
/* As another process: begins a sequence of its own, and ends with its parent. */
pid_t fork_child(void);
/* Waits for @pid; its status as of wait(2). */
int reap(pid_t pid);
/* Byte @at of stream @which. */
uint8_t byte_of(unsigned which, uint64_t at);
/* Answers the board, when it asks, with all that @look looks at; then naps for a moment. */
void answer(unsigned which, const struct worker *w);
void work(unsigned which);

#endif

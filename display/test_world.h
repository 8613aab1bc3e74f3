/* SPDX-License-Identifier: GPL-2.0-or-later */
/* world - a display server on a picture in memory, for tests that are its viewers. */
#ifndef DISPLAY_TEST_WORLD_H
#define DISPLAY_TEST_WORLD_H

#include <stdint.h>

struct Pb__DisplayHello;

struct world {
	struct event_base *base;
	struct display_memory *source;
	struct display_server *server;
	uint32_t seed;
};

/* What fails in these fails the test. */
void world_init(struct world *w, int width, int height);
void world_fini(struct world *w);
/* A viewer that has said @hello, but for its version: its socket, the caller's. */
int world_connect(struct world *w, struct Pb__DisplayHello *hello);

/* The server is told this time from now on: a film has its frames when the test says so. */
extern uint64_t world_now_ns;
void world_own_clock(struct world *w);
/* 24 bits. */
uint32_t world_random(struct world *w);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * watch_cpu - what the measured processes cost, from each thread's schedstat in /proc (nanoseconds;
 * stat(5) counts ticks, which are longer than most steps).
 */
#ifndef BENCH_DISPLAY_WATCH_CPU_H
#define BENCH_DISPLAY_WATCH_CPU_H

/* Milliseconds of CPU that processes (numbers with commas) have taken, with all their threads. */
double watch_cpu_ms(const char *pids);

#endif

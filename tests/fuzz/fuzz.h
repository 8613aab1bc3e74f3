/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz - what every target has: the function that libFuzzer, or replay.c in its place, calls.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

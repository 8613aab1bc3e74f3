// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A line of a rate, a delay and endless room for what waits, and a viewer that acknowledges: how
 * much stands in it.
 */
#include "display/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#define MS 1000000ull

struct line {
	uint64_t bytes_per_ms, delay_ms;
	uint64_t queued; /* bytes that wait in front of the line */
	struct {
		uint64_t at_ms, behind; /* when acknowledged; bytes through before it leaves */
		uint32_t serial;
	} acks[256];
	unsigned first, n;
	uint64_t through, worst;
};

static void mark(struct display_pace *p, struct line *l, uint64_t ms)
{
	unsigned i = (l->first + l->n++) % 256;

	assert_true(l->n < 256);
	l->acks[i].serial = display_pace_mark(p, ms * MS);
	l->acks[i].behind = l->through + l->queued;
	l->acks[i].at_ms = 0;
}

/* A millisecond: what may be sent is, the line takes its share, and answers arrive. */
static void tick(struct display_pace *p, struct line *l, uint64_t ms)
{
	while (display_pace_room(p)) {
		display_pace_sent(p, 1000);
		l->queued += 1000;
		if (display_pace_due(p))
			mark(p, l, ms);
	}
	if (display_pace_due(p))
		mark(p, l, ms);
	l->worst = MAX(l->worst, l->queued);
	l->through += MIN(l->queued, l->bytes_per_ms);
	l->queued -= MIN(l->queued, l->bytes_per_ms);
	for (unsigned i = 0; i < l->n; i++) {
		unsigned k = (l->first + i) % 256;

		if (!l->acks[k].at_ms && l->acks[k].behind <= l->through)
			l->acks[k].at_ms = ms + l->delay_ms;
	}
	while (l->n && l->acks[l->first].at_ms && l->acks[l->first].at_ms <= ms) {
		display_pace_ack(p, l->acks[l->first].serial, ms * MS);
		l->first = (l->first + 1) % 256;
		l->n--;
	}
}

static void test_lines(void **state)
{
	static const struct {
		uint64_t rate, delay;
	} lines[] = {{125, 10}, {125, 60}, {1250, 10}, {1250, 60}, {12500, 2}, {12500, 120}};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct line l = {.bytes_per_ms = lines[i].rate, .delay_ms = lines[i].delay};
		struct display_pace p;
		uint64_t ms, at_half;

		display_pace_init(&p);
		/* The first mark's answer says that there are answers. */
		display_pace_sent(&p, 1000);
		display_pace_ack(&p, display_pace_mark(&p, MS), (1 + lines[i].delay) * MS);
		for (ms = 1 + lines[i].delay; ms < 15000; ms++)
			tick(&p, &l, ms);
		l.worst = 0;
		at_half = l.through;
		for (; ms < 30000; ms++)
			tick(&p, &l, ms);
		/* Nearly all of the line is used, and little waits: a fifth of a second at most. */
		assert_true((l.through - at_half) * 10 > lines[i].rate * 15000 * 9);
		assert_true(l.worst < lines[i].rate * 200 + (64 << 10));
	}
}

static void test_never_answered(void **state)
{
	struct display_pace p;

	display_pace_init(&p);
	for (int i = 0; i < 1000; i++) {
		assert_true(display_pace_room(&p) > 100000);
		display_pace_sent(&p, 100000);
		if (display_pace_due(&p))
			display_pace_mark(&p, (uint64_t)i * MS);
	}
	assert_true(display_pace_idle(&p));
}

/* Answers that nobody asked for change nothing. */
static void test_lies(void **state)
{
	struct display_pace p;

	display_pace_init(&p);
	for (uint32_t i = 0; i < 1000; i++)
		display_pace_ack(&p, i * 7, i);
	assert_false(p.answered);
	display_pace_sent(&p, 50000);
	display_pace_mark(&p, 5);
	display_pace_ack(&p, 2, 6);
	display_pace_ack(&p, 1, 4);
	assert_false(p.answered);
	display_pace_ack(&p, 1, 7);
	assert_true(p.answered);
	assert_true(display_pace_idle(&p));
	display_pace_ack(&p, 1, 8);
	assert_int_equal(p.acked, 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_never_answered),
		cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* modes: what programs write, and what puts a terminal back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "supervisor/modes.h"

static void expect(const char *written, const char *leave, const char *enter)
{
	size_t n = strlen(written);

	/* cut anywhere */
	for (size_t cut = 0; cut <= n; cut++) {
		_cleanup_buf_ struct buf left = BUF_INIT, entered = BUF_INIT, again = BUF_INIT;
		struct modes m = {0}, other = {0};

		modes_feed(&m, written, cut);
		modes_feed(&m, written + cut, n - cut);
		modes_leave(&m, &left);
		modes_enter(&m, &entered);
		assert_string_equal(buf_cstr(&left), leave);
		assert_string_equal(buf_cstr(&entered), enter);
		/* Whoever is led there is led there. */
		modes_feed(&other, entered.data, entered.len);
		modes_enter(&other, &again);
		assert_string_equal(buf_cstr(&again), enter);
		/* What was put back needs nothing more. */
		modes_feed(&m, left.data, left.len);
		buf_clear(&left);
		modes_leave(&m, &left);
		assert_int_equal(left.len, 0);
	}
}

static void nothing_for_nothing(void **state)
{
	expect("", "", "");
	expect("text\r\n\033[32mgreen\033[0m \033[1;31mred\033[m", "", "");
	expect("\033[2J\033[10;20H\0337\0338\033(B", "", "");
	expect("\033[?1049h\033[?25l\033[?7l\033[?12h\033[?1049l\033[?25;7h", "", "");
	expect("\033[?47h\033[?1049l", "", "");
	expect("\033[?1049h\033[?1000h\033[5;9r\033c", "", "");
}

static void what_is_on(void **state)
{
	expect("\033[?1049h\033[22;0;0t\033[?1h\033=\033[?2004h\033[?25l",
		"\033>\033[?2004l\033[?25h\033[?1l\033[?1049l",
		"\033[?1049h\033[?1h\033[?25l\033[?2004h\033=");
	expect("\033[?1002;1006h\033[?7l", "\033[?1006l\033[?1002l\033[?7h",
		"\033[?7l\033[?1002h\033[?1006h");
	expect("\033[1;31mred\033[5;10r", "\033[m\0337\033[r\0338", "");
	expect("\033[>4;2m\033[>1u", "\033[=0u\033[>4m", "\033[>4;2m\033[=1u");
	expect("\033[>5u\033[>1u\033[<u", "\033[=0u", "\033[=1u");
	expect("\033[>5u\033[>1u\033[<2u\033[u", "", "");
	expect("\033[?25l\033[?1000h\033[!p", "\033[?1000l", "\033[?1000h");
}

static void what_is_none(void **state)
{
	expect("\033]0;a title [?25l\033\\text", "", "");
	expect("\033]0;a title [?25l\atext\033[?25l", "\033[?25h", "\033[?25l");
	expect("\033P[?1049h\033\\\033_Gdata[?9h\033\\", "", "");
	expect("\033[?25\033[?1l\033[?;l\033[?25$p\033[h\033[l\033[?1$", "", "");
	expect("\033[u\033[<9u\033[>0m", "", "");
}

static void any_bytes(void **state)
{
	static const char some[] = "\033\033\033[[?>=<;:0123456789hlmrup\\]P_!\a $ABC";
	struct modes m = {0};
	char piece[256];

	srandom(1);
	for (int i = 0; i < 20000; i++) {
		_cleanup_buf_ struct buf out = BUF_INIT;

		for (size_t k = 0; k < sizeof(piece); k++)
			piece[k] = random() % 50 ? some[random() % (sizeof(some) - 1)]
						 : (char)random();
		if (i % 10 == 0)
			memset(piece, '1', sizeof(piece) / 2);
		modes_feed(&m, piece, sizeof(piece));
		modes_leave(&m, &out);
		modes_enter(&m, &out);
		assert_true(out.len < 512);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_for_nothing),
		cmocka_unit_test(what_is_on),
		cmocka_unit_test(what_is_none),
		cmocka_unit_test(any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

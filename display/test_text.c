// SPDX-License-Identifier: GPL-2.0-or-later
/* Text, as others write it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/text.h"

static void becomes(
	void (*put)(struct buf *, const void *, size_t), const char *from, const char *to)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	put(&b, from, strlen(from));
	assert_string_equal(buf_cstr(&b), to);
}

static void lines(void **state)
{
	becomes(display_text_put_lf, "", "");
	becomes(display_text_put_lf, "a\r\nb\nc\r\n\r\n", "a\nb\nc\n\n");
	becomes(display_text_put_lf, "\r\r\na\rb\r", "\r\na\rb\r");
	becomes(display_text_put_crlf, "", "");
	becomes(display_text_put_crlf, "a\nb\r\nc\n\n", "a\r\nb\r\nc\r\n\r\n");
	becomes(display_text_put_crlf, "\na\rb\r", "\r\na\rb\r");
}

static void latin1(void **state)
{
	becomes(display_text_put_latin1, "Gr\xc3\xbc\xc3\x9f" "e", "Gr\xfc\xdf" "e");
	becomes(display_text_put_latin1, "\xe2\x82\xac 5, \xf0\x9f\x99\x82", "? 5, ?");
	becomes(display_text_put_latin1, "cut off \xc3", "cut off ?");
	becomes(display_text_put_utf8, "Gr\xfc\xdf" "e\n", "Gr\xc3\xbc\xc3\x9f" "e\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(latin1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

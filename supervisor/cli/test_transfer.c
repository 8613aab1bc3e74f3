// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/cli/transfer.h"

#define CHUNK "\3\0\0\0abc"

/* What becomes of an image of which @len bytes of @data come, and then nothing more or the end. */
static int receive(const char *data, size_t len, bool ends, char taken[16])
{
	int in[2], out[2], r;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(write(in[1], data, len), len);
	if (ends)
		in[1] = close_fd(in[1]);
	r = transfer_receive_image(in[0], out[1], 1);
	memset(taken, 0, 16);
	(void)!read(out[0], taken, 15);
	close(in[0]);
	close_fd(in[1]);
	close(out[0]);
	close(out[1]);
	return r;
}

static void image_comes(void **state)
{
	static const char whole[] = CHUNK CHUNK "\0\0\0";
	char taken[16];

	assert_int_equal(receive(whole, sizeof(whole), false, taken), 0);
	assert_string_equal(taken, "abcabc");
	assert_int_equal(receive("\0\0\1\1", 4, false, taken), -EBADMSG);
}

/* Wherever it stops, that is heard of, whether the line has an end or not. */
static void image_stops(void **state)
{
	static const char whole[] = CHUNK CHUNK "\0\0\0";

	for (size_t n = 0; n < sizeof(whole); n++) {
		char taken[16];

		assert_int_equal(receive(whole, n, true, taken), -ECONNRESET);
		assert_int_equal(receive(whole, n, false, taken), -ETIMEDOUT);
		assert_int_equal(strlen(taken), n / 7 * 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(image_comes),
		cmocka_unit_test(image_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

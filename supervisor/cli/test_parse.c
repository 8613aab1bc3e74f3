// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>

#include "supervisor/cli/cli.h"

struct test_options {
	bool flag, other;
	const char *text, *way, *maybe;
	struct cli_list list;
	uint64_t number, size;
};

#define AT(member) offsetof(struct test_options, member)
static const struct cli_option options[] = {
	{"flag", 'f', NULL, "", CLI_FLAG, AT(flag)},
	{"other", 'x', NULL, "", CLI_FLAG, AT(other)},
	{"text", 't', "TEXT", "", CLI_STRING, AT(text)},
	{"way", 0, "keep|reset", "", CLI_CHOICE, AT(way)},
	{"maybe", 0, "WHAT", "", CLI_MAYBE, AT(maybe)},
	{"list", 'l', "ITEM", "", CLI_LIST, AT(list)},
	{"number", 0, "N", "", CLI_NUMBER, AT(number)},
	{"size", 0, "SIZE", "", CLI_SIZE, AT(size)},
	{"later", 0, NULL, "not built yet", CLI_REFUSED, 0},
};

static const struct cli_command command = {
	.name = "test",
	.usage = "...",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.stop_at_operand = true,
	.max_operands = -1,
};

/* Parses the words of @line; the operands are left in @argv. */
static int parse(const char *line, struct test_options *o, char **argv, int *ret_argc, struct err *e)
{
	static char copy[256];
	int n = 0;

	*o = (struct test_options){0};
	*e = (struct err){0};
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[n++] = word;
	argv[n] = NULL;
	return cli_parse(&command, o, n, argv, ret_argc, e);
}

static void options_are_parsed(void **state)
{
	struct test_options o;
	struct err e;
	char *argv[32];
	int n;

	assert_int_equal(parse("-fx --text=a -l 1 -l2 --size 2M --number 7 cmd -f --", &o, argv, &n, &e),
		0);
	assert_true(o.flag && o.other);
	assert_string_equal(o.text, "a");
	assert_int_equal(o.list.n, 2);
	assert_string_equal(o.list.items[1], "2");
	assert_int_equal(o.size, 2 << 20);
	assert_int_equal(o.number, 7);
	assert_int_equal(n, 3);
	assert_string_equal(argv[1], "-f");
	cli_free_options(&command, &o);
	assert_int_equal(parse("--flag=no -- --text", &o, argv, &n, &e), 0);
	assert_false(o.flag);
	assert_int_equal(n, 1);
	assert_string_equal(argv[0], "--text");
}

static void choices_are_told(void **state)
{
	static const char *const wrong[] = {"--way=", "--way kee", "--way keepx", "--way reset|",
		"--way keep|reset", "--way |"};
	struct test_options o;
	struct err e;
	char *argv[32];
	int n;

	assert_int_equal(parse("--way=keep", &o, argv, &n, &e), 0);
	assert_string_equal(o.way, "keep");
	assert_int_equal(parse("--way reset", &o, argv, &n, &e), 0);
	assert_string_equal(o.way, "reset");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(parse(wrong[i], &o, argv, &n, &e), -EINVAL);
		assert_int_equal(e.class, ERR_USAGE);
		assert_non_null(strstr(e.msg, "keep|reset"));
	}
	assert_int_equal(parse("--size 1X", &o, argv, &n, &e), -EINVAL);
	assert_string_equal(e.msg, "--size: '1X' is not valid here: it takes SIZE");
}

static void values_may_be_left_out(void **state)
{
	struct test_options o;
	struct err e;
	char *argv[32];
	int n;

	assert_int_equal(parse("cmd", &o, argv, &n, &e), 0);
	assert_null(o.maybe);
	assert_int_equal(parse("--maybe cmd", &o, argv, &n, &e), 0);
	assert_string_equal(o.maybe, "");
	assert_int_equal(n, 1);
	assert_int_equal(parse("--maybe=640x480", &o, argv, &n, &e), 0);
	assert_string_equal(o.maybe, "640x480");
}

static void wrong_ones_are_refused(void **state)
{
	static const struct {
		const char *line;
		enum err_class class;
	} wrong[] = {{"--no-such", ERR_USAGE}, {"-q", ERR_USAGE}, {"--text", ERR_USAGE},
		{"--number x", ERR_USAGE}, {"--size 1X", ERR_USAGE}, {"--size 99999999999T", ERR_USAGE},
		{"--flag=maybe", ERR_USAGE}, {"--later", ERR_HOST}, {"--number -1", ERR_USAGE}};
	struct test_options o;
	struct err e;
	char *argv[32];
	int n;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_true(parse(wrong[i].line, &o, argv, &n, &e) < 0);
		assert_int_equal(e.class, wrong[i].class);
		cli_free_options(&command, &o);
	}
}

static void a_command_may_take_nothing(void **state)
{
	const struct cli_command plain = {.name = "plain"};
	struct test_options o = {0};
	struct err e = {0};
	char word[] = "word", *argv[] = {word, NULL};
	int n;

	assert_true(cli_parse(&plain, &o, 1, argv, &n, &e) < 0);
	assert_string_equal(e.msg, "usage: podrun plain");
}

static void signals_have_names(void **state)
{
	struct err e = {0};

	assert_int_equal(cli_parse_signal("TERM", &e), SIGTERM);
	assert_int_equal(cli_parse_signal("sigusr1", &e), SIGUSR1);
	assert_int_equal(cli_parse_signal("9", &e), 9);
	assert_int_equal(cli_parse_signal("SIGRTMIN+3", &e), SIGRTMIN + 3);
	assert_int_equal(cli_parse_signal("rtmin", &e), SIGRTMIN);
	assert_int_equal(cli_parse_signal("RTMAX-1", &e), SIGRTMAX - 1);
	assert_true(cli_parse_signal("RTMIN+", &e) < 0);
	assert_true(cli_parse_signal("RTMIN-1", &e) < 0);
	assert_true(cli_parse_signal("RTMAX+1", &e) < 0);
	assert_true(cli_parse_signal("RTMIN+31", &e) < 0);
	assert_true(cli_parse_signal("NONE", &e) < 0);
	assert_true(cli_parse_signal("0", &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_parsed),
		cmocka_unit_test(choices_are_told),
		cmocka_unit_test(values_may_be_left_out),
		cmocka_unit_test(wrong_ones_are_refused),
		cmocka_unit_test(a_command_may_take_nothing),
		cmocka_unit_test(signals_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

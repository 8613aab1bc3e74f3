// SPDX-License-Identifier: GPL-2.0-or-later
/* What is printed in the same way by all commands: errors, tables, times, sizes. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <string.h>
#include <time.h>

#include "supervisor/cli/cli.h"

void cli_print_error(const struct err *e)
{
	fflush(stdout);
	fputs("podrun: ", stderr);
	text_put(stderr, e->msg);
	if (e->hint[0]) {
		fputs("\nhint: ", stderr);
		text_put(stderr, e->hint);
	}
	putc('\n', stderr);
}

int cli_tell_begun(const char *name, struct err *e)
{
	int error;

	printf("%s\n", name);
	if (fflush(stdout) == 0)
		return 0;
	error = -errno;
	__fpurge(stdout);
	clearerr(stdout);
	if (error == -EBADF || error == -EPIPE)
		return 0;
	return err_errno(e, error, "'%s' is running, but its name can't be written", name);
}

void cli_table_add(struct cli_table *t, const char *fmt, ...)
{
	va_list ap;
	char *cell;
	int r;

	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		char **grown = realloc(t->cells, cap * sizeof(*grown));

		if (!grown)
			return;
		t->cells = grown;
		t->cap = cap;
	}
	va_start(ap, fmt);
	r = vasprintf(&cell, fmt, ap);
	va_end(ap);
	if (r >= 0)
		t->cells[t->n++] = cell;
}

void cli_table_print(struct cli_table *t, FILE *out)
{
	for (size_t i = 0; i < t->n; i++) {
		size_t column = i % t->columns, width = 0;

		for (size_t k = column; k < t->n; k += t->columns)
			width = MAX(width, strlen(t->cells[k]));
		if (column == t->columns - 1)
			fprintf(out, "%s\n", t->cells[i]);
		else
			fprintf(out, "%-*s  ", (int)width, t->cells[i]);
	}
	while (t->n)
		free(t->cells[--t->n]);
	free(take_ptr(t->cells));
	t->cap = 0;
}

void cli_ago(int64_t when, char *ret, size_t size)
{
	static const struct {
		int64_t seconds;
		const char *unit;
	} units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
	int64_t passed = MAX((int64_t)time(NULL) - when, (int64_t)0);

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		int64_t n = passed / units[i].seconds;

		if (n) {
			snprintf(ret, size, "%" PRId64 " %s%s ago", n, units[i].unit,
				n == 1 ? "" : "s");
			return;
		}
	}
	snprintf(ret, size, "now");
}

void cli_bytes(uint64_t bytes, char *ret, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)bytes;
	size_t i = 0;

	for (; v >= 1024 && i + 1 < ARRAY_SIZE(units); i++)
		v /= 1024;
	snprintf(ret, size, i ? "%.1f %s" : "%.0f %s", v, units[i]);
}

void cli_say_note(const char *note)
{
	if (!note[0])
		return;
	fputs("podrun: ", stderr);
	text_put(stderr, note); /* it may be another host's */
	putc('\n', stderr);
}

void cli_lacking(struct buf *b, const char *lacking, const char *root)
{
	if (!lacking[0])
		return;
	buf_printf(b, "no %s on this host: names are rewritten, and the network is the host's",
		lacking);
	if (root[0])
		buf_printf(b, "; what the session writes below %s is written there", root);
	buf_printf(b, " (podrun check)");
}

void cli_say_lacking(const char *lacking, const char *root)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	cli_lacking(&b, lacking, root);
	if (b.len && buf_cstr(&b))
		cli_say_note(buf_cstr(&b));
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/rows/rows.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

pid_t row_self, row_child;

static const struct {
	const struct row *rows;
	const size_t *n;
	bool of_users;
} tables[] = {
	{number_rows, &n_number_rows, false},
	{owner_rows, &n_owner_rows, false},
	{name_rows, &n_name_rows, false},
	{clock_rows, &n_clock_rows, false},
	{other_rows, &n_other_rows, false},
	{user_rows, &n_user_rows, true},
};

static int list(void)
{
	for (size_t k = 0; k < N(tables); k++)
		for (size_t i = 0; i < *tables[k].n; i++)
			printf("%d %u\n", tables[k].rows[i].nr, tables[k].rows[i].value);
	return 0;
}

/* Each in a process of its own: what it leaves behind is nobody's. */
static void run_one(const struct row *row)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		row_self = getpid();
		row_child = fork();
		if (row_child == 0)
			for (;;)
				pause();
		alarm(30);
		row->run();
		/* Gone, and not about to be: a row may be about all that the user has. */
		kill(row_child, SIGKILL);
		waitpid(row_child, NULL, 0);
		_exit(0);
	}
	ROW_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	if (status == 0)
		return;
	printf("FAIL: call %d value %#x ended with %#x\n", row->nr, row->value, status);
	exit(1);
}

int main(int argc, char **argv)
{
	bool of_users = argc > 1 && strcmp(argv[1], "--users") == 0;
	size_t n = 0;

	if (argc > 1 && strcmp(argv[1], "--list") == 0)
		return list();
	for (int i = 2; i < 4 && argc == 4; i++)
		row_since[i - 2] = strtoll(argv[i], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t k = 0; k < N(tables); k++)
		for (size_t i = 0; i < *tables[k].n && tables[k].of_users == of_users; i++, n++)
			if (!row_since[0] || tables[k].rows == clock_rows)
				run_one(&tables[k].rows[i]);
	printf("%zu rows ok\n", n);
	if (!row_since[0])
		kill(-1, SIGKILL);
	return 0;
}

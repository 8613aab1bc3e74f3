// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/rows/rows.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "supervisor/policy/policy.h"

pid_t row_self, row_child;

static const struct {
	const struct row *rows;
	const size_t *n;
} tables[] = {
	{number_rows, &n_number_rows},
	{owner_rows, &n_owner_rows},
	{name_rows, &n_name_rows},
};

#define CLASSES (NAMES_BIT(NAMES_PID) | NAMES_BIT(NAMES_IPC) | NAMES_BIT(NAMES_FILE))

static bool has(int nr, uint32_t value)
{
	for (size_t k = 0; k < N(tables); k++)
		for (size_t i = 0; i < *tables[k].n; i++)
			if (tables[k].rows[i].nr == nr && tables[k].rows[i].value == value)
				return true;
	printf("no test for %s (%d) %#x\n", policy_find(nr)->name, nr, value);
	return false;
}

static int check_table(void)
{
	bool all = true;

	for (size_t i = 0; i < policy_n_translated; i++)
		if (NAMES_BIT(policy_translated[i].class) & CLASSES)
			all &= has(policy_translated[i].nr, CALL);
	/* What a rule lets pass is a matter of speed. */
	for (size_t i = 0; i < policy_n_rules; i++)
		if (policy_rules[i].names & CLASSES && policy_rules[i].action != POLICY_ALLOW)
			all &= has(policy_rules[i].nr, policy_rules[i].value);
	return all ? 0 : 1;
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
		kill(row_child, SIGKILL);
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
	size_t n = 0;

	if (argc > 1 && strcmp(argv[1], "--table") == 0)
		return check_table();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t k = 0; k < N(tables); k++)
		for (size_t i = 0; i < *tables[k].n; i++, n++)
			run_one(&tables[k].rows[i]);
	printf("%zu rows ok\n", n);
	kill(-1, SIGKILL);
	return 0;
}

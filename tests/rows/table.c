// SPDX-License-Identifier: GPL-2.0-or-later
/* Has a program rows for all that the policy's tables name a class for?  (tests/rows/rows.h) */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/policy/policy.h"
#include "tests/rows/rows.h"

#define USERS	NAMES_BIT(NAMES_USER)
#define CLASSES (NAMES_BIT(NAMES_PID) | NAMES_BIT(NAMES_IPC) | NAMES_BIT(NAMES_FILE) | \
		 NAMES_BIT(NAMES_TIME) | USERS)
#define MOST	1024

static struct {
	int nr;
	uint32_t value;
} rows[MOST];
static size_t n_rows;

static bool read_rows(const char *program)
{
	char command[4096];
	FILE *f;

	snprintf(command, sizeof(command), "'%s' --list", program);
	f = popen(command, "r");
	while (f && n_rows < MOST && fscanf(f, "%d %u", &rows[n_rows].nr, &rows[n_rows].value) == 2)
		n_rows++;
	return f && pclose(f) == 0 && n_rows > 0;
}

static bool has(int nr, const char *name, uint32_t value)
{
	for (size_t i = 0; i < n_rows; i++)
		if (rows[i].nr == nr && rows[i].value == value)
			return true;
	printf("no test for %s (%d) %#x\n", name, nr, value);
	return false;
}

static bool has_rules(int nr, const char *name, int like, const struct policy_rule *rules, size_t n)
{
	bool all = true;

	/* What a rule lets pass is a matter of speed. */
	for (size_t i = 0; i < n; i++)
		if (rules[i].nr == like && rules[i].names & CLASSES &&
			rules[i].action != POLICY_ALLOW)
			all &= has(nr, name, rules[i].value);
	return all;
}

static bool check_64(void)
{
	bool all = true;

	for (size_t i = 0; i < policy_n_calls; i++) {
		int nr = policy_calls[i].nr;
		const char *name = policy_calls[i].name;

		if (policy_find_translated(nr, CLASSES) || policy_calls[i].names & USERS)
			all &= has(nr, name, CALL);
		all &= has_rules(nr, name, nr, policy_rules, policy_n_rules);
	}
	return all;
}

static bool check_32(void)
{
	const unsigned classes = CLASSES | POLICY_CLASSES32;
	bool all = true;

	for (int nr = 0; nr < 512; nr++) {
		const struct policy_call32 *own = policy_find32(nr);
		int like = policy_number64(nr);
		const char *name = own	       ? own->name
				   : like >= 0 ? policy_find(like)->name
					       : "nothing";

		if (policy_find_translated32(nr, classes) ||
			(like >= 0 && (policy_find_translated(like, classes) ||
					      policy_find(like)->names & USERS)))
			all &= has(nr, name, CALL);
		all &= has_rules(nr, name, nr, policy_rules32, policy_n_rules32);
		if (like >= 0)
			all &= has_rules(nr, name, like, policy_rules, policy_n_rules);
	}
	return all;
}

int main(int argc, char **argv)
{
	if (argc != 3 || !read_rows(argv[1]))
		return 2;
	return (strcmp(argv[2], "i386") == 0 ? check_32() : check_64()) ? 0 : 1;
}

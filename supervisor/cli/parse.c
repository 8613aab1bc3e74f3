// SPDX-License-Identifier: GPL-2.0-or-later
/* Command lines, by tables: each option's row says which field of the command's struct it sets. */
#include <ctype.h>
#include <signal.h>
#include <string.h>

#include "supervisor/cli/cli.h"

static const struct cli_option *find_long(const struct cli_command *cmd, const char *name, size_t n)
{
	for (size_t i = 0; i < cmd->n_options; i++)
		if (strlen(cmd->options[i].name) == n && strncmp(cmd->options[i].name, name, n) == 0)
			return &cmd->options[i];
	return NULL;
}

static const struct cli_option *find_letter(const struct cli_command *cmd, char letter)
{
	for (size_t i = 0; i < cmd->n_options; i++)
		if (cmd->options[i].letter == letter)
			return &cmd->options[i];
	return NULL;
}

int cli_parse_number(const char *text, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

int cli_parse_size(const char *text, uint64_t *ret)
{
	static const char units[] = "kmgt";
	uint64_t v;
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	if (*end && (unit = strchr(units, tolower((unsigned char)*end)))) {
		unsigned shift = 10 * ((unsigned)(unit - units) + 1);

		if (v > UINT64_MAX >> shift)
			return -EINVAL;
		v <<= shift;
		end++;
	}
	if (*end == 'b' || *end == 'B')
		end++;
	*ret = v;
	return *end ? -EINVAL : 0;
}

/* RTMIN, RTMIN+N, RTMAX, RTMAX-N; 0 for what is none of these. */
static int real_time(const char *name)
{
	bool from_least = strncasecmp(name, "RTMIN", 5) == 0;
	uint64_t n = 0;

	if (!from_least && strncasecmp(name, "RTMAX", 5) != 0)
		return 0;
	if (name[5] && (name[5] != (from_least ? '+' : '-') || cli_parse_number(name + 6, &n) < 0))
		return 0;
	if (n > (uint64_t)(SIGRTMAX - SIGRTMIN))
		return 0;
	return from_least ? SIGRTMIN + (int)n : SIGRTMAX - (int)n;
}

int cli_parse_signal(const char *text, struct err *e)
{
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	uint64_t number;

	if (cli_parse_number(text, &number) == 0 && number > 0 && number <= (uint64_t)SIGRTMAX)
		return (int)number;
	for (int i = 1; i < NSIG; i++)
		if (sigabbrev_np(i) && strcasecmp(sigabbrev_np(i), name) == 0)
			return i;
	if (real_time(name))
		return real_time(name);
	return err_set(e, ERR_USAGE, -EINVAL, "no signal '%s'", text);
}

static int parse_flag(const char *value, bool *ret)
{
	static const char *const yes[] = {"yes", "true", "1", "on"}, *const no[] = {"no", "false", "0",
		"off"};

	*ret = !value;
	for (size_t i = 0; value && i < ARRAY_SIZE(yes); i++) {
		if (strcmp(value, yes[i]) == 0) {
			*ret = true;
			return 0;
		}
		if (strcmp(value, no[i]) == 0)
			return 0;
	}
	return value ? -EINVAL : 0;
}

static int append(struct cli_list *l, const char *value)
{
	const char **grown = realloc(l->items, (l->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	l->items = grown;
	l->items[l->n++] = value;
	return 0;
}

int cli_not_valid(const char *option, const char *value, const char *takes, struct err *e)
{
	return err_set(e, ERR_USAGE, -EINVAL, "%s: '%.64s' is not valid here: it takes %s", option,
		value, takes);
}

/* Whether @value is one of the words of @choices, which bars part. */
static bool is_one_of(const char *value, const char *choices)
{
	size_t n = strlen(value);

	for (const char *at = choices;; at++) {
		size_t word = strcspn(at, "|");

		if (word == n && memcmp(at, value, n) == 0)
			return true;
		at += word;
		if (!*at)
			return false;
	}
}

/* @spelled is for messages: "--tty", "work.session:3: tty". */
static int store(const struct cli_option *o, void *target, const char *value, const char *spelled,
	struct err *e)
{
	void *slot = (char *)target + o->offset;
	int r = 0;

	if (o->type == CLI_REFUSED)
		return err_set(e, ERR_HOST, -EOPNOTSUPP, "%s: %s", spelled, o->help);
	if (o->arg && !value && o->type != CLI_MAYBE)
		return err_set(e, ERR_USAGE, -EINVAL, "%s needs a value (%s)", spelled, o->arg);
	switch (o->type) {
	case CLI_FLAG:
		r = parse_flag(value, slot);
		break;
	case CLI_STRING:
		*(const char **)slot = value;
		break;
	case CLI_CHOICE:
		r = is_one_of(value, o->arg) ? 0 : -EINVAL;
		*(const char **)slot = value;
		break;
	case CLI_MAYBE:
		*(const char **)slot = value ? value : "";
		break;
	case CLI_LIST:
		r = append(slot, value);
		break;
	case CLI_NUMBER:
		r = cli_parse_number(value, slot);
		break;
	case CLI_SIZE:
		r = cli_parse_size(value, slot);
		break;
	case CLI_REFUSED:
		break;
	}
	if (r == -ENOMEM)
		return err_errno(e, r, "%s", spelled);
	return r < 0 ? cli_not_valid(spelled, value, o->arg ? o->arg : "yes|no", e) : 0;
}

int cli_set(const struct cli_command *cmd, void *o, const char *name, const char *value,
	const char *where, struct err *e)
{
	const struct cli_option *option = find_long(cmd, name, strlen(name));
	char spelled[160];

	snprintf(spelled, sizeof(spelled), "%s: %s", where, name);
	if (!option)
		return err_set(e, ERR_USAGE, -EINVAL, "%s: no such option", spelled);
	return store(option, o, value, spelled, e);
}

void cli_free_options(const struct cli_command *cmd, void *o)
{
	for (size_t i = 0; o && i < cmd->n_options; i++)
		if (cmd->options[i].type == CLI_LIST) {
			struct cli_list *l = (struct cli_list *)((char *)o + cmd->options[i].offset);

			free(take_ptr(l->items));
			l->n = 0;
		}
}

static int unknown(const struct cli_command *cmd, const char *what, struct err *e)
{
	err_set(e, ERR_USAGE, -EINVAL, "%s: no option %s", cmd->name, what);
	return err_hint(e, "podrun help %s", cmd->name);
}

/* Its value may be the argument behind it. */
static bool takes_next(const struct cli_option *o)
{
	return o->arg && o->type != CLI_REFUSED && o->type != CLI_MAYBE;
}

/* "--name=value" or "--name value"; returns how many arguments it took. */
static int parse_long(const struct cli_command *cmd, void *o, char **argv, struct err *e)
{
	const char *name = argv[0] + 2, *equals = strchr(name, '=');
	size_t n = equals ? (size_t)(equals - name) : strlen(name);
	const struct cli_option *option = find_long(cmd, name, n);
	const char *value = equals ? equals + 1 : NULL;
	char spelled[80];
	int used = 1;

	snprintf(spelled, sizeof(spelled), "--%.*s", (int)MIN(n, (size_t)60), name);
	if (!option)
		return unknown(cmd, spelled, e);
	if (takes_next(option) && !value && argv[1]) {
		value = argv[1];
		used = 2;
	}
	return store(option, o, value, spelled, e) < 0 ? e->error : used;
}

/* "-abc", "-oFILE" or "-o FILE". */
static int parse_letters(const struct cli_command *cmd, void *o, char **argv, struct err *e)
{
	for (const char *p = argv[0] + 1; *p; p++) {
		const struct cli_option *option = find_letter(cmd, *p);
		char spelled[3] = {'-', *p, '\0'};

		if (!option)
			return unknown(cmd, spelled, e);
		if (takes_next(option)) {
			const char *value = p[1] ? p + 1 : argv[1];

			return store(option, o, value, spelled, e) < 0 ? e->error : p[1] ? 1 : 2;
		}
		if (store(option, o, NULL, spelled, e) < 0)
			return e->error;
	}
	return 1;
}

int cli_parse(const struct cli_command *cmd, void *o, int argc, char **argv, int *ret_argc,
	struct err *e)
{
	int operands = 0, i = 0;

	while (i < argc) {
		int r;

		if (argv[i][0] != '-' || !argv[i][1]) {
			argv[operands++] = argv[i++];
			if (cmd->stop_at_operand)
				break;
			continue;
		}
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		r = argv[i][1] == '-' ? parse_long(cmd, o, argv + i, e) :
					parse_letters(cmd, o, argv + i, e);
		if (r < 0)
			return r;
		i += r;
	}
	if (cmd->stop_at_operand && operands && i < argc && strcmp(argv[i], "--") == 0)
		i++;
	while (i < argc)
		argv[operands++] = argv[i++];
	argv[operands] = NULL;
	if (operands < cmd->min_operands || (cmd->max_operands >= 0 && operands > cmd->max_operands)) {
		err_set(e, ERR_USAGE, -EINVAL, "usage: podrun %s%s%s", cmd->name,
			cmd->usage ? " " : "", cmd->usage ? cmd->usage : "");
		return err_hint(e, "podrun help %s", cmd->name);
	}
	*ret_argc = operands;
	return 0;
}

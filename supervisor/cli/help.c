// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Help, manual pages (scdoc) and shell completion, all from the tables of the subcommands.
 */
#include <stddef.h>
#include <string.h>

#include "supervisor/cli/cli.h"

static const char *const groups[CLI_GROUP_MAX] = {
	[CLI_BEGIN] = "begin",
	[CLI_LOOK] = "look",
	[CLI_END] = "hold and end",
	[CLI_MOVE] = "move and copy",
	[CLI_MORE] = "more",
};

void cli_help_screen(FILE *out)
{
	fprintf(out, "podrun - run a session of processes, suspend it into a file, resume it anywhere\n"
		     "usage: podrun [run] [options] [--] CMD...   or   podrun COMMAND [options] ...\n");
	for (int g = 0; g < CLI_HIDDEN; g++) {
		fprintf(out, "\n%s\n", groups[g]);
		for (size_t i = 0; i < cli_n_commands; i++)
			if (cli_commands[i]->group == (enum cli_group)g)
				fprintf(out, "  %-10s %s\n", cli_commands[i]->name,
					cli_commands[i]->help);
	}
	fprintf(out, "\nWhile exactly one session is running its name may be left out; for logs, wait "
		     "and\ninspect also that of the only one there is.  podrun help COMMAND tells more.\n");
}

#define SPELLED_WIDTH 30 /* columns */

/* "-o, --output FILE|-" */
static void spell(const struct cli_option *o, char *ret, size_t size)
{
	char letter[8] = "    ";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	if (o->type == CLI_MAYBE)
		snprintf(ret, size, "%s--%s[=%s]", letter, o->name, o->arg);
	else
		snprintf(ret, size, "%s--%s%s%s", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
}

void cli_help_command(const struct cli_command *cmd, FILE *out)
{
	char spelled[96];

	fprintf(out, "usage: podrun %s %s\n%s%s%s%s\n", cmd->name, cmd->usage ? cmd->usage : "",
		cmd->help, cmd->alias ? " (also: " : "", cmd->alias ? cmd->alias : "",
		cmd->alias ? ")" : "");
	for (size_t i = 0; i < cmd->n_options; i++) {
		if (cmd->options[i].type == CLI_REFUSED)
			continue;
		spell(&cmd->options[i], spelled, sizeof(spelled));
		/* What is longer than the column has a line for itself. */
		if (strlen(spelled) > SPELLED_WIDTH)
			fprintf(out, "  %s\n  %-*s %s\n", spelled, SPELLED_WIDTH, "",
				cmd->options[i].help);
		else
			fprintf(out, "  %-*s %s\n", SPELLED_WIDTH, spelled, cmd->options[i].help);
	}
}

/* ---- manual pages --------------------------------------------------------------------------- */

/* Text in which scdoc's own characters mean themselves. */
static void escaped(const char *s, FILE *out)
{
	for (; *s; s++) {
		if (strchr("*_\\#<>~`", *s))
			fputc('\\', out);
		fputc(*s, out);
	}
}

static void exit_codes(FILE *out)
{
	fprintf(out, "# EXIT STATUS\n\n");
	for (int i = 0; i < ERR_CLASS_MAX; i++) {
		fprintf(out, "*%d*\n\t", err_class_info((enum err_class)i)->exit_code);
		escaped(err_class_info((enum err_class)i)->text, out);
		fprintf(out, "\n\n");
	}
	fprintf(out, "*run*, *exec* and *attach* exit with the command's code: 126 when it can't be run, 127 "
		     "when it is not found, 128 + N when signal N ended it, 125 when podrun itself "
		     "failed, also where what the command wrote could not be written. Wrong usage is 2 and "
		     "what the host lacks 4, as above; and with *-d* a command that can't be run is 125, too.\n\n");
}

static void scdoc_main(FILE *out)
{
	fprintf(out, "podrun(1)\n\n# NAME\n\npodrun - run, suspend and resume sessions of processes\n\n"
		     "# SYNOPSIS\n\n*podrun* [*run*] [options] [--] CMD...\n\n"
		     "*podrun* COMMAND [options] ...\n\n# COMMANDS\n\n");
	for (size_t i = 0; i < cli_n_commands; i++) {
		if (cli_commands[i]->group == CLI_HIDDEN)
			continue;
		fprintf(out, "*podrun-%s*(1)\n\t", cli_commands[i]->name);
		escaped(cli_commands[i]->help, out);
		fprintf(out, "\n\n");
	}
	exit_codes(out);
	fprintf(out,
		"# FILES\n\n\\$XDG\\_RUNTIME\\_DIR/podrun/\n\tcontrol sockets; without that variable /run/user/UID/podrun/ "
		"where there is such a directory, else podrun-UID/ in \\$TMPDIR or /tmp\n\n"
		"\\$XDG\\_STATE\\_HOME/podrun/\n\tsessions, logs, images\n\n"
		"\\$XDG\\_CONFIG\\_HOME/podrun/config\n\tdefaults: lines of `name = value` with the long "
		"options of *podrun-run*(1), and *ssh*, the command that *podrun-migrate*(1) uses\n\n"
		"\\$XDG\\_CONFIG\\_HOME/podrun/key, trusted\n\tthe key that signs images, and those that are "
		"accepted\n\n");
}

void cli_help_scdoc(const struct cli_command *cmd, FILE *out)
{
	char spelled[96];

	if (!cmd) {
		scdoc_main(out);
		return;
	}
	fprintf(out, "podrun-%s(1)\n\n# NAME\n\npodrun-%s - ", cmd->name, cmd->name);
	escaped(cmd->help, out);
	fprintf(out, "\n\n# SYNOPSIS\n\n*podrun %s* ", cmd->name);
	escaped(cmd->usage ? cmd->usage : "", out);
	if (cmd->alias)
		fprintf(out, "\n\n*podrun %s* is the same.", cmd->alias);
	fprintf(out, "\n\n# DESCRIPTION\n\n%s%s\n\n", cmd->text ? cmd->text : cmd->help,
		cmd->text ? "" : ".");
	if (cmd->n_options)
		fprintf(out, "# OPTIONS\n\n");
	for (size_t i = 0; i < cmd->n_options; i++) {
		const char *p;

		if (cmd->options[i].type == CLI_REFUSED)
			continue;
		spell(&cmd->options[i], spelled, sizeof(spelled));
		for (p = spelled; *p == ' '; p++)
			;
		fputc('*', out);
		escaped(p, out);
		fprintf(out, "*\n\t");
		escaped(cmd->options[i].help, out);
		fprintf(out, "\n\n");
	}
	fprintf(out, "# SEE ALSO\n\n*podrun*(1)\n");
}

/* ---- completion ----------------------------------------------------------------------------- */

static const char *const operand_names[] = {
	[CLI_NOTHING] = "nothing",
	[CLI_SESSION] = "session",
	[CLI_FILE] = "file",
	[CLI_PROGRAM] = "program",
	[CLI_SESSION_OR_FILE] = "either",
};

/*
 * What there is to choose from as @o's value, with spaces between: of "local|HOST|wg:FILE" that is
 * "local wg:", with @colon for the colon.  NULL for @out only counts.
 */
static size_t choices_with(const struct cli_option *o, const char *colon, FILE *out)
{
	static const char lower[] = "abcdefghijklmnopqrstuvwxyz_-";
	const char *at = o->arg;
	size_t n = 0;

	for (; at && *at; at += strcspn(at, "|"), at += *at == '|') {
		size_t word = strspn(at, lower);
		bool more = at[word] == ':';

		if (!more && at[word] && at[word] != '|')
			continue;
		if (!word || strspn(at, "-") == word)
			continue;
		if (out)
			fprintf(out, "%s%.*s%s", n ? " " : "", (int)word, at, more ? colon : "");
		n++;
	}
	return n;
}

static size_t choices(const struct cli_option *o, FILE *out)
{
	return choices_with(o, ":", out);
}

/* Does its value begin with what can be found among files? */
static bool takes_file(const struct cli_option *o)
{
	static const char *const words[] = {"FILE", "DIR", "PATH", "SRC", "COMMAND"};

	for (size_t i = 0; o->arg && i < ARRAY_SIZE(words); i++)
		if (strncmp(o->arg, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

static void names(FILE *out)
{
	for (size_t i = 0; i < cli_n_commands; i++)
		if (cli_commands[i]->group != CLI_HIDDEN)
			fprintf(out, "%s ", cli_commands[i]->name);
}

/* Of help they are the others' names. */
extern const struct cli_command cli_help;

static void verbs(const struct cli_command *cmd, FILE *out)
{
	if (cmd == &cli_help)
		names(out);
	else if (cmd->verbs)
		fputs(cmd->verbs, out);
}

static bool takes_value(const struct cli_option *o)
{
	return o->arg && o->type != CLI_MAYBE && o->type != CLI_REFUSED;
}

/* Those whose values are files, or those whose are not. */
static void bash_valued(const struct cli_command *cmd, bool files, FILE *out)
{
	for (size_t k = 0; k < cmd->n_options; k++) {
		const struct cli_option *o = &cmd->options[k];

		if (!takes_value(o) || takes_file(o) != files)
			continue;
		fprintf(out, "--%s ", o->name);
		if (o->letter)
			fprintf(out, "-%c ", o->letter);
	}
}

static void bash_options(const struct cli_command *cmd, FILE *out)
{
	fprintf(out, " words='");
	for (size_t k = 0; k < cmd->n_options; k++)
		if (cmd->options[k].type != CLI_REFUSED)
			fprintf(out, "--%s ", cmd->options[k].name);
	fprintf(out, "' files='");
	bash_valued(cmd, true, out);
	fprintf(out, "' values='");
	bash_valued(cmd, false, out);
	fprintf(out, "' verbs='");
	verbs(cmd, out);
	fprintf(out, "'\n");
	for (size_t k = 0; k < cmd->n_options; k++) {
		const struct cli_option *o = &cmd->options[k];

		if (!takes_value(o) || !choices(o, NULL))
			continue;
		fprintf(out, "\t\t[ \"$prev\" != --%s ] || choice='", o->name);
		choices(o, out);
		fprintf(out, "'\n");
	}
}

static void bash(FILE *out)
{
	fprintf(out, "_podrun() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} cmd=${COMP_WORDS[1]} words= "
		     "operand=program files= values= verbs= choice= prev=\n"
		     "\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\tCOMPREPLY=($(compgen -c -W '");
	names(out);
	/* --x=value is three words to bash */
	fprintf(out, "' -- \"$cur\"))\n\t\treturn\n\tfi\n\tprev=${COMP_WORDS[COMP_CWORD-1]}\n"
		     "\t[ \"$cur\" != = ] || cur=\n"
		     "\t[ \"$prev\" != = ] || prev=${COMP_WORDS[COMP_CWORD-2]}\n\tcase $cmd in\n");
	for (size_t i = 0; i < cli_n_commands; i++) {
		const struct cli_command *cmd = cli_commands[i];

		fprintf(out, "\t%s%s%s) operand=%s", cmd->name, cmd->alias ? "|" : "",
			cmd->alias ? cmd->alias : "", operand_names[cmd->operand]);
		bash_options(cmd, out);
		fprintf(out, "\t\t;;\n");
	}
	fprintf(out,
		"\tesac\n"
		"\t[ -z \"$choice\" ] || { COMPREPLY=($(compgen -W \"$choice\" -- \"$cur\")); return; }\n"
		"\tcase \" $values\" in *\" $prev \"*) return ;; esac\n"
		"\tcase \" $files\" in *\" $prev \"*) operand=file verbs= ;; esac\n"
		"\tcase $cur in -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")); return ;; esac\n"
		"\tif [ \"$COMP_CWORD\" = 2 ] && [ -n \"$verbs\" ]; then\n"
		"\t\tCOMPREPLY=($(compgen -W \"$verbs\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
		"\tcase $operand in file|program|either) compopt -o filenames 2>/dev/null ;; esac\n"
		"\tcase $operand in\n"
		"\tsession) COMPREPLY=($(compgen -W \"$(podrun ps -aq 2>/dev/null)\" -- \"$cur\")) ;;\n"
		"\tfile) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
		"\tprogram) COMPREPLY=($(compgen -c -f -- \"$cur\")) ;;\n"
		"\teither) COMPREPLY=($(compgen -f -W \"$(podrun ps -aq 2>/dev/null)\" -- \"$cur\")) ;;\n"
		"\tesac\n}\ncomplete -F _podrun podrun\n");
}

/* A string between single quotes for zsh and fish. */
static void quoted(const char *s, FILE *out)
{
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", out);
		else
			fputc(*s, out);
	}
}

static void zsh_value(const struct cli_option *o, FILE *out)
{
	if (!takes_value(o))
		return;
	fprintf(out, ":value:");
	if (choices(o, NULL)) {
		fputc('(', out);
		choices_with(o, "\\:", out); /* a bare one would end the list */
		fputc(')', out);
	} else {
		fputs(takes_file(o) ? "_files" : " ", out);
	}
}

/* @dashed is its name or its letter. */
static void zsh_option(const char *dashed, const struct cli_option *o, FILE *out)
{
	fprintf(out, " '%s[", dashed);
	for (const char *p = o->help; *p; p++)
		if (!strchr("[]':", *p))
			fputc(*p, out);
	fputc(']', out);
	zsh_value(o, out);
	fputc('\'', out);
}

static void zsh_options(const struct cli_command *cmd, FILE *out)
{
	for (size_t k = 0; k < cmd->n_options; k++) {
		const struct cli_option *o = &cmd->options[k];
		char dashed[64];

		if (o->type == CLI_REFUSED)
			continue;
		snprintf(dashed, sizeof(dashed), "--%s%s", o->name, takes_value(o) ? "=" : "");
		zsh_option(dashed, o, out);
		snprintf(dashed, sizeof(dashed), "-%c", o->letter);
		if (o->letter)
			zsh_option(dashed, o, out);
	}
}

static void zsh(FILE *out)
{
	fprintf(out, "#compdef podrun\n_podrun_sessions() { compadd -- ${(f)\"$(podrun ps -aq "
		     "2>/dev/null)\"} }\n_podrun_either() { _podrun_sessions; _files }\n"
		     "_podrun() {\n\tif (( CURRENT == 2 )); then\n\t\tlocal -a "
		     "commands=(\n");
	for (size_t i = 0; i < cli_n_commands; i++) {
		if (cli_commands[i]->group == CLI_HIDDEN)
			continue;
		fprintf(out, "\t\t\t'%s:", cli_commands[i]->name);
		quoted(cli_commands[i]->help, out);
		fprintf(out, "'\n");
	}
	fprintf(out, "\t\t)\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tlocal cmd=$words[2]\n"
		     "\tshift words; (( CURRENT-- ))\n\tcase $cmd in\n");
	for (size_t i = 0; i < cli_n_commands; i++) {
		static const char *const actions[] = {[CLI_NOTHING] = "",
			[CLI_SESSION] = "_podrun_sessions",
			[CLI_FILE] = "_files",
			[CLI_PROGRAM] = "_files",
			[CLI_SESSION_OR_FILE] = "_podrun_either"};
		const struct cli_command *cmd = cli_commands[i];

		fprintf(out, "\t%s%s%s) _arguments", cmd->name, cmd->alias ? "|" : "",
			cmd->alias ? cmd->alias : "");
		zsh_options(cmd, out);
		if (cmd->verbs || cmd == &cli_help) {
			fprintf(out, " '1:word:(");
			verbs(cmd, out);
			fprintf(out, ")'");
		}
		fprintf(out, " '*:operand:%s' ;;\n", actions[cmd->operand]);
	}
	fprintf(out, "\tesac\n}\n_podrun \"$@\"\n");
}

/* What is said of @cmd once it is there. */
static void fish_begin(const struct cli_command *cmd, FILE *out)
{
	fprintf(out, "complete -c podrun -n '__fish_seen_subcommand_from %s%s%s'", cmd->name,
		cmd->alias ? " " : "", cmd->alias ? cmd->alias : "");
}

static void fish_options(const struct cli_command *cmd, FILE *out)
{
	for (size_t k = 0; k < cmd->n_options; k++) {
		const struct cli_option *o = &cmd->options[k];

		if (o->type == CLI_REFUSED)
			continue;
		fish_begin(cmd, out);
		fprintf(out, " -l %s", o->name);
		if (o->letter)
			fprintf(out, " -s %c", o->letter);
		fprintf(out, "%s -d '", !takes_value(o) ? "" : takes_file(o) ? " -r -F" : " -x");
		quoted(o->help, out);
		if (takes_value(o) && choices(o, NULL)) {
			fprintf(out, "' -a '");
			choices(o, out);
		}
		fprintf(out, "'\n");
	}
}

static void fish(FILE *out)
{
	for (size_t i = 0; i < cli_n_commands; i++) {
		const struct cli_command *cmd = cli_commands[i];

		if (cmd->group == CLI_HIDDEN)
			continue;
		fprintf(out, "complete -c podrun -n __fish_use_subcommand -a %s -d '", cmd->name);
		quoted(cmd->help, out);
		fprintf(out, "'\n");
		fish_options(cmd, out);
		if (cmd->verbs || cmd == &cli_help) {
			fish_begin(cmd, out);
			fprintf(out, " -a '");
			verbs(cmd, out);
			fprintf(out, "'\n");
		}
		if (cmd->operand == CLI_SESSION || cmd->operand == CLI_NOTHING) {
			fish_begin(cmd, out);
			fprintf(out, " -f\n");
		}
		if (cmd->operand == CLI_SESSION || cmd->operand == CLI_SESSION_OR_FILE) {
			fish_begin(cmd, out);
			fprintf(out, " -a '(podrun ps -aq 2>/dev/null)'\n");
		}
	}
}

int cli_help_completion(const char *shell, FILE *out, struct err *e)
{
	static const struct {
		const char *name;
		void (*write)(FILE *out);
	} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (strcmp(shells[i].name, shell) == 0) {
			shells[i].write(out);
			return 0;
		}
	return err_set(e, ERR_USAGE, -EINVAL, "completion for bash, zsh or fish, not '%s'", shell);
}

/* ---- the command ---------------------------------------------------------------------------- */

struct help_options {
	bool scdoc, list;
	const char *completion;
};

static const struct cli_option options[] = {
	{"scdoc", 0, NULL, "the manual page's source", CLI_FLAG, offsetof(struct help_options, scdoc)},
	{"list", 0, NULL, "names of all commands", CLI_FLAG, offsetof(struct help_options, list)},
	{"completion", 0, "bash|zsh|fish", "completion for a shell", CLI_CHOICE,
		offsetof(struct help_options, completion)},
};

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct help_options *o = opts;
	const struct cli_command *cmd = argc ? cli_find(argv[0]) : NULL;

	if (argc && !cmd)
		return err_set(e, ERR_USAGE, -EINVAL, "no command '%s'", argv[0]);
	if (o->completion)
		return cli_help_completion(o->completion, stdout, e);
	if (o->scdoc)
		cli_help_scdoc(cmd, stdout);
	else if (o->list)
		for (size_t i = 0; i < cli_n_commands; i++)
			printf("%s\n", cli_commands[i]->name);
	else if (cmd)
		cli_help_command(cmd, stdout);
	else
		cli_help_screen(stdout);
	return 0;
}

const struct cli_command cli_help = {
	.name = "help",
	.usage = "[COMMAND]",
	.help = "what a command does and takes",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct help_options),
	.group = CLI_MORE,
	.max_operands = 1,
	.standalone = true,
	.run = run,
};

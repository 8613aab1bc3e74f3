/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cli - what the subcommands of podrun have in common.
 *
 * The command line is two kinds of tables.  Each subcommand is one file with one
 * `const struct cli_command`, listed in commands.c; its options are rows that say where in the
 * command's own struct a value goes.  Parsing, help, manual pages and shell completion all read
 * the same rows, so they can't disagree.
 */
#ifndef SUPERVISOR_CLI_CLI_H
#define SUPERVISOR_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "supervisor/disk/paths.h"

enum cli_type {
	CLI_FLAG,    /* bool; --x, --x=no */
	CLI_STRING,  /* const char * */
	CLI_CHOICE,  /* const char *, one of those in `arg`: "keep|reset" */
	CLI_MAYBE,   /* const char *, "" where --x has no =VALUE */
	CLI_LIST,    /* struct cli_list, given any number of times */
	CLI_NUMBER,  /* uint64_t */
	CLI_SIZE,    /* uint64_t in bytes, with K M G T */
	CLI_REFUSED, /* known, but not to be had here: exit code 4.  `offset` is unused */
};

struct cli_list {
	const char **items;
	size_t n;
};

struct cli_option {
	const char *name; /* without dashes */
	char letter;	  /* 0: none */
	const char *arg;  /* what stands for the value in help; NULL for flags */
	const char *help; /* of CLI_REFUSED: why not */
	enum cli_type type;
	size_t offset; /* into the command's struct */
};

/* What completion offers for operands. */
enum cli_operand { CLI_NOTHING, CLI_SESSION, CLI_FILE, CLI_PROGRAM, CLI_SESSION_OR_FILE };

enum cli_group { CLI_BEGIN, CLI_LOOK, CLI_END, CLI_MOVE, CLI_MORE, CLI_HIDDEN, CLI_GROUP_MAX };

struct cli {
	struct paths paths;
};

struct cli_command {
	const char *name;
	const char *alias; /* NULL: none */
	const char *usage; /* operands, as in "NAME [-o FILE|-]" */
	const char *help;  /* one line */
	const char *text;  /* for the manual page, scdoc; NULL: the line is all */
	const struct cli_option *options;
	size_t n_options;
	size_t size; /* of the struct they fill */
	enum cli_group group;
	enum cli_operand operand;
	bool stop_at_operand; /* what follows the first operand belongs to somebody else */
	int min_operands, max_operands; /* -1: any number */
	bool own_codes;	 /* exit codes are those of a command in a session; our failures are 125 */
	bool standalone; /* needs none of podrun's directories */
	bool session;	 /* the first operand is a session; left out when exactly one is running */
	bool ended;	 /* or when there is exactly one, and that is not running */
	const char *verbs;   /* one of which is the first operand, "ls show"; NULL: it is none of few */
	const char *program; /* of supervisor/programs.h, which has it; NULL: podrun itself */
	/*
	 * Returns an exit code, or negative errno with @e.  @o: the filled struct (zeroes where
	 * nothing was said).  NULL where another program does it.
	 */
	int (*run)(struct cli *c, void *o, int argc, char **argv, struct err *e);
};

extern const struct cli_command *const cli_commands[];
extern const size_t cli_n_commands;
/* By name or alias; NULL if there is no such command. */
const struct cli_command *cli_find(const char *name);

/* ---- command.c */

/* Parses @argv, what follows the command's name, and runs it: the exit code. */
int cli_perform(const struct cli_command *cmd, int argc, char **argv);
/* The exit code of who has told what he was asked for. */
int cli_told(void);
/*
 * Who is started without one of them would get an image or a connection as its number, and take
 * that for its output.  Reading ends at once, and writing fails as it would have: a session that is
 * suspended to such a stdout runs on.
 */
void cli_hold_stdio(void);

/* ---- parse.c */

/* Fills @o from @argv; moves the operands to the front: *ret_argc of them. */
int cli_parse(const struct cli_command *cmd, void *o, int argc, char **argv, int *ret_argc,
	struct err *e);
/* One option by its long name.  @value NULL: a flag.  `where` is for messages ("FILE:3"). */
int cli_set(const struct cli_command *cmd, void *o, const char *name, const char *value,
	const char *where, struct err *e);
/* Frees the lists and strings in @o, not @o. */
void cli_free_options(const struct cli_command *cmd, void *o);
/* The whole text as a number; a size may end in k, m, g, t (powers of 1024).  -EINVAL. */
int cli_parse_number(const char *text, uint64_t *ret);
int cli_parse_size(const char *text, uint64_t *ret);
int cli_parse_signal(const char *text, struct err *e); /* "TERM", "SIGTERM", "15", "RTMIN+1" */
/* Says that @option does not take @value, and what it takes; -EINVAL. */
int cli_not_valid(const char *option, const char *value, const char *takes, struct err *e);

/* ---- settings.c: files of `name = value` lines */

/*
 * What was read of a file, as a string in @b.  A NUL byte would hide what follows it: ERR_USAGE.
 * @where is the file, for messages.
 */
int cli_text(struct buf *b, char **ret, const char *where, struct err *e);
/*
 * Calls @each for every line; it returns negative to stop.  A file that does not exist is empty
 * if @optional.
 */
int cli_settings_read(const char *path, bool optional,
	int (*each)(
		void *ctx, const char *name, const char *value, const char *where, struct err *e),
	void *ctx, struct err *e);

/* What files have set of a command's options. */
struct cli_settings {
	struct cli_setting {
		char *name, *value; /* value NULL: a flag */
		char *where;	    /* "FILE:3" */
	} *lines;
	size_t n;
};

/*
 * Puts what the user's config file and then the file at @path (NULL: none) say below what the
 * command line has put into @o: what is said last holds, lists add up.  @o has the strings of @s
 * afterwards.  ERR_USAGE with @e.
 */
int cli_settings_apply(struct cli_settings *s, struct cli *c, const struct cli_command *cmd,
	void *o, const char *path, struct err *e);
/* @e is of @cmd with these: where it begins with an option ("--net: ...") that a file has set, it
 * says which line of which.  Returns e->error. */
int cli_settings_blame(const struct cli_settings *s, const struct cli_command *cmd, struct err *e);
void cli_settings_fini(struct cli_settings *s);
#define _cleanup_settings_ _cleanup_(cli_settings_fini)

/* A setting of the user's config file that is no option of run (ssh), as a fresh string or NULL. */
char *cli_setting(struct cli *c, const char *name);

/* ---- help.c */

/* podrun help; podrun help COMMAND; the same as a manual page's source. */
void cli_help_screen(FILE *out);
void cli_help_command(const struct cli_command *cmd, FILE *out);
void cli_help_scdoc(const struct cli_command *cmd, FILE *out); /* NULL: podrun(1) itself */
int cli_help_completion(const char *shell, FILE *out, struct err *e);

/* ---- output */

/* A table whose columns are as wide as they need to be. */
struct cli_table {
	char **cells;
	size_t columns, n, cap;
};
void cli_table_add(struct cli_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_table_print(struct cli_table *t, FILE *out); /* and empties it */

/*
 * The name of a session that was begun, on stdout.  Who has closed that does not want it; if it
 * can't be written otherwise the error says that the session runs.
 */
int cli_tell_begun(const char *name, struct err *e);
/* "podrun: ..." and "hint: ..." on stderr. */
void cli_print_error(const struct err *e);
/* "3 minutes ago". */
void cli_ago(int64_t when, char *ret, size_t size);
void cli_bytes(uint64_t bytes, char *ret, size_t size);
/* Says on stderr what is not as it was, in one line; nothing if that is empty. */
void cli_say_note(const char *note);
/*
 * Says on stderr that names are rewritten, because the host has no @lacking; nothing if that is
 * empty. @root: its root directory, which has no layer over it then; or "".
 */
void cli_say_lacking(const char *lacking, const char *root);
/* The same as text, behind what is in @b. */
void cli_lacking(struct buf *b, const char *lacking, const char *root);

/* ---- the session that is meant when none is named */

/* The name of the only live session; ERR_USAGE when there are several or none. */
int cli_only_session(struct cli *c, char **ret, struct err *e);

#endif

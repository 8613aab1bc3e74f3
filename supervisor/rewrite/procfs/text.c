// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in procfs/text.h. */
#include "supervisor/rewrite/procfs/text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "supervisor/rewrite/host.h"
#include "supervisor/rewrite/numbers.h"

/* ---- pieces --------------------------------------------------------------------------------- */

static void put_span(struct buf *out, const char *from, const char *to)
{
	buf_put(out, from, (size_t)(to - from));
}

/* The number at @p as the session calls it.  What is no number of a task (0, -1)
 * stays.  Returns its end. */
static const char *put_number(const struct procfs_facts *f, const char *p, struct buf *out)
{
	char *end;
	long host = strtol(p, &end, 10);

	if (end == p)
		return p;
	if (host > 0)
		host = numbers_virtual(f->numbers, (pid_t)MIN(host, INT32_MAX));
	buf_printf(out, "%ld", host);
	return end;
}

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* Behind the end of the line, or at the end of the text. */
static const char *next_line(const char *p)
{
	const char *end = strchr(p, '\n');

	return end ? end + 1 : p + strlen(p);
}

static bool begins(const char *p, const char *with)
{
	return !strncmp(p, with, strlen(with));
}

static char state_of(const struct procfs_facts *f, char state)
{
	if (state == 't')
		return f->stopped ? 'T' : 'R';
	return f->asks && (state == 'S' || state == 'D') ? 'R' : state;
}

/* ---- status --------------------------------------------------------------------------------- */

/* "Pid:\t12"; of those by namespace ("NSpid:\t12\t3") only the innermost is the session's. */
static void put_key(
	const struct procfs_facts *f, const char *line, const char *end, struct buf *out)
{
	const char *value = skip_blanks(strchr(line, ':') + 1);

	put_span(out, line, value);
	put_number(f, value, out);
	put_span(out, end - (end > value && end[-1] == '\n'), end);
}

static void put_state(
	const struct procfs_facts *f, const char *line, const char *end, struct buf *out)
{
	char was = *skip_blanks(line + strlen("State:")), is = state_of(f, was);

	if (is == was)
		put_span(out, line, end);
	else
		buf_put_str(out, is == 'T' ? "State:\tT (stopped)\n" : "State:\tR (running)\n");
}

/* "Uid:\t0\t0\t0\t0", "Groups:\t4 5 ", "CapEff:\t000001ffffffffff": true if
 * @line is one of these. */
static bool put_ids(const struct procfs_ids *ids, const char *line, struct buf *out)
{
	static const char *const caps[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
	bool uid = begins(line, "Uid:");

	if (uid || begins(line, "Gid:")) {
		const uint32_t *id = uid ? ids->uid : ids->gid;

		buf_printf(out, "%.4s\t%u\t%u\t%u\t%u\n", line, id[0], id[1], id[2], id[3]);
		return true;
	}
	if (begins(line, "Groups:")) {
		buf_put_str(out, "Groups:\t");
		for (size_t i = 0; i < ids->n_groups; i++)
			buf_printf(out, "%u ", ids->groups[i]);
		buf_put_u8(out, '\n');
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(caps) && ids->has_caps; i++)
		if (begins(line, caps[i])) {
			buf_printf(out, "%s\t%016" PRIx64 "\n", caps[i], ids->caps[i]);
			return true;
		}
	return false;
}

void procfs_text_status(const struct procfs_facts *f, const char *text, struct buf *out)
{
	static const char *const keys[] = {"Tgid:", "Ngid:", "Pid:", "PPid:", "TracerPid:",
		"NStgid:", "NSpid:", "NSpgid:", "NSsid:"};

	for (const char *line = text, *end; *line; line = end) {
		bool number = false;

		end = next_line(line);
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			number |= begins(line, keys[i]);
		if (f->ids && put_ids(f->ids, line, out))
			continue;
		if (number)
			put_key(f, line, end, out);
		else if (begins(line, "State:"))
			put_state(f, line, end, out);
		else
			put_span(out, line, end);
	}
}

static long value_of(const char *status, const char *key)
{
	for (const char *line = status; *line; line = next_line(line))
		if (begins(line, key))
			return strtol(line + strlen(key), NULL, 10);
	return 0;
}

bool procfs_text_is_ours(const struct numbers *numbers, const char *status, pid_t tracer)
{
	const char *state = strstr(status, "\nState:\t");

	if (value_of(status, "TracerPid:") == tracer)
		return true;
	return state && state[strlen("\nState:\t")] == 'Z' &&
	       numbers_virtual(numbers, (pid_t)value_of(status, "PPid:"));
}

/* ---- maps ----------------------------------------------------------------------------------- */

/* "55d0-55d1 r--p 00000000 08:01 1234    /usr/bin/x": where the path is, NULL if there is none. */
static const char *find_path(const char *line, const char *end)
{
	const char *p = line + strcspn(line, " \n");

	/* Other lines of smaps have a colon there. */
	if (p >= end || p == line || p[-1] == ':')
		return NULL;
	for (int field = 1; field < 5 && p < end; field++) {
		p = skip_blanks(p);
		p += strcspn(p, " \n");
	}
	p = skip_blanks(p);
	return p < end && *p == '/' ? p : NULL;
}

void procfs_text_maps(const struct procfs_facts *f, const char *text, struct buf *out)
{
	for (const char *line = text, *end; *line; line = end) {
		const char *path, *stop;
		char host[PATH_MAX], name[PATH_MAX];

		end = next_line(line);
		stop = end - (end > line && end[-1] == '\n');
		path = find_path(line, stop);
		if (path && f->session_path && (size_t)(stop - path) < sizeof(host)) {
			snprintf(host, sizeof(host), "%.*s", (int)(stop - path), path);
			if (f->session_path(f->arg, host, name, sizeof(name)) >= 0) {
				put_span(out, line, path);
				buf_put_str(out, name);
				put_span(out, stop, end);
				continue;
			}
		}
		put_span(out, line, end);
	}
}

/* ---- mounts --------------------------------------------------------------------------------- */

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* The path at @p, in which the kernel writes blanks, line ends and backslashes as "\\040". */
static void take_path(const char *p, char ret[PATH_MAX])
{
	size_t n = 0;

	for (; !strchr(" \n", *p) && n + 1 < PATH_MAX; p++) {
		if (*p == '\\' && is_octal(p[1]) && is_octal(p[2]) && is_octal(p[3])) {
			ret[n++] = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 3;
		} else {
			ret[n++] = *p;
		}
	}
	ret[n] = '\0';
}

/*
 * Lines that say a path behind @words words.  What is mounted below a directory for which the
 * session has another is not there for it.  A line that goes on with the one before has a tab, or
 * is empty.
 */
static void put_mounts(const struct procfs_facts *f, const char *text, int words, struct buf *out)
{
	bool left_out = false;

	for (const char *line = text, *end; *line; line = end) {
		char path[PATH_MAX];
		const char *p = line;

		end = next_line(line);
		if (*line != '\t' && *line != '\n') {
			for (int i = 0; i < words && p < end; i++) {
				p += strcspn(p, " \n");
				p += *p == ' ';
			}
			take_path(p, path);
			left_out = *path == '/' && f->is_hosts && !f->is_hosts(f->arg, path);
		}
		if (!left_out)
			put_span(out, line, end);
	}
}

/* "tmpfs /run tmpfs rw 0 0" */
void procfs_text_mounts(const struct procfs_facts *f, const char *text, struct buf *out)
{
	put_mounts(f, text, 1, out);
}

/* "device tmpfs mounted on /run with fstype tmpfs" */
void procfs_text_mountstats(const struct procfs_facts *f, const char *text, struct buf *out)
{
	put_mounts(f, text, 4, out);
}

/* ---- stat ----------------------------------------------------------------------------------- */

/* Numbers of tasks are fields 1, 4 (parent), 5 (group), 6 (session) and 8
 * (the terminal's group). */
static bool is_number_field(int field)
{
	return field == 4 || field == 5 || field == 6 || field == 8;
}

/* When it began, in hundredths of a second of boot time (USER_HZ). */
#define FIELD_START 22
#define HUNDREDTH   10000000LL

/* What is added to boot time in that unit: rounded down, so that nothing lies ahead of
 * the session's clock. */
static long long hundredths_added(const struct procfs_facts *f)
{
	return f->boottime_ns / HUNDREDTH - (f->boottime_ns % HUNDREDTH < 0 ? 1 : 0);
}

static void put_start(const struct procfs_facts *f, const char *p, struct buf *out)
{
	long long start = strtoll(p, NULL, 10) + hundredths_added(f);

	buf_printf(out, "%lld", MAX(start, 0));
}

void procfs_text_stat(const struct procfs_facts *f, const char *text, struct buf *out)
{
	const char *name = strchr(text, ' '), *p = strrchr(text, ')');
	int field = 3;

	if (!name || !p || p < name)
		return;
	put_number(f, text, out);
	put_span(out, name, p + 1);
	for (p++; *p == ' '; field++) {
		const char *end = p + 1 + strcspn(p + 1, " \n");

		buf_put_u8(out, ' ');
		if (field == 3)
			buf_put_u8(out, (uint8_t)state_of(f, p[1]));
		else if (is_number_field(field))
			put_number(f, p + 1, out);
		else if (field == FIELD_START && f->boottime_ns)
			put_start(f, p + 1, out);
		else
			put_span(out, p + 1, end);
		p = end;
	}
	buf_put_str(out, p);
}

/* ---- others of a process -------------------------------------------------------------------- */

void procfs_text_children(const struct procfs_facts *f, const char *text, struct buf *out)
{
	char *end;

	for (const char *p = text;; p = end) {
		long host = strtol(p, &end, 10);
		pid_t number;

		if (end == p)
			return;
		number = numbers_virtual(f->numbers, (pid_t)MIN(host, INT32_MAX));
		if (number)
			buf_printf(out, "%d ", number);
	}
}

/* "name (12, #threads: 1)", where the name may have anything in it. */
void procfs_text_sched(const struct procfs_facts *f, const char *text, struct buf *out)
{
	const char *end = next_line(text), *open = end;

	while (open > text && *open != '(')
		open--;
	put_span(out, text, open + (*open == '('));
	buf_put_str(out, *open == '(' ? put_number(f, open + 1, out) : open);
}

/* "notify: signal/pid.12" */
void procfs_text_timers(const struct procfs_facts *f, const char *text, struct buf *out)
{
	for (const char *line = text, *end; *line; line = end) {
		const char *dot;

		end = next_line(line);
		dot = begins(line, "notify:") ? memchr(line, '.', (size_t)(end - line)) : NULL;
		put_span(out, line, dot ? dot + 1 : line);
		put_span(out, dot ? put_number(f, dot + 1, out) : line, end);
	}
}

/* ---- locks ---------------------------------------------------------------------------------- */

/* "1: POSIX  ADVISORY  WRITE 12 08:01:99 0 EOF", with "->" behind the colon for one that waits:
 * where the number is, NULL if there is none. */
static const char *lock_owner(const char *p, const char *end)
{
	for (int word = 0; p < end; word++) {
		p += strspn(p, " ");
		if (begins(p, "->"))
			word--;
		else if (word == 4)
			return p < end ? p : NULL;
		p += strcspn(p, " \n");
		if (*p == '\n')
			break;
	}
	return NULL;
}

void procfs_text_locks(const struct procfs_facts *f, const char *text, struct buf *out)
{
	for (const char *line = text, *end; *line; line = end) {
		const char *owner;
		long host;

		end = next_line(line);
		owner = lock_owner(line, end);
		host = owner ? strtol(owner, NULL, 10) : 0;
		if (host > 0 && !numbers_virtual(f->numbers, (pid_t)MIN(host, INT32_MAX)))
			continue;
		put_span(out, line, owner ? owner : line);
		put_span(out, owner ? put_number(f, owner, out) : line, end);
	}
}

/* A pidfd tells whose it is, and any file which locks it has. */
void procfs_text_fdinfo(const struct procfs_facts *f, const char *text, struct buf *out)
{
	for (const char *line = text, *end; *line; line = end) {
		const char *owner = NULL;

		end = next_line(line);
		if (begins(line, "lock:\t"))
			owner = lock_owner(line + strlen("lock:\t"), end);
		if (begins(line, "Pid:") || begins(line, "NSpid:")) {
			put_key(f, line, end, out);
			continue;
		}
		put_span(out, line, owner ? owner : line);
		put_span(out, owner ? put_number(f, owner, out) : line, end);
	}
}

/* "1234.56 2000.00\n": boot time, and for how long all processors together had nothing to do. */
void procfs_text_uptime(const struct procfs_facts *f, const char *text, struct buf *out)
{
	const char *idle = strchr(text, ' ');
	long long sec, hundredths;

	if (!idle || sscanf(text, "%lld.%2lld", &sec, &hundredths) != 2) {
		buf_put_str(out, text);
		return;
	}
	hundredths = MAX(sec * 100 + hundredths + hundredths_added(f), 0);
	buf_printf(out, "%lld.%02lld%s", hundredths / 100, hundredths % 100, idle);
}

/* The table's own limit. */
void procfs_text_pid_max(const struct procfs_facts *f, const char *text, struct buf *out)
{
	buf_printf(out, "%d\n", NUMBERS_MAX);
}

void procfs_text_hostname(const struct procfs_facts *f, const char *text, struct buf *out)
{
	if (f->host)
		buf_printf(out, "%s\n", f->host->node);
	else
		buf_put_str(out, text);
}

void procfs_text_domainname(const struct procfs_facts *f, const char *text, struct buf *out)
{
	if (f->host)
		buf_printf(out, "%s\n", f->host->domain);
	else
		buf_put_str(out, text);
}

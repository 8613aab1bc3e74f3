// SPDX-License-Identifier: GPL-2.0-or-later
/* A command is its process and a relay of its stdio; clients come and go, the job stays. */
#include "supervisor/job.h"

#include <fcntl.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "supervisor/control.h"
#include "supervisor/relay.h"
#include "supervisor/rewrite/numbers.h"
#include "supervisor/session.h"

#define MAX_NUMBER 9999999u /* of a command: its edges have names of 15 bytes */
#define MAX_WORDS  (4u << 20) /* of all commands: they are told in one message, and in images */

/* ---- what its relay tells ---------------------------------------------------------------- */

static void on_output(void *ctx, enum relay_stream stream, const void *data, size_t n)
{
	struct job *j = ctx;
	bool told = false;

	if (stream == RELAY_TTY)
		modes_feed(&j->modes, data, n);
	for (struct client *c = j->session->clients, *next; c; c = next) {
		next = c->next;
		if (c->job != j)
			continue;
		told = true;
		if (c->stuffed && c != j->primary)
			c->lost += n;
		else
			control_send_output(c, stream, data, n);
	}
	/* What an exec writes is for who ran it; only without anybody it would be lost. */
	if (j->number == 0 || !told)
		session_log(j->session, data, n);
}

static bool on_ready(void *ctx)
{
	const struct job *j = ctx;

	return !j->primary || !j->primary->stuffed;
}

static void on_room(void *ctx)
{
	struct job *j = ctx;

	for (struct client *c = j->session->clients, *next; c; c = next) {
		next = c->next;
		if (c->job == j)
			control_feed(c);
	}
}

static const struct relay_ops relay_ops = {on_output, on_ready, on_room};

/* ---- life -------------------------------------------------------------------------------- */

static void free_argv(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

static char **copy_argv(char *const *argv, size_t n)
{
	char **copy = calloc(n + 1, sizeof(*copy));

	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(argv[i]);
		if (!copy[i]) {
			free_argv(copy);
			return NULL;
		}
	}
	return copy;
}

static struct job *new_job(struct session *s, char *const *argv, size_t n, struct err *e)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j || !(j->argv = copy_argv(argv, n)) ||
		relay_new(&j->relay, s->loop, &relay_ops, j, e) < 0) {
		err_errno(e, -ENOMEM, "command");
		job_free(j);
		return NULL;
	}
	j->session = s;
	return j;
}

void job_free(struct job *j)
{
	if (!j)
		return;
	relay_free(j->relay);
	free_argv(j->argv);
	buf_fini(&j->entered);
	free(j);
}

static void add_job(struct session *s, struct job *j)
{
	struct job **at = &s->jobs;

	while (*at)
		at = &(*at)->next;
	*at = j;
}

static void remove_job(struct job *j)
{
	struct job **at = &j->session->jobs;

	while (*at && *at != j)
		at = &(*at)->next;
	if (*at)
		*at = j->next;
	control_detach_job(j->session, j);
	job_free(j);
}

/* Pipes for the streams of @j: the command's ends in @ret_theirs, ours adopted. */
static int make_pipes(struct job *j, bool input, int ret_theirs[3], struct err *e)
{
	for (int i = input ? 0 : 1; i < 3; i++) {
		int ends[2], ours, r;

		if (pipe2(ends, O_CLOEXEC) < 0)
			return err_errno(e, -errno, "pipe");
		ours = i == 0 ? ends[1] : ends[0];
		ret_theirs[i] = i == 0 ? ends[0] : ends[1];
		r = relay_adopt(j->relay, (enum relay_stream)i, ours, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* How long the arguments of all commands are, with @argv. */
static size_t words_with(const struct session *s, char *const *argv)
{
	size_t n = 0;

	for (; *argv; argv++)
		n += strlen(*argv) + 4;
	for (const struct job *j = s->jobs; j; j = j->next)
		for (char *const *word = j->argv; *word; word++)
			n += strlen(*word) + 4;
	return n;
}

int job_start(struct job **ret, struct session *s, const struct job_spec *spec, struct err *e)
{
	struct world_spawn spawn = {.argv = spec->argv,
		.envp = spec->envp,
		.umask = s->record->config->umask,
		.cwd = spec->cwd,
		.stdio = {-1, -1, -1},
		.tty = spec->tty,
		.rows = spec->rows,
		.cols = spec->cols};
	int master = -1, r = 0;
	size_t n = 0;
	struct job *j;

	while (spec->argv[n])
		n++;
	if (words_with(s, spec->argv) > MAX_WORDS)
		return err_set(e, ERR_FAILED, -E2BIG,
			"the arguments of all commands that run in it would be too long");
	j = new_job(s, spec->argv, n, e);
	if (!j)
		return -ENOMEM;
	j->tty = spec->tty;
	if (!j->tty)
		r = make_pipes(j, spec->input, spawn.stdio, e);
	if (r == 0)
		r = world_spawn(&s->world, &spawn, &j->vpid, &master, e);
	for (int i = 0; i < 3; i++)
		close_fd(spawn.stdio[i]);
	if (r == 0 && j->tty)
		r = relay_adopt(j->relay, RELAY_TTY, master, e);
	if (r < 0) {
		job_free(j);
		return r;
	}
	j->number = s->next_job++;
	add_job(s, j);
	*ret = j;
	return 0;
}

int job_exit_code(const struct err *e)
{
	return e->error == -ENOENT ? 127 : e->error == -EACCES || e->error == -ENOEXEC ? 126 : 125;
}

int job_revive(struct job **ret, struct session *s, const Pb__Job *p, struct err *e)
{
	struct job *j;

	if (p->number > MAX_NUMBER || (!p->exited && p->vpid < 2) || job_find(s, p->number))
		return err_set(e, ERR_IMAGE, -EBADMSG, "command %u makes no sense", p->number);
	j = new_job(s, p->argv, p->n_argv, e);
	if (!j)
		return -ENOMEM;
	j->number = p->number;
	j->vpid = p->vpid;
	j->exited = j->told = p->exited;
	j->status = p->status;
	j->tty = p->tty;
	modes_feed(&j->modes, p->modes.data, p->modes.len);
	s->next_job = MAX(s->next_job, p->number + 1);
	add_job(s, j);
	*ret = j;
	if (j->number == 0 && j->exited) {
		s->record->status = j->status;
		s->record->ended = s->op.world->realtime_ns / 1000000000; /* by then it had */
	}
	return 0;
}

int job_check_all(struct session *s, struct err *e)
{
	const struct numbers *numbers = s->world.numbers;
	char name[16];

	for (const struct job *j = s->jobs; j; j = j->next) {
		snprintf(name, sizeof(name), "%d",
			numbers ? numbers_host(numbers, j->vpid) : j->vpid);
		if (!j->exited && !j->early && faccessat(s->world.proc_fd, name, F_OK, 0) < 0)
			return err_set(e, ERR_IMAGE, -ESRCH, "command %u is process %d, which there is not",
				j->number, j->vpid);
	}
	return 0;
}

static void prefix_of(const struct job *j, char ret[16])
{
	ret[0] = '\0';
	if (j->number)
		snprintf(ret, 16, "x%u.", j->number % (MAX_NUMBER + 1));
}

int job_adopt(struct session *s, const char *name, int fd, struct err *e)
{
	static const char *const streams[RELAY_STREAMS] = {"stdin", "stdout", "stderr", "tty"};
	char prefix[16];

	for (struct job *j = s->jobs; j; j = j->next) {
		size_t n;

		prefix_of(j, prefix);
		n = strlen(prefix);
		if (strncmp(name, prefix, n) != 0)
			continue;
		for (int i = 0; i < RELAY_STREAMS; i++)
			if (strcmp(name + n, streams[i]) == 0)
				return relay_adopt(j->relay, (enum relay_stream)i, fd, e);
	}
	close(fd);
	return err_set(e, ERR_IMAGE, -EBADMSG, "edge '%.15s' belongs to no command", name);
}

struct job *job_find(struct session *s, unsigned number)
{
	struct job *j = s->jobs;

	while (j && j->number != number)
		j = j->next;
	return j;
}

struct job *job_find_vpid(struct session *s, pid_t vpid)
{
	struct job *j = s->jobs;

	while (j && (j->vpid != vpid || j->exited))
		j = j->next;
	return j;
}

size_t job_edges(struct session *s, struct ckpt_edge *ret, size_t max)
{
	size_t n = 0;
	char prefix[16];

	for (struct job *j = s->jobs; j && n + RELAY_STREAMS <= max; j = j->next) {
		prefix_of(j, prefix);
		n += relay_edges(j->relay, prefix, ret + n);
	}
	return n;
}

void job_hold_all(struct session *s, bool on)
{
	for (struct job *j = s->jobs; j; j = j->next)
		relay_hold(j->relay, on);
}

void job_drain_all(struct session *s)
{
	for (struct job *j = s->jobs; j; j = j->next)
		relay_drain(j->relay);
}

void job_tell_end(struct client *c, int status, int left)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Exited x = PB__EXITED__INIT;

	x.status = status;
	x.left = left;
	m.body_case = PB__CONTROL__BODY_EXITED;
	m.exited = &x;
	control_send(c, &m);
}

void job_ended(struct job *j, int status)
{
	j->exited = true;
	j->status = status;
	relay_drain(j->relay);
}

static void tell(struct job *j, int left)
{
	struct session *s = j->session;

	j->told = true;
	for (struct client *c = s->clients, *next; c; c = next) {
		next = c->next;
		if (c->job != j && !(c->waiting && j->number == 0))
			continue;
		c->waiting = false;
		job_tell_end(c, j->status, left);
	}
	j->primary = NULL;
	relay_poke(j->relay);
	/* Its descendants may go on writing to the pipes; without them nothing is left of it. */
	if (j->number && relay_open_streams(j->relay) == 0)
		remove_job(j);
}

void job_tell_all(struct session *s, int left)
{
	for (struct job *j = s->jobs, *next; j; j = next) {
		next = j->next;
		if (j->exited && !j->told)
			tell(j, left);
	}
}

void job_tell_waiting(struct session *s)
{
	for (struct client *c = s->clients, *next; c; c = next) {
		next = c->next;
		if (!c->waiting)
			continue;
		c->waiting = false;
		job_tell_end(c, s->record->status, 0);
	}
}

static void enter_modes(struct job *j)
{
	buf_clear(&j->entered);
	modes_enter(&j->modes, &j->entered);
	if (buf_error(&j->entered) < 0)
		buf_clear(&j->entered);
}

void job_show(struct job *j, struct client *c, uint32_t rows, uint32_t cols)
{
	if (!j->tty || !rows || !cols)
		return;
	enter_modes(j);
	if (j->entered.len)
		control_send_output(c, RELAY_TTY, j->entered.data, j->entered.len);
	relay_redraw(j->relay, (uint16_t)rows, (uint16_t)cols);
}

void job_describe(struct job *j, Pb__Job *ret)
{
	const uint8_t *input;
	bool ended;
	size_t n;

	pb__job__init(ret);
	relay_pending(j->relay, &input, &n, &ended);
	ret->number = j->number;
	ret->vpid = j->vpid;
	ret->exited = j->exited;
	ret->status = j->status;
	ret->tty = j->tty;
	enter_modes(j);
	ret->modes.data = j->entered.data;
	ret->modes.len = j->entered.len;
	ret->input.data = (uint8_t *)input;
	ret->input.len = n;
	ret->input_ended = ended;
	ret->streams = relay_open_streams(j->relay);
	ret->argv = j->argv;
	while (j->argv[ret->n_argv])
		ret->n_argv++;
}

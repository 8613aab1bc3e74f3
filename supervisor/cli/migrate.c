// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun migrate: moves a session to another host through ssh, where `podrun receive` rebuilds it.
 *
 * The session is never lost and never runs twice: it is frozen here until the other side has it
 * whole; then this host records durably that it gave it away, says GO, and ends its own when that
 * is acknowledged.  Who gives it up before that is heard there (interrupt.h).  transfer.h has the
 * conversation.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/arrival.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/interrupt.h"
#include "supervisor/cli/json.h"
#include "supervisor/cli/lend.h"
#include "supervisor/cli/transfer.h"
#include "supervisor/client.h"
#include "supervisor/message.h"

struct migrate_options {
	bool finish, abort, json, compress, live, force;
	const char *podrun, *outside, *tracker, *connections;
	uint64_t rounds, time, rest;
};

#define AT(member) offsetof(struct migrate_options, member)
static const struct cli_option options[] = {
	{"finish", 0, NULL, "a move in doubt has happened: end it here, or let it run if it came here",
		CLI_FLAG, AT(finish)},
	{"abort", 0, NULL, "a move in doubt has not happened: let it run here, or remove what came here",
		CLI_FLAG, AT(abort)},
	{"json", 0, NULL, "tell how long it took, as JSON", CLI_FLAG, AT(json)},
	{"compress", 'z', NULL, "compress with zstd", CLI_FLAG, AT(compress)},
	{"outside", 0, "refuse|close|reset", "what becomes of connections that lead out of the session",
		CLI_CHOICE, AT(outside)},
	{"connections", 0, "keep|reset",
		"through a gateway on this host: they go on through it (keep), or are reset there", CLI_CHOICE,
		AT(connections)},
	{"podrun", 0, "PATH", "where podrun is on the other host", CLI_STRING, AT(podrun)},
	{"live", 0, NULL, "copy memory while the session runs, and stop it for the rest only", CLI_FLAG,
		AT(live)},
	{"rounds", 0, "N", "of --live: copy what was written to meanwhile at most so often (30)", CLI_NUMBER,
		AT(rounds)},
	{"time", 0, "SECONDS", "of --live: copy for so long at most", CLI_NUMBER, AT(time)},
	{"rest", 0, "KIB", "of --live: stop when no more is left (what the line takes in 20 ms)", CLI_NUMBER,
		AT(rest)},
	{"force", 0, NULL, "of --live: stop then, however much is left", CLI_FLAG, AT(force)},
	{"tracker", 0, "wp_async|soft_dirty", "of --live: how it is told what was written to", CLI_CHOICE,
		AT(tracker)},
	{"lazy", 0, NULL, "fetching memory when it is needed is not built yet", CLI_REFUSED, 0},
};

/* Of a greeting, which is a line with its NUL. */
#define MORE_MAX (TRANSFER_MAX_LINE - 1 - sizeof(TRANSFER_HELLO) - PROTO_KEY_TEXT_LEN)
#define FOREIGN_LINES 1000 /* a long text of the day */
#define SAID_MAX      80   /* of one of them in a message */
#define END_MS	      2000 /* for ssh to say the last word */

/* ---- what its supervisor says meanwhile ---------------------------------------------------- */

struct hearing {
	struct cli *c;
	const char *name;
	struct proto_conn *conn;
	Pb__Control *reply; /* to the request, or NULL */
	struct err failure;
	bool shown;
};

static void show_progress(struct hearing *h, const Pb__Progress *p)
{
	char done[32], all[32], rate[32];

	if (!isatty(STDERR_FILENO))
		return;
	cli_bytes(p->done, done, sizeof(done));
	cli_bytes(p->all, all, sizeof(all));
	cli_bytes(p->rate, rate, sizeof(rate));
	fprintf(stderr, "\r\033[Kround %u: %s of %s", p->round, done, all);
	if (p->rate)
		fprintf(stderr, ", %s/s, %.1f s left", rate,
			(double)(p->all - MIN(p->done, p->all)) / (double)p->rate);
	fflush(stderr);
	h->shown = true;
}

/* -ECANCELED: it can't be moved any more, as `failure` says. */
static int hear(void *ctx)
{
	struct hearing *h = ctx;
	Pb__Control *m;

	if (client_receive(h->conn, &m, &h->failure) < 0) {
		client_lost(&h->c->paths, h->name, &h->failure);
		return -ECANCELED;
	}
	if (m->body_case == PB__CONTROL__BODY_PROGRESS)
		show_progress(h, m->progress);
	if (m->body_case != PB__CONTROL__BODY_PROGRESS && !h->reply)
		h->reply = m;
	else
		message_free(m);
	return 0;
}

/* ---- the other side ------------------------------------------------------------------------ */

/* The process that leads to the other host. */
struct ssh {
	pid_t pid;
	int in, out; /* ours */
	const char *host, *podrun;
	struct hearing *here;
	bool heard;		      /* a word of podrun's */
	bool there;		      /* somebody, who waits for an image */
	bool called_off;	      /* an ABORT is on its way */
	char line[TRANSFER_MAX_LINE]; /* that was expected last */
	struct lend lend;
};

/* The shell's words that lead there; freed by the caller. */
static char *ssh_command(struct cli *c)
{
	const char *command = getenv("PODRUN_SSH");
	char *configured = command ? NULL : cli_setting(c, "ssh");

	return configured ? configured : strdup(command ? command : "ssh");
}

static const char *podrun_there(const struct migrate_options *o)
{
	return o->podrun ? o->podrun : "podrun";
}

static int start_ssh(const char *command, const struct migrate_options *o, const char *host,
	struct ssh *ret, struct err *e)
{
	_cleanup_free_ char *script = NULL, *remote = NULL;
	int in[2], out[2];

	/* Words of the command are for the shell; the host and what runs there are arguments. */
	if (asprintf(&script, "exec %s \"$@\"", command) < 0 ||
		asprintf(&remote, "%s receive", podrun_there(o)) < 0)
		return err_errno(e, -ENOMEM, "ssh");
	if (pipe2(in, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "pipe");
	if (pipe2(out, O_CLOEXEC) < 0) {
		close(in[0]);
		close(in[1]);
		return err_errno(e, -errno, "pipe");
	}
	ret->host = host;
	ret->podrun = podrun_there(o);
	ret->heard = ret->there = ret->called_off = false;
	ret->pid = fork();
	if (ret->pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		interrupt_spare();
		if (dup2(in[0], STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0)
			_exit(127);
		execl("/bin/sh", "sh", "-c", script, "sh", host, remote, (char *)NULL);
		_exit(127);
	}
	interrupt_begin(ret->pid);
	close(in[0]);
	close(out[1]);
	if (!o->live)
		transfer_widen(in[1]);
	ret->in = in[1];
	ret->out = out[0];
	return ret->pid < 0 ? err_errno(e, -errno, "fork") : 0;
}

/*
 * Nothing more goes there, and the line may have stalled.  Where it takes no word any more the other side
 * has not got all of the image.
 */
static void call_off(struct ssh *s)
{
	int r = s->there ? io_set_nonblock(s->in, true) : -EAGAIN;

	if (r == 0)
		r = transfer_write_line(s->in, "ABORT");
	s->called_off = r == 0;
	if (r == -EAGAIN && s->pid > 0)
		kill(s->pid, SIGTERM);
}

/* What was called off is left to ssh, which tells it when it can. */
static bool outlives(const struct ssh *s)
{
	_cleanup_close_ int pidfd = s->called_off ? sys_pidfd_open(s->pid, 0) : -1;
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return pidfd >= 0 && poll(&p, 1, END_MS) == 0;
}

/* Its exit code; -1 where there is none. */
static int end_ssh(struct ssh *s)
{
	int status = -1;

	interrupt_there(-1);
	s->in = close_fd(s->in);
	s->out = close_fd(s->out);
	if (s->pid > 0 && (outlives(s) || waitpid(s->pid, &status, 0) != s->pid))
		status = -1;
	interrupt_end();
	s->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* @said: by somebody who is not podrun, such as an account's shell that lets nobody in. */
static int gone(const struct ssh *s, const char *said, struct err *e)
{
	if (*said && !s->heard)
		err_set(e, ERR_PEER, -ECONNRESET, "%s: the connection ended after '%s'", s->host, said);
	else
		err_set(e, ERR_PEER, -ECONNRESET, "%s: the connection ended", s->host);
	return err_hint(e, "is podrun there? try: ssh %s %s check", s->host, s->podrun);
}

/* What a shell says may lack a newline, such as what sets a terminal's title. */
static bool is_word(const struct ssh *s, const char *word)
{
	size_t all = strlen(s->line), n = strlen(word);

	return strncmp(s->line, word, n) == 0 ||
	       (!s->heard && all > n && strcmp(s->line + all - n, word) == 0);
}

/*
 * The other side's next line must begin with @word.  Before its first one there may be what the shell
 * there says to whoever comes.  -ECANCELED: the session here is not to be moved any more.
 */
static int expect(struct ssh *s, const char *word, struct err *e)
{
	const struct transfer_watch watch = {proto_conn_fd(s->here->conn), hear, s->here};
	char *line = s->line, said[SAID_MAX] = "";

	for (int i = 0; i < FOREIGN_LINES; i++) {
		if (transfer_await(s->out, POLLIN, &watch) < 0) {
			*e = s->here->failure;
			return -ECANCELED;
		}
		if (transfer_read_line(s->out, line) < 0)
			return gone(s, said, e);
		if (is_word(s, word)) {
			s->heard = true;
			return 0;
		}
		if (strncmp(line, "FAIL ", 5) == 0)
			return err_set(e, ERR_PEER, -EREMOTEIO, "%s: %s", s->host, line + 5);
		if (s->heard)
			break;
		line[strcspn(line, "\r")] = '\0';
		if (*line)
			snprintf(said, sizeof(said), "%.*s", (int)sizeof(said) - 1, line);
	}
	return err_set(e, ERR_PEER, -EREMOTEIO, "%s: the other side speaks another language", s->host);
}

static int decide(struct proto_conn *conn, Pb__Decision__What what, const char *peer, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT, *reply;
	Pb__Decision d = PB__DECISION__INIT;
	int r;

	d.what = what;
	d.peer = (char *)peer;
	m.body_case = PB__CONTROL__BODY_DECISION;
	m.decision = &d;
	r = client_call(conn, &m, NULL, 0, &reply, e);
	if (r == 0)
		message_free(reply);
	return r;
}

/* @more: the words behind the key. */
static int say_hello(struct cli *c, struct ssh *s, const char *hello, const char *more, struct err *e)
{
	uint8_t key[PROTO_KEY_LEN];
	char text[PROTO_KEY_TEXT_LEN];
	struct proto_key *k;
	int r = proto_key_open(&k, c->paths.config, e);

	if (r < 0)
		return r;
	proto_key_public(k, key);
	proto_key_close(k);
	proto_key_format(key, text);
	if (transfer_write_line(s->in, "%s%s%s", hello, text, more) < 0)
		return err_set(e, ERR_PEER, -EPIPE, "%s: the connection ended", s->host);
	return 0;
}

static void fill_live(const struct migrate_options *o, Pb__Live *live)
{
	live->tracker = (char *)(o->tracker ? o->tracker : "");
	live->rounds = (uint32_t)MIN(o->rounds, (uint64_t)UINT32_MAX);
	live->seconds = (uint32_t)MIN(o->time, (uint64_t)UINT32_MAX);
	live->rest = MIN(o->rest, UINT64_MAX >> 10) << 10;
	live->force = o->force;
}

static int request(struct proto_conn *conn, const struct migrate_options *o, int to, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__SuspendRequest q = PB__SUSPEND_REQUEST__INIT;
	Pb__Live live = PB__LIVE__INIT;

	q.stream = true;
	q.hold = true;
	fill_live(o, &live);
	q.live = o->live ? &live : NULL;
	q.zstd_level = o->compress ? 3 : 0;
	q.outside = (char *)(o->outside ? o->outside : "");
	m.body_case = PB__CONTROL__BODY_SUSPEND;
	m.suspend = &q;
	return client_send(conn, &m, &to, 1, e);
}

/* Freezes the session and sends it; or `e` says why not. */
static int send_session(const struct migrate_options *o, struct ssh *s, struct err *e)
{
	struct hearing *h = s->here;
	const struct transfer_watch watch = {proto_conn_fd(h->conn), hear, h};
	int ends[2], sent, r;

	interrupt_there(s->in);
	s->there = true;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "pipe");
	if (!o->live)
		transfer_widen(ends[1]);
	r = request(h->conn, o, ends[1], e);
	close(ends[1]);
	sent = r < 0 ? r : transfer_send_image(ends[0], s->in, &watch);
	/* A worker that is still writing fails now, and the session runs on, here. */
	if (sent < 0)
		lend_end(&s->lend);
	close(ends[0]);
	if (r < 0)
		return r;
	while (!h->reply && !err_is(&h->failure) && hear(h) == 0)
		continue;
	if (h->shown)
		fputs("\r\033[K", stderr);
	if (sent == 0 || sent == -ECANCELED) {
		*e = h->failure;
		return err_is(e) ? -ECANCELED : 0;
	}
	/* with a report it stands still until it is told that this was all */
	return expect(s, "READY", e) < 0 ? e->error :
					   err_set(e, ERR_PEER, -EPIPE, "%s: the connection ended", s->host);
}

/* Nobody has said what became of it there. */
static int in_doubt(const char *name, const struct ssh *s, int error, struct err *e)
{
	*e = (struct err){0};
	err_set(e, ERR_IN_DOUBT, -EREMOTEIO, "'%s' was given to %s, which did not acknowledge it; it %s",
		name, s->host, error == -ECANCELED ? "has ended here" : "is frozen here");
	if (error == -ECANCELED)
		return err_hint(e, "podrun ps there; if it has arrived: podrun migrate --finish %s there",
			name);
	return err_hint(e, "if it runs there: podrun migrate --finish %s; if not: --abort it there, then here",
		name);
}

/* From GO on nobody may decide alone any more. */
static int hand_over(struct proto_conn *conn, const char *name, struct ssh *s, struct err *e)
{
	struct err why = {0};
	int r;

	interrupt_hold(true);
	r = decide(conn, PB__DECISION__WHAT__GIVE_AWAY, s->host, e);
	if (r == 0)
		lend_keep(&s->lend);
	if (r == 0)
		r = transfer_write_line(s->in, "GO");
	else
		transfer_write_line(s->in, "ABORT");
	if (!err_is(e))
		interrupt_doubt(s->out);
	interrupt_hold(false);
	if (err_is(e))
		return r;
	if (r == 0)
		r = expect(s, "ACK", &why);
	if (r < 0)
		return in_doubt(name, s, r, e);
	return decide(conn, PB__DECISION__WHAT__FINISH, s->host, e);
}

static void tell(const struct migrate_options *o, const Pb__Report *r)
{
	if (r->note[0])
		fprintf(stderr, "podrun: %s\n", r->note);
	if (o->json)
		json_print(json_of_report(r));
}

/* "READY NAME NOTE": what is not as it was. */
static void tell_note(const struct ssh *s)
{
	const char *name = strchr(s->line, ' '), *note = name ? strchr(name + 1, ' ') : NULL;
	_cleanup_free_ char *text = NULL;

	if (strncmp(s->line, "READY ", 6) == 0 && note &&
		asprintf(&text, "%s: %s", s->host, note + 1) > 0)
		cli_say_note(text);
}

/* A word for the other side, which may make the session's world before it has the session. */
static char *foretell(struct cli *c, const char *name)
{
	_cleanup_free_ char *path = paths_session(&c->paths, name, NULL);
	_cleanup_close_ int dir = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct client_session s;
	struct err ignored = {0};
	char *word = NULL;

	if (dir < 0 || client_look(&s, &c->paths, name, &ignored) < 0)
		return NULL;
	arrival_foretell(s.record->config, dir, &b);
	client_session_fini(&s);
	if (b.len && !b.failed && b.len <= PROTO_BASE64_MAX)
		word = malloc(PROTO_BASE64_SIZE(b.len));
	if (word)
		proto_base64_encode(b.data, b.len, word);
	return word;
}

/* Until it waits for the image.  1: it does not understand that. */
static int greet(struct cli *c, const struct migrate_options *o, const char *command,
	const char *host, const char *more, struct ssh *s, struct err *e)
{
	int r = start_ssh(command, o, host, s, e);

	if (r == 0)
		r = say_hello(c, s, TRANSFER_HELLO, more, e);
	/* who has gone already may have said why */
	if (r == -EPIPE) {
		*e = (struct err){0};
		r = 0;
	}
	if (r == 0)
		r = expect(s, "HERE", e);
	if (r != -ECONNRESET || end_ssh(s) != err_class_info(ERR_USAGE)->exit_code)
		return r;
	*e = (struct err){0};
	return 1;
}

/* Until the other side waits for the image: what takes longest of the way there is over then. */
static int be_there(struct cli *c, const struct migrate_options *o, const char *command,
	const char *name, const char *host, struct ssh *s, struct err *e)
{
	/* which should have been reached before it says HERE */
	_cleanup_free_ char *gateway = lend_gateway(c, name);
	_cleanup_free_ char *foretold = foretell(c, name);
	_cleanup_buf_ struct buf more = BUF_INIT, all = BUF_INIT;
	int r = 1;

	buf_printf(&more, "%s%s%s", o->live ? " " TRANSFER_LIVE : "", gateway ? " @" : "",
		gateway ? gateway : "");
	buf_printf(&all, "%s =%s", buf_cstr(&more), foretold ? foretold : "");
	if (!buf_cstr(&more) || !buf_cstr(&all))
		return err_errno(e, -ENOMEM, "migrate");
	if (foretold && all.len <= MORE_MAX)
		r = greet(c, o, command, host, buf_cstr(&all), s, e);
	/* an older podrun, which takes no line as long as that */
	if (r == 1)
		r = greet(c, o, command, host, buf_cstr(&more), s, e);
	if (r != 1)
		return r;
	/* a still older one, which says nothing before it has all */
	r = start_ssh(command, o, host, s, e);
	return r < 0 ? r : say_hello(c, s, TRANSFER_HELLO_1, "", e);
}

/* The way there, and a way back if its connections need one. */
static int start_lines(struct cli *c, const struct migrate_options *o, const char *name,
	struct ssh *s, const char *host, struct err *e)
{
	_cleanup_free_ char *command = ssh_command(c);
	int r;

	if (!command)
		return err_errno(e, -ENOMEM, "ssh");
	if (!o->connections || strcmp(o->connections, "reset") != 0)
		lend_begin(&s->lend, c, name, host, command, podrun_there(o));
	r = be_there(c, o, command, name, host, s, e);
	if (r == 0 && !lend_await(&s->lend))
		fprintf(stderr, "podrun: its connections can't go on through this host's gateway\n");
	return r;
}

/* It runs on here. */
static void give_up(struct ssh *s, int error)
{
	struct err ignored = {0};

	lend_end(&s->lend); /* first, for the session runs on as soon as it hears of it */
	if (s->here->reply || error == -ECANCELED)
		call_off(s);
	if (s->here->reply)
		decide(s->here->conn, PB__DECISION__WHAT__ABORT, "", &ignored);
}

static int move(struct cli *c, const struct migrate_options *o, const char *name, const char *host,
	struct err *e)
{
	struct hearing here = {.c = c, .name = name};
	struct ssh ssh = {.in = -1, .out = -1, .lend = LEND_INIT, .here = &here};
	_cleanup_free_ char *ports = NULL, *command = NULL;
	int r = client_connect(&here.conn, &c->paths, name, e);

	if (r < 0)
		return r;
	signal(SIGPIPE, SIG_IGN);
	ports = lend_ports(c, name);
	r = start_lines(c, o, name, &ssh, host, e);
	if (r == 0)
		r = send_session(o, &ssh, e);
	if (r == 0)
		r = expect(&ssh, "READY", e);
	if (r == 0) {
		bool lent = ssh.lend.pid != 0;

		tell_note(&ssh);
		r = hand_over(here.conn, name, &ssh, e);
		lend_end(&ssh.lend);
		command = r == 0 && ports && !lent ? ssh_command(c) : NULL;
		if (command)
			lend_forward(c, host, command, podrun_there(o), ports);
	} else {
		give_up(&ssh, r);
	}
	end_ssh(&ssh);
	proto_conn_free(here.conn);
	if (r == 0 && here.reply->body_case == PB__CONTROL__BODY_REPORT)
		tell(o, here.reply->report);
	message_free(here.reply);
	return r;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct migrate_options *o = opts;
	bool settle = o->finish || o->abort;
	_cleanup_free_ char *only = NULL;
	const char *name = argv[0], *host;
	struct proto_conn *conn;
	int r;

	if (!o->live && (o->rounds || o->time || o->rest || o->force || o->tracker))
		return err_set(e, ERR_USAGE, -EINVAL,
			"--rounds, --time, --rest, --force and --tracker belong to --live");
	if (o->finish && o->abort)
		return err_set(e, ERR_USAGE, -EINVAL, "--finish or --abort, not both");
	if (argc < (settle ? 1 : 2)) {
		if (!settle && argc == 0)
			return err_set(e, ERR_USAGE, -EINVAL, "usage: podrun migrate [NAME] [USER@]HOST");
		if (cli_only_session(c, &only, e) < 0)
			return e->error;
		name = only;
	}
	if (!settle) {
		host = argv[argc - 1];
		/* what looks like an option would be one of ssh's */
		if (!*host || *host == '-')
			return err_set(e, ERR_USAGE, -EINVAL, "'%s' is no [USER@]HOST", host);
		r = move(c, o, name, host, e);
		return r < 0 ? err_wrap(e, "cannot migrate '%s'", name) : 0;
	}
	r = client_connect(&conn, &c->paths, name, e);
	if (r < 0)
		return r;
	r = decide(conn, o->finish ? PB__DECISION__WHAT__FINISH : PB__DECISION__WHAT__ABORT, "", e);
	proto_conn_free(conn);
	return r < 0 ? err_wrap(e, "cannot decide about '%s'", name) : 0;
}

const struct cli_command cli_migrate = {
	.name = "migrate",
	.usage = "[NAME] [USER@]HOST | --finish NAME | --abort NAME",
	.help = "move a session to another host",
	.text = "Nothing needs to be set up but podrun on the other host; the way there is *ssh*, or the "
		"command in the *ssh* setting or in *PODRUN\\_SSH*. If the other side fails before it has "
		"the session whole, exit code 8, the session runs on here, or stays paused; one that has "
		"arrived runs, paused or not before.\n\n"
		"If it does not acknowledge that it may go on, exit code 9, it is in doubt whether it heard so. "
		"The session stays frozen here; *podrun ps* there says whether it is running, or has "
		"arrived and is as frozen there. One that is running there is ended here by *--finish*. One that "
		"has arrived goes on there after *--finish*, said here first, then there, or here after "
		"*--abort*, said there first, then here; so does one that is not there after *--abort*. Until "
		"then *stop* and *kill* refuse to end it; *rm -f* does not.\n\n"
		"Connections to the outside go on where the session has a gateway on another host (*podrun run "
		"--gateway HOST*). One whose gateway is on this host keeps them as long as this host and the way to it "
		"through *ssh* are there; *podrun ps* says through whom it goes.\n\n"
		"With *--live* memory is copied while the session runs, and again what it has written to "
		"meanwhile, until little is left; then it stops, for that and all else. Commands can't be started in "
		"it before that is over. A session that writes faster than the line takes it is told so, and runs on "
		"here, unless *--force* is given. It needs Linux 6.7 with userfaultfd(2), or a kernel with soft-dirty "
		"bits (*podrun check*); where there is neither, or names are rewritten, it is said, and the session "
		"moved as without it.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct migrate_options),
	.group = CLI_MOVE,
	.operand = CLI_SESSION,
	.max_operands = 2,
	.run = run,
};

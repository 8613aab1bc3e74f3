// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun run: a new session.  Options come from the user's config file, then a description
 * (--file), then the command line; what is said last holds, lists add up.
 */
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "display/display.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/check.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/run.h"
#include "supervisor/cli/run_net.h"
#include "supervisor/cli/run_vnc.h"
#include "supervisor/cli/stream.h"
#include "supervisor/client.h"
#include "supervisor/kin.h"
#include "supervisor/message.h"
#include "supervisor/portable.h"
#include "supervisor/world/world.h"
#include "vnet/vnet.h"

struct run_options {
	const char *name, *file, *workdir, *root, *user, *names, *view, *hostname, *command,
		*outside, *every, *keep, *display, *vnc;
	bool detach, interactive, tty, remove, portable, io_uring, end_with_command, sound,
		no_sound;
	struct cli_list env, env_files, volumes, allow;
	struct run_net net;
	uint64_t memory, pids;
};

#define ROOT_HOME "HOME=/root"
#define KEEP	  10 /* snapshots */
#define NETS	  "none|host|vnat|passthrough:IF[@NETNS]"

#define AT(member) offsetof(struct run_options, member)
static const struct cli_option options[] = {
	{"name", 0, "NAME", "name of the session; made up if not given", CLI_STRING, AT(name)},
	{"detach", 'd', NULL, "print the name and leave it running", CLI_FLAG, AT(detach)},
	{"interactive", 'i', NULL, "keep stdin open, also while nobody is attached", CLI_FLAG,
		AT(interactive)},
	{"tty", 't', NULL, "give the command a terminal", CLI_FLAG, AT(tty)},
	{"rm", 0, NULL, "remove record and log when it has ended", CLI_FLAG, AT(remove)},
	{"env", 'e', "NAME[=VALUE]", "set a variable, or pass ours on", CLI_LIST, AT(env)},
	{"env-file", 0, "FILE", "read variables from a file", CLI_LIST, AT(env_files)},
	{"workdir", 'w', "DIR", "working directory inside", CLI_STRING, AT(workdir)},
	{"volume", 'v', "SRC:DST[:ro]", "show a directory of the host inside", CLI_LIST,
		AT(volumes)},
	{"root", 0, "DIR", "the session's / (default: the host's, below a layer of its own)",
		CLI_STRING, AT(root)},
	{"user", 0, "root|me", "who the session runs as inside", CLI_CHOICE, AT(user)},
	{"hostname", 0, "NAME", "host name inside (default: the session's name)", CLI_STRING,
		AT(hostname)},
	{"net", 0, NETS,
		"network: a loopback of its own, the host's, addresses of its own behind a gateway, or an "
		"interface of the host's",
		CLI_STRING, AT(net.net)},
	{"publish", 'p', "[IP:]HOST:SESSION[/udp]",
		"a port of the host that leads to one of the session's (--net vnat)", CLI_LIST,
		AT(net.publish)},
	{"address", 0, "ADDRESS", "the session's own, for IPv4, IPv6 or both (--net vnat)",
		CLI_LIST, AT(net.address)},
	{"gateway", 0, "local|HOST|wg:FILE",
		"where its connections meet the outside (--net vnat; default: here)", CLI_STRING,
		AT(net.gateway)},
	{"carrier", 0, "stream|auto",
		"how packets get to a gateway on another host: by ssh, or by UDP where that works "
		"(--net vnat; default: stream)",
		CLI_CHOICE, AT(net.carrier)},
	{"host-loopback", 0, "ADDRESS",
		"let it reach the host's loopback, by the gateway's or this address (--net vnat)",
		CLI_MAYBE, AT(net.host_loopback)},
	{"dns-update", 0, "ZONE/NAME@SERVER[:KEYFILE]",
		"a name in DNS that points to where its ports are, wherever it goes (--net vnat)",
		CLI_STRING, AT(net.dns_update)},
	{"on-move", 0, "COMMAND",
		"run inside, by sh, when the outside knows it by other addresses (--net vnat)",
		CLI_STRING, AT(net.on_move)},
	{"link-local", 0, NULL,
		"let it reach link-local addresses, and so what a cloud tells its host (--net vnat)",
		CLI_FLAG, AT(net.link_local)},
	{"outside", 0, "refuse|close|reset",
		"at a suspend, what becomes of connections that lead out of the session",
		CLI_CHOICE, AT(outside)},
	{"names", 0, "auto|kernel|rewrite",
		"who holds names: the kernel, or podrun where it can't (auto)", CLI_CHOICE,
		AT(names)},
	{"view", 0, "private|host", "files: a view of its own, or the host's as they are (with --names rewrite)",
		CLI_CHOICE, AT(view)},
	{"memory", 0, "SIZE", "limit of memory; needs a cgroup that is delegated to you", CLI_SIZE,
		AT(memory)},
	{"pids", 0, "N", "limit of processes and threads; 0: none", CLI_NUMBER, AT(pids)},
	{"every", 0, "TIME", "a snapshot that often: 30s, 10m, 2h; NAME@1, NAME@2 ...", CLI_STRING,
		AT(every)},
	{"keep", 0, "N", "of these, so many (10); 0: all", CLI_STRING, AT(keep)},
	{"portable", 0, NULL, "use no CPU feature that another host may lack", CLI_FLAG,
		AT(portable)},
	{"io-uring", 0, NULL, "let programs use io_uring; who has a ring can't be suspended or moved", CLI_FLAG,
		AT(io_uring)},
	{"end-with-command", 0, NULL, "end what the command leaves behind", CLI_FLAG,
		AT(end_with_command)},
	{"allow", 0, "USER",
		"let another user of this host in, to whom it is OWNER/NAME (exec, attach, suspend "
		"...)",
		CLI_LIST, AT(allow)},
	{"file", 0, "FILE", "options and command from a file of `name = value` lines", CLI_STRING,
		AT(file)},
	{"command", 0, "COMMAND", "the command, for use in files", CLI_STRING, AT(command)},
	{"display", 0, "WxH", "a screen of its own, which podrun view shows (1280x800)", CLI_MAYBE,
		AT(display)},
	{"sound", 0, NULL, "with --display: not without PulseAudio, by which viewers hear what is played",
		CLI_FLAG, AT(sound)},
	{"no-sound", 0, NULL, "with --display: none", CLI_FLAG, AT(no_sound)},
	{"vnc", 0, "[ADDR:]PORT", "serve VNC viewers, in the background (--display; any port)", CLI_MAYBE,
		AT(vnc)},
};

static bool is(const char *value, const char *what)
{
	return value && strcmp(value, what) == 0;
}

/* ---- environment --------------------------------------------------------------------------- */

struct strings {
	char **items;
	size_t n;
	bool failed;
};

static void add(struct strings *s, char *item)
{
	char **grown = realloc(s->items, (s->n + 2) * sizeof(*grown));

	if (!grown || !item) {
		s->failed = true;
		free(item);
		return;
	}
	s->items = grown;
	s->items[s->n++] = item;
	s->items[s->n] = NULL;
}

/* Sets VARIABLE=value, replacing an earlier one. */
static void set_variable(struct strings *s, const char *text)
{
	size_t key = strcspn(text, "=") + 1;

	for (size_t i = 0; i < s->n; i++)
		if (strncmp(s->items[i], text, key) == 0) {
			free(s->items[i]);
			s->items[i] = s->items[--s->n];
			break;
		}
	add(s, strdup(text));
}

static void unset_variable(struct strings *s, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < s->n; i++)
		if (strncmp(s->items[i], name, n) == 0 && s->items[i][n] == '=') {
			free(s->items[i]);
			s->items[i] = s->items[--s->n];
		}
}

/* A variable as -e takes it: with a value, or with ours. */
static int pass_variable(struct strings *s, const char *text, const char *where, struct err *e)
{
	_cleanup_free_ char *whole = NULL;
	const char *ours = strchr(text, '=') ? NULL : getenv(text);

	if (!text[0] || text[0] == '=')
		return cli_not_valid(where, text, "NAME[=VALUE]", e);
	if (strchr(text, '='))
		set_variable(s, text);
	else if (ours && asprintf(&whole, "%s=%s", text, ours) > 0)
		set_variable(s, whole);
	return 0;
}

static int read_env_file(struct strings *s, const char *path, struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	int r = io_read_file(AT_FDCWD, path, 1 << 20, &b);
	char *text, *save = NULL;

	if (r < 0) {
		err_errno(e, r, "--env-file: %s", path);
		return err_reclass(e, ERR_USAGE);
	}
	if (cli_text(&b, &text, path, e) < 0)
		return err_wrap(e, "--env-file");
	for (char *line = strtok_r(text, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save))
		if (line[0] && line[0] != '#' && pass_variable(s, line, path, e) < 0)
			return e->error;
	return 0;
}

static void make_portable(struct strings *env)
{
	for (size_t i = 0; i < portable_n_variables; i++) {
		const struct portable_variable *v = &portable_variables[i];
		_cleanup_free_ char *text = portable_setting(v, getenv(v->name));

		if (text)
			set_variable(env, text);
		else
			env->failed = true;
	}
}

/* Ours, without what leads out of the session, and what the options say. */
static int make_env(struct strings *env, const struct run_options *o, struct err *e)
{
	static const char *const outside[] = {"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
		"SSH_AUTH_SOCK", "WAYLAND_DISPLAY", "NOTIFY_SOCKET", "PODRUN_LOG"};

	for (char **p = environ; *p; p++)
		add(env, strdup(*p));
	for (size_t i = 0; i < ARRAY_SIZE(outside); i++)
		unset_variable(env, outside[i]);
	set_variable(env, "container=podrun");
	if (o->user && strcmp(o->user, "root") == 0) {
		if (!is(o->names, "rewrite") || o->root)
			set_variable(env, ROOT_HOME);
		set_variable(env, "USER=root");
		set_variable(env, "LOGNAME=root");
		set_variable(
			env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	}
	if (o->portable)
		make_portable(env);
	for (size_t i = 0; i < o->env_files.n; i++)
		if (read_env_file(env, o->env_files.items[i], e) < 0)
			return e->error;
	for (size_t i = 0; i < o->env.n; i++)
		if (pass_variable(env, o->env.items[i], "--env", e) < 0)
			return e->error;
	return env->failed ? err_errno(e, -ENOMEM, "environment") : 0;
}

int run_make_env(const struct cli_list *variables, const struct cli_list *files, char ***ret,
	size_t *ret_n, struct err *e)
{
	struct strings s = {0};

	for (size_t i = 0; i < files->n; i++)
		if (read_env_file(&s, files->items[i], e) < 0)
			return e->error;
	for (size_t i = 0; i < variables->n; i++)
		if (pass_variable(&s, variables->items[i], "--env", e) < 0)
			return e->error;
	*ret = s.items;
	*ret_n = s.n;
	return s.failed ? err_errno(e, -ENOMEM, "environment") : 0;
}

/* ---- what the options mean ----------------------------------------------------------------- */

/* What was asked for that only namespaces give; NULL if nothing. */
static const char *not_rewritten(const struct run_options *o)
{
	const struct {
		bool asked;
		const char *option;
	} all[] = {
		{is(o->net.net, "none"), "--net none (a loopback that nobody else has)"},
		{is(run_net_of(&o->net), "vnat"), "--net vnat (addresses of the session's own)"},
		{vnet_passthrough_of(run_net_of(&o->net)) != NULL,
			"--net passthrough (a network of its own)"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].asked)
			return all[i].option;
	return NULL;
}

static int check_names(const struct run_options *o, struct err *e)
{
	if (!is(o->names, "rewrite"))
		return is(o->view, "host") ? err_set(e, ERR_USAGE, -EINVAL,
						     "--view host goes with --names rewrite only")
					   : 0;
	if (is(o->view, "host") && o->volumes.n)
		return err_set(e, ERR_USAGE, -EINVAL, "--view host leaves nothing to --volume");
	if (is(o->view, "host") && o->root)
		return err_set(e, ERR_USAGE, -EINVAL, "--view host leaves nothing to --root");
	if (o->io_uring) {
		err_set(e, ERR_HOST, -EOPNOTSUPP,
			"--io-uring needs namespaces: what a ring does nobody can rewrite");
		return err_hint(e, "without it programs are told that the kernel has none, and do without");
	}
	if (is(run_net_of(&o->net), "host"))
		return 0;
	err_set(e, ERR_HOST, -EOPNOTSUPP,
		"--names rewrite has no network of its own, only the host's");
	return err_hint(e, is(run_net_of(&o->net), "none")
				   ? "say so with --net host"
				   : "there is no --net vnat (-p, --address, --gateway ...) with it");
}

static int check_net(const char *net, struct err *e)
{
	const char *interface = net ? vnet_passthrough_of(net) : NULL;
	struct vnet_passthrough_name name;

	if (interface)
		return vnet_passthrough_parse(interface, &name, e);
	if (!net || is(net, "none") || is(net, "host") || is(net, "vnat"))
		return 0;
	return cli_not_valid("--net", net, NETS, e);
}

static int check_options(const struct run_options *o, struct err *e)
{
	if (o->name && paths_check_name(o->name, e) < 0)
		return err_wrap(e, "--name");
	if (o->hostname && strlen(o->hostname) > HOST_NAME_MAX)
		return cli_not_valid("--hostname", o->hostname, "at most 64 bytes", e);
	if (check_net(o->net.net, e) < 0 || check_names(o, e) < 0)
		return e->error;
	if ((o->sound || o->no_sound) && (!o->display || (o->sound && o->no_sound)))
		return err_set(e, ERR_USAGE, -EINVAL,
			o->display ? "--sound and --no-sound exclude each other"
				   : "sound is a part of a --display");
	if (o->display && is(o->view, "host"))
		return err_set(e, ERR_USAGE, -EINVAL,
			"--view host has no /tmp of its own for a --display");
	return 0;
}

/* SRC:DST[:ro|:rw], SRC relative to where we are. */
static int parse_volume(const char *text, Pb__Bind *ret, struct err *e)
{
	_cleanup_free_ char *copy = strdup(text);
	char *target = copy ? strchr(copy, ':') : NULL, *mode;

	if (target)
		*target++ = '\0';
	mode = target ? strchr(target, ':') : NULL;
	if (mode)
		*mode++ = '\0';
	if (!target || !paths_valid_target(target) ||
		(mode && strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0)) {
		err_set(e, ERR_USAGE, -EINVAL, "--volume: '%s' is not valid here", text);
		return err_hint(e, "SRC:DST or SRC:DST:ro, with DST from / and without '..'");
	}
	pb__bind__init(ret);
	ret->source = realpath(copy, NULL);
	ret->target = strdup(target);
	ret->read_only = mode && strcmp(mode, "ro") == 0;
	if (!ret->source) {
		err_errno(e, -errno, "--volume: %s", copy);
		return err_reclass(e, ERR_NOT_FOUND);
	}
	return ret->target ? 0 : err_errno(e, -ENOMEM, "volume");
}

static int fill_binds(const struct run_options *o, Pb__Config *c, struct err *e)
{
	c->binds = calloc(o->volumes.n + 1, sizeof(*c->binds));
	for (size_t i = 0; i < o->volumes.n; i++) {
		Pb__Bind *b = c->binds ? calloc(1, sizeof(*b)) : NULL;

		if (!b)
			return err_errno(e, -ENOMEM, "volumes");
		if (parse_volume(o->volumes.items[i], b, e) < 0)
			return e->error;
		c->binds[c->n_binds++] = b;
	}
	return 0;
}

static int fill_allow(const struct run_options *o, Pb__Config *c, struct err *e)
{
	c->allow = calloc(o->allow.n + 1, sizeof(*c->allow));
	for (size_t i = 0; c->allow && i < o->allow.n; i++) {
		const struct passwd *pw = getpwnam(o->allow.items[i]);

		if (!pw)
			return err_set(e, ERR_NOT_FOUND, -ENOENT, "--allow: no user '%s'",
				o->allow.items[i]);
		c->allow[c->n_allow++] = pw->pw_uid;
	}
	return c->allow ? 0 : err_errno(e, -ENOMEM, "users");
}

/* "30s", "10m", "2h"; a number alone is seconds. */
static int parse_time(const char *text, uint32_t *ret, struct err *e)
{
	static const struct {
		char unit;
		uint32_t seconds;
	} units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (*text >= '0' && *text <= '9' && *end == units[i].unit && (!*end || !end[1]) && n &&
			n <= UINT32_MAX / units[i].seconds) {
			*ret = (uint32_t)n * units[i].seconds;
			return 0;
		}
	return err_set(e, ERR_USAGE, -EINVAL, "--every: '%s' is no time, such as 30s, 10m or 2h", text);
}

/* How often there is one, and how many stay. */
static int fill_snapshots(const struct run_options *o, Pb__Config *c, struct err *e)
{
	uint64_t keep = KEEP;

	if (o->keep && !o->every)
		return err_set(e, ERR_USAGE, -EINVAL, "--keep belongs to --every");
	if (o->every && parse_time(o->every, &c->every, e) < 0)
		return e->error;
	if (o->keep && cli_parse_number(o->keep, &keep) < 0)
		return cli_not_valid("--keep", o->keep, "N", e);
	c->keep = o->every ? (uint32_t)MIN(keep, (uint64_t)UINT32_MAX) : 0;
	return 0;
}

/* "1280x800"; "" is the usual. */
static int fill_display(const char *text, Pb__Config *c, struct err *e)
{
	Pb__Display *d = malloc(sizeof(*d));
	char end;

	if (!d)
		return err_errno(e, -ENOMEM, "display");
	pb__display__init(d);
	c->display = d;
	d->width = DISPLAY_WIDTH;
	d->height = DISPLAY_HEIGHT;
	if (!text[0])
		return 0;
	if (sscanf(text, "%5ux%5u%c", &d->width, &d->height, &end) == 2 && d->width && d->height &&
		d->width <= DISPLAY_MAX_WIDTH && d->height <= DISPLAY_MAX_HEIGHT)
		return 0;
	err_set(e, ERR_USAGE, -EINVAL, "--display: '%s' is not valid here", text);
	return err_hint(e, "WIDTHxHEIGHT in pixels, at most %dx%d", DISPLAY_MAX_WIDTH,
		DISPLAY_MAX_HEIGHT);
}

static int fill_config(
	const struct run_options *o, Pb__Config *c, struct strings *env, char *cwd, struct err *e)
{
	_cleanup_free_ char *root = NULL;
	struct stat s;
	int r = check_options(o, e);

	if (r == 0)
		r = make_env(env, o, e);
	if (r == 0)
		r = fill_binds(o, c, e);
	if (r == 0)
		r = fill_allow(o, c, e);
	if (r == 0)
		r = run_net_fill(&o->net, c, e);
	if (r == 0 && o->display)
		r = fill_display(o->display, c, e);
	if (r == 0 && o->display && (o->sound || o->no_sound))
		c->display->sound =
			o->sound ? PB__DISPLAY__SOUND__MUST : PB__DISPLAY__SOUND__NONE;
	if (r < 0)
		return r;
	if (o->root) {
		root = realpath(o->root, NULL);
		if (!root) {
			err_errno(e, -errno, "--root: %s", o->root);
			return err_reclass(e, ERR_NOT_FOUND);
		}
		if (stat(root, &s) == 0 && !S_ISDIR(s.st_mode))
			return err_errno(e, -ENOTDIR, "--root: %s", o->root);
		if (is(root, "/"))
			return err_set(e, ERR_USAGE, -EINVAL,
				"--root / is what a session has without it");
		c->root = take_ptr(root);
	}
	c->name = (char *)(o->name ? o->name : "");
	c->hostname = (char *)(o->hostname ? o->hostname : "");
	c->env = env->items;
	c->n_env = env->n;
	c->cwd = (char *)(o->workdir ? o->workdir : o->root ? "/" : cwd ? cwd : "/");
	c->tty = o->tty;
	c->keep_stdin = o->interactive;
	c->remove = o->remove;
	c->as_root = o->user && strcmp(o->user, "root") == 0;
	c->outside = (char *)(o->outside ? o->outside : "");
	if (fill_snapshots(o, c, e) < 0)
		return e->error;
	c->memory = o->memory;
	c->pids = o->pids;
	c->portable = o->portable;
	c->io_uring = o->io_uring;
	c->end_with_command = o->end_with_command;
	c->uid = getuid();
	c->umask = umask(0);
	umask(c->umask);
	c->umask |= WORLD_UMASK;
	c->gid = getgid();
	c->names = (char *)(is(o->names, "rewrite") ? "rewrite" : "kernel");
	c->view = (char *)(is(o->view, "host") ? "host" : "private");
	return 0;
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Words of a command line as a shell would split them, without expanding anything. */
static int split_words(const char *text, struct strings *ret, struct err *e)
{
	while (*text) {
		_cleanup_buf_ struct buf word = BUF_INIT;
		char quote = 0;

		text += strspn(text, " \t");
		if (!*text)
			break;
		for (; *text && (quote || !strchr(" \t", *text)); text++) {
			if (quote ? *text == quote : strchr("'\"", *text) != NULL)
				quote = quote ? 0 : *text;
			else if (*text == '\\' && quote != '\'' && text[1])
				buf_put_u8(&word, (uint8_t) * ++text);
			else
				buf_put_u8(&word, (uint8_t)*text);
		}
		if (quote)
			return err_set(e, ERR_USAGE, -EINVAL, "command: a quote is not closed");
		add(ret, strdup(buf_cstr(&word) ? buf_cstr(&word) : ""));
	}
	return ret->failed ? err_errno(e, -ENOMEM, "command") : 0;
}

static int converse(struct run_vnc *vnc, const struct run_options *o, Pb__Config *config,
	struct err *e)
{
	struct stream_options stream = {.input = true,
		.forward = true,
		.own_tty = o->tty,
		.cancel = true,
		.detachable = o->tty,
		.started = run_vnc_started,
		.ctx = vnc};
	Pb__RunRequest run = PB__RUN_REQUEST__INIT;
	Pb__Control m = PB__CONTROL__INIT, *reply;
	struct proto_conn *conn;
	int r;

	run.config = config;
	run.attach = !o->detach;
	run.input = !o->detach;
	run.generated = !o->name;
	stream_size(&run.rows, &run.cols);
	m.body_case = PB__CONTROL__BODY_RUN;
	m.run = &run;
	r = client_start(&conn, e);
	if (r < 0)
		return r;
	r = client_send(conn, &m, NULL, 0, e);
	if (r >= 0 && o->detach) {
		r = client_receive(conn, &reply, e);
		if (r == 0) {
			run_vnc_started(vnc, reply->started->name);
			r = cli_tell_begun(reply->started->name, e);
			message_free(reply);
		}
	} else if (r >= 0) {
		r = stream_run(conn, &stream, e);
	}
	proto_conn_free(conn);
	return r;
}

/*
 * Of the host's own files root's home is closed where there is no layer over them: then it is still
 * the caller's.
 */
static void keep_home(const Pb__Config *c)
{
	const char *ours = getenv("HOME");
	char *home = NULL;

	for (size_t i = 0; ours && !c->root[0] && i < c->n_env; i++)
		if (strcmp(c->env[i], ROOT_HOME) == 0 && asprintf(&home, "HOME=%s", ours) > 0) {
			free(c->env[i]);
			c->env[i] = home;
			return;
		}
}

/*
 * The kernel's names could not be had, which *e is about: is it for want of namespaces, and can
 * @config be without them?  Then it says so, once, and what else is the host's.
 */
static int fall_back(const struct run_options *o, Pb__Config *config, struct err *e)
{
	bool refused = e->class == ERR_HOST || e->error == -EPERM || e->error == -EACCES;
	const struct check *lacking = NULL;
	const char *option = not_rewritten(o);

	if (refused && (!o->names || is(o->names, "auto")))
		lacking = check_lacking_names();
	if (!lacking)
		return e->error;
	if (option)
		return err_hint(e,
			"where names are rewritten instead there is no %s; podrun check says what "
			"else is not, and what would lift it",
			option);
	*e = (struct err){0};
	config->names = (char *)"rewrite";
	keep_home(config);
	config->net = (char *)"host";
	cli_say_lacking(lacking->name, config->root);
	return 0;
}

static int perform(struct run_options *o, int argc, char **argv, struct err *e)
{
	Pb__Config config = PB__CONFIG__INIT;
	struct strings env = {0}, words = {0};
	_cleanup_free_ char *cwd = getcwd(NULL, 0);
	struct run_vnc vnc;
	int r = 0;

	if (o->tty && !o->detach && !isatty(STDIN_FILENO))
		r = err_set(e, ERR_USAGE, -ENOTTY, "-t needs a terminal as stdin");
	if (r == 0 && argc == 0 && o->command)
		r = split_words(o->command, &words, e);
	if (r == 0 && argc == 0 && !words.n)
		r = err_hint(
			(err_set(e, ERR_USAGE, -EINVAL, "usage: podrun run [options] [--] CMD..."),
				e),
			"podrun help run");
	if (r == 0 && o->vnc && !o->display)
		o->display = strdup("");
	if (r < 0)
		return r;
	config.argv = argc ? argv : words.items;
	config.n_argv = argc ? (size_t)argc : words.n;
	/* Nobody knows a made-up name whose session was only ever in the foreground. */
	if (!o->name && !o->detach && !o->tty)
		o->remove = true;
	r = fill_config(o, &config, &env, cwd, e);
	if (r == 0)
		r = run_vnc_open(&vnc, o->vnc, e);
	if (r < 0)
		return r;
	if (config.every && kin_volume(&config))
		cli_say_note(KIN_NOTE);
	r = converse(&vnc, o, &config, e);
	return r < 0 && fall_back(o, &config, e) == 0 ? converse(&vnc, o, &config, e) : r;
}

static const struct cli_command *self(void);

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	_cleanup_settings_ struct cli_settings files = {0};
	struct run_options *o = opts;
	int r = cli_settings_apply(&files, c, self(), o, o->file, e);

	if (r < 0)
		return r;
	r = perform(o, argc, argv, e);
	return r < 0 ? cli_settings_blame(&files, self(), e) : r;
}

const struct cli_command cli_run = {
	.name = "run",
	.usage = "[options] [--] CMD...",
	.help = "start a session",
	.text = "Starts a session and runs CMD in it. Without *-d* the command's output and exit code "
		"are those of podrun: 126 when it can't be run, 127 when it is not found, 128 + N when "
		"signal N ended it, 125 when podrun itself failed, 10 when the session was suspended. "
		"Signals go to the command where it has no terminal; SIGINT, SIGTERM and SIGHUP "
		"before it is there give it up, 128 + N. "
		"The word *run* may be left out.\n\n"
		"The session sees the host's files below a layer of its own; /tmp, /run, /dev and /proc "
		"are its own as well. It ends when CMD has ended and nothing else is left in it.\n\n"
		"*--net vnat* gives it addresses that are its own for life, and a gateway: a process of yours "
		"that keeps its connections to the outside while it is suspended. *--gateway HOST* has "
		"them kept on another host, by *ssh*, from where they follow a *migrate*; *wg:FILE* is "
		"a WireGuard server. *--carrier auto* has packets go to HOST by a tunnel over UDP, encrypted by the "
		"WireGuard protocol, as long as they get there, and else by *ssh* as without. *-p*, *--address*, "
		"*--gateway*, *--carrier*, *--host-loopback*, *--link-local*, *--dns-update* and *--on-move* mean *--net vnat*.\n\n"
		"*--net passthrough:IF* moves an interface of the host's into the session while it is there, with "
		"its addresses and routes; IF@NETNS is one of another network namespace: a name of *ip netns*, a "
		"pid, or a path. The user must have been granted it. Connections by it can't be kept: *suspend* "
		"refuses while there are any.\n\n"
		"*--display* gives it a screen: an X server (*Xvfb*) that is a part of the session and moves with "
		"it. DISPLAY and XAUTHORITY are set for everything inside. *podrun view* shows it and "
		"types into it; viewers come and go, and the session does not notice. WxH is its size at first; "
		"viewers and *xrandr* change it. *--vnc* has a process in the background serve VNC viewers, too, on "
		"this machine unless ADDR says otherwise, as *podrun view --vnc* does; where, and the password they "
		"need, is on stderr. It ends with the session.\n\n"
		"The kernel's namespaces hold the session's names. Where the host allows none, podrun says "
		"so and rewrites numbers of processes and names of IPC objects itself (*--names rewrite*). /tmp, /run, /dev/shm, "
		"/proc and what *-v* says are the session's there, too; all other files, clocks and network are the "
		"host's, what is written below *--root* is written there, and *--net none* is refused with exit code 4. *--names kernel* "
		"refuses to start such a session. *podrun check* tells which it will be, and what is weaker.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct run_options),
	.group = CLI_BEGIN,
	.operand = CLI_PROGRAM,
	.stop_at_operand = true,
	.max_operands = -1,
	.own_codes = true,
	.run = run,
};

static const struct cli_command *self(void)
{
	return &cli_run;
}

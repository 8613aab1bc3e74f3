// SPDX-License-Identifier: GPL-2.0-or-later
/* What podrun view does, in podrun-display. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "display/display.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/view.h"
#include "supervisor/cli/view_record.h"
#include "supervisor/cli/view_vnc.h"
#include "supervisor/cli/view_way.h"
#include "supervisor/cli/vnc_port.h"
#include "supervisor/programs.h"

#define FAR_QUALITY 85 /* of JPEG, where a line may be slow and nothing else was said */

struct view {
	struct cli *cli;
	const struct view_options *o;
	struct view_way way;
	uint64_t quality; /* 0: nothing was said */
	char *note; /* a file that leads a browser to the address, or NULL */
};

/* ---- in a browser */

static void start_opener(const char *note)
{
	sigset_t none;

	if (fork() != 0)
		return;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	setsid();
	if (dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
		execlp("xdg-open", "xdg-open", note, (char *)NULL);
	_exit(127);
}

/* The address lets in whoever sees it, and arguments can be seen: a file of ours leads there. */
static void open_browser(struct view *v, const char *url)
{
	_cleanup_buf_ struct buf page = BUF_INIT;

	buf_printf(&page,
		"<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\">\n"
		"<a href=\"%s\">the session's display</a>\n",
		url, url);
	if (buf_error(&page) < 0 ||
		asprintf(&v->note, "%s/.view-%d.html", v->cli->paths.runtime, (int)getpid()) < 0) {
		v->note = NULL;
		return;
	}
	if (io_replace_file(AT_FDCWD, v->note, page.data, page.len, 0600) == 0)
		start_opener(v->note);
}

static bool is_on_a_desktop(void)
{
	return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");
}

static int connect_way(void *ctx, struct err *e)
{
	struct view *v = ctx;

	return v->o->replay ? view_replay(v->o->replay, e) : view_way_connect(&v->way, e);
}

static void tell(void *ctx, const char *url)
{
	struct view *v = ctx;

	printf("%s\n", url);
	fflush(stdout);
	if (!v->note && !v->o->no_open && !v->o->listen && is_on_a_desktop())
		open_browser(v, url);
}

/* A display that is not there is told before anybody is given an address. */
static int try(struct view *v, struct err *e)
{
	if (v->o->replay)
		return view_replay_check(v->o->replay, e);
	return view_way_try(&v->way, e);
}

static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* openers and ssh end when they like */
}

static unsigned quality(const struct view *v)
{
	if (v->o->lossless)
		return 0;
	return v->quality		     ? (unsigned)v->quality
	       : v->way.host || v->o->listen ? FAR_QUALITY
					     : 0;
}

static int serve(struct view *v, struct err *e)
{
	struct display_web_options web = {
		.listen = v->o->listen,
		.keys = v->cli->paths.config,
		.view_only = v->o->view_only,
		.quality = quality(v),
		.connect = connect_way,
		.address = tell,
		.ctx = v,
	};
	struct display_web *w;
	int r = try(v, e);

	if (r < 0)
		return r;
	v->way.never_waits = true; /* all its browsers would */
	block_signals();
	r = display_web_new(&w, &web, e);
	if (r < 0)
		return r;
	if (display_web_fingerprint(w)[0])
		fprintf(stderr, "certificate (SHA-256): %s\n", display_web_fingerprint(w));
	r = display_web_run(w, e);
	display_web_free(w);
	if (v->note)
		unlink(v->note);
	free(v->note);
	return r;
}

/* ---- otherwise */

static int screenshot(struct view *v, struct err *e)
{
	_cleanup_close_ int sock = -1;

	if (display_picture_check(v->o->screenshot, e) < 0)
		return e->error;
	sock = view_way_connect(&v->way, e);
	if (sock < 0)
		return sock;
	signal(SIGPIPE, SIG_IGN);
	return display_capture(sock, v->o->screenshot, view_way_patience(&v->way), e);
}

static int record(struct view *v, struct err *e)
{
	_cleanup_close_ int sock = view_way_connect(&v->way, e);

	return sock < 0 ? sock : view_record(sock, v->o->record, e);
}

static int vnc(struct view *v, struct err *e)
{
	struct vnc_port port;
	int r = vnc_port_open(&port, v->o->vnc, e);

	if (r == 0)
		r = try(v, e);
	if (r == 0) {
		printf("%s password %s\n", port.where, port.password);
		fflush(stdout);
		r = view_vnc_serve(&port, &v->way, v->o->view_only, quality(v), e);
	}
	vnc_port_close(&port);
	return r;
}

static int native(struct view *v, const char *target, struct err *e)
{
	_cleanup_free_ char *us = io_readlink(AT_FDCWD, "/proc/self/exe");
	_cleanup_free_ char *viewer = programs_find(PROGRAMS_VIEWER, e);
	const char *argv[10] = {viewer};
	char wish[32];
	int n = 1;

	if (!viewer) {
		err_set(e, ERR_HOST, -ENOENT,
			"podrun-viewer is not installed: it is built where SDL2 is found");
		return err_hint(e, "podrun view shows it in a browser");
	}
	if (!us)
		return err_errno(e, -errno, "/proc/self/exe");
	if (try(v, e) < 0)
		return e->error;
	if (v->o->view_only)
		argv[n++] = "--view-only";
	if (quality(v)) {
		snprintf(wish, sizeof(wish), "--quality=%u", quality(v));
		argv[n++] = wish;
	}
	argv[n++] = us;
	argv[n++] = "view";
	argv[n++] = "--stdio";
	if (v->o->podrun) {
		argv[n++] = "--podrun";
		argv[n++] = v->o->podrun;
	}
	argv[n++] = target;
	execv(viewer, (char **)argv);
	return err_errno(e, -errno, "%s", viewer);
}

static int check(struct view *v, struct err *e)
{
	const struct view_options *o = v->o;

	if (o->quality && (cli_parse_number(o->quality, &v->quality) < 0 || v->quality < 1 ||
				  v->quality > 100))
		return err_set(e, ERR_USAGE, -EINVAL, "--quality is from 1 to 100");
	if (o->lossless && o->quality)
		return err_set(
			e, ERR_USAGE, -EINVAL, "--lossless and --quality exclude each other");
	if ((o->listen != NULL) + (o->screenshot != NULL) + (o->vnc != NULL) +
			(o->record != NULL) + o->stdio + o->native > 1)
		return err_set(e, ERR_USAGE, -EINVAL,
			"of --listen, --screenshot, --vnc, --record, --native and --stdio only one can be done");
	if (o->record && strcmp(o->record, "-") == 0 && isatty(STDOUT_FILENO))
		return err_set(e, ERR_USAGE, -EINVAL, "a recording is nothing for a terminal");
	if (o->replay && (o->screenshot || o->vnc || o->record || o->stdio || o->native))
		return err_set(e, ERR_USAGE, -EINVAL, "--replay is for browsers");
	return 0;
}

int view_run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	struct view v = {.cli = c, .o = opts};
	_cleanup_free_ char *only = NULL;
	int r = check(&v, e);

	if (r == 0 && v.o->replay)
		return argc ? err_set(e, ERR_USAGE, -EINVAL, "--replay needs no session")
			    : serve(&v, e);
	if (r == 0 && argc == 0)
		r = cli_only_session(c, &only, e);
	if (r == 0)
		r = view_way_parse(&v.way, c, argc ? argv[0] : only, e);
	if (r < 0)
		return r;
	v.way.podrun = v.o->podrun;
	if (v.o->stdio)
		r = view_way_stdio(&v.way, e);
	else if (v.o->screenshot)
		r = screenshot(&v, e);
	else if (v.o->native)
		r = native(&v, argc ? argv[0] : only, e);
	else if (v.o->vnc)
		r = vnc(&v, e);
	else if (v.o->record)
		r = record(&v, e);
	else
		r = serve(&v, e);
	view_way_fini(&v.way);
	return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      the session                                   outside
 *      pid 1 -- Xvfb :N  <--- unix socket in /tmp --- podrun display --serve <--- viewers
 *                  '--- picture in /dev/shm (mapped) ------'
 *
 * Xvfb is started by pid 1 as a command is, before everything else, and is a part of the session:
 * frozen, written and rebuilt like any process.  Only here it is known to be there for the display
 * only, so that a session ends when nobody else is left.
 *
 * The display server's connection to it leads out of the session, and is no part of any image: it
 * is let go before a freeze begins, and taken up when the session runs again.
 *
 *      run       spawn Xvfb, start the server, TAKE_UP until it says TAKEN, then the command begins
 *      freeze    LET_GO -> GONE, then the tasks are stopped
 *      thaw      TAKE_UP -> TAKEN
 *      resume    start the server, TAKE_UP
 *      end       SUSPENDED, MOVED or ENDED, and its socket is closed
 *
 * The sound server is a process like Xvfb, but nothing leads to it: the display server reads a FIFO
 * (display/sound.h), and closes it as well.  Without one the session goes on without sound.
 *
 * What is missing - Xvfb, the server, its connection - is put back by tend(), sooner or later. A
 * server that does not let go is killed: that closes its connection just as well.  Likewise one
 * that says nothing to being asked to take up.  It always has an answer soon, also when the X
 * server has none: then it is asked again, later.
 */
#include "supervisor/screen/screen.h"

#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/programs.h"
#include "supervisor/screen/place.h"
#include "supervisor/screen/server.h"
#include "supervisor/screen/sound.h"
#include "supervisor/session.h"

#define FIRST_RETRY_MS	  10
#define LAST_RETRY_MS	  2000
#define SOUND_RETRY_MS	  20 /* at first, and as long as somebody waits for the beginning */
#define START_PATIENCE_MS 30000 /* for Xvfb to be ready */
#define ASKED_PATIENCE_MS 20000 /* for the server to answer */
#define GONE_PATIENCE_MS  3000	/* for the server to let go */
#define MAX_STARTS	  5	/* of the server, for a session to begin */

#define AUTHORITY  "Xauthority" /* of DISPLAY_AUTHORITY */
#define LOG	   "log"
#define COOKIE	   "MIT-MAGIC-COOKIE-1"
#define MAX_NUMBER 9999

struct screen {
	struct session *session;
	struct screen_server *server; /* NULL: none now */
	int listener;		      /* where viewers connect */
	int program;		      /* what serves them; -1: not found yet */
	struct event *timer, *sound_timer;
	unsigned retry_ms, sound_ms, starts;
	uint64_t deadline_ns; /* of the beginning */
	uint64_t answer_ns;   /* of the server, while asked */
	bool asked, up;	      /* to take up; it has */
	bool held;	      /* let go until the session runs again */
	bool paused;
	bool fresh;    /* the X server's screen has not got its size yet */
	bool hearable; /* there is a sound server, and it takes clients */
	bool mute;     /* there is none, and will be none */
	void (*then)(struct session *s, struct err *e); /* who waits for the beginning */
	void (*gone)(struct session *s);		/* who waits until it is let go */
};

static Pb__Display *display_of(const struct session *s)
{
	return s->record && s->record->config ? s->record->config->display : NULL;
}

/* ---- what the session is told ---------------------------------------------------------------- */

int screen_check(const Pb__Config *c, struct err *e)
{
	const Pb__Display *d = c->display;

	if (d && (d->width < 1 || d->height < 1 || d->width > DISPLAY_MAX_WIDTH ||
			 d->height > DISPLAY_MAX_HEIGHT || d->number > MAX_NUMBER ||
			 d->sound > PB__DISPLAY__SOUND__MUST))
		return err_set(e, ERR_IMAGE, -EBADMSG, "a display that makes no sense");
	return 0;
}

/* Of the host's network the abstract sockets are seen, too: clients would find the display of the
 * user's own desktop first. */
static int choose_number(const Pb__Config *c, uint32_t *ret, struct err *e)
{
	uint16_t any = 0;

	if (strcmp(c->net, "host") == 0 && getrandom(&any, sizeof(any), 0) != sizeof(any))
		return err_errno(e, -errno, "random numbers");
	*ret = strcmp(c->net, "host") == 0 ? 100 + any % (MAX_NUMBER - 100) : 0;
	return 0;
}

/* @path, or what it is in, is a volume. */
static bool is_hidden_by(const char *path, const char *target)
{
	size_t n = strlen(target);

	while (n && target[n - 1] == '/')
		n--;
	return strncmp(target, path, n) == 0 && (path[n] == '/' || !path[n]);
}

/* What is reached from outside are the session's own files. */
static int check_volumes(const Pb__Config *c, struct err *e)
{
	static const char *const ours[] = {"/tmp/.X11-unix", ("/run/" SCREEN_PLACE), "/dev/shm"};

	for (size_t i = 0; i < c->n_binds; i++)
		for (size_t k = 0; k < ARRAY_SIZE(ours); k++)
			if (is_hidden_by(ours[k], c->binds[i]->target))
				return err_set(e, ERR_USAGE, -EINVAL,
					"a session with a display needs a %s of its own, not -v",
					c->binds[i]->target);
	return 0;
}

int screen_prepare(struct session *s, struct err *e)
{
	Pb__Config *c = s->record->config;
	char *variable;
	int r;

	if (!c->display)
		return 0;
	if (screen_check(c, e) < 0)
		return err_reclass(e, ERR_USAGE);
	if (check_volumes(c, e) < 0)
		return e->error;
	if (c->display->sound == PB__DISPLAY__SOUND__MUST && !display_sound_built())
		return err_set(e, ERR_HOST, -EOPNOTSUPP, "podrun was built without sound");
	if (!display_sound_built())
		c->display->sound = PB__DISPLAY__SOUND__NONE;
	r = choose_number(c, &c->display->number, e);
	if (r < 0)
		return r;
	if (asprintf(&variable, "DISPLAY=:%u", c->display->number) < 0 ||
		screen_place_set(c, "DISPLAY", variable) < 0 ||
		screen_place_set(c, "XAUTHORITY",
			strdup("XAUTHORITY=/run/" SCREEN_PLACE "/" AUTHORITY)) < 0 ||
		screen_sound_prepare(c) < 0)
		return err_errno(e, -ENOMEM, "display");
	return 0;
}

/* Any client with that cookie, whatever it thinks the host is called: Xau(3), FamilyWild. */
static int write_authority(const struct session *s, struct err *e)
{
	static const uint8_t head[] = {0xff, 0xff, 0, 0, 0, 0, 0, sizeof(COOKIE) - 1};
	_cleanup_close_ int files = screen_place_files(s), place = -1;
	_cleanup_buf_ struct buf b = BUF_INIT;
	uint8_t cookie[16];
	int r;

	if (getrandom(cookie, sizeof(cookie), 0) != sizeof(cookie))
		return err_errno(e, -errno, "random numbers");
	buf_put(&b, head, sizeof(head));
	buf_put(&b, COOKIE, sizeof(COOKIE) - 1);
	buf_put_u8(&b, 0);
	buf_put_u8(&b, sizeof(cookie));
	buf_put(&b, cookie, sizeof(cookie));
	if (files < 0 || io_mkdir_p(files, "run/" SCREEN_PLACE, 0700) < 0)
		return err_errno(e, -errno, "cannot make /run/" SCREEN_PLACE);
	place = screen_place_open(files, "run/" SCREEN_PLACE, O_RDONLY | O_DIRECTORY);
	r = place < 0 ? -errno : buf_error(&b);
	if (r == 0)
		r = io_write_file(place, AUTHORITY, b.data, b.len, 0600);
	return r < 0 ? err_errno(e, r, "cannot make /run/" SCREEN_PLACE "/" AUTHORITY) : 0;
}

/* ---- the X server ---------------------------------------------------------------------------- */

/* What a killed one leaves would be taken for another that runs. */
static const char script[] =
	"umask 077; n=${1#:}; d=/dev/shm/" DISPLAY_PICTURES "; "
	"rm -rf \"$d\" \"/tmp/.X$n-lock\" \"/tmp/.X11-unix/X$n\"; mkdir -p \"$d\" && "
	"exec Xvfb \"$@\" -fbdir \"$d\" 2> /run/" SCREEN_PLACE "/" LOG;

static int spawn_x(struct session *s, struct err *e)
{
	const Pb__Config *c = s->record->config;
	char number[16], screen[32];
	char *const argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, (char *)"Xvfb",
		number, (char *)"-screen", (char *)"0", screen, (char *)"-noreset",
		(char *)"-nolisten", (char *)"tcp", (char *)"-nolisten", (char *)"local",
		(char *)"-auth", (char *)"/run/" SCREEN_PLACE "/" AUTHORITY, NULL};
	pid_t vpid;

	snprintf(number, sizeof(number), ":%u", c->display->number);
	snprintf(screen, sizeof(screen), "%dx%dx24", DISPLAY_MAX_WIDTH, DISPLAY_MAX_HEIGHT);
	if (screen_place_spawn(s, argv, &vpid, e) < 0)
		return err_wrap(e, "cannot start the display's X server");
	c->display->server = vpid;
	return 0;
}

int screen_processes(const struct session *s)
{
	const Pb__Display *d = display_of(s);

	return d ? (d->server > 0) + (d->sound_server > 0) : 0;
}

/* ---- looking after it all -------------------------------------------------------------------- */

static void tend(struct screen *d);

static void again(struct screen *d, unsigned ms)
{
	const struct timeval then = {
		.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};

	event_add(d->timer, &then);
}

static void later(struct screen *d)
{
	again(d, d->retry_ms);
	d->retry_ms = MIN(d->retry_ms * 2, (unsigned)LAST_RETRY_MS);
}

static void tell_then(struct screen *d, struct err *e)
{
	void (*then)(struct session * s, struct err * e) = d->then;

	d->then = NULL;
	if (then)
		then(d->session, e);
}

static void tell_gone(struct screen *d)
{
	void (*gone)(struct session * s) = d->gone;

	d->gone = NULL;
	d->asked = d->up = false;
	event_del(d->timer);
	if (gone)
		gone(d->session);
}

/* Whoever waits for the beginning need not any more, if it is all there. */
static void begun(struct screen *d)
{
	struct err none = {0};

	if (d->up && (d->hearable || d->mute))
		tell_then(d, &none);
}

/* It does not begin: that is tried again, unless somebody has waited for it long enough. */
static void on_failed(struct screen *d, const char *why)
{
	struct err e = {0};

	if (!d->then || (io_now_ns() < d->deadline_ns && d->starts <= MAX_STARTS)) {
		later(d);
		return;
	}
	err_set(&e, ERR_FAILED, -ETIMEDOUT, "the session's display can't be reached: %s", why);
	tell_then(d, &e);
}

static void on_heard(void *ctx, enum display_serve_word word, const char *text)
{
	struct screen *d = ctx;

	log_debug("display server: '%c' %s", word, text);
	switch (word) {
	case DISPLAY_SERVE_TAKEN:
		d->asked = false;
		d->up = !d->held;
		d->fresh = false;
		d->retry_ms = FIRST_RETRY_MS;
		d->starts = 0;
		begun(d);
		break;
	case DISPLAY_SERVE_FAILED:
		d->asked = false;
		log_debug("display: %s", text);
		if (!d->held)
			on_failed(d, text);
		break;
	case DISPLAY_SERVE_GONE:
		tell_gone(d);
		/* Whoever wanted that has given up meanwhile. */
		if (!d->held)
			tend(d);
		break;
	case DISPLAY_SERVE_LOST:
		d->up = false;
		if (!d->held)
			later(d);
		break;
	default:
		log_warn("the display server says '%c', which is nothing", word);
		break;
	}
}

static void on_gone(void *ctx)
{
	struct screen *d = ctx;

	log_warn("the display server has ended");
	screen_server_free(take_ptr(d->server));
	/* Before anybody is told, who may have another one started at once. */
	d->asked = d->up = false;
	if (d->held)
		tell_gone(d);
	else
		on_failed(d, "the display server ends");
}

/* It stays the same one for as long as the session lives here, whatever is installed meanwhile. */
static int find_program(struct screen *d, struct err *e)
{
	if (d->program < 0)
		d->program = programs_open(PROGRAMS_DISPLAY, e);
	return MIN(d->program, 0);
}

static int start_server(struct screen *d, struct err *e)
{
	static const struct screen_server_ops ops = {on_heard, on_gone};
	struct session *s = d->session;
	const Pb__Config *c = s->record->config;
	_cleanup_close_ int files = screen_place_files(s), shm = -1;
	struct screen_server_config config = {.name = c->name,
		.number = c->display->number,
		.width = d->fresh ? c->display->width : 0,
		.height = d->fresh ? c->display->height : 0,
		.listener = d->listener};

	if (files < 0)
		return err_errno(e, -errno, "display server");
	if (find_program(d, e) < 0)
		return e->error;
	shm = s->rewrite ? screen_place_open(files, "shm", O_PATH | O_DIRECTORY)
			 : screen_place_open(s->world.root_fd, "dev/shm", O_PATH | O_DIRECTORY);
	if (shm < 0)
		return err_errno(e, -errno, "the session's /dev/shm");
	config.files = files;
	config.shm = shm;
	config.program = d->program;
	d->starts++;
	return screen_server_start(&d->server, s->loop, &config, &ops, d, e);
}

/* May something be started in the session? */
static bool is_running(const struct session *s)
{
	return s->state == SESSION_STARTING || s->state == SESSION_RUNNING ||
	       s->state == SESSION_COPYING;
}

static void tend(struct screen *d)
{
	struct session *s = d->session;
	Pb__Display *config = display_of(s);
	struct err e = {0};

	if (d->held || s->state == SESSION_CLOSING)
		return;
	if (!config->server && is_running(s)) {
		d->fresh = true;
		if (spawn_x(s, &e) < 0)
			log_warn("%s", e.msg);
	}
	if (!d->server && start_server(d, &e) < 0) {
		log_warn("%s", e.msg);
		on_failed(d, e.msg);
		return;
	}
	if (!d->up && !d->asked) {
		d->asked = true;
		d->answer_ns = io_now_ns() + ASKED_PATIENCE_MS * 1000000ull;
		screen_server_say(d->server, DISPLAY_SERVE_TAKE_UP, NULL);
	}
	if (d->asked)
		again(d, ASKED_PATIENCE_MS);
}

static void later_sound(struct screen *d)
{
	const struct timeval then = {.tv_sec = d->sound_ms / 1000,
		.tv_usec = (suseconds_t)(d->sound_ms % 1000) * 1000};

	event_add(d->sound_timer, &then);
	if (!d->then)
		d->sound_ms = MIN(d->sound_ms * 2, (unsigned)LAST_RETRY_MS);
}

static void tend_sound(struct screen *d)
{
	struct session *s = d->session;
	Pb__Display *config = display_of(s);
	struct err e = {0};

	if (d->held || d->mute || !is_running(s))
		return;
	if (!config->sound_server && screen_sound_spawn(s, &e) < 0)
		log_warn("%s", e.msg);
	if (!d->hearable) {
		d->hearable = config->sound_server && screen_sound_answers(s);
		/* The display server looks again, too. */
		if (d->hearable && d->up)
			screen_server_say(d->server, DISPLAY_SERVE_TAKE_UP, NULL);
	}
	if (!d->hearable && d->then && io_now_ns() > d->deadline_ns) {
		log_warn("the display's sound server does not begin: no sound");
		d->mute = true;
	}
	if (!d->hearable && !d->mute)
		later_sound(d);
	begun(d);
}

static void on_sound_timer(evutil_socket_t fd, short what, void *ctx)
{
	tend_sound(ctx);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct screen *d = ctx;

	if (d->gone) {
		log_warn("the display server does not let go: it is killed");
		screen_server_free(take_ptr(d->server));
		tell_gone(d);
	} else if (d->asked && d->server && io_now_ns() >= d->answer_ns) {
		log_warn("the display server does not answer: it is killed");
		screen_server_free(take_ptr(d->server));
		d->asked = false;
		on_failed(d, "its server does not answer");
	} else {
		tend(d);
	}
}

static void sound_exited(struct screen *d)
{
	static const struct timeval later_on = {.tv_sec = LAST_RETRY_MS / 1000};
	Pb__Display *config = display_of(d->session);
	struct err e = {0};
	char why[160];

	config->sound_server = 0;
	d->sound_ms = SOUND_RETRY_MS;
	screen_place_words(d->session, SCREEN_SOUND_LOG, why, sizeof(why));
	event_del(d->sound_timer);
	if (d->hearable) {
		log_warn("the display's sound server has ended: %s", why);
		d->hearable = false;
		if (!d->held)
			event_add(d->sound_timer, &later_on);
		return;
	}
	d->mute = true;
	log_warn("the display has no sound: %s", why);
	if (config->sound != PB__DISPLAY__SOUND__MUST || !d->then) {
		begun(d);
		return;
	}
	err_set(&e, ERR_HOST, -ENOENT, "the display has no sound: %s", why);
	err_hint(&e, "it needs pulseaudio; podrun check says whether it is there");
	tell_then(d, &e);
}

void screen_exited(struct session *s, pid_t vpid)
{
	Pb__Display *config = display_of(s);
	struct screen *d = s->screen;
	struct err e = {0};
	char why[160];

	if (config && d && config->sound_server == vpid)
		sound_exited(d);
	if (!config || config->server != vpid || !d)
		return;
	config->server = 0;
	screen_place_words(s, LOG, why, sizeof(why));
	if (!d->then) {
		log_warn("the display's X server has ended: %s", why);
		if (!d->held)
			later(d);
		return;
	}
	err_set(&e, ERR_HOST, -ENOENT, "the session has no display: %s",
		why[0] ? why : "its X server has ended");
	err_hint(&e, "it needs Xvfb (package xvfb); podrun check says whether it is there");
	tell_then(d, &e);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static int listen_for_viewers(const struct session *s, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	_cleanup_close_ int dir = open(s->runtime, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (dir < 0 || fd < 0)
		return err_errno(e, -errno, "%s", s->runtime);
	unlinkat(dir, "display", 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/display", dir);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0)
		return err_errno(e, -errno, "the display's socket");
	return take_fd(&fd);
}

/* Does nothing if it is there. */
static int make(struct session *s, struct err *e)
{
	struct screen *d = s->screen ? s->screen : calloc(1, sizeof(*d));

	if (!d)
		return err_errno(e, -ENOMEM, "display");
	if (s->screen)
		return 0;
	*d = (struct screen){.session = s,
		.listener = -1,
		.program = -1,
		.retry_ms = FIRST_RETRY_MS,
		.sound_ms = SOUND_RETRY_MS};
	s->screen = d;
	d->timer = event_new(s->loop, -1, 0, on_timer, d);
	d->sound_timer = event_new(s->loop, -1, 0, on_sound_timer, d);
	if (!d->timer || !d->sound_timer)
		return err_errno(e, -ENOMEM, "display");
	d->listener = listen_for_viewers(s, e);
	return MIN(d->listener, 0);
}

int screen_begin(struct session *s, void (*then)(struct session *s, struct err *e), struct err *e)
{
	int r;

	if (!display_of(s))
		return 0;
	r = make(s, e);
	if (r == 0)
		r = find_program(s->screen, e);
	if (r == 0)
		r = write_authority(s, e);
	if (r == 0)
		r = spawn_x(s, e);
	if (r < 0)
		return r;
	s->screen->fresh = true;
	s->screen->then = then;
	s->screen->deadline_ns = io_now_ns() + START_PATIENCE_MS * 1000000ull;
	s->screen->mute = display_of(s)->sound == PB__DISPLAY__SOUND__NONE;
	tend(s->screen);
	tend_sound(s->screen);
	return 1;
}

void screen_resume(struct session *s)
{
	struct err e = {0};

	if (!display_of(s))
		return;
	if (make(s, &e) < 0) {
		log_warn("%s", e.msg);
		return;
	}
	s->screen->hearable = display_of(s)->sound_server;
	/* One that had just ended when the session was frozen was about to be started again. */
	s->screen->mute = display_of(s)->sound == PB__DISPLAY__SOUND__NONE;
	tend(s->screen);
	tend_sound(s->screen);
}

/* ---- freezing -------------------------------------------------------------------------------- */

int screen_let_go(struct session *s, void (*then)(struct session *s))
{
	struct screen *d = s->screen;

	if (!d)
		return 0;
	d->held = true;
	event_del(d->timer);
	event_del(d->sound_timer);
	if (!d->server || (!d->up && !d->asked))
		return 0;
	log_debug("the display is let go");
	d->gone = then;
	again(d, GONE_PATIENCE_MS);
	screen_server_say(d->server, DISPLAY_SERVE_LET_GO, NULL);
	return 1;
}

void screen_take_up(struct session *s)
{
	struct screen *d = s->screen;

	if (!d)
		return;
	d->held = false;
	d->gone = NULL;
	if (d->paused && d->server)
		screen_server_say(d->server, DISPLAY_SERVE_RUNNING, NULL);
	d->paused = false;
	tend(d);
	tend_sound(d);
}

void screen_visited(const struct session *s, char *ret, size_t size)
{
	const Pb__Display *c = display_of(s);

	*ret = '\0';
	if (c)
		snprintf(ret, size, "/tmp/.X11-unix/X%u", c->number);
}

void screen_renamed(struct session *s)
{
	struct screen *d = s->screen;

	if (d && d->server)
		screen_server_say(d->server, DISPLAY_SERVE_RENAMED, s->record->config->name);
}

void screen_paused(struct session *s)
{
	struct screen *d = s->screen;

	if (!d)
		return;
	d->paused = true;
	if (d->server)
		screen_server_say(d->server, DISPLAY_SERVE_PAUSED, NULL);
}

/* ---- the end --------------------------------------------------------------------------------- */

void screen_end(struct session *s, enum record_state state)
{
	struct screen *d = s->screen;
	bool moved = state == RECORD_MOVED;

	if (!d)
		return;
	d->then = NULL;
	d->gone = NULL;
	if (d->timer)
		event_del(d->timer);
	if (d->sound_timer)
		event_del(d->sound_timer);
	if (!d->server)
		return;
	screen_server_say(d->server,
		moved			    ? DISPLAY_SERVE_MOVED
		: state == RECORD_SUSPENDED ? DISPLAY_SERVE_SUSPENDED
					    : DISPLAY_SERVE_ENDED,
		moved ? s->record->peer : NULL);
	screen_server_leave(d->server);
}

void screen_free(struct session *s)
{
	struct screen *d = s->screen;

	if (!d)
		return;
	screen_server_free(d->server);
	if (d->timer)
		event_free(d->timer);
	if (d->sound_timer)
		event_free(d->sound_timer);
	close_fd(d->listener);
	close_fd(d->program);
	free(take_ptr(s->screen));
}

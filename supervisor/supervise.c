// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * One thread, one event loop, and nothing in it ever waits: the seccomp listener must be answered
 * while clients are slow, images are written and workers wait.  What may take long is a worker.
 *
 *      control socket ---- control.c       pid 1's socket -------- launch.c
 *      stdio, terminals -- relay.c, job.c  seccomp listener ------ notify.c
 *      worker's socket --- worker.c        worker's end ---------- worker.c
 */
#include "supervisor/supervise.h"

#include <event2/event.h>
#include <malloc.h>
#include <signal.h>

#include "base/base.h"
#include "supervisor/background.h"
#include "supervisor/control.h"
#include "supervisor/end.h"
#include "supervisor/requests.h"
#include "supervisor/session.h"

static void on_terminate(evutil_socket_t sig, short what, void *ctx)
{
	struct session *s = ctx;

	log_info("signal %d ends the session", (int)sig);
	session_kill(s);
	session_close(s, RECORD_ENDED);
}

static struct event_base *make_loop(void)
{
	struct event_config *config = event_config_new();
	struct event_base *loop = NULL;

	if (config) {
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
		loop = event_base_new_with_config(config);
		event_config_free(config);
	}
	return loop;
}

int supervise_main(void)
{
	struct event_base *loop = make_loop();
	struct session *s = NULL;
	struct event *terminate;
	struct client *first;
	struct err e = {0};
	int outcome;

	log_init(STDERR_FILENO, "supervisor");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGIO, SIG_IGN);	  /* of a lease: supervisor/mapped.c */
	signal(SIGRTMIN, SIG_IGN); /* of dnotify: supervisor/control.c */
	signal(SIGXFSZ, SIG_IGN); /* a log or an image that ulimit -f ends is no reason to end */
	/*
	 * Small: the buffers that pass through are freed at once, and must go back to the system.
	 */
	mallopt(M_TRIM_THRESHOLD, 128 << 10);
	mallopt(M_ARENA_MAX, 1);
	if (!loop || session_new(&s, loop, &requests_ops, &e) < 0 ||
		control_adopt(&first, s, BACKGROUND_FD, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	terminate = evsignal_new(loop, SIGTERM, on_terminate, s);
	if (terminate)
		evsignal_add(terminate, NULL);
	event_base_dispatch(loop);
	outcome = s->outcome;
	if (terminate)
		event_free(terminate);
	session_free(s);
	event_base_free(loop);
	return outcome;
}

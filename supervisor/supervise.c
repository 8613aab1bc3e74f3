// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * One thread, one event loop, and nothing in it ever waits: the seccomp listener must be answered
 * while clients are slow, images are written and workers wait.  What may take long is a worker.
 *
 *      control socket ---- control.c       pid 1's socket -------- session.c
 *      stdio, terminals -- relay.c, job.c  seccomp listener ------ notify.c
 *      worker's socket --- worker.c        worker's end ---------- worker.c
 *
 * The process is a grandchild of the command line that asked for it, in a session of its own, with
 * /dev/null as stdin and stdout; stderr becomes the session's supervisor.log.
 */
#include "supervisor/supervise.h"

#include <event2/event.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "supervisor/control.h"
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
	/* Small: the buffers that pass through are freed at once, and must go back to the system. */
	mallopt(M_TRIM_THRESHOLD, 128 << 10);
	mallopt(M_ARENA_MAX, 1);
	if (!loop || session_new(&s, loop, &e) < 0 ||
		control_adopt(&first, s, SUPERVISE_FD, &e) < 0) {
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

/* In the grandchild: becomes the supervisor. */
static void become_supervisor(int sock)
{
	static char name[] = "podrun", command[] = "supervise";
	char *const argv[] = {name, command, NULL};
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	setsid();
	umask(077);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
		dup2(sock, SUPERVISE_FD) < 0 || chdir("/") < 0)
		_exit(125);
	io_set_cloexec(SUPERVISE_FD, false);
	close_range(SUPERVISE_FD + 1, ~0u, 0);
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv("/proc/self/exe", argv);
	_exit(125);
}

int supervise_start(struct err *e)
{
	int pair[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "cannot start a supervisor");
	child = fork();
	if (child == 0) {
		pid_t grandchild = fork();

		if (grandchild == 0)
			become_supervisor(pair[1]);
		_exit(grandchild < 0);
	}
	close(pair[1]);
	if (child < 0 || waitpid(child, &status, 0) < 0 || status) {
		close(pair[0]);
		return err_set(e, ERR_FAILED, -EAGAIN, "cannot start a supervisor");
	}
	return pair[0];
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * What every module that works on a session needs, and nothing that would need one of them: states
 * and clocks, the record on disk, the log.  The modules stand in one direction upon each other:
 *
 *      requests         what clients ask, row by row
 *      freeze  rebuild  the operations with a worker
 *      launch           a session's beginning
 *      end              a session's end
 *      operation  job   who waits for what; commands with their stdio
 *      control          clients
 *      session          this file
 *
 * Where a lower one must tell a higher one, it is given a function to call: struct control_ops,
 * struct worker_ops, session_operation.released.
 */
#include "supervisor/session.h"

#include <assert.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "proto/control.pb-c.h"
#include "supervisor/worker/worker.h"

#define MAX_LOG (64ull << 20) /* then the log begins anew, the old one is kept as log.1 */

static const char *const state_names[] = {
	[SESSION_STARTING] = "starting",
	[SESSION_REBUILDING] = "resuming",
	[SESSION_ARRIVED] = "arrived",
	[SESSION_RUNNING] = "running",
	[SESSION_FREEZING] = "freezing",
	[SESSION_PAUSED] = "paused",
	[SESSION_WRITING] = "writing",
	[SESSION_COPYING] = "writing",
	[SESSION_AHEAD] = "copying",
	[SESSION_HELD] = "held",
	[SESSION_IN_DOUBT] = "in-doubt",
	[SESSION_LEAVING] = "leaving",
	[SESSION_CLOSING] = "ended",
};
static_assert(ARRAY_SIZE(state_names) == SESSION_STATE_MAX, "a state without a name");

const char *session_state_name(enum session_state state)
{
	return state_names[state];
}

pid_t session_copier(const struct session *s)
{
	return s->state == SESSION_COPYING && s->worker ? worker_pid(s->worker) : 0;
}

int session_set_string(char **field, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	if (*field != protobuf_c_empty_string)
		free(*field);
	*field = copy;
	return 0;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return io_ns_of(t);
}

int64_t session_monotonic_ns(const struct session *s)
{
	return clock_ns(CLOCK_MONOTONIC) + s->monotonic_offset_ns;
}

int64_t session_boottime_ns(const struct session *s)
{
	return clock_ns(CLOCK_BOOTTIME) + s->boottime_offset_ns;
}

int session_new(struct session **ret, struct event_base *loop, const struct control_ops *control,
	struct err *e)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return err_errno(e, -ENOMEM, "session");
	s->loop = loop;
	s->log_fd = -1;
	s->dir_fd = s->runtime_fd = -1;
	s->op.image = s->op.line = -1;
	s->listeners[0] = s->listeners[1] = -1;
	s->control = control;
	if (paths_init(&s->paths, e) < 0) {
		free(s);
		return e->error;
	}
	*ret = s;
	return 0;
}

void session_maybe_exit(struct session *s)
{
	if (s->state != SESSION_CLOSING)
		return;
	for (struct client *c = s->clients; c; c = c->next)
		if (c->stuffed)
			return;
	event_base_loopbreak(s->loop);
}

/* ---- record and log ----------------------------------------------------------------------- */

int session_save(struct session *s, enum record_state state, bool durable, struct err *e)
{
	struct err own = {0};
	int r;

	session_set_string(&s->record->state, record_state_name(state));
	s->record->supervisor = getpid();
	r = record_save(s->record, s->dir, durable, &own);
	if (r < 0)
		log_error("%s", own.msg);
	if (r < 0 && e)
		*e = own;
	return r;
}

int session_open_log(struct session *s, struct err *e)
{
	_cleanup_free_ char *log = NULL, *own = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (asprintf(&log, "%s/log", s->dir) < 0 || asprintf(&own, "%s/supervisor.log", s->dir) < 0)
		return err_errno(e, -ENOMEM, "log");
	close_fd(s->log_fd);
	s->log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (s->log_fd < 0)
		return err_errno(e, -errno, "cannot open %s", log);
	s->log_bytes = fstat(s->log_fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	s->log_full = false;
	/* What libraries or crashes print on stderr belongs there as well. */
	fd = open(own, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		return err_errno(e, -errno, "cannot open %s", own);
	log_init(STDERR_FILENO, "supervisor");
	return 0;
}

void session_log(struct session *s, const void *data, size_t n)
{
	struct err e = {0};
	int r;

	if (s->log_bytes > MAX_LOG) {
		_cleanup_free_ char *log = NULL, *old = NULL;

		if (asprintf(&log, "%s/log", s->dir) > 0 && asprintf(&old, "%s/log.1", s->dir) > 0 &&
			rename(log, old) == 0)
			session_open_log(s, &e);
		s->log_bytes = 0;
	}
	r = s->log_fd >= 0 ? io_write_full(s->log_fd, data, n) : -EBADF;
	if (r < 0 && !s->log_full)
		log_warn("what the session says is not in its log any more: %s", strerror(-r));
	s->log_full = r < 0;
	s->log_bytes += n;
}

void session_log_tail(struct session *s, struct buf *b)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;
	off_t from;
	ssize_t n;
	void *room;

	if (asprintf(&path, "%s/log", s->dir) < 0)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	from = MAX(st.st_size - (off_t)SESSION_LOG_TAIL, 0);
	room = buf_reserve(b, SESSION_LOG_TAIL);
	n = room ? io_pread_full(fd, room, SESSION_LOG_TAIL, from) : 0;
	if (n > 0)
		b->len += (size_t)n;
}

/* For each beginning of @b how much of it that ends with is a beginning, too (Knuth, Morris, Pratt). */
static uint32_t *borders(const uint8_t *b, size_t n)
{
	uint32_t *ret = calloc(n + 1, sizeof(*ret)), k = 0;

	for (size_t i = 1; ret && i < n; i++) {
		while (k && b[i] != b[k])
			k = ret[k];
		k += b[i] == b[k];
		ret[i + 1] = k;
	}
	return ret;
}

/* How many bytes of @b the file ends with; all of them if they are in it anywhere. */
static ssize_t find_overlap(int fd, const uint8_t *b, size_t n)
{
	_cleanup_free_ uint32_t *border = borders(b, n);
	uint8_t data[65536];
	ssize_t got;
	size_t k = 0;

	if (!border)
		return -ENOMEM;
	for (off_t at = 0; (got = io_pread_full(fd, data, sizeof(data), at)) > 0; at += got)
		for (ssize_t i = 0; i < got; i++) {
			while (k && data[i] != b[k])
				k = border[k];
			k += data[i] == b[k];
			if (k == n)
				return (ssize_t)n;
		}
	return got < 0 ? got : (ssize_t)k;
}

/* As it is where nothing has happened to it. */
static bool ends_with(int fd, const void *data, size_t n)
{
	_cleanup_free_ void *end = malloc(n + 1);
	struct stat st;

	return end && fstat(fd, &st) == 0 && st.st_size >= (off_t)n &&
	       io_pread_full(fd, end, n, st.st_size - (off_t)n) == (ssize_t)n &&
	       memcmp(end, data, n) == 0;
}

int session_log_join(const char *path, const void *tail, size_t len)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (!len || ends_with(fd, tail, len))
		return 0;
	n = find_overlap(fd, tail, len);
	return n < 0 ? (int)n : io_write_full(fd, (const uint8_t *)tail + n, len - (size_t)n);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* One write(2) per line, so that lines of processes that share the log stay whole. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* The one mutable global of the library rooms: a log belongs to the process. */
static struct {
	int fd;
	int level; /* -1 until PODRUN_LOG has been read */
	char who[24];
} log_state = {.fd = STDERR_FILENO, .level = -1, .who = "podrun"};

void log_init(int fd, const char *who)
{
	log_state.fd = fd;
	snprintf(log_state.who, sizeof(log_state.who), "%s", who);
}

int log_wants(enum log_level level)
{
	if (log_state.level < 0) {
		const char *want = getenv("PODRUN_LOG");

		log_state.level = LOG_WARN_;
		for (int i = 0; want && i <= LOG_DEBUG_; i++)
			if (!strcmp(want, level_names[i]))
				log_state.level = i;
	}
	return (int)level <= log_state.level;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	struct timespec ts;
	char line[1024];
	size_t n;
	va_list ap;

	if (!log_wants(level))
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	n = (size_t)snprintf(line, sizeof(line), "%lld.%06ld %s[%d] %s: ", (long long)ts.tv_sec,
		ts.tv_nsec / 1000, log_state.who, getpid(), level_names[level]);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	/* Names in it may come from a session or an image. */
	for (n = 0; line[n]; n++)
		if ((unsigned char)line[n] < ' ' || line[n] == 0x7f)
			line[n] = '?';
	line[n++] = '\n';
	/* One write: lines of several processes do not mix. */
	if (write(log_state.fd, line, n) < 0) {
		/* Nobody is left to tell. */
	}
	errno = saved;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log - diagnostics for whoever debugs podrun: to stderr, or to the session's log file.
 *
 * Errors meant for the user travel in struct err and are printed by the command line alone.
 * The level comes from PODRUN_LOG (error, warn, info, debug); the default is warn.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_ERROR_ = 0, LOG_WARN_, LOG_INFO_, LOG_DEBUG_ };

/* Where lines go from now on (not closed by log), and a short prefix for each ("supervisor"). */
void log_init(int fd, const char *who);
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int log_wants(enum log_level level);

#define log_error(...) log_line(LOG_ERROR_, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN_, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO_, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_wants(LOG_DEBUG_))                                                         \
			log_line(LOG_DEBUG_, __VA_ARGS__);                                         \
	} while (0)

#endif

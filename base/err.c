// SPDX-License-Identifier: GPL-2.0-or-later
/* Everything is written into the caller's struct: no allocation, so it works when memory is out. */
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct err_class_info classes[] = {
	[ERR_NONE] = {"none", 0, "done"},
	[ERR_FAILED] = {"failed", 1, "failed"},
	[ERR_USAGE] = {"usage", 2, "wrong usage"},
	[ERR_UNFREEZABLE] = {"unfreezable", 3,
		"something in the session can't be frozen; it runs on"},
	[ERR_HOST] = {"host", 4, "the host lacks a feature"},
	[ERR_NOT_FOUND] = {"not-found", 5, "not found"},
	[ERR_STATE] = {"state", 6, "wrong state"},
	[ERR_IMAGE] = {"image", 7, "the image is corrupt or not trusted"},
	[ERR_PEER] = {"peer", 8, "the other side failed; the session here runs on"},
	[ERR_IN_DOUBT] = {"in-doubt", 9, "in doubt: it is frozen, for the other side may have it"},
	[ERR_MOVED] = {"moved", 10, "the session was suspended and goes on elsewhere"},
};
static_assert(sizeof(classes) / sizeof(classes[0]) == ERR_CLASS_MAX, "a class without a row");

const struct err_class_info *err_class_info(enum err_class class)
{
	if ((unsigned)class >= ERR_CLASS_MAX)
		class = ERR_FAILED;
	return &classes[class];
}

int err_set(struct err *e, enum err_class class, int error, const char *fmt, ...)
{
	va_list ap;

	assert(error < 0);
	if (!e)
		return error;
	e->class = class;
	e->error = error;
	e->hint[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return error;
}

/* The usual limit: a lower one was set by somebody. */
#define FEW_DESCRIPTORS 1024

/* EMFILE is said of inotify instances and the like, too; of descriptors, where none is left. */
static void hint_at_descriptors(struct err *e)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	bool none = fd < 0 && errno == EMFILE;
	struct rlimit l;

	if (fd >= 0)
		close(fd);
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && (none || l.rlim_cur < FEW_DESCRIPTORS))
		err_hint(e, "this shell limits open files to %llu (ulimit -n)",
			(unsigned long long)l.rlim_cur);
}

int err_errno(struct err *e, int error, const char *fmt, ...)
{
	size_t n;
	va_list ap;

	assert(error < 0);
	if (!e)
		return error;
	e->class = ERR_FAILED;
	e->error = error;
	e->hint[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", strerror(-error));
	if (error == -EMFILE)
		hint_at_descriptors(e);
	return error;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char context[sizeof(e->msg)];
	size_t n, keep;
	va_list ap;

	if (!e)
		return -EIO;
	assert(e->error < 0);
	va_start(ap, fmt);
	vsnprintf(context, sizeof(context) - 2, fmt, ap);
	va_end(ap);
	strcat(context, ": ");

	/* The cause is worth more than the last words of a long context. */
	n = strlen(context);
	if (n > sizeof(e->msg) / 2) {
		n = sizeof(e->msg) / 2;
		memcpy(context + n - 2, ": ", 2);
	}
	keep = strlen(e->msg);
	if (keep > sizeof(e->msg) - 1 - n)
		keep = sizeof(e->msg) - 1 - n;
	memmove(e->msg + n, e->msg, keep);
	memcpy(e->msg, context, n);
	e->msg[n + keep] = '\0';
	return e->error;
}

int err_hint(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -EIO;
	va_start(ap, fmt);
	vsnprintf(e->hint, sizeof(e->hint), fmt, ap);
	va_end(ap);
	return e->error;
}

/* What is too large only here is. */
static bool is_limited(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_FSIZE, &l) == 0 && l.rlim_cur != RLIM_INFINITY;
}

int err_blame_image(struct err *e)
{
	static const int nonsense[] = {EINVAL, E2BIG, ERANGE, EDOM, EFAULT, EBADF, EBADMSG, EOVERFLOW,
		EFBIG, ENAMETOOLONG, ENOENT, ENOTDIR, EISDIR, ELOOP, EEXIST, ENOTSOCK, ENOTTY,
		ESPIPE, EPROTO, EPROTOTYPE, EDESTADDRREQ, EISCONN, ENOTCONN, EMSGSIZE, ENOPROTOOPT,
		ENOTEMPTY, EXDEV, EMLINK, EIDRM, ENOMSG, ENXIO};
	static const int not_here[] = {EPERM, EACCES, ENOSYS, EOPNOTSUPP, ENODEV, EROFS, EADDRINUSE,
		EADDRNOTAVAIL, EPROTONOSUPPORT, ESOCKTNOSUPPORT, EAFNOSUPPORT, ENETUNREACH, EBUSY,
		ETXTBSY};

	if (!e)
		return -EIO;
	if (e->class != ERR_FAILED)
		return e->error;
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
		if (e->error == -nonsense[i])
			e->class = ERR_IMAGE;
	for (size_t i = 0; i < sizeof(not_here) / sizeof(not_here[0]); i++)
		if (e->error == -not_here[i])
			e->class = ERR_HOST;
	if (e->error == -EFBIG && is_limited()) {
		e->class = ERR_HOST;
		err_hint(e, "this shell limits the size of files (ulimit -f)");
	}
	return e->error;
}

int err_reclass(struct err *e, enum err_class class)
{
	if (!e)
		return -EIO;
	e->class = class;
	return e->error;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The session's /tmp is a directory of the host.  The socket in there is opened first, as O_PATH
 * and without following links, and connected to through /proc/self/fd: the path may be longer
 * than an address, and what is connected to is certainly what was looked at.
 *
 * The session could put something else in its X server's place.  It would see input and could show
 * what it likes, which it can anyway.
 */
#include "display/x/reach.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "display/x/patience.h"
#include "display/x/x.h"

#define COOKIE_NAME "MIT-MAGIC-COOKIE-1"
#define COOKIE_SIZE 16
#define ENTRY_MAX   256 /* bytes of the whole file */

int display_x_open(int dir, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* It is the only entry, and ends with the cookie. */
static int read_cookie(int files, uint8_t ret[COOKIE_SIZE])
{
	_cleanup_close_ int fd =
		display_x_open(files, "run/" DISPLAY_AUTHORITY, O_RDONLY | O_NONBLOCK);
	uint8_t entry[ENTRY_MAX];
	ssize_t n = fd < 0 ? fd : read(fd, entry, sizeof(entry));

	if (fd < 0)
		return fd;
	if (n < COOKIE_SIZE)
		return -EBADMSG;
	memcpy(ret, entry + n - COOKIE_SIZE, COOKIE_SIZE);
	return 0;
}

static int connect_socket(int files, unsigned number)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	_cleanup_close_ int at = -1, fd = -1;
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "tmp/.X11-unix/X%u", number);
	at = display_x_open(files, path, O_PATH);
	if (at < 0)
		return at;
	if (fstat(at, &st) < 0 || !S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", at);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	return take_fd(&fd);
}

/* A screen is there, as far as XCB looks for it by what the X server has said. */
static bool has_screen(const xcb_setup_t *s)
{
	size_t size = 8 + (size_t)s->length * 4;
	size_t needed = sizeof(*s) + ((size_t)s->vendor_len + 3) / 4 * 4 +
			s->pixmap_formats_len * sizeof(xcb_format_t) + sizeof(xcb_screen_t);

	return size >= sizeof(*s) && s->roots_len && needed <= size;
}

int display_x_reach(int files, unsigned number, unsigned ms, xcb_connection_t **ret, struct err *e)
{
	uint8_t cookie[COOKIE_SIZE];
	xcb_auth_info_t auth = {.namelen = sizeof(COOKIE_NAME) - 1,
		.name = (char *)COOKIE_NAME,
		.datalen = COOKIE_SIZE,
		.data = (char *)cookie};
	int r = read_cookie(files, cookie), fd;
	xcb_connection_t *c;
	bool over;

	if (r < 0)
		return err_errno(e, r, "the display's cookie");
	fd = connect_socket(files, number);
	if (fd < 0)
		return err_errno(e, fd, "the X server's socket");
	display_x_patience_begin(fd, ms);
	c = xcb_connect_to_fd(fd, &auth);
	over = display_x_patience_end();
	if (!xcb_connection_has_error(c) && has_screen(xcb_get_setup(c))) {
		*ret = c;
		return 0;
	}
	r = xcb_connection_has_error(c) ? 0 : -EBADMSG;
	xcb_disconnect(c);
	if (over)
		return err_set(e, ERR_FAILED, -ETIMEDOUT, "the X server does not answer");
	if (r < 0)
		return err_set(e, ERR_FAILED, r, "the X server has no screen");
	return err_set(e, ERR_FAILED, -ECONNREFUSED, "the X server does not want us");
}

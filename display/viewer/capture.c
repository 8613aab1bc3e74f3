// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/viewer/capture.h"

#include <errno.h>
#include <poll.h>

#include "base/base.h"
#include "display/decode.h"
#include "display/notice.h"
#include "display/viewer/greet.h"
#include "display/viewer/picture.h"

#define PIECE (64u << 10) /* bytes */

struct capture {
	bool sized, complete;
	char refused[160]; /* why, "": it is not */
};

static void resized(void *ctx, int width, int height)
{
	((struct capture *)ctx)->sized = true;
}

static void message(void *ctx, const struct display_message *m)
{
	struct capture *c = ctx;

	if (m->type == DISPLAY_UPDATED)
		c->complete = c->sized; /* of nothing there is no picture */
	display_notice_refuses(m, c->refused, sizeof(c->refused));
}

static const struct display_decoder_ops ops = {.resized = resized, .message = message};

/* The next piece of the stream. */
static int take(int fd, struct display_decoder *d, int ms, struct err *e)
{
	static uint8_t piece[PIECE];
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int there = poll(&p, 1, ms);
	ssize_t n = there == 1 ? read(fd, piece, PIECE) : there;

	if (n < 0 && errno == EINTR)
		return 0;
	if (there == 0) {
		err_set(e, ERR_STATE, -ETIMEDOUT, "the display server sends no picture");
		return err_hint(e, "it has none while the session's X server does not answer");
	}
	if (n <= 0)
		return err_set(e, ERR_STATE, -ECONNRESET,
			"the display server has ended the connection");
	return display_decoder_feed(d, piece, (size_t)n, e);
}

static int look(int fd, struct display_decoder *d, struct capture *c, int ms, struct err *e)
{
	struct display_viewer_wish wish = {.view_only = true, .name = "capture"};
	int r = display_viewer_greet(fd, &wish);

	/* One who does not listen may have said why. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return err_errno(e, r, "can't greet the display server");
	do {
		r = take(fd, d, ms, e);
	} while (r == 0 && !c->complete && !c->refused[0]);
	return c->refused[0] ? err_set(e, ERR_STATE, -EUSERS, "%s", c->refused) : r;
}

int display_capture(int fd, const char *path, int ms, struct err *e)
{
	struct capture c = {0};
	struct display_decoder *d;
	int r = display_picture_check(path, e);

	if (r < 0)
		return r;
	r = display_decoder_new(&ops, &c, &d);
	if (r < 0)
		return err_errno(e, r, "memory");
	r = look(fd, d, &c, ms, e);
	if (r == 0)
		r = display_picture_write(path, display_decoder_frame(d), e);
	display_decoder_free(d);
	return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/viewer/capture.h"

#include <errno.h>

#include "base/base.h"
#include "display/decode.h"
#include "display/viewer/greet.h"
#include "display/viewer/picture.h"

#define PIECE (64u << 10) /* bytes */

struct capture {
	bool sized, complete;
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
}

static const struct display_decoder_ops ops = {.resized = resized, .message = message};

static int look(int fd, struct display_decoder *d, struct capture *c, struct err *e)
{
	_cleanup_free_ uint8_t *piece = malloc(PIECE);
	struct display_viewer_wish wish = {.view_only = true, .name = "capture"};
	int r = piece ? display_viewer_greet(fd, &wish) : -ENOMEM;

	if (r < 0)
		return err_errno(e, r, "can't greet the display server");
	while (!c->complete) {
		ssize_t n = read(fd, piece, PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, ERR_STATE, -ECONNRESET,
				"the display server has ended the connection");
		r = display_decoder_feed(d, piece, (size_t)n, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int display_capture(int fd, const char *path, struct err *e)
{
	struct capture c = {0};
	struct display_decoder *d;
	int r = display_picture_check(path, e);

	if (r < 0)
		return r;
	r = display_decoder_new(&ops, &c, &d);
	if (r < 0)
		return err_errno(e, r, "memory");
	r = look(fd, d, &c, e);
	if (r == 0)
		r = display_picture_write(path, display_decoder_frame(d), e);
	display_decoder_free(d);
	return r;
}

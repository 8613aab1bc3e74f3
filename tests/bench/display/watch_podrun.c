// SPDX-License-Identifier: GPL-2.0-or-later
/* podrun's viewer without a window: the decoder of the native one. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "display/display.h"
#include "watch.h"

static void on_resized(void *ctx, int width, int height)
{
	struct watch_end *e = ctx;

	e->width = width;
	e->height = height;
}

static void on_message(void *ctx, const struct display_message *m)
{
	struct display_message ack = {.type = DISPLAY_ACK, .serial = m->serial};
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct watch_end *e = ctx;

	if (m->type != DISPLAY_UPDATED && m->type != DISPLAY_MARK)
		return;
	display_wire_put(&out, &ack);
	if (io_write_full(e->fd, out.data, out.len) < 0)
		watch_die("podrun: the line");
}

static void on_changed(void *ctx, const struct display_rect *r)
{
	struct watch_end *e = ctx;
	const struct display_frame *f = display_decoder_frame(e->data);

	(void)r;
	e->pixels = f->pixels;
	e->stride = f->stride;
	e->progress(e->ctx);
}

static const struct display_decoder_ops ops = {
	.changed = on_changed, .resized = on_resized, .message = on_message};

static void begin_with(struct watch_end *e, int quality, unsigned video)
{
	const struct display_viewer_wish wish = {.name = "bench",
		.keeps = true,
		.quality = (unsigned)quality,
		.video = quality ? video : 0};
	struct display_decoder *d;

	if (display_decoder_new(&ops, e, &d) < 0 || display_viewer_greet(e->fd, &wish) < 0)
		watch_die("podrun: no beginning");
	e->data = d;
}

static void begin(struct watch_end *e, int quality)
{
	begin_with(e, quality, DISPLAY_DECODER_VIDEO);
}

/* Without JPEG films are VP8 from the beginning, however quick the line is. */
static void begin_vp8(struct watch_end *e, int quality)
{
	begin_with(e, quality, DISPLAY_DECODER_VIDEO & ~(1u << DISPLAY_VIDEO_MJPEG));
}

static void take(struct watch_end *e)
{
	static uint8_t data[1 << 16];
	ssize_t n = recv(e->fd, data, sizeof(data), MSG_DONTWAIT);
	struct err why = {0};

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		watch_die("podrun: the line ended");
	if (display_decoder_feed(e->data, data, (size_t)n, &why) < 0)
		watch_die(why.msg);
}

static void key(struct watch_end *e, uint32_t keysym, bool down)
{
	const struct display_message m = {
		.type = DISPLAY_KEY, .key = {.keysym = keysym, .down = down}};
	_cleanup_buf_ struct buf out = BUF_INIT;

	display_wire_put(&out, &m);
	if (io_write_full(e->fd, out.data, out.len) < 0)
		watch_die("podrun: the line");
}

static size_t waiting(const struct watch_end *e)
{
	(void)e;
	return 0;
}

const struct watch_end_ops watch_podrun = {
	.begin = begin, .read = take, .key = key, .waiting = waiting};
const struct watch_end_ops watch_podrun_vp8 = {
	.begin = begin_vp8, .read = take, .key = key, .waiting = waiting};

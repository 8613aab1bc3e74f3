// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/viewer/greet.h"

#include "base/base.h"
#include "display/decode.h"
#include "proto/display.pb-c.h"

int display_viewer_greet(int fd, const struct display_viewer_wish *wish)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct display_message m = {.type = DISPLAY_HELLO};
	Pb__DisplayHello h = PB__DISPLAY_HELLO__INIT;
	size_t begin = display_wire_begin(&out, &m);
	uint8_t *body;

	h.version = DISPLAY_VERSION;
	h.codecs = wish->codecs ? wish->codecs : DISPLAY_DECODER_CODECS;
	h.video = wish->video;
	h.quality = wish->quality;
	h.view_only = wish->view_only;
	h.audio = wish->audio;
	h.keeps = wish->keeps;
	h.name = (char *)wish->name;
	body = buf_grow(&out, pb__display_hello__get_packed_size(&h));
	if (body)
		pb__display_hello__pack(&h, body);
	display_wire_end(&out, begin);
	return buf_error(&out) < 0 ? -ENOMEM : io_write_full(fd, out.data, out.len);
}

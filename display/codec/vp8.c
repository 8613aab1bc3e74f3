// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One pass, no frame is held back or left out, and key frames are made only when they are asked
 * for: a scene that is another one is cheaper as a frame of the same stream.  Streams are not
 * made resilient, for nothing is lost on the way.  The speed is a fixed one; one that follows the
 * clock would make other frames on a busy machine.
 */
#include "display/codec/vp8.h"

#include <limits.h>
#include <vpx/vp8cx.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>
#include <vpx/vpx_encoder.h>

#include "base/base.h"
#include "display/codec/i420.h"

#define SPEED	       (-12) /* of 16; slower ones cost much and give little */
#define TICKS	       1000000
#define FRAME_US       40000
#define LONGEST_US     1000000
#define BUFFER_MS      600 /* of the rate, by which a frame may be larger */
#define KEY_PER_CENT   600 /* of a frame's part of the rate, for a key frame */
#define QUANTIZER_BEST 4
#define QUANTIZER_LOW  56
#define HEAD	       3 /* bytes, and of a key frame: */
#define HEAD_KEY       10
#define SIDE_MAX       16383

struct display_vp8_packer {
	vpx_codec_ctx_t codec;
	vpx_codec_enc_cfg_t config;
	vpx_image_t image;
	bool restart;
	uint64_t us;   /* of the last frame, 0: none */
	uint64_t time; /* the library's, which never goes back */
	uint8_t i420[];
};

struct display_vp8_unpacker {
	vpx_codec_ctx_t codec;
	uint16_t stream;
	int w, h; /* of the stream; 0: there is none, nor a codec */
};

/* ---- making ---------------------------------------------------------------------------------- */

static int half(int n)
{
	return (n + 1) / 2;
}

/* Where the library finds the planes. */
static void wrap(struct display_vp8_packer *p, int w, int h)
{
	vpx_image_t *image = &p->image;

	vpx_img_wrap(image, VPX_IMG_FMT_I420, (unsigned)w, (unsigned)h, 1, p->i420);
	image->planes[VPX_PLANE_U] = p->i420 + (size_t)w * (size_t)h;
	image->planes[VPX_PLANE_V] = image->planes[VPX_PLANE_U] + (size_t)half(w) * (size_t)half(h);
	image->stride[VPX_PLANE_Y] = w;
	image->stride[VPX_PLANE_U] = image->stride[VPX_PLANE_V] = half(w);
}

static void configure(vpx_codec_enc_cfg_t *c, int w, int h)
{
	c->g_w = (unsigned)w;
	c->g_h = (unsigned)h;
	c->g_threads = 1;
	c->g_timebase = (struct vpx_rational){1, TICKS};
	c->g_pass = VPX_RC_ONE_PASS;
	c->g_lag_in_frames = 0;
	c->g_error_resilient = 0;
	c->rc_end_usage = VPX_CBR;
	c->rc_dropframe_thresh = 0;
	c->rc_resize_allowed = 0;
	c->rc_min_quantizer = QUANTIZER_BEST;
	c->rc_max_quantizer = QUANTIZER_LOW;
	c->rc_undershoot_pct = 100;
	c->rc_overshoot_pct = 15;
	c->rc_buf_sz = 2 * BUFFER_MS;
	c->rc_buf_initial_sz = c->rc_buf_optimal_sz = BUFFER_MS;
	c->kf_mode = VPX_KF_DISABLED;
}

int display_vp8_packer_new(int w, int h, struct display_vp8_packer **ret_packer)
{
	struct display_vp8_packer *p;

	if (w < 1 || h < 1 || w > SIDE_MAX || h > SIDE_MAX)
		return -EINVAL;
	p = calloc(1, sizeof(*p) + display_i420_size(w, h));
	if (!p)
		return -ENOMEM;
	wrap(p, w, h);
	p->restart = true;
	if (vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &p->config, 0) != VPX_CODEC_OK) {
		free(p);
		return -ENOMEM;
	}
	configure(&p->config, w, h);
	if (vpx_codec_enc_init(&p->codec, vpx_codec_vp8_cx(), &p->config, 0) != VPX_CODEC_OK) {
		free(p);
		return -ENOMEM;
	}
	/* Without these it would be slower, no more. */
	vpx_codec_control(&p->codec, VP8E_SET_CPUUSED, SPEED);
	vpx_codec_control(&p->codec, VP8E_SET_STATIC_THRESHOLD, 1u);
	vpx_codec_control(&p->codec, VP8E_SET_MAX_INTRA_BITRATE_PCT, (unsigned)KEY_PER_CENT);
	*ret_packer = p;
	return 0;
}

void display_vp8_packer_free(struct display_vp8_packer *p)
{
	if (!p)
		return;
	vpx_codec_destroy(&p->codec);
	free(p);
}

bool display_vp8_packer_fits(const struct display_vp8_packer *p, int w, int h)
{
	return p->image.d_w == (unsigned)w && p->image.d_h == (unsigned)h;
}

void display_vp8_packer_restart(struct display_vp8_packer *p)
{
	p->restart = true;
}

/* All that the library has made, which is one frame. */
static int take_frame(struct display_vp8_packer *p, struct buf *out)
{
	const size_t before = out->len;
	vpx_codec_iter_t at = NULL;
	const vpx_codec_cx_pkt_t *packet;

	while ((packet = vpx_codec_get_cx_data(&p->codec, &at)))
		if (packet->kind == VPX_CODEC_CX_FRAME_PKT)
			buf_put(out, packet->data.frame.buf, packet->data.frame.sz);
	if (!out->failed && out->len > before)
		return 0;
	out->len = before;
	return -ENOMEM;
}

int display_vp8_pack(struct display_vp8_packer *p, const struct display_frame *f,
	const struct display_rect *r, uint64_t us, int kbit, struct buf *out)
{
	const uint64_t gap = p->us && us > p->us ? MIN(us - p->us, LONGEST_US) : FRAME_US;
	const vpx_enc_frame_flags_t flags = p->restart ? VPX_EFLAG_FORCE_KF : 0;
	int k;

	if (p->config.rc_target_bitrate != (unsigned)kbit) {
		p->config.rc_target_bitrate = (unsigned)kbit;
		if (vpx_codec_enc_config_set(&p->codec, &p->config) != VPX_CODEC_OK)
			return -ENOMEM;
	}
	display_i420_pack(f, r, p->i420);
	p->us = us;
	p->time += gap;
	if (vpx_codec_encode(&p->codec, &p->image, (vpx_codec_pts_t)p->time, gap, flags,
		    VPX_DL_REALTIME) != VPX_CODEC_OK)
		return -ENOMEM; /* nothing else can be wrong */
	k = take_frame(p, out);
	p->restart = k < 0;
	return k;
}

/* ---- drawing --------------------------------------------------------------------------------- */

bool display_vp8_look(const void *data, size_t len, struct display_vp8_head *ret)
{
	const uint8_t *p = data;
	struct display_vp8_head head = {0};

	/* RFC 6386, 9.1: not a key frame, version (3 bits), shown. */
	if (len < HEAD || len > INT_MAX || (p[0] & 0x0e) != 0 || !(p[0] & 0x10))
		return false;
	head.key = !(p[0] & 1);
	if (head.key) {
		if (len < HEAD_KEY || p[3] != 0x9d || p[4] != 0x01 || p[5] != 0x2a)
			return false;
		head.w = p[6] | p[7] << 8;
		head.h = p[8] | p[9] << 8;
		/* The upper two bits: a viewer is to scale it. */
		if (!head.w || !head.h || head.w > SIDE_MAX || head.h > SIDE_MAX)
			return false;
	}
	*ret = head;
	return true;
}

int display_vp8_unpacker_new(struct display_vp8_unpacker **ret_unpacker)
{
	struct display_vp8_unpacker *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	*ret_unpacker = u;
	return 0;
}

void display_vp8_unpacker_clear(struct display_vp8_unpacker *u)
{
	if (u->w)
		vpx_codec_destroy(&u->codec);
	u->w = u->h = 0;
}

void display_vp8_unpacker_free(struct display_vp8_unpacker *u)
{
	if (!u)
		return;
	display_vp8_unpacker_clear(u);
	free(u);
}

/* A stream begins whose frames have this size. */
static int begin(
	struct display_vp8_unpacker *u, uint16_t stream, const struct display_vp8_head *head)
{
	const vpx_codec_dec_cfg_t config = {1, (unsigned)head->w, (unsigned)head->h};

	if (u->w != head->w || u->h != head->h) {
		display_vp8_unpacker_clear(u);
		if (vpx_codec_dec_init(&u->codec, vpx_codec_vp8_dx(), &config, 0) != VPX_CODEC_OK)
			return -ENOMEM;
	}
	u->w = head->w;
	u->h = head->h;
	u->stream = stream;
	return 0;
}

static int draw(
	struct display_vp8_unpacker *u, const struct display_frame *f, const struct display_rect *r)
{
	vpx_codec_iter_t at = NULL;
	const vpx_image_t *image = vpx_codec_get_frame(&u->codec, &at);
	struct display_frame part = *f;
	struct display_i420 planes;

	if (!image || image->fmt != VPX_IMG_FMT_I420 || image->d_w != (unsigned)r->w ||
		image->d_h != (unsigned)r->h)
		return -EBADMSG;
	planes = (struct display_i420){image->planes[VPX_PLANE_Y], image->planes[VPX_PLANE_U],
		image->planes[VPX_PLANE_V], image->stride[VPX_PLANE_Y], image->stride[VPX_PLANE_U]};
	part.pixels = display_frame_at(f, r->x, r->y);
	display_i420_draw(&part, r->w, r->h, &planes);
	return 0;
}

int display_vp8_unpack(struct display_vp8_unpacker *u, uint16_t stream, const void *data,
	size_t len, const struct display_frame *f, const struct display_rect *r)
{
	struct display_vp8_head head;
	vpx_codec_err_t wrong;
	int k = 0;

	if (!display_vp8_look(data, len, &head))
		k = -EBADMSG;
	else if (head.key ? head.w != r->w || head.h != r->h
			  : u->w != r->w || u->h != r->h || u->stream != stream)
		k = -EBADMSG;
	else if (head.key)
		k = begin(u, stream, &head);
	if (k == 0) {
		wrong = vpx_codec_decode(&u->codec, data, (unsigned)len, NULL, 0);
		k = wrong == VPX_CODEC_OK	   ? draw(u, f, r)
		    : wrong == VPX_CODEC_MEM_ERROR ? -ENOMEM
						   : -EBADMSG;
	}
	if (k < 0)
		display_vp8_unpacker_clear(u);
	return k;
}

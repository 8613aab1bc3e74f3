// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The test vectors of proto/SPEC.md, section "Display": what is in proto/vectors/display is
 * decoded to the picture that is there, and each message put again is the same bytes.
 *
 *     test_vectors DIR           checks
 *     test_vectors --make DIR    writes them anew, for a new version of the format only
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>

#include "base/base.h"
#include "display/codec/block.h"
#include "display/codec/palette.h"
#include "display/codec/raw24.h"
#include "display/codec/stream.h"
#include "display/display.h"
#include "proto/display.pb-c.h"

#define WIDTH  32
#define HEIGHT 16

static const char *vectors;

/* ---- making ---------------------------------------------------------------------------------- */

struct maker {
	struct buf out;
	struct display_block *block;
	struct display_frame f; /* what the pixels are taken from */
};

static void put_record(struct buf *out, enum display_type type, const ProtobufCMessage *record)
{
	struct display_message m = {.type = type};
	uint8_t packed[256];

	m.data = (struct display_bytes){packed, protobuf_c_message_pack(record, packed)};
	display_wire_put(out, &m);
}

static void put_raw(struct maker *k, enum display_codec codec, const struct display_rect *r,
	const void *data, size_t n)
{
	struct display_message m = {.type = DISPLAY_RAW, .rect = *r, .data = {data, n}};

	m.codec = (uint8_t)codec;
	display_wire_put(&k->out, &m);
}

static void make_24(struct maker *k, enum display_codec codec, struct display_rect r)
{
	_cleanup_buf_ struct buf packed = BUF_INIT;
	uint8_t bytes[WIDTH * HEIGHT * 3];
	size_t n = display_raw24_size(&r);

	if (codec == DISPLAY_CODEC_LEFT_LZ4 || codec == DISPLAY_CODEC_LEFT_ZSTD)
		display_raw24_pack_left(&k->f, &r, bytes);
	else
		display_raw24_pack(&k->f, &r, bytes);
	if (codec == DISPLAY_CODEC_NONE)
		return put_raw(k, codec, &r, bytes, n);
	display_block_pack(k->block,
		codec == DISPLAY_CODEC_LEFT_ZSTD ? DISPLAY_BLOCK_ZSTD : DISPLAY_BLOCK_LZ4, 1, bytes,
		n, &packed);
	put_raw(k, codec, &r, packed.data, packed.len);
}

static void make_palette(struct maker *k, enum display_codec codec, struct display_rect r, int n)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	uint8_t indices[WIDTH * HEIGHT];
	struct display_palette p;

	for (int y = 0; y < r.h; y++)
		for (int x = 0; x < r.w; x++)
			*display_frame_at(&k->f, r.x + x, r.y + y) =
				(uint32_t)((x * y + x) % n) * 0x102030;
	display_palette_pack(&k->f, &r, n, &p, indices);
	buf_put_u8(&data, (uint8_t)p.n);
	for (int i = 0; i < p.n; i++)
		buf_put_u32(&data, p.colours[i]);
	if (codec == DISPLAY_CODEC_PALETTE)
		buf_put(&data, indices, display_palette_size(&r, p.n));
	else
		display_block_pack(k->block,
			codec == DISPLAY_CODEC_PALETTE_ZSTD ? DISPLAY_BLOCK_ZSTD
							    : DISPLAY_BLOCK_LZ4,
			1, indices, display_palette_size(&r, p.n), &data);
	put_raw(k, codec, &r, data.data, data.len);
}

/* Two pieces of each sort that there is, of one stream. */
static void make_streams(struct maker *k)
{
	static const struct display_rect rects[] = {{0, 0, 4, 3}, {4, 1, 5, 4}, {20, 2, 6, 5},
		{8, 11, 9, 4}, {1, 9, 7, 5}, {23, 8, 8, 6}};
	struct display_palette p;
	struct display_stream *s;

	display_stream_new(&s);
	for (size_t i = 0; i < ARRAY_SIZE(rects); i++) {
		const struct display_rect *r = &rects[i];
		enum display_codec codec = DISPLAY_CODEC_LEFT_STREAM + (int)i % 3;
		_cleanup_buf_ struct buf data = BUF_INIT;
		uint8_t bytes[WIDTH * HEIGHT * 3];
		size_t n = (size_t)display_rect_area(r);

		if (codec == DISPLAY_CODEC_LEFT_STREAM) {
			display_raw24_pack_left(&k->f, r, bytes);
			n *= 3;
		} else if (codec == DISPLAY_CODEC_INDEX_STREAM) {
			display_stream_pack_colours(s, &k->f, r, bytes, &data);
		} else {
			for (int x = 0; x < WIDTH * HEIGHT; x++)
				k->f.pixels[x] = (uint32_t)(x * x % 7) * 0x0b1a27;
			display_palette_pack(&k->f, r, 16, &p, bytes);
			buf_put_u8(&data, (uint8_t)p.n);
			for (int c = 0; c < p.n; c++)
				buf_put_u32(&data, p.colours[c]);
			n = display_palette_size(r, p.n);
		}
		display_stream_pack(s, bytes, n, &data);
		put_raw(k, codec, r, data.data, data.len);
	}
	display_stream_free(s);
}

/* 5x3 pixels, whatever the rectangle. */
static void make_video(struct maker *k, struct display_rect r)
{
	struct display_message m = {.type = DISPLAY_VIDEO, .rect = r};
	uint8_t frame[5 * 3 + 2 * 3 * 2];

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * i * 11 + 40);
	m.video.stream = 1;
	m.video.format = DISPLAY_VIDEO_I420;
	m.video.fw = 5;
	m.video.fh = 3;
	m.video.time = 1000000;
	m.data = (struct display_bytes){frame, sizeof(frame)};
	display_wire_put(&k->out, &m);
}

static void make_others(struct maker *k)
{
	static const uint8_t bits[] = {0xa5, 0x80, 0x5a, 0x00, 0xff, 0x80};
	static const uint8_t tile[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9, 8, 8, 8, 7, 7, 7};
	struct display_message m = {.type = DISPLAY_BITMAP, .rect = {23, 0, 9, 3}};

	m.data = (struct display_bytes){bits, sizeof(bits)};
	m.colour[0] = 0xffffff;
	m.colour[1] = 0x800000;
	display_wire_put(&k->out, &m);
	m = (struct display_message){.type = DISPLAY_PFILL, .rect = {20, 9, 8, 5}};
	m.data = (struct display_bytes){tile, sizeof(tile)};
	m.tw = 3;
	m.th = 2;
	display_wire_put(&k->out, &m);
	m = (struct display_message){.type = DISPLAY_COPY, .rect = {3, 2, 28, 13}};
	m.sx = 1;
	m.sy = 1;
	display_wire_put(&k->out, &m);
	m = (struct display_message){.type = DISPLAY_COPY, .rect = {0, 0, 10, 10}};
	m.sx = 2;
	m.sy = 3;
	display_wire_put(&k->out, &m);
	make_video(k, (struct display_rect){24, 10, 5, 3});
	make_video(k, (struct display_rect){11, 3, 11, 8});
	buf_put(&k->out, (uint8_t[]){99, 0, 0, 0, 1, 0, 0, 0, 42}, 9);
	m = (struct display_message){.type = DISPLAY_UPDATED, .serial = 1};
	display_wire_put(&k->out, &m);
}

static void make_server(struct maker *k)
{
	Pb__DisplayWelcome w = PB__DISPLAY_WELCOME__INIT;
	struct display_message fill = {.type = DISPLAY_SFILL, .rect = {0, 0, WIDTH, HEIGHT - 1}};

	display_frame_init(&k->f, WIDTH, HEIGHT);
	display_block_new(&k->block);
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		k->f.pixels[i] = (uint32_t)i * 0x010305 & DISPLAY_RGB;
	w.version = DISPLAY_VERSION;
	w.width = WIDTH;
	w.height = HEIGHT;
	w.session = (char *)"vector";
	put_record(&k->out, DISPLAY_WELCOME, &w.base);
	fill.colour[0] = 0x3465a4;
	display_wire_put(&k->out, &fill);
	make_24(k, DISPLAY_CODEC_NONE, (struct display_rect){0, 0, 7, 3});
	make_24(k, DISPLAY_CODEC_LZ4, (struct display_rect){7, 0, 8, 4});
	make_24(k, DISPLAY_CODEC_LEFT_LZ4, (struct display_rect){15, 0, 8, 4});
	make_24(k, DISPLAY_CODEC_LEFT_ZSTD, (struct display_rect){0, 4, 20, 3});
	make_palette(k, DISPLAY_CODEC_PALETTE, (struct display_rect){0, 8, 5, 7}, 3);
	make_palette(k, DISPLAY_CODEC_PALETTE_LZ4, (struct display_rect){5, 8, 9, 7}, 16);
	make_palette(k, DISPLAY_CODEC_PALETTE_ZSTD, (struct display_rect){14, 8, 6, 8}, 2);
	make_palette(k, DISPLAY_CODEC_PALETTE_LZ4, (struct display_rect){20, 4, 12, 5}, 23);
	make_streams(k);
	make_others(k);
	display_block_free(k->block);
	display_frame_fini(&k->f);
}

/* What is kept, brought back over something else, and what never was. */
static void make_kept(struct buf *out)
{
	static const struct display_message all[] = {
		{.type = DISPLAY_SFILL, .rect = {0, 0, WIDTH, HEIGHT}, .colour = {0x3465a4}},
		{.type = DISPLAY_SFILL, .rect = {4, 2, 9, 7}, .colour = {0xcc0000}},
		{.type = DISPLAY_KEEP, .rect = {2, 1, 20, 12}},
		{.type = DISPLAY_SFILL, .rect = {0, 0, 30, 14}, .colour = {0xffffff}},
		{.type = DISPLAY_KEEP, .rect = {8, 1, 3, 3}},
		{.type = DISPLAY_UNCOVER, .rect = {3, 1, 10, 10}},
		{.type = DISPLAY_UNCOVER, .rect = {20, 5, 9, 10}},
	};
	Pb__DisplayWelcome w = PB__DISPLAY_WELCOME__INIT;

	w.version = DISPLAY_VERSION;
	w.width = WIDTH;
	w.height = HEIGHT;
	w.session = (char *)"vector";
	put_record(out, DISPLAY_WELCOME, &w.base);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		display_wire_put(out, &all[i]);
}

/* A film of three frames, with sides that are odd: one that stands alone, and two that do not. */
static void make_vp8(struct buf *out)
{
	const struct display_film_kind kind = {
		.format = DISPLAY_VIDEO_VP8, .shrink = 1, .kbit = 300};
	const struct display_rect r = {3, 2, 27, 13};
	Pb__DisplayWelcome w = PB__DISPLAY_WELCOME__INIT;
	struct display_film_stream stream = {0};
	struct display_film *film = NULL;
	struct display_frame f;

	w.version = DISPLAY_VERSION;
	w.width = WIDTH;
	w.height = HEIGHT;
	w.session = (char *)"vector";
	put_record(out, DISPLAY_WELCOME, &w.base);
	if (display_film_new(&film) < 0 || display_frame_init(&f, WIDTH, HEIGHT) < 0)
		abort();
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < WIDTH * HEIGHT; k++)
			f.pixels[k] = (uint32_t)((k % WIDTH + 2 * i) % WIDTH * 6 + 20) << 16 |
				      (uint32_t)(k / WIDTH * 12 + 10) << 8 |
				      (uint32_t)(90 + 20 * i);
		if (display_film_put(film, out, 5, (uint64_t)i * 40000, &f, &r, &kind, &stream) < 0)
			abort();
	}
	display_film_end(film, &stream);
	display_film_free(film);
	display_frame_fini(&f);
}

static void make_viewer(struct buf *out)
{
	Pb__DisplayHello hello = PB__DISPLAY_HELLO__INIT;
	Pb__DisplayFile file = PB__DISPLAY_FILE__INIT;
	const struct display_message all[] = {
		{.type = DISPLAY_KEY, .key = {0x61, 30, true}},
		{.type = DISPLAY_POINTER, .pointer = {-1, 700, 5, -1, 2}},
		{.type = DISPLAY_CLIPBOARD_IN, .data = {(const uint8_t *)"text", 4}},
		{.type = DISPLAY_RESIZE_IN, .size = {1280, 800}},
		{.type = DISPLAY_REFRESH, .rect = {1, 2, 3, 4}},
		{.type = DISPLAY_ACK, .serial = 0x01020304},
		{.type = DISPLAY_SCALE_IN, .percent = 150},
	};

	hello.version = DISPLAY_VERSION;
	hello.codecs = DISPLAY_DECODER_CODECS;
	hello.layout = (char *)"us";
	put_record(out, DISPLAY_HELLO, &hello.base);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		display_wire_put(out, &all[i]);
	file.id = 1;
	file.name = (char *)"a.txt";
	file.size = 3;
	put_record(out, DISPLAY_FILE_IN, &file.base);
}

/* ---- checking -------------------------------------------------------------------------------- */

static void file_path(char path[4096], const char *name)
{
	snprintf(path, 4096, "%s/%s", vectors, name);
}

static void load(const char *name, struct buf *to)
{
	char path[4096];

	file_path(path, name);
	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 20, to), 0);
}

/* The picture that @stream leads to, as pixels. */
static void picture(const struct buf *stream, struct buf *to)
{
	const struct display_rect all = {0, 0, WIDTH, HEIGHT};
	struct display_decoder *d;
	struct err e = {0};

	assert_int_equal(display_decoder_new(NULL, NULL, &d), 0);
	if (display_decoder_feed(d, stream->data, stream->len, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(display_decoder_frame(d)->width, WIDTH);
	assert_int_equal(display_decoder_frame(d)->height, HEIGHT);
	display_raw24_pack(display_decoder_frame(d), &all, buf_grow(to, display_raw24_size(&all)));
	display_decoder_free(d);
}

static void put_again(const struct buf *b, bool from_server)
{
	_cleanup_buf_ struct buf again = BUF_INIT;
	struct display_message m;
	size_t used;

	for (size_t at = 0; at < b->len; at += used) {
		assert_int_equal(
			display_wire_take(b->data + at, b->len - at, from_server, &m, &used, NULL),
			1);
		if (m.type == DISPLAY_SKIP)
			buf_put(&again, b->data + at, used);
		else
			display_wire_put(&again, &m);
	}
	assert_int_equal(again.len, b->len);
	assert_memory_equal(again.data, b->data, b->len);
}

static void leads_to(const char *server, const char *then)
{
	_cleanup_buf_ struct buf stream = BUF_INIT, expected = BUF_INIT, drawn = BUF_INIT;

	load(server, &stream);
	load(then, &expected);
	picture(&stream, &drawn);
	assert_int_equal(drawn.len, expected.len);
	assert_memory_equal(drawn.data, expected.data, drawn.len);
	put_again(&stream, true);
}

static void test_server(void **state)
{
	leads_to("server.bin", "picture.bin");
}

static void test_vp8(void **state)
{
	leads_to("vp8.bin", "vp8-picture.bin");
}

static void test_kept(void **state)
{
	_cleanup_buf_ struct buf stream = BUF_INIT, made = BUF_INIT;

	leads_to("kept.bin", "kept-picture.bin");
	load("kept.bin", &stream);
	make_kept(&made);
	assert_int_equal(made.len, stream.len);
	assert_memory_equal(made.data, stream.data, made.len);
}

static void test_viewer(void **state)
{
	_cleanup_buf_ struct buf stream = BUF_INIT, made = BUF_INIT;

	load("viewer.bin", &stream);
	make_viewer(&made);
	assert_int_equal(made.len, stream.len);
	assert_memory_equal(made.data, stream.data, made.len);
	put_again(&stream, false);
}

static int store(const char *name, const struct buf *b)
{
	char path[4096];

	file_path(path, name);
	return io_write_file(AT_FDCWD, path, b->data, b->len, 0644);
}

static int make(void)
{
	_cleanup_buf_ struct buf drawn = BUF_INIT, viewer = BUF_INIT, vp8 = BUF_INIT,
				 film = BUF_INIT, kept = BUF_INIT, uncovered = BUF_INIT;
	struct maker k = {.out = BUF_INIT};
	int r;

	make_server(&k);
	picture(&k.out, &drawn);
	make_viewer(&viewer);
	make_vp8(&vp8);
	picture(&vp8, &film);
	make_kept(&kept);
	picture(&kept, &uncovered);
	r = store("vp8.bin", &vp8) | store("vp8-picture.bin", &film) | store("server.bin", &k.out) |
	    store("picture.bin", &drawn) | store("viewer.bin", &viewer) | store("kept.bin", &kept) |
	    store("kept-picture.bin", &uncovered);
	buf_fini(&k.out);
	return r != 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_vp8),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_viewer),
	};

	vectors = argv[argc - 1];
	if (argc == 3 && strcmp(argv[1], "--make") == 0)
		return make();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A viewer for tests: display_viewer SOCKET [QUALITY], exact without a quality, and else one that
 * takes films.  It decodes what the server sends and says what comes, a line each; it does what it
 * reads, a line each:
 *
 *      key KEYSYM 1|0          welcome WIDTH HEIGHT SESSION
 *      pointer X Y BUTTONS     resized WIDTH HEIGHT
 *      clipboard TEXT          clipboard LENGTH TEXT (the first 200 bytes)
 *      fill N                  (a clipboard of N letters)
 *      resize WIDTH HEIGHT     notice KIND TEXT
 *      scale PERCENT
 *      picture FILE            picture FILE (written, as a PPM)
 *                              cursor WIDTH HEIGHT
 *                              film X Y WIDTH HEIGHT
 *                              closed
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "display/display.h"
#include "proto/display.pb-c.h"

#define SHOWN 200

struct viewer {
	int sock;
	struct display_decoder *decoder;
	struct buf out;
};

static void send_message(struct viewer *v, const struct display_message *m)
{
	display_wire_put(&v->out, m);
}

static void tell_welcome(const struct display_message *m)
{
	Pb__DisplayWelcome *w = pb__display_welcome__unpack(NULL, m->data.len, m->data.data);

	if (w)
		printf("welcome %u %u %s\n", w->width, w->height, w->session);
	pb__display_welcome__free_unpacked(w, NULL);
}

static void tell_notice(const struct display_message *m)
{
	Pb__DisplayNotice *n = pb__display_notice__unpack(NULL, m->data.len, m->data.data);

	if (n)
		printf("notice %d %s%s%s\n", n->kind, n->text, n->name[0] ? " of " : "", n->name);
	pb__display_notice__free_unpacked(n, NULL);
}

static void on_message(void *ctx, const struct display_message *m)
{
	struct display_message ack = {.type = DISPLAY_ACK};
	struct viewer *v = ctx;

	switch (m->type) {
	case DISPLAY_WELCOME:
		tell_welcome(m);
		break;
	case DISPLAY_NOTICE:
		tell_notice(m);
		break;
	case DISPLAY_CLIPBOARD:
		printf("clipboard %zu %.*s\n", m->data.len, (int)MIN(m->data.len, (size_t)SHOWN),
			(const char *)m->data.data);
		break;
	case DISPLAY_CURSOR:
		printf("cursor %d %d\n", m->cursor.w, m->cursor.h);
		break;
	case DISPLAY_VIDEO:
		printf("film %d %d %d %d\n", m->rect.x, m->rect.y, m->rect.w, m->rect.h);
		break;
	case DISPLAY_UPDATED:
	case DISPLAY_MARK:
		ack.serial = m->serial;
		send_message(v, &ack);
		break;
	default:
		break;
	}
}

static void on_resized(void *ctx, int width, int height)
{
	printf("resized %d %d\n", width, height);
}

static const struct display_decoder_ops ops = {.message = on_message, .resized = on_resized};

/* Under another name first: who waits for the file sees all of it. */
static void write_picture(const struct viewer *v, const char *path)
{
	const struct display_frame *f = display_decoder_frame(v->decoder);
	FILE *out = fopen(path, "we");

	if (!out)
		return;
	fprintf(out, "P6\n%d %d\n255\n", f->width, f->height);
	for (int y = 0; y < f->height; y++)
		for (int x = 0; x < f->width; x++) {
			uint32_t p = *display_frame_at(f, x, y);
			const uint8_t rgb[3] = {(uint8_t)(p >> 16), (uint8_t)(p >> 8), (uint8_t)p};

			fwrite(rgb, 1, 3, out);
		}
	fclose(out);
	printf("picture %s\n", path);
}

static void obey_clipboard(struct viewer *v, const char *text, size_t len)
{
	struct display_message m = {
		.type = DISPLAY_CLIPBOARD_IN, .data = {(const uint8_t *)text, len}};

	send_message(v, &m);
}

static void fill(struct viewer *v, size_t n)
{
	char *text = malloc(n + 1);

	for (size_t i = 0; text && i < n; i++)
		text[i] = (char)('a' + i % 26);
	if (text)
		obey_clipboard(v, text, n);
	free(text);
}

static void obey(struct viewer *v, char *line)
{
	struct display_message m = {0};
	int a, b, c;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "key %i %d", &a, &b) == 2) {
		m = (struct display_message){
			.type = DISPLAY_KEY, .key = {.keysym = (uint32_t)a, .down = b}};
		send_message(v, &m);
	} else if (sscanf(line, "pointer %d %d %d", &a, &b, &c) == 3) {
		m = (struct display_message){.type = DISPLAY_POINTER,
			.pointer = {.x = a, .y = b, .buttons = (uint8_t)c}};
		send_message(v, &m);
	} else if (sscanf(line, "resize %d %d", &a, &b) == 2) {
		m = (struct display_message){.type = DISPLAY_RESIZE_IN, .size = {a, b}};
		send_message(v, &m);
	} else if (sscanf(line, "scale %d", &a) == 1) {
		m = (struct display_message){.type = DISPLAY_SCALE_IN, .percent = (uint16_t)a};
		send_message(v, &m);
	} else if (sscanf(line, "fill %d", &a) == 1) {
		fill(v, (size_t)a);
	} else if (strncmp(line, "clipboard ", 10) == 0) {
		obey_clipboard(v, line + 10, strlen(line + 10));
	} else if (strncmp(line, "picture ", 8) == 0) {
		write_picture(v, line + 8);
	}
}

static void greet(struct viewer *v, unsigned quality)
{
	Pb__DisplayHello hello = PB__DISPLAY_HELLO__INIT;
	uint8_t packed[256];
	struct display_message m = {.type = DISPLAY_HELLO, .data = {packed, 0}};

	hello.version = DISPLAY_VERSION;
	hello.codecs = DISPLAY_DECODER_CODECS & ~(1u << DISPLAY_CODEC_JPEG);
	hello.name = (char *)"test";
	hello.quality = quality;
	hello.video = quality ? DISPLAY_DECODER_VIDEO : 0;
	m.data.len = pb__display_hello__pack(&hello, packed);
	send_message(v, &m);
}

static int connect_to(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -1 : fd;
}

/* False at the end of either. */
static bool turn(struct viewer *v, struct err *e)
{
	static uint8_t data[1 << 16];
	struct pollfd polls[] = {{v->sock, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
	char line[4096];
	ssize_t n;

	if (v->out.len && io_write_full(v->sock, v->out.data, v->out.len) < 0)
		return false;
	v->out.len = 0;
	poll(polls, ARRAY_SIZE(polls), -1);
	if (polls[0].revents) {
		n = read(v->sock, data, sizeof(data));
		if (n <= 0 || display_decoder_feed(v->decoder, data, (size_t)n, e) < 0)
			return false;
	}
	if (polls[1].revents) {
		if (!fgets(line, sizeof(line), stdin))
			return false;
		obey(v, line);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct viewer v = {.sock = argc > 1 ? connect_to(argv[1]) : -1};
	struct err e = {0};

	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	signal(SIGPIPE,
		SIG_IGN); /* a server that has ended is told of, also where it is written to */
	if (v.sock < 0 || display_decoder_new(&ops, &v, &v.decoder) < 0) {
		perror(argc > 1 ? argv[1] : "usage: display_viewer SOCKET");
		return 1;
	}
	greet(&v, argc > 2 ? (unsigned)atoi(argv[2]) : 0);
	while (turn(&v, &e))
		;
	printf("closed %s\n", e.msg);
	display_decoder_free(v.decoder);
	buf_fini(&v.out);
	return err_is(&e);
}

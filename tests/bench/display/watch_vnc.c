// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A VNC viewer: libvncclient, with what TigerVNC's own viewer has beyond it, fences and continuous
 * updates, so that a server that can push does.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <rfb/rfbclient.h>

#include "watch.h"

#define ENCODING_FENCE	    (-312)
#define ENCODING_CONTINUOUS (-313)
#define MESSAGE_FENCE	    248
#define MESSAGE_CONTINUOUS  150
#define FENCE_REQUEST	    0x80000000u
#define FENCE_KNOWN	    0x7u /* before, after, next */
#define FENCE_DATA	    64

static struct watch_end *the_end; /* libvncclient's extensions are the process's */

static rfbBool make_frame(rfbClient *c)
{
	free(c->frameBuffer);
	c->updateRect.x = c->updateRect.y = 0;
	c->updateRect.w = c->width;
	c->updateRect.h = c->height;
	c->frameBuffer = calloc((size_t)c->width * (size_t)c->height, 4);
	the_end->pixels = (uint32_t *)(void *)c->frameBuffer;
	the_end->width = the_end->stride = c->width;
	the_end->height = c->height;
	return c->frameBuffer != NULL;
}

static void on_update(rfbClient *c, int x, int y, int w, int h)
{
	(void)c;
	(void)x;
	(void)y;
	(void)w;
	(void)h;
	the_end->progress(the_end->ctx);
}

static rfbBool answer_fence(rfbClient *c)
{
	struct {
		uint8_t type, pad[3];
		uint32_t flags;
		uint8_t len;
		uint8_t data[FENCE_DATA];
	} __attribute__((packed)) m = {.type = MESSAGE_FENCE};

	if (!ReadFromRFBServer(c, (char *)m.pad, 3) || !ReadFromRFBServer(c, (char *)&m.flags, 4) ||
		!ReadFromRFBServer(c, (char *)&m.len, 1) || m.len > FENCE_DATA ||
		!ReadFromRFBServer(c, (char *)m.data, m.len))
		return FALSE;
	if (!(ntohl(m.flags) & FENCE_REQUEST))
		return TRUE;
	m.flags = htonl(ntohl(m.flags) & FENCE_KNOWN);
	return WriteToRFBServer(c, (const char *)&m, 9u + m.len);
}

/* The server can: all of the screen, from now on. */
static rfbBool ask_continuous(rfbClient *c)
{
	struct {
		uint8_t type, enable;
		uint16_t x, y, w, h;
	} __attribute__((packed)) m = {.type = MESSAGE_CONTINUOUS, .enable = 1};

	m.w = htons((uint16_t)c->width);
	m.h = htons((uint16_t)c->height);
	return WriteToRFBServer(c, (const char *)&m, sizeof(m));
}

static rfbBool on_message(rfbClient *c, rfbServerToClientMsg *m)
{
	rfbBool ok;

	if (m->type != MESSAGE_FENCE && m->type != MESSAGE_CONTINUOUS)
		return FALSE;
	ok = m->type == MESSAGE_FENCE ? answer_fence(c) : ask_continuous(c);
	if (!ok)
		watch_die("vnc: the line ended");
	return TRUE;
}

static void no_log(const char *format, ...)
{
	(void)format;
}

static void begin(struct watch_end *e, int quality)
{
	static int encodings[] = {ENCODING_FENCE, ENCODING_CONTINUOUS, 0};
	static rfbClientProtocolExtension extension = {
		.encodings = encodings, .handleMessage = on_message};
	rfbClient *c = rfbGetClient(8, 3, 4);

	rfbClientLog = no_log;
	rfbClientRegisterExtension(&extension);
	the_end = e;
	c->sock = e->fd;
	c->format.redShift = 16;
	c->format.greenShift = 8;
	c->format.blueShift = 0;
	c->MallocFrameBuffer = make_frame;
	c->GotFrameBufferUpdate = on_update;
	c->appData.shareDesktop = TRUE;
	c->appData.encodingsString = "tight copyrect zrle hextile raw";
	c->appData.enableJPEG = quality > 0;
	/* 8 is what TigerVNC's viewer begins with; libvncclient has no word for lossless */
	c->appData.qualityLevel = quality > 0 ? 8 : 10;
	c->appData.compressLevel = 1;
	c->appData.useRemoteCursor = TRUE;
	e->data = c;
	if (!InitialiseRFBConnection(c))
		watch_die("vnc: no beginning");
	c->width = c->si.framebufferWidth;
	c->height = c->si.framebufferHeight;
	if (!make_frame(c) || !SetFormatAndEncodings(c) ||
		!SendFramebufferUpdateRequest(c, 0, 0, c->width, c->height, FALSE))
		watch_die("vnc: no beginning");
}

static void take(struct watch_end *e)
{
	rfbClient *c = e->data;

	/* what it has read ahead, nobody is told of by poll */
	do {
		if (!HandleRFBServerMessage(c))
			watch_die("vnc: the line ended");
	} while (c->buffered);
}

static void key(struct watch_end *e, uint32_t keysym, bool down)
{
	if (!SendKeyEvent(e->data, keysym, down))
		watch_die("vnc: the line");
}

static size_t waiting(const struct watch_end *e)
{
	return ((const rfbClient *)e->data)->buffered;
}

const struct watch_end_ops watch_vnc = {
	.begin = begin, .read = take, .key = key, .waiting = waiting};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The decoder's picture is libvncserver's framebuffer; what changes there is marked.  One loop
 * waits for the display server and for VNC viewers, and lets libvncserver do what there is to do.
 * The library keeps a callback's state in the screen, whose screenData is ours.
 *
 * VNC says wheels as buttons; a press of one is a notch.  Keys and buttons come up when a viewer is
 * gone that has typed or clicked: one that has not been let in changes nothing.  The library looks
 * at its viewers' descriptors by select(2), and minds no limit of that: there are CLIENTS at most.
 */
#include "display/viewer/vnc.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <rfb/rfb.h>

#include "base/base.h"
#include "display/decode.h"
#include "display/viewer/greet.h"

#define PORT_FIRST 5900
#define PORT_LAST  5999
#define READ	   (64u << 10)
#define KEYS	   64
#define FDS	   256
#define CLIENTS	   16

struct vnc {
	int fd;
	const struct display_vnc_options *options;
	struct display_decoder *decoder;
	rfbScreenInfoPtr screen; /* NULL until there is a picture */
	char *passwords[2];
	rfbCursorPtr cursor; /* the newest, while there is no screen */
	bool resized;
	uint32_t down[KEYS]; /* keysyms */
	size_t n_down;
	int wheel;   /* of its buttons, those that are down */
	int buttons; /* others */
	int x, y;    /* where they were last */
	unsigned n_clients;
	bool failed;
};

static void tell(struct vnc *v, const struct display_message *m)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	display_wire_put(&b, m);
	if (buf_error(&b) < 0 || io_write_full(v->fd, b.data, b.len) < 0)
		v->failed = true;
}

/* ---- from VNC viewers */

static void tell_key(struct vnc *v, uint32_t keysym, bool down)
{
	struct display_message m = {.type = DISPLAY_KEY};
	size_t i;

	for (i = 0; i < v->n_down && v->down[i] != keysym; i++)
		;
	if (down && i == v->n_down && i < KEYS)
		v->down[v->n_down++] = keysym;
	if (!down && i < v->n_down)
		v->down[i] = v->down[--v->n_down];
	m.key.keysym = keysym;
	m.key.down = down;
	tell(v, &m);
}

static void on_key(rfbBool down, rfbKeySym keysym, rfbClientPtr client)
{
	struct vnc *v = client->screen->screenData;

	if (v->options->view_only)
		return;
	client->clientData = v;
	tell_key(v, (uint32_t)keysym, down);
}

/* Buttons 4 to 7 are the wheel: up, down, left, right. */
static void tell_pointer(struct vnc *v, int mask)
{
	struct display_message m = {.type = DISPLAY_POINTER};
	int pressed = mask & ~v->wheel;

	v->wheel = mask & 0x78;
	v->buttons = mask & 7;
	m.pointer.x = v->x;
	m.pointer.y = v->y;
	m.pointer.buttons = (uint8_t)v->buttons;
	m.pointer.wheel_y = !!(pressed & 0x10) - !!(pressed & 0x08);
	m.pointer.wheel_x = !!(pressed & 0x40) - !!(pressed & 0x20);
	tell(v, &m);
}

static void on_pointer(int mask, int x, int y, rfbClientPtr client)
{
	struct vnc *v = client->screen->screenData;

	if (v->options->view_only)
		return;
	client->clientData = v;
	v->x = x;
	v->y = y;
	tell_pointer(v, mask);
	rfbDefaultPtrAddEvent(mask, x, y, client);
}

static void tell_clipboard(struct vnc *v, const void *text, size_t len)
{
	const struct display_message m = {.type = DISPLAY_CLIPBOARD_IN, .data = {text, len}};

	if (!v->options->view_only && len <= DISPLAY_WIRE_VIEWER_MAX)
		tell(v, &m);
}

static void on_latin1(char *text, int len, rfbClientPtr client)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	for (int i = 0; i < len; i++) {
		uint8_t c = (uint8_t)text[i];

		if (c >= 0x80)
			buf_put_u8(&b, (uint8_t)(0xc0 | c >> 6));
		buf_put_u8(&b, c >= 0x80 ? (0x80 | (c & 0x3f)) : c);
	}
	if (buf_error(&b) == 0)
		tell_clipboard(client->screen->screenData, b.data, b.len);
}

static void on_utf8(char *text, int len, rfbClientPtr client)
{
	/* The library counts a NUL at the end. */
	while (len > 0 && !text[len - 1])
		len--;
	tell_clipboard(client->screen->screenData, text, (size_t)MAX(len, 0));
}

static int on_size(
	int width, int height, int n, struct rfbExtDesktopScreen *screens, rfbClientPtr client)
{
	struct vnc *v = client->screen->screenData;
	struct display_message m = {.type = DISPLAY_RESIZE_IN};

	if (v->options->view_only)
		return rfbExtDesktopSize_ResizeProhibited;
	if (width < 1 || height < 1 || width > DISPLAY_SIZE_MAX || height > DISPLAY_SIZE_MAX)
		return rfbExtDesktopSize_InvalidScreenLayout;
	m.size.w = width;
	m.size.h = height;
	tell(v, &m);
	return rfbExtDesktopSize_Success;
}

static void on_gone(rfbClientPtr client)
{
	struct vnc *v = client->screen->screenData;

	v->n_clients--;
	if (!client->clientData)
		return;
	if (v->buttons)
		tell_pointer(v, 0);
	while (v->n_down)
		tell_key(v, v->down[v->n_down - 1], false);
	v->wheel = 0;
}

static enum rfbNewClientAction on_client(rfbClientPtr client)
{
	struct vnc *v = client->screen->screenData;

	if (v->n_clients == CLIENTS)
		return RFB_CLIENT_REFUSE;
	v->n_clients++;
	client->clientGoneHook = on_gone;
	return RFB_CLIENT_ACCEPT;
}

/* ---- from the display server */

static void on_changed(void *ctx, const struct display_rect *r)
{
	struct vnc *v = ctx;

	/* Where the picture is another one, all of it is marked later. */
	if (v->screen && !v->resized)
		rfbMarkRectAsModified(v->screen, r->x, r->y, r->x + r->w, r->y + r->h);
}

static void on_resized(void *ctx, int width, int height)
{
	((struct vnc *)ctx)->resized = true;
}

/* The library owns it, and frees it by free(3). */
static rfbCursorPtr rich_cursor(const struct display_message *m)
{
	size_t n = (size_t)m->cursor.w * (size_t)m->cursor.h, row = ((size_t)m->cursor.w + 7) / 8;
	rfbCursorPtr c = calloc(1, sizeof(*c));
	uint32_t *rich = calloc(n + 1, sizeof(*rich));
	uint8_t *mask = calloc(row * (size_t)m->cursor.h + 1, 1);
	uint8_t *source = calloc(row * (size_t)m->cursor.h + 1, 1);

	if (!c || !rich || !mask || !source) {
		free(c);
		free(rich);
		free(mask);
		free(source);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = m->data.data + i * 4;
		size_t x = i % (size_t)m->cursor.w, y = i / (size_t)m->cursor.w;

		rich[i] = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
		if (p[3] >= 128)
			mask[y * row + x / 8] |= (uint8_t)(0x80 >> x % 8);
	}
	c->cleanup = TRUE;
	c->cleanupMask = c->cleanupSource = c->cleanupRichSource = TRUE;
	c->width = (unsigned short)m->cursor.w;
	c->height = (unsigned short)m->cursor.h;
	c->xhot = (unsigned short)m->cursor.hot_x;
	c->yhot = (unsigned short)m->cursor.hot_y;
	c->richSource = (unsigned char *)rich;
	c->mask = mask;
	c->source = source;
	return c;
}

static void put_cursor(struct vnc *v, rfbCursorPtr c)
{
	if (v->screen) {
		rfbSetCursor(v->screen, c);
		return;
	}
	if (v->cursor)
		rfbFreeCursor(v->cursor);
	v->cursor = c;
}

/* In Latin-1 for viewers that know nothing else; what isn't in it is a question mark. */
static void put_clipboard(struct vnc *v, const struct display_bytes *text)
{
	_cleanup_buf_ struct buf latin1 = BUF_INIT, utf8 = BUF_INIT;

	for (size_t i = 0; i < text->len; i++) {
		uint8_t c = text->data[i];

		if (c >= 0xc2 && c <= 0xc3 && i + 1 < text->len)
			buf_put_u8(&latin1, (uint8_t)(c << 6 | (text->data[++i] & 0x3f)));
		else if (c < 0x80)
			buf_put_u8(&latin1, c);
		else if (c >= 0xc0)
			buf_put_u8(&latin1, '?');
	}
	buf_put(&utf8, text->data, text->len);
	if (buf_cstr(&latin1) && buf_cstr(&utf8))
		rfbSendServerCutTextUTF8(v->screen, (char *)utf8.data, (int)utf8.len,
			(char *)latin1.data, (int)latin1.len);
}

static void on_message(void *ctx, const struct display_message *m)
{
	struct vnc *v = ctx;
	const struct display_message ack = {.type = DISPLAY_ACK, .serial = m->serial};

	switch (m->type) {
	case DISPLAY_MARK:
	case DISPLAY_UPDATED:
		tell(v, &ack);
		break;
	case DISPLAY_CURSOR:
		put_cursor(v, m->cursor.w > 0 ? rich_cursor(m) : NULL);
		break;
	case DISPLAY_CLIPBOARD:
		if (v->screen)
			put_clipboard(v, &m->data);
		break;
	default:
		break;
	}
}

static const struct display_decoder_ops decoder_ops = {
	.changed = on_changed, .resized = on_resized, .message = on_message};

/* ---- the screen */

static void set_format(struct vnc *v)
{
	v->screen->serverFormat.redShift = 16;
	v->screen->serverFormat.greenShift = 8;
	v->screen->serverFormat.blueShift = 0;
}

/* The port that was asked for, or the first free one. */
static int listen_somewhere(struct vnc *v, struct err *e)
{
	unsigned first = v->options->port ? v->options->port : PORT_FIRST;
	unsigned last = v->options->port ? v->options->port : PORT_LAST;
	char address[64];

	snprintf(address, sizeof(address), "%s", v->options->address);
	if (!rfbStringToAddr(address, &v->screen->listenInterface))
		return err_set(e, ERR_USAGE, -EINVAL, "'%s' is no address", v->options->address);
	v->screen->autoPort = FALSE;
	v->screen->ipv6port = 0;
	for (unsigned port = first; port <= last; port++) {
		rfbSocket s = rfbListenOnTCPPort((int)port, v->screen->listenInterface);

		if (s < 0)
			continue;
		close(s);
		v->screen->port = (int)port;
		rfbInitServer(v->screen);
		if (v->screen->listenSock >= 0)
			return 0;
	}
	return err_set(
		e, ERR_HOST, -EADDRINUSE, "cannot listen at %s:%u", v->options->address, first);
}

static int open_screen(struct vnc *v, struct err *e)
{
	const struct display_frame *f = display_decoder_frame(v->decoder);
	int r;

	v->screen = rfbGetScreen(NULL, NULL, f->width, f->height, 8, 3, 4);
	if (!v->screen)
		return err_errno(e, -ENOMEM, "VNC");
	v->screen->screenData = v;
	v->screen->frameBuffer = (char *)f->pixels;
	v->screen->paddedWidthInBytes = f->stride * 4;
	v->screen->desktopName = "podrun";
	v->screen->alwaysShared = TRUE;
	v->screen->deferUpdateTime = 0;
	v->screen->kbdAddEvent = on_key;
	v->screen->ptrAddEvent = on_pointer;
	v->screen->setXCutText = on_latin1;
	v->screen->setXCutTextUTF8 = on_utf8;
	v->screen->setDesktopSizeHook = on_size;
	v->screen->newClientHook = on_client;
	v->screen->permitFileTransfer = FALSE;
	v->screen->cursor = take_ptr(v->cursor); /* not the library's own */
	v->screen->authPasswdData = v->passwords;
	v->screen->passwordCheck = rfbCheckPasswordByList;
	set_format(v);
	r = listen_somewhere(v, e);
	if (r == 0 && v->options->ready)
		v->options->ready(v->options->ctx, (unsigned)v->screen->port);
	return r;
}

static int follow_size(struct vnc *v, struct err *e)
{
	const struct display_frame *f = display_decoder_frame(v->decoder);

	if (!v->resized || !f->pixels)
		return 0;
	v->resized = false;
	if (!v->screen)
		return open_screen(v, e);
	rfbNewFramebuffer(v->screen, (char *)f->pixels, f->width, f->height, 8, 3, 4);
	v->screen->paddedWidthInBytes = f->stride * 4;
	set_format(v);
	return 0;
}

/* 1, 0 at the end, or a negative errno. */
static int read_server(struct vnc *v, struct err *e)
{
	static uint8_t bytes[READ];
	ssize_t n = recv(v->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	int r;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : err_errno(e, -errno, "display");
	if (n == 0)
		return 0;
	r = display_decoder_feed(v->decoder, bytes, (size_t)n, e);
	if (r == 0)
		r = follow_size(v, e);
	return r < 0 ? r : !v->failed;
}

/* Until the display server or a VNC viewer has something to say. */
static void wait_for_all(const struct vnc *v)
{
	struct pollfd all[FDS] = {{.fd = v->fd, .events = POLLIN}};
	nfds_t n = 1;

	for (int fd = 0; v->screen && fd <= v->screen->maxFd && n < FDS; fd++)
		if (FD_ISSET(fd, &v->screen->allFds))
			all[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	poll(all, n, -1);
}

static void no_log(const char *format, ...)
{
}

int display_vnc(int fd, const struct display_vnc_options *o, struct err *e)
{
	const struct display_viewer_wish wish = {
		.name = "vnc", .view_only = o->view_only, .quality = o->quality};
	struct vnc v = {.fd = fd, .options = o, .passwords = {(char *)o->password, NULL}};
	int r;

	rfbLog = rfbErr = no_log;
	r = display_decoder_new(&decoder_ops, &v, &v.decoder);
	if (r == 0)
		r = display_viewer_greet(fd, &wish);
	if (r < 0)
		return err_errno(e, r, "display");
	do {
		wait_for_all(&v);
		r = read_server(&v, e);
		if (r > 0 && v.screen)
			rfbProcessEvents(v.screen, 0);
	} while (r > 0);
	if (v.screen) {
		rfbShutdownServer(v.screen, TRUE);
		v.screen->frameBuffer = NULL;
		rfbScreenCleanup(v.screen);
	}
	if (v.cursor)
		rfbFreeCursor(v.cursor);
	display_decoder_free(v.decoder);
	return r;
}

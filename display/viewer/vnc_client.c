// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      display server == decoder's picture -- copied where it changes --> ours == VNC viewer
 *
 * libvncserver has one client.  Until its password was right there is no connection to the display
 * server, so nothing of the session is in this process; and an alarm ends it if that takes too
 * long.  Then the first picture is waited for, for a while, because VNC begins with a size.
 *
 * The library makes that client when events are processed first.  One that begins like a websocket
 * or TLS and is none is closed before there are hooks: it has gone if the library has no client.
 *
 * The library waits for whatever is not whole, either way, and so does this process: it delays
 * nobody else.  The display server sends no more than a slow viewer takes, and lets the keys come
 * up that were held when we are gone.
 *
 * While there is no display server - the session is suspended, is moved - what was shown last is
 * held, darker, and the way is tried again and again.  That needs a picture of our own, beside the
 * decoder's.
 *
 * VNC says wheels as buttons; a press of one is a notch.  The library keeps a callback's state in
 * the screen, whose screenData is ours.
 */
#include "display/viewer/vnc_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/base.h"
#include "display/decode.h"
#include "display/text.h"
#include "display/viewer/greet.h"
#include "display/viewer/vnc_library.h"
#include "proto/display.pb-c.h"

#define STRANGER_S   60	   /* until the password is right: people type it */
#define PICTURE_MS   10000 /* for the first one */
#define FIRST_TRY_MS 100   /* for another connection */
#define LAST_TRY_MS  4000
#define MEMORY_MAX   (384ull << 20)
#define READ	     (64u << 10)
#define WIDTH	     640 /* of nothing */
#define HEIGHT	     400

/* A host that is gone without a word is found out. */
#define IDLE_S	  60
#define PROBE_S	  20
#define PROBES	  3
#define UNSENT_MS 120000

struct client {
	const struct display_vnc_options *options;
	int conn, line;
	int server; /* -1: none now */
	struct display_decoder *decoder;
	rfbScreenInfoPtr screen;
	char *passwords[2];
	uint32_t *pixels; /* width * height of the screen's */
	bool admitted, gone, broken, over;
	bool fresh;	      /* of what the server has, the first picture is not whole yet */
	bool resized;	      /* the decoder's picture has another size, or is another one */
	bool held;	      /* the session stands still */
	bool dark;	      /* what is shown is not what is */
	struct buf clipboard; /* that the viewer could not be told yet */
	int wheel;	      /* of its buttons, those that are down */
	int try_in_ms;	      /* after another failure */
	uint64_t try_ns;
};

static void tell(struct client *c, const struct display_message *m)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (c->server < 0)
		return;
	display_wire_put(&b, m);
	if (buf_error(&b) < 0 || io_write_full(c->server, b.data, b.len) < 0)
		c->broken = true;
}

static void say(struct client *c, enum display_vnc_word word)
{
	char w = (char)word;

	if (io_write_full(c->line, &w, 1) < 0)
		_exit(1);
}

/* ---- from the VNC viewer --------------------------------------------------------------------- */

static void on_key(rfbBool down, rfbKeySym keysym, rfbClientPtr client)
{
	struct client *c = client->screen->screenData;
	struct display_message m = {.type = DISPLAY_KEY};

	m.key.keysym = (uint32_t)keysym;
	m.key.down = down;
	if (!c->options->view_only)
		tell(c, &m);
}

/* Buttons 4 to 7 are the wheel: up, down, left, right. */
static void on_pointer(int mask, int x, int y, rfbClientPtr client)
{
	struct client *c = client->screen->screenData;
	struct display_message m = {.type = DISPLAY_POINTER};
	int pressed = mask & ~c->wheel;

	if (c->options->view_only)
		return;
	c->wheel = mask & 0x78;
	m.pointer.x = x;
	m.pointer.y = y;
	m.pointer.buttons = (uint8_t)(mask & 7);
	m.pointer.wheel_y = !!(pressed & 0x10) - !!(pressed & 0x08);
	m.pointer.wheel_x = !!(pressed & 0x40) - !!(pressed & 0x20);
	tell(c, &m);
	display_vnc_lib->rfbDefaultPtrAddEvent(mask, x, y, client);
}

static void tell_clipboard(struct client *c, const void *text, size_t len)
{
	const struct display_message m = {.type = DISPLAY_CLIPBOARD_IN, .data = {text, len}};

	if (!c->options->view_only && len <= DISPLAY_WIRE_VIEWER_MAX)
		tell(c, &m);
}

static void on_latin1(char *text, int len, rfbClientPtr client)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	display_text_put_utf8(&b, text, (size_t)MAX(len, 0));
	if (buf_error(&b) == 0)
		tell_clipboard(client->screen->screenData, b.data, b.len);
}

/* Its lines end in CR LF; the display server takes both. */
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
	struct client *c = client->screen->screenData;
	struct display_message m = {.type = DISPLAY_RESIZE_IN};

	if (c->options->view_only)
		return rfbExtDesktopSize_ResizeProhibited;
	if (width < 1 || height < 1 || width > DISPLAY_SIZE_MAX || height > DISPLAY_SIZE_MAX)
		return rfbExtDesktopSize_InvalidScreenLayout;
	m.size.w = width;
	m.size.h = height;
	tell(c, &m);
	return rfbExtDesktopSize_Success;
}

static void on_gone(rfbClientPtr client)
{
	((struct client *)client->screen->screenData)->gone = true;
}

static enum rfbNewClientAction on_client(rfbClientPtr client)
{
	client->clientGoneHook = on_gone;
	return RFB_CLIENT_ACCEPT;
}

/* ---- the picture ----------------------------------------------------------------------------- */

static void copy(struct client *c, const struct display_rect *r)
{
	const struct display_frame *f = display_decoder_frame(c->decoder);

	for (int y = r->y; y < r->y + r->h; y++)
		memcpy(c->pixels + (size_t)y * (size_t)c->screen->width + r->x,
			display_frame_at(f, r->x, y), (size_t)r->w * sizeof(*c->pixels));
	display_vnc_lib->rfbMarkRectAsModified(c->screen, r->x, r->y, r->x + r->w, r->y + r->h);
}

static void copy_all(struct client *c)
{
	const struct display_rect all = {0, 0, c->screen->width, c->screen->height};
	const struct display_frame *f = display_decoder_frame(c->decoder);

	/* A server that says it runs before it has said how large it is. */
	if (f->width != all.w || f->height != all.h)
		return;
	c->dark = false;
	copy(c, &all);
}

static void darken(struct client *c)
{
	size_t n = (size_t)c->screen->width * (size_t)c->screen->height;

	if (c->dark)
		return;
	c->dark = true;
	for (size_t i = 0; i < n; i++)
		c->pixels[i] = c->pixels[i] >> 1 & 0x7f7f7f;
	display_vnc_lib->rfbMarkRectAsModified(c->screen, 0, 0, c->screen->width, c->screen->height);
}

static void set_format(struct client *c)
{
	c->screen->serverFormat.redShift = 16;
	c->screen->serverFormat.greenShift = 8;
	c->screen->serverFormat.blueShift = 0;
}

/* The decoder's picture becomes ours; the viewer is told if it has another size. */
static void follow_size(struct client *c)
{
	const struct display_frame *f = display_decoder_frame(c->decoder);
	uint32_t *pixels;

	c->resized = false;
	if (!f->pixels)
		return;
	if (f->width != c->screen->width || f->height != c->screen->height) {
		pixels = calloc((size_t)f->width * (size_t)f->height, sizeof(*pixels));
		if (!pixels)
			_exit(1);
		display_vnc_lib->rfbNewFramebuffer(c->screen, (char *)pixels, f->width, f->height, 8, 3, 4);
		set_format(c);
		free(c->pixels);
		c->pixels = pixels;
	}
	copy_all(c);
	if (c->held)
		darken(c);
}

/* ---- from the display server ----------------------------------------------------------------- */

static void on_changed(void *ctx, const struct display_rect *r)
{
	struct client *c = ctx;

	/* Where it has another size, or is shown darker, all of it is copied later. */
	if (!c->resized && !c->dark)
		copy(c, r);
}

static void on_resized(void *ctx, int width, int height)
{
	((struct client *)ctx)->resized = true;
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

/*
 * In Latin-1 for viewers that know nothing else.  Which they know, and that they have begun, is
 * said by the encodings that they take.
 */
static void tell_clipboard_out(struct client *c)
{
	rfbClientPtr client = c->screen->clientHead;
	_cleanup_buf_ struct buf out = BUF_INIT;
	const struct buf *text = &c->clipboard;

	if (!text->len || !client || client->state != RFB_NORMAL || client->preferredEncoding == -1)
		return;
	/* rfbSendServerCutTextUTF8 does both, but says the one's length with the other's text. */
	if (client->enableExtendedClipboard) {
		display_text_put_crlf(&out, text->data, text->len);
		if (buf_cstr(&out))
			display_vnc_lib->rfbSendServerCutTextUTF8(
				c->screen, (char *)out.data, (int)out.len, NULL, 0);
	} else {
		display_text_put_latin1(&out, text->data, text->len);
		if (buf_cstr(&out))
			display_vnc_lib->rfbSendServerCutText(
				c->screen, (char *)out.data, (int)out.len);
	}
	buf_clear(&c->clipboard);
}

static void on_notice(struct client *c, const struct display_bytes *packed)
{
	Pb__DisplayNotice *n = pb__display_notice__unpack(NULL, packed->len, packed->data);

	if (!n)
		return;
	c->over = n->kind == PB__DISPLAY_NOTICE__KIND__ENDED;
	c->held = n->kind != PB__DISPLAY_NOTICE__KIND__RUNNING;
	if (c->held)
		darken(c);
	else if (c->dark && !c->resized && !c->fresh)
		copy_all(c);
	pb__display_notice__free_unpacked(n, NULL);
}

static void move_pointer(struct client *c, int x, int y)
{
	rfbClientPtr client = c->screen->clientHead;

	if (!client)
		return;
	display_vnc_lib->rfbDefaultPtrAddEvent(0, x, y, client);
	/* The library takes it for the viewer's own movement. */
	client->cursorWasMoved = client->enableCursorPosUpdates;
}

static void on_message(void *ctx, const struct display_message *m)
{
	struct client *c = ctx;
	const struct display_message ack = {.type = DISPLAY_ACK, .serial = m->serial};

	switch (m->type) {
	case DISPLAY_UPDATED:
		c->fresh = false;
		tell(c, &ack);
		break;
	case DISPLAY_MARK:
		tell(c, &ack);
		break;
	case DISPLAY_CURSOR:
		display_vnc_lib->rfbSetCursor(c->screen, m->cursor.w > 0 ? rich_cursor(m) : NULL);
		break;
	case DISPLAY_POINTER_AT:
		move_pointer(
			c, MIN(m->at.x, c->screen->width - 1), MIN(m->at.y, c->screen->height - 1));
		break;
	case DISPLAY_CLIPBOARD:
		buf_clear(&c->clipboard);
		if (!c->options->view_only)
			buf_put(&c->clipboard, m->data.data, m->data.len);
		break;
	case DISPLAY_NOTICE:
		on_notice(c, &m->data);
		break;
	default:
		break;
	}
}

static const struct display_decoder_ops decoder_ops = {
	.changed = on_changed, .resized = on_resized, .message = on_message};

static void disconnect(struct client *c)
{
	close_fd(c->server);
	c->server = -1;
	c->broken = false;
	display_decoder_free(take_ptr(c->decoder));
	darken(c);
	c->try_ns = io_now_ns() + (uint64_t)c->try_in_ms * 1000000;
	c->try_in_ms = MIN(c->try_in_ms * 2, LAST_TRY_MS);
}

static void connect_again(struct client *c)
{
	const struct display_viewer_wish wish = {.name = "vnc",
		.keeps = true,
		.view_only = c->options->view_only,
		.quality = c->options->quality};
	struct err e = {0};

	c->fresh = true;
	c->resized = c->held = false;
	c->server = c->options->connect(c->options->ctx, &e);
	if (c->server < 0 || display_decoder_new(&decoder_ops, c, &c->decoder) < 0 ||
		display_viewer_greet(c->server, &wish) < 0)
		disconnect(c);
	if (c->server < 0 && c->options->over && c->options->over(c->options->ctx))
		c->over = true;
}

static void read_server(struct client *c)
{
	static uint8_t bytes[READ];
	ssize_t n = recv(c->server, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct err e = {0};

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || display_decoder_feed(c->decoder, bytes, (size_t)n, &e) < 0 || c->broken) {
		if (!c->over)
			disconnect(c);
		return;
	}
	if (c->fresh)
		return;
	c->try_in_ms = FIRST_TRY_MS;
	if (c->resized)
		follow_size(c);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* The next thing that the display server says, or does, until @deadline_ns. */
static void attend(struct client *c, uint64_t deadline_ns)
{
	uint64_t now = io_now_ns(),
		 until = c->server < 0 ? MIN(c->try_ns, deadline_ns) : deadline_ns;
	struct pollfd p = {.fd = c->server, .events = POLLIN};

	if (c->server < 0 && now >= c->try_ns)
		connect_again(c);
	else if (poll(&p, 1, until > now ? (int)((until - now) / 1000000 + 1) : 0) > 0)
		read_server(c);
}

/* A viewer who knows the password is asked for nothing else: what VNC says next is the size. */
static rfbBool check_password(rfbClientPtr client, const char *response, int len)
{
	struct client *c = client->screen->screenData;
	uint64_t deadline = io_now_ns() + PICTURE_MS * 1000000ull;

	if (c->admitted || !display_vnc_lib->rfbCheckPasswordByList(client, response, len))
		return FALSE;
	c->admitted = true;
	alarm(0);
	say(c, DISPLAY_VNC_ADMITTED);
	do {
		attend(c, deadline);
	} while (!c->over && io_now_ns() < deadline && (c->server < 0 || c->fresh));
	return !c->over;
}

static void open_screen(struct client *c)
{
	c->pixels = calloc((size_t)WIDTH * HEIGHT, sizeof(*c->pixels));
	c->screen = display_vnc_lib->rfbGetScreen(NULL, NULL, WIDTH, HEIGHT, 8, 3, 4);
	if (!c->screen || !c->pixels)
		_exit(1);
	c->dark = true;
	c->passwords[0] = (char *)c->options->password;
	c->screen->screenData = c;
	c->screen->frameBuffer = (char *)c->pixels;
	c->screen->desktopName = "podrun";
	c->screen->alwaysShared = TRUE;
	c->screen->deferUpdateTime = 0;
	/* The library would hold the last movement back until something else happens. */
	c->screen->deferPtrUpdateTime = 0;
	c->screen->kbdAddEvent = on_key;
	c->screen->ptrAddEvent = on_pointer;
	c->screen->setXCutText = on_latin1;
	c->screen->setXCutTextUTF8 = on_utf8;
	c->screen->setDesktopSizeHook = on_size;
	c->screen->newClientHook = on_client;
	c->screen->permitFileTransfer = FALSE;
	c->screen->cursor = NULL; /* not the library's own */
	c->screen->authPasswdData = c->passwords;
	c->screen->passwordCheck = check_password;
	c->screen->autoPort = FALSE;
	c->screen->port = c->screen->ipv6port = 0;
	c->screen->inetdSock = c->conn;
	set_format(c);
	display_vnc_lib->rfbInitServer(c->screen);
}

static void watch_line(int conn)
{
	setsockopt(conn, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
	setsockopt(conn, IPPROTO_TCP, TCP_KEEPIDLE, &(int){IDLE_S}, sizeof(int));
	setsockopt(conn, IPPROTO_TCP, TCP_KEEPINTVL, &(int){PROBE_S}, sizeof(int));
	setsockopt(conn, IPPROTO_TCP, TCP_KEEPCNT, &(int){PROBES}, sizeof(int));
	setsockopt(conn, IPPROTO_TCP, TCP_USER_TIMEOUT, &(int){UNSENT_MS}, sizeof(int));
}

/* Until either side has something to say, or the display server is to be looked for. */
static void wait_for_both(struct client *c)
{
	struct pollfd all[] = {
		{.fd = c->conn, .events = POLLIN}, {.fd = c->server, .events = POLLIN}};
	uint64_t now = io_now_ns();
	bool seeks = c->admitted && c->server < 0;
	int ms = !seeks ? -1 : c->try_ns > now ? (int)((c->try_ns - now) / 1000000 + 1) : 0;

	poll(all, 2, ms);
	if (all[0].revents & POLLNVAL) {
		c->gone = true;
		return;
	}
	if (c->server >= 0 && all[1].revents)
		read_server(c);
	else if (seeks && io_now_ns() >= c->try_ns)
		connect_again(c);
}

static void process_events(struct client *c)
{
	display_vnc_lib->rfbProcessEvents(c->screen, 0);
	if (!c->screen->clientHead)
		c->gone = true;
}

/*
 * The library's challenges come of srandom(time and process), which it calls at its first: with a
 * process for each viewer a challenge would come again, and an answer that was overheard be right.
 */
static void seed_challenges(void)
{
	unsigned char first[CHALLENGESIZE];
	unsigned seed;

	display_vnc_lib->rfbRandomBytes(first);
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		_exit(1);
	srandom(seed);
}

static void no_log(const char *format, ...)
{
}

void display_vnc_client(int conn, int line, const struct display_vnc_options *o)
{
	struct client c = {
		.options = o, .conn = conn, .line = line, .server = -1, .try_in_ms = FIRST_TRY_MS};

	alarm(STRANGER_S);
	proc_limit_memory(MEMORY_MAX);
	watch_line(conn);
	*display_vnc_lib->rfbLog = *display_vnc_lib->rfbErr = no_log;
	seed_challenges();
	open_screen(&c);
	process_events(&c);
	while (!c.gone && !c.over) {
		wait_for_both(&c);
		if (!c.gone)
			tell_clipboard_out(&c);
		process_events(&c);
	}
	if (c.over)
		say(&c, DISPLAY_VNC_OVER);
	_exit(0);
}

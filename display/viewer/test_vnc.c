// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A display server with a picture in memory, the VNC server as its viewer, and libvncclient as the
 * viewer of that: three processes, and the last one has the picture.
 *
 * What a viewer did is seen in the colours of the pictures that follow.
 */
#include "display/viewer/vnc.h"
#include "display/viewer/vnc_listen.h"

#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <rfb/rfbclient.h>
#include <zlib.h>

#include "base/base.h"
#include "display/memory.h"
#include "display/server.h"

#define WIDTH	 203
#define HEIGHT	 77
#define KEY	 0x1f0
#define POINT_X	 33
#define POINT_Y	 44
#define PASSWORD "geheimni"
#define MANY	 20		       /* strangers are too many */
#define TEXT	 "Gr\303\274\303\237e" /* UTF-8 */
#define LATIN1	 "Gr\374\337e"
/* Of an extended clipboard, which ends lines otherwise; what is copied in the session. */
#define LINES	   "zwei\nZeilen \342\202\254"
#define LINES_CRLF "zwei\r\nZeilen \342\202\254"
#define OUT	   "\303\274\n\342\202\254\n"
#define OUT_LATIN1 "\374\n?\n"
#define OUT_CRLF   "\303\274\r\n\342\202\254\r\n"

/*
 * Pictures behind the first one, of one colour each; COPIED is of another size.  FINISH is for the
 * display server, and makes it end.
 */
enum {
	PRESSED = 0xabcdef,
	STILL_PRESSED = 0x123456,
	RELEASED = 0x654321,
	PASTED = 0x335577,
	COPIED = 0x224466,
	AGAIN = 0x808182,
	WRONG = 0xff0000
};
enum { RESIZED_W = 211, RESIZED_H = 91, FINISH = 0x1f1 };

static uint32_t pixel(int x, int y)
{
	return ((uint32_t)x * 0x010203u ^ (uint32_t)y * 0x050100u) & DISPLAY_RGB;
}

/* Nobody is left behind, whatever becomes of the test. */
static pid_t child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static bool pasted(const struct display_memory *m, const char *text)
{
	return m->clipboard && m->clipboard_len == strlen(text) &&
	       memcmp(m->clipboard, text, strlen(text)) == 0;
}

/* The picture that follows @now with what input has come, or @now. */
static uint32_t next_picture(const struct display_memory *m, uint32_t now)
{
	bool down = m->n_down == 1 && m->down[0] == KEY;

	switch (now) {
	default:
		return down && m->x == POINT_X && m->y == POINT_Y && m->buttons == 1 ? PRESSED
										     : now;
	case PRESSED:
		return m->x == POINT_X ? now : down ? STILL_PRESSED : WRONG;
	case STILL_PRESSED:
		return m->n_down ? now : m->buttons ? WRONG : RELEASED;
	case RELEASED:
		return pasted(m, LINES) ? PASTED : now;
	case PASTED:
		return pasted(m, TEXT) ? COPIED : now;
	case COPIED:
	case AGAIN:
		return now;
	}
}

struct serve {
	struct event_base *base;
	struct display_server *server;
};

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
	int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (conn >= 0 && display_server_add(((struct serve *)arg)->server, conn) < 0)
		_exit(2);
}

static void on_finished(void *arg)
{
	_exit(0);
}

/* Until a key says that it is enough; @first: the first picture's colour, 0 for the pattern. */
static void serve(int listener, uint32_t first)
{
	static const struct display_server_ops ops = {.finished = on_finished};
	struct serve s = {.base = event_base_new()};
	struct display_memory *m = NULL;
	struct display_rect all = {0, 0, WIDTH, HEIGHT};
	uint32_t now = first, next;
	bool copied = false;

	if (display_memory_new(WIDTH, HEIGHT, &m) < 0 ||
		display_server_new(s.base, &m->source, "work", &ops, &s, &s.server, NULL) < 0 ||
		event_add(event_new(s.base, listener, EV_READ | EV_PERSIST, on_connection, &s),
			NULL) < 0)
		_exit(1);
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			*display_frame_at(&m->picture, x, y) = first ? first : pixel(x, y);
	for (;;) {
		event_base_loop(s.base, EVLOOP_ONCE);
		next = next_picture(m, now);
		if (m->n_down == 1 && m->down[0] == FINISH) {
			display_server_tell(s.server, DISPLAY_STATE_ENDED, NULL);
			display_server_finish(s.server);
		}
		if (next == COPIED && !copied) {
			copied = true;
			m->events->clipboard(m->arg, OUT, strlen(OUT));
			display_memory_resize(m, RESIZED_W, RESIZED_H);
			all = (struct display_rect){0, 0, RESIZED_W, RESIZED_H};
		}
		if (next == now)
			continue;
		now = next;
		display_frame_fill(&m->picture, &all, now);
		display_memory_damage(m, &all);
	}
}

/* A display server that goes on, unless @listener is closed here. */
static pid_t start_server(int listener, uint32_t first)
{
	pid_t pid = child();

	if (pid == 0)
		serve(listener, first);
	return pid;
}

static struct sockaddr_un display_at;
static socklen_t display_at_len = sizeof(display_at);

static int listen_for_viewers(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	display_at.sun_family = AF_UNIX;
	/* An abstract address that is free: unix(7), autobind. */
	assert_int_equal(bind(fd, (struct sockaddr *)&display_at, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&display_at, &display_at_len), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

static int connect_display(void *ctx, struct err *e)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&display_at, display_at_len) == 0)
		return fd;
	close(fd);
	return -ECONNREFUSED;
}

static pid_t start_vnc(unsigned *ret_port)
{
	const struct display_vnc_options o = {.password = PASSWORD, .connect = connect_display};
	struct err e = {0};
	char where[64];
	int listener = display_vnc_listen("127.0.0.1:0", where, sizeof(where), &e);
	pid_t pid;

	assert_true(listener >= 0);
	assert_int_equal(sscanf(where, "127.0.0.1:%u", ret_port), 1);
	pid = child();
	if (pid == 0)
		_exit(display_vnc(listener, &o, &e) != 0);
	close(listener);
	return pid;
}

static char *tell_password(rfbClient *client)
{
	return strdup(PASSWORD);
}

static char *tell_wrong_password(rfbClient *client)
{
	return strdup("geheimnx");
}

static rfbClient *connect_to(unsigned port, char *(*password)(rfbClient *))
{
	rfbClient *client = rfbGetClient(8, 3, 4);

	assert_non_null(client);
	client->GetPassword = password;
	client->serverPort = (int)port;
	free(client->serverHost);
	client->serverHost = strdup("127.0.0.1");
	client->appData.enableJPEG = FALSE;
	client->format.redShift = 16;
	client->format.greenShift = 8;
	client->format.blueShift = 0;
	return rfbInitClient(client, NULL, NULL) ? client : NULL;
}

/* From the first picture with a @colour of 0. */
static unsigned differing(const rfbClient *client, uint32_t colour)
{
	const uint32_t *p = (const uint32_t *)(const void *)client->frameBuffer;
	unsigned n = 0;

	if (colour == COPIED && (client->width != RESIZED_W || client->height != RESIZED_H))
		return 1;
	for (int y = 0; y < client->height; y++)
		for (int x = 0; x < client->width; x++)
			n += (p[y * client->width + x] & DISPLAY_RGB) !=
			     (colour ? colour : pixel(x, y));
	return n;
}

static void hear(rfbClient *client)
{
	/* It does not look at what it has read already (facts: libvncclient). */
	if (client->buffered || WaitForMessage(client, 100000) != 0)
		assert_true(HandleRFBServerMessage(client));
}

static void wait_for_picture(rfbClient *client, uint32_t colour)
{
	while (differing(client, colour)) {
		assert_int_not_equal(differing(client, WRONG), 0);
		hear(client);
	}
}

static void leave(rfbClient *client)
{
	free(client->frameBuffer);
	rfbClientCleanup(client);
}

static int connect_bare(unsigned port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval patience = {60, 0};
	char version[12];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(recv(fd, version, sizeof(version), MSG_WAITALL), sizeof(version));
	return fd;
}

static void wait_for_end(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char rest[4096];
	ssize_t n;

	do {
		assert_int_equal(poll(&p, 1, 60000), 1);
		n = recv(fd, rest, sizeof(rest), 0);
	} while (n > 0 || (n < 0 && errno == EAGAIN));
	assert_true(n == 0 || errno == ECONNRESET);
}

/* So many may be silent, or stop in the middle of a word; who comes then takes a place of theirs. */
static void come_in_crowds(unsigned port)
{
	int crowd[MANY];

	for (size_t i = 0; i < MANY; i++) {
		crowd[i] = connect_bare(port);
		assert_int_equal(write(crowd[i], "RFB 003.008\n", i % 12), i % 12);
	}
	for (size_t i = 0; i < MANY - 16; i++)
		wait_for_end(crowd[i]);
	for (size_t i = 0; i < MANY; i++)
		close(crowd[i]);
}

/* Whoever is let in and talks nonsense, or of things that are too large, is left. */
static void talk_nonsense(unsigned port)
{
	static const struct {
		const char *bytes;
		size_t n;
	} all[] = {
		{"\6\0\0\0\177\377\377\377", 8},     /* a text of 2 GiB */
		{"\6\0\0\0\200\0\0\0", 8},	     /* the longest of those with formats */
		{"\377\377\377\377", 4},	     /* no message */
		{"\373\0\377\377\377\377\377\0", 8}, /* 255 screens */
		{"\0\0\0\0\377\377\377\377\0\0\0\0\0\0\0\0\0\0\0\0", 20}, /* pixels of 255 bits */
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		rfbClient *client = connect_to(port, tell_password);

		assert_non_null(client);
		assert_true(WriteToRFBServer(client, all[i].bytes, (unsigned)all[i].n));
		shutdown(client->sock, SHUT_WR);
		wait_for_end(client->sock);
		leave(client);
	}
}

static char *heard; /* what was copied in the session, of the last client that was told */

static void on_text(rfbClient *client, const char *text, int len)
{
	free(heard);
	heard = strndup(text, (size_t)len);
}

#define EXTENDED ((int32_t)0xc0a1e5ce) /* an encoding that says what is not in the library yet */
#define CAPS	 0x1f000001u	       /* all that can be done, with text */
#define PROVIDE	 0x10000001u

static void send_extended(rfbClient *client, uint32_t flags, const void *data, size_t n)
{
	uint32_t head[3] = {htonl(6u << 24), htonl(-(uint32_t)(4 + n)), htonl(flags)};

	assert_true(WriteToRFBServer(client, (char *)head, sizeof(head)));
	assert_true(WriteToRFBServer(client, data, (unsigned)n));
}

/* A viewer with an extended clipboard, and no pictures but as they are. */
static rfbClient *connect_extended(unsigned port)
{
	const uint32_t encodings[] = {htonl(2u << 24 | 2), htonl(0), htonl(EXTENDED)};
	const uint32_t max = htonl(1 << 20);
	rfbClient *client = connect_to(port, tell_password);

	assert_non_null(client);
	/* The first picture comes as the library has asked for it. */
	wait_for_picture(client, RELEASED);
	assert_true(WriteToRFBServer(client, (char *)encodings, sizeof(encodings)));
	send_extended(client, CAPS, &max, sizeof(max));
	return client;
}

/* RFB's extended clipboard: length and text, with a NUL, compressed. */
static void copy_extended(rfbClient *client, const char *text)
{
	uint8_t plain[256], packed[256];
	uint32_t len = htonl((uint32_t)strlen(text) + 1);
	z_stream z = {.next_in = plain, .next_out = packed, .avail_out = sizeof(packed)};

	memcpy(plain, &len, 4);
	strcpy((char *)plain + 4, text);
	z.avail_in = (unsigned)strlen(text) + 5;
	assert_int_equal(deflateInit(&z, 1), Z_OK);
	/* The library takes no stream that ends. */
	assert_int_equal(deflate(&z, Z_SYNC_FLUSH), Z_OK);
	send_extended(client, PROVIDE, packed, sizeof(packed) - z.avail_out);
	deflateEnd(&z);
}

static uint32_t read_u32(rfbClient *client)
{
	uint32_t v;

	assert_true(ReadFromRFBServer(client, (char *)&v, sizeof(v)));
	return ntohl(v);
}

static void read_away(rfbClient *client, size_t n)
{
	char bytes[4096];

	for (size_t k; n; n -= k) {
		k = MIN(n, sizeof(bytes));
		assert_true(ReadFromRFBServer(client, bytes, (unsigned)k));
	}
}

/* A picture, which is left; pixels as they are, or the screen's size. */
static void skip_picture(rfbClient *client, uint32_t head)
{
	for (unsigned i = 0; i < (head & 0xffff); i++) {
		uint32_t at = read_u32(client), size = read_u32(client);

		(void)at;
		if (read_u32(client) == 0)
			read_away(client, (size_t)(size >> 16) * (size & 0xffff) * 4);
	}
}

/* What is copied next, of an extended clipboard. */
static void hear_extended(rfbClient *client, char *ret, size_t size)
{
	for (;;) {
		uint32_t head = read_u32(client), n;
		uint8_t packed[256], plain[256];
		uLongf len = sizeof(plain);

		if (head >> 24 == 0) {
			skip_picture(client, head);
			continue;
		}
		assert_int_equal(head >> 24, 3);
		n = -read_u32(client);
		assert_in_range(n, 4, sizeof(packed));
		if (read_u32(client) != PROVIDE) {
			read_away(client, n - 4);
			continue;
		}
		assert_true(ReadFromRFBServer(client, (char *)packed, n - 4));
		assert_int_equal(uncompress(plain, &len, packed, n - 4), Z_OK);
		assert_in_range(len, 5, 4 + size);
		memcpy(ret, plain + 4, len - 4);
		return;
	}
}

/* Both are VNC viewers; their keys are their own. */
static void type_and_leave(unsigned port, rfbClient *stays)
{
	rfbClient *leaves = connect_to(port, tell_password);

	assert_non_null(leaves);
	wait_for_picture(leaves, 0);
	assert_true(SendPointerEvent(leaves, POINT_X, POINT_Y, rfbButton1Mask));
	assert_true(SendKeyEvent(leaves, KEY, TRUE));
	wait_for_picture(leaves, PRESSED);
	wait_for_picture(stays, PRESSED);
	/* Who is not let in releases nothing; who is, and leaves, everything. */
	assert_null(connect_to(port, tell_wrong_password));
	assert_true(SendPointerEvent(leaves, POINT_X + 1, POINT_Y, rfbButton1Mask));
	wait_for_picture(leaves, STILL_PRESSED);
	wait_for_picture(stays, STILL_PRESSED);
	leave(leaves);
	wait_for_picture(stays, RELEASED);
}

static void wait_for_child(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_vnc(void **state)
{
	int listener = listen_for_viewers();
	pid_t server = start_server(listener, 0), vnc;
	unsigned port;
	rfbClient *client, *extended;
	char text[256];

	vnc = start_vnc(&port);
	assert_null(connect_to(port, tell_wrong_password));
	client = connect_to(port, tell_password);
	assert_non_null(client);
	client->GotXCutText = on_text;
	wait_for_picture(client, 0);
	assert_int_equal(client->width, WIDTH);
	assert_int_equal(client->height, HEIGHT);
	type_and_leave(port, client);
	come_in_crowds(port);
	talk_nonsense(port);
	/* What viewers copy is pasted there; then another size comes, and a text from there. */
	extended = connect_extended(port);
	copy_extended(extended, LINES_CRLF);
	wait_for_picture(client, PASTED);
	assert_true(SendClientCutText(client, (char *)LATIN1, (int)strlen(LATIN1)));
	wait_for_picture(client, COPIED);
	while (!heard || strcmp(heard, OUT_LATIN1) != 0)
		hear(client);
	do {
		hear_extended(extended, text, sizeof(text));
	} while (strcmp(text, OUT_CRLF) != 0);
	leave(extended);
	/* The display server goes, without a word: what it showed is held, and darker. */
	kill(server, SIGKILL);
	assert_int_equal(waitpid(server, NULL, 0), server);
	wait_for_picture(client, COPIED >> 1 & 0x7f7f7f);
	server = start_server(listener, AGAIN);
	wait_for_picture(client, AGAIN);
	assert_int_equal(client->width, WIDTH);
	/* It says that this was all. */
	assert_true(SendKeyEvent(client, FINISH, TRUE));
	wait_for_end(client->sock);
	leave(client);
	wait_for_child(server);
	wait_for_child(vnc);
	close(listener);
	free(heard);
}

/* Nobody has come: @said, of @n bytes, is none of VNC.  The process that hears it ends. */
static pid_t hear_stranger(const char *said, size_t n)
{
	const struct display_vnc_options o = {.password = PASSWORD, .connect = connect_display};
	struct sockaddr_in a = {.sin_family = AF_INET};
	char where[64];
	struct err e = {0};
	int listener = display_vnc_listen("127.0.0.1:0", where, sizeof(where), &e), line[2], viewer;
	socklen_t len = sizeof(a);
	pid_t pid;

	assert_true(listener >= 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	viewer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(viewer, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(write(viewer, said, n), n);
	assert_int_equal(pipe(line), 0);
	pid = child();
	if (pid == 0) {
		int conn = accept(listener, NULL, NULL);

		close(viewer);
		display_vnc_client(conn, line[1], &o);
	}
	close(line[0]);
	close(line[1]);
	close(listener);
	close(viewer);
	return pid;
}

/* By itself, not by the alarm that ends whoever takes too long. */
static void test_others(void **state)
{
	static const char *const all[] = {"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n", "\026\003\001aaaa",
		"\200aaa", "RFB 003.008\n", "nonsense, and a lot of it"};
	pid_t pids[ARRAY_SIZE(all)];

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		pids[i] = hear_stranger(all[i], strlen(all[i]));
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		wait_for_child(pids[i]);
}

static void test_addresses(void **state)
{
	static const char *const bad[] = {"", ":", "nowhere", "5900x", "65536", "-1", "127.0.0.1",
		"localhost:0", ":5900", "[::1:0", "127.0.0.1:"};
	char where[64];
	struct err e = {0};
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e = (struct err){0};
		assert_true(display_vnc_listen(bad[i], where, sizeof(where), &e) < 0);
		assert_int_equal(e.class, ERR_USAGE);
	}
	e = (struct err){0};
	fd = display_vnc_listen("0", where, sizeof(where), &e);
	assert_true(fd >= 0);
	assert_int_equal(strncmp(where, "127.0.0.1:59", 12), 0);
	/* It is taken. */
	assert_true(display_vnc_listen(where, where, sizeof(where), &e) < 0);
	assert_int_equal(e.error, -EADDRINUSE);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vnc),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

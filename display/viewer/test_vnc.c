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

/*
 * Pictures behind the first one, of one colour each; COPIED is of another size.  FINISH is for the
 * display server, and makes it end.
 */
enum {
	PRESSED = 0xabcdef,
	STILL_PRESSED = 0x123456,
	RELEASED = 0x654321,
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

static bool pasted(const struct display_memory *m)
{
	return m->clipboard && m->clipboard_len == strlen(TEXT) &&
	       memcmp(m->clipboard, TEXT, strlen(TEXT)) == 0;
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
		return pasted(m) ? COPIED : now;
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
			m->events->clipboard(m->arg, TEXT, strlen(TEXT));
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
	rfbClient *client;

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
	/* What the viewer copies is pasted there; then another size comes, and a text from there. */
	assert_true(SendClientCutText(client, (char *)LATIN1, (int)strlen(LATIN1)));
	wait_for_picture(client, COPIED);
	while (!heard)
		hear(client);
	assert_string_equal(heard, LATIN1);
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

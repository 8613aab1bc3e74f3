// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A display server with a picture in memory, the VNC server as its viewer, and libvncclient as the
 * viewer of that: three processes, and the last one has the picture.
 */
#include "display/viewer/vnc.h"

#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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
#define MANY	 20 /* viewers are too many */

/* Pictures behind the first one, of one colour each. */
enum { PRESSED = 0xabcdef, STILL_PRESSED = 0x123456, RELEASED = 0x654321, WRONG = 0xff0000 };

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
	}
}

static void serve(int fd)
{
	struct event_base *base = event_base_new();
	struct display_memory *m = NULL;
	struct display_server *server;
	const struct display_rect all = {0, 0, WIDTH, HEIGHT};
	uint32_t now = 0, next;

	if (display_memory_new(WIDTH, HEIGHT, &m) < 0 ||
		display_server_new(base, &m->source, "work", NULL, NULL, &server, NULL) < 0 ||
		display_server_add(server, fd) < 0)
		_exit(1);
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			*display_frame_at(&m->picture, x, y) = pixel(x, y);
	while (display_server_viewers(server)) {
		event_base_loop(base, EVLOOP_ONCE);
		next = next_picture(m, now);
		if (next == now)
			continue;
		now = next;
		display_frame_fill(&m->picture, &all, now);
		display_memory_damage(m, &all);
	}
	_exit(0);
}

static void on_ready(void *ctx, unsigned port)
{
	if (io_write_full(*(int *)ctx, &port, sizeof(port)) < 0)
		_exit(1);
}

static void offer(int fd, int tell)
{
	const struct display_vnc_options o = {
		.address = "127.0.0.1", .password = PASSWORD, .ready = on_ready, .ctx = &tell};
	struct err e = {0};

	if (display_vnc(fd, &o, &e) < 0)
		fprintf(stderr, "%s\n", e.msg);
	_exit(e.error != 0);
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

	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			n += (p[y * WIDTH + x] & DISPLAY_RGB) != (colour ? colour : pixel(x, y));
	return n;
}

static void wait_for_picture(rfbClient *client, uint32_t colour)
{
	while (differing(client, colour)) {
		assert_int_not_equal(differing(client, WRONG), 0);
		/* It does not look at what it has read already (facts: libvncclient). */
		if (!client->buffered && WaitForMessage(client, 100000) == 0)
			continue;
		assert_true(HandleRFBServerMessage(client));
	}
}

static void leave(rfbClient *client)
{
	free(client->frameBuffer);
	rfbClientCleanup(client);
}

/* Without a password so many are let wait, and no more. */
static void come_in_crowds(unsigned port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval patience = {60, 0};
	int crowd[MANY];
	char version[12], more;

	for (size_t i = 0; i < MANY; i++) {
		crowd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(crowd[i] >= 0);
		setsockopt(crowd[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		assert_int_equal(connect(crowd[i], (struct sockaddr *)&a, sizeof(a)), 0);
		assert_int_equal(recv(crowd[i], version, sizeof(version), MSG_WAITALL), 12);
	}
	assert_int_equal(recv(crowd[MANY - 1], &more, 1, 0), 0);
	for (size_t i = 0; i < MANY; i++)
		close(crowd[i]);
}

static void test_vnc(void **state)
{
	int pair[2], tell[2], status;
	unsigned port;
	pid_t server, vnc;
	rfbClient *client;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	server = child();
	if (server == 0) {
		close(pair[1]);
		io_set_nonblock(pair[0], true);
		serve(pair[0]);
	}
	close(pair[0]);
	vnc = child();
	if (vnc == 0)
		offer(pair[1], tell[1]);
	close(pair[1]);
	close(tell[1]);
	assert_int_equal(io_read_full(tell[0], &port, sizeof(port)), sizeof(port));
	assert_null(connect_to(port, tell_wrong_password));
	client = connect_to(port, tell_password);
	assert_non_null(client);
	assert_int_equal(client->width, WIDTH);
	assert_int_equal(client->height, HEIGHT);
	wait_for_picture(client, 0);
	assert_true(SendPointerEvent(client, POINT_X, POINT_Y, rfbButton1Mask));
	assert_true(SendKeyEvent(client, KEY, TRUE));
	wait_for_picture(client, PRESSED);
	/* Who is not let in releases nothing; who is, and leaves, everything. */
	assert_null(connect_to(port, tell_wrong_password));
	assert_true(SendPointerEvent(client, POINT_X + 1, POINT_Y, rfbButton1Mask));
	wait_for_picture(client, STILL_PRESSED);
	leave(client);
	client = connect_to(port, tell_password);
	assert_non_null(client);
	wait_for_picture(client, RELEASED);
	come_in_crowds(port);
	leave(client);
	kill(vnc, SIGTERM);
	assert_int_equal(waitpid(vnc, &status, 0), vnc);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	close(tell[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vnc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

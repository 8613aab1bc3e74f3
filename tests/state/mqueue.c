// SPDX-License-Identifier: GPL-2.0-or-later
/* POSIX message queues: named, unlinked, with messages of several priorities. */
#include <fcntl.h>
#include <mqueue.h>
#include <sys/stat.h>

#include "tests/state/state.h"

static void expect(mqd_t q, const char *text, unsigned priority)
{
	char buf[64];
	unsigned p;
	ssize_t n = mq_receive(q, buf, sizeof(buf), &p);

	STATE_CHECK(n == (ssize_t)strlen(text) && !memcmp(buf, text, n) && p == priority);
}

/* A name that no other run has. */
static const char *name(const char *what)
{
	static char full[64];

	snprintf(full, sizeof(full), "%s-%d", what, getpid());
	return full;
}

int main(int argc, char **argv)
{
	struct mq_attr attr = {.mq_maxmsg = 5, .mq_msgsize = 64}, got;
	mode_t before = umask(0);
	mqd_t a = mq_open(name("/state"), O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK, 0640, &attr);
	mqd_t reader = mq_open(name("/state"), O_RDONLY | O_NONBLOCK);
	mqd_t gone = mq_open(name("/gone"), O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
	mqd_t unused = mq_open(name("/unused"), O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
	mqd_t again;
	struct stat st;

	umask(before);
	STATE_CHECK(a >= 0 && reader >= 0 && gone >= 0 && unused >= 0);
	STATE_CHECK(mq_close(unused) == 0 && mq_unlink(name("/gone")) == 0);
	STATE_CHECK(mq_send(a, "first", 5, 1) == 0 && mq_send(a, "second", 6, 1) == 0);
	STATE_CHECK(mq_send(a, "urgent", 6, 9) == 0 && mq_send(a, "", 0, 0) == 0);
	STATE_CHECK(mq_send(gone, "nameless", 8, 3) == 0);

	state_ready(argc, argv);

	STATE_CHECK(mq_getattr(a, &got) == 0 && got.mq_maxmsg == 5 && got.mq_msgsize == 64);
	STATE_CHECK(got.mq_curmsgs == 4 && (got.mq_flags & O_NONBLOCK));
	STATE_CHECK(fstat(a, &st) == 0 && (st.st_mode & 0777) == 0640);
	STATE_CHECK(mq_send(reader, "x", 1, 0) == -1 && errno == EBADF);
	expect(reader, "urgent", 9);
	expect(a, "first", 1);
	expect(a, "second", 1);
	expect(a, "", 0);
	expect(gone, "nameless", 3);
	STATE_CHECK(mq_open(name("/gone"), O_RDWR) == -1 && errno == ENOENT);
	again = mq_open(name("/unused"), O_RDWR);
	STATE_CHECK(again >= 0 && mq_send(again, "y", 1, 2) == 0);
	expect(again, "y", 2);
	STATE_CHECK(mq_unlink(name("/state")) == 0 && mq_unlink(name("/unused")) == 0);
	return state_ok();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The workers of restless that hold something: memory, files, bytes on their way, queues. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/torture/restless.h"

#define PAGE 4096UL

/* ---- memory ---------------------------------------------------------------------------------- */

#define PAGES 768
#define SHARED \
	64 /* the last of them are shared with children, the ones in front of them of a memfd */
#define FILED 64
#define RUN   16
static uint8_t *memory;
static uint32_t times[PAGES]; /* how often it was written to; 0: it is zero */

static void check_page(size_t i)
{
	const uint64_t *at = (const uint64_t *)(memory + i * PAGE);
	uint64_t want = times[i] ? i << 32 | times[i] : 0;

	HOLDS(at[0] == want && at[511] == want && at[1 + i % 510] == want);
}

static void write_page(size_t i)
{
	uint64_t *at = (uint64_t *)(memory + i * PAGE);

	times[i]++;
	at[0] = at[511] = at[1 + i % 510] = i << 32 | times[i];
}

static void memory_begin(void)
{
	int fd = memfd_create("filed", MFD_CLOEXEC);
	uint8_t *at;

	memory = mmap(
		NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	HOLDS(memory != MAP_FAILED && fd >= 0 && ftruncate(fd, FILED * PAGE) == 0);
	at = memory + (PAGES - SHARED) * PAGE;
	HOLDS(mmap(at, SHARED * PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	at -= FILED * PAGE;
	HOLDS(mmap(at, FILED * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at);
}

static void memory_look(void)
{
	for (size_t i = 0; i < PAGES; i++)
		check_page(i);
}

static size_t any_run(void)
{
	return RUN * any((PAGES - SHARED - FILED) / RUN);
}

static void forget_run(void)
{
	size_t i = any_run();

	HOLDS(madvise(memory + i * PAGE, RUN * PAGE, MADV_DONTNEED) == 0);
	memset(times + i, 0, RUN * sizeof(times[0]));
}

static void map_anew(void)
{
	size_t i = any_run();
	uint8_t *at = memory + i * PAGE;

	HOLDS(munmap(at, RUN * PAGE) == 0);
	HOLDS(mmap(at, RUN * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at);
	memset(times + i, 0, RUN * sizeof(times[0]));
}

/* Page by page, since what is one mapping to us may be several. */
static void move_about(void)
{
	uint8_t *at = memory + any_run() * PAGE, *aside;

	for (unsigned i = 0; i < RUN; i++, at += PAGE) {
		aside = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		HOLDS(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, aside) == aside);
		HOLDS(mremap(aside, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
	}
}

static void protect(void)
{
	uint8_t *at = memory + any_run() * PAGE;

	HOLDS(mprotect(at, RUN * PAGE, PROT_NONE) == 0);
	HOLDS(mprotect(at, RUN * PAGE, PROT_READ | PROT_WRITE) == 0);
}

/* What it has inherited, and what it changes for itself. */
static void inherit(void)
{
	pid_t pid = fork_child();

	if (pid == 0) {
		for (size_t i = PAGES - SHARED; i < PAGES; i++)
			write_page(i);
		memory_look();
		for (size_t i = 0; i < PAGES - SHARED - FILED; i += 1 + any(4))
			write_page(i);
		memory_look();
		_exit(0);
	}
	HOLDS(reap(pid) == 0);
	for (size_t i = PAGES - SHARED; i < PAGES; i++)
		times[i]++;
}

static void memory_step(void)
{
	static void (*const all[])(void) = {forget_run, map_anew, move_about, protect, inherit};

	for (unsigned n = any(32); n--;) {
		size_t i = any(PAGES);

		check_page(i);
		write_page(i);
	}
	all[any(sizeof(all) / sizeof(all[0]))]();
}

const struct worker worker_memory = {"memory", memory_begin, memory_step, memory_look};

/* ---- files ----------------------------------------------------------------------------------- */

#define FILES	 12
#define FILE_MAX 20000
static struct {
	int fd, number;
	bool named, locked;
	size_t len;
	uint8_t bytes[FILE_MAX]; /* what must be in it */
} files[FILES];

static void file_name(char *ret, int number)
{
	sprintf(ret, "files/%d", number);
}

static void file_make(unsigned i)
{
	static int number;
	char name[32];

	files[i].number = number++;
	files[i].named = true;
	files[i].len = 0;
	files[i].locked = false;
	file_name(name, files[i].number);
	files[i].fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	HOLDS(files[i].fd >= 0);
}

static void file_check(unsigned i)
{
	uint8_t got[FILE_MAX + 1];
	char name[32];
	struct stat st, there, after;
	int fd;

	HOLDS(pread(files[i].fd, got, sizeof(got), 0) == (ssize_t)files[i].len);
	HOLDS(memcmp(got, files[i].bytes, files[i].len) == 0);
	file_name(name, files[i].number);
	do { /* a move gives files other numbers (docs/coverage.md) */
		HOLDS(fstat(files[i].fd, &st) == 0 && st.st_nlink == files[i].named);
		HOLDS((stat(name, &there) == 0) == files[i].named);
		HOLDS(fstat(files[i].fd, &after) == 0);
	} while (after.st_ino != st.st_ino || after.st_dev != st.st_dev);
	HOLDS(!files[i].named || (there.st_ino == st.st_ino && there.st_dev == st.st_dev));
	if (!files[i].named)
		return;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	HOLDS(fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) < 0) == files[i].locked);
	close(fd);
}

static void file_write(unsigned i)
{
	size_t at = any(FILE_MAX / 2), n = 1 + any(FILE_MAX / 2);

	if (at > files[i].len)
		memset(files[i].bytes + files[i].len, 0, at - files[i].len);
	for (size_t k = 0; k < n; k++)
		files[i].bytes[at + k] = (uint8_t)any(256);
	if (any(2)) {
		HOLDS(pwrite(files[i].fd, files[i].bytes + at, n, (off_t)at) == (ssize_t)n);
	} else {
		HOLDS(lseek(files[i].fd, (off_t)at, SEEK_SET) == (off_t)at);
		HOLDS(write(files[i].fd, files[i].bytes + at, n) == (ssize_t)n);
		HOLDS(lseek(files[i].fd, 0, SEEK_CUR) == (off_t)(at + n));
	}
	files[i].len = at + n > files[i].len ? at + n : files[i].len;
}

static void file_cut(unsigned i)
{
	files[i].len = any((unsigned)files[i].len + 1);
	HOLDS(ftruncate(files[i].fd, (off_t)files[i].len) == 0);
}

static void file_rename(unsigned i)
{
	char from[32], to[32];

	if (!files[i].named)
		return;
	file_name(from, files[i].number);
	files[i].number += 1000000;
	file_name(to, files[i].number);
	HOLDS(rename(from, to) == 0);
}

static void file_unlink(unsigned i)
{
	char name[32];

	file_name(name, files[i].number);
	if (files[i].named)
		HOLDS(unlink(name) == 0);
	files[i].named = false;
}

static void file_replace(unsigned i)
{
	file_unlink(i);
	close(files[i].fd);
	file_make(i);
}

static void file_lock(unsigned i)
{
	files[i].locked = !files[i].locked;
	HOLDS(flock(files[i].fd, files[i].locked ? LOCK_EX : LOCK_UN) == 0);
}

static void file_map(unsigned i)
{
	size_t n = files[i].len;
	uint8_t *at = n ? mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, files[i].fd, 0) : NULL;

	if (!n)
		return;
	HOLDS(at != MAP_FAILED && memcmp(at, files[i].bytes, n) == 0);
	at[n / 2] = ++files[i].bytes[n / 2];
	HOLDS(munmap(at, n) == 0);
}

static void files_begin(void)
{
	HOLDS(mkdir("files", 0700) == 0);
	for (unsigned i = 0; i < FILES; i++)
		file_make(i);
}

static void files_step(void)
{
	static void (*const all[])(unsigned i) = {file_write, file_write, file_cut, file_rename,
		file_unlink, file_replace, file_lock, file_map};
	unsigned i = any(FILES);

	all[any(sizeof(all) / sizeof(all[0]))](i);
	file_check(i);
	HOLDS(mkdir("files/d", 0700) == 0 && rmdir("files/d") == 0);
}

static void files_look(void)
{
	for (unsigned i = 0; i < FILES; i++)
		file_check(i);
}

const struct worker worker_files = {"files", files_begin, files_step, files_look};

/* ---- streams: pipes and pairs of sockets with bytes in them ---------------------------------- */

enum { PIPE, FIFO, STREAM, DATAGRAMS, PACKETS, N_STREAMS };
static struct {
	int in, out;
	uint64_t written, read; /* bytes, or messages */
	uint32_t len[64];	/* of messages */
} streams[N_STREAMS];
static pid_t writer; /* of a pipe that we read from, and wait for */
static int from_writer;
static uint64_t from_writer_at;

static _Noreturn void write_for_ever(int fd)
{
	static uint8_t data[4096];

	for (uint64_t at = 0;;) {
		size_t n = 1 + any(sizeof(data));
		ssize_t w;

		for (size_t i = 0; i < n; i++)
			data[i] = byte_of(100, at + i);
		w = write(fd, data, n);
		HOLDS(w > 0 || (w < 0 && errno == EINTR));
		at += w > 0 ? (uint64_t)w : 0;
	}
}

static void streams_pair(unsigned which, int type)
{
	int s[2];

	HOLDS(socketpair(AF_UNIX, type, 0, s) == 0);
	streams[which].in = s[0];
	streams[which].out = s[1];
}

static void streams_begin(void)
{
	int p[2];

	HOLDS(pipe(p) == 0);
	from_writer = p[0];
	writer = fork_child();
	if (writer == 0)
		write_for_ever(p[1]);
	close(p[1]);
	HOLDS(pipe(p) == 0);
	streams[PIPE].in = p[0];
	streams[PIPE].out = p[1];
	HOLDS(mkfifo("fifo", 0600) == 0);
	streams[FIFO].in = open("fifo", O_RDWR | O_CLOEXEC);
	streams[FIFO].out = open("fifo", O_WRONLY | O_CLOEXEC);
	streams_pair(STREAM, SOCK_STREAM);
	streams_pair(DATAGRAMS, SOCK_DGRAM);
	streams_pair(PACKETS, SOCK_SEQPACKET);
	for (unsigned i = 0; i < N_STREAMS; i++) {
		HOLDS(fcntl(streams[i].in, F_SETFL, O_NONBLOCK) == 0);
		HOLDS(fcntl(streams[i].out, F_SETFL, O_NONBLOCK) == 0);
	}
}

static bool has_messages(unsigned i)
{
	return i == DATAGRAMS || i == PACKETS;
}

/* Every third message carries a file, which holds its number. */
static void send_message(unsigned i)
{
	uint64_t number = streams[i].written;
	uint8_t data[2000];
	union {
		struct cmsghdr h;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.h = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec v = {data, 1 + any(sizeof(data))};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	int fd = -1;

	if (number - streams[i].read >= 8)
		return;
	for (size_t k = 0; k < v.iov_len; k++)
		data[k] = byte_of(i, number + k);
	if (number % 3 == 0) {
		fd = memfd_create("sent", MFD_CLOEXEC);
		HOLDS(fd >= 0 && write(fd, &number, sizeof(number)) == sizeof(number));
		memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	HOLDS(sendmsg(streams[i].out, &m, 0) == (ssize_t)v.iov_len);
	streams[i].len[number % 64] = (uint32_t)v.iov_len;
	streams[i].written++;
	if (fd >= 0)
		close(fd);
}

static void receive_message(unsigned i)
{
	uint64_t number = streams[i].read, held;
	uint8_t data[2001];
	union {
		struct cmsghdr h;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec v = {data, sizeof(data)};
	struct msghdr m = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	int fd;

	if (number == streams[i].written)
		return;
	HOLDS(recvmsg(streams[i].in, &m, MSG_CMSG_CLOEXEC) == (ssize_t)streams[i].len[number % 64]);
	for (size_t k = 0; k < streams[i].len[number % 64]; k++)
		HOLDS(data[k] == byte_of(i, number + k));
	HOLDS((m.msg_controllen != 0) == (number % 3 == 0));
	if (number % 3 == 0) {
		memcpy(&fd, CMSG_DATA(&control.h), sizeof(fd));
		HOLDS(pread(fd, &held, sizeof(held), 0) == sizeof(held) && held == number);
		close(fd);
	}
	streams[i].read++;
}

static void send_bytes(unsigned i)
{
	uint8_t data[6000];
	size_t n = 1 + any(sizeof(data));
	ssize_t w;

	for (size_t k = 0; k < n; k++)
		data[k] = byte_of(i, streams[i].written + k);
	w = write(streams[i].out, data, n);
	HOLDS(w > 0 || (w < 0 && (errno == EAGAIN || errno == EINTR)));
	streams[i].written += w > 0 ? (uint64_t)w : 0;
}

static void receive_bytes(unsigned i, size_t n)
{
	uint8_t data[8000];
	ssize_t r = read(streams[i].in, data, n);

	HOLDS(r > 0 || (r < 0 && (errno == EAGAIN || errno == EINTR)));
	HOLDS(r > 0 || streams[i].written == streams[i].read || errno == EINTR);
	for (ssize_t k = 0; k < r; k++)
		HOLDS(data[k] == byte_of(i, streams[i].read + (uint64_t)k));
	streams[i].read += r > 0 ? (uint64_t)r : 0;
	HOLDS(streams[i].read <= streams[i].written);
}

static void read_from_writer(void)
{
	uint8_t data[5000];
	ssize_t r = read(from_writer, data, 1 + any(sizeof(data)));

	HOLDS(r > 0 || (r < 0 && errno == EINTR));
	for (ssize_t k = 0; k < r; k++)
		HOLDS(data[k] == byte_of(100, from_writer_at + (uint64_t)k));
	from_writer_at += r > 0 ? (uint64_t)r : 0;
}

static void streams_step(void)
{
	unsigned i = any(N_STREAMS);

	if (any(2))
		has_messages(i) ? send_message(i) : send_bytes(i);
	else
		has_messages(i) ? receive_message(i) : receive_bytes(i, 1 + any(8000));
	read_from_writer();
}

static void streams_look(void)
{
	for (unsigned i = 0; i < N_STREAMS; i++)
		while (streams[i].read != streams[i].written)
			has_messages(i) ? receive_message(i) : receive_bytes(i, 8000);
	read_from_writer();
}

const struct worker worker_streams = {"streams", streams_begin, streams_step, streams_look};

/* ---- connections: TCP on the loopback, at any point of their life ---------------------------- */

#define CONNECTIONS 4
static int listener;
static struct sockaddr_in address = {.sin_family = AF_INET};
static struct {
	int end[2]; /* who has connected, who was accepted; -1 */
	uint64_t written[2], read[2];
} connections[CONNECTIONS];

/* Ports of the host's network are not free on the other host, when that is the same machine. */
static bool own_network(void)
{
	return !getenv("RESTLESS_WITHOUT_TCP");
}

static void connections_begin(void)
{
	socklen_t len = sizeof(address);

	if (!own_network())
		return;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	HOLDS(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	HOLDS(listen(listener, 8) == 0);
	HOLDS(getsockname(listener, (struct sockaddr *)&address, &len) == 0);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		connections[i].end[0] = connections[i].end[1] = -1;
}

static void connect_one(unsigned i)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	HOLDS(s >= 0 && connect(s, (struct sockaddr *)&address, sizeof(address)) == 0);
	connections[i].end[0] = s;
	do
		s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	while (s < 0 && errno == EINTR);
	HOLDS(s >= 0);
	connections[i].end[1] = s;
	memset(connections[i].written, 0, sizeof(connections[i].written));
	memset(connections[i].read, 0, sizeof(connections[i].read));
}

static void write_one(unsigned i, int side)
{
	uint8_t data[3000];
	size_t n = 1 + any(sizeof(data));
	ssize_t w;

	for (size_t k = 0; k < n; k++)
		data[k] = byte_of(200 + i, connections[i].written[side] + k);
	w = send(connections[i].end[side], data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	HOLDS(w > 0 || (w < 0 && (errno == EAGAIN || errno == EINTR)));
	connections[i].written[side] += w > 0 ? (uint64_t)w : 0;
}

/* What the other side has written; waits if there must be something. */
static void read_one(unsigned i, int side)
{
	uint64_t *at = &connections[i].read[side];
	uint8_t data[4000];
	ssize_t r;

	if (*at == connections[i].written[!side])
		return;
	r = read(connections[i].end[side], data, 1 + any(sizeof(data)));
	HOLDS(r > 0 || (r < 0 && errno == EINTR));
	for (ssize_t k = 0; k < r; k++)
		HOLDS(data[k] == byte_of(200 + i, *at + (uint64_t)k));
	*at += r > 0 ? (uint64_t)r : 0;
}

/* In order, or with bytes still there. */
static void end_one(unsigned i)
{
	char c;

	if (any(2)) {
		while (connections[i].read[1] != connections[i].written[0])
			read_one(i, 1);
		HOLDS(shutdown(connections[i].end[0], SHUT_WR) == 0);
		HOLDS(read(connections[i].end[1], &c, 1) == 0);
	}
	close(connections[i].end[0]);
	close(connections[i].end[1]);
	connections[i].end[0] = connections[i].end[1] = -1;
}

static void connections_step(void)
{
	unsigned i = any(CONNECTIONS);
	int side = (int)any(2);

	if (!own_network())
		return;
	if (connections[i].end[0] < 0)
		connect_one(i);
	else if (any(12) == 0)
		end_one(i);
	else if (any(2))
		write_one(i, side);
	else
		read_one(i, side);
}

static void connections_look(void)
{
	for (unsigned i = 0; i < CONNECTIONS && own_network(); i++)
		for (int side = 0; side < 2 && connections[i].end[0] >= 0; side++)
			while (connections[i].read[side] != connections[i].written[!side])
				read_one(i, side);
}

const struct worker worker_connections = {
	"connections", connections_begin, connections_step, connections_look};

/* ---- queues of System V and POSIX ------------------------------------------------------------ */

#define QUEUED 8
static int sysv;
static mqd_t posix;
static uint32_t put[2], got[2];
static const char queue_name[] = "/restless";

static void queues_begin(void)
{
	struct mq_attr a = {.mq_maxmsg = QUEUED, .mq_msgsize = 64};

	sysv = msgget(IPC_PRIVATE, 0600);
	posix = mq_open(queue_name, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &a);
	HOLDS(sysv >= 0 && posix >= 0);
}

struct message {
	long type;
	uint32_t number;
};

static void queue_put(int which)
{
	struct message m = {1, put[which]};

	if (put[which] - got[which] == QUEUED)
		return;
	if (which == 0)
		HOLDS(msgsnd(sysv, &m, sizeof(m) - sizeof(long), IPC_NOWAIT) == 0);
	else
		HOLDS(mq_send(posix, (const char *)&m.number, sizeof(m.number), 0) == 0);
	put[which]++;
}

static void queue_get(int which)
{
	char text[64];
	struct message m;

	if (put[which] == got[which])
		return;
	if (which == 0) {
		HOLDS(msgrcv(sysv, &m, sizeof(m) - sizeof(long), 0, IPC_NOWAIT) > 0);
	} else {
		HOLDS(mq_receive(posix, text, sizeof(text), NULL) == sizeof(m.number));
		memcpy(&m.number, text, sizeof(m.number));
	}
	HOLDS(m.number == got[which]++);
}

static void queues_step(void)
{
	any(2) ? queue_put((int)any(2)) : queue_get((int)any(2));
}

static void queues_look(void)
{
	for (int which = 0; which < 2; which++)
		while (put[which] != got[which])
			queue_get(which);
	if (board->ask == ASK_END)
		HOLDS(msgctl(sysv, IPC_RMID, NULL) == 0 && mq_unlink(queue_name) == 0);
}

const struct worker worker_queues = {"queues", queues_begin, queues_step, queues_look};

/* ---- the beat -------------------------------------------------------------------------------- */

static unsigned beats;

static void beat_nothing(void)
{
}

/* Lines that no power of two cuts in pieces; what is behind the number no other copy says. */
static void beat_step(void)
{
	char text[LINE_LEN + 1];
	unsigned once;
	ssize_t w;

	HOLDS(getrandom(&once, sizeof(once), 0) == sizeof(once));
	snprintf(text, sizeof(text), "b%06u %07u\n", ++beats, once % 10000000);
	do
		w = write(STDOUT_FILENO, text, LINE_LEN);
	while (w < 0 && errno == EINTR);
	HOLDS(w == LINE_LEN);
	usleep(10000);
}

const struct worker worker_beat = {"beat", beat_nothing, beat_step, beat_nothing};

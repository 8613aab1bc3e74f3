// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * slowfs DIR MS CMD... - runs CMD where DIR, in which there is a plain `file`, is a file system with a `file`
 * that looks the same and takes MS milliseconds to tell what is in it: each 32-bit word its number, times three.
 *
 * A server of fuse(4), in a user and a mount namespace of its own.  Its reads go past the page cache: from when
 * one is asked for until it is answered the reader's pages are in the kernel's hands, as a disk has them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODE_FILE 2
#define MOST	  (1U << 20)
#define LONG	  3600

static int device;
static struct stat under; /* the plain file */
static useconds_t delay;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void answer(uint64_t unique, int error, const void *data, size_t n)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint8_t room[sizeof(struct fuse_out_header) + MOST];
	struct fuse_out_header h = {
		.len = (uint32_t)(sizeof(h) + n), .error = -error, .unique = unique};

	pthread_mutex_lock(&lock);
	memcpy(room, &h, sizeof(h));
	memcpy(room + sizeof(h), data, n);
	/* ENOENT: nobody waits for it any more. */
	if (write(device, room, h.len) < 0 && errno != ENOENT)
		die("answer");
	pthread_mutex_unlock(&lock);
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr a = {.ino = node, .mode = S_IFDIR | 0755, .nlink = 1};

	if (node == NODE_FILE) {
		a.mode = under.st_mode;
		a.size = (uint64_t)under.st_size;
		a.mtime = (uint64_t)under.st_mtim.tv_sec;
		a.mtimensec = (uint32_t)under.st_mtim.tv_nsec;
	}
	a.uid = getuid();
	a.gid = getgid();
	return a;
}

struct reading {
	uint64_t unique, offset;
	uint32_t size;
};

static void *read_late(void *arg)
{
	struct reading *r = arg;
	uint32_t *words = malloc(r->size + sizeof(*words));

	usleep(delay);
	for (uint32_t i = 0; words && i < r->size / sizeof(*words); i++)
		words[i] = 3 * ((uint32_t)(r->offset / sizeof(*words)) + i);
	answer(r->unique, words ? 0 : ENOMEM, words, words ? r->size : 0);
	free(words);
	free(r);
	return NULL;
}

static void begin_reading(const struct fuse_in_header *h, const struct fuse_read_in *in)
{
	struct reading *r = malloc(sizeof(*r));
	pthread_t thread;

	if (!r || in->size > MOST)
		die("read");
	*r = (struct reading){h->unique, in->offset, in->size};
	if (pthread_create(&thread, NULL, read_late, r) || pthread_detach(thread))
		die("thread");
}

static void look_up(const struct fuse_in_header *h, const char *name)
{
	struct fuse_entry_out e = {.nodeid = NODE_FILE, .entry_valid = LONG, .attr_valid = LONG};

	e.attr = attributes(NODE_FILE);
	answer(h->unique, strcmp(name, "file") ? ENOENT : 0, &e, strcmp(name, "file") ? 0 : sizeof(e));
}

static void serve_one(const struct fuse_in_header *h, const void *in)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_write = MOST,
		.max_background = 64};
	struct fuse_attr_out attr = {.attr_valid = LONG, .attr = attributes(h->nodeid)};
	struct fuse_open_out open = {.open_flags = h->opcode == FUSE_OPEN ? FOPEN_DIRECT_IO : 0};

	switch (h->opcode) {
	case FUSE_INIT:
		answer(h->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		look_up(h, in);
		break;
	case FUSE_GETATTR:
		answer(h->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(h->unique, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		begin_reading(h, in);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_READDIR:
		answer(h->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(h->unique, ENOSYS, NULL, 0);
	}
}

static void serve(void)
{
	static uint8_t request[MOST + 4096] __attribute__((aligned(8)));

	for (;;) {
		ssize_t n = read(device, request, sizeof(request));

		if (n < 0 && errno == ENODEV)
			exit(0);
		if (n > 0)
			serve_one((void *)request, request + sizeof(struct fuse_in_header));
	}
}

static void put(const char *path, const char *format, ...)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	va_list args;

	va_start(args, format);
	if (fd < 0 || vdprintf(fd, format, args) < 0)
		die(path);
	va_end(args);
	close(fd);
}

static void enter(const char *dir)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char options[128];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		die("unshare");
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", "%u %u 1", uid, uid);
	put("/proc/self/gid_map", "%u %u 1", gid, gid);
	/* It belongs to the namespace in which it was opened. */
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		die("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other",
		device, uid, gid);
	if (mount("slowfs", dir, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		die("mount");
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc < 4)
		return 2;
	snprintf(path, sizeof(path), "%s/file", argv[1]);
	if (stat(path, &under) < 0)
		die(path);
	delay = (useconds_t)atoi(argv[2]) * 1000;
	enter(argv[1]);
	if (fork() == 0) {
		close(1);
		close(2);
		serve();
	}
	execvp(argv[3], argv + 3);
	die(argv[3]);
}

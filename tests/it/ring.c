// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * io_uring for tests, without a library: does what its arguments say, one after the other, and says
 * "WORD RESULT" of each.
 *
 *      make FLAGS   a ring; what it gives, or the negative errno
 *      map          its queues are mapped
 *      nop          asks for nothing; the result that came back
 *      read         asks for a byte of an empty pipe, which a thread of the kernel's then waits for
 *      feed         gives the pipe one; the result that came back
 *      private      has the ring known by its task's table only; the errno
 *      close        closes the ring
 *      unmap        gives its queues back
 *      wait FILE    says "ready", waits until there is FILE
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES	      4
#define SQES_AT	      IORING_OFF_SQES
#define QUEUES_LEN    4096 /* both, of so few entries */
#define REGISTER_RING 20   /* IORING_REGISTER_RING_FDS, of 5.18 */

static struct io_uring_params params;
static int ring = -1, pipes[2];
static char *queues, byte;
static struct io_uring_sqe *sqes;

static unsigned *word(unsigned offset)
{
	return (unsigned *)(void *)(queues + offset);
}

static int make(unsigned flags)
{
	params = (struct io_uring_params){.flags = flags};
	ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &params);
	return ring < 0 ? -errno : 0;
}

static int map(void)
{
	queues = mmap(NULL, QUEUES_LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
		IORING_OFF_SQ_RING);
	sqes = mmap(NULL, ENTRIES * sizeof(*sqes), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_POPULATE, ring, (off_t)SQES_AT);
	return queues == MAP_FAILED || sqes == MAP_FAILED ? -errno : 0;
}

static int unmap(void)
{
	return munmap(queues, QUEUES_LEN) < 0 || munmap(sqes, ENTRIES * sizeof(*sqes)) < 0 ? -errno
											   : 0;
}

static int submit(struct io_uring_sqe sqe)
{
	unsigned tail = *word(params.sq_off.tail), at = tail & *word(params.sq_off.ring_mask);

	sqes[at] = sqe;
	word(params.sq_off.array)[at] = at;
	__atomic_store_n(word(params.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	return (int)syscall(SYS_io_uring_enter, ring, 1, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0) == 1 ? 0 : -errno;
}

static int complete(void)
{
	unsigned head = *word(params.cq_off.head);
	const struct io_uring_cqe *cqe;

	while (__atomic_load_n(word(params.cq_off.tail), __ATOMIC_ACQUIRE) == head)
		syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	cqe = (const struct io_uring_cqe *)(void *)(queues + params.cq_off.cqes) +
	      (head & *word(params.cq_off.ring_mask));
	__atomic_store_n(word(params.cq_off.head), head + 1, __ATOMIC_RELEASE);
	return cqe->res;
}

static int nop(void)
{
	int r = submit((struct io_uring_sqe){.opcode = IORING_OP_NOP});

	return r < 0 ? r : complete();
}

static int begin_read(void)
{
	if (pipe(pipes) < 0)
		return -errno;
	return submit((struct io_uring_sqe){.opcode = IORING_OP_READ,
		.flags = IOSQE_ASYNC,
		.fd = pipes[0],
		.addr = (uintptr_t)&byte,
		.len = 1});
}

static int feed(void)
{
	int r = write(pipes[1], "x", 1) == 1 ? complete() : -errno;

	return r == 1 && byte != 'x' ? -EIO : r;
}

static int make_private(void)
{
	struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (unsigned)ring};

	return syscall(SYS_io_uring_register, ring, REGISTER_RING, &update, 1) < 0 ? -errno : 0;
}

static int wait_for(const char *path)
{
	printf("ready\n");
	while (access(path, F_OK) < 0)
		usleep(10000);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		const char *what = argv[i];
		int r = -ENOSYS;

		if (!strcmp(what, "make") && i + 1 < argc)
			r = make((unsigned)strtoul(argv[++i], NULL, 0));
		else if (!strcmp(what, "map"))
			r = map();
		else if (!strcmp(what, "nop"))
			r = nop();
		else if (!strcmp(what, "read"))
			r = begin_read();
		else if (!strcmp(what, "feed"))
			r = feed();
		else if (!strcmp(what, "private"))
			r = make_private();
		else if (!strcmp(what, "close"))
			r = close(ring);
		else if (!strcmp(what, "unmap"))
			r = unmap();
		else if (!strcmp(what, "wait") && i + 1 < argc)
			r = wait_for(argv[++i]);
		printf("%s %d\n", what, r);
	}
	return 0;
}

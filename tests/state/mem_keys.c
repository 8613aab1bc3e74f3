// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory protection keys: which are taken and which are free, one that was freed while memory has
 * it, what each thread may do with each, memory of all kinds that has one, memory that may only be
 * executed (the kernel takes a key for that), and the same in a child.  A CPU without them says so
 * before and after.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "tests/state/maps.h"

#define KEYS 16
#define LONG 300

static const uint8_t code[] = {0xb8, 42, 0, 0, 0, 0xc3}; /* mov $42, %eax; ret */

static int bytes[2]; /* a pipe: what a call can't read or write the thread can't */
static pthread_barrier_t there;
static int watched, denied;

static void open_pipe(void)
{
	STATE_CHECK(pipe2(bytes, O_CLOEXEC | O_NONBLOCK) == 0);
}

static bool can_read(uint8_t *p)
{
	ssize_t n = write(bytes[1], p, 1);
	uint8_t byte;

	STATE_CHECK(n == 1 ? read(bytes[0], &byte, 1) == 1 : errno == EFAULT);
	return n == 1;
}

static bool can_write(uint8_t *p)
{
	STATE_CHECK(write(bytes[1], "x", 1) == 1);
	ssize_t n = read(bytes[0], p, 1);
	uint8_t byte;

	STATE_CHECK(n == 1 || (errno == EFAULT && read(bytes[0], &byte, 1) == 1));
	return n == 1;
}

static int key_of(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	char line[512];
	bool here = false;
	int key = -1;

	STATE_CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start <= (uintptr_t)p && (uintptr_t)p < end;
		else if (here)
			sscanf(line, "ProtectionKey: %d", &key);
	}
	fclose(f);
	return key;
}

static uint8_t *map(size_t pages, int prot, int flags, int fd, int key)
{
	uint8_t *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

	STATE_CHECK(p != MAP_FAILED);
	for (size_t i = 0; i < pages; i++) {
		memcpy(p + i * PAGE, code, sizeof(code));
		p[i * PAGE + 1] = (uint8_t)i;
	}
	STATE_CHECK(pkey_mprotect(p, pages * PAGE, prot, key) == 0);
	return p;
}

static void holds(uint8_t *p, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		STATE_CHECK(p[i * PAGE] == code[0] && p[i * PAGE + 1] == (uint8_t)i);
}

static int call(uint8_t *at)
{
	int (*f)(void);

	memcpy(&f, &at, sizeof(f));
	return f();
}

static void *other_thread(void *nothing)
{
	STATE_CHECK(pkey_set(watched, PKEY_DISABLE_WRITE) == 0 && pkey_set(denied, 0) == 0);
	pthread_barrier_wait(&there);
	pthread_barrier_wait(&there);
	STATE_CHECK(pkey_get(watched) == PKEY_DISABLE_WRITE && pkey_get(denied) == 0);
	return NULL;
}

static struct {
	int first, hole, reads, freed, own;
	uint8_t *plain, *jit, *shared, *mapped, *hidden, *none, *left, *runs;
} had;

static int temporary(size_t pages)
{
	char name[] = "/tmp/keys.XXXXXX";
	int fd = mkstemp(name);

	STATE_CHECK(fd >= 0 && ftruncate(fd, (off_t)(pages * PAGE)) == 0 && unlink(name) == 0);
	return fd;
}

static void take_keys(void)
{
	had.hole = pkey_alloc(0, 0);
	had.reads = pkey_alloc(0, PKEY_DISABLE_WRITE);
	had.freed = pkey_alloc(0, 0);
	watched = pkey_alloc(0, 0);
	denied = pkey_alloc(0, PKEY_DISABLE_ACCESS);
	STATE_CHECK(had.hole > 0 && had.reads > 0 && had.freed > 0 && watched > 0 && denied > 0);
}

static void make(void)
{
	const int anon = MAP_PRIVATE | MAP_ANONYMOUS, rw = PROT_READ | PROT_WRITE;

	had.plain = map(LONG, rw, anon, -1, had.first);
	had.jit = map(8, rw | PROT_EXEC, anon, -1, had.reads);
	had.shared = map(8, rw, MAP_SHARED | MAP_ANONYMOUS, -1, had.reads);
	had.mapped = map(8, rw, MAP_PRIVATE, temporary(8), watched);
	had.hidden = map(LONG, rw, anon, -1, denied);
	had.none = map(8, PROT_NONE, anon, -1, had.first);
	had.left = map(8, rw, anon, -1, had.freed);
	had.runs = map(8, PROT_READ, anon, -1, 0);
	STATE_CHECK(pkey_free(had.hole) == 0 && pkey_free(had.freed) == 0);
	STATE_CHECK(mprotect(had.runs, 8 * PAGE, PROT_EXEC) == 0);
	had.own = key_of(had.runs);
	STATE_CHECK(had.own > 0 && pkey_free(had.own) == -1 && !can_read(had.runs));
}

static void check_mappings(void)
{
	STATE_CHECK(key_of(had.plain) == had.first && key_of(had.jit) == had.reads);
	STATE_CHECK(key_of(had.shared) == had.reads && key_of(had.mapped) == watched);
	STATE_CHECK(key_of(had.hidden) == denied && key_of(had.none) == had.first);
	STATE_CHECK(key_of(had.left) == had.freed && key_of(had.runs) == had.own);
	STATE_CHECK(key_of(code) == 0);
	STATE_CHECK(strstr(state_mapping(had.none), "---p"));
	STATE_CHECK(strstr(state_mapping(had.runs), "--xp"));
}

static void check_rights(void)
{
	STATE_CHECK(pkey_get(had.first) == 0 && pkey_get(watched) == 0);
	STATE_CHECK(pkey_get(had.reads) == PKEY_DISABLE_WRITE);
	STATE_CHECK(pkey_get(denied) & PKEY_DISABLE_ACCESS);
	STATE_CHECK(can_read(had.plain) && can_write(had.plain + 16) && can_write(had.mapped + 16));
	STATE_CHECK(can_read(had.jit) && !can_write(had.jit));
	STATE_CHECK(can_read(had.shared) && !can_write(had.shared));
	STATE_CHECK(!can_read(had.hidden) && !can_write(had.hidden));
	STATE_CHECK(!can_read(had.runs) && !can_read(had.none));
	STATE_CHECK(call(had.jit + 3 * PAGE) == 3 && call(had.runs + 5 * PAGE) == 5);
}

static void check_contents(void)
{
	STATE_CHECK(pkey_set(denied, 0) == 0);
	STATE_CHECK(mprotect(had.none, 8 * PAGE, PROT_READ) == 0 && key_of(had.none) == had.first);
	STATE_CHECK(mprotect(had.runs, 8 * PAGE, PROT_READ) == 0 && key_of(had.runs) == 0);
	holds(had.plain, LONG);
	holds(had.jit, 8);
	holds(had.shared, 8);
	holds(had.mapped, 8);
	holds(had.hidden, LONG);
	holds(had.none, 8);
	holds(had.left, 8);
	holds(had.runs, 8);
}

/* What can be had is what nobody has: the lowest first. */
static void check_free(void)
{
	const int taken = 1 << had.first | 1 << had.reads | 1 << watched | 1 << denied | 1 << had.own;

	for (int i = 1; i < KEYS; i++)
		STATE_CHECK((taken & 1 << i) || pkey_alloc(0, 0) == i);
	STATE_CHECK(pkey_alloc(0, 0) == -1 && errno == ENOSPC);
}

/* A CPU that has none: newer kernels find a key, and then nothing to set its rights in. */
static int without(int argc, char **argv)
{
	int key;

	STATE_CHECK(errno == ENOSPC || errno == ENOSYS || errno == EINVAL);
	state_ready(argc, argv);
	/* On another CPU, which has some, it has taken none. */
	key = pkey_alloc(0, 0);
	STATE_CHECK(key == -1 || key == 1);
	return state_ok();
}

int main(int argc, char **argv)
{
	pthread_t thread;
	pid_t child;
	int status;

	had.first = pkey_alloc(0, 0);
	if (had.first < 0)
		return without(argc, argv);
	take_keys();
	open_pipe();
	make();
	STATE_CHECK(pthread_barrier_init(&there, NULL, 2) == 0);
	child = fork();
	STATE_CHECK(child >= 0 && pthread_create(&thread, NULL, other_thread, NULL) == 0);
	pthread_barrier_wait(&there);
	if (child)
		state_ready(argc, argv);
	else
		open_pipe();
	while (!child && access(argv[1], F_OK) != 0)
		state_nap();

	check_mappings();
	check_rights();
	pthread_barrier_wait(&there);
	STATE_CHECK(pthread_join(thread, NULL) == 0);
	check_contents();
	check_free();
	if (!child)
		_exit(0);
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	return state_ok();
}

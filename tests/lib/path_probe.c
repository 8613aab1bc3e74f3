// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * path_probe ROUNDS SEED - makes calls that have paths with arguments that nobody in his right mind
 * would give: pointers to nothing, to the end of a page, to memory that comes and goes; paths of
 * all lengths full of dots, links and slashes; a stack pointer that points nowhere.  Several
 * threads at once.  Says "over".
 *
 * Whatever the calls return, whoever looks at their paths has to live through it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	4096
#define THREADS 3

static const int calls[] = {SYS_open, SYS_openat, SYS_openat2, SYS_creat, SYS_stat, SYS_lstat, SYS_newfstatat,
	SYS_statx, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_readlink, SYS_readlinkat, SYS_getcwd, SYS_chdir,
	SYS_fchdir, SYS_mkdir, SYS_mkdirat, SYS_rmdir, SYS_unlink, SYS_unlinkat, SYS_rename, SYS_renameat,
	SYS_renameat2, SYS_link, SYS_linkat, SYS_symlink, SYS_symlinkat, SYS_chmod, SYS_fchmodat, SYS_utimensat,
	SYS_truncate, SYS_mknod, SYS_mknodat, SYS_statfs, SYS_getxattr, SYS_setxattr, SYS_inotify_add_watch,
	SYS_name_to_handle_at, SYS_execve, SYS_execveat, SYS_bind, SYS_connect, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_getsockname,
	SYS_getpeername};

static const char *const pieces[] = {"/tmp", "/", "..", ".", "//", "/run", "/dev/shm", "/proc", "self", "fd", "0",
	"cwd", "root", "/dev", "a", "l", "up", "loop", "/etc/passwd", "/var/run", "x", "\xff", "exe", "task"};

static char *pages; /* of which the last can't be touched */
static int rounds;

struct rng {
	uint64_t state;
};

static uint64_t any(struct rng *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state;
}

static void make_path(struct rng *r, char *at, size_t room)
{
	size_t n = 0, want = any(r) % 4 ? any(r) % 60 : any(r) % room;

	while (n + 40 < room && n < want)
		n += (size_t)snprintf(at + n, room - n, "%s%s", any(r) % 3 ? "/" : "",
			pieces[any(r) % (sizeof(pieces) / sizeof(pieces[0]))]);
	at[n] = '\0';
}

static uint64_t argument(struct rng *r, char *text)
{
	static const uint64_t odd[] = {0, 1, 8, 4095, 4096, (uint64_t)-1, (uint64_t)-100, 1ULL << 47, 1ULL << 63,
		(1ULL << 47) - 3, 0xffffffff, 0x100, O_CREAT | O_RDWR, O_PATH, AT_SYMLINK_NOFOLLOW, 0777};

	switch (any(r) % 8) {
	case 0:
	case 1:
	case 2:
	case 3:
		return (uint64_t)(uintptr_t)text;
	case 4: /* it ends with the page, or behind it */
		return (uint64_t)(uintptr_t)(pages + PAGE - any(r) % 20);
	case 5:
		return any(r) % 8;
	default:
		return odd[any(r) % (sizeof(odd) / sizeof(odd[0]))];
	}
}

/* With the stack pointer somewhere else meanwhile. */
static long call_from(uint64_t stack, int nr, const uint64_t a[6])
{
	register uint64_t r10 __asm__("r10") = a[3];
	register uint64_t r8 __asm__("r8") = a[4];
	register uint64_t r9 __asm__("r9") = a[5];
	long ret;

	__asm__ volatile("mov %%rsp, %%r12\n\tmov %[stack], %%rsp\n\tsyscall\n\tmov %%r12, %%rsp"
			 : "=a"(ret)
			 : "a"((long)nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9),
			 [stack] "r"(stack)
			 : "rcx", "r11", "r12", "memory");
	return ret;
}

static long call(struct rng *r, int nr, const uint64_t a[6])
{
	if (any(r) % 8 == 0)
		return call_from(any(r) % 2 ? any(r) : (uint64_t)(uintptr_t)(pages + any(r) % (3 * PAGE)), nr, a);
	return syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void one(struct rng *r, char *text)
{
	int nr = calls[any(r) % (sizeof(calls) / sizeof(calls[0]))];
	uint64_t a[6];
	long ret;

	make_path(r, text, 6000);
	for (int i = 0; i < 6; i++)
		a[i] = argument(r, text);
	/* Not a FIFO's other side: nobody would come. */
	if (nr == SYS_mknod || nr == SYS_mknodat)
		a[nr == SYS_mknod ? 1 : 2] = S_IFREG;
	if (nr == SYS_execve || nr == SYS_execveat) {
		/* In a child, for one may succeed. */
		if (any(r) % 16)
			return;
		ret = fork();
		if (ret == 0) {
			call(r, nr, a);
			_exit(0);
		}
		if (ret > 0)
			syscall(SYS_wait4, ret, NULL, 0, NULL);
		return;
	}
	ret = call(r, nr, a);
	if (ret > 2 && (nr == SYS_open || nr == SYS_openat || nr == SYS_openat2 || nr == SYS_creat))
		close((int)ret);
}

static void *probe(void *seed)
{
	struct rng r = {(uint64_t)(uintptr_t)seed};
	char text[8192];

	for (int i = 0; i < rounds; i++)
		one(&r, text);
	return NULL;
}

/* Memory that comes and goes, and a text at its end that is not always one. */
static void *disturb(void *unused)
{
	for (int i = 0;; i++) {
		mmap(pages, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		memset(pages, i % 2 ? '/' : 'a', PAGE);
		memcpy(pages + PAGE - 8, i % 3 ? "/tmp/x" : "/tmp/abc", 8 - (size_t)(i % 2));
		usleep(200);
		if (i % 5 == 0)
			mprotect(pages, PAGE, i % 2 ? PROT_NONE : PROT_READ);
		usleep(200);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS], other;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	rounds = argc > 1 ? atoi(argv[1]) : 1000;
	signal(SIGPIPE, SIG_IGN);
	pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(pages + PAGE, PAGE, PROT_NONE);
	mkdir("/tmp/a", 0700);
	symlink("/tmp/a/../l", "/tmp/loop");
	symlink("a", "/tmp/l");
	symlink("../../..", "/tmp/a/up");
	pthread_create(&other, NULL, disturb, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, probe, (void *)(uintptr_t)(seed * 1000003 + (uint64_t)i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	syscall(SYS_write, 1, "over\n", 5);
	_exit(0);
}

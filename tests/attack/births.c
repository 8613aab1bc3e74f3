// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes that try to be born outside.  Each that is made holds the lock file open and sleeps,
 * so whoever looks from outside sees when all have ended; each must be told a small number.
 */
#include "tests/attack/attack.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define HIGHEST 5000 /* what a session may have come to; the test begins a new one */
#define X32	0x40000000

static void check_number(const char *how)
{
	pid_t pid = getpid();

	if (pid > 1 && pid < HIGHEST)
		return;
	printf("outside: %s\n", how);
	fflush(stdout);
	_exit(1);
}

static _Noreturn void stay(const char *how)
{
	check_number(how);
	for (;;)
		pause();
}

/* clone(2) without a new stack: as fork, with more flags. */
static void cloned(unsigned long flags, const char *how)
{
	long r = syscall(SYS_clone, flags, 0, NULL, NULL, 0);

	if (r == 0)
		stay(how);
	if (r > HIGHEST)
		reached(r, how);
}

static void clones(void)
{
	static const unsigned long flags[] = {CLONE_FILES, CLONE_FS, CLONE_PARENT, CLONE_PTRACE,
		CLONE_UNTRACED, CLONE_IO, CLONE_PARENT | CLONE_UNTRACED, CLONE_SYSVSEM,
		CLONE_PTRACE | CLONE_PARENT, CLONE_NEWUSER, CLONE_NEWPID,
		CLONE_NEWUSER | CLONE_NEWPID, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS,
		CLONE_NEWCGROUP};

	for (size_t i = 0; i < N(flags); i++) {
		char how[64];

		snprintf(how, sizeof(how), "clone with %#lx", flags[i]);
		cloned(flags[i] | SIGCHLD, how);
		cloned(flags[i], how);
	}
	/* One flag alone, whatever it means; threads and borrowed memory need more than that. */
	for (int bit = 8; bit < 32; bit++)
		if (!((1UL << bit) & (CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_VFORK |
					     CLONE_SETTLS | CLONE_PIDFD | CLONE_PARENT_SETTID |
					     CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)))
			cloned(1UL << bit | SIGCHLD, "clone with one flag");
}

static void doubly(void)
{
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			setsid();
			stay("double fork");
		}
		_exit(0);
	}
	if (vfork() == 0)
		_exit(0);
	if (fork() == 0) {
		if (vfork() == 0)
			execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(0);
	}
}

static void spawned(void)
{
	char *argv[] = {"sleep", "1000", NULL}, *envp[] = {NULL};
	pid_t pid = 0;

	if (posix_spawn(&pid, "/bin/sleep", NULL, NULL, argv, envp) == 0 && pid > HIGHEST)
		reached(pid, "posix_spawn");
	(void)!system("sleep 1000 & setsid sleep 1000 & (sleep 1000 &)");
}

static long int80(long nr, long a)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(0), "d"(0) : "memory");
	return r;
}

/* A 32-bit program: fork, and sleep for ever, both by int 0x80. */
static int small_program(void)
{
	static const unsigned char code[] = {
		0xb8,
		2,
		0,
		0,
		0,
		0xcd,
		0x80, /* fork */
		0xb8,
		29,
		0,
		0,
		0,
		0xcd,
		0x80, /* pause */
		0xeb,
		0xf7,
	};
	const uint32_t base = 0x10000;
	struct {
		Elf32_Ehdr e;
		Elf32_Phdr p;
		unsigned char code[sizeof(code)];
	} __attribute__((packed)) f = {
		.e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
			.e_type = ET_EXEC,
			.e_machine = EM_386,
			.e_version = EV_CURRENT,
			.e_entry = base + sizeof(f.e) + sizeof(f.p),
			.e_phoff = sizeof(f.e),
			.e_ehsize = sizeof(f.e),
			.e_phentsize = sizeof(f.p),
			.e_phnum = 1},
		.p = {.p_type = PT_LOAD,
			.p_vaddr = base,
			.p_paddr = base,
			.p_filesz = sizeof(f),
			.p_memsz = sizeof(f),
			.p_flags = PF_R | PF_X,
			.p_align = 0x1000},
	};
	int fd = memfd_create("small", 0);

	memcpy(f.code, code, sizeof(code));
	return write(fd, &f, sizeof(f)) == sizeof(f) ? fd : -1;
}

/* Of i386: what is born has a number of the session's, and ends with it. */
static void interrupted(long nr, long flags, const char *how)
{
	long r = int80(nr, flags);

	if (r == 0)
		stay(how);
	if (r > HIGHEST)
		reached(r, how);
}

static void foreign(void)
{
	int fd = small_program();
	char *argv[] = {"small", NULL}, *envp[] = {NULL};

	interrupted(2, 0, "fork by int 0x80");
	interrupted(120, SIGCHLD, "clone by int 0x80");
	interrupted(120, CLONE_PARENT | SIGCHLD, "clone of a sibling by int 0x80");
	reached(int80(120, CLONE_UNTRACED | SIGCHLD), "clone untraced by int 0x80");
	reached(int80(435, 0), "clone3 by int 0x80");
	if (int80(20, 0) != getpid())
		reached(0, "getpid by int 0x80");
	reached(syscall(X32 | SYS_fork), "fork of x32");
	reached(syscall(X32 | SYS_getpid), "getpid of x32");
	reached(syscall(SYS_clone3, "", 64L), "clone3");
	if (fork() == 0) {
		syscall(SYS_execveat, fd, "", argv, envp, 0x1000 /* AT_EMPTY_PATH */);
		_exit(0);
	}
}

/* Comes back at once; what it has made stays. */
static void births(const struct victim *v)
{
	signal(SIGCHLD, SIG_IGN);
	clones();
	doubly();
	spawned();
	foreign();
}

const struct attack birth_attacks[] = {{"births", births}};
const size_t n_birth_attacks = N(birth_attacks);

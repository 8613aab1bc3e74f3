// SPDX-License-Identifier: GPL-2.0-or-later
/* Processes that share memory, handlers, descriptors and directory without being threads of one. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define STACK (256 * 1024)

enum ask { NOTHING, OPEN, CHDIR, HANDLE, MASK, END };

/* One of them; all is in memory that they share. */
struct partner {
	int flags;
	volatile int ready, ask, done, answer;
	pid_t pid;
};

static volatile int caught;

static void handler(int sig)
{
	caught = sig;
}

static int serve(void *arg)
{
	struct partner *p = arg;

	p->ready = 1;
	for (;;) {
		while (p->ask == NOTHING || p->done)
			syscall(SYS_sched_yield);
		switch (p->ask) {
		case OPEN:
			p->answer = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0);
			break;
		case CHDIR:
			p->answer = (int)syscall(SYS_chdir, "/usr");
			break;
		case HANDLE:
			p->answer = signal(SIGUSR2, handler) == SIG_ERR;
			break;
		case MASK:
			p->answer = (int)syscall(SYS_getpid);
			break;
		default:
			p->answer = 42;
			p->done = 1;
			syscall(SYS_exit, 9);
			return 0;
		}
		p->done = 1;
	}
}

static struct partner *start(int flags)
{
	struct partner *p = calloc(1, sizeof(*p));
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	STATE_CHECK(p && stack != MAP_FAILED);
	p->pid = clone(serve, stack + STACK, flags, p);
	STATE_CHECK(p->pid > 0);
	while (!p->ready)
		state_nap();
	return p;
}

static int ask(struct partner *p, enum ask what)
{
	p->done = 0;
	p->ask = (int)what;
	while (!p->done)
		state_nap();
	p->ask = NOTHING;
	return p->answer;
}

static int is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int in_usr(void)
{
	char here[64];

	return getcwd(here, sizeof(here)) && !strcmp(here, "/usr");
}

static void end(struct partner *p)
{
	int status;

	STATE_CHECK(ask(p, END) == 42);
	STATE_CHECK(waitpid(p->pid, &status, __WALL) == p->pid);
	STATE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

int main(int argc, char **argv)
{
	/* As LinuxThreads did it; then less and less. */
	struct partner *all = start(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | SIGCHLD);
	struct partner *memory = start(CLONE_VM | SIGCHLD);
	struct partner *quiet = start(CLONE_VM | CLONE_FILES);
	struct partner *still = start(CLONE_VM | CLONE_FS | SIGCHLD);
	struct sigaction sa;
	int fd, status;

	/* What is not in the heap at the start is shared, too. */
	char *late =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	STATE_CHECK(late != MAP_FAILED);
	memset(late, 'L', 1 << 20);
	STATE_CHECK(kill(still->pid, SIGSTOP) == 0 &&
		    waitpid(still->pid, &status, WUNTRACED) == still->pid && WIFSTOPPED(status));

	state_ready(argc, argv);

	for (int i = 0; i < 1 << 20; i++)
		STATE_CHECK(late[i] == 'L');
	STATE_CHECK(ask(all, MASK) == all->pid && ask(memory, MASK) == memory->pid &&
		    ask(quiet, MASK) == quiet->pid);
	fd = ask(memory, OPEN);
	STATE_CHECK(fd > 2 && !is_open(fd));
	fd = ask(all, OPEN);
	STATE_CHECK(fd > 2 && is_open(fd));
	fd = ask(quiet, OPEN);
	STATE_CHECK(fd > 2 && is_open(fd));
	STATE_CHECK(ask(memory, HANDLE) == 0 && sigaction(SIGUSR2, NULL, &sa) == 0 &&
		    sa.sa_handler == SIG_DFL);
	STATE_CHECK(ask(all, HANDLE) == 0);
	raise(SIGUSR2);
	STATE_CHECK(caught == SIGUSR2);
	STATE_CHECK(ask(memory, CHDIR) == 0 && !in_usr());
	STATE_CHECK(ask(all, CHDIR) == 0 && in_usr());
	STATE_CHECK(waitpid(still->pid, &status, WCONTINUED | WNOHANG) == 0);
	STATE_CHECK(kill(still->pid, SIGCONT) == 0 && ask(still, MASK) == still->pid);
	end(still);
	end(all);
	end(memory);
	end(quiet);
	return state_ok();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queues by name: what mq_open refuses, rights and limits, who has sent what one was waiting for, and
 * their directory.
 */
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static char name[32];

static void check_refusals(void)
{
	struct mq_attr bad = {.mq_maxmsg = -1, .mq_msgsize = 64};
	char longest[300];

	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[299] = '\0';
	STATE_CHECK(mq_open(name, O_RDWR) == -1 && errno == ENOENT);
	STATE_CHECK(mq_unlink(name) == -1 && errno == ENOENT);
	STATE_CHECK(mq_open("/a/b", O_RDWR | O_CREAT, 0600, NULL) == -1 && errno == EACCES);
	STATE_CHECK(mq_open("/..", O_RDWR | O_CREAT, 0600, NULL) == -1 && errno == EACCES);
	STATE_CHECK(mq_open(longest, O_RDWR | O_CREAT, 0600, NULL) == -1 && errno == ENAMETOOLONG);
	STATE_CHECK(mq_open(name, O_RDWR | O_CREAT, 0600, &bad) == -1 && errno == EINVAL);
	STATE_CHECK(mq_open(name, O_RDWR | O_CREAT, 0600, (void *)8) == -1 && errno == EFAULT);
	STATE_CHECK(mq_open(name, O_RDWR) == -1 && errno == ENOENT);
}

/* Whoever has no room for a descriptor makes no queue. */
static void check_limit(void)
{
	struct rlimit before, none;
	int next = dup(0);

	STATE_CHECK(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
	STATE_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	STATE_CHECK(mq_open(name, O_RDWR | O_CREAT, 0600, NULL) == -1 && errno == EMFILE);
	STATE_CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	STATE_CHECK(mq_open(name, O_RDWR) == -1 && errno == ENOENT);
}

static mqd_t make(void)
{
	struct mq_attr attr = {.mq_maxmsg = 3, .mq_msgsize = 16};
	mode_t before = umask(027);
	mqd_t q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0666, &attr);
	struct stat st;

	umask(before);
	STATE_CHECK(q >= 0 && fstat(q, &st) == 0 && (st.st_mode & 0777) == 0640);
	STATE_CHECK(fcntl(q, F_GETFD) == FD_CLOEXEC);
	return q;
}

static void check_rights(mqd_t q)
{
	mqd_t again = mq_open(name, O_CREAT | O_RDONLY | O_NONBLOCK, 0, NULL);
	char text[16];

	STATE_CHECK(again >= 0 && mq_receive(again, text, 16, NULL) == -1 && errno == EAGAIN);
	STATE_CHECK(mq_close(again) == 0);
	STATE_CHECK(mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, NULL) == -1 && errno == EEXIST);
	STATE_CHECK(fchmod(q, 0400) == 0);
	STATE_CHECK(mq_open(name, O_RDWR) == -1 && errno == EACCES);
	STATE_CHECK(fchmod(q, 0600) == 0);
}

static void check_sender(mqd_t q)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	siginfo_t info;
	sigset_t usr1;
	char text[16];
	pid_t child;

	ev.sigev_value.sival_int = 77;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	STATE_CHECK(sigprocmask(SIG_BLOCK, &usr1, NULL) == 0 && mq_notify(q, &ev) == 0);
	child = fork();
	STATE_CHECK(child >= 0);
	if (child == 0) {
		STATE_CHECK(mq_send(q, "x", 1, 0) == 0);
		_exit(0);
	}
	STATE_CHECK(sigwaitinfo(&usr1, &info) == SIGUSR1 && info.si_code == SI_MESGQ);
	STATE_CHECK(info.si_pid == child && info.si_value.sival_int == 77);
	STATE_CHECK(waitpid(child, NULL, 0) == child && mq_receive(q, text, 16, NULL) == 1);
}

/* Where there is one. */
static void check_directory(int dir)
{
	struct stat st, named;

	STATE_CHECK(dir < 0 || (fstat(dir, &st) == 0 && stat("/dev/mqueue", &named) == 0));
	STATE_CHECK(dir < 0 || (S_ISDIR(st.st_mode) && st.st_ino == named.st_ino));
	STATE_CHECK(dir < 0 || lseek(dir, 0, SEEK_SET) == 0);
}

int main(int argc, char **argv)
{
	mqd_t q;
	int dir = open("/dev/mqueue", O_RDONLY | O_DIRECTORY);

	snprintf(name, sizeof(name), "/opened-%d", getpid());
	check_refusals();
	check_limit();
	q = make();
	check_rights(q);
	check_sender(q);

	check_directory(dir);

	state_ready(argc, argv);

	check_directory(dir);
	check_rights(q);
	check_sender(q);
	STATE_CHECK(mq_unlink(name) == 0);
	check_refusals();
	return state_ok();
}

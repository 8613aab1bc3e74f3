// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sandbox as browsers build theirs: a zygote in user, pid, network, ipc and uts namespaces of its
 * own, which goes on into a second user namespace, has the fdinfo directory of a dead process for
 * its root, and starts workers in a pid namespace each.  And a process with a directory for its
 * root, as who has no other way to see less.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define LINE 256

/* Everybody inside does what a byte on its socket asks for, and answers with a byte. */
enum ask { CHECK = 'c', END = 'e' };

static pid_t fork_with(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
}

static void answer(int sock, void (*check)(void))
{
	char what;

	STATE_CHECK(write(sock, "r", 1) == 1);
	while (read(sock, &what, 1) == 1 && what == CHECK) {
		check();
		STATE_CHECK(write(sock, "k", 1) == 1);
	}
	_exit(5);
}

static void expect(int sock, char what)
{
	char got = 0;

	STATE_CHECK(read(sock, &got, 1) == 1 && got == what);
}

static void ask(int sock, char what)
{
	STATE_CHECK(write(sock, &what, 1) == 1);
	expect(sock, 'k');
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	STATE_CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* ---- the worker: number 1 of a pid namespace in a pid namespace ----------------------------- */

static pid_t child_number, thread_number;
static volatile pid_t told;
static timer_t timer;

static void on_timer(int sig)
{
	told = gettid();
}

static void *wait_for_signals(void *arg)
{
	*(volatile pid_t *)arg = gettid();
	for (;;)
		pause();
	return NULL;
}

static void check_worker(void)
{
	const struct itimerspec now = {.it_value.tv_nsec = 1000000};
	int status;
	pid_t pid;

	STATE_CHECK(getpid() == 1 && getppid() == 0);
	STATE_CHECK(kill(child_number, 0) == 0);
	STATE_CHECK(getpgid(child_number) == child_number && getpgid(0) == 0);
	told = 0;
	STATE_CHECK(timer_settime(timer, 0, &now, NULL) == 0);
	while (!told)
		state_nap();
	STATE_CHECK(told == thread_number);
	pid = fork();
	if (pid == 0)
		_exit(getppid() == 1 ? 3 : 4);
	STATE_CHECK(
		pid > thread_number && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
}

static void be_worker(int sock)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	pthread_t thread;

	STATE_CHECK(signal(SIGUSR1, on_timer) != SIG_ERR);
	child_number = fork();
	if (child_number == 0) {
		setpgid(0, 0);
		for (;;)
			pause();
	}
	STATE_CHECK(child_number == 2 && (setpgid(2, 2) == 0 || errno == EACCES));
	STATE_CHECK(pthread_create(&thread, NULL, wait_for_signals, &thread_number) == 0);
	while (!*(volatile pid_t *)&thread_number)
		state_nap();
	event._sigev_un._tid = thread_number;
	STATE_CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	answer(sock, check_worker);
}

/* ---- the zygote ------------------------------------------------------------------------------ */

#define BITS (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP)

static pid_t worker_number, zombie_number;
static int worker_sock;
static struct __user_cap_data_struct caps[2];

static void get_caps(struct __user_cap_data_struct ret[2])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	STATE_CHECK(syscall(SYS_capget, &header, ret) == 0);
}

static void check_network(void)
{
	struct ifreq lo = {.ifr_name = "lo"};
	struct ifconf conf = {0};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	STATE_CHECK(ioctl(s, SIOCGIFCONF, &conf) == 0 && conf.ifc_len == sizeof(struct ifreq));
	STATE_CHECK(ioctl(s, SIOCGIFFLAGS, &lo) == 0 && lo.ifr_flags & IFF_UP);
	close(s);
}

static void check_zygote(void)
{
	struct __user_cap_data_struct now[2];
	struct utsname names;
	siginfo_t info = {0};
	pid_t pid;
	int status, id;

	STATE_CHECK(getpid() == 1 && getppid() == 0 && getuid() == 77 && getgid() == 78);
	STATE_CHECK(uname(&names) == 0 && !strcmp(names.nodename, "inner"));
	STATE_CHECK(access("/proc", F_OK) < 0 && access("/etc", F_OK) < 0 &&
		    access("../etc", F_OK) < 0);
	STATE_CHECK(kill(worker_number, 0) == 0);
	STATE_CHECK(waitid(P_PID, (id_t)zombie_number, &info, WEXITED | WNOWAIT) == 0);
	STATE_CHECK(info.si_pid == zombie_number && info.si_status == 7);
	get_caps(now);
	STATE_CHECK(!memcmp(now, caps, sizeof(caps)));
	STATE_CHECK(prctl(PR_GET_SECUREBITS) == BITS);
	check_network();
	id = shmget(77, 4096, IPC_CREAT | IPC_EXCL | 0600);
	STATE_CHECK(id >= 0 && shmctl(id, IPC_RMID, NULL) == 0);
	/* it starts another as before */
	pid = fork_with(CLONE_NEWPID);
	if (pid == 0)
		_exit(getpid() == 1 ? 9 : 8);
	STATE_CHECK(
		pid > worker_number && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 9);
	ask(worker_sock, CHECK);
}

/* Nothing is there once the process has ended whose directory it is. */
static void leave_files(void)
{
	int status;
	pid_t pid = fork_with(CLONE_FS);

	if (pid == 0)
		_exit(chroot("/proc/self/fdinfo") < 0 || chdir("/") < 0);
	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void raise_loopback(void)
{
	struct ifreq lo = {.ifr_name = "lo"};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	lo.ifr_flags = IFF_UP;
	STATE_CHECK(ioctl(s, SIOCSIFFLAGS, &lo) == 0);
	close(s);
}

static void drop_some(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	get_caps(caps);
	caps[0].effective = caps[0].permitted = 1U << CAP_SYS_ADMIN | 1U << CAP_KILL;
	caps[1].effective = caps[1].permitted = 0;
	STATE_CHECK(syscall(SYS_capset, &header, caps) == 0);
}

static void be_zygote(int sock)
{
	int pair[2];

	expect(sock, 'm'); /* the ids are there */
	STATE_CHECK(getpid() == 1 && sethostname("inner", 5) == 0);
	raise_loopback();
	STATE_CHECK(unshare(CLONE_NEWUSER) == 0);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", "77 7 1");
	write_file("/proc/self/gid_map", "78 8 1");
	leave_files();
	STATE_CHECK(prctl(PR_SET_SECUREBITS, BITS) == 0);
	drop_some();
	STATE_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	worker_sock = pair[0];
	worker_number = fork_with(CLONE_NEWPID);
	if (worker_number == 0)
		be_worker(pair[1]);
	expect(worker_sock, 'r');
	zombie_number = fork();
	if (zombie_number == 0)
		_exit(7);
	STATE_CHECK(waitid(P_PID, (id_t)zombie_number, &(siginfo_t){0}, WEXITED | WNOWAIT) == 0);
	answer(sock, check_zygote);
}

/* ---- outside --------------------------------------------------------------------------------- */

static ino_t namespace_of(pid_t pid, const char *sort)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, sort);
	STATE_CHECK(stat(path, &st) == 0);
	return st.st_ino;
}

static void line_of(pid_t pid, const char *file, const char *key, char ret[LINE])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "r");
	STATE_CHECK(f);
	do
		STATE_CHECK(fgets(ret, LINE, f));
	while (strncmp(ret, key, strlen(key)));
	fclose(f);
}

/* Ends with its parent. */
static pid_t fork_waiting(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* ---- a directory as a root ------------------------------------------------------------------ */

static void check_root(void)
{
	char cwd[64];
	int fd = open("/file", O_RDONLY | O_CLOEXEC);

	STATE_CHECK(
		fd >= 0 && read(fd, cwd, 6) == 6 && !memcmp(cwd, "inside", 6) && close(fd) == 0);
	STATE_CHECK(getcwd(cwd, sizeof(cwd)) && !strcmp(cwd, "/below"));
	STATE_CHECK(access("../file", F_OK) == 0 && access("../../file", F_OK) == 0);
	STATE_CHECK(access("/etc", F_OK) < 0 && access("../../etc", F_OK) < 0);
}

static pid_t rooted(char *dir, int sock)
{
	pid_t pid;
	int fd;

	STATE_CHECK(mkdtemp(dir));
	pid = fork_with(CLONE_NEWUSER);
	if (pid)
		return pid;
	STATE_CHECK(chdir(dir) == 0 && mkdir("below", 0700) == 0);
	fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	STATE_CHECK(fd >= 0 && write(fd, "inside", 6) == 6 && close(fd) == 0);
	STATE_CHECK(chroot(".") == 0 && chdir("/below") == 0);
	answer(sock, check_root);
	return 0;
}

/*
 * Two processes in a user and network namespace each made for itself, after a child of the first
 * was born.
 */
static pid_t unshared(int sock)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	pid = fork_waiting();
	STATE_CHECK(pid > 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0);
	pid = fork_waiting();
	STATE_CHECK(pid > 0 && write(sock, &pid, sizeof(pid)) == sizeof(pid));
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	static const char *const sorts[] = {"user", "pid", "net", "ipc", "uts"};
	char uids[LINE], status[LINE], now[LINE], text[64];
	char dir[] = "/tmp/state-root-XXXXXX";
	pid_t zygote, other, inside, in_root;
	int pair[2], other_pair[2], root_pair[2];

	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	STATE_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, other_pair) == 0);
	zygote = fork_with(
		CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS);
	if (zygote == 0)
		be_zygote(pair[1]);
	STATE_CHECK(zygote > 0);
	snprintf(text, sizeof(text), "/proc/%d/setgroups", zygote);
	write_file(text, "deny");
	snprintf(text, sizeof(text), "/proc/%d/uid_map", zygote);
	snprintf(now, sizeof(now), "7 %d 1", getuid());
	write_file(text, now);
	snprintf(text, sizeof(text), "/proc/%d/gid_map", zygote);
	snprintf(now, sizeof(now), "8 %d 1", getgid());
	write_file(text, now);
	STATE_CHECK(write(pair[0], "m", 1) == 1);
	expect(pair[0], 'r');
	other = unshared(other_pair[1]);
	STATE_CHECK(read(other_pair[0], &inside, sizeof(inside)) == sizeof(inside));
	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, root_pair) == 0);
	in_root = rooted(dir, root_pair[1]);
	STATE_CHECK(in_root > 0);
	expect(root_pair[0], 'r');
	line_of(zygote, "uid_map", " ", uids);
	line_of(zygote, "status", "NSpid", status);

	state_ready(argc, argv);

	line_of(zygote, "uid_map", " ", now);
	STATE_CHECK(!strcmp(now, uids));
	line_of(zygote, "status", "NSpid", now);
	STATE_CHECK(!strcmp(strchr(now, '\t'), strchr(status, '\t')));
	for (size_t i = 0; i < sizeof(sorts) / sizeof(*sorts); i++)
		STATE_CHECK(namespace_of(zygote, sorts[i]) != namespace_of(getpid(), sorts[i]));
	STATE_CHECK(namespace_of(other, "net") == namespace_of(inside, "net"));
	STATE_CHECK(namespace_of(other, "net") != namespace_of(getpid(), "net"));
	STATE_CHECK(namespace_of(other, "user") == namespace_of(inside, "user"));
	STATE_CHECK(namespace_of(other, "user") != namespace_of(zygote, "user"));
	ask(pair[0], CHECK);
	ask(root_pair[0], CHECK);
	STATE_CHECK(kill(in_root, SIGKILL) == 0 && waitpid(in_root, NULL, 0) == in_root);
	state_remove(dir);
	STATE_CHECK(kill(zygote, SIGKILL) == 0 && kill(other, SIGKILL) == 0);
	STATE_CHECK(waitpid(zygote, NULL, 0) == zygote && waitpid(other, NULL, 0) == other);
	return state_ok();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Users, of a session that is root inside (rows --users).  Older calls of i386 have ids of 16 bits;
 * there each of these is made in both generations.
 */
#include "tests/rows/rows.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOBODY 65534

struct generation {
	bool narrow;
	int getuid, geteuid, getgid, getegid, getresuid, getresgid, getgroups;
	int setuid, setgid, setreuid, setregid, setresuid, setresgid, setfsuid, setfsgid, setgroups;
	int chown, lchown, fchown;
};

#ifdef __i386__
#define OF(suffix)                                                                        \
	SYS_getuid##suffix, SYS_geteuid##suffix, SYS_getgid##suffix, SYS_getegid##suffix, \
		SYS_getresuid##suffix, SYS_getresgid##suffix, SYS_getgroups##suffix,      \
		SYS_setuid##suffix, SYS_setgid##suffix, SYS_setreuid##suffix,             \
		SYS_setregid##suffix, SYS_setresuid##suffix, SYS_setresgid##suffix,       \
		SYS_setfsuid##suffix, SYS_setfsgid##suffix, SYS_setgroups##suffix,        \
		SYS_chown##suffix, SYS_lchown##suffix, SYS_fchown##suffix
static const struct generation generations[] = {{true, OF()}, {false, OF(32)}};
#else
#define OF                                                                                        \
	SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid,           \
		SYS_getgroups, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, \
		SYS_setresgid, SYS_setfsuid, SYS_setfsgid, SYS_setgroups, SYS_chown, SYS_lchown,  \
		SYS_fchown
static const struct generation generations[] = {{false, OF}};
#endif

/* Each in a child: what it becomes it stays. */
static void in_each(void (*run)(const struct generation *g))
{
	for (size_t i = 0; i < N(generations); i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			run(&generations[i]);
			_exit(0);
		}
		ROW_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
}

/* ---- ids ------------------------------------------------------------------------------------ */

static bool three(
	const struct generation *g, int nr, unsigned real, unsigned effective, unsigned saved)
{
	uint32_t wide[3] = {7, 7, 7};
	uint16_t narrow[3] = {7, 7, 7};

	if (g->narrow)
		return syscall(nr, &narrow[0], &narrow[1], &narrow[2]) == 0 && narrow[0] == real &&
		       narrow[1] == effective && narrow[2] == saved;
	return syscall(nr, &wide[0], &wide[1], &wide[2]) == 0 && wide[0] == real &&
	       wide[1] == effective && wide[2] == saved;
}

static void users(const struct generation *g)
{
	ROW_CHECK(syscall(g->getuid) == 0 && syscall(g->geteuid) == 0);
	ROW_CHECK(three(g, g->getresuid, 0, 0, 0));
	ROW_CHECK(syscall(g->setresuid, -1, 33, -1) == 0 && three(g, g->getresuid, 0, 33, 0));
	ROW_CHECK(syscall(g->setfsuid, 5) == 33 && syscall(g->geteuid) == 33);
	ROW_FAILS(syscall(g->setuid, 34), EPERM);
	ROW_CHECK(syscall(g->setreuid, -1, 0) == 0 && three(g, g->getresuid, 0, 0, 0));
	ROW_CHECK(syscall(g->setreuid, 33, 34) == 0 && three(g, g->getresuid, 33, 34, 34));
	ROW_FAILS(syscall(g->setresuid, 0, 0, 0), EPERM);
	ROW_CHECK(syscall(g->setuid, 33) == 0 && three(g, g->getresuid, 33, 33, 34));
}

static void groups_of(const struct generation *g)
{
	ROW_CHECK(syscall(g->getgid) == 0 && syscall(g->getegid) == 0);
	ROW_CHECK(syscall(g->setresgid, 1, 2, 3) == 0 && three(g, g->getresgid, 1, 2, 3));
	ROW_CHECK(syscall(g->setregid, -1, 4) == 0 && three(g, g->getresgid, 1, 4, 4));
	ROW_CHECK(syscall(g->setfsgid, 9) == 4);
	ROW_CHECK(syscall(g->setgid, 5) == 0 && three(g, g->getresgid, 5, 5, 5));
	ROW_CHECK(syscall(g->setuid, 33) == 0);
	ROW_FAILS(syscall(g->setgid, 0), EPERM);
}

static void more_groups(const struct generation *g)
{
	uint32_t wide[3] = {5, 6}, got[3] = {0};
	uint16_t narrow[3] = {5, 6}, narrow_got[3] = {0};
	void *set = g->narrow ? (void *)narrow : wide, *ret = g->narrow ? (void *)narrow_got : got;

	ROW_CHECK(syscall(g->setgroups, 2, set) == 0 && syscall(g->getgroups, 0, NULL) == 2);
	ROW_FAILS(syscall(g->getgroups, 1, ret), EINVAL);
	ROW_CHECK(syscall(g->getgroups, 3, ret) == 2);
	ROW_CHECK(
		g->narrow ? narrow_got[0] == 5 && narrow_got[1] == 6 : got[0] == 5 && got[1] == 6);
	ROW_CHECK(syscall(g->setuid, 33) == 0);
	ROW_FAILS(syscall(g->setgroups, 0, NULL), EPERM);
}

static void ids(void)
{
	in_each(users);
	in_each(groups_of);
	in_each(more_groups);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Another each time: with the host's files /tmp is shared with whoever runs this, too. */
static char top[] = "/tmp/users-XXXXXX";

static void gives(const struct generation *g)
{
	int fd = open(top, O_CREAT | O_RDWR, 0644);
	struct stat st;

	ROW_CHECK(fd >= 0 && syscall(g->chown, top, 33, 34) == 0 && stat(top, &st) == 0);
	ROW_CHECK(st.st_uid == 33 && st.st_gid == 34);
	ROW_CHECK(syscall(g->fchown, fd, 35, -1) == 0 && fstat(fd, &st) == 0 && st.st_uid == 35);
	ROW_CHECK(st.st_gid == 34 && syscall(g->lchown, top, -1, 36) == 0 && lstat(top, &st) == 0);
	ROW_CHECK(st.st_uid == 35 && st.st_gid == 36);
	ROW_FAILS(syscall(g->chown, "/etc/passwd", 1, 1), EPERM);
	ROW_CHECK(syscall(g->setuid, 37) == 0);
	ROW_FAILS(syscall(g->chown, top, 37, -1), EPERM);
	ROW_CHECK(unlink(top) == 0);
}

static void owners(void)
{
	struct row_stat old;
	struct row_stat_at st;
	struct stat whole;
	struct statx stx;
	int fd;

	ROW_CHECK(close(mkstemp(top)) == 0);
	in_each(gives);
	fd = open(top, O_CREAT | O_RDWR, 0644);
	ROW_CHECK(fd >= 0 && syscall(SYS_fchownat, AT_FDCWD, top, 40, 41, 0) == 0);
	ROW_CHECK(syscall(SYS_stat, top, &old) == 0 && old.ROW_UID == 40);
	ROW_CHECK(syscall(SYS_lstat, top, &old) == 0 && old.ROW_UID == 40);
	ROW_CHECK(syscall(SYS_fstat, fd, &old) == 0 && old.ROW_UID == 40);
	ROW_CHECK(syscall(SYS_newfstatat, AT_FDCWD, top, &st, 0) == 0 && st.ROW_UID == 40);
	ROW_CHECK(syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH) == 0 && st.ROW_UID == 40);
	ROW_CHECK(syscall(SYS_statx, AT_FDCWD, top, 0, STATX_UID, &stx) == 0 && stx.stx_uid == 40);
	ROW_CHECK(syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_UID, &stx) == 0 &&
		  stx.stx_gid == 41);
	ROW_CHECK(stat("/etc/passwd", &whole) == 0 && whole.st_uid == NOBODY &&
		  whole.st_gid == NOBODY);
	ROW_CHECK(
		syscall(SYS_fchownat, fd, "", 0, 0, AT_EMPTY_PATH) == 0 && stat(top, &whole) == 0);
	ROW_CHECK(whole.st_uid == 0 && unlink(top) == 0);
}

/* ---- limits, capabilities, peers ------------------------------------------------------------- */

static void limits(void)
{
	static const int which[] = {RLIMIT_LOCKS, RLIMIT_RSS};
	struct rlimit none = {0}, got;

	ROW_CHECK(setuid(33) == 0);
	for (size_t i = 0; i < N(which); i++) {
		ROW_CHECK(setrlimit(which[i], &none) == 0 && getrlimit(which[i], &got) == 0);
		ROW_CHECK(got.rlim_cur == RLIM_INFINITY &&
			  syscall(ROW_setrlimit, which[i], &none) == 0);
		ROW_CHECK(syscall(ROW_getrlimit, which[i], &none) == 0 && none.rlim_cur != 0);
		none = (struct rlimit){0};
		ROW_CHECK(syscall(SYS_getrlimit, which[i], &none) == 0);
		ROW_CHECK(none.rlim_cur == ROW_UNLIMITED && none.rlim_max == ROW_UNLIMITED);
		none = (struct rlimit){0};
		ROW_CHECK(prlimit(row_child, which[i], &none, &got) == 0 &&
			  got.rlim_cur == RLIM_INFINITY);
		ROW_CHECK(prlimit(ROW_NOBODY, which[i], NULL, &got) == -1 && errno == ESRCH);
	}
	ROW_CHECK(getuid() == 33);
}

static uint64_t effective(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {0};

	ROW_CHECK(syscall(SYS_capget, &h, d) == 0);
	return d[0].effective | (uint64_t)d[1].effective << 32;
}

static void capabilities(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {0};

	ROW_CHECK(effective() >> CAP_SETUID & 1 && prctl(PR_CAPBSET_READ, CAP_CHOWN) == 1);
	ROW_CHECK(prctl(PR_CAPBSET_DROP, CAP_CHOWN) == 0 && prctl(PR_CAPBSET_READ, CAP_CHOWN) == 0);
	ROW_CHECK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setuid(33) == 0 && effective() == 0);
	ROW_FAILS(setuid(0), EPERM);
	d[0].effective = d[0].permitted = d[0].inheritable = 1u << CAP_SETUID;
	ROW_CHECK(syscall(SYS_capset, &h, d) == 0 && effective() == 1u << CAP_SETUID);
	ROW_CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SETUID, 0, 0) == 0);
	ROW_CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_SETUID, 0, 0) == 1);
	d[0].permitted |= 1u << CAP_KILL;
	ROW_FAILS(syscall(SYS_capset, &h, d), EPERM);
	ROW_FAILS(prctl(PR_CAPBSET_DROP, CAP_KILL), EPERM);
	ROW_CHECK(setresuid(-1, 0, -1) == 0 && getuid() == 33 && geteuid() == 0);
}

/* Whose number is said, not all of the session. */
static void of_a_user(void)
{
	int pair[2], ours = getpriority(PRIO_PROCESS, 0);
	pid_t pid;
	char c;

	ROW_CHECK(pipe(pair) == 0);
	pid = fork();
	if (pid == 0)
		_exit(setuid(33) == 0 && write(pair[1], "", 1) == 1 ? pause() : 1);
	ROW_CHECK(read(pair[0], &c, 1) == 1 && setpriority(PRIO_USER, 33, ours + 5) == 0);
	ROW_CHECK(getpriority(PRIO_PROCESS, (id_t)pid) == ours + 5 &&
		  getpriority(PRIO_PROCESS, 0) == ours && getpriority(PRIO_USER, 33) == ours + 5);
	ROW_FAILS(setpriority(PRIO_USER, 34, ours + 5), ESRCH);
	ROW_CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void peer(void)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int pair[2];

	ROW_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && seteuid(33) == 0);
	ROW_CHECK(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0);
	ROW_CHECK(cred.pid == row_self && cred.uid == 33 && cred.gid == 0);
}

#ifdef __i386__
#define BOTH(name, run)                   \
	{SYS_##name, CALL, run},          \
	{                                 \
		SYS_##name##32, CALL, run \
	}
#define OF_I386                                                                               \
	{SYS_stat64, CALL, owners}, {SYS_lstat64, CALL, owners}, {SYS_fstat64, CALL, owners}, \
		{ROW_getrlimit, RLIMIT_LOCKS, limits}, {ROW_getrlimit, RLIMIT_RSS, limits},   \
		{SYS_getrlimit, RLIMIT_LOCKS, limits}, {SYS_getrlimit, RLIMIT_RSS, limits},
#else
#define BOTH(name, run)               \
	{                             \
		SYS_##name, CALL, run \
	}
#define OF_I386 {SYS_getrlimit, RLIMIT_LOCKS, limits}, {SYS_getrlimit, RLIMIT_RSS, limits},
#endif

const struct row user_rows[] = {
	BOTH(getuid, ids),
	BOTH(geteuid, ids),
	BOTH(getgid, ids),
	BOTH(getegid, ids),
	BOTH(getresuid, ids),
	BOTH(getresgid, ids),
	BOTH(getgroups, ids),
	BOTH(setuid, ids),
	BOTH(setgid, ids),
	BOTH(setreuid, ids),
	BOTH(setregid, ids),
	BOTH(setresuid, ids),
	BOTH(setresgid, ids),
	BOTH(setfsuid, ids),
	BOTH(setfsgid, ids),
	BOTH(setgroups, ids),
	BOTH(chown, owners),
	BOTH(lchown, owners),
	BOTH(fchown, owners),
	{SYS_fchownat, CALL, owners},
	{SYS_stat, CALL, owners},
	{SYS_lstat, CALL, owners},
	{SYS_fstat, CALL, owners},
	{SYS_newfstatat, CALL, owners},
	{SYS_newfstatat, AT_EMPTY_PATH, owners},
	{SYS_statx, CALL, owners},
	{SYS_statx, AT_EMPTY_PATH, owners},
	OF_I386{SYS_setrlimit, RLIMIT_LOCKS, limits},
	{SYS_setrlimit, RLIMIT_RSS, limits},
	{SYS_prlimit64, RLIMIT_LOCKS, limits},
	{SYS_prlimit64, RLIMIT_RSS, limits},
	{SYS_capget, CALL, capabilities},
	{SYS_capset, CALL, capabilities},
	{SYS_prctl, PR_SET_KEEPCAPS, capabilities},
	{SYS_prctl, PR_CAPBSET_READ, capabilities},
	{SYS_prctl, PR_CAPBSET_DROP, capabilities},
	{SYS_prctl, PR_CAP_AMBIENT, capabilities},
	{ROW_getsockopt, SO_PEERCRED, peer},
	{SYS_setpriority, PRIO_USER, of_a_user},
	{SYS_getpriority, PRIO_USER, of_a_user},
};
const size_t n_user_rows = N(user_rows);

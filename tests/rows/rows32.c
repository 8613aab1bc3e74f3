// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows that only 32-bit programs have: calls that x86-64 has not, and other generations of those it
 * has. What the other files test by the C library comes by whichever of them that uses.
 */
#include "tests/rows/rows.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/net.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

struct time64 {
	int64_t sec, nsec;
};

/* ---- processes ------------------------------------------------------------------------------- */

static pid_t ends(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(7);
	return pid;
}

static void waits(void)
{
	pid_t pid = ends();
	int status;

	ROW_CHECK(syscall(SYS_waitpid, pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	pid = ends();
	ROW_CHECK(syscall(SYS_waitpid, -2, &status, 0) == pid);
	ROW_FAILS(syscall(SYS_waitpid, ROW_NOBODY, &status, 0), ECHILD);
	ROW_CHECK(syscall(SYS_waitpid, row_child, &status, WNOHANG) == 0);
}

static void sleeps(void)
{
	uint64_t set = 1ULL << (SIGUSR1 - 1);
	struct time64 soon = {0, 1000}, ts;
	struct timespec old;
	clockid_t clock = (clockid_t)((unsigned)~row_child << 3 | 2),
		  none = (clockid_t)((unsigned)~ROW_NOBODY << 3 | 2);
	siginfo_t info;
	sigset_t block;

	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigprocmask(SIG_BLOCK, &block, NULL);
	ROW_CHECK(kill(row_self, SIGUSR1) == 0);
	ROW_CHECK(syscall(SYS_rt_sigtimedwait_time64, &set, &info, &soon, sizeof(set)) == SIGUSR1);
	ROW_CHECK(info.si_pid == row_self && info.si_code == SI_USER);
	ROW_CHECK(syscall(SYS_clock_gettime64, clock, &ts) == 0 &&
		  syscall(SYS_clock_gettime, clock, &old) == 0);
	ROW_FAILS(syscall(SYS_clock_gettime64, none, &ts), EINVAL);
	ROW_CHECK(syscall(SYS_clock_getres_time64, clock, &ts) == 0);
	ROW_FAILS(syscall(SYS_clock_getres_time64, none, &ts), EINVAL);
	ts = (struct time64){0};
	ROW_CHECK(syscall(SYS_clock_nanosleep_time64, clock, TIMER_ABSTIME, &ts, NULL) == 0);
	ROW_CHECK(syscall(SYS_sched_rr_get_interval_time64, row_child, &ts) == 0);
	ROW_FAILS(syscall(SYS_sched_rr_get_interval_time64, ROW_NOBODY, &ts), ESRCH);
}

static void maps(void)
{
	uint32_t args[6] = {
		0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, (uint32_t)-1, 0};
	uint32_t *word = (uint32_t *)syscall(SYS_mmap, args);

	ROW_CHECK(word != MAP_FAILED && *word == 0);
}

static void mutexes(void)
{
	static const int ops[] = {FUTEX_LOCK_PI, FUTEX_LOCK_PI2, FUTEX_TRYLOCK_PI};
	uint32_t *word =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct time64 soon = {.nsec = 1000};

	ROW_CHECK(word != MAP_FAILED);
	for (size_t i = 0; i < N(ops); i++) {
		*word = 0;
		ROW_CHECK(syscall(SYS_futex_time64, word, ops[i], 0, NULL, NULL, 0) == 0);
		ROW_CHECK((*word & FUTEX_TID_MASK) == (uint32_t)row_self);
		ROW_CHECK(syscall(SYS_futex_time64, word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0) == 0);
		ROW_CHECK(*word == 0);
	}
	word[1] = 0;
	ROW_CHECK(syscall(SYS_futex_time64, word, FUTEX_WAIT_REQUEUE_PI, 1, &soon, word + 1, 0) ==
		  -1);
	ROW_CHECK(syscall(SYS_futex_time64, word, FUTEX_CMP_REQUEUE_PI, 1, 0L, word + 1, 0) <= 0);
}

/* ---- locks, owners --------------------------------------------------------------------------- */

/* As the kernel has it for 32-bit programs. */
struct lock64 {
	int16_t type, whence;
	int64_t start, len;
	int32_t pid;
} __attribute__((packed));

static void locks(void)
{
	struct lock64 lock = {.type = F_WRLCK};
	struct flock old = {.l_type = F_WRLCK};
	int fd = (int)syscall(SYS_memfd_create, "locks", 0), status;
	pid_t pid;

	ROW_CHECK(syscall(SYS_fcntl64, fd, 13 /* F_SETLK64 */, &lock) == 0);
	pid = fork();
	if (pid == 0) {
		struct lock64 ofd = {.type = F_WRLCK};

		ROW_CHECK(syscall(SYS_fcntl64, fd, 12 /* F_GETLK64 */, &lock) == 0 &&
			  lock.pid == row_self);
		ROW_CHECK(syscall(SYS_fcntl64, fd, F_OFD_GETLK, &ofd) == 0 && ofd.pid == row_self);
		ROW_CHECK(syscall(SYS_fcntl64, fd, F_GETLK, &old) == 0 && old.l_pid == row_self);
		old = (struct flock){.l_type = F_WRLCK};
		ROW_CHECK(syscall(SYS_fcntl, fd, F_GETLK, &old) == 0 && old.l_pid == row_self);
		_exit(0);
	}
	ROW_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void owners(void)
{
	struct f_owner_ex ex = {F_OWNER_PID, row_child}, got;
	int s[2];

	ROW_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	for (int i = 0; i < 2; i++) {
		long nr = i ? SYS_fcntl64 : SYS_fcntl;

		ROW_CHECK(syscall(nr, s[i], F_SETOWN, row_child) == 0 &&
			  syscall(nr, s[i], F_GETOWN) == row_child);
		ROW_FAILS(syscall(nr, s[i], F_SETOWN, ROW_NOBODY), ESRCH);
		ROW_FAILS(syscall(nr, s[i], F_SETOWN, 1), EPERM);
		ROW_CHECK(syscall(nr, s[i], F_SETOWN_EX, &ex) == 0 &&
			  syscall(nr, s[i], F_GETOWN_EX, &got) == 0);
		ROW_CHECK(got.type == F_OWNER_PID && got.pid == row_child);
	}
}

/* ---- sockets --------------------------------------------------------------------------------- */

static long call_socket(int which, long a, long b, long c, long d, long e, long f)
{
	long args[6] = {a, b, c, d, e, f};

	return syscall(SYS_socketcall, which, args);
}

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(struct ucred))];
};

static struct msghdr message(union control *c, struct iovec *io, pid_t number)
{
	struct ucred cred = {number, getuid(), getgid()};
	struct msghdr m = {.msg_iov = io,
		.msg_iovlen = 1,
		.msg_control = c->space,
		.msg_controllen = sizeof(c->space)};
	struct cmsghdr *h;

	memset(c, 0, sizeof(*c));
	h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_CREDENTIALS;
	h->cmsg_len = CMSG_LEN(sizeof(cred));
	memcpy(CMSG_DATA(h), &cred, sizeof(cred));
	return m;
}

static pid_t number_in(struct msghdr *m)
{
	struct ucred cred = {0};

	memcpy(&cred, CMSG_DATA(CMSG_FIRSTHDR(m)), sizeof(cred));
	return cred.pid;
}

static void credentials(void)
{
	union control c;
	char byte = 'x';
	struct iovec io = {&byte, 1};
	struct mmsghdr many = {0};
	struct ucred peer = {0};
	struct time64 later = {10, 0};
	socklen_t len = sizeof(peer);
	struct msghdr m;
	int on = 1, s[2];

	ROW_CHECK(call_socket(SYS_SOCKETPAIR, AF_UNIX, SOCK_STREAM, 0, (long)s, 0, 0) == 0);
	ROW_CHECK(call_socket(SYS_SETSOCKOPT, s[1], SOL_SOCKET, SO_PASSCRED, (long)&on, sizeof(on),
			  0) == 0);
	ROW_CHECK(call_socket(SYS_GETSOCKOPT, s[0], SOL_SOCKET, SO_PEERCRED, (long)&peer,
			  (long)&len, 0) == 0);
	ROW_CHECK(peer.pid == row_self);
	/* Any other option is none of a process. */
	len = sizeof(on);
	ROW_CHECK(call_socket(SYS_GETSOCKOPT, s[0], SOL_SOCKET, SO_TYPE, (long)&on, (long)&len,
			  0) == 0);
	ROW_CHECK(on == SOCK_STREAM);
	m = message(&c, &io, row_self);
	ROW_CHECK(call_socket(SYS_SENDMSG, s[0], (long)&m, 0, 0, 0, 0) == 1 &&
		  number_in(&m) == row_self);
	m = message(&c, &io, 0);
	ROW_CHECK(call_socket(SYS_RECVMSG, s[1], (long)&m, 0, 0, 0, 0) == 1 &&
		  number_in(&m) == row_self);
	many.msg_hdr = message(&c, &io, row_self);
	ROW_CHECK(call_socket(SYS_SENDMMSG, s[0], (long)&many, 1, 0, 0, 0) == 1);
	many.msg_hdr = message(&c, &io, 0);
	ROW_CHECK(call_socket(SYS_RECVMMSG, s[1], (long)&many, 1, 0, 0, 0) == 1);
	ROW_CHECK(number_in(&many.msg_hdr) == row_self);
	ROW_CHECK(call_socket(SYS_SEND, s[0], (long)"y", 1, 0, 0, 0) == 1);
	many.msg_hdr = message(&c, &io, 0);
	ROW_CHECK(syscall(SYS_recvmmsg_time64, s[1], &many, 1, 0, &later) == 1);
	ROW_CHECK(number_in(&many.msg_hdr) == row_self);
	m = message(&c, &io, row_child);
	ROW_CHECK(call_socket(SYS_SENDMSG, s[0], (long)&m, 0, 0, 0, 0) == -1 && errno == EPERM);
	/* Of itself, it reads its arguments once: what is not there is EFAULT. */
	ROW_FAILS(syscall(SYS_socketcall, SYS_SENDMSG, NULL), EFAULT);
	ROW_FAILS(call_socket(SYS_SOCKET, AF_NETLINK, SOCK_DGRAM, 11, 0, 0, 0), EPERM);
}

static void addresses(void)
{
	struct sockaddr_un a = {AF_UNIX, "/tmp/rows32"}, got = {0};
	socklen_t len = sizeof(got);
	struct iovec io = {"x", 1};
	struct msghdr m = {
		.msg_name = &a, .msg_namelen = sizeof(a), .msg_iov = &io, .msg_iovlen = 1};
	int s = (int)call_socket(SYS_SOCKET, AF_UNIX, SOCK_DGRAM, 0, 0, 0, 0);
	int c = (int)call_socket(SYS_SOCKET, AF_UNIX, SOCK_DGRAM, 0, 0, 0, 0);

	unlink(a.sun_path);
	ROW_CHECK(s >= 0 && call_socket(SYS_BIND, s, (long)&a, sizeof(a), 0, 0, 0) == 0);
	ROW_CHECK(call_socket(SYS_GETSOCKNAME, s, (long)&got, (long)&len, 0, 0, 0) == 0);
	ROW_CHECK(strcmp(got.sun_path, a.sun_path) == 0);
	ROW_CHECK(call_socket(SYS_SENDTO, c, (long)"x", 1, 0, (long)&a, sizeof(a)) == 1);
	ROW_CHECK(call_socket(SYS_SENDMSG, c, (long)&m, 0, 0, 0, 0) == 1 && m.msg_name == &a);
	ROW_CHECK(call_socket(SYS_CONNECT, c, (long)&a, sizeof(a), 0, 0, 0) == 0);
	len = sizeof(got);
	ROW_CHECK(call_socket(SYS_GETPEERNAME, c, (long)&got, (long)&len, 0, 0, 0) == 0);
	ROW_CHECK(strcmp(got.sun_path, a.sun_path) == 0 && unlink(a.sun_path) == 0);
}

/* ---- System V -------------------------------------------------------------------------------- */

enum {
	OP = 1,
	SEMGET,
	SEMCTL,
	TIMEDOP,
	SEND = 11,
	RECEIVE,
	MSGGET,
	MSGCTL,
	AT = 21,
	DT,
	SHMGET,
	SHMCTL
};
#define NEW    (IPC_CREAT | IPC_EXCL | 0600)
#define IPC_64 0x100

static long ipc(int call, long first, long second, long third, const void *p, long fifth)
{
	return syscall(SYS_ipc, call, first, second, third, p, fifth);
}

static void by_one_call(void)
{
	struct sembuf up = {0, 1, 0}, down = {0, -1, IPC_NOWAIT};
	struct timespec soon = {0};
	int32_t value = 3;
	struct {
		long type;
		char text[4];
	} m = {1, "abc"};
	struct {
		void *to;
		long type;
	} where = {&m, 0};
	long id = ipc(SEMGET, 0x4712, 1, NEW, NULL, 0), at;
	uint32_t ds[32] = {0};

	ROW_CHECK(id >= 0 && ipc(SEMGET, 0x4712, 0, 0, NULL, 0) == id);
	ROW_CHECK(
		ipc(OP, id, 1, 0, &up, 0) == 0 && ipc(TIMEDOP, id, 1, 0, &down, (long)&soon) == 0);
	ROW_CHECK(ipc(SEMCTL, id, 0, SETVAL, &value, 0) == 0 &&
		  ipc(SEMCTL, id, 0, GETVAL, &value, 0) == 3);
	ROW_CHECK(ipc(SEMCTL, id, 0, GETPID, &value, 0) == row_self);
	ROW_CHECK(ipc(SEMCTL, id, 0, IPC_RMID, &value, 0) == 0);
	ROW_CHECK(ipc(OP, id, 1, 0, &up, 0) == -1 && (errno == EINVAL || errno == EIDRM));
	id = ipc(MSGGET, 0x4712, NEW, 0, NULL, 0);
	ROW_CHECK(id >= 0 && ipc(SEND, id, 4, 0, &m, 0) == 0 &&
		  ipc(RECEIVE, id, 4, 0, &where, 0) == 4);
	ROW_CHECK(
		ipc(MSGCTL, id, IPC_STAT | IPC_64, 0, ds, 0) == 0 && ds[18] == (uint32_t)row_self);
	ROW_CHECK(ds[0] == 0x4712 && ds[19] == (uint32_t)row_self);
	ROW_FAILS(ipc(MSGCTL, id, IPC_STAT, 0, ds, 0), EINVAL); /* of 16 bits */
	ROW_CHECK(ipc(MSGCTL, id, IPC_RMID, 0, NULL, 0) == 0);
	id = ipc(SHMGET, 0x4712, 4096, NEW, NULL, 0);
	ROW_CHECK(id >= 0 && ipc(AT, id, 0, (long)&at, NULL, 0) == 0 && *(char *)at == 0);
	ROW_CHECK(
		ipc(SHMCTL, id, IPC_STAT | IPC_64, 0, ds, 0) == 0 && ds[16] == (uint32_t)row_self);
	ROW_CHECK(ds[9] == 4096 && ds[17] == (uint32_t)row_self && ds[18] == 1);
	ROW_CHECK(
		ipc(DT, 0, 0, 0, (void *)at, 0) == 0 && ipc(SHMCTL, id, IPC_RMID, 0, NULL, 0) == 0);
	ROW_FAILS(ipc(99, 0, 0, 0, NULL, 0), ENOSYS);
}

/* The C library's structures, by whichever call it uses. */
static void structures(void)
{
	int shm = shmget(IPC_PRIVATE, 8192, NEW), sem = semget(IPC_PRIVATE, 2, NEW),
	    msg = msgget(IPC_PRIVATE, NEW);
	union {
		void *p;
		struct semid_ds *ds;
		unsigned short *all;
	} arg;
	unsigned short values[2] = {4, 5}, got[2] = {0};
	struct time64 soon = {0};
	struct sembuf down = {0, -1, IPC_NOWAIT};
	struct shmid_ds s;
	struct semid_ds e;
	struct msqid_ds q;

	ROW_CHECK(shmctl(shm, IPC_STAT, &s) == 0 && s.shm_segsz == 8192 && s.shm_cpid == row_self);
	s.shm_perm.mode = 0640;
	ROW_CHECK(shmctl(shm, IPC_SET, &s) == 0 && shmctl(shm, IPC_STAT, &s) == 0);
	ROW_CHECK((s.shm_perm.mode & 0777) == 0640 && s.shm_ctime > 1000000000);
	ROW_CHECK(shmctl(0, IPC_INFO, (struct shmid_ds *)(uint32_t[16]){0}) >= 0);
	ROW_CHECK(shmctl(0, SHM_INFO, (struct shmid_ds *)(uint32_t[16]){0}) >= 0);
	arg.all = values;
	ROW_CHECK(semctl(sem, 0, SETALL, arg) == 0);
	ROW_CHECK(syscall(SYS_semtimedop_time64, sem, &down, 1, &soon) == 0);
	arg.all = got;
	ROW_CHECK(semctl(sem, 0, GETALL, arg) == 0 && got[0] == 3 && got[1] == 5);
	arg.ds = &e;
	ROW_CHECK(
		semctl(sem, 0, IPC_STAT, arg) == 0 && e.sem_nsems == 2 && e.sem_ctime > 1000000000);
	ROW_CHECK(msgctl(msg, IPC_STAT, &q) == 0 && q.msg_qbytes > 0);
	q.msg_qbytes = 1024;
	ROW_CHECK(msgctl(msg, IPC_SET, &q) == 0 && msgctl(msg, IPC_STAT, &q) == 0 &&
		  q.msg_qbytes == 1024);
	shmctl(shm, IPC_RMID, NULL);
	semctl(sem, 0, IPC_RMID);
	msgctl(msg, IPC_RMID, NULL);
}

/* ---- files ----------------------------------------------------------------------------------- */

#define FILE_OF_IT "/tmp/rows32-file"

static void files(void)
{
	int fd = open(FILE_OF_IT, O_CREAT | O_RDWR, 0600);
	struct row_stat_at st;
	uint32_t fs[32];
	struct time64 ts[2] = {{5, 0}, {6, 0}};
	uid_t u = getuid();
	gid_t g = getgid();

	ROW_CHECK(fd >= 0 && write(fd, "123456", 6) == 6);
	ROW_CHECK(syscall(SYS_stat64, FILE_OF_IT, &st) == 0 && st.st_size == 6);
	ROW_CHECK(syscall(SYS_lstat64, FILE_OF_IT, &st) == 0 && S_ISREG(st.st_mode) && st.uid == u);
	ROW_CHECK(syscall(SYS_fstatat64, AT_FDCWD, FILE_OF_IT, &st, 0) == 0 && st.st_size == 6);
	ROW_CHECK(syscall(SYS_statfs64, FILE_OF_IT, 84L, fs) == 0);
	ROW_FAILS(syscall(SYS_statfs64, FILE_OF_IT "-none", 84L, fs), ENOENT);
	ROW_CHECK(syscall(SYS_truncate64, FILE_OF_IT, 2L, 0L) == 0);
	ROW_CHECK(syscall(SYS_stat64, FILE_OF_IT, &st) == 0 && st.st_size == 2);
	ROW_CHECK(syscall(SYS_chown32, FILE_OF_IT, u, g) == 0 &&
		  syscall(SYS_lchown32, FILE_OF_IT, u, g) == 0);
	ROW_CHECK(syscall(SYS_utimensat_time64, AT_FDCWD, FILE_OF_IT, ts, 0) == 0);
	ROW_CHECK(syscall(SYS_stat64, FILE_OF_IT, &st) == 0 && st.rest[6] == 6);
	/* As all others look from within, so does what the kernel fills in. */
	memset(&st, 0xff, sizeof(st));
	ROW_CHECK(syscall(SYS_fstat64, fd, &st) == 0 && st.st_size == 2 && st.uid == u &&
		  st.rest[6] == 6);
	ROW_FAILS(syscall(SYS_oldstat, FILE_OF_IT, &st), ENOSYS);
	ROW_FAILS(syscall(SYS_oldlstat, FILE_OF_IT, &st), ENOSYS);
	ROW_CHECK(unlink(FILE_OF_IT) == 0);
}

/* ---- host names ------------------------------------------------------------------------------ */

/* As names.c; these have no room for the domain's. */
static void host_names(void)
{
	char old[6][65] = {0}, oldest[6][9] = {0};

	memset(old[5], 'x', sizeof(old[5]));
	memset(oldest[5], 'x', sizeof(oldest[5]));
	if (syscall(SYS_olduname, old) == -1 && errno == EPERM)
		return; /* in a container */
	ROW_CHECK(strcmp(old[1], "rows") == 0);
	ROW_CHECK(syscall(SYS_oldolduname, oldest) == 0 && strcmp(oldest[1], "rows") == 0);
	ROW_CHECK(strcmp(old[4], "x86_64") == 0 || strcmp(old[4], "i686") == 0);
	ROW_CHECK(old[5][0] == 'x' && oldest[5][0] == 'x');
}

#define NEGATIVE 0x80000000U

const struct row other_rows[] = {
	{SYS_waitpid, CALL, waits},
	{SYS_rt_sigtimedwait_time64, CALL, sleeps},
	{SYS_clock_gettime64, NEGATIVE, sleeps},
	{SYS_clock_getres_time64, NEGATIVE, sleeps},
	{SYS_clock_nanosleep_time64, NEGATIVE, sleeps},
	{SYS_sched_rr_get_interval_time64, CALL, sleeps},
	{SYS_mmap, CALL, maps},
	{SYS_futex_time64, FUTEX_LOCK_PI, mutexes},
	{SYS_futex_time64, FUTEX_LOCK_PI2, mutexes},
	{SYS_futex_time64, FUTEX_TRYLOCK_PI, mutexes},
	{SYS_futex_time64, FUTEX_UNLOCK_PI, mutexes},
	{SYS_futex_time64, FUTEX_WAIT_REQUEUE_PI, mutexes},
	{SYS_futex_time64, FUTEX_CMP_REQUEUE_PI, mutexes},
	{SYS_fcntl64, F_GETLK, locks},
	{SYS_fcntl64, F_OFD_GETLK, locks},
	{SYS_fcntl64, 12, locks},
	{SYS_fcntl64, F_SETOWN, owners},
	{SYS_fcntl64, F_GETOWN, owners},
	{SYS_fcntl64, F_SETOWN_EX, owners},
	{SYS_fcntl64, F_GETOWN_EX, owners},
	{SYS_socketcall, SYS_SOCKET, credentials},
	{SYS_socketcall, SYS_GETSOCKOPT, credentials},
	{SYS_socketcall, SYS_SENDMSG, credentials},
	{SYS_socketcall, SYS_RECVMSG, credentials},
	{SYS_socketcall, SYS_SENDMMSG, credentials},
	{SYS_socketcall, SYS_RECVMMSG, credentials},
	{SYS_recvmmsg_time64, CALL, credentials},
	{SYS_socketcall, SYS_BIND, addresses},
	{SYS_socketcall, SYS_CONNECT, addresses},
	{SYS_socketcall, SYS_GETSOCKNAME, addresses},
	{SYS_socketcall, SYS_GETPEERNAME, addresses},
	{SYS_socketcall, SYS_SENDTO, addresses},
	{SYS_ipc, CALL, by_one_call},
	{SYS_semtimedop_time64, CALL, structures},
	{SYS_stat64, CALL, files},
	{SYS_lstat64, CALL, files},
	{SYS_statfs64, CALL, files},
	{SYS_truncate64, CALL, files},
	{SYS_chown32, CALL, files},
	{SYS_lchown32, CALL, files},
	{SYS_utimensat_time64, CALL, files},
	{SYS_oldstat, CALL, files},
	{SYS_oldlstat, CALL, files},
	{SYS_olduname, CALL, host_names},
	{SYS_oldolduname, CALL, host_names},
};
const size_t n_other_rows = N(other_rows);

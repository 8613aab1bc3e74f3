// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Objects and files by name.  The session's /tmp is not the host's, so whatever is found there by
 * a call was found by the session's path: on the host there is no /tmp/rows.
 */
#include "tests/rows/rows.h"

#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/*
 * ---- host name ------------------------------------------------------------------------------
 */

/* The session is started with --hostname rows. */
static void host_names(void)
{
	struct utsname u;

	ROW_CHECK(uname(&u) == 0 && strcmp(u.nodename, "rows") == 0 && u.release[0]);
	ROW_FAILS(sethostname("other", 5), EPERM);
	ROW_FAILS(setdomainname("other", 5), EPERM);
	ROW_CHECK(uname(&u) == 0 && strcmp(u.nodename, "rows") == 0);
	ROW_FAILS(syscall(SYS_uname, 8), EFAULT);
}

/*
 * ---- System V, queues -----------------------------------------------------------------------
 */

static void segments(void)
{
	int id = shmget(0x4711, 4096, IPC_CREAT | IPC_EXCL | 0600);
	struct shmid_ds ds;
	char *p;

	ROW_CHECK(id >= 0 && shmget(0x4711, 0, 0) == id);
	p = shmat(id, NULL, 0);
	ROW_CHECK(p != (void *)-1 && shmctl(id, IPC_STAT, &ds) == 0);
	ROW_CHECK(ds.shm_cpid == row_self && ds.shm_lpid == row_self && ds.shm_nattch == 1);
	ROW_CHECK(shmdt(p) == 0 && shmctl(id, IPC_RMID, NULL) == 0);
	ROW_FAILS(shmctl(id, IPC_STAT, &ds), EINVAL);
	ROW_FAILS(shmget(0x4711, 0, 0), ENOENT);
}

static void semaphores(void)
{
	int id = semget(0x4711, 2, IPC_CREAT | IPC_EXCL | 0600);
	struct sembuf up = {0, 1, 0}, down = {0, -1, IPC_NOWAIT};
	struct timespec soon = {0};

	ROW_CHECK(id >= 0 && semget(0x4711, 0, 0) == id && semop(id, &up, 1) == 0);
	ROW_CHECK(semctl(id, 0, GETVAL) == 1 && semctl(id, 0, GETPID) == row_self);
	ROW_CHECK(semtimedop(id, &down, 1, &soon) == 0 && semctl(id, 0, GETVAL) == 0);
	ROW_CHECK(semctl(id, 0, IPC_RMID) == 0);
	ROW_CHECK(semop(id, &up, 1) == -1 && (errno == EINVAL || errno == EIDRM));
}

static void messages(void)
{
	struct {
		long type;
		char text[4];
	} m = {1, "abc"};
	int id = msgget(0x4711, IPC_CREAT | IPC_EXCL | 0600);
	struct msqid_ds ds;

	ROW_CHECK(id >= 0 && msgget(0x4711, 0) == id && msgsnd(id, &m, 4, 0) == 0);
	ROW_CHECK(msgrcv(id, &m, 4, 0, 0) == 4 && msgctl(id, IPC_STAT, &ds) == 0);
	ROW_CHECK(ds.msg_lspid == row_self && ds.msg_lrpid == row_self);
	ROW_CHECK(msgctl(id, IPC_RMID, NULL) == 0 && msgget(0x4711, 0) == -1 && errno == ENOENT);
}

static void queues(void)
{
	mqd_t q = mq_open("/rows", O_CREAT | O_EXCL | O_RDWR, 0600, NULL);

	ROW_CHECK(q >= 0 && mq_send(q, "x", 1, 0) == 0 && mq_open("/rows", O_RDWR) >= 0);
	ROW_CHECK(mq_unlink("/rows") == 0);
	ROW_FAILS(mq_open("/rows", O_RDWR), ENOENT);
	ROW_FAILS(mq_unlink("/rows"), ENOENT);
}

/*
 * ---- files ----------------------------------------------------------------------------------
 */

#define TOP	   "/tmp/rows"
#define FILE_OF_IT TOP "/file"

/* A fresh directory with a file and a link to it; its descriptor. */
static int fresh(void)
{
	int fd;

	ROW_CHECK(system("rm -rf " TOP) == 0 && mkdir(TOP, 0700) == 0);
	fd = open(FILE_OF_IT, O_CREAT | O_WRONLY, 0600);
	ROW_CHECK(fd >= 0 && write(fd, "12345", 5) == 5 && close(fd) == 0);
	ROW_CHECK(symlink("file", TOP "/link") == 0);
	fd = open(TOP, O_RDONLY | O_DIRECTORY);
	ROW_CHECK(fd >= 0);
	return fd;
}

static void opens(void)
{
	int d = fresh();
	struct {
		uint64_t flags, mode, resolve;
	} how = {0};

	ROW_CHECK(syscall(SYS_open, FILE_OF_IT, O_RDONLY) >= 0 &&
		  syscall(SYS_openat, d, "link", O_RDWR) >= 0);
	ROW_CHECK(syscall(SYS_openat, AT_FDCWD, TOP "/new", O_CREAT | O_RDWR, 0600) >= 0);
	ROW_CHECK(syscall(SYS_openat, AT_FDCWD, TOP "/file", O_PATH) >= 0);
	ROW_CHECK(syscall(SYS_openat, AT_FDCWD, TOP, O_TMPFILE | O_RDWR, 0600) >= 0);
	ROW_CHECK(syscall(SYS_open, TOP "/newer", O_CREAT | O_RDWR, 0600) >= 0);
	ROW_CHECK(syscall(SYS_open, TOP "/file", O_PATH) >= 0 &&
		  syscall(SYS_open, TOP, O_TMPFILE | O_RDWR, 0600) >= 0);
	ROW_CHECK(syscall(SYS_openat2, AT_FDCWD, FILE_OF_IT, &how, sizeof(how)) >= 0);
	ROW_CHECK(syscall(SYS_creat, TOP "/newest", 0600) >= 0);
	ROW_FAILS(syscall(SYS_open, TOP "/none", O_RDONLY), ENOENT);
}

static void asks(void)
{
	int d = fresh();
	struct row_stat st;
	struct row_stat_at at;
	struct statx stx;
	struct statfs fs;
	char text[64];

	ROW_CHECK(syscall(SYS_stat, FILE_OF_IT, &st) == 0 && st.st_size == 5);
	ROW_CHECK(syscall(SYS_lstat, TOP "/link", &st) == 0 && S_ISLNK(st.st_mode));
	ROW_CHECK(syscall(SYS_newfstatat, d, "file", &at, 0) == 0 && at.st_size == 5);
	ROW_CHECK(syscall(SYS_statx, AT_FDCWD, FILE_OF_IT, 0, STATX_SIZE, &stx) == 0 &&
		  stx.stx_size == 5);
	/* A path all the same. */
	ROW_CHECK(syscall(SYS_newfstatat, AT_FDCWD, FILE_OF_IT, &at, AT_EMPTY_PATH) == 0 &&
		  at.st_size == 5);
	ROW_CHECK(syscall(SYS_statx, AT_FDCWD, FILE_OF_IT, AT_EMPTY_PATH, STATX_SIZE, &stx) == 0 &&
		  stx.stx_size == 5);
	ROW_CHECK(syscall(SYS_access, FILE_OF_IT, R_OK | W_OK) == 0);
	ROW_CHECK(syscall(SYS_faccessat, d, "file", R_OK) == 0);
	ROW_CHECK(syscall(SYS_faccessat2, AT_FDCWD, FILE_OF_IT, R_OK, 0) == 0);
	ROW_CHECK(syscall(SYS_readlink, TOP "/link", text, sizeof(text)) == 4);
	ROW_CHECK(syscall(SYS_readlinkat, d, "link", text, sizeof(text)) == 4);
	ROW_CHECK(syscall(SYS_statfs, FILE_OF_IT, &fs) == 0 &&
		  syscall(SYS_statfs, TOP "/none", &fs) == -1);
	ROW_CHECK(syscall(SYS_chdir, TOP) == 0 && syscall(SYS_getcwd, text, sizeof(text)) > 0);
	ROW_CHECK(strcmp(text, TOP) == 0 && chdir("/") == 0 && syscall(SYS_fchdir, d) == 0);
	ROW_CHECK(syscall(SYS_getcwd, text, sizeof(text)) > 0 && strcmp(text, TOP) == 0);
}

static void makes(void)
{
	int d = fresh();
	struct stat st;

	ROW_CHECK(
		syscall(SYS_mkdir, TOP "/d", 0700) == 0 && syscall(SYS_mkdirat, d, "e", 0700) == 0);
	ROW_CHECK(syscall(SYS_mknod, TOP "/p", S_IFIFO | 0600, 0) == 0);
	ROW_CHECK(syscall(SYS_mknodat, AT_FDCWD, TOP "/q", S_IFIFO | 0600, 0) == 0);
	ROW_CHECK(syscall(SYS_rename, TOP "/p", TOP "/r") == 0 &&
		  syscall(SYS_renameat, d, "q", d, "s") == 0);
	ROW_CHECK(syscall(SYS_renameat2, AT_FDCWD, TOP "/r", AT_FDCWD, TOP "/d/r", 1) == 0);
	ROW_CHECK(syscall(SYS_link, FILE_OF_IT, TOP "/hard") == 0 && stat(FILE_OF_IT, &st) == 0 &&
		  st.st_nlink == 2);
	ROW_CHECK(syscall(SYS_linkat, d, "file", AT_FDCWD, TOP "/d/hard", 0) == 0);
	ROW_CHECK(syscall(SYS_symlink, "x", TOP "/soft") == 0 &&
		  syscall(SYS_symlinkat, "x", d, "soft2") == 0);
	ROW_CHECK(
		syscall(SYS_unlink, TOP "/soft") == 0 && syscall(SYS_unlinkat, d, "soft2", 0) == 0);
	ROW_CHECK(syscall(SYS_rmdir, TOP "/e") == 0 && syscall(SYS_rmdir, TOP "/none") == -1);
	ROW_CHECK(syscall(SYS_truncate, FILE_OF_IT, 3L) == 0 && stat(FILE_OF_IT, &st) == 0 &&
		  st.st_size == 3);
}

static void changes(void)
{
	int d = fresh();
	struct timespec ts[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct timeval tv[2] = {{.tv_sec = 2}, {.tv_sec = 2}};
	long old[2] = {3, 3};
	uid_t u = getuid();
	gid_t g = getgid();
	struct stat st;

	ROW_CHECK(syscall(SYS_chmod, FILE_OF_IT, 0640) == 0 &&
		  syscall(SYS_fchmodat, d, "file", 0644) == 0);
	ROW_CHECK(syscall(SYS_fchmodat2, d, "file", 0600, 0) == 0 || errno == ENOSYS ||
		  errno == EPERM);
	ROW_CHECK(syscall(SYS_chown, FILE_OF_IT, u, g) == 0 &&
		  syscall(SYS_lchown, TOP "/link", u, g) == 0);
	ROW_CHECK(syscall(SYS_fchownat, d, "file", u, g, 0) == 0);
	ROW_CHECK(syscall(SYS_utimensat, AT_FDCWD, FILE_OF_IT, ts, 0) == 0 &&
		  stat(FILE_OF_IT, &st) == 0);
	ROW_CHECK(st.st_mtime == 1 && syscall(SYS_utimes, FILE_OF_IT, tv) == 0 &&
		  stat(FILE_OF_IT, &st) == 0);
	ROW_CHECK(st.st_mtime == 2 && syscall(SYS_utime, FILE_OF_IT, old) == 0 &&
		  stat(FILE_OF_IT, &st) == 0);
	ROW_CHECK(st.st_mtime == 3 && syscall(SYS_futimesat, d, "file", tv) == 0);
}

/* The session's file is found: what it lacks is the attribute, or the file system has none. */
static void attributes(void)
{
	char v[16];

	fresh();
#define FOUND(call) ROW_CHECK((errno = 0, (call)) >= 0 || errno == ENODATA || errno == EOPNOTSUPP)
	FOUND(syscall(SYS_setxattr, FILE_OF_IT, "user.a", "1", 1L, 0));
	FOUND(syscall(SYS_lsetxattr, FILE_OF_IT, "user.b", "2", 1L, 0));
	FOUND(syscall(SYS_getxattr, FILE_OF_IT, "user.a", v, sizeof(v)));
	FOUND(syscall(SYS_lgetxattr, FILE_OF_IT, "user.a", v, sizeof(v)));
	FOUND(syscall(SYS_listxattr, FILE_OF_IT, NULL, 0L));
	FOUND(syscall(SYS_llistxattr, FILE_OF_IT, NULL, 0L));
	FOUND(syscall(SYS_removexattr, FILE_OF_IT, "user.a"));
	FOUND(syscall(SYS_lremovexattr, FILE_OF_IT, "user.b"));
	/*
	 * Newer ones, which a container engine or a kernel may not know: the path is never what
	 * fails.
	 */
	for (int nr = 463; nr < 470; nr++) {
		uint64_t room[3] = {0};

		if (nr == 468)
			ROW_CHECK(syscall(nr, AT_FDCWD, FILE_OF_IT, room, sizeof(room), 0) == 0 ||
				  errno != ENOENT);
		else if (nr != 467)
			ROW_CHECK(syscall(nr, AT_FDCWD, FILE_OF_IT, 0, NULL, 0L, 0) == 0 ||
				  errno != ENOENT);
	}
}

/* Some containers refuse to. */
static void parts(void)
{
	fresh();
	ROW_CHECK(syscall(SYS_unshare, CLONE_FS) == 0 || errno == EPERM);
	ROW_CHECK(chdir(TOP) == 0 && access("../rows", F_OK) == 0);
	ROW_FAILS(access("../none", F_OK), ENOENT);
}

static void watches(void)
{
	struct {
		struct file_handle h;
		unsigned char rest[128];
	} handle = {.h.handle_bytes = 128};
	int fd = inotify_init1(0), mount;

	fresh();
	ROW_CHECK(syscall(SYS_inotify_add_watch, fd, TOP, IN_CREATE) >= 0);
	ROW_FAILS(syscall(SYS_inotify_add_watch, fd, TOP "/none", IN_CREATE), ENOENT);
	ROW_CHECK(syscall(SYS_name_to_handle_at, AT_FDCWD, FILE_OF_IT, &handle, &mount, 0) == 0 ||
		  errno == EOPNOTSUPP);
}

static void programs(void)
{
	char *argv[] = {"sh", "-c", "exit 5", NULL}, *envp[] = {NULL};

	fresh();
	ROW_CHECK(system("cp /bin/sh " TOP "/sh") == 0);
	for (int way = 0; way < 2; way++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			if (way)
				syscall(SYS_execveat, AT_FDCWD, TOP "/sh", argv, envp, 0);
			else
				syscall(SYS_execve, TOP "/sh", argv, envp);
			_exit(1);
		}
		ROW_CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5);
	}
}

static void addresses(void)
{
	struct sockaddr_un a = {AF_UNIX, TOP "/socket"}, got = {0};
	socklen_t len = sizeof(got);
	int s = socket(AF_UNIX, SOCK_DGRAM, 0), c = socket(AF_UNIX, SOCK_DGRAM, 0);

	fresh();
	ROW_CHECK(syscall(SYS_bind, s, &a, sizeof(a)) == 0);
	ROW_CHECK(syscall(SYS_getsockname, s, &got, &len) == 0 &&
		  strcmp(got.sun_path, a.sun_path) == 0);
	ROW_CHECK(syscall(SYS_sendto, c, "x", 1L, 0, &a, sizeof(a)) == 1);
	ROW_CHECK(syscall(SYS_connect, c, &a, sizeof(a)) == 0);
	len = sizeof(got);
	ROW_CHECK(syscall(SYS_getpeername, c, &got, &len) == 0 &&
		  strcmp(got.sun_path, a.sun_path) == 0);
}

#define TMPFILE (O_TMPFILE & ~O_DIRECTORY)

const struct row name_rows[] = {
#ifndef __i386__
	{SYS_semop, CALL, semaphores},
	{SYS_semtimedop, CALL, semaphores},
#endif
	{SYS_shmget, CALL, segments},
	{SYS_shmctl, CALL, segments},
	{SYS_shmat, CALL, segments},
	{SYS_semget, CALL, semaphores},
	{SYS_semctl, CALL, semaphores},
	{SYS_msgget, CALL, messages},
	{SYS_msgctl, CALL, messages},
	{SYS_msgsnd, CALL, messages},
	{SYS_msgrcv, CALL, messages},
	{SYS_mq_open, CALL, queues},
	{SYS_mq_unlink, CALL, queues},
	{SYS_open, CALL, opens},
	{SYS_open, O_CREAT, opens},
	{SYS_open, O_PATH, opens},
	{SYS_open, TMPFILE, opens},
	{SYS_openat, CALL, opens},
	{SYS_openat, O_CREAT, opens},
	{SYS_openat, O_PATH, opens},
	{SYS_openat, TMPFILE, opens},
	{SYS_openat2, CALL, opens},
	{SYS_creat, CALL, opens},
	{SYS_stat, CALL, asks},
	{SYS_lstat, CALL, asks},
	{SYS_newfstatat, CALL, asks},
	{SYS_newfstatat, (uint32_t)AT_FDCWD, asks},
	{SYS_statx, CALL, asks},
	{SYS_statx, (uint32_t)AT_FDCWD, asks},
	{SYS_access, CALL, asks},
	{SYS_faccessat, CALL, asks},
	{SYS_faccessat2, CALL, asks},
	{SYS_readlink, CALL, asks},
	{SYS_readlinkat, CALL, asks},
	{SYS_statfs, CALL, asks},
	{SYS_chdir, CALL, asks},
	{SYS_fchdir, CALL, asks},
	{SYS_getcwd, CALL, asks},
	{SYS_mkdir, CALL, makes},
	{SYS_mkdirat, CALL, makes},
	{SYS_mknod, CALL, makes},
	{SYS_mknodat, CALL, makes},
	{SYS_rmdir, CALL, makes},
	{SYS_unlink, CALL, makes},
	{SYS_unlinkat, CALL, makes},
	{SYS_rename, CALL, makes},
	{SYS_renameat, CALL, makes},
	{SYS_renameat2, CALL, makes},
	{SYS_link, CALL, makes},
	{SYS_linkat, CALL, makes},
	{SYS_symlink, CALL, makes},
	{SYS_symlinkat, CALL, makes},
	{SYS_truncate, CALL, makes},
	{SYS_chmod, CALL, changes},
	{SYS_fchmodat, CALL, changes},
	{SYS_fchmodat2, CALL, changes},
	{SYS_chown, CALL, changes},
	{SYS_lchown, CALL, changes},
	{SYS_fchownat, CALL, changes},
	{SYS_utime, CALL, changes},
	{SYS_utimes, CALL, changes},
	{SYS_futimesat, CALL, changes},
	{SYS_utimensat, CALL, changes},
	{SYS_setxattr, CALL, attributes},
	{SYS_lsetxattr, CALL, attributes},
	{SYS_getxattr, CALL, attributes},
	{SYS_lgetxattr, CALL, attributes},
	{SYS_listxattr, CALL, attributes},
	{SYS_llistxattr, CALL, attributes},
	{SYS_removexattr, CALL, attributes},
	{SYS_lremovexattr, CALL, attributes},
	{463, CALL, attributes},
	{464, CALL, attributes},
	{465, CALL, attributes},
	{466, CALL, attributes},
	{468, CALL, attributes},
	{469, CALL, attributes},
	{SYS_inotify_add_watch, CALL, watches},
	{SYS_name_to_handle_at, CALL, watches},
	{SYS_unshare, CLONE_FS, parts},
	{SYS_execve, CALL, programs},
	{SYS_execveat, CALL, programs},
	{SYS_bind, CALL, addresses},
	{SYS_connect, CALL, addresses},
	{SYS_sendto, CALL, addresses},
	{SYS_getsockname, CALL, addresses},
	{SYS_getpeername, CALL, addresses},
	{SYS_uname, CALL, host_names},
	{SYS_sethostname, CALL, host_names},
	{SYS_setdomainname, CALL, host_names},
};
const size_t n_name_rows = N(name_rows);

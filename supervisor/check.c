// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Each row is tried rather than looked up: a sysctl that allows something is no promise that the
 * next layer does.  A try runs in a child of its own, which it may change for good - enter
 * namespaces, install filters - and which is killed if it hangs.
 */
#include "supervisor/check.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <linux/magic.h>

#include "base/base.h"
#include "display/display.h"
#include "supervisor/world/cgroup.h"
#include "supervisor/world/fence.h"
#include "vnet/vnet.h"

#define DEADLINE_MS 5000

/* ---- the tries: true if it works; each runs in a child of its own --------------------------- */

static bool own_namespace(int flags)
{
	return unshare(CLONE_NEWUSER | flags) == 0;
}

/* Ids are mapped, too: a security module may let anybody make a user namespace, and forbid all in it. */
static bool with_ids(int flags)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char users[64], groups[64];

	snprintf(users, sizeof(users), "0 %u 1", uid);
	snprintf(groups, sizeof(groups), "0 %u 1", gid);
	return own_namespace(flags) && io_write_str(AT_FDCWD, "/proc/self/setgroups", "deny") == 0 &&
	       io_write_str(AT_FDCWD, "/proc/self/uid_map", users) == 0 &&
	       io_write_str(AT_FDCWD, "/proc/self/gid_map", groups) == 0;
}

static bool try_user(void)
{
	return with_ids(0);
}

static bool try_pid(void)
{
	return own_namespace(CLONE_NEWPID);
}

static bool try_mount(void)
{
	return own_namespace(CLONE_NEWNS) && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static bool try_net(void)
{
	return own_namespace(CLONE_NEWNET);
}

static bool try_ipc(void)
{
	return own_namespace(CLONE_NEWIPC | CLONE_NEWUTS);
}

static bool try_time(void)
{
	return own_namespace(CLONE_NEWTIME);
}

/* With ids mapped, and mounts of its own. */
static bool mapped_namespace(int flags)
{
	return with_ids(CLONE_NEWNS | flags) && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* An overlay of two fresh directories, in a tmpfs of our own. */
static bool try_overlay(void)
{
	if (!mapped_namespace(0) || mount("none", "/tmp", "tmpfs", 0, NULL) < 0)
		return false;
	return mkdir("/tmp/l", 0700) == 0 && mkdir("/tmp/u", 0700) == 0 && mkdir("/tmp/w", 0700) == 0 &&
		mkdir("/tmp/m", 0700) == 0 &&
		mount("overlay", "/tmp/m", "overlay", 0,
			"lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w,userxattr") == 0;
}

static bool try_set_tid(void)
{
	pid_t wanted = 300;
	struct clone_args args = {.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&wanted,
		.set_tid_size = 1};
	pid_t init;
	int status;

	if (!own_namespace(CLONE_NEWPID))
		return false;
	init = fork();
	if (init == 0) {
		pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

		_exit(child == 0 || child == wanted ? 0 : 1);
	}
	return init > 0 && waitpid(init, &status, 0) == init && status == 0;
}

/* 0 or a negative errno. */
static int listen_to_calls(void)
{
	struct sock_filter allow[] = {{.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW}};
	struct sock_fprog program = {.len = 1, .filter = allow};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		       &program) < 0 ? -errno : 0;
}

static bool try_notify(void)
{
	int r = listen_to_calls();

	return r == 0 || r == -EBUSY;
}

static bool try_listener(void)
{
	return listen_to_calls() != -EBUSY;
}

static bool try_ptrace(void)
{
	pid_t child = fork();
	bool ok;

	if (child == 0) {
		pause();
		_exit(0);
	}
	ok = child > 0 && ptrace(PTRACE_SEIZE, child, 0, 0) == 0;
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return ok;
}

static bool try_pidfd_getfd(void)
{
	int self = sys_pidfd_open(getpid(), 0);

	return self >= 0 && sys_pidfd_getfd(self, 0) >= 0;
}

static bool try_kcmp(void)
{
	return sys_kcmp(getpid(), getpid(), SYS_KCMP_FILE, 0, 0) == 0;
}

static bool try_pagemap_scan(void)
{
	struct page_region region;
	static char page[2 * PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
	struct pm_scan_arg arg = {.size = sizeof(arg),
		.start = (uint64_t)(uintptr_t)page,
		.end = (uint64_t)(uintptr_t)page + PAGE_SIZE,
		.vec = (uint64_t)(uintptr_t)&region,
		.vec_len = 1,
		.category_anyof_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
		.return_mask = PAGE_IS_PRESENT};
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	page[0] = 1;
	return fd >= 0 && ioctl(fd, PAGEMAP_SCAN, &arg) >= 0;
}

static bool try_timer_ids(void)
{
	return prctl(PR_TIMER_CREATE_RESTORE_IDS, PR_TIMER_CREATE_RESTORE_IDS_ON, 0, 0, 0) == 0;
}

/* A fresh /proc is given only where the host's own is not covered in parts. */
static bool try_proc(void)
{
	int status;
	pid_t child;

	if (!mapped_namespace(CLONE_NEWPID))
		return false;
	child = fork();
	if (child == 0)
		_exit(mount("proc", "/proc", "proc", 0, NULL) < 0);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/*
 * A place of podrun's own (disk/paths.h), or as much of its path as there is; true if it is all of
 * it.
 */
static bool own_place(char *ret, size_t size, const char *variable, const char *below,
	const char *more)
{
	const char *x = getenv(variable), *home = getenv("HOME");
	bool whole = true;
	struct stat st;
	int n;

	if (x && x[0] == '/')
		n = snprintf(ret, size, "%s/podrun%s", x, more);
	else
		n = snprintf(ret, size, "%s/%s/podrun%s", home && home[0] == '/' ? home : "", below,
			more);
	while (n < (int)size && lstat(ret, &st) < 0 && strrchr(ret, '/') > ret) {
		*strrchr(ret, '/') = '\0';
		whole = false;
	}
	if (lstat(ret, &st) < 0)
		snprintf(ret, size, "/");
	return whole;
}

#define STATE_PLACE  "XDG_STATE_HOME", ".local/state"
#define CONFIG_PLACE "XDG_CONFIG_HOME", ".config"

/* Where sessions' own files lie must be able to hold the upper layer of an overlay. */
static bool try_state(void)
{
	char path[PATH_MAX];
	struct statfs fs;

	own_place(path, sizeof(path), STATE_PLACE, "");
	return statfs(path, &fs) == 0 && fs.f_type != OVERLAYFS_SUPER_MAGIC &&
	       fs.f_type != NFS_SUPER_MAGIC && fs.f_type != FUSE_SUPER_MAGIC &&
	       fs.f_type != V9FS_MAGIC;
}

static bool writable(const char *variable, const char *below, const char *more)
{
	char path[PATH_MAX];
	bool whole = own_place(path, sizeof(path), variable, below, more);
	struct stat st;

	/* no link where it is podrun's own */
	return (whole ? lstat(path, &st) : stat(path, &st)) == 0 && S_ISDIR(st.st_mode) &&
	       (!whole || st.st_uid == geteuid()) && access(path, W_OK | X_OK) == 0;
}

static bool try_writable(void)
{
	char key[PATH_MAX];
	bool has_key = own_place(key, sizeof(key), CONFIG_PLACE, "/key");

	return writable(STATE_PLACE, "/sessions") && writable(STATE_PLACE, "/images") &&
	       writable(STATE_PLACE, "") &&
	       (has_key || writable(CONFIG_PLACE, ""));
}

static bool try_ns_last_pid(void)
{
	return access("/proc/sys/kernel/ns_last_pid", F_OK) == 0;
}

static bool try_tun(void)
{
	struct ifreq ifr = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int fd;

	if (!own_namespace(CLONE_NEWNET))
		return false;
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	return fd >= 0 && ioctl(fd, TUNSETIFF, &ifr) == 0;
}

static bool try_veth(void)
{
	struct err ignored = {0};

	return own_namespace(CLONE_NEWNET) && vnet_veth_probe(&ignored) == 0;
}

/* ping(8) needs no privilege for such a socket: icmp(7). */
static bool try_ping(void)
{
	return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP) >= 0;
}

static bool try_fuse(void)
{
	return access("/dev/fuse", R_OK | W_OK) == 0;
}

static int open_userfaultfd(uint64_t features)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 ? fd : -1;
}

static bool try_write_tracking(void)
{
	return open_userfaultfd(UFFD_FEATURE_WP_ASYNC) >= 0;
}

/* Soft-dirty bits: bit 55 of a page just written to. */
static bool try_soft_dirty(void)
{
	static char page[2 * PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	page[0] = 1;
	return fd >= 0 &&
	       pread(fd, &entry, sizeof(entry),
		       (off_t)((uintptr_t)page / PAGE_SIZE * sizeof(entry))) == sizeof(entry) &&
	       entry >> 55 & 1;
}

static bool has_line_for_user(const char *file)
{
	_cleanup_fclose_ FILE *f = fopen(file, "re");
	struct passwd *pw = getpwuid(getuid());
	char line[256];

	while (f && pw && fgets(line, sizeof(line), f))
		if (!strncmp(line, pw->pw_name, strlen(pw->pw_name)) &&
			line[strlen(pw->pw_name)] == ':')
			return true;
	return false;
}

static bool try_landlock(void)
{
	return fence_version() > 0;
}

static bool try_landlock_scopes(void)
{
	return fence_scopes(fence_version());
}

/* By the PATH that sessions have, too. */
static bool has_program(const char *name)
{
	const char *path = getenv("PATH");
	_cleanup_free_ char *dirs = strdup(path ? path : "/usr/local/bin:/usr/bin:/bin");
	char *save = NULL, program[PATH_MAX];

	for (char *dir = dirs ? strtok_r(dirs, ":", &save) : NULL; dir;
		dir = strtok_r(NULL, ":", &save)) {
		snprintf(program, sizeof(program), "%s/%s", dir, name);
		if (access(program, X_OK) == 0)
			return true;
	}
	return false;
}

static bool try_xvfb(void)
{
	return has_program("Xvfb");
}

static bool try_sound(void)
{
	return display_sound_built() && has_program("pulseaudio");
}

static bool try_subids(void)
{
	return has_line_for_user("/etc/subuid") && has_line_for_user("/etc/subgid") &&
	       (access("/usr/bin/newuidmap", X_OK) == 0 || access("/bin/newuidmap", X_OK) == 0);
}

const struct check checks[] = {
	{"user-namespaces", CHECK_NAMES, try_user, "the kernel holds no names for a session",
		"sysctl kernel.unprivileged_userns_clone=1; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0, "
		"or an AppArmor profile that allows userns; in a container, a seccomp profile that allows unshare"},
	{"pid-namespaces", CHECK_NAMES, try_pid, "PIDs can't be virtual", "sysctl user.max_pid_namespaces"},
	{"mount-namespaces", CHECK_NAMES, try_mount, "no file view of its own", "sysctl user.max_mnt_namespaces"},
	{"net-namespaces", CHECK_NAMES, try_net, "no loopback of its own", "sysctl user.max_net_namespaces"},
	{"ipc-namespaces", CHECK_NAMES, try_ipc, "IPC keys can't be virtual", "sysctl user.max_ipc_namespaces"},
	{"time-namespaces", CHECK_MORE, try_time, "monotonic time jumps when a session is resumed",
		"Linux 5.6 with CONFIG_TIME_NS"},
	{"overlay", CHECK_FILES, try_overlay, "sessions can't write to the host's files in layers of their own",
		"Linux 5.11"},
	{"state-directory", CHECK_FILES, try_state, "sessions' own layers can't lie there",
		"XDG_STATE_HOME on a local file system: ext4, xfs, btrfs, tmpfs (Linux 6.6)"},
	{"state-writable", CHECK_ALL, try_writable, "records, images and keys can't be kept",
		"XDG_STATE_HOME and XDG_CONFIG_HOME, or HOME, at directories of yours that you may "
		"write to"},
	{"proc", CHECK_NAMES, try_proc, "no /proc of its own",
		"in a container: run it with its /proc unmasked (systempaths=unconfined)"},
	{"seccomp-notify", CHECK_ALL, try_notify, "the session's calls can't be checked", "Linux 5.19"},
	{"no-listener", CHECK_ALL, try_listener, "a program around podrun listens to all calls made "
		"here, and only one can", "start podrun outside of that container or sandbox, or have it started without "
		"the listener of its seccomp profile"},
	{"ptrace", CHECK_ALL, try_ptrace, "sessions can't be frozen", "sysctl kernel.yama.ptrace_scope=1 or 0"},
	{"set-tid", CHECK_MOVES, try_set_tid,
		"where the kernel has the names resumed processes can't have their PIDs",
		"Linux 5.9; in a container, a seccomp profile that allows clone3"},
	{"ns-last-pid", CHECK_MOVES, try_ns_last_pid,
		"where the kernel has the names resumed processes can't have their PIDs",
		"CONFIG_CHECKPOINT_RESTORE"},
	{"pidfd-getfd", CHECK_MOVES, try_pidfd_getfd, "where the kernel has the names descriptors can't be looked at",
		"Linux 5.6; in a container, a seccomp profile that allows pidfd_getfd"},
	{"kcmp", CHECK_MOVES, try_kcmp, "where the kernel has the names shared open files can't be told apart",
		"CONFIG_KCMP; in a container, a seccomp profile that allows kcmp"},
	{"pagemap-scan", CHECK_MORE, try_pagemap_scan, "finding touched memory is slower", "Linux 6.7"},
	{"timer-ids", CHECK_MORE, try_timer_ids, "restoring POSIX timers with large ids is slower",
		"Linux 6.16"},
	{"write-tracking", CHECK_MORE, try_write_tracking, "a live migration copies more than once",
		"Linux 6.7; in a container, a seccomp profile that allows userfaultfd"},
	{"soft-dirty", CHECK_MORE, try_soft_dirty, "one way less to track writes",
		"CONFIG_MEM_SOFT_DIRTY; not needed with write-tracking"},
	{"tun", CHECK_MORE, try_tun, "no addresses of a session's own (--net vnat), only a loopback or the host's network",
		"chmod 0666 /dev/net/tun, as it is on most systems; in a container, --device /dev/net/tun"},
	{"veth", CHECK_MORE, try_veth, "bulk is slower with --net vnat: the kernel can't carry it, and a large transfer "
		"costs the gateway about twice the CPU",
		"CONFIG_VETH and CONFIG_NF_TABLES with _IPV4 and _IPV6; where the kernel doesn't load modules by itself, "
		"modprobe -a veth nf_tables"},
	{"ping", CHECK_MORE, try_ping, "sessions with --net vnat can ping nobody outside",
		"sysctl net.ipv4.ping_group_range='0 2147483647'"},
	{"fuse", CHECK_MORE, try_fuse, "memory can't be fetched lazily", "/dev/fuse, readable and writable"},
	{"landlock", CHECK_MORE, try_landlock, "where names are rewritten a program that is set on it can open what the "
		"host has in /tmp, /run and /proc", "Linux 5.19 with CONFIG_SECURITY_LANDLOCK, landlock in lsm=; in a "
		"container, a seccomp profile that allows landlock_create_ruleset"},
	{"landlock-scopes", CHECK_MORE, try_landlock_scopes, "where names are rewritten abstract sockets of the host are "
		"within reach", "Linux 6.12"},
	{"subordinate-ids", CHECK_MORE, try_subids, "users of a root inside are all the same to the kernel",
		"newuidmap (package uidmap), lines in /etc/subuid and /etc/subgid"},
	{"display", CHECK_MORE, try_xvfb, "sessions have no displays of their own (--display)",
		"Xvfb (package xvfb)"},
	{"sound", CHECK_MORE, try_sound, "what is played in a session with a display isn't heard",
		"PulseAudio (package pulseaudio), and podrun built with Opus (package libopus-dev)"},
	{"memory-limit", CHECK_MORE, cgroup_is_delegated, "--memory is refused",
		"a delegated cgroup: run under systemd-run --user --scope -p Delegate=yes"},
};
const size_t n_checks = ARRAY_SIZE(checks);

const struct check_weaker checks_weaker[] = {
	{"isolation", "no namespace keeps the session in, but podrun's filter and tracer alone"},
	{"network", "the host's: no loopback of its own, no --net none, no --net vnat, no --net passthrough"},
	{"connections", "to the outside can't be kept: a suspend refuses while there are any, or closes or resets them "
		"(--outside); ports that it listens on are opened again"},
	{"files", "/tmp, /run, /dev/shm, /proc and volumes are its own; all others are the host's as they are, without a "
		"layer in between, and so are those of --root"},
	{"hidden files", "names and attributes of what is hidden can be found out, and sockets with a path be reached, "
		"by a program that is set on it; podrun's own state in a home directory be read"},
	{"ipc", "System V IPC and POSIX queues are its own, but /dev/mqueue lists none"},
	{"users", "--user root without a layer over the host's files: what only root may read or write stays closed"},
	{"programs", "debuggers (ptrace) are refused"},
	{"copies", "a clone or a snapshot's copy can't have ports and abstract sockets that are taken, nor files of the "
		"host's open for writing"},
	{"speed", "fork, wait, signals and getpid cost two to forty times as much"},
};
const size_t n_checks_weaker = ARRAY_SIZE(checks_weaker);

const struct check *check_lacking_names(void)
{
	for (size_t i = 0; i < n_checks; i++)
		if (checks[i].need == CHECK_NAMES && !check_works(&checks[i]))
			return &checks[i];
	return NULL;
}

bool check_works(const struct check *check)
{
	int status = -1, pidfd;
	struct pollfd p;
	pid_t child;

	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(check->try() ? 0 : 1);
	}
	if (child < 0)
		return false;
	pidfd = sys_pidfd_open(child, 0);
	p = (struct pollfd){pidfd, POLLIN, 0};
	if (pidfd >= 0 && poll(&p, 1, DEADLINE_MS) <= 0)
		kill(child, SIGKILL);
	close_fd(pidfd);
	return waitpid(child, &status, 0) == child && status == 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun check: what this host offers.  Each row of the table is tried, in a child process, rather
 * than looked up: a sysctl that allows something is no promise that the next layer does.
 */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"

struct check_options {
	bool json;
};

static const struct cli_option options[] = {
	{"json", 0, NULL, "as JSON", CLI_FLAG, offsetof(struct check_options, json)},
};

/* ---- the tries: true if it works; each runs in a child of its own --------------------------- */

static bool own_namespace(int flags)
{
	return unshare(CLONE_NEWUSER | flags) == 0;
}

static bool try_user(void)
{
	return own_namespace(0);
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

/* An overlay of two fresh directories, in a tmpfs of our own. */
static bool try_overlay(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char users[64], groups[64];

	if (!own_namespace(CLONE_NEWNS) || io_write_str(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
		return false;
	snprintf(users, sizeof(users), "0 %u 1", uid);
	snprintf(groups, sizeof(groups), "0 %u 1", gid);
	if (io_write_str(AT_FDCWD, "/proc/self/uid_map", users) < 0 ||
		io_write_str(AT_FDCWD, "/proc/self/gid_map", groups) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", "/tmp", "tmpfs", 0, NULL) < 0)
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

static bool try_notify(void)
{
	struct sock_filter allow[] = {{.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW}};
	struct sock_fprog program = {.len = 1, .filter = allow};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		       &program) >= 0;
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

static const struct check {
	const char *name;
	bool needed; /* nothing works without it */
	bool (*try)(void);
	const char *lost; /* without it */
	const char *get;  /* how to get it */
} checks[] = {
	{"user-namespaces", true, try_user, "sessions can't be started",
		"sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile that allows userns; in "
		"a container, a seccomp profile that allows unshare"},
	{"pid-namespaces", true, try_pid, "PIDs can't be virtual", "sysctl user.max_pid_namespaces"},
	{"mount-namespaces", true, try_mount, "no file view of its own", "sysctl user.max_mnt_namespaces"},
	{"net-namespaces", true, try_net, "no loopback of its own", "sysctl user.max_net_namespaces"},
	{"ipc-namespaces", true, try_ipc, "IPC keys can't be virtual", "sysctl user.max_ipc_namespaces"},
	{"time-namespaces", false, try_time, "monotonic time jumps when a session is resumed",
		"Linux 5.6 with CONFIG_TIME_NS"},
	{"overlay", true, try_overlay, "sessions can't write to the host's files in layers of their own",
		"Linux 5.11"},
	{"seccomp-notify", true, try_notify, "the session's calls can't be checked", "Linux 5.19"},
	{"ptrace", true, try_ptrace, "sessions can't be frozen", "sysctl kernel.yama.ptrace_scope=1 or 0"},
	{"set-tid", true, try_set_tid, "resumed processes can't have their PIDs", "Linux 5.9"},
	{"pidfd-getfd", true, try_pidfd_getfd, "descriptors can't be looked at", "Linux 5.6"},
	{"kcmp", true, try_kcmp, "shared open files can't be told apart",
		"CONFIG_KCMP; in a container, a seccomp profile that allows kcmp"},
	{"pagemap-scan", false, try_pagemap_scan, "finding touched memory is slower", "Linux 6.7"},
	{"timer-ids", false, try_timer_ids, "restoring POSIX timers with large ids is slower",
		"Linux 6.16"},
};

static bool works(const struct check *check)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(check->try() ? 0 : 1);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct check_options *o = opts;
	json_t *list = json_array();
	bool complete = true;

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		const struct check *k = &checks[i];
		bool ok = works(k);

		complete &= ok || !k->needed;
		json_array_append_new(list,
			json_pack("{s:s, s:b, s:b, s:s, s:s}", "name", k->name, "ok", ok, "needed",
				k->needed, "lost", k->lost, "get", k->get));
		if (!o->json && ok)
			printf("%-18s yes\n", k->name);
		else if (!o->json)
			printf("%-18s NO%s: %s\n%18s to get it: %s\n", k->name, k->needed ? " (needed)" : "",
				k->lost, "", k->get);
	}
	if (o->json)
		json_print(json_pack("{s:b, s:o}", "ok", complete, "checks", list));
	else
		json_decref(list);
	return complete ? 0 : err_class_info(ERR_HOST)->exit_code;
}

const struct cli_command cli_check = {
	.name = "check",
	.usage = "[--json]",
	.help = "what this host offers, and what is lost without the rest",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct check_options),
	.group = CLI_MORE,
	.standalone = true,
	.run = run,
};

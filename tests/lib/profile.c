// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * container_profile [--listen | --refuse CALL | --no-scan | --no-netfilter] CMD...
 *
 * Runs a command under the filter that container engines put around everything they start, as
 * somebody without capabilities meets it.
 *
 * The default profile of Docker, Podman and containerd (moby: profiles/seccomp) allows a list of
 * calls and refuses the rest with EPERM.  Without capabilities that leaves no namespace, no
 * mount, no chroot, no pidfd_getfd, kcmp, userfaultfd or io_uring; clone3 is ENOSYS, as are calls
 * newer than the profile, so that C libraries fall back to what they did before.  What the list
 * lacks is shorter than the list.
 *
 * --refuse takes one call alone away, as a security module may; --listen installs a listener
 * instead, of which there can be only one in a tree of processes (seccomp_unotify(2)).  --no-scan
 * takes PAGEMAP_SCAN away, as if the kernel were older than Linux 6.7, and --no-netfilter the
 * sockets of nf_tables, as if it were built without.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

#define NUMBERS 1024 /* above the highest call of any kernel */

static const char *const refused[] = {
	/* for CAP_SYS_ADMIN */
	"bpf",
	"fanotify_init",
	"fsconfig",
	"fsmount",
	"fsopen",
	"fspick",
	"lookup_dcookie",
	"mount",
	"mount_setattr",
	"move_mount",
	"open_tree",
	"perf_event_open",
	"quotactl",
	"quotactl_fd",
	"setdomainname",
	"sethostname",
	"setns",
	"syslog",
	"umount",
	"umount2",
	"unshare",
	/* for other capabilities */
	"open_by_handle_at",
	"reboot",
	"chroot",
	"delete_module",
	"init_module",
	"finit_module",
	"acct",
	"kcmp",
	"pidfd_getfd",
	"process_madvise",
	"iopl",
	"ioperm",
	"settimeofday",
	"stime",
	"clock_settime",
	"clock_settime64",
	"vhangup",
	"get_mempolicy",
	"mbind",
	"set_mempolicy",
	"set_mempolicy_home_node",
	/* for nobody */
	"add_key",
	"keyctl",
	"request_key",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"kexec_load",
	"kexec_file_load",
	"migrate_pages",
	"move_pages",
	"pivot_root",
	"swapon",
	"swapoff",
	"userfaultfd",
	"uselib",
	"ustat",
	"sysfs",
	"_sysctl",
	"nfsservctl",
	"vm86",
	"vm86old",
	"create_module",
	"get_kernel_syms",
	"query_module",
	"lsm_get_self_attr",
	"lsm_set_self_attr",
	"lsm_list_modules",
	"bdflush",
	"vserver",
	"afs_syscall",
	"tuxcall",
	"security",
	"getpmsg",
	"putpmsg",
	"idle",
	"oldolduname",
	"olduname",
	"oldstat",
	"oldlstat",
	"oldfstat",
};

/* Behind 6.11, the newest that a profile in use knows; and one that is refused so always. */
static const char *const unknown[] = {"clone3", "setxattrat", "getxattrat", "listxattrat",
	"removexattrat", "open_tree_attr", "file_getattr", "file_setattr"};

/* Allowed by argument. */
static const char *const asked[] = {"clone", "personality", "socket"};

#define IN(list, name) in(list, sizeof(list) / sizeof((list)[0]), name)
static bool in(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "container_profile: %s: %s\n", what, strerror(-r));
	exit(125);
}

static void add(scmp_filter_ctx ctx, const char *name)
{
	int nr = seccomp_syscall_resolve_name(name), r;

	if (IN(refused, name) || IN(asked, name))
		return;
	r = seccomp_rule_add(
		ctx, IN(unknown, name) ? SCMP_ACT_ERRNO(ENOSYS) : SCMP_ACT_ALLOW, nr, 0);
	/* One that the other architecture does not have. */
	if (r != -EDOM)
		must(r, name);
}

static void add_all(scmp_filter_ctx ctx, uint32_t arch)
{
	for (int nr = 0; nr < NUMBERS; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(arch, nr);

		if (name)
			add(ctx, name);
		free(name);
	}
}

static void add_asked(scmp_filter_ctx ctx)
{
	static const unsigned allowed[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};
	const scmp_datum_t namespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
					CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP;

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		must(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1,
			     SCMP_A0(SCMP_CMP_EQ, allowed[i])),
			"personality");
	must(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
		     SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces, 0)),
		"clone");
	must(seccomp_rule_add(
		     ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_NE, AF_VSOCK)),
		"socket");
}

/* Without a filter yet. */
static scmp_filter_ctx begin(uint32_t action)
{
	scmp_filter_ctx ctx = seccomp_init(action);

	if (!ctx)
		must(-ENOMEM, "filter");
	must(seccomp_arch_add(ctx, SCMP_ARCH_X86), "i386");
	must(seccomp_arch_add(ctx, SCMP_ARCH_X32), "x32");
	must(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2), "filter");
	return ctx;
}

static void load_profile(void)
{
	scmp_filter_ctx ctx = begin(SCMP_ACT_ERRNO(EPERM));

	add_all(ctx, SCMP_ARCH_X86_64);
	add_all(ctx, SCMP_ARCH_X86);
	add_asked(ctx);
	must(seccomp_load(ctx), "filter");
}

static void refuse(const char *name)
{
	scmp_filter_ctx ctx = begin(SCMP_ACT_ALLOW);

	must(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), seccomp_syscall_resolve_name(name), 0),
		name);
	must(seccomp_load(ctx), "filter");
}

static void no_scan(void)
{
	scmp_filter_ctx ctx = begin(SCMP_ACT_ALLOW);

	must(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOTTY), SCMP_SYS(ioctl), 1,
		     SCMP_A1(SCMP_CMP_EQ, PAGEMAP_SCAN)),
		"ioctl");
	must(seccomp_load(ctx), "filter");
}

static void no_netfilter(void)
{
	scmp_filter_ctx ctx = begin(SCMP_ACT_ALLOW);

	must(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
		     SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, NETLINK_NETFILTER)),
		"socket");
	must(seccomp_load(ctx), "filter");
}

/* Asks for a call that nobody makes; the descriptor has to stay open. */
static void listen_to_calls(void)
{
	scmp_filter_ctx ctx = begin(SCMP_ACT_ALLOW);
	int fd;

	must(seccomp_rule_add(ctx, SCMP_ACT_NOTIFY, SCMP_SYS(lookup_dcookie), 0), "lookup_dcookie");
	must(seccomp_load(ctx), "filter");
	fd = seccomp_notify_fd(ctx);
	must(fd, "listener");
	if (fork() > 0) {
		int status;

		while (wait(&status) < 0 && errno == EINTR)
			;
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	close(fd);
}

int main(int argc, char **argv)
{
	argv++;
	if (argc > 2 && strcmp(argv[0], "--listen") == 0) {
		listen_to_calls();
		argv++;
	} else if (argc > 3 && strcmp(argv[0], "--refuse") == 0) {
		refuse(argv[1]);
		argv += 2;
	} else if (argc > 2 && strcmp(argv[0], "--no-scan") == 0) {
		no_scan();
		argv++;
	} else if (argc > 2 && strcmp(argv[0], "--no-netfilter") == 0) {
		no_netfilter();
		argv++;
	} else {
		load_profile();
	}
	if (!argv[0]) {
		fprintf(stderr, "usage: container_profile [--listen | --refuse CALL | --no-scan | "
				"--no-netfilter] CMD...\n");
		return 2;
	}
	execvp(argv[0], argv);
	fprintf(stderr, "container_profile: %s: %s\n", argv[0], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table itself.  To add a call of a newer kernel: a line here with a reason; a test checks that
 * numbers ascend and that the C library agrees about them.
 */
#include "supervisor/policy/policy.h"

#include <fcntl.h>
#include <stdlib.h>

#include <linux/futex.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "base/base.h"

#define USER NAMES_BIT(NAMES_USER)
#define LAYER NAMES_BIT(NAMES_LAYER)
#define PID  NAMES_BIT(NAMES_PID)
#define FILES NAMES_BIT(NAMES_FILE)
#define TIME NAMES_BIT(NAMES_TIME)

/* Reasons that many calls share. */
#define W_HELD	  "works on what the task holds"
#define W_FILES	  "paths end at the session's root"
#define W_ADOPTS  "paths end at the session's root; root inside may change the host's"
#define W_OWNERS  "owners have one number inside; root inside sees the recorded ones"
#define W_MEMORY  "the task's own memory"
#define W_TASKS	  "tasks of the session only, by the pid namespace"
#define W_SIGNALS "signals reach the session only, by the pid namespace"
#define W_CLOCKS  "timers of its own; clocks by the time namespace"
#define W_NET	  "by the network namespace"
#define W_IPC	  "by the ipc namespace"
#define W_READS	  "only tells"
#define W_IDS	  "one user inside; root inside has the rest recorded"
#define W_LIMITS  "raising needs privilege over the host: the kernel refuses it"
#define W_HOST	  "concerns the whole machine"
#define W_MOUNTS  "the file view is made from outside and must be known to an image"
#define W_GONE	  "no kernel has it any more"

const struct policy_call policy_calls[] = {
	{"read", 0, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"write", 1, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"open", 2, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"close", 3, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"stat", 4, POLICY_PLAIN, POLICY_ALLOW, USER, W_OWNERS},
	{"fstat", 5, POLICY_PLAIN, POLICY_ALLOW, USER, W_OWNERS},
	{"lstat", 6, POLICY_PLAIN, POLICY_ALLOW, USER, W_OWNERS},
	{"poll", 7, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"lseek", 8, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"mmap", 9, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"mprotect", 10, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"munmap", 11, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"brk", 12, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"rt_sigaction", 13, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"rt_sigprocmask", 14, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"rt_sigreturn", 15, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"ioctl", 16, POLICY_OPTIONS, POLICY_ALLOW, 0, "some type into terminals or reach the console"},
	{"pread64", 17, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"pwrite64", 18, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"readv", 19, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"writev", 20, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"access", 21, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"pipe", 22, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"select", 23, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"sched_yield", 24, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"mremap", 25, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"msync", 26, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"mincore", 27, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"madvise", 28, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"shmget", 29, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"shmat", 30, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"shmctl", 31, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"dup", 32, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"dup2", 33, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"pause", 34, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"nanosleep", 35, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"getitimer", 36, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"alarm", 37, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"setitimer", 38, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"getpid", 39, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"sendfile", 40, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"socket", 41, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"connect", 42, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"accept", 43, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"sendto", 44, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"recvfrom", 45, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"sendmsg", 46, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"recvmsg", 47, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"shutdown", 48, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"bind", 49, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"listen", 50, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"getsockname", 51, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"getpeername", 52, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"socketpair", 53, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"setsockopt", 54, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"getsockopt", 55, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"clone", 56, POLICY_OPTIONS, POLICY_ALLOW, 0, "not all namespaces can be rebuilt"},
	{"fork", 57, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"vfork", 58, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"execve", 59, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"exit", 60, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"wait4", 61, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"kill", 62, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"uname", 63, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"semget", 64, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"semop", 65, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"semctl", 66, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"shmdt", 67, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"msgget", 68, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"msgsnd", 69, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"msgrcv", 70, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"msgctl", 71, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"fcntl", 72, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"flock", 73, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"fsync", 74, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"fdatasync", 75, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"truncate", 76, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"ftruncate", 77, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"getdents", 78, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"getcwd", 79, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"chdir", 80, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"fchdir", 81, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"rename", 82, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"mkdir", 83, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"rmdir", 84, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"creat", 85, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"link", 86, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"unlink", 87, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"symlink", 88, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"readlink", 89, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"chmod", 90, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"fchmod", 91, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"chown", 92, POLICY_PLAIN, POLICY_ALLOW, USER, W_OWNERS},
	{"fchown", 93, POLICY_PLAIN, POLICY_ALLOW, USER, W_OWNERS},
	{"lchown", 94, POLICY_PLAIN, POLICY_ALLOW, USER, W_OWNERS},
	{"umask", 95, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"gettimeofday", 96, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"getrlimit", 97, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"getrusage", 98, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"sysinfo", 99, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"times", 100, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"ptrace", 101, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"getuid", 102, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"syslog", 103, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"getgid", 104, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"setuid", 105, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"setgid", 106, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"geteuid", 107, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"getegid", 108, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"setpgid", 109, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"getppid", 110, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"getpgrp", 111, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"setsid", 112, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"setreuid", 113, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"setregid", 114, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"getgroups", 115, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"setgroups", 116, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"setresuid", 117, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"getresuid", 118, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"setresgid", 119, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"getresgid", 120, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"getpgid", 121, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"setfsuid", 122, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"setfsgid", 123, POLICY_PLAIN, POLICY_ALLOW, USER, W_IDS},
	{"getsid", 124, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"capget", 125, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"capset", 126, POLICY_PLAIN, POLICY_ALLOW, 0, "over the session's own namespaces only"},
	{"rt_sigpending", 127, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"rt_sigtimedwait", 128, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"rt_sigqueueinfo", 129, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"rt_sigsuspend", 130, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"sigaltstack", 131, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"utime", 132, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"mknod", 133, POLICY_OPTIONS, POLICY_ALLOW, 0, "the kernel refuses devices"},
	{"uselib", 134, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"personality", 135, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"ustat", 136, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"statfs", 137, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"fstatfs", 138, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"sysfs", 139, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"getpriority", 140, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"setpriority", 141, POLICY_LIMITS, POLICY_ALLOW, 0, W_LIMITS},
	{"sched_setparam", 142, POLICY_LIMITS, POLICY_ALLOW, 0, W_LIMITS},
	{"sched_getparam", 143, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"sched_setscheduler", 144, POLICY_LIMITS, POLICY_ALLOW, 0, W_LIMITS},
	{"sched_getscheduler", 145, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"sched_get_priority_max", 146, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"sched_get_priority_min", 147, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"sched_rr_get_interval", 148, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"mlock", 149, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"munlock", 150, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"mlockall", 151, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"munlockall", 152, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"vhangup", 153, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"modify_ldt", 154, POLICY_OPTIONS, POLICY_ENOSYS, 0, "segments that no image holds"},
	{"pivot_root", 155, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"_sysctl", 156, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"prctl", 157, POLICY_OPTIONS, POLICY_ALLOW, 0, "the session's own filters are recorded"},
	{"arch_prctl", 158, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"adjtimex", 159, POLICY_LIMITS, POLICY_ALLOW, 0, W_LIMITS},
	{"setrlimit", 160, POLICY_LIMITS, POLICY_ALLOW, 0, W_LIMITS},
	{"chroot", 161, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"sync", 162, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"acct", 163, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"settimeofday", 164, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"mount", 165, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"umount2", 166, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"swapon", 167, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"swapoff", 168, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"reboot", 169, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"sethostname", 170, POLICY_PLAIN, POLICY_ALLOW, 0, "a name of its own, by the uts namespace"},
	{"setdomainname", 171, POLICY_PLAIN, POLICY_ALLOW, 0, "a name of its own, by the uts namespace"},
	{"iopl", 172, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"ioperm", 173, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"create_module", 174, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"init_module", 175, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"delete_module", 176, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"get_kernel_syms", 177, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"query_module", 178, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"quotactl", 179, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"nfsservctl", 180, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"getpmsg", 181, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"putpmsg", 182, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"afs_syscall", 183, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"tuxcall", 184, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"security", 185, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"gettid", 186, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"readahead", 187, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"setxattr", 188, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"lsetxattr", 189, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"fsetxattr", 190, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"getxattr", 191, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"lgetxattr", 192, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"fgetxattr", 193, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"listxattr", 194, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"llistxattr", 195, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"flistxattr", 196, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"removexattr", 197, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"lremovexattr", 198, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"fremovexattr", 199, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"tkill", 200, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"time", 201, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"futex", 202, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"sched_setaffinity", 203, POLICY_LIMITS, POLICY_ALLOW, 0, W_LIMITS},
	{"sched_getaffinity", 204, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"set_thread_area", 205, POLICY_OPTIONS, POLICY_ENOSYS, 0, "segments that no image holds"},
	{"io_setup", 206, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image can hold its queues"},
	{"io_destroy", 207, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image can hold its queues"},
	{"io_getevents", 208, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image can hold its queues"},
	{"io_submit", 209, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image can hold its queues"},
	{"io_cancel", 210, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image can hold its queues"},
	{"get_thread_area", 211, POLICY_OPTIONS, POLICY_ENOSYS, 0, "segments that no image holds"},
	{"lookup_dcookie", 212, POLICY_HOST, POLICY_EPERM, 0, "watches the machine"},
	{"epoll_create", 213, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"epoll_ctl_old", 214, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"epoll_wait_old", 215, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"remap_file_pages", 216, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"getdents64", 217, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"set_tid_address", 218, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"restart_syscall", 219, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"semtimedop", 220, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"fadvise64", 221, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"timer_create", 222, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"timer_settime", 223, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"timer_gettime", 224, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"timer_getoverrun", 225, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"timer_delete", 226, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"clock_settime", 227, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"clock_gettime", 228, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"clock_getres", 229, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"clock_nanosleep", 230, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"exit_group", 231, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"epoll_wait", 232, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"epoll_ctl", 233, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"tgkill", 234, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"utimes", 235, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"vserver", 236, POLICY_PLAIN, POLICY_ENOSYS, 0, W_GONE},
	{"mbind", 237, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"set_mempolicy", 238, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"get_mempolicy", 239, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"mq_open", 240, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"mq_unlink", 241, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"mq_timedsend", 242, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"mq_timedreceive", 243, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"mq_notify", 244, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"mq_getsetattr", 245, POLICY_PLAIN, POLICY_ALLOW, 0, W_IPC},
	{"kexec_load", 246, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"waitid", 247, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"add_key", 248, POLICY_HOST, POLICY_ENOSYS, 0, "the keyrings are the user's, on the host"},
	{"request_key", 249, POLICY_HOST, POLICY_ENOSYS, 0, "the keyrings are the user's, on the host"},
	{"keyctl", 250, POLICY_HOST, POLICY_ENOSYS, 0, "the keyrings are the user's, on the host"},
	{"ioprio_set", 251, POLICY_LIMITS, POLICY_ALLOW, 0, W_LIMITS},
	{"ioprio_get", 252, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"inotify_init", 253, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"inotify_add_watch", 254, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"inotify_rm_watch", 255, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"migrate_pages", 256, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"openat", 257, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"mkdirat", 258, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"mknodat", 259, POLICY_OPTIONS, POLICY_ALLOW, 0, "the kernel refuses devices"},
	{"fchownat", 260, POLICY_PLAIN, POLICY_ALLOW, USER, W_OWNERS},
	{"futimesat", 261, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"newfstatat", 262, POLICY_PLAIN, POLICY_ALLOW, USER, W_OWNERS},
	{"unlinkat", 263, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"renameat", 264, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"linkat", 265, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"symlinkat", 266, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"readlinkat", 267, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"fchmodat", 268, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"faccessat", 269, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"pselect6", 270, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"ppoll", 271, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"unshare", 272, POLICY_OPTIONS, POLICY_ALLOW, 0, "not all namespaces can be rebuilt"},
	{"set_robust_list", 273, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"get_robust_list", 274, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"splice", 275, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"tee", 276, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"sync_file_range", 277, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"vmsplice", 278, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"move_pages", 279, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"utimensat", 280, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"epoll_pwait", 281, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"signalfd", 282, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"timerfd_create", 283, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"eventfd", 284, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"fallocate", 285, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"timerfd_settime", 286, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"timerfd_gettime", 287, POLICY_PLAIN, POLICY_ALLOW, 0, W_CLOCKS},
	{"accept4", 288, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"signalfd4", 289, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"eventfd2", 290, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"epoll_create1", 291, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"dup3", 292, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"pipe2", 293, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"inotify_init1", 294, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"preadv", 295, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"pwritev", 296, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"rt_tgsigqueueinfo", 297, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"perf_event_open", 298, POLICY_HOST, POLICY_EPERM, 0, "watches the machine"},
	{"recvmmsg", 299, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"fanotify_init", 300, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image holds its marks"},
	{"fanotify_mark", 301, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image holds its marks"},
	{"prlimit64", 302, POLICY_LIMITS, POLICY_ALLOW, 0, W_LIMITS},
	{"name_to_handle_at", 303, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"open_by_handle_at", 304, POLICY_HOST, POLICY_EPERM, 0, "opens files past the session's view"},
	{"clock_adjtime", 305, POLICY_LIMITS, POLICY_ALLOW, 0, W_LIMITS},
	{"syncfs", 306, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"sendmmsg", 307, POLICY_PLAIN, POLICY_ALLOW, 0, W_NET},
	{"setns", 308, POLICY_HOST, POLICY_EPERM, 0, "joins other namespaces"},
	{"getcpu", 309, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"process_vm_readv", 310, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"process_vm_writev", 311, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"kcmp", 312, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"finit_module", 313, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"sched_setattr", 314, POLICY_LIMITS, POLICY_ALLOW, 0, W_LIMITS},
	{"sched_getattr", 315, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"renameat2", 316, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"seccomp", 317, POLICY_OPTIONS, POLICY_ALLOW, 0, "the session's own filters are recorded"},
	{"getrandom", 318, POLICY_PLAIN, POLICY_ALLOW, 0, W_READS},
	{"memfd_create", 319, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"kexec_file_load", 320, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"bpf", 321, POLICY_HOST, POLICY_EPERM, 0, "code in the kernel"},
	{"execveat", 322, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"userfaultfd", 323, POLICY_OPTIONS, POLICY_NOTIFY, 0, "no image holds its ranges; ckpt uses it"},
	{"membarrier", 324, POLICY_PLAIN, POLICY_ALLOW, 0, "names processors, never tasks"},
	{"mlock2", 325, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"copy_file_range", 326, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"preadv2", 327, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"pwritev2", 328, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"pkey_mprotect", 329, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"pkey_alloc", 330, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"pkey_free", 331, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"statx", 332, POLICY_PLAIN, POLICY_ALLOW, USER, W_OWNERS},
	{"io_pgetevents", 333, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image can hold its queues"},
	{"rseq", 334, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"uretprobe", 335, POLICY_PLAIN, POLICY_ALLOW, 0, "only the kernel's own trampoline may call it"},
	{"uprobe", 336, POLICY_PLAIN, POLICY_ALLOW, 0, "only the kernel's own trampoline may call it"},
	{"pidfd_send_signal", 424, POLICY_PLAIN, POLICY_ALLOW, 0, W_SIGNALS},
	{"io_uring_setup", 425, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image can hold its queues"},
	{"io_uring_enter", 426, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image can hold its queues"},
	{"io_uring_register", 427, POLICY_OPTIONS, POLICY_ENOSYS, 0, "no image can hold its queues"},
	{"open_tree", 428, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"move_mount", 429, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"fsopen", 430, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"fsconfig", 431, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"fsmount", 432, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"fspick", 433, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"pidfd_open", 434, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"clone3", 435, POLICY_OPTIONS, POLICY_ENOSYS, 0, "flags in memory: programs fall back to clone"},
	{"close_range", 436, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"openat2", 437, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"pidfd_getfd", 438, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"faccessat2", 439, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"process_madvise", 440, POLICY_PLAIN, POLICY_ALLOW, 0,
		"another process's only with privilege"},
	{"epoll_pwait2", 441, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"mount_setattr", 442, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"quotactl_fd", 443, POLICY_HOST, POLICY_EPERM, 0, W_HOST},
	{"landlock_create_ruleset", 444, POLICY_OPTIONS, POLICY_ENOSYS, 0, "a move would lose it"},
	{"landlock_add_rule", 445, POLICY_OPTIONS, POLICY_ENOSYS, 0, "a move would lose it"},
	{"landlock_restrict_self", 446, POLICY_OPTIONS, POLICY_ENOSYS, 0, "a move would lose it"},
	{"memfd_secret", 447, POLICY_OPTIONS, POLICY_ENOSYS, 0, "nobody can read its pages"},
	{"process_mrelease", 448, POLICY_PLAIN, POLICY_ALLOW, 0, "frees what a dying process frees anyway"},
	{"futex_waitv", 449, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"set_mempolicy_home_node", 450, POLICY_PLAIN, POLICY_ALLOW, 0, W_MEMORY},
	{"cachestat", 451, POLICY_PLAIN, POLICY_ALLOW, 0, W_HELD},
	{"fchmodat2", 452, POLICY_PLAIN, POLICY_ALLOW, LAYER, W_ADOPTS},
	{"map_shadow_stack", 453, POLICY_OPTIONS, POLICY_ENOSYS, 0, "could not be put back"},
	{"futex_wake", 454, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"futex_wait", 455, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"futex_requeue", 456, POLICY_PLAIN, POLICY_ALLOW, 0, W_TASKS},
	{"statmount", 457, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"listmount", 458, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"lsm_get_self_attr", 459, POLICY_HOST, POLICY_ENOSYS, 0, "security modules of the host"},
	{"lsm_set_self_attr", 460, POLICY_HOST, POLICY_ENOSYS, 0, "security modules of the host"},
	{"lsm_list_modules", 461, POLICY_HOST, POLICY_ENOSYS, 0, "security modules of the host"},
	{"mseal", 462, POLICY_OPTIONS, POLICY_ENOSYS, 0, "could not be put back"},
	{"setxattrat", 463, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"getxattrat", 464, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"listxattrat", 465, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"removexattrat", 466, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"open_tree_attr", 467, POLICY_HOST, POLICY_EPERM, 0, W_MOUNTS},
	{"file_getattr", 468, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"file_setattr", 469, POLICY_PLAIN, POLICY_ALLOW, 0, W_FILES},
	{"listns", 470, POLICY_HOST, POLICY_ENOSYS, 0, "shows the host's namespaces"},
	{"rseq_slice_yield", 471, POLICY_OPTIONS, POLICY_ENOSYS, 0, "a move would lose the extension"},
	{"fchroot", 472, POLICY_OPTIONS, POLICY_ENOSYS, 0, "chroot does the same, and has a path"},
};
const size_t policy_n_calls = ARRAY_SIZE(policy_calls);

#define LOW32 0xffffffffU

/*
 * Mounts, and what a process sees of its control group, can't be rebuilt inside a sandbox; the
 * others can (ckpt/nested/nested.h), but where the kernel holds no names there are none.
 */
#define NO_NAMESPACE(nr, flag)                                                                     \
	{                                                                                          \
		nr, 0, flag, flag, POLICY_EPERM, "one namespace of this kind"                      \
	}
#define NESTED_NAMESPACE(nr, flag)                                                                 \
	{                                                                                          \
		nr, 0, flag, flag, POLICY_EPERM, "has other numbers", PID                           \
	}
#define NAMESPACE_FLAGS(nr)                                                                        \
	NO_NAMESPACE(nr, CLONE_NEWNS), NO_NAMESPACE(nr, CLONE_NEWCGROUP),                          \
		NESTED_NAMESPACE(nr, CLONE_NEWUTS), NESTED_NAMESPACE(nr, CLONE_NEWIPC),            \
		NESTED_NAMESPACE(nr, CLONE_NEWUSER), NESTED_NAMESPACE(nr, CLONE_NEWPID),           \
		NESTED_NAMESPACE(nr, CLONE_NEWNET)

/* Pid 1 has the session's uid, so some calls could reach it that don't ask for a ptrace access. */
#define NOT_PID_1(nr, arg)                                                                         \
	{                                                                                          \
		nr, arg, LOW32, 1, POLICY_EPERM, "pid 1 is not the session's"                      \
	}

/* A negative clock is that of a process or thread. */
#define CPU_CLOCK(nr)                                                                              \
	{                                                                                          \
		nr, 0, 0x80000000U, 0x80000000U, POLICY_TRACE, "takes a process", PID              \
	}

/* Of its own clock a session asks the rewriter, where the kernel's is another one. */
#define TELLS_TIME(clock)                                                                          \
	{                                                                                          \
		SYS_clock_gettime, 0, LOW32, clock, POLICY_NOTIFY, "tells the host's time", TIME   \
	}

/* A point in time of a clock; and no such point (a NULL). */
#define UNTIL(nr, arg, clock)                                                                      \
	{                                                                                          \
		nr, arg, LOW32, clock, POLICY_TRACE, "until the host's time", TIME                 \
	}
#define FOR_EVER(nr, arg)                                                                          \
	{                                                                                          \
		nr, arg, LOW32, 0, POLICY_ALLOW, "until it is woken", TIME, true                   \
	}

/* All that a user has, where 0 is the caller's own. */
#define OF_ALL(nr, which)                                                                          \
	{                                                                                          \
		nr, 0, LOW32, which, POLICY_TRACE, "all of the user's would be outside, too", PID   \
	}

/* Most ask about themselves, each program when it begins. */
#define OF_ITSELF(nr, arg)                                                                         \
	{                                                                                          \
		nr, arg, LOW32, 0, POLICY_ALLOW, "of itself", PID                                  \
	}

#define PI_FUTEX(op)                                                                               \
	{                                                                                          \
		SYS_futex, 1, (uint32_t)FUTEX_CMD_MASK, op, POLICY_TRACE,                          \
			"memory holds its owner's number", PID                                     \
	}

/* An open that is not only to look: the task makes it itself. */
#define OPENS(nr, arg)                                                                             \
	{nr, arg, O_CREAT, O_CREAT, POLICY_TRACE, "makes a file", FILES},                          \
		{nr, arg, O_PATH, O_PATH, POLICY_TRACE, "such a descriptor can't be handed over", FILES}, \
	{                                                                                          \
		nr, arg, O_TMPFILE & ~O_DIRECTORY, O_TMPFILE & ~O_DIRECTORY, POLICY_TRACE,         \
			"makes a file", FILES                                                      \
	}

#define PIDFD_GET_INFO _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 0) /* linux/pidfd.h; of any size */
/* NS_GET_PID_FROM_PIDNS and its like of linux/nsfs.h */
#define NUMBERS_OF_NAMESPACE(n)                                                                    \
	{                                                                                          \
		SYS_ioctl, 1, LOW32, _IOR(0xb7, n, int), POLICY_EPERM, "tells the host's numbers",  \
			PID                                                                        \
	}

const struct policy_rule policy_rules[] = {
	NAMESPACE_FLAGS(SYS_clone),
	NAMESPACE_FLAGS(SYS_unshare),
	NO_NAMESPACE(SYS_unshare, 0x80 /* CLONE_NEWTIME */),
	{SYS_unshare, 0, CLONE_FS, CLONE_FS, POLICY_NOTIFY, "a directory of a thread's own", FILES},
	{SYS_clone, 0, CLONE_UNTRACED, CLONE_UNTRACED, POLICY_EPERM, "would be outside", PID},
	{SYS_PODRUN_SENTINEL, 0, LOW32, PODRUN_SENTINEL_ARG, POLICY_TRACE,
		"ends a batch of ckpt/remote"},
	{SYS_clone3, 5, LOW32, SYS_PODRUN_CLONE3_MARK, POLICY_NOTIFY, "injected by a restore"},
	{SYS_mmap, 3, MAP_SHARED, MAP_SHARED, POLICY_TRACE, "may hold robust mutexes", PID},
	{SYS_ioctl, 1, LOW32, TIOCSTI, POLICY_EPERM, "types into a terminal"},
	{SYS_ioctl, 1, LOW32, TIOCLINUX, POLICY_EPERM, "reaches the host's console"},
	{SYS_ioctl, 1, LOW32, TIOCCONS, POLICY_EPERM, "takes the host's console output"},
	{SYS_ioctl, 1, LOW32, TIOCGPGRP, POLICY_TRACE, "tells a process group", PID},
	{SYS_ioctl, 1, LOW32, TIOCSPGRP, POLICY_TRACE, "takes a process group", PID},
	{SYS_ioctl, 1, LOW32, TIOCGSID, POLICY_TRACE, "tells a session", PID},
	{SYS_ioctl, 1, LOW32, TIOCGPTN, POLICY_TRACE, "tells a terminal's number", FILES},
	{SYS_ioctl, 1, LOW32, FIOSETOWN, POLICY_TRACE, "takes a process", PID},
	{SYS_ioctl, 1, LOW32, SIOCSPGRP, POLICY_TRACE, "takes a process", PID},
	{SYS_ioctl, 1, LOW32, FIOGETOWN, POLICY_TRACE, "tells a process", PID},
	{SYS_ioctl, 1, LOW32, SIOCGPGRP, POLICY_TRACE, "tells a process", PID},
	{SYS_ioctl, 1, 0xc000ffffU, PIDFD_GET_INFO, POLICY_TRACE, "tells processes", PID},
	NUMBERS_OF_NAMESPACE(6),
	NUMBERS_OF_NAMESPACE(7),
	NUMBERS_OF_NAMESPACE(8),
	NUMBERS_OF_NAMESPACE(9),
	{SYS_fcntl, 1, LOW32, F_NOTIFY, POLICY_EINVAL, "nothing tells that a directory is watched"},
	{SYS_fcntl, 1, LOW32, F_SETOWN, POLICY_TRACE, "takes a process", PID},
	{SYS_fcntl, 1, LOW32, F_GETOWN, POLICY_TRACE, "tells a process", PID},
	{SYS_fcntl, 1, LOW32, F_SETOWN_EX, POLICY_TRACE, "takes a process", PID},
	{SYS_fcntl, 1, LOW32, F_GETOWN_EX, POLICY_TRACE, "tells a process", PID},
	{SYS_fcntl, 1, LOW32, F_GETLK, POLICY_TRACE, "tells a process", PID},
	{SYS_fcntl, 1, LOW32, F_OFD_GETLK, POLICY_TRACE, "tells a process", PID},
	PI_FUTEX(FUTEX_LOCK_PI),
	PI_FUTEX(FUTEX_LOCK_PI2),
	PI_FUTEX(FUTEX_TRYLOCK_PI),
	PI_FUTEX(FUTEX_UNLOCK_PI),
	PI_FUTEX(FUTEX_WAIT_REQUEUE_PI),
	PI_FUTEX(FUTEX_CMP_REQUEUE_PI),
	FOR_EVER(SYS_futex, 3),
	{SYS_futex, 1, (uint32_t)~FUTEX_PRIVATE_FLAG, FUTEX_WAIT_BITSET, POLICY_TRACE,
		"until the host's time", TIME},
	FOR_EVER(449 /* futex_waitv */, 3),
	UNTIL(449, 4, CLOCK_MONOTONIC),
	FOR_EVER(455 /* futex_wait */, 4),
	UNTIL(455, 5, CLOCK_MONOTONIC),
	CPU_CLOCK(SYS_clock_gettime),
	TELLS_TIME(CLOCK_MONOTONIC),
	TELLS_TIME(CLOCK_MONOTONIC_RAW),
	TELLS_TIME(CLOCK_MONOTONIC_COARSE),
	TELLS_TIME(CLOCK_BOOTTIME),
	TELLS_TIME(CLOCK_BOOTTIME_ALARM),
	CPU_CLOCK(SYS_clock_getres),
	CPU_CLOCK(SYS_clock_nanosleep),
	{SYS_clock_nanosleep, 1, TIMER_ABSTIME, 0, POLICY_ALLOW, "for a while", TIME},
	UNTIL(SYS_clock_nanosleep, 0, CLOCK_MONOTONIC),
	UNTIL(SYS_clock_nanosleep, 0, CLOCK_BOOTTIME),
	UNTIL(SYS_clock_nanosleep, 0, CLOCK_BOOTTIME_ALARM),
	{SYS_timer_settime, 1, TIMER_ABSTIME, TIMER_ABSTIME, POLICY_TRACE, "until the host's time",
		TIME},
	{SYS_timerfd_settime, 1, TFD_TIMER_ABSTIME, TFD_TIMER_ABSTIME, POLICY_TRACE,
		"until the host's time", TIME},
	{SYS_socket, 2, LOW32, NETLINK_CONNECTOR, POLICY_EPERM, "tells of the host's processes",
		PID},
	{SYS_seccomp, 0, LOW32, SECCOMP_SET_MODE_STRICT, POLICY_TRACE, "goes with an image", PID},
	{SYS_seccomp, 0, LOW32, SECCOMP_SET_MODE_FILTER, POLICY_TRACE, "goes with an image", PID},
	{SYS_seccomp, 0, LOW32, SECCOMP_SET_MODE_STRICT, POLICY_NOTIFY, "goes with an image"},
	{SYS_seccomp, 0, LOW32, SECCOMP_SET_MODE_FILTER, POLICY_NOTIFY, "goes with an image"},
	{SYS_prctl, 0, LOW32, PR_SET_SECCOMP, POLICY_TRACE, "goes with an image", PID},
	{SYS_prctl, 0, LOW32, PR_SET_SECCOMP, POLICY_NOTIFY, "goes with an image"},
	{SYS_prctl, 0, LOW32, 59 /* PR_SET_SYSCALL_USER_DISPATCH */, POLICY_EINVAL,
		"its calls would be signals to it, ours as well"},
	{SYS_arch_prctl, 0, LOW32, 0x5001 /* ARCH_SHSTK_ENABLE */, POLICY_EINVAL, "no image holds it"},
	{SYS_prctl, 0, LOW32, PR_SET_DUMPABLE, POLICY_NOTIFY, "would be closed to the rewriter",
		PID},
	{SYS_prctl, 0, LOW32, PR_GET_DUMPABLE, POLICY_NOTIFY, "would be closed to the rewriter",
		PID},
	{SYS_prctl, 0, LOW32, PR_SET_PTRACER, POLICY_NOTIFY, "takes a process", PID},
	{SYS_prctl, 0, LOW32, PR_SCHED_CORE, POLICY_NOTIFY, "takes a process", PID},
	{SYS_prctl, 0, LOW32, PR_SET_KEEPCAPS, POLICY_NOTIFY, "of a virtual user", USER},
	{SYS_prctl, 0, LOW32, PR_CAPBSET_READ, POLICY_NOTIFY, "of a virtual user", USER},
	{SYS_prctl, 0, LOW32, PR_CAPBSET_DROP, POLICY_NOTIFY, "of a virtual user", USER},
	{SYS_prctl, 0, LOW32, PR_CAP_AMBIENT, POLICY_NOTIFY, "of a virtual user", USER},
	{SYS_getsockopt, 2, LOW32, SO_PEERCRED, POLICY_TRACE, "tells the peer's number", PID},
	{SYS_getsockopt, 2, LOW32, SO_PEERCRED, POLICY_NOTIFY, "tells the peer's user", USER},
	{SYS_open, 1, O_ACCMODE, O_WRONLY, POLICY_NOTIFY, "may change a file of the host's", LAYER},
	{SYS_open, 1, O_ACCMODE, O_RDWR, POLICY_NOTIFY, "may change a file of the host's", LAYER},
	OPENS(SYS_open, 1),
	{SYS_openat, 2, O_ACCMODE, O_WRONLY, POLICY_NOTIFY, "may change a file of the host's",
		LAYER},
	{SYS_openat, 2, O_ACCMODE, O_RDWR, POLICY_NOTIFY, "may change a file of the host's", LAYER},
	OPENS(SYS_openat, 2),
	{SYS_newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH, POLICY_NOTIFY, "tells an owner", USER},
	{SYS_newfstatat, 0, LOW32, (uint32_t)AT_FDCWD, POLICY_NOTIFY, "of a path", FILES},
	{SYS_newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH, POLICY_ALLOW, "of a descriptor", FILES},
	{SYS_statx, 2, AT_EMPTY_PATH, AT_EMPTY_PATH, POLICY_NOTIFY, "tells an owner", USER},
	{SYS_statx, 0, LOW32, (uint32_t)AT_FDCWD, POLICY_NOTIFY, "of a path", FILES},
	{SYS_statx, 2, AT_EMPTY_PATH, AT_EMPTY_PATH, POLICY_ALLOW, "of a descriptor", FILES},
	{SYS_sendto, 5, LOW32, 0, POLICY_ALLOW, "says no address", FILES},
	NOT_PID_1(SYS_prlimit64, 0),
	{SYS_prlimit64, 1, LOW32, RLIMIT_LOCKS, POLICY_NOTIFY, "holds virtual users", USER},
	{SYS_prlimit64, 1, LOW32, RLIMIT_RSS, POLICY_NOTIFY, "holds virtual users", USER},
	OF_ITSELF(SYS_prlimit64, 0),
	{SYS_setrlimit, 0, LOW32, RLIMIT_LOCKS, POLICY_NOTIFY, "holds virtual users", USER},
	{SYS_setrlimit, 0, LOW32, RLIMIT_RSS, POLICY_NOTIFY, "holds virtual users", USER},
	{SYS_getrlimit, 0, LOW32, RLIMIT_LOCKS, POLICY_NOTIFY, "holds virtual users", USER},
	{SYS_getrlimit, 0, LOW32, RLIMIT_RSS, POLICY_NOTIFY, "holds virtual users", USER},
	NOT_PID_1(SYS_sched_setparam, 0),
	OF_ITSELF(SYS_sched_setparam, 0),
	NOT_PID_1(SYS_sched_setscheduler, 0),
	OF_ITSELF(SYS_sched_setscheduler, 0),
	NOT_PID_1(SYS_sched_setaffinity, 0),
	NOT_PID_1(SYS_sched_setattr, 0),
	OF_ITSELF(SYS_sched_setattr, 0),
	OF_ALL(SYS_setpriority, PRIO_USER),
	NOT_PID_1(SYS_setpriority, 1),
	OF_ITSELF(SYS_setpriority, 1),
	OF_ALL(SYS_ioprio_set, IOPRIO_WHO_USER),
	NOT_PID_1(SYS_ioprio_set, 1),
	OF_ITSELF(SYS_ioprio_set, 1),
	NOT_PID_1(SYS_migrate_pages, 0),
	OF_ITSELF(SYS_migrate_pages, 0),
	OF_ITSELF(SYS_sched_getparam, 0),
	OF_ITSELF(SYS_sched_getscheduler, 0),
	OF_ITSELF(SYS_sched_rr_get_interval, 0),
	OF_ITSELF(SYS_sched_getaffinity, 0),
	OF_ITSELF(SYS_sched_getattr, 0),
	OF_ALL(SYS_getpriority, PRIO_USER),
	OF_ITSELF(SYS_getpriority, 1),
	OF_ALL(SYS_ioprio_get, IOPRIO_WHO_USER),
	OF_ITSELF(SYS_ioprio_get, 1),
	OF_ITSELF(SYS_get_robust_list, 0),
	OF_ITSELF(SYS_move_pages, 0),
};
const size_t policy_n_rules = ARRAY_SIZE(policy_rules);

static int by_number(const void *key, const void *call)
{
	return *(const int *)key - ((const struct policy_call *)call)->nr;
}

const struct policy_call *policy_find(int nr)
{
	return sort_find(&nr, policy_calls, policy_n_calls, sizeof(policy_calls[0]), by_number);
}

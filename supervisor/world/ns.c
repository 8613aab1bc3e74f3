// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * One clone(2) makes everything but the time namespace: a user namespace comes first, whatever the
 * order of the flags, and gives the child the capabilities that the others need.  The child maps
 * exactly one uid and one gid, its own (user_namespaces(7): that needs no privilege once setgroups
 * is denied).
 *
 * A time namespace is entered by the next child and its offsets are fixed from then on, so the
 * child unshares it and writes the offsets before it forks anything (time_namespaces(7)).  It
 * remains in the host's time itself; nothing of the session can tell.
 *
 * With a parent user namespace an intermediate process joins that first - joining can't be undone -
 * and clones with CLONE_PARENT, so that the child is the supervisor's all the same.
 */
#include "supervisor/world/ns.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/base.h"
#include "supervisor/world/world_config.h"
#include "vnet/vnet.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080 /* linux/sched.h, 5.6 */
#endif

#define PID_MAX_LIMIT (1u << 22) /* linux/threads.h */
#define NSEC_PER_SEC 1000000000LL

/* Once cloned, the child reads its ids as the overflow ids until it has mapped them. */
static void ids_outside(struct ns_ids *ids)
{
	ids->outer_uid = geteuid();
	ids->outer_gid = getegid();
}

static unsigned long clone_flags(const struct world_config *c)
{
	unsigned long flags =
		CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;

	return c->net == WORLD_NET_HOST ? flags : flags | CLONE_NEWNET;
}

static int clone_failed(int error, struct err *e)
{
	err_errno(e, error, "cannot make namespaces");
	/* of which there will be more again */
	if (error == -EMFILE || error == -EAGAIN || error == -ENOMEM)
		return error;
	err_reclass(e, ERR_HOST);
	if (error == -ENOSPC)
		return err_hint(e, "user.max_user_namespaces or another limit in /proc/sys/user is "
				   "reached");
	return err_hint(e, "this host does not let ordinary users make user namespaces; "
			   "`podrun check` says what is missing");
}

/* The intermediate process: joins @c->parent_userns and clones the real child. */
static pid_t clone_below(const struct world_config *c, struct ns_ids *ids, struct err *e)
{
	int status[2];
	pid_t helper, child = -EPROTO;

	if (pipe2(status, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "pipe");
	helper = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (helper < 0) {
		close(status[0]);
		close(status[1]);
		return err_errno(e, -errno, "fork");
	}
	if (helper == 0) {
		child = setns(c->parent_userns, CLONE_NEWUSER);
		ids_outside(ids);
		if (child == 0)
			child = (pid_t)syscall(
				SYS_clone, clone_flags(c) | CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
		if (child == 0) {
			close(status[0]);
			close(status[1]);
			return 0;
		}
		child = child < 0 ? -errno : child;
		(void)!write(status[1], &child, sizeof(child));
		_exit(0);
	}
	close(status[1]);
	io_read_full(status[0], &child, sizeof(child));
	close(status[0]);
	waitpid(helper, NULL, 0);
	return child < 0 ? clone_failed(child, e) : child;
}

pid_t ns_clone(const struct world_config *c, struct ns_ids *ret_ids, int *ret_pidfd,
	struct err *e)
{
	int pidfd = -1;
	pid_t pid;

	ids_outside(ret_ids);
	ret_ids->uid = c->as_root ? 0 : c->uid;
	ret_ids->gid = c->as_root ? 0 : c->gid;
	if (c->parent_userns >= 0) {
		pid = clone_below(c, ret_ids, e);
		if (pid > 0)
			*ret_pidfd = sys_pidfd_open(pid, 0);
		return pid;
	}
	pid = (pid_t)syscall(SYS_clone, clone_flags(c) | CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0);
	if (pid < 0)
		return clone_failed(-errno, e);
	if (pid > 0)
		*ret_pidfd = pidfd;
	return pid;
}

static int map_ids(const struct ns_ids *ids, struct err *e)
{
	char line[64];
	int r;

	r = io_write_str(AT_FDCWD, "/proc/self/setgroups", "deny");
	if (r < 0 && r != -ENOENT)
		return err_errno(e, r, "cannot write /proc/self/setgroups");
	snprintf(line, sizeof(line), "%u %u 1\n", ids->gid, ids->outer_gid);
	r = io_write_str(AT_FDCWD, "/proc/self/gid_map", line);
	if (r == 0) {
		snprintf(line, sizeof(line), "%u %u 1\n", ids->uid, ids->outer_uid);
		r = io_write_str(AT_FDCWD, "/proc/self/uid_map", line);
	}
	if (r < 0) {
		err_errno(e, r, "cannot map the user's id");
		err_reclass(e, ERR_HOST);
		return err_hint(e, "a security module seems to restrict user namespaces; "
				   "see `podrun check`");
	}
	return 0;
}

static void split_offset(int64_t ns, long long *sec, long long *rest)
{
	*sec = ns / NSEC_PER_SEC;
	*rest = ns % NSEC_PER_SEC;
	if (*rest < 0) {
		*rest += NSEC_PER_SEC;
		--*sec;
	}
}

/*
 * What the kernel counts from is not what this host says if we are in a time namespace ourselves.
 */
static int64_t own_offset(const char *text, const char *clock)
{
	const char *line = strstr(text, clock);
	long long sec, nsec;

	return line && sscanf(line + strlen(clock), "%lld %lld", &sec, &nsec) == 2
		       ? sec * NSEC_PER_SEC + nsec
		       : 0;
}

int ns_set_clocks(const struct ns_clocks *c, int64_t monotonic_ns, int64_t boottime_ns)
{
	long long msec, mrest, bsec, brest;
	char text[128];

	if (c->fd < 0 || (monotonic_ns == 0 && boottime_ns == 0))
		return 0;
	split_offset(monotonic_ns + c->monotonic_ns, &msec, &mrest);
	split_offset(boottime_ns + c->boottime_ns, &bsec, &brest);
	snprintf(text, sizeof(text), "monotonic %lld %lld\nboottime %lld %lld\n", msec, mrest,
		bsec, brest);
	return io_write_full(c->fd, text, strlen(text));
}

static int make_timens(struct ns_clocks *ret, struct err *e)
{
	_cleanup_buf_ struct buf own = BUF_INIT;

	*ret = (struct ns_clocks){.fd = -1};
	if (unshare(CLONE_NEWTIME) < 0) {
		/* Older than 5.6 or not configured: the vDSO's offsets have to do (ckpt). */
		log_info("no time namespace: %s", strerror(errno));
		return 0;
	}
	if (io_read_file(AT_FDCWD, "/proc/self/timens_offsets", 4096, &own) < 0 || !buf_cstr(&own))
		return err_errno(e, -EIO, "cannot read the session's clocks");
	ret->monotonic_ns = own_offset(buf_cstr(&own), "monotonic");
	ret->boottime_ns = own_offset(buf_cstr(&own), "boottime");
	ret->fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	return ret->fd < 0 ? err_errno(e, -errno, "cannot set the session's clocks") : 0;
}

static int loopback_up(struct err *e)
{
	_cleanup_close_ int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &ifr) < 0)
		return err_errno(e, -errno, "cannot bring the loopback up");
	return 0;
}

/*
 * What the session's own network is told.  No kernel lets a connection of MPTCP be taken up; where
 * there is none programs use TCP.  ping(1) of the session needs no privilege for its own network.
 */
static void tune_network(void)
{
	char range[32];

	snprintf(range, sizeof(range), "%u %u", getgid(), getgid());
	if (io_write_str(AT_FDCWD, "/proc/sys/net/mptcp/enabled", "0") < 0)
		log_debug("no MPTCP to switch off");
	if (io_write_str(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", range) < 0)
		log_debug("ping sockets stay closed");
	/* What went out by net0 may be answered by VNET_VETH_NAME. */
	if (io_write_str(AT_FDCWD, "/proc/sys/net/ipv4/conf/all/rp_filter", "0") < 0 ||
		io_write_str(AT_FDCWD, "/proc/sys/net/ipv4/conf/default/rp_filter", "0") < 0)
		log_debug("ways back are checked");
	/* Nobody else's ports are in it. */
	if (io_write_str(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0") < 0)
		log_debug("low ports are for root");
}

/* Counts inside this user namespace only (5.14); pid 1 is one of them. */
static int limit_pids(const struct world_config *c, struct err *e)
{
	uint64_t most = MIN(c->max_pids, (uint64_t)PID_MAX_LIMIT) + 1;
	struct rlimit limit;

	if (!c->max_pids || getrlimit(RLIMIT_NPROC, &limit) < 0)
		return 0;
	/* what the host allows at most stays the limit */
	limit.rlim_max = MIN((uint64_t)limit.rlim_max, most);
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NPROC, &limit) < 0)
		return err_errno(e, -errno, "cannot limit processes to %llu",
			(unsigned long long)c->max_pids);
	return 0;
}

int ns_enter(const struct world_config *c, const struct ns_ids *ids, struct ns_clocks *ret_clocks,
	struct err *e)
{
	const char *hostname = c->hostname ? c->hostname : c->name;
	int r;

	r = map_ids(ids, e);
	if (r == 0)
		r = make_timens(ret_clocks, e);
	if (r == 0 && hostname && sethostname(hostname, strlen(hostname)) < 0)
		r = err_errno(e, -errno, "cannot set host name '%s'", hostname);
	if (r == 0 && c->net != WORLD_NET_HOST) {
		tune_network();
		r = loopback_up(e);
	}
	return r < 0 ? r : limit_pids(c, e);
}

int ns_network(const struct world_config *c, int *ret_tun, int *ret_diag, struct err *e)
{
	const struct world_network *n = &c->network;
	struct vnet_interface net0 = {.name = "net0", .mtu = n->mtu, .default_routes = true};

	if (inet_pton(AF_INET, n->address4, &net0.v4.v4) == 1)
		net0.v4.family = AF_INET;
	if (inet_pton(AF_INET6, n->address6, &net0.v6.v6) == 1)
		net0.v6.family = AF_INET6;
	*ret_diag = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (*ret_diag < 0)
		return err_errno(e, -errno, "sock_diag");
	*ret_tun = vnet_tun_make(&net0, e);
	if (*ret_tun >= 0)
		return 0;
	*ret_diag = close_fd(*ret_diag);
	return err_wrap(e, "no network of its own");
}

int ns_open(int ret[NS_KIND_MAX], struct err *e)
{
	static const char *const names[NS_KIND_MAX] = {
		[NS_USER] = "user",
		[NS_PID] = "pid",
		[NS_MNT] = "mnt",
		[NS_NET] = "net",
		[NS_IPC] = "ipc",
		[NS_UTS] = "uts",
		[NS_TIME] = "time_for_children",
	};
	char path[48];

	for (int i = 0; i < NS_KIND_MAX; i++) {
		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		ret[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (ret[i] < 0 && !(i == NS_TIME && errno == ENOENT)) {
			int r = err_errno(e, -errno, "%s", path);

			while (i-- > 0)
				close_fd(ret[i]);
			return r;
		}
	}
	return 0;
}

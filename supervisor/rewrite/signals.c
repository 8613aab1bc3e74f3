// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in signals.h. */
#include "supervisor/rewrite/signals.h"

#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/tasks.h"
#include "supervisor/rewrite/users/users.h"

#define MAX_CODE 0xffff /* the kernel's own are 128 (SI_KERNEL) and less */

/* ---- seen by the session -------------------------------------------------------------------- */

/* Whether the kernel has put a number of the host into si_pid: siginfo_layout() of the kernel. */
static bool has_pid(const siginfo_t *info)
{
	if (info->si_code == SI_USER || info->si_code == SI_TKILL)
		return true;
	/* of mq_notify(3): who has sent the message */
	if (info->si_code == SI_MESGQ)
		return true;
	return info->si_signo == SIGCHLD && info->si_code > 0;
}

bool rewrite_siginfo(const struct tasks *t, siginfo_t *info)
{
	if (info->si_code == SIGNALS_KILL || info->si_code == SIGNALS_TKILL) {
		info->si_code = info->si_code == SIGNALS_KILL ? SI_USER : SI_TKILL;
		return true;
	}
	if (info->si_code < SIGNALS_POSITIVE && info->si_code >= SIGNALS_POSITIVE - MAX_CODE) {
		info->si_code = SIGNALS_POSITIVE - info->si_code;
		return true;
	}
	if (!has_pid(info) || !info->si_pid)
		return false;
	rewrite_users_sender(t, info->si_pid, info);
	info->si_pid = numbers_virtual(t->numbers, info->si_pid);
	return true;
}

void rewrite_siginfo_back(const struct tasks *t, siginfo_t *info)
{
	if (info->si_code == SI_USER)
		info->si_code = SIGNALS_KILL;
	else if (info->si_code == SI_TKILL)
		info->si_code = SIGNALS_TKILL;
	else if (has_pid(info))
		info->si_pid = numbers_host(t->numbers, info->si_pid);
}

/* ---- sent by the session -------------------------------------------------------------------- */

static siginfo_t from(const struct tasks *t, const struct task *sender, int sig, int code)
{
	siginfo_t info = {.si_signo = sig, .si_code = code};

	info.si_pid = numbers_virtual(t->numbers, sender->tgid);
	info.si_uid = getuid();
	rewrite_users_sender(t, sender->host, &info);
	return info;
}

/* Pid 1 takes no signal; to say so is not an error (pid_namespaces(7)). */
static int send_to_process(pid_t host, pid_t number, int sig, siginfo_t *info)
{
	if (number == 1)
		return 0;
	if (sig == 0)
		return kill(host, 0) < 0 ? -errno : 0;
	return syscall(SYS_rt_sigqueueinfo, host, sig, info) < 0 ? -errno : 0;
}

static bool is_process(const struct task *task)
{
	return task && !task->gone && task->tgid == task->host;
}

/* @group: on the host, 0 for everybody but pid 1 and the sender. */
static int send_to_all(
	const struct tasks *t, const struct task *sender, pid_t group, int sig, siginfo_t *info)
{
	int r = -ESRCH;

	for (int i = 1; i < NUMBERS_MAX; i++) {
		const struct task *one = t->all[i];

		if (!is_process(one) || (group && getpgid(one->host) != group))
			continue;
		if (!group && (one->number == 1 || one->tgid == sender->tgid))
			continue;
		if (send_to_process(one->host, one->number, sig, info) == 0)
			r = 0;
	}
	return r;
}

static int send_to(
	const struct tasks *t, const struct task *sender, pid_t number, int sig, siginfo_t *info)
{
	pid_t host;

	if (sig < 0 || sig >= _NSIG)
		return -EINVAL;
	if (number == -1)
		return send_to_all(t, sender, 0, sig, info);
	if (number <= 0) {
		host = number ? tasks_host_group(t, -number) : getpgid(sender->host);
		return host > 0 ? send_to_all(t, sender, host, sig, info) : -ESRCH;
	}
	host = tasks_host_task(t, number);
	return host ? send_to_process(host, number, sig, info) : -ESRCH;
}

int signals_kill(const struct tasks *t, const struct task *sender, pid_t number, int sig)
{
	siginfo_t info = from(t, sender, sig, SIGNALS_KILL);

	return send_to(t, sender, number, sig, &info);
}

static int send_to_thread(const struct tasks *t, pid_t tgid, pid_t tid, int sig, siginfo_t *info)
{
	pid_t host = tasks_host_task(t, tid), process;
	const struct task *task = tasks_find(t, host);

	if (sig < 0 || sig >= _NSIG || tid <= 0 || tgid < 0)
		return -EINVAL;
	process = tgid ? tasks_host_task(t, tgid) : task ? task->tgid : 0;
	if (!task || task->gone || !process || process != task->tgid)
		return -ESRCH;
	if (tid == 1)
		return 0;
	if (sig == 0)
		return 0;
	return syscall(SYS_rt_tgsigqueueinfo, process, host, sig, info) < 0 ? -errno : 0;
}

int signals_tgkill(const struct tasks *t, const struct task *sender, pid_t tgid, pid_t tid, int sig)
{
	siginfo_t info = from(t, sender, sig, SIGNALS_TKILL);

	return send_to_thread(t, tgid, tid, sig, &info);
}

/* What only the kernel may say nobody says but to himself: rt_sigqueueinfo(2). */
int signals_queue(const struct tasks *t, const struct task *sender, pid_t tgid, pid_t tid, int sig,
	siginfo_t *info)
{
	const struct task *target = tasks_find(t, tasks_host_task(t, tid));
	bool own = target == sender;

	if (!own && (info->si_code >= 0 || info->si_code == SI_TKILL))
		return -EPERM;
	info->si_signo = sig;
	if (info->si_code == SI_USER)
		info->si_code = SIGNALS_KILL;
	else if (info->si_code == SI_TKILL)
		info->si_code = SIGNALS_TKILL;
	else if (info->si_code == SI_MESGQ) /* as the kernel says it */
		info->si_pid = numbers_host(t->numbers, info->si_pid);
	else if (info->si_code > MAX_CODE)
		return -EINVAL;
	else if (info->si_code > 0)
		info->si_code = SIGNALS_POSITIVE - info->si_code;
	return tgid > 0 ? send_to_thread(t, tgid, tid, sig, info)
			: send_to(t, sender, tid, sig, info);
}

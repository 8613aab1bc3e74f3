// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in fault.h. */
#include "base/fault.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"

static const struct fault_info points[] = {
	[FAULT_FREEZE_BEGIN] = {"freeze.begin", "suspend snapshot", true, true},
	[FAULT_FREEZE_SWEPT] = {"freeze.swept", "suspend snapshot", true, true},
	[FAULT_FREEZE_QUIESCE] = {"freeze.quiesce", "suspend snapshot", true, true},
	[FAULT_FREEZE_SURVEY] = {"freeze.survey", "suspend snapshot", true, true},
	[FAULT_FREEZE_MEMORY] = {"freeze.memory", "suspend snapshot", true, true},
	[FAULT_FREEZE_NETWORK] = {"freeze.network", "suspend snapshot", true, true},
	[FAULT_FREEZE_FILES] = {"freeze.files", "suspend snapshot", true, true},
	[FAULT_FREEZE_PLAN] = {"freeze.plan", "suspend snapshot", true, true},
	[FAULT_SUSPEND_FROZEN] = {"suspend.frozen", "suspend snapshot", false, true},
	[FAULT_WRITE_BEGIN] = {"write.begin", "suspend snapshot", true, true},
	[FAULT_WRITE_FRONT] = {"write.front", "suspend snapshot", true, true},
	[FAULT_WRITE_RECORD] = {"write.record", "suspend snapshot", true, true},
	[FAULT_WRITE_ASKED] = {"write.asked", "suspend snapshot", true, true},
	[FAULT_WRITE_SENT] = {"write.sent", "suspend snapshot", true, true},
	[FAULT_WRITE_PUT] = {"write.put", "suspend snapshot", true, true},
	[FAULT_WRITE_RECORDS] = {"write.records", "suspend snapshot", true, true},
	[FAULT_WRITE_DATA] = {"write.data", "suspend snapshot", true, true},
	[FAULT_WRITE_THAW] = {"write.thaw", "snapshot", true, true},
	[FAULT_WRITE_FINISH] = {"write.finish", "suspend snapshot", true, true},
	[FAULT_WRITE_SYNC] = {"write.sync", "suspend snapshot", true, true},
	[FAULT_SUSPEND_WRITTEN] = {"suspend.written", "suspend snapshot", false, true},
	[FAULT_SUSPEND_PLACED] = {"suspend.placed", "suspend snapshot", false, true},
	[FAULT_SUSPEND_RECORDED] = {"suspend.recorded", "suspend", false, true},
	[FAULT_END_BEGIN] = {"end.begin", "suspend", true, false},
	[FAULT_END_KILLED] = {"end.killed", "suspend", true, false},
	[FAULT_SUSPEND_ENDED] = {"suspend.ended", "suspend", false, false},
	[FAULT_RESTORE_BEGIN] = {"restore.begin", "resume", true, true},
	[FAULT_RESTORE_FRONT] = {"restore.front", "resume", true, true},
	[FAULT_RESUME_IMAGE] = {"resume.image", "resume", false, true},
	[FAULT_RESTORE_UNPACK] = {"restore.unpack", "resume", true, true},
	[FAULT_RESUME_UNPACKED] = {"resume.unpacked", "resume", false, true},
	[FAULT_RESUME_WORLD] = {"resume.world", "resume", false, true},
	[FAULT_RESTORE_READ] = {"restore.read", "resume", true, true},
	[FAULT_RESTORE_WORLD] = {"restore.world", "resume", true, true},
	[FAULT_RESTORE_TASKS] = {"restore.tasks", "resume", true, true},
	[FAULT_RESTORE_RECORD] = {"restore.record", "resume", true, true},
	[FAULT_RESTORE_CREATE] = {"restore.create", "resume", true, true},
	[FAULT_RESTORE_DATA] = {"restore.data", "resume", true, true},
	[FAULT_RESTORE_LINK] = {"restore.link", "resume", true, true},
	[FAULT_RESTORE_FINISH] = {"restore.finish", "resume", true, true},
	[FAULT_RESUME_RESTORED] = {"resume.restored", "resume", false, true},
	[FAULT_RESUME_NAMED] = {"resume.named", "resume", false, true},
	[FAULT_RESUME_LISTENING] = {"resume.listening", "resume", false, true},
	[FAULT_RESUME_CONSUMED] = {"resume.consumed", "resume", false, true},
	[FAULT_RELEASE_BEGIN] = {"release.begin", "resume", true, true},
	[FAULT_RELEASE_HALF] = {"release.half", "resume", true, false},
	[FAULT_RESUME_RELEASED] = {"resume.released", "resume", false, false},
	[FAULT_TAKE_QUEUE] = {"take.queue", "", true, false},
	[FAULT_TAKE_TERMINAL] = {"take.terminal", "", true, false},
	[FAULT_COPY_HELPED] = {"copy.helped", "", true, false},
	[FAULT_AHEAD_BEGIN] = {"ahead.begin", "", true, true},
	[FAULT_AHEAD_READY] = {"ahead.ready", "", false, true},
	[FAULT_AHEAD_WATCHED] = {"ahead.watched", "", true, false},
	[FAULT_AHEAD_ROUND] = {"ahead.round", "", true, true},
	[FAULT_AHEAD_ARRIVED] = {"ahead.arrived", "", true, true},
};
static_assert(ARRAY_SIZE(points) == FAULT_POINT_MAX, "a point without a row");

enum action { FAIL, KILL, KILL_SUPERVISOR, KILL_CLIENT, KILL_WORKER, STOP, N_ACTIONS };
static const char *const actions[] = {
	"fail", "kill", "kill-supervisor", "kill-client", "kill-worker", "stop"};
static_assert(ARRAY_SIZE(actions) == N_ACTIONS, "an action without a name");

#define WAITS_US 1000
#define WAITS_N	 10000

_Atomic bool fault_armed; /* by threads that come by at once; what is due is there before */
static _Atomic bool *worker_waits; /* shared by the processes of an operation */
static struct {
	enum fault_point point;
	enum action action;
	_Atomic unsigned left; /* strikes when it gets to 0 */
	pid_t supervisor, client, worker;
} due;

const struct fault_info *fault_info(enum fault_point p)
{
	return &points[p];
}

/* FAULT_POINT_MAX if there is none of that name. */
static unsigned find_point(const char *word)
{
	unsigned i = 0;

	while (i < FAULT_POINT_MAX && strcmp(points[i].name, word) != 0)
		i++;
	return i;
}

static unsigned find_action(const char *word)
{
	unsigned i = 0;

	while (i < N_ACTIONS && strcmp(actions[i], word) != 0)
		i++;
	return i;
}

void fault_load(pid_t client)
{
	const char *path = getenv("PODRUN_TEST_FAULT");
	_cleanup_buf_ struct buf text = BUF_INIT;
	char point[64], action[64];
	unsigned nth = 1;

	fault_armed = false;
	if (!path || io_read_file(AT_FDCWD, path, 4096, &text) < 0 || !buf_cstr(&text) ||
		sscanf(buf_cstr(&text), "%63s %63s %u", point, action, &nth) < 2)
		return;
	due.point = find_point(point);
	due.action = find_action(action);
	due.left = nth;
	due.supervisor = getpid();
	due.client = client;
	fault_armed = due.point < FAULT_POINT_MAX && due.action < N_ACTIONS && nth > 0;
	if (!fault_armed)
		log_error("%s: no such fault: %s %s", path, point, action);
}

void fault_in_worker(void)
{
	if (due.supervisor == getpid())
		due.supervisor = getppid(); /* one that reads the file itself */
	due.worker = getpid();
	worker_waits = NULL;
	if (fault_armed && due.action == KILL_WORKER)
		worker_waits = mmap(NULL, sizeof(*worker_waits), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (worker_waits == MAP_FAILED)
		worker_waits = NULL;
}

void fault_worker_waits(void)
{
	if (worker_waits && getpid() == due.worker)
		*worker_waits = true;
}

/* Not in the middle of something else, which has points of its own. */
static void kill_worker(void)
{
	if (due.worker <= 0 || !worker_waits)
		return;
	for (int i = 0; i < WAITS_N && !*worker_waits; i++)
		usleep(WAITS_US);
	kill(due.worker, SIGKILL);
}

bool fault_may_fail(enum fault_point p)
{
	return fault_armed && due.point == p && due.action == FAIL;
}

int fault_strike(enum fault_point p, struct err *e)
{
	if (p != due.point || --due.left)
		return 0;
	fault_armed = false;
	log_warn("fault at %s: %s", points[p].name, actions[due.action]);
	switch (due.action) {
	case KILL:
		raise(SIGKILL);
		break;
	case KILL_SUPERVISOR:
		/* The parent of a worker, as long as there is one. */
		if (getpid() == due.supervisor || getppid() == due.supervisor)
			kill(due.supervisor, SIGKILL);
		while (getppid() == due.supervisor)
			usleep(100);
		break;
	case STOP:
		raise(SIGSTOP);
		break;
	case KILL_CLIENT:
		if (due.client > 0)
			kill(due.client, SIGKILL);
		break;
	case KILL_WORKER:
		kill_worker();
		break;
	default:
		return err_set(e, ERR_FAILED, -EIO, "fault at %s", points[p].name);
	}
	return 0;
}

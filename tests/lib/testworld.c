// SPDX-License-Identifier: GPL-2.0-or-later
/* The filter notifies calls and somebody has to answer: a child that knows one answer. */
#include "tests/lib/testworld.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static _Noreturn void answer_all(int listener)
{
	union {
		struct seccomp_notif n;
		char room[4096];
	} req;
	union {
		struct seccomp_notif_resp r;
		char room[4096];
	} resp;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		struct pollfd p = {listener, POLLIN, 0};

		poll(&p, 1, -1);
		if (p.revents & (POLLHUP | POLLERR))
			_exit(0);
		memset(&req, 0, sizeof(req));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
			continue;
		memset(&resp, 0, sizeof(resp));
		resp.r.id = req.n.id;
		resp.r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
}

int testworld_make(struct testworld *ret, const char *name, const char *files, struct err *e)
{
	const struct world_config config = {.name = name,
		.files_dir = files,
		.uid = getuid(),
		.gid = getgid(),
		.parent_userns = -1};
	struct testworld w = {.answerer = 0};
	int r = world_create(&w.world, &config, NULL, e);

	if (r < 0)
		return r;
	w.answerer = fork();
	if (w.answerer == 0)
		answer_all(w.world.listener);
	if (w.answerer < 0) {
		world_destroy(&w.world);
		return err_errno(e, -errno, "fork");
	}
	*ret = w;
	return 0;
}

void testworld_end(struct testworld *w)
{
	if (!w->answerer)
		return;
	kill(w->answerer, SIGKILL);
	waitpid(w->answerer, NULL, 0);
	w->answerer = 0;
	world_destroy(&w->world);
}

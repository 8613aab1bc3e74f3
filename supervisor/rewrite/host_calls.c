// SPDX-License-Identifier: GPL-2.0-or-later
/* Rows for the calls about host names.  The theory of operation is in host.h. */
#include <string.h>
#include <sys/utsname.h>

#include "base/base.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/users/caps.h"
#include "supervisor/rewrite/users/users.h"

static void leave_uname(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	const uint64_t at = task->call.args[0];

	if (call_failed(regs))
		return;
	if (task_poke(task, at + offsetof(struct utsname, nodename), rw->host.node,
		    sizeof(rw->host.node)) < 0 ||
		task_poke(task, at + offsetof(struct utsname, domainname), rw->host.domain,
			sizeof(rw->host.domain)) < 0)
		regs->rax = (unsigned long long)-EFAULT;
}

const struct rewrite_call host_calls[] = {
	{SYS_uname, .leave = leave_uname},
};
const size_t host_n_calls = ARRAY_SIZE(host_calls);

/* As the root of a namespace may, who has a capability over it. */
static bool may_set(const struct question *q)
{
	const struct rewrite_users *us = q->rw->tasks.users;
	struct users u;

	if (!us || !us->root)
		return false;
	rewrite_users_load(us, q->tid, &u);
	return users_caps_has(q->asker, &u, CAP_SYS_ADMIN);
}

static long set_name(struct question *q, char *name)
{
	char text[HOST_NAME_LEN + 1] = "";
	int len = question_arg(q, 1);

	if (!may_set(q))
		return -EPERM;
	if (len < 0 || len > (int)HOST_NAME_LEN)
		return -EINVAL;
	if (question_read(q, q->data->args[0], text, (size_t)len) < 0)
		return -EFAULT;
	memcpy(name, text, sizeof(text));
	return 0;
}

static long set_host_name(struct question *q)
{
	return set_name(q, q->rw->host.node);
}

static long set_domain_name(struct question *q)
{
	return set_name(q, q->rw->host.domain);
}

const struct answer_row host_answers[] = {
	{SYS_sethostname, set_host_name},
	{SYS_setdomainname, set_domain_name},
};
const size_t host_n_answers = ARRAY_SIZE(host_answers);

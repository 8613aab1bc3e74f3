// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in users.h. */
#include "supervisor/rewrite/users/users.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/names/names.h"
#include "supervisor/names/owners.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/users/caps.h"
#include "supervisor/world/world_config.h"

int rewrite_users_begin(struct rewrite *rw, const struct world_config *c,
	struct users_groups *groups, struct err *e)
{
	struct names names = names_choose(c);
	struct rewrite_users *us;
	int r;

	if (names.way[NAMES_USER] != NAMES_TRANSLATED)
		return 0;
	us = calloc(1, sizeof(*us));
	if (!us)
		return err_errno(e, -ENOMEM, "users");
	*us = (struct rewrite_users){.root = c->as_root,
		.uid = c->as_root ? 0 : c->uid,
		.gid = c->as_root ? 0 : c->gid,
		.host_uid = getuid(),
		.host_gid = getgid(),
		.groups = groups};
	r = us->root ? owners_create(&us->owners, c->files_dir, e) : 0;
	if (r < 0)
		free(us);
	else
		rw->tasks.users = us;
	return r;
}

/* ---- processes ------------------------------------------------------------------------------ */

void rewrite_users_load(const struct rewrite_users *us, pid_t host, struct users *ret)
{
	*ret = (struct users){.uid = {us->uid, us->uid, us->uid},
		.gid = {us->gid, us->gid, us->gid},
		.groups = USERS_NO_GROUPS};
	if (us->root && host > 0)
		users_load(host, ret);
}

/* Of a process that may have ended: what it was last. */
static uint32_t real_uid(const struct tasks *t, pid_t host)
{
	const struct task *task = tasks_find(t, host), *process;
	struct users u;

	process = task ? tasks_find(t, task->tgid) : NULL;
	if (!t->users->root)
		return t->users->uid;
	if (process && process->gone)
		return process->uid;
	rewrite_users_load(t->users, host, &u);
	return u.uid.real;
}

/* Of what was queued in the session's own words nothing is the host's. */
void rewrite_users_sender(const struct tasks *t, pid_t host, siginfo_t *info)
{
	if (!t->users)
		return;
	if (info->si_uid == t->users->host_uid)
		info->si_uid = real_uid(t, host);
	else if (!tasks_find(t, host))
		info->si_uid = OWNERS_NOBODY;
}

/* ---- sockets -------------------------------------------------------------------------------- */

static uint32_t seen(uint32_t id, uint32_t host, uint32_t is)
{
	return id == host ? is : OWNERS_NOBODY;
}

void rewrite_users_peer(const struct rewrite_users *us, struct ucred *cred, bool effective)
{
	struct users u;

	if (cred->uid == (uid_t)-1) /* a socket that has no peer yet */
		return;
	rewrite_users_load(us, cred->pid, &u);
	cred->uid = seen(cred->uid, us->host_uid, effective ? u.uid.effective : u.uid.real);
	cred->gid = seen(cred->gid, us->host_gid, effective ? u.gid.effective : u.gid.real);
}

static bool may_be(struct users_ids t, bool root, uint32_t id)
{
	return root || id == t.real || id == t.effective || id == t.saved;
}

int rewrite_users_send(const struct rewrite_users *us, const struct task *task, struct ucred *cred)
{
	struct users u;
	bool root;

	rewrite_users_load(us, task->host, &u);
	root = us->root && users_caps_has(task, &u, CAP_SETUID);
	if (!may_be(u.uid, root, cred->uid) || !may_be(u.gid, root, cred->gid))
		return -EPERM;
	cred->uid = us->host_uid;
	cred->gid = us->host_gid;
	return 0;
}

/* ---- owners --------------------------------------------------------------------------------- */

void rewrite_users_show(const struct rewrite_users *us, pid_t viewer, const char *path,
	uint32_t *uid, uint32_t *gid)
{
	struct users u;

	rewrite_users_load(us, viewer, &u);
	owners_show(us->owners, &u, path, uid, gid);
}

void rewrite_users_show_plain(const struct rewrite_users *us, uint32_t *uid, uint32_t *gid)
{
	*uid = seen(*uid, us->host_uid, us->uid);
	*gid = seen(*gid, us->host_gid, us->gid);
}

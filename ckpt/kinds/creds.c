// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Credentials: user and group ids as the session sees them, capabilities, no_new_privs.
 *
 * Everything is asked and told from inside, so that numbers are the session's.  Rebuilt tasks hold
 * all capabilities of the session's user namespace until here; what they had is a subset, and is
 * put on every thread, in the order the kernel demands: bounding set, groups and ids while the
 * capabilities for that are there, then the capabilities themselves.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/survey.h"
#include "proto/tasks.pb-c.h"

#define MAX_GROUPS 16384
#define LAST_CAP   63

struct cap_data {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct data[2];
};

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__Creds m = PB__CREDS__INIT;
	struct remote *remote;
	uint32_t *uid, *gid, *groups;
	uint64_t uid_at, gid_at, groups_at;
	int r, bits;

	if (s.proc->state == CKPT_ZOMBIE)
		return 1;
	r = ckpt_proc_remote(s.proc, &remote, e);
	if (r < 0)
		return r;
	uid = remote_data(remote, 16, &uid_at);
	gid = remote_data(remote, 16, &gid_at);
	groups = remote_data(remote, MAX_GROUPS * sizeof(*groups), &groups_at);
	remote_add(remote, SYS_getresuid, uid_at, uid_at + 4, uid_at + 8, 0, 0, 0);
	remote_add(remote, SYS_getresgid, gid_at, gid_at + 4, gid_at + 8, 0, 0, 0);
	bits = remote_add(remote, SYS_prctl, PR_GET_SECUREBITS, 0, 0, 0, 0, 0);
	remote_add(remote, SYS_getgroups, MAX_GROUPS, groups_at, 0, 0, 0, 0);
	r = ckpt_run_all(remote, "credentials", e);
	if (r < 0)
		return r;
	m.n_uid = m.n_gid = 3;
	m.uid = uid;
	m.gid = gid;
	m.securebits = (uint32_t)remote_result(remote, bits);
	m.n_groups = (size_t)remote_result(remote, bits + 1);
	m.groups = groups;
	m.cap_inheritable = s.proc->status.cap_inh;
	m.cap_permitted = s.proc->status.cap_prm;
	m.cap_effective = s.proc->status.cap_eff;
	m.cap_bounding = s.proc->status.cap_bnd;
	m.cap_ambient = s.proc->status.cap_amb;
	m.no_new_privs = s.proc->status.no_new_privs;
	return ckpt_pack(&m.base, body, e);
}

static int drop_bounding(struct remote *remote, uint64_t keep, struct err *e)
{
	long v;
	int r;

	for (int cap = 0; cap <= LAST_CAP; cap++) {
		if (keep & (1UL << cap))
			continue;
		/* EINVAL: this kernel has fewer */
		r = remote_call(remote, &v, e, SYS_prctl, PR_CAPBSET_DROP, (uint64_t)cap, 0, 0, 0,
			0);
		if (r < 0)
			return r;
		if (v < 0)
			break;
	}
	return 0;
}

/* Groups can't be set where setgroups is denied; then they are what the world gave. */
static int set_ids(struct remote *remote, const Pb__Creds *m, struct err *e)
{
	size_t size = m->n_groups * sizeof(uint32_t);
	uint64_t groups = m->n_groups ? remote_put(remote, m->groups, size) : 0;
	long v;
	int r = remote_call(remote, &v, e, SYS_setgroups, m->n_groups, groups, 0, 0, 0, 0);

	if (r < 0)
		return r;
	r = remote_call(remote, &v, e, SYS_prctl, PR_SET_SECUREBITS,
		SECBIT_KEEP_CAPS | SECBIT_NO_SETUID_FIXUP, 0, 0, 0, 0);
	if (r < 0)
		return r;
	remote_add(remote, SYS_setresgid, m->gid[0], m->gid[1], m->gid[2], 0, 0, 0);
	remote_add(remote, SYS_setresuid, m->uid[0], m->uid[1], m->uid[2], 0, 0, 0);
	return ckpt_run_all(remote, "user and group ids", e);
}

static int set_caps(struct remote *remote, const Pb__Creds *m, struct err *e)
{
	struct cap_data c = {.header = {.version = _LINUX_CAPABILITY_VERSION_3}};
	uint64_t at;

	for (int i = 0; i < 2; i++) {
		c.data[i].effective = (uint32_t)(m->cap_effective >> (32 * i));
		c.data[i].permitted = (uint32_t)(m->cap_permitted >> (32 * i));
		c.data[i].inheritable = (uint32_t)(m->cap_inheritable >> (32 * i));
	}
	remote_add(remote, SYS_prctl, PR_SET_SECUREBITS, m->securebits, 0, 0, 0, 0);
	at = remote_put(remote, &c, sizeof(c));
	remote_add(remote, SYS_capset, at, at + offsetof(struct cap_data, data), 0, 0, 0, 0);
	remote_add(remote, SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0);
	for (int cap = 0; cap <= LAST_CAP; cap++)
		if (m->cap_ambient & (1UL << cap))
			remote_add(remote, SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE,
				(uint64_t)cap, 0, 0, 0);
	if (m->no_new_privs)
		remote_add(remote, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
	return ckpt_run_all(remote, "capabilities", e);
}

/* What this task holds now bounds what it can be given. */
static int clip(struct ckpt_build *b, const struct ckpt_build_thread *t, Pb__Creds *m,
	struct err *e)
{
	struct proc_status now;
	int r = proc_read_status(b->host_proc, t->proc->pid, &now, e);

	if (r < 0)
		return r;
	m->cap_permitted &= now.cap_prm;
	m->cap_effective &= m->cap_permitted;
	m->cap_inheritable &= now.cap_inh | now.cap_bnd;
	m->cap_ambient &= m->cap_permitted & m->cap_inheritable;
	return 0;
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Creds *m = pb__creds__unpack(NULL, rec->len, rec->body);
	struct ckpt_build_thread *t = ckpt_record_thread(b, rec);
	int r = 0;

	if (!m || !t || m->n_uid != 3 || m->n_gid != 3 || m->n_groups > MAX_GROUPS)
		r = ckpt_record_bad(rec, e);
	if (r == 0)
		r = clip(b, t, m, e);
	for (size_t i = 0; r == 0 && i < t->proc->n_threads; i++) {
		struct remote *remote = t->proc->threads[i].remote;

		r = drop_bounding(remote, m->cap_bounding, e);
		if (r == 0)
			r = set_ids(remote, m, e);
		if (r == 0)
			r = set_caps(remote, m, e);
	}
	pb__creds__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, FILE *out)
{
	Pb__Creds *m = pb__creds__unpack(NULL, len, body);

	if (m && m->n_uid == 3 && m->n_gid == 3)
		fprintf(out, "uid %u/%u/%u gid %u/%u/%u caps %llx%s", m->uid[0], m->uid[1],
			m->uid[2], m->gid[0], m->gid[1], m->gid[2],
			(unsigned long long)m->cap_effective,
			m->no_new_privs ? " no_new_privs" : "");
	pb__creds__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_creds = {
	.number = PROTO_KIND_CREDS,
	.name = "creds",
	.scope = CKPT_PROC,
	.dump = dump,
	.finish = finish,
	.show = show,
};

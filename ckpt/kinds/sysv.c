// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in sysv.h. */
#include "ckpt/kinds/sysv.h"

#include <errno.h>
#include <stdio.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "ckpt/build.h"
#include "proto/ipc.pb-c.h"

static const char *const families[] = {"shm", "sem", "msg"};

/* ---- dump ----------------------------------------------------------------------------------- */

/*
 * What shmctl(SHM_STAT) and its like tell of the object at @index, and SHM_INFO of the highest
 * index.
 */
union status {
	struct ipc_perm perm; /* each begins with it */
	struct shmid_ds shm;
	struct semid_ds sem;
	struct msqid_ds msg;
};

static int status_at(enum ckpt_ipc_sort sort, int index, union status *s)
{
	switch (sort) {
	case CKPT_IPC_SHM:
		return shmctl(index, SHM_STAT, &s->shm);
	case CKPT_IPC_SEM:
		return semctl(index, 0, SEM_STAT, &s->sem);
	default:
		return msgctl(index, MSG_STAT, &s->msg);
	}
}

static int highest(enum ckpt_ipc_sort sort)
{
	union {
		struct shm_info shm;
		struct seminfo sem;
		struct msginfo msg;
	} info;

	switch (sort) {
	case CKPT_IPC_SHM:
		return shmctl(0, SHM_INFO, (void *)&info);
	case CKPT_IPC_SEM:
		return semctl(0, 0, SEM_INFO, &info);
	default:
		return msgctl(0, MSG_INFO, (void *)&info);
	}
}

ssize_t sysv_list(const struct ckpt_world *w, enum ckpt_ipc_sort sort, struct ckpt_ipc_object **ret,
	struct err *e)
{
	int max = w->ipc ? 0 : highest(sort);
	struct ckpt_ipc_object *all;
	ssize_t n = 0;

	if (max < 0)
		return err_errno(e, -errno, "cannot list the session's System V objects");
	if (w->ipc) {
		n = w->ipc->list(w->ipc->ctx, sort, ret);
		return n < 0 ? err_errno(e, (int)n, "System V objects") : n;
	}
	all = calloc((size_t)max + 1, sizeof(*all));
	if (!all)
		return err_errno(e, -ENOMEM, "System V objects");
	for (int i = 0; i <= max; i++) {
		union status s;
		int id = status_at(sort, i, &s);

		if (id >= 0)
			all[n++] =
				(struct ckpt_ipc_object){id, id, s.perm.__key, s.perm.mode & 0777};
	}
	*ret = all;
	return n;
}

void sysv_name(const struct ckpt_world *w, const struct ckpt_ipc_object *o, struct ipc_perm *p)
{
	if (w->ipc && p->uid == geteuid())
		p->uid = w->uid;
	if (w->ipc && p->gid == getegid())
		p->gid = w->gid;
	p->__key = o->key;
	p->mode = (unsigned short)((p->mode & ~0777U) | o->mode);
}

int sysv_host(const struct ckpt_world *w, enum ckpt_ipc_sort sort, int id)
{
	return w->ipc ? w->ipc->look_up(w->ipc->ctx, sort, id, false) : id;
}

int sysv_id(const struct ckpt_world *w, enum ckpt_ipc_sort sort, int host)
{
	return w->ipc ? w->ipc->look_up(w->ipc->ctx, sort, host, true) : host;
}

Pb__IpcPerm *sysv_perm_dump(int id, const struct ipc_perm *p)
{
	Pb__IpcPerm *m = malloc(sizeof(*m));

	if (!m)
		return NULL;
	pb__ipc_perm__init(m);
	m->id = id;
	m->key = p->__key;
	m->uid = p->uid;
	m->gid = p->gid;
	m->mode = p->mode & 0777;
	return m;
}

/* ---- restore -------------------------------------------------------------------------------- */

/* The next object of a family in this namespace gets @id. */
static int set_next_id(struct ckpt_build *b, const char *family, int id, struct err *e)
{
	char path[64], text[16];
	int r;

	snprintf(path, sizeof(path), "sys/kernel/%s_next_id", family);
	snprintf(text, sizeof(text), "%d", id);
	r = io_write_str(b->host_proc, path, text);
	return r < 0 ? err_errno(e, r, "/proc/%s", path) : 0;
}

static int get(enum ckpt_ipc_sort sort, key_t key, uint64_t size, int flags)
{
	switch (sort) {
	case CKPT_IPC_SHM:
		return shmget(key, size, flags);
	case CKPT_IPC_SEM:
		return semget(key, (int)size, flags);
	default:
		return msgget(key, flags);
	}
}

void sysv_set_owner(const struct ckpt_build *b, const Pb__IpcPerm *m, struct ipc_perm *p)
{
	if (b->world->ipc)
		return;
	p->uid = m->uid;
	p->gid = m->gid;
}

int sysv_make(struct ckpt_build *b, enum ckpt_ipc_sort sort, const Pb__IpcPerm *m, uint64_t size,
	struct err *e)
{
	const struct ckpt_ipc_names *names = b->world->ipc;
	const struct ckpt_ipc_object o = {-1, m->id, m->key, m->mode & 0777};
	int r, got;

	if (names)
		return names->make(names->ctx, sort, &o, size, e);
	r = set_next_id(b, families[sort], m->id, e);
	if (r < 0)
		return r;
	got = get(sort, m->key, size, IPC_CREAT | IPC_EXCL | (int)o.mode);
	if (got < 0)
		return err_errno(e, -errno, "cannot make %s %d again", families[sort], m->id);
	if (got != m->id)
		return err_set(
			e, ERR_HOST, -EEXIST, "%s %d got the id %d", families[sort], m->id, got);
	return got;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * System V calls that are answered: those that get and control objects.
 *
 * Theory of operation
 *
 * What shmget(2) and its like decide about a key is decided here, in the order of ipcget() of the
 * kernel's ipc/util.c; making an object is left to the kernel, with all its checks.  Of the
 * commands of shmctl(2) and its like each is a row of a table: what it does on the host, and what
 * in the answer has to be the session's.  Sizes are the kernel's structures for 64-bit programs,
 * which are the C library's.
 *
 * A segment that was removed goes when the last who is attached leaves, of which nobody tells.  So
 * those are looked for when a new one is made and when all are listed.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/compat/ipc.h"
#include "supervisor/rewrite/ipc/host.h"
#include "supervisor/rewrite/ipc/proc.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/users/users.h"

#define MAX_SEMAPHORES 32000	   /* of one set: SEMMSL */
#define IPC_64	       0x100	   /* linux/ipc.h of the kernel */
#define LARGE	       (16u << 20) /* a segment that takes some time to free */

static struct ipc_names *names(const struct question *q)
{
	return q->rw->ipc;
}

/* The process that asks, as the session calls it. */
static pid_t asker(const struct question *q)
{
	return numbers_virtual(q->rw->tasks.numbers, q->asker->tgid);
}

static void forget_removed(struct ipc_names *n)
{
	for (int i = 0, left = ipc_names_removed(n); left > 0 && i < IPC_SLOTS; i++) {
		struct ipc_object *o = ipc_names_at(n, IPC_SHM, i);

		if (!o || !o->removed)
			continue;
		left--;
		ipc_host_has(n, IPC_SHM, o);
	}
}

/* ---- get ------------------------------------------------------------------------------------- */

/* ipc_check_perms(): everybody in the session is the owner. */
static long find(const struct ipc_names *n, enum ipc_sort sort, const struct ipc_object *o,
	uint64_t size, int flags)
{
	int wanted = flags >> 6 | flags >> 3 | flags;

	if ((flags & IPC_CREAT) && (flags & IPC_EXCL))
		return -EEXIST;
	if (size > o->size)
		return -EINVAL;
	if (wanted & ~(o->mode >> 6) & 07)
		return -EACCES;
	return ipc_names_id(n, sort, o);
}

/*
 * On the host.  Returns the slot it has, or a negative errno; where a stranger has a key, the next
 * one is tried.
 */
static int make_host(
	struct ipc_names *n, enum ipc_sort sort, uint64_t size, int flags, int *ret_host)
{
	for (int tries = 0; tries < 16; tries++) {
		int slot = ipc_names_next(n, sort);
		key_t key = slot < 0 ? IPC_PRIVATE : ipc_names_host_key(ipc_names_tag(n), slot);

		if (slot < 0)
			return slot;
		*ret_host = key == IPC_PRIVATE ? -EEXIST : ipc_host_make(sort, key, size, flags);
		if (*ret_host != -EEXIST)
			return *ret_host < 0 ? *ret_host : slot;
		ipc_names_skip(n, sort, slot);
	}
	return -ENOSPC;
}

static long make(struct question *q, enum ipc_sort sort, key_t key, uint64_t size, int flags)
{
	struct ipc_names *n = names(q);
	struct ipc_object *o;
	int slot, host;

	if (sort == IPC_SHM)
		forget_removed(n);
	slot = make_host(n, sort, size, flags, &host);
	if (slot < 0)
		return slot;
	o = ipc_names_add(n, sort, slot);
	ipc_names_set_host(n, sort, o, host);
	o->key = key;
	o->mode = flags & 0777;
	o->size = size;
	o->creator = asker(q);
	return ipc_names_id(n, sort, o);
}

static long get(struct question *q, enum ipc_sort sort, uint64_t size, int flags)
{
	key_t key = question_arg(q, 0);
	struct ipc_object *o = key == IPC_PRIVATE ? NULL : ipc_names_find_key(names(q), sort, key);

	if (o)
		return find(names(q), sort, o, size, flags);
	if (key != IPC_PRIVATE && !(flags & IPC_CREAT))
		return -ENOENT;
	return make(q, sort, key, size, flags);
}

static long on_shmget(struct question *q)
{
	return get(q, IPC_SHM, q->data->args[1], question_arg(q, 2));
}

static long on_semget(struct question *q)
{
	int n = question_arg(q, 1);

	return n < 0 ? -EINVAL : get(q, IPC_SEM, (uint64_t)n, question_arg(q, 2));
}

static long on_msgget(struct question *q)
{
	return get(q, IPC_MSG, 0, question_arg(q, 1));
}

/* ---- control: what all sorts have ------------------------------------------------------------ */

/* One call of shmctl(2) and its like. */
struct control {
	struct question *q;
	enum ipc_sort sort;
	int id;		      /* as it was said: a number in the session, or a slot */
	struct ipc_object *o; /* NULL if there is none */
	int command;
	int number;   /* of a semaphore */
	uint64_t arg; /* where the structure is, or a value */
};

static size_t status_size(enum ipc_sort sort)
{
	static const size_t sizes[IPC_SORTS] = {
		sizeof(struct shmid_ds), sizeof(struct semid_ds), sizeof(struct msqid_ds)};

	return sizes[sort];
}

/* The last user; the host knows us by what we did for somebody. */
static pid_t user(const struct control *c, pid_t host)
{
	if (host == getpid())
		return c->o->setter ? c->o->setter : c->o->creator;
	return ipc_proc_user(names(c->q), c->q->rw->tasks.numbers, host);
}

static void rename_status(const struct control *c, union ipc_status *s)
{
	const struct rewrite_users *us = c->q->rw->tasks.users;

	if (us) {
		rewrite_users_show_plain(us, &s->perm.uid, &s->perm.gid);
		rewrite_users_show_plain(us, &s->perm.cuid, &s->perm.cgid);
	}
	s->perm.__key = c->o->removed ? IPC_PRIVATE : c->o->key;
	s->perm.__seq = c->o->seq;
	if (c->sort == IPC_SHM) {
		s->shm.shm_cpid = c->o->creator;
		s->shm.shm_lpid = s->shm.shm_lpid ? user(c, s->shm.shm_lpid) : 0;
	} else if (c->sort == IPC_MSG) {
		s->msg.msg_lspid = s->msg.msg_lspid ? user(c, s->msg.msg_lspid) : 0;
		s->msg.msg_lrpid = s->msg.msg_lrpid ? user(c, s->msg.msg_lrpid) : 0;
	}
}

static long tell(const struct control *c, union ipc_status *s)
{
	union compat_ipc_status narrow;

	rename_status(c, s);
	if (c->q->nr32 < 0)
		return question_write(c->q, c->arg, s, status_size(c->sort));
	compat_ipc_tell(c->sort, s, &narrow);
	return question_write(c->q, c->arg, &narrow, compat_ipc_size(c->sort));
}

static long on_stat(const struct control *c)
{
	union ipc_status s;
	int r = ipc_host_ctl(c->sort, c->o->host, IPC_STAT, &s);

	return r < 0 ? r : tell(c, &s);
}

/* SHM_STAT and its like: they return the id. */
static long on_stat_slot(const struct control *c)
{
	long r = on_stat(c);

	return r < 0 ? r : ipc_names_id(names(c->q), c->sort, c->o);
}

static long on_stat_any(const struct control *c)
{
	union ipc_status s;
	long r = ipc_host_stat(c->sort, c->o->host, &s);

	if (r >= 0)
		r = tell(c, &s);
	return r < 0 ? r : ipc_names_id(names(c->q), c->sort, c->o);
}

static long take(const struct control *c, union ipc_status *ret)
{
	union compat_ipc_status narrow;

	if (c->q->nr32 < 0)
		return question_read(c->q, c->arg, ret, status_size(c->sort));
	if (question_read(c->q, c->arg, &narrow, compat_ipc_size(c->sort)) < 0)
		return -EFAULT;
	compat_ipc_take(c->sort, &narrow, ret);
	return 0;
}

static long on_set(const struct control *c)
{
	union ipc_status s;
	const struct rewrite_users *us = c->q->rw->tasks.users;
	long r = take(c, &s);

	/* An id that is not mapped there is not. */
	if (r == 0 && us && (s.perm.uid != us->uid || s.perm.gid != us->gid))
		r = -EINVAL;
	if (us) {
		s.perm.uid = us->host_uid;
		s.perm.gid = us->host_gid;
	}
	if (r == 0)
		r = ipc_host_ctl(c->sort, c->o->host, IPC_SET, &s);
	if (r >= 0)
		c->o->mode = s.perm.mode & 0777;
	return r;
}

/*
 * Freeing a large segment takes as long as its pages are many, some 80 ms a gigabyte, and all other
 * calls would wait for it: a thread does it.
 */
struct removal {
	struct rewrite *rw;
	uint64_t notification;
	int id, host;
};

static void *remove_apart(void *arg)
{
	struct removal *r = arg;
	struct seccomp_notif_resp response = {.id = r->notification};
	struct ipc_object *o;

	response.error = ipc_host_ctl(IPC_SHM, r->host, IPC_RMID, NULL);
	pthread_mutex_lock(&r->rw->lock);
	o = ipc_names_find(r->rw->ipc, IPC_SHM, r->id);
	if (o && o->host == r->host)
		ipc_host_has(r->rw->ipc, IPC_SHM, o);
	pthread_mutex_unlock(&r->rw->lock);
	ioctl(r->rw->listener, SECCOMP_IOCTL_NOTIF_SEND, &response); /* ENOENT: killed meanwhile */
	free(r);
	return NULL;
}

static bool starts_removal(const struct control *c)
{
	struct removal *r = malloc(sizeof(*r));
	pthread_attr_t attr;
	pthread_t thread;

	if (!r)
		return false;
	*r = (struct removal){c->q->rw, c->q->id, c->id, c->o->host};
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	c->q->sent = pthread_create(&thread, &attr, remove_apart, r) == 0;
	pthread_attr_destroy(&attr);
	if (!c->q->sent)
		free(r);
	return c->q->sent;
}

static long on_remove(const struct control *c)
{
	long r;

	if (c->sort == IPC_SHM && c->o->size >= LARGE && c->o->attached && starts_removal(c))
		return 0;
	r = ipc_host_ctl(c->sort, c->o->host, IPC_RMID, NULL);
	if (r < 0)
		return r;
	if (c->sort != IPC_SHM || !c->o->attached)
		ipc_names_remove(names(c->q), c->sort, c->o);
	else
		ipc_host_has(names(c->q), c->sort, c->o);
	return 0;
}

/* What is passed on as it is: it works on the host's object and tells of no name. */
static long on_plain(const struct control *c)
{
	return ipc_host_ctl(c->sort, c->o->host, c->command, NULL);
}

/* ---- control: of all objects at once --------------------------------------------------------- */

static long highest(const struct control *c)
{
	int slot = ipc_names_max(names(c->q), c->sort);

	return slot < 0 ? 0 : slot;
}

/* The limits are the host's.  @size: of what IPC_INFO fills in. */
static long limits(const struct control *c, size_t size)
{
	union {
		struct shminfo shm;
		struct seminfo sem;
		struct msginfo msg;
	} info;
	long r = ipc_host_ctl(c->sort, 0, IPC_INFO, &info);

	if (r >= 0)
		r = question_write(c->q, c->arg, &info, size);
	return r < 0 ? r : highest(c);
}

static long on_shm_limits(const struct control *c)
{
	struct compat_shminfo narrow;
	struct shminfo info;
	long r;

	if (c->q->nr32 < 0)
		return limits(c, sizeof(struct shminfo));
	r = ipc_host_ctl(c->sort, 0, IPC_INFO, &info);
	if (r < 0)
		return r;
	narrow = compat_ipc_limits(&info);
	return question_write(c->q, c->arg, &narrow, sizeof(narrow)) < 0 ? -EFAULT : highest(c);
}

static long on_sem_limits(const struct control *c)
{
	return limits(c, sizeof(struct seminfo));
}

static long on_msg_limits(const struct control *c)
{
	return limits(c, sizeof(struct msginfo));
}

static long on_shm_info(const struct control *c)
{
	struct compat_shm_info narrow;
	struct shm_info info = {0};
	struct ipc_totals t;

	ipc_proc_totals(names(c->q), IPC_SHM, &t);
	info.used_ids = ipc_names_count(names(c->q), IPC_SHM);
	info.shm_tot = t.size;
	info.shm_rss = t.resident;
	info.shm_swp = t.swapped;
	narrow = compat_ipc_totals(&info);
	if (c->q->nr32 < 0 ? question_write(c->q, c->arg, &info, sizeof(info)) < 0
			   : question_write(c->q, c->arg, &narrow, sizeof(narrow)) < 0)
		return -EFAULT;
	return highest(c);
}

static long on_sem_info(const struct control *c)
{
	struct ipc_totals t;
	struct seminfo info;
	long r = ipc_host_ctl(IPC_SEM, 0, IPC_INFO, &info);

	if (r < 0)
		return r;
	ipc_proc_totals(names(c->q), IPC_SEM, &t);
	info.semusz = ipc_names_count(names(c->q), IPC_SEM);
	info.semaem = (int)t.size;
	return question_write(c->q, c->arg, &info, sizeof(info)) < 0 ? -EFAULT : highest(c);
}

static long on_msg_info(const struct control *c)
{
	struct ipc_totals t;
	struct msginfo info;
	long r = ipc_host_ctl(IPC_MSG, 0, IPC_INFO, &info);

	if (r < 0)
		return r;
	ipc_proc_totals(names(c->q), IPC_MSG, &t);
	info.msgpool = ipc_names_count(names(c->q), IPC_MSG);
	info.msgmap = (int)t.messages;
	info.msgtql = (int)t.size;
	return question_write(c->q, c->arg, &info, sizeof(info)) < 0 ? -EFAULT : highest(c);
}

/* ---- control: semaphores --------------------------------------------------------------------- */

static long semctl_number(const struct control *c, uint64_t value)
{
	long r = syscall(SYS_semctl, c->o->host, c->number, c->command, value);

	return r < 0 ? -errno : r;
}

static long on_get_value(const struct control *c)
{
	return semctl_number(c, 0);
}

static long on_get_pid(const struct control *c)
{
	long r = semctl_number(c, 0);

	return r <= 0 ? r : user(c, (pid_t)r);
}

static long on_set_value(const struct control *c)
{
	long r = semctl_number(c, (uint64_t)(int)c->arg);

	if (r >= 0)
		c->o->setter = asker(c->q);
	return r;
}

static long on_get_all(const struct control *c)
{
	unsigned short values[MAX_SEMAPHORES];
	long r = c->o->size > MAX_SEMAPHORES ? -ENOMEM : semctl_number(c, (uintptr_t)values);

	if (r >= 0)
		r = question_write(c->q, c->arg, values, c->o->size * sizeof(*values));
	return r;
}

static long on_set_all(const struct control *c)
{
	unsigned short values[MAX_SEMAPHORES];
	long r = c->o->size > MAX_SEMAPHORES ? -ENOMEM : 0;

	if (r == 0)
		r = question_read(c->q, c->arg, values, c->o->size * sizeof(*values));
	if (r == 0)
		r = semctl_number(c, (uintptr_t)values);
	if (r >= 0)
		c->o->setter = asker(c->q);
	return r;
}

/* ---- control: the table ---------------------------------------------------------------------- */

/* What @id of struct control is. */
enum said { SAID_ID, SAID_SLOT, SAID_NOTHING };

struct command {
	int command;
	enum said said;
	long (*run)(const struct control *c);
};

static const struct command shm_commands[] = {
	{IPC_RMID, SAID_ID, on_remove},
	{IPC_SET, SAID_ID, on_set},
	{IPC_STAT, SAID_ID, on_stat},
	{IPC_INFO, SAID_NOTHING, on_shm_limits},
	{SHM_LOCK, SAID_ID, on_plain},
	{SHM_UNLOCK, SAID_ID, on_plain},
	{SHM_STAT, SAID_SLOT, on_stat_slot},
	{SHM_INFO, SAID_NOTHING, on_shm_info},
	{SHM_STAT_ANY, SAID_SLOT, on_stat_any},
};

static const struct command sem_commands[] = {
	{IPC_RMID, SAID_ID, on_remove},
	{IPC_SET, SAID_ID, on_set},
	{IPC_STAT, SAID_ID, on_stat},
	{IPC_INFO, SAID_NOTHING, on_sem_limits},
	{GETPID, SAID_ID, on_get_pid},
	{GETVAL, SAID_ID, on_get_value},
	{GETALL, SAID_ID, on_get_all},
	{GETNCNT, SAID_ID, on_get_value},
	{GETZCNT, SAID_ID, on_get_value},
	{SETVAL, SAID_ID, on_set_value},
	{SETALL, SAID_ID, on_set_all},
	{SEM_STAT, SAID_SLOT, on_stat_slot},
	{SEM_INFO, SAID_NOTHING, on_sem_info},
	{SEM_STAT_ANY, SAID_SLOT, on_stat_any},
};

static const struct command msg_commands[] = {
	{IPC_RMID, SAID_ID, on_remove},
	{IPC_SET, SAID_ID, on_set},
	{IPC_STAT, SAID_ID, on_stat},
	{IPC_INFO, SAID_NOTHING, on_msg_limits},
	{MSG_STAT, SAID_SLOT, on_stat_slot},
	{MSG_INFO, SAID_NOTHING, on_msg_info},
	{MSG_STAT_ANY, SAID_SLOT, on_stat_any},
};

static long control(struct control *c, const struct command *commands, size_t n)
{
	struct ipc_names *all = names(c->q);
	const struct command *row = NULL;
	long r;

	for (size_t i = 0; i < n && !row; i++)
		if (commands[i].command == c->command)
			row = &commands[i];
	if (!row || c->id < 0)
		return -EINVAL;
	if (c->sort == IPC_SHM && row->said != SAID_ID)
		forget_removed(all);
	if (row->said == SAID_ID)
		c->o = ipc_names_find(all, c->sort, c->id);
	else if (row->said == SAID_SLOT)
		c->o = ipc_names_at(all, c->sort, c->id & (IPC_SLOTS - 1));
	if (row->said != SAID_NOTHING && !c->o)
		return -EINVAL;
	r = row->run(c);
	if ((r == -EINVAL || r == -EIDRM) && c->o && c->o->used)
		ipc_host_has(all, c->sort, c->o);
	return r;
}

static long on_shmctl(struct question *q)
{
	struct control c = {.q = q,
		.sort = IPC_SHM,
		.id = question_arg(q, 0),
		.command = question_arg(q, 1),
		.arg = q->data->args[2]};

	return control(&c, shm_commands, ARRAY_SIZE(shm_commands));
}

static long on_semctl(struct question *q)
{
	struct control c = {.q = q,
		.sort = IPC_SEM,
		.id = question_arg(q, 0),
		.number = question_arg(q, 1),
		.command = question_arg(q, 2),
		.arg = q->data->args[3]};

	/* Of i386 it may still say which generation of structures it means. */
	if (q->nr32 >= 0)
		c.command &= ~IPC_64;
	return control(&c, sem_commands, ARRAY_SIZE(sem_commands));
}

static long on_msgctl(struct question *q)
{
	struct control c = {.q = q,
		.sort = IPC_MSG,
		.id = question_arg(q, 0),
		.command = question_arg(q, 1),
		.arg = q->data->args[2]};

	return control(&c, msg_commands, ARRAY_SIZE(msg_commands));
}

const struct answer_row ipc_sysv_answers[] = {
	{SYS_shmget, on_shmget},
	{SYS_shmctl, on_shmctl},
	{SYS_semget, on_semget},
	{SYS_semctl, on_semctl},
	{SYS_msgget, on_msgget},
	{SYS_msgctl, on_msgctl},
};
const size_t ipc_sysv_n_answers = ARRAY_SIZE(ipc_sysv_answers);

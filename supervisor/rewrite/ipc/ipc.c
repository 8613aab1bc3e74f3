// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in ipc.h. */
#include "supervisor/rewrite/ipc/ipc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/base.h"
#include "supervisor/rewrite/ipc/host.h"

#define TAG_DIGITS 16

struct ipc {
	struct ipc_names *names;
	char *mark; /* path of the file that is locked; NULL */
	int lock;   /* it; -1 */
};

/* ---- removing ------------------------------------------------------------------------------- */

static void remove_slot(uint64_t tag, enum ipc_sort sort, int slot)
{
	key_t key = ipc_names_host_key(tag, slot);
	int id = key == IPC_PRIVATE ? -ENOENT : ipc_host_get(sort, key, 0, 0);

	if (id >= 0)
		ipc_host_ctl(sort, id, IPC_RMID, NULL);
}

static void remove_queue(uint64_t tag, int slot)
{
	char name[IPC_HOST_NAME + 1] = "/";

	ipc_names_host_queue(tag, slot, name + 1);
	mq_unlink(name);
}

static void remove_known(const struct ipc_names *n)
{
	for (int sort = 0; sort < IPC_SORTS; sort++)
		for (int slot = 0; slot < ipc_names_high(n, sort); slot++)
			remove_slot(ipc_names_tag(n), sort, slot);
	for (int slot = 0; slot < IPC_QUEUES; slot++)
		if (ipc_names_queue(n, slot))
			remove_queue(ipc_names_tag(n), slot);
}

/* All that may be, some 100000 calls: 20 ms. */
static void remove_all(uint64_t tag)
{
	for (int sort = 0; sort < IPC_SORTS; sort++)
		for (int slot = 0; slot < IPC_SLOTS; slot++)
			remove_slot(tag, sort, slot);
	for (int slot = 0; slot < IPC_QUEUES; slot++)
		remove_queue(tag, slot);
}

/* ---- marks on the disk ----------------------------------------------------------------------- */

/* Which namespace the objects are in: of this boot of this host, this one. */
static int tell_place(char ret[64])
{
	char boot[40] = "";
	struct stat st;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, boot, 36);

	close_fd(fd);
	if (n != 36 || stat("/proc/self/ns/ipc", &st) < 0)
		return -ENOENT;
	snprintf(ret, 64, "%s %ju", boot, (uintmax_t)st.st_ino);
	return 0;
}

/* Is there anything left of what was made at @place, and can it be seen from here? */
static enum { PLACE_HERE, PLACE_ELSEWHERE, PLACE_GONE } look_at_place(const char *place)
{
	char here[64];

	if (tell_place(here) < 0)
		return PLACE_ELSEWHERE;
	if (strncmp(place, here, 36) != 0)
		return PLACE_GONE; /* another boot, or nothing was made yet */
	return strcmp(place, here) == 0 ? PLACE_HERE : PLACE_ELSEWHERE;
}

static void sweep_one(int dir, const char *name)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	char place[64] = "";
	uint64_t tag;
	char *end;

	errno = 0;
	tag = strtoull(name, &end, 16);
	if (*end || end - name != TAG_DIGITS || fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ||
		read(fd, place, sizeof(place) - 1) < 0)
		return;
	switch (look_at_place(place)) {
	case PLACE_HERE:
		remove_all(tag);
		unlinkat(dir, name, 0);
		break;
	case PLACE_GONE:
		unlinkat(dir, name, 0);
		break;
	case PLACE_ELSEWHERE:
		break;
	}
}

void ipc_sweep(const char *state_dir)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_closedir_ DIR *d = NULL;
	struct dirent *entry;

	if (asprintf(&path, "%s/ipc", state_dir) < 0)
		return;
	d = opendir(path);
	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			sweep_one(dirfd(d), entry->d_name);
}

/* Whoever sweeps may have come between the making of the file and its lock, and removed it. */
static int lock_mark(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	if (fstat(fd, &st) < 0 || st.st_nlink == 0)
		return -EAGAIN;
	return take_fd(&fd);
}

static int make_mark(struct ipc *i, const char *state_dir, struct err *e)
{
	_cleanup_free_ char *dir = NULL;
	char place[64];
	int r = tell_place(place);

	if (r < 0)
		return err_errno(e, r, "the host's System V IPC");
	if (asprintf(&dir, "%s/ipc", state_dir) < 0 ||
		asprintf(&i->mark, "%s/%016" PRIx64, dir, ipc_names_tag(i->names)) < 0)
		return err_errno(e, -ENOMEM, "names of IPC objects");
	r = io_mkdir_p(AT_FDCWD, dir, 0700);
	if (r < 0 && r != -EEXIST)
		return err_errno(e, r, "cannot make %s", dir);
	do
		i->lock = lock_mark(i->mark);
	while (i->lock == -EAGAIN);
	r = i->lock < 0 ? i->lock : io_write_full(i->lock, place, strlen(place));
	return r < 0 ? err_errno(e, r, "cannot write %s", i->mark) : 0;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

int ipc_create(struct ipc **ret, struct err *e)
{
	struct ipc *i = calloc(1, sizeof(*i));
	uint64_t tag;
	int r;

	if (!i || getrandom(&tag, sizeof(tag), 0) != sizeof(tag)) {
		free(i);
		return err_errno(e, -ENOMEM, "names of IPC objects");
	}
	i->lock = -1;
	r = ipc_names_create(&i->names, tag, e);
	if (r < 0)
		ipc_end(i);
	else
		*ret = i;
	return r;
}

int ipc_begin(struct ipc *i, const char *state_dir, struct err *e)
{
	if (!state_dir)
		return 0;
	ipc_sweep(state_dir);
	return make_mark(i, state_dir, e);
}

void ipc_end(struct ipc *i)
{
	if (!i)
		return;
	if (i->names)
		remove_known(i->names);
	if (i->lock >= 0)
		unlink(i->mark);
	close_fd(i->lock);
	ipc_names_free(i->names);
	free(i->mark);
	free(i);
}

struct ipc_names *ipc_table(const struct ipc *i)
{
	return i->names;
}

/* ---- made again ------------------------------------------------------------------------------ */

int ipc_restore(struct ipc_names *n, enum ipc_sort sort, int id, key_t key, uint64_t size,
	unsigned mode, unsigned more, struct err *e)
{
	struct ipc_object *o = ipc_names_restore(n, sort, id);
	int host;

	if (!o)
		return err_set(e, ERR_IMAGE, -EEXIST, "System V id %d is there twice", id);
	host = ipc_host_make(sort, ipc_names_host_key(ipc_names_tag(n), ipc_names_slot(n, sort, o)),
		size, (int)(mode | more));
	if (host < 0) {
		ipc_names_remove(n, sort, o);
		return err_errno(e, host, "cannot make System V object %d again", id);
	}
	ipc_names_set_host(n, sort, o, host);
	o->key = key;
	o->size = size;
	o->mode = (uint16_t)mode;
	o->attached = true; /* for all we know */
	return host;
}

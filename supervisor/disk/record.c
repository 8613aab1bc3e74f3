// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in record.h. */
#include "supervisor/disk/record.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/config.pb-c.h"
#include "supervisor/disk/images.h"
#include "supervisor/disk/tenure.h"

#define MAX_RECORD  (8u << 20)
#define PATIENCE_MS 5000
#define NAP_MS	    10

static const char *const names[] = {
	[RECORD_STARTING] = "starting",
	[RECORD_RUNNING] = "running",
	[RECORD_PAUSED] = "paused",
	[RECORD_SUSPENDED] = "suspended",
	[RECORD_ARRIVED] = "arrived",
	[RECORD_IN_DOUBT] = "in-doubt",
	[RECORD_MOVED] = "moved",
	[RECORD_ENDED] = "ended",
};
static_assert(ARRAY_SIZE(names) == RECORD_STATE_MAX, "a state without a name");

const char *record_state_name(enum record_state state)
{
	return (unsigned)state < RECORD_STATE_MAX ? names[state] : "unknown";
}

enum record_state record_state_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i], name) == 0)
			return (enum record_state)i;
	return RECORD_ENDED;
}

static int damaged(const struct paths *p, const char *name, const char *path, struct err *e)
{
	_cleanup_free_ char *image = paths_image(p, name, 0);

	err_set(e, ERR_FAILED, -EBADMSG, "%s is damaged", path);
	if (image && access(image, F_OK) == 0)
		return err_hint(e, "podrun resume --replace %s, if it was suspended", image);
	return err_hint(e, "podrun rm -f %s forgets it", name);
}

int record_load(Pb__Record **ret, const struct paths *p, const char *name, struct err *e)
{
	_cleanup_free_ char *path = paths_session(p, name, "record");
	_cleanup_buf_ struct buf b = BUF_INIT;
	Pb__Record *r;
	int error;

	if (paths_check_own(name, e) < 0)
		return e->error;
	if (!path)
		return err_errno(e, -ENOMEM, "record");
	error = io_read_file(AT_FDCWD, path, MAX_RECORD, &b);
	if (error == -ENOENT || error == -ENOTDIR) {
		err_set(e, ERR_NOT_FOUND, -ENOENT, "no session '%s'", name);
		return err_hint(e, "podrun ps -a lists all sessions");
	}
	if (error < 0)
		return err_errno(e, error, "%s", path);
	r = pb__record__unpack(NULL, b.len, b.data);
	if (!r || !r->config || !r->state) {
		record_free(r);
		return damaged(p, name, path, e);
	}
	*ret = r;
	return 0;
}

void record_free(Pb__Record *r)
{
	if (r)
		pb__record__free_unpacked(r, NULL);
}

/*
 * On a full disk there is no room for another file, but for what is written over the old one: so a
 * session that ends there is not taken for one that has lost its supervisor.  Only where no new
 * block is needed, lest a part of it be there.
 */
static int write_over(const char *path, const uint8_t *data, size_t len)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || (size_t)st.st_blocks * 512 < len)
		return -ENOSPC;
	r = io_write_full(fd, data, len);
	return r == 0 && ftruncate(fd, (off_t)len) < 0 ? -errno : r;
}

int record_save(const Pb__Record *r, const char *dir, bool durable, struct err *e)
{
	size_t len = pb__record__get_packed_size(r);
	_cleanup_free_ uint8_t *data = malloc(len ? len : 1);
	_cleanup_free_ char *path = NULL, *fresh = NULL;
	int error;

	if (!data || asprintf(&path, "%s/record", dir) < 0 || asprintf(&fresh, "%s.new", path) < 0)
		return err_errno(e, -ENOMEM, "record");
	pb__record__pack(r, data);
	if (durable) {
		error = io_replace_file(AT_FDCWD, path, data, len, 0600);
	} else {
		error = io_write_file(AT_FDCWD, fresh, data, len, 0600);
		if (error >= 0 && rename(fresh, path) < 0)
			error = -errno;
		if (error < 0)
			unlink(fresh);
		if (error == -ENOSPC || error == -EDQUOT)
			error = write_over(path, data, len);
	}
	return error < 0 ? err_errno(e, error, "cannot write %s", path) : 0;
}

/* Its socket may be gone, and the runtime directory with it. */
static bool is_held(const char *dir, const char *runtime)
{
	return tenure_is_held(runtime) || tenure_is_held(dir);
}

/* Its supervisor does not end before who ran a command has all that it printed. */
static int still_held(const struct paths *p, const char *name, struct err *e)
{
	struct err ignored = {0};
	Pb__Record *r = NULL;
	bool over = record_load(&r, p, name, &ignored) == 0 &&
		    record_state_of(r->state) == RECORD_ENDED;

	record_free(r);
	if (!over)
		return err_set(e, ERR_STATE, -EBUSY, "cannot remove '%s': it is running", name);
	err_set(e, ERR_STATE, -EBUSY,
		"cannot remove '%s': it has ended, but not all of its output has been read", name);
	return err_hint(e, "a podrun run, exec or attach that is stopped, or whose output nobody takes, "
			   "holds it: let it go on, or end it");
}

int record_remove(const struct paths *p, const char *name, struct err *e)
{
	_cleanup_free_ char *dir = paths_session(p, name, NULL), *image = paths_image(p, name, 0);
	_cleanup_free_ char *runtime = paths_runtime(p, name, NULL);
	_cleanup_close_ int lock = -1;
	char *aside[2];

	if (!dir || !image || !runtime)
		return err_errno(e, -ENOMEM, "record");
	/* whose supervisor is about to end */
	for (int i = 0; i < PATIENCE_MS / NAP_MS && is_held(dir, runtime); i++)
		usleep(NAP_MS * 1000);
	lock = tenure_lock(p, e);
	if (lock < 0)
		return lock;
	if (is_held(dir, runtime))
		return still_held(p, name, e);
	/* Its supervisor may be tidying up in there still. */
	aside[0] = tenure_set_aside(dir);
	if (!aside[0] && access(dir, F_OK) == 0)
		return err_errno(e, -EBUSY, "cannot remove %s", dir);
	aside[1] = tenure_set_aside(runtime);
	unlink(image);
	images_forget(p, name);
	lock = close_fd(lock);
	tenure_remove(aside[0]);
	tenure_remove(aside[1]);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in leased.h. */
#include "ckpt/survey/leased.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/survey/survey.h"

/* ": LEASE  ACTIVE    WRITE 12 08:01:77 0 EOF"; one that is being broken tells what it will be. */
bool ckpt_leased(const struct ckpt_file *f)
{
	const char *line = f->fdinfo ? strstr(f->fdinfo, ": LEASE ") : NULL;
	char how[12], mode[8];

	return line && !(sscanf(line, ": LEASE %11s %7s", how, mode) == 2 &&
			       !strcmp(how, "ACTIVE") && !strcmp(mode, "READ"));
}

static bool can_read(const struct ckpt_file *f)
{
	return (f->flags & O_ACCMODE) != O_WRONLY && !(f->flags & O_DIRECT);
}

static int set_lease(const struct ckpt_file *f, int type, struct err *e)
{
	struct remote *r;
	int k;

	if (!f->holder)
		return fcntl(f->fd, F_SETLEASE, type) < 0 ? err_errno(e, -errno, "F_SETLEASE") : 0;
	k = ckpt_proc_remote(f->holder, &r, e);
	return k < 0 ? k
		     : remote_must(r, NULL, e, SYS_fcntl, (uint64_t)f->holder_fd, F_SETLEASE,
			       (uint64_t)type, 0, 0, 0);
}

int ckpt_leased_begin(struct ckpt_leased_reading *r, const struct ckpt_file *f, struct err *e)
{
	*r = (struct ckpt_leased_reading){.file = f};
	if (can_read(f))
		return 1;
	r->signal = fcntl(f->fd, F_GETSIG);
	if (r->signal < 0 || fcntl(f->fd, F_GETOWN_EX, &r->owner) < 0)
		return err_errno(e, -errno, "the owner of %s", f->link);
	if (set_lease(f, F_UNLCK, e) < 0)
		return err_wrap(e, "the lease of %s", f->link);
	r->laid_down = true;
	return 0;
}

void ckpt_leased_end(const struct ckpt_leased_reading *r)
{
	struct err e = {0};

	if (!r->laid_down)
		return;
	if (set_lease(r->file, F_WRLCK, &e) < 0)
		log_warn("a file lease was lost: %s", e.msg);
	fcntl(r->file->fd, F_SETSIG, r->signal);
	fcntl(r->file->fd, F_SETOWN_EX, &r->owner);
}

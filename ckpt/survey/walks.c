// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The session's own files are made anew by a resume and have other inode numbers then, and overlays
 * have another st_dev.  No call gives a file a number of one's choice.  Programs that go through a
 * tree look at them: gnulib's fts (rm -r, chmod -R, chown -R, find, du, grep -r) compares a
 * directory that it comes back to with what it was on the way down, if it lies more than four
 * levels up from the deepest, and gives up with ENOENT when it is another one.
 *
 * All of them hold directories open which they have read, as hardly anybody else does for long.  So
 * a freeze that meets one lets it go on and is tried again; ckpt_freeze says for how long.
 *
 * So it does for a shorter time where somebody has events of inotify to read, which no image can
 * hold: who waits for them does so at once.
 */
#include "ckpt/survey/walks.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/base.h"
#include "ckpt/kind.h"
#include "ckpt/survey/survey.h"

static bool is_being_read(const struct ckpt_file *f)
{
	/* Those of /proc are of another kind, and have no numbers to keep. */
	return f->kind && f->kind->number == PROTO_KIND_REGULAR && S_ISDIR(f->st.st_mode) &&
	       !(f->flags & O_PATH) && f->pos != 0;
}

bool ckpt_unread(const struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_files; i++) {
		const struct ckpt_file *f = d->files[i];
		int pending;

		if (!f->holder || f->holder->state == CKPT_STOPPED || !f->kind ||
			f->kind->number != PROTO_KIND_INOTIFY ||
			ioctl(f->fd, FIONREAD, &pending) < 0 || !pending)
			continue;
		log_info("task %d (%s) has events of inotify to read: trying again",
			f->holder->vpid, f->holder->status.comm);
		return true;
	}
	return false;
}

bool ckpt_walks(const struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_files; i++) {
		const struct ckpt_file *f = d->files[i];

		if (!f->holder || !is_being_read(f))
			continue;
		log_info("task %d (%s) is reading %s: trying again", f->holder->vpid,
			f->holder->status.comm, f->link);
		return true;
	}
	return false;
}

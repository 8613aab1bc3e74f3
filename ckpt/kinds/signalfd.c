// SPDX-License-Identifier: GPL-2.0-or-later
/* signalfd - kind SIGNALFD.  signalfd(2): it has nothing but its mask; the signals are the
 * reader's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "proto/files.pb-c.h"

static bool claim(const struct ckpt_file *f)
{
	return !strcmp(f->link, "anon_inode:[signalfd]");
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	Pb__SignalFd m = PB__SIGNAL_FD__INIT;
	uint64_t mask;
	int r = ckpt_common_dump(d, f, &common, e);

	if (r < 0)
		return r;
	if (!ckpt_fdinfo_number(f->fdinfo, "sigmask", 16, &mask))
		return err_set(e, ERR_HOST, -ENOTSUP, "fdinfo does not tell a signalfd's mask");
	m.common = common;
	m.mask = mask;
	return ckpt_pack(&m.base, body, e);
}

static int make(struct ckpt_build *b, const Pb__SignalFd *m, struct err *e)
{
	/* The raw call takes the kernel's set of eight bytes, which is what fdinfo shows. */
	_cleanup_close_ int fd =
		(int)syscall(SYS_signalfd4, -1, &m->mask, sizeof(m->mask), SFD_CLOEXEC);
	int r;

	if (fd < 0)
		return err_errno(e, -errno, "signalfd");
	r = ckpt_common_restore(b, fd, m->common, e);
	return r < 0 ? r : take_fd(&fd);
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__SignalFd *m = pb__signal_fd__unpack(NULL, r->len, r->body);
	int fd = m && m->common ? make(b, m, e) : ckpt_common_bad(r, e);

	if (m)
		pb__signal_fd__free_unpacked(m, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__SignalFd *m = pb__signal_fd__unpack(NULL, len, body);

	if (!m)
		fputs("unreadable", out);
	else
		fprintf(out, "mask %016llx", (unsigned long long)m->mask);
	if (m)
		pb__signal_fd__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_signalfd = {
	.number = PROTO_KIND_SIGNALFD,
	.name = "signalfd",
	.scope = CKPT_FILE,
	.claim = claim,
	.dump = dump,
	.create = create,
	.show = show,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * memfd - memory files: kind MEMFD.
 *
 * As with deleted files the first open file carries the contents; a mapping of it finds them by
 * ckpt_common_carrier and ckpt_common_contents.  It is made sealable and gets its seals at finish:
 * F_SEAL_SEAL alone is what memfd_create without MFD_ALLOW_SEALING means.  memfd_create(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "proto/files.pb-c.h"

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 0x0004U
#endif
#define HUGE_SHIFT 26 /* MFD_HUGE_SHIFT */
#define SEAL_EXEC  0x20 /* F_SEAL_EXEC, Linux 6.3 */
#define MAX_NAME   249
#define PREFIX	   "/memfd:"

static bool claim(const struct ckpt_file *f)
{
	return S_ISREG(f->st.st_mode) && f->st.st_nlink == 0 &&
	       !strncmp(f->link, PREFIX, strlen(PREFIX));
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	_cleanup_free_ char *path = ckpt_common_path(f);
	int seals = fcntl(f->fd, F_GET_SEALS);
	Pb__MemFd m = PB__MEM_FD__INIT;
	struct statfs fs;
	int r = ckpt_common_dump(d, f, &common, e);

	if (r < 0)
		return r;
	if (!path)
		return err_errno(e, -ENOMEM, "%s", f->link);
	if (fstatfs(f->fd, &fs) < 0)
		return err_errno(e, -errno, "fstatfs of %s", f->link);
	m.common = common;
	m.name.data = (uint8_t *)path + strlen(PREFIX);
	m.name.len = strlen(path) - strlen(PREFIX);
	m.object = ckpt_common_first(d, f)->id;
	m.size = (uint64_t)f->st.st_size;
	m.seals = seals < 0 ? F_SEAL_SEAL : (uint32_t)seals;
	m.mode = f->st.st_mode & 07777;
	m.huge_page = fs.f_type == HUGETLBFS_MAGIC ? (uint64_t)fs.f_bsize : 0;
	return ckpt_pack(&m.base, body, e);
}

static int dump_data(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	return ckpt_common_first(d, s.file) == s.file ? ckpt_contents_dump(d, s.file, e) : 0;
}

static int make_object(const Pb__MemFd *m, struct ckpt_object *o, struct err *e)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	char name[MAX_NAME + 1] = "";

	if (m->name.len > MAX_NAME || m->size > INT64_MAX ||
		(m->huge_page & (m->huge_page - 1)) != 0)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a memfd's record makes no sense");
	if (m->name.len)
		memcpy(name, m->name.data, m->name.len);
	if (m->huge_page)
		flags |= MFD_HUGETLB | (unsigned)__builtin_ctzll(m->huge_page) << HUGE_SHIFT;
	o->fd = memfd_create(name, flags);
	if (o->fd < 0)
		return err_errno(e, -errno, "memfd_create '%s'", name);
	if (ftruncate(o->fd, (off_t)m->size) < 0)
		return err_errno(e, -errno, "memfd '%s' of %llu bytes", name,
			(unsigned long long)m->size);
	return 0;
}

static int open_again(struct ckpt_build *b, const Pb__MemFd *m, struct err *e)
{
	struct ckpt_object *o = ckpt_object_get(b, PROTO_KIND_MEMFD, m->object);
	int r = o ? 0 : err_errno(e, -ENOMEM, "memfd");

	if (r == 0 && o->fd < 0)
		r = make_object(m, o, e);
	return r < 0 ? r : ckpt_common_view(b, o->fd, m->common, e);
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__MemFd *m = pb__mem_fd__unpack(NULL, r->len, r->body);
	int fd = m && m->common ? open_again(b, m, e) : ckpt_common_bad(r, e);

	if (m)
		pb__mem_fd__free_unpacked(m, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* A kernel that does not know F_SEAL_EXEC has no program that relies on it. */
static int seal(int fd, uint32_t seals, struct err *e)
{
	if (!seals || fcntl(fd, F_ADD_SEALS, seals) == 0)
		return 0;
	if (errno == EINVAL && (seals & SEAL_EXEC) &&
		fcntl(fd, F_ADD_SEALS, seals & ~(uint32_t)SEAL_EXEC) == 0)
		return 0;
	return err_errno(e, -errno, "cannot seal a memfd again (%#x)", seals);
}

static int finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__MemFd *m = pb__mem_fd__unpack(NULL, r->len, r->body);
	struct ckpt_object *o = m ? ckpt_object_get(b, PROTO_KIND_MEMFD, m->object) : NULL;
	int x = 0;

	if (o && o->fd >= 0 && m->object == r->subject) {
		if (fchmod(o->fd, m->mode & 07777) < 0)
			x = err_errno(e, -errno, "mode of a memfd");
		else
			x = seal(o->fd, m->seals, e);
		o->fd = close_fd(o->fd);
	}
	if (x == 0 && m)
		ckpt_common_lease(b, ckpt_build_file(b, (uint32_t)r->subject), m->common);
	if (m)
		pb__mem_fd__free_unpacked(m, NULL);
	return x;
}

static int take_locks(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__MemFd *m = pb__mem_fd__unpack(NULL, r->len, r->body);
	struct ckpt_build_file *f = ckpt_build_file(b, (uint32_t)r->subject);
	int x = m && f ? ckpt_common_lock(f->fd, m->common, e) : ckpt_common_bad(r, e);

	if (m)
		pb__mem_fd__free_unpacked(m, NULL);
	return x;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__MemFd *m = pb__mem_fd__unpack(NULL, len, body);

	if (!m || !m->common)
		fputs("unreadable", out);
	else
		fprintf(out, "memfd '%.*s', %llu bytes, seals %#x, object %u", (int)m->name.len,
			(const char *)m->name.data, (unsigned long long)m->size, m->seals,
			bare ? 0 : m->object);
	if (m)
		pb__mem_fd__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_memfd = {
	.number = PROTO_KIND_MEMFD,
	.name = "memfd",
	.scope = CKPT_FILE,
	.claim = claim,
	.dump = dump,
	.dump_data = dump_data,
	.create = create,
	.data = ckpt_contents_fill,
	.link = take_locks,
	.finish = finish,
	.show = show,
};

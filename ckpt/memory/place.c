// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * place - the vDSO in a blank task.
 *
 * The kernel gave the task a vDSO somewhere, in front of it the pages of data it works on ([vvar],
 * [vvar_vclock]); they belong together at fixed distances.
 *
 *      same code as the image's     all pieces are moved to the image's addresses
 *      other code                   all pieces are moved to the room beside the executor's
 *                                   pages, and the image's code lies at its old place as plain
 *                                   memory that jumps there (vdso.c), behind zeros
 *
 * Where this host's has to carry on the session's clocks (vdso_clock.c) it is the same as one in
 * the image that did so, too, and another one than the kernel's.
 *
 * A blank task without a vDSO gets one by ARCH_MAP_VDSO_64, for a 32-bit program by
 * ARCH_MAP_VDSO_32.
 */
#include <asm/prctl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/memory/memory.h"
#include "ckpt/said.h"
#include "proto/memory.pb-c.h"

#ifndef ARCH_MAP_VDSO_64
#define ARCH_MAP_VDSO_32 0x2002 /* asm/prctl.h */
#define ARCH_MAP_VDSO_64 0x2003
#endif
#define MAX_VDSO (64 * 1024UL)

/* One vDSO: the first of its data pages, its code, its end. */
struct vdso {
	uint64_t start, code, end;
	struct ckpt_run pieces[8];
	size_t n;
	uint8_t *bytes; /* of the code */
};

static bool is_piece(const char *path)
{
	return !strcmp(path, "[vdso]") || !strncmp(path, "[vvar", 5);
}

static int add_piece(struct vdso *v, uint64_t start, uint64_t end, bool code, struct err *e)
{
	if (v->n == ARRAY_SIZE(v->pieces) || end <= start || end - start > MAX_VDSO ||
		(v->n && start != v->end))
		return err_set(e, ERR_IMAGE, -EBADMSG, "an unknown layout of the vDSO");
	if (!v->n)
		v->start = start;
	if (code)
		v->code = start;
	v->end = end;
	v->pieces[v->n++] = (struct ckpt_run){start, end};
	return 0;
}

static int find_host(
	struct ckpt_build *b, struct ckpt_build_proc *p, struct vdso *ret, struct err *e)
{
	struct proc_maps maps;
	int r = proc_read_maps(b->world->proc_fd, ckpt_said(b->world, p->vpid), false, &maps, e);

	if (r < 0)
		return r;
	*ret = (struct vdso){0};
	for (size_t i = 0; i < maps.n && r >= 0; i++)
		if (is_piece(maps.vmas[i].path))
			r = add_piece(ret, maps.vmas[i].start, maps.vmas[i].end,
				!strcmp(maps.vmas[i].path, "[vdso]"), e);
	proc_maps_fini(&maps);
	return r;
}

static int find_image(const Pb__Mm *m, struct vdso *ret, struct err *e)
{
	int r = 0;

	*ret = (struct vdso){0};
	for (size_t i = 0; i < m->n_mappings && r >= 0; i++) {
		const Pb__Mapping *v = m->mappings[i];

		if (v->source == PB__MAPPING_SOURCE__MAPPING_VDSO ||
			v->source == PB__MAPPING_SOURCE__MAPPING_VVAR)
			r = add_piece(ret, v->start, v->end,
				v->source == PB__MAPPING_SOURCE__MAPPING_VDSO, e);
	}
	if (r >= 0 && ret->code && m->vdso.len != ret->end - ret->code)
		return err_set(e, ERR_IMAGE, -EBADMSG, "the vDSO has the wrong size");
	return r;
}

/* Moves all of @v by @by, remembering the new place; the two places must not overlap. */
static int move_apart(struct remote *r, struct vdso *v, uint64_t by, struct err *e)
{
	for (size_t i = 0; i < v->n; i++) {
		uint64_t len = v->pieces[i].end - v->pieces[i].start;

		if (remote_add(r, SYS_mremap, v->pieces[i].start, len, len,
			    MREMAP_MAYMOVE | MREMAP_FIXED, v->pieces[i].start + by, 0) < 0)
			return err_errno(e, -ENOSPC, "moving the vDSO");
		v->pieces[i].start += by;
		v->pieces[i].end += by;
	}
	int ret = remote_run(r, true, e);

	for (size_t i = 0; i < v->n && ret >= 0; i++)
		if ((uint64_t)remote_result(r, (int)i) != v->pieces[i].start)
			ret = err_errno(e, (int)remote_result(r, (int)i), "moving the vDSO");
	v->start += by;
	v->code += by;
	v->end += by;
	return ret;
}

static bool overlap(uint64_t a, uint64_t b, uint64_t len)
{
	return a < b + len && b < a + len;
}

static int move(struct remote *r, struct vdso *v, uint64_t to, uint64_t spare, struct err *e)
{
	uint64_t len = v->end - v->start;
	int ret = 0;

	if (v->start == to)
		return 0;
	if (overlap(v->start, to, len))
		ret = move_apart(r, v, spare - v->start, e);
	return ret < 0 ? ret : move_apart(r, v, to - v->start, e);
}

static int get_host(struct ckpt_build *b, struct ckpt_build_proc *p, uint64_t wish, bool i386,
	struct vdso *ret, struct err *e)
{
	struct remote *rem = p->threads[0].remote;
	int r = find_host(b, p, ret, e);

	if (r < 0)
		return r;
	if (!ret->code) {
		long value;

		r = remote_call(rem, &value, e, SYS_arch_prctl,
			i386 ? ARCH_MAP_VDSO_32 : ARCH_MAP_VDSO_64, wish, 0, 0, 0, 0);
		if (r >= 0 && value < 0)
			r = err_errno(e, (int)value, "mapping the vDSO");
		if (r >= 0)
			r = find_host(b, p, ret, e);
		if (r < 0)
			return r;
	}
	if (!ret->code)
		return err_set(e, ERR_HOST, -ENOSYS, "this host has no vDSO");
	ret->bytes = malloc(ret->end - ret->code);
	if (!ret->bytes)
		return err_errno(e, -ENOMEM, "vDSO");
	r = remote_peek(rem, ret->code, ret->bytes, ret->end - ret->code, e);
	if (r < 0) {
		free(ret->bytes);
		ret->bytes = NULL;
	}
	return r;
}

enum likeness { OTHER, SAME, CONTINUED };

static enum likeness compare(const struct vdso *host, const struct vdso *image, const Pb__Mm *m)
{
	if (!image->code || host->end - host->code != m->vdso.len || host->n != image->n ||
		host->code - host->start != image->code - image->start)
		return OTHER;
	if (!memcmp(host->bytes, m->vdso.data, m->vdso.len))
		return SAME;
	return ckpt_vdso_likens(m->vdso.data, host->bytes, m->vdso.len) ? CONTINUED : OTHER;
}

/* Into the mapping of a vDSO or of what was one; they are not writable. */
static int write_code(struct ckpt_build *b, struct ckpt_build_proc *p, uint64_t at,
	const uint8_t *code, size_t len, struct err *e)
{
	int mem = -1;
	int r = ckpt_fill(p->threads[0].tid, b->world->proc_fd,
		ckpt_said(b->world, p->threads[0].vtid), &mem, at, code, len, false, e);

	close_fd(mem);
	return r;
}

/* It is in its place. */
static int carry_on(
	struct ckpt_build *b, struct ckpt_build_proc *p, const struct vdso *host, struct err *e)
{
	size_t len = host->end - host->code;

	if (ckpt_vdso_continue(host->bytes, len, &b->world->clocks) < 0)
		return err_set(e, ERR_HOST, -ENOSYS, "this host's vDSO can't be understood");
	return write_code(b, p, host->code, host->bytes, len, e);
}

/*
 * A handler may have interrupted the old code, which goes on in its middle then.  In place of its
 * data there are zeros, by which it finds no clock that it could read itself, and asks the kernel.
 */
static int put_zeros(struct remote *r, const struct vdso *image, struct err *e)
{
	long value;

	if (image->start == image->code)
		return 0;
	return remote_must(r, &value, e, SYS_mmap, image->start, image->code - image->start,
		PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);
}

/* The image's code as plain memory at its old place. */
static int put_old(struct ckpt_build *b, struct ckpt_build_proc *p, const struct vdso *host,
	const struct vdso *image, const Pb__Mm *m, struct err *e)
{
	_cleanup_free_ uint8_t *old = malloc(m->vdso.len);
	long value;
	int r;

	if (!old)
		return err_errno(e, -ENOMEM, "vDSO");
	memcpy(old, m->vdso.data, m->vdso.len);
	/* Who stands in it, in a call, comes back with the right time. */
	ckpt_vdso_stop(old, m->vdso.len);
	r = ckpt_vdso_redirect(old, m->vdso.len, image->code, host->bytes, host->end - host->code,
		host->code, e);
	if (r >= 0)
		r = remote_must(p->threads[0].remote, &value, e, SYS_mmap, image->code, m->vdso.len,
			PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			(uint64_t)-1, 0);
	if (r >= 0)
		r = write_code(b, p, image->code, old, m->vdso.len, e);
	return r < 0 ? r : put_zeros(p->threads[0].remote, image, e);
}

int ckpt_place_vdso(struct ckpt_build *b, struct ckpt_build_proc *p, const Pb__Mm *m, struct err *e)
{
	struct remote *rem = p->threads[0].remote;
	/* two places of MAX_VDSO beside the executor's pages */
	uint64_t room = b->area - CKPT_LAYOUT_BELOW, spare = b->area - CKPT_LAYOUT_BELOW / 2;
	bool carries = b->world->clocks.monotonic_ns || b->world->clocks.boottime_ns, stays;
	struct vdso host, image;
	enum likeness like;
	int r = find_image(m, &image, e);

	if (r < 0)
		return r;
	r = get_host(b, p, image.start ? image.start : room, m->i386, &host, e);
	if (r < 0)
		return r;
	like = compare(&host, &image, m);
	stays = like == CONTINUED || (like == SAME && !carries);
	r = move(rem, &host, stays ? image.start : room, spare, e);
	if (r >= 0 && (carries || like == CONTINUED))
		r = carry_on(b, p, &host, e);
	if (r >= 0 && !stays && image.code)
		r = put_old(b, p, &host, &image, m, e);
	free(host.bytes);
	return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The session's own files: entries of both images, sorted by path, are walked together.  Contents
 * of small files are in the entry, those of others are data under its number.  A time alone that
 * has changed is no difference.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/inspect/diff.h"
#include "proto/files.pb-c.h"
#include "proto/kinds.h"

struct entries {
	const Pb__TreeEntry **list;
	size_t n;
};

static int compare_bytes(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
	int r = memcmp(a->len ? (const void *)a->data : "", b->len ? (const void *)b->data : "",
		MIN(a->len, b->len));

	return r ? r : (a->len > b->len) - (a->len < b->len);
}

static int compare_path(const void *x, const void *y)
{
	const Pb__TreeEntry *const *a = x, *const *b = y;

	return compare_bytes(&(*a)->path, &(*b)->path);
}

static int gather(struct entries *ret, const struct ckpt_inspect *in, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < in->n_trees; i++)
		n += in->trees[i]->n_entries;
	ret->list = calloc(n + 1, sizeof(*ret->list));
	if (!ret->list)
		return err_errno(e, -ENOMEM, "files");
	for (size_t i = 0; i < in->n_trees; i++)
		for (size_t k = 0; k < in->trees[i]->n_entries; k++)
			ret->list[ret->n++] = in->trees[i]->entries[k];
	sort_array(ret->list, ret->n, sizeof(*ret->list), compare_path);
	return 0;
}

/* Its type, and what a user would want to know of it. */
static void describe(const Pb__TreeEntry *f, struct buf *ret)
{
	static const char *const types[] = {
		"file", "directory", "symlink", "hard link", "fifo", "socket", "removed"};

	buf_printf(ret, "%s", (unsigned)f->type < ARRAY_SIZE(types) ? types[f->type] : "?");
	if (f->type == PB__TREE_ENTRY__TYPE__REGULAR)
		buf_printf(ret, " of %llu bytes", (unsigned long long)f->size);
	if (f->target.len)
		buf_printf(ret, " to %.*s", (int)MIN(f->target.len, (size_t)4096),
			(const char *)f->target.data);
	if (f->type != PB__TREE_ENTRY__TYPE__SYMLINK && f->type != PB__TREE_ENTRY__TYPE__WHITEOUT)
		buf_printf(ret, ", mode %o", f->mode);
}

/* Of files of the same size. */
static bool same_contents(const struct ckpt_inspect *a, const Pb__TreeEntry *x,
	const struct ckpt_inspect *b, const Pb__TreeEntry *y)
{
	if (!x->id && !y->id)
		return compare_bytes(&x->content, &y->content) == 0;
	if (!x->id || !y->id)
		return false;
	return ckpt_inspect_same(a, x->id, b, y->id, PROTO_KIND_TREE, x->size) == 1;
}

static int compare_name(const void *x, const void *y)
{
	const Pb__TreeXattr *const *a = x, *const *b = y;

	return strcmp((*a)->name, (*b)->name);
}

/* File systems list them in any order. */
static bool same_xattrs(const Pb__TreeEntry *x, const Pb__TreeEntry *y)
{
	if (x->n_xattrs != y->n_xattrs)
		return false;
	sort_array(x->xattrs, x->n_xattrs, sizeof(*x->xattrs), compare_name);
	sort_array(y->xattrs, y->n_xattrs, sizeof(*y->xattrs), compare_name);
	for (size_t i = 0; i < x->n_xattrs; i++)
		if (compare_name(&x->xattrs[i], &y->xattrs[i]) != 0 ||
			compare_bytes(&x->xattrs[i]->value, &y->xattrs[i]->value) != 0)
			return false;
	return true;
}

struct difference {
	bool contents, xattrs;
};

static int tell(struct ckpt_diff_text *t, const Pb__TreeEntry *x, const Pb__TreeEntry *y,
	struct difference d, struct err *e)
{
	_cleanup_buf_ struct buf was = BUF_INIT, is = BUF_INIT, path = BUF_INIT;
	FILE *out;

	buf_put(&path, (x ? x : y)->path.data, (x ? x : y)->path.len);
	if (x)
		describe(x, &was);
	if (y)
		describe(y, &is);
	if (d.contents)
		buf_printf(&is, ", other contents");
	if (d.xattrs)
		buf_printf(&is, ", other attributes");
	if (!buf_cstr(&path) || !buf_cstr(&was) || !buf_cstr(&is))
		return err_errno(e, -ENOMEM, "files");
	out = ckpt_diff_item(t);
	fputs(t->json ? "\"path\":\"" : "file ", out);
	(t->json ? text_put_json : text_put)(out, buf_cstr(&path));
	fputs(t->json ? "\"" : ": ", out);
	ckpt_diff_change(t, x ? buf_cstr(&was) : NULL, y ? buf_cstr(&is) : NULL);
	return 0;
}

static int compare_entry(struct ckpt_diff_text *t, const struct ckpt_inspect *a,
	const Pb__TreeEntry *x, const struct ckpt_inspect *b, const Pb__TreeEntry *y, struct err *e)
{
	bool same = x->type == y->type && x->size == y->size;
	struct difference d = {
		.contents = same && !same_contents(a, x, b, y), .xattrs = !same_xattrs(x, y)};

	if (same && !d.contents && !d.xattrs && x->mode == y->mode &&
		compare_bytes(&x->target, &y->target) == 0)
		return 0;
	return tell(t, x, y, d, e);
}

int ckpt_diff_files(struct ckpt_diff_text *t, const struct ckpt_inspect *a,
	const struct ckpt_inspect *b, struct err *e)
{
	struct entries was = {0}, is = {0};
	int r = gather(&was, a, e);

	if (r == 0)
		r = gather(&is, b, e);
	for (size_t i = 0, k = 0; r == 0 && (i < was.n || k < is.n);) {
		int order = i == was.n	? 1
			    : k == is.n ? -1
					: compare_path(&was.list[i], &is.list[k]);

		if (order == 0)
			r = compare_entry(t, a, was.list[i], b, is.list[k], e);
		else
			r = order < 0 ? tell(t, was.list[i], NULL, (struct difference){0}, e)
				      : tell(t, NULL, is.list[k], (struct difference){0}, e);
		i += order <= 0;
		k += order >= 0;
	}
	free(was.list);
	free(is.list);
	return r;
}

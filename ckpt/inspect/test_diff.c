// SPDX-License-Identifier: GPL-2.0-or-later
/* What is not the same in two images: bytes wherever they say they are, and files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/inspect/diff.h"
#include "proto/files.pb-c.h"
#include "proto/kinds.h"

#define KIND PROTO_KIND_TREE
#define MOST (UINT64_MAX - PAGE_SIZE)

/* ---- bytes ----------------------------------------------------------------------------------- */

/* An image of these bytes, each of which is stored somewhere in it. */
static struct ckpt_inspect image_of(struct ckpt_extent *x, size_t n)
{
	struct ckpt_inspect i = {.image = memfd_create("image", MFD_CLOEXEC), .spool = -1};

	for (size_t k = 0; k < n; k++) {
		x[k].kind = KIND;
		x[k].subject = 1;
	}
	i.extents = x;
	i.n_extents = n;
	assert_int_equal(ftruncate(i.image, 3 * PAGE_SIZE), 0);
	assert_int_equal(pwrite(i.image, "b", 1, PAGE_SIZE), 1);
	return i;
}

static int same(struct ckpt_inspect *a, struct ckpt_inspect *b, uint64_t len)
{
	int r = ckpt_inspect_same(a, 1, b, 1, KIND, len);

	close(a->image);
	close(b->image);
	return r;
}

/* They are compared where they are, and not everywhere else: that would take for ever. */
static void far_away(void **state)
{
	struct ckpt_extent zeros[] = {{.offset = 5, .len = 100}, {.offset = 1UL << 63, .len = 8}},
			   last[] = {{.offset = MOST, .len = PAGE_SIZE - 1, .at = 1}},
			   again[] = {{.offset = MOST, .len = PAGE_SIZE - 1, .at = 1}},
			   other[] = {{.offset = MOST, .len = PAGE_SIZE - 1, .at = 2}};
	struct ckpt_inspect a, b;

	a = image_of(zeros, 2), b = image_of(NULL, 0);
	assert_int_equal(same(&a, &b, UINT64_MAX), 1);
	a = image_of(NULL, 0), b = image_of(zeros, 2);
	assert_int_equal(same(&a, &b, UINT64_MAX), 1);
	a = image_of(last, 1), b = image_of(again, 1);
	assert_int_equal(same(&a, &b, UINT64_MAX), 1);
	a = image_of(last, 1), b = image_of(other, 1);
	assert_int_equal(same(&a, &b, UINT64_MAX), 0);
	a = image_of(zeros, 2), b = image_of(other, 1);
	assert_int_equal(same(&a, &b, UINT64_MAX), 0);
	/* only so many of them */
	a = image_of(zeros, 2), b = image_of(other, 1);
	assert_int_equal(same(&a, &b, UINT64_MAX - 2 * PAGE_SIZE), 1);
}

/* What is stored in pieces in one, and in a piece in the other. */
static void in_pieces(void **state)
{
	struct ckpt_extent whole[] = {{.offset = 100, .len = 2 * PAGE_SIZE, .at = PAGE_SIZE - 50}},
			   pieces[] = {{.offset = 150, .len = 1, .at = PAGE_SIZE},
				   {.offset = 9000, .len = 7, .at = 0}},
			   more[] = {{.offset = 150, .len = 1, .at = PAGE_SIZE},
				   {.offset = 8000, .len = 1, .at = PAGE_SIZE}};
	struct ckpt_inspect a, b;

	a = image_of(whole, 1), b = image_of(pieces, 2);
	assert_int_equal(same(&a, &b, UINT64_MAX), 1);
	a = image_of(whole, 1), b = image_of(more, 2);
	assert_int_equal(same(&a, &b, UINT64_MAX), 0);
	a = image_of(more, 2), b = image_of(pieces, 2);
	assert_int_equal(same(&a, &b, 8000), 1);
	a = image_of(more, 2), b = image_of(pieces, 2);
	assert_int_equal(same(&a, &b, 8001), 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

static ProtobufCBinaryData bytes(const char *s)
{
	return (ProtobufCBinaryData){.len = strlen(s), .data = (uint8_t *)s};
}

struct file {
	Pb__TreeEntry entry, *entries[1];
	Pb__TreeXattr x[2], *xattrs[2];
	Pb__Tree tree, *trees[1];
	struct ckpt_inspect in;
};

/* A file `f` with these attributes; NULL: with less of them. */
static void make(
	struct file *f, const char *name, const char *value, const char *name2, const char *value2)
{
	*f = (struct file){.entry = PB__TREE_ENTRY__INIT,
		.x = {PB__TREE_XATTR__INIT, PB__TREE_XATTR__INIT},
		.tree = PB__TREE__INIT,
		.entries = {&f->entry},
		.xattrs = {&f->x[0], &f->x[1]},
		.trees = {&f->tree}};
	f->entry.path = bytes("f");
	f->entry.mode = 0644;
	f->entry.n_xattrs = name2 ? 2 : name ? 1 : 0;
	f->entry.xattrs = f->xattrs;
	f->x[0].name = (char *)name;
	f->x[0].value = bytes(value ? value : "");
	f->x[1].name = (char *)name2;
	f->x[1].value = bytes(value2 ? value2 : "");
	f->tree.entries = f->entries;
	f->tree.n_entries = 1;
	f->in.trees = f->trees;
	f->in.n_trees = 1;
	f->in.spool = f->in.image = -1;
}

static void expect(struct file *a, struct file *b, const char *line)
{
	_cleanup_free_ char *text = NULL;
	struct ckpt_diff_text t;
	struct err e = {0};
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ckpt_diff_begin(&t, out, false);
	ckpt_diff_list(&t, "files");
	assert_int_equal(ckpt_diff_files(&t, &a->in, &b->in, &e), 0);
	ckpt_diff_end(&t);
	fclose(out);
	assert_string_equal(text, line);
}

static void attributes_of_files(void **state)
{
	static const char told[] =
		"file f: file of 0 bytes, mode 644, other attributes, was file of 0 bytes, mode 644\n";
	struct file a, b;

	make(&a, "user.a", "1", "user.b", "2");
	make(&b, "user.b", "2", "user.a", "1");
	expect(&a, &b, "");
	make(&b, "user.a", "1", "user.b", "3");
	expect(&a, &b, told);
	make(&b, "user.a", "1", "user.c", "2");
	expect(&a, &b, told);
	make(&b, "user.a", "1", "user.b", "");
	expect(&a, &b, told);
	make(&b, "user.a", "1", NULL, NULL);
	expect(&a, &b, told);
	expect(&b, &a, told);
	make(&a, NULL, NULL, NULL, NULL);
	expect(&a, &b, told);
	expect(&a, &a, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_away),
		cmocka_unit_test(in_pieces),
		cmocka_unit_test(attributes_of_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

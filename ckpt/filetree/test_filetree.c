// SPDX-License-Identifier: GPL-2.0-or-later
/* The session's own files through an image: all that comes out is what went in, and never more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/files.pb-c.h"
#include "proto/proto.h"

struct fixture {
	char dir[40]; /* holds the key, from/ and to/ */
	struct proto_key *key;
	int top, from, to, image;
	struct proto_writer *out;
	bool *changed; /* there is something before it is unpacked: ckpt_tree_read's */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct proto_write_options o = {0};
	struct err e = {0};

	strcpy(f->dir, "/tmp/podrun-tree-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(proto_key_open(&f->key, f->dir, &e), 0);
	f->top = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(f->top, "from", 0700), 0);
	assert_int_equal(mkdirat(f->top, "to", 0700), 0);
	f->from = openat(f->top, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->to = openat(f->top, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->image = memfd_create("image", MFD_CLOEXEC);
	o.key = f->key;
	assert_int_equal(proto_writer_open(&f->out, f->image, &o, &e), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	proto_writer_close(f->out);
	proto_key_close(f->key);
	close(f->from);
	close(f->to);
	close(f->top);
	close(f->image);
	assert_int_equal(io_rm_rf(AT_FDCWD, f->dir), 0);
	free(f);
	return 0;
}

/* Ends the image and unpacks it into to/. */
static int read_back(struct fixture *f, struct err *e)
{
	struct proto_read_options o = {.config_dir = f->dir};
	struct proto_reader *in;
	uint64_t bytes;
	int r;

	assert_int_equal(proto_writer_finish(f->out, &bytes, e), 0);
	assert_int_equal(lseek(f->image, 0, SEEK_SET), 0);
	assert_int_equal(proto_reader_open(&in, f->image, &o, e), 0);
	r = ckpt_tree_read(f->to, in, f->changed, e);
	proto_reader_close(in);
	return r;
}

static void put_file(int dirfd, const char *name, size_t size, mode_t mode)
{
	uint8_t *data = malloc(size + 1);

	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(io_write_file(dirfd, name, data, size, 0600), 0);
	assert_int_equal(fchmodat(dirfd, name, mode, 0), 0);
	free(data);
}

static void same_file(struct fixture *f, const char *name)
{
	_cleanup_buf_ struct buf a = BUF_INIT, b = BUF_INIT;
	struct stat x, y;

	assert_int_equal(fstatat(f->from, name, &x, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(fstatat(f->to, name, &y, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(x.st_mode, y.st_mode);
	assert_int_equal(x.st_size, y.st_size);
	assert_int_equal(x.st_nlink, y.st_nlink);
	assert_int_equal(x.st_rdev, y.st_rdev);
	assert_int_equal(x.st_mtim.tv_sec, y.st_mtim.tv_sec);
	assert_int_equal(x.st_mtim.tv_nsec, y.st_mtim.tv_nsec);
	if (!S_ISREG(x.st_mode) || x.st_size > 10000000)
		return;
	fchmodat(f->from, name, 0600, 0);
	fchmodat(f->to, name, 0600, 0);
	assert_int_equal(io_read_file(f->from, name, 1 << 24, &a), 0);
	assert_int_equal(io_read_file(f->to, name, 1 << 24, &b), 0);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
}

static void files_of_every_sort(void **state)
{
	static const char *const names[] = {"d", "d/sub", "d/sub/small", "d/empty", "big", "secret",
		"holes", "hard2", "link", "fifo", "gone", "closed", "closed/inside"};
	struct fixture *f = *state;
	struct timespec old[2] = {
		{.tv_sec = 1000, .tv_nsec = 1}, {.tv_sec = 2000, .tv_nsec = 123456789}};
	char value[16];
	struct err e = {0};
	struct stat st;
	int fd;

	io_mkdir_p(f->from, "d/sub", 0751);
	put_file(f->from, "d/sub/small", 100, 0644);
	put_file(f->from, "d/empty", 0, 0600);
	put_file(f->from, "big", 3000001, 0444);
	put_file(f->from, "secret", 5000, 0);
	fd = openat(f->from, "holes", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 1LL << 33), 0);
	assert_int_equal(io_pwrite_full(fd, "x", 1, 1LL << 32), 0);
	close(fd);
	assert_int_equal(linkat(f->from, "big", f->from, "hard2", 0), 0);
	assert_int_equal(symlinkat("/nowhere/../at all", f->from, "link"), 0);
	assert_int_equal(mkfifoat(f->from, "fifo", 0640), 0);
	assert_int_equal(mknodat(f->from, "gone", S_IFCHR, makedev(0, 0)), 0);
	io_mkdir_p(f->from, "closed", 0700);
	put_file(f->from, "closed/inside", 10, 0600);
	utimensat(f->from, "link", old, AT_SYMLINK_NOFOLLOW);
	utimensat(f->from, "d/sub/small", old, 0);
	utimensat(f->from, "d", old, 0);
	assert_int_equal(fchmodat(f->from, "closed", 0, 0), 0);
	fd = openat(f->from, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool has_xattrs = fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) == 0;
	close(fd);

	assert_int_equal(ckpt_tree_write(f->from, NULL, f->out, &e), 0);
	assert_int_equal(read_back(f, &e), 0);
	fchmodat(f->from, "closed", 0700, 0);
	assert_int_equal(fstatat(f->to, "closed", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0);
	fchmodat(f->to, "closed", 0700, 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		same_file(f, names[i]);
	assert_int_equal(fstatat(f->to, "holes", &st, 0), 0);
	assert_true(st.st_blocks < 1000);
	fd = openat(f->to, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (has_xattrs)
		assert_int_equal(fgetxattr(fd, "user.overlay.opaque", value, sizeof(value)), 1);
	close(fd);
}

/* A root inside has the owners of files in attributes. */
static void attributes_of_a_file_that_nobody_may_read(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};
	char value[16];
	struct stat st;
	int fd;

	put_file(f->from, "secret", 5000, 0600);
	fd = openat(f->from, "secret", O_RDONLY | O_CLOEXEC);
	if (fsetxattr(fd, "user.owner", "33:44", 5, 0) < 0)
		skip();
	assert_int_equal(fchmod(fd, 0200), 0);
	close(fd);
	assert_int_equal(ckpt_tree_write(f->from, NULL, f->out, &e), 0);
	assert_int_equal(fstatat(f->from, "secret", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0200);
	assert_int_equal(read_back(f, &e), 0);
	same_file(f, "secret");
	fd = openat(f->to, "secret", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fgetxattr(fd, "user.owner", value, sizeof(value)), 5);
	assert_memory_equal(value, "33:44", 5);
	close(fd);
}

static void many_files(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};
	char name[32];

	for (int i = 0; i < 1500; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		put_file(f->from, name, (size_t)(i * 13 % 9000), 0600);
	}
	assert_int_equal(ckpt_tree_write(f->from, NULL, f->out, &e), 0);
	assert_int_equal(read_back(f, &e), 0);
	for (int i = 0; i < 1500; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		same_file(f, name);
	}
}

static void an_empty_tree(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};

	assert_int_equal(ckpt_tree_write(f->from, NULL, f->out, &e), 0);
	assert_int_equal(read_back(f, &e), 0);
}

/* ---- what is there already ------------------------------------------------------------------- */

/* The layer of a session that has changed nothing, as the supervisor makes it. */
static void put_layer(int dirfd)
{
	int fd;

	assert_int_equal(io_mkdir_p(dirfd, "upper/var/tmp", 0755), 0);
	assert_int_equal(io_mkdir_p(dirfd, "upper/home/me", 0755), 0);
	assert_int_equal(fchmodat(dirfd, "upper/var/tmp", 01777, 0), 0);
	fd = openat(dirfd, "upper/home", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fsetxattr(fd, "user.overlay.uuid", "0123456789abcdef", 16, 0), 0);
	close(fd);
}

static void put_beside(int dirfd)
{
	io_mkdir_p(dirfd, "work/%var", 0700);
	mkdirat(dirfd, "work/%var/work", 0);
	io_mkdir_p(dirfd, "run/podrun", 0755);
	io_mkdir_p(dirfd, "tmp", 0777);
}

static void make_layer(struct fixture *f)
{
	_cleanup_buf_ struct buf layer = BUF_INIT;
	struct err e = {0};

	assert_int_equal(ckpt_tree_layer(f->from, &layer, &e), 0);
	assert_int_equal(ckpt_tree_make_layer(f->to, layer.data, layer.len, &e), 0);
}

static void open_work(struct fixture *f)
{
	fchmodat(f->from, "work/%var/work", 0700, 0);
	fchmodat(f->to, "work/%var/work", 0700, 0);
}

static void a_layer_that_is_there(void **state)
{
	static const char *const dirs[] = {
		"upper", "upper/var", "upper/var/tmp", "upper/home", "upper/home/me", "run"};
	struct fixture *f = *state;
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 2000, .tv_nsec = 5}};
	struct stat before, after;
	bool changed = false;
	struct err e = {0};
	char value[16];
	int fd;

	put_layer(f->from);
	make_layer(f);
	put_beside(f->to);
	put_beside(f->from);
	put_file(f->to, "run/podrun/hosts", 5000, 0644);
	put_file(f->from, "run/podrun/hosts", 100, 0644);
	put_file(f->from, "tmp/mine", 70000, 0600);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		utimensat(f->from, dirs[i], old, 0);
	assert_int_equal(fstatat(f->to, "run/podrun/hosts", &before, 0), 0);

	f->changed = &changed;
	assert_int_equal(ckpt_tree_write(f->from, NULL, f->out, &e), 0);
	assert_int_equal(read_back(f, &e), 0);
	assert_false(changed);
	assert_int_equal(fstatat(f->to, "run/podrun/hosts", &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	same_file(f, "run/podrun/hosts");
	same_file(f, "tmp/mine");
	same_file(f, "work/%var/work");
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		same_file(f, dirs[i]);
	fd = openat(f->to, "upper/home", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fgetxattr(fd, "user.overlay.uuid", value, sizeof(value)), 16);
	assert_memory_equal(value, "0123456789abcdef", 16);
	close(fd);
	open_work(f);
}

static void more_file(int from)
{
	put_file(from, "upper/home/me/x", 10, 0600);
}

static void more_directory(int from)
{
	assert_int_equal(mkdirat(from, "upper/opt", 0755), 0);
}

static void another_mode(int from)
{
	assert_int_equal(fchmodat(from, "upper/home/me", 0700, 0), 0);
}

static void another_attribute(int from)
{
	int fd = openat(from, "upper/var", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(fsetxattr(fd, "user.overlay.opaque", "y", 1, 0), 0);
	close(fd);
}

static void no_directory(int from)
{
	assert_int_equal(unlinkat(from, "upper/var/tmp", AT_REMOVEDIR), 0);
	assert_int_equal(mknodat(from, "upper/var/tmp", S_IFCHR, makedev(0, 0)), 0);
}

static void a_link(int from)
{
	assert_int_equal(unlinkat(from, "upper/home/me", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("you", from, "upper/home/me"), 0);
}

static void in_work(int from)
{
	assert_int_equal(mknodat(from, "work/%var/#1", S_IFCHR, makedev(0, 0)), 0);
}

static void a_layer_that_has_changed(void **state)
{
	static const struct {
		void (*change)(int from);
		const char *name;
	} changes[] = {
		{more_file, "upper/home/me/x"},
		{more_directory, "upper/opt"},
		{another_mode, "upper/home/me"},
		{another_attribute, "upper/var"},
		{no_directory, "upper/var/tmp"},
		{a_link, "upper/home/me"},
		{in_work, "work/%var/#1"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		bool changed = false;
		struct err e = {0};
		struct fixture *f;

		setup((void **)&f);
		put_layer(f->from);
		make_layer(f);
		put_beside(f->to);
		put_beside(f->from);
		changes[i].change(f->from);
		f->changed = &changed;
		assert_int_equal(ckpt_tree_write(f->from, NULL, f->out, &e), 0);
		assert_int_equal(read_back(f, &e), 0);
		assert_true(changed);
		same_file(f, changes[i].name);
		open_work(f);
		teardown((void **)&f);
	}
}

/* It has something else, or more than is told of, or what can't be looked into. */
static void no_layer_to_tell_of(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct buf layer = BUF_INIT;
	struct err e = {0};
	char name[32];

	put_layer(f->from);
	put_file(f->from, "upper/home/x", 1, 0600);
	assert_int_equal(ckpt_tree_layer(f->from, &layer, &e), 1);
	assert_int_equal(unlinkat(f->from, "upper/home/x", 0), 0);
	assert_int_equal(mkdirat(f->from, "upper/closed", 0300), 0);
	assert_int_equal(ckpt_tree_layer(f->from, &layer, &e), 1);
	assert_int_equal(unlinkat(f->from, "upper/closed", AT_REMOVEDIR), 0);
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "upper/d%d", i);
		assert_int_equal(mkdirat(f->from, name, 0755), 0);
	}
	assert_int_equal(ckpt_tree_layer(f->from, &layer, &e), 1);
	assert_int_equal(layer.len, 0);
	assert_int_equal(unlinkat(f->from, name, AT_REMOVEDIR), 0);
	assert_int_equal(ckpt_tree_layer(f->from, &layer, &e), 0);
	assert_true(layer.len > 0);
	assert_false(err_is(&e));
}

/* ---- hostile images -------------------------------------------------------------------------- */

struct hostile {
	const char *path;
	size_t len; /* of path, 0: strlen */
	Pb__TreeEntry__Type type;
	const char *target;
	uint64_t size;
	const char *xattr;
};

static size_t pack_record(const struct hostile *h, size_t n, uint8_t body[70000])
{
	Pb__TreeEntry entry[4], *entries[4];
	Pb__TreeXattr x = PB__TREE_XATTR__INIT, *xs = &x;
	Pb__Tree tree = PB__TREE__INIT;

	for (size_t i = 0; i < n; i++) {
		entries[i] = &entry[i];
		pb__tree_entry__init(&entry[i]);
		entry[i].path.data = (uint8_t *)h[i].path;
		entry[i].path.len = h[i].len ? h[i].len : strlen(h[i].path);
		entry[i].type = h[i].type;
		entry[i].mode = 0755;
		entry[i].size = h[i].size;
		entry[i].id = i + 1;
		if (h[i].target) {
			entry[i].target.data = (uint8_t *)h[i].target;
			entry[i].target.len = strlen(h[i].target);
		}
		if (h[i].xattr) {
			x.name = (char *)h[i].xattr;
			entry[i].xattrs = &xs;
			entry[i].n_xattrs = 1;
		}
	}
	tree.entries = entries;
	tree.n_entries = n;
	assert_true(pb__tree__get_packed_size(&tree) <= 70000);
	return pb__tree__pack(&tree, body);
}

static void put_record(struct fixture *f, const struct hostile *h, size_t n)
{
	uint8_t body[70000];
	size_t len = pack_record(h, n, body);
	struct err e = {0};

	assert_int_equal(proto_write_record(f->out, PROTO_KIND_TREE, 0, body, len, &e), 0);
}

static void refused(struct fixture *f, const struct hostile *h, size_t n)
{
	struct err e = {0};

	put_record(f, h, n);
	assert_int_not_equal(read_back(f, &e), 0);
	assert_int_equal(e.class, ERR_IMAGE);
}

#define FILE_ PB__TREE_ENTRY__TYPE__REGULAR
#define DIR_  PB__TREE_ENTRY__TYPE__DIRECTORY
#define LINK_ PB__TREE_ENTRY__TYPE__SYMLINK
#define HARD_ PB__TREE_ENTRY__TYPE__HARDLINK

static void hostile_names(void **state)
{
	static char long_name[300], long_path[6000];
	const struct hostile bad[] = {
		{""},
		{"/etc/passwd"},
		{".."},
		{"."},
		{"a/../b"},
		{"../out"},
		{"a//b"},
		{"a/"},
		{"nul", 4},
		{long_name},
		{long_path},
		{"missing/x"},
	};

	memset(long_name, 'x', sizeof(long_name) - 1);
	for (size_t i = 0; i + 2 < sizeof(long_path); i += 2)
		memcpy(long_path + i, "a/", 2);
	long_path[sizeof(long_path) - 2] = 'a';
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		void *own;

		setup(&own);
		refused(own, &bad[i], 1);
		teardown(&own);
	}
}

static void hostile_order(void **state)
{
	const struct hostile bad[][2] = {
		{{"x"}, {"x"}},
		{{"d", 0, DIR_}, {"d", 0, DIR_}},
		{{"l", 0, LINK_, "/tmp"}, {"l/x"}},
		{{"l", 0, LINK_, "."}, {"l/x"}},
		{{"l", 0, LINK_, "/etc/passwd"}, {"l"}},
		{{"f"}, {"f/x"}},
		{{"f"}, {"g", 0, HARD_, "../../../etc/passwd"}},
		{{"f"}, {"g", 0, HARD_, "/etc/passwd"}},
		{{"l", 0, LINK_, "/etc"}, {"g", 0, HARD_, "l/passwd"}},
		{{"f"}, {"g", 0, HARD_, NULL}},
		{{"f"}, {"g", 0, LINK_, NULL}},
		{{"f"}, {"g", 0, 99, NULL}},
		{{"f"}, {"g", 0, FILE_, NULL, UINT64_MAX}},
		{{"f"}, {"g", 0, FILE_, NULL, 0, "security.capability"}},
		{{"f"}, {"g", 0, DIR_, NULL, 0, "trusted.overlay.redirect"}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		void *own;

		setup(&own);
		refused(own, bad[i], 2);
		teardown(&own);
	}
}

/* A hard link to a symbolic link is that link's inode, and nothing is written through it. */
static void hostile_contents(void **state)
{
	struct fixture *f = *state;
	const struct hostile file = {.path = "f", .size = 10};
	struct err e = {0};

	put_record(f, &file, 1);
	assert_int_equal(proto_write_data(f->out, PROTO_KIND_TREE, 1, 8, "abcd", 4, &e), 0);
	assert_int_not_equal(read_back(f, &e), 0);
	assert_int_equal(e.class, ERR_IMAGE);
}

static void contents_of_nothing(void **state)
{
	struct fixture *f = *state;
	const struct hostile link = {.path = "f", .type = LINK_, .target = "/tmp/x"};
	struct err e = {0};

	put_record(f, &link, 1);
	assert_int_equal(proto_write_data(f->out, PROTO_KIND_TREE, 1, 0, "abcd", 4, &e), 0);
	assert_int_not_equal(read_back(f, &e), 0);
	assert_int_equal(e.class, ERR_IMAGE);
}

static void hostile_layers(void **state)
{
	const struct hostile bad[] = {
		{"upper/x"},
		{"upper/x", 0, LINK_, "/tmp"},
		{"upper/x", 0, PB__TREE_ENTRY__TYPE__WHITEOUT},
		{"tmp", 0, DIR_},
		{"upperx", 0, DIR_},
		{"upper/../x", 0, DIR_},
		{"/upper", 0, DIR_},
		{"upper/none/x", 0, DIR_},
		{"upper", 0, DIR_, NULL, 0, "trusted.overlay.redirect"},
	};
	struct fixture *f = *state;
	static uint8_t body[70000];
	struct hostile two[2] = {{"upper", 0, DIR_}, {"upper", 0, DIR_}};
	struct err e = {0};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e = (struct err){0};
		assert_int_not_equal(ckpt_tree_make_layer(
					     f->to, body, pack_record(&bad[i], 1, body), &e), 0);
		assert_int_equal(e.class, ERR_IMAGE);
		unlinkat(f->to, "upper", AT_REMOVEDIR);
	}
	assert_int_not_equal(ckpt_tree_make_layer(f->to, body, pack_record(two, 2, body), &e), 0);
	assert_int_not_equal(ckpt_tree_make_layer(f->to, "\377\377\377", 3, &e), 0);
}

static void garbage(void **state)
{
	struct fixture *f = *state;
	struct err e = {0};

	assert_int_equal(proto_write_record(f->out, PROTO_KIND_TREE, 0, "\377\377\377", 3, &e), 0);
	assert_int_not_equal(read_back(f, &e), 0);
	assert_int_equal(e.class, ERR_IMAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_of_every_sort, setup, teardown),
		cmocka_unit_test_setup_teardown(
			attributes_of_a_file_that_nobody_may_read, setup, teardown),
		cmocka_unit_test_setup_teardown(many_files, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_tree, setup, teardown),
		cmocka_unit_test_setup_teardown(a_layer_that_is_there, setup, teardown),
		cmocka_unit_test(a_layer_that_has_changed),
		cmocka_unit_test_setup_teardown(no_layer_to_tell_of, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile_layers, setup, teardown),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(hostile_order),
		cmocka_unit_test_setup_teardown(hostile_contents, setup, teardown),
		cmocka_unit_test_setup_teardown(contents_of_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(garbage, setup, teardown),
	};

	return cmocka_run_group_tests_name("filetree", tests, NULL, NULL);
}

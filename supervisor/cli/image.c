// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun image: what is in an image.  `show` reads images of any signer, `verify` only those that
 * would be accepted.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt/ckpt.h"
#include "proto/config.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"
#include "supervisor/cli/resume.h"

struct image_options {
	bool json;
	const char *output;
};

#define USAGE "ls | show|verify|stacks IMAGE | core IMAGE [-o FILE] | diff IMAGE IMAGE"

static const struct cli_option options[] = {
	{"json", 0, NULL, "as JSON", CLI_FLAG, offsetof(struct image_options, json)},
	{"output", 'o', "FILE", "where core writes: FILE.PID, one for each process (core)",
		CLI_STRING, offsetof(struct image_options, output)},
};

/* The directory that the image is in, -1 for what is no file. */
static int open_directory(char *path)
{
	char *slash = path ? strrchr(path, '/') : NULL;

	if (!slash)
		return -1;
	slash[slash == path] = '\0';
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens the image that @what means, once (it may be a FIFO), read by @o; @ret_dir may be NULL. */
static int open_reader(struct cli *c, const char *what, const struct proto_read_options *o,
	struct proto_reader **ret, int *ret_fd, int *ret_dir, struct err *e)
{
	_cleanup_free_ char *path = NULL, *name = NULL;
	bool own;
	int fd = resume_open(c, what, &path, &name, &own, e), r;

	if (fd < 0)
		return fd;
	r = proto_reader_open(ret, fd, o, e);
	if (r < 0) {
		close(fd);
		return r;
	}
	*ret_fd = fd;
	if (ret_dir)
		*ret_dir = open_directory(path);
	return r;
}

static void describe(const struct proto_reader *in, json_t *j)
{
	struct proto_image_info info;
	char signer[PROTO_KEY_TEXT_LEN];

	proto_reader_info(in, &info);
	proto_key_format(info.signer, signer);
	json_object_set_new(j, "id", json_hex(info.image_id, sizeof(info.image_id)));
	json_object_set_new(j, "version", json_integer(info.version));
	json_object_set_new(j, "signer", json_text(signer));
	json_object_set_new(j, "kind", json_string(info.copy ? "snapshot" : "suspend"));
	json_object_set_new(j, "created", json_integer((json_int_t)info.created));
}

static int show(struct cli *c, const struct image_options *o, char **what, struct err *e)
{
	const struct proto_read_options any = {0};
	struct proto_reader *in;
	json_t *head = json_object();
	const char *key;
	json_t *value;
	int fd, r = open_reader(c, what[0], &any, &in, &fd, NULL, e);

	if (r < 0)
		return r;
	describe(in, head);
	if (o->json) {
		json_dumpf(head, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		json_object_foreach(head, key, value)
		{
			if (json_is_string(value))
				printf("%-8s %s\n", key, json_string_value(value));
			else
				printf("%-8s %lld\n", key, (long long)json_integer_value(value));
		}
	}
	json_decref(head);
	r = ckpt_image_show(in, stdout, o->json, e);
	proto_reader_close(in);
	close(fd);
	return r;
}

static int read_all(struct proto_reader *in, uint64_t *ret_frames, struct err *e)
{
	struct proto_frame f;
	int r;

	do
		r = proto_read(in, &f, e);
	while (r == 0 && f.type != PROTO_END && ++*ret_frames);
	return r;
}

/* One of those that it refers to. */
static int verify_base(void *ctx, int fd, struct err *e)
{
	const struct proto_read_options *o = ctx;
	struct proto_reader *in;
	int r = proto_reader_open(&in, fd, o, e);

	if (r < 0)
		return r;
	r = read_all(in, &(uint64_t){0}, e);
	proto_reader_close(in);
	return r;
}

static int verify(struct cli *c, const struct image_options *o, char **what, struct err *e)
{
	struct proto_read_options trusted = {.config_dir = c->paths.config};
	_cleanup_close_ int dir = -1;
	struct ckpt_base *base = NULL;
	struct proto_reader *in;
	uint64_t frames = 0;
	int fd, r = open_reader(c, what[0], &trusted, &in, &fd, &dir, e);

	if (r < 0)
		return r;
	r = ckpt_base_read(&base, in, dir, verify_base, &trusted, e);
	ckpt_base_free(base);
	if (r == 0)
		r = read_all(in, &frames, e);
	if (r == 0 && o->json) {
		json_t *j = json_pack("{s:b, s:I}", "ok", 1, "frames", (json_int_t)frames);

		describe(in, j);
		json_print(j);
	} else if (r == 0) {
		printf("%s: whole and trusted\n", what[0]);
	}
	proto_reader_close(in);
	close(fd);
	return r;
}

static void tell_core(void *ctx, const char *path)
{
	puts(path);
}

/* One that is looked into, with those that it refers to; of any signer. */
struct looked {
	struct ckpt_image image;
	struct ckpt_base *base;
};

static void looked_close(struct looked *l)
{
	if (!l->image.in)
		return;
	proto_reader_close(l->image.in);
	ckpt_base_free(l->base);
	close(l->image.fd);
}
#define _cleanup_looked_ __attribute__((cleanup(looked_close)))

static int looked_open(struct looked *l, struct cli *c, const char *what, struct err *e)
{
	struct proto_read_options any = {0};
	_cleanup_close_ int dir = -1;
	int r = open_reader(c, what, &any, &l->image.in, &l->image.fd, &dir, e);

	if (r < 0)
		return r;
	r = ckpt_base_read(&l->base, l->image.in, dir, verify_base, &any, e);
	l->image.base = l->base;
	return r;
}

static int core(struct cli *c, const struct image_options *o, char **what, struct err *e)
{
	_cleanup_looked_ struct looked l = {0};
	int r = looked_open(&l, c, what[0], e);

	return r < 0 ? r
		     : ckpt_image_core(
			       &l.image, o->output ? o->output : "core", tell_core, NULL, e);
}

static int stacks(struct cli *c, const struct image_options *o, char **what, struct err *e)
{
	_cleanup_looked_ struct looked l = {0};
	int r = looked_open(&l, c, what[0], e);

	return r < 0 ? r : ckpt_image_stacks(&l.image, stdout, o->json, e);
}

static int diff(struct cli *c, const struct image_options *o, char **what, struct err *e)
{
	_cleanup_looked_ struct looked a = {0}, b = {0};
	int r;

	if (strcmp(what[0], "-") == 0 && strcmp(what[1], "-") == 0)
		return err_set(e, ERR_USAGE, -EINVAL, "only one of two images can be stdin");
	r = looked_open(&a, c, what[0], e);
	if (r < 0)
		return err_wrap(e, "%s", what[0]);
	r = looked_open(&b, c, what[1], e);
	if (r < 0)
		return err_wrap(e, "%s", what[1]);
	return ckpt_image_diff(&a.image, &b.image, stdout, o->json, e);
}

/* One row of ls. */
static void list_one(const char *dir, const char *file, json_t *list, struct cli_table *t)
{
	_cleanup_free_ char *path = NULL;
	char size[32], ago[64];
	struct stat st;

	if (asprintf(&path, "%s/%s", dir, file) < 0 || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	if (list) {
		json_array_append_new(
			list, json_pack("{s:o, s:I, s:I}", "image", json_text(path), "bytes",
				      (json_int_t)st.st_size, "written", (json_int_t)st.st_mtime));
		return;
	}
	cli_bytes((uint64_t)st.st_size, size, sizeof(size));
	cli_ago(st.st_mtime, ago, sizeof(ago));
	cli_table_add(t, "%s", size);
	cli_table_add(t, "%s", ago);
	cli_table_add(t, "%s", path);
}

/* Not what is being written, nor what is there for others only (supervisor/disk/images.h). */
static int is_in_sight(const struct dirent *entry)
{
	static const char *const others[] = {".part", CKPT_BASE_SUFFIX};
	size_t len = strlen(entry->d_name);

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		size_t suffix = strlen(others[i]);

		if (len > suffix && !strcmp(entry->d_name + len - suffix, others[i]))
			return 0;
	}
	return strstr(entry->d_name, ".img") != NULL;
}

static int list(struct cli *c, const struct image_options *o, char **what, struct err *e)
{
	struct cli_table t = {.columns = 3};
	_cleanup_free_ char *dir = NULL;
	json_t *all = o->json ? json_array() : NULL;
	struct dirent **entries = NULL;
	int n;

	if (asprintf(&dir, "%s/images", c->paths.state) < 0)
		return err_errno(e, -ENOMEM, "images");
	n = scandir(dir, &entries, is_in_sight, versionsort);
	if (n < 0 && errno != ENOENT)
		return err_errno(e, -errno, "%s", dir);
	cli_table_add(&t, "SIZE");
	cli_table_add(&t, "WRITTEN");
	cli_table_add(&t, "IMAGE");
	for (int i = 0; i < n; i++) {
		list_one(dir, entries[i]->d_name, all, &t);
		free(entries[i]);
	}
	free(entries);
	if (all)
		json_print(all);
	else
		cli_table_print(&t, stdout);
	return 0;
}

static const struct {
	const char *name;
	int operands;
	int (*run)(struct cli *c, const struct image_options *o, char **what, struct err *e);
} verbs[] = {
	{"ls", 0, list},
	{"show", 1, show},
	{"verify", 1, verify},
	{"stacks", 1, stacks},
	{"core", 1, core},
	{"diff", 2, diff},
};

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (strcmp(argv[0], verbs[i].name) != 0 || argc - 1 != verbs[i].operands)
			continue;
		if (verbs[i].run(c, opts, argv + 1, e) < 0)
			return argc == 2 ? err_wrap(e, "%s", argv[1]) : e->error;
		return 0;
	}
	return err_set(e, ERR_USAGE, -EINVAL, "usage: podrun image " USAGE);
}

const struct cli_command cli_image = {
	.name = "image",
	.usage = USAGE,
	.help = "what is in an image",
	.text = "IMAGE is a file, the name of a suspended session, NAME@N for its Nth snapshot, or "
		"- for stdin. *stacks* tells where every thread stands, *core* writes an ELF core "
		"file of each 64-bit process for gdb, *diff* tells what has changed from one image "
		"of a session to another: processes, mappings, pages of memory, descriptors, files "
		"of the session's own. They read images of any signer. "
		"With *--json*, *show* prints one object on each line: the image first, then its records "
		"in their order.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct image_options),
	.verbs = "ls show verify stacks core diff",
	.group = CLI_MORE,
	.operand = CLI_SESSION_OR_FILE,
	.min_operands = 1,
	.max_operands = 3,
	.run = run,
};

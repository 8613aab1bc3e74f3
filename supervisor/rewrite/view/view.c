// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of the view, and what texts of paths tell by it.  The theory of operation is in view.h.
 *
 * An alias is looked for in the few directories where systems keep links into /run, /tmp and /proc.
 * What such a link says is believed for the session's life: the host's is the same for as long.
 */
#include "supervisor/rewrite/view/view.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/numbers.h"
#include "supervisor/rewrite/view/program.h"
#include "supervisor/rewrite/view/target.h"
#include "supervisor/world/world_config.h"

/* ---- what is of the session's own ------------------------------------------------------------ */

static const struct {
	const char *path, *name; /* in the session, in its files */
	mode_t mode;
} own[] = {
	{"/tmp", "tmp", 01777},
	{"/run", "run", 0755},
	{"/dev/shm", "shm", 01777},
};

#define EMPTY "empty" /* what hidden directories show */
#define PROGRAMS "programs" /* view/program.h */
#define UPPER "upper" /* for the files beneath that an image takes along */

static int make_dir(const char *dir, const char *name, mode_t mode, struct err *e)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return err_errno(e, -ENOMEM, "view");
	/* What an image has brought keeps its mode. */
	if (mkdir(path, mode) == 0 ? chmod(path, mode) < 0 : errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", path);
	return 0;
}

/* Does the session have no link, which may lead anywhere, on the way to @path in its files? */
static bool stays_within(const char *files_dir, const char *path)
{
	_cleanup_close_ int dir = open(files_dir, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd >= 0 || errno == ENOENT;
}

/* What programs expect in a /run that nobody has booted into; as in supervisor/world/view.c. */
static int fill_run(const struct world_config *c, struct err *e)
{
	char user[32];
	int r = make_dir(c->files_dir, "run/lock", 01777, e);

	snprintf(user, sizeof(user), "run/user/%u", c->as_root ? 0 : c->uid);
	if (r == 0 && !stays_within(c->files_dir, user))
		return 0;
	if (r == 0)
		r = make_dir(c->files_dir, "run/user", 0755, e);
	return r < 0 ? r : make_dir(c->files_dir, user, 0700, e);
}

/* The resolver of the host's network, if its file is in the host's /run. */
static void copy_resolver(const struct world_config *c)
{
	_cleanup_free_ char *path = realpath("/etc/resolv.conf", NULL), *copy = NULL;
	_cleanup_buf_ struct buf data = BUF_INIT;
	char *slash;

	if (c->net != WORLD_NET_HOST || !path || strncmp(path, "/run/", 5) != 0 ||
		io_read_file(AT_FDCWD, path, 64 * 1024, &data) < 0 ||
		!stays_within(c->files_dir, path + 1) ||
		asprintf(&copy, "%s%s", c->files_dir, path) < 0)
		return;
	slash = strrchr(copy, '/');
	*slash = '\0';
	io_mkdir_p(AT_FDCWD, copy, 0755);
	*slash = '/';
	if (io_write_file(AT_FDCWD, copy, data.data, data.len, 0644) < 0)
		log_info("the host's %s is not there", path);
}

/* Something to be listed where a volume will be, if that is in a directory of the session's own. */
static int make_target(const struct world_config *c, const struct world_bind *b, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	const char *host = NULL, *rest = NULL;
	struct stat st;
	char *slash;
	int r;

	if (stat(b->source, &st) < 0)
		return err_errno(e, -errno, "--volume: %s", b->source);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		size_t len = strlen(own[i].path);

		if (strncmp(b->target, own[i].path, len) == 0 && b->target[len] == '/') {
			host = own[i].name;
			rest = b->target + len;
		}
	}
	if (!host && world_root(c))
		view_target_make(c->root, b->target, S_ISDIR(st.st_mode));
	if (!host)
		return 0;
	if (asprintf(&path, "%s/%s%s", c->files_dir, host, rest) < 0)
		return err_errno(e, -ENOMEM, "view");
	if (access(path, F_OK) == 0 || !stays_within(c->files_dir, path + strlen(c->files_dir) + 1))
		return 0;
	if (S_ISDIR(st.st_mode))
		return io_mkdir_p(AT_FDCWD, path, 0755);
	slash = strrchr(path, '/');
	*slash = '\0';
	r = io_mkdir_p(AT_FDCWD, path, 0755);
	*slash = '/';
	if (r == 0 || r == -EEXIST)
		r = io_write_file(AT_FDCWD, path, "", 0, 0644);
	return r < 0 ? err_errno(e, r, "cannot make %s in the session", b->target) : 0;
}

/* Directories that the root lacks are made, for they are to be listed; one that can't be is not. */
static void fill_root(int root)
{
	static const char *const names[] = {"dev", "proc", "run", "sys", "tmp"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (mkdirat(root, names[i], 0755) < 0 && errno != EEXIST)
			log_info("/%s is not listed: %s", names[i], strerror(errno));
}

static int check_root(const struct world_config *c, struct err *e)
{
	_cleanup_close_ int root = -1;

	if (!world_root(c))
		return 0;
	root = open(c->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0) {
		err_errno(e, -errno, "cannot open root directory %s", c->root);
		return err_reclass(e, ERR_HOST);
	}
	fill_root(root);
	return 0;
}

static int prepare(const struct world_config *c, struct err *e)
{
	int r = check_root(c, e);

	if (r == 0)
		r = make_dir(c->files_dir, EMPTY, 0555, e);
	if (r == 0)
		r = make_dir(c->files_dir, PROGRAMS, 0700, e);
	if (r == 0)
		r = make_dir(c->files_dir, UPPER, 0755, e);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(own); i++)
		r = make_dir(c->files_dir, own[i].name, own[i].mode, e);
	if (r == 0)
		r = fill_run(c, e);
	if (r < 0)
		return r;
	copy_resolver(c);
	for (size_t i = 0; i < c->n_binds; i++) {
		r = make_target(c, &c->binds[i], e);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	return 0;
}

int view_prepare(const struct world_config *c, struct err *e)
{
	mode_t mask = umask(0);
	int r = prepare(c, e);

	umask(mask);
	return r;
}

/* ---- the table ------------------------------------------------------------------------------ */

static void note_length(struct view *v, size_t len)
{
	v->lengths[len / 64 % ARRAY_SIZE(v->lengths)] |= UINT64_C(1) << len % 64;
}

static bool has_length(const struct view *v, size_t len)
{
	return v->lengths[len / 64 % ARRAY_SIZE(v->lengths)] >> len % 64 & 1;
}

static struct view_entry *find(const struct view *v, const char *path, size_t len)
{
	if (!has_length(v, len))
		return NULL;
	for (size_t i = 0; i < v->n; i++)
		if (v->entries[i].len == len && memcmp(v->entries[i].path, path, len) == 0)
			return (struct view_entry *)&v->entries[i];
	return NULL;
}

const struct view_entry *view_find(const struct view *v, const char *path, size_t len)
{
	return find(v, path, len);
}

/* A later one takes the place of an earlier. */
static int add(struct view *v, enum view_sort sort, const char *path, const char *host,
	struct view_entry **ret)
{
	size_t len = strlen(path);
	struct view_entry *one = find(v, path, len);

	if (!one && v->n == VIEW_MAX)
		return -E2BIG;
	if (!one) {
		one = &v->entries[v->n];
		one->path = strdup(path);
		if (!one->path)
			return -ENOMEM;
		v->n++;
		one->len = len;
		note_length(v, len);
	}
	free(one->host);
	one->sort = sort;
	one->fd = -1;
	one->host = host ? strdup(host) : NULL;
	if (ret)
		*ret = one;
	return host && !one->host ? -ENOMEM : 0;
}

static int add_own(struct view *v, const struct world_config *c)
{
	_cleanup_free_ char *files = realpath(c->files_dir, NULL);

	if (asprintf(&v->programs, "%s/" PROGRAMS, files ? files : c->files_dir) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		_cleanup_free_ char *host = NULL;
		struct view_entry *one;

		/* As /proc tells it. */
		if (asprintf(&host, "%s/%s", files ? files : c->files_dir, own[i].name) < 0 ||
			add(v, VIEW_MOUNT, own[i].path, host, &one) < 0)
			return -ENOMEM;
		one->own = true;
	}
	return 0;
}

static int hide(struct view *v, const char *what, const char *empty)
{
	_cleanup_free_ char *host = what ? realpath(what, NULL) : NULL;
	const struct view_entry *in;
	struct view_entry *one;
	char path[PATH_MAX];
	int r;

	if (!host || view_session_path(v, host, path) < 0)
		return 0;
	/* What a directory of the session's own covers is hidden by that. */
	in = view_mount_of(v, path);
	if (in && in->len)
		return 0;
	r = add(v, VIEW_MOUNT, path, empty, &one);
	if (r == 0)
		one->read_only = true;
	return r;
}

/*
 * podrun's own state: nothing of it is to be seen, wherever links lead there; nor are the host's
 * message queues (ipc/queues.c).
 */
static int add_hidden(struct view *v, const struct world_config *c)
{
	_cleanup_free_ char *empty = NULL;
	int r;

	if (asprintf(&empty, "%s/" EMPTY, c->files_dir) < 0)
		return -ENOMEM;
	r = hide(v, "/dev/mqueue", empty);
	for (size_t i = 0; r == 0 && i < c->n_hidden; i++)
		r = hide(v, c->hidden[i], empty);
	return r;
}

static int add_binds(struct view *v, const struct world_config *c)
{
	for (size_t i = 0; i < c->n_binds; i++) {
		const char *root = world_root(c);
		struct view_entry *one;
		char path[PATH_MAX];
		int r;

		if (root)
			view_target_settle(root, c->binds[i].target, path);
		else
			snprintf(path, sizeof(path), "%s", c->binds[i].target);
		for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
			path[len - 1] = '\0';
		r = add(v, VIEW_MOUNT, path, c->binds[i].source, &one);
		if (r < 0)
			return r;
		one->read_only = c->binds[i].read_only;
	}
	return 0;
}

static int add_alias(struct view *v, const char *dir, int fd, const char *name)
{
	_cleanup_free_ char *path = NULL, *whole = NULL, *text = io_readlink(fd, name);

	if (!text || asprintf(&path, "%s/%s", dir, name) < 0 ||
		asprintf(&whole, "%s/%s", text[0] == '/' ? "" : dir, text) < 0)
		return 0;
	if (!view_leads_in(v, whole) || find(v, path, strlen(path)))
		return 0;
	return add(v, VIEW_ALIAS, path, text, NULL);
}

static int add_aliases_of(struct view *v, const char *dir)
{
	_cleanup_closedir_ DIR *d = opendir(*dir ? dir : "/");
	const struct dirent *one;
	int r = 0;

	while (r == 0 && d && (one = readdir(d)))
		if (one->d_type == DT_LNK)
			r = add_alias(v, dir, dirfd(d), one->d_name);
	return r;
}

static int add_aliases(struct view *v)
{
	const char *home = getenv("HOME");
	const char *const dirs[] = {"/dev", "", "/var", "/etc", home ? home : ""};
	int r = 0;

	/* Links may lead to links; those of a root of the session's own are walked. */
	for (int round = 0; r == 0 && round < 2; round++)
		for (size_t i = 0; r == 0 && i < (v->rooted ? 1 : ARRAY_SIZE(dirs)); i++)
			r = add_aliases_of(v, dirs[i]);
	return r;
}

/* All is in @root, but for what has its entry. */
static int add_root(struct view *v, const char *root)
{
	int r = add(v, VIEW_MOUNT, "", root, NULL);

	v->rooted = true;
	if (r == 0)
		r = add(v, VIEW_HOST, "/dev", NULL, NULL);
	return r == 0 ? add(v, VIEW_HOST, "/sys", NULL, NULL) : r;
}

static int add_splits(struct view *v)
{
	int r = add(v, VIEW_SPLIT, "", NULL, NULL);

	return r < 0 ? r : add(v, VIEW_SPLIT, "/dev", NULL, NULL);
}

static int fill(struct view *v, const struct world_config *c)
{
	const char *root = world_root(c);
	int r;

	v->fence = v->programs_fd = v->short_fd = v->self_fds = -1;
	r = root ? add_root(v, root) : 0;
	if (r == 0)
		r = add_own(v, c);
	if (r == 0)
		r = add(v, VIEW_PROC, "/proc", NULL, NULL);
	if (r == 0)
		r = add_hidden(v, c);
	if (r == 0)
		r = add_binds(v, c);
	if (r == 0)
		r = add_aliases(v);
	return r < 0 || v->rooted ? r : add_splits(v);
}

int view_create(struct view **ret, const struct world_config *c, struct err *e)
{
	struct view *v = calloc(1, sizeof(*v));
	int r = v ? fill(v, c) : -ENOMEM;

	if (r < 0) {
		view_free(v);
		return err_errno(e, r, "cannot put the session's view together");
	}
	*ret = v;
	return 0;
}

int view_open(struct view *v, const struct tasks *tasks)
{
	v->tasks = tasks;
	v->cwds = calloc(NUMBERS_MAX, sizeof(*v->cwds));
	v->scratch = calloc(NUMBERS_MAX, sizeof(*v->scratch));
	if (!v->cwds || !v->scratch)
		return -ENOMEM;
	v->programs_fd = open(v->programs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	v->self_fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (v->programs_fd < 0 || v->self_fds < 0)
		return -errno;
	for (size_t i = 0; i < v->n; i++) {
		struct view_entry *one = &v->entries[i];
		struct stat st;

		if (one->sort != VIEW_MOUNT)
			continue;
		one->fd = open(one->host, O_PATH | O_CLOEXEC);
		if (one->fd < 0 || fstat(one->fd, &st) < 0)
			return -errno;
		one->dev = st.st_dev;
	}
	return 0;
}

/* What is new is written before it counts. */
static int append_terminal(struct view *v, const char *path, const char *host, int fd)
{
	struct view_entry *one = &v->entries[v->n];
	struct stat st;

	if (v->n == VIEW_MAX)
		return -ENOSPC;
	*one = (struct view_entry){.sort = VIEW_MOUNT,
		.path = strdup(path),
		.len = strlen(path),
		.host = calloc(1, VIEW_TERMINAL),
		.terminal = true,
		.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)};
	if (!one->path || !one->host || one->fd < 0 || fstat(one->fd, &st) < 0) {
		free(one->path);
		free(one->host);
		close_fd(one->fd);
		return -ENOMEM;
	}
	snprintf(one->host, VIEW_TERMINAL, "%s", host);
	one->dev = st.st_dev;
	__atomic_store_n(&v->n, v->n + 1, __ATOMIC_RELEASE);
	note_length(v, one->len);
	return 0;
}

int view_lead_terminal(struct view *v, const char *path, const char *host, int fd)
{
	struct view_entry *one = find(v, path, strlen(path));

	if (!one)
		return append_terminal(v, path, host, fd);
	if (!one->terminal || dup3(fd, one->fd, O_CLOEXEC) < 0)
		return -ENOSPC;
	snprintf(one->host, VIEW_TERMINAL, "%s", host);
	return 0;
}

/* Is the directory @fd called otherwise than @host? */
static bool has_moved(const struct view *v, int fd, const char *host, char ret[PATH_MAX])
{
	char name[12];
	ssize_t n;

	snprintf(name, sizeof(name), "%d", fd);
	n = readlinkat(v->self_fds, name, ret, PATH_MAX - 1);
	if (n <= 0)
		return false;
	ret[n] = '\0';
	return strcmp(ret, host) != 0;
}

int view_open_again(const struct view *v, int fd, int flags)
{
	char name[12];

	snprintf(name, sizeof(name), "%d", fd);
	fd = openat(v->self_fds, name, flags);
	return fd < 0 ? -errno : fd;
}

static void refresh(const struct view *v, int fd, char **host)
{
	char path[PATH_MAX], *copy;

	copy = has_moved(v, fd, *host, path) ? strdup(path) : NULL;
	if (copy) {
		free(*host);
		*host = copy;
	}
}

void view_refresh(struct view *v)
{
	char path[PATH_MAX];

	/* They all move together. */
	if (v->programs_fd < 0 || !has_moved(v, v->programs_fd, v->programs, path))
		return;
	refresh(v, v->programs_fd, &v->programs);
	for (size_t i = 0; i < v->n; i++) {
		struct view_entry *one = &v->entries[i];

		if (one->sort == VIEW_MOUNT && one->own && one->fd >= 0)
			refresh(v, one->fd, &one->host);
	}
}

void view_free(struct view *v)
{
	for (size_t i = 0; v && i < v->n; i++) {
		close_fd(v->entries[i].fd);
		free(v->entries[i].path);
		free(v->entries[i].host);
	}
	for (size_t i = 0; v && v->cwds && i < NUMBERS_MAX; i++) {
		free(v->cwds[i].path);
		free(v->cwds[i].next);
	}
	for (size_t i = 0; v && v->scratch && i < NUMBERS_MAX; i++) {
		free(v->scratch[i].saved);
		free(v->scratch[i].host);
		free(v->scratch[i].path);
	}
	if (v) {
		free(v->cwds);
		free(v->scratch);
		free(v->programs);
		close_fd(v->programs_fd);
		close_fd(v->self_fds);
		view_short_fini(v);
	}
	free(v);
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* Takes the last component away. */
static size_t parent_of(const char *path, size_t len)
{
	while (len > 0 && path[len - 1] != '/')
		len--;
	return len > 0 ? len - 1 : 0;
}

/*
 * Goes through the components of @path as its text has them.  Stops at the first entry that changes
 * what is below it, and returns it; *@ret_rest is what follows.  @done, of PATH_MAX, gets the
 * normal form so far.
 */
static const struct view_entry *first_entry(const struct view *v, const char *path, char *done,
	size_t *ret_len, const char **ret_rest)
{
	size_t len = 0;

	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");
		const struct view_entry *one;

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			len = parent_of(done, len);
		} else if (n > 1 || (n == 1 && p[0] != '.')) {
			if (len + 1 + n >= PATH_MAX)
				break;
			done[len] = '/';
			memcpy(done + len + 1, p, n);
			len += 1 + n;
			one = find(v, done, len);
			if (one && one->sort != VIEW_SPLIT && one->sort != VIEW_HOST) {
				*ret_len = len;
				*ret_rest = p + n;
				return one;
			}
		}
		p += n;
		p += *p == '/';
	}
	*ret_len = len;
	*ret_rest = "";
	return NULL;
}

/*
 * With a root of the session's own: does the text lead below a directory of the host's, and never
 * out of it nor to an entry?
 */
static bool stays_outside(const struct view *v, const char *path)
{
	const struct view_entry *top = NULL;
	char done[PATH_MAX];
	size_t len = 0;

	for (const char *p = path + strspn(path, "/"); *p; p += strspn(p, "/")) {
		size_t n = strcspn(p, "/");
		const struct view_entry *one;

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			len = parent_of(done, len);
			if (!top || len <= top->len)
				return false;
		} else if (n > 1 || p[0] != '.') {
			if (len + 1 + n >= PATH_MAX)
				return false;
			done[len] = '/';
			memcpy(done + len + 1, p, n);
			len += 1 + n;
			one = find(v, done, len);
			if (top ? one != NULL : !one || one->sort != VIEW_HOST)
				return false;
			top = top ? top : one;
		}
		p += n;
	}
	return top && len > top->len;
}

bool view_leads_in(const struct view *v, const char *path)
{
	char done[PATH_MAX];
	const char *rest;
	size_t len;

	if (v->rooted)
		return !stays_outside(v, path);
	return first_entry(v, path, done, &len, &rest) || find(v, done, len);
}

bool view_leads_in_from(const struct view *v, size_t base, const char *whole, unsigned *ret_how)
{
	char path[PATH_MAX];
	bool from;

	memcpy(path, whole, base);
	path[base] = '\0';
	/* There the kernel's directory is another than the text says. */
	from = v->rooted && view_mount_of(v, path);
	*ret_how = from ? VIEW_FROM_MOUNT : 0;
	return from || view_leads_in(v, whole);
}

const struct view_entry *view_mount_of(const struct view *v, const char *path)
{
	for (size_t len = strlen(path);; len = parent_of(path, len)) {
		const struct view_entry *one = find(v, path, len);

		if (one && (one->sort == VIEW_MOUNT || one->sort == VIEW_PROC))
			return one;
		if (!len || (one && one->sort == VIEW_HOST))
			return NULL;
	}
}

/* Without "." and ".." and superfluous slashes. */
static int normal(const char *path, char ret[PATH_MAX])
{
	size_t len = 0;

	for (const char *p = path + strspn(path, "/"); *p; p += strspn(p, "/")) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			len = parent_of(ret, len);
		} else if (n > 1 || p[0] != '.') {
			if (len + 1 + n >= PATH_MAX)
				return -ENAMETOOLONG;
			ret[len] = '/';
			memcpy(ret + len + 1, p, n);
			len += 1 + n;
		}
		p += n;
	}
	ret[len] = '\0';
	return (int)len;
}

/* Of a normal path in a mount, by the innermost. */
static int put_host(const struct view *v, const char *path, char ret[PATH_MAX])
{
	const struct view_entry *one = view_mount_of(v, path);

	if (one && one->sort == VIEW_MOUNT)
		return snprintf(ret, PATH_MAX, "%s%s", one->host, path + one->len);
	return snprintf(ret, PATH_MAX, "%s", path);
}

#define MAX_ALIASES 40 /* as the kernel's symlinks */

int view_host_path(const struct view *v, const char *path, char ret[PATH_MAX])
{
	char text[PATH_MAX], next[PATH_MAX], done[PATH_MAX];
	const struct view_entry *one;
	const char *rest;
	size_t len;
	int n = normal(path, text);

	for (int i = 0; i < MAX_ALIASES && n >= 0; i++) {
		one = first_entry(v, text, done, &len, &rest);
		if (one && one->sort == VIEW_PROC)
			n = snprintf(ret, PATH_MAX, "%s", text);
		else if (!one || one->sort != VIEW_ALIAS)
			n = put_host(v, *text || v->rooted ? text : "/", ret);
		else
			n = snprintf(next, sizeof(next), "%.*s/%s/%s",
				one->host[0] == '/' ? 0 : (int)parent_of(done, len), done, one->host,
				rest);
		if (n >= PATH_MAX)
			return -ENAMETOOLONG;
		if (!one || one->sort != VIEW_ALIAS)
			return 0;
		n = normal(next, text);
	}
	return n < 0 ? n : -ELOOP;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in find.h. */
#include "ckpt/kinds/find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "ckpt/survey/survey.h"
#include "ckpt/where.h"

#define MAX_ENTRIES 400000 /* looked at by the walk: about a second */
#define MAX_AHEAD   4000000 /* while the session runs: what is not found is refused */
/* A file system may take its time. */
#define MAX_NS	     (20 * 1000000000ULL)
#define MAX_AHEAD_NS (60 * 1000000000ULL)
#define ENTRIES	    32768  /* bytes of a directory read at once */
#define DEEP	    3	   /* below a directory of which something was found */
#define MAX_LINKS   8	   /* one behind the other */
#define AT_A_TIME   64	   /* directories that are read by several threads */
#define WORTH_IT    8	   /* and so many at least */

/*
 * Directories yet to be walked, in this order: where programs stand, or a lost file was; those
 * below one that was found, because who watches one often watches what is in it, first what is the
 * user's own, where programs make the directories that only they know; most others; and large trees
 * that programs read and don't watch.
 */
enum rank { HERE, OWN, NEAR, USUAL, SELDOM, RANKS };

static const char *const seldom[] = {"doc", "include", "info", "lib", "lib32", "lib64", "libexec",
	"locale", "man", "python3", "src", "zoneinfo", "node_modules", ".git"};

/* What a desktop's programs watch, and most of what is in these. */
static const char *const often[] = {"/usr/share/dbus-1/services", "/usr/share/applications",
	"/usr/share/fonts", "/usr/share/icons", "/usr/share/mime", "/usr/share/glib-2.0/schemas",
	"/usr/share/desktop-directories", "/usr/share/backgrounds", "/usr/share/thumbnailers",
	"/usr/share/xml/fontconfig", "/usr/local/share/fonts", "/usr/local/share/applications",
	"/etc/dbus-1/session.d", "/etc/fonts/conf.d", "/etc/xdg/autostart", "/etc/xdg/menus",
	"/var/cache/fontconfig"};

struct place {
	char *path;
	unsigned deep; /* so far below it to go on with those of its rank */
	enum rank rank;
};

struct queue {
	struct place *v;
	size_t head, tail, cap;
};

struct search {
	const struct ckpt_dump *d;
	struct find_inode *want;
	size_t n, left; /* left: not found yet */
	_Atomic long budget;
	uint64_t end; /* io_now_ns: when it is given up, too */
	struct par_crew *crew;
	uint8_t *inos; /* a bit for each hash of an inode that is wanted */
	uint8_t *names; /* and for each of a likely name that was looked at */
	struct queue queues[RANKS];
};

static int open_inside(const struct ckpt_dump *d, const char *path, int flags)
{
	return ckpt_where_open(d->world, path, flags);
}

static bool is_spent(const struct search *s)
{
	return s->budget <= 0 || io_now_ns() > s->end;
}

/* ---- what is watched ------------------------------------------------------------------------ */

/* A line is "inotify wd:1 ino:1a3 sdev:800013 mask:800afce ignored_mask:0 ...". */
int ckpt_find_watch(const char **at, struct find_watch *ret)
{
	const char *line = *at ? strstr(*at, "inotify wd:") : NULL;
	unsigned wd, dev, mask;
	unsigned long ino;

	if (!line)
		return 0;
	if (sscanf(line, "inotify wd:%x ino:%lx sdev:%x mask:%x", &wd, &ino, &dev, &mask) != 4)
		return -ENOTSUP;
	/* The kernel's inner encoding: 12 bits of major, 20 of minor. */
	*ret = (struct find_watch){.wd = (int)wd,
		.mask = mask,
		.inode = {.dev = makedev(dev >> 20, dev & 0xfffff), .ino = ino}};
	*at = line + 1;
	return 1;
}

/* ---- what is wanted ------------------------------------------------------------------------ */

#define HASH_BITS 16
#define HASHES	  ((1 << HASH_BITS) / 8) /* bytes of a bit for each */

static size_t hash(ino_t ino)
{
	return (size_t)(ino * 0x9e3779b97f4a7c15UL >> (64 - HASH_BITS));
}

static bool is_wanted(const struct search *s, ino_t ino)
{
	if (!(s->inos[hash(ino) / 8] & 1 << hash(ino) % 8))
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (!s->want[i].found && s->want[i].ino == ino)
			return true;
	return false;
}

static enum rank rank_of(const char *path)
{
	const char *name = strrchr(path, '/');

	for (size_t i = 0; name && i < ARRAY_SIZE(seldom); i++)
		if (!strcmp(name + 1, seldom[i]))
			return SELDOM;
	return USUAL;
}

static void enqueue(struct search *s, const char *path, enum rank rank, unsigned deep)
{
	struct queue *q = &s->queues[rank];
	struct place *at;

	if (q->tail == q->cap) {
		size_t cap = q->cap ? 2 * q->cap : 256;
		struct place *more = reallocarray(q->v, cap, sizeof(*more));

		if (!more)
			return;
		q->v = more;
		q->cap = cap;
	}
	at = &q->v[q->tail];
	*at = (struct place){.path = strdup(path), .deep = deep, .rank = rank};
	q->tail += at->path != NULL;
}

/*
 * @st is what @path is, in a directory of device @fs.  On an overlay a file tells the device of its
 * layer, while its directory (and the kernel, to whom asked) tells the overlay's.
 */
static void consider(struct search *s, const char *path, const struct stat *st, dev_t fs)
{
	bool found = false;

	for (size_t i = 0; i < s->n; i++) {
		struct find_inode *w = &s->want[i];

		if (w->found || w->ino != st->st_ino || (w->dev != st->st_dev && w->dev != fs))
			continue;
		w->path = strdup(path);
		w->found = w->path != NULL;
		s->left -= w->found;
		found = true;
	}
	if (found && S_ISDIR(st->st_mode))
		enqueue(s, path, st->st_uid == geteuid() ? OWN : NEAR, DEEP);
}

/* ---- likely names --------------------------------------------------------------------------- */

static void consider_name(struct search *s, char *path)
{
	_cleanup_close_ int fd = open_inside(s->d, path, O_PATH | O_NOFOLLOW);
	_cleanup_close_ int up = -1;
	char *slash = strrchr(path, '/'), keep = slash[1];
	struct stat st, dir;

	if (fd < 0 || fstat(fd, &st) < 0 || !is_wanted(s, st.st_ino))
		return;
	/* Mostly that is all; what is still wanted may be by the device of an overlay. */
	consider(s, path, &st, st.st_dev);
	if (!is_wanted(s, st.st_ino))
		return;
	slash[1] = '\0';
	up = open_inside(s->d, path, O_PATH | O_DIRECTORY);
	slash[1] = keep;
	consider(s, path, &st, up >= 0 && fstat(up, &dir) == 0 ? dir.st_dev : st.st_dev);
}

static void consider_found(struct search *s)
{
	const struct find_inode *v = (const struct find_inode *)s->d->found.data;

	for (size_t i = 0; s->left && i < s->d->found.len / sizeof(*v); i++)
		if (v[i].path && is_wanted(s, v[i].ino))
			consider_name(s, v[i].path);
}

/*
 * Has @path been looked at?  Many programs stand in one place, and all connections of a server have
 * its name.  One that is taken for another by its hash is found by a walk.
 */
static bool was_considered(struct search *s, const char *path)
{
	size_t h = 5381;
	bool was;

	for (const char *c = path; *c; c++)
		h = h * 33 + (unsigned char)*c;
	h = hash(h);
	was = s->names[h / 8] & 1 << h % 8;
	s->names[h / 8] |= (uint8_t)(1 << h % 8);
	return was;
}

/* @path and every directory on the way to it. */
static void consider_path(struct search *s, const char *path)
{
	char part[PATH_MAX], *slash;

	if (*path != '/' || snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return;
	/* And so was the way to one that has been. */
	while (s->left && !was_considered(s, part)) {
		consider_name(s, part);
		if (part[1] == '\0')
			return;
		slash = strrchr(part, '/');
		slash[slash == part] = '\0';
	}
}

/* What is in @path is looked at before there is a walk over everything; many stand in one place. */
static void enqueue_once(struct search *s, const char *path)
{
	const struct queue *q = &s->queues[HERE];

	for (size_t i = q->head; i < q->tail; i++)
		if (!strcmp(q->v[i].path, path))
			return;
	enqueue(s, path, HERE, 0);
}

/* Who has bound a socket often watches the directory it is in. */
static void consider_socket(struct search *s, const struct ckpt_file *f)
{
	struct sockaddr_un a = {0};
	socklen_t len = sizeof(a);
	char path[sizeof(a.sun_path) + 1] = "";

	if (s->d->world->paths || getsockname(f->fd, (struct sockaddr *)&a, &len) < 0 ||
		a.sun_family != AF_UNIX)
		return;
	memcpy(path, a.sun_path, sizeof(a.sun_path));
	consider_path(s, path);
}

/*
 * And who has loaded modules or fonts often watches the directory it has them from, to which a walk
 * through all libraries may not come.
 */
static void consider_mapped(struct search *s, const struct proc_maps *maps)
{
	const char *last = "";

	for (size_t i = 0; s->left && i < maps->n; i++) {
		const struct proc_vma *vma = &maps->vmas[i];
		_cleanup_free_ char *path = NULL;

		if (vma->path[0] != '/' || vma->deleted || !strcmp(vma->path, last))
			continue;
		last = vma->path;
		path = ckpt_where_say(s->d->world, strdup(vma->path));
		if (path)
			consider_path(s, path);
	}
}

/* While the session runs, and nothing is known of it yet. */
static void consider_mapped_ahead(struct search *s)
{
	int proc = s->d->world->proc_fd;
	_cleanup_free_ int *pids = NULL;
	size_t n = 0;

	if (proc_list_numbers(proc, ".", &pids, &n, NULL) < 0)
		return;
	for (size_t i = 0; s->left && i < n; i++) {
		struct proc_maps maps = {0};

		if (proc_read_maps(proc, pids[i], false, &maps, NULL) == 0)
			consider_mapped(s, &maps);
		proc_maps_fini(&maps);
	}
}

static void consider_known(struct search *s)
{
	static const char *const links[] = {"cwd", "root", "exe"};

	for (size_t i = 0; s->left && i < ARRAY_SIZE(often); i++)
		consider_path(s, often[i]);
	for (size_t i = 0; s->left && i < s->d->n_procs; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(links); k++) {
			char name[64];
			_cleanup_free_ char *path = NULL;

			snprintf(name, sizeof(name), "%d/%s", s->d->procs[i]->look, links[k]);
			path = ckpt_where_say(s->d->world, io_readlink(s->d->host_proc, name));
			if (path)
				consider_path(s, path);
			if (path && k == 0 && path[0] == '/')
				enqueue_once(s, path);
		}
	}
	for (size_t i = 0; s->left && i < s->d->n_files; i++)
		if (S_ISSOCK(s->d->files[i]->st.st_mode))
			consider_socket(s, s->d->files[i]);
	for (size_t i = 0; s->left && i < s->d->n_files; i++)
		consider_path(s, s->d->files[i]->link);
	for (size_t i = 0; s->left && i < s->d->n_procs; i++)
		consider_mapped(s, &s->d->procs[i]->maps);
	if (s->left && s->d->n_procs == 0)
		consider_mapped_ahead(s);
}

/* ---- walks ---------------------------------------------------------------------------------- */

/* A directory that is looked at, by any thread; what is in it is considered by one, later. */
struct look {
	struct search *s;
	struct place at;
	struct stat own;
	bool open;
	struct buf entries; /* names, each behind one of these and with its 0 */
};

enum { IS_DIR = 'd', WANTED_DIR = 'D', IS_LINK = 'l', MAY_BE_WANTED = '-' };

static void note_entry(struct look *l, const struct dirent64 *e)
{
	const bool wanted = is_wanted(l->s, e->d_ino);
	char what = MAY_BE_WANTED;

	if (e->d_type == DT_DIR)
		what = wanted ? WANTED_DIR : IS_DIR;
	else if (e->d_type == DT_LNK && l->at.deep && !wanted)
		what = IS_LINK;
	else if (!wanted)
		return;
	if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
		return;
	buf_put(&l->entries, &what, 1);
	buf_put(&l->entries, e->d_name, strlen(e->d_name) + 1);
}

/* There are a thousand small ones: what readdir(3) does besides takes as long as all of this. */
static int look_at(void *ctx, size_t i, struct err *err)
{
	struct look *l = (struct look *)ctx + i;
	_cleanup_close_ int fd =
		open_inside(l->s->d, l->at.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	char entries[ENTRIES] __attribute__((aligned(8)));
	ssize_t n;

	l->open = fd >= 0 && fstat(fd, &l->own) == 0;
	while (l->open && !is_spent(l->s) && (n = getdents64(fd, entries, sizeof(entries))) > 0) {
		const struct dirent64 *e;
		long count = 0;

		for (ssize_t k = 0; k < n; k += e->d_reclen, count++) {
			e = (const void *)(entries + k);
			note_entry(l, e);
		}
		l->s->budget -= count;
	}
	return 0;
}

/* Makes @path, of a link, what its text @to leads to; no directory on the way to it is a link. */
static bool resolve(char path[PATH_MAX], const char *to)
{
	size_t len = *to == '/' ? 0 : (size_t)(strrchr(path, '/') - path);

	while (*to) {
		size_t n = strcspn(to, "/");

		if (n == 2 && !strncmp(to, "..", 2)) {
			while (len && path[--len] != '/')
				;
		} else if (n && !(n == 1 && *to == '.')) {
			if (len + 1 + n >= PATH_MAX)
				return false;
			path[len++] = '/';
			memcpy(path + len, to, n);
			len += n;
		}
		to += n;
		to += strspn(to, "/");
	}
	path[len] = '\0';
	return len > 0;
}

/* Who watches a directory and what is below it, as users of fonts do, is led out of it by links. */
static void follow(struct search *s, const struct place *at, char path[PATH_MAX])
{
	for (int i = 0; i < MAX_LINKS; i++) {
		_cleanup_close_ int fd = open_inside(s->d, path, O_PATH | O_NOFOLLOW);
		char to[PATH_MAX];
		struct stat st;
		ssize_t n;

		if (fd < 0 || fstat(fd, &st) < 0)
			return;
		if (S_ISDIR(st.st_mode)) {
			if (was_considered(s, path))
				return;
			consider_name(s, path);
			enqueue(s, path, at->rank, at->deep - 1);
			return;
		}
		n = S_ISLNK(st.st_mode) ? readlinkat(fd, "", to, sizeof(to) - 1) : -1;
		if (n < 0)
			return;
		to[n] = '\0';
		if (!resolve(path, to))
			return;
	}
}

/* @e is an entry of what @l is about. */
static void take_entry(struct search *s, const struct look *l, const char *e)
{
	const struct place *at = &l->at;
	_cleanup_close_ int fd = -1;
	char name[PATH_MAX];
	struct stat st;

	if (snprintf(name, sizeof(name), "%s/%s", at->path[1] ? at->path : "", e + 1) >=
		(int)sizeof(name))
		return;
	if (*e == IS_LINK) {
		follow(s, at, name);
		return;
	}
	/* Of a directory, too: its turn may come when the budget is spent. */
	if (*e != IS_DIR) {
		fd = open_inside(s->d, name, O_PATH | O_NOFOLLOW);
		if (fd >= 0 && fstat(fd, &st) == 0)
			consider(s, name, &st, l->own.st_dev);
	}
	if (*e == MAY_BE_WANTED)
		return;
	if (at->deep)
		enqueue(s, name, at->rank, at->deep - 1);
	else
		enqueue(s, name, rank_of(name), 0);
}

static void take_look(struct search *s, const struct look *l)
{
	const char *e = (const char *)l->entries.data, *end = e + l->entries.len;

	if (!l->open || buf_error(&l->entries) < 0)
		return;
	/* The root of a mount has another number than the entry which led to it. */
	if (is_wanted(s, l->own.st_ino))
		consider(s, l->at.path, &l->own, l->own.st_dev);
	for (; s->left && e < end; e += strlen(e) + 1)
		take_entry(s, l, e);
}

static bool is_kernels(const char *path)
{
	return !strcmp(path, "/proc") || !strcmp(path, "/sys");
}

/* Up to @most of a queue, and all of one rank. */
static size_t take_places(struct search *s, struct queue *q, size_t most, struct look *ret)
{
	size_t n = 0;

	while (q->head < q->tail && n < most)
		ret[n++] = (struct look){.s = s, .at = q->v[q->head++]};
	return n;
}

/* @n of @v, most of which are small: several threads read, and this one looks what it was. */
static void walk_some(struct search *s, struct look *v, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (s->left && !is_spent(s) && !is_kernels(v[i].at.path))
			v[k++] = v[i];
		else
			free(v[i].at.path);
	if (k >= WORTH_IT && !s->crew) {
		s->crew = par_crew_new();
		par_crew_start(s->crew);
	}
	par_crew_each(k >= WORTH_IT ? s->crew : NULL, k, look_at, v, NULL);
	for (size_t i = 0; i < k; i++) {
		take_look(s, &v[i]);
		buf_fini(&v[i].entries);
		free(v[i].at.path);
	}
}

/* Breadth first from what is in the queues. */
static void walk(struct search *s)
{
	struct look v[AT_A_TIME];

	for (size_t rank = 0; rank < RANKS;) {
		size_t n = take_places(s, &s->queues[rank], AT_A_TIME, v);

		walk_some(s, v, n);
		/* what was found there may be of a rank before */
		rank = n ? 0 : rank + 1;
	}
}

/* The places where a file system is mounted on which something is wanted. */
static void walk_mounts(struct search *s, const char *text, const char *how)
{
	char point[PATH_MAX], options[8];
	unsigned maj, min;

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%*d %*d %u:%u %*s %4095s %2s", &maj, &min, point, options) != 4 ||
			strcmp(options, how) != 0)
			continue;
		for (size_t i = 0; i < s->n; i++) {
			if (s->want[i].found || s->want[i].dev != makedev(maj, min))
				continue;
			enqueue(s, point, rank_of(point), 0);
			break;
		}
	}
	walk(s);
}

/* What is watched can most often be written. */
static void walk_all(struct search *s)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char name[64];

	snprintf(name, sizeof(name), "%d/mountinfo", s->d->world->init_pid);
	if (io_read_file(s->d->host_proc, name, 1 << 20, &text) == 0 && buf_cstr(&text)) {
		walk_mounts(s, buf_cstr(&text), "rw");
		walk_mounts(s, buf_cstr(&text), "ro");
	}
	enqueue(s, "/", USUAL, 0);
	walk(s);
}

static void begin(struct search *s)
{
	for (size_t i = 0; i < s->n; i++) {
		s->left += !s->want[i].found;
		s->inos[hash(s->want[i].ino) / 8] |= (uint8_t)(1 << hash(s->want[i].ino) % 8);
	}
}

/* In those directories, and not yet beneath them. */
static void walk_here(struct search *s)
{
	struct queue *q = &s->queues[HERE];
	struct look v[AT_A_TIME];

	for (size_t end = q->tail; q->head < end;) {
		size_t n = take_places(s, q, MIN(end - q->head, (size_t)AT_A_TIME), v);

		walk_some(s, v, n);
	}
}

static void go_everywhere(struct search *s)
{
	consider_found(s);
	consider_known(s);
	walk_here(s);
	if (s->left)
		walk_all(s);
}

static void end(struct search *s)
{
	for (size_t i = 0; i < RANKS; i++) {
		while (s->queues[i].head < s->queues[i].tail)
			free(s->queues[i].v[s->queues[i].head++].path);
		free(s->queues[i].v);
	}
	par_crew_free(s->crew);
}

size_t ckpt_find_inodes(const struct ckpt_dump *d, struct find_inode *want, size_t n)
{
	uint8_t inos[HASHES] = {0}, names[HASHES] = {0};
	struct search s = {.d = d,
		.want = want,
		.n = n,
		.budget = d->n_procs ? MAX_ENTRIES : MAX_AHEAD,
		.end = io_now_ns() + (d->n_procs ? MAX_NS : MAX_AHEAD_NS),
		.inos = inos,
		.names = names};

	begin(&s);
	go_everywhere(&s);
	end(&s);
	return s.left;
}

/* ---- a name that is gone --------------------------------------------------------------------- */

char *ckpt_find_beside(const struct ckpt_dump *d, const char *path, dev_t dev, ino_t ino)
{
	_cleanup_free_ char *parent = strdup(path);
	char *slash = parent ? strrchr(parent, '/') : NULL, *found = NULL;
	_cleanup_closedir_ DIR *dir = NULL;
	struct stat own;
	int fd;

	if (!slash)
		return NULL;
	*slash = '\0';
	fd = open_inside(d, *parent ? parent : "/", O_RDONLY | O_DIRECTORY);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir || fstat(fd, &own) < 0) {
		if (!dir)
			close_fd(fd);
		return NULL;
	}
	for (struct dirent *entry; !found && (entry = readdir(dir));) {
		struct stat st;

		if (entry->d_type == DT_DIR || entry->d_type == DT_LNK ||
			fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		/* As above: an overlay and its layers. */
		if (st.st_ino == ino && (st.st_dev == dev || own.st_dev == dev) &&
			asprintf(&found, "%s/%s", parent, entry->d_name) < 0)
			found = NULL;
	}
	return found;
}

static bool leads_to(const struct ckpt_dump *d, const char *path, const struct stat *want)
{
	_cleanup_close_ int fd = open_inside(d, path, O_PATH | O_NOFOLLOW);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == want->st_dev &&
	       st.st_ino == want->st_ino;
}

/* Whether another name of @f is of use, as it has lost that by which it was opened. */
static bool is_lost(const struct ckpt_dump *d, const struct ckpt_file *f)
{
	return (f->kind->number == PROTO_KIND_REGULAR || f->kind->number == PROTO_KIND_FIFO) &&
	       (S_ISREG(f->st.st_mode) || S_ISFIFO(f->st.st_mode)) && f->st.st_nlink > 0 &&
	       f->link[0] == '/' && !leads_to(d, f->link, &f->st);
}

static void enqueue_parent(struct search *s, const struct ckpt_file *f)
{
	const struct queue *q = &s->queues[HERE];
	const char *slash = strrchr(f->link, '/');
	_cleanup_free_ char *dir = strndup(f->link, (size_t)MAX(slash - f->link, (ptrdiff_t)1));

	if (dir && !(q->tail && !strcmp(q->v[q->tail - 1].path, dir)))
		enqueue(s, dir, HERE, 0);
}

/* Of all files that have lost theirs at once: to walk takes long. */
static void find_lost(struct ckpt_dump *d)
{
	uint8_t inos[HASHES] = {0}, names[HASHES] = {0};
	struct search s = {.d = d,
		.budget = MAX_ENTRIES,
		.end = io_now_ns() + MAX_NS,
		.inos = inos,
		.names = names};
	_cleanup_buf_ struct buf lost = BUF_INIT;

	for (size_t i = 0; i < d->n_files; i++) {
		const struct ckpt_file *f = d->files[i];
		struct find_inode want = {.dev = f->st.st_dev, .ino = f->st.st_ino};

		if (!is_lost(d, f))
			continue;
		buf_put(&lost, &want, sizeof(want));
		enqueue_parent(&s, f);
	}
	s.want = (struct find_inode *)lost.data;
	s.n = buf_error(&lost) < 0 ? 0 : lost.len / sizeof(*s.want);
	begin(&s);
	walk_here(&s);
	if (s.left)
		go_everywhere(&s);
	end(&s);
	/* Their paths go with it. */
	if (s.n)
		buf_put(&d->found, lost.data, lost.len);
}

char *ckpt_find_name(struct ckpt_dump *d, const struct ckpt_file *f)
{
	const struct find_inode *v;

	if (leads_to(d, f->link, &f->st))
		return strdup(f->link);
	if (!is_lost(d, f))
		return NULL;
	if (!d->found_lost)
		find_lost(d);
	d->found_lost = true;
	v = (const struct find_inode *)d->found.data;
	for (size_t i = 0; i < d->found.len / sizeof(*v); i++)
		if (v[i].path && v[i].ino == f->st.st_ino && leads_to(d, v[i].path, &f->st))
			return strdup(v[i].path);
	return NULL;
}

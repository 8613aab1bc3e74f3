// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each file is read whole and parsed in place: one pass, no sscanf, because smaps of a desktop
 * program has tens of thousands of lines and is read while the session stands still.
 */
#include "base/proc.h"
#include "base/sort.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"

/* No file of ours is near this; it keeps a hostile proc mount from filling memory. */
#define PROC_MAX_FILE (256u << 20)

static int read_text(int proc_fd, const char *path, struct buf *b, struct err *e)
{
	int r = io_read_file(proc_fd, path, PROC_MAX_FILE, b);

	if (r < 0)
		return err_errno(e, r, "read /proc/%s", path);
	buf_put_u8(b, 0);
	return buf_error(b) < 0 ? err_errno(e, -ENOMEM, "read /proc/%s", path) : 0;
}

/* What most files of a process are shorter than, by far. */
#define SHORT_FILE 4096

/*
 * A file that the kernel writes at one go (stat, status), into @room; @fd stands at its beginning.
 * It is all there if room is left.  Positive: how long it is, 0: it does not fit.
 */
static ssize_t read_short(int fd, char room[SHORT_FILE])
{
	ssize_t n;

	do
		n = pread(fd, room, SHORT_FILE - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ESRCH;
	room[n] = '\0';
	return n == SHORT_FILE - 1 ? 0 : n;
}

/* ---- numbers in place --------------------------------------------------------------------- */

static uint64_t take_hex(const char **p)
{
	uint64_t v = 0;

	for (;; (*p)++) {
		char c = **p;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return v;
	}
}

static uint64_t take_dec(const char **p)
{
	uint64_t v = 0;

	while (**p >= '0' && **p <= '9')
		v = v * 10 + (uint64_t)(*(*p)++ - '0');
	return v;
}

static const char *skip_blank(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* ---- stat --------------------------------------------------------------------------------- */

/* Field numbers of proc(5) that are taken as they are. */
static const struct {
	uint8_t field, size;
	uint16_t offset;
} stat_fields[] = {
#define F(n, member)                                                                               \
	{n, sizeof(((struct proc_status *)0)->member), offsetof(struct proc_status, member)}
	F(4, ppid), F(5, pgid), F(6, sid), F(7, tty_nr), F(8, tty_pgrp), F(9, flags), F(19, nice),
	F(22, start_time), F(26, start_code), F(27, end_code), F(28, start_stack),
	F(38, exit_signal), F(45, start_data), F(46, end_data), F(47, start_brk), F(48, arg_start),
	F(49, arg_end), F(50, env_start), F(51, env_end), F(52, exit_code),
#undef F
};

static void put_field(struct proc_status *s, size_t i, const char *text)
{
	char *to = (char *)s + stat_fields[i].offset;
	int64_t v = (int64_t)(*text == '-' ? -strtoull(text + 1, NULL, 10)
					   : strtoull(text, NULL, 10));

	if (stat_fields[i].size == sizeof(int32_t)) {
		int32_t narrow = (int32_t)v;

		memcpy(to, &narrow, sizeof(narrow));
	} else {
		memcpy(to, &v, sizeof(v));
	}
}

static int parse_stat(char *text, struct proc_status *s)
{
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	char *save = NULL;
	size_t i = 0, n;

	if (!open || !close || close < open)
		return -EBADMSG;
	n = MIN((size_t)(close - open - 1), sizeof(s->comm) - 1);
	memcpy(s->comm, open + 1, n);
	s->comm[n] = '\0';

	for (char *f = strtok_r(close + 1, " \n", &save), field = 3; f;
		f = strtok_r(NULL, " \n", &save), field++) {
		if (field == 3)
			s->state = *f;
		if (i < ARRAY_SIZE(stat_fields) && field == stat_fields[i].field)
			put_field(s, i++, f);
	}
	return i == ARRAY_SIZE(stat_fields) ? 0 : -EBADMSG;
}

/* ---- status ------------------------------------------------------------------------------- */

enum form { DEC, OCT, KB, HEX64, IDS, LEVELS, YES };

static const struct {
	const char *key; /* with its colon */
	enum form form;
	uint16_t offset;
	uint16_t offset2; /* of LEVELS: where the innermost goes as well, else 0 */
} status_lines[] = {
#define L(key, form, member) {key ":", form, offsetof(struct proc_status, member)}
	L("Umask", OCT, umask),		   L("Tgid", DEC, tgid),
	L("Pid", DEC, pid),		   L("TracerPid", DEC, tracer),
	L("Uid", IDS, uid),
	L("Gid", IDS, gid),		   L("NStgid", LEVELS, ns_tgid),
	L("NSpid", LEVELS, ns_pid),	   L("NSpgid", LEVELS, ns_pgid),
	L("NSsid", LEVELS, ns_sid),	   L("VmLck", KB, vm_locked_kb),
	L("VmRSS", KB, vm_rss_kb),	   L("RssAnon", KB, rss_anon_kb),
	L("RssShmem", KB, rss_shmem_kb),   L("Threads", DEC, threads),	   L("SigPnd", HEX64, sig_pending),
	L("ShdPnd", HEX64, shared_pending), L("SigBlk", HEX64, sig_blocked),
	L("SigIgn", HEX64, sig_ignored),   L("SigCgt", HEX64, sig_caught),
	L("CapInh", HEX64, cap_inh),	   L("CapPrm", HEX64, cap_prm),
	L("CapEff", HEX64, cap_eff),	   L("CapBnd", HEX64, cap_bnd),
	L("CapAmb", HEX64, cap_amb),	   L("NoNewPrivs", YES, no_new_privs),
	L("Seccomp", DEC, seccomp),	   L("Seccomp_filters", DEC, seccomp_filters),
	L("voluntary_ctxt_switches", KB, switches),
	L("nonvoluntary_ctxt_switches", KB, forced_switches),
#undef L
};
static_assert(sizeof(pid_t) == 4 && sizeof(uid_t) == 4, "ids are stored as 32 bits");

static size_t take_list(const char *p, uint32_t *to, size_t max)
{
	size_t n = 0;

	for (p = skip_blank(p); n < max && *p >= '0' && *p <= '9'; p = skip_blank(p))
		to[n++] = (uint32_t)take_dec(&p);
	return n;
}

static void put_line(struct proc_status *s, size_t i, const char *p)
{
	char *to = (char *)s + status_lines[i].offset;
	size_t n;

	p = skip_blank(p);
	switch (status_lines[i].form) {
	case DEC:
		*(int32_t *)to = (int32_t)take_dec(&p);
		break;
	case KB:
		*(uint64_t *)to = take_dec(&p);
		break;
	case OCT:
		*(uint32_t *)to = (uint32_t)strtoul(p, NULL, 8);
		break;
	case HEX64:
		*(uint64_t *)to = take_hex(&p);
		break;
	case IDS:
		take_list(p, (uint32_t *)to, 4);
		break;
	case LEVELS:
		n = take_list(p, (uint32_t *)to, PROC_MAX_NS_DEPTH);
		s->ns_depth = MAX(s->ns_depth, n);
		break;
	case YES:
		*(bool *)to = *p == '1';
		break;
	}
}

static void parse_status(const char *p, struct proc_status *s)
{
	size_t i = 0;

	/* The kernel prints the lines in the table's order; some may be missing. */
	for (; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
		for (size_t k = i; k < ARRAY_SIZE(status_lines); k++) {
			size_t len = strlen(status_lines[k].key);

			if (!strncmp(p, status_lines[k].key, len)) {
				put_line(s, k, p + len);
				i = k + 1;
				break;
			}
		}
	}
}

/* What does not fit into @room goes into @more. */
static int read_one(int fd, const char *dir, const char *name, char room[SHORT_FILE],
	struct buf *more, char **ret, struct err *e)
{
	ssize_t n = fd < 0 ? fd : read_short(fd, room);
	char path[64];

	*ret = room;
	if (n > 0)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (n == 0)
		n = lseek(fd, 0, SEEK_SET) < 0 ? -errno : io_read_fd(fd, PROC_MAX_FILE, more);
	*ret = n < 0 ? NULL : buf_cstr(more);
	if (!*ret)
		return err_errno(e, n < 0 ? (int)n : -ENOMEM, "read /proc/%s", path);
	return 0;
}

static int read_both(int stat, int status, const char *dir, struct proc_status *ret, struct err *e)
{
	_cleanup_buf_ struct buf more = BUF_INIT, most = BUF_INIT;
	struct proc_status s = {0};
	char room[SHORT_FILE], *text;
	int r = read_one(stat, dir, "stat", room, &more, &text, e);

	if (r < 0)
		return r;
	r = parse_stat(text, &s);
	if (r < 0)
		return err_set(e, ERR_FAILED, r, "/proc/%s/stat reads strangely", dir);
	r = read_one(status, dir, "status", room, &most, &text, e);
	if (r < 0)
		return r;
	parse_status(text, &s);
	*ret = s;
	return 0;
}

static int open_in(int proc_fd, const char *dir, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int read_status(int proc_fd, const char *dir, struct proc_status *ret, struct err *e)
{
	int stat = open_in(proc_fd, dir, "stat");
	int status = stat < 0 ? stat : open_in(proc_fd, dir, "status");
	int r = read_both(stat, status, dir, ret, e);

	close_fd(status);
	close_fd(stat);
	return r;
}

int proc_read_status_of(int stat_fd, int status_fd, struct proc_status *ret, struct err *e)
{
	return read_both(stat_fd, status_fd, "PID", ret, e);
}

int proc_read_status(int proc_fd, pid_t pid, struct proc_status *ret, struct err *e)
{
	char dir[32];

	snprintf(dir, sizeof(dir), "%d", pid);
	return read_status(proc_fd, dir, ret, e);
}

int proc_read_task_status(int proc_fd, pid_t pid, pid_t tid, struct proc_status *ret,
	struct err *e)
{
	char dir[48];

	snprintf(dir, sizeof(dir), "%d/task/%d", pid, tid);
	return read_status(proc_fd, dir, ret, e);
}

int proc_count_threads(int task_fd)
{
	struct stat st;

	if (fstat(task_fd, &st) < 0)
		return -errno;
	return st.st_nlink > 2 ? (int)st.st_nlink - 2 : -ESRCH;
}

size_t proc_level(int proc_fd, pid_t pid)
{
	struct proc_status s;

	if (pid <= 0 || proc_read_status(proc_fd, pid, &s, NULL) < 0 || !s.ns_depth)
		return PROC_INNERMOST;
	return s.ns_depth - 1;
}

pid_t proc_at_level(const pid_t *numbers, const struct proc_status *s, size_t level)
{
	if (!s->ns_depth || (level != PROC_INNERMOST && level >= s->ns_depth))
		return 0;
	return numbers[MIN(level, s->ns_depth - 1)];
}

/* ---- maps, smaps -------------------------------------------------------------------------- */

/* The name field up to the end of its line: the kernel writes a newline in it as \012. */
static int take_path(const char *p, const char *end, struct proc_vma *v)
{
	static const char deleted[] = " (deleted)";
	size_t len = (size_t)(end - p), n = 0;

	/* the first System V segment has inode 0, on a device */
	if ((v->ino || v->dev_major || v->dev_minor) && len > strlen(deleted) &&
		!memcmp(end - strlen(deleted), deleted, strlen(deleted))) {
		v->deleted = true;
		len -= strlen(deleted);
	}
	v->path = malloc(len + 1);
	if (!v->path)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		if (len - i >= 4 && !memcmp(p + i, "\\012", 4)) {
			v->path[n++] = '\n';
			i += 3;
		} else {
			v->path[n++] = p[i];
		}
	}
	v->path[n] = '\0';
	return 0;
}

/* "start-end rwxp offset major:minor inode    path" */
static int parse_header(const char *p, const char *end, struct proc_vma *v)
{
	v->start = take_hex(&p);
	if (*p++ != '-')
		return -EBADMSG;
	v->end = take_hex(&p);
	if (*p++ != ' ' || end - p < 5)
		return -EBADMSG;
	v->prot = (uint32_t)((p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
		(p[2] == 'x' ? PROT_EXEC : 0));
	v->shared = p[3] == 's';
	p += 5;
	v->offset = take_hex(&p);
	p = skip_blank(p);
	v->dev_major = (uint32_t)take_hex(&p);
	if (*p++ != ':')
		return -EBADMSG;
	v->dev_minor = (uint32_t)take_hex(&p);
	p = skip_blank(p);
	v->ino = take_dec(&p);
	p = skip_blank(p);
	return take_path(p, end, v);
}

static bool has_prefix(const char *p, const char *prefix)
{
	return !strncmp(p, prefix, strlen(prefix));
}

/* A line below a header: of some twenty, six matter. */
static void parse_detail(const char *p, const char *end, struct proc_vma *v)
{
	uint64_t *to = NULL;

	if (has_prefix(p, "VmFlags:")) {
		size_t n;

		p = skip_blank(p + strlen("VmFlags:"));
		while (end > p && end[-1] == ' ')
			end--;
		n = MIN((size_t)(end - p), sizeof(v->vm_flags) - 1);
		memcpy(v->vm_flags, p, n);
		v->vm_flags[n] = '\0';
		return;
	}
	if (has_prefix(p, "Rss:"))
		to = &v->rss_kb;
	else if (has_prefix(p, "Anonymous:"))
		to = &v->anonymous_kb;
	else if (has_prefix(p, "Swap:"))
		to = &v->swap_kb;
	else if (has_prefix(p, "KernelPageSize:"))
		to = &v->page_kb;
	else if (has_prefix(p, "ProtectionKey:"))
		to = &v->key;
	if (to) {
		p = skip_blank(strchr(p, ':') + 1);
		*to = take_dec(&p);
	}
}

static bool is_header(const char *p)
{
	return (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f');
}

static size_t count_headers(const char *p)
{
	size_t n = 0;

	for (const char *end; (end = strchr(p, '\n')); p = end + 1)
		n += is_header(p);
	return n;
}

/* Room for all at once: grown step by step they would be copied as often, into new memory. */
static int parse_maps(const char *p, struct proc_maps *m)
{
	struct proc_vma *v = NULL;
	size_t n = count_headers(p);
	const char *end;

	m->vmas = calloc(n + 1, sizeof(*m->vmas));
	if (!m->vmas)
		return -ENOMEM;
	for (; (end = strchr(p, '\n')); p = end + 1) {
		if (is_header(p)) {
			int r;

			v = &m->vmas[m->n++];
			r = parse_header(p, end, v);
			if (r < 0)
				return r;
		} else if (v) {
			parse_detail(p, end, v);
		}
	}
	return 0;
}

int proc_read_maps(int proc_fd, pid_t pid, bool detail, struct proc_maps *ret, struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct proc_maps m = {0};
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%d/%s", pid, detail ? "smaps" : "maps");
	/* Room at once, or the buffer is copied a dozen times on its way to a megabyte. */
	if (!buf_reserve(&b, detail ? 256u << 10 : 32u << 10))
		return err_errno(e, -ENOMEM, "read /proc/%s", path);
	r = read_text(proc_fd, path, &b, e);
	if (r < 0)
		return r;
	r = parse_maps((char *)b.data, &m);
	if (r < 0) {
		proc_maps_fini(&m);
		return err_errno(e, r, "parse /proc/%s", path);
	}
	*ret = m;
	return 0;
}

void proc_maps_fini(struct proc_maps *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->vmas[i].path);
	free(m->vmas);
	*m = (struct proc_maps){0};
}

bool proc_vma_has(const struct proc_vma *vma, const char *code)
{
	for (const char *p = vma->vm_flags; *p; p++) {
		if (p[0] == code[0] && p[1] == code[1])
			return true;
		p = strchr(p, ' ');
		if (!p)
			return false;
	}
	return false;
}

/* ---- lists -------------------------------------------------------------------------------- */

static int compare_int(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

struct numbers {
	int *v;
	size_t n, cap;
};

static int numbers_add(struct numbers *l, int value)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 32;
		int *p = realloc(l->v, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		l->v = p;
		l->cap = cap;
	}
	l->v[l->n++] = value;
	return 0;
}

struct entry { /* getdents64(2) */
	uint64_t ino;
	int64_t next;
	uint16_t len;
	uint8_t type;
	char name[];
};

static int list_numbers(int fd, struct numbers *l)
{
	_Alignas(struct entry) char room[8192];
	long n;

	while ((n = syscall(SYS_getdents64, fd, room, sizeof(room))) > 0) {
		const struct entry *d;

		for (long at = 0; at < n; at += d->len) {
			d = (const struct entry *)(room + at);
			if (d->name[0] >= '0' && d->name[0] <= '9' &&
				numbers_add(l, atoi(d->name)) < 0)
				return -ENOMEM;
		}
	}
	return n < 0 ? -errno : 0;
}

int proc_list_numbers_of(int fd, int **ret, size_t *ret_n)
{
	struct numbers l = {0};
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : list_numbers(fd, &l);

	if (r < 0) {
		free(l.v);
		return r;
	}
	sort_array(l.v, l.n, sizeof(*l.v), compare_int);
	*ret = l.v;
	*ret_n = l.n;
	return 0;
}

int64_t proc_own_memory(int proc_fd, pid_t pid)
{
	_cleanup_close_ int fd = proc_open_file(proc_fd, pid, "statm", O_RDONLY, NULL);
	unsigned long all, resident, shared;
	char text[128];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	if (sscanf(text, "%lu %lu %lu", &all, &resident, &shared) != 3)
		return -EPROTO;
	return resident > shared ? (int64_t)((resident - shared) * PAGE_SIZE) : 0;
}

int proc_list_numbers(int dirfd, const char *path, int **ret, size_t *ret_n, struct err *e)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_errno(e, -errno, "open /proc/%s", path);
	r = proc_list_numbers_of(fd, ret, ret_n);
	return r < 0 ? err_errno(e, r, "list /proc/%s", path) : 0;
}

int proc_read_children(int proc_fd, pid_t pid, pid_t tid, pid_t **ret, size_t *ret_n,
	struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct numbers l = {0};
	char path[64];
	const char *p;
	int r;

	snprintf(path, sizeof(path), "%d/task/%d/children", pid, tid);
	r = read_text(proc_fd, path, &b, e);
	if (r < 0)
		return r;
	for (p = skip_blank((char *)b.data); *p >= '0' && *p <= '9'; p = skip_blank(p)) {
		if (numbers_add(&l, (int)take_dec(&p)) < 0) {
			free(l.v);
			return err_errno(e, -ENOMEM, "read /proc/%s", path);
		}
	}
	*ret = l.v;
	*ret_n = l.n;
	return 0;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* proc_pid_stat(5): arg_start and arg_end are fields 48 and 49. */
static bool find_arguments(char **ret_start, char **ret_end)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned long start, end;
	char *p;

	if (io_read_file(AT_FDCWD, "/proc/self/stat", 4096, &text) < 0 || !buf_cstr(&text))
		return false;
	p = strrchr(buf_cstr(&text), ')'); /* field 2 may hold anything */
	for (int field = 2; p && field < 48; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, "%lu %lu", &start, &end) != 2 || end <= start)
		return false;
	*ret_start = (char *)start;
	*ret_end = (char *)end;
	return true;
}

void proc_set_title(const char *title)
{
	char *start, *end;
	size_t n = strlen(title);

	if (!find_arguments(&start, &end))
		return;
	n = MIN(n, (size_t)(end - start) - 1);
	memset(start, 0, (size_t)(end - start));
	memcpy(start, title, n);
	/* An end that is no NUL says setproctitle(3) to the kernel: the first string is all. */
	if (start + n < end - 1)
		end[-1] = ' ';
}

#if defined(__SANITIZE_ADDRESS__)
#define LIMITED false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LIMITED false
#endif
#endif
#ifndef LIMITED
#define LIMITED true
#endif

void proc_limit_memory(uint64_t bytes)
{
	struct rlimit memory;

	if (!LIMITED || getrlimit(RLIMIT_DATA, &memory) < 0)
		return;
	memory.rlim_cur = memory.rlim_max = MIN(memory.rlim_max, (rlim_t)bytes);
	setrlimit(RLIMIT_DATA, &memory);
}

long proc_read_setting(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n = fd < 0 ? -1 : io_read_full(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return -1;
	text[n] = '\0';
	return atol(text);
}

int proc_open(struct err *e)
{
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_errno(e, -errno, "open /proc") : fd;
}

int proc_open_file(int proc_fd, pid_t pid, const char *name, int flags, struct err *e)
{
	char path[320];
	int fd;

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	fd = openat(proc_fd, path, flags | O_CLOEXEC);
	return fd < 0 ? err_errno(e, -errno, "open /proc/%s", path) : fd;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in ledger.h. */
#include "supervisor/disk/ledger.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define MAX_LEDGER (16u << 20)
#define MAX_KNOWN  512 /* lines of the index; the oldest go first */
#define HEX_LEN	   32

static void hex(const uint8_t id[16], char ret[HEX_LEN + 1])
{
	for (int i = 0; i < 16; i++)
		snprintf(ret + 2 * i, 3, "%02x", id[i]);
}

static int open_file(const char *dir, const char *file, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return err_errno(e, -ENOMEM, "%s", file);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? err_errno(e, -errno, "%s", path) : fd;
}

static int lock(int fd, struct err *e)
{
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_errno(e, -errno, "cannot lock the ledger");
	return 0;
}

/* Opens a file of @dir, locked until it is closed. */
static int open_locked(const char *dir, const char *file, struct err *e)
{
	_cleanup_close_ int fd = open_file(dir, file, e);
	int r = fd < 0 ? fd : lock(fd, e);

	return r < 0 ? r : take_fd(&fd);
}

static int read_all(int fd, struct buf *b, struct err *e)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return err_errno(e, -errno, "ledger");
	if (st.st_size > MAX_LEDGER)
		return err_set(e, ERR_FAILED, -EFBIG, "the ledger is too long");
	if (!buf_reserve(b, (size_t)st.st_size + 1))
		return err_errno(e, -ENOMEM, "ledger");
	n = io_pread_full(fd, b->data, (size_t)st.st_size, 0);
	if (n < 0)
		return err_errno(e, (int)n, "ledger");
	b->len = (size_t)n;
	return 0;
}

/* The line of @text that begins with @key and a space, or NULL. */
static char *find_line(char *text, const char *key)
{
	size_t n = strlen(key);

	for (char *line = text; line && *line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, n) == 0 && (line[n] == ' ' || line[n] == '\n'))
			return line;
	}
	return NULL;
}

/* ---- lines: ID TIME NAME HOLDER, of which those of older versions have no holder ------------- */

#define CLAIMED	  '?' /* nothing has run: counts as long as its holder lives */
#define CONFIRMED '='
#define MAX_HOLDER LEDGER_MAX_HOLDER

/* Process @pid by a name that no other has in this boot; "" if it has ended. */
static void name_holder(pid_t pid, char ret[MAX_HOLDER])
{
	_cleanup_close_ int proc = proc_open(NULL);
	struct proc_status s;

	ret[0] = '\0';
	if (proc >= 0 && proc_read_status(proc, pid, &s, NULL) == 0 && s.state != 'Z' && s.state != 'X')
		snprintf(ret, MAX_HOLDER, "%d:%" PRIu64, pid, s.start_time);
}

struct line {
	char *at; /* in the text; NULL: there is none */
	int64_t when;
	char name[65];
	char state;	  /* CLAIMED or CONFIRMED */
	char *mark;	  /* where that is */
	char holder[MAX_HOLDER];
};

/* How far whole lines go: where the disk was full, or the host went down, the last may be none. */
static size_t whole_lines(const struct buf *text)
{
	const uint8_t *last = text->len ? memrchr(text->data, '\n', text->len) : NULL;

	return last ? (size_t)(last + 1 - text->data) : 0;
}

/* The line of @id in the ledger, which is read to @text. */
static int look_up(int fd, const uint8_t id[16], struct buf *text, struct line *ret, struct err *e)
{
	struct line l = {.name = "?", .state = CONFIRMED};
	char key[HEX_LEN + 1];
	int n = 0, r = read_all(fd, text, e);

	if (r < 0)
		return r;
	hex(id, key);
	text->len = whole_lines(text);
	l.at = buf_cstr(text) ? find_line(buf_cstr(text), key) : NULL;
	if (l.at && sscanf(l.at + HEX_LEN, " %" SCNd64 " %64s %n", &l.when, l.name, &n) == 2 && n) {
		char *mark = l.at + HEX_LEN + n;

		if ((*mark == CLAIMED || *mark == CONFIRMED) &&
			sscanf(mark + 1, "%39[0-9:]", l.holder) == 1) {
			l.mark = mark;
			l.state = *mark;
		}
	}
	*ret = l;
	return 0;
}

/* A claim of somebody who died before anything ran is none. */
static bool counts(const struct line *l)
{
	char holder[MAX_HOLDER];

	if (!l->at || l->state == CONFIRMED)
		return l->at;
	name_holder((pid_t)atoi(l->holder), holder);
	return strcmp(holder, l->holder) == 0;
}

static int used_up(const struct line *l, struct err *e)
{
	time_t t = (time_t)l->when;
	struct tm tm;
	char date[32];

	localtime_r(&t, &tm);
	strftime(date, sizeof(date), "%F %T", &tm);
	err_set(e, ERR_STATE, -EALREADY, "this image was resumed already, as '%s' on %s", l->name, date);
	return err_hint(e, "a suspended session is resumed once; `podrun snapshot` makes copies");
}

/* In place, so that it is done or not done: the bytes of @text from @at. */
static int write_at(int fd, const struct buf *text, const char *at, size_t len, struct err *e)
{
	ssize_t n = pwrite(fd, at, len, at - (const char *)text->data);

	return n == (ssize_t)len ? 0 : err_errno(e, n < 0 ? -errno : -EIO, "cannot write the ledger");
}

/* Same length, never a valid id. */
static int strike_out(int fd, const struct buf *text, struct line *l, struct err *e)
{
	memset(l->at, '-', HEX_LEN);
	return write_at(fd, text, l->at, HEX_LEN, e);
}

int ledger_check(const char *state_dir, const uint8_t id[16], struct err *e)
{
	_cleanup_close_ int fd = open_locked(state_dir, "ledger", e);
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct line l;
	int r = fd < 0 ? fd : look_up(fd, id, &text, &l, e);

	if (r < 0 || !counts(&l))
		return r;
	used_up(&l, e);
	return 1;
}

int ledger_claim(const char *state_dir, const uint8_t id[16], const char *name, struct err *e)
{
	_cleanup_close_ int fd = open_locked(state_dir, "ledger", e);
	_cleanup_buf_ struct buf text = BUF_INIT, line = BUF_INIT;
	char key[HEX_LEN + 1], holder[MAX_HOLDER];
	struct line l;
	int r = fd < 0 ? fd : look_up(fd, id, &text, &l, e);

	if (r < 0)
		return r;
	if (counts(&l))
		return used_up(&l, e);
	if (l.at && strike_out(fd, &text, &l, e) < 0)
		return e->error;
	hex(id, key);
	name_holder(getpid(), holder);
	buf_printf(&line, "%s %" PRId64 " %s %c%s\n", key, (int64_t)time(NULL), name, CLAIMED, holder);
	r = buf_error(&line);
	if (r == 0 && (ftruncate(fd, (off_t)text.len) < 0 || lseek(fd, 0, SEEK_END) < 0))
		r = -errno;
	if (r == 0)
		r = io_write_full(fd, line.data, line.len);
	if (r < 0 && ftruncate(fd, (off_t)text.len) < 0)
		log_warn("a line of the ledger is not whole");
	return r < 0 ? err_errno(e, r, "cannot write the ledger") : 0;
}

int ledger_claimant_open(struct ledger_claimant *ret, const char *state_dir, pid_t pid, struct err *e)
{
	name_holder(pid, ret->holder);
	ret->fd = open_file(state_dir, "ledger", e);
	return MIN(ret->fd, 0);
}

void ledger_claimant_fini(struct ledger_claimant *c)
{
	c->fd = close_fd(c->fd);
}

static bool is_of(const struct line *l, const char *holder)
{
	return l->mark && holder[0] && strcmp(holder, l->holder) == 0;
}

int ledger_confirm(const struct ledger_claimant *c, const uint8_t id[16], struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct line l;
	int r = lock(c->fd, e);

	if (r == 0)
		r = look_up(c->fd, id, &text, &l, e);
	if (r == 0 && !is_of(&l, c->holder))
		r = err_set(e, ERR_STATE, -ESTALE, "another has taken the image over");
	if (r == 0) {
		*l.mark = CONFIRMED;
		r = write_at(c->fd, &text, l.mark, 1, e);
	}
	if (r == 0 && fdatasync(c->fd) < 0)
		r = err_errno(e, -errno, "cannot write the ledger");
	flock(c->fd, LOCK_UN);
	return r;
}

int ledger_give_back(const char *state_dir, const uint8_t id[16], struct err *e)
{
	_cleanup_close_ int fd = open_locked(state_dir, "ledger", e);
	_cleanup_buf_ struct buf text = BUF_INIT;
	char holder[MAX_HOLDER];
	struct line l;
	int r = fd < 0 ? fd : look_up(fd, id, &text, &l, e);

	name_holder(getpid(), holder);
	return r == 0 && is_of(&l, holder) ? strike_out(fd, &text, &l, e) : r;
}

/*
 * Where a file is, how long, and when it last changed in any way.  Only of one that nobody else may
 * write to: what is written through a mapping need not show in any of these.
 */
static bool file_key(int fd, char *ret, size_t size)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		st.st_mode & (S_IWGRP | S_IWOTH))
		return false;
	snprintf(ret, size, "%" PRIx64 ":%" PRIx64 ":%" PRIx64 ":%" PRIx64 ".%lx",
		(uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
		(uint64_t)st.st_ctim.tv_sec, (unsigned long)st.st_ctim.tv_nsec);
	return true;
}

bool ledger_knows_file(const char *state_dir, int fd)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_close_ int index = -1;
	struct err e = {0};
	char key[128];

	if (!file_key(fd, key, sizeof(key)))
		return false;
	index = open_locked(state_dir, "known", &e);
	return index >= 0 && read_all(index, &text, &e) == 0 && buf_cstr(&text) &&
		find_line(buf_cstr(&text), key);
}

void ledger_know_file(const char *state_dir, int fd)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_close_ int index = -1;
	struct err e = {0};
	char key[128];
	size_t lines = 0;
	char *from;

	if (!file_key(fd, key, sizeof(key)))
		return;
	index = open_locked(state_dir, "known", &e);
	if (index < 0 || read_all(index, &text, &e) < 0 || !buf_cstr(&text))
		return;
	for (size_t i = 0; i < text.len; i++)
		lines += text.data[i] == '\n';
	from = buf_cstr(&text);
	for (; lines >= MAX_KNOWN && (from = strchr(from, '\n')); lines--)
		from++;
	if (from && from != (char *)text.data) {
		buf_consume(&text, (size_t)(from - (char *)text.data));
		if (ftruncate(index, 0) < 0)
			return;
	} else {
		buf_clear(&text);
	}
	buf_printf(&text, "%s\n", key);
	if (buf_error(&text) == 0 && (lseek(index, 0, SEEK_END) < 0 ||
		io_write_full(index, text.data, text.len) < 0))
		log_warn("cannot remember an image as whole");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in ledger.h. */
#include "supervisor/ledger.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/base.h"

#define MAX_LEDGER (16u << 20)
#define MAX_KNOWN  512 /* lines of the index; the oldest go first */
#define HEX_LEN	   32

static void hex(const uint8_t id[16], char ret[HEX_LEN + 1])
{
	for (int i = 0; i < 16; i++)
		snprintf(ret + 2 * i, 3, "%02x", id[i]);
}

/* Opens a file of @dir, locked until it is closed. */
static int open_locked(const char *dir, const char *file, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return err_errno(e, -ENOMEM, "%s", file);
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_errno(e, -errno, "%s", path);
	return take_fd(&fd);
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

/* 1 and the story in @e when @id is in the ledger, 0 when not. */
static int look_up(int fd, const uint8_t id[16], struct buf *text, struct err *e)
{
	char key[HEX_LEN + 1], name[65] = "?";
	int64_t when = 0;
	time_t t;
	struct tm tm;
	char date[32];
	char *line;
	int r = read_all(fd, text, e);

	if (r < 0)
		return r;
	hex(id, key);
	line = buf_cstr(text) ? find_line(buf_cstr(text), key) : NULL;
	if (!line)
		return 0;
	sscanf(line + HEX_LEN, " %" SCNd64 " %64s", &when, name);
	t = (time_t)when;
	localtime_r(&t, &tm);
	strftime(date, sizeof(date), "%F %T", &tm);
	err_set(e, ERR_STATE, -EALREADY, "this image was resumed already, as '%s' on %s", name, date);
	err_hint(e, "a suspended session is resumed once; `podrun snapshot` makes copies");
	return 1;
}

int ledger_check(const char *state_dir, const uint8_t id[16], struct err *e)
{
	_cleanup_close_ int fd = open_locked(state_dir, "ledger", e);
	_cleanup_buf_ struct buf text = BUF_INIT;

	return fd < 0 ? fd : look_up(fd, id, &text, e);
}

int ledger_consume(const char *state_dir, const uint8_t id[16], const char *name, struct err *e)
{
	_cleanup_close_ int fd = open_locked(state_dir, "ledger", e);
	_cleanup_buf_ struct buf text = BUF_INIT, line = BUF_INIT;
	char key[HEX_LEN + 1];
	int r;

	if (fd < 0)
		return fd;
	r = look_up(fd, id, &text, e);
	if (r != 0)
		return r < 0 ? r : -EALREADY;
	hex(id, key);
	buf_printf(&line, "%s %" PRId64 " %s\n", key, (int64_t)time(NULL), name);
	r = buf_error(&line);
	if (r == 0)
		r = io_write_full(fd, line.data, line.len);
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	return r < 0 ? err_errno(e, r, "cannot write the ledger") : 0;
}

int ledger_give_back(const char *state_dir, const uint8_t id[16], struct err *e)
{
	_cleanup_close_ int fd = open_locked(state_dir, "ledger", e);
	_cleanup_buf_ struct buf text = BUF_INIT;
	char key[HEX_LEN + 1];
	char *line;
	int r;

	if (fd < 0)
		return fd;
	r = read_all(fd, &text, e);
	if (r < 0)
		return r;
	hex(id, key);
	line = buf_cstr(&text) ? find_line(buf_cstr(&text), key) : NULL;
	if (!line)
		return 0;
	/* Same length, never a valid id: readers without the lock see whole lines throughout. */
	memset(line, '-', HEX_LEN);
	if (ftruncate(fd, 0) < 0)
		return err_errno(e, -errno, "ledger");
	r = io_write_full(fd, text.data, text.len);
	return r < 0 ? err_errno(e, r, "cannot write the ledger") : 0;
}

/* Where a file is, how long, and when it last changed in any way. */
static bool file_key(int fd, char *ret, size_t size)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
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
	if (buf_error(&text) == 0 && io_write_full(index, text.data, text.len) < 0)
		log_warn("cannot remember an image as whole");
}

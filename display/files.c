// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      viewer    OFFER(id, name, size)        DATA ... DATA END            -> session
 *      server    ACCEPT(id)                   ACCEPT(id, offset) ...  END(id, name)
 *
 *      viewer    LIST             ACCEPT(id)                               <- session
 *      server    OFFER ... END(0)           DATA ... DATA END
 *
 * A file that comes has no name until it is whole, so that it is in no image; then it gets its own,
 * or one like it if there is such a file.  Where the file system has no files without a name, it is
 * a hidden one that nobody can guess.  A viewer sends only so far ahead of what has
 * been acknowledged; bytes that do not follow on the last ones are an error, and CANCEL ends it.
 *
 * The directory is looked up anew each time, and never through a symbolic link; what is read from
 * it is a regular file with one name only, so that nothing which the session may not read itself
 * can be linked there and taken for its own.
 */
#include "display/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "display/x/reach.h"
#include "proto/display.pb-c.h"

#define PIECE	  (32u << 10)	/* of a file that is sent */
#define TOLD	  (256u << 10)	/* messages that a viewer does not read: more is not answered */
#define HEADS	  4096		/* of a file: its name, and what stands around its pieces */
#define SPARE	  (64ull << 20) /* bytes of the disk that are left alone */
#define FULL_NAME (DISPLAY_FILES_NAME + 16)
#define NAMESAKES 100

/* What may come while the session stands still. */
#define KEPT (DISPLAY_FILES_AT_A_TIME * (DISPLAY_FILES_AHEAD + HEADS))

typedef Pb__DisplayFile__Kind kind_t;

struct transfer {
	uint32_t id;
	bool incoming, acknowledge;
	int fd;
	uint64_t size, offset;
	char part[40]; /* incoming: what it is called until it is whole; "": it has no name */
	char name[DISPLAY_FILES_NAME + 1]; /* incoming */
};

struct display_files {
	int files;
	struct transfer transfers[DISPLAY_FILES_AT_A_TIME];
	size_t n, turn;
	char (*listed)[DISPLAY_FILES_NAME + 1]; /* by id, from DISPLAY_FILES_HIGH on */
	size_t n_listed;
	struct buf told, kept;
	bool held;
};

/* ---- names ----------------------------------------------------------------------------------- */

/* How many bytes the character at @s has; 0 if it is none that may be in a name. */
static size_t character(const unsigned char *s)
{
	size_t n = s[0] < 0x80			 ? 1
		   : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
		   : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						 : 0;

	if (s[0] < ' ' || s[0] == 0x7f || s[0] == '\\' || (s[0] == 0xc2 && s[1] < 0xa0))
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

void display_files_name(const char *name, char *ret)
{
	const char *slash = strrchr(name, '/'), *back = strrchr(name, '\\');
	const char *from = slash || back ? MAX(slash, back) + 1 : name;
	size_t len = 0;

	while (*from) {
		size_t n = character((const unsigned char *)from);

		if (len + MAX(n, (size_t)1) > DISPLAY_FILES_NAME)
			break;
		if (n)
			memcpy(ret + len, from, n);
		else
			ret[len] = '_';
		len += MAX(n, (size_t)1);
		from += MAX(n, (size_t)1);
	}
	ret[len] = '\0';
	if (len == 0)
		strcpy(ret, "file");
	if (ret[0] == '.')
		ret[0] = '_';
}

/* ---- what the viewer is told ----------------------------------------------------------------- */

static void put(struct buf *out, const Pb__DisplayFile *file)
{
	struct display_message m = {.type = DISPLAY_FILE};
	size_t begin = display_wire_begin(out, &m);
	uint8_t *body = buf_grow(out, pb__display_file__get_packed_size(file));

	if (body)
		pb__display_file__pack(file, body);
	display_wire_end(out, begin);
}

static void tell(struct display_files *f, kind_t kind, uint32_t id, const char *name,
	uint64_t number, const char *text)
{
	Pb__DisplayFile file = PB__DISPLAY_FILE__INIT;

	if (f->told.len > TOLD)
		return;
	file.kind = kind;
	file.id = id;
	file.name = (char *)(name ? name : "");
	file.text = (char *)(text ? text : "");
	if (kind == PB__DISPLAY_FILE__KIND__OFFER)
		file.size = number;
	else
		file.offset = number;
	put(&f->told, &file);
}

static void refuse(struct display_files *f, uint32_t id, const char *why)
{
	tell(f, PB__DISPLAY_FILE__KIND__CANCEL, id, NULL, 0, why);
}

/* ---- the directory --------------------------------------------------------------------------- */

/* A descriptor or a negative errno. */
static int open_place(const struct display_files *f)
{
	_cleanup_close_ int tmp = display_x_open(f->files, "tmp", O_RDONLY | O_DIRECTORY);

	if (tmp < 0)
		return tmp;
	if (mkdirat(tmp, DISPLAY_FILES_PLACE, 0700) < 0 && errno != EEXIST)
		return -errno;
	return display_x_open(tmp, DISPLAY_FILES_PLACE, O_RDONLY | O_DIRECTORY);
}

/* A file of the session's in @place, to be read. */
static int open_file(int place, const char *name, struct stat *ret)
{
	_cleanup_close_ int fd = display_x_open(place, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return fd;
	if (fstat(fd, ret) < 0 || !S_ISREG(ret->st_mode) || ret->st_nlink != 1)
		return -EPERM;
	return take_fd(&fd);
}

/* ---- transfers ------------------------------------------------------------------------------- */

static struct transfer *find(struct display_files *f, uint32_t id)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->transfers[i].id == id)
			return &f->transfers[i];
	return NULL;
}

static void drop(struct display_files *f, struct transfer *t)
{
	int place = t->incoming && t->part[0] ? open_place(f) : -1;

	if (place >= 0) {
		unlinkat(place, t->part, 0);
		close_fd(place);
	}
	close_fd(t->fd);
	*t = f->transfers[--f->n];
}

static void give_up(struct display_files *f, struct transfer *t, const char *why)
{
	refuse(f, t->id, why);
	drop(f, t);
}

/* A descriptor, or a negative errno. */
static int make_file(int place, struct transfer *t)
{
	uint64_t lot;
	int fd = openat(place, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd >= 0 ? fd : -errno;
	if (getrandom(&lot, sizeof(lot), 0) != sizeof(lot))
		return -EAGAIN;
	snprintf(t->part, sizeof(t->part), ".podrun-%016llx", (unsigned long long)lot);
	fd = openat(place, t->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : -errno;
}

static void take_offer(struct display_files *f, const Pb__DisplayFile *m)
{
	struct transfer t = {.id = m->id, .incoming = true, .size = m->size};
	_cleanup_close_ int place = -1;
	struct statvfs disk;

	if (m->id >= DISPLAY_FILES_HIGH || find(f, m->id) || f->n == DISPLAY_FILES_AT_A_TIME) {
		refuse(f, m->id, "too many files at a time");
		return;
	}
	place = open_place(f);
	if (place < 0 || fstatvfs(place, &disk) < 0) {
		refuse(f, m->id, "the session's directory cannot be written to");
		return;
	}
	if (m->size > DISPLAY_FILES_SIZE ||
		m->size + SPARE > (uint64_t)disk.f_bavail * disk.f_frsize) {
		refuse(f, m->id, "the file is too large");
		return;
	}
	display_files_name(m->name, t.name);
	t.fd = make_file(place, &t);
	if (t.fd < 0) {
		refuse(f, m->id, strerror(-t.fd));
		return;
	}
	f->transfers[f->n++] = t;
	tell(f, PB__DISPLAY_FILE__KIND__ACCEPT, t.id, t.name, 0, NULL);
}

static void take_data(struct display_files *f, const Pb__DisplayFile *m)
{
	struct transfer *t = find(f, m->id);
	int r;

	if (!t || !t->incoming)
		return;
	if (m->offset != t->offset || m->data.len > t->size - t->offset) {
		give_up(f, t, "these bytes were not expected");
		return;
	}
	r = io_write_full(t->fd, m->data.data, m->data.len);
	if (r < 0) {
		give_up(f, t, strerror(-r));
		return;
	}
	t->offset += m->data.len;
	t->acknowledge = true;
}

static int put_name(int place, const struct transfer *t, const char *name)
{
	char self[32];

	if (t->part[0])
		return renameat2(place, t->part, place, name, RENAME_NOREPLACE);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", t->fd);
	return linkat(AT_FDCWD, self, place, name, AT_SYMLINK_FOLLOW);
}

/* Gives it its name, or "name (2)" and so on, which is @name then; 0 or a negative errno. */
static int give_name(int place, struct transfer *t, char name[FULL_NAME])
{
	const char *dot = strrchr(t->name, '.');
	int stem = dot && dot != t->name ? (int)(dot - t->name) : (int)strlen(t->name);

	snprintf(name, FULL_NAME, "%s", t->name);
	for (int i = 2; i <= NAMESAKES; i++) {
		if (put_name(place, t, name) == 0) {
			t->part[0] = '\0';
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
		snprintf(name, FULL_NAME, "%.*s (%d)%s", stem, t->name, i, t->name + stem);
	}
	return -EEXIST;
}

static void take_end(struct display_files *f, const Pb__DisplayFile *m)
{
	struct transfer *t = find(f, m->id);
	_cleanup_close_ int place = -1;
	char name[FULL_NAME];
	int r;

	if (!t || !t->incoming)
		return;
	if (t->offset != t->size) {
		give_up(f, t, "the file is not whole");
		return;
	}
	place = open_place(f);
	r = place < 0 ? place : give_name(place, t, name);
	if (r < 0) {
		give_up(f, t, strerror(-r));
		return;
	}
	tell(f, PB__DISPLAY_FILE__KIND__END, t->id, name, t->size, NULL);
	drop(f, t);
}

/* It wants one of those that it was told of. */
static void take_accept(struct display_files *f, const Pb__DisplayFile *m)
{
	size_t i = m->id - DISPLAY_FILES_HIGH;
	struct transfer t = {.id = m->id};
	_cleanup_close_ int place = -1;
	struct stat st;

	if (m->id < DISPLAY_FILES_HIGH || i >= f->n_listed)
		return;
	if (find(f, m->id) || f->n == DISPLAY_FILES_AT_A_TIME) {
		refuse(f, m->id, "too many files at a time");
		return;
	}
	place = open_place(f);
	t.fd = place < 0 ? place : open_file(place, f->listed[i], &st);
	if (t.fd < 0) {
		refuse(f, m->id, strerror(-t.fd));
		return;
	}
	t.size = (uint64_t)st.st_size;
	f->transfers[f->n++] = t;
}

static bool is_to_be_listed(int place, const char *name, struct stat *ret)
{
	char clean[DISPLAY_FILES_NAME + 1];

	if (strlen(name) > DISPLAY_FILES_NAME)
		return false;
	display_files_name(name, clean);
	return strcmp(name, clean) == 0 && fstatat(place, name, ret, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(ret->st_mode) && ret->st_nlink == 1;
}

/* Files are known by their numbers until the next list, whatever else is on its way. */
static void take_list(struct display_files *f)
{
	int fd = open_place(f);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	struct stat st;

	if (fd >= 0 && !dir)
		close_fd(fd);
	if (!f->listed)
		f->listed = calloc(DISPLAY_FILES_LIST, sizeof(*f->listed));
	f->n_listed = 0;
	while (dir && f->listed && f->n_listed < DISPLAY_FILES_LIST && (d = readdir(dir))) {
		if (!is_to_be_listed(fd, d->d_name, &st))
			continue;
		snprintf(f->listed[f->n_listed], sizeof(*f->listed), "%s", d->d_name);
		tell(f, PB__DISPLAY_FILE__KIND__OFFER, DISPLAY_FILES_HIGH + (uint32_t)f->n_listed++,
			d->d_name, (uint64_t)st.st_size, NULL);
	}
	if (dir)
		closedir(dir);
	tell(f, PB__DISPLAY_FILE__KIND__END, 0, NULL, 0, NULL);
}

static void take(struct display_files *f, const uint8_t *data, size_t len)
{
	Pb__DisplayFile *m = pb__display_file__unpack(NULL, len, data);
	struct transfer *t;

	if (!m)
		return;
	switch ((int)m->kind) {
	case PB__DISPLAY_FILE__KIND__OFFER:
		take_offer(f, m);
		break;
	case PB__DISPLAY_FILE__KIND__ACCEPT:
		take_accept(f, m);
		break;
	case PB__DISPLAY_FILE__KIND__DATA:
		take_data(f, m);
		break;
	case PB__DISPLAY_FILE__KIND__END:
		take_end(f, m);
		break;
	case PB__DISPLAY_FILE__KIND__CANCEL:
		t = find(f, m->id);
		if (t)
			drop(f, t);
		break;
	case PB__DISPLAY_FILE__KIND__LIST:
		if (f->told.len < TOLD / 2)
			take_list(f);
		break;
	default:
		break;
	}
	pb__display_file__free_unpacked(m, NULL);
}

/* ---- for the server -------------------------------------------------------------------------- */

int display_files_new(int files, struct display_files **ret_files)
{
	struct display_files *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->files = files;
	*ret_files = f;
	return 0;
}

void display_files_free(struct display_files *f)
{
	if (!f)
		return;
	while (f->n)
		drop(f, &f->transfers[0]);
	buf_fini(&f->told);
	buf_fini(&f->kept);
	free(f->listed);
	free(f);
}

void display_files_take(struct display_files *f, const struct display_bytes *record)
{
	if (!f->held) {
		take(f, record->data, record->len);
		return;
	}
	/* Whoever sends farther ahead has lost it, which shows in the next offset. */
	if (f->kept.len + record->len > KEPT)
		return;
	buf_put_u32(&f->kept, (uint32_t)record->len);
	buf_put(&f->kept, record->data, record->len);
}

void display_files_hold(struct display_files *f, bool on)
{
	struct cursor c = cursor_of(f->kept.data, f->kept.len);

	f->held = on;
	if (on)
		return;
	while (buf_error(&f->kept) == 0 && cursor_left(&c)) {
		size_t len = cursor_u32(&c);
		const uint8_t *record = cursor_take(&c, len);

		if (!record)
			break;
		take(f, record, len);
	}
	buf_fini(&f->kept);
}

/* One piece of an outgoing file, or its end. */
static void put_piece(struct display_files *f, struct transfer *t, struct buf *out)
{
	Pb__DisplayFile m = PB__DISPLAY_FILE__INIT;
	uint8_t piece[PIECE];
	size_t want = (size_t)MIN(t->size - t->offset, (uint64_t)PIECE);
	ssize_t n = pread(t->fd, piece, want, (off_t)t->offset);

	m.id = t->id;
	m.offset = t->offset;
	m.kind = n > 0 ? PB__DISPLAY_FILE__KIND__DATA : PB__DISPLAY_FILE__KIND__END;
	if (n > 0) {
		m.data.data = piece;
		m.data.len = (size_t)n;
		t->offset += (uint64_t)n;
	} else if (n < 0 || t->offset < t->size) {
		m.kind = PB__DISPLAY_FILE__KIND__CANCEL;
		m.text = (char *)"the file has changed";
	}
	put(out, &m);
	if (n <= 0)
		drop(f, t);
}

bool display_files_put(struct display_files *f, struct buf *out, bool bulk)
{
	bool more = false;

	for (size_t i = 0; i < f->n; i++)
		if (f->transfers[i].acknowledge) {
			f->transfers[i].acknowledge = false;
			tell(f, PB__DISPLAY_FILE__KIND__ACCEPT, f->transfers[i].id, NULL,
				f->transfers[i].offset, NULL);
		}
	buf_put(out, f->told.data, f->told.len);
	buf_clear(&f->told);
	for (size_t i = 0; i < f->n && bulk; i++) {
		struct transfer *t = &f->transfers[f->turn++ % f->n];

		if (t->incoming)
			continue;
		put_piece(f, t, out);
		break;
	}
	for (size_t i = 0; i < f->n; i++)
		more |= !f->transfers[i].incoming;
	return more;
}

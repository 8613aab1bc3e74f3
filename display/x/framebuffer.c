// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Xvfb paints all of it once, as large as a screen may become.  What lies outside of the screen
 * is given back, or it would be in memory and in every image.
 *
 * The file is an X window dump (XWDFile.h): 25 words, big-endian, a name, a table of colours, and
 * the pixels, which Xvfb has mapped, too.  Only what Xvfb makes of a 24 bit screen on a
 * little-endian machine is taken: 32 bits a pixel, blue first.
 *
 * Whoever shortens the file takes pages away below a mapping; touching one is a SIGBUS.  The
 * handler puts an empty page in the place of it, as Wayland compositors do.  That needs to know
 * what is mapped, for which there are two variables: an old and a new one may be mapped for a
 * moment.
 */
#include "display/x/framebuffer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/base.h"
#include "display/x/reach.h"
#include "display/x/x.h"

#define FILE_NAME    DISPLAY_PICTURES "/Xvfb_screen0"
#define FILE_VERSION 7
#define ZPIXMAP	     2
#define COLOUR_BYTES 12
#define MAX_COLOURS  65536
#define MAX_HEADER   65536

/* XWDFileHeader, in the order of the file. */
enum word {
	HEADER_SIZE,
	VERSION,
	FORMAT,
	DEPTH,
	WIDTH,
	HEIGHT,
	X_OFFSET,
	BYTE_ORDER_,
	BITMAP_UNIT,
	BITMAP_BIT_ORDER,
	BITMAP_PAD,
	BITS_PER_PIXEL,
	BYTES_PER_LINE,
	VISUAL_CLASS,
	RED_MASK,
	GREEN_MASK,
	BLUE_MASK,
	BITS_PER_RGB,
	COLORMAP_ENTRIES,
	N_COLOURS,
	N_WORDS
};

#define MAX_MAPPED 2
static struct {
	char *volatile begin;
	volatile size_t size;
} mapped[MAX_MAPPED];

/* ---- SIGBUS ---------------------------------------------------------------------------------- */

static void on_bus_error(int sig, siginfo_t *info, void *ctx)
{
	char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE_SIZE - 1));

	for (int i = 0; i < MAX_MAPPED; i++)
		if (mapped[i].begin && page >= mapped[i].begin &&
			page < mapped[i].begin + mapped[i].size &&
			mmap(page, PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
				-1, 0) == page)
			return;
	signal(SIGBUS, SIG_DFL);
}

static int guard(char *begin, size_t size, struct err *e)
{
	struct sigaction act = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

	for (int i = 0; i < MAX_MAPPED; i++) {
		if (mapped[i].begin)
			continue;
		mapped[i].size = size;
		mapped[i].begin = begin;
		return sigaction(SIGBUS, &act, NULL) < 0 ? err_errno(e, -errno, "SIGBUS") : 0;
	}
	return err_set(e, ERR_FAILED, -EMFILE, "too many framebuffers");
}

/* ---- the file -------------------------------------------------------------------------------- */

static int open_file(int shm, int flags, struct stat *ret_st)
{
	_cleanup_close_ int fd = display_x_open(shm, FILE_NAME, flags | O_NONBLOCK);

	if (fd < 0)
		return fd;
	if (fstat(fd, ret_st) < 0)
		return -errno;
	return S_ISREG(ret_st->st_mode) ? take_fd(&fd) : -EBADMSG;
}

/* Where the pixels begin, and how they lie; what does not add up is refused. */
static int parse(const uint32_t raw[N_WORDS], size_t file_size, size_t *ret_offset,
	struct display_frame *ret)
{
	uint32_t w[N_WORDS];
	size_t offset, stride;

	for (int i = 0; i < N_WORDS; i++)
		w[i] = ntohl(raw[i]);
	if (w[VERSION] != FILE_VERSION || w[FORMAT] != ZPIXMAP || w[BITS_PER_PIXEL] != 32 ||
		w[BYTE_ORDER_] != 0 || w[RED_MASK] != 0xff0000 || w[GREEN_MASK] != 0xff00 ||
		w[BLUE_MASK] != 0xff)
		return -EBADMSG;
	if (w[HEADER_SIZE] < sizeof(w) || w[HEADER_SIZE] > MAX_HEADER || w[N_COLOURS] > MAX_COLOURS)
		return -EBADMSG;
	if (!w[WIDTH] || !w[HEIGHT] || w[WIDTH] > DISPLAY_MAX_WIDTH ||
		w[HEIGHT] > DISPLAY_MAX_HEIGHT)
		return -EBADMSG;
	offset = w[HEADER_SIZE] + (size_t)w[N_COLOURS] * COLOUR_BYTES;
	stride = w[BYTES_PER_LINE];
	if (stride % 4 || offset % 4 || stride < (size_t)w[WIDTH] * 4 ||
		stride > (size_t)DISPLAY_SIZE_MAX * 4 || offset + stride * w[HEIGHT] > file_size)
		return -EBADMSG;
	*ret_offset = offset;
	*ret = (struct display_frame){
		.width = (int)w[WIDTH], .height = (int)w[HEIGHT], .stride = (int)(stride / 4)};
	return 0;
}

int display_x_framebuffer_map(struct display_x_framebuffer *ret, int shm, struct err *e)
{
	struct display_x_framebuffer f = {0};
	uint32_t header[N_WORDS];
	_cleanup_close_ int fd = -1;
	struct stat st;
	size_t offset;
	int r;

	fd = open_file(shm, O_RDONLY, &st);
	if (fd < 0)
		return err_errno(e, fd, "the X server's framebuffer");
	f = (struct display_x_framebuffer){
		.size = (size_t)st.st_size, .dev = st.st_dev, .ino = st.st_ino};
	r = io_pread_full(fd, header, sizeof(header), 0) == sizeof(header)
		    ? parse(header, f.size, &offset, &f.all)
		    : -EBADMSG;
	if (r < 0)
		return err_errno(e, r, "the X server's framebuffer is none");
	f.map = mmap(NULL, f.size, PROT_READ, MAP_SHARED, fd, 0);
	if (f.map == MAP_FAILED)
		return err_errno(e, -errno, "cannot map the X server's framebuffer");
	r = guard(f.map, f.size, e);
	if (r < 0) {
		munmap(f.map, f.size);
		return r;
	}
	f.all.pixels = (void *)((char *)f.map + offset);
	*ret = f;
	return 0;
}

bool display_x_framebuffer_current(const struct display_x_framebuffer *f, int shm)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = f->map ? open_file(shm, O_RDONLY, &st) : -1;
	return fd >= 0 && st.st_dev == f->dev && st.st_ino == f->ino &&
	       (size_t)st.st_size == f->size;
}

static void punch(int fd, size_t from, size_t to)
{
	from = (from + PAGE_SIZE - 1) & ~(size_t)(PAGE_SIZE - 1);
	to &= ~(size_t)(PAGE_SIZE - 1);
	if (from < to)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
			(off_t)(to - from));
}

void display_x_framebuffer_trim(
	const struct display_x_framebuffer *f, int shm, int width, int height)
{
	size_t at = (size_t)((char *)f->all.pixels - (char *)f->map);
	size_t stride = (size_t)f->all.stride * 4;
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = f->map ? open_file(shm, O_RDWR, &st) : -1;
	if (fd < 0 || st.st_ino != f->ino || st.st_dev != f->dev)
		return;
	for (int y = 0; y < height; y++, at += stride)
		punch(fd, at + (size_t)width * 4, at + stride);
	punch(fd, at, f->size);
}

void display_x_framebuffer_unmap(struct display_x_framebuffer *f)
{
	for (int i = 0; i < MAX_MAPPED; i++)
		if (f->map && mapped[i].begin == f->map)
			mapped[i].begin = NULL;
	if (f->map)
		munmap(f->map, f->size);
	*f = (struct display_x_framebuffer){0};
}

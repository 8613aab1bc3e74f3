// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bench watch - a viewer that notes when what is drawn can be seen.
 *
 *     watch podrun|podrun-vp8|vnc TARGET QUALITY DIR PIDS pages FIRST COUNT
 *     watch ...                                scroll seq|find|smooth COUNT
 *     watch ...                                drag|type COUNT
 *     watch ...                                video FRAMES
 *     watch ...                                stay SECONDS LETTERS_PER_SECOND
 *
 * TARGET is a port of this host's, or unix:PATH; QUALITY 0 is lossless; DIR is load's (stage.h);
 * PIDS, with commas, are the processes whose CPU time counts as the server's.
 *
 * Slow motion (Yang, Nieh, Novik, 2001): one step is drawn, and the next one when the first is seen
 * and nothing has come for a while.  A step is *visible* when every part of it that is new has come
 * (watch_same), decoded, and *quiet* when nothing follows; bytes are the kernel's count of this
 * connection.  The first step of each kind is not counted.  One JSON object is printed.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "stage.h"
#include "watch.h"
#include "watch_cpu.h"

#define PATIENCE    20000000000ULL /* ns, until a step counts as never seen */
#define QUIET	    300000000ULL   /* ns without a byte */
#define QUIET_SMALL 150000000ULL   /* behind steps that change little */
#define RESTLESS    3000000000ULL  /* that is waited for */
#define KEY	    'x'
#define SAMPLE	    24 /* every so many frames one is compared by SSIM */
#define SAMPLES	    64

struct watch {
	struct watch_end end;
	struct watch_same same;
	struct stage *stage;
	const char *dir, *pids;
	int ask, said;
	size_t size; /* bytes of a picture */
	uint32_t *before, *seen;
	/* the step */
	bool looking;
	uint64_t visible_ns, visible_bytes;
	/* the video */
	bool filming;
	unsigned delivered, last_number, samples;
	uint64_t *frame_ns; /* [i]: when i + 1 was seen */
	uint32_t *sample[SAMPLES];
	unsigned sample_number[SAMPLES];
	uint64_t own_cpu;     /* of the viewer: reading and decoding */
	uint64_t looking_cpu; /* within that, comparing */
	bool printed;	      /* an element of the list */
};

void watch_die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* ---- the line -------------------------------------------------------------------------------- */

static int reach(const char *target)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	bool local = strncmp(target, "unix:", 5) == 0;
	int fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (local) {
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", target + 5);
		if (connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
			watch_die(target);
		return fd;
	}
	in.sin_port = htons((uint16_t)atoi(target));
	if (connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0)
		watch_die(target);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Bytes that have been taken from the line; 0 of a unix socket, which doesn't count. */
static uint64_t bytes(const struct watch *w)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	int unread = 0;

	if (getsockopt(w->end.fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return 0;
	ioctl(w->end.fd, FIONREAD, &unread);
	return info.tcpi_bytes_received - (uint64_t)unread - w->end.ops->waiting(&w->end);
}

/* Waits for at most @ns; true if something has come and was decoded. */
static bool turn(struct watch *w, uint64_t ns)
{
	struct pollfd p = {.fd = w->end.fd, .events = POLLIN};
	const struct timespec t = {(time_t)(ns / 1000000000ULL), (long)(ns % 1000000000ULL)};
	uint64_t cpu;

	if (ppoll(&p, 1, &t, NULL) <= 0)
		return false;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	w->end.ops->read(&w->end);
	w->own_cpu += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	return true;
}

/* ---- what is seen ---------------------------------------------------------------------------- */

static void keep_picture(const struct watch *w, uint32_t *to)
{
	for (int y = 0; y < w->same.height; y++)
		for (int x = 0; x < w->same.width; x++)
			to[y * w->same.width + x] = w->end.pixels[y * w->end.stride + x] & 0xffffff;
}

/* The number at a place, or -1. */
static int number_at(const struct watch_end *e, int place)
{
	int x, y, number = 0;

	stage_place(place, e->width, e->height, &x, &y);
	for (int i = 0; i < STAGE_BITS; i++) {
		uint32_t p = e->pixels[(y + STAGE_SQUARE / 2) * e->stride + x + i * STAGE_SQUARE +
				       STAGE_SQUARE / 2];
		int green = p >> 8 & 0xff;

		if (green > 64 && green < 192)
			return -1;
		number |= (green >= 192) << i;
	}
	return number;
}

static void look_at_film(struct watch *w)
{
	int number = number_at(&w->end, 0);

	if (number <= 0 || number > STAGE_FRAMES || (unsigned)number == w->last_number)
		return;
	for (int place = 1; place < STAGE_PLACES; place++)
		if (number_at(&w->end, place) != number)
			return;
	w->last_number = (unsigned)number;
	if (w->frame_ns[number - 1])
		return;
	w->frame_ns[number - 1] = now_ns();
	if (w->delivered++ % SAMPLE == SAMPLE / 2 && w->samples < SAMPLES) {
		w->sample[w->samples] = malloc(w->size);
		if (!w->sample[w->samples])
			watch_die("no memory");
		keep_picture(w, w->sample[w->samples]);
		w->sample_number[w->samples++] = (unsigned)number;
	}
}

static void progress(void *ctx)
{
	struct watch *w = ctx;
	uint64_t cpu;

	if (!w->looking && !w->filming)
		return;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (w->filming) {
		look_at_film(w);
	} else if (watch_same_check(&w->same, &w->end, w->stage->target)) {
		w->visible_ns = now_ns();
		w->visible_bytes = bytes(w);
		w->looking = false;
		keep_picture(w, w->seen);
	}
	w->looking_cpu += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void ask(struct watch *w, enum stage_what what, int n)
{
	const struct stage_ask a = {(char)what, n};

	if (write(w->ask, &a, sizeof(a)) != sizeof(a))
		watch_die("ask");
}

static void hear(struct watch *w, char what)
{
	char c;

	if (read(w->said, &c, 1) != 1 || c != what)
		watch_die("the load");
}

/* Until nothing has come for so long; there are servers that never rest. */
static uint64_t settle(struct watch *w, uint64_t quiet)
{
	uint64_t last = now_ns(), end = last + RESTLESS;

	while (turn(w, quiet) && last < end)
		last = now_ns();
	return last;
}

/* @from is when it was begun: milliseconds count from there. */
static void print_step(struct watch *w, uint64_t from, uint64_t begun, uint64_t last,
	double server_ms, double viewer_ms)
{
	const uint32_t *target = w->stage->target;
	uint64_t all = bytes(w);
	long wrong = 0;

	printf("%s{", w->printed ? ", " : "");
	w->printed = true;
	if (w->looking)
		printf("\"visible_ms\": null");
	else
		printf("\"visible_ms\": %.3f, \"kb_visible\": %.3f, \"ssim_visible\": %.5f",
			(double)(w->visible_ns - from) / 1e6,
			(double)(w->visible_bytes - begun) / 1e3,
			watch_ssim(w->seen, target, w->same.width, w->same.height));
	keep_picture(w, w->seen);
	for (size_t i = 0; i < w->size / 4; i++)
		wrong += w->seen[i] != target[i];
	printf(", \"last_ms\": %.3f, \"kb_total\": %.3f, \"cpu_ms\": %.3f, \"viewer_cpu_ms\": %.3f, "
	       "\"ssim\": %.5f, \"wrong\": %ld}",
		(double)(last - from) / 1e6, (double)(all - begun) / 1e3, server_ms, viewer_ms,
		watch_ssim(w->seen, target, w->same.width, w->same.height), wrong);
}

static void step(struct watch *w, enum stage_what what, int n, bool counts)
{
	const uint64_t drawn = atomic_load(&w->stage->drawn_ns);
	uint64_t begun, deadline, last, from;
	double server;

	memcpy(w->before, w->stage->target, w->size);
	ask(w, what, n);
	hear(w, 'r');
	if (!watch_same_begin(&w->same, w->before, w->stage->target) && counts)
		watch_die("a step without anything new");
	settle(w, 0);
	begun = bytes(w);
	w->own_cpu = w->looking_cpu = 0;
	server = watch_cpu_ms(w->pids);
	w->looking = true;
	from = now_ns();
	deadline = from + (counts ? PATIENCE : 3000000000ULL);
	if (what == STAGE_TYPE) {
		w->end.ops->key(&w->end, KEY, true);
		w->end.ops->key(&w->end, KEY, false);
	} else {
		ask(w, STAGE_GO, 0);
	}
	while (w->looking && now_ns() < deadline)
		turn(w, deadline - now_ns());
	/* What is not drawn yet would be taken for the next step's. */
	while (what == STAGE_TYPE && atomic_load(&w->stage->drawn_ns) == drawn &&
		now_ns() < from + PATIENCE)
		turn(w, 10000000);
	last = settle(w, what == STAGE_PAGE ? QUIET : QUIET_SMALL);
	server = watch_cpu_ms(w->pids) - server;
	if (counts)
		print_step(w, what == STAGE_TYPE ? from : atomic_load(&w->stage->drawn_ns), begun,
			last, server, (double)(w->own_cpu - w->looking_cpu) / 1e6);
	w->looking = false;
}

static void steps(struct watch *w, enum stage_what what, int first, int step_n, int count)
{
	printf("{\"steps\": [");
	for (int i = -1; i < count; i++)
		step(w, what, what == STAGE_PAGE && i < 0 ? first + count : first + i * step_n,
			i >= 0);
	printf("]}\n");
}

/* ---- video ----------------------------------------------------------------------------------- */

static const uint32_t *open_clip(const struct watch *w, int *ret_frames)
{
	const uint32_t *clip;
	char path[4096];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/clip", w->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		watch_die(path);
	clip = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (clip == MAP_FAILED)
		watch_die(path);
	close(fd);
	*ret_frames = (int)(st.st_size / (STAGE_CLIP_W * STAGE_CLIP_H * 4));
	return clip;
}

static double film_ssim(struct watch *w)
{
	int frames;
	const uint32_t *clip = open_clip(w, &frames);
	double sum = 0;

	for (unsigned i = 0; i < w->samples; i++) {
		stage_frame(clip, (int)(w->sample_number[i] - 1) % frames, w->before, w->same.width,
			w->same.height);
		sum += watch_ssim(w->sample[i], w->before, w->same.width, w->same.height);
	}
	return w->samples ? sum / w->samples : 0;
}

static void video(struct watch *w, int frames)
{
	uint64_t begun, last, end;
	double server, viewer;
	struct pollfd said = {.fd = w->said, .events = POLLIN};

	w->frame_ns = calloc(STAGE_FRAMES, sizeof(*w->frame_ns));
	if (!w->frame_ns || frames >= STAGE_FRAMES)
		watch_die("video");
	begun = bytes(w);
	server = watch_cpu_ms(w->pids);
	w->own_cpu = w->looking_cpu = 0;
	w->filming = true;
	ask(w, STAGE_VIDEO, frames);
	while (poll(&said, 1, 0) == 0)
		turn(w, 20000000);
	hear(w, 'e');
	end = bytes(w);
	last = settle(w, QUIET);
	server = watch_cpu_ms(w->pids) - server;
	viewer = (double)(w->own_cpu - w->looking_cpu) / 1e6;
	w->filming = false;
	printf("{\"sent\": %u, \"delivered\": %u, \"seconds\": %.3f, \"kb\": %.1f, \"kb_total\": %.1f, "
	       "\"cpu_ms\": %.1f, \"viewer_cpu_ms\": %.1f, \"ssim\": %.5f, \"after_ms\": %.1f, "
	       "\"latencies\": [",
		atomic_load(&w->stage->frames), w->delivered,
		(double)(atomic_load(&w->stage->frame_ns[frames - 1]) -
			 atomic_load(&w->stage->frame_ns[0])) /
				1e9 +
			1.0 / STAGE_CLIP_FPS,
		(double)(end - begun) / 1e3, (double)(bytes(w) - begun) / 1e3, server, viewer,
		film_ssim(w), (double)(last - atomic_load(&w->stage->frame_ns[frames - 1])) / 1e6);
	for (int i = 0, n = 0; i < frames; i++)
		if (w->frame_ns[i])
			printf("%s%.3f", n++ ? ", " : "",
				(double)(w->frame_ns[i] - atomic_load(&w->stage->frame_ns[i])) /
					1e6);
	printf("]}\n");
}

/* ---- staying --------------------------------------------------------------------------------- */

/* Idle, or typing slowly: what a session costs meanwhile. */
static void stay(struct watch *w, double seconds, double letters)
{
	uint64_t begun, until, key;
	double server;

	if (letters > 0) {
		ask(w, STAGE_NOTES, 0);
		hear(w, 'r');
	}
	settle(w, 2 * QUIET);
	server = watch_cpu_ms(w->pids);
	begun = key = now_ns();
	until = begun + (uint64_t)(seconds * 1e9);
	w->own_cpu = w->looking_cpu = 0;
	while (now_ns() < until) {
		uint64_t next = until;

		if (letters > 0 && key <= now_ns()) {
			w->end.ops->key(&w->end, KEY, true);
			w->end.ops->key(&w->end, KEY, false);
			key += (uint64_t)(1e9 / letters);
		}
		if (letters > 0 && key < next)
			next = key;
		if (next > now_ns())
			turn(w, next - now_ns());
	}
	printf("{\"seconds\": %.3f, \"cpu_ms\": %.3f, \"viewer_cpu_ms\": %.3f}\n",
		(double)(now_ns() - begun) / 1e9, watch_cpu_ms(w->pids) - server,
		(double)w->own_cpu / 1e6);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static int open_in(const struct watch *w, const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		watch_die(path);
	return fd;
}

static void begin(struct watch *w, const char *kind, const char *target, int quality)
{
	struct stat st;
	int fd = open_in(w, "stage");
	uint64_t deadline = now_ns() + PATIENCE;

	fstat(fd, &st);
	w->stage = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (w->stage == MAP_FAILED || (size_t)st.st_size < sizeof(*w->stage))
		watch_die("stage");
	close(fd);
	w->ask = open_in(w, "ask");
	w->said = open_in(w, "said");
	watch_same_init(&w->same, w->stage->width, w->stage->height);
	w->size = (size_t)w->same.width * (size_t)w->same.height * 4;
	w->before = malloc(w->size);
	w->seen = malloc(w->size);
	w->end.ops = strcmp(kind, "podrun") == 0       ? &watch_podrun
		     : strcmp(kind, "podrun-vp8") == 0 ? &watch_podrun_vp8
						       : &watch_vnc;
	w->end.progress = progress;
	w->end.ctx = w;
	w->end.fd = reach(target);
	w->end.ops->begin(&w->end, quality);
	while (!w->end.pixels && now_ns() < deadline)
		turn(w, deadline - now_ns());
	settle(w, 2 * QUIET);
	if (w->end.width < w->same.width || w->end.height < w->same.height || !w->before ||
		!w->seen)
		watch_die("the viewer has no picture of the screen");
	;
}

static const char *const scrolls[STAGE_SCROLLS] = {"seq", "find", "smooth"};

static int scroll_kind(const char *name)
{
	for (int i = 0; i < STAGE_SCROLLS; i++)
		if (strcmp(name, scrolls[i]) == 0)
			return i;
	watch_die(name);
}

int main(int argc, char **argv)
{
	static struct watch w;
	const char *work = argc > 7 ? argv[6] : "";

	prctl(PR_SET_TIMERSLACK, 1UL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc < 8 || ((strcmp(work, "pages") == 0 || strcmp(work, "scroll") == 0 ||
				 strcmp(work, "stay") == 0) &&
				argc < 9)) {
		fprintf(stderr, "usage: see the top of watch.c\n");
		return 2;
	}
	w.dir = argv[4];
	w.pids = argv[5];
	begin(&w, argv[1], argv[2], atoi(argv[3]));
	if (strcmp(work, "pages") == 0)
		steps(&w, STAGE_PAGE, atoi(argv[7]), 1, atoi(argv[8]));
	else if (strcmp(work, "scroll") == 0)
		steps(&w, STAGE_SCROLL, scroll_kind(argv[7]), 0, atoi(argv[8]));
	else if (strcmp(work, "drag") == 0)
		step(&w, STAGE_PAGE, 0, false), steps(&w, STAGE_DRAG, 0, 0, atoi(argv[7]));
	else if (strcmp(work, "type") == 0)
		steps(&w, STAGE_TYPE, 0, 0, atoi(argv[7]));
	else if (strcmp(work, "video") == 0)
		video(&w, atoi(argv[7]));
	else if (strcmp(work, "stay") == 0)
		stay(&w, atof(argv[7]), atof(argv[8]));
	fflush(stdout);
	_exit(0);
}

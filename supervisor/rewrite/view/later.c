// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in view/later.h. */
#include "supervisor/rewrite/view/later.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/base.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/view/question.h"
#include "supervisor/world/fence.h"

#define MAX_WAITING  512
#define STACK_SIZE   (512 * 1024)
#define LOOK_EVERY_US 50000
#define WAKE	     SIGUSR2 /* orders.c has the other */
#define ERESTARTSYS  512 /* linux/errno.h of the kernel */
#define ERESTARTNOINTR 513

struct waiting {
	struct waiting *next;
	struct path_question p;
	struct view_place at;
	char path[PATH_MAX];
	pthread_t thread;
	int pending; /* how often in a row there was a signal */
	bool started;
	bool again; /* it is to make its call again */
};

/* Of the one rewriter that this process is; under its own lock, for rw->lock may be held. */
static struct {
	pthread_mutex_t lock;
	struct waiting *first;
	size_t n;
	bool kept;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the keeper ----------------------------------------------------------------------------- */

/* A signal that @tid would take now. */
static bool has_signal(pid_t tid)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	unsigned long long own = 0, shared = 0, blocked = 0;
	const char *text, *at;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if (io_read_file(AT_FDCWD, path, 64 * 1024, &b) < 0 || !(text = buf_cstr(&b)))
		return false;
	at = strstr(text, "\nSigPnd:");
	return at &&
	       sscanf(at, "\nSigPnd: %llx ShdPnd: %llx SigBlk: %llx", &own, &shared, &blocked) == 3 &&
	       (own | shared) & ~blocked;
}

/* Twice in a row: then it is for this task, no other of its process has taken it. */
static bool should_wake(struct waiting *w)
{
	if (!question_waits(&w->p.q))
		return true;
	w->pending = has_signal(w->p.q.tid) ? w->pending + 1 : 0;
	return w->pending >= 2;
}

static void *keep(void *unused)
{
	for (;;) {
		usleep(LOOK_EVERY_US);
		pthread_mutex_lock(&all.lock);
		for (struct waiting *w = all.first; w; w = w->next)
			if (w->started && should_wake(w))
				pthread_kill(w->thread, WAKE);
		if (!all.first) {
			all.kept = false;
			pthread_mutex_unlock(&all.lock);
			return NULL;
		}
		pthread_mutex_unlock(&all.lock);
	}
}

void view_later_let_go(void)
{
	pthread_mutex_lock(&all.lock);
	for (struct waiting *w = all.first; w; w = w->next)
		if (w->started) {
			w->again = true;
			pthread_kill(w->thread, WAKE);
		}
	pthread_mutex_unlock(&all.lock);
}

static void on_wake(int sig)
{
}

/* ---- one of them ---------------------------------------------------------------------------- */

static void leave(struct waiting *w)
{
	pthread_mutex_lock(&all.lock);
	for (struct waiting **at = &all.first; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	all.n--;
	pthread_mutex_unlock(&all.lock);
	view_place_fini(&w->at);
	close_fd(w->p.mem);
	free(w);
}

static long perform(struct waiting *w)
{
	const struct path_row *row = w->p.row;
	struct view *v = w->p.q.rw->view;
	unsigned how = (row->how ? row->how(w->p.q.data) : 0) | VIEW_WAIT;
	long r;

	if (!v) {
		strcpy(w->at.path, w->path);
		return row->outside(&w->p);
	}
	r = view_in_proc(&w->at) ? 0 : view_walk(v, NULL, w->path, how, &w->at);
	if (r < 0)
		return r;
	if (view_in_proc(&w->at) && w->at.fd >= 0)
		return row->inside(&w->p);
	if (w->at.in && w->at.in->sort == VIEW_MOUNT)
		return row->inside(&w->p);
	/* A /proc that is ours is not walked without the lock. */
	if (w->at.in && v->procfs)
		return -EACCES;
	r = view_place_host(v, &w->at, w->path);
	if (r == 0)
		r = fence_enter(v->fence);
	strcpy(w->at.path, w->path);
	return r < 0 ? r : row->outside(&w->p);
}

static void *answer(void *arg)
{
	struct waiting *w = arg;
	struct seccomp_notif_resp response = {.id = w->p.q.id};
	long r = perform(w);

	if (r == -EINTR)
		r = w->again ? -ERESTARTNOINTR : -ERESTARTSYS;
	if (r < 0)
		response.error = (int)r;
	else
		response.val = r;
	if (!w->p.q.sent)
		ioctl(w->p.q.rw->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
	leave(w);
	return NULL;
}

static int start(void *(*run)(void *), void *arg, pthread_t *ret)
{
	pthread_attr_t attr;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = pthread_create(ret, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return -r;
}

static int start_all(struct waiting *w)
{
	struct sigaction act = {.sa_handler = on_wake};
	pthread_t keeper;
	int r = 0;

	if (!all.kept) {
		sigaction(WAKE, &act, NULL);
		r = start(keep, NULL, &keeper);
		all.kept = r == 0;
	}
	if (r == 0)
		r = start(answer, w, &w->thread);
	w->started = r == 0;
	return r;
}

/* A link of /proc has led to a file: it is taken along, for that walk needs the lock. */
static int take_along(struct waiting *w, const struct view_place *at)
{
	int fd;

	w->at = (struct view_place)VIEW_PLACE_INIT;
	if (!view_in_proc(at) || at->fd < 0)
		return 0;
	fd = fcntl(at->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	w->at.fd = fd;
	w->at.in = at->in;
	w->at.mode = at->mode;
	w->at.has_way = true;
	w->at.way.fd = -1;
	w->at.way.node.dir = -1;
	return 0;
}

int view_later(const struct path_question *p, const char *path)
{
	struct waiting *w;
	char mem[32];
	int r;

	pthread_mutex_lock(&all.lock);
	w = all.n < MAX_WAITING ? calloc(1, sizeof(*w)) : NULL;
	if (!w) {
		pthread_mutex_unlock(&all.lock);
		return -ENOMEM;
	}
	w->p = *p;
	w->p.data = *p->q.data;
	w->p.q.data = &w->p.data;
	w->p.q.asker = NULL;
	w->p.at = &w->at;
	r = take_along(w, p->at);
	snprintf(w->path, sizeof(w->path), "%s", path);
	snprintf(mem, sizeof(mem), "/proc/%d/mem", p->q.tid);
	w->p.mem = open(mem, O_RDWR | O_CLOEXEC);
	if (r == 0 && w->p.mem < 0)
		r = -EACCES;
	if (r == 0) {
		w->next = all.first;
		all.first = w;
		all.n++;
		r = start_all(w);
		if (r < 0) {
			all.first = w->next;
			all.n--;
		}
	}
	pthread_mutex_unlock(&all.lock);
	if (r < 0) {
		view_place_fini(&w->at);
		close_fd(w->p.mem);
		free(w);
	}
	return r;
}

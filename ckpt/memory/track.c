// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in track.h; the ways are in track_wp.c and track_soft.c. */
#include "ckpt/memory/track.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"

#define RESERVED  (1ULL << 30)
#define MIN_PAGES 256 /* a smaller process is copied in less time than it takes to watch it */

struct ckpt_track {
	const struct ckpt_track_way *way;
	int proc_fd; /* the host's */
	uint64_t last_id;
	struct ckpt_space *spaces;
	size_t n, cap;
};

static const struct ckpt_track_way *const ways[] = {&ckpt_track_wp_async, &ckpt_track_soft_dirty};

static const struct ckpt_track_way *choose(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if ((!name || !strcmp(name, ways[i]->name)) && ways[i]->probe())
			return ways[i];
	return NULL;
}

int ckpt_track_new(struct ckpt_track **ret, const char *name, struct err *e)
{
	const struct ckpt_track_way *way = choose(name);
	struct ckpt_track *t;

	if (!way) {
		err_set(e, ERR_HOST, -EOPNOTSUPP,
			"this host can't tell which memory was written to");
		return err_hint(e, "podrun check says what it lacks");
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_errno(e, -ENOMEM, "tracker");
	t->way = way;
	t->proc_fd = proc_open(e);
	if (t->proc_fd < 0) {
		free(t);
		return e->error;
	}
	*ret = t;
	return 0;
}

static void space_fini(struct ckpt_space *s)
{
	s->uffd = close_fd(s->uffd);
	buf_fini(&s->areas);
}

void ckpt_track_free(struct ckpt_track *t)
{
	if (!t)
		return;
	while (t->n)
		space_fini(&t->spaces[--t->n]);
	free(t->spaces);
	close_fd(t->proc_fd);
	free(t);
}

const struct ckpt_track_way *ckpt_track_way(const struct ckpt_track *t)
{
	return t->way;
}

size_t ckpt_track_count(const struct ckpt_track *t)
{
	return t->n;
}

struct ckpt_space *ckpt_track_at(struct ckpt_track *t, size_t i)
{
	return &t->spaces[i];
}

/* ---- who is there ---------------------------------------------------------------------------- */

static bool is_same(const struct ckpt_space *s, const struct ckpt_proc *p)
{
	return s->pid == p->look && s->started == p->status.start_time;
}

static struct ckpt_space *find(const struct ckpt_track *t, const struct ckpt_proc *p)
{
	for (size_t i = 0; i < t->n; i++)
		if (is_same(&t->spaces[i], p))
			return &t->spaces[i];
	return NULL;
}

static struct ckpt_space *add(struct ckpt_track *t, const struct ckpt_proc *p)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 16;
		void *more = reallocarray(t->spaces, cap, sizeof(*t->spaces));

		if (!more)
			return NULL;
		t->spaces = more;
		t->cap = cap;
	}
	t->spaces[t->n] = (struct ckpt_space){
		.id = ++t->last_id, .pid = p->look, .started = p->status.start_time, .uffd = -1};
	return &t->spaces[t->n++];
}

static bool is_large(const struct ckpt_track *t, pid_t pid)
{
	return proc_own_memory(t->proc_fd, pid) >= (int64_t)(MIN_PAGES * PAGE_SIZE);
}

/* Memory whose pages are its own, and come from nowhere. */
static bool is_anonymous(const struct proc_vma *v)
{
	return !v->shared && !v->ino && !v->dev_major && !v->dev_minor &&
	       v->end <= CKPT_TASK_SIZE &&
	       (!*v->path || !strcmp(v->path, "[heap]") || !strcmp(v->path, "[stack]") ||
		       !strncmp(v->path, "[anon:", 6));
}

/*
 * Address space that was only reserved has a page map of gigabytes, where that must be read word by
 * word.
 */
static bool is_reserve(const struct proc_vma *v)
{
	return v->end - v->start >= RESERVED && !v->anonymous_kb && !v->swap_kb;
}

static int find_areas(const struct ckpt_track *t, struct ckpt_space *s, struct err *e)
{
	struct proc_maps maps = {0};
	bool by_word = !t->way->flag;
	int r = proc_read_maps(t->proc_fd, s->pid, by_word, &maps, e);

	if (r < 0)
		return r;
	buf_clear(&s->areas);
	for (size_t i = 0; i < maps.n; i++) {
		struct ckpt_run run = {maps.vmas[i].start, maps.vmas[i].end};

		if (is_anonymous(&maps.vmas[i]) && !(by_word && is_reserve(&maps.vmas[i])))
			buf_put(&s->areas, &run, sizeof(run));
	}
	proc_maps_fini(&maps);
	return buf_error(&s->areas) ? err_errno(e, -ENOMEM, "tracker") : 0;
}

/* Another program has taken the place of the one that was watched: it is a new space. */
static int begin(struct ckpt_track *t, struct ckpt_space *s, struct ckpt_dump *d,
	struct ckpt_proc *p, struct err *e)
{
	int r;

	s->uffd = close_fd(s->uffd);
	s->id = ++t->last_id;
	s->taken = false;
	r = t->way->begin(s, d, p, e);
	if (r != -EOPNOTSUPP)
		return r;
	log_info("task %d can't be watched: %s", p->vpid, e->msg);
	*e = (struct err){0};
	s->refused = true;
	return 0;
}

static int arm(struct ckpt_track *t, struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	struct ckpt_space *s = find(t, p);
	int r = 0;

	if (!s && !is_large(t, p->look))
		return 0;
	if (!s) {
		s = add(t, p);
		if (!s)
			return err_errno(e, -ENOMEM, "tracker");
		r = begin(t, s, d, p, e);
	}
	s->seen = true;
	if (r == 0 && !s->refused)
		r = find_areas(t, s, e);
	if (r == 0 && !s->refused)
		r = t->way->cover(s, t->proc_fd, e);
	if (r != -ESTALE)
		return r;
	*e = (struct err){0};
	r = begin(t, s, d, p, e);
	return r == 0 && !s->refused ? t->way->cover(s, t->proc_fd, e) : r;
}

int ckpt_track_arm(struct ckpt_track *t, struct ckpt_dump *d, struct err *e)
{
	size_t k = 0;
	int r = 0;

	for (size_t i = 0; i < t->n; i++)
		t->spaces[i].seen = false;
	for (size_t i = 0; i < d->n_procs && r == 0; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (p->state != CKPT_ZOMBIE && p->mm == p->vpid && arm(t, d, p, e) < 0)
			r = err_wrap(e, "task %d (%s)", p->vpid, p->status.comm);
	}
	for (size_t i = 0; i < t->n && r == 0; i++) {
		if (t->spaces[i].seen)
			t->spaces[k++] = t->spaces[i];
		else
			space_fini(&t->spaces[i]);
	}
	if (r == 0)
		t->n = k;
	return r;
}

/* ---- what was written to --------------------------------------------------------------------- */

int ckpt_track_take(struct ckpt_track *t, struct ckpt_space *s, struct buf *runs, struct err *e)
{
	int r = s->refused ? 0 : t->way->take(s, t->proc_fd, runs, e);

	/*
	 * it has ended, or is about to: or it may not be looked at any more, and what it wrote to
	 * stays so
	 */
	if (r == -ESRCH || r == -ENOENT || r == -EACCES || r == -EPERM) {
		*e = (struct err){0};
		return 0;
	}
	if (r == 0 && buf_error(runs))
		return err_errno(e, -ENOMEM, "tracker");
	s->taken = s->taken || r == 0;
	return r;
}

struct ckpt_space *ckpt_track_of(const struct ckpt_track *t, const struct ckpt_proc *p)
{
	struct ckpt_space *s = t ? find(t, p) : NULL;

	return s && s->taken && !s->refused ? s : NULL;
}

bool ckpt_track_watches(const struct ckpt_track *t, const struct proc_vma *v)
{
	return is_anonymous(v) && (!t->way->flag || proc_vma_has(v, t->way->flag));
}

int ckpt_track_look(const struct ckpt_track *t, int pagemap, const struct proc_vma *v,
	struct buf *dirty, struct buf *clean, struct buf *guards, struct err *e)
{
	int r = t->way->look(pagemap, v->start, v->end, dirty, clean, guards);

	if (r == 0 && (buf_error(dirty) || buf_error(clean) || (guards && buf_error(guards))))
		r = -ENOMEM;
	return r < 0 ? err_errno(e, r, "reading the page map at %llx", (unsigned long long)v->start)
		     : 0;
}

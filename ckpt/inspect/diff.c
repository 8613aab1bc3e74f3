// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in diff.h. */
#include "ckpt/inspect/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/kind.h"
#include "proto/memory.pb-c.h"
#include "proto/tasks.pb-c.h"

/* One process in both images. */
struct pair {
	struct ckpt_diff_text *t;
	struct ckpt_inspect *a, *b;
	const struct ckpt_build_proc *was, *is;
};

/* ---- records --------------------------------------------------------------------------------- */

/* What a kind says of its record (@bare: ckpt/kind.h), by its name; free(3) it. */
static char *record_text(const struct ckpt_record *r, bool bare)
{
	char *text = NULL;
	size_t len;
	FILE *room = open_memstream(&text, &len);

	if (!room)
		return NULL;
	if (r->kind->show)
		r->kind->show(r->body, r->len, bare, room);
	fflush(room);
	if (ferror(room) || !text) {
		fclose(room);
		free(text);
		return NULL;
	}
	if (strncmp(text, r->kind->name, strlen(r->kind->name)) != 0)
		fprintf(room, "%s(%s)", *text ? " " : "", r->kind->name);
	if (fclose(room) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static bool same_record(struct pair *p, uint32_t kind, uint64_t subject)
{
	const struct ckpt_record *x = ckpt_build_record(&p->a->b, kind, subject);
	const struct ckpt_record *y = ckpt_build_record(&p->b->b, kind, subject);

	if (!x || !y)
		return !x && !y;
	return x->len == y->len && memcmp(x->body, y->body, x->len) == 0;
}

/* Kinds that have nothing to say but that something of them has changed. */
static void tell_kind(struct ckpt_diff_text *t, const struct ckpt_kind *kind, FILE *out)
{
	fprintf(out, t->json ? "\"kind\":\"%s\"}" : "%s changed\n", kind->name);
}

static void compare_kinds(struct pair *p)
{
	static const uint32_t kinds[] = {PROTO_KIND_FS, PROTO_KIND_SIGACTIONS, PROTO_KIND_PENDING,
		PROTO_KIND_ITIMERS, PROTO_KIND_POSIX_TIMERS, PROTO_KIND_CREDS, PROTO_KIND_RLIMITS,
		PROTO_KIND_PRCTL};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!same_record(p, kinds[i], (uint64_t)p->is->vpid))
			tell_kind(
				p->t, ckpt_kind_by_number(kinds[i]), ckpt_diff_part(p->t, "other"));
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static Pb__Fdtable *table_of(struct ckpt_inspect *in, const struct ckpt_build_proc *p)
{
	const struct ckpt_record *r =
		ckpt_build_record(&in->b, PROTO_KIND_FDTABLE, (uint64_t)p->files);

	return r ? pb__fdtable__unpack(NULL, r->len, r->body) : NULL;
}

static const struct ckpt_record *file_of(struct ckpt_inspect *in, const Pb__FdEntry *f)
{
	const struct ckpt_build_file *file = f ? ckpt_build_file(&in->b, f->file) : NULL;

	return file ? file->record : NULL;
}

static bool same_text(const struct ckpt_record *x, const struct ckpt_record *y)
{
	_cleanup_free_ char *was = record_text(x, true), *is = record_text(y, true);

	return was && is && strcmp(was, is) == 0;
}

/* Of one kind: bytes on their way, and contents of files that have no name. */
static bool same_bytes(struct pair *p, const struct ckpt_record *x, const struct ckpt_record *y)
{
	uint64_t was = ckpt_inspect_object(x), is = ckpt_inspect_object(y);
	uint32_t kind = y->kind->number;

	return ckpt_inspect_same(p->a, was, p->b, is, kind, UINT64_MAX) == 1;
}

static void describe_fd(struct buf *ret, const char *text, const Pb__FdEntry *f, bool contents)
{
	buf_printf(ret, "%s%s%s", text, f->cloexec ? ", close-on-exec" : "",
		contents ? ", other contents" : "");
}

static int compare_fd(struct pair *p, const Pb__FdEntry *f, const Pb__FdEntry *g, struct err *e)
{
	const struct ckpt_record *x = file_of(p->a, f), *y = file_of(p->b, g);
	_cleanup_free_ char *was = x ? record_text(x, false) : NULL,
			    *is = y ? record_text(y, false) : NULL;
	bool bytes = x && y && x->kind == y->kind && !same_bytes(p, x, y);
	bool same = x && y && f->cloexec == g->cloexec && !bytes && same_text(x, y);
	_cleanup_buf_ struct buf before = BUF_INIT, now = BUF_INIT;
	FILE *out;

	if ((x && !was) || (y && !is))
		return err_errno(e, -ENOMEM, "descriptors");
	if (same || (!x && !y))
		return 0;
	if (x)
		describe_fd(&before, was, f, false);
	if (y)
		describe_fd(&now, is, g, bytes);
	if (!buf_cstr(&before) || !buf_cstr(&now))
		return err_errno(e, -ENOMEM, "descriptors");
	out = ckpt_diff_part(p->t, "descriptors");
	fprintf(out, p->t->json ? "\"fd\":%d" : "descriptor %d: ", f ? f->fd : g->fd);
	ckpt_diff_change(p->t, x ? buf_cstr(&before) : NULL, y ? buf_cstr(&now) : NULL);
	return 0;
}

static int compare_descriptors(struct pair *p, struct err *e)
{
	Pb__Fdtable *was = table_of(p->a, p->was), *is = table_of(p->b, p->is);
	size_t n = was ? was->n_entries : 0, m = is ? is->n_entries : 0;
	int r = 0;

	for (size_t i = 0, k = 0; r == 0 && (i < n || k < m);) {
		const Pb__FdEntry *f = i < n ? was->entries[i] : NULL,
				  *g = k < m ? is->entries[k] : NULL;

		if (f && g && f->fd != g->fd)
			*(f->fd < g->fd ? &g : &f) = NULL;
		i += f != NULL;
		k += g != NULL;
		r = compare_fd(p, f, g, e);
	}
	pb__fdtable__free_unpacked(was, NULL);
	pb__fdtable__free_unpacked(is, NULL);
	return r;
}

/* ---- one process ----------------------------------------------------------------------------- */

static bool has_thread(const struct ckpt_build_proc *p, pid_t vtid)
{
	for (size_t i = 0; i < p->n_threads; i++)
		if (p->threads[i].vtid == vtid)
			return true;
	return false;
}

static void compare_threads(struct ckpt_diff_text *t, const struct ckpt_build_proc *p,
	const struct ckpt_build_proc *other, bool added)
{
	const char *change = added ? "new" : "gone";

	for (size_t i = 0; i < p->n_threads; i++) {
		if (has_thread(other, p->threads[i].vtid))
			continue;
		fprintf(ckpt_diff_part(t, "threads"),
			t->json ? "\"tid\":%d,\"change\":\"%s\"}" : "thread %d is %s\n",
			p->threads[i].vtid, change);
	}
}

static void tell_change(struct ckpt_diff_text *t, const char *what, const char *was, const char *is)
{
	if (strcmp(was, is) == 0)
		return;
	fprintf(ckpt_diff_part(t, "process"), t->json ? "\"what\":\"%s\"" : "%s: ", what);
	ckpt_diff_change(t, was, is);
}

static void tell_number(struct ckpt_diff_text *t, const char *what, int was, int is)
{
	char x[16], y[16];

	snprintf(x, sizeof(x), "%d", was);
	snprintf(y, sizeof(y), "%d", is);
	tell_change(t, what, x, y);
}

static const char *state_of(const Pb__Task *t)
{
	static const char *const states[] = {"running", "stopped", "a zombie"};

	return (unsigned)t->state < ARRAY_SIZE(states) ? states[t->state] : "?";
}

static void compare_task(struct ckpt_diff_text *t, const Pb__Task *x, const Pb__Task *y)
{
	tell_change(t, "name", x->name, y->name);
	tell_change(t, "state", state_of(x), state_of(y));
	tell_number(t, "parent", x->ppid, y->ppid);
	tell_number(t, "group", x->pgid, y->pgid);
	tell_number(t, "session", x->sid, y->sid);
}

static const char *program_of(const struct ckpt_space *s)
{
	return s->mm->exe ? s->mm->exe->path : "";
}

static int compare_spaces(struct pair *p, struct err *e)
{
	struct ckpt_space a, b;
	int r;

	/* Memory that several have is told of with the first of them. */
	if (p->is->mm != p->is->vpid || p->was->mm != p->was->vpid)
		return 0;
	r = ckpt_space_open(&a, p->a, p->was, e);
	if (r < 0)
		return r;
	r = ckpt_space_open(&b, p->b, p->is, e);
	if (r == 0) {
		tell_change(p->t, "program", program_of(&a), program_of(&b));
		/* Nothing of another program's memory is the same. */
		if (strcmp(program_of(&a), program_of(&b)) == 0)
			r = ckpt_diff_memory(p->t, &a, &b, e);
		ckpt_space_close(&b);
	}
	ckpt_space_close(&a);
	return r;
}

static int compare_process(struct pair *p, const Pb__Task *x, const Pb__Task *y, struct err *e)
{
	int r = 0;

	ckpt_diff_process(p->t, p->is->vpid, y->name);
	compare_task(p->t, x, y);
	if (!p->was->zombie && !p->is->zombie) {
		compare_threads(p->t, p->was, p->is, false);
		compare_threads(p->t, p->is, p->was, true);
		r = compare_spaces(p, e);
		if (r == 0)
			r = compare_descriptors(p, e);
		if (r == 0)
			compare_kinds(p);
	}
	ckpt_diff_process_end(p->t);
	return r;
}

static void tell_process(
	struct ckpt_diff_text *t, const struct ckpt_build_proc *p, const Pb__Task *task, bool added)
{
	FILE *out = ckpt_diff_item(t);

	fprintf(out, t->json ? "\"pid\":%d,\"name\":\"" : "process %d (", p->vpid);
	(t->json ? text_put_json : text_put)(out, task->name);
	fprintf(out, t->json ? "\",\"change\":\"%s\"}" : ") is %s\n", added ? "new" : "gone");
}

static int compare_processes(
	struct ckpt_diff_text *t, struct ckpt_inspect *a, struct ckpt_inspect *b, struct err *e)
{
	int r = 0;

	ckpt_diff_list(t, "processes");
	for (size_t i = 0, k = 0; r == 0 && (i < a->b.n_procs || k < b->b.n_procs);) {
		struct pair p = {.t = t,
			.a = a,
			.b = b,
			.was = i < a->b.n_procs ? &a->b.procs[i] : NULL,
			.is = k < b->b.n_procs ? &b->b.procs[k] : NULL};
		Pb__Task *x, *y;

		if (p.was && p.is && p.was->vpid != p.is->vpid)
			*(p.was->vpid < p.is->vpid ? &p.is : &p.was) = NULL;
		x = p.was ? pb__task__unpack(NULL, p.was->record->len, p.was->record->body) : NULL;
		y = p.is ? pb__task__unpack(NULL, p.is->record->len, p.is->record->body) : NULL;
		if ((p.was && !x) || (p.is && !y))
			r = err_set(e, ERR_IMAGE, -EBADMSG, "a task's record is damaged");
		else if (p.was && p.is)
			r = compare_process(&p, x, y, e);
		else
			tell_process(t, p.is ? p.is : p.was, p.is ? y : x, p.is);
		i += p.was != NULL;
		k += p.is != NULL;
		pb__task__free_unpacked(x, NULL);
		pb__task__free_unpacked(y, NULL);
	}
	return r;
}

/* ---- the session ----------------------------------------------------------------------------- */

static void compare_session(
	struct ckpt_diff_text *t, struct ckpt_inspect *a, struct ckpt_inspect *b)
{
	static const uint32_t kinds[] = {PROTO_KIND_SYSV_SHM, PROTO_KIND_SYSV_SEM,
		PROTO_KIND_SYSV_MSG, PROTO_KIND_MQUEUE, PROTO_KIND_DEVSHM, PROTO_KIND_CPU,
		PROTO_KIND_SECCOMP, PROTO_KIND_NESTED};
	struct pair p = {.t = t, .a = a, .b = b};

	ckpt_diff_list(t, "session");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!same_record(&p, kinds[i], 0) ||
			ckpt_inspect_same(a, 0, b, 0, kinds[i], UINT64_MAX) != 1)
			tell_kind(t, ckpt_kind_by_number(kinds[i]), ckpt_diff_item(t));
}

int ckpt_image_diff(
	const struct ckpt_image *a, const struct ckpt_image *b, FILE *out, bool json, struct err *e)
{
	struct ckpt_inspect *was, *is;
	struct ckpt_diff_text t;
	int r = ckpt_inspect_open(&was, a, true, e);

	if (r < 0)
		return err_wrap(e, "the first image");
	r = ckpt_inspect_open(&is, b, true, e);
	if (r < 0) {
		ckpt_inspect_close(was);
		return err_wrap(e, "the second image");
	}
	ckpt_diff_begin(&t, out, json);
	r = compare_processes(&t, was, is, e);
	if (r == 0) {
		ckpt_diff_list(&t, "files");
		r = ckpt_diff_files(&t, was, is, e);
	}
	if (r == 0)
		compare_session(&t, was, is);
	ckpt_diff_end(&t);
	ckpt_inspect_close(is);
	ckpt_inspect_close(was);
	return r < 0 ? r : t.any;
}

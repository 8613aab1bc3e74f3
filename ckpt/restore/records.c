// SPDX-License-Identifier: GPL-2.0-or-later
/* Read in the order of the image, then sorted: a record is found by its kind and subject. */
#include "ckpt/restore/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/nested/build.h"
#include "proto/tasks.pb-c.h"

#define MAX_RECORDS (4u << 20)
#define MAX_BYTES   (1UL << 30)
#define MAX_THREADS (1u << 20) /* of all processes */

static size_t rank(const struct ckpt_kind *k)
{
	size_t i = 0;

	while (ckpt_kinds[i] != k)
		i++;
	return i;
}

static int compare(const void *x, const void *y)
{
	const struct ckpt_record *a = x, *b = y;
	size_t ka = rank(a->kind), kb = rank(b->kind);

	if (ka != kb)
		return ka < kb ? -1 : 1;
	return a->subject < b->subject ? -1 : a->subject > b->subject;
}

struct ckpt_record *ckpt_build_record(struct ckpt_build *b, uint32_t kind, uint64_t subject)
{
	const struct ckpt_record key = {.kind = ckpt_kind_by_number(kind), .subject = subject};

	if (!key.kind || !b->n_records)
		return NULL;
	return bsearch(&key, b->records, b->n_records, sizeof(key), compare);
}

struct ckpt_build_proc *ckpt_build_proc(struct ckpt_build *b, pid_t vpid)
{
	size_t lo = 0, hi = b->n_procs;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (b->procs[mid].vpid < vpid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < b->n_procs && b->procs[lo].vpid == vpid ? &b->procs[lo] : NULL;
}

struct ckpt_build_thread *ckpt_build_thread(struct ckpt_build *b, pid_t vtid)
{
	struct ckpt_build_proc *p = ckpt_build_proc(b, vtid);

	if (p)
		return p->n_threads && p->threads[0].vtid == vtid ? &p->threads[0] : NULL;
	for (size_t i = 0; i < b->n_procs; i++)
		for (size_t k = 0; k < b->procs[i].n_threads; k++)
			if (b->procs[i].threads[k].vtid == vtid)
				return &b->procs[i].threads[k];
	return NULL;
}

struct ckpt_build_file *ckpt_build_file(struct ckpt_build *b, uint32_t id)
{
	return id >= 1 && id <= b->n_files ? &b->files[id - 1] : NULL;
}

int ckpt_records_wrap(struct ckpt_build *b, const struct ckpt_record *r, struct err *e)
{
	switch (r->kind->scope) {
	case CKPT_PROC:
		return err_wrap(e, "task %llu: %s", (unsigned long long)r->subject, r->kind->name);
	case CKPT_THREAD:
		return err_wrap(e, "thread %llu: %s", (unsigned long long)r->subject,
			r->kind->name);
	case CKPT_FILE:
		return err_wrap(e, "file %llu: %s", (unsigned long long)r->subject, r->kind->name);
	default:
		return err_wrap(e, "%s", r->kind->name);
	}
}

static int take_record(struct ckpt_build *b, const struct proto_frame *f, size_t *cap,
	size_t *bytes, struct err *e)
{
	const struct ckpt_kind *kind = ckpt_kind_by_number(f->kind);
	uint8_t *body;

	if (!kind)
		return err_set(e, ERR_IMAGE, -EINVAL,
			"the image has a record of kind %u, which this podrun does not know",
			f->kind);
	*bytes += f->len;
	if (b->n_records == MAX_RECORDS || *bytes > MAX_BYTES)
		return err_set(e, ERR_IMAGE, -E2BIG, "the image has too many records");
	if (b->n_records == *cap) {
		size_t more = *cap ? 2 * *cap : 256;
		void *p = reallocarray(b->records, more, sizeof(*b->records));

		if (!p)
			return err_errno(e, -ENOMEM, "records");
		b->records = p;
		*cap = more;
	}
	body = malloc(f->len + 1);
	if (!body)
		return err_errno(e, -ENOMEM, "records");
	memcpy(body, f->data, f->len);
	b->records[b->n_records++] = (struct ckpt_record){
		.kind = kind, .subject = f->subject, .body = body, .len = f->len};
	return 0;
}

static int read_all(struct ckpt_build *b, struct err *e)
{
	size_t cap = 0, bytes = 0;
	struct proto_frame f;
	int r;

	for (;;) {
		r = proto_read(b->in, &f, e);
		if (r < 0)
			return r;
		if (f.type != PROTO_RECORD) {
			proto_unread(b->in);
			return 0;
		}
		r = take_record(b, &f, &cap, &bytes, e);
		if (r < 0)
			return r;
	}
}

static int index_files(struct ckpt_build *b, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n_records; i++)
		n += b->records[i].kind->scope == CKPT_FILE;
	b->files = calloc(n + 1, sizeof(*b->files));
	if (!b->files)
		return err_errno(e, -ENOMEM, "files");
	b->n_files = n;
	for (size_t i = 0; i < n; i++)
		b->files[i] = (struct ckpt_build_file){.id = (uint32_t)i + 1, .fd = -1};
	for (size_t i = 0; i < b->n_records; i++) {
		struct ckpt_record *r = &b->records[i];
		struct ckpt_build_file *f;

		if (r->kind->scope != CKPT_FILE)
			continue;
		f = r->subject <= n ? ckpt_build_file(b, (uint32_t)r->subject) : NULL;
		if (!f || f->record)
			return err_set(e, ERR_IMAGE, -EINVAL, "file %llu is out of order",
				(unsigned long long)r->subject);
		f->record = r;
	}
	return 0;
}

static int index_procs(struct ckpt_build *b, struct err *e)
{
	size_t n = 0, threads = 0;
	int r;

	for (size_t i = 0; i < b->n_records; i++)
		n += b->records[i].kind->number == PROTO_KIND_TASK;
	b->procs = calloc(n + 1, sizeof(*b->procs));
	if (!b->procs)
		return err_errno(e, -ENOMEM, "processes");
	for (size_t i = 0; i < b->n_records; i++) {
		struct ckpt_record *rec = &b->records[i];
		struct ckpt_build_proc *p = &b->procs[b->n_procs];

		if (rec->kind->number != PROTO_KIND_TASK)
			continue;
		r = ckpt_task_read(rec, p, e);
		if (r < 0)
			return r;
		p->record = rec;
		b->n_procs++;
		threads += p->n_threads;
		if (threads > MAX_THREADS)
			return err_set(e, ERR_IMAGE, -E2BIG, "the image has too many threads");
	}
	return 0;
}

static int compare_ids(const void *x, const void *y)
{
	const pid_t *a = x, *b = y;

	return *a < *b ? -1 : *a > *b;
}

/* No number may be given twice: neither to processes nor to threads. */
static int check_numbers(struct ckpt_build *b, struct err *e)
{
	_cleanup_free_ pid_t *ids = NULL;
	size_t n = 0, k = 0;

	for (size_t i = 0; i < b->n_procs; i++)
		n += MAX(b->procs[i].n_threads, (size_t)1);
	ids = calloc(n + 1, sizeof(*ids));
	if (!ids)
		return err_errno(e, -ENOMEM, "threads");
	for (size_t i = 0; i < b->n_procs; i++) {
		const struct ckpt_build_proc *p = &b->procs[i];

		ids[k++] = p->vpid;
		for (size_t t = 1; t < p->n_threads; t++)
			ids[k++] = p->threads[t].vtid;
	}
	sort_array(ids, k, sizeof(*ids), compare_ids);
	for (size_t i = 1; i < k; i++)
		if (ids[i] == ids[i - 1])
			return err_set(e, ERR_IMAGE, -EINVAL, "number %d is given twice", ids[i]);
	return 0;
}

static int check_subjects(struct ckpt_build *b, struct err *e)
{
	for (size_t i = 0; i < b->n_records; i++) {
		const struct ckpt_record *r = &b->records[i];
		bool ok = true;

		if (i && compare(r - 1, r) == 0)
			return err_set(e, ERR_IMAGE, -EEXIST, "two %s records of %llu",
				r->kind->name, (unsigned long long)r->subject);
		if (r->kind->scope == CKPT_PROC)
			ok = r->subject <= INT32_MAX && ckpt_build_proc(b, (pid_t)r->subject);
		else if (r->kind->scope == CKPT_SESSION)
			ok = r->subject == 0;
		if (!ok)
			return err_set(e, ERR_IMAGE, -EINVAL, "a %s record of %llu, which there is not",
				r->kind->name, (unsigned long long)r->subject);
	}
	/* Every thread has registers to load; then none too many has any. */
	for (size_t i = 0; i < b->n_procs; i++)
		for (size_t k = b->procs[i].headless; k < b->procs[i].n_threads; k++)
			if (!ckpt_build_record(b, PROTO_KIND_THREAD,
				    (uint64_t)b->procs[i].threads[k].vtid))
				return err_set(e, ERR_IMAGE, -EINVAL, "thread %d has no registers",
					b->procs[i].threads[k].vtid);
	return 0;
}

static int take_apart(struct ckpt_build *b, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < b->n_records && r == 0; i++) {
		struct ckpt_record *rec = &b->records[i];

		if (rec->kind->read && rec->kind->read(rec, e) < 0)
			r = ckpt_records_wrap(b, rec, e);
	}
	return r;
}

int ckpt_records_read(struct ckpt_build *b, struct err *e)
{
	int r = read_all(b, e);

	if (r < 0)
		return r;
	sort_array(b->records, b->n_records, sizeof(*b->records), compare);
	r = index_files(b, e);
	if (r == 0)
		r = index_procs(b, e);
	/* index_procs keeps addresses of records, which stay where they are from here on */
	if (r == 0)
		r = check_numbers(b, e);
	if (r == 0)
		r = check_subjects(b, e);
	if (r == 0)
		r = ckpt_nested_load(b, e);
	if (r == 0)
		r = take_apart(b, e);
	return r;
}

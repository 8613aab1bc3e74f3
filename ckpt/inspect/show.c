// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An image as text.  Nothing here trusts it: kinds' show functions parse hostile bodies, and what
 * they print is cleaned of control characters on its way out.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/kind.h"
#include "proto/config.pb-c.h"
#include "proto/files.pb-c.h"
#include "proto/memory.pb-c.h"

static void show_config(const void *body, size_t len, FILE *out)
{
	Pb__Config *c = pb__config__unpack(NULL, len, body);

	if (!c)
		return;
	fputs(c->name, out);
	for (size_t i = 0; i < c->n_argv; i++)
		fprintf(out, "%s%s", i ? " " : ": ", c->argv[i]);
	pb__config__free_unpacked(c, NULL);
}

static void show_world(const void *body, size_t len, FILE *out)
{
	Pb__World *w = pb__world__unpack(NULL, len, body);

	if (!w)
		return;
	fprintf(out, "frozen on %s under Linux %s, started commands: %zu", w->host, w->kernel, w->n_jobs);
	pb__world__free_unpacked(w, NULL);
}

static void show_tree(const void *body, size_t len, FILE *out)
{
	Pb__Tree *t = pb__tree__unpack(NULL, len, body);
	uint64_t bytes = 0;

	for (size_t i = 0; t && i < t->n_entries; i++)
		bytes += t->entries[i]->size;
	if (t && t->n_entries)
		fprintf(out, "%zu files of %llu bytes, from %.*s", t->n_entries,
			(unsigned long long)bytes, (int)t->entries[0]->path.len,
			(const char *)t->entries[0]->path.data);
	pb__tree__free_unpacked(t, NULL);
}

static void show_base(const void *body, size_t len, FILE *out)
{
	Pb__Base *b = pb__base__unpack(NULL, len, body);

	if (b)
		fprintf(out, "pages of it are in %s", b->file);
	pb__base__free_unpacked(b, NULL);
}

/* Records which the supervisor writes have no kind in the table. */
static const struct {
	const char *name;
	void (*show)(const void *body, size_t len, FILE *out);
} outer_kinds[] = {
	[PROTO_KIND_CONFIG] = {"config", show_config},
	[PROTO_KIND_TREE] = {"tree", show_tree},
	[PROTO_KIND_WORLD] = {"world", show_world},
	[PROTO_KIND_AHEAD] = {"ahead", NULL},
	[PROTO_KIND_BASE] = {"base", show_base},
};

static const char *kind_name(uint32_t number, char unknown[16])
{
	const struct ckpt_kind *k = ckpt_kind_by_number(number);

	if (k)
		return k->name;
	if (number < ARRAY_SIZE(outer_kinds) && outer_kinds[number].name)
		return outer_kinds[number].name;
	snprintf(unknown, 16, "kind%u", number);
	return unknown;
}

/* Bulk data of one record, summed up while its frames pass. */
struct tally {
	uint32_t kind;
	uint64_t subject, frames, bytes;
};

static void show_tally(struct tally *t, FILE *out, bool json)
{
	char unknown[16];
	const char *name = kind_name(t->kind, unknown);

	if (!t->frames)
		return;
	if (json)
		fprintf(out, "{\"kind\":\"%s\",\"subject\":%llu,\"data\":%llu,\"frames\":%llu}\n",
			name, (unsigned long long)t->subject, (unsigned long long)t->bytes,
			(unsigned long long)t->frames);
	else
		fprintf(out, "%s %llu: %llu bytes of data in %llu frames\n", name,
			(unsigned long long)t->subject, (unsigned long long)t->bytes,
			(unsigned long long)t->frames);
	t->frames = t->bytes = 0;
}

static int show_record(const struct proto_frame *f, FILE *out, bool json, struct err *e)
{
	const struct ckpt_kind *k = ckpt_kind_by_number(f->kind);
	_cleanup_free_ char *text = NULL;
	char unknown[16];
	size_t len = 0;
	FILE *room = open_memstream(&text, &len);

	if (!room)
		return err_errno(e, -errno, "show");
	if (k && k->show)
		k->show(f->data, f->len, false, room);
	else if (!k && f->kind < ARRAY_SIZE(outer_kinds) && outer_kinds[f->kind].show)
		outer_kinds[f->kind].show(f->data, f->len, room);
	if (fclose(room) != 0)
		return err_errno(e, -errno, "show");
	if (json) {
		fprintf(out, "{\"kind\":\"%s\",\"subject\":%llu,\"bytes\":%zu,\"text\":\"",
			kind_name(f->kind, unknown), (unsigned long long)f->subject, f->len);
		text_put_json(out, text);
		fputs("\"}\n", out);
		return 0;
	}
	fprintf(out, "%s %llu: ", kind_name(f->kind, unknown), (unsigned long long)f->subject);
	if (len)
		text_put(out, text);
	else
		fprintf(out, "%zu bytes", f->len);
	putc('\n', out);
	return 0;
}

int ckpt_image_show(struct proto_reader *in, FILE *out, bool json, struct err *e)
{
	struct tally t = {0};
	struct proto_frame f;

	for (;;) {
		int r = proto_read(in, &f, e);

		if (r < 0)
			return r;
		if (f.type != PROTO_DATA || f.kind != t.kind || f.subject != t.subject)
			show_tally(&t, out, json);
		if (f.type == PROTO_END)
			return 0;
		if (f.type == PROTO_DATA) {
			t.kind = f.kind;
			t.subject = f.subject;
			t.frames++;
			t.bytes += f.len;
			continue;
		}
		r = show_record(&f, out, json, e);
		if (r < 0)
			return r;
	}
}

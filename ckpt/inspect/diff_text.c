// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "base/base.h"
#include "ckpt/inspect/diff.h"

void ckpt_diff_begin(struct ckpt_diff_text *t, FILE *out, bool json)
{
	*t = (struct ckpt_diff_text){.out = out, .json = json};
	if (json)
		putc('{', out);
}

static void end_list(struct ckpt_diff_text *t)
{
	if (t->json && t->list)
		putc(']', t->out);
	t->list = NULL;
}

void ckpt_diff_end(struct ckpt_diff_text *t)
{
	end_list(t);
	if (t->json)
		fputs("}\n", t->out);
}

void ckpt_diff_list(struct ckpt_diff_text *t, const char *list)
{
	end_list(t);
	t->list = list;
	if (t->json)
		fprintf(t->out, "%s\"%s\":[", t->more_lists ? "," : "", list);
	t->more_lists = true;
	t->more_items = false;
}

FILE *ckpt_diff_item(struct ckpt_diff_text *t)
{
	if (t->json)
		fputs(t->more_items ? ",{" : "{", t->out);
	t->more_items = true;
	t->any = true;
	return t->out;
}

void ckpt_diff_process(struct ckpt_diff_text *t, pid_t pid, const char *name)
{
	t->pid = pid;
	t->name = name;
	t->headed = false;
	t->part = NULL;
}

static void put_head(struct ckpt_diff_text *t)
{
	ckpt_diff_item(t);
	if (t->json) {
		fprintf(t->out, "\"pid\":%d,\"name\":\"", t->pid);
		text_put_json(t->out, t->name);
		putc('"', t->out);
	} else {
		fprintf(t->out, "process %d (", t->pid);
		text_put(t->out, t->name);
		fputs(")\n", t->out);
	}
	t->headed = true;
}

void ckpt_diff_process_end(struct ckpt_diff_text *t)
{
	if (t->headed && t->json)
		fputs(t->part ? "]}" : "}", t->out);
	t->part = NULL;
	t->headed = false;
}

FILE *ckpt_diff_part(struct ckpt_diff_text *t, const char *part)
{
	if (!t->headed)
		put_head(t);
	if (!t->json) {
		fputs("  ", t->out);
	} else if (!t->part || strcmp(t->part, part) != 0) {
		fprintf(t->out, "%s,\"%s\":[{", t->part ? "]" : "", part);
	} else {
		fputs(",{", t->out);
	}
	t->part = part;
	return t->out;
}

static void put_value(struct ckpt_diff_text *t, const char *key, const char *value)
{
	if (!value)
		return;
	fprintf(t->out, ",\"%s\":\"", key);
	text_put_json(t->out, value);
	putc('"', t->out);
}

void ckpt_diff_change(struct ckpt_diff_text *t, const char *was, const char *is)
{
	if (t->json) {
		put_value(t, "was", was);
		put_value(t, "is", is);
		putc('}', t->out);
		return;
	}
	text_put(t->out, is ? is : was);
	if (is && was) {
		fputs(", was ", t->out);
		text_put(t->out, was);
	} else {
		fputs(is ? " (new)" : " (gone)", t->out);
	}
	putc('\n', t->out);
}

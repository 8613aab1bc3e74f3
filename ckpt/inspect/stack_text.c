// SPDX-License-Identifier: GPL-2.0-or-later
/* The same calls write lines for people or an array for programs. */
#include "ckpt/inspect/stack_text.h"

#include "base/base.h"

void ckpt_stack_begin(struct ckpt_stack_text *t, FILE *out, bool json)
{
	*t = (struct ckpt_stack_text){.out = out, .json = json};
	if (json)
		putc('[', out);
}

void ckpt_stack_end(struct ckpt_stack_text *t)
{
	if (t->json)
		fputs("]\n", t->out);
}

void ckpt_stack_process(struct ckpt_stack_text *t, pid_t vpid, const char *comm, bool ended)
{
	if (t->json)
		return;
	fprintf(t->out, "task %d (", vpid);
	text_put(t->out, comm);
	fputs(ended ? ") has ended\n" : ")\n", t->out);
}

void ckpt_stack_thread(struct ckpt_stack_text *t, pid_t vpid, pid_t vtid, const char *comm)
{
	if (t->json) {
		fprintf(t->out, "%s{\"pid\":%d,\"tid\":%d,\"comm\":\"", t->more ? ",\n" : "", vpid,
			vtid);
		text_put_json(t->out, comm);
		fputs("\",\"frames\":[", t->out);
		t->more = true;
	} else {
		fprintf(t->out, "  thread %d (", vtid);
		text_put(t->out, comm);
		fputs(")\n", t->out);
	}
}

void ckpt_stack_thread_end(struct ckpt_stack_text *t)
{
	if (t->json)
		fputs("]}", t->out);
}

static void print_text(const struct ckpt_stack_frame *f, FILE *out)
{
	fprintf(out, "    #%-2d 0x%016llx ", f->number, (unsigned long long)f->ip);
	if (f->function) {
		text_put(out, f->function);
		fprintf(out, "+0x%llx", (unsigned long long)f->into);
	} else {
		putc('?', out);
	}
	if (f->file) {
		fputs(" (", out);
		text_put(out, f->file);
		fprintf(out, "+0x%llx)", (unsigned long long)f->offset);
	}
	putc('\n', out);
}

static void print_json(const struct ckpt_stack_frame *f, FILE *out)
{
	fprintf(out, "%s{\"address\":\"0x%llx\"", f->number ? "," : "", (unsigned long long)f->ip);
	if (f->function) {
		fputs(",\"function\":\"", out);
		text_put_json(out, f->function);
		fprintf(out, "\",\"offset\":%llu", (unsigned long long)f->into);
	}
	if (f->file) {
		fputs(",\"file\":\"", out);
		text_put_json(out, f->file);
		fprintf(out, "\",\"file_offset\":%llu", (unsigned long long)f->offset);
	}
	putc('}', out);
}

void ckpt_stack_put(struct ckpt_stack_text *t, const struct ckpt_stack_frame *f)
{
	(t->json ? print_json : print_text)(f, t->out);
}

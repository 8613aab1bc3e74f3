// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mapping - what a mapping of a frozen session is.
 *
 * The kernel shows a mapping as a line of /proc/PID/smaps: a path that may be a name of its own
 * ("[heap]", "/SYSV00001234", "anon_inode:[io_uring]"), device and inode, and two-letter flags.
 * This file turns the line into one of the few sources a record knows, or refuses it by name.
 */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "ckpt/kinds/sysv.h"
#include "ckpt/memory/ahead.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"
#include "proto/memory.pb-c.h"

/* Documentation/filesystems/proc.rst, VmFlags. */
static const struct {
	const char *code;
	uint32_t flag;
} flag_codes[] = {
	{"gd", PB__MAPPING_FLAG__MAPPING_GROWSDOWN},
	{"nr", PB__MAPPING_FLAG__MAPPING_NORESERVE},
	{"lo", PB__MAPPING_FLAG__MAPPING_LOCKED},
	{"lf", PB__MAPPING_FLAG__MAPPING_LOCKONFAULT},
	{"dc", PB__MAPPING_FLAG__MAPPING_DONTFORK},
	{"wf", PB__MAPPING_FLAG__MAPPING_WIPEONFORK},
	{"dd", PB__MAPPING_FLAG__MAPPING_DONTDUMP},
	{"hg", PB__MAPPING_FLAG__MAPPING_HUGEPAGE},
	{"nh", PB__MAPPING_FLAG__MAPPING_NOHUGEPAGE},
	{"mg", PB__MAPPING_FLAG__MAPPING_MERGEABLE},
	{"sr", PB__MAPPING_FLAG__MAPPING_SEQUENTIAL},
	{"rr", PB__MAPPING_FLAG__MAPPING_RANDOM},
	{"dp", PB__MAPPING_FLAG__MAPPING_DROPPABLE},
	{"sl", PB__MAPPING_FLAG__MAPPING_SEALED},
};

/* What can't be carried, by the start of the path or by a flag. */
static const struct {
	const char *path, *what;
} refused_paths[] = {
	{"/[aio]", "asynchronous I/O (io_setup) is not supported"},
	{"/secretmem", "secret memory (memfd_secret) is not supported"},
	{"[uprobes]", "a task with uprobes is not supported"},
	{"anon_inode:[io_uring]", "io_uring is not supported"},
	{"anon_inode:[perf_event]", "performance counters (perf_event_open) are not supported"},
	{"anon_inode:", "this kind of mapping is not supported"},
	{"socket:", "memory of a socket (packet rings, TCP_ZEROCOPY_RECEIVE) is not supported"},
};

static const struct {
	const char *code, *what;
} refused_codes[] = {
	{"ss", "a shadow stack is not supported"},
	{"um", "memory watched by userfaultfd is not supported"},
	{"uw", "memory watched by userfaultfd is not supported"},
	{"ui", "memory watched by userfaultfd is not supported"},
	{"pf", "device memory is not supported"},
	{"io", "device memory is not supported"},
};

/* @with: two letters or more.  Thousands of mappings are asked about, and hardly any is meant. */
static bool starts(const char *s, const char *with)
{
	return s[0] == with[0] && s[1] == with[1] && !strncmp(s, with, strlen(with));
}

static bool is_named(const struct proc_vma *v, const char *name)
{
	return starts(v->path, name) && !strcmp(v->path, name);
}

static int refuse(const struct proc_vma *v, const char *what, struct err *e)
{
	return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "mapping %llx-%llx (%s): %s",
		(unsigned long long)v->start, (unsigned long long)v->end,
		*v->path ? v->path : "anonymous", what);
}

static bool is_code(const char *word, const char *code)
{
	return word[0] == code[0] && word[1] == code[1];
}

/* What a flag means: bits of the record, and whether it is refused. */
struct meaning {
	uint32_t flags;
	uint8_t refused; /* 1 + index of refused_codes */
};

#define LETTERS 26

static const struct meaning *meaning_of(const char *word)
{
	static struct meaning table[LETTERS][LETTERS];
	static const struct meaning none;
	static bool made;
	unsigned a = (unsigned)(word[0] - 'a'), b = (unsigned)(word[1] - 'a');

	for (size_t i = 0; !made && i < ARRAY_SIZE(flag_codes); i++)
		table[flag_codes[i].code[0] - 'a'][flag_codes[i].code[1] - 'a'].flags |=
			flag_codes[i].flag;
	for (size_t i = 0; !made && i < ARRAY_SIZE(refused_codes); i++)
		table[refused_codes[i].code[0] - 'a'][refused_codes[i].code[1] - 'a'].refused =
			(uint8_t)(i + 1);
	made = true;
	return a < LETTERS && b < LETTERS ? &table[a][b] : &none;
}

/* One walk over the flags, since there are thousands of mappings: fills *ret_flags. */
static int take_flags(
	const struct ckpt_dump *d, const struct proc_vma *v, uint32_t *ret_flags, struct err *e)
{
	uint32_t flags = v->shared ? PB__MAPPING_FLAG__MAPPING_IS_SHARED : 0;
	bool ours = ckpt_ahead_watches(d->options.ahead, v);

	for (const char *w = v->vm_flags; w[0] && w[1]; w += 2) {
		const struct meaning *m;

		while (*w == ' ')
			w++;
		if (!w[0] || !w[1])
			break;
		m = meaning_of(w);
		flags |= m->flags;
		if (m->refused && !(ours && is_code(w, "uw")))
			return refuse(v, refused_codes[m->refused - 1].what, e);
		if (v->shared && is_code(w, "mw"))
			flags |= PB__MAPPING_FLAG__MAPPING_MAYWRITE;
	}
	*ret_flags = flags;
	return 0;
}

static int check_path(const struct proc_vma *v, struct err *e)
{
	for (size_t i = 0; *v->path && i < ARRAY_SIZE(refused_paths); i++)
		if (starts(v->path, refused_paths[i].path))
			return refuse(v, refused_paths[i].what, e);
	return 0;
}

/* Private memory of huge pages can be had again where a host has some.  *ret: size of a page. */
static int take_huge_page(const struct proc_vma *v, uint64_t *ret, struct err *e)
{
	uint64_t size = v->page_kb * 1024;

	if (size <= PAGE_SIZE)
		return 0;
	if (v->shared || !starts(v->path, "/anon_hugepage"))
		return refuse(v,
			"huge pages (hugetlbfs) that are shared or a file's are not supported", e);
	*ret = size;
	return 0;
}

size_t ckpt_mapping_name(const char *path, const char **ret)
{
	size_t len = strlen(path);

	if (!starts(path, "[anon:") || len < 8 || path[len - 1] != ']')
		return 0;
	*ret = path + 6;
	return len - 7;
}

/* The pages which the executor has borrowed are none of the task's. */
static bool is_area_of(const struct remote *r, const struct proc_vma *v)
{
	return r && v->start >= remote_address(r) && v->end <= remote_address(r) + REMOTE_AREA_SIZE;
}

bool ckpt_mapping_is_ours(const struct ckpt_proc *p, const struct proc_vma *v)
{
	const struct ckpt_dump *d = p->dump;

	/* They are nobody's file and have no name; most mappings have. */
	for (size_t i = 0; !*v->path && i < d->n_procs; i++) {
		const struct ckpt_proc *q = d->procs[i];

		for (size_t k = 0; q->mm == p->mm && k < q->n_threads; k++)
			if (is_area_of(q->threads[k]->remote, v))
				return true;
	}
	return is_area_of(p->memory_copy, v);
}

static int describe_source(struct ckpt_dump *d, const struct ckpt_proc *p, const struct proc_vma *v,
	Pb__Mapping *ret, struct err *e)
{
	bool own_name = *v->path == '\0' || *v->path == '[' ||
			(!v->shared && !v->deleted && is_named(v, "/dev/zero"));
	int r;

	if (!v->shared && own_name) {
		ret->source = PB__MAPPING_SOURCE__MAPPING_ANON;
		ret->offset = 0;
		return 0;
	}
	if (v->shared && v->deleted && starts(v->path, "/SYSV")) {
		ret->source = PB__MAPPING_SOURCE__MAPPING_SYSV;
		/* ipc/shm.c: newseg makes the inode's number the id */
		int id = sysv_id(d->world, CKPT_IPC_SHM, (int)v->ino);

		if (id < 0)
			return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
				"shared memory that is not the session's is not supported");
		/*
		 * Inherited, by a helper of a browser's that is about to end: it could not be attached
		 * from there.
		 */
		if (p->ns.ns[CKPT_NS_IPC]) {
			err_set(e, ERR_UNFREEZABLE, -EAGAIN,
				"System V memory of an ipc namespace that the process has left");
			return err_hint(e, "try again in a moment");
		}
		ret->object = (uint64_t)id;
		return 0;
	}
	/* Is it an object, or has it a name after all? */
	r = ckpt_shared_find(d, v, &ret->object, e);
	if (r < 0)
		return r;
	if (!own_name && !v->deleted && !starts(v->path, "/memfd:")) {
		struct ckpt_file_mark mark;

		ret->source = PB__MAPPING_SOURCE__MAPPING_PATH;
		return ckpt_file_describe(d, v->path, v->ino, &mark, e);
	}
	ret->source = PB__MAPPING_SOURCE__MAPPING_SHARED;
	if (!ret->object) {
		/* nobody else can see the file: its contents become the mapping's own */
		ret->source = PB__MAPPING_SOURCE__MAPPING_ANON;
		ret->offset = 0;
	}
	return 0;
}

static int describe(struct ckpt_dump *d, struct ckpt_proc *p, const struct proc_vma *v,
	Pb__Mapping *ret, struct err *e)
{
	int r;

	pb__mapping__init(ret);
	if (v->start >= CKPT_TASK_SIZE || is_named(v, "[vsyscall]") || ckpt_mapping_is_ours(p, v))
		return 1;
	ret->start = v->start;
	ret->end = v->end;
	ret->prot = v->prot;
	ret->offset = v->offset;
	ret->key = (uint32_t)v->key;
	if (is_named(v, "[vdso]")) {
		ret->source = PB__MAPPING_SOURCE__MAPPING_VDSO;
		return 0;
	}
	if (starts(v->path, "[vvar")) {
		ret->source = PB__MAPPING_SOURCE__MAPPING_VVAR;
		return 0;
	}
	r = check_path(v, e);
	if (r >= 0)
		r = take_flags(d, v, &ret->flags, e);
	if (r >= 0)
		r = take_huge_page(v, &ret->huge_page, e);
	if (r < 0)
		return r;
	r = describe_source(d, p, v, ret, e);
	if (r < 0)
		return err_wrap(e, "mapping %llx-%llx", (unsigned long long)v->start,
			(unsigned long long)v->end);
	return 0;
}

/* By their places in the maps.  What is refused ends the freeze, and is not remembered. */
struct ckpt_mappings {
	size_t n;
	struct {
		bool known, nothing;
		Pb__Mapping m;
	} at[];
};

int ckpt_mapping_describe(struct ckpt_dump *d, struct ckpt_proc *p, const struct proc_vma *v,
	Pb__Mapping *ret, struct err *e)
{
	size_t i = (size_t)(v - p->maps.vmas);
	int r;

	if (!p->mappings) {
		p->mappings =
			calloc(1, sizeof(*p->mappings) + p->maps.n * sizeof(p->mappings->at[0]));
		if (!p->mappings)
			return err_errno(e, -ENOMEM, "mappings");
		p->mappings->n = p->maps.n;
	}
	assert(i < p->mappings->n);
	if (!p->mappings->at[i].known) {
		r = describe(d, p, v, &p->mappings->at[i].m, e);
		if (r < 0)
			return r;
		p->mappings->at[i].nothing = r;
		p->mappings->at[i].known = true;
	}
	*ret = p->mappings->at[i].m;
	return p->mappings->at[i].nothing;
}

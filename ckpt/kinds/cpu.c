// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cpu - what the session may use of the CPU.
 *
 * A program asks CPUID when it starts and acts on the answer for ever, so a session may use
 * whatever the CPU has under it when it is frozen; of a portable one (supervisor/portable.h) only
 * what its libraries are held to.  The image says so by name, and a host that lacks any of it
 * refuses before anything is made: the alternative is an illegal instruction some time later.
 *
 * What is listed is what programs without privilege can use and choose by.  Features that only
 * the kernel sees (smep, pcid, ...) are not.  Names are those of /proc/cpuinfo.
 *
 * One more thing can't be moved: glibc before 2.39 saves registers around lazy binding by XSAVE, in
 * as much room on the stack as the CPU needed where the program started.  With XSAVEC a larger CPU
 * writes no more than is in use; plain XSAVE would write past the end.
 */
#include <cpuid.h>
#include <pthread.h>
#include <string.h>

#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/sigframe.h"
#include "ckpt/survey/survey.h"
#include "ckpt/xstate.h"
#include "proto/tasks.pb-c.h"

enum reg { EAX, EBX, ECX, EDX };

#define XCR0_AVX    0x6
#define XCR0_AVX512 0xe6
#define XCR0_AMX    0x60000

/* Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E. */
static const struct feature {
	const char *name;
	uint32_t leaf, subleaf;
	enum reg reg;
	unsigned bit;
	bool portable;
	uint64_t xcr0; /* state which the kernel must have enabled for it */
} features[] = {
	{"cmov", 1, 0, EDX, 15, true},
	{"fxsr", 1, 0, EDX, 24, true},
	{"sse", 1, 0, EDX, 25, true},
	{"sse2", 1, 0, EDX, 26, true},
	{"sse3", 1, 0, ECX, 0, true},
	{"pclmulqdq", 1, 0, ECX, 1, true},
	{"ssse3", 1, 0, ECX, 9, true},
	{"cx16", 1, 0, ECX, 13, true},
	{"sse4_1", 1, 0, ECX, 19, true},
	{"sse4_2", 1, 0, ECX, 20, true},
	{"popcnt", 1, 0, ECX, 23, true},
	{"aes", 1, 0, ECX, 25, true},
	{"lahf_lm", 0x80000001, 0, ECX, 0, true},
	{"fma", 1, 0, ECX, 12, false, XCR0_AVX},
	{"movbe", 1, 0, ECX, 22},
	{"xsave", 1, 0, ECX, 27}, /* OSXSAVE: programs can use it */
	{"avx", 1, 0, ECX, 28, false, XCR0_AVX},
	{"f16c", 1, 0, ECX, 29, false, XCR0_AVX},
	{"rdrand", 1, 0, ECX, 30},
	{"fsgsbase", 7, 0, EBX, 0},
	{"bmi1", 7, 0, EBX, 3},
	{"avx2", 7, 0, EBX, 5, false, XCR0_AVX},
	{"bmi2", 7, 0, EBX, 8},
	{"erms", 7, 0, EBX, 9},
	{"rtm", 7, 0, EBX, 11},
	{"avx512f", 7, 0, EBX, 16, false, XCR0_AVX512},
	{"avx512dq", 7, 0, EBX, 17, false, XCR0_AVX512},
	{"rdseed", 7, 0, EBX, 18},
	{"adx", 7, 0, EBX, 19},
	{"avx512ifma", 7, 0, EBX, 21, false, XCR0_AVX512},
	{"clflushopt", 7, 0, EBX, 23},
	{"clwb", 7, 0, EBX, 24},
	{"avx512cd", 7, 0, EBX, 28, false, XCR0_AVX512},
	{"sha_ni", 7, 0, EBX, 29},
	{"avx512bw", 7, 0, EBX, 30, false, XCR0_AVX512},
	{"avx512vl", 7, 0, EBX, 31, false, XCR0_AVX512},
	{"avx512vbmi", 7, 0, ECX, 1, false, XCR0_AVX512},
	{"ospke", 7, 0, ECX, 4},
	{"waitpkg", 7, 0, ECX, 5},
	{"avx512_vbmi2", 7, 0, ECX, 6, false, XCR0_AVX512},
	{"gfni", 7, 0, ECX, 8},
	{"vaes", 7, 0, ECX, 9, false, XCR0_AVX},
	{"vpclmulqdq", 7, 0, ECX, 10, false, XCR0_AVX},
	{"avx512_vnni", 7, 0, ECX, 11, false, XCR0_AVX512},
	{"avx512_bitalg", 7, 0, ECX, 12, false, XCR0_AVX512},
	{"avx512_vpopcntdq", 7, 0, ECX, 14, false, XCR0_AVX512},
	{"rdpid", 7, 0, ECX, 22},
	{"movdiri", 7, 0, ECX, 27},
	{"movdir64b", 7, 0, ECX, 28},
	{"fsrm", 7, 0, EDX, 4},
	{"avx512_vp2intersect", 7, 0, EDX, 8, false, XCR0_AVX512},
	{"serialize", 7, 0, EDX, 14},
	{"amx_bf16", 7, 0, EDX, 22, false, XCR0_AMX},
	{"avx512_fp16", 7, 0, EDX, 23, false, XCR0_AVX512},
	{"amx_tile", 7, 0, EDX, 24, false, XCR0_AMX},
	{"amx_int8", 7, 0, EDX, 25, false, XCR0_AMX},
	{"avx_vnni", 7, 1, EAX, 4, false, XCR0_AVX},
	{"avx512_bf16", 7, 1, EAX, 5, false, XCR0_AVX512},
	{"avx_ifma", 7, 1, EAX, 23, false, XCR0_AVX},
	{"avx_vnni_int8", 7, 1, EDX, 4, false, XCR0_AVX},
	{"avx_ne_convert", 7, 1, EDX, 5, false, XCR0_AVX},
	{"xsaveopt", 0xd, 1, EAX, 0},
	{"xsavec", 0xd, 1, EAX, 1},
	{"xgetbv1", 0xd, 1, EAX, 2},
	{"abm", 0x80000001, 0, ECX, 5},
	{"sse4a", 0x80000001, 0, ECX, 6},
	{"3dnowprefetch", 0x80000001, 0, ECX, 8},
	{"xop", 0x80000001, 0, ECX, 11, false, XCR0_AVX},
	{"fma4", 0x80000001, 0, ECX, 16, false, XCR0_AVX},
	{"tbm", 0x80000001, 0, ECX, 21},
	{"rdtscp", 0x80000001, 0, EDX, 27},
	{"clzero", 0x80000008, 0, EBX, 0},
};

#define LEAF_XSTATE 0xd
#define MODEL_MAX   48

struct cpu {
	uint64_t xcr0;
	uint32_t xstate_size;
	char model[MODEL_MAX + 1];
	bool has[ARRAY_SIZE(features)];
};

/* Registers of one leaf; all zero if there is none such. */
static void ask(uint32_t leaf, uint32_t subleaf, uint32_t ret[4])
{
	memset(ret, 0, 4 * sizeof(*ret));
	__get_cpuid_count(leaf, subleaf, &ret[EAX], &ret[EBX], &ret[ECX], &ret[EDX]);
}

static uint64_t read_xcr0(void)
{
	uint32_t r[4], low, high;

	ask(1, 0, r);
	if (!(r[ECX] & bit_OSXSAVE))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

static struct cpu here;

/* Features are in order of leaves, and each leaf is asked for once. */
static void look(void)
{
	uint32_t leaf = UINT32_MAX, subleaf = 0, r[4];

	here.xcr0 = read_xcr0();
	ask(LEAF_XSTATE, 0, r);
	here.xstate_size = here.xcr0 ? r[EBX] : 0;
	for (uint32_t i = 0; i < 3; i++) {
		ask(0x80000002 + i, 0, r);
		memcpy(here.model + i * sizeof(r), r, sizeof(r));
	}
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		const struct feature *f = &features[i];

		if (leaf != f->leaf || subleaf != f->subleaf)
			ask(f->leaf, f->subleaf, r);
		leaf = f->leaf;
		subleaf = f->subleaf;
		here.has[i] = (r[f->reg] >> f->bit & 1) && (here.xcr0 & f->xcr0) == f->xcr0;
	}
}

/* A virtual machine's monitor answers CPUID, which takes some 5 to 25 us each. */
static const struct cpu *this_cpu(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look);
	return &here;
}

void ckpt_cpu_ahead(void)
{
	this_cpu();
	ckpt_xstate_places();
}

/* How many of @places, which @list points to, are filled. */
static size_t list_places(const struct cpu *cpu, Pb__XstatePlace *places, Pb__XstatePlace **list)
{
	const struct ckpt_xstate_place *all = ckpt_xstate_places();
	size_t n = 0;

	for (unsigned i = 2; i < XSTATE_COMPONENTS; i++) {
		if (!all[i].size || !(cpu->xcr0 >> i & 1))
			continue;
		pb__xstate_place__init(&places[n]);
		places[n].number = i;
		places[n].offset = all[i].offset;
		places[n].size = all[i].size;
		list[n] = &places[n];
		n++;
	}
	return n;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	char *names[ARRAY_SIZE(features)];
	Pb__XstatePlace places[XSTATE_COMPONENTS], *list[XSTATE_COMPONENTS];
	const struct cpu *cpu = this_cpu();
	Pb__Cpu m = PB__CPU__INIT;

	m.model = (char *)cpu->model;
	m.xcr0 = cpu->xcr0;
	m.xstate_size = cpu->xstate_size;
	m.portable = d->options.portable;
	m.features = names;
	m.places = list;
	m.n_places = list_places(cpu, places, list);
	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		if ((features[i].portable || !m.portable) && cpu->has[i])
			names[m.n_features++] = (char *)features[i].name;
	return ckpt_pack(&m.base, body, e);
}

static bool has_name(const struct cpu *cpu, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		if (!strcmp(features[i].name, name))
			return cpu->has[i];
	return false;
}

static bool lists(const Pb__Cpu *m, const char *name)
{
	for (size_t i = 0; i < m->n_features; i++)
		if (!strcmp(m->features[i], name))
			return true;
	return false;
}

/* The names that @cpu lacks, separated by commas; how many. */
static size_t lacking(const struct cpu *cpu, const Pb__Cpu *m, char *ret, size_t size)
{
	size_t n = 0, at = 0;

	*ret = '\0';
	for (size_t i = 0; i < m->n_features; i++) {
		int len;

		if (has_name(cpu, m->features[i]))
			continue;
		len = snprintf(ret + at, size - at, "%s%.24s", n ? ", " : "", m->features[i]);
		if (len > 0)
			at = MIN(at + (size_t)len, size - 1);
		n++;
	}
	return n;
}

/* Images of before that don't say where the components were: frames stay as they are. */
static int expect_frames(struct ckpt_build *b, const Pb__Cpu *m, struct err *e)
{
	struct ckpt_xstate_place old[XSTATE_COMPONENTS] = {0}, now[XSTATE_COMPONENTS] = {0};
	const struct ckpt_xstate_place *all = ckpt_xstate_places();
	const struct cpu *cpu = this_cpu();
	struct ckpt_sigframes *frames;
	int r;

	for (size_t i = 0; i < m->n_places; i++) {
		const Pb__XstatePlace *p = m->places[i];

		if (p->number >= XSTATE_COMPONENTS)
			return err_set(e, ERR_IMAGE, -EINVAL, "register component %u", p->number);
		old[p->number] = (struct ckpt_xstate_place){p->size, p->offset};
	}
	for (unsigned i = 2; i < XSTATE_COMPONENTS; i++)
		if (cpu->xcr0 >> i & 1)
			now[i] = all[i];
	r = ckpt_sigframes_new(old, now, &frames, e);
	if (r == 0)
		b->kind_state[PROTO_KIND_CPU] = frames;
	return r;
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Cpu *m = pb__cpu__unpack(NULL, r->len, r->body);
	const struct cpu *cpu = this_cpu();
	char names[200];
	size_t n;
	int rc = 0;

	if (!m)
		return ckpt_common_bad(r, e);
	b->xcr0 = m->xcr0;
	b->portable = m->portable;
	n = lacking(cpu, m, names, sizeof(names));
	if (n)
		rc = err_set(e, ERR_HOST, -EOPNOTSUPP,
			"this CPU lacks what the session may use: %s%s", names,
			strlen(names) == sizeof(names) - 1 ? " ..." : "");
	else if (!m->portable && m->xstate_size && cpu->xstate_size > m->xstate_size &&
		 !lists(m, "xsavec"))
		rc = err_set(e, ERR_HOST, -EOPNOTSUPP,
			"this CPU has more registers (%u bytes) than the session's programs leave room "
			"for (%u)",
			cpu->xstate_size, m->xstate_size);
	if (rc < 0)
		err_hint(e, "sessions started by podrun run --portable can be moved between such CPUs");
	else
		rc = expect_frames(b, m, e);
	pb__cpu__free_unpacked(m, NULL);
	return rc;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Cpu *m = pb__cpu__unpack(NULL, len, body);

	if (!m)
		return;
	fprintf(out, "%s%s, state %#llx of %u bytes, may use:", m->model,
		m->portable ? " (portable)" : "", (unsigned long long)m->xcr0, m->xstate_size);
	for (size_t i = 0; i < m->n_features; i++)
		fprintf(out, " %s", m->features[i]);
	pb__cpu__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_cpu = {
	.number = PROTO_KIND_CPU,
	.name = "cpu",
	.scope = CKPT_SESSION,
	.dump = dump,
	.create = create,
	.show = show,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Runs when podrun is built and writes the filters as C: making one takes libseccomp 7 ms, half of
 * what the start of a session may cost.  There is one program for each set of translated names.
 *
 * A program has two parts.  In front, for each architecture, the rules that look at an argument
 * (policy_rules); a call that has none falls through without an argument being loaded, so that the
 * kernel's bitmap knows calls allowed by number and never runs the program for them (since 5.11).  Behind,
 * what libseccomp makes of the table: the architecture first (a filter by number alone lets
 * int 0x80 through), a binary tree of numbers for x86-64, another for i386, x32 refused.
 *
 * The two are joined by putting one behind the other: jumps in BPF are relative and forward.
 * libseccomp could not say the first part: it can't combine "this masked value" with "any other".
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "supervisor/names/names.h"
#include "supervisor/policy/policy.h"

static uint32_t library_action(enum policy_action action)
{
	switch (action) {
	case POLICY_ALLOW:
		return SCMP_ACT_ALLOW;
	case POLICY_EPERM:
		return SCMP_ACT_ERRNO(EPERM);
	case POLICY_NOTIFY:
		return SCMP_ACT_NOTIFY;
	case POLICY_TRACE:
		return SCMP_ACT_TRACE(0);
	case POLICY_ENOSYS:
		break;
	}
	return SCMP_ACT_ERRNO(ENOSYS);
}

static void put(struct buf *b, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	struct sock_filter insn = {code, jt, jf, k};

	buf_put(b, &insn, sizeof(insn));
}

static void put_load(struct buf *b, size_t offset)
{
	put(b, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static bool applies(const struct policy_rule *r, unsigned translated)
{
	return !r->names || r->names & translated;
}

/* Load the argument, mask, compare, return: four instructions. */
static void put_rule(struct buf *b, const struct policy_rule *r)
{
	put_load(b, offsetof(struct seccomp_data, args) + r->arg * sizeof(__u64));
	put(b, BPF_ALU | BPF_AND | BPF_K, 0, 0, r->mask);
	put(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, r->value);
	put(b, BPF_RET | BPF_K, 0, 0, library_action(r->action));
}

/* Rules [i, j) are about one call.  Its number is loaded before and behind. */
static void put_rules_of_call(struct buf *b, unsigned translated, uint32_t nr, size_t i, size_t j)
{
	size_t n = 0;

	for (size_t k = i; k < j; k++)
		n += applies(&policy_rules[k], translated);
	if (!n)
		return;
	put(b, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(4 * n + 1), nr);
	for (; i < j; i++)
		if (applies(&policy_rules[i], translated))
			put_rule(b, &policy_rules[i]);
	put_load(b, offsetof(struct seccomp_data, nr));
}

/* The rules of one architecture, behind a check that it is this one. */
static void put_rules(
	struct buf *b, unsigned translated, uint32_t audit_arch, uint32_t library_arch)
{
	_cleanup_buf_ struct buf rules = BUF_INIT;

	put_load(&rules, offsetof(struct seccomp_data, nr));
	for (size_t i = 0, j; i < policy_n_rules; i = j) {
		int nr = policy_rules[i].nr;

		for (j = i; j < policy_n_rules && policy_rules[j].nr == nr; j++)
			;
		if (library_arch != SCMP_ARCH_X86_64)
			nr = seccomp_syscall_resolve_name_arch(library_arch, policy_find(nr)->name);
		if (nr >= 0)
			put_rules_of_call(&rules, translated, (uint32_t)nr, i, j);
	}
	put_load(b, offsetof(struct seccomp_data, arch));
	put(b, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, audit_arch);
	put(b, BPF_JMP | BPF_JA, 0, 0, (uint32_t)(rules.len / sizeof(struct sock_filter)));
	buf_put(b, rules.data, rules.len);
	b->failed |= rules.failed;
}

static int add_rule(
	scmp_filter_ctx ctx, const char *name, int nr, enum policy_action action, struct err *e)
{
	int r;

	if (action == POLICY_ENOSYS)
		return 0; /* the default */
	r = seccomp_rule_add(ctx, library_action(action), nr, 0);
	return r < 0 ? err_errno(e, r, "filter rule for %s", name) : 0;
}

static enum policy_action effective(const struct policy_call *c, unsigned translated)
{
	const struct policy_translated *t = policy_find_translated(c->nr, translated);

	if (c->names & translated)
		return POLICY_NOTIFY;
	if (t)
		return t->action;
	return c->action;
}

static int add_64(scmp_filter_ctx ctx, unsigned translated, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy_n_calls; i++) {
		const struct policy_call *c = &policy_calls[i];

		r = add_rule(ctx, c->name, c->nr, effective(c, translated), e);
	}
	return r;
}

/* Numbers of tasks are not translated for 32-bit programs, so where they are, there are none. */
static bool has_32(unsigned translated)
{
	return !(translated & NAMES_BIT(NAMES_PID));
}

/*
 * Of the table above, what has a name that i386 and this libseccomp know; then what only i386 has.
 * Names are not translated for 32-bit programs.
 */
static int add_32(scmp_filter_ctx ctx, struct err *e)
{
	int r = 0, nr;

	for (size_t i = 0; r == 0 && i < policy_n_calls; i++) {
		const struct policy_call *c = &policy_calls[i];

		nr = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86, c->name);
		if (nr >= 0 && c->action != POLICY_TRACE)
			r = add_rule(
				ctx, c->name, seccomp_syscall_resolve_name(c->name), c->action, e);
	}
	for (size_t i = 0; r == 0 && i < policy_n_calls32; i++) {
		const struct policy_call32 *c = &policy_calls32[i];

		nr = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86, c->name);
		if (nr >= 0)
			r = add_rule(
				ctx, c->name, seccomp_syscall_resolve_name(c->name), c->action, e);
	}
	return r;
}

/* A context of libseccomp's for one architecture with all its rules; NULL on failure. */
static scmp_filter_ctx make_context(uint32_t arch, unsigned translated, struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int r = ctx ? 0 : -ENOMEM;

	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	if (r == 0 && arch != SCMP_ARCH_X86_64) {
		r = seccomp_arch_add(ctx, arch);
		if (r == 0)
			r = seccomp_arch_remove(ctx, SCMP_ARCH_X86_64);
	}
	if (r < 0)
		err_errno(e, r, "cannot prepare the session's filter");
	else if (arch == SCMP_ARCH_X86_64)
		r = add_64(ctx, translated, e);
	else if (has_32(translated))
		r = add_32(ctx, e);
	if (r < 0 && ctx) {
		seccomp_release(ctx);
		ctx = NULL;
	}
	return ctx;
}

/* libseccomp writes programs to descriptors only. */
static int export(scmp_filter_ctx ctx, struct buf *ret, struct err *e)
{
	_cleanup_close_ int fd = memfd_create("podrun-filter", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return err_errno(e, -errno, "memfd");
	r = seccomp_export_bpf(ctx, fd);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	while (r == 0) {
		uint8_t *p = buf_reserve(ret, 4096);
		ssize_t n = p ? read(fd, p, 4096) : -1;

		if (n <= 0)
			break;
		ret->len += (size_t)n;
	}
	if (r == 0)
		r = buf_error(ret);
	return r < 0 ? err_errno(e, r, "cannot export the session's filter") : 0;
}

static int generate(unsigned translated, struct buf *ret, struct err *e)
{
	scmp_filter_ctx main = make_context(SCMP_ARCH_X86_64, translated, e), i386;
	int r;

	if (!main)
		return e->error;
	i386 = make_context(SCMP_ARCH_X86, translated, e);
	if (!i386) {
		seccomp_release(main);
		return e->error;
	}
	r = seccomp_merge(main, i386); /* releases i386 */
	if (r < 0)
		err_errno(e, r, "cannot join the filters of two architectures");
	put_rules(ret, translated, AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64);
	if (has_32(translated))
		put_rules(ret, 0, AUDIT_ARCH_I386, SCMP_ARCH_X86);
	if (r == 0)
		r = export(main, ret, e);
	seccomp_release(main);
	return r;
}

/* As `static const struct sock_filter NAME[]`. */
static int print_program(const char *name, unsigned translated)
{
	_cleanup_buf_ struct buf code = BUF_INIT;
	const struct sock_filter *f;
	struct err e = {0};

	if (generate(translated, &code, &e) < 0 || buf_error(&code)) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	f = (const struct sock_filter *)code.data;
	printf("static const struct sock_filter %s[] = {\n", name);
	for (size_t i = 0; i < code.len / sizeof(*f); i++)
		printf("\t{0x%x, %u, %u, 0x%xU},\n", f[i].code, f[i].jt, f[i].jf, f[i].k);
	printf("};\n");
	return 0;
}

#define REWRITTEN (NAMES_BIT(NAMES_PID) | NAMES_BIT(NAMES_IPC) | NAMES_BIT(NAMES_HOST))

int main(void)
{
	static const struct {
		const char *name;
		unsigned translated;
	} programs[] = {
		{"plain", 0},
		{"user", NAMES_BIT(NAMES_USER) | NAMES_BIT(NAMES_LAYER)},
		{"rewritten", REWRITTEN},
		{"rewritten_files", REWRITTEN | NAMES_BIT(NAMES_FILE)},
		{"rewritten_users", REWRITTEN | NAMES_BIT(NAMES_USER)},
		{"rewritten_files_users",
			REWRITTEN | NAMES_BIT(NAMES_FILE) | NAMES_BIT(NAMES_USER)},
	};

	printf("/* Made by supervisor/filter_make.c from supervisor/policy/table.c. */\n"
	       "#include \"supervisor/filter_programs.h\"\n\n"
	       "#include <linux/filter.h>\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (print_program(programs[i].name, programs[i].translated))
			return 1;
	printf("const struct filter_program filter_programs[] = {\n");
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		printf("\t{%uU, %s, sizeof(%s) / sizeof(%s[0])},\n", programs[i].translated,
			programs[i].name, programs[i].name, programs[i].name);
	printf("};\nconst size_t filter_n_programs = %zu;\n", ARRAY_SIZE(programs));
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Runs when podrun is built and writes the filters as C: making one takes libseccomp 7 ms, half of
 * what the start of a session may cost.  There is one program for each set of translated names.
 *
 * A program looks at the architecture first (a filter by number alone lets int 0x80 through) and
 * has a part for each, put one behind the other: jumps in BPF are relative and forward.  Each
 * begins with the rules that look at an argument (policy_rules); a call that has none falls through
 * without an argument being loaded, so that the kernel's bitmap knows calls allowed by number and
 * never runs the program for them (since 5.11).  Then comes a binary tree of numbers: for x86-64
 * what libseccomp makes of the table, with x32 and whatever else refused; for i386 one that is made
 * here, by number, since this libseccomp need not know the names.
 *
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
	case POLICY_EINVAL:
		return SCMP_ACT_ERRNO(EINVAL);
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

/* Load the argument, mask, compare, return; of a pointer the high half first. */
static void put_rule(struct buf *b, const struct policy_rule *r)
{
	size_t at = offsetof(struct seccomp_data, args) + r->arg * sizeof(__u64);

	if (r->whole) {
		put_load(b, at + sizeof(uint32_t));
		put(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, 0);
	}
	put_load(b, at);
	put(b, BPF_ALU | BPF_AND | BPF_K, 0, 0, r->mask);
	put(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, r->value);
	put(b, BPF_RET | BPF_K, 0, 0, library_action(r->action));
}

/*
 * The rules about one call, behind a check that it is the one.  Its number is loaded before and
 * behind.
 */
static void put_rules_of_call(struct buf *b, uint32_t nr, const struct buf *rules)
{
	if (!rules->len)
		return;
	put(b, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(rules->len / sizeof(struct sock_filter) + 1),
		nr);
	buf_put(b, rules->data, rules->len);
	put_load(b, offsetof(struct seccomp_data, nr));
	b->failed |= rules->failed || rules->len / sizeof(struct sock_filter) + 1 > UINT8_MAX;
}

static void put_rules_about(
	struct buf *b, unsigned translated, int nr, const struct policy_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (policy_rule_is_about(&rules[i], nr, translated))
			put_rule(b, &rules[i]);
}

/* @part, behind a check of the architecture. */
static void put_part(struct buf *b, uint32_t audit_arch, const struct buf *part)
{
	put_load(b, offsetof(struct seccomp_data, arch));
	put(b, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, audit_arch);
	put(b, BPF_JMP | BPF_JA, 0, 0, (uint32_t)(part->len / sizeof(struct sock_filter)));
	buf_put(b, part->data, part->len);
	b->failed |= part->failed;
}

/* ---- x86-64 --------------------------------------------------------------------------------- */

static void put_rules_64(struct buf *b, unsigned translated)
{
	_cleanup_buf_ struct buf all = BUF_INIT;

	put_load(&all, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < policy_n_rules; i++) {
		_cleanup_buf_ struct buf rules = BUF_INIT;
		int nr = policy_rules[i].nr;

		if (i && nr == policy_rules[i - 1].nr)
			continue;
		put_rules_about(&rules, translated, nr, policy_rules, policy_n_rules);
		put_rules_of_call(&all, (uint32_t)nr, &rules);
	}
	put_part(b, AUDIT_ARCH_X86_64, &all);
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

/* A context of libseccomp's with all rules by number; NULL on failure. */
static scmp_filter_ctx make_context(unsigned translated, struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int r = ctx ? 0 : -ENOMEM;

	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	if (r < 0)
		err_errno(e, r, "cannot prepare the session's filter");
	else
		r = add_64(ctx, translated, e);
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

/* ---- i386 ----------------------------------------------------------------------------------- */

#define NUMBERS_32 1024

static enum policy_action effective_32(int nr, unsigned translated)
{
	const struct policy_translated *t = policy_find_translated32(nr, translated);
	const struct policy_call32 *own = policy_find32(nr);
	const struct policy_call *like = policy_find(policy_number64(nr));

	if (!t && like)
		t = policy_find_translated(like->nr, translated);
	if (like && like->names & translated)
		return POLICY_NOTIFY;
	if (t)
		return t->action;
	if (like)
		return like->action;
	return own ? own->action : POLICY_ENOSYS;
}

/* What ckpt/remote does is done by 64-bit code. */
static bool is_ours(int nr)
{
	return nr == SYS_PODRUN_SENTINEL || nr == SYS_clone3;
}

static void put_rules_32(struct buf *b, unsigned translated)
{
	for (int nr = 0; nr < NUMBERS_32; nr++) {
		_cleanup_buf_ struct buf rules = BUF_INIT;
		int like = policy_number64(nr);

		put_rules_about(&rules, translated, nr, policy_rules32, policy_n_rules32);
		if (like >= 0 && !is_ours(like))
			put_rules_about(&rules, translated, like, policy_rules, policy_n_rules);
		put_rules_of_call(b, (uint32_t)nr, &rules);
	}
}

/* Numbers from here on, up to the next one's. */
struct range {
	uint32_t from;
	enum policy_action action;
};

static void put_tree(struct buf *b, const struct range *ranges, size_t n)
{
	_cleanup_buf_ struct buf below = BUF_INIT;
	size_t half = n / 2, len;

	if (n == 1) {
		put(b, BPF_RET | BPF_K, 0, 0, library_action(ranges->action));
		return;
	}
	put_tree(&below, ranges, half);
	len = below.len / sizeof(struct sock_filter);
	if (len <= UINT8_MAX) {
		put(b, BPF_JMP | BPF_JGE | BPF_K, (uint8_t)len, 0, ranges[half].from);
	} else {
		put(b, BPF_JMP | BPF_JGE | BPF_K, 0, 1, ranges[half].from);
		put(b, BPF_JMP | BPF_JA, 0, 0, (uint32_t)len);
	}
	buf_put(b, below.data, below.len);
	b->failed |= below.failed;
	put_tree(b, ranges + half, n - half);
}

static void put_32(struct buf *b, unsigned translated)
{
	_cleanup_buf_ struct buf part = BUF_INIT;
	struct range ranges[NUMBERS_32 + 1];
	size_t n = 0;

	put_load(&part, offsetof(struct seccomp_data, nr));
	put_rules_32(&part, translated);
	for (int nr = 0; nr <= NUMBERS_32; nr++) {
		enum policy_action action =
			nr < NUMBERS_32 ? effective_32(nr, translated) : POLICY_ENOSYS;

		if (n == 0 || ranges[n - 1].action != action)
			ranges[n++] = (struct range){(uint32_t)nr, action};
	}
	put_tree(&part, ranges, n);
	put_part(b, AUDIT_ARCH_I386, &part);
}

/* ---- both ----------------------------------------------------------------------------------- */

static int generate(unsigned translated, struct buf *ret, struct err *e)
{
	scmp_filter_ctx main = make_context(translated, e);
	int r;

	if (!main)
		return e->error;
	put_rules_64(ret, translated);
	put_32(ret, policy_classes32(translated));
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

#define TIME	  NAMES_BIT(NAMES_TIME)
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
		{"rewritten_time", REWRITTEN | TIME},
		{"rewritten_files_time", REWRITTEN | NAMES_BIT(NAMES_FILE) | TIME},
		{"rewritten_users_time", REWRITTEN | NAMES_BIT(NAMES_USER) | TIME},
		{"rewritten_files_users_time",
			REWRITTEN | NAMES_BIT(NAMES_FILE) | NAMES_BIT(NAMES_USER) | TIME},
	};

	printf("/* Made by supervisor/filter/filter_make.c from supervisor/policy/table.c. */\n"
	       "#include \"supervisor/filter/filter_programs.h\"\n\n"
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

// SPDX-License-Identifier: GPL-2.0-or-later
/* The programs are made at build time (filter_make.c); here one is chosen and installed. */
#include "supervisor/filter/filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "supervisor/filter/filter_programs.h"
#include "supervisor/filter/filter_watch.h"
#include "supervisor/names/names.h"
#include "supervisor/policy/policy.h"
#include "supervisor/world/world_config.h"

static const struct filter_program *find(unsigned translated)
{
	for (size_t i = 0; i < filter_n_programs; i++)
		if (filter_programs[i].translated == translated)
			return &filter_programs[i];
	return NULL;
}

static int install(const struct sock_fprog *program)
{
	static const unsigned long flags[] = {
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		SECCOMP_FILTER_FLAG_NEW_LISTENER, /* before 5.19 */
	};
	int fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i], program);
		if (fd >= 0 || errno != EINVAL)
			break;
	}
	return fd < 0 ? -errno : fd;
}

/*
 * Where births are counted (--pids) they stop at their entry.  In a filter of its own, so that what
 * the other refuses stays refused, and before it, which would ask.
 */
static int install_counting(void)
{
	enum { I386_FORK = 2, I386_CLONE = 120, I386_VFORK = 190 };
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fork, 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_vfork, 6, 5),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, I386_CLONE, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, I386_FORK, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, I386_VFORK, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
	};
	static const struct sock_fprog program = {ARRAY_SIZE(code), code};

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

/*
 * In front of what knows no io_uring.  A ring is to have a descriptor or a mapping, by which
 * checkpoints find it: how it is made is looked at (notify.c), and IORING_REGISTER_RING_FDS is what
 * it was before Linux 5.18.
 */
static void put_io_uring(struct buf *b)
{
	enum { RING_FDS = 20 }; /* linux/io_uring.h */
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, 0, 10),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		/* without IORING_REGISTER_USE_REGISTERED_RING */
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, INT32_MAX),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RING_FDS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};

	buf_put(b, code, sizeof(code));
}

int filter_install(const struct world_config *c, struct err *e)
{
	struct names names = names_choose(c);
	const struct filter_program *p = find(names_translated(&names));
	_cleanup_buf_ struct buf code = BUF_INIT;
	struct sock_fprog program;
	int fd, r;

	r = names_check(&names, e);
	if (r < 0)
		return r;
	if (!p)
		return err_set(e, ERR_HOST, -EOPNOTSUPP, "no filter for these names");
	if (c->mapped && c->mapped->n)
		filter_watch(&code, c->mapped);
	if (c->io_uring && !c->rewrite)
		put_io_uring(&code);
	buf_put(&code, p->code, p->n * sizeof(*p->code));
	if (buf_error(&code) < 0)
		return err_errno(e, -ENOMEM, "filter");
	program.len = (unsigned short)(code.len / sizeof(*p->code));
	program.filter = (struct sock_filter *)code.data;
	r = c->rewrite && c->max_pids ? install_counting() : 0;
	if (r < 0)
		return err_errno(e, r, "cannot install the filter that counts");
	fd = install(&program);
	if (fd == -EBUSY) {
		err_set(e, ERR_HOST, fd, "cannot listen to the session's calls");
		return err_hint(e, "podrun runs under the seccomp listener of a container or "
				   "sandbox; there can be only one");
	}
	return fd < 0 ? err_errno(e, fd, "cannot install the session's filter") : fd;
}

size_t filter_notified(const struct world_config *c, long ret[FILTER_MAX_NOTIFIED])
{
	struct names names = names_choose(c);
	unsigned translated = names_translated(&names);
	size_t n = 0;

	for (size_t i = 0; i < policy_n_calls && n < FILTER_MAX_NOTIFIED; i++) {
		const struct policy_call *call = &policy_calls[i];
		bool notified = call->action == POLICY_NOTIFY || call->names & translated;

		for (size_t k = 0; k < policy_n_rules && !notified; k++) {
			const struct policy_rule *rule = &policy_rules[k];

			notified = rule->action == POLICY_NOTIFY &&
				   policy_rule_is_about(rule, call->nr, translated);
		}
		if (notified)
			ret[n++] = call->nr;
	}
	if (c->mapped && c->mapped->n)
		n += filter_watched_calls(ret + n, FILTER_MAX_NOTIFIED - n);
	if (c->io_uring && n < FILTER_MAX_NOTIFIED)
		ret[n++] = SYS_io_uring_setup;
	return n;
}

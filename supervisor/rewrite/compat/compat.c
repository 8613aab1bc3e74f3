// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The theory of operation is in compat.h.  Structures are those of the kernel's asm/compat.h and
 * asm/sys_ia32.h.
 */
#include "supervisor/rewrite/compat/compat.h"

#include <linux/audit.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/sysmacros.h>

#include "base/base.h"
#include "supervisor/policy/policy.h"

#define N_ARGS 6

/* ---- registers ------------------------------------------------------------------------------ */

typedef unsigned long long reg;

enum { I386_CLONE = 120 };

static reg *arg32(struct user_regs_struct *r, int i)
{
	reg *const all[N_ARGS] = {&r->rbx, &r->rcx, &r->rdx, &r->rsi, &r->rdi, &r->rbp};

	return all[i];
}

static reg *arg64(struct user_regs_struct *r, int i)
{
	reg *const all[N_ARGS] = {&r->rdi, &r->rsi, &r->rdx, &r->r10, &r->r8, &r->r9};

	return all[i];
}

/* Which argument of x86-64's is argument @i: clone(2) has the last two the other way round. */
static int order(int nr, int i)
{
	return nr != I386_CLONE || i < 3 || i > 4 ? i : 7 - i;
}

static int number64(int nr)
{
	int like = policy_number64(nr);

	return nr < 0 || like >= 0 ? like : COMPAT_OWN | nr;
}

static void translate(struct user_regs_struct *regs)
{
	struct user_regs_struct raw = *regs;
	int nr = (int)raw.orig_rax;

	for (int i = 0; i < N_ARGS; i++)
		*arg64(regs, order(nr, i)) = (uint32_t)*arg32(&raw, i);
	regs->orig_rax = (reg)(long long)number64(nr);
}

static int get_all(pid_t host, struct compat_call *c, struct user_regs_struct *ret)
{
	if (ptrace(PTRACE_GETREGS, host, 0, ret) < 0)
		return -errno;
	c->raw = *ret;
	if (!c->is)
		return 0;
	c->nr = (int)ret->orig_rax;
	translate(ret);
	return 0;
}

/* What the kernel says of a call at its entry costs half as much as all registers do. */
static void take_entry(const struct __ptrace_syscall_info *info, struct user_regs_struct *ret)
{
	*ret = (struct user_regs_struct){.orig_rax = (reg)(long long)(int)info->seccomp.nr,
		.rax = (reg)-ENOSYS,
		.rip = info->instruction_pointer,
		.rsp = info->stack_pointer};
	for (int i = 0; i < N_ARGS; i++)
		*arg64(ret, i) = info->seccomp.args[i];
}

int compat_get(pid_t host, struct compat_call *c, struct user_regs_struct *ret)
{
	struct __ptrace_syscall_info info;
	long n = ptrace(PTRACE_GET_SYSCALL_INFO, host, sizeof(info), &info);

	c->is = n > 0 && info.arch == AUDIT_ARCH_I386;
	c->unpacked = false;
	if (n <= 0 || c->is || info.op != PTRACE_SYSCALL_INFO_SECCOMP)
		return get_all(host, c, ret);
	take_entry(&info, ret);
	c->raw = *ret;
	return 0;
}

int compat_get_again(pid_t host, struct compat_call *c, struct user_regs_struct *ret)
{
	struct __ptrace_syscall_info info;

	if (c->is) {
		if (ptrace(PTRACE_GETREGS, host, 0, ret) < 0)
			return -errno;
		translate(ret);
		return 0;
	}
	if (ptrace(PTRACE_GET_SYSCALL_INFO, host, sizeof(info), &info) <= 0 ||
		info.op != PTRACE_SYSCALL_INFO_EXIT)
		return get_all(host, c, ret);
	c->raw.rax = (reg)info.exit.rval;
	c->raw.rip = info.instruction_pointer;
	c->raw.rsp = info.stack_pointer;
	*ret = c->raw;
	return 0;
}

/* None of these numbers is that of a birth in the table of i386. */
int compat_get_birth(pid_t host, struct compat_call *c, struct user_regs_struct *ret)
{
	int r;

	c->is = false;
	c->unpacked = false;
	r = get_all(host, c, ret);
	if (r < 0)
		return r;
	switch ((int)ret->orig_rax) {
	case SYS_clone:
	case SYS_fork:
	case SYS_vfork:
		return 0;
	default:
		return compat_get(host, c, ret);
	}
}

int compat_number(const struct compat_call *c, int nr)
{
	if (!c->is)
		return nr;
	return policy_number64(c->nr) == nr ? c->nr : policy_number32(nr);
}

static reg number_of(const struct compat_call *c, reg nr)
{
	if ((int)nr == -1)
		return (reg)-1;
	return (reg)(nr & COMPAT_OWN ? (int)nr & ~COMPAT_OWN : compat_number(c, (int)nr));
}

/* What is in the other registers is none of the call's. */
static struct user_regs_struct own(const struct compat_call *c, const struct user_regs_struct *regs)
{
	struct user_regs_struct r = *regs, raw = c->raw;

	for (int i = 0; i < N_ARGS; i++) {
		*arg64(&r, i) = *arg64(&raw, i);
		*arg32(&r, i) = *arg32(&raw, i);
	}
	return r;
}

/* A register costs a third of what all do. */
static void poke_changed(pid_t host, struct compat_call *c, const struct user_regs_struct *regs)
{
	reg was[sizeof(*regs) / sizeof(reg)], is[ARRAY_SIZE(was)];

	memcpy(was, &c->raw, sizeof(was));
	memcpy(is, regs, sizeof(is));
	for (size_t i = 0; i < ARRAY_SIZE(is); i++)
		if (is[i] != was[i])
			ptrace(PTRACE_POKEUSER, host, i * sizeof(reg), is[i]);
	c->raw = *regs;
}

void compat_set(pid_t host, struct compat_call *c, const struct user_regs_struct *regs)
{
	struct user_regs_struct r, said = *regs;

	if (!c->is) {
		poke_changed(host, c, regs);
		return;
	}
	r = own(c, regs);
	r.orig_rax = number_of(c, regs->orig_rax);
	for (int i = 0; i < N_ARGS; i++) {
		uint32_t value = (uint32_t)*arg64(&said, order((int)r.orig_rax, i));

		/* The upper half is the task's own. */
		if ((uint32_t)*arg32(&r, i) != value)
			*arg32(&r, i) = value;
	}
	ptrace(PTRACE_SETREGS, host, 0, &r);
}

void compat_set_back(pid_t host, struct compat_call *c, const struct user_regs_struct *regs)
{
	struct user_regs_struct r;

	if (!c->is) {
		poke_changed(host, c, regs);
		return;
	}
	r = own(c, regs);
	/* A call that is made again is the one that it was. */
	if ((int)regs->orig_rax != -1)
		r.orig_rax = c->raw.orig_rax;
	ptrace(PTRACE_SETREGS, host, 0, &r);
}

void compat_set_result(pid_t host, long value)
{
	ptrace(PTRACE_POKEUSER, host, offsetof(struct user_regs_struct, rax), value);
}

bool compat_is_code(const struct user_regs_struct *regs)
{
	return regs->cs != 0x33 && regs->cs != 0xe033; /* __USER_CS; the same under Xen */
}

/* ---- structures ----------------------------------------------------------------------------- */

static int32_t word(const void *from, size_t at)
{
	int32_t w;

	memcpy(&w, (const char *)from + at, sizeof(w));
	return w;
}

/* siginfo_layout() of the kernel, as far as memory looks different. */
void compat_siginfo(const void *from, siginfo_t *ret)
{
	*ret = (siginfo_t){
		.si_signo = word(from, 0), .si_errno = word(from, 4), .si_code = word(from, 8)};
	if (ret->si_code > 0 && ret->si_code < SI_KERNEL) {
		switch (ret->si_signo) {
		case SIGILL:
		case SIGFPE:
		case SIGSEGV:
		case SIGBUS:
		case SIGTRAP:
			ret->si_addr = (void *)(uintptr_t)(uint32_t)word(from, 12);
			return;
		case SIGPOLL:
			ret->si_band = word(from, 12);
			ret->si_fd = word(from, 16);
			return;
		case SIGCHLD:
			ret->si_utime = word(from, 24);
			ret->si_stime = word(from, 28);
			break;
		case SIGSYS:
			ret->si_call_addr = (void *)(uintptr_t)(uint32_t)word(from, 12);
			ret->si_syscall = word(from, 16);
			ret->si_arch = (unsigned)word(from, 20);
			return;
		default:
			break;
		}
	}
	/* Three numbers, whatever they are called; SIGCHLD's status is the third, too. */
	ret->si_pid = word(from, 12);
	ret->si_uid = (uid_t)word(from, 16);
	if (ret->si_signo == SIGCHLD && ret->si_code > 0)
		ret->si_status = word(from, 20);
	else
		ret->si_int = word(from, 20);
}

static struct compat_timespec64 time_of(struct timespec t)
{
	return (struct compat_timespec64){(uint32_t)t.tv_sec, (uint32_t)t.tv_nsec};
}

static uint16_t short_id(uint32_t id)
{
	return id > UINT16_MAX ? 65534 : (uint16_t)id; /* the kernel's overflowuid */
}

/* old_encode_dev() */
static bool short_device(dev_t dev, uint32_t *ret)
{
	*ret = major(dev) << 8 | minor(dev);
	return major(dev) < 256 && minor(dev) < 256;
}

/* cp_compat_stat() of the kernel. */
static int fill_old(const struct stat *st, struct compat_stat *ret)
{
	*ret = (struct compat_stat){.ino = (uint32_t)st->st_ino,
		.mode = (uint16_t)st->st_mode,
		.nlink = (uint16_t)st->st_nlink,
		.uid = short_id(st->st_uid),
		.gid = short_id(st->st_gid),
		.size = (uint32_t)st->st_size,
		.blksize = (uint32_t)st->st_blksize,
		.blocks = (uint32_t)st->st_blocks,
		.atime = time_of(st->st_atim),
		.mtime = time_of(st->st_mtim),
		.ctime = time_of(st->st_ctim)};
	if (!short_device(st->st_dev, &ret->dev) || !short_device(st->st_rdev, &ret->rdev) ||
		ret->ino != st->st_ino || ret->nlink != st->st_nlink || st->st_size > INT32_MAX)
		return -EOVERFLOW;
	return sizeof(*ret);
}

/* cp_stat64() of the kernel. */
static int fill_large(const struct stat *st, struct compat_stat64 *ret)
{
	*ret = (struct compat_stat64){.dev = st->st_dev,
		.short_ino = (uint32_t)st->st_ino,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.rdev = st->st_rdev,
		.size = (uint64_t)st->st_size,
		.blksize = (uint32_t)st->st_blksize,
		.blocks = (uint64_t)st->st_blocks,
		.atime = time_of(st->st_atim),
		.mtime = time_of(st->st_mtim),
		.ctime = time_of(st->st_ctim),
		.ino = st->st_ino};
	return sizeof(*ret);
}

int compat_fill_stat(int nr, const struct stat *st, union compat_any_stat *ret)
{
	enum { STAT = 106, LSTAT, FSTAT };

	return nr >= STAT && nr <= FSTAT ? fill_old(st, &ret->old) : fill_large(st, &ret->large);
}

/* ---- what only a 32-bit call tells ----------------------------------------------------------- */

static long by_interrupt(int nr, uint32_t a, uint32_t b, uint32_t c)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return r;
}

uint32_t compat_robust_list(pid_t host)
{
	enum { GET_ROBUST_LIST = 312 };
	uint32_t *low = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0),
		 at = 0;

	if (low == MAP_FAILED)
		return 0;
	if (by_interrupt(GET_ROBUST_LIST, (uint32_t)host, (uint32_t)(uintptr_t)low,
		    (uint32_t)(uintptr_t)(low + 1)) == 0)
		at = low[0];
	munmap(low, PAGE_SIZE);
	return at;
}

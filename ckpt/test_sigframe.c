// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames of signal handlers that come from another CPU: some made up in our own memory, and one by
 * which a child's handler returns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "base/base.h"
#include "ckpt/sigframe.h"
#include "ckpt/xstate.h"

#define MAGIC1	 0x46505853u
#define MAGIC2	 0x46505845u
#define FRAME	 440 /* of x86-64: struct rt_sigframe */
#define AVX	 2
#define BNDREGS	 3
#define BNDCSR	 4
#define PKRU	 9
#define ROOM	 (64u << 10)
#define SP_AT	 4096 /* in the stack that is made up */
#define BLOCK_AT 8192

/* As Intel had it with MPX, and with protection keys as well. */
static const struct ckpt_xstate_place with_mpx[XSTATE_COMPONENTS] = {
	[AVX] = {256, 576}, [BNDREGS] = {64, 960}, [BNDCSR] = {64, 1024}};
static const struct ckpt_xstate_place with_keys[XSTATE_COMPONENTS] = {
	[AVX] = {256, 576}, [PKRU] = {8, 2688}};
/* As AMD has it. */
static const struct ckpt_xstate_place amd[XSTATE_COMPONENTS] = {
	[AVX] = {256, 576}, [PKRU] = {8, 832}};
static const struct ckpt_xstate_place plain[XSTATE_COMPONENTS] = {[AVX] = {256, 576}};
static const struct ckpt_xstate_place elsewhere[XSTATE_COMPONENTS] = {[AVX] = {256, 1024}};

static void put_u32(uint8_t *at, uint32_t v)
{
	memcpy(at, &v, sizeof(v));
}

static void put_u64(uint8_t *at, uint64_t v)
{
	memcpy(at, &v, sizeof(v));
}

static uint32_t bytes_of(const struct ckpt_xstate_place *all)
{
	uint32_t end = 576;

	for (unsigned i = 2; i < XSTATE_COMPONENTS; i++)
		end = MAX(end, all[i].size ? all[i].offset + all[i].size : 0);
	return end;
}

/* The block of a CPU with @all, all of it in use: each component's bytes are its number. */
static void fill_block(uint8_t *block, const struct ckpt_xstate_place *all, uint32_t before)
{
	uint32_t size = bytes_of(all);
	uint64_t bits = 3;

	for (unsigned i = 2; i < XSTATE_COMPONENTS; i++) {
		memset(block + all[i].offset, (int)i, all[i].size);
		bits |= all[i].size ? 1ULL << i : 0;
	}
	put_u32(block + 464, MAGIC1);
	put_u32(block + 468, size + 4 + before);
	put_u64(block + 472, bits);
	put_u32(block + 480, size);
	put_u64(block + 512, bits);
	memset(block + 520, 0, 56);
	put_u32(block + size, MAGIC2);
}

/* A stack with one frame; the stack pointer is SP_AT bytes behind its beginning. */
static uint8_t *make_stack(int where)
{
	uint8_t *p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | where, -1, 0);

	assert_true(p != MAP_FAILED);
	memset(p, 0x99, ROOM);
	return p;
}

static uint8_t *make_frame(uint8_t *stack, const struct ckpt_xstate_place *all)
{
	uint8_t *block = stack + BLOCK_AT;
	uint8_t *frame = (uint8_t *)(((uintptr_t)block - FRAME) & ~15UL) - 8;

	fill_block(block, all, 0);
	put_u64(frame + 232, (uintptr_t)block);
	put_u64(frame + 168, (uintptr_t)block + bytes_of(all) + 200);
	return block;
}

static int mend(const uint8_t *sp, const struct ckpt_xstate_place *old,
	const struct ckpt_xstate_place *now, struct err *e)
{
	_cleanup_free_ struct ckpt_sigframes *s = NULL;
	int r = ckpt_sigframes_new(old, now, &s, e);

	assert_int_equal(r, 0);
	assert_non_null(s);
	r = ckpt_sigframes_mend(&s, getpid(), 1, (uintptr_t)sp, e);
	/* whoever else meets it finds it done */
	return r < 0 ? r : ckpt_sigframes_mend(&s, getpid(), 1, (uintptr_t)sp, e);
}

static void assert_all(const uint8_t *p, uint8_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(p[i], value);
}

static void the_same_layout_is_left_alone(void **state)
{
	struct ckpt_sigframes *s;
	struct err e = {0};

	assert_int_equal(ckpt_sigframes_new(plain, plain, &s, &e), 0);
	assert_null(s);
	/* more than there was */
	assert_int_equal(ckpt_sigframes_new(plain, with_mpx, &s, &e), 0);
	assert_null(s);
}

/* Bounds that are all zero are what everybody has. */
static void what_the_cpu_lacks_is_not_in_use_any_more(void **state)
{
	uint8_t *stack = make_stack(0), *b = make_frame(stack, with_mpx);
	struct err e = {0};

	memset(b + 960, 0, 64);
	memset(b + 1024, 0, 16); /* and reserved bytes behind them */
	assert_int_equal(mend(stack + SP_AT, with_mpx, plain, &e), 0);
	assert_int_equal(bytes_u64(b + 512), 7);
	assert_int_equal(bytes_u64(b + 472), 7);
	assert_int_equal(bytes_u32(b + 480), 832);
	assert_int_equal(bytes_u32(b + 468), 836);
	assert_int_equal(bytes_u32(b + 832), MAGIC2);
	assert_all(b + 576, AVX, 256);
	munmap(stack, ROOM);
}

static void what_is_in_use_and_has_no_register_is_refused(void **state)
{
	uint8_t *stack = make_stack(0), *b = make_frame(stack, with_mpx);
	_cleanup_free_ uint8_t *as_it_was = malloc(ROOM);
	struct err e = {0};

	assert_non_null(as_it_was);
	memcpy(as_it_was, stack, ROOM);
	assert_int_equal(mend(stack + SP_AT, with_mpx, plain, &e), -EOPNOTSUPP);
	assert_int_equal(e.class, ERR_HOST);
	assert_memory_equal(stack, as_it_was, ROOM);
	assert_ptr_equal(b, stack + BLOCK_AT);
	munmap(stack, ROOM);
}

static void components_go_where_this_cpu_has_them(void **state)
{
	uint8_t *stack = make_stack(0), *b = make_frame(stack, with_keys);
	struct err e = {0};

	put_u32(b + 2688, 0xc);
	assert_int_equal(mend(stack + SP_AT, with_keys, amd, &e), 0);
	assert_int_equal(bytes_u64(b + 512), 7 | 1 << PKRU);
	assert_int_equal(bytes_u32(b + 832), 0xc);
	assert_int_equal(bytes_u32(b + 480), 840);
	assert_int_equal(bytes_u32(b + 840), MAGIC2);
	assert_all(b + 576, AVX, 256);
	munmap(stack, ROOM);
}

/* Behind the frame the interrupted stack begins. */
static void there_is_no_more_room_than_there_was(void **state)
{
	uint8_t *stack = make_stack(0), *b = make_frame(stack, amd);
	struct err e = {0};

	put_u32(b + 832, 0xc);
	assert_int_equal(mend(stack + SP_AT, amd, with_keys, &e), -EOPNOTSUPP);
	put_u32(b + 832, 0x55555554);
	assert_int_equal(mend(stack + SP_AT, amd, with_keys, &e), 0);
	assert_int_equal(bytes_u64(b + 472), 7); /* so the kernel puts the same */
	assert_int_equal(bytes_u64(b + 512), 7);
	assert_int_equal(bytes_u32(b + 480), 840);
	assert_all(b + 844, 0x99, 1000);
	munmap(stack, ROOM);
}

static void what_only_looks_like_one_is_left_alone(void **state)
{
	static const size_t written[] = {464, 468, 480, 520, 1280};
	uint8_t *stack = make_stack(0), *b = make_frame(stack, elsewhere);
	uint8_t *frame = (uint8_t *)(((uintptr_t)b - FRAME) & ~15UL) - 8;
	_cleanup_free_ uint8_t *as_it_was = malloc(ROOM);
	struct err e = {0};

	assert_non_null(as_it_was);
	memcpy(as_it_was, stack, ROOM);
	/* it is below where the task stands: its handler has returned */
	assert_int_equal(mend(frame + 9, elsewhere, plain, &e), 0);
	assert_memory_equal(stack, as_it_was, ROOM);
	/* nothing leads to it */
	put_u64(frame + 232, (uintptr_t)b + 64);
	assert_int_equal(mend(stack + SP_AT, elsewhere, plain, &e), 0);
	put_u64(frame + 232, (uintptr_t)b);
	assert_memory_equal(stack, as_it_was, ROOM);
	/* it has been written to */
	for (size_t i = 0; i < ARRAY_SIZE(written); i++) {
		b[written[i]]++;
		assert_int_equal(mend(stack + SP_AT, elsewhere, plain, &e), 0);
		b[written[i]]--;
		assert_memory_equal(stack, as_it_was, ROOM);
	}
	assert_int_equal(mend(stack + SP_AT, elsewhere, plain, &e), 0);
	assert_all(b + 576, AVX, 256);
	munmap(stack, ROOM);
}

static void frames_of_32_bit_programs_are_found(void **state)
{
	uint8_t *stack = make_stack(MAP_32BIT), *other = make_stack(MAP_32BIT), *b = stack + BLOCK_AT;
	struct err e = {0};

	fill_block(b, elsewhere, 112);
	put_u32(b - 400, (uint32_t)(uintptr_t)b - 112);
	put_u32(b - 448, (uint32_t)(uintptr_t)other + SP_AT);
	fill_block(other + BLOCK_AT, elsewhere, 112);
	put_u32(other + BLOCK_AT - 400, (uint32_t)(uintptr_t)other + BLOCK_AT - 112);
	put_u32(other + BLOCK_AT - 448, 0);
	assert_int_equal(munmap(stack + ROOM / 2, ROOM / 2), 0);
	assert_int_equal(mend(stack + SP_AT, elsewhere, plain, &e), 0);
	assert_all(b + 576, AVX, 256);
	assert_int_equal(bytes_u32(b + 480), 832);
	assert_int_equal(bytes_u32(b + 468), 832 + 4 + 112);
	assert_all(other + BLOCK_AT + 576, AVX, 256);
	munmap(stack, ROOM / 2);
	munmap(other, ROOM);
}

/* A stack of its own for handlers lies just below the thread's, and the page between is nobody's. */
static void a_stack_behind_a_gap_is_another(void **state)
{
	uint8_t *low = make_stack(0), *high = low + ROOM / 2;
	uint8_t *a = make_frame(low, elsewhere), *b = make_frame(high, elsewhere);
	struct err e = {0};

	put_u64((uint8_t *)(((uintptr_t)a - FRAME) & ~15UL) - 8 + 168, (uintptr_t)high + SP_AT);
	assert_int_equal(munmap(high - 4096, 4096), 0);
	assert_int_equal(mend(low + SP_AT, elsewhere, plain, &e), 0);
	assert_all(a + 576, AVX, 256);
	assert_all(b + 576, AVX, 256);
	munmap(low, ROOM);
}

/* A handler on a stack of its own was interrupted by, or has interrupted, one on the thread's. */
static void one_stack_leads_to_the_other(void **state)
{
	uint8_t *one = make_stack(0), *other = make_stack(0);
	uint8_t *a = make_frame(one, elsewhere), *b = make_frame(other, elsewhere);
	struct err e = {0};

	put_u64((uint8_t *)(((uintptr_t)a - FRAME) & ~15UL) - 8 + 168, (uintptr_t)other + SP_AT);
	assert_int_equal(munmap(one + ROOM / 2, ROOM / 2), 0);
	assert_int_equal(mend(one + SP_AT, elsewhere, plain, &e), 0);
	assert_all(a + 576, AVX, 256);
	assert_all(b + 576, AVX, 256);
	munmap(one, ROOM / 2);
	munmap(other, ROOM);
}

static void a_place_that_can_not_be_is_refused(void **state)
{
	struct ckpt_xstate_place bad[XSTATE_COMPONENTS] = {[AVX] = {256, 100}};
	struct ckpt_sigframes *s;
	struct err e = {0};

	assert_int_equal(ckpt_sigframes_new(bad, plain, &s, &e), -EINVAL);
	bad[AVX] = (struct ckpt_xstate_place){UINT32_MAX, 576};
	assert_int_equal(ckpt_sigframes_new(bad, plain, &s, &e), -EINVAL);
	bad[AVX] = (struct ckpt_xstate_place){256, UINT32_MAX - 100};
	assert_int_equal(ckpt_sigframes_new(bad, plain, &s, &e), -EINVAL);
}

/* ---- a handler that returns ----------------------------------------------------------------- */

/* The other CPU has more bytes than any, upper halves of AVX far from here, and what none has. */
#define FOREIGN 62
static const struct ckpt_xstate_place foreign[XSTATE_COMPONENTS] = {
	[AVX] = {256, 4096}, [FOREIGN] = {64, 8192}};

static void hold(void)
{
	raise(SIGSTOP);
}

/*
 * On a stack of its own: makes the frame that the other CPU's kernel would have made, and goes on
 * as a handler that returns by that.
 */
static void handle(int sig, siginfo_t *info, void *ctx)
{
	ucontext_t *uc = ctx;
	const uint8_t *frame = (const uint8_t *)uc - 8;
	const uint8_t *real = (const uint8_t *)uc->uc_mcontext.fpregs;
	uint64_t sp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP] - 128 - bytes_of(foreign) - 4;
	uint8_t *block = (uint8_t *)(sp & ~63UL);
	uint8_t *made = (uint8_t *)(((uintptr_t)block - FRAME) & ~15UL) - 8;

	memcpy(made, frame, FRAME);
	put_u64(made + 232, (uintptr_t)block);
	fill_block(block, foreign, 0);
	memcpy(block, real, 464);
	memcpy(block + 4096, real + 576, 256);
	memset(block + 8192, 0, 64);
	__asm__ volatile("mov %0, %%rsp\n\tjmp *%1" : : "r"(made), "r"(hold) : "memory");
}

static void interrupted(void)
{
	static const uint64_t pattern[4] = {1, 2, 0x0123456789abcdef, 0xfedcba9876543210};
	static uint8_t own[16384] __attribute__((aligned(16)));
	const stack_t stack = {.ss_sp = own, .ss_size = sizeof(own)};
	struct sigaction act = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	uint64_t after[4];
	long nr = SYS_kill;

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &act, NULL);
	__asm__ volatile("vmovdqu %2, %%ymm3\n\tsyscall\n\tvmovdqu %%ymm3, %1"
		: "+a"(nr), "=m"(after)
		: "m"(pattern), "D"(getpid()), "S"(SIGUSR1)
		: "rcx", "r11", "xmm3", "memory");
	_exit(memcmp(after, pattern, sizeof(after)) ? 2 : 0);
}

static void a_handler_returns_by_it(void **state)
{
	struct ckpt_xstate_place now[XSTATE_COMPONENTS];
	struct ckpt_sigframes *s = NULL;
	struct err e = {0};
	ucontext_t here;
	int status;
	pid_t pid;

	if (!__builtin_cpu_supports("avx"))
		skip();
	memcpy(now, ckpt_xstate_places(), sizeof(now));
	pid = fork();
	if (pid == 0)
		interrupted();
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ckpt_sigframes_new(foreign, now, &s, &e), 0);
	assert_non_null(s);
	/* The child stands below; our own stack is where its is, and we are farther up than its frame. */
	assert_int_equal(getcontext(&here), 0);
	assert_int_equal(ckpt_sigframes_mend(&s, pid, 1,
				 (uint64_t)here.uc_mcontext.gregs[REG_RSP] - (32 << 10), &e), 0);
	free(s);
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_layout_is_left_alone),
		cmocka_unit_test(what_the_cpu_lacks_is_not_in_use_any_more),
		cmocka_unit_test(what_is_in_use_and_has_no_register_is_refused),
		cmocka_unit_test(components_go_where_this_cpu_has_them),
		cmocka_unit_test(there_is_no_more_room_than_there_was),
		cmocka_unit_test(what_only_looks_like_one_is_left_alone),
		cmocka_unit_test(frames_of_32_bit_programs_are_found),
		cmocka_unit_test(a_stack_behind_a_gap_is_another),
		cmocka_unit_test(one_stack_leads_to_the_other),
		cmocka_unit_test(a_place_that_can_not_be_is_refused),
		cmocka_unit_test(a_handler_returns_by_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

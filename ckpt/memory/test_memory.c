// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unit tests of ckpt/memory: pages of a stopped child, the vDSO's trampolines, free addresses,
 * protection keys.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/memory/memory.h"
#include "proto/memory.pb-c.h"
#include "proto/proto.h"

#define PAGES 2048
#define NR(p) ((p)*PAGE_SIZE)

/* Which page holds what: the same in the child that is dumped and in the check. */
static int content(size_t page)
{
	if (page < 3)
		return 1;
	if (page >= 10 && page < 1500)
		return page == 700 ? 0 : 2 + (int)(page % 200);
	return page == 2000 ? 9 : 0;
}

static pid_t start_child(uint8_t *map)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (size_t i = 0; i < PAGES; i++)
			if (content(i) || i == 1600)
				memset(map + NR(i), content(i), PAGE_SIZE);
		mprotect(map, NR(2), PROT_NONE);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, NULL, WUNTRACED);
	return pid;
}

static void check_image(int fd, const char *dir, uint64_t base)
{
	struct proto_read_options o = {.config_dir = dir};
	struct proto_frame f;
	struct proto_reader *r;
	struct err e = {0};
	uint8_t seen[PAGES] = {0};

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(proto_reader_open(&r, fd, &o, &e), 0);
	for (;;) {
		assert_int_equal(proto_read(r, &f, &e), 0);
		if (f.type == PROTO_END)
			break;
		assert_int_equal(f.kind, PROTO_KIND_MM);
		for (size_t i = 0; i < f.len / PAGE_SIZE; i++) {
			size_t page = (f.offset - base) / PAGE_SIZE + i;
			const uint8_t *p = (const uint8_t *)f.data + NR(i);

			assert_true(page < PAGES);
			assert_int_equal(p[0], content(page));
			assert_memory_equal(p, p + 1, PAGE_SIZE - 1);
			seen[page] = 1;
		}
	}
	for (size_t i = 0; i < PAGES; i++)
		assert_true(seen[i] || !content(i));
	assert_false(seen[1600]); /* touched, but zero */
	proto_reader_close(r);
}

static void test_pages(void **state)
{
	char dir[] = "/tmp/test_memory.XXXXXX";
	uint8_t *map =
		mmap(NULL, NR(PAGES), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int image = memfd_create("image", MFD_CLOEXEC);
	struct proto_write_options o = {0};
	struct ckpt_pages pages;
	struct buf runs = BUF_INIT, again = BUF_INIT;
	struct proto_writer *w;
	struct proto_key *key;
	struct err e = {0};
	uint64_t base = (uint64_t)(uintptr_t)map;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(proto_key_open(&key, dir, &e), 0);
	o.key = key;
	assert_int_equal(proto_writer_open(&w, image, &o, &e), 0);
	pid_t pid = start_child(map);
	int proc = proc_open(&e);

	assert_int_equal(ckpt_pages_open(&pages, proc, pid, &e), 0);
	assert_int_equal(ckpt_pages_find(&pages, base, base + NR(PAGES), &runs, NULL, &e), 0);
	pages.method = 3; /* the page map of older kernels says the same */
	assert_int_equal(ckpt_pages_find(&pages, base, base + NR(PAGES), &again, NULL, &e), 0);
	assert_int_equal(runs.len, again.len);
	assert_memory_equal(runs.data, again.data, runs.len);
	for (size_t i = 0; i < runs.len / sizeof(struct ckpt_run); i++)
		assert_int_equal(ckpt_pages_write(&pages, w, PROTO_KIND_MM, 7,
					 ((struct ckpt_run *)runs.data)[i], 0, false, &e),
			0);
	ckpt_pages_close(&pages);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(proto_writer_finish(w, NULL, &e), 0);
	proto_writer_close(w);
	check_image(image, dir, base);
	proto_key_close(key);
	buf_fini(&runs);
	buf_fini(&again);
	munmap(map, NR(PAGES));
	close(image);
	close(proc);
	io_rm_rf(AT_FDCWD, dir);
}

static size_t own_vdso(const uint8_t **ret)
{
	size_t len = 0;
	struct proc_maps maps;
	int proc = proc_open(NULL);

	assert_int_equal(proc_read_maps(proc, getpid(), false, &maps, NULL), 0);
	for (size_t i = 0; i < maps.n; i++)
		if (!strcmp(maps.vmas[i].path, "[vdso]"))
			len = maps.vmas[i].end - maps.vmas[i].start;
	proc_maps_fini(&maps);
	close(proc);
	*ret = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	return len;
}

/* The value of a function symbol, found by an independent and simple-minded search. */
static uint64_t symbol(const uint8_t *elf, const char *name)
{
	const Elf64_Ehdr *eh = (const void *)elf;
	const Elf64_Phdr *ph = (const void *)(elf + eh->e_phoff);
	const Elf64_Sym *sym = NULL;
	const char *str = NULL;

	for (int i = 0; i < eh->e_phnum; i++)
		for (const Elf64_Dyn *dyn = (const void *)(elf + ph[i].p_offset);
			ph[i].p_type == PT_DYNAMIC && dyn->d_tag; dyn++) {
			if (dyn->d_tag == DT_SYMTAB)
				sym = (const void *)(elf + dyn->d_un.d_ptr);
			if (dyn->d_tag == DT_STRTAB)
				str = (const char *)elf + dyn->d_un.d_ptr;
		}
	for (int i = 1; i < 20; i++)
		if (!strcmp(str + sym[i].st_name, name))
			return sym[i].st_value;
	return 0;
}

static void try_vdso(uint8_t *code, const uint8_t *vdso)
{
	int (*get)(clockid_t, struct timespec *);
	time_t (*get_time)(time_t *);
	uint64_t at;
	struct timespec a, b;

	at = (uint64_t)(uintptr_t)code + symbol(vdso, "__vdso_clock_gettime");
	memcpy(&get, &at, sizeof(at));
	at = (uint64_t)(uintptr_t)code + symbol(vdso, "__vdso_time");
	memcpy(&get_time, &at, sizeof(at));
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &a), 0);
	assert_int_equal(get(CLOCK_MONOTONIC, &b), 0);
	assert_true(b.tv_sec - a.tv_sec >= 0 && b.tv_sec - a.tv_sec < 10);
	assert_true(get_time(NULL) - time(NULL) < 10);
}

static void test_vdso(void **state)
{
	const uint8_t *vdso;
	size_t len = own_vdso(&vdso);
	uint8_t *host = malloc(len), *code;
	struct err e = {0};

	if (!len)
		skip();
	code = mmap(
		NULL, len, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, vdso, len);
	assert_int_equal(
		ckpt_vdso_redirect(code, len, 0, vdso, len, (uint64_t)(uintptr_t)vdso, &e), 0);
	try_vdso(code, vdso);

	/* a host that knows none of the symbols: stubs */
	memcpy(host, vdso, len);
	for (size_t i = 0; i + 4 < len; i++)
		if (!memcmp(host + i, "cloc", 4) || !memcmp(host + i, "time", 4))
			memcpy(host + i, "none", 4);
	memcpy(code, vdso, len);
	assert_int_equal(
		ckpt_vdso_redirect(code, len, 0, host, len, (uint64_t)(uintptr_t)vdso, &e), 0);
	try_vdso(code, vdso);
	assert_int_equal(code[symbol(vdso, "__vdso_clock_gettime")], 0xb8);

	/* nonsense is refused, at any length */
	for (size_t i = 0; i < len; i += 7)
		ckpt_vdso_redirect(code, len, 0, host, i, 0, &e);
	memset(host, 0xff, len);
	assert_true(ckpt_vdso_redirect(host, len, 0, vdso, len, 0, &e) < 0);
	free(host);
	munmap(code, len);
}

/*
 * What the function gives for @clock less what the kernel does, which was asked before and behind.
 */
static void expect_offset(
	int (*get)(clockid_t, struct timespec *), clockid_t clock, int64_t offset_ns)
{
	struct timespec before, t, behind;

	assert_int_equal(syscall(SYS_clock_gettime, clock, &before), 0);
	assert_int_equal(get(clock, &t), 0);
	assert_int_equal(syscall(SYS_clock_gettime, clock, &behind), 0);
	assert_true(t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
	assert_true(io_ns_of(t) - offset_ns >= (int64_t)io_ns_of(before));
	assert_true(io_ns_of(t) - offset_ns <= (int64_t)io_ns_of(behind));
}

static void try_clocks(uint8_t *vdso, size_t len, const struct ckpt_clocks *c)
{
	uint64_t at = (uint64_t)(uintptr_t)vdso + symbol(vdso, "__vdso_clock_gettime");
	int (*get)(clockid_t, struct timespec *);
	struct timespec t;

	assert_int_equal(symbol(vdso, "clock_gettime"), symbol(vdso, "__vdso_clock_gettime"));
	memcpy(&get, &at, sizeof(at));
	expect_offset(get, CLOCK_MONOTONIC, c->monotonic_ns);
	expect_offset(get, CLOCK_MONOTONIC_RAW, c->monotonic_ns);
	expect_offset(get, CLOCK_MONOTONIC_COARSE, c->monotonic_ns);
	expect_offset(get, CLOCK_BOOTTIME, c->boottime_ns);
	expect_offset(get, CLOCK_REALTIME, 0);
	expect_offset(get, CLOCK_PROCESS_CPUTIME_ID, 0);
	assert_true(get(1000, &t) < 0);
}

/* In a vDSO of our own: a child's. */
static void test_clocks(void **state)
{
	static const struct ckpt_clocks some[] = {{0, 0}, {86400000000000, 3}, {-1, -999999999},
		{-1000000000, 5000000000000000}, {999999999, -1}};
	const uint8_t *vdso;
	size_t len = own_vdso(&vdso);
	uint8_t *code = malloc(len), *other = malloc(len);
	int status, mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	pid_t pid;

	if (!len)
		skip();
	assert_true(mem >= 0 && code && other);
	assert_false(ckpt_vdso_likens(vdso, vdso, len));
	for (size_t i = 0; i < ARRAY_SIZE(some); i++) {
		memcpy(code, vdso, len);
		assert_int_equal(ckpt_vdso_continue(code, len, &some[i]), 0);
		assert_true(ckpt_vdso_likens(code, vdso, len));
		pid = fork();
		if (pid == 0) {
			close(mem);
			mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
			assert_int_equal(
				pwrite(mem, code, len, (off_t)(uintptr_t)vdso), (ssize_t)len);
			try_clocks((uint8_t *)(uintptr_t)vdso, len, &some[i]);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	/* what was added is forgotten, and another one is no likeness */
	memcpy(other, vdso, len);
	assert_int_equal(ckpt_vdso_continue(other, len, &some[0]), 0);
	assert_true(memcmp(code, other, len) != 0);
	ckpt_vdso_stop(code, len);
	assert_memory_equal(code, other, len);
	code[symbol(vdso, "time")] ^= 1;
	assert_false(ckpt_vdso_likens(code, vdso, len));
	memcpy(other, vdso, len);
	ckpt_vdso_stop(other, len);
	assert_memory_equal(other, vdso, len);

	/* no room: the function is gone, and is found nowhere */
	for (size_t i = 0; i < 4096 && !other[len - 1 - i]; i++)
		other[len - 1 - i] = 1;
	assert_int_equal(ckpt_vdso_continue(other, len, &some[1]), 0);
	assert_int_equal(symbol(other, "__vdso_clock_gettime"), 0);
	assert_int_equal(symbol(other, "clock_gettime"), 0);
	assert_int_equal(symbol(other, "__vdso_time"), symbol(vdso, "__vdso_time"));

	/* nonsense, at any length */
	for (size_t i = 0; i < len; i += 7) {
		memcpy(other, vdso, len);
		ckpt_vdso_stop(other, i);
		ckpt_vdso_continue(other, i, &some[1]);
		ckpt_vdso_likens(other, code, i);
	}
	memset(other, 0xff, len);
	assert_true(ckpt_vdso_continue(other, len, &some[1]) < 0);
	close(mem);
	free(code);
	free(other);
}

static int find_room(struct ckpt_build *b, uint64_t size, uint64_t *ret, struct err *e)
{
	_cleanup_buf_ struct buf ranges = BUF_INIT;
	int r = ckpt_layout_read(b, &ranges, e);

	return r < 0 ? r : ckpt_layout_free(b, &ranges, size, ret, e);
}

static void test_layout(void **state)
{
	Pb__Mapping a = PB__MAPPING__INIT, c = PB__MAPPING__INIT, *list[] = {&a, &c};
	struct ckpt_kind kind = {.number = PROTO_KIND_MM};
	Pb__Mm m = PB__MM__INIT;
	uint8_t body[512];
	struct ckpt_record record = {.kind = &kind, .body = body};
	struct ckpt_build b = {.records = &record, .n_records = 1};
	uint64_t at;
	struct err e = {0};

	a.start = 0x10000000;
	a.end = 0x700000000000;
	c.start = 0x700000800000;
	c.end = 0x7fff00000000;
	m.mappings = list;
	m.n_mappings = 2;
	record.len = pb__mm__pack(&m, body);
	assert_int_equal(find_room(&b, 0x40000, &at, &e), 0);
	assert_true(at - CKPT_LAYOUT_BELOW >= a.end && at + 0x40000 <= c.start);
	assert_true(find_room(&b, 0x800000, &at, &e) < 0);

	/* not where a stack may grow */
	a.end = 0x6ff000000000;
	c.flags = PB__MAPPING_FLAG__MAPPING_GROWSDOWN;
	record.len = pb__mm__pack(&m, body);
	assert_int_equal(find_room(&b, 0x40000, &at, &e), 0);
	assert_true(at >= a.end && at + 0x40000 <= c.start - CKPT_STACK_ROOM);

	/* side by side they are one, and room is above them but not where 32 bits reach */
	a.end = c.start = 0x7ffe00000000;
	c.end = 0x7ffe00001000;
	c.flags = 0;
	m.i386 = true;
	record.len = pb__mm__pack(&m, body);
	b.i386 = false;
	assert_true(find_room(&b, 0x40000, &at, &e) < 0);
	assert_true(b.i386);
	b.i386 = false;
	m.i386 = false;
	record.len = pb__mm__pack(&m, body);
	assert_int_equal(find_room(&b, 0x40000, &at, &e), 0);
	assert_true(at - CKPT_LAYOUT_BELOW >= c.end && at + 0x40000 <= 0x7fff00000000);
	record.len = 1;
	assert_true(find_room(&b, 0x40000, &at, &e) < 0);
}

/* Which keys a record may name, and what is made of memory that may only be executed. */
static void test_keys(void **state)
{
	Pb__Mm m = PB__MM__INIT;
	Pb__Mapping a = PB__MAPPING__INIT, b = PB__MAPPING__INIT, *list[] = {&a, &b};
	bool here = ckpt_keys_here();
	struct err e = {0};

	m.mappings = list;
	m.n_mappings = 2;
	a.prot = PROT_EXEC;
	b.prot = PROT_READ;
	assert_true(ckpt_keys_sane(&m) && !ckpt_keys_used(&m));
	assert_int_equal(ckpt_keys_prot(&m, &a), PROT_EXEC);
	assert_int_equal(ckpt_keys_check(&m, &e), 0);

	/* one that the kernel has given is no reason to refuse the session */
	a.key = 3;
	assert_true(ckpt_keys_sane(&m) && ckpt_keys_used(&m) == here);
	assert_int_equal(ckpt_keys_prot(&m, &a), here ? PROT_EXEC | PROT_READ : PROT_EXEC);
	assert_int_equal(ckpt_keys_prot(&m, &b), PROT_READ);
	assert_int_equal(ckpt_keys_check(&m, &e), 0);

	m.keys = 1 << 3;
	assert_int_equal(ckpt_keys_check(&m, &e), here ? 0 : -EOPNOTSUPP);
	a.key = 0;
	assert_int_equal(ckpt_keys_check(&m, &e), here ? 0 : -EOPNOTSUPP);
	m.keys = 0;
	b.key = 15;
	assert_true(ckpt_keys_sane(&m) && ckpt_keys_used(&m) == here);
	assert_int_equal(ckpt_keys_check(&m, &e), here ? 0 : -EOPNOTSUPP);

	b.key = 16;
	assert_false(ckpt_keys_sane(&m));
	b.key = 0;
	m.keys = 1;
	assert_false(ckpt_keys_sane(&m));
	m.keys = 1 << 16;
	assert_false(ckpt_keys_sane(&m));
	m.keys = 0xfffe;
	assert_true(ckpt_keys_sane(&m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

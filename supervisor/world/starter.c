// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in starter.h. */
#include "supervisor/world/starter.h"

#include <assert.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "supervisor/world/init_protocol.h"
#include "supervisor/world/starter_layout.h"

extern const uint8_t starter_code_begin[], starter_code_end[];

/* What the program reads: addresses in its own memory. */
struct starter_data {
	uint64_t cwd, status;
	uint64_t argv, envp;
	uint64_t shell; /* "/bin/sh", room for a path, arguments */
	uint64_t paths;
	uint64_t at_cwd, at_exec;	   /* what it answers when that fails */
	uint64_t error_offset, reply_size; /* in such an answer, and of it */
};
static_assert(offsetof(struct starter_data, cwd) == STARTER_CWD &&
		      offsetof(struct starter_data, status) == STARTER_STATUS &&
		      offsetof(struct starter_data, argv) == STARTER_ARGV &&
		      offsetof(struct starter_data, envp) == STARTER_ENVP &&
		      offsetof(struct starter_data, shell) == STARTER_SHELL &&
		      offsetof(struct starter_data, paths) == STARTER_PATHS &&
		      offsetof(struct starter_data, at_cwd) == STARTER_AT_CWD &&
		      offsetof(struct starter_data, at_exec) == STARTER_AT_EXEC &&
		      offsetof(struct starter_data, error_offset) == STARTER_ERROR &&
		      offsetof(struct starter_data, reply_size) == STARTER_SIZE,
	"as starter_x86_64.S has it");

struct head {
	Elf64_Ehdr header;
	Elf64_Phdr code, data, stack;
};

/* Behind what is there; returns its address. */
static uint64_t put(struct buf *b, const void *data, size_t n)
{
	uint64_t at;

	while (b->len % sizeof(uint64_t))
		buf_put_u8(b, 0);
	at = STARTER_DATA + b->len;
	buf_put(b, data, n);
	return at;
}

/* @v, which NULL ends, with @room places for others in front. */
static uint64_t put_vector(struct buf *b, char *const *v, size_t room)
{
	_cleanup_buf_ struct buf addresses = BUF_INIT;
	uint64_t zero = 0, at;

	while (room--)
		buf_put(&addresses, &zero, sizeof(zero));
	for (; *v; v++) {
		at = put(b, *v, strlen(*v) + 1);
		buf_put(&addresses, &at, sizeof(at));
	}
	buf_put(&addresses, &zero, sizeof(zero));
	b->failed |= addresses.failed;
	return put(b, addresses.data, addresses.len);
}

static uint64_t put_shell(struct buf *b, char *const *argv)
{
	static const char shell[] = "/bin/sh";
	uint64_t name = put(b, shell, sizeof(shell)), at;

	at = put_vector(b, argv + (*argv != NULL), 2);
	if (!b->failed)
		memcpy(b->data + (at - STARTER_DATA), &name, sizeof(name));
	return at;
}

static uint64_t put_reply(struct buf *b, enum init_stage stage)
{
	struct init_reply reply = {.stage = stage};

	return put(b, &reply, sizeof(reply));
}

static void fill(struct buf *b, const struct starter *s)
{
	struct starter_data d = {.status = (uint64_t)s->status,
		.error_offset = offsetof(struct init_reply, error),
		.reply_size = sizeof(struct init_reply)};

	put(b, &d, sizeof(d));
	d.cwd = s->cwd ? put(b, s->cwd, strlen(s->cwd) + 1) : 0;
	d.argv = put_vector(b, s->argv, 0);
	d.envp = put_vector(b, s->envp, 0);
	d.shell = put_shell(b, s->argv);
	d.paths = put_vector(b, s->paths, 0);
	d.at_cwd = put_reply(b, INIT_CWD);
	d.at_exec = put_reply(b, INIT_EXEC);
	if (!b->failed)
		memcpy(b->data, &d, sizeof(d));
}

static struct head make_head(size_t code, size_t data)
{
	const uint64_t at = STARTER_DATA - PAGE_SIZE;
	const Elf64_Phdr load = {.p_type = PT_LOAD, .p_align = PAGE_SIZE};
	struct head h = {.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					    ELFDATA2LSB, EV_CURRENT},
				 .e_type = ET_EXEC,
				 .e_machine = EM_X86_64,
				 .e_version = EV_CURRENT,
				 .e_entry = at + sizeof(struct head),
				 .e_phoff = offsetof(struct head, code),
				 .e_ehsize = sizeof(Elf64_Ehdr),
				 .e_phentsize = sizeof(Elf64_Phdr),
				 .e_phnum = 3},
		.code = load,
		.data = load,
		.stack = {.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W}};

	h.code.p_flags = PF_R | PF_X;
	h.code.p_vaddr = at;
	h.code.p_filesz = h.code.p_memsz = sizeof(h) + code;
	h.data.p_flags = PF_R | PF_W;
	h.data.p_vaddr = STARTER_DATA;
	h.data.p_offset = PAGE_SIZE;
	h.data.p_filesz = h.data.p_memsz = data;
	return h;
}

/* The program as a file. */
static int make(const struct starter *s)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	size_t code = (size_t)(starter_code_end - starter_code_begin);
	_cleanup_close_ int fd = memfd_create("podrun-start", MFD_CLOEXEC);
	uint8_t page[PAGE_SIZE] = {0};
	struct head h;
	int r;

	fill(&data, s);
	if (fd < 0 || buf_error(&data) < 0)
		return fd < 0 ? -errno : -ENOMEM;
	h = make_head(code, data.len);
	assert(sizeof(h) + code <= sizeof(page));
	memcpy(page, &h, sizeof(h));
	memcpy(page + sizeof(h), starter_code_begin, code);
	r = io_write_full(fd, page, sizeof(page));
	if (r == 0)
		r = io_write_full(fd, data.data, data.len);
	return r < 0 ? r : take_fd(&fd);
}

int starter_exec(const struct starter *s)
{
	int fd = make(s);

	if (fd < 0)
		return fd;
	/* It closes that by itself. */
	if (fcntl(s->status, F_SETFD, 0) < 0)
		return -errno;
	syscall(SYS_execveat, fd, "", s->argv, s->envp, AT_EMPTY_PATH);
	return -errno;
}

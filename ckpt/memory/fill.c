// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fill - pages of an image into a task.
 *
 * process_vm_writev honours the protection of a mapping; text, relro data and PROT_NONE areas are
 * written through /proc/PID/mem, where a tracer may write to any private mapping.  So every
 * mapping has its final protection from the start.
 */
#include <fcntl.h>
#include <sys/uio.h>

#include "base/base.h"
#include "ckpt/memory/fillers.h"
#include "ckpt/memory/memory.h"

/* The kernel first makes all pages of a call and then copies: so many are still in the CPU's
 * cache then. */
#define STEP (256UL << 10)

static size_t write_some(pid_t pid, uint64_t addr, const uint8_t *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		size_t step = MIN(len - done, STEP);
		struct iovec local = {(void *)(data + done), step},
			     remote = {(void *)(uintptr_t)(addr + done), step};
		ssize_t n = process_vm_writev(pid, &local, 1, &remote, 1, 0);

		if (n <= 0)
			break; /* the file says why */
		done += (size_t)n;
	}
	return done;
}

bool ckpt_fill_part(struct ckpt_filling *w)
{
	size_t done = 0;

	if (w->writable)
		done = write_some(w->pid, w->addr, w->data, w->len);
	else if (*w->mem >= 0 && io_pwrite_full(*w->mem, w->data, w->len, (off_t)w->addr) == 0)
		done = w->len;
	w->addr += done;
	w->data += done;
	w->len -= done;
	return !w->len;
}

int ckpt_fill(pid_t pid, int proc_fd, pid_t vpid, int *mem, uint64_t addr, const void *data,
	size_t len, bool writable, struct err *e)
{
	const uint8_t *from = data;
	size_t done = writable ? write_some(pid, addr, from, len) : 0;

	from += done;
	addr += done;
	len -= done;
	if (!len)
		return 0;
	if (*mem < 0)
		*mem = proc_open_file(proc_fd, vpid, "mem", O_RDWR, e);
	if (*mem < 0)
		return *mem;
	int r = io_pwrite_full(*mem, from, len, (off_t)addr);

	if (r < 0)
		err_errno(e, r, "cannot restore memory at %llx", (unsigned long long)addr);
	/* nothing there that could be written: a guard, or beyond the end of a file */
	if (r == -EIO)
		err_reclass(e, ERR_IMAGE);
	return r < 0 ? r : 0;
}

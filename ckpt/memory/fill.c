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
#include "ckpt/memory/memory.h"

int ckpt_fill(pid_t pid, int proc_fd, pid_t vpid, int *mem, uint64_t addr, const void *data,
	size_t len, bool writable, struct err *e)
{
	const uint8_t *from = data;

	while (len && writable) {
		struct iovec local = {(void *)from, len}, remote = {(void *)(uintptr_t)addr, len};
		ssize_t n = process_vm_writev(pid, &local, 1, &remote, 1, 0);

		if (n <= 0)
			break; /* the file below says why */
		from += n;
		addr += (size_t)n;
		len -= (size_t)n;
	}
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

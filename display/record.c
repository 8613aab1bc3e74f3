// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/record.h"

#include <string.h>

#include "base/base.h"

#define HEAD 12

static const char magic[] = "podrun display\n\1";
#define MAGIC_LEN (sizeof(magic) - 1)

int display_record_begin(struct display_record *r, int fd, struct err *e)
{
	int k = io_write_full(fd, magic, MAGIC_LEN);

	if (k < 0)
		return err_errno(e, k, "recording");
	*r = (struct display_record){.fd = fd, .began_ns = io_now_ns()};
	return 0;
}

int display_record_put(
	struct display_record *r, uint64_t now, const void *data, size_t n, struct err *e)
{
	const uint8_t *p = data;
	uint64_t us = now > r->began_ns ? (now - r->began_ns) / 1000 : 0;

	while (n) {
		size_t piece = MIN(n, (size_t)DISPLAY_RECORD_PIECE);
		_cleanup_buf_ struct buf head = BUF_INIT;
		int k;

		buf_put_u64(&head, us);
		buf_put_u32(&head, (uint32_t)piece);
		buf_put(&head, p, piece);
		k = buf_error(&head);
		if (k == 0)
			k = io_write_full(r->fd, head.data, head.len);
		if (k < 0)
			return err_errno(e, k, "recording");
		p += piece;
		n -= piece;
	}
	return 0;
}

int display_record_open(struct display_record *r, int fd, struct err *e)
{
	char head[MAGIC_LEN];
	ssize_t n = io_read_full(fd, head, sizeof(head));

	if (n < 0)
		return err_errno(e, (int)n, "recording");
	if (n != sizeof(head) || memcmp(head, magic, MAGIC_LEN) != 0)
		return err_set(e, ERR_FAILED, -EBADMSG, "not a recording of a display");
	*r = (struct display_record){.fd = fd};
	return 0;
}

int display_record_next(
	struct display_record *r, struct buf *piece, uint64_t *ret_us, struct err *e)
{
	uint8_t head[HEAD];
	struct cursor c = cursor_of(head, sizeof(head));
	ssize_t n = io_read_full(r->fd, head, sizeof(head));
	uint64_t us;
	uint32_t len;
	void *to;

	if (n < 0)
		return err_errno(e, (int)n, "recording");
	if (n != HEAD)
		return 0;
	us = cursor_u64(&c);
	len = cursor_u32(&c);
	if (len == 0 || len > DISPLAY_RECORD_PIECE || us < r->us)
		return err_set(e, ERR_FAILED, -EBADMSG, "the recording is damaged");
	to = buf_reserve(piece, len);
	if (!to)
		return err_errno(e, -ENOMEM, "recording");
	n = io_read_full(r->fd, to, len);
	if (n < 0)
		return err_errno(e, (int)n, "recording");
	if (n != (ssize_t)len)
		return 0;
	piece->len += len;
	*ret_us = r->us = us;
	return 1;
}

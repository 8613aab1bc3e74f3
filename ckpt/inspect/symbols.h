/* SPDX-License-Identifier: GPL-2.0-or-later */
/* symbols - names of functions in an ELF file.  Private to ckpt. */
#ifndef CKPT_INSPECT_SYMBOLS_H
#define CKPT_INSPECT_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckpt_symbols; /* of one file; its functions sorted by address */

/* Of the file behind @fd, or of the @len bytes at @data (fd -1).  NULL if it is no ELF file with
 * symbols, or memory is short: names are a convenience.  Nothing in the file is believed. */
struct ckpt_symbols *ckpt_symbols_open(int fd, const void *data, size_t len);
void ckpt_symbols_close(struct ckpt_symbols *s);
/* The function that has the byte at @offset of the file, and how far in it is; NULL if none. */
const char *ckpt_symbols_find(const struct ckpt_symbols *s, uint64_t offset, uint64_t *ret_into);

#endif

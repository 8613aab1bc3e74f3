/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nested/sock - sockets of nested network namespaces (ckpt/nested/nested.h).  Private to ckpt. */
#ifndef CKPT_NESTED_SOCK_H
#define CKPT_NESTED_SOCK_H

#include "ckpt/survey/survey.h"

/* Descriptors (int) of the nested network namespaces, the caller's. */
int ckpt_nested_nets(struct ckpt_dump *d, struct buf *ret, struct err *e);
/* Refuses @f if it is a socket of one of those that can't be made again. */
int ckpt_nested_check_socket(struct ckpt_dump *d, struct ckpt_file *f, struct err *e);

#endif

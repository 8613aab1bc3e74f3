/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nested/list - what follows from a list of nested namespaces (ckpt/nested/nested.h).  Private to
 * ckpt. */
#ifndef CKPT_NESTED_LIST_H
#define CKPT_NESTED_LIST_H

#include "ckpt/nested/nested.h"

struct ckpt_tree_node;

/* The flag of clone(2) that makes one. */
uint64_t ckpt_ns_flag(enum ckpt_ns sort);
/* Its name in /proc/PID/ns. */
const char *ckpt_ns_name(enum ckpt_ns sort);

/* How many pid namespaces are between @pid_ns and the session's, that one included. */
size_t ckpt_nested_depth(const struct ckpt_nested *all, size_t n, uint32_t pid_ns);
/* What a tree plan has to know of a process in @set. */
void ckpt_nested_node(const struct ckpt_nested *all, size_t n, const struct ckpt_ns_set *set,
	struct ckpt_tree_node *ret);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nested/build - nested namespaces (ckpt/nested/nested.h) as they are rebuilt.  Private to ckpt. */
#ifndef CKPT_NESTED_BUILD_H
#define CKPT_NESTED_BUILD_H

#include "ckpt/build.h"

/* Takes over what the image says of them, and of the processes in them.  ERR_IMAGE. */
int ckpt_nested_load(struct ckpt_build *b, struct err *e);
/* Can they be made in this world?  ERR_HOST. */
int ckpt_nested_admit(const struct ckpt_build *b, struct err *e);
/*
 * By which number a call made in a task of @by means task, group or session @number; 0: it can't.
 */
pid_t ckpt_nested_said(struct ckpt_build *b, const struct ckpt_build_proc *by, pid_t number);

/*
 * The numbers that thread @k of @p is to be given by its maker in user namespace @user, innermost
 * first, as clone3(2) takes them; how many.  It may choose in pid namespaces which that or one
 * inside owns; in the others the number to come is set.
 */
int ckpt_nested_numbers(struct ckpt_build *b, const struct ckpt_build_proc *p, size_t k,
	uint32_t user, pid_t ret[CKPT_MAX_SET], struct err *e);
/* Host task @tid, thread @k of @p, has the numbers it was to have? */
int ckpt_nested_check(struct ckpt_build *b, const struct ckpt_build_proc *p, size_t k, pid_t tid,
	size_t level, struct err *e);
/* Tells user namespace @number, which @p has just made, its ids. */
int ckpt_nested_ids(
	struct ckpt_build *b, const struct ckpt_build_proc *p, uint32_t number, struct err *e);
/* The user namespace that @p makes next when it is in @now; 0: none. */
uint32_t ckpt_nested_next_user(
	const struct ckpt_build *b, const struct ckpt_build_proc *p, uint32_t now);
/*
 * Of the sorts (bits) in @founds those whose namespace of @p is to be made while in user namespace
 * @user.
 */
unsigned ckpt_nested_owned(const struct ckpt_build *b, const struct ckpt_build_proc *p,
	unsigned founds, uint32_t user);
/*
 * @id if the user namespace of @p has it; else (uint32_t)-1: nobody there can be told which it is.
 */
uint32_t ckpt_nested_id(
	const struct ckpt_build *b, const struct ckpt_build_proc *p, bool group, uint32_t id);
/* What is to be in the namespaces (bits of sorts) that @r's process @p has just made. */
int ckpt_nested_furnish(struct ckpt_build *b, const struct ckpt_build_proc *p, struct remote *r,
	unsigned founds, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inspect - an image looked into without rebuilding anything.  Private to ckpt.
 *
 * Theory of operation
 *
 * The image is read once, to its end, so that it is whole and its records are consistent
 * (ckpt/records.h).  Where its pages are is kept in a sorted list of extents; a seekable,
 * uncompressed image is left where it is and read from again, anything else is spooled to an
 * unlinked file.
 *
 * A *space* is the memory of one process as an address space: what an address holds comes from
 * an extent, from the mapped file (if the host still has that very file), from the vDSO in the
 * record, or is zero.
 *
 *      mapping source      stored as                              what is not stored
 *      ANON                MM of the owner, offset = address      zero
 *      PATH, private       the same                               the file
 *      PATH, shared        never                                  the file
 *      SHARED              SHARED_MEM, or the MEMFD or GHOST      zero
 *      SYSV                SYSV_SHM                               zero
 *      VDSO                in the record                          -
 */
#ifndef CKPT_INSPECT_H
#define CKPT_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/build.h"

typedef struct Pb__Mm Pb__Mm;
typedef struct Pb__SharedMem Pb__SharedMem;
typedef struct Pb__SysvShm Pb__SysvShm;

/* Bytes of (kind, subject) from @offset, at @at of the image or of the spool. */
struct ckpt_extent {
	uint32_t kind;
	bool spooled;
	uint64_t subject, offset, len;
	off_t at;
};

struct ckpt_inspect {
	struct ckpt_build b; /* records, procs and files; nothing is built */
	int image;	     /* borrowed */
	int spool;	     /* -1: none */
	off_t spooled;
	struct ckpt_extent *extents; /* by kind, subject, offset */
	size_t n_extents, cap_extents;
	Pb__SharedMem *shared; /* or NULL */
	Pb__SysvShm *sysv;     /* or NULL */
};

/* Reads all of @in, whose bytes come from @fd (borrowed until the close). */
int ckpt_inspect_open(struct ckpt_inspect **ret, struct proto_reader *in, int fd, struct err *e);
void ckpt_inspect_close(struct ckpt_inspect *i);

/* Of one mapping: where its stored bytes are, and a descriptor of its file. */
struct ckpt_space_mapping {
	uint32_t kind; /* 0: never stored */
	uint64_t subject, base; /* offset of the mapping's first byte */
	bool tried;
	int fd; /* of the file, -1: not to be had */
};

struct ckpt_space {
	struct ckpt_inspect *in;
	Pb__Mm *mm;
	struct ckpt_space_mapping *at; /* beside mm->mappings */
};

/* The memory of @p (not a zombie). */
int ckpt_space_open(struct ckpt_space *ret, struct ckpt_inspect *in,
	const struct ckpt_build_proc *p, struct err *e);
void ckpt_space_close(struct ckpt_space *s);
/* The index of the mapping which holds @addr, or -1. */
long ckpt_space_find(const struct ckpt_space *s, uint64_t addr);
/*
 * The next run of stored bytes of mapping @i at or behind address @from: false if there is none.
 */
bool ckpt_space_stored(const struct ckpt_space *s, size_t i, uint64_t from, uint64_t *ret_start,
	uint64_t *ret_end);
/* Copies @len bytes from @addr; -EFAULT where any of them can't be had. */
int ckpt_space_read(struct ckpt_space *s, uint64_t addr, void *data, size_t len);
/* The file of mapping @i, if this host has the one that was mapped; borrowed, or -1. */
int ckpt_space_file(struct ckpt_space *s, size_t i);

#endif

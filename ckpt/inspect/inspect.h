/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inspect - an image looked into without rebuilding anything.  Private to ckpt.
 *
 * Theory of operation
 *
 * The image is read once, to its end, so that it is whole and its records are consistent
 * (ckpt/restore/records.h).  Where its pages are is kept in a sorted list of extents; a seekable,
 * uncompressed image is left where it is and read from again, anything else is spooled to an
 * unlinked file.  Pages that are in other images (ckpt/base.h) are extents as well.
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
#ifndef CKPT_INSPECT_INSPECT_H
#define CKPT_INSPECT_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/build.h"
#include "ckpt/ckpt.h"

typedef struct Pb__Mm Pb__Mm;
typedef struct Pb__SharedMem Pb__SharedMem;
typedef struct Pb__SysvShm Pb__SysvShm;
typedef struct Pb__Tree Pb__Tree;

/* Bytes of (kind, subject) from @offset, at @at of the image or of the spool. */
struct ckpt_extent {
	uint32_t kind;
	uint32_t base; /* of the image that it refers to by this number; 0: its own */
	bool spooled;
	uint64_t subject, offset, len;
	off_t at;
};

struct ckpt_inspect {
	struct ckpt_build b;	      /* records, procs and files; nothing is built */
	int image;		      /* borrowed */
	const struct ckpt_base *base; /* borrowed, or NULL */
	bool all;		      /* the session's own files, and data of all kinds, too */
	int spool;		      /* -1: none */
	off_t spooled;
	struct ckpt_extent *extents; /* by kind, subject, offset */
	size_t n_extents, cap_extents;
	Pb__SharedMem *shared; /* or NULL */
	Pb__SysvShm *sysv;     /* or NULL */
	Pb__Tree **trees;      /* with @all: the session's own files, in several parts */
	size_t n_trees;
};

/*
 * Reads all of @image, which is borrowed until the close.  @all: also what is not memory, for
 * ckpt_inspect_same and `trees`.
 */
int ckpt_inspect_open(
	struct ckpt_inspect **ret, const struct ckpt_image *image, bool all, struct err *e);
void ckpt_inspect_close(struct ckpt_inspect *i);
/*
 * Are the first @len bytes (UINT64_MAX: all) of (@kind, @subject) the same in both?  What is not
 * stored is zero, and takes no time.  -EIO: can't be told.
 */
int ckpt_inspect_same(const struct ckpt_inspect *a, uint64_t a_subject,
	const struct ckpt_inspect *b, uint64_t b_subject, uint32_t kind, uint64_t len);
/* Of an open file: the subject of its bytes, which are stored once for all open files
 * of an inode or a pipe. */
uint64_t ckpt_inspect_object(const struct ckpt_record *r);

/* Of one mapping: where its stored bytes are, and a descriptor of its file. */
struct ckpt_space_mapping {
	uint32_t kind;		/* 0: never stored */
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

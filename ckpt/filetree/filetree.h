/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filetree - limits of kind TREE, the session's own files (ckpt_tree_write, ckpt_tree_read of
 * ckpt/ckpt.h).  Private to ckpt.
 */
#ifndef CKPT_FILETREE_FILETREE_H
#define CKPT_FILETREE_FILETREE_H

#define FILETREE_INLINE	     4096 /* bytes of a file which are in its entry rather than in DATA */
#define FILETREE_BATCH	     512	 /* entries of one record */
#define FILETREE_LAYER	     64		 /* directories of a layer that is told of before it comes */
#define FILETREE_BATCH_BYTES (512 << 10) /* about; one entry more may fit above it */

#endif

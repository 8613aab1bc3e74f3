/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sort - qsort(3) and bsearch(3) of arrays that may have nothing in them: theirs must not be NULL,
 * also when they are empty.
 */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stdlib.h>

static inline void sort_array(void *v, size_t n, size_t size,
	int (*compare)(const void *, const void *))
{
	if (n > 1)
		qsort(v, n, size, compare);
}

/*
 * The element of the sorted array that @compare finds equal to @key, or NULL.  C23's bsearch() is a
 * macro that gives no more rights to it than @v has.
 */
static inline const void *sort_find(const void *key, const void *v, size_t n, size_t size,
	int (*compare)(const void *, const void *))
{
	return n ? bsearch(key, v, n, size, compare) : NULL;
}

#endif

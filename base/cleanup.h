/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cleanup - ownership that ends with the scope: `_cleanup_close_ int fd = -1;`.
 *
 * What a scope owns it gives away with take_fd() or take_ptr(); there is no third way.
 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Closes @fd if it is one, keeps errno.  Always returns -1, to be assigned. */
static inline int close_fd(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	return -1;
}

static inline void cleanup_close(int *fd)
{
	close_fd(*fd);
}

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_(f)	   __attribute__((cleanup(f)))
#define _cleanup_close_	   _cleanup_(cleanup_close)
#define _cleanup_free_	   _cleanup_(cleanup_free)
#define _cleanup_fclose_   _cleanup_(cleanup_fclose)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)

/* Defines cleanup_@name for a type with a destructor that accepts NULL. */
#define DEFINE_CLEANUP(name, type, destroy)                                                        \
	static inline void cleanup_##name(type *p)                                                 \
	{                                                                                          \
		destroy(*p);                                                                       \
	}                                                                                          \
	struct cleanup_semicolon_##name

static inline int take_fd(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) *_slot = &(p);                                                       \
		__typeof__(p) _taken = *_slot;                                                     \
		*_slot = NULL;                                                                     \
		_taken;                                                                            \
	})

#define ARRAY_SIZE(a)	     (sizeof(a) / sizeof((a)[0]))
#define ALIGN_UP(x, a)	     (((x) + ((__typeof__(x))(a)-1)) & ~((__typeof__(x))(a)-1))
#define ALIGN_DOWN(x, a)     ((x) & ~((__typeof__(x))(a)-1))
#define MIN(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) _a = (a);                                                            \
		__typeof__(b) _b = (b);                                                            \
		_a < _b ? _a : _b;                                                                 \
	})
#define MAX(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) _a = (a);                                                            \
		__typeof__(b) _b = (b);                                                            \
		_a > _b ? _a : _b;                                                                 \
	})

#endif

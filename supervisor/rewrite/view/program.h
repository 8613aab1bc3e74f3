/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view/program - programs whose loader is in the view.  Private to rewrite/.
 *
 * A dynamically linked program names its loader (PT_INTERP, /lib64/ld-linux-x86-64.so.2), and the
 * kernel opens that by itself in the middle of execve(2): on the host, where there is none or
 * another.  Nobody without privilege can tell it otherwise but by the program's own text.  So what
 * is executed is a copy, in the session's files, that names the loader by its path on the host; the
 * memory, auxiliary vector, name and arguments are what the kernel makes of any program.
 *
 *      FILES/programs/copies/usr/bin/python3/KEY-INODE      of /usr/bin/python3, as long as it is what KEY says
 *      FILES/programs/names/KEY/python                a link to it, for who is called by that name
 *
 * A copy is made when a program is executed for the first time, and again when it has changed.
 * That a process runs one is said as the program's own path (view_session_path), in images as well,
 * and what leads to it by /proc/PID/exe leads to the program itself.
 *
 * The kernel calls a process by the last component of the path that it was told (comm): the links
 * are for those that are called otherwise than what they are, as by a symlink, or a script.
 */
#ifndef SUPERVISOR_REWRITE_VIEW_PROGRAM_H
#define SUPERVISOR_REWRITE_VIEW_PROGRAM_H

#include <limits.h>
#include <sys/types.h>

/*
 * The text of PT_INTERP of what is open for reading as @fd: 1, 0 if it has none or is no ELF file,
 * or the error that the kernel would give.
 */
int view_program_loader(int fd, char ret[PATH_MAX]);
/*
 * In the directory @programs: the path on the host of a copy of @fd, the session's @path, with a
 * loader that is @loader on the host.  0 or a negative errno.
 */
int view_program_copy(
	const char *programs, int fd, const char *path, const char *loader, char ret[PATH_MAX]);
/* A path on the host that leads to @host and ends in @name; @host itself if that does. */
int view_program_named(
	const char *programs, const char *host, const char *name, char ret[PATH_MAX]);
/*
 * From behind the directory of all: the path of the session that is a copy of, and which inode it
 * was of, 0 if the copy itself is gone; -ENOENT if it is none.
 */
int view_program_path(const char *below, char ret[PATH_MAX], ino_t *ret_inode);

#endif

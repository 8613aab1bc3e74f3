/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * programs - where podrun's other programs are.
 *
 * What needs libraries that sessions don't - screens and their viewers - are programs of their own,
 * so that no other command, and no supervisor, has to load these when it starts.
 */
#ifndef SUPERVISOR_PROGRAMS_H
#define SUPERVISOR_PROGRAMS_H

struct err;

/* The display server, podrun view, and who serves VNC viewers (supervisor/cli/display_main.c). */
#define PROGRAMS_DISPLAY "podrun-display"
/* A window of its own (display/viewer/native.c). */
#define PROGRAMS_VIEWER "podrun-viewer"

/* A program's path, the caller's; NULL with ERR_HOST if it isn't there. */
char *programs_find(const char *name, struct err *e);
/* The same as an O_PATH descriptor, by which it stays the one it is while podrun is upgraded. */
int programs_open(const char *name, struct err *e);

#endif

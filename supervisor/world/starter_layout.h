/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * starter_layout - where starter_x86_64.S finds what it needs: struct starter_data.  Private to
 * starter.
 */
#ifndef SUPERVISOR_WORLD_STARTER_LAYOUT_H
#define SUPERVISOR_WORLD_STARTER_LAYOUT_H

#define STARTER_DATA 0x11000 /* its address: a page behind the code's */

#define STARTER_CWD	0
#define STARTER_STATUS	8
#define STARTER_ARGV	16
#define STARTER_ENVP	24
#define STARTER_SHELL	32
#define STARTER_PATHS	40
#define STARTER_AT_CWD	48
#define STARTER_AT_EXEC 56
#define STARTER_ERROR	64
#define STARTER_SIZE	72

#endif

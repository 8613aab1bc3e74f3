/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * devices - what is in a session's /dev, and what becomes of it in a move.
 *
 *      virtual    has no state: the same on every host, the host's node is shown
 *      emulated   the session has one of its own, whose state an image holds
 *      pinned     state of this machine's hardware or kernel: there only if -v brings it in, and
 *                 while it is open the session can't be frozen (ckpt says so by name)
 *
 * A device is a line in the table; one that is emulated has a function that makes it.
 */
#ifndef SUPERVISOR_WORLD_DEVICES_H
#define SUPERVISOR_WORLD_DEVICES_H

#include <stddef.h>

struct err;

enum device_class { DEVICE_VIRTUAL, DEVICE_EMULATED, DEVICE_PINNED };

struct device {
	const char *name; /* below /dev */
	enum device_class class;
	/* Makes it below @dir (the new /dev).  NULL: the host's node is bound. */
	int (*make)(const char *dir, const struct device *d, struct err *e);
	const char *argument; /* of make: a link's target, a mount's options */
	const char *what;
};

extern const struct device devices[];
extern const size_t n_devices;

/* Fills @dir, an empty writable file system: all that is virtual or emulated. */
int devices_make(const char *dir, struct err *e);

#endif

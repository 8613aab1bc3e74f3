// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in devices.h. */
#include "supervisor/world/devices.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/base.h"
#include "supervisor/world/mounts.h"

static int make_node(const char *dir, const struct device *d, struct err *e)
{
	char host[64], target[PATH_MAX];
	int fd;

	snprintf(host, sizeof(host), "/dev/%s", d->name);
	snprintf(target, sizeof(target), "%s/%s", dir, d->name);
	fd = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_errno(e, -errno, "cannot make %s", host);
	close(fd);
	return mounts_mount(host, target, NULL, MS_BIND, NULL, e);
}

static int make_link(const char *dir, const struct device *d, struct err *e)
{
	char target[PATH_MAX];

	snprintf(target, sizeof(target), "%s/%s", dir, d->name);
	return symlink(d->argument, target) < 0 ? err_errno(e, -errno, "cannot make /dev/%s", d->name)
						: 0;
}

static int make_mount(const char *dir, const struct device *d, const char *type,
	unsigned long flags, struct err *e)
{
	char target[PATH_MAX];

	snprintf(target, sizeof(target), "%s/%s", dir, d->name);
	if (mkdir(target, 0755) < 0)
		return err_errno(e, -errno, "cannot make /dev/%s", d->name);
	return mounts_mount(type, target, type, MS_NOSUID | flags, d->argument, e);
}

static int make_terminals(const char *dir, const struct device *d, struct err *e)
{
	return make_mount(dir, d, "devpts", MS_NOEXEC, e);
}

static int make_memory(const char *dir, const struct device *d, struct err *e)
{
	return make_mount(dir, d, "tmpfs", MS_NODEV, e);
}

static int make_queues(const char *dir, const struct device *d, struct err *e)
{
	return make_mount(dir, d, "mqueue", MS_NODEV | MS_NOEXEC, e);
}

const struct device devices[] = {
	{"null", DEVICE_VIRTUAL, NULL, NULL, "takes everything"},
	{"zero", DEVICE_VIRTUAL, NULL, NULL, "gives zeros"},
	{"full", DEVICE_VIRTUAL, NULL, NULL, "is always full"},
	{"random", DEVICE_VIRTUAL, NULL, NULL, "random bytes"},
	{"urandom", DEVICE_VIRTUAL, NULL, NULL, "random bytes"},
	{"tty", DEVICE_VIRTUAL, NULL, NULL, "the terminal of whoever opens it"},
	{"pts", DEVICE_EMULATED, make_terminals, "newinstance,ptmxmode=0666,mode=0620",
		"terminals with numbers of the session's own"},
	{"ptmx", DEVICE_EMULATED, make_link, "pts/ptmx", "makes a terminal"},
	{"shm", DEVICE_EMULATED, make_memory, "mode=1777", "shared memory by name"},
	{"mqueue", DEVICE_EMULATED, make_queues, NULL, "message queues by name"},
	{"fd", DEVICE_EMULATED, make_link, "/proc/self/fd", "descriptors"},
	{"stdin", DEVICE_EMULATED, make_link, "/proc/self/fd/0", "descriptor 0"},
	{"stdout", DEVICE_EMULATED, make_link, "/proc/self/fd/1", "descriptor 1"},
	{"stderr", DEVICE_EMULATED, make_link, "/proc/self/fd/2", "descriptor 2"},
	{"fuse", DEVICE_PINNED, NULL, NULL, "file systems served by a process"},
	{"net/tun", DEVICE_PINNED, NULL, NULL, "network interfaces served by a process"},
	{"kvm", DEVICE_PINNED, NULL, NULL, "virtual machines"},
	{"dri", DEVICE_PINNED, NULL, NULL, "graphics hardware"},
	{"snd", DEVICE_PINNED, NULL, NULL, "sound hardware"},
	{"input", DEVICE_PINNED, NULL, NULL, "keyboards and mice"},
	{"video0", DEVICE_PINNED, NULL, NULL, "cameras"},
};
const size_t n_devices = ARRAY_SIZE(devices);

int devices_make(const char *dir, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_devices; i++) {
		if (devices[i].class == DEVICE_PINNED)
			continue;
		r = devices[i].make ? devices[i].make(dir, &devices[i], e) :
				      make_node(dir, &devices[i], e);
	}
	return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The theory of operation is in fence.h.  Numbers that older headers lack are defined here
 * (linux/landlock.h; Documentation/userspace-api/landlock.rst of the kernel).
 */
#include "supervisor/world/fence.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/base.h"
#include "supervisor/world/devices.h"
#include "supervisor/world/world_config.h"

#define VERSION_REFER	 2 /* before, nothing could be moved between directories */
#define VERSION_TRUNCATE 3
#define VERSION_SCOPED	 6
#define FS_TRUNCATE	 (1ULL << 14)
#define SCOPE_ABSTRACT	 (1ULL << 0)
#define SCOPE_SIGNAL	 (1ULL << 1)

#define FS_FILE \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE)
#define FS_READ \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_ALL ((LANDLOCK_ACCESS_FS_REFER << 1) - 1)

/* struct landlock_ruleset_attr of version 6. */
struct ruleset {
	uint64_t fs, net, scoped;
};

struct rules {
	int fd;
	uint64_t all, file;
};

int fence_version(void)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version < VERSION_REFER ? 0 : (int)version;
}

bool fence_scopes(int version)
{
	return version >= VERSION_SCOPED;
}

static int create(int version, struct rules *ret)
{
	struct ruleset attr = {.fs = FS_ALL};
	size_t size = sizeof(attr.fs);

	*ret = (struct rules){.fd = -1, .all = FS_ALL, .file = FS_FILE};
	if (version >= VERSION_TRUNCATE) {
		ret->all |= FS_TRUNCATE;
		ret->file |= FS_TRUNCATE;
	}
	attr.fs = ret->all;
	if (fence_scopes(version)) {
		attr.scoped = SCOPE_ABSTRACT | SCOPE_SIGNAL;
		size = sizeof(attr);
	}
	ret->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	return ret->fd < 0 ? -errno : 0;
}

/* What is there is allowed, and all below it.  Symlinks are nothing of their own. */
static int allow(const struct rules *rules, int dirfd, const char *path, uint64_t rights)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct landlock_path_beneath_attr attr = {.parent_fd = fd};
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return 0;
	attr.allowed_access = rights & (S_ISDIR(st.st_mode) ? ~UINT64_C(0) : rules->file);
	if (syscall(SYS_landlock_add_rule, rules->fd, LANDLOCK_RULE_PATH_BENEATH, &attr, 0) < 0)
		return -errno;
	return 0;
}

/* All entries of @dir but those in @but, which NULL ends. */
static int allow_entries(const struct rules *rules, const char *dir, const char *const *but)
{
	_cleanup_closedir_ DIR *d = opendir(dir);
	const struct dirent *one;
	int r = d ? 0 : -errno;

	while (r == 0 && (one = readdir(d))) {
		const char *const *p = but;

		while (*p && strcmp(*p, one->d_name) != 0)
			p++;
		if (!*p)
			r = allow(rules, dirfd(d), one->d_name, rules->all);
		/* One that is not even ours to look at. */
		if (r == -EACCES)
			r = 0;
	}
	return r;
}

static int allow_own(const struct rules *rules, const struct world_config *c)
{
	static const char *const own[] = {"tmp", "run", "shm"}, *const read[] = {
									"empty", "programs"};
	char path[4096];
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(own); i++) {
		snprintf(path, sizeof(path), "%s/%s", c->files_dir, own[i]);
		r = allow(rules, AT_FDCWD, path, rules->all);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(read); i++) {
		snprintf(path, sizeof(path), "%s/%s", c->files_dir, read[i]);
		r = allow(rules, AT_FDCWD, path, FS_READ);
	}
	for (size_t i = 0; r == 0 && i < c->n_binds; i++)
		r = allow(rules, AT_FDCWD, c->binds[i].source,
			c->binds[i].read_only ? FS_READ : rules->all);
	return r;
}

static int allow_host(const struct rules *rules)
{
	static const char *const top[] = {".", "..", "tmp", "run", "dev", "proc", NULL};
	static const char *const dev[] = {".", "..", "shm", "mqueue", NULL};
	int r = allow_entries(rules, "/", top);

	return r < 0 ? r : allow_entries(rules, "/dev", dev);
}

/* A root of the session's own, and of the host's the devices that a mount namespace would show. */
static int allow_root(const struct rules *rules, const char *root)
{
	static const char *const terminals[] = {"/dev/pts", "/dev/ptmx"};
	int r = allow(rules, AT_FDCWD, root, rules->all);
	char path[64];

	for (size_t i = 0; r == 0 && i < n_devices; i++)
		if (devices[i].class == DEVICE_VIRTUAL) {
			snprintf(path, sizeof(path), "/dev/%s", devices[i].name);
			r = allow(rules, AT_FDCWD, path, rules->all);
		}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(terminals); i++)
		r = allow(rules, AT_FDCWD, terminals[i], rules->all);
	return r < 0 ? r : allow(rules, AT_FDCWD, "/sys", FS_READ);
}

int fence_create(const struct world_config *c, struct err *e)
{
	int version = fence_version(), r;
	struct rules rules;

	if (!version)
		return -1;
	r = create(version, &rules);
	if (r == 0)
		r = world_root(c) ? allow_root(&rules, c->root) : allow_host(&rules);
	if (r == 0)
		r = allow_own(&rules, c);
	if (r == 0)
		return rules.fd;
	close_fd(rules.fd);
	return err_errno(e, r, "cannot keep the session from the host's files");
}

/*
 * Before version 6 a ruleset has to be about files: about moving them, which is allowed everywhere.
 */
int fence_create_bare(struct err *e)
{
	int version = fence_version(), r = 0;
	bool scopes = fence_scopes(version);
	struct ruleset attr = {.scoped = SCOPE_SIGNAL};
	struct rules rules;

	if (!version)
		return -1;
	if (!scopes)
		attr = (struct ruleset){.fs = LANDLOCK_ACCESS_FS_REFER};
	rules = (struct rules){.all = attr.fs,
		.fd = (int)syscall(SYS_landlock_create_ruleset, &attr,
			scopes ? sizeof(attr) : sizeof(attr.fs), 0)};
	if (rules.fd < 0)
		r = -errno;
	else if (!scopes)
		r = allow(&rules, AT_FDCWD, "/", rules.all);
	if (r == 0)
		return rules.fd;
	close_fd(rules.fd);
	return err_errno(e, r, "cannot keep the session from the host's processes");
}

int fence_enter(int fence)
{
	if (fence < 0)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		syscall(SYS_landlock_restrict_self, fence, 0) < 0)
		return -errno;
	return 0;
}

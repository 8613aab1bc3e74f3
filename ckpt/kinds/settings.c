// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * settings - what a root inside has set of the session's own network and IPC (sysctl).
 *
 * Theory of operation
 *
 * Files of /proc/sys belong to a namespace where they tell of one, and then its root may write to
 * them.  What he has raised others rest on: a queue longer than fs.mqueue.msg_max cannot be made,
 * nor a message sent that is larger than kernel.msgmax, so they come before all of those.
 *
 * Nobody keeps what a fresh namespace has, which differs between kernels and hosts.  So the record
 * has all of them, and restore writes those that are otherwise there: some hundred files, 12 us each
 * to be read here, of a root inside alone.  Nobody else could have set any.  A file that the other
 * kernel lacks, or leaves to the host's root (those of IPC before Linux 6.9), stays as it is; what
 * needs it then says so itself.
 *
 * The directories are walked in the order of names, in which "all" and "default" of the interfaces
 * come before the interfaces: to set one of those changes these.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/answers.h"
#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/survey/survey.h"
#include "proto/settings.pb-c.h"

#define MAX_SETTINGS 65536
#define MAX_VALUE    (128 << 10) /* net.ipv4.ip_local_reserved_ports, all of them */
#define MAX_NAME     128
#define MAX_DEPTH    4

/* Below /proc/sys. */
static const char *const trees[] = {"net/core", "net/ipv4", "net/ipv6", "net/unix"};
static const char *const files[] = {"fs/mqueue/msg_default", "fs/mqueue/msg_max",
	"fs/mqueue/msgsize_default", "fs/mqueue/msgsize_max", "fs/mqueue/queues_max",
	"kernel/msgmax", "kernel/msgmnb", "kernel/msgmni", "kernel/sem", "kernel/shm_rmid_forced",
	"kernel/shmall", "kernel/shmmax", "kernel/shmmni"};

/* Whether one of the above is @name, or leads to it. */
static bool is_ours(const char *name)
{
	if (strlen(name) >= MAX_NAME || strstr(name, ".."))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (!strcmp(name, files[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		size_t len = strlen(trees[i]);

		if (!strncmp(name, trees[i], len) && name[len] == '/')
			return true;
	}
	return false;
}

/* ---- inside --------------------------------------------------------------------------------- */

/* The helper fills the record, and memory that it takes goes with it (see sysv_msg.c). */
static int add(Pb__Settings *m, int sys, const char *name, struct err *e)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	Pb__Setting *one;

	/* some have no value, as long as nobody has set one */
	if (m->n_settings == MAX_SETTINGS || io_read_file(sys, name, MAX_VALUE, &value) < 0)
		return 0;
	one = malloc(sizeof(*one));
	if (!one || !buf_cstr(&value))
		return err_errno(e, -ENOMEM, "settings");
	pb__setting__init(one);
	one->name = strdup(name);
	one->value = strdup(buf_cstr(&value));
	m->settings[m->n_settings++] = one;
	return one->name && one->value ? 0 : err_errno(e, -ENOMEM, "settings");
}

static int walk(Pb__Settings *m, int sys, const char *directory, int depth, struct err *e)
{
	struct dirent **found = NULL;
	int n = scandirat(sys, directory, &found, NULL, alphasort), r = 0;
	char name[MAX_NAME + sizeof(found[0]->d_name)];

	for (int i = 0; i < n && r >= 0; i++) {
		snprintf(name, sizeof(name), "%s/%s", directory, found[i]->d_name);
		if (found[i]->d_name[0] == '.' || strlen(name) >= MAX_NAME)
			continue;
		if (found[i]->d_type != DT_DIR)
			r = add(m, sys, name, e);
		else if (depth < MAX_DEPTH)
			r = walk(m, sys, name, depth + 1, e);
	}
	for (int i = 0; i < n; i++)
		free(found[i]);
	free(found);
	return r;
}

static int ask(const struct ckpt_world *w, struct buf *answer, struct err *e)
{
	Pb__Settings m = PB__SETTINGS__INIT;
	int sys, r = 0;

	if (w->uid || w->ns_ipc < 0)
		return 0;
	sys = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	m.settings = calloc(MAX_SETTINGS, sizeof(*m.settings));
	if (!m.settings)
		return err_errno(e, -ENOMEM, "settings");
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(files); i++)
		r = add(&m, sys, files[i], e);
	for (size_t i = 0; r >= 0 && w->ns_net >= 0 && i < ARRAY_SIZE(trees); i++)
		r = walk(&m, sys, trees[i], 0, e);
	return r < 0 ? r : ckpt_pack(&m.base, answer, e);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct buf *answer;
	int r = ckpt_answer(d, &ckpt_kind_settings, &answer, e);

	if (r < 0)
		return r;
	if (!answer->len)
		return 1;
	buf_put(body, answer->data, answer->len);
	return 0;
}

/* ---- restore -------------------------------------------------------------------------------- */

static void set(int sys, const Pb__Setting *s)
{
	_cleanup_buf_ struct buf now = BUF_INIT;

	if (io_read_file(sys, s->name, MAX_VALUE, &now) < 0 || !buf_cstr(&now) ||
		!strcmp(buf_cstr(&now), s->value))
		return;
	if (io_write_str(sys, s->name, s->value) < 0)
		log_debug("/proc/sys/%s stays as it is: %s", s->name, strerror(errno));
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	_cleanup_close_ int sys = openat(b->host_proc, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	Pb__Settings *m = pb__settings__unpack(NULL, r->len, r->body);
	bool bad = !m || m->n_settings > MAX_SETTINGS;

	for (size_t i = 0; !bad && i < m->n_settings; i++)
		bad = !is_ours(m->settings[i]->name);
	for (size_t i = 0; !bad && b->world->ns_ipc >= 0 && i < m->n_settings; i++)
		if (b->world->ns_net >= 0 || strncmp(m->settings[i]->name, "net/", 4) != 0)
			set(sys, m->settings[i]);
	pb__settings__free_unpacked(m, NULL);
	return bad ? ckpt_common_bad(r, e) : 0;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Settings *m = pb__settings__unpack(NULL, len, body);

	if (m)
		fprintf(out, "%zu", m->n_settings);
	pb__settings__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_settings = {
	.number = PROTO_KIND_SETTINGS,
	.name = "settings",
	.scope = CKPT_SESSION,
	.ask = ask,
	.dump = dump,
	.create = create,
	.show = show,
};

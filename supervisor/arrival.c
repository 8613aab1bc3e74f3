// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in arrival.h. */
#include "supervisor/arrival.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/end.h"
#include "supervisor/launch.h"
#include "supervisor/session.h"

/* ---- what is foretold ----------------------------------------------------------------------- */

/* What has no part in a world is left out.  All is borrowed from @c. */
static void extract(const Pb__Config *c, Pb__Config *ret, Pb__VirtualNetwork *net)
{
	*ret = (Pb__Config)PB__CONFIG__INIT;
	ret->name = c->name;
	ret->hostname = c->hostname;
	ret->cwd = c->cwd;
	ret->root = c->root;
	ret->net = c->net;
	ret->n_binds = c->n_binds;
	ret->binds = c->binds;
	ret->pids = c->pids;
	ret->uid = c->uid;
	ret->gid = c->gid;
	if (!c->network)
		return;
	*net = (Pb__VirtualNetwork)PB__VIRTUAL_NETWORK__INIT;
	net->address4 = c->network->address4;
	net->address6 = c->network->address6;
	net->gateway4 = c->network->gateway4;
	net->gateway6 = c->network->gateway6;
	net->mtu = c->network->mtu;
	ret->network = net;
}

static void pack(const Pb__Config *c, struct buf *ret)
{
	Pb__VirtualNetwork net;
	Pb__Config part;
	size_t len;
	void *room;

	extract(c, &part, &net);
	len = pb__config__get_packed_size(&part);
	room = buf_reserve(ret, len);
	if (room)
		ret->len += pb__config__pack(&part, room);
}

/*
 * A root inside stands on a layer of its own, and may give its host another name; others are in the
 * way of nobody.
 */
static bool is_plain(const Pb__Config *c)
{
	return !c->as_root && !c->memory && !c->io_uring && strcmp(c->names, "rewrite") != 0 &&
	       (!*c->net || !strcmp(c->net, "none") || !strcmp(c->net, "host") ||
		       !strcmp(c->net, "vnat"));
}

void arrival_foretell(const Pb__Config *c, int dir, struct buf *ret)
{
	_cleanup_close_ int files = openat(dir, "files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_buf_ struct buf layer = BUF_INIT;
	Pb__Foretold m = PB__FORETOLD__INIT;
	Pb__VirtualNetwork net;
	struct err e = {0};
	Pb__Config part;
	void *room;

	if (files < 0 || !is_plain(c) || ckpt_tree_layer(files, &layer, &e) != 0)
		return;
	extract(c, &part, &net);
	m.config = &part;
	m.layer = (ProtobufCBinaryData){layer.len, layer.data};
	room = buf_reserve(ret, pb__foretold__get_packed_size(&m));
	if (room)
		ret->len += pb__foretold__pack(&m, room);
}

int arrival_check(const Pb__Config *c, struct err *e)
{
	for (size_t i = 0; i < c->n_binds; i++) {
		const Pb__Bind *v = c->binds[i];

		if (v->source[0] != '/' || !paths_valid_target(v->target))
			return err_set(e, ERR_IMAGE, -EBADMSG, "a volume at '%s' makes no sense",
				v->target);
	}
	if (c->root[0] && c->root[0] != '/')
		return err_set(
			e, ERR_IMAGE, -EBADMSG, "the root directory '%s' makes no sense", c->root);
	return paths_check_name(c->name, e) < 0 ? err_reclass(e, ERR_IMAGE) : 0;
}

static void forget(struct session *s)
{
	if (s->foretold)
		pb__foretold__free_unpacked(s->foretold, NULL);
	s->foretold = NULL;
}

static void drop(struct session *s)
{
	session_drop_world(s);
	forget(s);
}

/* ---- before the image ------------------------------------------------------------------------ */

static char *files_of(const struct session *s)
{
	char *files;

	return s->dir && asprintf(&files, "%s/files", s->dir) > 0 ? files : NULL;
}

static int make_directory(struct session *s, struct err *e)
{
	_cleanup_free_ char *files = NULL;
	_cleanup_close_ int lock = -1;
	char name[32];

	snprintf(name, sizeof(name), ".resume-%d", getpid());
	free(s->dir);
	s->dir = paths_session(&s->paths, name, NULL);
	files = files_of(s);
	if (!files)
		return err_errno(e, -ENOMEM, "session");
	tenure_sweep(&s->paths);
	lock = tenure_lock(&s->paths, e);
	if (lock < 0)
		return lock;
	if (mkdir(s->dir, 0700) < 0 || mkdir(files, 0700) < 0)
		return err_errno(e, -errno, "cannot make %s", files);
	s->dir_fd = tenure_open(s->dir, e);
	return MIN(s->dir_fd, 0);
}

/* Directories as they will be, and what a world is made of. */
static int prepare(struct session *s, const Pb__Foretold *m, struct err *e)
{
	_cleanup_free_ char *files = NULL;
	_cleanup_close_ int fd = -1;
	int r = arrival_check(m->config, e);

	if (r == 0)
		r = make_directory(s, e);
	if (r < 0)
		return r;
	files = files_of(s);
	fd = files ? open(files, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd < 0)
		return err_errno(e, -errno, "%s", s->dir);
	r = ckpt_tree_make_layer(fd, m->layer.data, m->layer.len, e);
	return r == 0 ? session_make_early_world(s, m->config, e) : r;
}

void arrival_prepare(struct session *s, const uint8_t *foretold, size_t len)
{
	struct err e = {0};

	if (!len || strcmp(s->op.resume->names, "rewrite") == 0)
		return;
	s->foretold = pb__foretold__unpack(NULL, len, foretold);
	if (!s->foretold || !s->foretold->config || !is_plain(s->foretold->config) ||
		prepare(s, s->foretold, &e) < 0) {
		log_info("no world before the image comes: %s", e.msg);
		drop(s);
	}
}

/* ---- the image is there ---------------------------------------------------------------------- */

/* What a world was made with that is not wanted. */
static int clear(struct session *s, struct err *e)
{
	_cleanup_free_ char *files = files_of(s);
	_cleanup_close_ int lock = files ? tenure_lock(&s->paths, e) : -1;
	char *aside = NULL;
	int r;

	if (lock < 0)
		return files ? lock : err_errno(e, -ENOMEM, "session");
	aside = tenure_set_aside(files);
	r = mkdir(files, 0700) < 0 ? err_errno(e, -errno, "cannot make %s", files) : 0;
	lock = close_fd(lock);
	tenure_remove(aside);
	return r;
}

static bool is_as_foretold(const struct session *s)
{
	_cleanup_buf_ struct buf is = BUF_INIT, was = BUF_INIT;

	if (!is_plain(s->record->config))
		return false;
	pack(s->record->config, &is);
	pack(s->foretold->config, &was);
	return !is.failed && !was.failed && is.len == was.len && !memcmp(is.data, was.data, is.len);
}

int arrival_directory(struct session *s, bool *ret_there, struct err *e)
{
	_cleanup_free_ char *files = NULL;
	int r = 0, fd;

	if (s->foretold && !is_as_foretold(s)) {
		log_info("the image is not the one that was foretold");
		drop(s);
	}
	/* not before, or in vain */
	if (s->dir_fd < 0)
		r = make_directory(s, e);
	else if (!s->foretold)
		r = clear(s, e);
	files = r == 0 ? files_of(s) : NULL;
	if (!files)
		return r < 0 ? r : err_errno(e, -ENOMEM, "session");
	fd = open(files, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*ret_there = s->foretold;
	return fd < 0 ? err_errno(e, -errno, "%s", files) : fd;
}

bool arrival_keep(
	struct session *s, bool changed, void (*then)(struct session *s, struct err *e))
{
	struct err e = {0};

	if (!s->foretold)
		return false;
	if (changed || s->init_gone || s->rewrite ||
		session_use_early_world(s, then, &e) < 0) {
		log_info("the world is made again: %s",
			err_is(&e) ? e.msg : "its files are no new session's");
		drop(s);
		return false;
	}
	log_info("the world was there before the image");
	return true;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in rename.h. */
#include "supervisor/rename.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/client.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/kin.h"
#include "supervisor/session.h"

/* The session is in the image that is being resumed. */
void rename_save_suspended(struct session *s, bool durable)
{
	session_set_string(&s->record->image, s->op.path);
	session_save(s, RECORD_SUSPENDED, durable, NULL);
}

static bool is_same(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* Somebody has the name's runtime directory, whether he listens there already or not. */
static bool is_held(const struct session *s)
{
	_cleanup_free_ char *runtime = paths_runtime(&s->paths, s->record->config->name, NULL);

	return runtime && tenure_is_held(runtime);
}

enum name_use rename_look(struct session *s, bool *ret_live)
{
	const Pb__Config *c = s->record->config;
	struct session_operation *op = &s->op;
	Pb__Record *other = NULL;
	struct err e = {0};
	bool same;

	*ret_live = false;
	if (record_load(&other, &s->paths, c->name, &e) < 0)
		return e.error == -ENOENT ? NAME_FREE : NAME_TAKEN;
	same = is_same(&other->config->session_id, &c->session_id);
	*ret_live = client_is_live(&s->paths, c->name);
	if (*ret_live) {
		record_free(other);
		return same && !op->copy ? NAME_WAIT : NAME_TAKEN;
	}
	/* One that is just being made, or that is being taken apart. */
	if (is_held(s)) {
		record_free(other);
		return NAME_WAIT;
	}
	if (strcmp(other->state, "suspended") != 0 && strcmp(other->state, "in-doubt") != 0 &&
		strcmp(other->state, "arrived") != 0)
		same = true; /* it ended, or its supervisor did */
	record_free(other);
	return same ? NAME_FREE : NAME_TAKEN;
}

/* It came by a move that came to nothing. */
static bool has_arrived(const struct session *s)
{
	Pb__Record *other = NULL;
	struct err ignored = {0};
	bool yes;

	if (record_load(&other, &s->paths, s->record->config->name, &ignored) < 0)
		return false;
	yes = record_state_of(other->state) == RECORD_ARRIVED &&
		is_same(&other->config->session_id, &s->record->config->session_id);
	record_free(other);
	return yes;
}

int rename_taken(const struct session *s, struct err *e)
{
	const char *name = s->record->config->name;

	if (s->op.resume->frozen && has_arrived(s))
		return err_set(e, ERR_STATE, -EEXIST,
			"'%s' has arrived here before and was not let run; podrun migrate --abort "
			"%s, said here, removes it",
			name, name);
	err_set(e, ERR_STATE, -EEXIST, "the name '%s' is in use", name);
	return err_hint(e, "resume it under another with --name, or --replace what has it");
}

/* Does the name's record, if there is one, belong to the session that is being resumed? */
static bool is_our_record(struct session *s)
{
	const Pb__Config *c = s->record->config;
	Pb__Record *other = NULL;
	struct err e = {0};
	bool same;

	if (record_load(&other, &s->paths, c->name, &e) < 0)
		return false;
	same = is_same(&other->config->session_id, &c->session_id);
	record_free(other);
	return same;
}

/* The log that stayed here may be longer than the end of it that came with the image. */
static void take_log(struct session *s, const char *dir)
{
	_cleanup_free_ char *log = NULL, *ours = NULL;
	struct err e = {0};

	if (asprintf(&log, "%s/log", dir) < 0)
		log = NULL;
	if (asprintf(&ours, "%s/log", s->dir) < 0)
		ours = NULL;
	if (log && ours &&
		session_log_join(log, s->op.world->log.data, s->op.world->log.len) == 0 &&
		rename(log, ours) == 0)
		session_open_log(s, &e);
}

static int take_name_locked(
	struct session *s, char *dir, char *runtime, char *ret_aside[2], struct err *e)
{
	if (tenure_is_held(runtime)) {
		rename_taken(s, e);
		return -EAGAIN;
	}
	if (kin_check(s, e) < 0)
		return e->error;
	s->op.had_record = !s->op.copy && is_our_record(s);
	/* Should we die before the session runs, this is still true. */
	if (s->op.had_record && s->op.path)
		rename_save_suspended(s, false);
	else
		session_save(s, RECORD_STARTING, false, NULL);
	if (s->op.had_record)
		take_log(s, dir);
	ret_aside[0] = tenure_set_aside(dir);
	ret_aside[1] = tenure_set_aside(runtime);
	if (rename(s->dir, dir) < 0)
		return errno == EEXIST || errno == ENOTEMPTY ?
			rename_taken(s, e) :
			err_errno(e, -errno, "%s", dir);
	free(s->dir);
	s->dir = dir;
	s->runtime = runtime;
	if (mkdir(runtime, 0700) < 0)
		return err_errno(e, -errno, "cannot make %s", runtime);
	s->runtime_fd = tenure_open(runtime, e);
	return s->runtime_fd < 0 ? s->runtime_fd : 0;
}

int rename_take(struct session *s, struct err *e)
{
	const char *name = s->record->config->name;
	char *dir = paths_session(&s->paths, name, NULL);
	char *runtime = paths_runtime(&s->paths, name, NULL), *aside[2] = {NULL, NULL};
	_cleanup_close_ int lock = tenure_lock(&s->paths, e);
	int r = lock < 0 ? lock : 0;

	if (r == 0)
		r = dir && runtime ? take_name_locked(s, dir, runtime, aside, e) :
				     err_errno(e, -ENOMEM, "session");
	lock = close_fd(lock);
	tenure_remove(aside[0]);
	tenure_remove(aside[1]);
	if (s->dir != dir)
		free(dir);
	if (s->runtime != runtime)
		free(runtime);
	return r;
}

/* Is what is known of @name that the session is in the image which was resumed? */
static bool is_left(struct session *s, const char *name, const char *runtime)
{
	Pb__Record *r = NULL;
	struct err ignored = {0};
	bool yes;

	if (record_load(&r, &s->paths, name, &ignored) < 0)
		return false;
	yes = record_state_of(r->state) == RECORD_SUSPENDED && !tenure_is_held(runtime) &&
		is_same(&r->config->session_id, &s->record->config->session_id) &&
		(r->image_id.len != sizeof(s->op.image_id) ||
			memcmp(r->image_id.data, s->op.image_id, r->image_id.len) == 0);
	record_free(r);
	return yes;
}

void rename_forget(struct session *s)
{
	const char *name = s->op.was;
	_cleanup_free_ char *dir = name ? paths_session(&s->paths, name, NULL) : NULL;
	_cleanup_free_ char *runtime = name ? paths_runtime(&s->paths, name, NULL) : NULL;
	struct err e = {0};
	_cleanup_close_ int lock = dir && runtime && !s->op.copy ? tenure_lock(&s->paths, &e) : -1;
	char *aside = NULL;

	if (lock < 0)
		return;
	if (is_left(s, name, runtime)) {
		take_log(s, dir);
		aside = tenure_set_aside(dir);
	}
	lock = close_fd(lock);
	tenure_remove(aside);
}

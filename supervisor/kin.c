// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in kin.h. */
#include "supervisor/kin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/session.h"

#define ID_LEN 16

const char *kin_volume(const Pb__Config *c)
{
	for (size_t i = 0; i < c->n_binds; i++)
		if (!c->binds[i]->read_only)
			return c->binds[i]->target;
	return NULL;
}

static const ProtobufCBinaryData *origin_of(const Pb__Config *c)
{
	return c->origin.len == ID_LEN ? &c->origin : &c->session_id;
}

int kin_part(Pb__Config *c, struct err *e)
{
	uint8_t *origin = c->origin.len == ID_LEN ? NULL : malloc(ID_LEN);

	if (c->origin.len != ID_LEN && !origin)
		return err_errno(e, -ENOMEM, "session");
	if (origin) {
		memcpy(origin, c->session_id.data, ID_LEN);
		free(c->origin.data);
		c->origin = (ProtobufCBinaryData){ID_LEN, origin};
	}
	if (getrandom(c->session_id.data, ID_LEN, 0) != ID_LEN)
		return err_errno(e, -errno, "random numbers");
	return 0;
}

static bool same(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
	return a->len == ID_LEN && b->len == ID_LEN && memcmp(a->data, b->data, ID_LEN) == 0;
}

/* It runs, or is to run again. */
static bool is_alive(const struct session *s, const char *name, const Pb__Record *r)
{
	_cleanup_free_ char *runtime = NULL;

	switch (record_state_of(r->state)) {
	case RECORD_SUSPENDED:
		return true;
	case RECORD_MOVED:
	case RECORD_ENDED:
		return false;
	default:
		runtime = paths_runtime(&s->paths, name, NULL);
		return runtime && tenure_is_held(runtime);
	}
}

/* Is the session called @name in the way of @s? */
static bool is_in_the_way(const struct session *s, const char *name)
{
	const Pb__Config *c = s->record->config;
	struct err ignored = {0};
	Pb__Record *r = NULL;
	bool yes;

	if (strcmp(name, c->name) == 0 || record_load(&r, &s->paths, name, &ignored) < 0)
		return false;
	yes = same(origin_of(c), origin_of(r->config)) &&
		!same(&c->session_id, &r->config->session_id) && is_alive(s, name, r);
	record_free(r);
	return yes;
}

int kin_check(const struct session *s, struct err *e)
{
	const char *volume = kin_volume(s->record->config);
	char **names;
	size_t n;
	int r = volume ? paths_list(&s->paths, &names, &n, e) : 0;

	if (r < 0 || !volume)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (r == 0 && is_in_the_way(s, names[i])) {
			r = err_set(e, ERR_STATE, -EBUSY,
				"a copy can't share the writable volume %s, which '%s' has", volume,
				names[i]);
			err_hint(e, "--replace --name %s resumes it in the place of that",
				names[i]);
		}
		free(names[i]);
	}
	free(names);
	return r;
}

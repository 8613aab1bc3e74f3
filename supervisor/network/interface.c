// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/network/interface.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/session.h"
#include "vnet/vnet.h"

/* The session that runs with the interface, the caller's to free; or NULL. */
static char *who_has(const struct session *s, const char *text)
{
	struct err ignored = {0};
	char **names, *found = NULL;
	size_t n;

	if (paths_list(&s->paths, &names, &n, &ignored) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *runtime = paths_runtime(&s->paths, names[i], NULL);
		const char *other = NULL;
		Pb__Record *r = NULL;

		if (!found && strcmp(names[i], s->record->config->name) != 0 && runtime &&
			tenure_is_held(runtime) &&
			record_load(&r, &s->paths, names[i], &ignored) == 0)
			other = vnet_passthrough_of(r->config->net);
		if (other && vnet_passthrough_same(text, other))
			found = take_ptr(names[i]);
		record_free(r);
		free(names[i]);
	}
	free(names);
	return found;
}

int interface_take(struct session *s, const char *text, struct err *e)
{
	_cleanup_free_ char *other = NULL;
	int r;

	if (s->world.ns_net < 0)
		return err_set(e, ERR_HOST, -EOPNOTSUPP,
			"--net passthrough needs a network of its own, which this host does not allow");
	r = vnet_passthrough_take(&s->passthrough, text, s->world.ns_net, e);
	other = r < 0 && e->class == ERR_NOT_FOUND ? who_has(s, text) : NULL;
	if (!other)
		return r;
	*e = (struct err){0};
	return err_set(e, ERR_STATE, -EBUSY, "session '%s' has the interface %s", other, text);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/cli/view_vnc.h"

#include "base/base.h"
#include "display/display.h"
#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/view_way.h"
#include "supervisor/cli/vnc_port.h"
#include "supervisor/client.h"
#include "supervisor/disk/record.h"

static bool has_directory(const struct view_way *w)
{
	_cleanup_free_ char *runtime = paths_runtime(&w->cli->paths, w->name, NULL);

	return !runtime || access(runtime, F_OK) == 0;
}

/* One that is suspended may be resumed, here or elsewhere; of other hosts nothing is known. */
static bool is_over(void *ctx)
{
	struct view_way *w = ctx;
	struct err e = {0};
	struct client_session s;
	bool over;

	if (w->host)
		return false;
	view_way_follow(w);
	if (client_look(&s, &w->cli->paths, w->name, &e) < 0)
		return e.class == ERR_NOT_FOUND && !has_directory(w);
	over = view_way_is_other(w, s.record);
	over |= !s.live && (!s.record || record_state_of(s.record->state) == RECORD_ENDED);
	client_session_fini(&s);
	return over;
}

int view_vnc_serve(const struct vnc_port *p, struct view_way *way, bool view_only, unsigned quality,
	struct err *e)
{
	const struct display_vnc_options o = {.password = p->password,
		.view_only = view_only,
		.quality = quality,
		.connect = view_way_connect,
		.over = way->host ? NULL : is_over,
		.ctx = way};

	view_way_know(way);
	return display_vnc(p->listener, &o, e);
}

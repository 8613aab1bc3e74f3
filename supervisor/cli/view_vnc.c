// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/cli/view_vnc.h"

#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/view_way.h"
#include "supervisor/client.h"
#include "supervisor/record.h"

/* 40 bits of characters that are not mistaken for others. */
static int make_password(struct view_vnc *v, struct err *e)
{
	static const char letters[] = "abcdefghjkmnpqrstuvwxyz23456789x";
	uint8_t any[DISPLAY_VNC_PASSWORD];

	if (getrandom(any, sizeof(any), 0) != sizeof(any))
		return err_errno(e, -errno, "a password");
	for (size_t i = 0; i < sizeof(any); i++)
		v->password[i] = letters[any[i] % 32];
	return 0;
}

int view_vnc_open(struct view_vnc *v, const char *listen, struct err *e)
{
	*v = (struct view_vnc){.listener = -1};
	if (make_password(v, e) < 0)
		return e->error;
	v->listener = display_vnc_listen(listen, v->where, sizeof(v->where), e);
	return MIN(v->listener, 0);
}

void view_vnc_close(struct view_vnc *v)
{
	v->listener = close_fd(v->listener);
}

static bool has_directory(const struct view_way *w)
{
	_cleanup_free_ char *runtime = paths_runtime(&w->cli->paths, w->name, NULL);

	return !runtime || access(runtime, F_OK) == 0;
}

/* One that is suspended may be resumed, here or elsewhere; of other hosts nothing is known. */
static bool is_over(void *ctx)
{
	const struct view_way *w = ctx;
	struct err e = {0};
	struct client_session s;
	bool over;

	if (w->host)
		return false;
	if (client_look(&s, &w->cli->paths, w->name, &e) < 0)
		return e.class == ERR_NOT_FOUND && !has_directory(w);
	over = !s.live && (!s.record || record_state_of(s.record->state) == RECORD_ENDED);
	client_session_fini(&s);
	return over;
}

int view_vnc_serve(const struct view_vnc *v, struct view_way *way, bool view_only, unsigned quality,
	struct err *e)
{
	const struct display_vnc_options o = {.password = v->password,
		.view_only = view_only,
		.quality = quality,
		.connect = view_way_connect,
		.over = way->host ? NULL : is_over,
		.ctx = way};

	return display_vnc(v->listener, &o, e);
}

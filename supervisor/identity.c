// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/identity.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/arrival.h"
#include "supervisor/kin.h"
#include "supervisor/network/network.h"
#include "supervisor/screen/screen.h"
#include "supervisor/session.h"

static int check_config(const Pb__Config *c, struct err *e)
{
	if (c->session_id.len != 16)
		return err_set(e, ERR_IMAGE, -EBADMSG, "the image has no identity");
	return arrival_check(c, e);
}

static int check_clocks(const Pb__World *w, struct err *e)
{
	if (w->monotonic_ns < 0 || w->monotonic_ns >= CKPT_CLOCK_MAX / 2 || w->boottime_ns < 0 ||
		w->boottime_ns >= CKPT_CLOCK_MAX / 2)
		return err_set(e, ERR_IMAGE, -EBADMSG, "the image's clocks make no sense");
	return 0;
}

/* Not by this user on this host. */
static bool made_elsewhere(const struct session *s, const ProtobufCBinaryData *signer)
{
	uint8_t own[PROTO_KEY_LEN];
	struct err ignored = {0};

	return signer->len != sizeof(own) || proto_key_own(s->paths.config, own, &ignored) != 1 ||
	       memcmp(own, signer->data, sizeof(own)) != 0;
}

/* The numbers of another host's users are others' here. */
static void bar_users(struct session_operation *op, Pb__Config *c)
{
	op->barred = c->n_allow != 0;
	c->n_allow = 0;
}

int identity_take(struct session *s, const Pb__ImageInfo *info, struct err *e)
{
	struct session_operation *op = &s->op;
	Pb__Config *c;
	bool elsewhere;

	s->record = malloc(sizeof(*s->record));
	if (!s->record)
		return err_errno(e, -ENOMEM, "record");
	pb__record__init(s->record);
	s->record->config = pb__config__unpack(NULL, info->config.len, info->config.data);
	op->world = pb__world__unpack(NULL, info->world.len, info->world.data);
	if (!s->record->config || !op->world || info->image_id.len != 16)
		return err_set(e, ERR_IMAGE, -EBADMSG, "the image does not begin like a session");
	c = s->record->config;
	memcpy(op->image_id, info->image_id.data, 16);
	op->copy = info->copy || op->resume->copy;
	op->renamed = op->resume->name[0] && strcmp(c->name, op->resume->name) != 0;
	if (op->renamed && !(op->was = strdup(c->name)))
		return err_errno(e, -ENOMEM, "name");
	if (op->renamed)
		session_set_string(&c->name, op->resume->name);
	s->record->started = time(NULL);
	elsewhere = made_elsewhere(s, &info->signer);
	op->foreign = elsewhere && !op->resume->frozen;
	if (elsewhere || c->uid != getuid())
		bar_users(op, c);
	if (check_config(c, e) < 0 || screen_check(c, e) < 0 || check_clocks(op->world, e) < 0 ||
		network_check_image(s, e) < 0)
		return e->error;
	return op->copy ? kin_part(c, e) : 0;
}

int identity_check_clone(const Pb__Config *c, struct err *e)
{
	const char *volume = kin_volume(c);

	return volume ? err_set(e, ERR_STATE, -EBUSY, "a copy can't share the writable volume %s",
				volume)
		      : 0;
}

char *identity_note(const struct session *s)
{
	const struct session_operation *op = &s->op;
	bool host = strcmp(s->record->config->net, "host") == 0;
	const char *network = network_note(s);
	_cleanup_buf_ struct buf b = BUF_INIT;
	const char *const all[] = {
		network,
		s->rewrite && !s->lacking && !*network && !host
			? "its network is the host's here, where its ports are anybody's"
			: "",
		s->rewrite && !s->lacking && host && op->foreign && !op->resume->trust_network
			? "the image was made elsewhere, and its session has this host's network"
			: "",
		op->barred ? "the users whom it lets in elsewhere (--allow) are not let in here"
			   : "",
		op->report ? op->report->note : "",
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (*all[i])
			buf_printf(&b, "%s%s", b.len ? "; " : "", all[i]);
	return buf_cstr(&b) ? strdup(buf_cstr(&b)) : NULL;
}

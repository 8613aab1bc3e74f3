// SPDX-License-Identifier: GPL-2.0-or-later
/* rm: what is left of sessions that are not running: record, log, image. */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "proto/config.pb-c.h"
#include "proto/control.pb-c.h"
#include "proto/kinds.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "supervisor/disk/images.h"
#include "supervisor/disk/record.h"
#include "supervisor/disk/tenure.h"
#include "vnet/vnet.h"

struct rm_options {
	bool force, all;
};

static const struct cli_option options[] = {
	{"force", 'f', NULL, "end it first if it is running", CLI_FLAG,
		offsetof(struct rm_options, force)},
	{"all", 'a', NULL, "all that have ended", CLI_FLAG, offsetof(struct rm_options, all)},
};

/* ---- what waits for it at the gateway ----------------------------------------------------- */

static bool take_claim(const Pb__World *w, struct vnet_claim *ret)
{
	const Pb__GatewayClaim *m = w ? w->claim : NULL;

	if (!m || m->ticket.len != sizeof(ret->ticket) || m->gateway.len != sizeof(ret->gateway))
		return false;
	ret->label = m->label;
	ret->epoch = m->epoch;
	memcpy(ret->ticket, m->ticket.data, sizeof(ret->ticket));
	memcpy(ret->gateway, m->gateway.data, sizeof(ret->gateway));
	return true;
}

/* What the image that goes with @name would claim: its second record tells (ckpt/ckpt.h). */
static bool find_claim(const struct paths *p, const char *name, struct vnet_claim *ret)
{
	const struct proto_read_options any = {0};
	_cleanup_free_ char *path = paths_image(p, name, 0);
	_cleanup_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct proto_reader *in;
	struct proto_frame f;
	struct err ignored = {0};
	bool found = false;

	if (fd < 0 || proto_reader_open(&in, fd, &any, &ignored) < 0)
		return false;
	if (proto_read(in, &f, &ignored) == 0 && proto_read(in, &f, &ignored) == 0 &&
		f.type == PROTO_RECORD && f.kind == PROTO_KIND_WORLD) {
		Pb__World *w = pb__world__unpack(NULL, f.len, f.data);

		found = take_claim(w, ret);
		pb__world__free_unpacked(w, NULL);
	}
	proto_reader_close(in);
	return found;
}

/*
 * Nobody will come for its connections.  A gateway that is not there, or knows nothing of them, has
 * none.
 */
static void end_connections(const struct paths *p, const struct vnet_claim *claim)
{
	struct vnet_client *client;
	struct vnet_answer a = {0};
	struct err ignored = {0};

	if (vnet_client_connect(&client, p->runtime, false, &ignored) < 0)
		return;
	if (vnet_client_forget(client, claim, &ignored) == 0 &&
		vnet_client_wait(client, &a, &ignored) == 0)
		vnet_answer_fini(&a);
	vnet_client_free(client);
}

/* What --dns-update said, and the host whose addresses that are: NULL is this one. */
struct dns_name {
	char *update, *host;
};

static void dns_name_fini(struct dns_name *n)
{
	free(n->update);
	free(n->host);
}
#define _cleanup_dns_name_ __attribute__((cleanup(dns_name_fini)))

/*
 * Of one that is suspended here: its name will lead nowhere.  Of one that ended its gateway has
 * said so.
 */
static struct dns_name find_name(const struct client_session *s)
{
	const Pb__VirtualNetwork *n = s->record->config->network;
	struct dns_name ret = {0};

	if (!n || !n->dns_update[0] || strncmp(n->gateway, "wg:", 3) == 0 ||
		record_state_of(s->record->state) != RECORD_SUSPENDED)
		return ret;
	ret.update = strdup(n->dns_update);
	if (n->gateway[0] && strcmp(n->gateway, "local") != 0)
		ret.host = strdup(n->gateway);
	return ret;
}

static void leave_name(const struct dns_name *n)
{
	struct err e = {0};
	char note[sizeof(e.msg) + 64];
	int r;

	if (!n->update)
		return;
	r = n->host ? vnet_away_withdraw(n->host, n->update, &e)
		    : vnet_nsupdate_withdraw(n->update, &e);
	if (r == 0)
		return;
	snprintf(note, sizeof(note), "its name is still in DNS: %s", e.msg);
	cli_say_note(note);
}

/* ---- sessions ----------------------------------------------------------------------------- */

/* It may run elsewhere, or not. */
static bool is_undecided(const char *state)
{
	return strcmp(state, record_state_name(RECORD_IN_DOUBT)) == 0 ||
	       strcmp(state, record_state_name(RECORD_ARRIVED)) == 0;
}

static int forget(struct cli *c, const char *name, struct err *e)
{
	struct vnet_claim claim;
	bool claims = find_claim(&c->paths, name, &claim);
	int r = record_remove(&c->paths, name, e);

	if (r == 0 && claims)
		end_connections(&c->paths, &claim);
	return r;
}

/* Of a session that has another name now; false: there are none. */
static bool forget_snapshots(struct cli *c, const char *name)
{
	_cleanup_close_ int lock = tenure_lock(&c->paths, NULL);

	return lock >= 0 && images_forget(&c->paths, name);
}

static int remove_one(struct cli *c, const char *name, bool force, struct err *e)
{
	struct client_session s;
	_cleanup_dns_name_ struct dns_name name_in_dns = {0};
	int r;

	tenure_sweep(&c->paths);
	if (client_look(&s, &c->paths, name, e) < 0) {
		if (e->error == -EBADMSG && force) {
			*e = (struct err){0};
			return forget(c, name, e);
		}
		if (e->class != ERR_NOT_FOUND || !forget_snapshots(c, name))
			return e->error;
		*e = (struct err){0};
		return 0;
	}
	if (s.live && force) {
		Pb__Control m = PB__CONTROL__INIT;
		Pb__KillRequest q = PB__KILL_REQUEST__INIT;

		q.force = true;
		m.body_case = PB__CONTROL__BODY_KILL;
		m.kill = &q;
		client_simple(&c->paths, name, &m, e);
		*e = (struct err){0};
	} else if (s.live) {
		err_set(e, ERR_STATE, -EBUSY, "cannot remove '%s': it is %s", name, s.state);
		err_hint(e, is_undecided(s.state)
				    ? "podrun migrate --finish %s or --abort %s decides"
				    : "podrun stop %s, or podrun rm -f %s",
			name, name);
	}
	if (!s.live)
		name_in_dns = find_name(&s);
	client_session_fini(&s);
	if (err_is(e))
		return e->error;
	/* The supervisor removes what was started with --rm itself. */
	for (int i = 0; force && i < 500 && client_is_live(&c->paths, name); i++)
		usleep(10000);
	r = forget(c, name, e);
	if (r == 0)
		leave_name(&name_in_dns);
	return r;
}

/* One that can't be removed keeps no others; each is said, the last by who called us. */
static void note(struct err *e, const struct err *one)
{
	if (!err_is(one))
		return;
	if (err_is(e))
		cli_print_error(e);
	*e = *one;
}

static int remove_all(struct cli *c, struct err *e)
{
	struct client_session *all;
	size_t n;

	if (client_list(&c->paths, &all, &n, e) < 0)
		return e->error;
	for (size_t i = 0; i < n; i++) {
		struct err one = {0};

		if (!all[i].live && record_state_of(all[i].record->state) == RECORD_ENDED)
			record_remove(&c->paths, all[i].name, &one);
		note(e, &one);
	}
	client_list_free(all, n);
	return err_is(e) ? e->error : 0;
}

static int remove_named(struct cli *c, const char *name, bool force, struct err *e)
{
	int r = paths_check_own(name, e);

	if (r == 0 && !paths_valid_name(name))
		r = err_set(e, ERR_NOT_FOUND, -ENOENT, "no session '%.64s'", name);
	return r < 0 ? r : remove_one(c, name, force, e);
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct rm_options *o = opts;

	if (!o->all && !argc)
		return err_set(e, ERR_USAGE, -EINVAL, "usage: podrun rm [-f] NAME...");
	if (o->all && argc)
		return err_set(e, ERR_USAGE, -EINVAL, "-a goes with no names");
	if (o->all)
		return remove_all(c, e);
	for (int i = 0; i < argc; i++) {
		struct err one = {0};

		remove_named(c, argv[i], o->force, &one);
		note(e, &one);
	}
	return err_is(e) ? e->error : 0;
}

const struct cli_command cli_rm = {
	.name = "rm",
	.usage = "[-f] NAME... | -a",
	.help = "forget sessions that ended or are suspended, with their images",
	.text = "Its snapshots that were not given a file, as *run --every* makes them, go as "
		"well; those that a session had made before it got another name are removed by the "
		"name they have. Of several names those that can be removed are; the exit code is "
		"that of the last which can't.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct rm_options),
	.group = CLI_END,
	.operand = CLI_SESSION,
	.max_operands = -1,
	.run = run,
};

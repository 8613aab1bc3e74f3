// SPDX-License-Identifier: GPL-2.0-or-later
/* JSON of protobuf messages: what ps, inspect and --json of the others print. */
#include "supervisor/cli/json.h"

#include <string.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/cli/net_text.h"
#include "supervisor/cli/stream.h"
#include "supervisor/client.h"

json_t *json_text(const char *s)
{
	_cleanup_free_ char *copy = text_utf8(s);

	return json_string(copy ? copy : "");
}

json_t *json_hex(const unsigned char *data, size_t n)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%02x", data[i]);
	return json_string(buf_cstr(&b) ? buf_cstr(&b) : "");
}

static json_t *texts(char *const *items, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_text(items[i]));
	return a;
}

json_t *json_of_process(const Pb__Process *p)
{
	return json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:i, s:I, s:I}", "pid", (int)p->vpid, "parent",
		(int)p->vppid, "host_pid", (int)p->pid, "comm", json_text(p->comm), "state",
		json_text(p->state), "command", json_text(p->command), "threads", (int)p->threads,
		"rss_kb", (json_int_t)p->rss_kb, "cpu_ms", (json_int_t)p->cpu_ms);
}

json_t *json_of_port(const char *address, uint32_t host, uint32_t session, bool udp)
{
	return json_pack("{s:o, s:i, s:i, s:s}", "address", json_text(address), "host", (int)host,
		"session", (int)session, "protocol", udp ? "udp" : "tcp");
}

static json_t *network_of(const struct client_session *s)
{
	const Pb__VirtualNetwork *n = s->record->config->network;
	_cleanup_buf_ struct buf needs = BUF_INIT;
	json_t *ports = json_array(), *j;

	for (size_t i = 0; i < n->n_publish; i++) {
		const Pb__PublishedPort *p = n->publish[i];

		json_array_append_new(
			ports, json_of_port(p->address, p->host, p->session, p->udp));
	}
	j = json_pack("{s:[o,o], s:[o,o], s:i, s:o, s:o}", "addresses", json_text(n->address4),
		json_text(n->address6), "resolver", json_text(n->gateway4), json_text(n->gateway6), "mtu",
		(int)n->mtu, "gateway", json_text(n->gateway[0] ? n->gateway : "local"), "publish", ports);
	if (n->through[0])
		json_object_set_new(j, "through", json_text(n->through));
	if (n->carrier[0])
		json_object_set_new(j, "carrier", json_text(n->carrier));
	if (n->carrier[0] && s->live)
		json_object_set_new(j, "carried_by", json_string(n->by_tunnel ? "tunnel" : "stream"));
	if (n->host_loopback[0])
		json_object_set_new(j, "host_loopback", json_text(n->host_loopback));
	if (n->dns_update[0])
		json_object_set_new(j, "dns_update", json_text(n->dns_update));
	if (n->on_move[0])
		json_object_set_new(j, "on_move", json_text(n->on_move));
	if (n->link_local)
		json_object_set_new(j, "link_local", json_true());
	net_text_put_dependency(&needs, s);
	json_object_set_new(j, "residual_dependency",
		needs.len && buf_cstr(&needs) ? json_text(buf_cstr(&needs)) : json_null());
	return j;
}

/* Numbers of the users who were let in. */
static json_t *users_of(const Pb__Config *c)
{
	json_t *users = json_array();

	for (size_t i = 0; i < c->n_allow; i++)
		json_array_append_new(users, json_integer(c->allow[i]));
	return users;
}

static json_t *config_of(const struct client_session *s)
{
	const Pb__Config *c = s->record->config;
	json_t *binds = json_array(), *j;

	for (size_t i = 0; i < c->n_binds; i++)
		json_array_append_new(binds,
			json_pack("{s:o, s:o, s:b}", "source", json_text(c->binds[i]->source), "target",
				json_text(c->binds[i]->target), "read_only", c->binds[i]->read_only));
	j = json_pack("{s:o, s:o, s:o, s:b, s:b, s:b, s:s, s:o, s:o, s:I, s:I, s:b, s:b, s:b, s:s}", "env",
		texts(c->env, c->n_env), "workdir", json_text(c->cwd), "hostname", json_text(c->hostname),
		"tty", c->tty, "interactive", c->keep_stdin, "rm", c->remove, "user",
		c->as_root ? "root" : "me", "net", json_text(c->net), "volumes", binds, "memory",
		(json_int_t)c->memory, "pids", (json_int_t)c->pids, "portable", c->portable, "io_uring",
		c->io_uring, "end_with_command", c->end_with_command, "outside",
		c->outside[0] ? c->outside : "refuse");
	if (c->every)
		json_object_update_new(j,
			json_pack("{s:I, s:I}", "every", (json_int_t)c->every, "keep",
				(json_int_t)c->keep));
	if (c->n_allow)
		json_object_set_new(j, "allow", users_of(c));
	if (c->root[0])
		json_object_set_new(j, "root", json_text(c->root));
	if (c->network)
		json_object_set_new(j, "network", network_of(s));
	json_object_set_new(j, "names", json_text(c->names));
	json_object_set_new(j, "view", json_text(c->view[0] ? c->view : "private"));
	return j;
}

static json_t *display_of(const Pb__Config *c)
{
	char name[16];

	snprintf(name, sizeof(name), ":%u", c->display->number);
	return json_pack("{s:i, s:i, s:s, s:i, s:i}", "width", (int)c->display->width, "height",
		(int)c->display->height, "name", name, "server", (int)c->display->server,
		"sound_server", (int)c->display->sound_server);
}

static void add_live(json_t *j, const Pb__Info *info)
{
	json_t *processes = json_array(), *jobs = json_array();

	for (size_t i = 0; i < info->n_processes; i++)
		json_array_append_new(processes, json_of_process(info->processes[i]));
	for (size_t i = 0; i < info->n_jobs; i++)
		json_array_append_new(jobs,
			json_pack("{s:i, s:i, s:b, s:b, s:o}", "number", (int)info->jobs[i]->number, "pid",
				(int)info->jobs[i]->vpid, "tty", info->jobs[i]->tty, "exited",
				info->jobs[i]->exited, "command",
				texts(info->jobs[i]->argv, info->jobs[i]->n_argv)));
	json_object_set_new(j, "processes", processes);
	json_object_set_new(j, "commands", jobs);
	json_object_set_new(j, "clients", json_integer(info->clients));
	json_object_set_new(j, "supervisor", json_integer(info->record->supervisor));
	json_object_set_new(j, "init_pid", json_integer(info->init_pid));
}

json_t *json_of_session(const struct client_session *s, bool all)
{
	const Pb__Record *r = s->record;
	json_t *j = json_pack("{s:s, s:s, s:o, s:I}", "name", s->name, "state", s->state, "command",
		texts(r->config->argv, r->config->n_argv), "started", (json_int_t)r->started);

	if (s->info)
		json_object_set_new(j, "tasks", json_integer((json_int_t)s->info->information->n_processes));
	if (r->ended) {
		json_object_set_new(j, "ended", json_integer(r->ended));
		json_object_set_new(j, "exit_code", json_integer(stream_exit_code(r->status)));
	}
	if (r->image[0])
		json_object_set_new(j, "image", json_text(r->image));
	if (r->peer[0])
		json_object_set_new(j, "peer", json_text(r->peer));
	if (!all)
		json_object_set_new(j, "net", json_text(r->config->net));
	if (!all && r->config->network)
		json_object_set_new(j, "network", network_of(s));
	if (r->config->display)
		json_object_set_new(j, "display", display_of(r->config));
	if (!all)
		return j;
	json_object_set_new(j, "id", json_hex(r->config->session_id.data, r->config->session_id.len));
	json_object_set_new(j, "config", config_of(s));
	if (s->info)
		add_live(j, s->info->information);
	return j;
}

json_t *json_of_report(const Pb__Report *r)
{
	json_t *stages = json_array(), *j;

	for (size_t i = 0; i < r->n_stages; i++)
		json_array_append_new(stages, json_pack("{s:o, s:f}", "name", json_text(r->stages[i]->name),
						      "ms", (double)r->stages[i]->ns / 1e6));
	j = json_pack("{s:f, s:f, s:I, s:i, s:i, s:I, s:o}", "frozen_ms", (double)r->frozen_ns / 1e6,
		"total_ms", (double)r->total_ns / 1e6, "bytes", (json_int_t)r->bytes, "tasks",
		(int)r->tasks, "processes", (int)r->processes, "pages", (json_int_t)r->pages, "stages",
		stages);
	if (r->image[0])
		json_object_set_new(j, "image", json_text(r->image));
	if (r->rounds)
		json_object_update_new(j,
			json_pack("{s:i, s:I, s:o}", "rounds", (int)r->rounds, "ahead", (json_int_t)r->ahead,
				"tracker", json_text(r->tracker)));
	if (r->note[0])
		json_object_set_new(j, "note", json_text(r->note));
	return j;
}

void json_print_to(json_t *j, FILE *out)
{
	_cleanup_free_ char *text = json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(9));

	text_put_json_document(out, text);
	putc('\n', out);
	json_decref(j);
}

void json_print(json_t *j)
{
	json_print_to(j, stdout);
}

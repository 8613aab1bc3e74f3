// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A name points to where the session's published ports are, and that is the gateway's host: so its
 * gateway tells the server, each time that the session begins to have packets there - at its start,
 * at a resume, after a migrate to another gateway.  The key is a file of the gateway's host, read
 * when it is needed.
 *
 * When a session ends, or its supervisor does, the server is told that the name has this host's
 * addresses no more.  Only these: the session may have been moved, and its new host's stay.  A
 * gateway that has nothing else to do waits for that, for TRIES times AGAIN_NS at most.  One that
 * is suspended keeps its name, until it is removed (vnet_nsupdate_withdraw), and so does one that
 * goes to another gateway.
 *
 * A datagram may be lost: it is sent again every AGAIN_NS until there is an answer.  A server that
 * refuses is asked again after REFUSED_NS, and so is one that has not answered TRIES times: it may
 * be down.
 */
#include "vnet/gateway/dynamic.h"

#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "base/base.h"
#include "vnet/gateway/gateway.h"
#include "vnet/nsupdate.h"
#include "vnet/nsupdate_send.h"

#define AGAIN_NS   1000000000ull
#define REFUSED_NS 60000000000ull
#define TRIES	   5

struct told {
	struct gateway_watch watch;
	struct gateway_timer due;
	struct vnet_gateway *g;
	int fd; /* -1: nothing is to be told */
	uint16_t id;
	unsigned tries;
	enum vnet_nsupdate_change change;
	bool said; /* it is told, or has been */
	struct vnet_nsupdate what;
	struct vnet_endpoint own[2]; /* what was said last */
	size_t n;
	char session[sizeof(((struct gateway_session *)NULL)->name)];
};

struct gateway_dynamic {
	struct told of[GATEWAY_MAX_SESSIONS];
	struct told left[GATEWAY_MAX_SESSIONS]; /* of sessions that have ended */
};

static void close_socket(struct told *t)
{
	int fd = t->fd;

	t->fd = -1;
	if (fd < 0)
		return;
	gateway_loop_remove(t->g->loop, fd);
	close(fd);
}

void gateway_dynamic_own(struct in_addr *ret4, struct in6_addr *ret6)
{
	/* Zeros where there is none. */
	*ret4 = vnet_nsupdate_own_of(AF_INET).v4;
	*ret6 = vnet_nsupdate_own_of(AF_INET6).v6;
}

static void send_update(struct told *t);

static void try_again(struct told *t, uint64_t ns)
{
	close_socket(t);
	if (ns == REFUSED_NS)
		t->tries = 0;
	gateway_loop_timer(t->g->loop, &t->due, ns);
}

/* Who has ended is not waited for. */
static void give_up(struct told *t)
{
	if (t->change == VNET_NSUPDATE_HAS) {
		try_again(t, REFUSED_NS);
		return;
	}
	close_socket(t);
	gateway_loop_timer_clear(t->g->loop, &t->due);
	t->said = false;
	t->g->maybe_end(t->g);
}

static void on_due(struct gateway_timer *timer)
{
	struct told *t = gateway_container(timer, struct told, due);

	if (t->tries < TRIES) {
		send_update(t);
		return;
	}
	log_warn("%s: the name server of %s does not answer", t->session, t->what.name);
	give_up(t);
}

static void on_answer(struct gateway_watch *w, uint32_t events)
{
	struct told *t = gateway_container(w, struct told, watch);
	uint8_t message[VNET_NSUPDATE_ROOM];
	ssize_t n;
	int rcode;

	if (t->fd < 0)
		return;
	n = recv(t->fd, message, sizeof(message), MSG_DONTWAIT);
	rcode = n < 0 ? -EBADMSG : vnet_nsupdate_answer(message, (size_t)n, t->id);
	if (rcode < 0)
		return;
	if (rcode) {
		log_warn("%s: the name server of %s says %s", t->session, t->what.name,
			vnet_nsupdate_rcode(rcode));
		give_up(t);
		return;
	}
	log_info("%s: %s points here %s", t->session, t->what.name,
		t->change == VNET_NSUPDATE_HAS ? "now" : "no more");
	close_socket(t);
	gateway_loop_timer_clear(t->g->loop, &t->due);
	if (t->change == VNET_NSUPDATE_LEAVES)
		give_up(t);
}

static int make_and_send(struct told *t, struct err *e)
{
	struct vnet_nsupdate_key key;
	bool is_signed = t->what.key_file[0];
	uint8_t message[VNET_NSUPDATE_ROOM];
	struct vnet_endpoint now[2];
	size_t n;
	ssize_t len;

	n = vnet_nsupdate_own(&t->what.server, now, &t->fd);
	if (t->change == VNET_NSUPDATE_HAS) {
		memcpy(t->own, now, sizeof(now));
		t->n = n;
	}
	if (t->fd < 0 || !t->n)
		return err_set(e, ERR_FAILED, -ENETUNREACH, "there is no way to the name server");
	if (getrandom(&t->id, sizeof(t->id), 0) != sizeof(t->id))
		return err_set(e, ERR_FAILED, -EIO, "random numbers");
	if (is_signed && vnet_nsupdate_key_load(t->what.key_file, &key, e) < 0)
		return e->error;
	len = vnet_nsupdate_make(&t->what, t->change, is_signed ? &key : NULL, t->id,
		(uint64_t)time(NULL), t->own, t->n, message, sizeof(message));
	explicit_bzero(&key, sizeof(key));
	if (len < 0)
		return err_errno(e, (int)len, "%s", t->what.name);
	gateway_loop_add(t->g->loop, t->fd, EPOLLIN, &t->watch);
	/* One that is lost is sent again. */
	send(t->fd, message, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return 0;
}

static void send_update(struct told *t)
{
	struct err e = {0};

	close_socket(t);
	t->tries++;
	if (make_and_send(t, &e) < 0) {
		log_warn("%s: %s: %s", t->session, t->what.name, e.msg);
		give_up(t);
		return;
	}
	gateway_loop_timer(t->g->loop, &t->due, AGAIN_NS);
}

static void stop(struct told *t)
{
	close_socket(t);
	gateway_loop_timer_clear(t->g->loop, &t->due);
}

/* What was said of the name before is of no concern any more. */
static void forget_left(struct gateway_dynamic *d, const struct vnet_nsupdate *u)
{
	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		struct told *t = &d->left[i];

		if (!t->said || strcmp(t->what.name, u->name) != 0)
			continue;
		stop(t);
		t->said = false;
	}
}

void gateway_dynamic_tell(struct vnet_gateway *g, uint32_t session)
{
	const struct gateway_session *s = &g->arena->sessions[session];
	struct told *t = &g->dynamic->of[session];
	struct err e = {0};

	gateway_dynamic_forget(g, session);
	if (!s->dns_update[0])
		return;
	snprintf(t->session, sizeof(t->session), "%s", s->name);
	if (vnet_nsupdate_parse(s->dns_update, &t->what, &e) < 0) {
		log_warn("%s: %s", t->session, e.msg);
		return;
	}
	forget_left(g->dynamic, &t->what);
	t->said = true;
	t->tries = 0;
	send_update(t);
}

void gateway_dynamic_stop(struct vnet_gateway *g, uint32_t session)
{
	stop(&g->dynamic->of[session]);
}

void gateway_dynamic_forget(struct vnet_gateway *g, uint32_t session)
{
	gateway_dynamic_stop(g, session);
	g->dynamic->of[session].said = false;
}

void gateway_dynamic_leave(struct vnet_gateway *g, uint32_t session)
{
	struct told *from = &g->dynamic->of[session], *t = NULL;

	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS && !t; i++)
		if (!g->dynamic->left[i].said)
			t = &g->dynamic->left[i];
	gateway_dynamic_stop(g, session);
	if (!from->said || !from->n || !t)
		return;
	from->said = false;
	t->what = from->what;
	memcpy(t->session, from->session, sizeof(t->session));
	memcpy(t->own, from->own, sizeof(t->own));
	t->n = from->n;
	t->said = true;
	t->tries = 0;
	t->change = VNET_NSUPDATE_LEAVES;
	send_update(t);
}

bool gateway_dynamic_any(const struct vnet_gateway *g)
{
	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		if (g->dynamic->left[i].said)
			return true;
	return false;
}

static void init(struct vnet_gateway *g, struct told *t)
{
	t->g = g;
	t->fd = -1;
	t->watch.ready = on_answer;
	t->due.fire = on_due;
}

int gateway_dynamic_start(struct vnet_gateway *g, struct err *e)
{
	g->dynamic = calloc(1, sizeof(*g->dynamic));
	if (!g->dynamic)
		return err_errno(e, -ENOMEM, "gateway");
	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		init(g, &g->dynamic->of[i]);
		init(g, &g->dynamic->left[i]);
	}
	return 0;
}

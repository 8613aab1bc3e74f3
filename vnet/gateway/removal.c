// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in removal.h. */
#include "vnet/gateway/removal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "vnet/gateway/gateway.h"
#include "vnet/netlink.h"

#define MOST 1024 /* that wait; what is above is done at once */

/* One of them. */
struct item {
	int fd;	   /* or -1 */
	int index; /* or 0 */
};

struct gateway_removal {
	int inner_ns;
	struct vnet_netlink nl; /* the thread's */
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct item items[MOST]; /* under the lock */
	size_t n;
};

static void open_inner(struct gateway_removal *w)
{
	struct err e = {0};

	w->nl = VNET_NETLINK_INIT;
	if (setns(w->inner_ns, CLONE_NEWNET) < 0)
		err_errno(&e, -errno, "inner network namespace");
	else
		vnet_netlink_open(&w->nl, &e);
	if (err_is(&e))
		log_warn("interfaces stay as long as networks that had them: %s", e.msg);
}

static void remove_one(struct gateway_removal *w, const struct item *i)
{
	struct err ignored = {0};

	close_fd(i->fd);
	/* it may have gone with its session */
	if (i->index && w->nl.fd >= 0)
		vnet_netlink_remove(&w->nl, i->index, &ignored);
}

static void *remove_all(void *arg)
{
	struct gateway_removal *w = arg;

	open_inner(w);
	for (;;) {
		struct item first;

		pthread_mutex_lock(&w->lock);
		while (!w->n)
			pthread_cond_wait(&w->more, &w->lock);
		first = w->items[0];
		memmove(w->items, w->items + 1, --w->n * sizeof(first));
		pthread_mutex_unlock(&w->lock);
		remove_one(w, &first);
	}
	return NULL;
}

/* NULL where there can be no thread. */
static struct gateway_removal *start(struct vnet_gateway *g)
{
	struct gateway_removal *w = calloc(1, sizeof(*w));
	sigset_t all, before;
	pthread_t t;
	int r;

	if (!w)
		return NULL;
	w->inner_ns = g->arena->inner_ns;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&t, NULL, remove_all, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r) {
		free(w);
		return NULL;
	}
	pthread_detach(t);
	return w;
}

/* False if it was not taken. */
static bool put(struct vnet_gateway *g, struct item i)
{
	struct gateway_removal *w = g->removal ? g->removal : start(g);
	bool taken;

	g->removal = w;
	if (!w)
		return false;
	pthread_mutex_lock(&w->lock);
	taken = w->n < MOST;
	if (taken)
		w->items[w->n++] = i;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	return taken;
}

void gateway_removal_close(struct vnet_gateway *g, int fd)
{
	if (fd >= 0 && !put(g, (struct item){.fd = fd}))
		close(fd);
}

void gateway_removal_link(struct vnet_gateway *g, int index)
{
	/* else it goes with the session's network */
	put(g, (struct item){.fd = -1, .index = index});
}

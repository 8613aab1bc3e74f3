/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loop - the gateway's event loop: descriptors, timers, and work that is continued later.
 *
 * epoll itself and not libevent, because it is on the path of every packet: flows are watched edge
 * triggered for both directions, registered once and never changed again, and an event costs one
 * indirect call.
 */
#ifndef VNET_GATEWAY_LOOP_H
#define VNET_GATEWAY_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct err;
struct gateway_loop;

/* A descriptor that is watched; part of its owner's struct, found again with container_of. */
struct gateway_watch {
	/* @events as of epoll(7).  An event may come that is not due any more: expect -EAGAIN. */
	void (*ready)(struct gateway_watch *w, uint32_t events);
};

/* Something due at a time.  Zeroed but for .fire at first; may be set again from its own fire. */
struct gateway_timer {
	void (*fire)(struct gateway_timer *t);
	uint64_t due; /* io_now_ns(), 0: not set */
	struct gateway_timer *next;
};

/* Work that was interrupted for the sake of others, run after the next look at all descriptors. */
struct gateway_later {
	void (*run)(struct gateway_later *l);
	struct gateway_later *next;
	bool queued;
};

#define gateway_container(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

int gateway_loop_new(struct gateway_loop **ret, struct err *e);
/*
 * 0 or a negative errno, of epoll_ctl(2).  Closing a descriptor's last duplicate ends watching it,
 * but the descriptors of the gateway are shared with its keeper: always remove before closing.
 */
int gateway_loop_add(struct gateway_loop *l, int fd, uint32_t events, struct gateway_watch *w);
int gateway_loop_change(struct gateway_loop *l, int fd, uint32_t events, struct gateway_watch *w);
void gateway_loop_remove(struct gateway_loop *l, int fd);

void gateway_loop_timer(struct gateway_loop *l, struct gateway_timer *t, uint64_t ns_from_now);
void gateway_loop_timer_clear(struct gateway_loop *l, struct gateway_timer *t);
void gateway_loop_later(struct gateway_loop *l, struct gateway_later *later);

/* A listener that is let alone for a moment.  Zeroed at first. */
struct gateway_rest {
	struct gateway_timer timer;
	struct gateway_loop *loop;
	struct gateway_watch *watch;
	int fd;
};
/*
 * After a failed accept4 of @fd, which @w watches for EPOLLIN: when descriptors are short (@error,
 * an errno) the client stays where it is, and epoll would say so again at once, for ever.
 */
void gateway_loop_rest(
	struct gateway_loop *l, struct gateway_rest *r, int fd, struct gateway_watch *w, int error);
/* Before @fd is removed. */
void gateway_loop_rest_clear(struct gateway_loop *l, struct gateway_rest *r);
/* Of one that is queued, before its memory goes. */
void gateway_loop_forget(struct gateway_loop *l, struct gateway_later *later);

/* The time when the loop last looked (io_now_ns), for what need not be exact. */
uint64_t gateway_loop_now(const struct gateway_loop *l);
/* The loop's own descriptor, which belongs to this worker alone. */
int gateway_loop_fd(const struct gateway_loop *l);
/* Until gateway_loop_stop. */
void gateway_loop_run(struct gateway_loop *l);
void gateway_loop_stop(struct gateway_loop *l);

#endif

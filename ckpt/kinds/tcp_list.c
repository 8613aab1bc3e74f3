// SPDX-License-Identifier: GPL-2.0-or-later
#include "ckpt/kinds/tcp_list.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/kinds/sock.h"

#define MAX_SOCKSTAT 4096

/* The first lines of these are like "TCP: inuse 3 orphan 0 tw 1 alloc 5 mem 0", "TCP6: inuse 1". */
static bool tells_of_some(int host_proc, pid_t pid, const char *file, const char *key)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "%d/net/%s", pid, file);
	if (io_read_file(host_proc, path, MAX_SOCKSTAT, &text) < 0 || !buf_cstr(&text))
		return false;
	at = strstr(buf_cstr(&text), key);
	return at && strtoul(at + strlen(key), NULL, 10) > 0;
}

bool tcp_list_pays(int host_proc, const struct ckpt_world *w)
{
	return tells_of_some(host_proc, w->init_pid, "sockstat", "TCP: inuse ") ||
	       tells_of_some(host_proc, w->init_pid, "sockstat6", "TCP6: inuse ");
}

struct tcp_list {
	pthread_t thread;
	const struct ckpt_world *world;
	int diag;
	struct ckpt_inet_diag_list *made;
};

static void *make(void *arg)
{
	struct tcp_list *l = arg;
	struct err e = {0};

	if (ckpt_sock_diag_tcp(l->world, l->diag, &l->made, &e) < 0)
		l->made = NULL;
	return NULL;
}

/* A signal is for the tracer. */
struct tcp_list *tcp_list_begin(const struct ckpt_world *w, int diag)
{
	_cleanup_free_ struct tcp_list *l = calloc(1, sizeof(*l));
	sigset_t all, before;
	int r;

	if (!l || diag < 0)
		return NULL;
	*l = (struct tcp_list){.world = w, .diag = diag};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&l->thread, NULL, make, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r ? NULL : take_ptr(l);
}

struct ckpt_inet_diag_list *tcp_list_end(struct tcp_list *l)
{
	struct ckpt_inet_diag_list *made;

	if (!l)
		return NULL;
	pthread_join(l->thread, NULL);
	made = l->made;
	free(l);
	return made;
}

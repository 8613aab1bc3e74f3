/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * network - a session with addresses of its own (--net vnat) at the user's gateway.
 *
 * The session's world has an interface, net0, whose other end is a descriptor of ours; here it is
 * given to the gateway process, and taken back.  docs/network.md has the whole way.
 */
#ifndef SUPERVISOR_NETWORK_NETWORK_H
#define SUPERVISOR_NETWORK_NETWORK_H

#include <stdbool.h>

struct err;
struct session;
struct Pb__World;

/*
 * Whether what the image's config says of its network may be had here without more words: ERR_IMAGE
 * where it was made elsewhere, and a session would get at something that is this host's.
 */
int network_check_image(const struct session *s, struct err *e);
/*
 * The same of --net host, once it is known who holds the session's names: where they are rewritten
 * every session has the host's network, and it is only said.
 */
int network_check_host(const struct session *s, struct err *e);

/*
 * The world is made, and nothing runs in it.  Attaches it, and calls @then once that is done or has
 * failed.  Resuming, its connections are claimed, and nothing passes before traffic_pass.  Returns
 * 1 when @then will be called, 0 for a session that has no such network, a negative errno.
 */
int network_begin(struct session *s, void (*then)(struct session *s, struct err *e), struct err *e);

/*
 * What the image of a suspend holds so that its connections can be had back.  Points into @s; a
 * snapshot gets nothing, for the session that runs on has them.
 */
void network_describe(const struct session *s, struct Pb__World *w);

/* The session runs: it hears by which addresses it is known outside, if those are others now. */
void network_tell(struct session *s);

/* The session has another name, which its neighbours ask for and the user's gateway is asked by. */
void network_renamed(struct session *s);

/* What is said of a resumed session whose connections are another's, or no more. */
#define NETWORK_LOST \
	"its connections to the outside were reset: the gateway does not have them for it any more"
/* That, and which ports an image that was made elsewhere publishes; or "". */
const char *network_note(const struct session *s);

/* The session is its image now: its connections wait for it at the gateway. */
void network_suspend(struct session *s);

/* Everything inside has ended: an interface of the host's goes back there.  None: fine. */
void network_give_back(struct session *s);
/*
 * Likewise, and so have its connections; nobody is called any more.  Nothing there: fine.
 */
void network_end(struct session *s);
void network_free(struct session *s);

#endif

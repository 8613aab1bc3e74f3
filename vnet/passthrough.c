// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      take         look at its addresses and routes -> move -> up, addresses, routes
 *      give back    its old name -> move -> as it was
 *
 * An interface that changes its network namespace loses all but its own settings, so what the
 * kernel tells of its addresses and routes is kept, message by message, and said again where it is
 * then (as `ip address save` and `restore` do).  What the kernel makes by itself is left out:
 * routes that follow from addresses or advertisements, link-local addresses of IPv6.
 *
 * Both networks are spoken to through a netlink socket each, by the supervisor, which owns the user
 * namespace of the session, and has the right to the other one or fails (netlink.h).
 *
 * The descriptor of the network namespace that it came from keeps that in being.  If the supervisor
 * is killed the session's network goes without giving anything back: the kernel returns a device of
 * hardware to the initial network namespace then, and removes a virtual one.
 */
#include "vnet/passthrough.h"

#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/base.h"
#include "vnet/netlink.h"

#define MAX_MESSAGES 256 /* of one interface; what is more is left out */
#define MAX_MESSAGE  448 /* bytes */

/* Of a kernel that says NLM_F_REPLACE: the longest are routes with metrics, some 200 bytes. */
struct said {
	struct nlmsghdr h;
	uint8_t body[MAX_MESSAGE];
};

struct vnet_passthrough {
	struct vnet_passthrough_name name;
	int origin;			     /* network namespace */
	struct vnet_netlink outside, inside; /* to there; to the session's */
	int index;			     /* where it is now */
	bool up;
	struct said *said;
	size_t n;
	int looked; /* index that messages are gathered of */
};

const char *vnet_passthrough_of(const char *net)
{
	static const char prefix[] = "passthrough:";

	return strncmp(net, prefix, strlen(prefix)) == 0 ? net + strlen(prefix) : NULL;
}

static int no_name(const char *text, struct err *e)
{
	err_set(e, ERR_USAGE, -EINVAL, "passthrough: '%s' is no interface", text);
	return err_hint(e, "passthrough:IF or passthrough:IF@NETNS, such as enp3s0f0v1@alice");
}

int vnet_passthrough_parse(const char *text, struct vnet_passthrough_name *ret, struct err *e)
{
	const char *at = strchr(text, '@');
	size_t len = at ? (size_t)(at - text) : strlen(text);

	*ret = (struct vnet_passthrough_name){0};
	if (len == 0 || len >= sizeof(ret->interface))
		return no_name(text, e);
	memcpy(ret->interface, text, len);
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return no_name(text, e);
	if (strpbrk(ret->interface, "/:") || ret->interface[0] == '-' ||
		strcmp(ret->interface, ".") == 0 || strcmp(ret->interface, "..") == 0 ||
		strcmp(ret->interface, "lo") == 0)
		return no_name(text, e);
	if (!at)
		return 0;
	at++;
	if (!*at || strlen(at) >= sizeof(ret->place) ||
		(at[0] != '/' && (strchr(at, '/') || at[0] == '.')))
		return no_name(text, e);
	memcpy(ret->place, at, strlen(at) + 1);
	return 0;
}

/* ---- where it is ---------------------------------------------------------------------------- */

static int open_place(const char *place, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	bool pid = place[0] && place[strspn(place, "0123456789")] == '\0';
	int fd, r;

	if (!place[0])
		r = asprintf(&path, "/proc/self/ns/net");
	else if (place[0] == '/')
		r = asprintf(&path, "%s", place);
	else
		r = asprintf(&path, pid ? "/proc/%s/ns/net" : "/run/netns/%s", place);
	if (r < 0)
		return err_errno(e, -ENOMEM, "passthrough");
	/* A pipe somebody has put there keeps nobody waiting. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		return fd;
	r = err_errno(e, -errno, "network namespace '%s'", place);
	if (r == -ENOENT)
		return err_reclass(e, ERR_NOT_FOUND);
	return err_reclass(e, ERR_HOST);
}

bool vnet_passthrough_same(const char *text, const char *other)
{
	struct vnet_passthrough_name a, b;
	struct err ignored = {0};
	struct stat st, of_other;
	_cleanup_close_ int one = -1, two = -1;

	if (vnet_passthrough_parse(text, &a, &ignored) < 0 ||
		vnet_passthrough_parse(other, &b, &ignored) < 0 ||
		strcmp(a.interface, b.interface) != 0)
		return false;
	one = open_place(a.place, &ignored);
	two = open_place(b.place, &ignored);
	return one >= 0 && two >= 0 && fstat(one, &st) == 0 && fstat(two, &of_other) == 0 &&
	       st.st_dev == of_other.st_dev && st.st_ino == of_other.st_ino;
}

static int not_granted(const struct vnet_passthrough *p, struct err *e)
{
	const char *place = p->name.place;

	*e = (struct err){0};
	err_set(e, ERR_HOST, -EPERM, "interface %s%s%s is not granted to this user",
		p->name.interface, place[0] ? " of " : "", place);
	return err_hint(e,
		"an administrator can move it into a network namespace of the user's, or "
		"give podrun CAP_NET_ADMIN: docs/network.md, Passthrough");
}

static int open_outside(struct vnet_passthrough *p, struct err *e)
{
	int r;

	p->origin = open_place(p->name.place, e);
	if (p->origin < 0)
		return p->origin;
	r = p->name.place[0] ? vnet_netlink_open_in(&p->outside, p->origin, e)
			     : vnet_netlink_open(&p->outside, e);
	if (r == -EPERM)
		return not_granted(p, e);
	if (r < 0)
		return err_wrap(e, "network namespace '%s'", p->name.place);
	return 0;
}

/* ---- what it has ----------------------------------------------------------------------------- */

static const struct rtattr *attribute(const struct nlmsghdr *h, size_t head, uint16_t type)
{
	size_t left = h->nlmsg_len > NLMSG_SPACE(head) ? h->nlmsg_len - NLMSG_SPACE(head) : 0;

	for (const struct rtattr *a = (const void *)((const uint8_t *)h + NLMSG_SPACE(head));
		RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == type && RTA_PAYLOAD(a) >= sizeof(uint32_t))
			return a;
	return NULL;
}

static void put_u32(const struct rtattr *a, uint32_t v)
{
	if (a)
		memcpy(RTA_DATA(a), &v, sizeof(v));
}

static uint32_t get_u32(const struct rtattr *a)
{
	uint32_t v = 0;

	if (a)
		memcpy(&v, RTA_DATA(a), sizeof(v));
	return v;
}

static struct said *keep(struct vnet_passthrough *p, const struct nlmsghdr *h)
{
	if (p->n == MAX_MESSAGES || h->nlmsg_len > sizeof(*p->said))
		return NULL;
	memcpy(&p->said[p->n], h, h->nlmsg_len);
	return &p->said[p->n++];
}

static int each_address(void *ctx, const struct nlmsghdr *h)
{
	struct vnet_passthrough *p = ctx;
	const struct ifaddrmsg *a = NLMSG_DATA(h);
	struct ifaddrmsg *own;
	struct said *said;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*a)) || h->nlmsg_type != RTM_NEWADDR ||
		(int)a->ifa_index != p->looked ||
		(a->ifa_family == AF_INET6 && a->ifa_scope == RT_SCOPE_LINK))
		return 0;
	said = keep(p, h);
	if (!said)
		return 0;
	/* Whose it was may use it at once. */
	own = NLMSG_DATA(&said->h);
	own->ifa_flags = 0;
	put_u32(attribute(&said->h, sizeof(*a), IFA_FLAGS),
		(get_u32(attribute(h, sizeof(*a), IFA_FLAGS)) &
			(IFA_F_PERMANENT | IFA_F_NOPREFIXROUTE | IFA_F_SECONDARY)) |
			IFA_F_NODAD);
	return 0;
}

static int each_route(void *ctx, const struct nlmsghdr *h)
{
	struct vnet_passthrough *p = ctx;
	const struct rtmsg *rt = NLMSG_DATA(h);
	struct said *said;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*rt)) || h->nlmsg_type != RTM_NEWROUTE ||
		rt->rtm_table != RT_TABLE_MAIN || rt->rtm_type != RTN_UNICAST ||
		rt->rtm_protocol == RTPROT_KERNEL || rt->rtm_protocol == RTPROT_RA ||
		rt->rtm_protocol == RTPROT_REDIRECT || (rt->rtm_flags & RTM_F_CLONED) ||
		(int)get_u32(attribute(h, sizeof(*rt), RTA_OIF)) != p->looked)
		return 0;
	said = keep(p, h);
	if (said) /* the others say how it is, not how it shall be */
		((struct rtmsg *)NLMSG_DATA(&said->h))->rtm_flags &= RTNH_F_ONLINK;
	return 0;
}

static int look(struct vnet_passthrough *p, struct err *e)
{
	static const int families[] = {AF_INET, AF_INET6};
	int r = 0;

	p->looked = p->index;
	for (size_t i = 0; i < ARRAY_SIZE(families) && r == 0; i++)
		r = vnet_netlink_dump(&p->outside, RTM_GETADDR, families[i], each_address, p, e);
	for (size_t i = 0; i < ARRAY_SIZE(families) && r == 0; i++)
		r = vnet_netlink_dump(&p->outside, RTM_GETROUTE, families[i], each_route, p, e);
	return r;
}

/* One route may need another one: those that can't be yet are tried once more. */
static void say_again(struct vnet_passthrough *p, struct vnet_netlink *nl)
{
	_cleanup_free_ bool *done = calloc(p->n + 1, sizeof(*done));

	for (int attempt = 0; done && attempt < 2; attempt++)
		for (size_t i = 0; i < p->n; i++) {
			struct nlmsghdr *h = &p->said[i].h;
			struct err e = {0};

			if (done[i])
				continue;
			if (h->nlmsg_type == RTM_NEWADDR)
				((struct ifaddrmsg *)NLMSG_DATA(h))->ifa_index = (uint32_t)p->index;
			else
				put_u32(attribute(h, sizeof(struct rtmsg), RTA_OIF),
					(uint32_t)p->index);
			done[i] = vnet_netlink_repeat(nl, h, &e) >= 0;
			if (!done[i] && attempt)
				log_warn("interface %s: %s", p->name.interface, e.msg);
		}
}

/* ---- there and back -------------------------------------------------------------------------- */

/* Moved: it may have another number now. */
static int arrive(struct vnet_passthrough *p, struct vnet_netlink *nl, bool up, struct err *e)
{
	const struct vnet_link link = {.up = true};
	int r;

	p->index = vnet_netlink_index(nl, p->name.interface, e);
	if (p->index < 0)
		return p->index;
	r = up ? vnet_netlink_link_set(nl, p->index, &link, e) : 0;
	if (r >= 0 && up)
		say_again(p, nl);
	return MIN(r, 0);
}

static int move_in(struct vnet_passthrough *p, int netns, struct err *e)
{
	int r;

	p->index = vnet_netlink_index(&p->outside, p->name.interface, e);
	if (p->index < 0) {
		bool place = p->name.place[0];

		r = err_set(e, ERR_NOT_FOUND, p->index, "no interface %s%s%s", p->name.interface,
			place ? " in network namespace " : "", place ? p->name.place : "");
		return err_hint(e, "see ip link; a session that has it gives it back at its end");
	}
	r = vnet_netlink_is_up(&p->outside, p->name.interface, e);
	p->up = r > 0;
	if (r < 0 || look(p, e) < 0)
		return e->error;
	r = vnet_netlink_move(&p->outside, p->index, netns, e);
	if (r == -EPERM)
		return not_granted(p, e);
	return r < 0 ? err_wrap(e, "interface %s can't be moved", p->name.interface) : 0;
}

static void release(struct vnet_passthrough *p)
{
	vnet_netlink_fini(&p->outside);
	vnet_netlink_fini(&p->inside);
	close_fd(p->origin);
	free(p->said);
	free(p);
}

int vnet_passthrough_take(struct vnet_passthrough **ret, const char *text, int netns, struct err *e)
{
	struct vnet_passthrough *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_errno(e, -ENOMEM, "passthrough");
	p->origin = -1;
	p->outside = p->inside = VNET_NETLINK_INIT;
	p->said = calloc(MAX_MESSAGES, sizeof(*p->said));
	r = p->said ? vnet_passthrough_parse(text, &p->name, e)
		    : err_errno(e, -ENOMEM, "passthrough");
	if (r == 0)
		r = open_outside(p, e);
	if (r == 0)
		r = vnet_netlink_open_in(&p->inside, netns, e);
	if (r == 0)
		r = move_in(p, netns, e);
	if (r < 0) {
		release(p);
		return r;
	}
	r = arrive(p, &p->inside, true, e);
	if (r < 0) {
		vnet_passthrough_give_back(p, &(struct err){0});
		return err_wrap(e, "interface in the session");
	}
	*ret = p;
	return 0;
}

int vnet_passthrough_give_back(struct vnet_passthrough *p, struct err *e)
{
	struct err ignored = {0};
	int r;

	if (!p)
		return 0;
	/* A root inside may have called it anything. */
	vnet_netlink_name(&p->inside, p->index, p->name.interface, &ignored);
	r = vnet_netlink_move(&p->inside, p->index, p->origin, e);
	if (r == 0)
		r = arrive(p, &p->outside, p->up, e);
	if (r < 0)
		err_wrap(e, "interface %s is not back", p->name.interface);
	release(p);
	return MIN(r, 0);
}

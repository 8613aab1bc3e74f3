// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sockets with a path: bound and connected to by the host's, told by the session's.
 *
 * The host's path has to fit into an address, too (108 bytes, unix(7)); one that does not is told
 * by a shorter one (view/short.c).  Whose address a receiver is told is left as the kernel has it:
 * to answer it is understood.
 */
#include "supervisor/rewrite/view/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "base/base.h"
#include "supervisor/rewrite/rewrite.h"

#define PATH_AT offsetof(struct sockaddr_un, sun_path)
#define X_DISPLAY "/tmp/.X11-unix/X"

/* The path of the address at @addr; false if it has none. */
static bool peek_address(
	const struct task *task, uint64_t addr, uint64_t len, struct sockaddr_un *ret)
{
	/* One more, for an address that uses all of its room ends with no zero. */
	if (!addr || len <= PATH_AT || len > sizeof(*ret) || view_peek(task, addr, ret, len) < 0)
		return false;
	return ret->sun_family == AF_UNIX && ret->sun_path[0];
}

/*
 * Will the kernel come to the same place?  What a socket is bound to is told to others: a relative
 * name should stay one.
 */
static bool is_native(
	struct rewrite *rw, const struct task *task, const char *path, const struct view_place *at)
{
	char base[PATH_MAX];

	return path[0] != '/' && !at->walked && at->in &&
	       view_base(rw->view, task, task->host, AT_FDCWD, base) == 0 &&
	       view_mount_of(rw->view, base) == at->in && at->in->sort == VIEW_MOUNT;
}

/*
 * As view_find_place.  Who receives a datagram, or accepts a connection, is told the path that the
 * sender was bound to, which is the host's (docs/names.md): what is not there by the session's
 * words may be meant by these.
 */
static int find_socket(struct rewrite *rw, const struct task *task, const char *path, unsigned how,
	struct view_place *ret)
{
	int r = view_find_place(rw, task, AT_FDCWD, path, how, ret);
	char heard[PATH_MAX];

	if (r != -ENOENT || how & VIEW_CREATE || path[0] != '/' ||
		view_session_path(rw->view, path, heard) < 0)
		return r;
	view_place_fini(ret);
	*ret = (struct view_place)VIEW_PLACE_INIT;
	return view_find_place(rw, task, AT_FDCWD, heard, how, ret);
}

/* The address at @addr as the kernel is to have it: its length, 0 if it is right
 * already, or an error. */
static ssize_t translated(struct rewrite *rw, struct task *task, uint64_t addr, uint64_t len,
	unsigned how, struct sockaddr_un *ret)
{
	_cleanup_place_ struct view_place place = VIEW_PLACE_INIT;
	char path[sizeof(*ret) + 1] = "", other[PATH_MAX], host[PATH_MAX];
	const char *name = host;
	size_t n;
	int r;

	*ret = (struct sockaddr_un){0};
	if (!peek_address(task, addr, len, ret))
		return 0;
	memcpy(path, ret->sun_path, len - PATH_AT);
	r = find_socket(rw, task, path, how, &place);
	if (r == 1 || (r == 0 && is_native(rw, task, path, &place)))
		return 0;
	if (r == 0)
		r = view_place_host(rw->view, &place, host);
	if (r < 0)
		return r;
	if (strlen(host) >= sizeof(ret->sun_path)) {
		r = view_short(rw->view, host, other, sizeof(ret->sun_path));
		if (r < 0)
			return r;
		name = other;
	}
	n = strlen(name) + 1;
	memcpy(ret->sun_path, name, n);
	return (ssize_t)(PATH_AT + n);
}

/* Argument @at is an address, the next one how long it is. */
static int enter_address(
	struct rewrite *rw, struct task *task, struct user_regs_struct *regs, int at, unsigned how)
{
	struct sockaddr_un address;
	ssize_t n = translated(
		rw, task, *view_arg(regs, at), (unsigned)*view_arg(regs, at + 1), how, &address);
	uint64_t addr;

	if (n <= 0)
		return n < 0 ? (int)n : 1;
	addr = view_put_below(rw, task, regs, &address, (size_t)n);
	if (!addr)
		return -ENOMEM;
	*view_arg(regs, at) = addr;
	*view_arg(regs, at + 1) = (unsigned long long)n;
	return 0;
}

int view_enter_bind(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return enter_address(rw, task, regs, 1, VIEW_PARENT | VIEW_CREATE);
}

/*
 * Is @addr the abstract name of a display that the session has by its path?  X clients try that
 * name first, which is the host's here, and perhaps somebody else's: a session that comes from a
 * network of its own has display :0, as the user's desktop has.  Only where it is refused they try
 * the path.
 */
static bool is_another_display(
	struct rewrite *rw, const struct task *task, uint64_t addr, uint64_t len)
{
	_cleanup_place_ struct view_place place = VIEW_PLACE_INIT;
	char path[sizeof(struct sockaddr_un)] = "";
	struct sockaddr_un address = {0};

	if (!addr || len <= PATH_AT + 1 || len > sizeof(address) ||
		view_peek(task, addr, &address, len) < 0 || address.sun_family != AF_UNIX ||
		address.sun_path[0])
		return false;
	memcpy(path, address.sun_path + 1, len - PATH_AT - 1);
	return strncmp(path, X_DISPLAY, strlen(X_DISPLAY)) == 0 &&
	       view_find_place(rw, task, AT_FDCWD, path, 0, &place) == 0;
}

int view_enter_connect(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (is_another_display(rw, task, *view_arg(regs, 1), (unsigned)*view_arg(regs, 2)))
		return -ECONNREFUSED;
	return enter_address(rw, task, regs, 1, 0);
}

int view_enter_sendto(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return enter_address(rw, task, regs, 4, 0);
}

/* The task's header, and behind it an address: as the kernel is to have them. */
struct header {
	char bytes[sizeof(struct msghdr)];
	size_t len;
};

static int peek_header(const struct task *task, uint64_t addr, struct header *ret)
{
	ret->len = task->compat.is ? sizeof(struct compat_msghdr) : sizeof(struct msghdr);
	return view_peek(task, addr, ret->bytes, ret->len);
}

static void set_name(const struct task *task, struct header *h, uint64_t name, size_t len)
{
	struct compat_msghdr *m32 = (struct compat_msghdr *)h->bytes;
	struct msghdr *m = (struct msghdr *)h->bytes;

	if (task->compat.is) {
		m32->name = (uint32_t)name;
		m32->namelen = (uint32_t)len;
	} else {
		m->msg_name = (void *)(uintptr_t)name;
		m->msg_namelen = (socklen_t)len;
	}
}

/* sendmsg(2): the kernel gets a header of ours. */
int view_enter_sendmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	char there[sizeof(struct header) + sizeof(struct sockaddr_un)];
	int r = calls_enter_sendmsg(rw, task, regs);
	struct sockaddr_un address;
	struct message m;
	struct header h;
	size_t len;
	ssize_t n;

	if (r < 0 || !rw->view || !calls_peek_message(task, regs->rsi, &m) ||
		peek_header(task, regs->rsi, &h) < 0)
		return r;
	n = translated(rw, task, m.name, m.name_len, 0, &address);
	if (n == 0)
		return r;
	if (n > 0) {
		len = h.len + sizeof(address);
		set_name(task, &h, view_below(regs, len) + h.len, (size_t)n);
		memcpy(there, h.bytes, h.len);
		memcpy(there + h.len, &address, sizeof(address));
		regs->rsi = view_put_below(rw, task, regs, there, len);
		if (regs->rsi)
			return 0;
		n = -ENOMEM;
	}
	calls_leave_sendmsg(rw, task, regs);
	return (int)n;
}

void view_leave_sendmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (rw->view)
		view_take_back(rw, task, regs);
	calls_leave_sendmsg(rw, task, regs);
}

/* The kernel writes into these headers, so that they have to be the task's; who sends several
 * messages at once to sockets with a path in the view is not known to exist. */
int view_enter_sendmmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	struct sockaddr_un address;
	struct message m;

	for (uint64_t i = 0; rw->view && i < MIN((unsigned)regs->rdx, UIO_MAXIOV); i++) {
		ssize_t n;

		if (!calls_peek_message(task, calls_message_at(task, regs->rsi, i), &m))
			break;
		n = m.name ? translated(rw, task, m.name, m.name_len, 0, &address) : 0;
		if (n != 0)
			return n < 0 ? (int)n : -EOPNOTSUPP;
	}
	return calls_enter_sendmmsg(rw, task, regs);
}

/* getsockname(2), getpeername(2): the room for the address is where its length will be. */
int view_enter_sockname(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	uint32_t room;

	task->call.extra = view_peek(task, regs->rdx, &room, sizeof(room)) < 0 ? 0 : room;
	return 0;
}

void view_leave_sockname(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	uint64_t addr = task->call.args[1], len_at = task->call.args[2];
	struct sockaddr_un address = {0};
	char host[sizeof(address) + 1] = "", path[PATH_MAX];
	uint64_t room = task->call.extra;
	uint32_t len;
	size_t n;

	if (regs->rax != 0 || view_peek(task, len_at, &len, sizeof(len)) < 0 || len > room ||
		!peek_address(task, addr, len, &address) || address.sun_path[0] != '/')
		return;
	memcpy(host, address.sun_path, len - PATH_AT);
	if (view_say(rw->view, host, path) < 0 || strcmp(host, path) == 0)
		return;
	n = strlen(path) + 1;
	if (PATH_AT + n > sizeof(address))
		return;
	len = (uint32_t)(PATH_AT + n);
	view_poke(task, addr + PATH_AT, path, MIN(n, room - PATH_AT));
	view_poke(task, len_at, &len, sizeof(len));
}

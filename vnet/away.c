// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      supervisor == socket == carry ===== ssh ===== join == socket == gateway
 *      session's TUN ============'                     '== socket, in place of a TUN
 *
 * Supervisor and gateway speak with each other as if they were on one host (client.h).  What lies
 * between them passes requests and answers on as they are, in order with the packets, in frames on
 * one byte stream. It looks at requests only to know when packets may be read: between HOLD and GO,
 * and before a session that attaches frozen is told to go, none are, for a kernel whose sockets are
 * being looked at must not be heard.  Since frames stay in order, all that the gateway has sent
 * before it said "held" has been written to the TUN before the supervisor hears of it.
 *
 * Descriptors stay where they are.  The TUN is read and written on its host, and the gateway gets a
 * socket that gives and takes a packet a call as a TUN does; a file goes as its contents.
 *
 * The supervisor's end is not that of its session's packets (vnet/gateway/session.c): whoever
 * carries them says so in its place, and goes on until the gateway wants no more.
 *
 * Each process has a thread for each direction, so that a line which is full one way never stops
 * the other. Only the stream is waited for: packets for which a socket has no room are dropped, as
 * a network does.
 *
 * Where the attach says so, packets may go by a tunnel as well (vnet/direct.h).  Whoever carries
 * puts his end of it into the attach; the other side answers with its own, in a frame that one who
 * has not asked never sees.  Requests and answers always go by the stream, and packets with them
 * where their order is a promise: those that the gateway sent before an answer, and the last ones
 * of a session.  What comes by the tunnel between HOLD and GO waits.  The tunnel is of the outgoing
 * thread alone.
 *
 *      supervisor == socket == borrow ===== ssh ===== lend == socket == gateway
 *      where the session goes                         where it comes from
 *
 * A session that is moved away from its gateway goes on with it by the same means, but the line is
 * made from the gateway's side, for that is who has a way to the other.  Borrow listens at
 * RUNTIME/.gateway/lent-ID, and says so with an empty frame; the first who connects has it.  Until
 * the session is given away the line exists as long as the process that moves it, so that whatever
 * goes wrong leaves the connections here.
 */
#include "vnet/away.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/gateway.pb-c.h"
#include "vnet/away_lent.h"
#include "vnet/direct.h"
#include "vnet/meeting.h"
#include "vnet/message.h"
#include "vnet/nsupdate.h"
#include "vnet/nsupdate_send.h"
#include "vnet/ondemand.h"
#include "vnet/packet.h"
#include "vnet/tun.h"

#define TURN	  32	      /* packets until others have their turn */
#define FILE_MAX  (64u << 20) /* bytes */
#define ROOM_MS	  5	      /* for room in the gateway's socket, for what comes by a tunnel */
#define FINISH_MS 70000	      /* the gateway waits for a minute */
#define ANSWER_MS 30000
#define DONE	  "done"

enum frame_kind {
	FRAME_PACKET = 1,
	FRAME_MESSAGE,
	FRAME_MESSAGE_AND_FILE,
	FRAME_LISTENS,
	FRAME_TUNNEL
};

struct frame {
	uint32_t kind, len, file; /* of this host's byte order: both ends check the kind */
};

/* The other end of a tunnel, as the stream has told it. */
struct meeting {
	struct vnet_direct_end end;
	unsigned mtu;
};

struct away {
	int control;	     /* to the supervisor, or to the gateway */
	_Atomic int packets; /* the TUN, or a socket; -1: none yet */
	int theirs;	     /* join: the end for the gateway, until it has it */
	int in, out;	     /* the stream */
	bool carries;	     /* the session's side */
	bool called;	     /* the side to which ssh has gone */
	bool reading;	     /* packets; of the outgoing thread alone */
	bool attached;	     /* so far as the supervisor has said; of the outgoing thread alone */
	_Atomic bool finishing;	    /* the supervisor is gone */
	_Atomic bool over;	    /* the stream is */
	struct vnet_direct *direct; /* NULL: none; of the outgoing thread alone, as `crowded` */
	bool crowded;		    /* there was no room in the socket */
	_Atomic(struct meeting *) met;
	int wake; /* eventfd: `met` is there */
};

/* ---- out, to the stream ------------------------------------------------------------------ */

/* A session's socket may be waited for only where nobody waits for it in turn. */
static int send_frame(struct away *a, enum frame_kind kind, uint8_t *room, size_t len, size_t file)
{
	struct frame f = {.kind = kind, .len = (uint32_t)len, .file = (uint32_t)file};

	memcpy(room, &f, sizeof(f));
	return (int)io_write_full(a->out, room, sizeof(f) + len);
}

/* As many as are there: of a turn (@bytes is 0), or, by the stream, until they are @bytes. */
static int send_packets(struct away *a, size_t bytes)
{
	/* The packet behind both headers is where vnet_direct_send wants it. */
	static _Alignas(16) uint8_t aligned[2 + sizeof(struct frame) + VNET_MESSAGE_MAX];
	uint8_t *room = aligned + 2;
	const bool ordered = bytes || atomic_load(&a->finishing);
	size_t sent = 0;

	for (int i = 0; bytes ? sent < bytes : i < TURN; i++) {
		ssize_t n = read(
			atomic_load(&a->packets), room + sizeof(struct frame), VNET_MESSAGE_MAX);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			/* The interface is gone; its supervisor will say so, if it is there. */
			a->reading = false;
			vnet_direct_flush(a->direct);
			return atomic_load(&a->finishing) ? -ENOLINK : 0;
		}
		sent += (size_t)n;
		if (!ordered && vnet_direct_send(a->direct, room + sizeof(struct frame), (size_t)n))
			continue;
		if (send_frame(a, FRAME_PACKET, room, (size_t)n, 0) < 0)
			return -EPIPE;
	}
	vnet_direct_flush(a->direct);
	return 0;
}

/*
 * What the gateway sent before a reply of its goes before it: "held" is true when it arrives. Only
 * what is there now; there may be more all the time.
 */
static int send_queued(struct away *a)
{
	int queued = 0;

	if (a->carries || !a->reading)
		return 0;
	if (ioctl(atomic_load(&a->packets), FIONREAD, &queued) < 0 || queued <= 0)
		return 0;
	return send_packets(a, (size_t)queued);
}

/* ---- the tunnel -------------------------------------------------------------------------- */

/* What came by it.  The gateway reads when it can, but one that holds its session does not. */
static void deliver(void *ctx, const struct vnet_packet *p)
{
	struct away *a = ctx;
	struct pollfd room = {.fd = atomic_load(&a->packets), .events = POLLOUT};

	if (room.fd < 0)
		return;
	if (vnet_tun_write(room.fd, p) != -EAGAIN) {
		a->crowded = false;
	} else if (!a->crowded) {
		poll(&room, 1, ROOM_MS);
		a->crowded = vnet_tun_write(room.fd, p) == -EAGAIN;
	}
}

/* Both the supervisor and the gateway tell how packets go; neither is waited for. */
static void changed(void *ctx, bool tunnel)
{
	Pb__GatewayRequest request = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayReply reply = PB__GATEWAY_REPLY__INIT;
	Pb__GatewayCarrier carrier = PB__GATEWAY_CARRIER__INIT;
	struct away *a = ctx;
	struct err ignored = {0};

	log_info("packets go by %s", tunnel ? "a tunnel" : "the line");
	carrier.tunnel = tunnel;
	request.body_case = PB__GATEWAY_REQUEST__BODY_CARRIER;
	reply.body_case = PB__GATEWAY_REPLY__BODY_CARRIER;
	request.carrier = reply.carrier = &carrier;
	vnet_message_send(a->control, a->carries ? &reply.base : &request.base, NULL, 0, &ignored);
}

static int open_tunnel(struct away *a, unsigned mtu)
{
	const struct vnet_direct_owner owner = {deliver, changed, a};
	struct err e = {0};

	if (vnet_direct_open(&a->direct, &owner, mtu, &e) < 0)
		log_warn("everything goes by the line: %s", e.msg);
	return a->direct ? 0 : -EIO;
}

static void own_end(const struct away *a, struct vnet_direct_end *ret)
{
	vnet_direct_self(a->direct, ret);
	if (a->called)
		vnet_meeting_address(true, ret->address);
}

/* Into the attach that goes to the gateway; without it there is none. */
static void offer_tunnel(struct away *a, Pb__GatewayAttach *m)
{
	struct vnet_direct_end own;

	if (!a->direct && open_tunnel(a, m->mtu) == 0) {
		own_end(a, &own);
		if (vnet_meeting_put(m->tunnel, &own) == 0)
			return;
	}
	pb__gateway_tunnel__free_unpacked(take_ptr(m->tunnel), NULL);
}

/* Of the thread that reads the stream, for the other one. */
static void bring_together(struct away *a, const Pb__GatewayTunnel *m, unsigned mtu)
{
	struct meeting *met = calloc(1, sizeof(*met));

	if (!met || vnet_meeting_take(&met->end, m) < 0) {
		free(met);
		return;
	}
	met->mtu = mtu;
	if (a->called)
		vnet_meeting_address(false, met->end.address);
	free(atomic_exchange(&a->met, met));
	eventfd_write(a->wake, 1);
}

static int answer_offer(struct away *a)
{
	uint8_t room[sizeof(struct frame) + 128];
	Pb__GatewayTunnel m = PB__GATEWAY_TUNNEL__INIT;
	struct vnet_direct_end own;

	own_end(a, &own);
	m.key = (ProtobufCBinaryData){sizeof(own.key), own.key};
	m.port = own.port;
	m.address = own.address;
	return send_frame(a, FRAME_TUNNEL, room,
		pb__gateway_tunnel__pack(&m, room + sizeof(struct frame)), 0);
}

/* What can't be had is no loss: the line is there.  Negative: that it is not. */
static int meet(struct away *a)
{
	_cleanup_free_ struct meeting *met = NULL;
	struct err e = {0};
	eventfd_t ignored;

	eventfd_read(a->wake, &ignored);
	met = atomic_exchange(&a->met, NULL);
	if (!met || (a->carries ? !a->direct : a->direct != NULL))
		return 0;
	if (!a->carries && open_tunnel(a, met->mtu) < 0)
		return 0;
	if (vnet_direct_meet(a->direct, &met->end, &e) < 0) {
		log_warn("everything goes by the line: %s", e.msg);
		vnet_direct_close(take_ptr(a->direct));
		return 0;
	}
	return a->carries ? 0 : answer_offer(a);
}

/* ---- what is said ------------------------------------------------------------------------ */

/* What a request means for the packets; an attach goes on without its descriptors. */
static void look_at(struct away *a, Pb__GatewayRequest *m, const int *fds, size_t n_fds)
{
	switch (m->body_case) {
	case PB__GATEWAY_REQUEST__BODY_ATTACH:
		if (n_fds) {
			int tun = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);

			fcntl(tun, F_SETFL, fcntl(tun, F_GETFL) | O_NONBLOCK);
			atomic_store(&a->packets, tun);
		}
		a->reading = n_fds && !m->attach->frozen;
		a->attached = n_fds;
		if (m->attach->tunnel)
			offer_tunnel(a, m->attach);
		if (m->attach->frozen)
			vnet_direct_hold(a->direct);
		break;
	case PB__GATEWAY_REQUEST__BODY_DETACH:
		a->attached = false;
		a->reading = false;
		vnet_direct_hold(a->direct);
		break;
	case PB__GATEWAY_REQUEST__BODY_HOLD:
		a->reading = false;
		vnet_direct_hold(a->direct);
		break;
	case PB__GATEWAY_REQUEST__BODY_GO:
		a->reading = atomic_load(&a->packets) >= 0;
		vnet_direct_go(a->direct);
		break;
	default:
		break;
	}
}

static int send_with_file(struct away *a, uint8_t *room, size_t len, int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	_cleanup_free_ uint8_t *data = NULL;

	if (size < 0 || size > (off_t)FILE_MAX)
		return -EFBIG;
	data = malloc((size_t)size + 1);
	if (!data || pread(fd, data, (size_t)size, 0) != size)
		return -EIO;
	if (send_frame(a, FRAME_MESSAGE_AND_FILE, room, len, (size_t)size) < 0)
		return -EPIPE;
	return (int)io_write_full(a->out, data, (size_t)size);
}

/* A gateway of an older podrun does not know what `changed` has told it. */
static bool is_for_nobody(const struct away *a, const ProtobufCMessage *m)
{
	const Pb__GatewayReply *reply = (const Pb__GatewayReply *)m;

	return !a->carries && reply->serial == 0 &&
	       reply->body_case == PB__GATEWAY_REPLY__BODY_FAILURE;
}

static int send_message(struct away *a)
{
	const ProtobufCMessageDescriptor *type =
		a->carries ? &pb__gateway_request__descriptor : &pb__gateway_reply__descriptor;
	static uint8_t room[sizeof(struct frame) + VNET_MESSAGE_MAX];
	int fds[VNET_MESSAGE_MAX_FDS], r;
	ProtobufCMessage *m;
	struct err e = {0};
	size_t n_fds, len;

	r = vnet_message_receive(a->control, false, type, &m, fds, &n_fds, &e);
	if (r <= 0)
		return r;
	if (a->carries)
		look_at(a, (Pb__GatewayRequest *)m, fds, n_fds);
	len = protobuf_c_message_pack(m, room + sizeof(struct frame));
	if (a->carries && ((Pb__GatewayRequest *)m)->body_case == PB__GATEWAY_REQUEST__BODY_REDO &&
		n_fds)
		r = send_with_file(a, room, len, fds[0]);
	else if (!is_for_nobody(a, m))
		r = send_frame(a, FRAME_MESSAGE, room, len, 0);
	protobuf_c_message_free_unpacked(m, NULL);
	while (n_fds)
		close_fd(fds[--n_fds]);
	return r < 0 ? r : 0;
}

static int send_finish(struct away *a)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayDetach detach = PB__GATEWAY_DETACH__INIT;
	uint8_t room[sizeof(struct frame) + 64];

	detach.finish = true;
	m.serial = UINT64_MAX;
	m.body_case = PB__GATEWAY_REQUEST__BODY_DETACH;
	m.detach = &detach;
	return send_frame(a, FRAME_MESSAGE, room,
		pb__gateway_request__pack(&m, room + sizeof(struct frame)), 0);
}

/* What the session's kernel has still to say, and to hear. */
static void finish(struct away *a)
{
	const uint64_t until = io_now_ns() + FINISH_MS * 1000000ull;
	struct pollfd fd = {.fd = atomic_load(&a->packets), .events = POLLIN};

	atomic_store(&a->finishing, true);
	if (send_finish(a) < 0)
		return;
	a->reading = true;
	while (!atomic_load(&a->over) && io_now_ns() < until)
		if (poll(&fd, 1, 100) > 0 && send_packets(a, 0) < 0)
			return;
}

static void outgoing(struct away *a)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = a->control, .events = POLLIN},
			{.fd = a->reading ? atomic_load(&a->packets) : -1, .events = POLLIN},
			{.fd = a->wake, .events = POLLIN}, {.fd = -1}};

		vnet_direct_watch(a->direct, &fds[3]);
		if (poll(fds, ARRAY_SIZE(fds), vnet_direct_timeout(a->direct)) < 0 &&
			errno != EINTR)
			return;
		if (fds[0].revents && (send_queued(a) < 0 || send_message(a) < 0))
			break;
		if (fds[2].revents && meet(a) < 0)
			return;
		if (fds[3].revents || vnet_direct_timeout(a->direct) == 0)
			vnet_direct_run(a->direct);
		if (fds[1].revents && a->reading && send_packets(a, 0) < 0)
			return;
	}
	if (a->carries && a->attached && !atomic_load(&a->over))
		finish(a);
}

/* ---- in, from the stream ----------------------------------------------------------------- */

static int give_file(struct away *a, const ProtobufCMessage *m, size_t size)
{
	_cleanup_close_ int memory = memfd_create("received", MFD_CLOEXEC);
	_cleanup_free_ uint8_t *data = malloc(size + 1);
	struct err e = {0};

	if (memory < 0 || !data || io_read_full(a->in, data, size) != (ssize_t)size ||
		io_write_full(memory, data, size) < 0)
		return -EIO;
	return vnet_message_send(a->control, m, &memory, 1, &e);
}

/* A request gets the descriptors that it lost on the way. */
static int give_request(struct away *a, Pb__GatewayRequest *m, const struct frame *f)
{
	struct err e = {0};
	int r;

	if (f->kind == FRAME_MESSAGE_AND_FILE)
		return give_file(a, &m->base, f->file);
	if (m->body_case == PB__GATEWAY_REQUEST__BODY_DETACH && m->detach->finish)
		atomic_store(&a->finishing, true);
	if (m->body_case != PB__GATEWAY_REQUEST__BODY_ATTACH)
		return vnet_message_send(a->control, &m->base, NULL, 0, &e);
	if (a->theirs < 0)
		return -EBADMSG;
	r = vnet_message_send(a->control, &m->base, &a->theirs, 1, &e);
	/* Now the gateway has a session of which can be said how its packets go. */
	if (r == 0 && m->attach->tunnel)
		bring_together(a, m->attach->tunnel, m->attach->mtu);
	a->theirs = close_fd(a->theirs);
	return r;
}

static int give_reply(struct away *a, const Pb__GatewayReply *m)
{
	struct err e = {0};

	if (!atomic_load(&a->finishing))
		return vnet_message_send(a->control, &m->base, NULL, 0, &e);
	/* Nobody is there for it.  The gateway may have dropped the session by itself. */
	return m->body_case == PB__GATEWAY_REPLY__BODY_FAILURE ? -ENOLINK : 0;
}

static int take_message(struct away *a, const struct frame *f, const uint8_t *data)
{
	ProtobufCMessage *m;
	int r;

	m = protobuf_c_message_unpack(
		a->carries ? &pb__gateway_reply__descriptor : &pb__gateway_request__descriptor,
		NULL, f->len, data);
	if (!m)
		return -EBADMSG;
	if (a->carries)
		r = give_reply(a, (Pb__GatewayReply *)m);
	else
		r = give_request(a, (Pb__GatewayRequest *)m, f);
	protobuf_c_message_free_unpacked(m, NULL);
	return r;
}

static void take_packet(struct away *a, const uint8_t *data, size_t len)
{
	int fd = atomic_load(&a->packets);

	if (fd < 0)
		return;
	if (a->carries)
		(void)!write(fd, data, len);
	else
		send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int take_tunnel(struct away *a, const uint8_t *data, size_t len)
{
	Pb__GatewayTunnel *m = a->carries ? pb__gateway_tunnel__unpack(NULL, len, data) : NULL;

	if (!m)
		return -EBADMSG;
	bring_together(a, m, 0);
	pb__gateway_tunnel__free_unpacked(m, NULL);
	return 0;
}

static int take_frame(struct away *a, const struct frame *f, const uint8_t *data)
{
	switch (f->kind) {
	case FRAME_PACKET:
		take_packet(a, data, f->len);
		return 0;
	case FRAME_MESSAGE:
	case FRAME_MESSAGE_AND_FILE:
		return take_message(a, f, data);
	case FRAME_TUNNEL:
		return take_tunnel(a, data, f->len);
	default:
		return -EBADMSG;
	}
}

static void *incoming(void *ctx)
{
	static _Alignas(16) uint8_t data[VNET_MESSAGE_MAX];
	struct away *a = ctx;
	struct frame f;

	while (io_read_full(a->in, &f, sizeof(f)) == sizeof(f)) {
		if (f.len > sizeof(data) || f.file > FILE_MAX ||
			io_read_full(a->in, data, f.len) != (ssize_t)f.len)
			break;
		if (take_frame(a, &f, data) < 0)
			break;
	}
	atomic_store(&a->over, true);
	/* The other thread ends at the end of its socket, and tells who is behind it by ending. */
	shutdown(a->control, SHUT_RDWR);
	return NULL;
}

static int both_ways(struct away *a, struct err *e)
{
	pthread_t t;

	a->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->wake < 0)
		return err_errno(e, -errno, "eventfd");
	if (pthread_create(&t, NULL, incoming, a) != 0)
		return err_errno(e, -EAGAIN, "thread");
	pthread_detach(t);
	outgoing(a);
	vnet_direct_close(take_ptr(a->direct));
	return 0;
}

/* ---- the two ends ------------------------------------------------------------------------ */

/* It may come with an image: what looks like an option would be one of ssh's. */
static bool is_host(const char *host)
{
	return host[0] && host[0] != '-';
}

/*
 * As migrate's: words of the command are for the shell; the host and what runs there are arguments.
 */
static pid_t start_ssh(const char *host, const char *there, int *ret_in, int *ret_out)
{
	const char *command = getenv("PODRUN_SSH");
	char script[4096];
	int in[2], out[2];
	pid_t pid;

	snprintf(script, sizeof(script), "exec %s \"$@\"", command ? command : "ssh");
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		if (dup2(in[0], STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0)
			_exit(127);
		execl("/bin/sh", "sh", "-c", script, "sh", host, there, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	*ret_in = out[0];
	*ret_out = in[1];
	return pid < 0 ? -errno : pid;
}

int vnet_away_carry(const char *host)
{
	struct away a = {.control = VNET_AWAY_SOCKET, .packets = -1, .theirs = -1, .carries = true};
	struct err e = {0};
	pid_t ssh;

	if (!is_host(host)) {
		log_error("'%s' is no host", host);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	io_set_cloexec(a.control, true);
	ssh = start_ssh(host, "podrun gateway --join", &a.in, &a.out);
	if (ssh < 0 || both_ways(&a, &e) < 0) {
		log_error("the gateway at %s can't be reached", host);
		return 1;
	}
	close(a.out); /* the other end ends, and ssh does */
	while (waitpid(ssh, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* Whoever is at the other end of the stream is attached to the gateway of this user. */
static int join(struct away *a, const char *runtime, struct err *e)
{
	int pair[2], r;

	a->reading = true;
	a->control = vnet_ondemand_connect(runtime, true, e);
	if (a->control < 0)
		return a->control;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_errno(e, -errno, "socket");
	for (int i = 0; i < 2; i++)
		setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &(int){4 << 20}, sizeof(int));
	atomic_store(&a->packets, pair[0]);
	a->theirs = pair[1];
	r = both_ways(a, e);
	close_fd(a->control);
	return r;
}

int vnet_away_join(const char *runtime, struct err *e)
{
	struct away a = {.in = STDIN_FILENO, .out = STDOUT_FILENO, .called = true};

	signal(SIGPIPE, SIG_IGN);
	return join(&a, runtime, e);
}

int vnet_away_connect(const char *host, struct err *e)
{
	char *argv[] = {(char *)"podrun", (char *)"gateway", (char *)"--carry", (char *)host, NULL};
	int pair[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "socket");
	child = fork();
	if (child == 0) {
		/* Nobody's child, so that nobody has to wait for it. */
		if (fork() != 0)
			_exit(0);
		setsid();
		if (dup2(pair[1], VNET_AWAY_SOCKET) < 0)
			_exit(127);
		syscall(SYS_close_range, VNET_AWAY_SOCKET + 1, ~0u, 0);
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		return err_errno(e, -errno, "fork");
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return pair[0];
}

/* ---- lent --------------------------------------------------------------------------------- */

int vnet_away_borrow(const char *runtime, const char *id, struct err *e)
{
	struct away a = {.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.packets = -1,
		.theirs = -1,
		.carries = true,
		.called = true};
	_cleanup_close_ int dir = vnet_ondemand_directory(runtime, e), listener = -1;
	uint8_t room[sizeof(struct frame)];
	struct sockaddr_un at;

	signal(SIGPIPE, SIG_IGN);
	if (dir < 0 || vnet_away_lent_address(dir, id, &at, e) < 0)
		return e->error;
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	unlink(at.sun_path);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		listen(listener, 1) < 0)
		return err_errno(e, -errno, "cannot listen for the session");
	a.control = send_frame(&a, FRAME_LISTENS, room, 0, 0);
	if (a.control == 0)
		a.control = vnet_away_accept_one(listener, a.in);
	unlink(at.sun_path);
	listener = close_fd(listener);
	if (a.control < 0)
		return 0; /* the move has come to nothing */
	return both_ways(&a, e);
}

int vnet_away_lend(
	const char *runtime, const char *host, const char *podrun, const char *id, struct err *e)
{
	struct away a = {.packets = -1, .theirs = -1};
	struct frame f = {0};
	char there[4096];
	pthread_t t;
	pid_t ssh;
	int r;

	signal(SIGPIPE, SIG_IGN);
	snprintf(there, sizeof(there), "%s gateway --borrow %s", podrun, id);
	ssh = start_ssh(host, there, &a.in, &a.out);
	if (ssh < 0 || io_read_full(a.in, &f, sizeof(f)) != sizeof(f) || f.kind != FRAME_LISTENS)
		return err_set(
			e, ERR_PEER, -ECONNRESET, "%s does not take the session's line", host);
	if (io_write_full(STDOUT_FILENO, "\n", 1) < 0 || !vnet_away_await_session(a.in))
		return 0;
	if (pthread_create(&t, NULL, vnet_away_await_word, NULL) != 0)
		return err_errno(e, -EAGAIN, "thread");
	pthread_detach(t);
	r = join(&a, runtime, e);
	close(a.out);
	while (waitpid(ssh, NULL, 0) < 0 && errno == EINTR)
		continue;
	return r;
}

/* ---- a name in DNS ------------------------------------------------------------------------- */

/* A line, or what there is of it at the end of the stream or of ANSWER_MS. */
static void read_line(int in, char *ret, size_t room)
{
	uint64_t now = io_now_ns() / 1000000, until = now + ANSWER_MS;
	struct pollfd p = {.fd = in, .events = POLLIN};
	size_t n = 0;

	for (; now < until && n + 1 < room; now = io_now_ns() / 1000000) {
		ssize_t got = 0;

		if (poll(&p, 1, (int)(until - now)) > 0)
			got = read(in, ret + n, 1);
		else if (errno == EINTR)
			continue;
		if (got != 1 || ret[n] == '\n')
			break;
		n++;
	}
	ret[n] = '\0';
}

int vnet_away_withdraw(const char *host, const char *update, struct err *e)
{
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);
	char answer[sizeof(e->msg)] = "";
	int in, out;
	pid_t ssh;

	ssh = is_host(host) ? start_ssh(host, "podrun gateway --withdraw", &in, &out) : -EINVAL;
	if (ssh < 0) {
		signal(SIGPIPE, old);
		return err_errno(e, (int)ssh, "ssh to '%.64s'", host);
	}
	/* As input it needs no quotes of a shell. */
	if (io_write_full(out, update, strlen(update)) == 0 && io_write_full(out, "\n", 1) == 0)
		read_line(in, answer, sizeof(answer));
	close(out);
	close(in);
	kill(ssh, SIGTERM);
	while (waitpid(ssh, NULL, 0) < 0 && errno == EINTR)
		continue;
	signal(SIGPIPE, old);
	if (strcmp(answer, DONE) == 0)
		return 0;
	return answer[0] ? err_set(e, ERR_FAILED, -EACCES, "%s", answer)
			 : err_set(e, ERR_PEER, -ECONNRESET, "%s has not answered", host);
}

void vnet_away_withdraw_here(void)
{
	char update[VNET_NSUPDATE_TEXT];
	struct err e = {0};

	read_line(STDIN_FILENO, update, sizeof(update));
	vnet_nsupdate_withdraw(update, &e);
	printf("%s\n", err_is(&e) ? e.msg : DONE);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in away_line.h. */
#include "vnet/away_line.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/gateway.pb-c.h"
#include "vnet/direct.h"
#include "vnet/meeting.h"
#include "vnet/message.h"
#include "vnet/packet.h"
#include "vnet/tun.h"

#define TURN	  32	      /* packets until others have their turn */
#define FILE_MAX  (64u << 20) /* bytes */
#define ROOM_MS	  5	      /* for room in the gateway's socket, for what comes by a tunnel */
#define REST_MS	  200	      /* for what was sent before a hold, at most */
#define QUIET_MS  1	      /* without a packet by the tunnel: there are no more */
#define MUCH_UNSENT (64 << 10) /* bytes: more is in no socket that is not full */
#define FINISH_MS 70000	      /* the gateway waits for a minute */

enum frame_kind {
	FRAME_PACKET = 1,
	FRAME_MESSAGE,
	FRAME_MESSAGE_AND_FILE,
	FRAME_LISTENS,
	FRAME_TUNNEL
};

struct frame {
	uint32_t kind, len, file; /* little endian: both ends check the kind (base/preface.h) */
};

/* The other end of a tunnel, as the stream has told it. */
struct meeting {
	struct vnet_direct_end end;
	unsigned mtu;
};

struct away {
	int control;
	_Atomic int packets;
	int theirs, in, out;
	bool carries, called;
	bool reading;	     /* packets; of the outgoing thread alone */
	bool attached;	     /* so far as the supervisor has said; of the outgoing thread alone */
	_Atomic bool finishing;	    /* the supervisor is gone */
	_Atomic bool over;	    /* the stream is */
	struct vnet_direct *direct; /* NULL: none; of the outgoing thread alone, as `crowded` */
	bool crowded;		    /* there was no room in the socket */
	_Atomic(struct meeting *) met;
	/* Of the gateway's side, from HOLD to GO: nothing is sent any more; and the HOLD's serial. */
	_Atomic bool held;
	_Atomic uint64_t hold_serial;
	bool tunnelled; /* there may be a tunnel; of the incoming thread alone */
	/* Holds that wait for what came before them by the tunnel, and those that need not any more. */
	_Atomic uint64_t holds, settled;
	int wake;	 /* eventfd: `met` is there, or a hold waits */
	int have_settled; /* eventfd */
};

/* ---- out, to the stream ------------------------------------------------------------------ */

/* A session's socket may be waited for only where nobody waits for it in turn. */
static int send_frame(struct away *a, enum frame_kind kind, uint8_t *room, size_t len, size_t file)
{
	struct frame f = {.kind = kind, .len = (uint32_t)len, .file = (uint32_t)file};

	memcpy(room, &f, sizeof(f));
	return (int)io_write_full(a->out, room, sizeof(f) + len);
}

/*
 * As many as are there: of a turn (@bytes is 0), or, by the stream, until they are @bytes.  None is begun
 * after @until, unless that is 0.
 */
static int send_packets(struct away *a, size_t bytes, uint64_t until)
{
	/* The packet behind both headers is where vnet_direct_send wants it. */
	static _Alignas(16) uint8_t aligned[2 + sizeof(struct frame) + VNET_MESSAGE_MAX];
	uint8_t *room = aligned + 2;
	const bool ordered = bytes || atomic_load(&a->finishing);
	size_t sent = 0;

	for (int i = 0; bytes ? sent < bytes : i < TURN; i++) {
		ssize_t n;

		if (until && io_now_ns() > until)
			break;
		n = read(atomic_load(&a->packets), room + sizeof(struct frame), VNET_MESSAGE_MAX);

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
 * What the gateway sent before a reply of its goes before it.  Only what is there now; there may be
 * more all the time.
 */
static int send_queued(struct away *a)
{
	int queued = 0;

	if (a->carries || !a->reading || atomic_load(&a->held))
		return 0;
	if (ioctl(atomic_load(&a->packets), FIONREAD, &queued) < 0 || queued <= 0)
		return 0;
	return send_packets(a, (size_t)queued, 0);
}

/* All that are there, in a file as `unsent` wants it: -1 if there are none, or no memory. */
static int take_unsent(struct away *a)
{
	static uint8_t room[sizeof(uint32_t) + VNET_MESSAGE_MAX];
	_cleanup_close_ int file = -1;
	uint32_t len;
	ssize_t n;

	while ((n = read(atomic_load(&a->packets), room + sizeof(len), VNET_MESSAGE_MAX)) > 0) {
		len = (uint32_t)n;
		memcpy(room, &len, sizeof(len));
		if (file < 0)
			file = memfd_create("unsent", MFD_CLOEXEC);
		if (file < 0 || io_write_full(file, room, sizeof(len) + len) < 0)
			return -1;
	}
	return take_fd(&file);
}

/*
 * What the gateway wrote before it held the session, and is still here, would only make the image of one
 * that is moved longer: it is for whoever goes on.
 *
 * Not so of a tunnel in full flow.  Megabytes of what went by it are lost when the session is moved, and
 * what comes behind a gap keeps those from being sent again; for one that goes on here it is in the socket.
 */
static void give_back(struct away *a)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayNothing nothing = PB__GATEWAY_NOTHING__INIT;
	_cleanup_close_ int file = -1;
	struct err ignored = {0};
	int queued = 0;

	if (a->direct && ioctl(atomic_load(&a->packets), FIONREAD, &queued) == 0 &&
		queued > MUCH_UNSENT)
		return;
	file = take_unsent(a);
	if (file < 0)
		return;
	m.body_case = PB__GATEWAY_REQUEST__BODY_UNSENT;
	m.unsent = &nothing;
	vnet_message_send(a->control, &m.base, &file, 1, &ignored);
}

/*
 * What the session's kernel has sent before the session is held.  Where it is moved to, its connections
 * believe that this is on its way: lost, it would be sent again a second later.
 */
static void send_rest(struct away *a)
{
	const uint64_t until = io_now_ns() + REST_MS * 1000000ull;
	struct pollfd fd = {.fd = atomic_load(&a->packets), .events = POLLIN};

	while (a->reading && poll(&fd, 1, 0) > 0 && io_now_ns() < until)
		if (send_packets(a, 0, until) < 0)
			break; /* the line is gone, which the next to use it finds out */
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
	a->tunnelled = true;
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

/*
 * Before the gateway is told to hold, and reads no more: what is still in the tunnel's socket, and what is
 * on its way there, from a kernel that counts it as sent (send_rest).
 */
static void settle(struct away *a)
{
	const uint64_t until = io_now_ns() + REST_MS * 1000000ull;
	struct pollfd fd = {.fd = -1};

	vnet_direct_watch(a->direct, &fd);
	fd.events = POLLIN; /* there may be room all the time */
	while (fd.fd >= 0 && poll(&fd, 1, QUIET_MS) > 0 && io_now_ns() < until)
		vnet_direct_run(a->direct);
}

/* Of the thread that reads the stream: the other one has the tunnel. */
static void await_settled(struct away *a)
{
	const uint64_t until = io_now_ns() + 2 * REST_MS * 1000000ull, hold = atomic_load(&a->holds) + 1;
	struct pollfd fd = {.fd = a->have_settled, .events = POLLIN};
	eventfd_t ignored;

	atomic_store(&a->holds, hold);
	eventfd_write(a->wake, 1);
	while (atomic_load(&a->settled) < hold && io_now_ns() < until)
		if (poll(&fd, 1, REST_MS) > 0)
			eventfd_read(a->have_settled, &ignored);
}

/* What can't be had is no loss: the line is there.  Negative: that it is not. */
static int meet(struct away *a)
{
	_cleanup_free_ struct meeting *met = NULL;
	struct err e = {0};
	eventfd_t ignored;
	uint64_t holds;

	eventfd_read(a->wake, &ignored);
	holds = atomic_load(&a->holds);
	if (holds != atomic_load(&a->settled)) {
		settle(a);
		atomic_store(&a->settled, holds);
		eventfd_write(a->have_settled, 1);
	}
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
		vnet_direct_hold(a->direct);
		send_rest(a);
		a->reading = false;
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
	if (!a->carries && atomic_load(&a->held) &&
		((Pb__GatewayReply *)m)->serial == atomic_load(&a->hold_serial))
		give_back(a);
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
		if (poll(&fd, 1, 100) > 0 && send_packets(a, 0, 0) < 0)
			return;
}

static bool may_read(const struct away *a)
{
	return a->reading && !atomic_load(&a->held);
}

static void outgoing(struct away *a)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = a->control, .events = POLLIN},
			{.fd = may_read(a) ? atomic_load(&a->packets) : -1, .events = POLLIN},
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
		if (fds[1].revents && may_read(a) && send_packets(a, 0, 0) < 0)
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

static void send_again(struct away *a)
{
	if (atomic_exchange(&a->held, false))
		eventfd_write(a->wake, 1);
}

/* A request gets the descriptors that it lost on the way. */
static int give_request(struct away *a, Pb__GatewayRequest *m, const struct frame *f)
{
	struct err e = {0};
	int r;

	if (f->kind == FRAME_MESSAGE_AND_FILE)
		return give_file(a, &m->base, f->file);
	if (m->body_case == PB__GATEWAY_REQUEST__BODY_DETACH && m->detach->finish) {
		atomic_store(&a->finishing, true);
		send_again(a);
	} else if (m->body_case == PB__GATEWAY_REQUEST__BODY_GO) {
		send_again(a);
	} else if (m->body_case == PB__GATEWAY_REQUEST__BODY_HOLD) {
		atomic_store(&a->hold_serial, m->serial);
		atomic_store(&a->held, true);
		if (a->tunnelled)
			await_settled(a);
	}
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

/* @first: before it there may be what the shell there says to whoever comes. */
static bool read_frame(int in, bool first, struct frame *ret)
{
	uint8_t data[sizeof(*ret)];
	size_t n = first ? PREFACE_NUMBER : 0;

	if ((first && preface_skip(in, data) < 0) ||
		io_read_full(in, data + n, sizeof(data) - n) != (ssize_t)(sizeof(data) - n))
		return false;
	memcpy(ret, data, sizeof(data));
	return true;
}

static void *incoming(void *ctx)
{
	static _Alignas(16) uint8_t data[VNET_MESSAGE_MAX];
	struct away *a = ctx;
	bool first = a->carries && !a->called;
	struct frame f;

	for (; read_frame(a->in, first, &f); first = false) {
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

int vnet_away_line(const struct vnet_away_line *l, struct err *e)
{
	/* as long as the process: one thread goes on in it */
	struct away *a = calloc(1, sizeof(*a));
	pthread_t t;

	if (!a)
		return err_errno(e, -ENOMEM, "line");
	*a = (struct away){.control = l->control,
		.packets = l->packets,
		.theirs = l->theirs,
		.in = l->in,
		.out = l->out,
		.carries = l->carries,
		.called = l->called,
		.reading = l->packets >= 0};
	a->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a->have_settled = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->wake < 0 || a->have_settled < 0)
		return err_errno(e, -errno, "eventfd");
	if (pthread_create(&t, NULL, incoming, a) != 0)
		return err_errno(e, -EAGAIN, "thread");
	pthread_detach(t);
	outgoing(a);
	vnet_direct_close(take_ptr(a->direct));
	return 0;
}

/* ---- the frame in front of all others ---------------------------------------------------- */

int vnet_away_say_listens(int out)
{
	const struct frame f = {.kind = FRAME_LISTENS};

	return io_write_full(out, &f, sizeof(f));
}

bool vnet_away_hear_listens(int in)
{
	struct frame f;

	return read_frame(in, true, &f) && f.kind == FRAME_LISTENS;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * One event loop, libwebsockets', in one thread.  What it looks at:
 *
 *      signals    ends it
 *      listener   ours, so that we choose address and socket options; accepted sockets are adopted
 *      http       GET of the page's files, which are the same for everybody and hold no secret
 *      websocket  /stream: a relay each (relay.c)
 *      streams    of the relays
 *
 * Who has connected and shown no ticket has a place among the strangers, and loses it to others.
 *
 * Every request must name us by a name of ours, and a websocket must come from a page of ours
 * (address.h); who may see the session is decided by tickets (tickets.h).
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "base/base.h"
#include "display/web/address.h"
#include "display/web/pages.h"
#include "display/web/relay.h"
#include "display/web/strangers.h"
#include "display/web/tls.h"
#include "display/web/web.h"

#define FD_MAX	    256	       /* connections, and what we have beside them */
#define RESERVED    8	       /* of descriptors, not for strangers */
#define HOST_MAX    256	       /* bytes of Host and Origin */
#define HEADERS_MAX 2048       /* bytes of an answer's */
#define UNSENT_MAX  (32 << 10) /* bytes that the kernel may keep for a browser */
#define SERVICE	    (32 << 10) /* bytes that are read at once */

/* Scripts and styles of ours only, nothing inline; data: is for cursors. */
#define POLICY                                                                     \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; " \
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct display_web {
	struct lws_context *context;
	struct lws_vhost *vhost;
	struct lws_protocols protocols[6];
	struct display_relays relays;
	struct display_strangers strangers;
	struct display_address address;
	struct display_tls tls;
	const struct display_web_options *options;
	int spare; /* a descriptor to be given up */
	bool ended;
	struct err over; /* why nobody is to be served any more */
};

/* What an http connection is answered. */
struct answer {
	const struct display_page *page;
	size_t at;
};

/* ---- http */

static const struct display_page *find_page(const char *path)
{
	for (size_t i = 0; i < display_n_pages; i++)
		if (strcmp(display_pages[i].path, path) == 0)
			return &display_pages[i];
	return NULL;
}

/* A header, NULL without it or if it is longer than any of ours. */
static const char *header(struct lws *wsi, enum lws_token_indexes which, char room[HOST_MAX])
{
	return lws_hdr_copy(wsi, room, HOST_MAX, which) > 0 ? room : NULL;
}

static int add(struct lws *wsi, const char *name, const char *value, uint8_t **p, uint8_t *end)
{
	return lws_add_http_header_by_name(wsi, (const unsigned char *)name,
		(const unsigned char *)value, (int)strlen(value), p, end);
}

static int send_headers(struct lws *wsi, const struct display_page *page)
{
	uint8_t room[LWS_PRE + HEADERS_MAX], *start = room + LWS_PRE, *p = start,
					     *end = room + sizeof(room) - 1;

	if (lws_add_http_common_headers(wsi, HTTP_STATUS_OK, page->type, page->len, &p, end) ||
		add(wsi, "content-security-policy:", POLICY, &p, end) ||
		add(wsi, "x-content-type-options:", "nosniff", &p, end) ||
		add(wsi, "x-frame-options:", "DENY", &p, end) ||
		add(wsi, "referrer-policy:", "no-referrer", &p, end) ||
		add(wsi, "cross-origin-opener-policy:", "same-origin", &p, end) ||
		add(wsi, "cross-origin-resource-policy:", "same-origin", &p, end) ||
		add(wsi, "cache-control:", "no-store", &p, end))
		return -1;
	return lws_finalize_write_http_header(wsi, start, &p, end);
}

static int refuse(struct lws *wsi, unsigned status)
{
	return lws_return_http_status(wsi, status, NULL) || lws_http_transaction_completed(wsi) ? -1
												: 0;
}

static int request(struct display_web *w, struct lws *wsi, struct answer *a, const char *path)
{
	char host[HOST_MAX];

	if (!display_address_host_is_ours(&w->address, header(wsi, WSI_TOKEN_HOST, host)))
		return refuse(wsi, HTTP_STATUS_FORBIDDEN);
	if (!lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI))
		return refuse(wsi, HTTP_STATUS_METHOD_NOT_ALLOWED);
	a->page = find_page(path);
	a->at = 0;
	if (!a->page)
		return refuse(wsi, HTTP_STATUS_NOT_FOUND);
	if (send_headers(wsi, a->page))
		return -1;
	lws_callback_on_writable(wsi);
	return 0;
}

static int send_page(struct lws *wsi, struct answer *a)
{
	uint8_t room[LWS_PRE + 4096];
	size_t n;
	bool last;

	if (!a || !a->page)
		return 0;
	n = MIN(a->page->len - a->at, sizeof(room) - LWS_PRE);
	memcpy(room + LWS_PRE, a->page->data + a->at, n);
	a->at += n;
	last = a->at == a->page->len;
	if (lws_write(wsi, room + LWS_PRE, n, last ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) <
		(int)n)
		return -1;
	if (!last) {
		lws_callback_on_writable(wsi);
		return 0;
	}
	a->page = NULL;
	return lws_http_transaction_completed(wsi) ? -1 : 0;
}

/*
 * Everything here is HTTP/1.1, and its limits are those of such connections.  What the library does
 * next depends on the header's value, which is handed here.
 */
static int ignore_http2(char *upgrade)
{
	if (strcasecmp(upgrade, "h2c") == 0)
		upgrade[0] = '\0';
	return 0;
}

/* Of every http connection, and of websockets that ask for a protocol we do not know. */
static int http(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	const struct lws_protocols *p = lws_get_protocol(wsi);
	struct display_web *w;

	switch (reason) {
	case LWS_CALLBACK_HTTP:
		return request(p->user, wsi, user, in);
	case LWS_CALLBACK_HTTP_WRITEABLE:
		return send_page(wsi, user);
	case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
		return ignore_http2(in);
	case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
	case LWS_CALLBACK_ESTABLISHED:
		return -1;
	case LWS_CALLBACK_WSI_DESTROY: /* of any connection */
		w = lws_context_user(lws_get_context(wsi));
		display_strangers_remove(&w->strangers, wsi);
		return 0;
	default:
		return lws_callback_http_dummy(wsi, reason, user, in, len);
	}
}

/* ---- websockets */

static bool is_welcome(struct display_web *w, struct lws *wsi)
{
	char host[HOST_MAX], origin[HOST_MAX], path[64];

	return lws_hdr_copy(wsi, path, sizeof(path), WSI_TOKEN_GET_URI) > 0 &&
	       strcmp(path, "/stream") == 0 &&
	       display_address_origin_is_ours(&w->address, header(wsi, WSI_TOKEN_HOST, host),
		       header(wsi, WSI_TOKEN_ORIGIN, origin));
}

static int websocket(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct display_relays *all;

	if (reason != LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION)
		return display_relay_websocket(wsi, reason, user, in, len);
	all = lws_get_protocol(wsi)->user;
	if (is_welcome(all->ctx, wsi))
		return 0;
	lws_return_http_status(wsi, HTTP_STATUS_FORBIDDEN, NULL);
	return -1;
}

/* ---- what else the loop looks at: descriptors of ours, with the web as opaque data */

/* Whoever asks for a websocket may name any protocol of the table, and these are for nobody. */
static bool is_asked_for(enum lws_callback_reasons reason)
{
	return reason == LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION;
}

static void send_away(struct lws *stranger)
{
	if (stranger)
		lws_set_timeout(stranger, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

static void adopt(struct display_web *w, int fd, const struct sockaddr_storage *from)
{
	struct lws *wsi;

	/* The kernel keeps little: what is newer than that may still be decided. */
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){UNSENT_MAX}, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	wsi = lws_adopt_socket_vhost(w->vhost, fd); /* or closes it */
	if (wsi)
		send_away(display_strangers_add(&w->strangers, wsi, from));
}

/* Where few descriptors are left, strangers have to go: those who have been admitted need some. */
static void keep_some(struct display_web *w, int fd)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &most) < 0)
		return;
	/* The lowest free one is taken always, so its number tells how many there are. */
	for (rlim_t n = (rlim_t)fd + RESERVED; n && n >= most.rlim_cur; n--)
		send_away(display_strangers_least_welcome(&w->strangers));
}

/* There are no descriptors left.  Who waits would be told of again at once, and for ever. */
static void make_room(struct display_web *w, int listens)
{
	struct lws *stranger = display_strangers_least_welcome(&w->strangers);

	if (stranger) {
		send_away(stranger);
		return;
	}
	w->spare = close_fd(w->spare);
	close_fd(accept4(listens, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	w->spare = open("/dev/null", O_PATH | O_CLOEXEC);
}

static int listener(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct display_web *w = lws_get_protocol(wsi)->user;
	struct sockaddr_storage from = {0};
	socklen_t size = sizeof(from);
	int fd, listens = lws_get_socket_fd(wsi);

	if (reason != LWS_CALLBACK_RAW_RX_FILE)
		return is_asked_for(reason) ? -1 : 0;
	fd = accept4(listens, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		keep_some(w, fd);
		adopt(w, fd, &from);
	} else if (errno == EMFILE || errno == ENFILE) {
		make_room(w, listens);
	}
	return 0;
}

static int signals(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	if (reason == LWS_CALLBACK_RAW_RX_FILE)
		((struct display_web *)lws_get_protocol(wsi)->user)->ended = true;
	return reason == LWS_CALLBACK_RAW_RX_FILE || is_asked_for(reason) ? -1 : 0;
}

static int watch(struct display_web *w, int fd, const char *protocol, struct err *e)
{
	lws_sock_file_fd_type file = {.filefd = fd};

	if (fd < 0)
		return e->error ? e->error : err_errno(e, -errno, "signals");
	if (!lws_adopt_descriptor_vhost(w->vhost, LWS_ADOPT_RAW_FILE_DESC, file, protocol, NULL))
		return err_errno(e, -ENOMEM, "%s", protocol);
	return 0;
}

/* ---- the whole */

static void tell_address(struct display_web *w)
{
	char url[512];
	size_t n;

	display_address_url(&w->address, url, sizeof(url) - DISPLAY_TICKET_LEN - 2);
	n = strlen(url);
	snprintf(url + n, sizeof(url) - n, "#%s", w->relays.tickets.token);
	if (w->relays.tickets.token[0])
		w->options->address(w->options->ctx, url);
}

static void seated(void *ctx, const struct lws *websocket)
{
	struct display_web *w = ctx;

	display_strangers_remove(&w->strangers, websocket);
}

static void admitted(void *ctx)
{
	tell_address(ctx);
}

static int open_stream(void *ctx, struct err *e)
{
	struct display_web *w = ctx;
	int r = w->options->connect(w->options->ctx, e);

	if (r == -ESTALE)
		w->over = *e;
	return r;
}

static void fill_protocols(struct display_web *w)
{
	w->protocols[0] = (struct lws_protocols){.name = "http-only",
		.callback = http,
		.per_session_data_size = sizeof(struct answer),
		.user = w};
	w->protocols[1] = (struct lws_protocols){.name = "podrun-display",
		.callback = websocket,
		.per_session_data_size = display_relay_size(),
		.user = &w->relays};
	w->protocols[2] = (struct lws_protocols){
		.name = DISPLAY_RELAY_STREAM, .callback = display_relay_stream, .user = &w->relays};
	w->protocols[3] =
		(struct lws_protocols){.name = "listener", .callback = listener, .user = w};
	w->protocols[4] = (struct lws_protocols){.name = "signals", .callback = signals, .user = w};
	/* the end of the table is where there is no name */
}

static int make_context(struct display_web *w, struct err *e)
{
	struct lws_context_creation_info info = {
		.port = CONTEXT_PORT_NO_LISTEN_SERVER,
		.protocols = w->protocols,
		.options = w->address.https ? LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT : 0,
		.ssl_cert_filepath = w->tls.certificate,
		.ssl_private_key_filepath = w->tls.key,
		.alpn = "http/1.1",
		.pt_serv_buf_size = SERVICE,
		.fd_limit_per_thread = FD_MAX,
		.timeout_secs = 20,
		.user = w,
		.gid = (gid_t)-1,
		.uid = (uid_t)-1,
	};

	lws_set_log_level(0, NULL);
	w->context = lws_create_context(&info);
	w->vhost = w->context ? lws_get_vhost_by_name(w->context, "default") : NULL;
	return w->vhost ? 0 : err_set(e, ERR_FAILED, -EIO, "the web server can't be started");
}

static int init(struct display_web *w, struct err *e)
{
	const struct display_web_options *o = w->options;
	int fd, r = 0;

	display_address_loopback(&w->address);
	if (o->listen)
		r = display_address_parse(&w->address, o->listen, e);
	if (r == 0 && o->listen)
		r = display_tls_init(&w->tls, o->keys, e);
	if (r == 0)
		r = display_tickets_init(&w->relays.tickets, o->listen, e);
	if (r < 0)
		return r;
	w->relays.view_only = o->view_only;
	w->relays.quality = o->quality;
	w->relays.connect = open_stream;
	w->relays.admitted = admitted;
	w->relays.seated = seated;
	w->relays.ctx = w;
	fill_protocols(w);
	fd = display_address_listen(&w->address, e);
	if (fd < 0)
		return fd;
	r = make_context(w, e);
	if (r < 0) {
		close(fd);
		return r;
	}
	return watch(w, fd, "listener", e);
}

int display_web_new(
	struct display_web **ret, const struct display_web_options *options, struct err *e)
{
	struct display_web *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_errno(e, -ENOMEM, "memory");
	w->options = options;
	w->spare = open("/dev/null", O_PATH | O_CLOEXEC);
	r = init(w, e);
	if (r < 0) {
		display_web_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void display_web_free(struct display_web *w)
{
	if (!w)
		return;
	if (w->context)
		lws_context_destroy(w->context);
	display_tls_fini(&w->tls);
	close_fd(w->spare);
	free(w);
}

const char *display_web_fingerprint(const struct display_web *w)
{
	return w->tls.fingerprint;
}

int display_web_run(struct display_web *w, struct err *e)
{
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	r = watch(w, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signals", e);
	if (r < 0)
		return r;
	tell_address(w);
	/* Whoever was there is told so first. */
	while (!w->ended && !(w->over.error && !w->relays.n))
		if (lws_service(w->context, 0) < 0)
			return err_set(e, ERR_FAILED, -EIO, "the web server has failed");
	if (!w->ended && w->over.error)
		*e = w->over;
	return e->error;
}

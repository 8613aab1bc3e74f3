// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/cli/view_vnc.h"

#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "display/display.h"

struct place {
	char address[INET_ADDRSTRLEN];
	unsigned port;
	char password[DISPLAY_VNC_PASSWORD + 1];
};

static int parse(const char *listen, struct place *ret, struct err *e)
{
	struct place p = {.address = "127.0.0.1"};
	const char *colon = strrchr(listen, ':'), *digits = colon ? colon + 1 : listen;
	struct in_addr any;
	char *end;

	if (colon)
		snprintf(
			p.address, sizeof(p.address), "%.*s", (int)MIN(colon - listen, 99), listen);
	p.port = (unsigned)strtoul(digits, &end, 10);
	if (end == digits || *end || *digits < '0' || *digits > '9' || p.port > 65535 ||
		inet_pton(AF_INET, p.address, &any) != 1)
		return err_set(e, ERR_USAGE, -EINVAL, "--vnc: '%s' is not [ADDR:]PORT", listen);
	*ret = p;
	return 0;
}

int view_vnc_check(const char *listen, struct err *e)
{
	struct place p;

	return parse(listen, &p, e);
}

/* 40 bits of characters that are not mistaken for others. */
static int make_password(struct place *p, struct err *e)
{
	static const char letters[] = "abcdefghjkmnpqrstuvwxyz23456789x";
	uint8_t any[DISPLAY_VNC_PASSWORD];

	if (getrandom(any, sizeof(any), 0) != sizeof(any))
		return err_errno(e, -errno, "a password");
	for (size_t i = 0; i < sizeof(any); i++)
		p->password[i] = letters[any[i] % 32];
	return 0;
}

static void ready(void *ctx, unsigned port)
{
	const struct place *p = ctx;

	printf("%s:%u password %s\n", p->address, port, p->password);
	fflush(stdout);
}

int view_vnc(int sock, const char *listen, bool view_only, unsigned quality, struct err *e)
{
	struct place p;
	struct display_vnc_options o = {
		.view_only = view_only, .quality = quality, .ready = ready, .ctx = &p};

	if (parse(listen, &p, e) < 0 || make_password(&p, e) < 0)
		return e->error;
	o.address = p.address;
	o.port = p.port;
	o.password = p.password;
	signal(SIGPIPE, SIG_IGN);
	return display_vnc(sock, &o, e);
}

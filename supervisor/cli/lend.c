// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in vnet/away.c. */
#include "supervisor/cli/lend.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/control.pb-c.h"
#include "proto/gateway.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "vnet/vnet.h"

#define ID_TEXT 33 /* bytes: 16 as hexadecimal digits */

/* A session with its gateway here; what it is called there. */
static bool is_at_home(const Pb__Config *c, char id[ID_TEXT])
{
	const Pb__VirtualNetwork *v = c->network;

	if (!v || v->through[0] || (v->gateway[0] && strcmp(v->gateway, "local") != 0) ||
		c->session_id.len != 16)
		return false;
	for (size_t i = 0; i < 16; i++)
		snprintf(id + 2 * i, 3, "%02x", c->session_id.data[i]);
	return true;
}

static bool has_connections(struct cli *c, const char *id)
{
	struct vnet_client *client;
	struct vnet_answer a = {0};
	struct err ignored = {0};
	bool found = false;

	if (vnet_client_connect(&client, c->paths.runtime, false, &ignored) < 0)
		return false;
	if (vnet_client_list(client, NULL, &ignored) == 0 &&
		vnet_client_wait(client, &a, &ignored) == 0 && a.sessions)
		for (size_t i = 0; i < a.sessions->n_sessions; i++)
			found |= strcmp(a.sessions->sessions[i]->id, id) == 0 &&
				 a.sessions->sessions[i]->flows;
	vnet_answer_fini(&a);
	vnet_client_free(client);
	return found;
}

/* In the child: becomes the line.  It has no terminal, so that closing ours is not its end. */
static void become(const char *runtime, int life, int said, const char *ssh, char *const argv[])
{
	char log[4096];
	int errors;

	snprintf(log, sizeof(log), "%s/.gateway/log", runtime);
	errors = open(log, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0600);
	if (errors < 0)
		errors = open("/dev/null", O_WRONLY);
	setsid();
	if (setenv("PODRUN_SSH", ssh, 1) < 0 || dup2(life, STDIN_FILENO) < 0 ||
		dup2(said, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0)
		_exit(127);
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	execv("/proc/self/exe", argv);
	_exit(127);
}

void lend_begin(struct lend *l, struct cli *c, const char *name, const char *host, const char *ssh,
	const char *podrun)
{
	char id[ID_TEXT] = "";
	char *argv[] = {(char *)"podrun", (char *)"gateway", (char *)"--lend", (char *)host,
		(char *)"--borrow", id, (char *)"--podrun", (char *)podrun, NULL};
	struct client_session s;
	struct err ignored = {0};
	int life[2], said[2];
	bool needed;

	*l = (struct lend)LEND_INIT;
	if (client_look(&s, &c->paths, name, &ignored) < 0)
		return;
	needed = is_at_home(s.record->config, id) && has_connections(c, id);
	client_session_fini(&s);
	if (!needed || pipe2(life, O_CLOEXEC) < 0)
		return;
	if (pipe2(said, O_CLOEXEC) < 0) {
		close(life[0]);
		close(life[1]);
		return;
	}
	l->pid = fork();
	if (l->pid == 0)
		become(c->paths.runtime, life[0], said[1], ssh, argv);
	close(life[0]);
	close(said[1]);
	l->life = life[1];
	l->said = said[0];
}

char *lend_gateway(struct cli *c, const char *name)
{
	const Pb__VirtualNetwork *v;
	struct client_session s;
	struct err ignored = {0};
	char *found = NULL;

	if (client_look(&s, &c->paths, name, &ignored) < 0)
		return NULL;
	v = s.record->config->network;
	/* a word of a line */
	if (v && v->gateway[0] && strcmp(v->gateway, "local") != 0 &&
		strncmp(v->gateway, "wg:", 3) != 0 && strlen(v->gateway) < 256 &&
		!strpbrk(v->gateway, " \t\n"))
		found = strdup(v->gateway);
	client_session_fini(&s);
	return found;
}

char *lend_ports(struct cli *c, const char *name)
{
	_cleanup_buf_ struct buf ports = BUF_INIT;
	const Pb__VirtualNetwork *v;
	struct client_session s;
	struct err ignored = {0};
	char id[ID_TEXT];

	if (client_look(&s, &c->paths, name, &ignored) < 0)
		return NULL;
	v = s.record->config->network;
	if (is_at_home(s.record->config, id) && v->dns_update[0])
		for (size_t i = 0; i < v->n_publish; i++) {
			const Pb__PublishedPort *p = v->publish[i];

			if (p->udp)
				continue;
			buf_printf(&ports,
				strchr(p->address, ':') ? "%s[%s]:%u"
				: p->address[0]		? "%s%s:%u"
							: "%s%s%u",
				ports.len ? "," : "", p->address, p->host);
		}
	client_session_fini(&s);
	return ports.len && buf_cstr(&ports) ? strdup(buf_cstr(&ports)) : NULL;
}

void lend_forward(
	struct cli *c, const char *host, const char *ssh, const char *podrun, const char *ports)
{
	char *argv[] = {(char *)"podrun", (char *)"gateway", (char *)"--forward", (char *)host,
		(char *)"--ports", (char *)ports, (char *)"--podrun", (char *)podrun, NULL};
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t child = fork();

	if (child == 0) {
		/* Nobody's child, so that nobody has to wait for it. */
		if (fork() == 0)
			become(c->paths.runtime, null, null, ssh, argv);
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
}

bool lend_await(struct lend *l)
{
	char word;
	ssize_t n;

	if (!l->pid)
		return true;
	do
		n = read(l->said, &word, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return true;
	lend_end(l);
	return false;
}

void lend_keep(struct lend *l)
{
	if (l->pid)
		(void)!write(l->life, "k", 1);
	l->life = close_fd(l->life);
	l->said = close_fd(l->said);
	l->pid = 0;
}

void lend_end(struct lend *l)
{
	l->life = close_fd(l->life);
	l->said = close_fd(l->said);
	if (l->pid > 0) {
		kill(l->pid, SIGTERM);
		while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	l->pid = 0;
}

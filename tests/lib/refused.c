// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * refused kernel|rewrite LOG CMD... - runs a command outside of any session, refuses it the calls
 * that a session refuses, and writes down which these were, a line for each: the call, or "call
 * (reason)" where an argument decides, a tab, and the name of the process. refused kernel|rewrite
 * --list: what is refused by number.
 *
 * The filter is that of sessions with kernel names, or with rewritten ones and a private view.  In
 * it what is refused asks a listener; all else is allowed.
 *
 * Only clone3 is not told of, which would be a line for each thread: it is just refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/filter/filter_programs.h"
#include "supervisor/policy/policy.h"

#define REWRITTEN                                                              \
	(NAMES_BIT(NAMES_PID) | NAMES_BIT(NAMES_IPC) | NAMES_BIT(NAMES_HOST) | \
		NAMES_BIT(NAMES_FILE))

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "refused: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* ---- the filter ----------------------------------------------------------------------------- */

static const struct filter_program *of_sessions(unsigned classes)
{
	for (size_t i = 0; i < filter_n_programs; i++)
		if (filter_programs[i].translated == classes)
			return &filter_programs[i];
	errno = ENOENT;
	die("filter");
}

static uint32_t telling(uint32_t action)
{
	return (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO ? SECCOMP_RET_USER_NOTIF
								       : SECCOMP_RET_ALLOW;
}

/* Returns the listener. */
static int install(unsigned classes)
{
	static const struct sock_filter before[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	const struct filter_program *p = of_sessions(classes);
	size_t n = ARRAY_SIZE(before) + p->n;
	struct sock_filter *code = calloc(n, sizeof(*code));
	struct sock_fprog program = {(unsigned short)n, code};
	int fd;

	if (!code)
		die("filter");
	memcpy(code, before, sizeof(before));
	memcpy(code + ARRAY_SIZE(before), p->code, p->n * sizeof(*code));
	for (size_t i = ARRAY_SIZE(before); i < n; i++)
		if (code[i].code == (BPF_RET | BPF_K))
			code[i].k = telling(code[i].k);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("no_new_privs");
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		&program);
	if (fd < 0 && errno == EINVAL) /* before 5.19 */
		fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		die("seccomp");
	free(code);
	return fd;
}

/* ---- what has been called ------------------------------------------------------------------- */

struct refusal {
	const char *name;
	const char *why; /* of a rule that looks at an argument; else NULL */
	enum policy_action action;
};

static bool is_refusal(enum policy_action action)
{
	return action == POLICY_EPERM || action == POLICY_ENOSYS;
}

static enum policy_action action_of(const struct policy_call *c, unsigned classes)
{
	const struct policy_translated *t = policy_find_translated(c->nr, classes);

	return t ? t->action : c->action;
}

/* The first rule that is about these arguments is the one. */
static const struct policy_rule *rule_of(const struct seccomp_data *d, int nr, unsigned classes,
	const struct policy_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t arg = d->args[rules[i].arg];

		if (policy_rule_is_about(&rules[i], nr, classes) &&
			((uint32_t)arg & rules[i].mask) == rules[i].value &&
			(!rules[i].whole || arg >> 32 == 0))
			return &rules[i];
	}
	return NULL;
}

static struct refusal look_up(const struct seccomp_data *d, unsigned classes)
{
	bool is_32 = d->arch == AUDIT_ARCH_I386;
	int nr = is_32 ? policy_number64(d->nr) : d->arch == AUDIT_ARCH_X86_64 ? d->nr : -1;
	const struct policy_call *c = nr < 0 ? NULL : policy_find(nr);
	const struct policy_call32 *own = is_32 ? policy_find32(d->nr) : NULL;
	struct refusal r = {c ? c->name : own ? own->name : "?", NULL, POLICY_ENOSYS};
	const struct policy_rule *rule =
		is_32 ? rule_of(d, d->nr, classes, policy_rules32, policy_n_rules32) : NULL;

	if (!rule && c)
		rule = rule_of(d, nr, classes, policy_rules, policy_n_rules);
	if (rule) {
		r.why = rule->why;
		r.action = rule->action;
	} else if (c || own) {
		r.action = c ? action_of(c, classes) : own->action;
	}
	return r;
}

static void put_process(FILE *f, unsigned pid)
{
	char path[32], name[32] = "?";
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	comm = fopen(path, "re");
	if (comm && fgets(name, sizeof(name), comm))
		name[strcspn(name, "\n")] = '\0';
	if (comm)
		fclose(comm);
	fprintf(f, "\t%s\n", name);
}

static int list(unsigned classes)
{
	for (size_t i = 0; i < policy_n_calls; i++)
		if (is_refusal(action_of(&policy_calls[i], classes)))
			puts(policy_calls[i].name);
	return 0;
}

/* ---- the listener --------------------------------------------------------------------------- */

static void refuse(int listener, unsigned classes, FILE *log)
{
	struct seccomp_notif request = {0};
	struct seccomp_notif_resp response = {0};
	struct refusal r;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return;
	r = look_up(&request.data, classes);
	fprintf(log, "%s", r.name);
	if (r.why)
		fprintf(log, " (%s)", r.why);
	put_process(log, request.pid);
	fflush(log);
	response.id = request.id;
	response.error = r.action == POLICY_EPERM ? -EPERM : -ENOSYS;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

static int status_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	unsigned classes = argc > 1 && strcmp(argv[1], "rewrite") == 0 ? REWRITTEN : 0;
	struct pollfd of[2] = {{.events = POLLIN}, {.events = POLLIN}};
	FILE *log;
	pid_t pid;

	if (argc == 3 && strcmp(argv[2], "--list") == 0)
		return list(classes);
	log = argc > 3 ? fopen(argv[2], "we") : NULL;
	if (!log)
		die("usage: refused kernel|rewrite LOG CMD...");
	of[0].fd = install(classes);
	pid = fork();
	if (pid == 0) {
		execvp(argv[3], argv + 3);
		die(argv[3]);
	}
	of[1].fd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	if (of[1].fd < 0)
		die("fork");
	while (!of[1].revents)
		if (poll(of, 2, -1) > 0 && of[0].revents)
			refuse(of[0].fd, classes, log);
	return status_of(pid);
}

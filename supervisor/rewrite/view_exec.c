// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs in the view.
 *
 * The kernel opens the host's path, and tells the program by which it was started: in the auxiliary
 * vector, and a script's interpreter among its arguments.  Both are texts at the top of the new stack, and
 * are replaced before the program has run (view_execed); the session's path is the shorter one,
 * the rest of its room is zeroes.
 *
 * An interpreter that is in the view itself the kernel would not find.  Then the arguments that the kernel
 * would have made are made here.
 */
#include "supervisor/rewrite/view_calls.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/base.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/tasks.h"

#define HEAD	    256	 /* BINPRM_BUF_SIZE */
#define MAX_ARGS    8192 /* of a script whose interpreter is in the view */
#define MAX_SCRIPTS 4
#define MAX_PAGES   1024 /* of pointers to the environment */

struct script {
	char interpreter[PATH_MAX];
	char argument[HEAD];
};

/* The first line of what is at @at: true if it names an interpreter. */
static bool read_script(const struct view_place *at, struct script *ret)
{
	char link[32], head[HEAD + 1] = "", *p, *end;
	_cleanup_close_ int fd = -1;

	if (!S_ISREG(at->mode))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at->fd);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || read(fd, head, HEAD) < 3 || head[0] != '#' || head[1] != '!')
		return false;
	head[strcspn(head, "\n")] = '\0';
	p = head + 2 + strspn(head + 2, " \t");
	end = p + strcspn(p, " \t");
	snprintf(ret->interpreter, sizeof(ret->interpreter), "%.*s", (int)(end - p), p);
	p = end + strspn(end, " \t");
	for (end = p + strlen(p); end > p && (end[-1] == ' ' || end[-1] == '\t'); end--)
		;
	snprintf(ret->argument, sizeof(ret->argument), "%.*s", (int)(end - p), p);
	return true;
}

/* ---- arguments made here -------------------------------------------------------------------- */

struct made {
	struct buf text;
	uint64_t offsets[2 * MAX_SCRIPTS + 2]; /* of the first arguments, in @text */
	size_t n;
};

static void add(struct made *m, const char *text)
{
	m->offsets[m->n++] = m->text.len;
	buf_put(&m->text, text, strlen(text) + 1);
}

/* Of a pointer, in bytes. */
static size_t width_of(const struct task *task)
{
	return task->compat.is ? 4 : 8;
}

static int peek_pointer(const struct task *task, uint64_t at, size_t width, uint64_t *ret)
{
	*ret = 0;
	return view_peek(task, at, ret, width);
}

/* The task's own arguments behind the first; their number. */
static int peek_arguments(const struct task *task, uint64_t addr, uint64_t *ret)
{
	size_t width = width_of(task);
	int n = 0;

	for (; n < MAX_ARGS; n++)
		if (!addr || peek_pointer(task, addr + width * (size_t)(n + 1), width, &ret[n]) < 0)
			return -EFAULT;
		else if (!ret[n])
			return n;
	return -E2BIG;
}

/* Host's path, first arguments, then the task's own: all of it below the stack. */
static int put_arguments(struct rewrite *rw, struct task *task, struct user_regs_struct *regs,
	struct made *m, int path_arg)
{
	_cleanup_free_ uint64_t *own = calloc(MAX_ARGS + 1, sizeof(*own));
	unsigned long long *argv = view_arg(regs, path_arg + 1);
	_cleanup_buf_ struct buf all = BUF_INIT;
	uint64_t addr, size, first;
	size_t width = width_of(task);
	int n = own ? peek_arguments(task, *argv, own) : -ENOMEM;

	if (n < 0)
		return n;
	while (m->text.len % 8)
		buf_put_u8(&m->text, 0);
	size = m->text.len + width * (m->n - 1 + (size_t)n + 1);
	addr = view_below(regs, size);
	buf_put(&all, m->text.data, m->text.len);
	first = addr + m->text.len;
	for (size_t i = 1; i < m->n; i++) {
		uint64_t at = addr + m->offsets[i];

		buf_put(&all, &at, width);
	}
	/* And the zero behind them. */
	for (int i = 0; i <= n; i++)
		buf_put(&all, &own[i], width);
	if (buf_error(&all) < 0 || view_put_below(rw, task, regs, all.data, all.len) != addr)
		return -E2BIG;
	*view_arg(regs, path_arg) = addr;
	*argv = first;
	return 0;
}

/*
 * The interpreter of @s is in the view, at @in: what it is called with.  @path is the script's as the task said it.
 */
static int enter_script(struct rewrite *rw, struct task *task, struct user_regs_struct *regs,
	int path_arg, const struct script *s, const struct view_place *in, const char *path)
{
	struct made m = {.text = BUF_INIT};
	char host[PATH_MAX];
	int r = view_place_host(rw->view, in, host);

	if (r < 0)
		return r;
	add(&m, host);
	add(&m, s->interpreter);
	if (*s->argument)
		add(&m, s->argument);
	add(&m, path);
	r = put_arguments(rw, task, regs, &m, path_arg);
	buf_fini(&m.text);
	return r;
}

/* ---- entry ---------------------------------------------------------------------------------- */

static void remember(
	struct rewrite *rw, const struct task *task, const char *host, const char *path)
{
	const struct task *leader = tasks_find(&rw->tasks, task->tgid);
	struct view_scratch *s = &rw->view->scratch[leader ? leader->number : task->number];

	free(s->host);
	free(s->path);
	s->host = strdup(host);
	s->path = strdup(path);
}

static int enter_exec(struct rewrite *rw, struct task *task, struct user_regs_struct *regs,
	int dirfd, int path_arg)
{
	_cleanup_place_ struct view_place at = VIEW_PLACE_INIT, in = VIEW_PLACE_INIT;
	char path[PATH_MAX], host[PATH_MAX];
	struct script s;
	uint64_t addr;
	int r;

	if (view_peek_path(task, *view_arg(regs, path_arg), path) <= 0)
		return 1;
	r = view_find_place(rw, task, dirfd, path, 0, &at);
	if (r != 0)
		return r;
	if (at.fd >= 0 && read_script(&at, &s) &&
		view_find_place(rw, task, AT_FDCWD, s.interpreter, 0, &in) == 0 && in.fd >= 0)
		return enter_script(rw, task, regs, path_arg, &s, &in, path);
	r = view_place_host(rw->view, &at, host);
	if (r < 0)
		return r;
	addr = view_put_below(rw, task, regs, host, strlen(host) + 1);
	if (!addr)
		return -ENOMEM;
	*view_arg(regs, path_arg) = addr;
	remember(rw, task, host, path);
	return 0;
}

int view_enter_exec(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return enter_exec(rw, task, regs, AT_FDCWD, 0);
}

int view_enter_execat(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return enter_exec(rw, task, regs, (int)regs->rdi, 1);
}

/* ---- the new stack -------------------------------------------------------------------------- */

/* Puts the session's path where the host's is. */
static void replace(const struct task *task, const struct view_scratch *s, uint64_t addr)
{
	size_t len = strlen(s->host) + 1;
	char there[PATH_MAX], text[PATH_MAX] = "";

	if (len > sizeof(there) || strlen(s->path) >= len ||
		view_peek(task, addr, there, len) < 0 || memcmp(there, s->host, len) != 0)
		return;
	strcpy(text, s->path);
	view_poke(task, addr, text, len);
}

/* Entries of the auxiliary vector are two words each: a sort and a value. */
static void replace_in_vector(
	const struct task *task, const struct view_scratch *s, uint64_t at, size_t width)
{
	for (int i = 0; i < 64; i++, at += 2 * width) {
		uint64_t sort, value;

		if (peek_pointer(task, at, width, &sort) < 0 ||
			peek_pointer(task, at + width, width, &value) < 0 || sort == AT_NULL)
			return;
		if (sort == AT_EXECFN)
			replace(task, s, value);
	}
}

/* Where the vector begins, for the pointers of the environment do at @at; 0 if there is none. */
static uint64_t behind_environment(const struct task *task, uint64_t at, size_t width)
{
	char some[PAGE_SIZE];

	for (int i = 0; i < MAX_PAGES; i++) {
		size_t n = (PAGE_SIZE - at % PAGE_SIZE) / width;

		if (view_peek(task, at, some, width * n) < 0)
			return 0;
		for (size_t k = 0; k < n; k++)
			if (memcmp(some + width * k, &(uint64_t){0}, width) == 0)
				return at + width * (k + 1);
		at += width * n;
	}
	return 0;
}

/* The new program's: it need not be of the sort of the old one. */
static void replace_on_stack(const struct task *task, const struct view_scratch *s)
{
	struct user_regs_struct regs;
	uint64_t n = 0, at, text;
	size_t width;

	if (ptrace(PTRACE_GETREGS, task->host, 0, &regs) < 0)
		return;
	width = compat_is_code(&regs) ? 4 : 8;
	if (peek_pointer(task, regs.rsp, width, &n) < 0)
		return;
	at = regs.rsp + width;
	/* A script's is the second or third. */
	for (uint64_t i = 1; i < MIN(n, 3); i++)
		if (peek_pointer(task, at + width * i, width, &text) == 0)
			replace(task, s, text);
	at = behind_environment(task, at + width * (n + 1), width);
	if (at)
		replace_in_vector(task, s, at, width);
}

void view_execed(struct rewrite *rw, const struct task *task)
{
	struct view_scratch *s = rw->view ? &rw->view->scratch[task->number] : NULL;

	if (!s || !s->host)
		return;
	if (s->path)
		replace_on_stack(task, s);
	free(s->host);
	free(s->path);
	s->host = s->path = NULL;
	s->len = 0;
}

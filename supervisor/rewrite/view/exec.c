// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs in the view.
 *
 * The kernel opens the host's path, and tells the program by which it was started: in the auxiliary
 * vector, and a script's interpreter among its arguments.  Both are texts at the top of the new
 * stack, and are replaced before the program has run (view_execed); the session's path is the
 * shorter one, the rest of its room is zeroes.
 *
 * An interpreter that is in the view itself the kernel would not find.  Then the arguments that the
 * kernel would have made are made here; nor would it find a loader (view/program.h).
 *
 * The memory of a program that may be executed but not read is closed to its tracer, too: no path
 * of it could be replaced, and it would see the host's.  So it is not executed: EACCES, and the log
 * says why.  What has been exchanged behind that look, or has an interpreter or a loader of that
 * kind, is killed before it runs.
 */
#include "supervisor/rewrite/view/calls.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "base/base.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/robust.h"
#include "supervisor/rewrite/tasks.h"
#include "supervisor/rewrite/view/program.h"

#define HEAD	    256	 /* BINPRM_BUF_SIZE */
#define MAX_ARGS    8192 /* of a script whose interpreter is in the view */
#define MAX_SCRIPTS 5	 /* as exec_binprm() in the kernel */
#define MAX_PAGES   1024 /* of pointers to the environment */

struct script {
	char interpreter[PATH_MAX];
	char argument[HEAD];
};

/* The first line of @fd: true if it names an interpreter. */
static bool read_script(int fd, struct script *ret)
{
	char head[HEAD + 1] = "", *p, *end;

	if (pread(fd, head, HEAD, 0) < 3 || head[0] != '#' || head[1] != '!')
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

/* All whose interpreters have been entered, the first that of the task's. */
struct scripts {
	struct script all[MAX_SCRIPTS + 1]; /* the last is one too many */
	size_t n;
};

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
 * The last interpreter, @host, is called with all that came before, and @path, the script as the
 * task said it.
 */
static int put_scripts(struct rewrite *rw, struct task *task, struct user_regs_struct *regs,
	int path_arg, const struct scripts *all, const char *host, const char *path)
{
	struct made m = {.text = BUF_INIT};
	int r;

	add(&m, host);
	for (size_t i = all->n; i-- > 0;) {
		add(&m, all->all[i].interpreter);
		if (*all->all[i].argument)
			add(&m, all->all[i].argument);
	}
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

/* Where the kernel would have to look for @loader; 1 if it finds that by itself. */
static int find_loader(
	struct rewrite *rw, const struct task *task, const char *loader, char ret[PATH_MAX])
{
	_cleanup_place_ struct view_place at = VIEW_PLACE_INIT;
	int r = view_find_place(rw, task, AT_FDCWD, loader, 0, &at);

	if (r != 0)
		return r;
	return at.fd < 0 ? -ENOENT : view_place_host(rw->view, &at, ret);
}

/* What the session calls the file @fd, or what the kernel says if it has no name. */
static int name_file(const struct rewrite *rw, int fd, char ret[PATH_MAX])
{
	char host[PATH_MAX];
	int r = procfs_name_of(fd, host);

	if (r < 0 || host[0] != '/')
		return r < 0 ? r : -ENOENT;
	if (view_session_path(rw->view, host, ret) < 0)
		strcpy(ret, host);
	return 0;
}

/* What runs as /proc/PID/exe has led to, because the program itself is there no more. */
static bool is_copy(const struct view *v, int fd)
{
	char host[PATH_MAX];

	return procfs_name_of(fd, host) == 0 &&
	       strncmp(host, v->programs, strlen(v->programs)) == 0;
}

/* The program at @at, open as @fd, on the host. */
static int find_program(struct rewrite *rw, const struct task *task, const struct view_place *at,
	int fd, char ret[PATH_MAX])
{
	char loader[PATH_MAX], host[PATH_MAX], path[PATH_MAX];
	int r = fd < 0 || is_copy(rw->view, fd) ? 0 : view_program_loader(fd, loader);

	if (r > 0)
		r = find_loader(rw, task, loader, host);
	else if (r == 0)
		r = 1;
	/* The kernel finds the loader, or needs none. */
	if (r > 0)
		return view_place_host(rw->view, at, ret);
	if (r == 0)
		r = name_file(rw, at->fd, path);
	return r < 0 ? r : view_program_copy(rw->view->programs, fd, path, host, ret);
}

int view_exec_path(struct rewrite *rw, const char *path, char ret[PATH_MAX])
{
	_cleanup_place_ struct view_place loader_at = VIEW_PLACE_INIT;
	char loader[PATH_MAX], host[PATH_MAX];
	_cleanup_close_ int fd = -1;
	int r = view_host_path(rw->view, path, ret);

	fd = r < 0 ? -1 : open(ret, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || view_program_loader(fd, loader) != 1 || loader[0] != '/' ||
		!view_leads_in(rw->view, loader))
		return r;
	r = view_walk(rw->view, NULL, loader, VIEW_WAIT, &loader_at);
	if (r == 0 && !view_mount_of(rw->view, loader_at.path))
		return 0;
	if (r == 0)
		r = view_place_host(rw->view, &loader_at, host);
	return r < 0 ? r : view_program_copy(rw->view->programs, fd, path, host, ret);
}

static const char *last_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* So that the session's path has room in its place. */
static void lengthen(char host[PATH_MAX], size_t least)
{
	size_t n = strlen(host), more = least > n && least < PATH_MAX ? least - n : 0;

	memmove(host + more, host, n + 1);
	memset(host, '/', more);
}

/* The kernel is told to execute @host in place of @path. */
static int put_program(struct rewrite *rw, struct task *task, struct user_regs_struct *regs,
	int path_arg, const struct scripts *scripts, const char *host, const char *path)
{
	uint64_t addr;
	int r;

	if (scripts->n) {
		r = put_scripts(rw, task, regs, path_arg, scripts, host, path);
		if (r < 0)
			return r;
	} else {
		addr = view_put_below(rw, task, regs, host, strlen(host) + 1);
		if (!addr)
			return -ENOMEM;
		*view_arg(regs, path_arg) = addr;
	}
	remember(rw, task, host, path);
	return 0;
}

/* What the user of a program that is not executed needs to know, once; -EACCES. */
static int unreadable(struct rewrite *rw, const char *path)
{
	if (!rw->view->unread_told)
		log_warn(
			"%s may be executed but not read: not executed, for its paths could not be "
			"replaced",
			path);
	rw->view->unread_told = true;
	return -EACCES;
}

/* Who may not execute it must not be helped to.  What is no file the kernel refuses. */
static int may_execute(struct rewrite *rw, const struct view_place *at, const char *path)
{
	const int flags = AT_EMPTY_PATH | AT_EACCESS;

	if (at->fd < 0 || !S_ISREG(at->mode))
		return 0;
	if (syscall(SYS_faccessat2, at->fd, "", X_OK, flags) < 0)
		return -errno;
	if (syscall(SYS_faccessat2, at->fd, "", R_OK, flags) < 0)
		return errno == EACCES ? unreadable(rw, path) : -errno;
	return 0;
}

/* The same of a program that the kernel finds by itself.  1, or a negative errno. */
static int may_execute_outside(
	struct rewrite *rw, const struct task *task, int dirfd, const char *path)
{
	char text[PATH_MAX];
	int n;

	if (path[0] == '/')
		n = snprintf(text, sizeof(text), "%s", path);
	else if (dirfd == AT_FDCWD)
		n = snprintf(text, sizeof(text), "/proc/%d/cwd/%s", task->host, path);
	else
		n = snprintf(text, sizeof(text), "/proc/%d/fd/%d%s%s", task->host, dirfd,
			*path ? "/" : "", path);
	if (n >= PATH_MAX || faccessat(AT_FDCWD, text, R_OK, AT_EACCESS) == 0 || errno != EACCES)
		return 1;
	return faccessat(AT_FDCWD, text, X_OK, AT_EACCESS) < 0 ? 1 : unreadable(rw, path);
}

static int open_program(const struct view_place *at)
{
	char link[32];

	if (at->fd < 0 || !S_ISREG(at->mode))
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at->fd);
	return open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

/* @at is what is to be executed: as @path, or for the last of @scripts. */
static int enter_program(struct rewrite *rw, struct task *task, struct user_regs_struct *regs,
	int path_arg, const struct view_place *at, struct scripts *scripts, const char *path)
{
	_cleanup_place_ struct view_place in = VIEW_PLACE_INIT;
	struct script *s = &scripts->all[scripts->n];
	_cleanup_close_ int fd = open_program(at);
	char host[PATH_MAX], named[PATH_MAX];
	int r = may_execute(rw, at, path);

	if (r < 0)
		return r;
	/*
	 * With a root of its own the kernel would take the host's loader for one that can't be
	 * read.
	 */
	if (fd < 0 && rw->view->rooted && at->fd >= 0 && S_ISREG(at->mode))
		return -EACCES;
	if (fd >= 0 && read_script(fd, s)) {
		if (scripts->n == MAX_SCRIPTS)
			return -ELOOP;
		r = view_find_place(rw, task, AT_FDCWD, s->interpreter, 0, &in);
		if (r < 0 && rw->view->rooted)
			return r;
		if (r == 0 && in.fd >= 0) {
			scripts->n++;
			return enter_program(rw, task, regs, path_arg, &in, scripts, path);
		}
	}
	r = find_program(rw, task, at, fd, host);
	if (r == 0)
		r = view_program_named(rw->view->programs, host, last_of(path), named);
	if (r < 0)
		return r;
	lengthen(named, strlen(path));
	return put_program(rw, task, regs, path_arg, scripts, named, path);
}

static int enter_exec(struct rewrite *rw, struct task *task, struct user_regs_struct *regs,
	int dirfd, int path_arg)
{
	_cleanup_place_ struct view_place at = VIEW_PLACE_INIT;
	struct scripts scripts; /* 26 KB: not all set to 0 */
	char path[PATH_MAX];
	int r;

	if (view_peek_path(task, *view_arg(regs, path_arg), path) < 0)
		return 1;
	scripts.n = 0;
	r = view_find_place(rw, task, dirfd, path, 0, &at);
	if (r == 1)
		return may_execute_outside(rw, task, dirfd, path);
	return r != 0 ? r : enter_program(rw, task, regs, path_arg, &at, &scripts, path);
}

/* Its mutexes are to be given up by it. */
static int with_mutexes(struct task *task, int r)
{
	if ((r != 0 && r != 1) || !robust_before_exec(task))
		return r;
	task->call.extra = true;
	return 0;
}

int view_enter_exec(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return with_mutexes(task, enter_exec(rw, task, regs, AT_FDCWD, 0));
}

/* By a descriptor alone, of a program that may have no name. */
static int enter_fexec(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	_cleanup_place_ struct view_place at = VIEW_PLACE_INIT;
	struct scripts scripts; /* 26 KB: not all set to 0 */
	_cleanup_close_ int fd = -1;
	char text[48], loader[PATH_MAX];
	struct stat st;

	scripts.n = 0;
	snprintf(text, sizeof(text), "/proc/%d/fd/%d", task->host, (int)regs->rdi);
	at.fd = open(text, O_PATH | O_CLOEXEC);
	if (at.fd < 0 || fstat(at.fd, &st) < 0)
		return 1;
	at.mode = st.st_mode & S_IFMT;
	fd = open_program(&at);
	/* What needs neither loader nor interpreter the kernel can execute by itself. */
	if (fd >= 0 && view_program_loader(fd, loader) == 0 && !read_script(fd, scripts.all))
		return 1;
	snprintf(text, sizeof(text), "/dev/fd/%d", (int)regs->rdi);
	return enter_program(rw, task, regs, 1, &at, &scripts, text);
}

int view_enter_execat(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	char first;

	if (rw->view->rooted && (int)regs->r8 & AT_EMPTY_PATH && (int)regs->rdi >= 0 &&
		view_peek(task, regs->rsi, &first, 1) == 0 && !first)
		return with_mutexes(task, enter_fexec(rw, task, regs));
	return with_mutexes(task, enter_exec(rw, task, regs, (int)regs->rdi, 1));
}

/* It has failed. */
void view_leave_exec(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	view_take_back(rw, task, regs);
	if (task->call.extra)
		robust_no_exec(task);
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

size_t view_read_vector(
	const struct task *task, uint64_t at, size_t width, struct view_auxiliary ret[VIEW_VECTOR])
{
	char some[PAGE_SIZE];
	size_t have = 0; /* words */

	while (have < (size_t)2 * VIEW_VECTOR) {
		/* The end of a page may be the end of the stack. */
		size_t n = MIN((PAGE_SIZE - at % PAGE_SIZE) / width, 2 * VIEW_VECTOR - have);

		if (!n || view_peek(task, at, some, width * n) < 0)
			break;
		for (size_t k = 0; k < n; k++, have++) {
			struct view_auxiliary *one = &ret[have / 2];
			uint64_t word = 0;

			memcpy(&word, some + width * k, width);
			*(have % 2 ? &one->value : &one->sort) = word;
			if (have % 2 && one->sort == AT_NULL)
				return have / 2;
		}
		at += width * n;
	}
	return have / 2;
}

static void replace_in_vector(
	const struct task *task, const struct view_scratch *s, uint64_t at, size_t width)
{
	struct view_auxiliary vector[VIEW_VECTOR];
	size_t n = view_read_vector(task, at, width, vector);

	for (size_t i = 0; i < n; i++)
		if (vector[i].sort == AT_EXECFN)
			replace(task, s, vector[i].value);
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

uint64_t view_vector(const struct task *task, size_t *ret_width)
{
	struct user_regs_struct regs;
	uint64_t n = 0;

	if (ptrace(PTRACE_GETREGS, task->host, 0, &regs) < 0)
		return 0;
	*ret_width = compat_is_code(&regs) ? 4 : 8;
	if (peek_pointer(task, regs.rsp, *ret_width, &n) < 0)
		return 0;
	return behind_environment(task, regs.rsp + *ret_width * (n + 2), *ret_width);
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

bool view_may_run(struct rewrite *rw, const struct task *task)
{
	struct iovec local = {&(char){0}, 1}, nowhere = {NULL, 1};

	/* Who may is told of the address that nothing is there. */
	if (!rw->view || rw->trusting ||
		process_vm_readv(task->host, &local, 1, &nowhere, 1, 0) >= 0 || errno != EPERM)
		return true;
	log_warn("process %d has executed what may not be read: killed, for its paths could not be "
		 "replaced",
		numbers_virtual(rw->tasks.numbers, task->tgid));
	return false;
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

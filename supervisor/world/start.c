// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A child of pid 1 tells where it failed through a pipe that a successful exec closes.  Until its
 * exec it is a copy of pid 1, not dumpable and thus out of the session's reach.
 *
 * The session's own capabilities need no dropping by hand: execve(2) gives a uid other than 0 none,
 * since nothing is ambient.  Root inside gets all, over the session's namespaces only.
 *
 * A seed must leave the memory of pid 1 behind: that belongs to the host's user namespace, and a
 * task restored into it that says PR_SET_DUMPABLE 0 (ssh-agent does) could never be frozen again.
 * So it execs an ELF file of 192 bytes, made in a memfd, whose program is pause() for ever.
 */
#include "supervisor/world/start.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "supervisor/world/init_protocol.h"
#include "supervisor/world/starter.h"

#define SEED_TRIES   100
#define SEED_NAP_US  1000
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

/* The arguments of a request, unpacked in the child. */
struct strings {
	char **argv, **envp;
	const char *cwd;
};

static int unpack(const struct init_request *request, int memfd, struct strings *ret)
{
	size_t n = (size_t)request->n_args + request->n_env + 1;
	char **v = calloc(n + 2, sizeof(*v));
	char *p, *end;

	if (!v || !request->size)
		return -EINVAL;
	p = mmap(NULL, request->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, memfd, 0);
	if (p == MAP_FAILED)
		return -errno;
	end = p + request->size;
	ret->argv = v;
	ret->envp = v + request->n_args + 1;
	for (size_t i = 0; i < n && p < end; i++) {
		if (i < request->n_args)
			ret->argv[i] = p;
		else if (i + 1 < n)
			ret->envp[i - request->n_args] = p;
		else
			ret->cwd = p;
		p = memchr(p, '\0', (size_t)(end - p));
		if (!p++)
			return -EINVAL;
	}
	return ret->cwd && request->n_args ? 0 : -EINVAL;
}

static const char *env_get(char **envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

/* A text file without #!: as execvp(3) does. */
static int exec_script(const char *path, const struct strings *s)
{
	size_t n = 0;
	const char **v;

	while (s->argv[n])
		n++;
	v = calloc(n + 2, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v[0] = "/bin/sh";
	v[1] = path;
	memcpy(v + 2, s->argv + 1, n * sizeof(*v));
	execve(v[0], (char **)v, s->envp);
	return -errno;
}

static int exec_at(const char *path, const struct strings *s)
{
	execve(path, s->argv, s->envp);
	return errno == ENOEXEC ? exec_script(path, s) : -errno;
}

/*
 * What is to be tried, by the PATH that the program is given, not ours; NULL ends it.  NULL: no
 * memory.
 */
static char **paths_of(const struct strings *s)
{
	const char *dirs = env_get(s->envp, "PATH"), *end;
	char **paths, *one;
	size_t n = 0;

	dirs = dirs ? dirs : DEFAULT_PATH;
	paths = calloc(strlen(dirs) + 2, sizeof(*paths));
	if (!paths || !*s->argv[0])
		return paths;
	if (strchr(s->argv[0], '/')) {
		paths[0] = s->argv[0];
		return paths;
	}
	do {
		end = strchrnul(dirs, ':');
		if (asprintf(&one, "%.*s%s%s", (int)(end - dirs), dirs, end > dirs ? "/" : "",
			    s->argv[0]) < 0)
			return NULL;
		paths[n++] = one;
		dirs = end + 1;
	} while (*end);
	return paths;
}

static int exec_search(char *const *paths, const struct strings *s)
{
	int r = -ENOENT;

	for (; *paths; paths++) {
		int tried = exec_at(*paths, s);

		if (tried == -EACCES || (r == -ENOENT && tried != -ENOTDIR))
			r = tried;
		if (tried != -ENOENT && tried != -ENOTDIR && tried != -EACCES)
			break;
	}
	return r;
}

/*
 * Pid 1 may make no call that is notified: the supervisor, who would have to answer, is waiting for
 * it.  For a root inside, openat(2) for writing is one; openat2(2) is none.
 */
static int open_unasked(const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/*
 * A terminal that nobody looks at yet (run -dt) has the size that terminals are taken to have:
 * programs that believe in 0 rows and columns fail at the first line that they draw.
 */
static int open_tty(const struct init_request *request, int *ret_master)
{
	bool known = request->rows && request->cols;
	struct winsize size = {
		.ws_row = known ? request->rows : 24, .ws_col = known ? request->cols : 80};
	_cleanup_close_ int master = open_unasked("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int unlock = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 ||
		ioctl(master, TIOCSWINSZ, &size) < 0)
		return -errno;
	*ret_master = take_fd(&master);
	return 0;
}

/* In the child: 0 1 2. */
static int set_stdio(const struct init_request *request, const int *fds, size_t n_fds, int master)
{
	if (request->tty) {
		int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);

		if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
			return -errno;
		for (int i = 0; i < 3; i++)
			if (dup2(slave, i) < 0)
				return -errno;
		return slave > 2 ? (close(slave), 0) : 0;
	}
	/* Those not given stay pid 1's /dev/null. */
	for (size_t i = 0; i < 3 && i < n_fds; i++)
		if (dup2(fds[i], (int)i) < 0)
			return -errno;
	return 0;
}

static void drop_inheritable(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return;
	data[0].inheritable = data[1].inheritable = 0;
	syscall(SYS_capset, &header, data);
}

static enum init_stage child(const struct init_request *request, const int *fds, size_t n_fds,
	int master, int *ret_error, struct strings *strings)
{
	setsid();
	*ret_error = unpack(request, fds[0], strings);
	if (*ret_error < 0)
		return INIT_FORK;
	*ret_error = set_stdio(request, fds + 1, n_fds - 1, master);
	if (*ret_error < 0)
		return INIT_TTY;
	umask(request->umask);
	drop_inheritable();
	syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
	return INIT_DONE;
}

/* The rest of its life as a child of ours; @status is where to tell why it has failed. */
static enum init_stage execute(const struct init_request *request, const struct strings *s, bool asked,
	int status, int *ret_error)
{
	char **paths = paths_of(s);

	if (!paths) {
		*ret_error = -ENOMEM;
		return INIT_FORK;
	}
	if (asked) {
		*ret_error = starter_exec(&(struct starter){.argv = s->argv,
			.envp = s->envp,
			.cwd = request->cwd ? s->cwd : NULL,
			.paths = paths,
			.status = status});
		return INIT_FORK;
	}
	if (request->cwd && chdir(s->cwd) < 0) {
		*ret_error = -errno;
		return INIT_CWD;
	}
	*ret_error = exec_search(paths, s);
	return INIT_EXEC;
}

void start_process(const struct init_request *request, bool asked, const int *fds, size_t n_fds,
	const sigset_t *mask, struct init_reply *reply, int *ret_master)
{
	_cleanup_close_ int master = -1;
	struct strings strings = {0};
	int status[2], error = 0;
	pid_t pid;

	*reply = (struct init_reply){.stage = INIT_TTY};
	if (request->tty)
		error = open_tty(request, &master);
	if (error < 0) {
		reply->error = -error;
		return;
	}
	reply->stage = INIT_FORK;
	if (pipe2(status, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		reply->error = errno;
		return;
	}
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, mask, NULL);
		reply->stage = child(request, fds, n_fds, master, &error, &strings);
		if (reply->stage == INIT_DONE)
			reply->stage = execute(request, &strings, asked, status[1], &error);
		reply->error = -error;
		(void)!write(status[1], reply, sizeof(*reply));
		_exit(127);
	}
	close(status[1]);
	if (io_read_full(status[0], reply, sizeof(*reply)) == sizeof(*reply)) {
		waitpid(pid, NULL, 0); /* never ran: not an exit to report */
		reply->vpid = 0;
	} else {
		*reply = (struct init_reply){.stage = INIT_DONE, .vpid = pid};
		*ret_master = take_fd(&master);
	}
	close(status[0]);
}

/* mov $SYS_pause,%eax; syscall; jmp back */
static const uint8_t seed_code[] = {0xb8, 0x22, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xeb, 0xf7};
#define SEED_ADDRESS 0x10000

struct seed_elf {
	Elf64_Ehdr header;
	Elf64_Phdr load, stack;
	uint8_t code[sizeof(seed_code)];
};

static int seed_program(void)
{
	struct seed_elf elf = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				   EV_CURRENT},
			.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_entry = SEED_ADDRESS + offsetof(struct seed_elf, code),
			.e_phoff = offsetof(struct seed_elf, load),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 2},
		.load = {.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_vaddr = SEED_ADDRESS,
			.p_filesz = sizeof(elf),
			.p_memsz = sizeof(elf),
			.p_align = PAGE_SIZE},
		.stack = {.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W},
	};
	int fd = memfd_create("podrun-seed", MFD_CLOEXEC);

	memcpy(elf.code, seed_code, sizeof(seed_code));
	if (fd >= 0 && io_write_full(fd, &elf, sizeof(elf)) < 0)
		fd = close_fd(fd);
	return fd;
}

/* Makes all permitted capabilities ambient, so that they survive the exec of another uid than 0. */
static void keep_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return;
	data[0].inheritable = data[0].permitted;
	data[1].inheritable = data[1].permitted;
	syscall(SYS_capset, &header, data);
	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			break;
}

static _Noreturn void seed_child(const sigset_t *mask)
{
	static char *const none[] = {NULL};
	static char *const argv[] = {(char *)"podrun-seed", NULL};
	int fd = seed_program();

	keep_capabilities();
	sigprocmask(SIG_SETMASK, mask, NULL);
	syscall(SYS_close_range, 0, ~0U, CLOSE_RANGE_CLOEXEC);
	syscall(SYS_execveat, fd, "", argv, none, AT_EMPTY_PATH);
	_exit(127);
}

/*
 * The number is chosen through the namespace's last one, not with clone3(set_tid): clone3 is a
 * notified call (see open_unasked).
 */
/* The rewriter gives it the number, and has no capability over what is not dumpable. */
static int seed_unnamed(const sigset_t *mask, struct init_reply *reply)
{
	reply->vpid = fork();
	if (reply->vpid == 0) {
		prctl(PR_SET_DUMPABLE, 1);
		seed_child(mask);
	}
	return reply->vpid < 0 ? -errno : 0;
}

static int seed_once(pid_t vpid, const sigset_t *mask, struct init_reply *reply)
{
	_cleanup_close_ int fd = open_unasked("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	char last[16];
	int n = snprintf(last, sizeof(last), "%d", vpid - 1);

	if (fd < 0 || write(fd, last, (size_t)n) != n)
		return -errno;
	reply->vpid = fork();
	if (reply->vpid == 0)
		seed_child(mask);
	if (reply->vpid < 0)
		return -errno;
	if (reply->vpid == vpid)
		return 0;
	kill(reply->vpid, SIGKILL);
	waitpid(reply->vpid, NULL, 0);
	return -EEXIST;
}

/* A number nobody has any more may be taken for a moment, until the kernel has put all of its last
 * owner away. */
void start_seed(const struct init_request *request, const sigset_t *mask, bool rewritten,
	struct init_reply *reply)
{
	int r = rewritten ? seed_unnamed(mask, reply) : -EEXIST;

	for (int i = 0; r == -EEXIST && i < SEED_TRIES; i++) {
		if (i && kill(request->vpid, 0) == 0)
			break;
		if (i)
			usleep(SEED_NAP_US);
		r = seed_once(request->vpid, mask, reply);
	}
	if (r < 0)
		*reply = (struct init_reply){.stage = INIT_FORK, .error = -r};
	else
		reply->stage = INIT_DONE;
}

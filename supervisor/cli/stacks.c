// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun stacks: unwinds every thread of a session with libunwind-ptrace.
 *
 * Threads are seized and interrupted one process at a time, unwound, and let go, so each stands
 * still for some milliseconds; a thread that can't be stopped (it is traced by somebody else, or
 * has ended) gets a line that says so.
 */
#include <inttypes.h>
#include <libunwind-ptrace.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"
#include "supervisor/client.h"

#define MAX_FRAMES 256

struct stacks_options {
	bool json;
};

static const struct cli_option options[] = {
	{"json", 0, NULL, "as JSON", CLI_FLAG, offsetof(struct stacks_options, json)},
};

/* One frame as an object: address, and where the unwinder knows it, function and offset. */
static json_t *frame_of(unw_cursor_t *cursor)
{
	unw_word_t ip = 0, offset = 0;
	char name[256], address[32];
	json_t *j = json_object();

	unw_get_reg(cursor, UNW_REG_IP, &ip);
	snprintf(address, sizeof(address), "0x%" PRIx64, (uint64_t)ip);
	json_object_set_new(j, "address", json_string(address));
	if (unw_get_proc_name(cursor, name, sizeof(name), &offset) == 0) {
		json_object_set_new(j, "function", json_text(name));
		json_object_set_new(j, "offset", json_integer((json_int_t)offset));
	}
	return j;
}

static json_t *unwind(pid_t tid)
{
	unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
	void *upt = _UPT_create(tid);
	json_t *frames = json_array();
	unw_cursor_t cursor;

	if (space && upt && unw_init_remote(&cursor, space, upt) == 0)
		for (int i = 0; i < MAX_FRAMES; i++) {
			json_array_append_new(frames, frame_of(&cursor));
			if (unw_step(&cursor) <= 0)
				break;
		}
	if (upt)
		_UPT_destroy(upt);
	if (space)
		unw_destroy_addr_space(space);
	return frames;
}

/* Stops @tid; 0 or negative errno. */
static int stop(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0)
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) < 0)
		return -errno;
	return WIFSTOPPED(status) ? 0 : -ESRCH;
}

/* The number of thread @tid as the session sees it. */
static pid_t virtual_tid(int proc_fd, pid_t pid, pid_t tid)
{
	struct proc_status st;
	struct err ignored = {0};

	if (proc_read_task_status(proc_fd, pid, tid, &st, &ignored) < 0 || !st.ns_depth)
		return tid;
	return st.ns_pid[st.ns_depth - 1];
}

static json_t *thread_of(int proc_fd, const Pb__Process *p, pid_t tid)
{
	json_t *j = json_pack("{s:i, s:i, s:o}", "pid", (int)p->vpid, "tid",
		(int)virtual_tid(proc_fd, p->pid, tid), "comm", json_text(p->comm));
	int r = stop(tid);

	if (r == 0)
		json_object_set_new(j, "frames", unwind(tid));
	else
		json_object_set_new(j, "error", json_string(strerror(-r)));
	ptrace(PTRACE_DETACH, tid, 0, 0);
	return j;
}

static void print_thread(json_t *j)
{
	json_t *frame, *error = json_object_get(j, "error");
	size_t i;

	printf("task %lld thread %lld (%s)\n", (long long)json_integer_value(json_object_get(j, "pid")),
		(long long)json_integer_value(json_object_get(j, "tid")),
		json_string_value(json_object_get(j, "comm")));
	if (error)
		printf("  cannot be stopped: %s\n", json_string_value(error));
	json_array_foreach(json_object_get(j, "frames"), i, frame) {
		const char *function = json_string_value(json_object_get(frame, "function"));

		printf("  #%-3zu %s", i, json_string_value(json_object_get(frame, "address")));
		if (function)
			printf(" %s+%lld", function,
				(long long)json_integer_value(json_object_get(frame, "offset")));
		putchar('\n');
	}
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct stacks_options *o = opts;
	_cleanup_close_ int proc_fd = proc_open(e);
	struct client_session s;
	json_t *all = json_array();
	json_t *thread;
	size_t i;

	if (proc_fd < 0 || client_look(&s, &c->paths, argv[0], e) < 0)
		return e->error;
	if (strcmp(s.state, "running") != 0)
		err_set(e, ERR_STATE, -EBUSY, "'%s' is %s: only a running session has stacks to walk",
			argv[0], s.state);
	for (size_t k = 0; !err_is(e) && k < s.info->information->n_processes; k++) {
		const Pb__Process *p = s.info->information->processes[k];
		_cleanup_free_ int *tids = NULL;
		struct err gone = {0};
		char task[32];
		size_t n = 0;

		snprintf(task, sizeof(task), "%d/task", p->pid);
		if (proc_list_numbers(proc_fd, task, &tids, &n, &gone) < 0)
			continue;
		for (size_t t = 0; t < n; t++)
			json_array_append_new(all, thread_of(proc_fd, p, tids[t]));
	}
	client_session_fini(&s);
	if (!err_is(e) && o->json) {
		json_print(all);
		return 0;
	}
	json_array_foreach(all, i, thread)
		print_thread(thread);
	json_decref(all);
	return e->error;
}

const struct cli_command cli_stacks = {
	.name = "stacks",
	.usage = "[--json] [NAME]",
	.help = "where every thread of a session stands",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct stacks_options),
	.group = CLI_LOOK,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.run = run,
};

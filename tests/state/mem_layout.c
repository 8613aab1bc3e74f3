// SPDX-License-Identifier: GPL-2.0-or-later
/* What /proc/self says of a program: executable, arguments, environment, auxiliary vector. */
#include <fcntl.h>
#include <sys/auxv.h>

#include "tests/state/maps.h"

struct shot {
	char exe[512], cmdline[1024], environ[8192], auxv[1024], stat[1024];
};

static void slurp(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY);

	STATE_CHECK(fd >= 0 && read(fd, to, size) >= 0);
	close(fd);
}

static void take(struct shot *s)
{
	char stat[1024] = "", *p;
	int field = 2;

	memset(s, 0, sizeof(*s));
	STATE_CHECK(readlink("/proc/self/exe", s->exe, sizeof(s->exe) - 1) > 0);
	slurp("/proc/self/cmdline", s->cmdline, sizeof(s->cmdline));
	slurp("/proc/self/environ", s->environ, sizeof(s->environ));
	slurp("/proc/self/auxv", s->auxv, sizeof(s->auxv));
	slurp("/proc/self/stat", stat, sizeof(stat) - 1);
	/* startcode endcode startstack are 26 to 28; the data, brk, arg and env 45 to 51 */
	for (p = strtok(strrchr(stat, ')') + 1, " "); p; p = strtok(NULL, " "))
		if (++field >= 26 && (field <= 28 || (field >= 45 && field <= 51))) {
			strcat(s->stat, p);
			strcat(s->stat, " ");
		}
}

int main(int argc, char **argv)
{
	static struct shot before, after;

	take(&before);
	state_ready(argc, argv);
	take(&after);
	STATE_CHECK(!strcmp(before.exe, after.exe));
	STATE_CHECK(!memcmp(before.cmdline, after.cmdline, sizeof(after.cmdline)));
	STATE_CHECK(!memcmp(before.environ, after.environ, sizeof(after.environ)));
	STATE_CHECK(!memcmp(before.auxv, after.auxv, sizeof(after.auxv)));
	STATE_CHECK(!strcmp(before.stat, after.stat));
	STATE_CHECK(getauxval(AT_PAGESZ) == PAGE);
	return state_ok();
}

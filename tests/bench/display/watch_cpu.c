// SPDX-License-Identifier: GPL-2.0-or-later
#include "watch_cpu.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static double task_ms(int pid, const char *task)
{
	unsigned long long ns = 0;
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, task);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	fclose(f);
	return (double)ns / 1e6;
}

double watch_cpu_ms(const char *pids)
{
	double sum = 0;
	char *end;

	for (; *pids; pids = *end == ',' ? end + 1 : end) {
		int pid = (int)strtol(pids, &end, 10);
		struct dirent *task;
		char path[64];
		DIR *d;

		if (end == pids)
			break;
		snprintf(path, sizeof(path), "/proc/%d/task", pid);
		d = opendir(path);
		while (d && (task = readdir(d)) != NULL)
			if (task->d_name[0] != '.')
				sum += task_ms(pid, task->d_name);
		if (d)
			closedir(d);
	}
	return sum;
}

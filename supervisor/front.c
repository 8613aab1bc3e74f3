// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/front.h"

#include <sys/utsname.h>
#include <time.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/job.h"
#include "supervisor/session.h"

void front_describe(struct session *s, Pb__World *w, Pb__Job *jobs, Pb__Job **list, size_t max,
	struct utsname *uts)
{
	struct timespec now;

	uname(uts);
	clock_gettime(CLOCK_REALTIME, &now);
	pb__world__init(w);
	w->monotonic_ns = session_monotonic_ns(s);
	w->boottime_ns = session_boottime_ns(s);
	w->realtime_ns = io_ns_of(now);
	w->host = uts->nodename;
	w->kernel = uts->release;
	w->jobs = list;
	for (struct job *j = s->jobs; j && w->n_jobs < max; j = j->next) {
		job_describe(j, &jobs[w->n_jobs]);
		list[w->n_jobs] = &jobs[w->n_jobs];
		w->n_jobs++;
	}
}

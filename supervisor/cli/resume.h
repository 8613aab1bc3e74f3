/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * resume - finding and resuming images, for resume and clone.
 */
#ifndef SUPERVISOR_CLI_RESUME_H
#define SUPERVISOR_CLI_RESUME_H

#include <stdbool.h>

struct cli;
struct err;
struct Pb__Control;
struct Pb__ResumeRequest;

/*
 * Opens the image that @what means: `-`, a suspended session's name, NAME@N, or a file.
 * *ret_path is freed by the caller and NULL for a stream; *ret_name is set (and freed by the
 * caller) when @what was a name; *ret_own when the image lies in podrun's own place.
 */
int resume_open(struct cli *c, const char *what, char **ret_path, char **ret_name, bool *ret_own,
	struct err *e);

/* Resumes @image without attaching; *ret is the supervisor's `started`, for message_free. */
int resume_detached(struct Pb__ResumeRequest *q, int image, struct Pb__Control **ret, struct err *e);

#endif

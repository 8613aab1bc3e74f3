// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in outside.h. */
#include "ckpt/kinds/outside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/survey/survey.h"

static const char *const names[] = {
	[CKPT_OUTSIDE_REFUSE] = "refuse",
	[CKPT_OUTSIDE_CLOSE] = "close",
	[CKPT_OUTSIDE_RESET] = "reset",
};

int ckpt_outside_parse(const char *text, enum ckpt_outside *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*ret = (enum ckpt_outside)i;
		return 0;
	}
	return -EINVAL;
}

int ckpt_outside(const struct ckpt_dump *d, struct err *e, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (d->options.outside != CKPT_OUTSIDE_REFUSE)
		return 0;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(e, ERR_UNFREEZABLE, -EXDEV, "%s", text);
	return err_hint(e, "run both programs inside the session, or close it first; "
			   "--outside=close lets it end at the resume");
}

bool ckpt_outside_resets(const struct ckpt_dump *d)
{
	return d->options.outside == CKPT_OUTSIDE_RESET;
}

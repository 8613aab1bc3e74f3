// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in preface.h. */
#include "base/preface.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"

#define TEXT_MAX (1u << 20) /* bytes */

/* One byte at a time behind the first ones: nothing behind the number may be taken. */
int preface_skip(int in, uint8_t ret[PREFACE_NUMBER])
{
	if (io_read_full(in, ret, PREFACE_NUMBER) != PREFACE_NUMBER)
		return -ECONNRESET;
	for (unsigned n = 0; n < TEXT_MAX; n++) {
		if (ret[0] && !ret[1] && !ret[2] && !ret[3])
			return 0;
		memmove(ret, ret + 1, PREFACE_NUMBER - 1);
		if (io_read_full(in, ret + PREFACE_NUMBER - 1, 1) != 1)
			break;
	}
	return -ECONNRESET;
}

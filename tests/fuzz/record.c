// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as the record of any kind, shown: what `podrun image show` does with an image of which
 * nothing is known.  The first byte of the input is the kind's number, the rest its record; 0 is
 * every kind in turn.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "ckpt/kind.h"
#include "tests/fuzz/fuzz.h"

static void show(const struct ckpt_kind *kind, const uint8_t *body, size_t size)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *out;

	if (!kind || !kind->show)
		return;
	out = open_memstream(&text, &len);
	if (!out)
		abort();
	kind->show(body, size, false, out);
	fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0])
		show(ckpt_kind_by_number(data[0]), data + 1, size - 1);
	for (size_t i = 0; !data[0] && i < ckpt_n_kinds; i++)
		show(ckpt_kinds[i], data + 1, size - 1);
	return 0;
}

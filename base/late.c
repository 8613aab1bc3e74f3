// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/late.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"

int late_load(const char *library, const struct late_symbol *symbols, size_t n, struct err *e)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *address;

	/* dlerror() names the library, or the symbol. */
	if (!handle)
		return err_set(e, ERR_FAILED, -ENOENT, "cannot load a library: %s", dlerror());
	for (size_t i = 0; i < n; i++)
		if (!dlsym(handle, symbols[i].name)) {
			err_set(e, ERR_FAILED, -ENOENT, "cannot use a library: %s", dlerror());
			dlclose(handle);
			return -ENOENT;
		}
	for (size_t i = 0; i < n; i++) {
		address = dlsym(handle, symbols[i].name);
		memcpy(symbols[i].to, &address, sizeof(address));
	}
	return 0;
}

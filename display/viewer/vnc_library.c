// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/viewer/vnc_library.h"

#include "base/base.h"

static struct display_vnc_library lib;
const struct display_vnc_library *const display_vnc_lib = &lib;

int display_vnc_load(struct err *e)
{
	const struct late_symbol symbols[] = {
		LATE(lib, rfbCheckPasswordByList),
		LATE(lib, rfbDefaultPtrAddEvent),
		LATE(lib, rfbErr),
		LATE(lib, rfbGetScreen),
		LATE(lib, rfbInitServer),
		LATE(lib, rfbLog),
		LATE(lib, rfbMarkRectAsModified),
		LATE(lib, rfbNewFramebuffer),
		LATE(lib, rfbProcessEvents),
		LATE(lib, rfbRandomBytes),
		LATE(lib, rfbSendServerCutText),
		LATE(lib, rfbSendServerCutTextUTF8),
		LATE(lib, rfbSetCursor),
	};

	return late_load("libvncserver.so.1", symbols, ARRAY_SIZE(symbols), e);
}

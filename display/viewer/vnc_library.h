/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vnc_library - libvncserver, loaded by who needs it (base/late.h). */
#ifndef DISPLAY_VIEWER_VNC_LIBRARY_H
#define DISPLAY_VIEWER_VNC_LIBRARY_H

#include <rfb/rfb.h>

struct err;

struct display_vnc_library {
	typeof(&rfbCheckPasswordByList) rfbCheckPasswordByList;
	typeof(&rfbDefaultPtrAddEvent) rfbDefaultPtrAddEvent;
	typeof(&rfbErr) rfbErr;
	typeof(&rfbGetScreen) rfbGetScreen;
	typeof(&rfbInitServer) rfbInitServer;
	typeof(&rfbLog) rfbLog;
	typeof(&rfbMarkRectAsModified) rfbMarkRectAsModified;
	typeof(&rfbNewFramebuffer) rfbNewFramebuffer;
	typeof(&rfbProcessEvents) rfbProcessEvents;
	typeof(&rfbRandomBytes) rfbRandomBytes;
	typeof(&rfbSendServerCutText) rfbSendServerCutText;
	typeof(&rfbSendServerCutTextUTF8) rfbSendServerCutTextUTF8;
	typeof(&rfbSetCursor) rfbSetCursor;
};

/* Its functions, once it is loaded. */
extern const struct display_vnc_library *const display_vnc_lib;

/* Loads it: once, before there are clients.  ERR_FAILED. */
int display_vnc_load(struct err *e);

#endif

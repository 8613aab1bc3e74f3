/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * display - a session's screen, shown elsewhere.  The room's public header.
 *
 * A session with a display has an X server of its own inside.  The *display server* stands outside,
 * sees that X server's picture and tells every *viewer* how to draw it, with few and short
 * commands, the shortest first; viewers send keys and pointer back.
 *
 *      session               display server                             viewer
 *      programs - X server = source - update - queue - encode -- wire -- decode - canvas
 *                   picture,                   ^ one for each viewer
 *                   damage
 *
 * What the layers are, from the bottom, each including only what is above it in this list:
 *
 *      pixels       rectangles, frames
 *      wire         messages as bytes, both directions (proto/SPEC.md)
 *      codec/       pixels to bytes and back: lz4, zstd, JPEG, palettes, I420, VP8
 *      command      what is to be drawn, and its encoding
 *      change       where two frames differ
 *      move         what has only changed its place
 *      cover        what windows hide, kept by viewers
 *      classify     the rest as commands
 *      update       all of them, and the shadow
 *      video        where a film plays
 *      film         frames of video
 *      notice       what viewers are told of the session
 *      text         what is copied, as others write it
 *      decode       the other end
 *      record       its bytes in a file
 *      x/           the X server of a session as a source
 *      queue        what one viewer has yet to be sent, the shortest first
 *      reel         what one viewer has of the films
 *      scale        a smaller picture
 *      pace         how much may be on its way to a viewer
 *      source       what is shown, and who takes input; memory is one for tests
 *      files        a viewer's files into the session, and from there
 *      keys         which of a viewer's are down
 *      peer         the connection to a viewer
 *      server       a source, and all peers
 *      sound        what is played in a session
 *      serve        the process
 *      viewer/      a viewer without a window
 *      web/         the page for browsers (viewer/web/): served, and its websockets relayed
 */
#ifndef DISPLAY_DISPLAY_H
#define DISPLAY_DISPLAY_H

#include "display/decode.h"
#include "display/notice.h"
#include "display/record.h"
#include "display/serve.h"
#include "display/sound.h"
#include "display/update.h"
#include "display/viewer/capture.h"
#include "display/viewer/greet.h"
#include "display/viewer/picture.h"
#include "display/viewer/vnc.h"
#include "display/viewer/vnc_listen.h"
#include "display/web/web.h"
#include "display/wire.h"
#include "display/x/x.h"

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * It has just what is needed: one sink, which writes into a FIFO whether somebody reads that or not
 * and keeps time by the clock; no hardware, no D-Bus, no cookie, no memory shared with its clients
 * - who may reach the socket is decided by the directory it lies in.  With nothing to play it
 * sleeps.
 *
 * The socket is made last.  Once it answers, the FIFO is there, too.
 */
#include "supervisor/screen/sound.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/base.h"
#include "display/display.h"
#include "proto/control.pb-c.h"
#include "supervisor/screen/place.h"
#include "supervisor/session.h"

#define SOCKET "run/" SCREEN_PLACE "/pulse"

static const char script[] =
	"umask 077; d=/run/" SCREEN_PLACE "; exec 2> $d/" SCREEN_SOUND_LOG "; rm -f $d/pulse; "
	"if ! command -v pulseaudio > /dev/null; then echo there is no pulseaudio >&2; exit 1; fi; "
	"unset DISPLAY PULSE_SERVER PULSE_SINK PULSE_SOURCE PULSE_CONFIG PULSE_SCRIPT PULSE_DLPATH; "
	"export HOME=$d XDG_RUNTIME_DIR=$d PULSE_RUNTIME_PATH=$d PULSE_STATE_PATH=$d "
	"DBUS_SESSION_BUS_ADDRESS=disabled: DBUS_SYSTEM_BUS_ADDRESS=disabled:; "
	"exec pulseaudio -n --daemonize=no --use-pid-file=no --disable-shm=yes --realtime=no "
	"--high-priority=no --disallow-exit=yes --disallow-module-loading=yes --exit-idle-time=-1 "
	"--log-target=stderr --log-level=error "
	"-L \"module-pipe-sink file=/dev/shm/" DISPLAY_SOUND_FIFO
	" sink_name=display use_system_clock_for_timing=yes format=s16le rate=$1 channels=$2\" "
	"-L \"module-suspend-on-idle timeout=2\" "
	"-L \"module-native-protocol-unix socket=$d/pulse auth-anonymous=1 auth-cookie-enabled=0 "
	"srbchannel=0\"";

int screen_sound_prepare(Pb__Config *c)
{
	if (c->display->sound == PB__DISPLAY__SOUND__NONE)
		return 0;
	return screen_place_set(c, "PULSE_SERVER", strdup("PULSE_SERVER=unix:/" SOCKET));
}

int screen_sound_spawn(struct session *s, struct err *e)
{
	const Pb__Config *c = s->record->config;
	char rate[16], channels[16];
	char *const argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, (char *)"sound",
		rate, channels, NULL};
	pid_t vpid;

	snprintf(rate, sizeof(rate), "%d", DISPLAY_SOUND_RATE);
	snprintf(channels, sizeof(channels), "%d", DISPLAY_SOUND_CHANNELS);
	if (screen_place_spawn(s, argv, &vpid, e) < 0)
		return err_wrap(e, "cannot start the display's sound server");
	c->display->sound_server = vpid;
	return 0;
}

bool screen_sound_answers(const struct session *s)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	_cleanup_close_ int files = screen_place_files(s), at = -1, fd = -1;
	struct stat st;

	at = files < 0 ? -1 : screen_place_open(files, SOCKET, O_PATH);
	if (at < 0 || fstat(at, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", at);
	return fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tls - the key with which a display is served to other machines.
 *
 * It is made on first use and says nothing of its owner: whoever is given an address is given the
 * certificate's fingerprint with it, and compares that with what the browser shows.
 */
#ifndef DISPLAY_WEB_TLS_H
#define DISPLAY_WEB_TLS_H

struct err;

#define DISPLAY_FINGERPRINT 96 /* "AB:CD:...", 32 bytes, and a NUL */

struct display_tls {
	char *certificate, *key; /* paths of PEM files; freed by display_tls_fini */
	char fingerprint[DISPLAY_FINGERPRINT];
};

/* In directory @keys, made there if there is none. */
int display_tls_init(struct display_tls *t, const char *keys, struct err *e);
void display_tls_fini(struct display_tls *t);

#endif

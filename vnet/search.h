/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * search - the domains in which names without a dot are looked for, by whoever asks a gateway.
 */
#ifndef VNET_SEARCH_H
#define VNET_SEARCH_H

#define VNET_SEARCH_MAX 512 /* bytes with the NUL; domains that don't fit are left out */

/*
 * With blanks between.  The gateway of this host asks this host's name servers, and so its domains
 * are meant; a WireGuard configuration file ("wg:FILE") that says whom to ask says which are.  Of a
 * gateway on another host nothing is known, and there are none; nor if a file can't be read.
 */
void vnet_search(const char *gateway, char ret[VNET_SEARCH_MAX]);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text - strings from a session or an image, on their way to a person. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdio.h>

/*
 * Prints @s without anything a terminal would obey: control characters (C0, DEL, C1) and bytes
 * that are no UTF-8 become '?'.  NULL prints nothing.
 */
void text_put(FILE *out, const char *s);
/* The same in place, for a cell of a table: what is behind the first @most characters is cut off. */
void text_tame(char *s, size_t most);
/* The same as the inside of a JSON string (RFC 8259): control characters become \u00XX, bytes
 * that are no UTF-8 U+FFFD. */
void text_put_json(FILE *out, const char *s);
/* A copy in which each byte that is no UTF-8 is U+FFFD; NULL without memory. */
char *text_utf8(const char *s);
/* Prints a whole JSON text that is UTF-8: control characters that JSON allows become \u00XX. */
void text_put_json_document(FILE *out, const char *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json - sessions and reports as --json shows them.  jansson is used here and by the commands
 * that put something around it.
 */
#ifndef SUPERVISOR_CLI_JSON_H
#define SUPERVISOR_CLI_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct client_session;
struct Pb__Report;
struct Pb__Process;

/* A short object for lists, or with @all everything that is known.  Bytes that are no UTF-8 are
 * replaced. */
json_t *json_of_session(const struct client_session *s, bool all);
json_t *json_of_process(const struct Pb__Process *p);
json_t *json_of_report(const struct Pb__Report *r);
/* A published port.  @address: outside, "" for all of the host's. */
json_t *json_of_port(const char *address, uint32_t host, uint32_t session, bool udp);
json_t *json_text(const char *s);
json_t *json_hex(const unsigned char *data, size_t n);
/* Prints it, indented, with a newline, and drops the reference. */
void json_print(json_t *j);
void json_print_to(json_t *j, FILE *out);

#endif

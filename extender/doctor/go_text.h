/*
 * go_text: texts as kube-scheduler, a Go program, reads them.
 *
 * Threads: any.
 */
#ifndef EXTENDER_DOCTOR_GO_TEXT_H
#define EXTENDER_DOCTOR_GO_TEXT_H

#include <stdint.h>

#include "config/base/arena.h"

/* Reads a duration as time.ParseDuration: "5s", "1m30s", "1.5s", "-1s", "0". False if it has
 * another form. Less than a millisecond is 0. */
bool go_duration_ms(int64_t *out, struct slice text);

/* Whether a text is a number of YAML, and which. */
bool go_number(double *out, struct slice text);

/* Whether it may be the name of an extended resource: DOMAIN/NAME, and not of kubernetes.io. */
bool go_is_extended_resource(struct slice name);

/* A URL without user and query. */
struct url {
    struct slice scheme, host; /* in small letters; an IPv6 address has no brackets */
    unsigned port;             /* that of the scheme, if the URL has none */
    struct slice path;         /* without slashes at its end; empty: the root */
};

/* Reads http://HOST[:PORT][/PATH] or the same with https. False if it has another form, or without
 * memory. Ownership: the texts are in the arena. */
bool go_url(struct url *out, struct slice text, struct arena *arena);

/* Whether a host is this machine: localhost, 127.0.0.0/8 or ::1. */
bool go_is_loopback(struct slice host);

#endif

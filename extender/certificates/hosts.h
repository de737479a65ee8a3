/*
 * hosts: the names and addresses that a server's certificate is for (subjectAltName, RFC 5280
 * 4.2.1.6): DNS names, also with `*.` in front, and IP addresses in one spelling.
 *
 * Threads: one at a time.
 */
#ifndef EXTENDER_CERTIFICATES_HOSTS_H
#define EXTENDER_CERTIFICATES_HOSTS_H

#include "config/base/error.h"

enum { HOSTS_MAX = 64, HOST_BYTES = 254 /* a DNS name has at most 253 */ };

struct hosts {
    size_t count;
    char names[HOSTS_MAX][HOST_BYTES]; /* in small letters */
};

/* Adds the name, unless it is there. Errors: ERROR_INVALID: it is no name; ERROR_TOO_BIG. */
int hosts_add(struct hosts *hosts, const char *name, struct error *err);

/* Adds an address of 4 or 16 bytes. Errors: as hosts_add. */
int hosts_add_address(struct hosts *hosts, const void *bytes, size_t size, struct error *err);

/* The bytes of an IP address: 4 or 16, or 0 if the name is a DNS name. */
size_t host_address(const char *name, unsigned char bytes[16]);

/* The first name of `wanted` that is not in hosts; NULL: all are. */
const char *hosts_missing(const struct hosts *hosts, const struct hosts *wanted);

#endif

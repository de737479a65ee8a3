/*
 * authority: makes and reads X.509 certificates in memory, with GnuTLS: an authority, and what it
 * signs for a server and for a client. No file, no network, no clock.
 *
 * Keys are ECDSA P-256; a key that is there may be of another kind. A renewed authority keeps its
 * key and its name, so that it and its old certificate each vouch for all that either has signed.
 *
 *     struct pem_pair authority = {.crt_name = "ca.crt", .key_name = "ca.key"};
 *     struct wish wish = {{now_ms() / 1000, now_ms() / 1000 + 3600}, "an authority", NULL};
 *     if (certificate_make(&authority, NULL, &wish, err) < 0)
 *         return error_wrap(err, "an authority");
 *     pem_pair_wipe(&authority);
 *
 * Errors: messages name the text by crt_name or key_name, and never contain a part of it.
 * Threads: any; a pair belongs to one.
 */
#ifndef EXTENDER_COMMANDS_CERTIFICATES_AUTHORITY_H
#define EXTENDER_COMMANDS_CERTIFICATES_AUTHORITY_H

#include <stdint.h>

#include "config/base/error.h"
#include "config/base/slice.h"

/* ---- names ---- */

enum { HOSTS_MAX = 64, HOST_BYTES = 254 /* a DNS name has at most 253 */ };

/* The names and addresses that a server's certificate is for (subjectAltName, RFC 5280 4.2.1.6):
 * DNS names, also with `*.` in front, and IP addresses in one spelling. */
struct hosts {
    size_t count;
    char names[HOSTS_MAX][HOST_BYTES]; /* in small letters */
};

/* Adds the name, unless it is there. Errors: ERROR_INVALID: it is no name; ERROR_TOO_BIG. */
int hosts_add(struct hosts *hosts, const char *name, struct error *err);

/* The first name of `wanted` that is not in hosts; NULL: all are. */
const char *hosts_missing(const struct hosts *hosts, const struct hosts *wanted);

/* ---- certificates ---- */

enum {
    BUNDLE_MAX = 16, /* certificates of an authority: the one in force, and old ones */
    PEM_BYTES_MAX = 64 * 1024,
};

/* A certificate and its key, in PEM. Ownership of the texts: pem_pair_wipe. */
struct pem_pair {
    char *crt;                       /* of an authority: a bundle, the one in force first */
    char *key;                       /* each NULL: there is none */
    const char *crt_name, *key_name; /* where they are; borrowed */
};

/* Frees the texts, and overwrites the key first. */
void pem_pair_wipe(struct pem_pair *pair);

struct validity {
    int64_t from_s, until_s; /* since 1970 */
};

/* What a new certificate is to be. */
struct wish {
    struct validity validity;
    const char *name;          /* common name */
    const struct hosts *hosts; /* NULL: it is for a client, or of an authority */
};

/* Replaces the texts of the pair by those of a certificate of the authority, with a new key.
 * authority: NULL: it is one itself. */
int certificate_make(struct pem_pair *out, const struct pem_pair *authority,
                     const struct wish *wish, struct error *err);

/* Puts a new certificate of the same key before those in the bundle that are valid at from_s.
 * Errors: ERROR_INVALID: another authority has to do it; then the pair is as before. */
int authority_renew(struct pem_pair *authority, const struct validity *validity, struct error *err);

/* Appends to *bundle the certificates of another one that it lacks and that are valid at now_s, as
 * long as there is room. What is no certificate is ignored. Errors: ERROR_NO_MEMORY; ERROR_INVALID:
 * *bundle is none. */
int bundle_join(char **bundle, struct slice other, int64_t now_s, struct error *err);

/* What a pair is. */
struct certificate_facts {
    struct validity validity;
    bool is_authority; /* may sign others */
    bool is_pair;      /* the key is that of the first certificate */
    bool is_ours;      /* the authority has signed it, whether or not it is still valid */
    bool is_for_servers, is_for_clients;
    struct hosts hosts;
};

/* Reads a pair; without a key, is_pair is false. authority: NULL if the pair is one itself.
 * Errors: ERROR_INVALID: a text is not what it has to be. */
int certificate_read(struct certificate_facts *out, const struct pem_pair *pair,
                     const struct pem_pair *authority, struct error *err);

#endif

/*
 * refresh: what is to be made, given the certificates that are there. An authority that is there is
 * never replaced, only renewed with its key; a server's or client's certificate is replaced only if
 * that authority has signed it: a person decides about all else. `serve`, which keeps its own
 * certificates, does replace what cannot be used. No file, no network, no clock.
 *
 * Threads: any; certificates belong to one.
 */
#ifndef EXTENDER_COMMANDS_CERTIFICATES_REFRESH_H
#define EXTENDER_COMMANDS_CERTIFICATES_REFRESH_H

#include "extender/commands/certificates/authority.h"

enum certificate {
    CERTIFICATE_AUTHORITY,
    CERTIFICATE_SERVER,
    CERTIFICATE_CLIENT,
    CERTIFICATE_COUNT
};

enum action {
    ACTION_KEPT,
    ACTION_CREATED,
    ACTION_RENEWED,
    ACTION_UPDATED, /* the certificate is kept; the copy of the authority's beside it was old */
};

enum {
    REASON_BYTES = 320,
    LIFE_PARTS = 3,         /* a certificate is renewed in the last of so many parts of its life */
    CLOCK_SKEW_S = 60 * 60, /* it is valid so long before it is made: other clocks may be late */
};

struct certificates {
    struct certificate_entry {
        struct pem_pair pair;
        enum action action;
        int64_t until_s;           /* since 1970 */
        char reason[REASON_BYTES]; /* why it was renewed; of an authority that is kept: why a
                                      person has to renew it; "": none */
    } entries[CERTIFICATE_COUNT];
};

/* "authority", "server", "client"; "kept", "created", ... */
const char *certificate_text(enum certificate certificate);
const char *action_text(enum action action);

void certificates_wipe(struct certificates *certificates);

struct certificate_terms {
    int64_t now_s;                    /* since 1970 */
    int64_t life_s, authority_life_s; /* of new ones */
    int64_t renew_before_s; /* renewed if no more is left; 0: in the last third of its life */
    struct hosts hosts;     /* of the server, beside those that its certificate has */
    bool replaces;          /* what cannot be used, or is from another authority */
};

enum { LIFE_S = 365 * 24 * 3600, AUTHORITY_LIFE_S = 10 * LIFE_S }; /* unless a caller says else */

/* The names by which the Service, and a process of the same host, reach claimguard. Errors: as
 * hosts_add. */
int service_hosts(struct hosts *out, const char *ns, struct error *err);

/* Makes what is missing, and renews what ends soon, in place. An authority that only another one
 * can renew is kept as long as it is valid, and what it signs ends with it at the latest.
 * Errors: ERROR_INVALID: what is there cannot be used; the message says what to remove. Then some
 * may be made already, and none should be written. */
int certificates_refresh(struct certificates *certificates, const struct certificate_terms *terms,
                         struct error *err);

#endif

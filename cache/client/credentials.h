/*
 * credentials: who we are to the API server at this moment: a token that is written here or rotates
 * in a file, a client certificate, or what a credential plugin (exec) hands out until it expires.
 *
 *     int rc = credentials_get(credentials, monotonic_ns(), now_ms(), err);
 *     if (rc == CREDENTIALS_READY)
 *         return 0; // token, cert and key are good for a request that starts now
 *     if (rc == CREDENTIALS_COME)
 *         return 0; // a plugin runs: ask again soon
 *     return error_wrap(err, "credentials"); // there are none
 *
 * A token file is read anew after TOKEN_FRESH_MS (kubelet swaps it), and after a 401. A plugin runs
 * when there is nothing yet, shortly before what it gave expires (which stays good meanwhile), and
 * after a 401. It runs once, for everyone, beside everything else; when it fails, or what it gives
 * is refused at once, it runs again after 1, 2, 4, ... 60 s.
 *
 * How long a credential lasts is measured from when it came, on a clock that only runs forward: a
 * step of the wall clock changes nothing. Where the clocks were apart from the start, a 401 says
 * so.
 *
 * Threads: one.
 */
#ifndef CACHE_CLIENT_CREDENTIALS_H
#define CACHE_CLIENT_CREDENTIALS_H

#include <stdint.h>

#include "cache/client/credential_plugin.h"

enum {
    CREDENTIALS_EARLY_MS = 60 * 1000,    /* or half of its life, before a credential ends */
    CREDENTIALS_LIFE_MS_MIN = 30 * 1000, /* whatever the plugin says */
    CREDENTIALS_STEADY_MS = 60 * 1000,   /* one that is refused after this has been good */
    PLUGIN_PAUSE_MS_MIN = 1000,
    PLUGIN_PAUSE_MS_MAX = 60 * 1000,
    CREDENTIALS_LIFE_DAYS_MAX = 365,
    TOKEN_BYTES_MAX = 64 * 1024,
    TOKEN_FRESH_MS = 1000,
};

enum { CREDENTIALS_READY, CREDENTIALS_COME };

struct credentials {
    const struct kubeconfig *kubeconfig;
    struct arena arena; /* of what the plugin gave, and of the token */
    struct slice token; /* empty: none */
    struct pem cert, key;
    unsigned generation; /* one more with each answer of the plugin */
    uint64_t read_ns;    /* when the token file was read; 0: it is to be read */

    struct plugin_run run;
    bool is_given;                       /* the plugin gave what we have, and it was not refused */
    uint64_t given_ns, renew_ns, end_ns; /* UINT64_MAX: it does not end */
    uint64_t retry_ns;                   /* the plugin does not run before */
    unsigned failures, refusals;         /* of the plugin, and of what it just gave, in a row */
    struct error problem;                /* why there are none */
};

void credentials_init(struct credentials *credentials, const struct kubeconfig *kubeconfig);

/* Ends a plugin that runs. */
void credentials_dispose(struct credentials *credentials);

/* As above. now_ns: of monotonic_ns; now_ms: since 1970. Errors: ERROR_SYSTEM, ERROR_INVALID,
 * ERROR_TIMEOUT, ERROR_TOO_BIG, ERROR_UNAVAILABLE, naming the file or the plugin, never what it
 * said. */
int credentials_get(struct credentials *credentials, uint64_t now_ns, int64_t now_ms,
                    struct error *err);

/* Whether a plugin runs, so that credentials_get is to be called soon. */
bool credentials_are_coming(const struct credentials *credentials);

/* The API server refused those of this generation (401): the plugin is asked again. */
void credentials_reject(struct credentials *credentials, unsigned generation, uint64_t now_ns);

#endif

/*
 * credentials: the current identity at the API server: a token from the kubeconfig or from a file
 * that rotates, a client certificate, or what a credential plugin (exec) returns, until it expires.
 *
 *     int rc = credentials_get(credentials, monotonic_ns(), now_ms(), err);
 *     if (rc == CREDENTIALS_READY)
 *         return 0; // token, cert and key are valid for a request that starts now
 *     if (rc == CREDENTIALS_COME)
 *         return 0; // a plugin runs: call again soon
 *     return error_wrap(err, "credentials"); // there are none
 *
 * A token file is read again after TOKEN_FRESH_MS (the kubelet replaces it), and after a 401. A
 * plugin runs when there is no credential, shortly before the credential expires (it stays valid
 * meanwhile), and after a 401. One run serves all requests, in the background. If it fails, or its
 * credential is refused at once, it runs again after 1, 2, 4, ... 60 s.
 *
 * The life of a credential is measured with the monotonic clock, so a step of the wall clock
 * changes nothing. If our clock and the server's differ from the start, a 401 shows it.
 *
 * Threads: one.
 */
#ifndef CACHE_CLIENT_CREDENTIALS_H
#define CACHE_CLIENT_CREDENTIALS_H

#include <stdint.h>
#include <sys/types.h>

#include "cache/client/kubeconfig.h"
#include "config/base/buf.h"

enum {
    PLUGIN_SECONDS_MAX = 30,
    PLUGIN_OUTPUT_BYTES_MAX = 1024 * 1024,
    PLUGIN_KILL_MS = 100, /* how long a killed process may take to end */
};

/*
 * One run of a credential plugin, in the background. The plugin has a process group of its own,
 * which is killed when the plugin takes longer than PLUGIN_SECONDS_MAX, prints too much, or is
 * stopped. Only who stops it waits for it, for PLUGIN_KILL_MS at most. All zero: no plugin runs.
 */
struct plugin_run {
    const char *command; /* for messages */
    pid_t pid;           /* 0: none */
    int output;          /* the reading end of the pipe */
    uint64_t deadline_ns;
    struct buf text; /* what it has printed */
};

enum {
    CREDENTIALS_EARLY_MS = 60 * 1000,    /* renew so long before the end; or at half of its life */
    CREDENTIALS_LIFE_MS_MIN = 30 * 1000, /* at least, even if the plugin says less */
    CREDENTIALS_STEADY_MS = 60 * 1000,   /* refused after this time: it was valid before */
    PLUGIN_PAUSE_MS_MIN = 1000,
    PLUGIN_PAUSE_MS_MAX = 60 * 1000,
    CREDENTIALS_LIFE_DAYS_MAX = 365,
    TOKEN_BYTES_MAX = 64 * 1024,
    TOKEN_FRESH_MS = 1000,
};

enum { CREDENTIALS_READY, CREDENTIALS_COME };

struct credentials {
    const struct kubeconfig *kubeconfig;
    struct arena arena; /* of the plugin's credential, and of the token */
    struct slice token; /* empty: none */
    struct pem cert, key;
    unsigned generation; /* incremented with each answer of the plugin */
    uint64_t read_ns;    /* when the token file was read; 0: read it now */

    struct plugin_run run;
    bool is_given; /* the credential is from the plugin, and was not refused */
    uint64_t given_ns, renew_ns, end_ns; /* UINT64_MAX: it does not expire */
    uint64_t retry_ns;                   /* the plugin does not run before then */
    unsigned failures, refusals;         /* of the plugin, and of its credential, in a row */
    struct error problem;                /* why there is no credential */
};

void credentials_init(struct credentials *credentials, const struct kubeconfig *kubeconfig);

/* Kills a running plugin. */
void credentials_dispose(struct credentials *credentials);

/* As above. now_ns: of monotonic_ns; now_ms: since 1970. Errors: ERROR_SYSTEM, ERROR_INVALID,
 * ERROR_TIMEOUT, ERROR_TOO_BIG, ERROR_UNAVAILABLE, naming the file or the plugin, never what it
 * said. */
int credentials_get(struct credentials *credentials, uint64_t now_ns, int64_t now_ms,
                    struct error *err);

/* Whether a plugin runs: then call credentials_get again soon. */
bool credentials_are_coming(const struct credentials *credentials);

/* The API server refused the credential of this generation (401): the plugin runs again. */
void credentials_reject(struct credentials *credentials, unsigned generation, uint64_t now_ns);

#endif

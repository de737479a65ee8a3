/*
 * credentials: who we are to the API server at this moment: a token that is written here or rotates
 * in a file, a client certificate, or what a credential plugin (exec) hands out until it expires.
 *
 * A token file is read for every request: kubelet swaps it, and a read costs microseconds. A plugin
 * runs when there is nothing yet, shortly before what it gave expires, and after a 401; it has
 * EXEC_SECONDS_MAX and blocks the caller that long at most.
 *
 * Threads: one.
 */
#ifndef CACHE_CREDENTIALS_H
#define CACHE_CREDENTIALS_H

#include <stdint.h>

#include "config/kubeconfig.h"

enum { EXEC_SECONDS_MAX = 30, EXEC_EARLY_MS = 60 * 1000, TOKEN_BYTES_MAX = 64 * 1024 };

struct credentials {
    const struct kubeconfig *kubeconfig;
    struct arena arena; /* of what the plugin gave, and of the token */
    struct slice token; /* empty: none */
    struct pem cert, key;
    int64_t expires_ms; /* of what the plugin gave, since 1970; 0: when it is refused */
    bool has_plugin_answer;
};

void credentials_init(struct credentials *credentials, const struct kubeconfig *kubeconfig);
void credentials_dispose(struct credentials *credentials);

/* Makes token, cert and key good for a request that starts now. Errors: ERROR_SYSTEM,
 * ERROR_INVALID, ERROR_TIMEOUT, naming the file or the plugin, never what it said. */
int credentials_refresh(struct credentials *credentials, int64_t now_ms, struct error *err);

/* The API server refused them (401): the plugin is asked again. */
void credentials_reject(struct credentials *credentials);

/* Milliseconds since 1970 of an RFC 3339 time in UTC ("2026-11-20T10:00:00Z"); 0: it is none. */
int64_t time_parse(struct slice text);

#endif

/*
 * keeper: the certificates that a replica of `serve` shows, and their upkeep (upkeep.h), in rounds.
 * A new certificate is shown one round after it was written or first read: then each API server
 * knows its authority (caBundle). The first one is shown at once.
 *
 *     struct keeper keeper = {.ns = "claimguard"};
 *     struct api api;
 *     api_open_on(&api, requests);
 *     if (keeper_round(&keeper, &api, now_ms() / 1000, err) == KEEPER_SHOW)
 *         puts(keeper.shown.crt); // and the others
 *     api_close(&api);
 *     keeper_wipe(&keeper);
 *
 * Threads: one. No clock.
 */
#ifndef EXTENDER_COMMANDS_CERTIFICATES_KEEPER_H
#define EXTENDER_COMMANDS_CERTIFICATES_KEEPER_H

#include "extender/commands/certificates/upkeep.h"

struct keeper_texts {
    char *crt, *key; /* of the server, in PEM; NULL: none */
    char *clients;   /* the authority's certificates */
};

struct keeper {
    const char *ns; /* of the Secrets; borrowed */
    struct keeper_texts shown, next;
    char warned[REASON_BYTES]; /* of the authority, in the log already */
};

enum keeper_result {
    KEEPER_SAME,
    KEEPER_SHOW, /* `shown` is another now */
    KEEPER_SOON, /* it will be after the next round */
};

/* Errors: as upkeep_run; what is shown stays. */
int keeper_round(struct keeper *keeper, struct api *api, int64_t now_s, struct error *err);

void keeper_wipe(struct keeper *keeper);

#endif

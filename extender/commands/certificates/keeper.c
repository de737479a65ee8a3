#include "extender/commands/certificates/keeper.h"

#include <gnutls/gnutls.h>
#include <stdlib.h>

#include "config/base/log.h"

/* ---- texts ---- */

static void wipe(struct keeper_texts *texts)
{
    if (texts->key != NULL)
        gnutls_memset(texts->key, 0, strlen(texts->key));
    free(texts->key);
    free(texts->crt);
    free(texts->clients);
    *texts = (struct keeper_texts){.crt = NULL};
}

void keeper_wipe(struct keeper *keeper)
{
    wipe(&keeper->shown);
    wipe(&keeper->next);
}

static bool are_same(const struct keeper_texts *a, const struct keeper_texts *b)
{
    return a->crt != NULL && b->crt != NULL && strcmp(a->crt, b->crt) == 0 &&
           strcmp(a->clients, b->clients) == 0;
}

static int replace(struct keeper_texts *out, const struct keeper_texts *texts, struct error *err)
{
    struct keeper_texts copy = {strdup(texts->crt), strdup(texts->key), strdup(texts->clients)};

    if (copy.crt == NULL || copy.key == NULL || copy.clients == NULL) {
        wipe(&copy);
        return error_no_memory(err);
    }
    wipe(out);
    *out = copy;
    return 0;
}

/* ---- a round ---- */

static int advance(struct keeper *keeper, const struct certificates *certificates,
                   struct error *err)
{
    const struct pem_pair *server = &certificates->entries[CERTIFICATE_SERVER].pair;
    const struct keeper_texts there = {server->crt, server->key,
                                       certificates->entries[CERTIFICATE_AUTHORITY].pair.crt};

    if (are_same(&there, &keeper->shown)) {
        wipe(&keeper->next);
        return KEEPER_SAME;
    }
    if (keeper->shown.crt == NULL || are_same(&there, &keeper->next)) {
        wipe(&keeper->next);
        return replace(&keeper->shown, &there, err) < 0 ? err->code : KEEPER_SHOW;
    }
    return replace(&keeper->next, &there, err) < 0 ? err->code : KEEPER_SOON;
}

/* An authority that a person has to renew, which each round finds. */
static void warn(struct keeper *keeper, const struct certificates *certificates)
{
    const struct certificate_entry *authority = &certificates->entries[CERTIFICATE_AUTHORITY];

    if (authority->action != ACTION_KEPT || strcmp(keeper->warned, authority->reason) == 0)
        return;
    memcpy(keeper->warned, authority->reason, sizeof keeper->warned);
    if (authority->reason[0] != '\0')
        log_warn("the authority cannot be renewed", LOG_STR("reason", authority->reason));
}

static void log_changes(const struct upkeep *upkeep)
{
    for (int i = 0; i < CERTIFICATE_COUNT; i++) {
        const struct certificate_entry *entry = &upkeep->certificates->entries[i];
        if (entry->action != ACTION_KEPT)
            log_info("a certificate is written",
                     LOG_STR("secret", upkeep->secrets.items[i].names[0].ptr),
                     LOG_STR("action", action_text(entry->action)),
                     LOG_STR("reason", entry->reason));
    }
    if (upkeep->webhook.wrong_count != 0)
        log_info("the caBundle is written", LOG_STR("object", WEBHOOK_NAME));
}

int keeper_round(struct keeper *keeper, struct api *api, int64_t now_s, struct error *err)
{
    struct certificates certificates = {.entries = {{.until_s = 0}}};
    struct upkeep upkeep = {.certificates = &certificates};
    struct certificate_terms terms = {
        .now_s = now_s, .life_s = LIFE_S, .authority_life_s = AUTHORITY_LIFE_S, .replaces = true};

    int rc = service_hosts(&terms.hosts, keeper->ns, err);
    if (rc == 0)
        rc = upkeep_run(&upkeep, keeper->ns, &terms, false, api, err);
    if (rc == 0) {
        log_changes(&upkeep);
        warn(keeper, &certificates);
        rc = advance(keeper, &certificates, err);
    }
    certificates_wipe(&certificates);
    return rc;
}

#include "extender/commands/certificates/upkeep.h"

#include <stdlib.h>

#include "config/base/text.h"

/* Whether the server's certificate is so new that some replica may still show another one. */
static bool is_changing(const struct certificates *certificates,
                        const struct certificate_terms *terms)
{
    const struct certificate_entry *server = &certificates->entries[CERTIFICATE_SERVER];
    struct certificate_facts facts;
    struct error problem = {0};

    return terms->replaces && certificate_read(&facts, &server->pair, NULL, &problem) == 0 &&
           terms->now_s - CLOCK_SKEW_S - facts.validity.from_s < CHANGE_OVER_S;
}

/* What each caBundle is to be. Ownership: in the arena. */
static int make_bundle(struct slice *out, const struct upkeep *upkeep,
                       const struct certificate_terms *terms, struct arena *arena,
                       struct error *err)
{
    const struct webhook *webhooks = upkeep->webhook.webhooks.items;
    char *text = strdup(upkeep->certificates->entries[CERTIFICATE_AUTHORITY].pair.crt);
    size_t count = is_changing(upkeep->certificates, terms) ? upkeep->webhook.webhooks.count : 0;
    struct slice old;
    int rc = text == NULL ? error_no_memory(err) : 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        if (base64_decode(webhooks[i].bundle, arena, &old) && old.len != 0)
            rc = bundle_join(&text, old, terms->now_s, err);
    if (rc == 0) {
        *out = arena_copy(arena, slice_of(text));
        rc = out->ptr == NULL ? error_no_memory(err) : 0;
    }
    free(text);
    return rc;
}

/* The authority's Secret is first: what it signs is of no use without it. Then the caBundle, before
 * the Secret of a server's certificate that a new authority has signed. */
static int write_all(const struct upkeep *upkeep, struct slice bundle, struct api *api,
                     struct error *err)
{
    const struct certificates *certificates = upkeep->certificates;

    if (secrets_write(&upkeep->secrets, certificates, CERTIFICATE_AUTHORITY, api, err) < 0 ||
        webhook_write(&upkeep->webhook, bundle, api, err) < 0)
        return err->code;
    for (int i = CERTIFICATE_AUTHORITY + 1; i < CERTIFICATE_COUNT; i++)
        if (secrets_write(&upkeep->secrets, certificates, (enum certificate)i, api, err) < 0)
            return err->code;
    return 0;
}

int upkeep_run(struct upkeep *out, const char *ns, struct certificate_terms *terms, bool is_dry_run,
               struct api *api, struct error *err)
{
    struct certificates *certificates = out->certificates;
    struct slice bundle = {NULL, 0};

    if (webhook_read(&out->webhook, api, err) < 0 ||
        webhook_add_hosts(&out->webhook, &terms->hosts, err) < 0 ||
        secrets_read(&out->secrets, ns, certificates, api, err) < 0)
        return err->code;
    if (terms->replaces && out->webhook.refusal.code != 0) {
        *err = out->webhook.refusal; /* API servers would refuse what is made */
        return err->code;
    }
    if (certificates_refresh(certificates, terms, err) < 0 ||
        make_bundle(&bundle, out, terms, &api->arena, err) < 0)
        return err->code;
    secrets_compare(&out->secrets, certificates);
    webhook_compare(&out->webhook, bundle, &api->arena);
    return is_dry_run ? 0 : write_all(out, bundle, api, err);
}

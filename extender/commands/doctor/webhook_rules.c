#include "extender/commands/doctor/doctor.h"

#include "config/base/text.h"

#define BINDING_PATH "/admit/binding"
#define POD_PATH     "/admit/pod"

static void read_entry(struct webhook_entries *out, const struct webhooks *configuration,
                       const struct webhook *webhook, struct findings *findings)
{
    struct slice path = webhook->path.len != 0 ? webhook->path : webhook->url;
    bool is_binding = slice_ends_with(path, SLICE(BINDING_PATH));

    if (out->count < WEBHOOK_ENTRIES_MAX && (is_binding || slice_ends_with(path, SLICE(POD_PATH))))
        out->items[out->count++] = (struct webhook_entry){
            .webhook = webhook,
            .place = installed_place(findings, KIND_WEBHOOKS, &configuration->meta),
            .is_binding = is_binding,
            .fails = !slice_equal(webhook->policy, SLICE("Ignore")),
            .is_applied = configuration->meta.uid.len != 0,
        };
}

void webhook_entries_read(struct webhook_entries *out, const struct installation *installation,
                          struct findings *findings)
{
    out->count = 0;
    for (const struct webhooks *configuration = NULL;
         (configuration = installation_next(installation, KIND_WEBHOOKS, configuration)) != NULL;) {
        const struct webhook *webhooks = configuration->items.items;
        for (size_t i = 0; i < configuration->items.count; i++)
            read_entry(out, configuration, &webhooks[i], findings);
    }
}

static const char *consequence(const struct webhook_entry *entry)
{
    return entry->fails ? "what it reviews is refused" : "nothing is reviewed";
}

/* ---- the caBundle ---- */

/* The certificate of the admission port, or the authority of the scheduler's one if both are one
 * pair, is what the bundle has to vouch for. */
static void check_authority(const struct webhook_entry *entry,
                            const struct certificate_list *bundle,
                            const struct certificates_read *read, struct findings *findings)
{
    const struct certificate_list *served = read->is_one_pair ? &read->server : &read->admission;

    if (served->count != 0 && !certificate_list_signs(bundle, served))
        finding_add(findings, CG708, entry->place, "call claimguard certificates",
                    "the caBundle of webhook %.*s is not of the authority that has signed the "
                    "certificate of admission.tls",
                    SLICE_ARG(entry->webhook->name));
    else if (served->count == 0 && read->is_one_pair && read->authority.count != 0 &&
             !certificate_list_shares_key(bundle, &read->authority))
        finding_lower(
            finding_add(findings, CG708, entry->place, "call claimguard certificates",
                        "the caBundle of webhook %.*s and the CA in %s:%u have no key in common, "
                        "and claimguard has one certificate for both ports",
                        SLICE_ARG(entry->webhook->name), read->authority_place.file,
                        read->authority_place.line),
            LEVEL_WARNING);
}

static void check_bundle(const struct webhook_entry *entry, const struct examined *examined,
                         struct findings *findings)
{
    static const char *const lives[] = {
        [LIFE_ENDS_SOON] = " that is valid for two more weeks",
        [LIFE_ENDED] = " that is valid now",
        [LIFE_NOT_BEGUN] = " that is valid now",
    };
    const struct webhook *webhook = entry->webhook;
    struct certificate_list bundle = {NULL, 0};
    struct slice pem = {NULL, 0};

    if (webhook->bundle.len == 0 && !entry->is_applied)
        return; /* the running claimguard, or cert-manager, writes it */
    if (webhook->bundle.len == 0) {
        finding_add(findings, CG701, entry->place, "call claimguard certificates",
                    "webhook %.*s has no caBundle, so the API server cannot call it: %s",
                    SLICE_ARG(webhook->name), consequence(entry));
        return;
    }
    bool is_read = base64_decode(webhook->bundle, findings->arena, &pem) &&
                   certificate_list_read(&bundle, pem);
    enum certificate_life life =
        is_read ? certificate_list_life(&bundle, examined->now_s) : LIFE_ENDED;
    if (life != LIFE_LONG)
        finding_lower(finding_add(findings, CG702, entry->place, "call claimguard certificates",
                                  "the caBundle of webhook %.*s has no certificate%s: %s",
                                  SLICE_ARG(webhook->name), is_read ? lives[life] : "",
                                  consequence(entry)),
                      life == LIFE_ENDS_SOON ? LEVEL_WARNING : LEVEL_ERROR);
    if (is_read)
        check_authority(entry, &bundle, examined->certificates, findings);
    certificate_list_free(&bundle);
}

/* ---- the Service ---- */

static bool is_ready(const struct endpoint_slice *slice)
{
    const struct endpoint *endpoints = slice->endpoints.items;

    for (size_t i = 0; i < slice->endpoints.count; i++)
        if (!slice_equal(endpoints[i].ready, SLICE("false")))
            return true;
    return false;
}

static void check_service(const struct webhook_entry *entry,
                          const struct installation *installation, struct findings *findings)
{
    const struct webhook *webhook = entry->webhook;

    if (webhook->service.len == 0 || !slice_equal(webhook->service_ns, slice_of(installation->ns)))
        return;
    bool is_missing = installation_knows(installation, KIND_SERVICE) &&
                      installation_find(installation, KIND_SERVICE, webhook->service) == NULL;
    for (const struct endpoint_slice *slice = NULL;
         (slice = installation_next(installation, KIND_ENDPOINT_SLICE, slice)) != NULL;)
        if (slice_equal(slice->service, webhook->service) && is_ready(slice))
            return;
    if (is_missing || installation_knows(installation, KIND_ENDPOINT_SLICE))
        finding_add(findings, CG703, entry->place, "bring claimguard back",
                    "webhook %.*s calls the Service %s/%.*s, which %s: %s",
                    SLICE_ARG(webhook->name), installation->ns, SLICE_ARG(webhook->service),
                    is_missing ? "does not exist" : "has no ready endpoint", consequence(entry));
}

/* ---- what it reviews ---- */

static bool has_word(const struct pull_items *words, struct slice word)
{
    const struct slice *items = words->items;

    for (size_t i = 0; i < words->count; i++)
        if (slice_equal(items[i], word))
            return true;
    return false;
}

static bool has_or_all(const struct pull_items *words, struct slice word)
{
    return has_word(words, word) || has_word(words, SLICE("*"));
}

/* A path on which a Binding is posted, with the wildcards that name it, too: "*" is every resource
 * without a subresource. */
static const struct binding_path {
    const char *path, *wildcards[3];
} binding_paths[] = {
    {"pods/binding", {"pods/*", "*/binding", "*/*"}},
    {"bindings", {"*", "*/*", "bindings/*"}},
};

/* Whether the API server asks about a Binding that is created there. */
static bool rule_names(const struct webhook_rule *rule, const struct binding_path *path)
{
    bool is_named = has_word(&rule->resources, slice_of(path->path));

    for (size_t i = 0; i < sizeof path->wildcards / sizeof *path->wildcards; i++)
        is_named = is_named || has_word(&rule->resources, slice_of(path->wildcards[i]));
    return is_named && has_or_all(&rule->operations, SLICE("CREATE")) &&
           has_or_all(&rule->groups, SLICE("")) && has_or_all(&rule->versions, SLICE("v1")) &&
           !slice_equal(rule->scope, SLICE("Cluster"));
}

/* Whether the policy of manifests/openshift takes no Binding at that path. */
static bool is_closed(const struct installation *installation, const struct binding_path *path)
{
    for (const struct marker *binding = NULL;
         (binding = installation_next(installation, KIND_CLOSER_BINDING, binding)) != NULL;)
        if (slice_equal(binding->policy, SLICE("claimguard-bindings")))
            return slice_equal(slice_of(path->path), SLICE("bindings"));
    return false;
}

static void check_rules(const struct webhook_entry *entry, const struct installation *installation,
                        struct findings *findings)
{
    const struct pull_items *list = &entry->webhook->rules;
    const struct webhook_rule *rules = list->items;

    for (size_t i = 0; entry->is_binding && i < sizeof binding_paths / sizeof *binding_paths; i++) {
        bool is_named = is_closed(installation, &binding_paths[i]);
        for (size_t j = 0; j < list->count; j++)
            is_named = is_named || rule_names(&rules[j], &binding_paths[i]);
        if (!is_named)
            finding_add(findings, CG706, entry->place,
                        "{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], "
                        "resources: [pods/binding, bindings], scope: \"*\"}",
                        "webhook %.*s does not review %s: a client that posts a Binding there "
                        "passes",
                        SLICE_ARG(entry->webhook->name), binding_paths[i].path);
    }
}

/* Whether a namespaceSelector leaves a namespace out by its name. */
static bool leaves_out(const struct webhook *webhook, struct slice ns)
{
    const struct namespace_expression *expressions = webhook->expressions.items;

    if (webhook->ns_label.len != 0 && !slice_equal(webhook->ns_label, ns))
        return true;
    for (size_t i = 0; i < webhook->expressions.count; i++) {
        struct slice operator= expressions[i].operator;
        bool is_named = has_word(&expressions[i].values, ns);
        if (slice_equal(expressions[i].key, SLICE(NAMESPACE_LABEL)) &&
            ((slice_equal(operator, SLICE("NotIn")) && is_named) ||
             (slice_equal(operator, SLICE("In")) && !is_named) ||
             slice_equal(operator, SLICE("DoesNotExist"))))
            return true;
    }
    return false;
}

enum review webhook_entries_review(const struct webhook_entries *entries, struct slice ns)
{
    enum review best = REVIEW_NONE;

    for (size_t i = 0; i < entries->count; i++) {
        const struct webhook_entry *entry = &entries->items[i];
        enum review review = entry->fails ? REVIEW_OR_FAIL : REVIEW_OR_IGNORE;
        if (entry->is_binding && review > best && !leaves_out(entry->webhook, ns))
            best = review;
    }
    return best;
}

static bool is_before(const struct claim *claim, const struct claim *other)
{
    int order = slice_compare(name_text(claim->ns), name_text(other->ns));

    return (order != 0 ? order : slice_compare(claim_name(claim), claim_name(other))) < 0;
}

/* The first exclusive claim, by name, whose namespace has such reviews; NULL: there is none. */
static const struct claim *find_exclusive(const struct webhook_entries *entries,
                                          const struct installation *installation,
                                          enum review review)
{
    struct table_walk walk = {0};
    const struct claim *claim, *found = NULL;

    while ((claim = cluster_next_claim(&installation->inquiry.cluster, &walk)) != NULL)
        if (claim->exists && claim->is_rwop && (found == NULL || is_before(claim, found)) &&
            webhook_entries_review(entries, name_text(claim->ns)) == review)
            found = claim;
    return found;
}

static void check_namespaces(const struct webhook_entries *entries, struct location place,
                             const struct installation *installation, bool fails,
                             struct findings *findings)
{
    const struct claim *claim = find_exclusive(entries, installation, REVIEW_NONE);

    if (claim != NULL)
        finding_add(findings, CG705, place, "take the namespace out of the selector",
                    "no webhook reviews Bindings in the namespace %.*s, and its claim %.*s "
                    "is ReadWriteOncePod",
                    SLICE_ARG(name_text(claim->ns)), SLICE_ARG(claim_name(claim)));
    claim = fails ? find_exclusive(entries, installation, REVIEW_OR_IGNORE) : NULL;
    if (claim != NULL)
        finding_add(findings, CG709, place, "use another namespace for such claims",
                    "only a webhook that says Ignore reviews Bindings in the namespace %.*s, "
                    "and its claim %.*s is ReadWriteOncePod",
                    SLICE_ARG(name_text(claim->ns)), SLICE_ARG(claim_name(claim)));
}

/* What the webhooks for Bindings make together. */
static void check_bindings(const struct webhook_entries *entries,
                           const struct installation *installation, struct findings *findings)
{
    const struct webhook_entry *first = NULL;
    bool fails = false;

    for (size_t i = entries->count; i-- > 0;)
        if (entries->items[i].is_binding) {
            first = &entries->items[i];
            fails = fails || first->fails;
        }
    if (first == NULL)
        return;
    check_namespaces(entries, first->place, installation, fails, findings);
    if (!fails)
        finding_add(findings, CG704, first->place, "remove the component failure-policy-ignore",
                    "webhook %.*s says Ignore: while claimguard does not answer, Bindings are "
                    "applied without it",
                    SLICE_ARG(first->webhook->name));
}

/* ---- marks ---- */

/* Whether it is known that nobody reviews Bindings. */
static bool is_unreviewed(const struct examined *examined, struct findings *findings)
{
    const struct installation *installation = examined->installation;
    const struct config_file *config = examined->config;
    struct webhook_entries entries = {.count = 0};

    if (config != NULL && config->config->admission.listen.len == 0)
        return true;
    if (installation == NULL || !installation_knows(installation, KIND_WEBHOOKS))
        return false;
    webhook_entries_read(&entries, installation, findings);
    for (size_t i = 0; i < entries.count; i++)
        if (entries.items[i].is_binding)
            return false;
    return true;
}

void doctor_check_unreviewed(const struct examined *examined, struct findings *findings)
{
    struct slice marker = examined->installation == NULL
                              ? SLICE("")
                              : installation_find_marker(examined->installation);
    bool is_called = false;

    if (!is_unreviewed(examined, findings))
        return;
    for (const struct scheduler_file *file = NULL;
         (file = examined_next(examined, file)) != NULL;) {
        if (file->own->managed_count == 0)
            continue;
        is_called = true;
        finding_add(findings, CG808, finding_place(file->own->managed[0].name.at),
                    "apply manifests/webhooks.yaml",
                    "claimguard is called for marked pods only, and nobody reviews the "
                    "Bindings of the others");
    }
    if (marker.len != 0 && !is_called)
        finding_lower(
            finding_add(findings, CG808,
                        finding_object(findings, kind_text(KIND_MARKER), SLICE(""), marker),
                        "apply manifests/webhooks.yaml",
                        "it marks pods, and nobody reviews the Bindings of those that "
                        "it does not mark"),
            LEVEL_WARNING);
}

/* ---- all ---- */

void doctor_check_webhooks(const struct examined *examined, struct findings *findings)
{
    const struct config_file *config = examined->config;
    struct webhook_entries entries;

    if (examined->installation == NULL)
        return;
    webhook_entries_read(&entries, examined->installation, findings);
    for (size_t i = 0; i < entries.count; i++) {
        check_bundle(&entries.items[i], examined, findings);
        check_service(&entries.items[i], examined->installation, findings);
        check_rules(&entries.items[i], examined->installation, findings);
    }
    check_bindings(&entries, examined->installation, findings);
    if (entries.count != 0 && config != NULL && config->config->admission.listen.len == 0)
        finding_add(findings, CG707, CONFIG_PLACE(config, "admission", "listen"),
                    "admission: {listen: \":8443\", tls: {certFile: ..., keyFile: ...}}",
                    "webhook %.*s calls claimguard, and admission.listen is not set",
                    SLICE_ARG(entries.items[0].webhook->name));
}

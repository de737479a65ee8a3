#include "extender/doctor/webhook_rules.h"

#include <stdio.h>

#include "config/base/base64.h"

#define BINDING_PATH "/admit/binding"
#define POD_PATH     "/admit/pod"

enum { ENTRIES_MAX = 64 };

/* One webhook of a configuration. */
struct webhook_entry {
    const json_t *webhook, *client;
    struct location place;
    const char *name;
    bool is_binding; /* reviews Bindings; else pods */
    bool fails;      /* failurePolicy Fail */
};

/* All that call claimguard. */
struct webhook_entries {
    struct webhook_entry items[ENTRIES_MAX];
    size_t count;
};

static bool ends_with(const char *text, const char *end)
{
    return slice_ends_with(slice_of(text), slice_of(end));
}

/* Whether the webhook calls one of claimguard's paths. */
static bool read_entry(struct webhook_entry *out, const json_t *configuration,
                       const json_t *webhook, struct findings *findings)
{
    const json_t *client = json_object_get(webhook, "clientConfig");
    const char *path = installed_string(client, "service", "path", NULL);

    if (*path == '\0')
        path = installed_string(client, "url", NULL);
    *out = (struct webhook_entry){
        .webhook = webhook,
        .client = client,
        .name = installed_string(webhook, "name", NULL),
        .is_binding = ends_with(path, BINDING_PATH),
        .fails = strcmp(installed_string(webhook, "failurePolicy", NULL), "Ignore") != 0,
    };
    if (!out->is_binding && !ends_with(path, POD_PATH))
        return false;
    out->place =
        finding_object(findings, "ValidatingWebhookConfiguration", SLICE(""),
                       slice_of(installed_string(configuration, "metadata", "name", NULL)));
    return true;
}

static void read_entries(struct webhook_entries *out, const struct installation *installation,
                         struct findings *findings)
{
    const json_t *configuration, *webhook;
    size_t i, j;

    out->count = 0;
    json_array_foreach (installation->objects[INSTALLED_WEBHOOKS], i, configuration)
        json_array_foreach (json_object_get(configuration, "webhooks"), j, webhook)
            out->count += out->count < ENTRIES_MAX &&
                          read_entry(&out->items[out->count], configuration, webhook, findings);
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
        (void)finding_add(findings, "CG708", entry->place, "call claimguard certificates",
                          "the caBundle of webhook %s is not of the authority that has signed the "
                          "certificate of admission.tls",
                          entry->name);
    else if (served->count == 0 && read->is_one_pair && read->authority.count != 0 &&
             !certificate_list_shares_key(bundle, &read->authority))
        finding_lower(
            finding_add(
                findings, "CG708", entry->place, "call claimguard certificates",
                "the caBundle of webhook %s and the CA in %s:%zu have no key in common, and "
                "claimguard has one certificate for both ports",
                entry->name, read->authority_place.file, read->authority_place.line),
            LEVEL_WARNING);
}

static void check_bundle(const struct webhook_entry *entry, const struct certificates_read *read,
                         int64_t now_s, struct findings *findings)
{
    static const char *const lives[] = {
        [LIFE_ENDS_SOON] = " that is valid for two more weeks",
        [LIFE_ENDED] = " that is valid now",
        [LIFE_NOT_BEGUN] = " that is valid now",
    };
    const char *encoded = installed_string(entry->client, "caBundle", NULL);
    const char *what = entry->fails ? "what it reviews is refused" : "nothing is reviewed";
    struct certificate_list bundle = {NULL, 0};
    struct slice pem = {NULL, 0};

    if (*encoded == '\0') {
        (void)finding_add(findings, "CG701", entry->place, "call claimguard certificates",
                          "webhook %s has no caBundle, so the API server cannot call it: %s",
                          entry->name, what);
        return;
    }
    bool is_read = base64_decode(slice_of(encoded), findings->arena, &pem) &&
                   certificate_list_read(&bundle, pem);
    enum certificate_life life = is_read ? certificate_list_life(&bundle, now_s) : LIFE_ENDED;
    if (life != LIFE_LONG) {
        struct finding *finding =
            finding_add(findings, "CG702", entry->place, "call claimguard certificates",
                        "the caBundle of webhook %s has no certificate%s: %s", entry->name,
                        is_read ? lives[life] : "", what);
        if (life == LIFE_ENDS_SOON)
            finding_lower(finding, LEVEL_WARNING);
    }
    if (is_read)
        check_authority(entry, &bundle, read, findings);
    certificate_list_free(&bundle);
}

/* ---- the Service ---- */

static bool is_ready(const json_t *slice)
{
    const json_t *endpoint;
    size_t i;

    json_array_foreach (json_object_get(slice, "endpoints"), i, endpoint)
        if (!json_is_false(json_object_get(json_object_get(endpoint, "conditions"), "ready")))
            return true;
    return false;
}

static void check_service(const struct webhook_entry *entry,
                          const struct installation *installation, struct findings *findings)
{
    const char *ns = installed_string(entry->client, "service", "namespace", NULL);
    const char *name = installed_string(entry->client, "service", "name", NULL);
    const json_t *slices = installation->objects[INSTALLED_ENDPOINT_SLICE], *slice;
    size_t i;

    if (*name == '\0' || strcmp(ns, installation->ns) != 0)
        return;
    bool is_missing = installation->is_known[INSTALLED_SERVICE] &&
                      installation_find(installation, INSTALLED_SERVICE, ns, name) == NULL;
    json_array_foreach (slices, i, slice)
        if (strcmp(installed_string(slice, "metadata", "namespace", NULL), ns) == 0 &&
            strcmp(
                installed_string(slice, "metadata", "labels", "kubernetes.io/service-name", NULL),
                name) == 0 &&
            is_ready(slice))
            return;
    if (is_missing || installation->is_known[INSTALLED_ENDPOINT_SLICE])
        (void)finding_add(findings, "CG703", entry->place, "bring claimguard back",
                          "webhook %s calls the Service %s/%s, which %s: %s", entry->name, ns, name,
                          is_missing ? "does not exist" : "has no ready endpoint",
                          entry->fails ? "what it reviews is refused" : "nothing is reviewed");
}

/* ---- what it reviews ---- */

static bool has_string(const json_t *list, const char *text)
{
    const json_t *item;
    size_t i;

    json_array_foreach (list, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return true;
    return false;
}

static bool has_or_all(const json_t *list, const char *text)
{
    return has_string(list, text) || has_string(list, "*");
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
static bool rule_names(const json_t *rule, const struct binding_path *path)
{
    const json_t *resources = json_object_get(rule, "resources");
    bool is_named = has_string(resources, path->path);

    for (size_t i = 0; i < sizeof path->wildcards / sizeof *path->wildcards; i++)
        is_named = is_named || has_string(resources, path->wildcards[i]);
    return is_named && has_or_all(json_object_get(rule, "operations"), "CREATE") &&
           has_or_all(json_object_get(rule, "apiGroups"), "") &&
           has_or_all(json_object_get(rule, "apiVersions"), "v1") &&
           strcmp(installed_string(rule, "scope", NULL), "Cluster") != 0;
}

static void check_rules(const struct webhook_entry *entry, struct findings *findings)
{
    const json_t *rule;
    size_t j;

    for (size_t i = 0; entry->is_binding && i < sizeof binding_paths / sizeof *binding_paths; i++) {
        bool is_named = false;
        json_array_foreach (json_object_get(entry->webhook, "rules"), j, rule)
            is_named = is_named || rule_names(rule, &binding_paths[i]);
        if (!is_named)
            (void)finding_add(findings, "CG706", entry->place,
                              "{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], "
                              "resources: [pods/binding, bindings], scope: \"*\"}",
                              "webhook %s does not review %s: a client that posts a Binding there "
                              "passes",
                              entry->name, binding_paths[i].path);
    }
}

/* Whether a namespaceSelector leaves a namespace out by its name. */
static bool leaves_out(const json_t *webhook, const char *ns)
{
    static const char key[] = "kubernetes.io/metadata.name"; /* that each namespace has */
    const json_t *selector = json_object_get(webhook, "namespaceSelector"), *expression;
    const char *label = installed_string(selector, "matchLabels", key, NULL);
    size_t i;

    if (*label != '\0' && strcmp(label, ns) != 0)
        return true;
    json_array_foreach (json_object_get(selector, "matchExpressions"), i, expression) {
        const char *operator= installed_string(expression, "operator", NULL);
        bool is_named = has_string(json_object_get(expression, "values"), ns);
        if (strcmp(installed_string(expression, "key", NULL), key) != 0)
            continue;
        if ((strcmp(operator, "NotIn") == 0 && is_named) ||
            (strcmp(operator, "In") == 0 && !is_named) || strcmp(operator, "DoesNotExist") == 0)
            return true;
    }
    return false;
}

/* The best that the webhooks do for the Bindings of a namespace. */
enum review { REVIEW_NONE, REVIEW_OR_IGNORE, REVIEW_OR_FAIL };

static enum review review_of(const struct webhook_entries *entries, const char *ns)
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

/* An exclusive claim whose namespace has such reviews; NULL: there is none. */
static const struct claim *find_exclusive(const struct webhook_entries *entries,
                                          const struct installation *installation,
                                          enum review review)
{
    struct table_walk walk = {0};
    const struct claim *claim;
    char ns[256];

    while ((claim = cluster_next_claim(&installation->inquiry.cluster, &walk)) != NULL) {
        (void)snprintf(ns, sizeof ns, "%.*s", SLICE_ARG(name_text(claim->ns)));
        if (claim->exists && claim->is_rwop && review_of(entries, ns) == review)
            return claim;
    }
    return NULL;
}

static void check_namespaces(const struct webhook_entries *entries, struct location place,
                             const struct installation *installation, bool fails,
                             struct findings *findings)
{
    const struct claim *claim = find_exclusive(entries, installation, REVIEW_NONE);

    if (claim != NULL)
        (void)finding_add(findings, "CG705", place, "take the namespace out of the selector",
                          "no webhook reviews Bindings in the namespace %.*s, and its claim %.*s "
                          "is ReadWriteOncePod",
                          SLICE_ARG(name_text(claim->ns)), SLICE_ARG(claim_name(claim)));
    claim = fails ? find_exclusive(entries, installation, REVIEW_OR_IGNORE) : NULL;
    if (claim != NULL)
        (void)finding_add(findings, "CG709", place, "use another namespace for such claims",
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
        (void)finding_add(findings, "CG704", first->place, "add the component admission-fail",
                          "webhook %s says Ignore: while claimguard does not answer, Bindings are "
                          "applied without it",
                          first->name);
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
    if (installation == NULL || !installation->is_known[INSTALLED_WEBHOOKS])
        return false;
    read_entries(&entries, installation, findings);
    for (size_t i = 0; i < entries.count; i++)
        if (entries.items[i].is_binding)
            return false;
    return true;
}

void webhook_rules_check_marks(const struct examined *examined, struct findings *findings)
{
    const char *marker =
        examined->installation == NULL ? NULL : installation_find_marker(examined->installation);
    bool is_called = false;

    if (!is_unreviewed(examined, findings))
        return;
    for (size_t i = 0; i < examined->scheduler_count; i++) {
        const struct scheduler_extender *own = examined->schedulers[i].own;
        if (own == NULL || own->managed_count == 0)
            continue;
        is_called = true;
        (void)finding_add(findings, "CG808", finding_place(own->managed[0].name.at),
                          "add the component admission",
                          "claimguard is called for marked pods only, and nobody reviews the "
                          "Bindings of the others");
    }
    if (marker != NULL && !is_called)
        finding_lower(finding_add(findings, "CG808",
                                  finding_object(findings, "MutatingAdmissionPolicy", SLICE(""),
                                                 slice_of(marker)),
                                  "add the component admission",
                                  "it marks pods, and nobody reviews the Bindings of those that "
                                  "it does not mark"),
                      LEVEL_WARNING);
}

/* ---- all ---- */

void webhook_rules_check(const struct examined *examined, int64_t now_s, struct findings *findings)
{
    const struct config_file *config = examined->config;
    struct webhook_entries entries;

    read_entries(&entries, examined->installation, findings);
    for (size_t i = 0; i < entries.count; i++) {
        check_bundle(&entries.items[i], examined->certificates, now_s, findings);
        check_service(&entries.items[i], examined->installation, findings);
        check_rules(&entries.items[i], findings);
    }
    check_bindings(&entries, examined->installation, findings);
    if (entries.count != 0 && config != NULL && config->config->admission.listen.len == 0)
        (void)finding_add(findings, "CG707",
                          config_place(config, (const char *const[]){"admission", "listen", NULL}),
                          "admission: {listen: \":8443\", tls: {certFile: ..., keyFile: ...}}",
                          "webhook %s calls claimguard, and admission.listen is not set",
                          entries.items[0].name);
}

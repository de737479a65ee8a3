#include "extender/commands/verify/reach.h"

#include <stdio.h>

enum {
    BODY_BYTES_MAX = 1 << 20,
    WAITS_MAX = 40, /* of trial_wait, until the API servers use the configuration */
    NAME_BYTES = 64,
};

/* What the API server says, and what is to be changed in the webhook. The first one counts. */
static const struct {
    const char *text, *change;
} changes[] = {
    {"certificate signed by unknown authority",
     "clientConfig.caBundle: ca.crt of the Secret claimguard-tls; claimguard certificates writes "
     "it"},
    {"unable to load root certificates",
     "clientConfig.caBundle: ca.crt of the Secret claimguard-tls; claimguard certificates writes "
     "it"},
    {"certificate has expired or is not yet valid",
     "no field: the certificate of admission.tls; claimguard certificates renews it"},
    {"certificate is ", "no field: the certificate of admission.tls; claimguard certificates --host"
                        " NAME adds the name"},
    {"no service port", "clientConfig.service.port: the port of the Service for admission.listen"},
    {"connection refused",
     "clientConfig.service.port (or url): the port of admission.listen, 8443"},
    {"HTTP response to HTTPS client",
     "clientConfig.service.port (or url): the port of admission.listen, 8443"},
    {"the server could not find the requested resource",
     "clientConfig.service.port (or url): the port of admission.listen, 8443"},
    {"no endpoints available", "no field: bring claimguard back (CG611, CG612)"},
    {"not found", "clientConfig.service: the Service of claimguard"},
    {"deadline exceeded",
     "no field: let the API servers reach the port of admission.listen, in NetworkPolicy "
     "claimguard (spec.ingress, port admission) and in firewalls"},
    {"imeout", "no field: let the API servers reach the port of admission.listen, in NetworkPolicy "
               "claimguard (spec.ingress, port admission) and in firewalls"},
    {"an error on the server", "no field: claimguard's log says why (could not be reviewed)"},
    {"", "what the message says"},
};

static const char *change_for(struct slice message)
{
    size_t i = 0;

    while (!slice_has(message, slice_of(changes[i].text)))
        i++;
    return changes[i].change;
}

/* ---- a webhook of our own ---- */

static void put_text(struct buf *body, const char *key, struct slice text)
{
    if (text.len == 0)
        return;
    buf_printf(body, "\"%s\":", key);
    buf_json(body, text);
    buf_put(body, SLICE(","));
}

static void put_client(struct buf *body, const struct webhook *webhook)
{
    put_text(body, "url", webhook->url);
    put_text(body, "caBundle", webhook->bundle);
    if (webhook->service.len != 0) {
        buf_put(body, SLICE("\"service\":{"));
        put_text(body, "namespace", webhook->service_ns);
        put_text(body, "path", webhook->path);
        if (webhook->port != 0)
            buf_printf(body, "\"port\":%lld,", (long long)webhook->port);
        buf_put(body, SLICE("\"name\":"));
        buf_json(body, webhook->service);
        buf_put(body, SLICE("},"));
    }
    if (body->len != 0 && body->bytes[body->len - 1] == ',')
        body->len--;
}

static int put_webhook(struct trial *trial, const struct webhook_entry *entry, const char *name,
                       struct error *err)
{
    struct request_answer answer = {.status = 0};
    struct buf body;

    buf_init(&body, BODY_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"admissionregistration.k8s.io/v1\",\"kind\":"
                         "\"ValidatingWebhookConfiguration\","));
    trial_put_metadata(trial, trial->name, &body);
    buf_printf(&body,
               ",\"webhooks\":[{\"name\":\"%s\",\"admissionReviewVersions\":[\"v1\"],"
               "\"sideEffects\":\"NoneOnDryRun\",\"failurePolicy\":\"Fail\",\"timeoutSeconds\":5,"
               "\"rules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":["
               "\"CREATE\"],\"resources\":[%s]}],\"namespaceSelector\":{\"matchLabels\":{"
               "\"" NAMESPACE_LABEL "\":\"%s\"}},\"clientConfig\":{",
               name, entry->is_binding ? "\"pods/binding\"" : "\"pods\"", trial->name);
    put_client(&body, entry->webhook);
    buf_put(&body, SLICE("}}]}"));
    trial->has_webhook = true;
    return trial_post(trial, TRIAL_WEBHOOK, &body, "a ValidatingWebhookConfiguration", &answer,
                      err);
}

/* A dry run that claimguard denies in any case, of a pod or a claim that is not there. */
static int ask(struct trial *trial, bool is_binding, struct slice *message, struct error *err)
{
    const struct trial_pod pod = {"nobody", "nothing", NULL, true};
    struct request_answer answer = {.status = 0};
    struct request request =
        is_binding ? trial_binding_request(trial, "nobody", SLICE("none"), false, "?dryRun=All")
                   : trial_pod_request(trial, &pod, "?dryRun=All");

    if (request.path == NULL)
        return error_no_memory(err);
    if (api_call(trial->api, &request, &answer, err) < 0)
        return err->code;
    *message = answer.message;
    return 0;
}

/* What the API server says when it has called that webhook; empty: it never has. */
static int await_call(struct trial *trial, bool is_binding, const char *name, struct slice *message,
                      struct error *err)
{
    int rc = 0;

    *message = SLICE("");
    for (int i = 0; i < WAITS_MAX && rc == 0; i++) {
        rc = ask(trial, is_binding, message, err);
        if (rc == 0 && slice_has(*message, slice_of(name)))
            return 0;
        if (rc == 0)
            rc = trial_wait(trial, err);
    }
    *message = SLICE("");
    return rc;
}

static int call_webhook(struct trial *trial, const struct webhook_entry *entry, size_t number,
                        struct slice *message, struct error *err)
{
    char name[NAME_BYTES];

    (void)snprintf(name, sizeof name, "verify-%zu.claimguard.io", number);
    if (put_webhook(trial, entry, name, err) < 0 ||
        await_call(trial, entry->is_binding, name, message, err) < 0 ||
        trial_delete(trial, TRIAL_WEBHOOK, slice_of(trial->name), err) < 0)
        return err->code;
    trial->has_webhook = false;
    return 0;
}

/* ---- what is found ---- */

/* If claimguard was called, and no pod got a node, it was claimguard that has stopped them: the row
 * says why. */
static void report_call(const struct webhook_entry *entry, struct slice message, bool has_two,
                        struct findings *findings)
{
    bool is_reached = slice_has(message, SLICE("denied the request"));
    struct slice name = entry->webhook->name;

    if (message.len == 0)
        gaps_add(&findings->gaps, GAP_RULE(CG906),
                 "webhook %.*s: the API server did not use verify's own webhook in time",
                 SLICE_ARG(name));
    else if (is_reached && has_two)
        finding_add(findings, CG907, entry->place,
                    arena_printf(findings->arena,
                                 "webhooks[%.*s].namespaceSelector, objectSelector, "
                                 "matchConditions and rules: those of "
                                 "manifests/webhooks.yaml",
                                 SLICE_ARG(name))
                        .ptr,
                    "the API server can call webhook %.*s, and has not called it", SLICE_ARG(name));
    else if (!is_reached)
        finding_add(
            findings, CG906, entry->place,
            arena_printf(findings->arena, "webhooks[%.*s].%s", SLICE_ARG(name), change_for(message))
                .ptr,
            "webhook %.*s: %.*s", SLICE_ARG(name), SLICE_ARG(message));
}

static bool is_same_call(const struct webhook *a, const struct webhook *b)
{
    return slice_equal(a->url, b->url) && slice_equal(a->bundle, b->bundle) &&
           slice_equal(a->service, b->service) && slice_equal(a->service_ns, b->service_ns) &&
           slice_equal(a->path, b->path) && a->port == b->port;
}

/* Whether one before it is called in the same way. */
static bool is_asked(const struct webhook_entries *entries, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (is_same_call(entries->items[i].webhook, entries->items[index].webhook))
            return true;
    return false;
}

/* Those for Bindings, or those for pods. */
static int explain(struct trial *trial, const struct webhook_entries *entries, bool is_binding,
                   bool has_two, struct findings *findings, struct error *err)
{
    struct slice message = SLICE("");
    size_t count = 0;

    for (size_t i = 0; i < entries->count; i++) {
        const struct webhook_entry *entry = &entries->items[i];
        count += entry->is_binding == is_binding;
        if (entry->is_binding != is_binding || is_asked(entries, i))
            continue;
        if (call_webhook(trial, entry, i, &message, err) < 0)
            return err->code;
        report_call(entry, message, has_two, findings);
    }
    if (count == 0)
        finding_add(findings, CG907,
                    (struct location){.name = SLICE("ValidatingWebhookConfiguration claimguard")},
                    "apply manifests/webhooks.yaml",
                    "there is no webhook for %s that calls claimguard",
                    is_binding ? "Bindings" : "pods that name their nodes");
    return 0;
}

int reach_explain(struct trial *trial, const struct webhook_entries *entries,
                  const struct verify_row *rows, struct findings *findings, struct error *err)
{
    const struct verify_row *binding = &rows[VERIFY_BINDING], *old = &rows[VERIFY_OLD_PATH];
    const struct verify_row *pod = &rows[VERIFY_NODE_NAME];

    if ((binding->holds == HOLDS_NO || old->holds == HOLDS_NO) &&
        explain(trial, entries, true, binding->has_two || old->has_two, findings, err) < 0)
        return err->code;
    return pod->holds == HOLDS_NO ? explain(trial, entries, false, pod->has_two, findings, err) : 0;
}

/* The API server's side of a request, and its preconditions. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulation/admission.h"

static struct server *const server = &world.server;

static const char *const agreed_keys[AGREED] = {
    [AGREED_LOCAL] = "claimLock.Local",
    [AGREED_ANNOTATION] = "claimLock.Annotation",
    [AGREED_CLASS] = "exclusive.fast-storage",
};

static const char *text_at(const json_t *body, const char *outer, const char *inner,
                           const char *key)
{
    const json_t *at = json_object_get(body, outer);

    if (inner != NULL)
        at = json_object_get(at, inner);
    return json_string_value(json_object_get(at, key));
}

static unsigned conflict(struct buf *answer, const char *message)
{
    buf_printf(answer, "{\"kind\":\"Status\",\"message\":\"%s\",\"code\":409}", message);
    return 409;
}

static unsigned absent(struct buf *answer, const char *resource, const char *name, size_t len)
{
    buf_printf(answer,
               "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"details\":{\"kind\":\"%s\",\"name\":"
               "\"%.*s\"},\"code\":404}",
               resource, (int)len, name);
    return 404;
}

/* Sets the text; a merge patch that leaves it out leaves it. Returns whether it is another one. */
static bool set_text(char *text, size_t size, const char *to)
{
    if (to == NULL || strcmp(text, to) == 0)
        return false;
    (void)snprintf(text, size, "%s", to);
    return true;
}

/* The same of an annotation, which null removes. */
static bool set_annotation(char *text, size_t size, const json_t *annotations, const char *key)
{
    const json_t *value = json_object_get(annotations, key);

    return set_text(text, size, json_is_null(value) ? "" : json_string_value(value));
}

/* What others do to a pod right before its Binding. */
static void come_before_binding(struct sim_pod *pod)
{
    bool is_edit = world.edits != 0, is_touch = world.touches != 0;

    if (pod->node >= 0 || !(is_edit || is_touch))
        return;
    world.edits -= is_edit;
    world.touches -= is_touch;
    if (is_edit) {
        pod->annotated = 0;
        pod->edited_ns = world.now_ns;
    }
    trace("somebody patches %s (%s)", pod->name, pod->uid + 24);
    server_publish(pod);
}

static unsigned bind_it(struct sim_pod *pod, const json_t *body, const struct posted *posted,
                        struct buf *answer)
{
    const char *uid = text_at(body, "metadata", NULL, "uid");
    const char *version = text_at(body, "metadata", NULL, "resourceVersion");
    const char *node = text_at(body, "target", NULL, "name");

    come_before_binding(pod);
    if (uid != NULL && strcmp(uid, pod->uid) != 0)
        return conflict(answer, "the UID in the precondition is another one");
    if (version != NULL && strtoull(version, NULL, 10) != pod->version)
        return conflict(answer, "the object has been modified");
    if (pod->node >= 0 || pod->is_terminating || node == NULL)
        return conflict(answer, "pod is already assigned, or being deleted");
    if (world.lost_bindings != 0) {
        world.lost_bindings--;
        return 500;
    }
    unsigned known = pod->fields;
    pod->fields = server_shown_fields(pod);
    pod->node = atoi(node + strlen("node-"));
    pod->looked_ns = posted->looked_ns;
    pod->is_bound_by_other = !posted->is_own;
    world.bound++;
    trace("pod %s (%s) is bound to %s", pod->name, pod->uid + 24, node);
    pod->is_unreviewed = posted->is_unreviewed;
    if (!pod->is_unreviewed)
        check_binding(pod, known);
    server_publish(pod);
    buf_printf(answer, "{\"kind\":\"Status\",\"status\":\"Success\"}");
    return 201;
}

unsigned server_create(const struct posted *posted, struct buf *answer)
{
    struct sim_pod *pod = posted->created;

    if (server_find_pod(pod->name, strlen(pod->name)) != NULL)
        return conflict(answer, "a pod of that name exists");
    if (world.lost_bindings != 0) {
        world.lost_bindings--;
        return 500;
    }
    pod->looked_ns = posted->looked_ns;
    pod->is_bound_by_other = pod->node >= 0;
    pod->is_unreviewed = posted->is_unreviewed;
    if (pod->node >= 0) {
        world.created++;
        if (!pod->is_unreviewed)
            check_binding(pod, pod->fields);
    }
    server_store_pod(pod);
    if (pod->node >= 0) /* before, nobody knows its UID */
        forge_sometimes(pod, 0);
    return 201;
}

static unsigned evict_it(struct sim_pod *pod, const json_t *body, bool asks_budget,
                         struct buf *answer)
{
    const json_t *options = asks_budget ? json_object_get(body, "deleteOptions") : body;
    const char *uid = text_at(options, "preconditions", NULL, "uid");
    bool is_trial = json_array_size(json_object_get(options, "dryRun")) != 0;

    if (uid == NULL)
        broken("an eviction of %s without a UID", pod->name);
    else if (strcmp(uid, pod->uid) != 0)
        return conflict(answer, "the UID in the precondition is another one");
    pod->eviction_requests += !is_trial;
    if (pod->is_terminating)
        return 201;
    if (asks_budget && ((pod->is_protected && server->disruptions_allowed == 0) ||
                        (world.trials_lie && !is_trial))) {
        buf_printf(answer, "{\"message\":\"Cannot evict pod as it would violate the pod's "
                           "disruption budget.\",\"details\":{\"causes\":[{\"reason\":"
                           "\"DisruptionBudget\"}]}}");
        return 429;
    }
    if (is_trial)
        return 201;
    if (asks_budget && pod->is_protected)
        server_set_budget(server->disruptions_allowed - 1);
    world.evicted++;
    pod->evicted_ns = world.now_ns;
    if (pod->preemption++ != 0)
        broken("pod %s (%s) is evicted twice", pod->name, pod->uid + 24);
    trace("pod %s (%s) is evicted", pod->name, pod->uid + 24);
    server_terminate(pod, termination_ns(20));
    buf_printf(answer, "{}");
    return 201;
}

/* KEP-2857: the field can be set only from false to true, and not once the kubelet has initialized
 * the pod; with fieldValidation=Strict, an API server without it refuses it. */
static unsigned patch_fields(struct sim_pod *pod, const json_t *volumes, struct buf *answer)
{
    const json_t *volume;
    size_t i;

    if (json_array_size(volumes) != 0 && world.field == FIELD_ABSENT) {
        buf_printf(answer, "{\"message\":\"unknown field \\\"deferFSMount\\\"\"}");
        return 422;
    }
    /* Kubernetes drops the fields of a gate that is off, unless the object had one before */
    bool is_kept = world.field == FIELD_KNOWN || pod->fields != 0;
    json_array_foreach (volumes, i, volume) {
        const char *name = json_string_value(json_object_get(volume, "name"));
        const json_t *field =
            json_object_get(json_object_get(volume, "persistentVolumeClaim"), "deferFSMount");
        unsigned bit = name == NULL || name[0] != 'v' ? CLAIMS : (unsigned)(name[1] - '0');
        if (bit >= CLAIMS || (pod->claims >> bit & 1) == 0 || !json_is_true(field) ||
            json_object_size(volume) != 2) {
            broken("a patch of %s that is none of the field: volume %s", pod->name, name);
            return 422;
        }
        if (pod->node >= 0)
            broken("a deferral of %s comes when it is bound", pod->name);
        if (!is_kept)
            continue;
        world.deferred += (pod->fields >> bit & 1) == 0;
        pod->fields |= 1U << bit;
    }
    return 200;
}

/* Whether claimguard has deferred it for a claim of which the present one is not. */
static bool is_for_former(const struct sim_pod *pod, unsigned claim)
{
    char prefix[8];

    (void)snprintf(prefix, sizeof prefix, "v%u=", claim);
    const char *mark = strstr(pod->deferred_for, prefix);
    return mark != NULL && strncmp(mark + strlen(prefix), world.server.claims[claim].uid, 36) != 0;
}

static void patch_annotation(struct sim_pod *pod, const char *text)
{
    unsigned bits = 0;

    for (const char *at = text; at != NULL && *at != '\0'; at += *at == ',') {
        if (at[0] != 'v' || at[1] < '0' || at[1] >= '0' + CLAIMS)
            broken("annotation of %s: %s", pod->name, text);
        bits |= 1U << (at[1] - '0');
        at += strcspn(at, ",");
    }
    if (pod->node >= 0)
        broken("a deferral of %s comes when it is bound", pod->name);
    for (unsigned i = 0; i < CLAIMS; i++) {
        bool is_taken_back = (pod->annotated >> i & 1) != 0 && (bits >> i & 1) == 0;
        if (pod->opts_out || (is_taken_back && !is_for_former(pod, i)))
            broken("%s: '%s' takes back what it said before", pod->name, text);
    }
    world.deferred += (bits & ~pod->annotated) != 0;
    pod->annotated = bits;
}

static unsigned patch_pod(struct sim_pod *pod, const json_t *body, struct buf *answer)
{
    const char *uid = text_at(body, "metadata", NULL, "uid");
    const char *version = text_at(body, "metadata", NULL, "resourceVersion");
    const json_t *volumes = json_object_get(json_object_get(body, "spec"), "volumes");
    const json_t *annotations = json_object_get(json_object_get(body, "metadata"), "annotations");
    const json_t *list = json_object_get(annotations, "claimguard.io/defer-fs-mount");
    unsigned before = server_deferred_claims(pod);

    if (uid == NULL || strcmp(uid, pod->uid) != 0)
        return conflict(answer, "the UID in the precondition is another one");
    if (version != NULL && strtoull(version, NULL, 10) != pod->version)
        return conflict(answer, "the object has been modified");
    if ((volumes != NULL || list != NULL) && version == NULL)
        broken("a deferral of %s without a version", pod->name);
    unsigned status = patch_fields(pod, volumes, answer);
    if (status != 200)
        return status;
    bool is_requeue =
        text_at(body, "metadata", "annotations", "claimguard.io/requeue-requested") != NULL;
    pod->requeues += is_requeue;
    bool is_fence = set_text(pod->fenced, sizeof pod->fenced,
                             text_at(body, "metadata", "annotations", "claimguard.io/fenced"));
    if (list != NULL && !world.annotation_is_removed)
        patch_annotation(pod, json_is_null(list) ? "" : json_string_value(list));
    bool is_mark = set_annotation(pod->deferred_for, sizeof pod->deferred_for, annotations,
                                  "claimguard.io/deferred-for");
    if (server_deferred_claims(pod) != before || is_requeue || is_fence || is_mark)
        server_publish(pod); /* else nothing is written, and the version stays */
    server_write_pod(pod, answer);
    return 200;
}

static unsigned handle_pod(const char *method, const char *name, const json_t *body,
                           const struct posted *posted, struct buf *answer)
{
    size_t len = strcspn(name, "/?");
    const char *sub = name + len;
    struct sim_pod *pod = server_find_pod(name, len);

    if (pod == NULL)
        return absent(answer, "pods", name, len);
    if (strcmp(method, "GET") == 0) {
        server_write_pod(pod, answer);
        return 200;
    }
    if (strcmp(method, "PATCH") == 0)
        return patch_pod(pod, body, answer);
    if (strcmp(sub, "/binding") == 0)
        return bind_it(pod, body, posted, answer);
    if (strcmp(sub, "/eviction") == 0 || strcmp(method, "DELETE") == 0)
        return evict_it(pod, body, sub[0] != '\0', answer);
    broken("%s %s", method, name);
    return 500;
}

static unsigned handle_claim(const char *method, const char *name, const json_t *body,
                             struct buf *answer)
{
    struct sim_claim *claim =
        &server->claims[name[0] == 'c' ? (unsigned)atoi(name + 1) : CLAIMS - 1];
    const char *version = text_at(body, "metadata", NULL, "resourceVersion");

    if (claim->is_absent)
        return absent(answer, "persistentvolumeclaims", name, strlen(name));
    if (strcmp(method, "PATCH") == 0) {
        const json_t *annotations =
            json_object_get(json_object_get(body, "metadata"), "annotations");
        const char *holder =
            json_string_value(json_object_get(annotations, "claimguard.io/holder"));
        const char *locked_at =
            json_string_value(json_object_get(annotations, "claimguard.io/locked-at"));
        if (version != NULL && strtoull(version, NULL, 10) != claim->version)
            return conflict(answer, "the object has been modified");
        const json_t *admitted = json_object_get(annotations, "claimguard.io/admitted");
        bool is_change = set_text(claim->admitted, sizeof claim->admitted,
                                  json_is_null(admitted) ? "" : json_string_value(admitted));
        is_change |= set_text(claim->holder, sizeof claim->holder, holder == NULL ? "" : holder);
        is_change |=
            set_text(claim->locked_at, sizeof claim->locked_at, locked_at == NULL ? "" : locked_at);
        trace("claim %s is locked by '%s' (%s)", claim->name, claim->holder, claim->admitted);
        if (is_change) /* else nothing is written, and the version stays */
            server_publish_claim(claim);
    }
    server_write_claim(claim, answer);
    return 200;
}

/* The ConfigMap of the agreement. */
static unsigned handle_agreement(const char *method, const json_t *body, struct buf *answer)
{
    const char *version = text_at(body, "metadata", NULL, "resourceVersion");
    const json_t *data = json_object_get(body, "data");
    size_t known = 0, shown = 0;

    if (strcmp(method, "PATCH") == 0) {
        if (version == NULL || strtoull(version, NULL, 10) != world.agreed_version)
            return conflict(answer, "the object has been modified");
        for (size_t i = 0; i < AGREED; i++) {
            struct agreed_text *agreed = &world.agreed[i];
            known += json_object_get(data, agreed_keys[i]) != NULL;
            if (set_annotation(agreed->value, sizeof agreed->value, data, agreed_keys[i]))
                trace("it is agreed: %s: %s", agreed_keys[i], agreed->value);
        }
        if (known != json_object_size(data))
            broken("a patch of the agreement about something else");
        world.agreed_version++;
    }
    buf_printf(answer,
               "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"claimguard-agreement\","
               "\"resourceVersion\":\"%llu\"},\"data\":{",
               (unsigned long long)world.agreed_version);
    for (size_t i = 0; i < AGREED; i++)
        if (world.agreed[i].value[0] != '\0')
            buf_printf(answer, "%s\"%s\":\"%s\"", shown++ == 0 ? "" : ",", agreed_keys[i],
                       world.agreed[i].value);
    buf_printf(answer, "}}");
    return 200;
}

static unsigned show_openapi(struct buf *answer)
{
    buf_printf(answer,
               "{\"openapi\":\"3.0.0\",\"components\":{\"schemas\":{\"io.k8s.api.core.v1."
               "PersistentVolumeClaimVolumeSource\":{\"properties\":{\"claimName\":{}%s}}}}}",
               world.field != FIELD_ABSENT ? ",\"deferFSMount\":{\"type\":\"boolean\"}" : "");
    return 200;
}

static void count_event(const json_t *event)
{
    const char *reason = json_string_value(json_object_get(event, "reason"));

    world.failures += reason != NULL && (strcmp(reason, "DeferFSMountFailed") == 0 ||
                                         strcmp(reason, "PreemptionFailed") == 0);
}

unsigned server_handle(const char *method, const char *path, struct slice body,
                       const struct posted *posted, struct buf *answer)
{
    static const char pods[] = PODS_PATH;
    static const char claims[] = "/api/v1/namespaces/ns/persistentvolumeclaims/";
    unsigned status = 201; /* events */

    json_t *json = body.len == 0 ? NULL : json_loadb(body.ptr, body.len, 0, NULL);
    if (body.len != 0 && json == NULL)
        broken("no JSON: %.*s", SLICE_ARG(body));
    if (strncmp(path, pods, sizeof pods - 1) == 0)
        status = handle_pod(method, path + sizeof pods - 1, json, posted, answer);
    else if (strncmp(path, claims, sizeof claims - 1) == 0)
        status = handle_claim(method, path + sizeof claims - 1, json, answer);
    else if (strcmp(path, "/api/v1/namespaces/claimguard/configmaps/claimguard-agreement") == 0)
        status = handle_agreement(method, json, answer);
    else if (strcmp(path, "/openapi/v3/api/v1") == 0)
        status = show_openapi(answer);
    else
        count_event(json);
    json_decref(json);
    return status;
}

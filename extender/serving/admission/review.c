#include "extender/serving/admission/review.h"

#include "cache/json/pull_fields.h"

/* A whole body. */
struct envelope {
    struct slice api_version, kind;
    struct review review;
};

static int check_envelope(const struct envelope *envelope, struct error *err)
{
    const struct review *review = &envelope->review;
    const struct protocol_required rows[] = {
        {"request.uid", &review->uid, REVIEW_UID_BYTES_MAX, false},
        {"request.namespace", &review->ns, POD_NAME_BYTES_MAX, false},
        {"request.name", &review->name, POD_NAME_BYTES_MAX, true},
    };

    if (!slice_equal(envelope->api_version, SLICE("admission.k8s.io/v1")) ||
        !slice_equal(envelope->kind, SLICE("AdmissionReview")))
        return error_set(err, ERROR_INVALID,
                         "body: expected an AdmissionReview of admission.k8s.io/v1");
    return protocol_check_required(rows, sizeof rows / sizeof *rows, err);
}

/* ---- reading ---- */

/* The body, or the object in it. */
struct part {
    struct pull json;
    struct place first; /* where it begins in the body */
};

static int read_part(struct part *part, const struct pull_field *fields, size_t count,
                     struct arena *arena, void *out, struct error *err)
{
    struct pull *json = &part->json;

    if (pull_null(json))
        (void)pull_problem(json, "expected an object");
    (void)pull_fields(json, PULL_CASE_EXACT, fields, count, arena, out);
    return pull_finish(json) ? 0 : pull_fail(json, "body", part->first, err);
}

int review_read(struct review *out, struct slice body, struct arena *arena, struct error *err)
{
    static const struct pull_field resource[] = {
        PULL_FIELD("resource", PULL_STRING, envelope, review.resource)};
    static const struct pull_field user[] = {
        PULL_FIELD("username", PULL_STRING, envelope, review.user_name)};
    static const struct pull_field request[] = {
        PULL_FIELD("uid", PULL_STRING, envelope, review.uid),
        PULL_NESTED("resource", resource),
        PULL_FIELD("subResource", PULL_STRING, envelope, review.sub_resource),
        PULL_FIELD("operation", PULL_STRING, envelope, review.operation),
        PULL_FIELD("namespace", PULL_STRING, envelope, review.ns),
        PULL_FIELD("name", PULL_STRING, envelope, review.name),
        PULL_NESTED("userInfo", user),
        PULL_FIELD("dryRun", PULL_BOOLEAN, envelope, review.is_dry_run),
        PULL_FIELD("object", PULL_RAW, envelope, review.object),
    };
    static const struct pull_field fields[] = {
        PULL_FIELD("apiVersion", PULL_STRING, envelope, api_version),
        PULL_FIELD("kind", PULL_STRING, envelope, kind),
        PULL_NESTED("request", request),
    };
    struct envelope envelope = {.kind = SLICE("")};
    struct part whole = {.first = {1, 1}};

    pull_init(&whole.json, body);
    if (read_part(&whole, fields, PULL_FIELD_COUNT(fields), arena, &envelope, err) < 0)
        return err->code;
    *out = envelope.review;
    if (out->user_name.len > USER_NAME_BYTES_MAX)
        out->user_name.len = USER_NAME_BYTES_MAX;
    return check_envelope(&envelope, err);
}

bool review_is_of_binding(const struct review *review)
{
    bool is_old_path =
        slice_equal(review->resource, SLICE("bindings")) && review->sub_resource.len == 0;
    bool is_of_pods = slice_equal(review->resource, SLICE("pods")) &&
                      slice_equal(review->sub_resource, SLICE("binding"));

    return slice_equal(review->operation, SLICE("CREATE")) && (is_old_path || is_of_pods);
}

bool review_is_of_pod(const struct review *review)
{
    return slice_equal(review->operation, SLICE("CREATE")) &&
           slice_equal(review->resource, SLICE("pods")) && review->sub_resource.len == 0;
}

/* ---- the object ---- */

static int begin_object(struct part *out, const struct review *review, struct slice body,
                        struct error *err)
{
    if (review->object.ptr == NULL)
        return error_set(err, ERROR_INVALID, "body: request.object is missing");
    out->first = place_of(body.ptr, review->object.ptr, (struct place){1, 1});
    pull_init(&out->json, review->object);
    return 0;
}

struct binding_object {
    struct slice name, uid, annotation, target_kind, target_name;
};

/* The API server also refuses these. */
static int check_binding(const struct binding_object *binding, const struct review *review,
                         struct error *err)
{
    const struct protocol_required rows[] = {
        {"request.object.metadata.name", &binding->name, POD_NAME_BYTES_MAX, false},
        {"request.object.metadata.uid", &binding->uid, UID_TEXT_BYTES, true},
        {"request.object.target.name", &binding->target_name, POD_NAME_BYTES_MAX, false},
    };

    if (protocol_check_required(rows, sizeof rows / sizeof *rows, err) < 0)
        return err->code;
    if (review->name.len != 0 && !slice_equal(review->name, binding->name))
        return error_set(err, ERROR_INVALID,
                         "body: request.name is not that of request.object.metadata");
    if (binding->target_kind.len != 0 && !slice_equal(binding->target_kind, SLICE("Node")))
        return error_set(err, ERROR_INVALID, "body: request.object.target.kind is not Node");
    return 0;
}

int review_read_binding(struct bind_request *out, struct slice *annotation,
                        const struct review *review, struct slice body, struct arena *arena,
                        struct error *err)
{
    static const struct pull_field annotations[] = {
        PULL_FIELD(DEFER_FS_MOUNT_ANNOTATION, PULL_STRING, binding_object, annotation)};
    static const struct pull_field meta[] = {
        PULL_FIELD("name", PULL_STRING, binding_object, name),
        PULL_FIELD("uid", PULL_STRING, binding_object, uid),
        PULL_NESTED("annotations", annotations),
    };
    static const struct pull_field target[] = {
        PULL_FIELD("kind", PULL_STRING, binding_object, target_kind),
        PULL_FIELD("name", PULL_STRING, binding_object, target_name),
    };
    static const struct pull_field fields[] = {
        PULL_NESTED("metadata", meta),
        PULL_NESTED("target", target),
    };
    struct binding_object binding = {.uid = SLICE("")};
    struct part object = {.first = {1, 1}};

    if (begin_object(&object, review, body, err) < 0 ||
        read_part(&object, fields, PULL_FIELD_COUNT(fields), arena, &binding, err) < 0 ||
        check_binding(&binding, review, err) < 0)
        return err->code;
    *out = (struct bind_request){.pod = {KIND_POD, review->ns, binding.name, binding.uid},
                                 .node = binding.target_name};
    *annotation = binding.annotation;
    return 0;
}

static int check_pod(const struct pod_object *pod, const struct review *review, struct error *err)
{
    if (review->name.len != 0 && !slice_equal(review->name, pod->meta.name))
        return error_set(err, ERROR_INVALID,
                         "body: request.name is not that of request.object.metadata");
    if (pod->node.len == 0)
        return 0;
    if (pod->meta.uid.len == 0)
        return error_set(err, ERROR_INVALID, "body: request.object.metadata.uid is missing");
    if (!slice_is_plain(review->ns) || !slice_is_plain(pod->meta.name) ||
        !slice_is_plain(pod->meta.uid))
        return error_set(err, ERROR_INVALID,
                         "body: a character that no namespace, name or UID of a pod has");
    return 0;
}

int review_read_pod(struct pod_object *out, const struct review *review, struct slice body,
                    struct arena *arena, struct error *err)
{
    struct part object = {.first = {1, 1}};

    *out = (struct pod_object){.claims = NULL};
    if (begin_object(&object, review, body, err) < 0)
        return err->code;
    (void)pod_read(&object.json, arena, out);
    if (!pull_finish(&object.json))
        return object_fail(&object.json, "body", object.first, err);
    out->meta.ns = review->ns;
    if (protocol_limit_pod(out, err) < 0)
        err->code = ERROR_TOO_BIG;
    return err->code < 0 ? err->code : check_pod(out, review, err);
}

bool review_is_of_mirror_pod(const struct review *review, struct arena *arena)
{
    static const struct pull_field annotations[] = {
        {.key = "kubernetes.io/config.mirror", .type = PULL_PRESENCE}};
    static const struct pull_field meta[] = {PULL_NESTED("annotations", annotations)};
    static const struct pull_field fields[] = {PULL_NESTED("metadata", meta)};
    bool is_mirror = false;

    return pull_fields_of(review->object, fields, PULL_FIELD_COUNT(fields), arena, &is_mirror) &&
           is_mirror;
}

/* ---- the answer ---- */

static void put_warnings(struct buf *out, const struct review_answer *answer)
{
    buf_put(out, SLICE(",\"warnings\":["));
    for (size_t i = 0; i < answer->warning_count; i++) {
        buf_put(out, i == 0 ? SLICE("") : SLICE(","));
        buf_json(out, answer->warnings[i]);
    }
    buf_put(out, SLICE("]"));
}

void review_write(struct buf *out, const struct review *review, const struct review_answer *answer)
{
    buf_put(out, SLICE("{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\","
                       "\"response\":{\"uid\":"));
    buf_json(out, review->uid);
    buf_printf(out, ",\"allowed\":%s", answer->is_allowed ? "true" : "false");
    if (!answer->is_allowed) {
        buf_printf(out,
                   ",\"status\":{\"status\":\"Failure\",\"code\":%u,\"reason\":\"%s\",\"message\":",
                   answer->code, answer->reason);
        buf_json(out, answer->message);
        buf_put(out, SLICE("}"));
    }
    if (answer->warning_count != 0)
        put_warnings(out, answer);
    buf_put(out, SLICE("}}"));
}

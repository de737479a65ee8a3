/*
 * The objects of watches and lists: they are decoded, and passed to the sink; or they cannot be
 * decoded.
 */
#include "cache/json/pull_fields.h"
#include "cache/watch/reflector_internal.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { LOG_SKIPPED_MS = 1000 };

/* ---- objects that cannot be decoded: which they are, and what happens to their records ---- */

struct identity identity_read(struct slice text, bool is_event, struct arena *arena)
{
    static const struct pull_field meta[] = {
        PULL_FIELD("namespace", PULL_RAW, identity, ns),
        PULL_FIELD("name", PULL_RAW, identity, name), PULL_FIELD("uid", PULL_RAW, identity, uid),
        PULL_FIELD("resourceVersion", PULL_RAW, identity, version)};
    static const struct pull_field object[] = {
        PULL_FIELD("kind", PULL_RAW, identity, kind),
        PULL_FIELD("apiVersion", PULL_RAW, identity, api_version), PULL_NESTED("metadata", meta)};
    static const struct pull_field event[] = {PULL_FIELD("type", PULL_RAW, identity, type),
                                              PULL_NESTED("object", object)};
    struct identity found = {.type = {NULL, 0}};
    struct slice *texts[] = {&found.type, &found.kind, &found.api_version, &found.ns,
                             &found.name, &found.uid,  &found.version};
    struct pull json;

    pull_init(&json, text);
    (void)pull_fields(&json, PULL_CASE_EXACT, is_event ? event : object,
                      is_event ? PULL_FIELD_COUNT(event) : PULL_FIELD_COUNT(object), arena, &found);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct slice raw = *texts[i], decoded = {NULL, 0};
        pull_init(&json, raw);
        *texts[i] = raw.len != 0 && *raw.ptr == '"' && pull_string(&json, arena, &decoded)
                        ? decoded
                        : (struct slice){NULL, 0};
    }
    return found;
}

bool identity_is_complete(const struct identity *identity, enum kind kind)
{
    return identity->name.len != 0 && (identity->ns.len != 0 || !kind_is_namespaced(kind));
}

void reflector_skip(struct reflector *reflector, enum watch_change change,
                    const struct identity *identity, struct slice text, const char *problem)
{
    struct object object = {.kind = reflector->kind};
    bool is_known = identity_is_complete(identity, reflector->kind);
    struct slice none = {"", 0};
    struct error err = {0};

    atomic_fetch_add(&reflector->status->skipped, 1);
    if (reflector->now_ns >= reflector->log_skipped_ns) {
        reflector->log_skipped_ns = reflector->now_ns + LOG_SKIPPED_MS * NS_PER_MS;
        log_warn("an object is skipped: it cannot be decoded",
                 LOG_STR("resource", reflector_resource(reflector)),
                 LOG_SLICE("namespace", identity->ns), LOG_SLICE("name", identity->name),
                 LOG_STR("error", problem));
    }
    object.meta = (struct meta){.ns = identity->ns,
                                .name = identity->name,
                                .uid = identity->uid,
                                .resource_version = identity->version};
    if (change == CHANGE_DELETE && is_known && identity->uid.len != 0)
        (void)reflector->sink.take(reflector->sink.context, change, &object, text, &err);
    else if (change == CHANGE_PUT && reflector->phase != PHASE_WATCH)
        reflector->sink.keep(reflector->sink.context, reflector->kind,
                             is_known ? identity->ns : none, is_known ? identity->name : none);
}

/* ---- objects ---- */

/* An object without fields, of a kind that is not stored. */
static int read_object(struct reflector *reflector, struct slice text, struct object *out,
                       struct error *err)
{
    struct pull json;

    *out = (struct object){.kind = reflector->kind};
    if (!kind_is_stored(reflector->kind))
        return 0;
    pull_init_checked(&json, text); /* document_object has read it to its end */
    return object_read(&json, reflector->kind, &reflector->arena, out)
               ? 0
               : pull_fail(&json, reflector_resource(reflector), (struct place){1, 1}, err);
}

bool reflector_take_object(struct reflector *reflector, enum watch_change change, struct slice text,
                           struct slice *version)
{
    struct object object;
    struct error err = {0};
    int rc = read_object(reflector, text, &object, &err);

    if (rc == 0) {
        *version = object.meta.resource_version;
        rc = reflector->sink.take(reflector->sink.context, change, &object, text, &err);
        if (rc < 0)
            reflector->sink_error = err;
    }
    if (rc == 0)
        return true;
    if ((rc != ERROR_INVALID && rc != ERROR_TOO_BIG) || !kind_is_stored(reflector->kind)) {
        log_error("an object cannot be stored", LOG_STR("resource", reflector_resource(reflector)),
                  LOG_STR("error", err.message));
        return reflector_give_up(reflector, RESTART_MALFORMED, true);
    }
    arena_reset(&reflector->arena); /* it may be full */
    struct identity identity = identity_read(text, false, &reflector->arena);
    *version = identity.version;
    reflector_skip(reflector, change, &identity, text, err.message);
    return true;
}

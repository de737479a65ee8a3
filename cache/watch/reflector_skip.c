/*
 * Objects that cannot be decoded: which objects they are, and what happens to their records.
 */
#include "cache/json/pull_fields.h"
#include "cache/watch/reflector_internal.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { LOG_SKIPPED_MS = 1000 };

#define IDENTITY(key_, member_) \
    { \
        .key = (key_), .type = PULL_RAW, .offset = offsetof(struct identity, member_) \
    }

struct identity identity_read(struct slice text, bool is_event, struct arena *arena)
{
    static const struct pull_field meta[] = {IDENTITY("namespace", ns), IDENTITY("name", name),
                                             IDENTITY("uid", uid),
                                             IDENTITY("resourceVersion", version)};
    static const struct pull_field object[] = {
        IDENTITY("kind", kind),
        IDENTITY("apiVersion", api_version),
        {.key = "metadata", .type = PULL_OBJECT, PULL_MEMBERS(meta)}};
    static const struct pull_field event[] = {
        IDENTITY("type", type), {.key = "object", .type = PULL_OBJECT, PULL_MEMBERS(object)}};
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

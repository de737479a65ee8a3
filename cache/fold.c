#include "cache/fold.h"

#include "cache/pull_fields.h"

static const struct pod *find_pod(const struct cluster *cluster, const struct object *object)
{
    return object->kind == KIND_POD
               ? cluster_find_pod(cluster, object->meta.namespace, object->meta.name)
               : NULL;
}

/* What was known of a pod before something was said of it. */
struct before {
    struct uid uid; /* of the one that had its name; all zero: none had */
    bool was_holding;
};

/* To be ended with forget_before. */
static struct before look_before(struct cluster *cluster, const struct object *object)
{
    const struct pod *pod = find_pod(cluster, object);
    char text[UID_TEXT_BYTES];
    bool failed = false; /* it is known: nothing is allocated */

    if (pod == NULL)
        return (struct before){.was_holding = false};
    return (struct before){
        .uid = uid_take(&cluster->names, uid_text(&pod->uid, text), &failed),
        .was_holding = pod_holds(pod) && uid_is(&pod->uid, object->meta.uid),
    };
}

static void forget_before(struct cluster *cluster, const struct before *before)
{
    uid_release(&cluster->names, before->uid);
}

static void tell(const struct follow_target *target, enum change change,
                 const struct object *object, bool was_holding)
{
    if (target->changed != NULL)
        target->changed(target->context, change, object, was_holding);
}

/* Tells what has changed; first the end of a pod whose name another one has now. */
static void tell_after(const struct follow_target *target, enum change change,
                       const struct object *object, const struct before *before)
{
    const struct pod *pod = find_pod(target->cluster, object);
    char text[UID_TEXT_BYTES];
    struct slice uid = uid_text(&before->uid, text);
    bool is_there = pod != NULL && uid_is(&pod->uid, uid);

    if (uid.len != 0 && !is_there && !slice_equal(uid, object->meta.uid)) {
        struct object former = {.kind = KIND_POD};
        former.meta = object->meta;
        former.meta.uid = uid;
        tell(target, CHANGE_DELETE, &former, false);
    }
    tell(target, change, object, before->was_holding);
}

int fold_change(const struct follow_target *target, enum change change, const struct object *object,
                struct error *err)
{
    struct before before = look_before(target->cluster, object);
    int rc = 0;

    if (change == CHANGE_DELETE)
        cluster_delete(target->cluster, object);
    else
        rc = cluster_apply(target->cluster, object, err);
    if (rc == 0)
        tell_after(target, change, object, &before);
    forget_before(target->cluster, &before);
    return rc;
}

static void tell_gone(void *context, const struct object *object)
{
    tell(context, CHANGE_DELETE, object, false);
}

void fold_list_end(const struct follow_target *target, enum kind kind, uint64_t version)
{
    struct gone_listener listener = {(void *)(uintptr_t)target, tell_gone};

    cluster_list_end(target->cluster, kind, version, &listener);
}

/* Whether the answer is the object that was asked for: of that kind and name, and with a UID if one
 * is known. Another UID is right: then the one that was meant is gone, and this is its successor.
 */
static bool is_asked_for(const struct object_reference *asked, const struct type *type,
                         const struct meta *meta)
{
    return kind_of(slice_of(type->api_version), slice_of(type->kind)) == asked->kind &&
           slice_equal(meta->namespace, asked->namespace) && slice_equal(meta->name, asked->name) &&
           (meta->uid.len != 0 || asked->uid.len == 0) && version_of(meta->resource_version) != 0;
}

static int read_answer(const struct object_reference *asked, struct slice text, struct arena *arena,
                       struct object *out, struct error *err)
{
    const char *resource = kind_resource(asked->kind);
    struct slice extent;
    struct type type;
    struct pull json;

    pull_init(&json, text);
    if (!document_object(&json, arena, &type, &extent) || !pull_finish(&json))
        return pull_fail(&json, resource, (struct place){1, 1}, err);
    pull_init(&json, extent);
    if (!object_read(&json, asked->kind, arena, out))
        return pull_fail(&json, resource, (struct place){1, 1}, err);
    return is_asked_for(asked, &type, &out->meta)
               ? 0
               : error_set(err, ERROR_INVALID, "%s: the answer is another object", resource);
}

int fold_object(const struct follow_target *target, const struct object_reference *asked,
                struct slice text, uint64_t watched, struct error *err)
{
    struct arena arena;
    struct object object;

    arena_init(&arena, FETCH_BYTES_MAX);
    int rc = read_answer(asked, text, &arena, &object, err);
    if (rc == 0) {
        (void)pthread_rwlock_wrlock(target->lock);
        struct before before = look_before(target->cluster, &object);
        rc = cluster_learn(target->cluster, &object, watched, err);
        if (rc == 0)
            tell_after(target, CHANGE_PUT, &object, &before);
        forget_before(target->cluster, &before);
        (void)pthread_rwlock_unlock(target->lock);
    }
    arena_dispose(&arena);
    return rc;
}

bool fold_says_absent(const struct object_reference *asked, struct slice text)
{
    struct said {
        struct slice kind, reason, resource, name;
    } said = {.kind = {NULL, 0}};
    static const struct pull_field details[] = {
        {.key = "kind", .type = PULL_STRING, .offset = offsetof(struct said, resource)},
        {.key = "name", .type = PULL_STRING, .offset = offsetof(struct said, name)},
    };
    static const struct pull_field fields[] = {
        {.key = "kind", .type = PULL_STRING, .offset = offsetof(struct said, kind)},
        {.key = "reason", .type = PULL_STRING, .offset = offsetof(struct said, reason)},
        {.key = "details", .type = PULL_OBJECT, PULL_MEMBERS(details)},
    };
    struct arena arena;
    struct pull json;

    arena_init(&arena, FETCH_BYTES_MAX);
    pull_init(&json, text);
    bool is_so =
        pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), &arena, &said) &&
        slice_equal(said.kind, SLICE("Status")) && slice_equal(said.reason, SLICE("NotFound")) &&
        slice_equal(said.resource, slice_of(kind_resource(asked->kind))) &&
        slice_equal(said.name, asked->name);
    arena_dispose(&arena);
    return is_so;
}

void fold_absence(const struct follow_target *target, const struct object_reference *gone)
{
    struct object object = {.kind = gone->kind};

    object.meta = (struct meta){.namespace = gone->namespace, .name = gone->name, .uid = gone->uid};
    (void)pthread_rwlock_wrlock(target->lock);
    cluster_learn_gone(target->cluster, gone->kind, gone->namespace, gone->name, gone->uid);
    tell(target, CHANGE_DELETE, &object, false);
    (void)pthread_rwlock_unlock(target->lock);
}

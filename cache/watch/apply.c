#include "cache/watch/apply.h"

#include "cache/cluster/allowance.h"
#include "cache/cluster/unconfirmed.h"
#include "cache/json/pull_fields.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { REPORT_BYTES_MAX = 1 << 20 }; /* memory for what is reported after the lock is released */

static const struct pod *find_pod(const struct cluster *cluster, const struct object *object)
{
    return object->kind == KIND_POD ? cluster_find_pod(cluster, object->meta.ns, object->meta.name)
                                    : NULL;
}

static bool has_node(const struct cluster *cluster, const struct meta *meta)
{
    const struct node *node = cluster_find_node(cluster, meta->name);

    return node != NULL && uid_is(&node->uid, meta->uid);
}

/* Whether the CSINode lists no driver that it did not list before, for the same node. */
static bool has_drivers(const struct cluster *cluster, const struct object *object)
{
    const struct csi_node *csi_node = cluster_find_csi_node(cluster, object->meta.name);
    struct slice drivers = object->resource.attributes[CSI_NODE_DRIVERS], driver;
    char text[UID_TEXT_BYTES];

    if (csi_node == NULL ||
        !slice_equal(uid_text(&csi_node->owner, text), object->resource.attributes[CSI_NODE_OWNER]))
        return false;
    while (words_next(&drivers, &driver))
        if (!words_have(name_slice(csi_node->drivers), driver))
            return false;
    return true;
}

/* What was known about an object before a change. */
struct before {
    struct arena arena;
    struct slice former; /* UID of the pod that had this name before, and is gone; empty: none */
    bool was_there;      /* see informer_target.changed */
    /* An unconfirmed answer said that it is gone, or bound. After look_after: and was wrong. */
    bool was_gone, was_bound;
};

/* Under the lock. report_change disposes of the result. */
static void look_before(struct before *before, const struct cluster *cluster,
                        const struct object *object)
{
    const struct pod *pod = find_pod(cluster, object);
    char text[UID_TEXT_BYTES];
    const struct unconfirmed *answer = unconfirmed_find(cluster, object->meta.uid);

    *before = (struct before){.was_gone = answer != NULL && answer->is_gone,
                              .was_bound = answer != NULL && !answer->is_gone};
    arena_init(&before->arena, REPORT_BYTES_MAX);
    if (object->kind == KIND_NODE)
        before->was_there = has_node(cluster, &object->meta);
    if (object->kind == KIND_CSI_NODE)
        before->was_there = has_drivers(cluster, object);
    if (pod == NULL)
        return;
    if (uid_is(&pod->uid, object->meta.uid))
        before->was_there = pod_holds(pod) && !before->was_bound;
    else
        before->former = arena_copy(&before->arena, uid_text(&pod->uid, text));
}

/* Under the lock. */
static void look_after(struct before *before, const struct cluster *cluster,
                       const struct object *object)
{
    const struct pod *pod = find_pod(cluster, object);

    if (pod != NULL && uid_is(&pod->uid, before->former))
        before->former.len = 0; /* the change was older, and ignored */
    before->was_gone = before->was_gone && !cluster_is_known_gone(cluster, object->meta.uid);
    before->was_bound = before->was_bound && pod != NULL && !pod_is_assigned(pod);
}

static void report(const struct informer_target *target, enum watch_change change,
                   const struct object *object, bool was_there)
{
    if (target->changed != NULL)
        target->changed(target->context, change, object, was_there);
}

static void report_gone(const struct informer_target *target, const struct object_reference *gone)
{
    struct object object = {.kind = gone->kind};

    object.meta = (struct meta){.ns = gone->ns, .name = gone->name, .uid = gone->uid};
    report(target, CHANGE_DELETE, &object, false);
}

/* Logs that an earlier answer of the API server was wrong. */
static void log_refuted(const struct object *object, const struct before *before)
{
    const struct meta *meta = &object->meta;

    if (before->was_gone)
        log_warn("an object exists, although the API server did not find it",
                 LOG_STR("resource", kind_resource(object->kind)), LOG_SLICE("namespace", meta->ns),
                 LOG_SLICE("name", meta->name));
    if (before->was_bound)
        log_warn("a pod is not bound, although its Binding succeeded", LOG_POD(meta));
}

/* Reports the change, if it was applied (rc). Before it, reports that a pod is gone: the one that
 * had this name before; or this pod, if it was wrongly known as bound: its claims are free now.
 * Without the lock. */
static void report_change(const struct informer_target *target, enum watch_change change,
                          const struct object *object, struct before *before, int rc)
{
    const struct meta *meta = &object->meta;
    struct object_reference ended = {KIND_POD, meta->ns, meta->name,
                                     before->was_bound ? meta->uid : before->former};

    if (rc == 0 && change == CHANGE_PUT)
        log_refuted(object, before);
    if (rc == 0 && ended.uid.len != 0)
        report_gone(target, &ended);
    if (rc == 0)
        report(target, change, object, before->was_there);
    arena_dispose(&before->arena);
}

/* ---- the sink ---- */

/* An object of a list, or an event of a watch. Errors: as cluster_apply. */
static int apply_change(void *context, enum watch_change change, const struct object *object,
                        struct slice text, struct error *err)
{
    const struct informer_target *target = context;
    struct before before;
    int rc = 0;

    (void)text;
    (void)pthread_rwlock_wrlock(target->lock);
    look_before(&before, target->cluster, object);
    if (change == CHANGE_DELETE)
        cluster_delete(target->cluster, object);
    else
        rc = cluster_apply(target->cluster, object, err);
    if (object->kind == KIND_POD && !target->cluster->lists[KIND_POD].is_open)
        target->cluster->pods_seen = version_of(object->meta.resource_version);
    look_after(&before, target->cluster, object);
    (void)pthread_rwlock_unlock(target->lock);
    report_change(target, change, object, &before, rc);
    return rc;
}

static void begin_list(void *context, enum kind kind, bool overrides, uint64_t asked_ns)
{
    const struct informer_target *target = context;

    (void)pthread_rwlock_wrlock(target->lock);
    cluster_list_begin(target->cluster, kind, overrides, asked_ns);
    (void)pthread_rwlock_unlock(target->lock);
}

static void keep(void *context, enum kind kind, struct slice ns, struct slice name)
{
    const struct informer_target *target = context;

    (void)pthread_rwlock_wrlock(target->lock);
    cluster_list_keep(target->cluster, kind, ns, name);
    (void)pthread_rwlock_unlock(target->lock);
}

/* cluster.is_unserved, until a list of the kind is complete. */
static void mark_unserved(void *context, enum kind kind)
{
    const struct informer_target *target = context;

    (void)pthread_rwlock_wrlock(target->lock);
    target->cluster->is_unserved[kind] = true;
    (void)pthread_rwlock_unlock(target->lock);
}

/* What one step of a list's end removes; it is reported without the lock. */
struct leaving {
    struct arena arena;
    struct kept_reference *first;
};

static void keep_gone(void *context, const struct object *object)
{
    const struct meta *meta = &object->meta;
    struct object_reference reference = {object->kind, meta->ns, meta->name, meta->uid};
    struct leaving *leaving = context;

    /* without memory it is not reported: a waiting pod then waits until the scheduler itself tries
     * it again */
    (void)object_reference_keep(&leaving->first, &reference, &leaving->arena);
}

static void end_list(void *context, enum kind kind, uint64_t version)
{
    const struct informer_target *target = context;
    struct leaving leaving = {.first = NULL};
    struct gone_listener listener = {&leaving, keep_gone};
    bool has_more = true;

    arena_init(&leaving.arena, REPORT_BYTES_MAX);
    while (has_more) {
        leaving.first = NULL;
        arena_reset(&leaving.arena);
        (void)pthread_rwlock_wrlock(target->lock);
        has_more = cluster_list_end(target->cluster, kind, version, &listener);
        (void)pthread_rwlock_unlock(target->lock);
        for (const struct kept_reference *gone = leaving.first; gone != NULL; gone = gone->next)
            report_gone(target, &gone->reference);
    }
    (void)pthread_rwlock_wrlock(target->lock);
    cluster_list_ended(target->cluster, kind, version, monotonic_ns());
    (void)pthread_rwlock_unlock(target->lock);
    arena_dispose(&leaving.arena);
}

struct reflector_sink apply_sink(const struct informer_target *target)
{
    return (struct reflector_sink){
        (void *)(uintptr_t)target, begin_list, end_list, apply_change, keep, mark_unserved};
}

/* ---- answers to GETs ---- */

/* Whether the answer is the requested object: it has that kind and name, and a UID if one is known.
 * Another UID is valid: then the requested object is gone, and this is its successor. */
static bool is_requested(const struct object_reference *asked, const struct type *type,
                         const struct meta *meta)
{
    return kind_of(slice_of(type->api_version), slice_of(type->kind)) == asked->kind &&
           slice_equal(meta->ns, asked->ns) && slice_equal(meta->name, asked->name) &&
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
    pull_init_checked(&json, extent);
    if (!object_read(&json, asked->kind, arena, out))
        return object_fail(&json, resource, (struct place){1, 1}, err);
    return is_requested(asked, &type, &out->meta)
               ? 0
               : error_set(err, ERROR_INVALID, "%s: the answer is a different object", resource);
}

/* Whether the pod or claim with that name and UID is known. */
static bool is_known(const struct cluster *cluster, const struct object_reference *object)
{
    if (object->kind == KIND_POD)
        return cluster_find_same_pod(cluster, object) != NULL;
    const struct claim *claim = cluster_find_claim(cluster, object->ns, object->name);
    return claim != NULL && claim->exists && uid_is(&claim->uid, object->uid);
}

/* Another object has the name. The requested object is gone if that other object is known now. Else
 * the answer is late, or from an older history (a restored backup), and proves nothing; or the
 * namespace is given up, and nobody decides by it. Under the lock. */
static int learn_successor(const struct informer_target *target,
                           const struct object_reference *asked, const struct meta *successor,
                           struct error *err)
{
    const struct object_reference other = {asked->kind, successor->ns, successor->name,
                                           successor->uid};

    if (is_known(target->cluster, &other))
        cluster_learn_gone(target->cluster, asked, monotonic_ns());
    else if (is_known(target->cluster, asked) && !allowance_is_over(target->cluster, asked->ns))
        return error_set(err, ERROR_UNAVAILABLE, "the answer is older than the cache");
    return 0;
}

int apply_object(const struct informer_target *target, const struct object_reference *asked,
                 struct slice text, uint64_t watched, uint64_t asked_ns, struct error *err)
{
    struct arena arena;
    struct object object = {.kind = asked->kind};

    arena_init(&arena, FETCH_BYTES_MAX);
    int rc = read_answer(asked, text, &arena, &object, err);
    if (rc == 0) {
        struct before before;
        (void)pthread_rwlock_wrlock(target->lock);
        look_before(&before, target->cluster, &object);
        rc = cluster_learn(target->cluster, &object, watched, asked_ns, err);
        if (!slice_equal(asked->uid, object.meta.uid))
            rc = rc < 0 ? rc : learn_successor(target, asked, &object.meta, err);
        look_after(&before, target->cluster, &object);
        (void)pthread_rwlock_unlock(target->lock);
        report_change(target, CHANGE_PUT, &object, &before, rc);
        if (rc == 0 && asked->uid.len != 0 && !slice_equal(asked->uid, object.meta.uid))
            report_gone(target, asked); /* a pod without a record may have had a reservation */
    }
    arena_dispose(&arena);
    return rc;
}

bool apply_says_absent(const struct object_reference *asked, struct slice text)
{
    struct said {
        struct slice kind, reason, resource, name;
    } said = {.kind = {NULL, 0}};
    static const struct pull_field details[] = {
        PULL_FIELD("kind", PULL_STRING, said, resource),
        PULL_FIELD("name", PULL_STRING, said, name),
    };
    static const struct pull_field fields[] = {
        PULL_FIELD("kind", PULL_STRING, said, kind),
        PULL_FIELD("reason", PULL_STRING, said, reason),
        PULL_NESTED("details", details),
    };
    struct arena arena;

    arena_init(&arena, FETCH_BYTES_MAX);
    bool is_so = pull_fields_of(text, fields, PULL_FIELD_COUNT(fields), &arena, &said) &&
                 slice_equal(said.kind, SLICE("Status")) &&
                 slice_equal(said.reason, SLICE("NotFound")) &&
                 slice_equal(said.resource, slice_of(kind_resource(asked->kind))) &&
                 slice_equal(said.name, asked->name);
    arena_dispose(&arena);
    return is_so;
}

void apply_absence(const struct informer_target *target, const struct object_reference *gone)
{
    (void)pthread_rwlock_wrlock(target->lock);
    cluster_learn_gone(target->cluster, gone, monotonic_ns());
    (void)pthread_rwlock_unlock(target->lock);
    report_gone(target, gone);
}

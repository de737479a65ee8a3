#include "cache/fold.h"

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

int fold_object(const struct follow_target *target, enum kind kind, struct slice text,
                uint64_t watched, struct error *err)
{
    struct arena arena;
    struct object object;
    struct pull json;

    arena_init(&arena, FETCH_BYTES_MAX);
    pull_init(&json, text);
    int rc = object_read(&json, kind, &arena, &object) && pull_finish(&json)
                 ? 0
                 : pull_fail(&json, kind_resource(kind), (struct place){1, 1}, err);
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

void fold_absence(const struct follow_target *target, const struct object_reference *gone)
{
    struct object object = {.kind = gone->kind};

    object.meta = (struct meta){.namespace = gone->namespace, .name = gone->name, .uid = gone->uid};
    (void)pthread_rwlock_wrlock(target->lock);
    cluster_learn_gone(target->cluster, gone->kind, gone->namespace, gone->name, gone->uid);
    tell(target, CHANGE_DELETE, &object, false);
    (void)pthread_rwlock_unlock(target->lock);
}

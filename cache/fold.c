#include "cache/fold.h"

/* Whether the pod that the object speaks of takes up its claims, as far as is known. */
static bool is_holding(const struct cluster *cluster, const struct object *object)
{
    const struct pod *pod =
        object->kind == KIND_POD
            ? cluster_find_pod(cluster, object->meta.namespace, object->meta.name)
            : NULL;
    return pod != NULL && pod_holds(pod) && uid_is(&pod->uid, object->meta.uid);
}

static void tell(const struct follow_target *target, enum change change,
                 const struct object *object, bool was_holding)
{
    if (target->changed != NULL)
        target->changed(target->context, change, object, was_holding);
}

int fold_change(const struct follow_target *target, enum change change, const struct object *object,
                struct error *err)
{
    bool was_holding = is_holding(target->cluster, object);

    if (change == CHANGE_DELETE)
        cluster_delete(target->cluster, object);
    else if (cluster_apply(target->cluster, object, err) < 0)
        return err->code;
    tell(target, change, object, was_holding);
    return 0;
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
        bool was_holding = is_holding(target->cluster, &object);
        rc = cluster_learn(target->cluster, &object, watched, err);
        if (rc == 0)
            tell(target, CHANGE_PUT, &object, was_holding);
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

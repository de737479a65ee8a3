#include "extender/bind/creation.h"

#include "policy/defer_fs_mount.h"

bool creation_describe(const struct cluster *cluster, const struct pod_object *created,
                       struct arena *arena, struct pod_object *out)
{
    size_t absent = created->claim_count;

    *out = *created;
    out->claim_count = 0;
    out->claims = arena_alloc(arena, created->claim_count * sizeof *out->claims);
    if (out->claims == NULL)
        return false;
    for (size_t i = 0; i < created->claim_count; i++) {
        bool is_there =
            !created->claims[i].is_ephemeral ||
            cluster_find_claim(cluster, created->meta.ns, created->claims[i].name) != NULL;
        out->claims[is_there ? out->claim_count++ : --absent] = created->claims[i];
    }
    return true;
}

int creation_check_names(const struct cluster *cluster, const struct pod_object *created,
                         struct error *err)
{
    for (size_t i = 0; i < created->claim_count; i++) {
        struct slice name = created->claims[i].name;
        const struct claim *claim = cluster_find_named_claim(cluster, created->meta.ns, name);
        if (created->claims[i].is_ephemeral && claim != NULL && !claim->exists &&
            (claim->refs != 0 || claim_is_reserved(claim)))
            return error_set(err, ERROR_INVALID,
                             "claim %.*s/%.*s, which is to be created for this pod, is in use by "
                             "another pod",
                             SLICE_ARG(created->meta.ns), SLICE_ARG(name));
    }
    return 0;
}

int creation_check_deferral(const struct view *view, const struct pod_object *pod,
                            struct error *err)
{
    for (uint32_t i = 0; pod->mounts != NULL && i < pod->mounts->volume_count; i++)
        if (defer_needs_claim(view, pod, &pod->mounts->volumes[i]))
            return error_set(err, ERROR_INVALID,
                             "whether volume %.*s is deferred depends on its claim, which does not "
                             "exist before the pod: leave spec.nodeName to a scheduler, or set "
                             "the annotation " DEFER_FS_MOUNT_ANNOTATION,
                             SLICE_ARG(pod->mounts->volumes[i].name));
    return 0;
}

int creation_apply(struct state *state, const struct pod_object *pod, struct error *err)
{
    const struct object object = {.kind = KIND_POD, .pod = *pod};

    return cluster_apply(&state->cluster, &object, err);
}

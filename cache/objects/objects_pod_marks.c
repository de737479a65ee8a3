/* What annotations and containers say about a pod's volumes. */
#include "cache/objects/objects_internal.h"

#include <stdlib.h>

/* More than a UID has. */
enum { DEFERRED_FOR_BYTES_MAX = 40 };

/* A pod's volumes, sorted by name: a pod may have thousands, and mount each a hundred times. */
struct by_name {
    struct pod_volume **volumes;
    size_t count;
};

static int compare_names(const void *a, const void *b)
{
    const struct pod_volume *const *x = a, *const *y = b;
    return slice_compare((*x)->name, (*y)->name);
}

/* False: no memory. */
static bool sort_volumes(const struct pod_mounts *mounts, struct arena *arena, struct by_name *out)
{
    out->count = mounts->volume_count;
    out->volumes = arena_alloc(arena, (out->count + 1) * sizeof *out->volumes);
    if (out->volumes == NULL)
        return false;
    for (size_t i = 0; i < out->count; i++)
        out->volumes[i] = &mounts->volumes[i];
    qsort((void *)out->volumes, out->count, sizeof *out->volumes, compare_names);
    return true;
}

/* NULL: there is none. Names of volumes are unique in a pod. */
static struct pod_volume *find_volume(const struct by_name *by_name, struct slice name)
{
    struct pod_volume key = {.name = name}, *wanted = &key;
    struct pod_volume *const *found =
        bsearch((const void *)&wanted, (const void *)by_name->volumes, by_name->count,
                sizeof *by_name->volumes, compare_names);

    return found == NULL ? NULL : *found;
}

static void mark_annotated(const struct by_name *by_name, struct slice annotation)
{
    struct slice name;

    while (annotation_next(&annotation, &name)) {
        struct pod_volume *volume = find_volume(by_name, name);
        if (volume != NULL)
            volume->is_annotated = volume->source != VOLUME_SOURCE_OTHER;
    }
}

static void mark_mounts(const struct by_name *by_name, const struct container *container)
{
    for (size_t i = 0; i < container->mount_count; i++) {
        const struct container_mount *mount = &container->mounts[i];
        struct pod_volume *volume = find_volume(by_name, mount->volume);
        if (volume == NULL)
            continue;
        volume->has_sub_path |= mount->sub_path.len != 0 || mount->sub_path_expr.len != 0;
        volume->has_selinux |= container->has_selinux;
    }
}

/* "VOLUME=UID,...": for which claims claimguard has deferred them. Of a text that is no UID, enough
 * is kept to be none. */
static void mark_deferred_for(const struct by_name *by_name, struct slice deferred_for)
{
    struct slice word;

    while (annotation_next(&deferred_for, &word)) {
        const char *equals = word.len == 0 ? NULL : memchr(word.ptr, '=', word.len);
        if (equals == NULL)
            continue;
        size_t len = (size_t)(equals - word.ptr), rest = word.len - len - 1;
        struct pod_volume *volume = find_volume(by_name, (struct slice){word.ptr, len});
        if (volume != NULL)
            volume->deferred_for = (struct slice){
                equals + 1, rest < DEFERRED_FOR_BYTES_MAX ? rest : DEFERRED_FOR_BYTES_MAX};
    }
}

bool pod_mark_volumes(struct pod_mounts *mounts, struct slice deferred_for,
                      const struct container *containers, size_t container_count,
                      struct arena *arena)
{
    struct by_name by_name;

    if (mounts->annotation.len == 0 && mounts->runtime_class.len == 0)
        return true; /* without a runtime class, no mount can be deferred */
    if (!sort_volumes(mounts, arena, &by_name))
        return false;
    mark_annotated(&by_name, mounts->annotation);
    mark_deferred_for(&by_name, deferred_for);
    for (size_t i = 0; mounts->runtime_class.len != 0 && i < container_count; i++)
        mark_mounts(&by_name, &containers[i]);
    return true;
}

#include "cache/objects/pod_mounts.h"

#include <stdlib.h>

#include "cache/objects/objects_internal.h"

bool mounts_defer(const struct pod_mounts *mounts)
{
    for (uint32_t i = 0; i < mounts->volume_count; i++)
        if (volume_is_deferred(&mounts->volumes[i]))
            return true;
    return false;
}

bool mounts_have_inline(const struct pod_mounts *mounts)
{
    for (uint32_t i = 0; i < mounts->volume_count; i++)
        if (mounts->volumes[i].source == VOLUME_SOURCE_CSI)
            return true;
    return false;
}

static struct slice trim(struct slice text)
{
    while (text.len != 0 && text.ptr[0] == ' ')
        text = (struct slice){text.ptr + 1, text.len - 1};
    while (text.len != 0 && text.ptr[text.len - 1] == ' ')
        text.len--;
    return text;
}

bool mounts_opt_out(const struct pod_mounts *mounts)
{
    return slice_equal(trim(mounts->annotation), SLICE(DEFER_FS_MOUNT_OPT_OUT));
}

bool annotation_next(struct slice *rest, struct slice *name)
{
    if (!words_next(rest, name))
        return false;
    *name = trim(*name);
    return true;
}

bool annotation_names(struct slice annotation, struct slice volume)
{
    struct slice name;

    while (annotation_next(&annotation, &name))
        if (slice_equal(name, volume))
            return true;
    return false;
}

struct pod_volume *mounts_find(const struct pod_mounts *mounts, struct slice name)
{
    for (uint32_t i = 0; i < mounts->volume_count; i++)
        if (slice_equal(mounts->volumes[i].name, name))
            return &mounts->volumes[i];
    return NULL;
}

struct pod_volume *mounts_find_near(const struct pod_mounts *mounts, struct slice name,
                                    uint32_t index)
{
    if (index < mounts->volume_count && slice_equal(mounts->volumes[index].name, name))
        return &mounts->volumes[index];
    return mounts_find(mounts, name);
}

/* ---- fields that an older scheduler dropped ---- */

/* A pod's volumes and their order do not change. */
static bool misses_field(const struct pod_mounts *mounts, const struct pod_mounts *known,
                         uint32_t i)
{
    const struct pod_volume *volume = &mounts->volumes[i];

    if (i >= known->volume_count)
        return false;
    const struct pod_volume *same = &known->volumes[i];
    return same->field == DEFER_FIELD_TRUE && volume->field != DEFER_FIELD_TRUE &&
           same->source == volume->source && slice_equal(same->name, volume->name) &&
           slice_equal(same->claim, volume->claim) && slice_equal(same->driver, volume->driver);
}

bool mounts_miss_field(const struct pod_mounts *mounts, const struct pod_mounts *known)
{
    for (uint32_t i = 0; i < mounts->volume_count; i++)
        if (misses_field(mounts, known, i))
            return true;
    return false;
}

void mounts_take_fields(struct pod_mounts *mounts, const struct pod_mounts *known)
{
    for (uint32_t i = 0; i < mounts->volume_count; i++)
        if (misses_field(mounts, known, i))
            mounts->volumes[i].field = DEFER_FIELD_TRUE;
}

/* ---- one block: the struct, its volumes, their strings ---- */

enum { POD_STRINGS = 3, VOLUME_STRINGS = 5 };

static void pod_strings(struct pod_mounts *mounts, struct slice *out[POD_STRINGS])
{
    out[0] = &mounts->runtime_class;
    out[1] = &mounts->fs_group_change_policy;
    out[2] = &mounts->annotation;
}

static void volume_strings(struct pod_volume *volume, struct slice *out[VOLUME_STRINGS])
{
    out[0] = &volume->name;
    out[1] = &volume->claim;
    out[2] = &volume->driver;
    out[3] = &volume->fs_type;
    out[4] = &volume->deferred_for;
}

size_t mounts_bytes(const struct pod_mounts *mounts)
{
    size_t bytes = sizeof *mounts + mounts->runtime_class.len + mounts->fs_group_change_policy.len +
                   mounts->annotation.len;

    for (uint32_t i = 0; i < mounts->volume_count; i++) {
        const struct pod_volume *volume = &mounts->volumes[i];
        bytes += sizeof *volume + volume->name.len + volume->claim.len + volume->driver.len +
                 volume->fs_type.len + volume->deferred_for.len;
    }
    return bytes;
}

/* Copies the slice's bytes to *at, and moves *at after them. */
static void move(struct slice *text, char **at)
{
    if (text->len != 0)
        memcpy(*at, text->ptr, text->len);
    text->ptr = *at;
    *at += text->len;
}

struct pod_mounts *mounts_copy(const struct pod_mounts *mounts, void *memory)
{
    struct pod_mounts *copy = memory;
    struct pod_volume *volumes = (void *)(copy + 1);
    char *at = (void *)(volumes + mounts->volume_count);
    struct slice *texts[VOLUME_STRINGS];

    *copy = *mounts;
    copy->volumes = volumes;
    pod_strings(copy, texts);
    for (int i = 0; i < POD_STRINGS; i++)
        move(texts[i], &at);
    for (uint32_t i = 0; i < mounts->volume_count; i++) {
        volumes[i] = mounts->volumes[i];
        volume_strings(&volumes[i], texts);
        for (int j = 0; j < VOLUME_STRINGS; j++)
            move(texts[j], &at);
    }
    return copy;
}

/* ---- what annotations and containers say about the volumes ---- */

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
    const struct container_mount *mounts = container->mounts.items;

    for (size_t i = 0; i < container->mounts.count; i++) {
        const struct container_mount *mount = &mounts[i];
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

bool mounts_mark(struct pod_mounts *mounts, struct slice deferred_for,
                 const struct container *containers, size_t container_count, struct arena *arena)
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

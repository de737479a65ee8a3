#include "cache/objects/volume_match.h"

#include "cache/objects/label_selector.h"

/* The text up to the next '/', which no name has; *rest is what follows. */
static struct slice cut(struct slice *rest)
{
    const char *slash = rest->len == 0 ? NULL : memchr(rest->ptr, '/', rest->len);
    struct slice first = {rest->ptr, slash == NULL ? rest->len : (size_t)(slash - rest->ptr)};

    *rest = slash == NULL ? SLICE("") : (struct slice){slash + 1, rest->len - first.len - 1};
    return first;
}

/* As IsVolumeBoundToClaim: without a UID, the user has chosen the claim. */
static bool is_kept_for(struct slice kept_for, const struct volume_wish *wish)
{
    struct slice ns = cut(&kept_for), name = cut(&kept_for), uid = kept_for;

    return slice_equal(ns, wish->ns) && slice_equal(name, wish->name) &&
           (uid.len == 0 || slice_equal(uid, wish->uid));
}

bool volume_matches(const struct volume_offered *volume, const struct volume_wish *wish)
{
    if (volume->kept_for.len != 0 && !is_kept_for(volume->kept_for, wish))
        return false;
    if (volume->capacity < wish->requested || volume->is_block != wish->is_block ||
        !slice_equal(volume->attributes_class, wish->attributes_class))
        return false;
    if (volume->kept_for.len != 0)
        return true;
    return slice_equal(volume->storage_class, wish->storage_class) &&
           (wish->access_modes & ~volume->access_modes) == 0 &&
           (wish->selector.len == 0 || selector_matches(wish->selector, volume->labels, SLICE("")));
}

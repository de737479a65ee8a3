#include "cache/objects/own_object.h"

#include "cache/objects/objects_internal.h"

static const char *const kinds[OWN_KIND_COUNT] = {"Reservation", "UnservedResource",
                                                  "ListedResource", "NamespaceGivenUp"};

static const struct pull_field own_meta_fields[] = {
    PULL_FIELD("namespace", PULL_NAME, own_object, meta.ns),
    PULL_FIELD("name", PULL_NAME, own_object, meta.name),
};
static const struct pull_field own_spec_fields[] = {
    PULL_FIELD("podUID", PULL_NAME, own_object, pod_uid),
    PULL_FIELD("priority", PULL_INTEGER, own_object, priority),
    PULL_FIELD("node", PULL_NAME, own_object, node),
    PULL_READER("claims", own_object, claims, words_read_items),
    PULL_READER("sharedClaims", own_object, shared, words_read_items),
    PULL_FIELD("binding", PULL_BOOLEAN, own_object, binds),
    PULL_FIELD("preemptor", PULL_BOOLEAN, own_object, is_of_preemptor),
    PULL_FIELD("expiresInMilliseconds", PULL_INTEGER, own_object, expires_in_ms),
};
static const struct pull_field own_fields[] = {
    PULL_NESTED("metadata", own_meta_fields),
    PULL_NESTED("spec", own_spec_fields),
};

enum own_kind own_kind_of(struct slice api_version, struct slice kind)
{
    struct slice group = SLICE("claimguard.io/");
    bool is_own = api_version.len > group.len &&
                  slice_equal((struct slice){api_version.ptr, group.len}, group);

    for (int i = 0; is_own && i < OWN_KIND_COUNT; i++)
        if (slice_equal(kind, slice_of(kinds[i])))
            return (enum own_kind)i;
    return OWN_NONE;
}

const char *own_kind_text(enum own_kind kind)
{
    return kinds[kind];
}

/* It is shown to people, so it has to be one that the API server takes. */
static bool is_namespace(struct slice name)
{
    size_t i = 0;

    while (i < name.len && ((name.ptr[i] >= 'a' && name.ptr[i] <= 'z') ||
                            (name.ptr[i] >= '0' && name.ptr[i] <= '9') || name.ptr[i] == '-'))
        i++;
    return i == name.len && name.len <= 63;
}

/* NULL, or what is wrong with a reservation. */
static const char *find_problem(const struct own_object *object)
{
    if (object->pod_uid.len == 0)
        return "a Reservation without spec.podUID";
    if (object->priority < INT32_MIN || object->priority > INT32_MAX)
        return "spec.priority does not fit 32 bits";
    if (object->expires_in_ms < 0 || object->expires_in_ms > INT32_MAX)
        return "spec.expiresInMilliseconds: expected 0 to 2147483647";
    return object->claims.count + object->shared.count > POD_CLAIMS_MAX
               ? "a Reservation of over 512 claims"
               : NULL;
}

bool own_object_read(struct pull *json, enum own_kind kind, struct arena *arena,
                     struct own_object *out)
{
    *out = (struct own_object){.kind = kind};
    if (!pull_fields(json, PULL_CASE_EXACT, own_fields, PULL_FIELD_COUNT(own_fields), arena, out))
        return false;
    if (out->meta.name.len == 0)
        return pull_problem(json, "an object without metadata.name");
    if (kind == OWN_NAMESPACE_GIVEN_UP && !is_namespace(out->meta.name))
        return pull_problem(json, "a NamespaceGivenUp that has no namespace's name");
    if (kind != OWN_RESERVATION)
        return true;
    default_namespace(&out->meta);
    const char *problem = find_problem(out);
    return problem == NULL || pull_problem(json, problem);
}

/* False: the arena is full. */
static bool copy_text(struct slice *text, struct arena *arena)
{
    *text = arena_copy(arena, *text);
    return text->ptr != NULL;
}

static bool copy_names(struct pull_items *names, struct arena *arena)
{
    const struct slice *from = names->items;
    struct slice *items = arena_alloc(arena, names->count * sizeof *items);

    for (size_t i = 0; items != NULL && i < names->count; i++) {
        items[i] = from[i];
        if (!copy_text(&items[i], arena))
            return false;
    }
    names->items = items;
    return items != NULL;
}

struct own_object *own_object_copy(const struct own_object *object, struct arena *arena)
{
    struct own_object *copy = arena_alloc(arena, sizeof *copy);

    if (copy == NULL)
        return NULL;
    *copy = *object;
    bool is_whole = copy_text(&copy->meta.ns, arena) && copy_text(&copy->meta.name, arena) &&
                    copy_text(&copy->pod_uid, arena) && copy_text(&copy->node, arena) &&
                    copy_names(&copy->claims, arena) && copy_names(&copy->shared, arena);
    return is_whole ? copy : NULL;
}

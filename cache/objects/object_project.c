/* What a snapshot has of an object: the fields that any command reads. */
#include "cache/objects/details.h"
#include "cache/objects/objects_internal.h"

/* ---- fields that a command reads by a reader of its own ---- */

/* The names are those of extender/audit and extender/doctor. */
static const struct pull_field mark_fields[] = {
    {.key = "claimguard.io/claims", .type = PULL_STRING},
};
static const struct pull_field resources_fields[] = {
    PULL_NESTED("requests", mark_fields),
    PULL_NESTED("limits", mark_fields),
};
/* No PULL_NESTED: that a container has resources, but no mark, is written as {}. */
static const struct pull_field container_fields[] = {
    {.key = "resources", .type = PULL_READ, PULL_MEMBERS(resources_fields)},
};
static const struct pull_field pod_spec_fields[] = {
    PULL_NESTED("containers", container_fields),
    PULL_NESTED("initContainers", container_fields),
};
static const struct pull_field annotation_fields[] = {
    {.key = "claimguard.io/audit-ignore", .type = PULL_STRING},
};
static const struct pull_field extra_meta_fields[] = {
    PULL_NESTED("annotations", annotation_fields),
};
static const struct pull_field extra_fields[] = {
    PULL_NESTED("metadata", extra_meta_fields),
    PULL_NESTED("spec", pod_spec_fields),
};
enum { EXTRA_FIELDS = sizeof extra_fields / sizeof *extra_fields };

static struct pull_table extra_table(enum kind kind)
{
    return (struct pull_table){extra_fields, kind == KIND_POD ? EXTRA_FIELDS : EXTRA_FIELDS - 1};
}

/* ---- the object ---- */

int object_project(struct slice text, enum kind kind, struct buf *out, struct error *err)
{
    struct buf fields;
    struct pull json;

    buf_init(&fields, out->max_bytes);
    pull_init(&json, text);
    const struct pull_tables tables = {
        {objects_table(kind), details_table(kind), extra_table(kind)}};
    bool is_good = pull_project(&json, &tables, &fields) && pull_finish(&json);
    if (is_good) {
        buf_printf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\"%s", kind_api_version(kind),
                   kind_text(kind), fields.len > 2 ? "," : "");
        if (fields.len != 0)
            buf_put(out, (struct slice){fields.bytes + 1, fields.len - 1}); /* without its brace */
    }
    bool has_failed = fields.failed || out->failed;
    buf_dispose(&fields);
    if (!is_good)
        return pull_fail(&json, kind_resource(kind), (struct place){1, 1}, err);
    return has_failed ? error_no_memory(err) : 0;
}

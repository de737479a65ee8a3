/* What a snapshot has of an object: the fields that any command reads. */
#include "cache/objects/object_project.h"

#include "cache/objects/details.h"
#include "cache/objects/objects_internal.h"

int object_project(struct slice text, enum kind kind, const struct project_readers *more,
                   struct buf *out, struct error *err)
{
    struct buf fields;
    struct pull json;

    buf_init(&fields, out->max_bytes);
    pull_init(&json, text);
    struct pull_tables tables = {{objects_table(kind), details_table(kind)}};
    for (int i = 0; more != NULL && i < PROJECT_READERS; i++)
        tables.readers[PULL_READERS - PROJECT_READERS + i] = more->readers[i];
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

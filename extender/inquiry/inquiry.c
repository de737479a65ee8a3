#include "extender/inquiry/inquiry_internal.h"

#include <stdlib.h>

#include "cache/store/uthash_config.h"
#include "config/base/clock.h"

/* Of one object: its JSON with the fields of details.h alone. */
struct inquiry_details {
    UT_hash_handle hh;
    size_t key_len, text_len;
    char bytes[]; /* the key, then the text */
};

/* ---- details ---- */

/* "KIND NS/NAME" */
static void put_key(struct buf *key, enum kind kind, struct slice ns, struct slice name)
{
    buf_init(key, 4096);
    buf_printf(key, "%d %.*s/%.*s", (int)kind, SLICE_ARG(kind_is_namespaced(kind) ? ns : SLICE("")),
               SLICE_ARG(name));
}

static struct inquiry_details *find(const struct inquiry *inquiry, struct slice key)
{
    struct inquiry_details *found = NULL;

    HASH_FIND(hh, inquiry->details, key.ptr, key.len, found);
    return found;
}

/* Replaces what was kept of an object with that key. */
static int store(struct inquiry *inquiry, struct slice key, struct slice text, struct error *err)
{
    struct inquiry_details *known = find(inquiry, key);
    struct inquiry_details *details = malloc(sizeof *details + key.len + text.len);

    if (details == NULL)
        return error_no_memory(err);
    details->key_len = key.len;
    details->text_len = text.len;
    memcpy(details->bytes, key.ptr, key.len);
    memcpy(details->bytes + key.len, text.ptr, text.len);
    if (known != NULL) {
        HASH_DEL(inquiry->details, known);
        free(known);
    }
    HASH_ADD_KEYPTR(hh, inquiry->details, details->bytes, details->key_len, details);
    if (details->hh.tbl != NULL)
        return 0;
    free(details);
    return error_no_memory(err);
}

static int keep(struct inquiry *inquiry, const struct source_text *text,
                const struct object *object, struct error *err)
{
    const struct pull_tables tables = {{details_table(object->kind)}};
    struct buf key, projected;
    struct pull json;
    int rc = 0;

    put_key(&key, object->kind, object->meta.ns, object->meta.name);
    buf_init(&projected, INQUIRY_DETAILS_BYTES_MAX);
    pull_init(&json, text->text);
    if (!pull_project(&json, &tables, &projected))
        rc = pull_fail(&json, text->path == NULL ? kind_resource(object->kind) : text->path,
                       text->place, err);
    else if (projected.failed || key.failed)
        inquiry->without_details++;
    else
        rc = store(inquiry, buf_slice(&key), buf_slice(&projected), err);
    buf_dispose(&projected);
    buf_dispose(&key);
    return rc;
}

struct slice inquiry_find_details(const struct inquiry *inquiry, enum kind kind, struct slice ns,
                                  struct slice name)
{
    struct buf key;

    put_key(&key, kind, ns, name);
    const struct inquiry_details *found = key.failed ? NULL : find(inquiry, buf_slice(&key));
    buf_dispose(&key);
    return found == NULL ? (struct slice){NULL, 0}
                         : (struct slice){found->bytes + found->key_len, found->text_len};
}

int inquiry_take(struct inquiry *inquiry, const struct inquiry_wish *wish,
                 const struct source_text *text, const struct object *object, struct error *err)
{
    int used = wish->text_sink == NULL ? 0 : wish->text_sink(wish->context, text, object, err);

    if (used < 0 || object == NULL || wish->keeps == NULL || details_table(object->kind).count == 0)
        return used;
    if (wish->keeps(wish->context, object) && keep(inquiry, text, object, err) < 0)
        return err->code;
    return used;
}

/* ---- reading ---- */

int inquiry_open(struct inquiry *inquiry, const struct inquiry_origin *origin, struct error *err)
{
    *inquiry = (struct inquiry){.snapshot = origin->snapshot, .default_ns = "default"};
    cluster_init(&inquiry->cluster);
    inquiry->cluster.keeps_all_mounts = true;
    if (origin->snapshot != NULL && (origin->kubeconfig != NULL || origin->context != NULL))
        return error_set(err, ERROR_INVALID, "--snapshot and %s: give only one of them",
                         origin->kubeconfig != NULL ? "--kubeconfig" : "--context");
    if (origin->snapshot != NULL)
        return 0;
    if (kubeconfig_load(&inquiry->kubeconfig, origin->kubeconfig, origin->context, true, err) < 0)
        return err->code;
    if (inquiry->kubeconfig->ns != NULL)
        inquiry->default_ns = inquiry->kubeconfig->ns;
    return 0;
}

void inquiry_close(struct inquiry *inquiry)
{
    struct inquiry_details *details, *next;

    HASH_ITER (hh, inquiry->details, details, next) {
        HASH_DEL(inquiry->details, details);
        free(details);
    }
    cluster_dispose(&inquiry->cluster);
    kubeconfig_free(inquiry->kubeconfig);
}

struct reading_snapshot {
    struct inquiry *inquiry;
    const struct inquiry_wish *wish;
};

static int take_text(void *context, const struct source_text *text, const struct object *object,
                     struct error *err)
{
    const struct reading_snapshot *reading = context;
    return inquiry_take(reading->inquiry, reading->wish, text, object, err);
}

int inquiry_read(struct inquiry *inquiry, const struct inquiry_wish *wish, struct error *err)
{
    struct reading_snapshot reading = {inquiry, wish};
    const struct load_texts texts = {take_text, &reading};

    if (inquiry->snapshot != NULL)
        return load_snapshot(&inquiry->cluster, inquiry->snapshot, &texts, &inquiry->report, err);
    inquiry->now_ms = now_ms();
    return inquiry_read_live(inquiry, wish, err);
}

/* ---- gaps ---- */

struct slice inquiry_gap(const struct inquiry *inquiry, enum kind kind, struct arena *arena)
{
    const char *resource = kind_resource(kind);

    if (inquiry->gaps[kind] == GAP_FORBIDDEN)
        return arena_printf(arena, "%s: these credentials may not list them", resource);
    if (inquiry->gaps[kind] == GAP_UNSERVED || inquiry->cluster.is_unserved[kind])
        return arena_printf(arena, "%s: this API server does not serve them", resource);
    if (inquiry->snapshot != NULL && inquiry->cluster.counts[kind] == 0)
        return arena_printf(arena, "%s: the snapshot has none", resource);
    return SLICE("");
}

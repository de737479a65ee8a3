/* An inquiry of a live cluster: lists each kind once. */
#include "extender/inquiry/inquiry_internal.h"

#include <stdio.h>
#include <unistd.h>

#include "cache/watch/lister.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { PROGRESS_MS = 100 };

struct live {
    struct inquiry *inquiry;
    const struct inquiry_wish *wish;
    struct lister lister;
    uint64_t shown_ns;
    const struct text_resource *resource; /* that is listed; NULL: a kind that is stored */
    size_t objects;                       /* of it */
};

/* The names of what is listed. */
static struct text_resource names_of(const struct live *live, enum kind kind)
{
    return live->resource != NULL ? *live->resource
                                  : (struct text_resource){kind_api_version(kind), kind_text(kind),
                                                           kind_resource(kind), false};
}

static void show_progress(struct live *live, enum kind kind)
{
    uint64_t now = monotonic_ns();

    if (!isatty(STDERR_FILENO) || now < live->shown_ns + PROGRESS_MS * NS_PER_MS)
        return;
    live->shown_ns = now;
    (void)fprintf(stderr, "\rreading %s: %zu\033[K", names_of(live, kind).resource, live->objects);
}

static bool is_stored(const struct live *live, enum kind kind)
{
    return kind != KIND_OTHER && !live->wish->is_texts_only;
}

static void begin(void *context, enum kind kind, bool overrides)
{
    struct live *live = context;
    struct text_resource names = names_of(live, kind);

    live->objects = 0;
    if (live->wish->list_begins != NULL)
        live->wish->list_begins(live->wish->context, names.api_version, names.kind);
    if (is_stored(live, kind))
        cluster_list_begin(&live->inquiry->cluster, kind, overrides, monotonic_ns());
}

static void end(void *context, enum kind kind, uint64_t version)
{
    struct live *live = context;

    while (is_stored(live, kind) && cluster_list_end(&live->inquiry->cluster, kind, version, NULL))
        continue;
}

static int take(void *context, enum watch_change change, const struct object *object,
                struct slice text, struct error *err)
{
    struct live *live = context;
    struct type type;
    const struct source_text source_text = {.type = &type, .text = text};
    const struct text_resource names = names_of(live, object->kind);

    (void)change;
    type_put(type.api_version, slice_of(names.api_version));
    type_put(type.kind, slice_of(names.kind));
    if (inquiry_take(live->inquiry, live->wish, &source_text,
                     object->kind == KIND_OTHER ? NULL : object, err) < 0)
        return err->code;
    live->objects++;
    show_progress(live, object->kind);
    return is_stored(live, object->kind) ? cluster_apply(&live->inquiry->cluster, object, err) : 0;
}

static void keep(void *context, enum kind kind, struct slice ns, struct slice name)
{
    struct live *live = context;

    if (is_stored(live, kind))
        cluster_list_keep(&live->inquiry->cluster, kind, ns, name);
}

static enum gap *gap_of(const struct live *live, enum kind kind)
{
    return live->resource != NULL
               ? &live->inquiry->resource_gaps[live->resource - live->wish->resources]
               : &live->inquiry->gaps[kind];
}

static void unserved(void *context, enum kind kind)
{
    *gap_of(context, kind) = GAP_UNSERVED;
}

/* Without pods or claims there is no answer; without another kind, it has a gap. */
static int read_kind(struct live *live, enum kind kind, struct error *err)
{
    const struct reflector_sink sink = {live, begin, end, take, keep, unserved};
    int rc = live->resource != NULL
                 ? lister_list_texts(&live->lister, live->resource, live->wish->ns, &sink, err)
                 : lister_list(&live->lister, kind, live->wish->ns, &sink, err);

    if (rc == 0)
        return 0;
    if (live->lister.status != 403 || kind == KIND_POD || kind == KIND_CLAIM)
        return err->code;
    *gap_of(live, kind) = GAP_FORBIDDEN;
    *err = (struct error){0};
    return 0;
}

static int read_all(struct live *live, struct error *err)
{
    int rc = 0;

    for (int kind = 0; kind < KIND_COUNT && rc == 0; kind++)
        if ((live->wish->kinds & 1U << kind) != 0)
            rc = read_kind(live, (enum kind)kind, err);
    for (size_t i = 0; i < live->wish->resource_count && rc == 0; i++) {
        live->resource = &live->wish->resources[i];
        rc = read_kind(live, KIND_OTHER, err);
    }
    if (live->shown_ns != 0)
        (void)fputs("\r\033[K", stderr);
    live->inquiry->left_out = live->lister.left_out;
    return rc;
}

int inquiry_read_live(struct inquiry *inquiry, const struct inquiry_wish *wish, struct error *err)
{
    struct live live = {
        .inquiry = inquiry,
        .wish = wish,
        .lister = {.server = inquiry->kubeconfig->server, .reads_finished = wish->reads_finished}};

    log_configure(LOG_ERROR, LOG_TEXT); /* the command reports the result itself */
    if (http_client_global_init(err) < 0)
        return err->code;
    int rc = http_client_new(&live.lister.client, inquiry->kubeconfig, err);
    if (rc == 0)
        rc = read_all(&live, err);
    http_client_free(live.lister.client);
    http_client_global_cleanup();
    return rc;
}

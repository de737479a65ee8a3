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
    size_t objects; /* of the kind that is listed */
};

static void show_progress(struct live *live, enum kind kind)
{
    uint64_t now = monotonic_ns();

    if (!isatty(STDERR_FILENO) || now < live->shown_ns + PROGRESS_MS * NS_PER_MS)
        return;
    live->shown_ns = now;
    (void)fprintf(stderr, "\rreading %s: %zu\033[K", kind_resource(kind), live->objects);
}

static void begin(void *context, enum kind kind, bool overrides)
{
    struct live *live = context;

    live->objects = 0;
    cluster_list_begin(&live->inquiry->cluster, kind, overrides, monotonic_ns());
}

static void end(void *context, enum kind kind, uint64_t version)
{
    struct live *live = context;

    while (cluster_list_end(&live->inquiry->cluster, kind, version, NULL))
        continue;
}

static int take(void *context, enum watch_change change, const struct object *object,
                struct slice text, struct error *err)
{
    struct live *live = context;
    struct type type;
    const struct source_text source_text = {.type = &type, .text = text};

    (void)change;
    type_put(type.api_version, slice_of(kind_api_version(object->kind)));
    type_put(type.kind, slice_of(kind_text(object->kind)));
    if (inquiry_take(live->inquiry, live->wish, &source_text, object, err) < 0)
        return err->code;
    live->objects++;
    show_progress(live, object->kind);
    return cluster_apply(&live->inquiry->cluster, object, err);
}

static void keep(void *context, enum kind kind, struct slice ns, struct slice name)
{
    struct live *live = context;
    cluster_list_keep(&live->inquiry->cluster, kind, ns, name);
}

static void unserved(void *context, enum kind kind)
{
    struct live *live = context;
    live->inquiry->gaps[kind] = GAP_UNSERVED;
}

/* Without pods or claims there is no answer; without another kind, it has a gap. */
static int read_kind(struct live *live, enum kind kind, struct error *err)
{
    const struct reflector_sink sink = {live, begin, end, take, keep, unserved};

    if (lister_list(&live->lister, kind, live->wish->ns, &sink, err) == 0)
        return 0;
    if (live->lister.status != 403 || kind == KIND_POD || kind == KIND_CLAIM)
        return err->code;
    live->inquiry->gaps[kind] = GAP_FORBIDDEN;
    return 0;
}

static int read_all(struct live *live, struct error *err)
{
    int rc = 0;

    for (int kind = 0; kind < KIND_COUNT && rc == 0; kind++)
        if ((live->wish->kinds & 1U << kind) != 0)
            rc = read_kind(live, (enum kind)kind, err);
    if (live->shown_ns != 0)
        (void)fputs("\r\033[K", stderr);
    live->inquiry->left_out = live->lister.left_out;
    return rc;
}

int inquiry_read_live(struct inquiry *inquiry, const struct inquiry_wish *wish, struct error *err)
{
    struct live live = {
        .inquiry = inquiry, .wish = wish, .lister.server = inquiry->kubeconfig->server};

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

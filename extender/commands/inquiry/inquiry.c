#include "extender/commands/inquiry/inquiry.h"

#include <stdio.h>

#include "cache/client/call.h"
#include "cache/cluster/allowance.h"
#include "cache/watch/reflector_run.h"
#include "config/base/clock.h"
#include "config/base/log.h"

static void show_given_up(const struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};
    struct slice ns;

    while ((ns = allowance_next(cluster, &walk)).ptr != NULL)
        (void)fprintf(stderr,
                      "claimguard: namespace %.*s is given up, as its objects take too much "
                      "memory: its pods with claims, its claims and budgets may be missing here\n",
                      SLICE_ARG(ns));
}

void inquiry_show_notes(const struct inquiry *inquiry)
{
    if (inquiry->left_out != 0)
        (void)fprintf(stderr,
                      "claimguard: %llu objects could not be decoded; claims that they hold may "
                      "look free\n",
                      (unsigned long long)inquiry->left_out);
    if (inquiry->report.source.unreadable != 0)
        (void)fprintf(stderr, "claimguard: pods with over 512 claims are left out; claims that "
                              "they hold may look free\n");
    show_given_up(&inquiry->cluster);
}

struct slice inquiry_find_details(const struct inquiry *inquiry, enum kind kind, struct slice ns,
                                  struct slice name)
{
    return details_store_find(inquiry->details, kind, ns, name);
}

void inquiry_forget_details(const struct inquiry *inquiry)
{
    details_store_forget(inquiry->details);
}

int inquiry_take(struct inquiry *inquiry, const struct inquiry_wish *wish,
                 const struct source_text *text, const struct object *object, struct error *err)
{
    int used = wish->text_sink == NULL ? 0 : wish->text_sink(wish->context, text, object, err);

    if (used == 0 && object == NULL && wish->keeps_workloads)
        used = workloads_take(inquiry->workloads, text, err);
    if (used < 0 || object == NULL || wish->keeps == NULL || details_table(object->kind).count == 0)
        return used;
    if (wish->keeps(wish->context, object) &&
        details_store_put(inquiry->details, text, object, err) < 0)
        return err->code;
    return used;
}

/* ---- a live cluster: each kind is listed once ---- */

struct live {
    struct inquiry *inquiry;
    const struct inquiry_wish *wish;
    struct lister lister;
    struct load_progress progress;
    size_t objects; /* of the kind that is listed */
    bool is_whole;  /* of the kind that is listed, none was left out */
};

static bool stores(const struct live *live, enum kind kind)
{
    return kind_is_stored(kind) && !live->wish->stores_nothing;
}

static void count(struct live *live, enum kind kind)
{
    live->objects++;
    if (load_progress_is_due(&live->progress))
        (void)fprintf(stderr, "\rreading %s: %zu\033[K", kind_resource(kind), live->objects);
}

static void begin(void *context, enum kind kind, bool overrides, uint64_t asked_ns)
{
    struct live *live = context;

    live->objects = 0;
    live->is_whole = true;
    if (live->wish->list_begins != NULL)
        live->wish->list_begins(live->wish->context, kind);
    if (stores(live, kind))
        cluster_list_begin(&live->inquiry->cluster, kind, overrides, asked_ns);
}

static void end(void *context, enum kind kind, uint64_t version)
{
    const struct live *live = context;

    while (stores(live, kind) && cluster_list_end(&live->inquiry->cluster, kind, version, NULL))
        continue;
    if (live->wish->list_ends != NULL)
        live->wish->list_ends(live->wish->context, kind, live->is_whole);
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
    if (inquiry_take(live->inquiry, live->wish, &source_text,
                     kind_is_stored(object->kind) ? object : NULL, err) < 0)
        return err->code;
    count(live, object->kind);
    return stores(live, object->kind) ? cluster_apply(&live->inquiry->cluster, object, err) : 0;
}

static void keep(void *context, enum kind kind, struct slice ns, struct slice name)
{
    struct live *live = context;

    live->is_whole = false;
    if (stores(live, kind))
        cluster_list_keep(&live->inquiry->cluster, kind, ns, name);
}

static void unserved(void *context, enum kind kind)
{
    const struct live *live = context;
    live->inquiry->gaps[kind] = GAP_UNSERVED;
}

/* Without pods or claims there is no answer; without another kind, it has a gap. */
static int read_kind(struct live *live, enum kind kind, struct error *err)
{
    const struct reflector_sink sink = {live, begin, end, take, keep, unserved};
    bool is_everywhere = (live->wish->everywhere & 1U << kind) != 0;
    int rc =
        lister_list(&live->lister, kind, is_everywhere ? SLICE("") : live->wish->ns, &sink, err);

    if (rc == 0)
        return 0;
    if (live->lister.status != 403 && (live->wish->optional & 1U << kind) != 0) {
        live->inquiry->gaps[kind] = GAP_FAILED;
        *err = (struct error){0};
        return 0;
    }
    if (live->lister.status != 403 || kind == KIND_POD || kind == KIND_CLAIM)
        return err->code;
    live->inquiry->gaps[kind] = GAP_FORBIDDEN;
    if (live->wish->list_is_forbidden != NULL)
        live->wish->list_is_forbidden(live->wish->context, err);
    *err = (struct error){0};
    return 0;
}

static int read_all(struct live *live, struct error *err)
{
    int rc = 0;

    load_progress_begin(&live->progress, NULL);
    for (int kind = 0; kind < KIND_NAMED_COUNT && rc == 0; kind++)
        if ((live->wish->kinds & 1U << kind) != 0)
            rc = read_kind(live, (enum kind)kind, err);
    load_progress_end(&live->progress);
    live->inquiry->left_out = live->lister.left_out;
    return rc;
}

static int read_live(struct inquiry *inquiry, const struct inquiry_wish *wish, struct error *err)
{
    struct live live = {
        .inquiry = inquiry,
        .wish = wish,
        .lister = {.server = inquiry->kubeconfig->server, .reads_finished = wish->reads_finished}};
    struct api api;

    log_configure(LOG_ERROR, LOG_TEXT); /* the command reports the result itself */
    int rc = api_open(&api, inquiry->kubeconfig, err);
    live.lister.client = api.client;
    if (rc == 0)
        rc = read_all(&live, err);
    api_close(&api);
    return rc;
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
    inquiry->details = details_store_new(&inquiry->without_details, &inquiry->unreadable);
    if (inquiry->details == NULL)
        return error_no_memory(err);
    if (origin->snapshot == NULL &&
        kubeconfig_load(&inquiry->kubeconfig, origin->kubeconfig, origin->context, true, err) < 0)
        return err->code;
    if (inquiry->kubeconfig != NULL && inquiry->kubeconfig->ns != NULL)
        inquiry->default_ns = inquiry->kubeconfig->ns;
    inquiry->workloads = workloads_new(inquiry->kubeconfig, &inquiry->report.listed);
    return inquiry->workloads == NULL ? error_no_memory(err) : 0;
}

void inquiry_close(struct inquiry *inquiry)
{
    details_store_free(inquiry->details);
    cluster_dispose(&inquiry->cluster);
    workloads_free(inquiry->workloads);
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
    return read_live(inquiry, wish, err);
}

/* ---- gaps ---- */

const char *inquiry_gap(const struct inquiry *inquiry, enum kind kind)
{
    if (inquiry->gaps[kind] == GAP_FORBIDDEN)
        return "these credentials may not list them";
    if (inquiry->gaps[kind] == GAP_FAILED)
        return "they could not be listed";
    if (inquiry->gaps[kind] == GAP_UNSERVED || inquiry->cluster.is_unserved[kind])
        return "this API server does not serve them";
    if (inquiry->snapshot != NULL && inquiry->cluster.counts[kind] == 0 &&
        (inquiry->report.listed & 1U << kind) == 0)
        return "the snapshot has none";
    return NULL;
}

void inquiry_add_gaps(const struct inquiry *inquiry, struct gaps *gaps, const enum kind *kinds,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (inquiry_gap(inquiry, kinds[i]) != NULL)
            gaps_add(gaps, 0, "%s: %s", kind_resource(kinds[i]), inquiry_gap(inquiry, kinds[i]));
}

void inquiry_add_object_gaps(const struct inquiry *inquiry, struct gaps *gaps)
{
    workloads_add_gaps(inquiry->workloads, gaps);
    if (inquiry->without_details != 0)
        gaps_add(gaps, 0, "details of %zu objects, which are too big, or have changed%s%s",
                 inquiry->without_details,
                 inquiry->unreadable.code == 0 ? "" : ", or cannot be read: ",
                 inquiry->unreadable.message);
}

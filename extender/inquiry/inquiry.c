#include "extender/inquiry/inquiry_internal.h"

#include <stdio.h>

#include "cache/cluster/allowance.h"
#include "config/base/clock.h"

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

/* ---- reading ---- */

int inquiry_open(struct inquiry *inquiry, const struct inquiry_origin *origin, struct error *err)
{
    *inquiry = (struct inquiry){.snapshot = origin->snapshot, .default_ns = "default"};
    cluster_init(&inquiry->cluster);
    inquiry->cluster.keeps_all_mounts = true;
    if (origin->snapshot != NULL && (origin->kubeconfig != NULL || origin->context != NULL))
        return error_set(err, ERROR_INVALID, "--snapshot and %s: give only one of them",
                         origin->kubeconfig != NULL ? "--kubeconfig" : "--context");
    inquiry->details = details_store_new(&inquiry->without_details);
    if (inquiry->details == NULL)
        return error_no_memory(err);
    if (origin->snapshot == NULL &&
        kubeconfig_load(&inquiry->kubeconfig, origin->kubeconfig, origin->context, true, err) < 0)
        return err->code;
    if (inquiry->kubeconfig != NULL && inquiry->kubeconfig->ns != NULL)
        inquiry->default_ns = inquiry->kubeconfig->ns;
    inquiry->workloads = workloads_new(inquiry->kubeconfig);
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
    if (inquiry->snapshot != NULL && inquiry->cluster.counts[kind] == 0 &&
        (inquiry->report.listed & 1U << kind) == 0)
        return arena_printf(arena, "%s: the snapshot has none", resource);
    return SLICE("");
}

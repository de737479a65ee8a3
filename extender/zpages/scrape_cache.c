/* The metrics of /metrics about the cache. */
#include "cache/cluster/reservation.h"
#include "extender/bind/agreement_live.h"
#include "extender/zpages/scrape_internal.h"

enum { TALLIES_A_PIECE = 64 };

static const struct survey *survey(struct scrape *scrape)
{
    if (!scrape->has_survey)
        scrape->survey = survey_take(scrape->state, NULL);
    scrape->has_survey = true;
    return &scrape->survey;
}

bool scrape_deferred_mounts(struct scrape *scrape)
{
    struct metrics *metrics = &scrape->state->metrics;

    (void)pthread_mutex_lock(&metrics->deferred_lock);
    for (const struct deferred_tally *tally = metrics->deferred; tally != NULL;
         tally = tally->next) {
        buf_printf(scrape->out, "%s{", scrape->name);
        scrape_put_label(scrape, "storage_class", tally->storage_class);
        scrape_put_label(scrape, ",runtime_class", tally->runtime_class);
        buf_printf(scrape->out, "} %llu\n", (unsigned long long)tally->count);
    }
    (void)pthread_mutex_unlock(&metrics->deferred_lock);
    return false;
}

bool scrape_orphans(struct scrape *scrape)
{
    scrape_put_count(scrape, survey(scrape)->orphans);
    return false;
}

bool scrape_violations(struct scrape *scrape)
{
    size_t deferred = survey(scrape)->violations;

    (void)pthread_rwlock_rdlock(&scrape->state->lock);
    size_t count = scrape->state->cluster.violations;
    (void)pthread_rwlock_unlock(&scrape->state->lock);
    scrape_put_count(scrape, count + deferred);
    return false;
}

bool scrape_reservations(struct scrape *scrape)
{
    (void)pthread_rwlock_rdlock(&scrape->state->lock);
    unsigned count = scrape->state->cluster.reserved.count;
    (void)pthread_rwlock_unlock(&scrape->state->lock);
    scrape_put_count(scrape, count);
    return false;
}

/* No sample where no agreement is followed. */
bool scrape_agreement(struct scrape *scrape)
{
    struct state *state = scrape->state;
    struct error err = {0};

    (void)pthread_rwlock_rdlock(&state->lock);
    bool is_permitted = agreement_permits(state, &err) == 0;
    (void)pthread_rwlock_unlock(&state->lock);
    if (state->agreed != NULL)
        scrape_put_count(scrape, is_permitted);
    return false;
}

bool scrape_given_up(struct scrape *scrape)
{
    (void)pthread_rwlock_rdlock(&scrape->state->lock);
    unsigned count = scrape->state->cluster.namespaces_given_up;
    (void)pthread_rwlock_unlock(&scrape->state->lock);
    scrape_put_count(scrape, count);
    return false;
}

bool scrape_binds_in_doubt(struct scrape *scrape)
{
    (void)pthread_rwlock_rdlock(&scrape->state->lock);
    size_t count = scrape->state->cluster.doubtful;
    (void)pthread_rwlock_unlock(&scrape->state->lock);
    scrape_put_count(scrape, count);
    return false;
}

bool scrape_objects(struct scrape *scrape)
{
    size_t counts[KIND_COUNT];

    (void)pthread_rwlock_rdlock(&scrape->state->lock);
    memcpy(counts, scrape->state->cluster.counts, sizeof counts);
    (void)pthread_rwlock_unlock(&scrape->state->lock);
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_watches(scrape->state, (enum kind)kind))
            scrape_put_for(scrape, "resource", kind_resource((enum kind)kind), counts[kind]);
    return false;
}

static bool put_tally(void *context, const struct table_record *record)
{
    static const char *const phases[] = {"", "Pending", "Bound", "Lost"};
    const struct claim_tally *tally = (const struct claim_tally *)(const void *)record;
    struct scrape *scrape = context;

    buf_printf(scrape->out, "%s{", scrape->name);
    scrape_put_label(scrape, "namespace", name_slice(tally->key.ns));
    scrape_put_label(scrape, ",storage_class", name_slice(tally->key.storage_class));
    scrape_put_label(scrape, ",volume_attributes_class",
                     name_slice(tally->key.volume_attributes_class));
    buf_printf(scrape->out, ",phase=\"%s\"} %zu\n", phases[tally->key.phase], tally->count);
    return --scrape->left != 0;
}

bool scrape_claims(struct scrape *scrape)
{
    scrape->left = TALLIES_A_PIECE;
    (void)pthread_rwlock_rdlock(&scrape->state->lock);
    bool has_more = scan_on(&scrape->scan, &scrape->state->cluster.tallies, put_tally, scrape);
    (void)pthread_rwlock_unlock(&scrape->state->lock);
    return has_more;
}

bool scrape_synced(struct scrape *scrape)
{
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_watches(scrape->state, (enum kind)kind))
            scrape_put_for(scrape, "resource", kind_resource((enum kind)kind),
                           atomic_load(&scrape->state->status[kind].is_synced));
    return false;
}

bool scrape_stalled(struct scrape *scrape)
{
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_watches(scrape->state, (enum kind)kind))
            scrape_put_for(scrape, "resource", kind_resource((enum kind)kind),
                           atomic_load(&scrape->state->status[kind].is_stalled));
    return false;
}

bool scrape_skipped(struct scrape *scrape)
{
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_watches(scrape->state, (enum kind)kind))
            scrape_put_for(scrape, "resource", kind_resource((enum kind)kind),
                           atomic_load(&scrape->state->status[kind].skipped));
    return false;
}

/* No sample for a resource that the API server does not serve, or has not sent yet, or that is not
 * watched. */
static void put_time(const struct scrape *scrape, enum kind kind, double seconds)
{
    if (seconds != 0 && !atomic_load(&scrape->state->status[kind].is_absent))
        buf_printf(scrape->out, "%s{resource=\"%s\"} %.3f\n", scrape->name, kind_resource(kind),
                   seconds);
}

bool scrape_last_events(struct scrape *scrape)
{
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        put_time(scrape, (enum kind)kind,
                 (double)atomic_load(&scrape->state->status[kind].last_event_ms) / 1e3);
    return false;
}

bool scrape_list_durations(struct scrape *scrape)
{
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        put_time(scrape, (enum kind)kind,
                 (double)atomic_load(&scrape->state->status[kind].list_ns) / 1e9);
    return false;
}

bool scrape_restarts(struct scrape *scrape)
{
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (state_watches(scrape->state, (enum kind)kind))
            for (int reason = 0; reason < RESTART_COUNT; reason++)
                buf_printf(
                    scrape->out, "%s{resource=\"%s\",reason=\"%s\"} %llu\n", scrape->name,
                    kind_resource((enum kind)kind), restart_text((enum restart)reason),
                    (unsigned long long)atomic_load(&scrape->state->status[kind].restarts[reason]));
    return false;
}

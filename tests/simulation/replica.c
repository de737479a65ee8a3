/* A claimguard replica: the real state and verbs, its lists and watches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/base/clock.h"
#include "extender/cli/services.h"
#include "extender/serving/bind/agreement.h"
#include "extender/serving/bind/deferral.h"
#include "simulation/fiber.h"
#include "simulation/world.h"

enum { POLL_MS = 100, TICK_MS = 1000 };

const enum kind watched_kinds[WATCHED_KINDS] = {KIND_NODE, KIND_POD, KIND_CLAIM, KIND_VOLUME,
                                                KIND_POD_DISRUPTION_BUDGET};

/* Something that is on its way to a replica, or in progress in one: it is void once that has
 * crashed.
 */
struct errand {
    struct replica *replica;
    unsigned incarnation;
    enum kind kind;
    unsigned list;
    size_t index;     /* of the log */
    uint64_t version; /* of a list, and when it was read */
    uint64_t read_ns;
    char **texts; /* PODS_MAX at most */
    size_t count;
};

static struct errand *errand_new(struct replica *replica, enum kind kind)
{
    struct errand *errand = calloc(1, sizeof *errand);

    if (errand == NULL)
        abort();
    errand->replica = replica;
    errand->incarnation = replica->incarnation;
    errand->kind = kind;
    errand->list = replica->lists[kind];
    return errand;
}

static bool is_void(const struct errand *errand)
{
    return !errand->replica->is_up || errand->replica->incarnation != errand->incarnation ||
           errand->replica->lists[errand->kind] != errand->list;
}

/* ---- lists and watches ---- */

void take_object(const struct informer_target *target, enum kind kind, enum watch_change change,
                 struct slice text)
{
    const struct reflector_sink sink = apply_sink(target);
    struct error err = {0};
    struct arena arena;
    struct object object;
    struct pull json;

    arena_init(&arena, 1 << 20);
    pull_init(&json, text);
    if (!object_read(&json, kind, &arena, &object) ||
        sink.take(sink.context, change, &object, text, &err) < 0)
        broken("not taken: %.*s", SLICE_ARG(text));
    arena_dispose(&arena);
}

static void take_event(void *context)
{
    struct errand *errand = context;
    struct replica *replica = errand->replica;
    const struct log_entry *entry = &world.server.log[errand->index];

    if (!is_void(errand)) {
        take_object(&replica->informer->target, entry->kind, entry->change, slice_of(entry->text));
        replica->watched[entry->kind] = entry->version;
    }
    free(errand);
}

void replica_notified(struct replica *replica, size_t index)
{
    enum kind kind = world.server.log[index].kind;

    if (!replica->is_up || !replica->is_watching[kind])
        return;
    struct errand *errand = errand_new(replica, kind);
    errand->index = index;
    /* in order, and mostly at once; sometimes late by seconds, and often so while GETs fail */
    uint64_t delay_ns = below(20 * MILLISECOND);
    bool is_often_late = world.is_late || world.now_ns < world.gets_fail_until_ns;
    if (world.has_faults && one_in(is_often_late ? 2 : 20))
        delay_ns = below((kind == KIND_CLAIM ? CLAIM_LATE_SECONDS : 5) * SECOND);
    uint64_t due_ns = world.now_ns + delay_ns;
    if (due_ns <= replica->last_due_ns[kind])
        due_ns = replica->last_due_ns[kind] + 1;
    replica->last_due_ns[kind] = due_ns;
    later(due_ns - world.now_ns, true, take_event, errand);
}

static void note_synced(struct replica *replica)
{
    if (replica->is_synced || state_unsynced(&replica->state) != KIND_COUNT)
        return;
    replica->is_synced = true;
    replica->informer->target.synced(replica->informer->target.context);
}

/* The watch continues from the list, unless another list has been asked for meanwhile. */
static void begin_watch(const struct errand *errand)
{
    struct replica *replica = errand->replica;
    enum kind kind = errand->kind;

    atomic_store(&replica->state.status[kind].is_synced, true);
    replica->is_watching[kind] = !is_void(errand);
    for (size_t i = errand->index; i < world.server.log_count; i++)
        if (world.server.log[i].kind == kind)
            replica_notified(replica, i);
    note_synced(replica);
}

/* In a fiber: others come in between two objects, and between two steps of its end. */
static void take_list(void *context)
{
    struct errand *errand = context;
    struct replica *replica = errand->replica;
    const struct informer_target *target = &replica->informer->target;
    const struct reflector_sink sink = apply_sink(target);
    enum kind kind = errand->kind;

    if (!is_void(errand)) {
        replica->is_listing[kind] = true;
        replica->pods_listed_ns = kind == KIND_POD ? world.now_ns : replica->pods_listed_ns;
        sink.begin(sink.context, kind, false, errand->read_ns);
        for (size_t i = 0; i < errand->count; i++)
            take_object(target, kind, CHANGE_PUT, slice_of(errand->texts[i]));
        replica->watched[kind] = errand->version;
        sink.end(sink.context, kind, errand->version);
        replica->is_listing[kind] = false;
        begin_watch(errand);
    }
    for (size_t i = 0; i < errand->count; i++)
        free(errand->texts[i]);
    free(errand->texts);
    free(errand);
}

/* One list of a kind after the other. */
static void arrive_list(void *context)
{
    struct errand *errand = context;

    if (!is_void(errand) && errand->replica->is_listing[errand->kind])
        later(MILLISECOND, true, arrive_list, errand);
    else
        fiber_start(take_list, errand, errand->replica);
}

static void keep_text(void *context, enum kind kind, struct slice text)
{
    struct errand *errand = context;

    (void)kind;
    errand->texts[errand->count++] = strndup(text.ptr, text.len);
}

static void list(void *context)
{
    struct errand *asked = context;

    if (!is_void(asked)) {
        struct errand *errand = errand_new(asked->replica, asked->kind);
        errand->index = world.server.log_count;
        errand->version = world.server.version;
        errand->read_ns = monotonic_ns();
        errand->texts = calloc(PODS_MAX, sizeof *errand->texts);
        server_list(asked->kind, keep_text, errand);
        uint64_t most_ns = world.has_faults && one_in(10) ? 5 * SECOND : 100 * MILLISECOND;
        later(below(most_ns), true, arrive_list, errand);
    }
    free(asked);
}

void replica_relist(struct replica *replica, enum kind kind)
{
    if (!replica->is_up)
        return;
    replica->is_watching[kind] = false;
    replica->lists[kind]++;
    later(below(200 * MILLISECOND), true, list, errand_new(replica, kind));
}

/* ---- what happens by itself ---- */

static void expire(void *context)
{
    expiry_tick(context);
    expiry_settle(context);
    defer_support_tick(context);
}

/* By one thread, as in serve. */
static void agree(void *context)
{
    struct replica *replica = context;

    agreement_tick(&replica->state);
    replica->is_agreeing = false;
}

static void tick(void *context)
{
    struct errand *errand = context;
    struct replica *replica = errand->replica;

    if (!replica->is_up || replica->incarnation != errand->incarnation) {
        free(errand);
        return;
    }
    fiber_start(expire, &replica->state, replica);
    if (!replica->is_agreeing) {
        replica->is_agreeing = true;
        fiber_start(agree, replica, replica);
    }
    later(TICK_MS * MILLISECOND, false, tick, errand);
}

static void evict(void *context)
{
    struct replica *replica = context;

    preemption_step(&replica->state);
    replica->evicting--;
}

static void poll(void *context)
{
    struct errand *errand = context;
    struct replica *replica = errand->replica;

    if (!replica->is_up || replica->incarnation != errand->incarnation) {
        free(errand);
        return;
    }
    while (replica->evicting < EVICTORS &&
           preemption_due_ns(replica->state.preemption) <= monotonic_ns()) {
        replica->evicting++;
        fiber_start(evict, replica, replica);
    }
    later(POLL_MS * MILLISECOND, false, poll, errand);
}

/* ---- start and crash ---- */

void replica_configure(struct config *config)
{
    static struct defer_entry entry = {.storage_class = {"fast-storage", 12},
                                       .runtime_class = {"microvm", 7},
                                       .non_exclusive_claims = NON_EXCLUSIVE_EXCLUSIVE};

    config->read_write_once_pod.claim_lock =
        world.is_annotation ? CLAIM_LOCK_ANNOTATION : CLAIM_LOCK_LOCAL;
    config->read_write_once_pod.respects_budgets = world.respects_budgets;
    config->read_write_once_pod.preemption = world.preempts ? SWITCH_ENABLED : SWITCH_DISABLED;
    config->read_write_once_pod.reservation_ttl_ms = world.ttl_ms;
    config->read_write_once.mode = world.read_write_once;
    config->defer_fs_mount.apply = world.apply;
    config->defer_fs_mount.entries = &entry;
    config->defer_fs_mount.entry_count = world.defers && !(world.is_mixed && one_in(2));
}

void replica_start(struct replica *replica)
{
    static const char *const names[] = {"0", "1"};
    struct config *config;
    struct error err = {0};

    if (replica->is_up)
        return;
    trace("replica %u starts", replica->index);
    replica->incarnation++;
    if (config_load(&config, NULL, &err) < 0)
        abort();
    replica_configure(config);
    if (world.moves_lock && replica->index == world.local)
        config->read_write_once_pod.claim_lock = CLAIM_LOCK_LOCAL;
    if (world.now_ns < world.entry_from_ns)
        config->defer_fs_mount.entry_count = 0;
    replica->kubeconfig.server = names[replica->index];
    replica->kubeconfig.origin = "simulation";
    if (services_init(&replica->state, config, &err) < 0 ||
        handlers_start(&replica->handlers, &replica->state, &replica->kubeconfig, &err) < 0)
        abort();
    if (world.gives_up)
        replica->state.cluster.allowance_limits = (struct allowance_limits){
            .namespace_bytes = 300 + below(1200), .total_bytes = SIZE_MAX};
    if (world.agrees)
        agreement_start(&replica->state, SLICE("claimguard"));
    replica->is_up = true;
    replica->is_agreeing = replica->is_synced = false;
    replica->evicting = 0;
    memset(replica->is_listing, 0, sizeof replica->is_listing);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        atomic_store(&replica->state.status[kind].is_synced, true);
    for (size_t i = 0; i < WATCHED_KINDS; i++) {
        atomic_store(&replica->state.status[watched_kinds[i]].is_synced, false);
        replica_relist(replica, watched_kinds[i]);
    }
    later(TICK_MS * MILLISECOND, false, tick, errand_new(replica, KIND_POD));
    later(POLL_MS * MILLISECOND, false, poll, errand_new(replica, KIND_POD));
}

void replica_crash(struct replica *replica)
{
    if (!replica->is_up)
        return;
    trace("replica %u crashes", replica->index);
    replica->is_up = false;
    requests_crash(replica);
    fibers_finish(replica);
    handlers_stop(replica->handlers);
    services_dispose(&replica->state);
}

void replica_come(void *context)
{
    if (!world.is_over)
        replica_start(context);
}

void replica_restart(void *context)
{
    replica_crash(context);
    later(below(4 * SECOND) + 2 * SECOND, true, replica_come, context);
}

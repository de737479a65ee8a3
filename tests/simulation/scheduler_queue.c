/* The queue of a scheduler: pods that wait for an event, back-off, and a flush after 5 minutes. */
#include <stdlib.h>
#include <string.h>

#include "simulation/scheduler.h"

enum { FLUSH_SECONDS = 300, BACKOFF_SECONDS_MAX = 10 };

static void activate(struct scheduler *scheduler, struct queued *queued)
{
    uint64_t seconds = queued->attempts == 0 ? 0 : UINT64_C(1) << ((queued->attempts - 1) & 7);
    uint64_t backoff_ns = (seconds > BACKOFF_SECONDS_MAX ? BACKOFF_SECONDS_MAX : seconds) * SECOND;

    queued->queue = QUEUE_ACTIVE;
    queued->ready_ns = queued->since_ns + backoff_ns;
    if (queued->ready_ns < world.now_ns)
        queued->ready_ns = world.now_ns;
    scheduler_look_later(scheduler, queued->ready_ns - world.now_ns);
}

/* Something happened: pods that were rejected may fit now. */
static void move_all(struct scheduler *scheduler)
{
    scheduler->has_moved = true;
    for (size_t i = 0; i < world.server.pod_count; i++)
        if (scheduler->pods[i].queue == QUEUE_UNSCHEDULABLE)
            activate(scheduler, &scheduler->pods[i]);
}

/* kube-scheduler tries its pods again for what it knows to matter: not for a budget, nor for
 * another pod that waits, too. */
static bool concerns_all(const struct log_entry *entry)
{
    if (entry->kind != KIND_POD)
        return entry->kind != KIND_POD_DISRUPTION_BUDGET;
    return entry->change == CHANGE_DELETE || strstr(entry->text, "\"nodeName\"") != NULL;
}

void queue_see(struct scheduler *scheduler, const struct log_entry *entry)
{
    struct queued *queued = entry->pod < 0 ? NULL : &scheduler->pods[entry->pod];

    if (entry->pod >= 0)
        scheduler->seen[entry->pod] = entry->change == CHANGE_DELETE ? NULL : entry->text;
    if (queued != NULL && world.server.pods[entry->pod].scheduler == scheduler->index) {
        queued->text = entry->text;
        queued->is_assigned = entry->change == CHANGE_DELETE ||
                              strstr(entry->text, "\"nodeName\"") != NULL ||
                              strstr(entry->text, "deletionTimestamp") != NULL;
        if (queued->is_assigned) {
            queued->queue = QUEUE_NONE;
        } else if (queued->queue == QUEUE_CYCLE) {
            scheduler->has_moved = true;
        } else if (queued->queue == QUEUE_NONE || queued->queue == QUEUE_UNSCHEDULABLE) {
            if (queued->queue == QUEUE_NONE)
                queued->since_ns = world.now_ns;
            activate(scheduler, queued);
        }
    }
    if (concerns_all(entry))
        move_all(scheduler);
}

static void take_event(void *context)
{
    struct errand *errand = context;

    if (!errand_is_void(errand))
        queue_see(errand->scheduler, &world.server.log[errand->index]);
    free(errand);
}

void scheduler_notified(struct scheduler *scheduler, size_t index)
{
    if (!scheduler->is_up)
        return;
    uint64_t due_ns = world.now_ns + below(10 * MILLISECOND);
    struct errand *errand = errand_new(scheduler, 0);
    errand->index = index;
    if (due_ns <= scheduler->last_due_ns)
        due_ns = scheduler->last_due_ns + 1;
    scheduler->last_due_ns = due_ns;
    later(due_ns - world.now_ns, true, take_event, errand);
}

void queue_again(struct scheduler *scheduler, size_t pod)
{
    struct queued *queued = &scheduler->pods[pod];

    queued->attempts++;
    queued->since_ns = world.now_ns;
    if (!queued->is_assigned)
        activate(scheduler, queued);
}

void queue_park(struct scheduler *scheduler, size_t pod)
{
    struct queued *queued = &scheduler->pods[pod];

    queued->attempts++;
    queued->since_ns = world.now_ns;
    if (queued->is_assigned)
        queued->queue = QUEUE_NONE;
    else if (scheduler->has_moved)
        activate(scheduler, queued);
    else
        queued->queue = QUEUE_UNSCHEDULABLE;
}

struct queued *queue_next(struct scheduler *scheduler)
{
    struct queued *best = NULL;
    int best_priority = 0;

    for (size_t i = 0; i < world.server.pod_count; i++) {
        struct queued *queued = &scheduler->pods[i];
        int priority = world.server.pods[i].priority;
        if (queued->queue == QUEUE_ACTIVE && queued->ready_ns <= world.now_ns &&
            (best == NULL || priority > best_priority)) {
            best = queued;
            best_priority = priority;
        }
    }
    return best;
}

void queue_flush(void *context)
{
    struct errand *errand = context;
    struct scheduler *scheduler = errand->scheduler;

    if (errand_is_void(errand)) {
        free(errand);
        return;
    }
    for (size_t i = 0; i < world.server.pod_count; i++)
        if (scheduler->pods[i].queue == QUEUE_UNSCHEDULABLE &&
            world.now_ns - scheduler->pods[i].since_ns > FLUSH_SECONDS * SECOND)
            activate(scheduler, &scheduler->pods[i]);
    later(30 * SECOND, false, queue_flush, errand);
}

/* A kube-scheduler, as far as an extender can see: one scheduling cycle at a time, binds beside
 * it, a queue of pods that wait for an event, back-off, and a flush after five minutes. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulation/world.h"

enum { FLUSH_SECONDS = 300, BACKOFF_SECONDS_MAX = 10 };

/* A call that is on its way, for one pod. */
struct errand {
    struct scheduler *scheduler;
    unsigned incarnation;
    size_t pod;   /* index */
    size_t index; /* of the log */
    int node;
};

static struct errand *errand_new(struct scheduler *scheduler, size_t pod)
{
    struct errand *errand = calloc(1, sizeof *errand);

    if (errand == NULL)
        abort();
    *errand =
        (struct errand){.scheduler = scheduler, .incarnation = scheduler->incarnation, .pod = pod};
    return errand;
}

static bool is_void(const struct errand *errand)
{
    return !errand->scheduler->is_up || errand->scheduler->incarnation != errand->incarnation;
}

static void look(void *context);

static void look_later(struct scheduler *scheduler, uint64_t delay_ns)
{
    later(delay_ns, false, look, errand_new(scheduler, 0));
}

/* ---- the queue ---- */

static void activate(struct scheduler *scheduler, struct queued *queued)
{
    uint64_t seconds = queued->attempts == 0 ? 0 : UINT64_C(1) << ((queued->attempts - 1) & 7);
    uint64_t backoff_ns = (seconds > BACKOFF_SECONDS_MAX ? BACKOFF_SECONDS_MAX : seconds) * SECOND;

    queued->queue = QUEUE_ACTIVE;
    queued->ready_ns = queued->since_ns + backoff_ns;
    if (queued->ready_ns < world.now_ns)
        queued->ready_ns = world.now_ns;
    look_later(scheduler, queued->ready_ns - world.now_ns);
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

static void see(struct scheduler *scheduler, const struct log_entry *entry)
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

    if (!is_void(errand))
        see(errand->scheduler, &world.server.log[errand->index]);
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

/* ---- bind ---- */

static void again(struct scheduler *scheduler, size_t pod)
{
    struct queued *queued = &scheduler->pods[pod];

    queued->attempts++;
    queued->since_ns = world.now_ns;
    if (!queued->is_assigned)
        activate(scheduler, queued);
}

static bool is_success(const char *answer)
{
    json_t *json = answer == NULL ? NULL : json_loads(answer, 0, NULL);
    const char *error = json_string_value(json_object_get(json, "Error"));
    bool is_success = json != NULL && (error == NULL || error[0] == '\0');

    json_decref(json);
    return is_success;
}

static void bound(void *context, const char *answer)
{
    struct errand *errand = context;
    const struct sim_pod *pod = &world.server.pods[errand->pod];

    if (is_success(answer) && pod->node != errand->node)
        broken("bind of %s (%s) is said to be done, and is not: %s", pod->name, pod->uid + 24,
               answer);
    if (!is_void(errand) && !is_success(answer)) {
        world.refused_binds++;
        trace("bind of %s (%s): %s", pod->name, pod->uid + 24, answer == NULL ? "-" : answer);
        again(errand->scheduler, errand->pod);
    }
    free(errand);
}

static void bind_now(void *context)
{
    struct errand *errand = context;
    const struct sim_pod *pod = &world.server.pods[errand->pod];
    char body[256];

    if (is_void(errand)) {
        free(errand);
        return;
    }
    (void)snprintf(body, sizeof body,
                   "{\"PodName\":\"%s\",\"PodNamespace\":\"ns\",\"PodUID\":\"%s\",\"Node\":"
                   "\"node-%d\"}",
                   pod->name, pod->uid, errand->node);
    world.server.pods[errand->pod].bind_ns = world.now_ns;
    replica_call(errand->scheduler->replica, VERB_BIND, body, bound, errand);
    forge_sometimes(pod, errand->scheduler->replica);
}

/* The pod as the scheduler passes it on. */
static void put_seen(struct buf *out, const char *text)
{
    static const char field[] = ",\"deferFSMount\":true";

    while (*text != '\0') {
        const char *at = world.scheduler_is_older ? strstr(text, field) : NULL;
        size_t len = at == NULL ? strlen(text) : (size_t)(at - text);
        buf_put(out, (struct slice){text, len});
        text += at == NULL ? len : len + sizeof field - 1;
    }
}

/* ---- preempt ---- */

static void end_cycle(struct errand *errand)
{
    errand->scheduler->is_busy = false;
    look_later(errand->scheduler, 0);
    free(errand);
}

/* Rejected: until something happens, which it may have meanwhile. */
static void park(struct errand *errand)
{
    struct scheduler *scheduler = errand->scheduler;
    struct queued *queued = &scheduler->pods[errand->pod];

    queued->attempts++;
    queued->since_ns = world.now_ns;
    if (queued->is_assigned)
        queued->queue = QUEUE_NONE;
    else if (scheduler->has_moved)
        activate(scheduler, queued);
    else
        queued->queue = QUEUE_UNSCHEDULABLE;
    end_cycle(errand);
}

/* The scheduler deletes what the answer names for one node. */
static void take_victims(struct errand *errand, const char *node, const json_t *victims)
{
    struct sim_pod *pod = &world.server.pods[errand->pod];
    const json_t *victim;
    size_t i;

    if (json_array_size(victims) == 0)
        broken("preempt: %s without victims", node);
    json_array_foreach (victims, i, victim) {
        const char *uid = json_string_value(json_object_get(victim, "UID"));
        struct sim_pod *found = uid == NULL ? NULL : server_pod_of(uid, strlen(uid));
        if (found == NULL || found->node != atoi(node + strlen("node-")) ||
            found->priority >= pod->priority)
            broken("preempt for %s: no victim on %s: %s", pod->name, node, uid);
        else
            server_terminate(found, termination_ns(10));
    }
    pod->nominated = atoi(node + strlen("node-"));
    server_touch(pod);
}

static void preempted(void *context, const char *answer)
{
    struct errand *errand = context;
    json_t *json = answer == NULL ? NULL : json_loads(answer, 0, NULL);
    json_t *nodes = json_object_get(json, "NodeNameToMetaVictims");

    if (is_void(errand)) {
        free(errand);
        json_decref(json);
        return;
    }
    if (answer != NULL && nodes == NULL)
        broken("preempt: %s", answer);
    void *first = json_object_iter(nodes);
    if (first != NULL && pod_is_there(&world.server.pods[errand->pod]))
        take_victims(errand, json_object_iter_key(first),
                     json_object_get(json_object_iter_value(first), "Pods"));
    json_decref(json);
    park(errand);
}

static void put_victims(const struct errand *errand, int node, bool exclusive, struct buf *body)
{
    const struct sim_pod *pod = &world.server.pods[errand->pod];
    const char *separator = "";

    for (size_t i = 0; i < world.server.pod_count; i++) {
        if (node_in_the_way(errand->scheduler, i, pod, exclusive) != node ||
            world.server.pods[i].priority >= pod->priority)
            continue;
        buf_printf(body, "%s{\"UID\":\"%s\"}", separator, world.server.pods[i].uid);
        separator = ",";
    }
}

/* only: the node that its own plugins offer; -1: all of them, since they see no conflict, with what
 * they would have it evict there: sometimes nothing. */
static void preempt(struct errand *errand, int only)
{
    const char *separator = "";
    struct buf body;

    buf_init(&body, 1 << 20);
    buf_printf(&body, "{\"Pod\":");
    put_seen(&body, errand->scheduler->pods[errand->pod].text);
    buf_printf(&body, ",\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{");
    for (int node = 0; node < NODES; node++) {
        if (only >= 0 && only != node)
            continue;
        buf_printf(&body, "%s\"node-%d\":{\"Pods\":[", separator, node);
        if (only >= 0 || one_in(2))
            put_victims(errand, node, only >= 0, &body);
        buf_printf(&body, "],\"NumPDBViolations\":0}");
        separator = ",";
    }
    buf_printf(&body, "}}");
    world.server.pods[errand->pod].asked_ns = world.now_ns;
    replica_call(errand->scheduler->replica, VERB_PREEMPT, buf_text(&body), preempted, errand);
    buf_dispose(&body);
}

/* ---- filter ---- */

/* The pod's condition says why, which is an event if it says something else than before. */
static void write_condition(struct errand *errand, const char *message)
{
    struct sim_pod *pod = &world.server.pods[errand->pod];

    if (strncmp(pod->condition, message, sizeof pod->condition - 1) == 0 ||
        world.now_ns < world.api_down_until_ns)
        return;
    (void)snprintf(pod->condition, sizeof pod->condition, "%s", message);
    server_touch(pod);
}

static void rejected(struct errand *errand, const json_t *json)
{
    const json_t *failed = json_object_get(json, "FailedNodes");
    bool may_preempt = json_object_size(failed) != 0;
    void *first = json_object_iter(
        (json_t *)(may_preempt ? failed : json_object_get(json, "FailedAndUnresolvableNodes")));
    const char *message = first == NULL ? "" : json_string_value(json_object_iter_value(first));

    world.rejected++;
    trace("pod %s (%s) is rejected: %s", world.server.pods[errand->pod].name,
          world.server.pods[errand->pod].uid + 24, message);
    if (message[0] == '\0')
        broken("a rejection without a reason");
    write_condition(errand, message);
    if (may_preempt && errand->scheduler->preempts)
        preempt(errand, -1);
    else
        park(errand);
}

static void filtered(void *context, const char *answer)
{
    struct errand *errand = context;
    struct scheduler *scheduler = errand->scheduler;

    if (is_void(errand)) {
        free(errand);
        return;
    }
    json_t *json = answer == NULL ? NULL : json_loads(answer, 0, NULL);
    if (!is_success(answer)) {
        again(scheduler, errand->pod);
        end_cycle(errand);
    } else if (json_array_size(json_object_get(json, "NodeNames")) == 0) {
        rejected(errand, json);
    } else if (scheduler->pods[errand->pod].is_assigned) {
        end_cycle(errand);
    } else {
        struct errand *binding = errand_new(scheduler, errand->pod);
        binding->node = (int)below(NODES);
        scheduler->pods[errand->pod].queue = QUEUE_BINDING;
        later(below(one_in(10) ? 2 * SECOND : 20 * MILLISECOND), true, bind_now, binding);
        end_cycle(errand);
    }
    json_decref(json);
}

static struct queued *next_pod(struct scheduler *scheduler)
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

static void ask_filter(struct errand *cycle)
{
    struct buf body;

    world.server.pods[cycle->pod].asked_ns = world.now_ns;

    buf_init(&body, 1 << 20);
    buf_printf(&body, "{\"Pod\":");
    put_seen(&body, cycle->scheduler->pods[cycle->pod].text);
    buf_printf(&body, ",\"Nodes\":null,\"NodeNames\":[\"node-0\",\"node-1\",\"node-2\"]}");
    replica_call(cycle->scheduler->replica, VERB_FILTER, buf_text(&body), filtered, cycle);
    buf_dispose(&body);
}

static void begin_cycle(struct errand *cycle)
{
    struct scheduler *scheduler = cycle->scheduler;
    int helps = -1;

    if (world.is_full) {
        write_condition(cycle, "Insufficient cpu");
        park(cycle);
        return;
    }
    if (!scheduler->sees_claims ||
        !sees_conflict(scheduler, &world.server.pods[cycle->pod], &helps)) {
        ask_filter(cycle);
        return;
    }
    write_condition(cycle, "node has pod using PersistentVolumeClaim with the same name");
    if (helps >= 0 && scheduler->preempts)
        preempt(cycle, helps);
    else
        park(cycle);
}

/* The next cycle, if none is in progress. */
static void look(void *context)
{
    struct errand *errand = context;
    struct scheduler *scheduler = errand->scheduler;
    struct queued *queued = NULL;

    if (!is_void(errand) && !scheduler->is_busy)
        queued = next_pod(scheduler);
    free(errand);
    if (queued == NULL)
        return;
    struct errand *cycle = errand_new(scheduler, (size_t)(queued - scheduler->pods));
    queued->queue = QUEUE_CYCLE;
    scheduler->is_busy = true;
    scheduler->has_moved = false;
    begin_cycle(cycle);
}

static void flush(void *context)
{
    struct errand *errand = context;
    struct scheduler *scheduler = errand->scheduler;

    if (is_void(errand)) {
        free(errand);
        return;
    }
    for (size_t i = 0; i < world.server.pod_count; i++)
        if (scheduler->pods[i].queue == QUEUE_UNSCHEDULABLE &&
            world.now_ns - scheduler->pods[i].since_ns > FLUSH_SECONDS * SECOND)
            activate(scheduler, &scheduler->pods[i]);
    later(30 * SECOND, false, flush, errand);
}

/* ---- start and crash ---- */

void scheduler_start(struct scheduler *scheduler)
{
    if (scheduler->is_up)
        return;
    trace("scheduler %u starts", scheduler->index);
    scheduler->is_up = true;
    scheduler->is_busy = false;
    scheduler->incarnation++;
    memset(scheduler->pods, 0, sizeof scheduler->pods);
    memset(scheduler->seen, 0, sizeof scheduler->seen);
    for (size_t i = 0; i < world.server.log_count; i++) /* its list */
        see(scheduler, &world.server.log[i]);
    look_later(scheduler, 0);
    later(30 * SECOND, false, flush, errand_new(scheduler, 0));
}

void scheduler_crash(struct scheduler *scheduler)
{
    trace("scheduler %u crashes", scheduler->index);
    scheduler->is_up = false;
}

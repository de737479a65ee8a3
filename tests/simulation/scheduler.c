/* A kube-scheduler, as far as an extender can see: one scheduling cycle at a time, and binds beside
 * it. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulation/admission.h"
#include "simulation/scheduler.h"

struct errand *errand_new(struct scheduler *scheduler, size_t pod)
{
    struct errand *errand = calloc(1, sizeof *errand);

    if (errand == NULL)
        abort();
    *errand =
        (struct errand){.scheduler = scheduler, .incarnation = scheduler->incarnation, .pod = pod};
    return errand;
}

bool errand_is_void(const struct errand *errand)
{
    return !errand->scheduler->is_up || errand->scheduler->incarnation != errand->incarnation;
}

static void look(void *context);

void scheduler_look_later(struct scheduler *scheduler, uint64_t delay_ns)
{
    later(delay_ns, false, look, errand_new(scheduler, 0));
}

void errand_put_pod(const struct errand *errand, struct buf *out)
{
    static const char field[] = ",\"deferFSMount\":true";
    const char *text = errand->scheduler->pods[errand->pod].text;

    while (*text != '\0') {
        const char *at = world.scheduler_is_older ? strstr(text, field) : NULL;
        size_t len = at == NULL ? strlen(text) : (size_t)(at - text);
        buf_put(out, (struct slice){text, len});
        text += at == NULL ? len : len + sizeof field - 1;
    }
}

static void end_cycle(struct errand *errand)
{
    errand->scheduler->is_busy = false;
    scheduler_look_later(errand->scheduler, 0);
    free(errand);
}

void errand_end_rejected(struct errand *errand)
{
    queue_park(errand->scheduler, errand->pod);
    end_cycle(errand);
}

/* ---- bind ---- */

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
    if (!errand_is_void(errand) && !is_success(answer)) {
        world.refused_binds++;
        trace("bind of %s (%s): %s", pod->name, pod->uid + 24, answer == NULL ? "-" : answer);
        queue_again(errand->scheduler, errand->pod);
    }
    free(errand);
}

static void posted(void *context, unsigned status, struct slice answer)
{
    struct errand *errand = context;
    const struct sim_pod *pod = &world.server.pods[errand->pod];

    (void)answer;
    if (status == 201 && pod->exists && pod->node != errand->node)
        broken("%s (%s) is said to be bound, and is not", pod->name, pod->uid + 24);
    if (!errand_is_void(errand) && status != 201) {
        world.refused_binds++;
        write_condition(errand, "its Binding was refused");
        queue_again(errand->scheduler, errand->pod);
    }
    free(errand);
}

static void post_now(void *context)
{
    struct errand *errand = context;

    if (errand_is_void(errand)) {
        free(errand);
        return;
    }
    client_post(&(struct client_binding){.pod = &world.server.pods[errand->pod],
                                         .node = errand->node,
                                         .has_no_uid = one_in(10)},
                posted, errand);
}

static void bind_now(void *context)
{
    struct errand *errand = context;
    struct sim_pod *pod = &world.server.pods[errand->pod];
    char body[256];

    if (errand_is_void(errand)) {
        free(errand);
        return;
    }
    (void)snprintf(body, sizeof body,
                   "{\"PodName\":\"%s\",\"PodNamespace\":\"ns\",\"PodUID\":\"%s\",\"Node\":"
                   "\"node-%d\"}",
                   pod->name, pod->uid, errand->node);
    pod->bind_ns = world.now_ns;
    replica_call(errand->scheduler->replica, VERB_BIND, body, bound, errand);
    forge_sometimes(pod, errand->scheduler->replica);
}

/* ---- filter ---- */

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
        errand_preempt(errand, -1);
    else
        errand_end_rejected(errand);
}

/* One of the nodes that the extender has left. */
static int choose_node(const json_t *names)
{
    const char *name = json_string_value(json_array_get(names, below(json_array_size(names))));

    return name == NULL ? 0 : atoi(name + strlen("node-"));
}

/* The cycle is over; the Binding comes beside the next ones. Takes the errand. */
static void begin_binding(struct errand *errand, int node, void (*bind)(void *context))
{
    struct errand *binding = errand_new(errand->scheduler, errand->pod);

    binding->node = node;
    errand->scheduler->pods[errand->pod].queue = QUEUE_BINDING;
    later(below(one_in(10) ? 2 * SECOND : 20 * MILLISECOND), true, bind, binding);
    end_cycle(errand);
}

static void filtered(void *context, const char *answer)
{
    struct errand *errand = context;
    struct scheduler *scheduler = errand->scheduler;

    if (errand_is_void(errand)) {
        free(errand);
        return;
    }
    json_t *json = answer == NULL ? NULL : json_loads(answer, 0, NULL);
    if (!is_success(answer)) {
        queue_again(scheduler, errand->pod);
        end_cycle(errand);
    } else if (json_array_size(json_object_get(json, "NodeNames")) == 0) {
        rejected(errand, json);
    } else if (scheduler->pods[errand->pod].is_assigned) {
        end_cycle(errand);
    } else {
        begin_binding(errand, choose_node(json_object_get(json, "NodeNames")), bind_now);
    }
    json_decref(json);
}

static void ask_filter(struct errand *cycle)
{
    struct buf body;

    world.server.pods[cycle->pod].asked_ns = world.now_ns;

    buf_init(&body, 1 << 20);
    buf_printf(&body, "{\"Pod\":");
    errand_put_pod(cycle, &body);
    buf_printf(&body, ",\"Nodes\":null,\"NodeNames\":[\"node-0\",\"node-1\",\"node-2\"]}");
    replica_call(cycle->scheduler->replica, VERB_FILTER, buf_text(&body), filtered, cycle);
    buf_dispose(&body);
}

/* Without extender: each try goes to another node. */
static void choose_alone(struct errand *cycle)
{
    const struct queued *queued = &cycle->scheduler->pods[cycle->pod];

    begin_binding(cycle, (int)((cycle->pod + queued->attempts) % NODES), post_now);
}

static void begin_cycle(struct errand *cycle)
{
    struct scheduler *scheduler = cycle->scheduler;
    int helps = -1;

    if (world.is_full) {
        write_condition(cycle, "Insufficient cpu");
        errand_end_rejected(cycle);
        return;
    }
    if (!scheduler->sees_claims ||
        !sees_conflict(scheduler, &world.server.pods[cycle->pod], &helps)) {
        (scheduler->is_plain ? choose_alone : ask_filter)(cycle);
        return;
    }
    write_condition(cycle, "node has pod using PersistentVolumeClaim with the same name");
    if (helps >= 0 && scheduler->preempts)
        errand_preempt(cycle, helps);
    else
        errand_end_rejected(cycle);
}

/* The next cycle, if none is in progress. */
static void look(void *context)
{
    struct errand *errand = context;
    struct scheduler *scheduler = errand->scheduler;
    struct queued *queued = NULL;

    if (!errand_is_void(errand) && !scheduler->is_busy)
        queued = queue_next(scheduler);
    free(errand);
    if (queued == NULL)
        return;
    struct errand *cycle = errand_new(scheduler, (size_t)(queued - scheduler->pods));
    queued->queue = QUEUE_CYCLE;
    scheduler->is_busy = true;
    scheduler->has_moved = false;
    begin_cycle(cycle);
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
        queue_see(scheduler, &world.server.log[i]);
    scheduler_look_later(scheduler, 0);
    later(30 * SECOND, false, queue_flush, errand_new(scheduler, 0));
}

void scheduler_crash(struct scheduler *scheduler)
{
    trace("scheduler %u crashes", scheduler->index);
    scheduler->is_up = false;
}

/* What happens to a request on its way: it is slow, lost, refused or sent twice, or its answer is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/serving/bind/bind.h"
#include "simulation/admission.h"
#include "simulation/call.h"

/* Without what all paths begin with. */
static const char *path_shown(const struct call *call)
{
    return strlen(call->path) > 22 ? call->path + 22 : call->path;
}

static bool takes_planned_fault(struct call *call)
{
    struct planned_fault *fault = &world.fault;

    if (fault->count == 0 || (fault->method != NULL && strcmp(fault->method, call->method) != 0) ||
        (fault->path != NULL && strstr(call->path, fault->path) == NULL))
        return false;
    fault->count--;
    call->refused_with = fault->status;
    call->applied_after_ns = fault->after_ns;
    return true;
}

enum fate call_draw_fate(struct call *call)
{
    bool is_get = strcmp(call->method, "GET") == 0;

    if (takes_planned_fault(call))
        return world.fault.fate;
    if (world.now_ns < call->replica->agrees_again_ns && strstr(call->path, "/configmaps/") != NULL)
        return FATE_LOST;
    if (world.now_ns < world.api_down_until_ns || (world.has_faults && one_in(60)))
        return FATE_LOST;
    if (is_get && world.now_ns < world.gets_fail_until_ns)
        return one_in(2) ? FATE_LOST : FATE_UNANSWERED;
    if (world.has_faults && one_in(40))
        return world.is_hard && one_in(4) ? FATE_UNSENT : FATE_UNANSWERED;
    if (is_get || !world.has_faults || !world.is_hard || !one_in(15))
        return FATE_NONE;
    if (one_in(2)) /* the worst that can go with it: nobody can look what became of it */
        world.gets_fail_until_ns = world.now_ns + below(8 * SECOND);
    return FATE_CUT + below(4);
}

/* Nothing, a 503, or of a write, in a hard world, the 200 of something that is no API server. */
static unsigned draw_loss(const struct call *call)
{
    if (world.is_hard && strcmp(call->method, "GET") != 0 && one_in(8))
        return 200;
    return one_in(2) ? 503 : 0;
}

static void lose(struct call *call)
{
    call_finish(call, call->refused_with != 0 ? call->refused_with : draw_loss(call));
    call_drop(call);
}

/* By a proxy on the way that does not know the first. */
static void deny(struct call *call)
{
    static const unsigned statuses[] = {409, 403, 429};

    buf_reset(&call->answer, 0);
    call->arrived = call->refused_with != 0 ? call->refused_with : statuses[below(3)];
    trace("%s %s of replica %u, again: %u", call->method, path_shown(call), call->replica->index,
          call->arrived);
}

/* The API server has looked at it. */
static void applied(void *context, unsigned status, struct slice answer)
{
    struct call *call = context;

    call->arrived = status;
    buf_put(&call->answer, answer);
    call->then(call);
}

/* The API server looks at it, which takes time if it is a Binding that is reviewed. */
static void apply(struct call *call, void (*then)(void *call))
{
    uint64_t before_ns = BIND_MS * MILLISECOND;
    struct posted posted = {.path = call->path,
                            .body = call->body,
                            .is_own = true,
                            .came_ns = call->sent_ns,
                            .looked_ns = call->sent_ns > before_ns ? call->sent_ns - before_ns : 0};

    buf_reset(&call->answer, 0);
    world.requests++;
    trace("%s %s of replica %u%s: %.*s", call->method, path_shown(call), call->replica->index,
          call->is_repeated ? ", again" : "", (int)call->body_len, call->body);
    call->then = then;
    if (strstr(call->path, "/binding") != NULL) {
        post_arrives(&posted, applied, call);
        return;
    }
    call->arrived = server_handle(call->method, call->path,
                                  (struct slice){call->body, call->body_len}, NULL, &call->answer);
    then(call);
}

static void respond_soon(void *context)
{
    later(below(5 * MILLISECOND), true, call_respond, context);
}

static void deliver_again(void *context)
{
    struct call *call = context;

    world.repeated++;
    call->is_repeated = true;
    if (call->fate != FATE_DENIED) {
        apply(call, respond_soon);
        return;
    }
    deny(call);
    respond_soon(call);
}

bool replicas_outlast_requests(void)
{
    return world.is_annotation || world.is_stable;
}

/* The API server gives a request 60 s; one replica alone relies on nothing being slower than its
 * own restart. */
uint64_t call_delay_max_ns(void)
{
    return (replicas_outlast_requests() ? 60 : 2) * SECOND;
}

static void drop(void *context)
{
    call_drop(context);
}

static void apply_late(void *context)
{
    apply(context, drop);
}

static void orphan(struct call *call)
{
    uint64_t age_ns = world.now_ns - call->sent_ns, max_ns = call_delay_max_ns();
    uint64_t after_ns = age_ns < max_ns ? below(max_ns - age_ns) : 0;

    call_finish(call, 0);
    later(call->applied_after_ns != 0 ? call->applied_after_ns : after_ns, true, apply_late, call);
}

/* In a hard world an answer may take as long as a bind has. */
static uint64_t draw_way_back(void)
{
    return world.has_faults && world.is_hard && one_in(50) ? below(BIND_MS * MILLISECOND)
                                                           : below(5 * MILLISECOND);
}

static void withhold(struct call *call)
{
    call_finish(call, 0);
    call_drop(call);
}

/* It was applied, or refused: what comes back. */
static void answer_first(void *context)
{
    struct call *call = context;

    switch (call->fate) {
    case FATE_REPEATED:
    case FATE_DENIED: later(below(10 * MILLISECOND), true, deliver_again, call); break;
    case FATE_UNANSWERED: call_drop(call); break;
    case FATE_CUT:
        call_finish(call, 0);
        call_drop(call);
        break;
    default:
        later(call->applied_after_ns != 0 ? call->applied_after_ns : draw_way_back(), true,
              call_respond, call);
    }
}

void call_deliver(void *context)
{
    struct call *call = context;

    call->fate = call_draw_fate(call);
    world.lost += call->fate != FATE_NONE;
    switch (call->fate) {
    case FATE_LOST: lose(call); return;
    case FATE_ORPHANED: orphan(call); return;
    case FATE_UNSENT: withhold(call); return;
    default: apply(call, answer_first);
    }
}

enum {
    ASKED_SECONDS = 18
}; /* grace, ASKED_LATELY_MS, an attempt's time, and the way of the call */

/* Whether the victim may be evicted for the pod: it waits, with more priority and without a group,
 * for a claim of the victim, and its scheduler has asked lately; one that went or was bound a
 * moment ago could not be known to be. */
static bool may_be_evicted_for(const struct sim_pod *victim, const struct sim_pod *pod)
{
    bool waits = pod_is_there(pod) && pod->node < 0;
    bool went = pod->gone_ns != 0 && world.now_ns - pod->gone_ns < 10 * SECOND;
    bool was_bound = pod->node >= 0; /* just now, by another replica */
    bool is_asked_about =
        pod->asked_ns != 0 && world.now_ns - pod->asked_ns < ASKED_SECONDS * SECOND;

    return (waits || went || was_bound) && is_asked_about && !pod->never && !pod->is_grouped &&
           pod->priority > victim->priority && (pod->claims & victim->claims) != 0;
}

void call_check_eviction(const struct call *call)
{
    const char *uid = strstr(call->body, "\"uid\":\""); /* as precondition: see evict_it */
    struct sim_pod *victim = uid == NULL ? NULL : server_pod_of(uid + 7, strcspn(uid + 7, "\""));
    bool is_delete = strcmp(call->method, "DELETE") == 0;
    bool is_trial = strstr(call->body, "\"dryRun\"") != NULL;
    unsigned count = 0;

    if (strstr(call->path, "/eviction") == NULL && !is_delete)
        return;
    if (!world.preempts || is_delete == world.respects_budgets)
        broken("an eviction that the configuration does not allow: %s %s", call->method,
               call->path);
    if (victim == NULL || !victim->exists || is_trial)
        return;
    victim->eviction_sent_ns = world.now_ns;
    for (size_t i = 0; i < world.server.pod_count; i++) {
        if (!may_be_evicted_for(victim, &world.server.pods[i]))
            continue;
        victim->evicted_for = ++count == 1 ? (int)i : -1;
        victim->evicted_by = call->incarnation;
    }
    if (count == 0)
        broken("an eviction of %s for nobody", victim->name);
}

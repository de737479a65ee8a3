/* Calls of a replica over the network: of its verbs, and of its admission webhook. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/base/clock.h"
#include "extender/serving/admission/admit.h"
#include "simulation/fiber.h"
#include "simulation/world.h"

enum { SCHEDULER_PATIENCE_MS = 5000 };

/* A call that is on its way, or in progress. */
struct visit {
    struct replica *replica;
    bool is_review;
    enum admit_path path; /* of a review */
    enum verb verb;
    uint64_t patience_ms; /* of the caller */
    char *body, *text;
    answered *answer;
    void *context;
    unsigned parts; /* the call, the caller's patience */
    bool is_answered;
};

static void visit_drop(struct visit *visit)
{
    if (--visit->parts != 0)
        return;
    free(visit->body);
    free(visit->text);
    free(visit);
}

static void visit_answered(struct visit *visit, const char *text)
{
    if (!visit->is_answered) {
        visit->is_answered = true;
        visit->answer(visit->context, text);
    }
    visit_drop(visit);
}

static void reply(void *context)
{
    struct visit *visit = context;

    visit_answered(visit, visit->text);
}

static void lose_patience(void *context)
{
    visit_answered(context, NULL);
}

/* A review is allowed in time, or not at all. */
static unsigned work_on_review(const struct visit *visit, struct scratch *scratch)
{
    char timeout[16];
    uint64_t started_ns = monotonic_ns();

    (void)snprintf(timeout, sizeof timeout, "%llums", (unsigned long long)visit->patience_ms);
    unsigned status = admit_answer(
        &visit->replica->state,
        &(struct admit_call){.path = visit->path, .timeout = timeout, .started_ns = started_ns},
        scratch);
    if (status == 200 && monotonic_ns() > started_ns + visit->patience_ms * MILLISECOND &&
        memmem(scratch->result.ptr, scratch->result.len, "\"allowed\":true", 14) != NULL)
        broken("%s: allowed after its time-out", visit->body);
    return status;
}

/* Whether the status is one that the call may have: 500: no decision about a review. */
static bool is_expected(const struct visit *visit, unsigned status)
{
    return status == 200 || status == (visit->is_review ? 500 : 503);
}

static void work(void *context)
{
    struct visit *visit = context;
    struct replica *replica = visit->replica;
    struct scratch scratch;

    scratch_init(&scratch, 1 << 20, NULL);
    buf_put(&scratch.body, slice_of(visit->body));
    unsigned status = visit->is_review ? work_on_review(visit, &scratch)
                                       : verb_answer(&replica->state, visit->verb, &scratch);
    if (status == 200)
        visit->text = strndup(scratch.result.ptr, scratch.result.len);
    else if (!is_expected(visit, status))
        broken("%s: status %u: %.*s", visit->body, status, SLICE_ARG(scratch.result));
    scratch_dispose(&scratch);
    bool is_lost = !visit->is_review && visit->verb == VERB_PREEMPT && world.lost_preempts != 0;
    world.lost_preempts -= is_lost;
    if (!replica->is_up || is_lost || (world.has_faults && one_in(60))) {
        world.lost++;
        visit_drop(visit); /* no answer: the caller's patience ends it */
        return;
    }
    later(below(5 * MILLISECOND), true, reply, visit);
}

static void arrive(void *context)
{
    struct visit *visit = context;

    if (!visit->replica->is_up) /* connection refused */
        later(MILLISECOND, true, reply, visit);
    else
        fiber_start(work, visit, visit->replica);
}

/* Sends a copy of it. */
static void send(const struct visit *visit)
{
    struct visit *sent = malloc(sizeof *sent);

    if (sent == NULL)
        abort();
    *sent = *visit;
    sent->parts = 2;
    later(below(5 * MILLISECOND), true, arrive, sent);
    later(sent->patience_ms * MILLISECOND, false, lose_patience, sent);
}

void replica_call(unsigned replica, enum verb verb, const char *body, answered *answer,
                  void *context)
{
    send(&(struct visit){.replica = &world.replicas[replica],
                         .verb = verb,
                         .patience_ms = SCHEDULER_PATIENCE_MS,
                         .body = strdup(body),
                         .answer = answer,
                         .context = context});
}

void replica_review(unsigned replica, enum admit_path path, const char *body, answered *answer,
                    void *context)
{
    send(&(struct visit){.replica = &world.replicas[replica],
                         .is_review = true,
                         .path = path,
                         .patience_ms = world.review_timeout_ms,
                         .body = strdup(body),
                         .answer = answer,
                         .context = context});
}

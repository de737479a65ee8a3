/* What the informer, its requests and config/base/clock are to the replicas: requests over a
 * network that is slow, loses them, loses their answers and sends them twice; and the time, which
 * continues only between events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "config/base/clock.h"
#include "extender/bind/bind.h"
#include "simulation/fiber.h"
#include "simulation/world.h"

/* ---- clock ---- */

int64_t now_ms(void)
{
    return INT64_C(1790000000000) + (int64_t)(world.now_ns / MILLISECOND);
}

uint64_t monotonic_ns(void)
{
    return world.now_ns + SECOND; /* 0 means "never" here and there */
}

/* ---- what the linker puts in the place of the C library's ---- */

ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags)
{
    static bool has_seed; /* the process's first is the tables' seed, for all its worlds */

    (void)flags;
    memset(out, 42, bytes);
    if (has_seed) /* a fence's: each is another one */
        *(unsigned char *)out ^= (unsigned char)++world.randoms;
    has_seed = true;
    return (ssize_t)bytes;
}

struct wake {
    struct fiber *fiber;
    unsigned long waits;
};

static void wake(void *context)
{
    struct wake *wake = context;

    fiber_resume(wake->fiber, wake->waits);
    free(wake);
}

/* A thread that is about to take the lock may find that others were faster. */
static void come_in_between(void)
{
    struct fiber *fiber = fiber_current();

    if (fiber == NULL || !((struct replica *)fiber_owner(fiber))->is_up || !one_in(3))
        return;
    struct wake *later_on = malloc(sizeof *later_on);
    if (later_on == NULL)
        return;
    *later_on = (struct wake){fiber, fiber_waits(fiber)};
    later(below(2 * MILLISECOND), true, wake, later_on);
    fiber_wait();
}

int __real_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    come_in_between();
    return __real_pthread_rwlock_wrlock(lock);
}

int __real_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    come_in_between();
    return __real_pthread_rwlock_rdlock(lock);
}

/* ---- requests ---- */

/* A request that somebody waits for, or nobody (any more). */
struct call {
    struct call *next; /* of those that are not done */
    struct replica *replica;
    unsigned incarnation;
    struct fiber *waiter; /* NULL: nobody */
    unsigned long waits;
    unsigned parts; /* message, time-out, waiter: the last of them frees it */
    bool is_done;
    enum fate fate;
    unsigned refused_with;     /* by a fault; 0: any status that it has */
    uint64_t applied_after_ns; /* the same; 0: chance */
    bool is_repeated;          /* it was applied once already */
    unsigned status;           /* as the waiter has it; 0: unknown */
    unsigned arrived;          /* what the API server said */
    uint64_t sent_ns;
    struct buf answer;
    char *method, *path, *body;
    size_t body_len;
    bool is_fetch; /* its answer is applied to the cluster */
    struct object_reference reference;
    char *text;
};

static struct call *open_calls;

static void drop(struct call *call)
{
    if (--call->parts != 0)
        return;
    for (struct call **link = &open_calls; *link != NULL; link = &(*link)->next)
        if (*link == call) {
            *link = call->next;
            break;
        }
    buf_dispose(&call->answer);
    free(call->method);
    free(call->path);
    free(call->body);
    free(call->text);
    free(call);
}

static bool is_of_this_life(const struct call *call)
{
    return call->replica->is_up && call->replica->incarnation == call->incarnation;
}

static void finish(struct call *call, unsigned status)
{
    if (call->is_done)
        return;
    call->is_done = true;
    call->status = status;
    if (call->waiter != NULL)
        fiber_resume(call->waiter, call->waits);
}

static void time_out(void *context)
{
    struct call *call = context;

    finish(call, 0);
    drop(call);
}

static void apply_answer(struct call *call)
{
    struct replica *replica = call->replica;
    const struct informer_target *target = &replica->informer->target;
    struct error err = {0};

    if (call->arrived == 404 && apply_says_absent(&call->reference, buf_slice(&call->answer)))
        apply_absence(target, &call->reference);
    else if (call->arrived == 200 &&
             apply_object(target, &call->reference, buf_slice(&call->answer),
                          replica->watched[call->reference.kind], call->sent_ns + SECOND, &err) < 0)
        broken("%s", err.message);
}

static void respond(void *context)
{
    struct call *call = context;

    if (is_of_this_life(call) && call->is_fetch)
        apply_answer(call);
    finish(call, call->arrived);
    drop(call);
}

/* ---- what happens to them ---- */

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

static enum fate draw_fate(struct call *call)
{
    bool is_get = strcmp(call->method, "GET") == 0;

    if (takes_planned_fault(call))
        return world.fault.fate;
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
    finish(call, call->refused_with != 0 ? call->refused_with : draw_loss(call));
    drop(call);
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

/* The API server looks at it. */
static void apply(struct call *call)
{
    buf_reset(&call->answer, 0);
    world.requests++;
    trace("%s %s of replica %u%s: %.*s", call->method, path_shown(call), call->replica->index,
          call->is_repeated ? ", again" : "", (int)call->body_len, call->body);
    call->arrived =
        server_handle(call->method, call->path, (struct slice){call->body, call->body_len},
                      call->sent_ns, &call->answer);
}

static void deliver_again(void *context)
{
    struct call *call = context;

    world.repeated++;
    call->is_repeated = true;
    (call->fate == FATE_DENIED ? deny : apply)(call);
    later(below(5 * MILLISECOND), true, respond, call);
}

/* The API server gives a request 60 s; one replica alone relies on nothing being slower than its
 * own restart. */
static uint64_t delay_max_ns(void)
{
    return (world.is_annotation ? 60 : 2) * SECOND;
}

static void apply_late(void *context)
{
    struct call *call = context;

    apply(call);
    drop(call);
}

static void orphan(struct call *call)
{
    uint64_t age_ns = world.now_ns - call->sent_ns, max_ns = delay_max_ns();
    uint64_t after_ns = age_ns < max_ns ? below(max_ns - age_ns) : 0;

    finish(call, 0);
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
    finish(call, 0);
    drop(call);
}

static void deliver(void *context)
{
    struct call *call = context;

    call->fate = draw_fate(call);
    world.lost += call->fate != FATE_NONE;
    switch (call->fate) {
    case FATE_LOST: lose(call); return;
    case FATE_ORPHANED: orphan(call); return;
    case FATE_UNSENT: withhold(call); return;
    default: apply(call);
    }
    switch (call->fate) {
    case FATE_REPEATED:
    case FATE_DENIED: later(below(10 * MILLISECOND), true, deliver_again, call); break;
    case FATE_UNANSWERED: drop(call); break;
    case FATE_CUT:
        finish(call, 0);
        drop(call);
        break;
    default: later(draw_way_back(), true, respond, call);
    }
}

enum {
    ASKED_SECONDS = 18
}; /* grace, ASKED_LATELY_MS, an attempt's time, and the way of the call */

/* Whether the victim may be evicted for the pod: it waits, with more priority, for a claim of the
 * victim, and its scheduler has asked lately; one that went or was bound a moment ago could not be
 * known to be. */
static bool may_be_evicted_for(const struct sim_pod *victim, const struct sim_pod *pod)
{
    bool waits = pod_is_there(pod) && pod->node < 0;
    bool went = pod->gone_ns != 0 && world.now_ns - pod->gone_ns < 10 * SECOND;
    bool was_bound = pod->node >= 0; /* just now, by another replica */
    bool is_asked_about =
        pod->asked_ns != 0 && world.now_ns - pod->asked_ns < ASKED_SECONDS * SECOND;

    return (waits || went || was_bound) && is_asked_about && !pod->never &&
           pod->priority > victim->priority && (pod->claims & victim->claims) != 0;
}

static void check_eviction(const struct call *call)
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
    for (size_t i = 0; i < world.server.pod_count; i++) {
        if (!may_be_evicted_for(victim, &world.server.pods[i]))
            continue;
        victim->evicted_for = ++count == 1 ? (int)i : -1;
        victim->evicted_by = call->incarnation;
    }
    if (count == 0)
        broken("an eviction of %s for nobody", victim->name);
}

static struct call *send(const struct requests *requests, const char *method, const char *path,
                         struct slice body, bool is_awaited)
{
    struct call *call = calloc(1, sizeof *call);
    uint64_t delay_ns = below(10 * MILLISECOND) + 100000;

    if (call == NULL)
        abort();
    *call = (struct call){.replica = requests->replica,
                          .incarnation = requests->replica->incarnation,
                          .sent_ns = world.now_ns,
                          .waiter = is_awaited ? fiber_current() : NULL,
                          .parts = is_awaited ? 2 : 1,
                          .method = strdup(method),
                          .path = strdup(path),
                          .body = malloc(body.len + 1),
                          .body_len = body.len};
    if (body.len != 0)
        memcpy(call->body, body.ptr, body.len);
    call->body[body.len] = '\0';
    buf_init(&call->answer, 1 << 20);
    call->next = open_calls;
    open_calls = call;
    if (!requests->replica->is_up) { /* it has crashed: nothing leaves it */
        call->is_done = true;
        drop(call);
        return call;
    }
    check_eviction(call);
    if (world.has_faults && one_in(50))
        delay_ns = below(delay_max_ns());
    later(delay_ns, true, deliver, call);
    return call;
}

/* Waits for the answers, all of them or until the time is over. */
static void wait_for(struct call **calls, size_t count, int64_t timeout_ms)
{
    for (size_t i = 0; i < count; i++) {
        if (calls[i]->is_done)
            continue;
        calls[i]->parts++;
        later((uint64_t)timeout_ms * MILLISECOND, false, time_out, calls[i]);
    }
    for (size_t i = 0; i < count; i++)
        while (!calls[i]->is_done) {
            for (size_t j = 0; j < count; j++)
                calls[j]->waits = fiber_waits(fiber_current());
            fiber_wait();
        }
}

/* ---- informer.h and requests.h ---- */

int informer_start(struct informer **out, const struct kubeconfig *kubeconfig,
                   const struct informer_target *target, struct error *err)
{
    struct informer *informer = calloc(1, sizeof *informer);

    if (informer == NULL)
        return error_no_memory(err);
    informer->requests.replica = &world.replicas[kubeconfig->server[0] - '0'];
    informer->target = *target;
    informer->requests.replica->informer = informer;
    *out = informer;
    return 0;
}

void informer_stop(struct informer *informer)
{
    free(informer);
}

struct requests *informer_requests(struct informer *informer)
{
    return informer == NULL ? NULL : &informer->requests;
}

void requests_interrupt(struct requests *requests)
{
    (void)requests; /* nobody shuts down here: replicas crash */
}

bool requests_are_silent(struct requests *requests)
{
    (void)requests;
    return world.has_faults && one_in(10); /* something else went unanswered */
}

int requests_confirm(struct requests *requests, const struct object_reference *references,
                     size_t count, int64_t timeout_ms, struct error *err)
{
    struct call *calls[CONFIRM_MAX];
    int rc = 0;

    count = count < CONFIRM_MAX ? count : CONFIRM_MAX;
    for (size_t i = 0; i < count; i++) {
        struct buf path;
        buf_init(&path, 4096);
        object_path(&path, references[i].kind, references[i].ns, references[i].name);
        calls[i] = send(requests, "GET", buf_text(&path), SLICE(""), true);
        calls[i]->is_fetch = true;
        calls[i]->text = malloc(object_reference_bytes(&references[i]) + 1);
        calls[i]->reference = object_reference_copy(&references[i], calls[i]->text);
        buf_dispose(&path);
    }
    wait_for(calls, count, timeout_ms);
    for (size_t i = 0; i < count; i++) {
        if (calls[i]->status != 200 && calls[i]->status != 404)
            rc = error_set(err, ERROR_UNAVAILABLE, "the API server cannot be asked");
        drop(calls[i]);
    }
    return rc;
}

static struct call *send_request(const struct requests *requests, const struct request *request,
                                 bool is_awaited)
{
    struct buf path;

    buf_init(&path, 4096);
    request_path(&path, request);
    struct call *call = send(requests, request->method, buf_text(&path), request->body, is_awaited);
    buf_dispose(&path);
    return call;
}

bool requests_send(struct requests *requests, const struct request *request)
{
    (void)send_request(requests, request, false);
    return true;
}

int requests_call(struct requests *requests, const struct request *request, struct arena *arena,
                  struct request_answer *out, struct error *err)
{
    struct call *call = send_request(requests, request, true);

    if (request->suffix != NULL && strcmp(request->suffix, "/binding") == 0 &&
        request->timeout_ms < SEND_MS_MIN)
        broken("a Binding is sent with %lld ms to its end", (long long)request->timeout_ms);
    wait_for(&call, 1, request->timeout_ms);
    if (call->fate == FATE_UNSENT) {
        drop(call);
        return error_set(err, ERROR_TIMEOUT, "too many requests are under way");
    }
    *out = (struct request_answer){.status = call->status};
    if (call->status != 0)
        out->body = arena_printf(arena, "%.*s", SLICE_ARG(buf_slice(&call->answer)));
    out->message = SLICE("refused");
    drop(call);
    return 0;
}

/* Those that waited are resumed, which may end other calls, too. */
void requests_crash(struct replica *replica)
{
    struct call *call = open_calls;

    while (call != NULL) {
        bool is_cut = call->replica == replica && !call->is_done;
        if (is_cut)
            finish(call, 0);
        call = is_cut ? open_calls : call->next;
    }
}

/* What the informer, its requests and config/base/clock are to the replicas: requests over a
 * network that is slow, loses them, loses their answers and sends them twice; and the time, which
 * continues only between events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/serving/bind/bind.h"
#include "simulation/call.h"
#include "simulation/fiber.h"

static struct call *open_calls;

void call_drop(struct call *call)
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

bool call_is_of_this_life(const struct call *call)
{
    return call->replica->is_up && call->replica->incarnation == call->incarnation;
}

void call_finish(struct call *call, unsigned status)
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

    call_finish(call, 0);
    call_drop(call);
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

void call_respond(void *context)
{
    struct call *call = context;

    if (call_is_of_this_life(call) && call->is_fetch)
        apply_answer(call);
    call_finish(call, call->arrived);
    call_drop(call);
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
        call_drop(call);
        return call;
    }
    call_check_eviction(call);
    if (world.has_faults && one_in(50))
        delay_ns = below(call_delay_max_ns());
    later(delay_ns, true, call_deliver, call);
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

void requests_wake(struct requests *requests)
{
    (void)requests;
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
        call_drop(calls[i]);
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
        call_drop(call);
        return error_set(err, ERROR_TIMEOUT, "too many requests are under way");
    }
    *out = (struct request_answer){.status = call->status};
    if (call->status != 0)
        out->body = arena_printf(arena, "%.*s", SLICE_ARG(buf_slice(&call->answer)));
    out->message = SLICE("refused");
    call_drop(call);
    return 0;
}

/* Those that waited are resumed, which may end other calls, too. */
void requests_crash(struct replica *replica)
{
    struct call *call = open_calls;

    while (call != NULL) {
        bool is_cut = call->replica == replica && !call->is_done;
        if (is_cut)
            call_finish(call, 0);
        call = is_cut ? open_calls : call->next;
    }
}

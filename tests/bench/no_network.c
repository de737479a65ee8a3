#include "no_network.h"

#include <stdlib.h>

const struct informer_target *informer_feed;

struct requests {
    char unused;
};

struct informer {
    struct informer_target target;
    struct requests requests;
};

int informer_start(struct informer **out, const struct kubeconfig *kubeconfig,
                   const struct informer_target *wanted, struct error *err)
{
    (void)kubeconfig;
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return error_no_memory(err);
    (*out)->target = *wanted;
    informer_feed = &(*out)->target;
    return 0;
}

void informer_stop(struct informer *informer)
{
    free(informer);
}

struct requests *informer_requests(struct informer *informer)
{
    return &informer->requests;
}

void requests_wake(struct requests *requests)
{
    (void)requests;
}

void requests_interrupt(struct requests *requests)
{
    (void)requests;
}

bool requests_are_silent(struct requests *requests)
{
    (void)requests;
    return false;
}

int requests_confirm(struct requests *requests, const struct object_reference *objects,
                     size_t count, int64_t timeout_ms, struct error *err)
{
    (void)requests, (void)objects, (void)count, (void)timeout_ms, (void)err;
    return 0;
}

bool requests_send(struct requests *requests, const struct request *request)
{
    (void)requests, (void)request;
    return true;
}

int requests_call(struct requests *requests, const struct request *request, struct arena *arena,
                  struct request_answer *out, struct error *err)
{
    (void)requests, (void)request, (void)arena, (void)err;
    *out = (struct request_answer){.status = 201, .body = SLICE("{}"), .message = SLICE("")};
    return 0;
}

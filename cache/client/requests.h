/*
 * requests: what any thread asks of the API server beside lists and watches. A queue, first come,
 * first served, to the one thread that drives the HTTP client (the informer's), and the way back.
 *
 *     struct request request = {.method = "GET", .path = "/openapi/v3", .timeout_ms = 1000};
 *     struct request_answer answer;
 *     if (requests_call(requests, &request, arena, &answer, err) < 0)
 *         return error_wrap(err, "ask for the OpenAPI document");
 *     requests_send(requests, &request);                   // does not wait
 *     requests_confirm(requests, &object, 1, 1000, err);   // asks what the object is now
 *
 * Threads: any. Those that wait must not hold the cluster's lock.
 */
#ifndef CACHE_CLIENT_REQUESTS_H
#define CACHE_CLIENT_REQUESTS_H

#include "cache/client/http_client.h"
#include "cache/objects/objects.h"

enum {
    CONFIRM_MAX = 16,           /* objects in one call; the others are not asked about */
    OBJECTS_ASKED_MAX = 1024,   /* objects being asked about at a time, over all callers */
    FETCH_BYTES_MAX = 16 << 20, /* of one object */
    MESSAGES_MAX = 256,         /* of requests_send, not yet answered; more are dropped */
    UNANSWERED_MS = 1000,       /* see requests_are_silent */
};

struct requests;

/* What to ask. The path is given, or made of the object and what comes behind it. */
struct request {
    const char *method; /* a static string, like content_type */
    const char *path;   /* NULL: the object's */
    struct object_reference object;
    const char *suffix; /* behind the object's path, "/binding" or "?dryRun=All"; NULL: nothing */
    const char *content_type; /* NULL: there is no body */
    struct slice body;
    int64_t timeout_ms; /* of requests_call; requests_send has its own */
};

struct request_answer {
    unsigned status;   /* 0: none came, or not all of it: what became of the request is unknown */
    struct slice body; /* both in the arena */
    struct slice message; /* of a metav1.Status */
};

/* Sends a request, once (cache/client/http_client.h), and waits for its answer.
 * Errors: ERROR_UNAVAILABLE, ERROR_TIMEOUT, ERROR_NO_MEMORY: it was not sent, and will not be. */
int requests_call(struct requests *requests, const struct request *request, struct arena *arena,
                  struct request_answer *out, struct error *err);

/* Sends a request and does not wait for its answer; a failure is logged. False: it was dropped,
 * because too many wait to be sent, or because there is no memory. */
bool requests_send(struct requests *requests, const struct request *request);

/*
 * Asks the API server what the objects are now (a GET is a quorum read); the observer has each
 * answer before this returns. Callers that ask about the same object share one request, unless it
 * was sent before a caller came: what it read may be older than the caller. An object that one
 * caller asks about is asked about however the others fare.
 * Errors: ERROR_TIMEOUT, ERROR_UNAVAILABLE, ERROR_NO_MEMORY: not all is known.
 */
int requests_confirm(struct requests *requests, const struct object_reference *objects,
                     size_t count, int64_t timeout_ms, struct error *err);

/* Whether a request has been on its way to the API server for UNANSWERED_MS, and no other was
 * answered in the meantime: for callers that would rather not wait for the next one. */
bool requests_are_silent(struct requests *requests);

/* For a shutdown: requests_call and requests_confirm return at once, now and later: with
 * ERROR_UNAVAILABLE, or with status 0 where the request has left. NULL is ignored. */
void requests_interrupt(struct requests *requests);

/* ---- for the thread that drives the HTTP client ---- */

/* What a GET of one object was answered. */
struct object_answer {
    struct object_reference object;
    struct slice body;
    unsigned status;   /* 0: no whole answer */
    const char *error; /* why there is no whole answer */
    uint64_t sent_ns;  /* it was sent after that */
    bool is_refresh;   /* requests_refresh asked */
};

struct requests_observer {
    void *context;
    /* Called on the driving thread, before the callers return. Errors: the answer is no good. */
    int (*answered)(void *context, const struct object_answer *answer, struct error *err);
};

/* Ownership: requests_free, when no other thread uses it any more. The HTTP client has to stay. */
struct requests *requests_new(struct http_client *client, const struct requests_observer *observer);
void requests_free(struct requests *requests);

/* Hands what is queued over to the HTTP client. */
void requests_hand_over(struct requests *requests);

/* Asks about an object though no caller waits. False: there is no memory. */
bool requests_refresh(struct requests *requests, const struct object_reference *object);

/* The message of a metav1.Status, or of its beginning; empty when there is none. It lies in the
 * answer, or in the arena. */
struct slice request_status_message(struct slice answer, struct arena *arena);

#endif

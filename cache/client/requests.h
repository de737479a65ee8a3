/*
 * requests: requests of any thread to the API server, except lists and watches. They wait in a
 * queue for the thread that drives the HTTP client (the informer's), which has a share of each
 * namespace (http_client.h).
 *
 *     struct request request = {.method = "GET", .path = "/openapi/v3", .timeout_ms = 1000};
 *     struct request_answer answer;
 *     if (requests_call(requests, &request, arena, &answer, err) < 0)
 *         return error_wrap(err, "ask for the OpenAPI document");
 *     requests_send(requests, &request);                   // does not wait
 *     requests_confirm(requests, &object, 1, 1000, err);   // reads what the object is now
 *
 * Threads: any. A thread that waits must not hold the cluster's lock.
 */
#ifndef CACHE_CLIENT_REQUESTS_H
#define CACHE_CLIENT_REQUESTS_H

#include "cache/client/http_client.h"
#include "cache/objects/objects.h"

enum {
    CONFIRM_MAX = 16,           /* objects in one call; more are ignored */
    OBJECTS_ASKED_MAX = 4096,   /* GETs under way at a time, of all callers: more than those of all
                                   reviews that wait (192 of CONFIRM_MAX objects) */
    FETCH_BYTES_MAX = 16 << 20, /* of the answer for one object */
    ANSWERS_BYTES_MAX = 48 << 20, /* of all that are being read; more are cut off */
    MESSAGES_MAX = 256,           /* of requests_send, without an answer yet; more are dropped */
    REQUESTS_SHARE = 1,           /* one namespace has as many of either as are left (shares.h) */
    UNANSWERED_MS = 1000,         /* see requests_are_silent */
};

struct requests;

/* A request. Its path is given, or made from the object and a suffix. */
struct request {
    const char *method; /* a static string, like content_type */
    const char *path;   /* NULL: the object's */
    struct object_reference object;
    struct slice ns;          /* whose share it is, if not the object's; empty: the shared one */
    const char *suffix;       /* after the object's path: "/binding", "?dryRun=All"; NULL: none */
    const char *content_type; /* NULL: there is no body */
    struct slice body;
    int64_t timeout_ms; /* for requests_call; requests_send has its own */
    bool may_exist;     /* of requests_send: what is created may be there: a 409 is no failure */
};

/* Begins the body of a PATCH, up to its open metadata. It fails if the object of that name has
 * another UID, or, unless that is empty, another version. */
static inline void request_begin_patch(struct buf *body, struct slice uid, struct slice version)
{
    buf_put(body, SLICE("{\"metadata\":{\"uid\":"));
    buf_json(body, uid);
    if (version.len != 0) {
        buf_put(body, SLICE(",\"resourceVersion\":"));
        buf_json(body, version);
    }
}

struct request_answer {
    unsigned status;      /* 0: no complete answer: the outcome of the request is unknown */
    struct slice body;    /* both in the arena */
    struct slice message; /* of a metav1.Status */
};

/* Sends a request, once (cache/client/http_client.h), and waits for its answer.
 * Errors: ERROR_UNAVAILABLE, ERROR_TIMEOUT, ERROR_NO_MEMORY: it was not sent and will not be sent.
 */
int requests_call(struct requests *requests, const struct request *request, struct arena *arena,
                  struct request_answer *out, struct error *err);

/* Sends a request without waiting for its answer; a failure is logged. False: it was dropped,
 * because too many are in the queue, or there is no memory. */
bool requests_send(struct requests *requests, const struct request *request);

/*
 * Reads the current objects from the API server (a GET is a quorum read). The observer gets each
 * answer before this returns. Callers that need the same object share one GET, unless it was sent
 * before the caller came: then its answer may be too old. A GET continues as long as one caller
 * needs it, even if another one gives up. Errors: ERROR_TIMEOUT, ERROR_UNAVAILABLE,
 * ERROR_NO_MEMORY: not all objects were read.
 */
int requests_confirm(struct requests *requests, const struct object_reference *objects,
                     size_t count, int64_t timeout_ms, struct error *err);

/* Whether requests have been waiting for UNANSWERED_MS, and none was answered since. A caller may
 * then skip its own request. */
bool requests_are_silent(struct requests *requests);

/* Makes the driving thread look at what it watches. */
void requests_wake(struct requests *requests);

/* For a shutdown: from now on, requests_call and requests_confirm return at once, with
 * ERROR_UNAVAILABLE; or with status 0 if the request was sent already. NULL is ignored. */
void requests_interrupt(struct requests *requests);

/* ---- for the thread that drives the HTTP client ---- */

/* The answer to a GET of one object. */
struct object_answer {
    struct object_reference object;
    struct slice body;
    unsigned status;   /* 0: no answer */
    bool is_cut;       /* the answer is not complete */
    const char *error; /* why it is not */
    uint64_t sent_ns;  /* the GET was sent after that */
    bool is_refresh;   /* from requests_refresh */
};

struct requests_observer {
    void *context;
    /* Called on the driving thread, before the callers return. Errors: the answer is not usable. */
    int (*answered)(void *context, const struct object_answer *answer, struct error *err);
};

/* Ownership: requests_free, when no other thread uses it. The HTTP client is borrowed. */
struct requests *requests_new(struct http_client *client, const struct requests_observer *observer);
void requests_free(struct requests *requests);

/* Passes the queued requests to the HTTP client. */
void requests_hand_over(struct requests *requests);

/* Sends a GET of an object, although no caller waits. False: no memory. */
bool requests_refresh(struct requests *requests, const struct object_reference *object);

/* The message of a metav1.Status, or of its beginning; empty: none. Ownership: it lies in the
 * answer or in the arena. */
struct slice request_status_message(struct slice answer, struct arena *arena);

#endif

/*
 * api_server: an API server that lies when a test asks it to. It keeps objects with UIDs and
 * resourceVersions, checks preconditions, and serves lists (pages and streamed), watches, GET,
 * PATCH, DELETE, Binding, Eviction and Events over plain HTTP, as a kube-apiserver answers. A fault
 * makes requests that match it late, lost, applied but unanswered, or answered with anything.
 *
 *     api_serve();
 *     api_put("{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-1\"}}");
 *     api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .times = 1,
 *                                   .is_applied = true, .ending = API_CLOSE});
 *
 * One a process: a scenario (scenario.h) has a process of its own. What goes wrong in here ends the
 * process with a message.
 *
 * Threads: any.
 */
#ifndef TESTS_SUPPORT_API_SERVER_H
#define TESTS_SUPPORT_API_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/base/error.h" /* PRINTF_LIKE */

/* How long a scenario waits for what has to come. It says nothing about speed: a machine may be ten
 * times slower than another. */
enum { PATIENCE_MS = 180000 };

/* Starts it on a free port of loopback. */
void api_serve(void);
uint16_t api_port(void);

/* ---- objects ---- */

/* The object, in JSON, is there from now on, in place of the one of its name: a watch event. It
 * gets a new resourceVersion, and a UID if it has none. */
void api_put(const char *format, ...) PRINTF_LIKE(1, 2);

/* It is gone: a watch event. namespace: "" for what has none. */
void api_remove(const char *resource, const char *ns, const char *name);

/* The object in JSON; "null" when there is none. Valid for the life of the process. */
const char *api_object(const char *resource, const char *ns, const char *name);

/* The string at "metadata.uid" and the like of an object; "" when there is none. A '~' stands
 * for a dot in a key. Valid for the life of the process. */
const char *api_text(const char *resource, const char *ns, const char *name, const char *path);

/* ---- faults ---- */

enum api_ending {
    API_ANSWER, /* the true answer, or the one that the fault gives */
    API_CLOSE,  /* the connection is closed without an answer */
    API_HANG,   /* nothing more comes, and the connection stays open */
};

struct api_fault {
    const char *method; /* NULL: any */
    const char *path;   /* some part of path and query; NULL: any */
    const char *body;   /* some part of the request's body; NULL: any */
    unsigned skip;      /* so many of those that match are left alone first */
    unsigned times;     /* then so many are hit; 0: all, until api_heal */
    int delay_ms;       /* before it is applied */
    bool is_applied;    /* the request takes effect, whatever is answered */
    int late_ms;        /* before the answer */
    enum api_ending ending;
    unsigned status;    /* of the answer; 0: the true one (then it is applied) */
    const char *answer; /* its body; NULL: a metav1.Status of that status, or the true one */
};

/* From now on. Of several that match a request, the one that was set last counts. The strings have
 * to stay. About a second after its start, claimguard requeues the pods that wait: a PATCH of each.
 * So a fault that hits some PATCHes (`times`) of a pod needs a part of their body. */
void api_fault(const struct api_fault *fault);

/* Ends all faults; those that hang still hang. */
void api_heal(void);

/* Those that hang now are closed. */
void api_let_go(void);

/* ---- watches ---- */

/* No event of the resource is sent, until it is released. GETs and lists are not held. */
void api_hold(const char *resource);
void api_release(const char *resource);

/* Sends this line (a newline is added) on each open watch of the resource. */
void api_send_line(const char *resource, const char *line);

/* The same as an event of the history, which a watch that resumes gets again. VERSION in the line
 * becomes the new resourceVersion. */
void api_log_line(const char *resource, const char *line);

/* Ends the open watches of the resource; those who come back resume. */
void api_cut(const char *resource);

/* How many watches of the resource are open. */
size_t api_watches(const char *resource);

/* Versions up to now are too old from now on: a watch from there gets an ERROR event, 410. */
void api_compact(void);

/* Nobody listens on its port any more, and all connections are closed; and back again. */
void api_go_down(void);
void api_come_back(void);

/* Lists are not streamed (sendInitialEvents is a 422), as by an older server. */
void api_serve_pages(void);

/* ---- KEP-2857's field ---- */

enum api_field {
    API_FIELD_UNKNOWN, /* not in OpenAPI; with fieldValidation=Strict, a 422; a PATCH or a Binding
                          of a pod that has it strips it */
    API_FIELD_GATED,   /* in OpenAPI, and dropped with 200, also when strict, unless it was there */
    API_FIELD_KEPT,
};
void api_set_field(enum api_field field);

/* ---- what came ---- */

/* Requests so far whose method is that one and whose path (with query) or body has the text. */
size_t api_count(const char *method, const char *text);

/* How many requests had come before the first such one; SIZE_MAX: none has come. */
size_t api_place(const char *method, const char *text);

/* Waits until there are so many; false after ten seconds. */
bool api_wait(const char *method, const char *text, size_t count);

/* The most connections that were open at a time. */
size_t api_connections_max(void);

/* How many were opened so far. */
size_t api_connections_ever(void);

#endif

/*
 * feed: an API server of the model's cluster, in a process of its own, over plain HTTP. It answers
 * at once: all texts are made before it listens, so that what is measured is its client. It serves
 * lists in pages and streamed, watches, GETs of pods and claims, and Bindings; other resources are
 * empty, and other writes succeed without an effect.
 *
 * Its pods: those of the model; as many others, which take their place in every other list while
 * `relists` is set; and FEED_WAITING more, which wait for claims that no other pod names.
 *
 * Threads: one may start and stop it; the control may be set from any.
 */
#ifndef TESTS_BENCH_FEED_H
#define TESTS_BENCH_FEED_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/base/buf.h"
#include "model.h"

enum { FEED_WAITING = 256 };

/* Shared by both processes. */
struct feed_control {
    atomic_bool may_stream; /* else lists are in pages, as from an older API server */
    atomic_bool relists;    /* a list of pods is followed by an ERROR event, 410 */
    atomic_uint event_rate; /* a second: of ten, seven pods change, one goes, one comes back, and
                               one claim changes */
    atomic_ullong lists;    /* of pods, that were complete */
    atomic_ullong events;   /* that were sent */
    atomic_ullong bindings; /* of the pods that wait */
};

struct feed {
    pid_t pid;
    uint16_t port;
    struct feed_control *control;
    char kubeconfig[512]; /* a file that leads to it */
};

/* Ends the run if it does not start. Ownership: feed_stop. */
void feed_start(struct feed *out, const struct model *model);
void feed_stop(struct feed *feed);

/* The nth exclusive claim that is free in every list: no pod that has a node names it, but for the
 * waiting pod n - FEED_WAITING, once it is bound. n < 2 * FEED_WAITING. */
unsigned feed_free_claim(const struct model *model, unsigned n);

/* Appends the bind call for waiting pod n. */
void feed_put_bind(const struct model *model, unsigned n, struct buf *out);

#endif

/*
 * feed: an API server of the model's cluster, in a process of its own, over plain HTTP. It answers
 * at once: all texts are made before it listens, so that what is measured is its client. It serves
 * lists in pages and streamed, watches, GETs of pods and claims, and Bindings; other resources are
 * empty, and other writes succeed without an effect.
 *
 * Its pods: those of the model; as many others, which take their place in every other list while
 * `relists` is set; and FEED_WAITING more, for claims that no other pod names. These are bound one
 * after another, by binds 0, 1, 2, ...; and once half of them are, each bind also replaces the
 * longest bound one by a new pod for its claim, with a new name and UID, so that there is always
 * one to bind.
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
    atomic_bool relists;    /* a watch of pods ends with an ERROR event, 410, a little over a second
                               after its request: sooner, and the client would pause in between */
    atomic_uint event_rate; /* a second: of ten, seven pods change, one goes, one comes back, and
                               one claim changes */
    atomic_ullong begun;    /* lists of pods */
    atomic_ullong lists;    /* the same, that were complete */
    atomic_ullong events;   /* that were sent */
    atomic_ullong bindings; /* of the pods that wait */
};

struct feed {
    pid_t pid;
    uint16_t port;
    struct feed_control *control;
    char kubeconfig[512]; /* a file that leads to it */
};

/* 5,000 nodes, a claim for each pod, half of them exclusive, and a fifth of the pods waits. */
struct model feed_model(unsigned pods);

/* Ends the run if it does not start. Ownership: feed_stop. */
void feed_start(struct feed *out, const struct model *model);
void feed_stop(struct feed *feed);

/* The nth exclusive claim that is free in every list: no pod that has a node names it, but from
 * FEED_WAITING on, that of a bind. n < 2 * FEED_WAITING. */
unsigned feed_free_claim(const struct model *model, unsigned n);

/* Appends bind call n. Another than the next one is answered with 409. */
void feed_put_bind(const struct model *model, uint64_t n, struct buf *out);

#endif

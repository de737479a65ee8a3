#include "extender/nudge.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "config/base/clock.h"
#include "config/base/log.h"

enum { TEXT_BYTES_MAX = 4096 };

struct waiting_pod {
    char holder[NUDGE_UID_BYTES];
    struct object_reference pod; /* its UID is the key; its strings lie behind the struct */
    UT_hash_handle hh;
    char text[];
};

void nudge_init(struct nudge *nudge)
{
    *nudge = (struct nudge){.pods = NULL};
    rate_init(&nudge->rate, NUDGES_PER_SECOND, NUDGES_PER_SECOND, monotonic_ns());
    (void)pthread_mutex_init(&nudge->lock, NULL);
}

static void forget(struct nudge *nudge, struct waiting_pod *pod)
{
    HASH_DEL(nudge->pods, pod);
    free(pod);
}

void nudge_dispose(struct nudge *nudge)
{
    while (nudge->pods != NULL)
        forget(nudge, nudge->pods);
    (void)pthread_mutex_destroy(&nudge->lock);
}

static void add(struct nudge *nudge, const struct object_reference *reference, struct slice holder)
{
    struct waiting_pod *pod = NULL;

    HASH_FIND(hh, nudge->pods, reference->uid.ptr, reference->uid.len, pod);
    if (pod != NULL)
        forget(nudge, pod);
    if (HASH_COUNT(nudge->pods) >= NUDGE_PODS_MAX)
        forget(nudge, nudge->pods); /* the oldest */
    pod = calloc(1, sizeof *pod + object_reference_bytes(reference));
    if (pod == NULL)
        return; /* it waits for the scheduler's own flush */
    memcpy(pod->holder, holder.ptr, holder.len);
    pod->pod = object_reference_copy(reference, pod->text);
    HASH_ADD_KEYPTR(hh, nudge->pods, pod->pod.uid.ptr, pod->pod.uid.len, pod);
    if (pod->hh.tbl == NULL)
        free(pod);
}

void nudge_wait(struct nudge *nudge, const struct meta *pod, struct slice holder)
{
    if (pod->uid.len == 0 || holder.len == 0 || holder.len >= NUDGE_UID_BYTES)
        return;
    (void)pthread_mutex_lock(&nudge->lock);
    add(nudge, &(struct object_reference){KIND_POD, pod->namespace, pod->name, pod->uid}, holder);
    (void)pthread_mutex_unlock(&nudge->lock);
}

/* A patch of the pod with that UID, and of no other. */
static void send_patch(struct follow *follow, const struct object_reference *pod)
{
    struct buf path, body;

    buf_init(&path, TEXT_BYTES_MAX);
    buf_init(&body, TEXT_BYTES_MAX);
    object_path(&path, KIND_POD, pod->namespace, pod->name);
    buf_put(&body, SLICE("{\"metadata\":{\"uid\":"));
    buf_json(&body, pod->uid);
    buf_printf(&body, ",\"annotations\":{\"claimguard.io/nudged\":\"%lld\"}}}",
               (long long)now_ms());
    const char *text = buf_text(&path);
    if (text != NULL && !body.failed)
        follow_send(follow, "PATCH", text, "application/merge-patch+json", buf_slice(&body));
    log_debug("pod nudged: a reservation that it waited for has ended",
              LOG_SLICE("namespace", pod->namespace), LOG_SLICE("pod", pod->name));
    buf_dispose(&path);
    buf_dispose(&body);
}

void nudge_ended(struct nudge *nudge, struct slice holder, struct follow *follow)
{
    (void)pthread_mutex_lock(&nudge->lock);
    for (struct waiting_pod *pod = nudge->pods, *next; pod != NULL; pod = next) {
        next = pod->hh.next;
        if (!slice_equal(slice_of(pod->holder), holder))
            continue;
        if (follow != NULL && rate_take(&nudge->rate, monotonic_ns()))
            send_patch(follow, &pod->pod);
        forget(nudge, pod);
    }
    (void)pthread_mutex_unlock(&nudge->lock);
}

/* The objects of the feed, as texts that are made once. */
#include <stdlib.h>
#include <string.h>

#include "feed_internal.h"
#include "programs.h"

struct feed_world feed_world;

typedef void put_object(const struct model *model, unsigned i, struct buf *out);

static void make(enum kind kind, put_object *put, unsigned count)
{
    struct feed_texts *texts = &feed_world.texts[kind];

    buf_init(&texts->bytes, SIZE_MAX);
    texts->ends = calloc(count + 1, sizeof *texts->ends);
    if (texts->ends == NULL)
        bench_die("out of memory");
    texts->count = count;
    for (unsigned i = 0; i < count; i++) {
        put(feed_world.model, i, &texts->bytes);
        texts->ends[i] = texts->bytes.len;
    }
    if (texts->bytes.failed)
        bench_die("out of memory");
}

void feed_objects_make(void)
{
    const struct model *model = feed_world.model;

    (void)feed_free_claim(model, 0); /* ends the run if there are too few */
    make(KIND_NODE, model_put_node, model->nodes);
    make(KIND_CSI_NODE, model_put_csi_node, model->driver_share > 0 ? model->nodes : 0);
    make(KIND_CLAIM, model_put_claim, model->claims);
    make(KIND_VOLUME, model_put_volume, model->has_volumes ? model->claims : 0);
    make(KIND_POD, model_put_pod, 2 * model->pods);
}

unsigned feed_free_claim(const struct model *model, unsigned n)
{
    static unsigned found[2 * FEED_WAITING], count;

    for (unsigned i = 0; count == 0 && i < 2 * FEED_WAITING; i++) {
        unsigned claim = i == 0 ? 0 : found[i - 1] + 1;
        while (claim < model->claims &&
               (!model_claim_is_exclusive(model, claim) || model_pod_is_assigned(model, claim) ||
                model_pod_is_assigned(model, claim + model->pods)))
            claim++;
        if (claim >= model->claims)
            bench_die("the model has too few free claims");
        found[i] = claim;
    }
    count = 2 * FEED_WAITING;
    return found[n];
}

/* The number of the pod of bind n. Pod i of a model names claim i % claims; the first of these have
 * been given to the model's pods, twice. */
static unsigned waiting_pod(const struct model *model, uint64_t n)
{
    return (unsigned)(2 + n / FEED_WAITING) * model->claims +
           feed_free_claim(model, FEED_WAITING + (unsigned)(n % FEED_WAITING));
}

/* The n of the first of the FEED_WAITING pods that there are: half of them are bound,
 * once there were so many binds. */
static uint64_t first_waiting(uint64_t bound)
{
    return bound < FEED_WAITING / 2 ? 0 : bound - FEED_WAITING / 2;
}

unsigned feed_objects_count(enum kind kind)
{
    return kind == KIND_POD ? feed_world.model->pods + FEED_WAITING : feed_world.texts[kind].count;
}

uint64_t feed_version(uint64_t bound)
{
    return bound << 32 | (atomic_fetch_add(&feed_world.version, 1) + 1);
}

/* Replaces the resourceVersion. */
static void put_versioned(struct slice text, uint64_t version, struct buf *out)
{
    static const char key[] = "\"resourceVersion\":\"";
    const char *at = memmem(text.ptr, text.len, key, sizeof key - 1);

    if (at == NULL || version == 0) {
        buf_put(out, text);
        return;
    }
    at += sizeof key - 1;
    size_t head = (size_t)(at - text.ptr);
    const char *rest = memchr(at, '"', text.len - head);
    buf_put(out, (struct slice){text.ptr, head});
    buf_printf(out, "%llu", (unsigned long long)version);
    buf_put(out, (struct slice){rest, (size_t)(text.ptr + text.len - rest)});
}

void feed_objects_put_waiting(uint64_t n, bool is_bound, uint64_t version, struct buf *out)
{
    struct model model = *feed_world.model;
    struct buf text;

    model.pending_share = is_bound ? 0 : 1;
    buf_init(&text, 1 << 20);
    model_put_pod(&model, waiting_pod(feed_world.model, n), &text);
    put_versioned(buf_slice(&text), version, out);
    buf_dispose(&text);
}

void feed_objects_put(enum kind kind, struct feed_moment moment, unsigned i, uint64_t version,
                      struct buf *out)
{
    const struct feed_texts *texts = &feed_world.texts[kind];
    unsigned pods = feed_world.model->pods;

    if (kind == KIND_POD && i >= pods) {
        uint64_t n = first_waiting(moment.bound) + i - pods;
        feed_objects_put_waiting(n, n < moment.bound, version == 0 ? moment.version : version, out);
        return;
    }
    if (kind == KIND_POD)
        i += moment.generation * pods;
    size_t from = i == 0 ? 0 : texts->ends[i - 1];
    put_versioned((struct slice){texts->bytes.bytes + from, texts->ends[i] - from}, version, out);
}

/* The number at the end of the name that follows the text. */
static long number_after(const char *path, const char *text)
{
    const char *at = strstr(path, text), *end;

    if (at == NULL)
        return -1;
    at += strlen(text);
    end = at + strcspn(at, "/");
    while (end > at && end[-1] != '-')
        end--;
    return strtol(end, NULL, 10);
}

int64_t feed_objects_waiting(const char *path)
{
    uint64_t first = first_waiting(atomic_load(&feed_world.bound));
    long number = number_after(path, "/pods/");

    for (uint64_t n = first; n < first + FEED_WAITING; n++)
        if (number == (long)waiting_pod(feed_world.model, n))
            return (int64_t)n;
    return -1;
}

bool feed_objects_find(const char *path, struct buf *out)
{
    long pod = number_after(path, "/pods/"), claim = number_after(path, "/persistentvolumeclaims/");
    long pods = (long)feed_world.model->pods;
    struct feed_moment moment = {atomic_load(&feed_world.generation),
                                 atomic_load(&feed_world.bound), 0};
    int64_t n = pod < 0 ? -1 : feed_objects_waiting(path);

    if (claim >= 0 && claim < (long)feed_world.model->claims)
        feed_objects_put(KIND_CLAIM, moment, (unsigned)claim, 0, out);
    else if (n >= 0)
        feed_objects_put_waiting((uint64_t)n, (uint64_t)n < moment.bound,
                                 feed_version(moment.bound), out);
    else if (pod >= 0 && pod / pods == (long)moment.generation)
        feed_objects_put(KIND_POD, moment, (unsigned)(pod % pods), 0, out);
    else
        return false;
    return true;
}

/* ---- for the callers ---- */

/* The member "key":"VALUE" of a text. */
static struct slice member(struct slice text, const char *key)
{
    const char *at = memmem(text.ptr, text.len, key, strlen(key));

    if (at == NULL)
        bench_die("a pod of the model lacks a member");
    at += strlen(key);
    return (struct slice){at, strcspn(at, "\"")};
}

void feed_put_bind(const struct model *model, uint64_t n, struct buf *out)
{
    struct model bound = *model;
    struct buf text;

    bound.pending_share = 0;
    buf_init(&text, 1 << 20);
    model_put_pod(&bound, waiting_pod(model, n), &text);
    buf_put(&text, (struct slice){"", 1});
    struct slice pod = buf_slice(&text);
    buf_printf(out,
               "{\"PodName\":\"%.*s\",\"PodNamespace\":\"%.*s\",\"PodUID\":\"%.*s\",\"Node\":"
               "\"%.*s\"}",
               SLICE_ARG(member(pod, "\"name\":\"")), SLICE_ARG(member(pod, "\"namespace\":\"")),
               SLICE_ARG(member(pod, "\"uid\":\"")), SLICE_ARG(member(pod, "\"nodeName\":\"")));
    buf_dispose(&text);
}

/* The bodies of lists and watches: written piece by piece, as the client takes them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/base/clock.h"
#include "feed_internal.h"
#include "programs.h"

enum {
    IDLE_US = 1000,     /* between two looks at what has changed */
    BOOKMARK_MS = 1000, /* also shows that the client has gone */
    RELIST_MS = 1100,   /* from the request to the ERROR event: behind an answer that lasted for a
                           second, the client lists again at once (cache/watch/reflector.c) */
};

struct feed_answer {
    enum kind kind;
    bool is_stream, is_watch; /* a streamed list; a watch, or what a streamed list became */
    bool has_begun, has_ended;
    struct feed_moment moment; /* `bound`: in a watch, also the Bindings that were sent */
    unsigned at, end, count;   /* of the objects of a list */
    uint64_t ends_ns, bookmark_ns, relist_ns; /* of a watch; UINT64_MAX: never */
    uint64_t paced_ns;                        /* up to then all events have been sent */
    double owed;                              /* events that are due */
    uint64_t event;                           /* the next one's number, in this watch */
    struct buf text;                          /* what was written, up to `taken` */
    size_t taken;
};

static uint64_t query_number(const char *query, const char *key, uint64_t otherwise)
{
    const char *at = strstr(query, key);
    return at == NULL ? otherwise : strtoull(at + strlen(key), NULL, 10);
}

/* While the lists replace each other, each has the other pods. */
static void begin_pods(struct feed_answer *answer)
{
    if (atomic_load(&feed_world.control->relists) && atomic_load(&feed_world.control->lists) != 0)
        atomic_fetch_xor(&feed_world.generation, 1);
    answer->moment.generation = atomic_load(&feed_world.generation);
    atomic_fetch_add(&feed_world.control->begun, 1);
}

static void begin_watch(struct feed_answer *answer)
{
    answer->is_watch = true;
    answer->paced_ns = monotonic_ns();
}

/* How many Bindings the answer begins with: a continue token has them where a version has them. */
static uint64_t first_bound(const char *query, bool is_list)
{
    uint64_t token = query_number(query, "continue=", 0);
    uint64_t version = query_number(query, "&resourceVersion=", 0);

    if (token != 0)
        return token >> 32;
    return !is_list && version != 0 ? version >> 32 : atomic_load(&feed_world.bound);
}

static void choose_objects(struct feed_answer *answer, const char *query, bool is_list)
{
    bool is_probe = strstr(query, "NotOlderThan&resourceVersion=") != NULL;

    answer->at = (unsigned)query_number(query, "continue=", 0);
    answer->moment.generation = atomic_load(&feed_world.generation);
    answer->moment.bound = first_bound(query, is_list);
    answer->moment.version = feed_version(answer->moment.bound);
    if (answer->kind == KIND_POD && is_list && !is_probe && answer->at == 0)
        begin_pods(answer);
    answer->count = is_list ? feed_objects_count(answer->kind) : 0;
    uint64_t limit = query_number(query, "limit=", answer->count);
    answer->end = limit < answer->count - answer->at ? answer->at + (unsigned)limit : answer->count;
}

struct feed_answer *feed_answer_new(enum kind kind, const char *query)
{
    struct feed_answer *answer = calloc(1, sizeof *answer);
    uint64_t now_ns = monotonic_ns();

    if (answer == NULL)
        return NULL;
    buf_init(&answer->text, SIZE_MAX);
    answer->kind = kind;
    answer->is_stream = strstr(query, "sendInitialEvents=true") != NULL;
    bool is_list = answer->is_stream || strstr(query, "watch=1") == NULL;
    choose_objects(answer, query, is_list);
    answer->ends_ns = now_ns + query_number(query, "timeoutSeconds=", 3600) * 1000 * NS_PER_MS;
    answer->relist_ns = now_ns + RELIST_MS * NS_PER_MS;
    if (!is_list)
        begin_watch(answer);
    return answer;
}

void feed_answer_free(void *context)
{
    struct feed_answer *answer = context;

    buf_dispose(&answer->text);
    free(answer);
}

/* ---- lists ---- */

static void put_page_head(const struct feed_answer *answer, struct buf *out)
{
    buf_printf(out,
               "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":"
               "\"%llu\"",
               kind_text(answer->kind), kind_api_version(answer->kind),
               (unsigned long long)answer->moment.version);
    if (answer->end < answer->count)
        buf_printf(out, ",\"continue\":\"%llu\",\"remainingItemCount\":%u",
                   (unsigned long long)(answer->moment.bound << 32 | answer->end),
                   answer->count - answer->end);
    buf_put(out, SLICE("},\"items\":["));
}

static void count_list(const struct feed_answer *answer)
{
    if (answer->kind == KIND_POD && answer->end == answer->count)
        atomic_fetch_add(&feed_world.control->lists, 1);
}

static void put_page(struct feed_answer *answer, struct buf *out)
{
    if (!answer->has_begun)
        put_page_head(answer, out);
    if (answer->at < answer->end) {
        buf_put(out, answer->has_begun ? SLICE(",") : SLICE(""));
        feed_objects_put(answer->kind, answer->moment, answer->at++, 0, out);
    } else {
        buf_put(out, SLICE("]}\n"));
        count_list(answer);
        answer->has_ended = true;
    }
    answer->has_begun = true;
}

static void put_bookmark(const struct feed_answer *answer, uint64_t version, bool ends_list,
                         struct buf *out)
{
    buf_printf(out,
               "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\","
               "\"metadata\":{\"resourceVersion\":\"%llu\"%s}}}\n",
               kind_text(answer->kind), kind_api_version(answer->kind), (unsigned long long)version,
               ends_list ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
}

static void put_event(const struct feed_answer *answer, const char *type, unsigned i,
                      uint64_t version, struct buf *out)
{
    buf_printf(out, "{\"type\":\"%s\",\"object\":", type);
    feed_objects_put(answer->kind, answer->moment, i, version, out);
    buf_put(out, SLICE("}\n"));
}

static void put_streamed(struct feed_answer *answer, struct buf *out)
{
    if (answer->at < answer->end) {
        put_event(answer, "ADDED", answer->at++, 0, out);
        return;
    }
    put_bookmark(answer, answer->moment.version, true, out);
    count_list(answer);
    begin_watch(answer);
}

/* ---- watches ---- */

/* Of ten pods' events, eight change one, and two remove one and add it again. */
static void put_next_event(struct feed_answer *answer, struct buf *out)
{
    uint64_t n = answer->event++, version = feed_version(answer->moment.bound);
    unsigned count =
        answer->kind == KIND_POD ? feed_world.model->pods : feed_world.texts[answer->kind].count;
    const char *type = n % 10 == 8 ? "DELETED" : n % 10 == 9 ? "ADDED" : "MODIFIED";
    uint64_t which = n % 10 == 9 ? n - 1 : n;

    put_event(answer, answer->kind == KIND_POD ? type : "MODIFIED",
              (unsigned)(which * UINT64_C(2654435761) % count), version, out);
    atomic_fetch_add(&feed_world.control->events, 1);
}

static double rate_of(enum kind kind)
{
    double rate = atomic_load(&feed_world.control->event_rate);
    return kind == KIND_POD ? rate * 0.9 : kind == KIND_CLAIM ? rate * 0.1 : 0;
}

static void put_waiting_event(const struct feed_answer *answer, const char *type, uint64_t n,
                              struct buf *out)
{
    buf_printf(out, "{\"type\":\"%s\",\"object\":", type);
    feed_objects_put_waiting(n, n < answer->moment.bound, feed_version(answer->moment.bound), out);
    buf_put(out, SLICE("}\n"));
}

/* The next Binding, and the pods that it replaces. */
static void put_binding(struct feed_answer *answer, struct buf *out)
{
    const unsigned half = FEED_WAITING / 2;
    uint64_t n = answer->moment.bound++;

    put_waiting_event(answer, "MODIFIED", n, out);
    if (n < half)
        return;
    put_waiting_event(answer, "DELETED", n - half, out);
    put_waiting_event(answer, "ADDED", n + half, out);
}

/* What has become due. */
static void put_due(struct feed_answer *answer, uint64_t now_ns, struct buf *out)
{
    answer->owed += rate_of(answer->kind) * (double)(now_ns - answer->paced_ns) / 1e9;
    answer->paced_ns = now_ns;
    for (; answer->owed >= 1; answer->owed--)
        put_next_event(answer, out);
    if (answer->kind == KIND_POD)
        while (answer->moment.bound < atomic_load(&feed_world.bound))
            put_binding(answer, out);
    if (now_ns >= answer->bookmark_ns) {
        put_bookmark(answer, feed_version(answer->moment.bound), false, out);
        answer->bookmark_ns = now_ns + BOOKMARK_MS * NS_PER_MS;
    }
    if (answer->kind == KIND_POD && now_ns >= answer->relist_ns &&
        atomic_load(&feed_world.control->relists)) {
        buf_put(out, SLICE("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":"
                           "\"v1\",\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410}}"
                           "\n"));
        answer->has_ended = true;
    }
    answer->has_ended = answer->has_ended || now_ns >= answer->ends_ns;
}

/* ---- the callback ---- */

static void put_next(struct feed_answer *answer, size_t size)
{
    struct buf *out = &answer->text;

    buf_reset(out, SIZE_MAX);
    answer->taken = 0;
    while (out->len < size && !answer->has_ended && !answer->is_watch) {
        if (answer->is_stream)
            put_streamed(answer, out);
        else
            put_page(answer, out);
    }
    while (out->len == 0 && !answer->has_ended) {
        put_due(answer, monotonic_ns(), out);
        if (out->len == 0 && !answer->has_ended)
            (void)usleep(IDLE_US);
    }
}

ssize_t feed_answer_read(void *context, uint64_t position, char *out, size_t size)
{
    struct feed_answer *answer = context;

    (void)position;
    if (answer->taken == answer->text.len && answer->has_ended)
        return -1; /* MHD_CONTENT_READER_END_OF_STREAM */
    if (answer->taken == answer->text.len)
        put_next(answer, size);
    size_t left = answer->text.len - answer->taken, count = left < size ? left : size;
    if (count == 0)
        return -1;
    memcpy(out, answer->text.bytes + answer->taken, count);
    answer->taken += count;
    return (ssize_t)count;
}

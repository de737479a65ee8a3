/*
 * What an API server answers, as it arrives: the first byte chooses between a streamed list, pages
 * and a watch, the second the size of the pieces; the rest is answers, one behind the other, split
 * by a zero byte. However it is cut up, the same has to come of it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cache/cluster.h"
#include "cache/reflector.h"
#include "config/base/log.h"
#include "fuzz.h"

/* What one reflector made of the input. */
struct outcome {
    struct cluster cluster;
    struct resource_status status;
    uint64_t calls; /* a hash of what the sink was told */
};

static void mix(struct outcome *outcome, uint64_t value)
{
    outcome->calls = (outcome->calls ^ value) * UINT64_C(0x9E3779B97F4A7C15);
}

static void begin(void *context, enum kind kind, bool overrides)
{
    struct outcome *outcome = context;
    mix(outcome, overrides ? 2 : 1);
    cluster_list_begin(&outcome->cluster, kind, overrides);
}

static void end(void *context, enum kind kind, uint64_t version)
{
    struct outcome *outcome = context;
    mix(outcome, version + 3);
    cluster_list_end(&outcome->cluster, kind, version, NULL);
}

static int take(void *context, enum change change, const struct object *object, struct slice text,
                struct error *err)
{
    struct outcome *outcome = context;
    struct buf projected;

    mix(outcome, table_hash(object->meta.name, (uint32_t)change));
    buf_init(&projected, 64 << 20);
    if (object_project(text, object->kind, &projected, err) < 0)
        abort(); /* it was decoded: then it can be captured, too */
    buf_dispose(&projected);
    if (change == CHANGE_DELETE)
        cluster_delete(&outcome->cluster, object);
    else
        return cluster_apply(&outcome->cluster, object, err);
    return 0;
}

static void run(struct outcome *outcome, unsigned how, size_t piece, struct slice rest)
{
    struct reflector_sink sink = {outcome, begin, end, take};
    struct reflector reflector;
    struct buf path;

    buf_init(&path, 1 << 20);
    reflector_init(&reflector, (enum kind)(how / 4 % KIND_COUNT), &sink, &outcome->status, 1);
    reflector.phase = how % 4 == 0 ? PHASE_STREAM : how % 4 == 1 ? PHASE_PAGES : PHASE_WATCH;
    while (rest.len != 0) {
        const char *zero = memchr(rest.ptr, '\0', rest.len);
        size_t len = zero == NULL ? rest.len : (size_t)(zero - rest.ptr);
        bool goes_on = true;
        buf_reset(&path, 1 << 20);
        reflector_request(&reflector, 1, &path);
        for (size_t at = 0; at < len && goes_on; at += piece)
            goes_on = reflector_take(
                &reflector, 200, (struct slice){rest.ptr + at, len - at < piece ? len - at : piece},
                2);
        reflector_end(&reflector, &(struct reflector_ending){.status = 200, .is_cut = !goes_on}, 3);
        mix(outcome, (uint64_t)reflector.phase << 8 | (uint64_t)reflector.is_established);
        len += zero != NULL;
        rest = (struct slice){rest.ptr + len, rest.len - len};
    }
    reflector_dispose(&reflector);
    buf_dispose(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome *whole = calloc(1, sizeof *whole), *cut = calloc(1, sizeof *cut);

    if (size < 2 || whole == NULL || cut == NULL) {
        free(whole);
        free(cut);
        return 0;
    }
    log_configure(LOG_ERROR, LOG_TEXT);
    struct slice rest = {(const char *)data + 2, size - 2};
    run(whole, data[0], size, rest);
    run(cut, data[0], 1 + data[1] % 64U, rest);
    if (whole->calls != cut->calls || whole->cluster.counts[data[0] / 4 % KIND_COUNT] !=
                                          cut->cluster.counts[data[0] / 4 % KIND_COUNT])
        abort();
    cluster_dispose(&whole->cluster);
    cluster_dispose(&cut->cluster);
    free(whole);
    free(cut);
    return 0;
}

/*
 * What an API server answers, as it arrives: the first byte chooses between a streamed list, pages
 * and a watch, the second the size of the pieces; the rest is answers, one behind the other, split
 * by a zero byte. What has to be so:
 *
 * - However it is cut up, the result is the same.
 * - A list is whole, so that what it does not name is gone, only if jansson reads the answer as
 *   that list; an object is deleted only if jansson reads an event that deletes it.
 * - An answer is refused as malformed only if jansson cannot read what was asked for in it: no
 *   object that Kubernetes takes stops the cache.
 * - Whatever came, a good list afterwards gives what it says, and nothing else; and it is asked for
 *   soon, also where each watch from the version that was reached is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cluster/cluster.h"
#include "cache/objects/details.h"
#include "cache/watch/reflector.h"
#include "config/base/log.h"
#include "fuzz.h"
#include "good_server.h"
#include "watch_as_go.h"

enum { GOOD_ROUNDS_MAX = 12 };

/* What one reflector made of the input. */
struct outcome {
    struct cluster cluster;
    struct resource_status status;
    uint64_t calls; /* a hash of the calls of the sink */
    unsigned ends;  /* lists that were whole */
    unsigned deletions;
};

static void check(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}

/* ---- the sink ---- */

static void mix(struct outcome *outcome, uint64_t value)
{
    outcome->calls = (outcome->calls ^ value) * UINT64_C(0x9E3779B97F4A7C15);
}

static void begin(void *context, enum kind kind, bool overrides, uint64_t asked_ns)
{
    struct outcome *outcome = context;

    (void)asked_ns;
    mix(outcome, overrides ? 2 : 1);
    cluster_list_begin(&outcome->cluster, kind, overrides, 0);
}

static void end(void *context, enum kind kind, uint64_t version)
{
    struct outcome *outcome = context;
    outcome->ends++;
    mix(outcome, version + 3);
    while (cluster_list_end(&outcome->cluster, kind, version, NULL))
        continue;
}

static void keep(void *context, enum kind kind, struct slice ns, struct slice name)
{
    struct outcome *outcome = context;
    mix(outcome, table_hash(name, (uint32_t)ns.len));
    cluster_list_keep(&outcome->cluster, kind, ns, name);
}

/* It was decoded: then it can be captured, too. Of a deletion that could not be read, only the
 * names are there. */
static void check_projection(enum watch_change change, const struct object *object,
                             struct slice text, struct error *err)
{
    struct buf projected;

    buf_init(&projected, 64 << 20);
    check(object_project(text, object->kind, NULL, &projected, err) == 0 || change == CHANGE_DELETE,
          "what is decoded can be captured");
    buf_dispose(&projected);
}

static int take(void *context, enum watch_change change, const struct object *object,
                struct slice text, struct error *err)
{
    struct outcome *outcome = context;

    mix(outcome, table_hash(object->meta.name, (uint32_t)change));
    check_projection(change, object, text, err);
    if (change == CHANGE_PUT)
        return cluster_apply(&outcome->cluster, object, err);
    outcome->deletions++;
    cluster_delete(&outcome->cluster, object);
    return 0;
}

static void unserved(void *context, enum kind kind)
{
    (void)context;
    (void)kind;
}

/* ---- runs ---- */

/* What came of the answer came from what it says. */
static void check_reading(struct watch_reading reading, const struct outcome *before,
                          const struct outcome *after, bool is_malformed)
{
    check(after->ends - before->ends <= reading.ends, "a list that ends is a list");
    check(after->deletions - before->deletions <= reading.deletions, "what is deleted was deleted");
    check(!is_malformed || !reading.is_good, "what is refused is nonsense");
}

/* One answer, in pieces. */
static void answer(struct reflector *reflector, struct outcome *outcome, struct slice text,
                   size_t piece)
{
    struct outcome before = *outcome;
    enum reflector_phase phase = reflector->phase;
    bool goes_on = true;
    struct buf path;

    buf_init(&path, 1 << 20);
    reflector_request(reflector, 1, &path);
    for (size_t at = 0; at < text.len && goes_on; at += piece)
        goes_on = reflector_take(
            reflector, 200,
            (struct slice){text.ptr + at, text.len - at < piece ? text.len - at : piece}, 2);
    bool is_malformed = reflector->failure == RESTART_MALFORMED;
    reflector_end(reflector, &(struct reflector_ending){.status = 200, .is_cut = !goes_on}, 3);
    if (phase == PHASE_PAGES)
        check_reading(watch_read_page(text, reflector->kind), &before, outcome, is_malformed);
    else if (phase != PHASE_PROBE)
        check_reading(watch_read_lines(text, reflector->kind), &before, outcome, is_malformed);
    buf_dispose(&path);
}

/* ---- a good server, at last ---- */

static bool has(const struct cluster *cluster, enum kind kind, struct slice name)
{
    struct slice ns = kind_is_namespaced(kind) ? SLICE("n") : SLICE("");

    if (kind == KIND_POD)
        return cluster_find_pod(cluster, ns, name) != NULL;
    if (kind == KIND_CLAIM)
        return cluster_find_claim(cluster, ns, name) != NULL;
    if (kind == KIND_NODE)
        return cluster_find_node(cluster, name) != NULL;
    if (kind == KIND_CSI_NODE)
        return cluster_find_csi_node(cluster, name) != NULL;
    struct table_walk walk = {.at = 0};
    char buffer[PROVISIONED_NAME_BYTES];
    for (const struct resource *resource;
         (resource = cluster_next_resource(cluster, kind, &walk)) != NULL;)
        if (slice_equal(resource_name(resource, buffer), name))
            return true;
    return false;
}

static void heal(struct reflector *reflector, struct outcome *outcome)
{
    unsigned ends = outcome->ends, rounds = 0;

    /* a list may be under way in the last answer: one from its start counts */
    while (outcome->ends == ends && rounds++ < GOOD_ROUNDS_MAX)
        good_server_answer(reflector);
    check(outcome->ends != ends, "a good server is listed soon");
    check(outcome->cluster.counts[reflector->kind] == GOOD_NAMES, "nothing else is there");
    for (size_t i = 0; i < GOOD_NAMES; i++)
        check(has(&outcome->cluster, reflector->kind, slice_of(good_names[i])), "it is there");
    check(!atomic_load(&outcome->status.is_stalled), "it advances");
}

static void run(struct outcome *outcome, unsigned how, size_t piece, struct slice rest)
{
    struct reflector_sink sink = {outcome, begin, end, take, keep, unserved};
    struct reflector reflector;

    reflector_init(&reflector, (enum kind)(how / 4 % KIND_WATCHED_COUNT), &sink, &outcome->status,
                   1);
    reflector.phase = how % 4 == 0 ? PHASE_STREAM : how % 4 == 1 ? PHASE_PAGES : PHASE_WATCH;
    while (rest.len != 0) {
        const char *zero = memchr(rest.ptr, '\0', rest.len);
        size_t len = zero == NULL ? rest.len : (size_t)(zero - rest.ptr);
        answer(&reflector, outcome, (struct slice){rest.ptr, len}, piece);
        mix(outcome, (uint64_t)reflector.phase << 8 | (uint64_t)reflector.is_established);
        len += zero != NULL;
        rest = (struct slice){rest.ptr + len, rest.len - len};
    }
    heal(&reflector, outcome);
    reflector_dispose(&reflector);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome *whole = calloc(1, sizeof *whole), *cut = calloc(1, sizeof *cut);

    if (size < 2 || whole == NULL || cut == NULL) {
        free(whole);
        free(cut);
        return 0;
    }
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_TEXT);
    struct slice rest = {(const char *)data + 2, size - 2};
    cluster_init(&whole->cluster);
    cluster_init(&cut->cluster);
    run(whole, data[0], size, rest);
    run(cut, data[0], 1 + data[1] % 64U, rest);
    check(whole->calls == cut->calls, "the result is the same, however it is cut up");
    cluster_dispose(&whole->cluster);
    cluster_dispose(&cut->cluster);
    free(whole);
    free(cut);
    return 0;
}

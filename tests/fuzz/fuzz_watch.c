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

#include "as_go.h"
#include "cache/cluster/cluster.h"
#include "cache/watch/reflector.h"
#include "config/base/log.h"
#include "fuzz.h"

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

static void begin(void *context, enum kind kind, bool overrides)
{
    struct outcome *outcome = context;
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
    check(object_project(text, object->kind, &projected, err) == 0 || change == CHANGE_DELETE,
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

/* ---- what jansson reads ---- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

/* What stands there is a string, or nothing, and shorter than that. */
static bool is_short(const json_t *object, const char *key, size_t size)
{
    const json_t *value = json_object_get(object, key);
    return value == NULL || json_is_null(value) ||
           (json_is_string(value) && json_string_length(value) < size);
}

static bool is_of_kind(const json_t *object, enum kind kind, const char *suffix)
{
    struct slice name = slice_of(text_of(object, "kind")), end = slice_of(suffix);

    return slice_ends_with(name, end) &&
           kind_of(slice_of(text_of(object, "apiVersion")),
                   (struct slice){name.ptr, name.len - end.len}) == kind;
}

/* Its kind and apiVersion are no longer than what is read of them. The reader counts bytes as they
 * come; decoded, as here, a damaged one is U+FFFD, which has three. */
static bool is_named_shortly(const json_t *object)
{
    return is_short(object, "kind", 64) && is_short(object, "apiVersion", 64);
}

static bool has_version(const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    return json_is_object(meta) && is_short(meta, "resourceVersion", 32) &&
           version_of(slice_of(text_of(meta, "resourceVersion"))) != 0;
}

/* Of the list that was asked for: the page. */
static bool is_list(const json_t *page, enum kind kind)
{
    const json_t *items = json_object_get(page, "items");

    return is_of_kind(page, kind, "List") && has_version(page) &&
           (json_is_array(items) || json_is_null(items));
}

/* Whether the page says what it is before its items; jansson keeps the order. */
static bool comes_first(json_t *page)
{
    const char *key;
    json_t *value;
    unsigned seen = 0;

    json_object_foreach (page, key, value) {
        if (strcmp(key, "items") == 0)
            break;
        seen += strcmp(key, "kind") == 0 || strcmp(key, "apiVersion") == 0 ||
                strcmp(key, "metadata") == 0;
    }
    return seen == 3;
}

/* ... and there is nothing in it that is to be refused. */
static bool is_good_list(json_t *page, enum kind kind)
{
    const json_t *item, *list = json_object_get(page, "items");
    size_t i;

    if (!is_list(page, kind) || !is_named_shortly(page) || !comes_first(page) ||
        !is_short(json_object_get(page, "metadata"), "continue", 4096))
        return false;
    json_array_foreach (list, i, item)
        if (!json_is_object(item) || json_object_get(item, "kind") != NULL ||
            json_object_get(item, "apiVersion") != NULL)
            return false;
    return true;
}

/* What one line of a watch says. */
struct line {
    bool is_event;  /* nothing about it is to be refused */
    bool ends_list; /* the bookmark behind the initial events */
    bool deletes;
};

static struct line read_line(struct slice text, enum kind kind)
{
    json_t *event = load_as_go(text, JSON_REJECT_DUPLICATES, NULL);
    json_t *loose = event == NULL ? load_as_go(text, 0, NULL) : json_incref(event);
    const char *type = text_of(loose, "type");
    const json_t *object = json_object_get(loose, "object");
    const json_t *meta = json_object_get(object, "metadata");
    bool is_right = is_of_kind(object, kind, "");
    bool is_bookmark = strcmp(type, "BOOKMARK") == 0;
    const json_t *annotations = json_object_get(meta, "annotations");
    struct line line = {
        .ends_list = loose == NULL || (is_right && is_bookmark && has_version(object) &&
                                       text_of(annotations, "k8s.io/initial-events-end")[0] != 0),
        /* damaged lines may be deletions, too */
        .deletes = loose == NULL || (is_right && strcmp(type, "DELETED") == 0),
        .is_event = event != NULL && is_right && is_named_shortly(object) &&
                    (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0 ||
                     strcmp(type, "DELETED") == 0 || (is_bookmark && has_version(object))),
    };

    json_decref(event);
    json_decref(loose);
    return line;
}

/* What came of the answer came from what it says. */
static void check_lines(struct slice answer, enum kind kind, const struct outcome *before,
                        const struct outcome *after, bool is_malformed)
{
    unsigned ends = 0, deletions = 0;
    bool is_good = true;

    while (answer.len != 0) {
        const char *feed = memchr(answer.ptr, '\n', answer.len);
        size_t len = feed == NULL ? answer.len : (size_t)(feed - answer.ptr);
        struct slice text = {answer.ptr, len};
        struct line line = read_line(text, kind);
        ends += line.ends_list;
        deletions += line.deletes;
        is_good &= line.is_event;
        len += feed != NULL;
        answer = (struct slice){answer.ptr + len, answer.len - len};
    }
    check(after->ends - before->ends <= ends, "a list that ends is a list");
    check(after->deletions - before->deletions <= deletions, "what is deleted was deleted");
    check(!is_malformed || !is_good, "events of that kind are no nonsense");
}

static void check_page(struct slice answer, enum kind kind, const struct outcome *before,
                       const struct outcome *after, bool is_malformed)
{
    json_t *page = load_as_go(answer, JSON_DISABLE_EOF_CHECK, NULL);
    json_t *strict = load_as_go(answer, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, NULL);

    check(after->deletions == before->deletions, "a page deletes nothing by itself");
    check(after->ends == before->ends || page == NULL || is_list(page, kind),
          "a list that ends is a list");
    check(!is_malformed || strict == NULL || !is_good_list(strict, kind),
          "a list of that kind is no nonsense");
    json_decref(page);
    json_decref(strict);
}

/* ---- runs ---- */

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
        check_page(text, reflector->kind, &before, outcome, is_malformed);
    else if (phase != PHASE_PROBE)
        check_lines(text, reflector->kind, &before, outcome, is_malformed);
    buf_dispose(&path);
}

/* ---- a good server, at last ---- */

#define GOOD_VERSION "9999999999999999999"

static const char *const good_names[] = {"good-0", "good-1"};

static void put_good_stream(struct buf *out, const char *type)
{
    for (size_t i = 0; i < 2; i++)
        buf_printf(out,
                   "{\"type\":\"ADDED\",\"object\":{%s,\"metadata\":{\"name\":\"%s\",\"namespace\":"
                   "\"n\",\"uid\":\"u\",\"resourceVersion\":\"" GOOD_VERSION "\"}}}\n",
                   type, good_names[i]);
    buf_printf(
        out,
        "{\"type\":\"BOOKMARK\",\"object\":{%s,\"metadata\":{\"resourceVersion\":\"" GOOD_VERSION
        "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n",
        type);
}

static void put_good_page(struct buf *out, const char *kind, const char *api_version)
{
    buf_printf(out,
               "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":"
               "\"" GOOD_VERSION "\"},\"items\":[",
               kind, api_version);
    for (size_t i = 0; i < 2; i++)
        buf_printf(out,
                   "%s{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"u\","
                   "\"resourceVersion\":\"" GOOD_VERSION "\"}}",
                   i == 0 ? "" : ",", good_names[i]);
    buf_printf(out, "]}\n");
}

/* One answer of a server that only lists: watches and next pages fail. */
static void answer_well(struct reflector *reflector)
{
    struct reflector_ending ending = {.status = 200};
    struct buf text, type, path;
    const char *kind = kind_text(reflector->kind);
    const char *api_path = kind_api_path(reflector->kind);
    const char *api_version = api_path + (strncmp(api_path, "/apis/", 6) == 0 ? 6 : 5);

    buf_init(&text, 1 << 20);
    buf_init(&type, 1 << 20);
    buf_init(&path, 1 << 20);
    reflector_request(reflector, 1, &path);
    buf_printf(&type, "\"kind\":\"%s\",\"apiVersion\":\"%s\"", kind, api_version);
    if (reflector->phase == PHASE_WATCH)
        buf_printf(&text, "{\"type\":\"ERROR\",\"object\":{\"code\":500}}\n");
    else if (reflector->phase == PHASE_STREAM)
        put_good_stream(&text, buf_text(&type));
    else if (reflector->phase == PHASE_PAGES && reflector->page[0] == '\0')
        put_good_page(&text, kind, api_version);
    else if (reflector->phase == PHASE_PAGES)
        ending.status = 500;
    (void)reflector_take(reflector, ending.status, buf_slice(&text), 2);
    reflector_end(reflector, &ending, 3);
    buf_dispose(&path);
    buf_dispose(&type);
    buf_dispose(&text);
}

static bool has(const struct cluster *cluster, enum kind kind, struct slice name)
{
    struct slice ns = kind_is_namespaced(kind) ? SLICE("n") : SLICE("");

    if (kind == KIND_POD)
        return cluster_find_pod(cluster, ns, name) != NULL;
    if (kind == KIND_CLAIM)
        return cluster_find_claim(cluster, ns, name) != NULL;
    if (kind == KIND_NODE)
        return cluster_find_node(cluster, name) != NULL;
    struct table_walk walk = {.at = 0};
    for (const struct resource *resource;
         (resource = cluster_next_resource(cluster, kind, &walk)) != NULL;)
        if (slice_equal(name_slice(resource->key.name), name))
            return true;
    return false;
}

static void heal(struct reflector *reflector, struct outcome *outcome)
{
    unsigned ends = outcome->ends, rounds = 0;

    /* a list may be under way in the last answer: one from its start counts */
    while (outcome->ends == ends && rounds++ < GOOD_ROUNDS_MAX)
        answer_well(reflector);
    check(outcome->ends != ends, "a good server is listed soon");
    check(outcome->cluster.counts[reflector->kind] == 2, "nothing else is there");
    for (size_t i = 0; i < 2; i++)
        check(has(&outcome->cluster, reflector->kind, slice_of(good_names[i])), "it is there");
    check(!atomic_load(&outcome->status.is_stalled), "it advances");
}

static void run(struct outcome *outcome, unsigned how, size_t piece, struct slice rest)
{
    struct reflector_sink sink = {outcome, begin, end, take, keep};
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
    run(whole, data[0], size, rest);
    run(cut, data[0], 1 + data[1] % 64U, rest);
    check(whole->calls == cut->calls, "the result is the same, however it is cut up");
    cluster_dispose(&whole->cluster);
    cluster_dispose(&cut->cluster);
    free(whole);
    free(cut);
    return 0;
}

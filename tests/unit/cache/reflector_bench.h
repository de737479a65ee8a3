/*
 * A reflector whose sink writes down what it is handed, one word a call: "+name@version" for an
 * object that is there, "-" for one that is gone, "=namespace/name" for one that is kept. Included
 * by the reflector's tests.
 */
#ifndef TESTS_UNIT_CACHE_REFLECTOR_BENCH_H
#define TESTS_UNIT_CACHE_REFLECTOR_BENCH_H

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/watch/reflector.h"
#include "config/base/log.h"

#define S        UINT64_C(1000000000)
#define MAX_TEXT 8192

struct bench {
    struct reflector reflector;
    struct resource_status status;
    char seen[MAX_TEXT];
    uint64_t now;
    int failing; /* what take answers */
};

PRINTF_LIKE(2, 3) static void note(struct bench *bench, const char *format, ...)
{
    size_t used = strlen(bench->seen);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(bench->seen + used, sizeof bench->seen - used, format, args);
    va_end(args);
}

static inline void begin(void *context, enum kind kind, bool overrides, uint64_t asked_ns)
{
    (void)kind;
    (void)asked_ns;
    note(context, "%sbegin ", overrides ? "!" : "");
}

static inline void end(void *context, enum kind kind, uint64_t version)
{
    (void)kind;
    note(context, "end@%llu ", (unsigned long long)version);
}

static int take(void *context, enum watch_change change, const struct object *object,
                struct slice text, struct error *err)
{
    struct bench *bench = context;
    char name[128];

    (void)text;
    if (bench->failing != 0)
        return error_set(err, bench->failing, "no");
    (void)snprintf(name, sizeof name, "%s%.*s", change == CHANGE_DELETE ? "-" : "+",
                   SLICE_ARG(object->meta.name));
    note(bench, "%s@%llu ", name, (unsigned long long)version_of(object->meta.resource_version));
    return 0;
}

static inline void keep(void *context, enum kind kind, struct slice ns, struct slice name)
{
    (void)kind;
    note(context, "=%.*s/%.*s ", SLICE_ARG(ns), SLICE_ARG(name));
}

static inline void unserved(void *context, enum kind kind)
{
    (void)kind;
    note(context, "unserved ");
}

static inline struct bench *bench_new(enum kind kind)
{
    struct bench *bench = calloc(1, sizeof *bench);
    struct reflector_sink sink = {bench, begin, end, take, keep, unserved};

    log_configure(LOG_ERROR, LOG_TEXT);
    reflector_init(&bench->reflector, kind, &sink, &bench->status, 1);
    bench->now = 1000 * S;
    return bench;
}

static inline void bench_free(struct bench *bench)
{
    reflector_dispose(&bench->reflector);
    free(bench);
}

/* The request that comes next has these words in it. */
static inline void asks(struct bench *bench, const char *words)
{
    struct buf path;
    char copy[256], *rest = NULL;

    buf_init(&path, 65536);
    if (bench->now < bench->reflector.due_ns)
        bench->now = bench->reflector.due_ns;
    reflector_request(&bench->reflector, bench->now, &path);
    buf_put(&path, (struct slice){"", 1});
    (void)snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        cr_expect(*word == '!' ? strstr(path.bytes, word + 1) == NULL
                               : strstr(path.bytes, word) != NULL,
                  "%s is not as it should be in %s", word, path.bytes);
    buf_dispose(&path);
}

/* The answer arrives in pieces of `size` bytes. Whether all of it was wanted. */
static inline bool gets_in(struct bench *bench, unsigned status, const char *text, size_t size)
{
    size_t len = strlen(text);

    for (size_t at = 0; at < len; at += size) {
        struct slice piece = {text + at, len - at < size ? len - at : size};
        if (!reflector_take(&bench->reflector, status, piece, bench->now))
            return false;
    }
    return true;
}

static inline bool gets(struct bench *bench, unsigned status, const char *text)
{
    return gets_in(bench, status, text, 1 << 20);
}

static inline void ends_with(struct bench *bench, struct reflector_ending ending)
{
    reflector_end(&bench->reflector, &ending, bench->now);
}

static inline void ends(struct bench *bench, unsigned status)
{
    ends_with(bench, (struct reflector_ending){.status = status});
}

static inline void is_cut(struct bench *bench)
{
    ends_with(bench, (struct reflector_ending){.status = 200, .is_cut = true, .error = "cut"});
}

static inline void saw(struct bench *bench, const char *seen)
{
    cr_expect_str_eq(bench->seen, seen);
    bench->seen[0] = '\0';
}

static inline void restarted(const struct bench *bench, enum restart reason)
{
    for (int i = 0; i < RESTART_COUNT; i++)
        cr_expect(atomic_load(&bench->status.restarts[i]) == (i == (int)reason), "%s",
                  restart_text((enum restart)i));
}

static inline double wait_seconds(const struct bench *bench)
{
    return bench->reflector.due_ns <= bench->now
               ? 0
               : (double)(bench->reflector.due_ns - bench->now) / 1e9;
}

#define POD(type_, name_, version_) \
    "{\"type\":\"" type_ "\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name_ \
    "\",\"namespace\":\"d\",\"resourceVersion\":\"" version_ "\"}}}\n"
#define BOOKMARK(version_) \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":" \
    "\"" version_ "\"}}}\n"
#define INITIAL_END(version_) \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":" \
    "\"" version_ "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"
#define ERROR_EVENT(code_, reason_, message_) \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":" \
    "\"" message_ "\",\"reason\":\"" reason_ "\",\"code\":" code_ "}}\n"
#define PAGE(version_, continue_, items_) \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" version_ \
    "\",\"continue\":\"" continue_ "\"},\"items\":[" items_ "]}\n"
#define ITEM(name_, version_) \
    "{\"metadata\":{\"name\":\"" name_ "\",\"namespace\":\"d\",\"resourceVersion\":\"" version_ \
    "\"}}"

static inline struct bench *watching(void)
{
    struct bench *bench = bench_new(KIND_POD);

    asks(bench, "sendInitialEvents=true");
    cr_assert(gets(bench, 200, POD("ADDED", "a", "5") INITIAL_END("10")));
    saw(bench, "begin +a@5 end@10 ");
    return bench;
}

static inline struct bench *paging(void)
{
    struct bench *bench = bench_new(KIND_POD);

    bench->reflector.can_stream = false;
    bench->reflector.phase = PHASE_PAGES;
    return bench;
}

/* The watch is refused with this answer, and asked for again behind a probe. */
static inline void is_refused(struct bench *bench, const char *answer)
{
    if (gets(bench, 200, answer))
        ends(bench, 200);
    else
        is_cut(bench);
}

static inline void probes(struct bench *bench)
{
    asks(bench, "limit=1");
    cr_expect(gets(bench, 200, PAGE("20", "", "")));
    ends(bench, 200);
}

static inline bool is_stalled(const struct bench *bench)
{
    return atomic_load(&bench->status.is_stalled);
}

#endif

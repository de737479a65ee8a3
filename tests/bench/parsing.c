/*
 * How fast JSON is read, in layers: skipping all, reading the fields of the objects, and applying
 * them to a cluster; of objects of real size, compact as the API server sends them, and indented as
 * kubectl prints them. Beside jansson, which builds a tree, and simdjson, if it was there when this
 * was built.
 */
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "cache/json/json_text.h"
#include "extender/commands/inquiry/load.h"
#include "parsing_simdjson.h"
#include "programs.h"

enum { REPEATS = 5, MODEL_PODS = 2000, RECORDED_TIMES = 2000, TEXT_BYTES_MAX = 256 << 20 };

/* ---- texts ---- */

struct text {
    const char *name;
    struct buf json;
    char path[512]; /* a file that contains it */
};

static void put_line(struct buf *out, unsigned depth, unsigned indent)
{
    if (indent == 0)
        return;
    buf_put(out, SLICE("\n"));
    for (unsigned i = 0; i < depth * indent; i++)
        buf_put(out, SLICE(" "));
}

/* Appends the text, which is JSON, as kubectl prints it: each member and each item in a line of its
 * own; or with indent 0, without white space. */
static void reformat(struct slice text, unsigned indent, struct buf *out)
{
    const char *end = text.ptr + text.len;
    unsigned depth = 0, oddities;

    for (const char *p = text.ptr; (p = json_text_space(p, end)) != end;) {
        const char *begin = p;
        p = *p == '"' ? json_text_string(p, end, &oddities).at : p + 1;
        if (*begin == '}' || *begin == ']')
            put_line(out, --depth, indent);
        buf_put(out, (struct slice){begin, (size_t)(p - begin)});
        if (*begin == ':' && indent != 0)
            buf_put(out, SLICE(" "));
        if (*begin != '{' && *begin != '[' && *begin != ',')
            continue;
        const char *next = json_text_space(p, end);
        bool is_empty = *begin != ',' && next != end && (*next == '}' || *next == ']');
        if (is_empty) {
            buf_put(out, (struct slice){next, 1});
            p = next + 1;
            continue;
        }
        depth += *begin != ',';
        put_line(out, depth, indent);
    }
}

/* A List of pods, claims and volumes, as kubectl prints one. */
static void put_model(struct buf *out)
{
    static void (*const puts[])(const struct model *, unsigned, struct buf *) = {
        model_put_real_claim, model_put_real_volume, model_put_real_pod};
    struct model model = {.nodes = 100,
                          .pods = MODEL_PODS,
                          .claims = MODEL_PODS,
                          .deployments = MODEL_PODS / 2,
                          .exclusive_share = 0.5,
                          .seed = 1};

    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"items\":["));
    for (size_t kind = 0; kind < sizeof puts / sizeof *puts; kind++)
        for (unsigned i = 0; i < MODEL_PODS; i++) {
            buf_put(out, kind == 0 && i == 0 ? SLICE("") : SLICE(","));
            puts[kind](&model, i, out);
        }
    buf_put(out, SLICE("],\"kind\":\"List\"}"));
}

/* A page of pods that a real API server sent, its items many times. */
static void put_recorded(struct buf *out)
{
    struct document document = {.depth = 0};
    struct arena arena;
    struct buf file, items;
    struct pull json;

    buf_init(&file, 1 << 20);
    buf_init(&items, 1 << 20);
    arena_init(&arena, 1 << 20);
    FILE *in = fopen(BENCH_FIXTURES "/apiserver/list-pods-page1.json", "re");
    if (in == NULL || !buf_reserve(&file, 1 << 19))
        bench_die("no recorded page");
    struct slice window = {file.bytes, fread(file.bytes, 1, 1 << 19, in)};
    (void)fclose(in);
    while (document_step(&document, &json, window, &arena) && document.depth != 0) {
        if (document.has_value) {
            buf_put(&items, SLICE(","));
            buf_put(&items, document.extent);
        }
        window.ptr = json.at;
        window.len -= (size_t)(json.at - json.start);
    }
    if (items.len == 0)
        bench_die("the recorded page has no pods");
    buf_put(out, SLICE("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":["));
    for (int i = 0; i < RECORDED_TIMES; i++)
        buf_put(out, (struct slice){items.bytes + (i == 0), items.len - (i == 0)});
    buf_put(out, SLICE("]}"));
    arena_dispose(&arena);
    buf_dispose(&items);
    buf_dispose(&file);
}

static void make_text(struct text *text, void (*put)(struct buf *), const char *name,
                      unsigned indent)
{
    struct buf raw;

    buf_init(&raw, TEXT_BYTES_MAX);
    buf_init(&text->json, TEXT_BYTES_MAX);
    put(&raw);
    reformat(buf_slice(&raw), indent, &text->json);
    buf_dispose(&raw);
    text->name = name;
    (void)snprintf(text->path, sizeof text->path, "%s/parsing.json", bench_work);
    if (text->json.failed || !buf_reserve(&text->json, PARSING_PADDING))
        bench_die("no memory for a text");
    FILE *file = fopen(text->path, "we");
    if (file == NULL || fwrite(text->json.bytes, 1, text->json.len, file) != text->json.len ||
        fclose(file) != 0)
        bench_die("cannot write a snapshot");
}

/* ---- readers ---- */

static void skip_all(const struct text *text)
{
    const char *end = text->json.bytes + text->json.len;
    struct json_scan scan = json_text_value(text->json.bytes, end, JSON_LEVELS_MAX);

    if (scan.problem != NULL || scan.at != end)
        bench_die("a text is not JSON");
}

static int ignore(void *context, const struct object *object, struct error *err)
{
    (void)context;
    (void)object;
    (void)err;
    return 0;
}

static void read_objects(const struct text *text)
{
    struct source source = {.path = text->path, .sink = ignore};
    struct source_report report;
    struct error err = {0};

    if (source_read(&source, &report, &err) < 0 || report.skipped != 0)
        bench_die(err.message);
}

static void apply_objects(const struct text *text)
{
    static struct cluster cluster;
    struct load_report report;
    struct error err = {0};

    cluster_init(&cluster);
    if (load_snapshot(&cluster, text->path, NULL, &report, &err) < 0)
        bench_die(err.message);
    cluster_dispose(&cluster);
}

static void build_tree(const struct text *text)
{
    json_t *tree = json_loadb(text->json.bytes, text->json.len, 0, NULL);

    if (tree == NULL)
        bench_die("jansson could not read a text");
    json_decref(tree);
}

static void read_on_demand(const struct text *text)
{
#ifndef HAS_SIMDJSON
    (void)text;
#else
    if (parsing_simdjson(text->json.bytes, text->json.len, text->json.capacity) == 0)
        bench_die("simdjson could not read a text");
#endif
}

enum { SKIP, FIELDS, APPLIED, JANSSON, SIMDJSON, READERS };

static const struct reader {
    const char *name;
    void (*read)(const struct text *text);
} readers[READERS] = {
    [SKIP] = {"skip all, checked", skip_all},
    [FIELDS] = {"the fields of each object, from a file", read_objects},
    [APPLIED] = {"the same, applied to a cluster", apply_objects},
    [JANSSON] = {"jansson: a tree", build_tree},
    [SIMDJSON] = {"simdjson on demand: four fields", read_on_demand},
};

/* ---- measuring ---- */

static double processor_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool is_missing(int reader)
{
    return reader == SIMDJSON && !PARSING_HAS_SIMDJSON;
}

/* MB/s. Each reader REPEATS times, alternately. */
static void measure(const struct text *text, double rates[READERS][REPEATS])
{
    for (int repeat = -1; repeat < REPEATS; repeat++)
        for (int i = 0; i < READERS; i++) {
            if (is_missing(i))
                continue;
            (void)malloc_trim(0); /* the tree's memory: else the next reader's allocations pay */
            double started = processor_seconds();
            readers[i].read(text);
            if (repeat >= 0) /* the first one warms up */
                rates[i][repeat] = (double)text->json.len / 1e6 / (processor_seconds() - started);
        }
}

/* goal: for the fields. */
static void put_rows(struct text *text, unsigned goal)
{
    double rates[READERS][REPEATS];

    measure(text, rates);
    (void)printf("| %s, %.0f MB | | | |\n", text->name, (double)text->json.len / 1e6);
    double tree = bench_percentile(rates[JANSSON], REPEATS, 0.5);
    for (int i = 0; i < READERS; i++) {
        if (is_missing(i))
            continue;
        struct spread rate = bench_spread(rates[i], REPEATS);
        (void)printf("| — %s | **%.0f** (%.0f to %.0f) | ", readers[i].name, rate.median, rate.low,
                     rate.high);
        if (i == FIELDS)
            (void)printf("%u", goal);
        (void)printf(" | %.1f |\n", rate.median / tree);
    }
    buf_dispose(&text->json);
    (void)unlink(text->path);
    (void)fflush(stdout);
}

void bench_parsing(void)
{
    static const struct {
        const char *name;
        void (*put)(struct buf *out);
        unsigned indent, goal;
    } texts[] = {
        {"pods, claims and volumes, compact", put_model, 0, 800},
        {"the same, indented as by kubectl", put_model, 4, 500},
        {"pods that an API server sent, compact", put_recorded, 0, 800},
        {"the same, indented as by kubectl", put_recorded, 4, 500},
    };

    (void)printf("\n## Reading JSON\n\nMB/s of CPU time: medians of %d alternate runs (least to "
                 "most). Objects of real size.\n\n"
                 "| | MB/s | goal | to jansson |\n|---|---|---|---|\n",
                 REPEATS);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct text text;
        make_text(&text, texts[i].put, texts[i].name, texts[i].indent);
        put_rows(&text, texts[i].goal);
    }
}

/*
 * holds: how long the cluster's lock is held, by operation, at 500,000 pods: everyone else waits
 * for as long. The linker puts our own lock and unlock in the place of the C library's; what stands
 * between them is the product's code, also of the thread that follows a cluster, but for the
 * network. Three runs, which are the same step by step, each in a process of its own: a hold takes
 * as long as it took in the quickest. Prints a Markdown table. Never asserts on time.
 *
 *     holds [--pods N]
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/watch/apply.h"
#include "config/base/log.h"
#include "extender/cli/services.h"
#include "extender/serving/live/expiry.h"
#include "extender/serving/live/handlers.h"
#include "extender/serving/verbs/verbs.h"
#include "extender/serving/zpages/zpages.h"
#include "lock_times.h"
#include "model.h"
#include "no_network.h"

enum {
    EVENTS = 20000,
    CALLS = 20000,
    PODS_A_NODE = 8,
    FEW = 100,         /* a hundredth is left */
    LARGE_EVENTS = 20, /* of the largest pod that is kept */
    LIST_VERSION = 900000000,
};

static unsigned pods = 500000;

/* ---- time that passes at once ---- */

static uint64_t skipped_ns;

uint64_t __real_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return __real_monotonic_ns() + skipped_ns;
}

/* ---- events for it ---- */

static struct state state;
static struct model model;

static void put(enum kind kind, enum watch_change change, struct slice text)
{
    const struct reflector_sink sink = apply_sink(informer_feed);
    struct error err = {0};
    struct arena arena;
    struct object object;
    struct pull json;

    arena_init(&arena, 32 << 20);
    pull_init(&json, text);
    if (!object_read(&json, kind, &arena, &object) ||
        sink.take(sink.context, change, &object, text, &err) < 0)
        holds_die("an object was refused");
    arena_dispose(&arena);
}

typedef void put_function(const struct model *model, unsigned i, struct buf *out);

static put_function *const puts_of[KIND_COUNT] = {[KIND_POD] = model_put_pod,
                                                  [KIND_CLAIM] = model_put_claim,
                                                  [KIND_NODE] = model_put_node,
                                                  [KIND_VOLUME] = model_put_volume};

static void put_numbered(enum kind kind, enum watch_change change, unsigned i)
{
    static struct buf text;

    if (text.max_bytes == 0)
        buf_init(&text, 1 << 20);
    buf_reset(&text, SIZE_MAX);
    puts_of[kind](&model, i, &text);
    put(kind, change, buf_slice(&text));
}

/* A list of so many objects, from the first one on. */
static void list(enum kind kind, unsigned first, unsigned count)
{
    const struct reflector_sink sink = apply_sink(informer_feed);

    sink.begin(sink.context, kind, false, 0);
    for (unsigned i = first; i < first + count; i++)
        put_numbered(kind, CHANGE_PUT, i);
    sink.end(sink.context, kind, LIST_VERSION);
}

static void list_all(unsigned first, unsigned count)
{
    list(KIND_NODE, 0, count / PODS_A_NODE);
    list(KIND_VOLUME, 0, count);
    list(KIND_CLAIM, 0, count);
    list(KIND_POD, first, count);
}

static unsigned any(unsigned i, unsigned count)
{
    return (unsigned)(i * UINT64_C(2654435761) % count);
}

/* A pod that names as many claims as may be kept. */
static void put_large_pod(const char *node, enum watch_change change)
{
    struct buf text;

    buf_init(&text, 32 << 20);
    buf_put(&text, SLICE("{\"metadata\":{\"name\":\"large\",\"namespace\":\"large\",\"uid\":"
                         "\"5f3b9c1e-0000-4000-8000-000000000001\"},\"spec\":{"));
    if (node != NULL)
        buf_printf(&text, "\"nodeName\":\"%s\",", node);
    buf_put(&text, SLICE("\"runtimeClassName\":\"microvm\",\"volumes\":["));
    for (int i = 0; i < POD_CLAIMS_MAX; i++)
        buf_printf(&text,
                   "%s{\"name\":\"volume-%d\",\"persistentVolumeClaim\":{\"claimName\":"
                   "\"a-claim-of-the-large-pod-%d\"}}",
                   i == 0 ? "" : ",", i, i);
    buf_put(&text, SLICE("]}}"));
    put(KIND_POD, change, buf_slice(&text));
    buf_dispose(&text);
}

/* ---- what is asked of it ---- */

static void ask(enum verb verb, struct scratch *scratch)
{
    if (verb_answer(&state, verb, scratch) != 200)
        holds_die("a call failed");
}

/* For pods whose claims are free: each of them is reserved. */
static void filter(unsigned count)
{
    struct scratch scratch;

    scratch_init(&scratch, 64 << 20, NULL);
    for (unsigned i = 0; i < model.claims && count != 0; i++) {
        if (!model_claim_is_exclusive(&model, i) || model_pod_is_assigned(&model, i))
            continue;
        scratch_reset(&scratch);
        model_put_filter(&model, i, 10, &scratch.body);
        ask(VERB_FILTER, &scratch);
        count--;
    }
    scratch_dispose(&scratch);
}

static void bind(const struct pod *pod, struct scratch *scratch)
{
    char uid[UID_TEXT_BYTES];

    scratch_reset(scratch);
    buf_put(&scratch->body, SLICE("{\"PodName\":"));
    buf_json(&scratch->body, pod_name(pod));
    buf_put(&scratch->body, SLICE(",\"PodNamespace\":"));
    buf_json(&scratch->body, name_text(pod->ns));
    buf_put(&scratch->body, SLICE(",\"PodUID\":"));
    buf_json(&scratch->body, uid_text(&pod->uid, uid));
    buf_put(&scratch->body, SLICE(",\"Node\":\"ip-10-20-node-1\"}"));
    ask(VERB_BIND, scratch);
}

/* Some pods that wait. */
static void bind_some(unsigned count)
{
    struct table_walk walk = {.at = 0};
    struct scratch scratch;

    scratch_init(&scratch, 1 << 20, NULL);
    for (const struct pod *pod;
         count != 0 && (pod = cluster_next_pod(&state.cluster, &walk)) != NULL;) {
        if (pod_is_assigned(pod))
            continue;
        bind(pod, &scratch); /* changes the pod, and removes none */
        count--;
    }
    scratch_dispose(&scratch);
}

/* As a client reads it that takes all at once. */
static void read_page(const char *path)
{
    struct zpages_request request = {.path = slice_of(path)};
    struct buf out;

    buf_init(&out, SIZE_MAX);
    struct zpages_answer page = zpages_answer(&state, &request, &out);
    if (page.status != 200)
        holds_die("a page failed");
    while (page.rest != NULL && page.rest->next(page.rest, &out))
        buf_reset(&out, SIZE_MAX);
    if (out.failed)
        holds_die("no memory for a page");
    pieces_free(page.rest);
    buf_dispose(&out);
}

static double rss_mib(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return (double)kib / 1024;
}

/* ---- the operations ---- */

static void start(void)
{
    static const struct kubeconfig kubeconfig = {.server = "nowhere", .origin = "bench"};
    struct config *config;
    struct handlers *handlers;
    struct error err = {0};

    if (config_load(&config, NULL, &err) < 0 || services_init(&state, config, &err) < 0 ||
        handlers_start(&handlers, &state, &kubeconfig, &err) < 0)
        holds_die(err.message);
    config->server.debug_endpoints = true;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        atomic_store(&state.status[kind].is_synced, true);
    holds_forget();
}

static void change_config(void)
{
    struct config *config;
    struct error err = {0};

    if (config_load(&config, NULL, &err) < 0)
        holds_die(err.message);
    if (!state_reload(&state, config))
        holds_die("not reloaded");
}

static void read_pages(void)
{
    static const char *const pages[] = {"/metrics", "/statusz", "/debug/cache", "/debug/snapshot"};

    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        read_page(pages[i]);
        holds_report(pages[i]);
    }
}

/* On a thread of its own, as the informer has it, whose memory comes from an arena of its own. */
static void *run_all(void *unused)
{
    (void)unused;
    run->empty_mib = rss_mib();
    list_all(0, pods);
    holds_report("lists fill the empty cache (tables grow)");
    run->full_mib = rss_mib();
    informer_feed->synced(informer_feed->context);
    holds_report("the first sync");
    list_all(0, pods);
    holds_report("lists say what is known");
    for (unsigned i = 0; i < EVENTS; i++)
        put_numbered(i % 4 == 0 ? KIND_CLAIM : KIND_POD, CHANGE_PUT, any(i, pods));
    holds_report("an event: a pod or a claim has changed");
    for (unsigned i = 0; i < EVENTS; i++)
        put_numbered(KIND_POD, i % 2 == 0 ? CHANGE_DELETE : CHANGE_PUT, any(i / 2, pods));
    holds_report("an event: a pod is gone, or comes");
    filter(CALLS);
    holds_report("a filter call that reserves a claim");
    read_pages();
    change_config();
    holds_report("another configuration");
    skipped_ns = UINT64_C(31000000000); /* the default TTL is 30 s */
    expiry_tick(&state);
    holds_report("all their reservations expire at once");
    bind_some(CALLS);
    holds_report("a bind");
    for (int i = 0; i < LARGE_EVENTS; i++)
        put_large_pod(i % 2 == 0 ? NULL : "ip-10-20-node-1", CHANGE_PUT);
    put_large_pod(NULL, CHANGE_DELETE);
    holds_report("an event: a pod with 512 claims");
    list(KIND_POD, pods, pods);
    holds_report("a list replaces all pods");
    list_all(pods, pods / FEW);
    holds_report("lists leave a hundredth of all");
    run->few_mib = rss_mib();
    for (int kind = 0; kind < KIND_COUNT; kind++)
        list((enum kind)kind, 0, 0);
    holds_report("lists leave nothing");
    return NULL;
}

/* In a process of its own. */
static void run_once(struct run *out)
{
    pid_t pid = fork();
    int status = 0;

    if (pid != 0) {
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            holds_die("a run failed");
        return;
    }
    pthread_t thread;
    run = out;
    start();
    if (pthread_create(&thread, NULL, run_all, NULL) != 0 || pthread_join(thread, NULL) != 0)
        holds_die("no thread");
    _exit(0);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"pods", required_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};

    while (getopt_long(argc, argv, "", options, NULL) == 'p')
        pods = (unsigned)strtoul(optarg, NULL, 10);
    if (pods < FEW)
        holds_die("usage: holds [--pods N]");
    log_configure(LOG_ERROR, LOG_TEXT);
    model = (struct model){.nodes = pods / PODS_A_NODE,
                           .pods = pods,
                           .claims = pods,
                           .exclusive_share = 0.5,
                           .pending_share = 0.1,
                           .seed = 1};
    runs =
        mmap(NULL, RUNS * sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (runs == MAP_FAILED)
        holds_die("no memory");
    (void)printf(
        "\n## How long the cluster's lock is held: %u pods, claims and volumes, %u nodes\n\n"
        "For writing, and for reading, which delays writers: how often, the longest time, and how "
        "often\n**over a millisecond**. The time is CPU time of the thread. The same steps run "
        "three times, and\nthe quickest run of each step counts, because the others were delayed "
        "by the machine.\n\n"
        "| operation | writes | longest | over 1 ms | reads | longest | over 1 ms |\n"
        "|---|---|---|---|---|---|---|\n",
        pods, model.nodes);
    (void)fflush(stdout);
    (void)table_hash(SLICE("any"), 0); /* its seed is chosen: the same for all runs */
    for (unsigned i = 0; i < RUNS; i++)
        run_once(&runs[i]);
    holds_put_table();
    return 0;
}

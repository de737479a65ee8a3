/* Latency of filter calls while the cache is replaced, pods are bound, and /metrics is scraped. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "callers.h"
#include "feed.h"
#include "programs.h"
#include "support/http.h"

enum {
    TURNS = 5,
    BIND_US = 10000, /* between an answer and the next bind */
    BIND_ATTEMPTS_MAX = 5,
    SCRAPE_US = 500000, /* between two scrapes: Prometheus waits 15 s by default */
    SETTLE_US = 300000, /* after the load has begun or ended */
    LIST_US = 10000,
    LIST_LOOKS_MAX = 3000, /* for a list that is under way */
};

static const double turn_seconds = 1, goal = 3;

/* What both servers are asked, and what is going on meanwhile. */
struct scene {
    struct feed feed;
    struct child claimguard, noop;
    struct model model;
    atomic_bool is_loaded, has_ended; /* binds and scrapes; whether their threads end */
    atomic_uint scrapes, failed_binds;
    double loaded_us, load_began_us; /* the first: so far, without that of now */
};

/* ---- the load ---- */

/* Bind n. Returns whether it succeeded: on a busy machine, the Binding may time out. */
static bool bind_pod(const struct scene *scene, int fd, uint64_t n, struct buf *in)
{
    static const char good[] = "{\"Error\":\"\"}";
    struct buf body, request;

    buf_init(&body, 1 << 20);
    buf_init(&request, 1 << 20);
    feed_put_bind(&scene->model, n, &body);
    bench_make_request(&request, "/bind", buf_slice(&body));
    (void)bench_call(fd, buf_slice(&request), in);
    buf_dispose(&body);
    buf_dispose(&request);
    return memmem(in->bytes, in->len, good, sizeof good - 1) != NULL;
}

/* As kube-scheduler does, asks again for a pod whose bind failed. */
static void bind_next(struct scene *scene, int fd, uint64_t n, struct buf *in)
{
    for (int i = 0; i < BIND_ATTEMPTS_MAX; i++) {
        if (bind_pod(scene, fd, n, in))
            return;
        atomic_fetch_add(&scene->failed_binds, 1);
    }
    (void)fprintf(stderr, "%.*s\n", (int)in->len, in->bytes);
    bench_die("a bind failed");
}

static void *bind_pods(void *context)
{
    struct scene *scene = context;
    struct buf in;
    int fd = -1;

    buf_init(&in, 64 << 20);
    for (uint64_t n = 0; !atomic_load(&scene->has_ended); (void)usleep(BIND_US)) {
        if (fd >= 0 && !atomic_load(&scene->is_loaded)) {
            (void)close(fd); /* the server would close it */
            fd = -1;
        }
        if (!atomic_load(&scene->is_loaded))
            continue;
        fd = fd < 0 ? http_connect(scene->claimguard.port) : fd;
        bind_next(scene, fd, n++, &in);
    }
    if (fd >= 0)
        (void)close(fd);
    buf_dispose(&in);
    return NULL;
}

static void *scrape(void *context)
{
    struct scene *scene = context;

    for (; !atomic_load(&scene->has_ended); (void)usleep(SCRAPE_US))
        if (atomic_load(&scene->is_loaded)) {
            if (http_get_status(scene->claimguard.metrics_port, "/metrics") != 200)
                bench_die("/metrics failed");
            atomic_fetch_add(&scene->scrapes, 1);
        }
    return NULL;
}

/* Without it, the last list is complete before this returns. */
static void set_load(struct scene *scene, bool is_loaded)
{
    struct feed_control *control = scene->feed.control;

    if (atomic_load(&scene->is_loaded) == is_loaded)
        return;
    atomic_store(&scene->is_loaded, is_loaded);
    atomic_store(&control->relists, is_loaded);
    if (is_loaded)
        scene->load_began_us = bench_now_us();
    else
        scene->loaded_us += bench_now_us() - scene->load_began_us;
    (void)usleep(SETTLE_US); /* a watch that has just ended is followed by a list */
    for (int i = 0; !is_loaded && i < LIST_LOOKS_MAX &&
                    atomic_load(&control->lists) != atomic_load(&control->begun);
         i++)
        (void)usleep(LIST_US);
    (void)usleep(SETTLE_US);
}

/* ---- the calls ---- */

static void put_requests(const struct model *model, unsigned names,
                         struct buf requests[CALLERS_MAX])
{
    struct buf body;

    buf_init(&body, 64 << 20);
    for (unsigned i = 0; i < CALLERS_MAX; i++) {
        buf_reset(&body, SIZE_MAX);
        model_put_filter(model, (long)feed_free_claim(model, i), names, &body);
        buf_init(&requests[i], 64 << 20);
        bench_make_request(&requests[i], "/filter", buf_slice(&body));
    }
    buf_dispose(&body);
}

static void put_row(const char *what, const char *load, const struct latency turns[TURNS],
                    bool has_goal)
{
    struct latencies took = callers_spread(turns, TURNS);
    char goal_text[16] = "";

    if (has_goal)
        (void)snprintf(goal_text, sizeof goal_text, "%.0f", goal);
    (void)printf(
        "| %s | %s | %.0f µs | %.0f µs | %.0f µs (%.0f-%.0f) | %.1f ms | **%.1f** | %s |\n", what,
        load, took.p50.median, took.p99.median, took.p999.median, took.p999.low, took.p999.high,
        took.max / 1000, took.p999.median / took.p50.median, goal_text);
}

/* Both servers alternately, without the load and with it. */
static void measure(struct scene *scene, unsigned callers, unsigned names,
                    const struct buf *requests)
{
    struct latency ours[2][TURNS], bound[2][TURNS];
    char what[64];

    for (int loaded = 0; loaded < 2; loaded++) {
        set_load(scene, loaded != 0);
        for (size_t turn = 0; turn < TURNS; turn++) {
            ours[loaded][turn] = callers_run(
                &(struct callers){scene->claimguard.port, callers, turn_seconds, requests});
            bound[loaded][turn] =
                callers_run(&(struct callers){scene->noop.port, callers, turn_seconds, requests});
        }
    }
    for (int loaded = 0; loaded < 2; loaded++) {
        const char *load = loaded != 0 ? "yes" : "no";
        (void)snprintf(what, sizeof what, "%u names, %u caller%s", names, callers,
                       callers == 1 ? "" : "s");
        put_row(what, load, ours[loaded], callers == 8);
        put_row("the no-op server", load, bound[loaded], false);
    }
    (void)fflush(stdout);
}

static void print_head(const struct scene *scene)
{
    (void)printf(
        "\n## Latency of filter calls under load: %u pods and claims, %u nodes\n\n"
        "Callers on kept connections, each calling again as soon as it is answered, for a pod "
        "with a free\nexclusive claim, which is reserved. Load: lists that replace the pods; "
        "binds, each %d ms after the\nanswer to the one before; /metrics every %d ms. All of it "
        "shares the machine's cores, so the no-op\nserver, which meets the same load, shows what "
        "is the machine's. Medians of %d turns of %.1f s,\nalternately with the no-op server, and "
        "the spread of p99.9.\n\n"
        "| call | load | p50 | p99 | p99.9 | longest | p99.9 / p50 | goal |\n"
        "|---|---|---|---|---|---|---|---|\n",
        scene->model.pods, scene->model.nodes, BIND_US / 1000, SCRAPE_US / 1000, TURNS,
        turn_seconds);
}

static void measure_sizes(struct scene *scene)
{
    static struct buf requests[CALLERS_MAX];
    static const unsigned sizes[] = {500, 5000}, callers[] = {1, 8, 64};

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        put_requests(&scene->model, sizes[s], requests);
        for (size_t c = 0; c < sizeof callers / sizeof *callers; c++)
            measure(scene, callers[c], sizes[s], requests);
        for (size_t i = 0; i < CALLERS_MAX; i++)
            buf_dispose(&requests[i]);
    }
    set_load(scene, false);
}

static void print_load(const struct scene *scene)
{
    const struct feed_control *control = scene->feed.control;
    double seconds = scene->loaded_us / 1e6;
    unsigned long long lists = atomic_load(&control->lists) - 1, /* but the first */
        binds = atomic_load(&control->bindings);

    (void)printf(
        "\nIn %.0f s of load, %llu lists replaced the pods (%.2f a second), %llu pods were "
        "bound (%.0f a\nsecond; %u binds failed and were asked again), and /metrics was read %u "
        "times.\n",
        seconds, lists, (double)lists / seconds, binds, (double)binds / seconds,
        atomic_load(&scene->failed_binds), atomic_load(&scene->scrapes));
}

void bench_latency(unsigned pods)
{
    struct scene scene = {.model = feed_model(pods)};
    pthread_t binder, scraper;
    double seconds;

    feed_start(&scene.feed, &scene.model);
    scene.claimguard = bench_start_live(scene.feed.kubeconfig, &seconds);
    scene.noop = bench_start_noop(NULL, NULL);
    if (pthread_create(&binder, NULL, bind_pods, &scene) != 0 ||
        pthread_create(&scraper, NULL, scrape, &scene) != 0)
        bench_die("no thread");
    print_head(&scene);
    measure_sizes(&scene);
    atomic_store(&scene.has_ended, true);
    (void)pthread_join(binder, NULL);
    (void)pthread_join(scraper, NULL);
    print_load(&scene);
    bench_stop(scene.claimguard);
    bench_stop(scene.noop);
    feed_stop(&scene.feed);
}

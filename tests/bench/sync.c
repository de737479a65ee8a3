/* The first sync from an API server that answers at once, beside libcurl that reads the same bytes
 * and does nothing with them. */
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cache/watch/reflector.h"
#include "feed.h"
#include "programs.h"

enum { TURNS = 5, HEAD_BYTES = 512, TAIL_BYTES = 256 };

static const double goal = 0.5;

/* One answer: what it began with, which has the continue token, and what it ended with. */
struct answer {
    char head[HEAD_BYTES], tail[2 * TAIL_BYTES + 1];
    size_t len, tail_len;
};

/* One resource, read by one thread. */
struct download {
    const struct feed *feed;
    const char *resource;
    bool is_streamed;
    size_t bytes;
};

static size_t take_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct answer *answer = context;
    size_t len = size * count, head = HEAD_BYTES - 1, keep = len < TAIL_BYTES ? len : TAIL_BYTES;

    if (answer->len < head)
        memcpy(answer->head + answer->len, bytes,
               len < head - answer->len ? len : head - answer->len);
    answer->len += len;
    if (answer->tail_len + keep > sizeof answer->tail - 1) {
        memmove(answer->tail, answer->tail + answer->tail_len - TAIL_BYTES, TAIL_BYTES);
        answer->tail_len = TAIL_BYTES;
    }
    memcpy(answer->tail + answer->tail_len, bytes + len - keep, keep);
    answer->tail_len += keep;
    answer->tail[answer->tail_len] = '\0';
    return strstr(answer->tail, "initial-events-end") == NULL ? len : 0; /* 0: enough */
}

/* One request. Returns where the next page starts; -1: there is none. */
static long fetch(CURL *curl, struct download *download, long from)
{
    struct answer answer = {.len = 0};
    char url[512];

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/api/v1/%s?", download->feed->port,
                   download->resource);
    size_t len = strlen(url);
    if (download->is_streamed)
        (void)snprintf(url + len, sizeof url - len,
                       "watch=1&sendInitialEvents=true"
                       "&resourceVersionMatch=NotOlderThan");
    else
        (void)snprintf(url + len, sizeof url - len,
                       from == 0 ? "limit=%d" : "limit=%d&continue=%ld", PAGE_OBJECTS, from);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    CURLcode rc = curl_easy_perform(curl);
    if (rc != (download->is_streamed ? CURLE_WRITE_ERROR : CURLE_OK))
        bench_die(curl_easy_strerror(rc));
    download->bytes += answer.len;
    const char *next = strstr(answer.head, "\"continue\":\"");
    return next == NULL || download->is_streamed
               ? -1
               : strtol(next + strlen("\"continue\":\""), NULL, 10);
}

static void *run_download(void *context)
{
    struct download *download = context;
    CURL *curl = curl_easy_init();
    long from = 0;

    if (curl == NULL)
        bench_die("no libcurl");
    (void)curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 64L * 1024); /* as claimguard */
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    while (from >= 0)
        from = fetch(curl, download, from);
    curl_easy_cleanup(curl);
    return NULL;
}

/* Pods and claims at once, as claimguard asks for them. Returns the seconds. */
static double read_with_curl(const struct feed *feed, bool is_streamed, size_t *bytes)
{
    struct download downloads[] = {{feed, "pods", is_streamed, 0},
                                   {feed, "persistentvolumeclaims", is_streamed, 0}};
    double started = bench_now_us();
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, run_download, &downloads[i]) != 0)
            bench_die("no thread");
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    *bytes = downloads[0].bytes + downloads[1].bytes;
    return (bench_now_us() - started) / 1e6;
}

static void measure(const struct feed *feed, bool is_streamed)
{
    double ours[TURNS], theirs[TURNS], cpu[TURNS], ratios[TURNS];
    size_t bytes = 0;

    atomic_store(&feed->control->may_stream, is_streamed);
    for (int i = 0; i < TURNS; i++) {
        theirs[i] = read_with_curl(feed, is_streamed, &bytes);
        struct child claimguard = bench_start_live(feed->kubeconfig, &ours[i]);
        cpu[i] = bench_cpu_seconds(claimguard.pid);
        bench_stop(claimguard);
        ratios[i] = ours[i] / theirs[i];
    }
    struct spread ratio = bench_spread(ratios, TURNS), seconds = bench_spread(ours, TURNS);
    (void)printf(
        "| %s | %.2f s (%.2f-%.2f) | %.2f s | %.0f MiB/s | %.2f s | **%.2f** (%.2f-%.2f) | "
        "%.1f |\n",
        is_streamed ? "streamed" : "pages", seconds.median, seconds.low, seconds.high,
        bench_percentile(cpu, TURNS, 0.5), (double)bytes / (1 << 20) / seconds.median,
        bench_percentile(theirs, TURNS, 0.5), ratio.median, ratio.low, ratio.high, goal);
    (void)fflush(stdout);
}

void bench_sync(unsigned pods)
{
    struct model model = {.nodes = 5000,
                          .pods = pods,
                          .claims = pods,
                          .exclusive_share = 0.5,
                          .pending_share = 0.2,
                          .seed = 1};
    int server_core = bench_server_core;
    struct feed feed;

    bench_server_core = BENCH_ANY_CORE;
    bench_pin(BENCH_ANY_CORE);
    feed_start(&feed, &model);
    (void)printf(
        "\n## The first sync: %u pods, %u claims, %u nodes, from an API server that does "
        "not limit it\n\nThe server is in C, and has all texts in memory. From the start of "
        "the process until its cache is\nsynced, beside libcurl, which reads pods and "
        "claims at the same time, and throws the bytes away.\nMedians of %d turns, and the "
        "spread; server and client share the cores.\n\n"
        "| lists | claimguard | its CPU time | pods and claims read | libcurl | ratio | goal "
        "|\n"
        "|---|---|---|---|---|---|---|\n",
        pods, pods, model.nodes, TURNS);
    measure(&feed, true);
    measure(&feed, false);
    feed_stop(&feed);
    bench_server_core = server_core;
}

/* The first sync, beside libcurl that reads the same bytes and does nothing with them: from an API
 * server that answers at once, and from a real one. */
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cache/client/kubeconfig.h"
#include "cache/watch/reflector.h"
#include "feed.h"
#include "programs.h"

enum { TURNS = 5, HEAD_BYTES = 1024, TAIL_BYTES = 512 };

const char *bench_cluster_kubeconfig;

/* Where both read. */
struct source {
    const char *kubeconfig, *server;
    const char *ca, *token_file; /* NULL: it is plain HTTP */
    double goal;
};

/* One answer: what it began with, which has the continue token, and what it ended with. */
struct answer {
    char head[HEAD_BYTES], tail[2 * TAIL_BYTES + 1];
    size_t len, tail_len;
};

/* One resource, read by one thread. */
struct download {
    const struct source *source;
    const char *resource;
    bool is_streamed;
    size_t bytes;
    char token[1024]; /* of the next page */
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

static void put_url(const struct download *download, char *out, size_t size)
{
    int len = snprintf(out, size, "%s/api/v1/%s?", download->source->server, download->resource);

    if (len < 0 || (size_t)len >= size)
        bench_die("the server's address is too long");
    out += len;
    size -= (size_t)len;
    if (download->is_streamed)
        (void)snprintf(out, size,
                       "watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
                       "&resourceVersionMatch=NotOlderThan");
    else
        (void)snprintf(out, size, "limit=%d&continue=%s", PAGE_OBJECTS, download->token);
}

/* One request. Returns whether there is another page. */
static bool fetch(CURL *curl, struct download *download)
{
    static const char key[] = "\"continue\":\"";
    struct answer answer = {.len = 0};
    char url[2048];

    put_url(download, url, sizeof url);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    CURLcode rc = curl_easy_perform(curl);
    if (rc != (download->is_streamed ? CURLE_WRITE_ERROR : CURLE_OK))
        bench_die(curl_easy_strerror(rc));
    download->bytes += answer.len;
    const char *next = strstr(answer.head, key);
    if (next == NULL || download->is_streamed)
        return false;
    (void)snprintf(download->token, sizeof download->token, "%.*s",
                   (int)strcspn(next + sizeof key - 1, "\""), next + sizeof key - 1);
    return true;
}

/* The header with the token; NULL: there is none. */
static struct curl_slist *authorization(const struct source *source)
{
    char line[8192] = "Authorization: Bearer ";
    size_t len = strlen(line);
    FILE *file = source->token_file == NULL ? NULL : fopen(source->token_file, "re");

    if (source->token_file == NULL)
        return NULL;
    if (file == NULL || fgets(line + len, (int)(sizeof line - len), file) == NULL ||
        fclose(file) != 0)
        bench_die("cannot read the token");
    line[strcspn(line, "\n")] = '\0';
    return curl_slist_append(NULL, line);
}

static void *run_download(void *context)
{
    struct download *download = context;
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = authorization(download->source);

    if (curl == NULL)
        bench_die("no libcurl");
    (void)curl_easy_setopt(curl, CURLOPT_CAINFO, download->source->ca);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 64L * 1024); /* as claimguard */
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    while (fetch(curl, download))
        ;
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    return NULL;
}

/* Pods and claims at once, as claimguard asks for them. Returns the seconds. */
static double read_with_curl(const struct source *source, bool is_streamed, size_t *bytes)
{
    struct download downloads[] = {
        {.source = source, .resource = "pods", .is_streamed = is_streamed},
        {.source = source, .resource = "persistentvolumeclaims", .is_streamed = is_streamed}};
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

static void measure(const struct source *source, bool is_streamed)
{
    double ours[TURNS], theirs[TURNS], cpu[TURNS], ratios[TURNS];
    size_t bytes = 0;

    for (int i = 0; i < TURNS; i++) {
        theirs[i] = read_with_curl(source, is_streamed, &bytes);
        struct child claimguard = bench_start_live(source->kubeconfig, &ours[i]);
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
        bench_percentile(theirs, TURNS, 0.5), ratio.median, ratio.low, ratio.high, source->goal);
    (void)fflush(stdout);
}

static void print_columns(void)
{
    (void)printf("From the start of the process until its cache is\nsynced, beside libcurl, which "
                 "reads pods and claims at the same time, and throws the bytes away.\nMedians of "
                 "%d turns, and the spread; server and client share the cores.\n\n"
                 "| lists | claimguard | its CPU time | pods and claims read | libcurl | ratio | "
                 "goal |\n|---|---|---|---|---|---|---|\n",
                 TURNS);
}

void bench_sync(unsigned pods)
{
    struct model model = feed_model(pods);
    char server[64];
    struct feed feed;

    feed_start(&feed, &model);
    (void)snprintf(server, sizeof server, "http://127.0.0.1:%u", feed.port);
    struct source source = {.kubeconfig = feed.kubeconfig, .server = server, .goal = 0.5};
    (void)printf("\n## The first sync: %u pods, %u claims, %u nodes, from an API server that does "
                 "not limit it\n\nThe server is in C, and has all texts in memory. ",
                 pods, pods, model.nodes);
    print_columns();
    for (int is_streamed = 1; is_streamed >= 0; is_streamed--) {
        atomic_store(&feed.control->may_stream, is_streamed != 0);
        measure(&source, is_streamed != 0);
    }
    feed_stop(&feed);
}

void bench_cluster(void)
{
    struct kubeconfig *kubeconfig;
    struct error err = {0};

    if (bench_cluster_kubeconfig == NULL)
        return;
    if (kubeconfig_load(&kubeconfig, bench_cluster_kubeconfig, NULL, false, &err) < 0)
        bench_die(err.message);
    struct source source = {bench_cluster_kubeconfig, kubeconfig->server, kubeconfig->ca.file,
                            kubeconfig->token_file, 1.1};
    (void)printf("\n" CLUSTER_HEADING "\n\nkube-apiserver and etcd, over TLS. ");
    print_columns();
    measure(&source, true);
    kubeconfig_free(kubeconfig);
}

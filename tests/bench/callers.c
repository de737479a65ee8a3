#include "callers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs.h"
#include "support/http.h"

enum { CALLS_MAX = 1 << 20, FIRST_CALLS = 5 };

struct caller {
    const struct callers *callers;
    struct slice request;
    double ends_us;
    double *times;
    size_t count;
};

static void *call_on(void *context)
{
    struct caller *caller = context;
    int fd = http_connect(caller->callers->port);
    struct buf in;

    buf_init(&in, 64 << 20);
    for (int i = 0; i < FIRST_CALLS; i++)
        (void)bench_call(fd, caller->request, &in);
    while (bench_now_us() < caller->ends_us && caller->count < CALLS_MAX)
        caller->times[caller->count++] = bench_call(fd, caller->request, &in);
    (void)close(fd);
    buf_dispose(&in);
    return NULL;
}

static struct latency summarize(double *times, size_t count)
{
    if (count == 0)
        bench_die("a turn without an answer");
    return (struct latency){.p50 = bench_percentile(times, count, 0.5),
                            .p99 = bench_percentile(times, count, 0.99),
                            .p999 = bench_percentile(times, count, 0.999),
                            .max = bench_percentile(times, count, 1)};
}

struct latency callers_run(const struct callers *callers)
{
    static struct caller all[CALLERS_MAX];
    static double *times[CALLERS_MAX], *joined;
    pthread_t threads[CALLERS_MAX];
    double ends_us = bench_now_us() + callers->seconds * 1e6;
    size_t count = 0;

    if (joined == NULL)
        joined = malloc(CALLERS_MAX * sizeof *joined * CALLS_MAX);
    for (unsigned i = 0; i < callers->count; i++) {
        if (times[i] == NULL)
            times[i] = malloc(sizeof *times[i] * CALLS_MAX); /* touched as far as it is used */
        if (times[i] == NULL || joined == NULL)
            bench_die("out of memory");
        all[i] = (struct caller){.callers = callers,
                                 .request = buf_slice(&callers->requests[i]),
                                 .ends_us = ends_us,
                                 .times = times[i]};
        if (pthread_create(&threads[i], NULL, call_on, &all[i]) != 0)
            bench_die("no thread");
    }
    for (unsigned i = 0; i < callers->count; i++) {
        (void)pthread_join(threads[i], NULL);
        memcpy(joined + count, all[i].times, all[i].count * sizeof *joined);
        count += all[i].count;
    }
    struct latency latency = summarize(joined, count);
    latency.rate = (double)count / callers->seconds;
    return latency;
}

static double median_of(const struct latency *turns, size_t count, size_t offset, double spread[2])
{
    double values[CALLERS_TURNS_MAX];

    for (size_t i = 0; i < count; i++)
        memcpy(&values[i], (const char *)&turns[i] + offset, sizeof values[i]);
    double median = bench_percentile(values, count, 0.5); /* sorts them */
    spread[0] = values[0];
    spread[1] = values[count - 1];
    return median;
}

struct latency callers_median(const struct latency *turns, size_t count, double spread_p999[2])
{
    double spread[2];
    struct latency median = {
        .p50 = median_of(turns, count, offsetof(struct latency, p50), spread),
        .p99 = median_of(turns, count, offsetof(struct latency, p99), spread),
        .p999 = median_of(turns, count, offsetof(struct latency, p999), spread_p999),
        .rate = median_of(turns, count, offsetof(struct latency, rate), spread),
    };

    (void)median_of(turns, count, offsetof(struct latency, max), spread);
    median.max = spread[1];
    return median;
}

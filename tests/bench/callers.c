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
    return summarize(joined, count);
}

static struct spread spread_of(const struct latency *turns, size_t count, size_t offset)
{
    double values[CALLERS_TURNS_MAX];

    for (size_t i = 0; i < count; i++)
        memcpy(&values[i], (const char *)&turns[i] + offset, sizeof values[i]);
    return bench_spread(values, count);
}

struct latencies callers_spread(const struct latency *turns, size_t count)
{
    return (struct latencies){
        .p50 = spread_of(turns, count, offsetof(struct latency, p50)),
        .p99 = spread_of(turns, count, offsetof(struct latency, p99)),
        .p999 = spread_of(turns, count, offsetof(struct latency, p999)),
        .max = spread_of(turns, count, offsetof(struct latency, max)).high,
    };
}

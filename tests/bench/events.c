/* What a watch of many events a second costs: CPU time, and the latency of filter calls. */
#include <stdio.h>
#include <unistd.h>

#include "bench.h"
#include "callers.h"
#include "feed.h"
#include "programs.h"

enum { RATE = 10000, TURNS = 6, SETTLE_US = 200000 };

static const double turn_seconds = 10, call_seconds = 2, goal = 1.5;

/* What a turn took, of claimguard: the share of a core; and the events that were sent in it. */
struct events_turn {
    struct latency latency;
    double cpu, events, seconds;
};

/* callers 0: nobody calls. is_loaded: with the events, which must come at their rate. */
static struct events_turn run_turn(const struct feed *feed, const struct child *claimguard,
                                   const struct callers *callers, bool is_loaded)
{
    unsigned long long events = atomic_load(&feed->control->events);
    double cpu = bench_cpu_seconds(claimguard->pid), started = bench_now_us();
    struct events_turn turn = {.cpu = 0};

    if (callers->count != 0)
        turn.latency = callers_run(callers);
    else
        (void)usleep((useconds_t)(callers->seconds * 1e6));
    turn.seconds = (bench_now_us() - started) / 1e6;
    turn.cpu = (bench_cpu_seconds(claimguard->pid) - cpu) / turn.seconds;
    turn.events = (double)(atomic_load(&feed->control->events) - events);
    if (is_loaded && turn.events < RATE * turn.seconds * 0.95)
        bench_die("the events could not be sent at that rate");
    return turn;
}

static void put_row(const char *what, const struct latencies *took)
{
    (void)printf("| %s | %.0f µs | %.0f µs | %.0f µs (%.0f-%.0f) | %.1f ms |", what,
                 took->p50.median, took->p99.median, took->p999.median, took->p999.low,
                 took->p999.high, took->max / 1000);
}

static void put_rows(const struct latency without[TURNS], const struct latency with[TURNS])
{
    struct latencies alone = callers_spread(without, TURNS), beside = callers_spread(with, TURNS);

    put_row("none", &alone);
    (void)printf(" | |\n");
    put_row("10,000 a second", &beside);
    (void)printf(" **%.2f** | %.1f |\n", beside.p99.median / alone.p99.median, goal);
}

static void measure(const struct feed *feed, const struct child *claimguard,
                    const struct buf *request)
{
    struct latency without[TURNS], with[TURNS];
    double shares[TURNS], costs[TURNS];
    struct callers callers = {claimguard->port, 1, call_seconds, request},
                   nobody = {.seconds = turn_seconds};

    for (int i = 0; i < TURNS; i++) {
        without[i] = run_turn(feed, claimguard, &callers, false).latency;
        atomic_store(&feed->control->event_rate, RATE);
        (void)usleep(SETTLE_US);
        struct events_turn turn = run_turn(feed, claimguard, &nobody, true);
        shares[i] = turn.cpu * 100;
        costs[i] = turn.cpu * turn.seconds * 1e6 / turn.events;
        with[i] = run_turn(feed, claimguard, &callers, true).latency;
        atomic_store(&feed->control->event_rate, 0);
        (void)usleep(SETTLE_US);
    }
    put_rows(without, with);
    struct spread share = bench_spread(shares, TURNS), cost = bench_spread(costs, TURNS);
    (void)printf("\nThe events alone take **%.0f %%** of a core (%.0f-%.0f %%), %.1f µs an event "
                 "(%.1f-%.1f).\n",
                 share.median, share.low, share.high, cost.median, cost.low, cost.high);
    (void)fflush(stdout);
}

void bench_events(unsigned pods)
{
    struct model model = feed_model(pods);
    struct buf body, request;
    struct feed feed;
    double seconds;

    feed_start(&feed, &model);
    struct child claimguard = bench_start_live(feed.kubeconfig, &seconds);
    (void)printf(
        "\n## A watch of %d events a second: %u pods and claims, %u nodes\n\n"
        "Of ten events, seven change a pod, one removes one, one adds it again, and one changes a "
        "claim; each\nhas the whole object, and a change is of its version. The CPU time is that "
        "of "
        "%d turns of %.0f s, in\nwhich nobody calls. The latency is that of %d turns of %.0f s "
        "with the events and without,\nalternately: one caller, 5000 names, a free exclusive "
        "claim, and the spread of p99.9; the API server\nin C and the caller share the cores.\n\n"
        "| events | p50 | p99 | p99.9 | longest | p99, beside none | goal |\n"
        "|---|---|---|---|---|---|---|\n",
        RATE, pods, model.nodes, TURNS, turn_seconds, TURNS, call_seconds);
    buf_init(&body, 64 << 20);
    buf_init(&request, 64 << 20);
    model_put_filter(&model, (long)feed_free_claim(&model, 0), 5000, &body);
    bench_make_request(&request, "/filter", buf_slice(&body));
    measure(&feed, &claimguard, &request);
    buf_dispose(&body);
    buf_dispose(&request);
    bench_stop(claimguard);
    feed_stop(&feed);
}

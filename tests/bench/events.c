/* What a watch of many events a second costs: CPU time, and the latency of filter calls. */
#include <stdio.h>
#include <unistd.h>

#include "bench.h"
#include "callers.h"
#include "feed.h"
#include "programs.h"

enum { RATE = 10000, TURNS = 6, SETTLE_US = 200000 };

static const double turn_seconds = 10, goal = 1.5;

/* What each turn took, of claimguard: the share of a core. */
struct events_turn {
    struct latency latency;
    double cpu;
};

/* callers 0: nobody calls. */
static struct events_turn run_turn(const struct child *claimguard, const struct callers *callers)
{
    double cpu = bench_cpu_seconds(claimguard->pid), started = bench_now_us();
    struct events_turn turn = {.cpu = 0};

    if (callers->count != 0)
        turn.latency = callers_run(callers);
    else
        (void)usleep((useconds_t)(callers->seconds * 1e6));
    turn.cpu = (bench_cpu_seconds(claimguard->pid) - cpu) * 1e6 / (bench_now_us() - started);
    return turn;
}

static void put_row(const char *what, const struct latency *turns)
{
    double spread[2];
    struct latency median = callers_median(turns, TURNS, spread);

    (void)printf("| %s | %.0f µs | %.0f µs | %.0f µs (%.0f-%.0f) | %.1f ms |", what, median.p50,
                 median.p99, median.p999, spread[0], spread[1], median.max / 1000);
}

static void measure(const struct feed *feed, const struct child *claimguard,
                    const struct buf *request)
{
    struct latency without[TURNS], with[TURNS];
    double shares[TURNS], spread[2];
    struct callers callers = {claimguard->port, 1, turn_seconds / TURNS, request},
                   nobody = {.seconds = turn_seconds};

    for (int i = 0; i < TURNS; i++) {
        without[i] = run_turn(claimguard, &callers).latency;
        atomic_store(&feed->control->event_rate, RATE);
        (void)usleep(SETTLE_US);
        unsigned long long events = atomic_load(&feed->control->events);
        shares[i] = run_turn(claimguard, &nobody).cpu;
        events = atomic_load(&feed->control->events) - events;
        if ((double)events < RATE * turn_seconds * 0.95)
            bench_die("the events could not be sent at that rate");
        with[i] = run_turn(claimguard, &callers).latency;
        atomic_store(&feed->control->event_rate, 0);
        (void)usleep(SETTLE_US);
    }
    double p99 =
        callers_median(with, TURNS, spread).p99 / callers_median(without, TURNS, spread).p99;
    put_row("none", without);
    (void)printf(" | |\n");
    put_row("10,000 a second", with);
    (void)printf(" **%.2f** | %.1f |\n", p99, goal);
    double share = bench_percentile(shares, TURNS, 0.5); /* sorts them */
    (void)printf(
        "\nThe events alone take **%.0f %%** of a core (%.0f-%.0f %%), %.1f µs an event.\n",
        share * 100, shares[0] * 100, shares[TURNS - 1] * 100, share * 1e6 / RATE);
    (void)fflush(stdout);
}

void bench_events(unsigned pods)
{
    struct model model = {.nodes = 5000,
                          .pods = pods,
                          .claims = pods,
                          .exclusive_share = 0.5,
                          .pending_share = 0.2,
                          .seed = 1};
    int server_core = bench_server_core;
    struct buf body, request;
    struct feed feed;
    double seconds;

    bench_server_core = BENCH_ANY_CORE;
    bench_pin(BENCH_ANY_CORE);
    feed_start(&feed, &model);
    struct child claimguard = bench_start_live(feed.kubeconfig, &seconds);
    (void)printf(
        "\n## A watch of %d events a second: %u pods and claims, %u nodes\n\n"
        "Of ten events, seven change a pod, one removes one, one adds it again, and one "
        "changes a claim. %d turns\nof %.0f s with the events. One caller, 5000 names, a "
        "free exclusive claim, alternately with the events\nand without, and the spread of "
        "p99.9; the API server in C and the caller share the cores.\n\n"
        "| events | p50 | p99 | p99.9 | longest | p99, beside none | goal |\n"
        "|---|---|---|---|---|---|---|\n",
        RATE, pods, model.nodes, TURNS, turn_seconds);
    buf_init(&body, 64 << 20);
    buf_init(&request, 64 << 20);
    model_put_filter(&model, (long)feed_free_claim(&model, 0), 5000, &body);
    bench_make_request(&request, "/filter", buf_slice(&body));
    measure(&feed, &claimguard, &request);
    buf_dispose(&body);
    buf_dispose(&request);
    bench_stop(claimguard);
    feed_stop(&feed);
    bench_server_core = server_core;
}

/* The time of a verdict, without HTTP, in clusters of different sizes. */
#include <malloc.h>
#include <stdio.h>

#include "bench.h"
#include "extender/cli/services.h"
#include "extender/serving/verbs/verbs.h"
#include "programs.h"

enum { RUNS = 5, VERDICTS = 4000 };

static void fill(struct state *state, const struct model *model)
{
    static void (*const puts[])(const struct model *, unsigned,
                                struct buf *) = {model_put_node, model_put_claim, model_put_pod};
    const unsigned counts[] = {model->nodes, model->claims, model->pods};
    static const enum kind kinds[] = {KIND_NODE, KIND_CLAIM, KIND_POD};
    struct arena arena;
    struct buf text;
    struct error err = {0};

    arena_init(&arena, 1 << 20);
    buf_init(&text, 1 << 20);
    for (int k = 0; k < 3; k++) {
        for (unsigned i = 0; i < counts[k]; i++) {
            struct object object;
            struct pull json;
            buf_reset(&text, SIZE_MAX);
            arena_reset(&arena);
            puts[k](model, i, &text);
            pull_init(&json, buf_slice(&text));
            if (!object_read(&json, kinds[k], &arena, &object) ||
                cluster_apply(&state->cluster, &object, &err) < 0)
                bench_die("an object of the model was refused");
        }
    }
    buf_dispose(&text);
    arena_dispose(&arena);
}

/* The time from a body to its answer, without HTTP: 500 names, another claim in each call. `first`:
 * the number of the first call. The median of VERDICTS calls. */
static double run_verdicts(struct state *state, struct scratch *scratch, const struct model *model,
                           unsigned first)
{
    static double times[VERDICTS];

    for (unsigned i = 0; i < VERDICTS; i++) {
        unsigned claim = (unsigned)(((first + i) * UINT64_C(2654435761)) % model->claims);
        scratch_reset(scratch);
        model_put_filter(model, claim, 500, &scratch->body);
        double started = bench_now_us();
        if (verb_answer(state, VERB_FILTER, scratch) != 200)
            bench_die("a verdict failed");
        times[i] = bench_now_us() - started;
    }
    return bench_percentile(times, VERDICTS, 0.5);
}

static struct spread measure_verdicts(const struct model *model)
{
    double medians[RUNS];
    struct state state;
    struct config *config;
    struct error err = {0};
    struct scratch scratch;

    if (config_load(&config, NULL, &err) < 0 || services_init(&state, config, &err) < 0)
        bench_die(err.message);
    fill(&state, model);
    scratch_init(&scratch, 64 << 20, NULL);
    for (unsigned run = 0; run < RUNS; run++)
        medians[run] = run_verdicts(&state, &scratch, model, run * VERDICTS);
    scratch_dispose(&scratch);
    services_dispose(&state);
    (void)malloc_trim(0);
    return bench_spread(medians, RUNS);
}

void bench_verdicts(void)
{
    const unsigned sizes[] = {1000, 10000, 150000, 500000};
    double first = 0;

    (void)printf(
        "\n## Verdict time\n\nFrom a filter body with 500 names to its answer, without HTTP; each "
        "call names another\nclaim, half of them exclusive. Of %d runs, each "
        "the median of %d calls, the\nmedian and the spread.\n\n"
        "| pods and claims | nodes | median | against 1,000 | goal |\n|---|---|---|---|---|\n",
        RUNS, VERDICTS);
    for (size_t i = 0; i < 4; i++) {
        struct model model = {.nodes = sizes[i] > 150000 ? 65000 : 5000,
                              .pods = sizes[i],
                              .claims = sizes[i],
                              .exclusive_share = 0.5,
                              .pending_share = 0.1,
                              .seed = 1};
        struct spread time = measure_verdicts(&model);
        first = i == 0 ? time.median : first;
        (void)printf("| %u | %u | %.1f µs (%.1f-%.1f) | **%.2f** | 1.5 |\n", sizes[i], model.nodes,
                     time.median, time.low, time.high, time.median / first);
        (void)fflush(stdout);
    }
}

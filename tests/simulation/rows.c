#include "simulation/rows.h"

#include <stdio.h>
#include <string.h>

#include "config/base/log.h"
#include "simulation/fiber.h"

void wait_seconds(uint64_t seconds)
{
    world_run(world.now_ns + seconds * SECOND, NULL);
}

void expect(bool is_so, const char *what)
{
    if (!is_so)
        broken("%s", what);
}

struct sim_pod *create(const char *name, int priority, unsigned claims)
{
    return server_create_pod(name, &(struct sim_pod){.priority = priority, .claims = claims});
}

struct sim_pod *holder(const char *name, int priority, unsigned claims)
{
    struct sim_pod *pod = create(name, priority, claims);

    wait_seconds(2);
    expect(pod->node >= 0, "the holder is bound");
    return pod;
}

static bool run_row(const struct row *row)
{
    world_begin(1);
    world.replica_count = world.scheduler_count = 1;
    world.preempts = world.respects_budgets = true;
    world.ttl_ms = 5000;
    if (row->prepare != NULL)
        row->prepare();
    world_populate();
    wait_seconds(1);
    row->run();
    printf("%s %s%s%s\n", world.failure[0] == '\0' ? "ok    " : "FAILED", row->name,
           world.failure[0] == '\0' ? "" : ": ", world.failure);
    bool is_good = world.failure[0] == '\0';
    world_end();
    return is_good;
}

int rows_run(const struct row *rows, size_t count, int argc, char **argv)
{
    size_t failed = 0;

    is_traced = argc > 1 && strcmp(argv[1], "--trace") == 0;
    log_configure(LOG_ERROR, LOG_TEXT);
    for (size_t i = 0; i < count; i++)
        failed += !run_row(&rows[i]);
    fibers_dispose();
    return failed != 0;
}

#include "simulation/rows.h"

#include <stdio.h>
#include <stdlib.h>
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

struct sim_pod *create_protected(const char *name, unsigned claims)
{
    return server_create_pod(
        name, &(struct sim_pod){.priority = 10, .claims = claims, .is_protected = true});
}

bool is_asked_to_go(const struct sim_pod *pod)
{
    return pod->is_terminating || !pod->exists;
}

static char *last_answer;

static void keep_answer(void *context, const char *answer)
{
    (void)context;
    expect(answer != NULL, "an answer");
    free(last_answer);
    last_answer = strdup(answer == NULL ? "" : answer);
}

bool preempt_keeps(const struct sim_pod *pod, const char *node, const struct sim_pod *victim)
{
    char body[1024], meta[64] = "";

    if (victim != NULL)
        (void)snprintf(meta, sizeof meta, "{\"UID\":\"%s\"}", victim->uid);
    (void)snprintf(body, sizeof body,
                   "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\"},"
                   "\"spec\":{\"priority\":%d,\"volumes\":[{\"name\":\"v\","
                   "\"persistentVolumeClaim\":{\"claimName\":\"c0\"}}]}},"
                   "\"NodeNameToMetaVictims\":{\"%s\":{\"Pods\":[%s]}}}",
                   pod->name, pod->uid, pod->priority, node, meta);
    replica_call(0, VERB_PREEMPT, body, keep_answer, NULL);
    wait_seconds(2);
    return last_answer != NULL && strstr(last_answer, node) != NULL;
}

bool filter_passes(const struct sim_pod *pod)
{
    struct buf body;

    buf_init(&body, 4096);
    buf_put(&body, SLICE("{\"Pod\":"));
    server_write_pod(pod, &body);
    buf_put(&body, SLICE(",\"NodeNames\":[\"node-0\"]}"));
    buf_put(&body, (struct slice){"", 1});
    replica_call(0, VERB_FILTER, buf_slice(&body).ptr, keep_answer, NULL);
    buf_dispose(&body);
    wait_seconds(1);
    return last_answer != NULL && strstr(last_answer, "\"node-0\":") == NULL;
}

const char *call_answer(void)
{
    return last_answer;
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
    free(last_answer);
    return failed != 0;
}

unsigned attempts(enum preemption_result result)
{
    return (unsigned)world.replicas[0].state.metrics.preemptions[result];
}

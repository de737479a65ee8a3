/*
 * Threads that ask every verb while others change the cluster and reload the configuration: for
 * TSan. A plain program, since Criterion does not run under TSan. Exits with 1 when an answer is
 * wrong.
 */
#include <stdio.h>
#include <stdlib.h>

#include "config/base/log.h"
#include "extender/cli/services.h"
#include "extender/serving/verbs/verbs.h"
#include "extender/serving/zpages/zpages.h"

enum { READERS = 4, ROUNDS = 1500, LISTED_PODS = 1000 };

static struct state state;
static atomic_int failures;

static void fail(const char *what, const struct scratch *scratch)
{
    (void)fprintf(stderr, "%s: %.*s\n", what, SLICE_ARG(scratch->result));
    atomic_fetch_add(&failures, 1);
}

static void ask(struct scratch *scratch, enum verb verb, const char *body)
{
    scratch_reset(scratch);
    buf_put(&scratch->body, slice_of(body));
    if (verb_answer(&state, verb, scratch) != 200)
        fail(verb_texts[verb], scratch);
}

#define POD(uid) \
    "\"Pod\":{\"metadata\":{\"name\":\"asks\",\"uid\":\"" uid "\"},\"spec\":{\"priority\":100," \
    "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}"

static void read_page(struct scratch *scratch, const char *path)
{
    struct zpages_request request = {.path = slice_of(path)};

    scratch_reset(scratch);
    struct zpages_answer page = zpages_answer(&state, &request, &scratch->answer);
    if (page.status != 200)
        fail(path, scratch);
    while (page.rest != NULL && page.rest->next(page.rest, &scratch->answer))
        buf_reset(&scratch->answer, SIZE_MAX);
    pieces_free(page.rest);
}

static void *read_always(void *argument)
{
    struct scratch scratch;

    (void)argument;
    scratch_init(&scratch, 1 << 20, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        ask(&scratch, VERB_FILTER, "{" POD("u1") ",\"NodeNames\":[\"n1\",\"n2\"]}");
        ask(&scratch, VERB_PREFILTER, "{" POD("u2") "}");
        ask(&scratch, VERB_PREEMPT,
            "{" POD("u3") ",\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"uid-0\"}]}}}");
        ask(&scratch, VERB_VOLCANO_PREDICATE,
            "{\"task\":{" POD("u1") "},\"node\":{\"Name\":\"n1\"}}");
        ask(&scratch, VERB_BIND,
            "{\"PodName\":\"waits\",\"PodNamespace\":\"default\",\"PodUID\":"
            "\"uid-w\",\"Node\":\"n1\"}");
        if (i % 50 == 0)
            read_page(&scratch, "/metrics");
        if (i % 10 == 0)
            read_page(&scratch, "/debug/cache");
        if (i % 10 == 5)
            read_page(&scratch, "/debug/snapshot");
    }
    scratch_dispose(&scratch);
    return NULL;
}

static void change(const char *text, bool is_deletion, enum kind kind)
{
    struct error err = {0};
    struct arena arena;
    struct object object;
    struct pull json;

    arena_init(&arena, 1 << 20);
    pull_init(&json, slice_of(text));
    if (!object_read(&json, kind, &arena, &object))
        abort();
    (void)pthread_rwlock_wrlock(&state.lock);
    if (is_deletion)
        cluster_delete(&state.cluster, &object);
    else if (cluster_apply(&state.cluster, &object, &err) < 0)
        abort();
    (void)pthread_rwlock_unlock(&state.lock);
    arena_dispose(&arena);
}

/* A list that names no pod, after many others came. */
static void list_no_pods(void)
{
    bool has_more = true;
    char text[64];

    for (int i = 0; i < LISTED_PODS; i++) {
        (void)snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"listed-%d\"}}", i);
        change(text, false, KIND_POD);
    }
    (void)pthread_rwlock_wrlock(&state.lock);
    cluster_list_begin(&state.cluster, KIND_POD, false, 0);
    (void)pthread_rwlock_unlock(&state.lock);
    while (has_more) {
        (void)pthread_rwlock_wrlock(&state.lock);
        has_more = cluster_list_end(&state.cluster, KIND_POD, 0, NULL);
        (void)pthread_rwlock_unlock(&state.lock);
    }
}

static void *write_always(void *argument)
{
    static const char claim[] = "{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":["
                                "\"ReadWriteOncePod\"]}}";
    static const char waits[] =
        "{\"metadata\":{\"name\":\"waits\",\"uid\":\"uid-w\"},\"spec\":{"
        "\"volumes\":[{\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}";
    static const char holder[] = "{\"metadata\":{\"name\":\"p0\",\"uid\":\"uid-0\"},\"spec\":{"
                                 "\"nodeName\":\"n1\",\"volumes\":[{\"persistentVolumeClaim\":{"
                                 "\"claimName\":\"data\"}}]}}";
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        struct config *config;
        struct error err = {0};
        change(claim, i % 3 == 2, KIND_CLAIM);
        change(holder, i % 2 == 1, KIND_POD);
        change(waits, i % 5 == 4, KIND_POD);
        if (i % 100 == 0)
            list_no_pods();
        if (i % 10 == 0 && config_load(&config, NULL, &err) == 0) {
            config->server.debug_endpoints = true;
            if (!state_reload(&state, config))
                abort();
        }
    }
    return NULL;
}

int main(void)
{
    struct config *config;
    struct error err = {0};
    pthread_t readers[READERS], writer;

    if (config_load(&config, NULL, &err) < 0 || services_init(&state, config, &err) < 0)
        return 1;
    config->server.debug_endpoints = true;
    log_configure(LOG_ERROR, LOG_TEXT); /* refused binds are expected */
    for (int i = 0; i < READERS; i++)
        if (pthread_create(&readers[i], NULL, read_always, NULL) != 0)
            return 1;
    if (pthread_create(&writer, NULL, write_always, NULL) != 0)
        return 1;
    for (int i = 0; i < READERS; i++)
        (void)pthread_join(readers[i], NULL);
    (void)pthread_join(writer, NULL);
    services_dispose(&state);
    (void)printf("%d calls, %d wrong\n", READERS * ROUNDS * 4, atomic_load(&failures));
    return atomic_load(&failures) == 0 ? 0 : 1;
}

/* SIGTERM while the API server hangs: nothing that waits for it delays the end. */
#include <pthread.h>
#include <stdio.h>

#include "adversity/preemptors.h"
#include "support/http.h"

/* SIGTERM; fails unless it is over by then. */
static void stop_within(struct guard *guard, int64_t ms)
{
    int64_t began_ms = clock_ms();

    guard_stop(guard);
    int64_t took_ms = clock_ms() - began_ms;
    printf("SIGTERM took %lld ms\n", (long long)took_ms);
    check(took_ms < ms, "SIGTERM took %lld ms", (long long)took_ms);
}

static void sigterm_does_not_wait_for_evictions(void)
{
    struct guard guard;

    start_with_two_preemptors(&guard);
    api_fault(&(struct api_fault){.method = "POST", .path = "/eviction", .ending = API_HANG});
    check(!filter_passes(&guard, "high-data"), "its claim is held");
    check(!filter_passes(&guard, "high-logs"), "its claim is held, too");
    check(api_wait("POST", "/eviction", 1), "an eviction is sent");
    stop_within(&guard, 4000);
}

static void *call_bind(void *context)
{
    const struct guard *guard = context;
    struct response response;

    http_call(guard->port, "POST", "/bind", bind_body("high-data", "node-2"), &response);
    printf("bind: status %d: %s\n", response.status, response.body);
    response_free(&response);
    return NULL;
}

/* A bind under way, with the API server hanging. */
static void stop_in_a_bind(const char *config, const struct api_fault *fault)
{
    struct guard guard;
    pthread_t thread;

    put_claim("data");
    put_preemptor("data");
    guard_start(&guard, config);
    api_fault(fault);
    check(pthread_create(&thread, NULL, call_bind, &guard) == 0, "thread");
    check(api_wait(fault->method, fault->path, 1), "%s is sent", fault->path);
    stop_within(&guard, 10000);
    (void)pthread_join(thread, NULL);
}

static void sigterm_does_not_wait_for_a_binding_that_hangs(void)
{
    stop_in_a_bind("",
                   &(struct api_fault){.method = "POST", .path = "/binding", .ending = API_HANG});
}

static void sigterm_does_not_wait_for_a_lock_that_hangs(void)
{
    stop_in_a_bind("readWriteOncePod: {claimLock: Annotation}\n",
                   &(struct api_fault){.method = "PATCH",
                                       .path = "/persistentvolumeclaims/data",
                                       .ending = API_HANG});
}

enum { MANY = 150 };

struct one_of_many {
    const struct guard *guard;
    char pod[16];
};

static void *call_bind_of(void *context)
{
    const struct one_of_many *one = context;
    struct response response;

    http_call(one->guard->port, "POST", "/bind", bind_body(one->pod, "node-2"), &response);
    response_free(&response);
    return NULL;
}

/* More of them than claimguard takes at a time. */
static void sigterm_does_not_wait_for_many_bindings_that_hang(void)
{
    static struct one_of_many binds[MANY];
    pthread_t threads[MANY];
    struct guard guard;

    for (size_t i = 0; i < MANY; i++) {
        binds[i].guard = &guard;
        (void)snprintf(binds[i].pod, sizeof binds[i].pod, "pod-%zu", i);
        put_pod(&(struct test_pod){.name = binds[i].pod});
    }
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .ending = API_HANG});
    for (size_t i = 0; i < MANY; i++)
        check(pthread_create(&threads[i], NULL, call_bind_of, &binds[i]) == 0, "thread");
    check(api_wait("POST", "/binding", 16), "Bindings are sent");
    stop_within(&guard, 10000);
    for (size_t i = 0; i < MANY; i++)
        (void)pthread_join(threads[i], NULL);
}

static void *call_filter(void *context)
{
    const struct guard *guard = context;
    struct response response;

    http_call(guard->port, "POST", "/filter", filter_body("high-data"), &response);
    response_free(&response);
    return NULL;
}

static void sigterm_does_not_wait_for_a_confirmation_that_hangs(void)
{
    struct guard guard;
    pthread_t thread;

    start_with_a_preemptor(&guard, "");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/", .ending = API_HANG});
    check(pthread_create(&thread, NULL, call_filter, &guard) == 0, "thread");
    check(api_wait("GET", "/pods/low-data", 1), "the holder is asked about");
    stop_within(&guard, 10000);
    (void)pthread_join(thread, NULL);
}

static void sigterm_does_not_wait_for_the_openapi_document(void)
{
    struct guard guard;

    api_fault(&(struct api_fault){.method = "GET", .path = "/openapi", .ending = API_HANG});
    guard_launch(&guard, "deferFSMount: {apply: Auto, entries: [{storageClass: fast-storage, "
                         "runtimeClass: microvm, postMountConfig: {}}]}\n");
    check(api_wait("GET", "/openapi", 1), "it is asked for");
    stop_within(&guard, 10000);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(sigterm_does_not_wait_for_evictions),
        SCENARIO(sigterm_does_not_wait_for_a_binding_that_hangs),
        SCENARIO(sigterm_does_not_wait_for_a_lock_that_hangs),
        SCENARIO(sigterm_does_not_wait_for_many_bindings_that_hang),
        SCENARIO(sigterm_does_not_wait_for_a_confirmation_that_hangs),
        SCENARIO(sigterm_does_not_wait_for_the_openapi_document),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}

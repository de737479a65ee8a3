/* The informer and its requests in this process, in front of an API server that lies: order,
 * sharing, interruption, which transport.c cannot see from outside. */
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/client/http_client.h"
#include "cache/store/shares.h"
#include "cache/watch/informer.h"
#include "support/scenario.h"

enum { CALLERS_MAX = 64, NAMESPACES = 6 };

/* Of which no two have the same counter (shares.h: two of 1,024 may). */
static char namespaces[NAMESPACES][24] = {"default"};

static struct cluster cluster;
static struct resource_status status[KIND_COUNT];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct watchdog watchdog;

static void ignore(void *context, enum watch_change change, const struct object *object,
                   bool was_there)
{
    (void)context;
    (void)change;
    (void)object;
    (void)was_there;
}

/* Replaces the C library's function, for libcurl: a name server that does not answer. */
__attribute__((visibility("default"))) int getaddrinfo(const char *name, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **out)
{
    (void)name;
    (void)service;
    (void)hints;
    *out = NULL;
    sleep_ms(30000);
    return EAI_AGAIN;
}

static bool is_apart(int number)
{
    for (int i = 0; i < number; i++)
        if (share_of(slice_of(namespaces[i])) == share_of(slice_of(namespaces[number])))
            return false;
    return true;
}

static void name_namespaces(void)
{
    for (int i = 1, tried = 0; i < NAMESPACES; i++)
        do
            (void)snprintf(namespaces[i], sizeof namespaces[i], "other-%d", tried++);
        while (!is_apart(i));
}

static struct informer *start_with(const char *server)
{
    static struct kubeconfig kubeconfig;
    struct informer_target target = {.cluster = &cluster,
                                     .lock = &lock,
                                     .status = status,
                                     .watchdog = &watchdog,
                                     .changed = ignore};
    struct informer *informer = NULL;
    struct error err = {0};

    kubeconfig = (struct kubeconfig){.server = server};
    cluster_init(&cluster);
    check(http_client_global_init(&err) == 0 &&
              informer_start(&informer, &kubeconfig, &target, &err) == 0,
          "%s", err.message);
    return informer;
}

static struct informer *start(void)
{
    static char server[64];

    (void)snprintf(server, sizeof server, "http://127.0.0.1:%u", api_port());
    return start_with(server);
}

static void stop(struct informer *informer)
{
    int64_t started_ms = clock_ms();

    informer_stop(informer);
    check(clock_ms() - started_ms < 10000, "informer_stop took %lld ms",
          (long long)(clock_ms() - started_ms));
    cluster_dispose(&cluster);
    http_client_global_cleanup();
}

/* A caller, in its own thread. */
struct caller {
    struct requests *requests;
    pthread_t thread;
    const char *method, *path; /* NULL: the caller confirms that object */
    const char *ns;            /* whose share it is */
    struct object_reference object;
    int64_t timeout_ms;
    int rc;
    unsigned status;
    int64_t took_ms;
};

static void *call(void *context)
{
    struct caller *caller = context;
    struct request_answer answer = {0};
    struct error err = {0};
    struct arena arena;
    int64_t started_ms = clock_ms();

    arena_init(&arena, 1 << 20);
    if (caller->path == NULL)
        caller->rc =
            requests_confirm(caller->requests, &caller->object, 1, caller->timeout_ms, &err);
    else
        caller->rc = requests_call(caller->requests,
                                   &(struct request){.method = caller->method,
                                                     .path = caller->path,
                                                     .ns = slice_of(caller->ns),
                                                     .content_type = "application/merge-patch+json",
                                                     .body = SLICE("{}"),
                                                     .timeout_ms = caller->timeout_ms},
                                   &arena, &answer, &err);
    caller->status = answer.status;
    caller->took_ms = clock_ms() - started_ms;
    arena_dispose(&arena);
    return NULL;
}

static void begin_in(const char *ns, struct caller *caller, struct informer *informer,
                     const char *method, const char *path)
{
    *caller = (struct caller){informer_requests(informer), .method = method, .path = path, .ns = ns,
                              .timeout_ms = 60000};
    check(pthread_create(&caller->thread, NULL, call, caller) == 0, "thread");
}

static void begin(struct caller *caller, struct informer *informer, const char *method,
                  const char *path, int64_t timeout_ms)
{
    *caller = (struct caller){informer_requests(informer), .method = method, .path = path,
                              .ns = "default", .timeout_ms = timeout_ms};
    caller->object =
        (struct object_reference){KIND_POD, SLICE("default"), SLICE("shared"), SLICE("u")};
    check(pthread_create(&caller->thread, NULL, call, caller) == 0, "thread");
}

static void join(struct caller *callers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)pthread_join(callers[i].thread, NULL);
}

/* What one namespace may have of the calls of a class. */
enum {
    SHARE_MAX = HTTP_CALLS_AT_ONCE_MAX / 4 * HTTP_SHARE_PARTS,
    MESSAGES_SHARE_MAX = HTTP_MESSAGES_AT_ONCE_MAX / 4 * HTTP_SHARE_PARTS,
};

/* As many requests of that kind as possible are under way, and hang until api_let_go. */
static void fill(struct caller *callers, struct informer *informer, const char *method)
{
    enum { LAST = NAMESPACES - 2 }; /* of a call each */
    int others = HTTP_CALLS_AT_ONCE_MAX - SHARE_MAX - LAST;

    api_fault(&(struct api_fault){.path = "/pods/slow", .ending = API_HANG});
    for (int i = 0; i < HTTP_CALLS_AT_ONCE_MAX; i++) {
        begin_in(i < SHARE_MAX            ? namespaces[0]
                 : i < SHARE_MAX + others ? namespaces[1]
                                          : namespaces[2 + i - SHARE_MAX - others],
                 &callers[i], informer, method, "/api/v1/namespaces/default/pods/slow");
        if (i + 1 == SHARE_MAX || i + 1 == SHARE_MAX + others) /* who comes late has less */
            check(api_wait(method, "/pods/slow", (unsigned)i + 1), "those are under way");
    }
    check(api_wait(method, "/pods/slow", HTTP_CALLS_AT_ONCE_MAX), "all are under way");
}

static void empty(struct caller *callers)
{
    api_heal();
    api_let_go();
    join(callers, HTTP_CALLS_AT_ONCE_MAX);
    for (int i = 0; i < HTTP_CALLS_AT_ONCE_MAX; i++)
        check(callers[i].rc == 0 && (callers[i].status == 0 || callers[i].method[0] == 'G'),
              "what became of a write is unknown; a GET is sent again");
}

static void a_call_whose_turn_does_not_come_is_an_error_and_never_sent(void)
{
    struct caller callers[HTTP_CALLS_AT_ONCE_MAX], late;
    struct informer *informer = start();

    fill(callers, informer, "PATCH");
    begin(&late, informer, "PATCH", "/api/v1/namespaces/default/pods/late", 200);
    join(&late, 1);
    check(late.rc < 0, "it was not sent");
    empty(callers);
    begin(&late, informer, "PATCH", "/api/v1/namespaces/default/pods/next", 5000);
    join(&late, 1);
    check(late.rc == 0 && late.status == 404, "there is room again");
    check(api_count("PATCH", "/pods/late") == 0, "it was sent, and its caller did not know");
    stop(informer);
}

static void callers_that_ask_the_same_share_a_request(void)
{
    enum { SAME = 20 };
    struct caller callers[HTTP_CALLS_AT_ONCE_MAX], same[SAME];
    struct informer *informer = start();

    fill(callers, informer, "GET");
    for (size_t i = 0; i < SAME; i++)
        begin(&same[i], informer, NULL, NULL, 60000);
    sleep_ms(2000);
    empty(callers);
    join(same, SAME);
    for (size_t i = 0; i < SAME; i++)
        check(same[i].rc == 0, "each knows");
    check(api_count("GET", "/pods/shared") == 1, "%zu were sent", api_count("GET", "/pods/shared"));
    stop(informer);
}

static void a_request_without_callers_is_not_sent(void)
{
    struct caller callers[HTTP_CALLS_AT_ONCE_MAX], impatient;
    struct informer *informer = start();

    fill(callers, informer, "GET");
    begin(&impatient, informer, NULL, NULL, 100);
    join(&impatient, 1);
    check(impatient.rc < 0, "its time is over");
    empty(callers);
    sleep_ms(200);
    check(api_count("GET", "/pods/shared") == 0, "no caller needs the answer");
    stop(informer);
}

static void reads_and_writes_do_not_wait_for_each_other(void)
{
    struct caller callers[HTTP_CALLS_AT_ONCE_MAX], other;
    struct informer *informer = start();

    fill(callers, informer, "PATCH");
    begin(&other, informer, NULL, NULL, 5000);
    join(&other, 1);
    check(other.rc == 0, "it has an answer");
    empty(callers);
    fill(callers, informer, "GET");
    begin(&other, informer, "PATCH", "/api/v1/namespaces/default/pods/any", 5000);
    join(&other, 1);
    check(other.rc == 0 && other.status == 404, "it has an answer");
    empty(callers);
    stop(informer);
}

static bool send_event(struct informer *informer, const char *ns)
{
    return requests_send(informer_requests(informer),
                         &(struct request){.method = "POST",
                                           .path = "/api/v1/namespaces/default/events",
                                           .ns = slice_of(ns),
                                           .content_type = "application/json",
                                           .body = SLICE("{}")});
}

static void messages_and_calls_do_not_wait_for_each_other(void)
{
    struct informer *informer = start();
    struct caller caller;

    api_fault(&(struct api_fault){.method = "POST", .path = "/events", .ending = API_HANG});
    for (int i = 0; i < MESSAGES_MAX; i++) {
        bool is_queued = send_event(informer, "default");
        check(is_queued == (i < MESSAGES_MAX / 2), "message %d", i);
    }
    check(api_wait("POST", "/events", MESSAGES_SHARE_MAX), "some are under way");
    for (int i = 0; i < MESSAGES_MAX; i++)
        (void)send_event(informer, namespaces[1 + i % 2]);
    check(api_wait("POST", "/events", HTTP_MESSAGES_AT_ONCE_MAX), "some are under way");
    begin(&caller, informer, "PATCH", "/api/v1/namespaces/default/pods/any", 5000);
    join(&caller, 1);
    check(caller.rc == 0 && caller.status == 404, "it has an answer");
    check(api_count("POST", "/events") == HTTP_MESSAGES_AT_ONCE_MAX, "%zu at once",
          api_count("POST", "/events"));
    stop(informer);
}

/* One namespace asks for all that it can get, and nothing is answered. */
static void a_namespace_leaves_room_for_others(void)
{
    enum { GREEDY = 2 * HTTP_CALLS_AT_ONCE_MAX };
    static const char *const methods[] = {"GET", "PATCH"};
    static struct caller greedy[GREEDY];
    struct caller other;

    for (int i = 0; i < 2; i++) {
        struct informer *informer = start();
        api_fault(&(struct api_fault){.path = "/pods/slow", .ending = API_HANG});
        for (int j = 0; j < GREEDY; j++)
            begin(&greedy[j], informer, methods[i], "/api/v1/namespaces/default/pods/slow", 60000);
        check(api_wait(methods[i], "/pods/slow", SHARE_MAX), "some are under way");
        begin_in(namespaces[1], &other, informer, methods[i], "/api/v1/namespaces/other/pods/any");
        join(&other, 1);
        check(other.rc == 0 && other.status == 404 && other.took_ms < 5000, "it has its turn");
        check(api_count(methods[i], "/pods/slow") == SHARE_MAX, "and nobody has more than a share");
        requests_interrupt(informer_requests(informer));
        join(greedy, GREEDY);
        api_heal();
        api_let_go();
        stop(informer);
    }
}

static void everyone_who_waits_returns_when_interrupted(void)
{
    struct caller callers[HTTP_CALLS_AT_ONCE_MAX], waiting[2], later[2];
    struct informer *informer = start();

    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/shared", .ending = API_HANG});
    fill(callers, informer, "PATCH");
    begin(&waiting[0], informer, "PATCH", "/api/v1/namespaces/default/pods/late", 60000);
    begin(&waiting[1], informer, NULL, NULL, 60000);
    sleep_ms(100);
    requests_interrupt(informer_requests(informer));
    join(callers, HTTP_CALLS_AT_ONCE_MAX);
    join(waiting, 2);
    for (int i = 0; i < HTTP_CALLS_AT_ONCE_MAX; i++)
        check(callers[i].rc == 0 && callers[i].status == 0, "what became of it is unknown");
    begin(&later[0], informer, "PATCH", "/api/v1/namespaces/default/pods/late", 60000);
    begin(&later[1], informer, NULL, NULL, 60000);
    join(later, 2);
    for (int i = 0; i < 2; i++)
        check(waiting[i].rc == ERROR_UNAVAILABLE && later[i].rc == ERROR_UNAVAILABLE,
              "it was not sent");
    check(api_count("PATCH", "/pods/late") == 0, "it was sent");
    stop(informer);
}

static void an_answer_ends_the_silence(void)
{
    struct informer *informer = start();
    struct caller hanging, other;

    api_fault(&(struct api_fault){.path = "/pods/slow", .ending = API_HANG});
    check(!requests_are_silent(informer_requests(informer)), "nobody has asked");
    begin(&hanging, informer, "GET", "/api/v1/namespaces/default/pods/slow", 60000);
    AWAIT(requests_are_silent(informer_requests(informer)), "nobody is answered");
    begin(&other, informer, "GET", "/api/v1/namespaces/default/pods/any", 60000);
    join(&other, 1);
    AWAIT(!requests_are_silent(informer_requests(informer)), "somebody was answered");
    api_let_go();
    join(&hanging, 1);
    stop(informer);
}

static void a_name_that_is_being_looked_up_holds_nobody_up(void)
{
    struct informer *informer = start_with("http://api.example.test");
    struct caller caller;

    begin(&caller, informer, "PATCH", "/api/v1/namespaces/default/pods/any", 300);
    join(&caller, 1);
    check(caller.took_ms < 10000, "it took %lld ms", (long long)caller.took_ms);
    stop(informer);
}

static bool is_watched(const char *what)
{
    for (int i = 0; i < WATCHDOG_SLOTS; i++) {
        const char *now = atomic_load(&watchdog.slots[i].what);
        if (now != NULL && strcmp(now, what) == 0)
            return true;
    }
    return false;
}

static void a_watchdog_knows_what_the_thread_is_at(void)
{
    struct informer *informer = start();

    AWAIT(is_watched("informer"), "the thread says so");
    stop(informer);
}

/* Many callers at once: each call ends, and nothing is leaked or used after it is freed. */
static void many_callers_in_many_ways(void)
{
    static struct caller callers[CALLERS_MAX];
    struct informer *informer = start();

    api_fault(&(struct api_fault){.method = "PATCH", .path = "/pods/slow", .delay_ms = 30});
    api_fault(&(struct api_fault){.method = "PATCH", .path = "/pods/dies", .ending = API_CLOSE});
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/shared", .delay_ms = 10});
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < CALLERS_MAX; i++)
            begin(&callers[i], informer, "PATCH",
                  i % 4 == 0   ? "/api/v1/namespaces/default/pods/slow"
                  : i % 4 == 1 ? "/api/v1/namespaces/default/pods/dies"
                  : i % 4 == 2 ? "/api/v1/namespaces/default/pods/any"
                               : NULL,
                  5 + i);
        for (int i = 0; i < 20; i++)
            (void)send_event(informer, "default");
        if (round == 7)
            requests_interrupt(informer_requests(informer));
        join(callers, CALLERS_MAX);
        (void)requests_are_silent(informer_requests(informer));
    }
    stop(informer);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_call_whose_turn_does_not_come_is_an_error_and_never_sent),
        SCENARIO(callers_that_ask_the_same_share_a_request),
        SCENARIO(a_request_without_callers_is_not_sent),
        SCENARIO(reads_and_writes_do_not_wait_for_each_other),
        SCENARIO(messages_and_calls_do_not_wait_for_each_other),
        SCENARIO(a_namespace_leaves_room_for_others),
        SCENARIO(everyone_who_waits_returns_when_interrupted),
        SCENARIO(an_answer_ends_the_silence),
        SCENARIO(a_name_that_is_being_looked_up_holds_nobody_up),
        SCENARIO(a_watchdog_knows_what_the_thread_is_at),
        SCENARIO(many_callers_in_many_ways),
    };
    name_namespaces();
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}

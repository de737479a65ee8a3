/* What a tenant may create in one namespace neither ends claimguard nor stops the pods of others.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/objects/objects_internal.h"
#include "support/every_field.h"
#include "support/process.h"
#include "support/reviews.h"

/* ThreadSanitizer looks for races, which a tenth shows as well; ASan's run has the sizes that
 * count. */
#ifdef __SANITIZE_THREAD__
enum { MIB_MAX = 2000, LONG_CLAIMS = 20, LONG_OBJECTS = 2, ASKED = 5 };
#else
enum {
    MIB_MAX = 90,     /* more than before: claimguard has 256, and needs about 20 */
    LONG_CLAIMS = 80, /* of 1.4 MB: more than MIB_MAX; to be listed before 20 s of silence */
    LONG_OBJECTS = 6, /* of each kind */
    ASKED = 20,
};
#endif

static long memory_mib(const struct guard *guard)
{
    return daemon_memory_mib(&(struct daemon){.pid = guard->pid}, "VmHWM");
}

static char *text_of(size_t bytes)
{
    char *text = malloc(bytes + 1);

    memset(text, 'x', bytes);
    text[bytes] = '\0';
    return text;
}

/* A pod of another namespace is bound; under sanitizers not at once, since one thread reads what is
 * watched, and all answers. */
static void expect_others_served(const struct guard *guard, const char *pod)
{
    AWAIT(node_of(pod)[0] != '\0' ||
              (filter_passes(guard, pod) && bind_succeeds(guard, pod, "node-1")),
          "it is bound");
}

static void expect_little_more(const struct guard *guard, long before)
{
    check(memory_mib(guard) - before < MIB_MAX, "%ld MiB more", memory_mib(guard) - before);
}

/* What `put` puts into namespace greedy takes little memory, and stops no pod of another: when it
 * is watched (`has_come`), and again when all of it is listed, and asked for. */
static void expect_little_memory_for(void (*put)(void), bool (*has_come)(const struct guard *guard))
{
    struct guard guard;

    process_keep_sanitizer_small();
    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    put_pod(&(struct test_pod){.name = "c"});
    guard_start(&guard, "");
    long before = memory_mib(&guard);
    put();
    AWAIT(has_come(&guard), "it is watched");
    expect_others_served(&guard, "b");
    expect_little_more(&guard, before);
    guard_stop(&guard);
    guard_start(&guard, "");
    expect_others_served(&guard, "c");
    free(guard_get(&guard, "/debug/snapshot", NULL));
    expect_little_more(&guard, before);
    guard_stop(&guard);
}

/* ---- long texts ---- */

enum { VOLUME_NAME_BYTES = 1400000, TEXT_BYTES = 300000 };

static void put_long_claims(void)
{
    char *name = text_of(VOLUME_NAME_BYTES);

    for (int i = 0; i < LONG_CLAIMS; i++) {
        (void)snprintf(name, 16, "volume-%08d", i);
        name[15] = 'x';
        api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"greedy\","
                "\"name\":\"c-%d\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],"
                "\"volumeName\":\"%s\"}}",
                i, name);
    }
    free(name);
}

static bool long_claims_are_watched(const struct guard *guard)
{
    return guard_metric(guard, "claimguard_cache_objects{resource=\"persistentvolumeclaims\"}") ==
           LONG_CLAIMS + 1;
}

static void claims_with_long_volume_names_end_nothing(void)
{
    expect_little_memory_for(put_long_claims, long_claims_are_watched);
}

/* An object of the kind with such a text in each field that claimguard reads. */
static void put_every_field(enum kind kind, int number, const char *text)
{
    static const char *const own[] = {"uid", "resourceVersion", "deletionTimestamp",
                                      "ownerReferences"};
    json_t *object = every_field(object_tables(kind)->core, text);
    json_t *meta = json_object_get(object, "metadata");

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        (void)json_object_del(meta, own[i]);
    (void)json_object_set_new(meta, "name", json_string(scenario_printf("o-%d", number)));
    (void)json_object_set_new(object, "kind", json_string(kind_text(kind)));
    if (kind_is_namespaced(kind))
        (void)json_object_set_new(meta, "namespace", json_string("greedy"));
    else
        (void)json_object_del(meta, "namespace");
    char *json = json_dumps(object, JSON_COMPACT);
    api_put("%s", json);
    free(json);
    json_decref(object);
}

static void put_long_texts(void)
{
    char *text = text_of(TEXT_BYTES);

    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        for (int i = 0; i < LONG_OBJECTS; i++) {
            text[0] = (char)('a' + i);
            put_every_field((enum kind)kind, i, text);
        }
    free(text);
}

static bool long_budgets_are_watched(const struct guard *guard)
{
    return guard_metric(guard, "claimguard_cache_objects{resource=\"poddisruptionbudgets\"}") ==
           LONG_OBJECTS;
}

static void long_texts_in_all_fields_end_nothing(void)
{
    expect_little_memory_for(put_long_texts, long_budgets_are_watched);
}

/* ---- a namespace that takes too much ---- */

enum { PODS = 120, PODS_CLAIMS = 500 }; /* of each pod; more than the namespace may have */

static void put_greedy_pods(void)
{
    for (int i = 0; i < PODS; i++) {
        struct buf volumes;
        buf_init(&volumes, 1 << 20);
        for (int j = 0; j < PODS_CLAIMS; j++)
            buf_printf(&volumes,
                       "%s{\"name\":\"v-%d\",\"persistentVolumeClaim\":{\"claimName\":"
                       "\"a-claim-that-does-not-exist-%0200d-%d\"}}",
                       j == 0 ? "" : ",", j, i, j);
        api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"greedy\",\"name\":\"p-%d\"},"
                "\"spec\":{\"nodeName\":\"node-1\",\"volumes\":[%s]}}",
                i, buf_text(&volumes));
        buf_dispose(&volumes);
    }
}

static void put_in_greedy(const char *name, const char *claim)
{
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"greedy\",\"name\":"
            "\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}",
            claim);
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"greedy\",\"name\":\"%s\"},\"spec\":{"
            "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}]}}",
            name, claim);
}

static const char *admit_in_greedy(const struct guard *guard, const char *pod)
{
    return admit(guard, &(struct test_review){.ns = "greedy", .pod = pod, .node = "node-1"});
}

static bool one_is_given_up(const struct guard *guard)
{
    return guard_metric(guard, "claimguard_namespaces_given_up ") == 1;
}

/* Takes more than a minute. */
static void a_namespace_that_takes_too_much_is_given_up_until_it_takes_less(void)
{
    static const char refused[] = "denied: 409 the pods, claims and PodDisruptionBudgets of "
                                  "namespace greedy take too much memory";
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    put_in_greedy("g", "data");
    admission_start(&guard, "");
    put_greedy_pods();
    AWAIT(one_is_given_up(&guard), "a metric says so");
    AWAIT(guard_logs(&guard, "namespaces=greedy"), "and the log, which one");
    check(starts_with(admit_in_greedy(&guard, "g"), refused), "nobody knows who has its claim");
    check(guard_page_has(&guard, "/statusz", "namespaces given up      1: greedy\n"),
          "a page, too");
    expect_others_served(&guard, "b");
    for (int i = 0; i < PODS; i++)
        api_remove("pods", "greedy", scenario_printf("p-%d", i));
    check(starts_with(admit_in_greedy(&guard, "g"), refused), "it was not read again yet");
    sleep_ms(71000); /* a Binding that was under way has an end */
    api_compact();   /* new lists are needed */
    api_cut("pods");
    api_cut("persistentvolumeclaims");
    api_cut("poddisruptionbudgets");
    AWAIT(guard_metric(&guard, "claimguard_namespaces_given_up ") == 0, "it is read again");
    check(strcmp(admit_in_greedy(&guard, "g"), "allowed") == 0, "and takes less");
    guard_stop(&guard);
}

enum { PENDING_PODS = 150, EACH = 500, MANY_LABELS = 100 };

/* No scheduler knows them. */
static void put_pending_pods(void)
{
    for (int i = 0; i < PENDING_PODS; i++) {
        struct buf text;
        buf_init(&text, 4 << 20);
        buf_printf(&text,
                   "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"greedy\",\"name\":\"p-%d\","
                   "\"labels\":{\"a\":\"a\"",
                   i);
        for (int j = 0; j < MANY_LABELS; j++)
            buf_printf(&text, ",\"%063d\":\"%063d\"", i * MANY_LABELS + j, j);
        buf_printf(&text, "}},\"spec\":{\"schedulerName\":\"nobody\",\"volumes\":[");
        for (int j = 0; j < EACH; j++)
            buf_printf(
                &text,
                "%s{\"name\":\"c-%d\",\"persistentVolumeClaim\":{\"claimName\":\"%0250d\"}},"
                "{\"name\":\"i-%d\",\"csi\":{\"driver\":\"d.example.com\",\"fsType\":\"%0250d\"}}",
                j == 0 ? "" : ",", j, i * EACH + j, j, j);
        buf_printf(&text, "]}}");
        api_put("%s", buf_text(&text));
        buf_dispose(&text);
    }
}

static void pending_pods_of_many_volumes_fill_no_memory(void)
{
    expect_little_memory_for(put_pending_pods, one_is_given_up);
}

/* ---- a namespace whose objects are slow to read ---- */

enum { CALLERS = 64, CALLS = 15, SLOW_MS = 900 }; /* a rejection waits for a second */

static struct greedy {
    pthread_t thread;
    const struct guard *guard;
    const char *body;
    atomic_bool *is_over;
} greedy[CALLERS];

static void *ask_again_and_again(void *context)
{
    const struct greedy *caller = context;

    while (!atomic_load(caller->is_over))
        free(guard_call(caller->guard, "/filter", caller->body));
    return NULL;
}

/* Each of its pods waits for a claim of its own that another one has. */
static void put_greedy_pairs(void)
{
    for (int i = 0; i < CALLERS; i++) {
        const char *claim = scenario_printf("c-%d", i), *waits = scenario_printf("waits-%d", i);
        put_in_greedy(waits, claim);
        api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"greedy\",\"name\":\"holds-%d\"},"
                "\"spec\":{\"nodeName\":\"node-1\",\"volumes\":[{\"name\":\"v\","
                "\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}]}}",
                i, claim);
        greedy[i].body = scenario_printf("{\"Pod\":%s,\"NodeNames\":[\"node-1\"]}",
                                         api_object("pods", "greedy", waits));
    }
}

/* All of them ask at once, for as long as `meanwhile` takes. */
static void ask_greedily(const struct guard *guard, void (*meanwhile)(const struct guard *guard))
{
    atomic_bool is_over = false;

    for (int i = 0; i < CALLERS; i++) {
        greedy[i].guard = guard;
        greedy[i].is_over = &is_over;
        check(pthread_create(&greedy[i].thread, NULL, ask_again_and_again, &greedy[i]) == 0,
              "thread");
    }
    check(api_wait("GET", "/pods/holds-", ASKED), "as many are asked about as may be");
    meanwhile(guard);
    atomic_store(&is_over, true);
    for (int i = 0; i < CALLERS; i++)
        (void)pthread_join(greedy[i].thread, NULL);
}

static void expect_confirmations(const struct guard *guard)
{
    for (int i = 0; i < CALLS; i++)
        check(!filter_passes(guard, "b"), "a has its claim");
    check(api_count("GET", "/default/pods/a") == CALLS, "of %d rejections, %zu are confirmed",
          CALLS, api_count("GET", "/default/pods/a"));
    check(bind_succeeds(guard, "c", "node-1"), "and its pods are bound");
}

static void a_namespace_that_is_slow_to_read_keeps_no_other_waiting(void)
{
    struct guard guard;

    put_pair("node-1");
    put_pod(&(struct test_pod){.name = "c"});
    put_greedy_pairs();
    guard_start(&guard, "");
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/namespaces/greedy/pods/holds-", .delay_ms = SLOW_MS});
    ask_greedily(&guard, expect_confirmations);
    guard_stop(&guard);
}

enum { ANSWER_BYTES = 8 << 20 };

static long before_mib;

static void expect_little_memory(const struct guard *guard)
{
    sleep_ms(3000);
    expect_others_served(guard, "c");
    expect_little_more(guard, before_mib);
}

/* An object of 1.5 MB has up to six times as many bytes in JSON. */
static void answers_of_megabytes_fill_no_memory(void)
{
    const char *text = scenario_printf("%*s", ANSWER_BYTES, "");
    struct guard guard;

    process_keep_sanitizer_small();
    put_pod(&(struct test_pod){.name = "c"});
    put_greedy_pairs();
    guard_start(&guard, "");
    before_mib = memory_mib(&guard);
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/namespaces/greedy/pods/holds-", .status = 200, .answer = text});
    ask_greedily(&guard, expect_little_memory);
    guard_stop(&guard);
}

/* ---- a tenant with several namespaces ---- */

enum { NAMESPACES = 4, WINDOW_S = 12 /* three of claimguard's windows */, BINDS_OF_EACH = 30 };

static const char *put_rejected_in(const char *ns)
{
    static const char volumes[] = "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{"
                                  "\"claimName\":\"c\"}}]";

    api_put(
        "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"c\"},"
        "\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}",
        ns);
    api_put(
        "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"waits\"},\"spec\":{%s}}",
        ns, volumes);
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"holds\"},\"spec\":{"
            "\"nodeName\":\"node-1\",%s}}",
            ns, volumes);
    return scenario_printf("{\"Pod\":%s,\"NodeNames\":[\"node-1\"]}",
                           api_object("pods", ns, "waits"));
}

/* One scheduler: a pod of the tenant's, then one of another's. */
static void several_namespaces_leave_time_of_the_scheduler_to_others(void)
{
    const char *bodies[NAMESPACES];
    struct guard guard;
    int64_t elapsed_ms = 0, waited_ms = 0;
    int calls = 0;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    for (int i = 0; i < NAMESPACES; i++)
        bodies[i] = put_rejected_in(scenario_printf("greedy-%d", i));
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/holds", .delay_ms = SLOW_MS});
    for (int64_t began_ms = clock_ms(); elapsed_ms < WINDOW_S * 1000; calls++) {
        int64_t before_ms = clock_ms();
        free(guard_call(&guard, "/filter", bodies[calls % NAMESPACES]));
        int64_t between_ms = clock_ms();
        check(filter_passes(&guard, "b"), "it passes");
        int64_t after_ms = clock_ms();
        /* the machine may be slow: then both calls are */
        int64_t longer_ms = (between_ms - before_ms) - (after_ms - between_ms);
        waited_ms += longer_ms > 0 ? longer_ms : 0;
        elapsed_ms = after_ms - began_ms;
    }
    check(waited_ms < elapsed_ms * 17 / 20, "of %lld ms, it waited %lld for the tenant's pods",
          (long long)elapsed_ms, (long long)waited_ms);
    guard_stop(&guard);
}

static struct tenants_bind {
    pthread_t thread;
    const struct guard *guard;
    const char *body;
} tenants_binds[2][BINDS_OF_EACH];

static void *call_bind(void *context)
{
    const struct tenants_bind *bind = context;

    free(guard_call(bind->guard, "/bind", bind->body));
    return NULL;
}

static void begin_binds(const struct guard *guard, const char *ns, struct tenants_bind *binds)
{
    for (int i = 0; i < BINDS_OF_EACH; i++) {
        const char *name = scenario_printf("p-%d", i);
        api_put(
            "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\"},\"spec\":{}}",
            ns, name);
        binds[i] = (struct tenants_bind){
            .guard = guard,
            .body = scenario_printf("{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":\"%s\","
                                    "\"Node\":\"node-1\"}",
                                    name, ns, api_text("pods", ns, name, "metadata.uid"))};
        check(pthread_create(&binds[i].thread, NULL, call_bind, &binds[i]) == 0, "thread");
    }
}

static void the_binds_of_two_namespaces_leave_room_for_another(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    guard_start(&guard, "");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/namespaces/greedy", .delay_ms = 3 * SLOW_MS});
    for (int i = 0; i < 2; i++)
        begin_binds(&guard, scenario_printf("greedy-%d", i), tenants_binds[i]);
    sleep_ms(500);
    check(bind_succeeds(&guard, "b", "node-1"), "with two namespaces full of slow binds");
    for (int i = 0; i < 2 * BINDS_OF_EACH; i++)
        (void)pthread_join(tenants_binds[i / BINDS_OF_EACH][i % BINDS_OF_EACH].thread, NULL);
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(claims_with_long_volume_names_end_nothing),
        SCENARIO(long_texts_in_all_fields_end_nothing),
        SCENARIO(pending_pods_of_many_volumes_fill_no_memory),
        SCENARIO(answers_of_megabytes_fill_no_memory),
        SCENARIO(a_namespace_that_is_slow_to_read_keeps_no_other_waiting),
        SCENARIO(several_namespaces_leave_time_of_the_scheduler_to_others),
        SCENARIO(the_binds_of_two_namespaces_leave_room_for_another),
        SCENARIO(a_namespace_that_takes_too_much_is_given_up_until_it_takes_less),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}

/* Reviews of what is over a limit: pods that are too big to be judged, and reviews that wait. */
#include <stdlib.h>
#include <string.h>

#include "config/base/buf.h"
#include "support/process.h"
#include "support/reviews.h"

/* Volumes that name the claim data, and more of them than a pod may. Ownership: for the process. */
static const char *many_volumes(size_t more)
{
    struct buf buf;

    buf_init(&buf, 32 << 20);
    buf_put(&buf, SLICE(",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
                        "\"data\"}}"));
    for (size_t i = 0; i < more; i++)
        buf_printf(&buf, ",{\"name\":\"v-%zu\",\"persistentVolumeClaim\":{\"claimName\":\"%zu\"}}",
                   i, i);
    buf_put(&buf, SLICE("]"));
    const char *text = scenario_printf("%.*s", SLICE_ARG(buf_slice(&buf)));
    buf_dispose(&buf);
    return text;
}

/* With failurePolicy: Ignore, a review that fails lets it through, with claim data. */
static void a_pod_that_is_too_big_to_be_judged_is_denied(void)
{
    char name[300] = "";
    struct guard guard;

    memset(name, 'x', sizeof name - 1);
    const struct test_creation many = {
        .pod = {.name = "m", .node = "node-1", .more_spec = many_volumes(512)}};
    const struct test_creation pending = {.pod = {.name = "m", .more_spec = many_volumes(512)}};
    const struct test_creation longer = {
        .pod = {.name = "l", .claim = "data", .second_claim = name, .node = "node-1"}};
    put_claim("data");
    admission_start(&guard, "");
    const char *answer = admit_creation(&guard, &many);
    check(starts_with(answer, "denied: 409 claimguard cannot judge this pod: ") &&
              strstr(answer, "a pod with over 512 claims") != NULL,
          "it may name any claim");
    answer = admit_creation(&guard, &longer);
    check(starts_with(answer, "denied: 409 persistentvolumeclaim \"text-of-299-bytes/") &&
              strstr(answer, "\" not found") != NULL,
          "an API server takes such a name, and no claim has it: %s", answer);
    check(
        starts_with(admit_creation(&guard, &pending), "allowed; claimguard cannot judge this pod"),
        "it is not bound yet");
    create(&pending);
    answer = admit(&guard, &(struct test_review){.pod = "m", .node = "node-1"});
    check(starts_with(answer, "denied: 409 ") &&
              strstr(answer, "a pod with over 512 claims") != NULL,
          "its Binding is denied: %s", answer);
    guard_stop(&guard);
}

/* So many volumes do not fit the memory of one request: it may name a node behind them. */
static void a_pod_that_cannot_be_read_is_not_allowed(void)
{
    struct guard guard;

    admission_start(&guard, "");
    const char *answer = admit_creation(
        &guard, &(struct test_creation){.pod = {.name = "m", .more_spec = many_volumes(150000)}});
    check(strcmp(answer, "failed: 500 {\"error\":\"other requests take too much memory\"}") == 0,
          "nobody knows what it names: %s", answer);
    guard_stop(&guard);
}

/* ---- reviews that wait ---- */

enum { OF_FIRST = 128, OF_NEXT = 40 /* until an eighth is left */ };

static void put_vm(const char *ns, int i)
{
    api_put("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-%s-%d\"},\"spec\":{"
            "\"claimRef\":{\"namespace\":\"%s\",\"name\":\"claim-%d\"},\"csi\":{\"driver\":"
            "\"plugin1.example.com\"}}}",
            ns, i, ns, i);
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"%s\",\"name\":"
            "\"claim-%d\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],\"storageClassName\":"
            "\"fast-storage\",\"volumeName\":\"pv-%s-%d\"},\"status\":{\"phase\":\"Bound\"}}",
            ns, i, ns, i);
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"vm-%d\"},\"spec\":{"
            "\"runtimeClassName\":\"microvm\",\"volumes\":[{\"name\":\"v\","
            "\"persistentVolumeClaim\":{\"claimName\":\"claim-%d\"}}]},\"status\":{\"phase\":"
            "\"Pending\"}}",
            ns, i, i);
}

static double waiting_now(const struct guard *guard)
{
    return guard_metric(guard, "claimguard_admission_reviews_waiting ");
}

/* The connections are there before: a review waits for 9 s only, in which all of them have to
 * begin. */
static void wait_in(const char *ns, const struct guard *guard, struct review_beside *waiting,
                    int count)
{
    double before = waiting_now(guard);
    void *connections[OF_FIRST];

    for (int i = 0; i < count; i++)
        connections[i] = review_connect(guard);
    int64_t begun = clock_ms();
    for (int i = 0; i < count; i++)
        review_begin(&waiting[i], guard,
                     (struct test_review){.ns = ns,
                                          .pod = scenario_printf("vm-%d", i),
                                          .node = "node-1",
                                          .connection = connections[i]});
    while (waiting_now(guard) < before + count && clock_ms() - begun < 8000)
        sleep_ms(10);
    check(waiting_now(guard) == before + count, "%d reviews wait", count);
}

static const char *admit_in(const char *ns, const char *pod, const struct guard *guard)
{
    return admit(guard, &(struct test_review){.ns = ns, .pod = pod, .node = "node-1"});
}

/* All wait for a PATCH that is not answered. */
static void reviews_that_wait_do_not_pile_up(void)
{
    static const char refused[] =
        "failed: 500 {\"error\":\"over 192 reviews wait for the API server, "
        "or as many as the namespace may have\"}";
    static const char *const namespaces[] = {"default", "other"};
    static struct review_beside waiting[OF_FIRST + OF_NEXT + 1];
    struct guard guard;

    put_claim("free");
    put_pod(&(struct test_pod){.name = "plain", .claim = "free"});
    for (int i = 0; i < 2 * (OF_FIRST + 1); i++)
        put_vm(namespaces[i % 2], i / 2);
    put_vm("third", 0);
    admission_start(&guard, "deferFSMount:\n  apply: Annotation\n  entries:\n"
                            "  - {storageClass: fast-storage, runtimeClass: microvm}\n");
    api_fault(&(struct api_fault){.method = "PATCH", .path = "/pods/", .ending = API_HANG});
    wait_in("default", &guard, waiting, OF_FIRST);
    check(starts_with(admit_in("default", "vm-128", &guard), refused),
          "the namespace has its share");
    check(is_admitted(&guard, "plain", "node-1"), "what needs no answer is allowed");
    wait_in("other", &guard, waiting + OF_FIRST, OF_NEXT);
    int64_t begun = clock_ms();
    check(starts_with(admit_in("other", "vm-40", &guard), refused), "so has the next one");
    check(clock_ms() - begun < 4000, "at once: %lld ms", (long long)(clock_ms() - begun));
    wait_in("third", &guard, waiting + OF_FIRST + OF_NEXT, 1);
    for (int i = 0; i < OF_FIRST + OF_NEXT + 1; i++) {
        const char *answer = review_end(&waiting[i]);
        check(starts_with(answer, "failed: 500 "), "none is allowed");
        check(strcmp(answer, refused) != 0, "and something is left for one more: %s", answer);
    }
    guard_stop(&guard);
}

/* ---- answers ---- */

/* TSan, which remembers who has used each byte, takes several times as much: there it looks for
 * races only. */
#ifdef __SANITIZE_THREAD__
enum { MIB_MAX = 1000 };
#else
enum { MIB_MAX = 55 };
#endif
enum { CLAIMS = 16, CLAIM_BYTES = 1 << 20, PODS = 12 };

/* Claims that are large only where they are read one by one. Volumes that name them. */
static const char *put_large_claims(void)
{
    char *text = calloc(1, CLAIM_BYTES);
    const char *volumes = ",\"volumes\":[";

    memset(text, 'x', CLAIM_BYTES - 1);
    for (int i = 0; i < CLAIMS; i++) {
        const char *name = scenario_printf("large-%d", i), *path = scenario_printf("/%s", name);
        api_put(
            "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteMany\"]}}",
            name);
        const char *answer = scenario_printf(
            "{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":"
            "\"default\",\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"1000\","
            "\"annotations\":{"
            "\"a\":\"%s\"}},\"spec\":{\"accessModes\":[\"ReadWriteMany\"]}}",
            name, api_text("persistentvolumeclaims", "default", name, "metadata.uid"), text);
        api_fault(
            &(struct api_fault){.method = "GET", .path = path, .status = 200, .answer = answer});
        volumes = scenario_printf(
            "%s%s{\"name\":\"v-%d\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}", volumes,
            i == 0 ? "" : ",", i, name);
    }
    free(text);
    return scenario_printf("%s]", volumes);
}

/* Each review asks about all claims, and waits for the answer about the last one. */
static void answers_to_reviews_that_wait_take_no_memory(void)
{
    static struct review_beside waiting[PODS];
    struct guard guard;

    process_keep_sanitizer_small();
    const char *volumes = put_large_claims();
    for (int i = 0; i < PODS; i++)
        put_pod(&(struct test_pod){.name = scenario_printf("p-%d", i), .more_spec = volumes});
    admission_start(&guard, "readWriteOncePod: {claimLock: Annotation}\n");
    long before = daemon_memory_mib(&(struct daemon){.pid = guard.pid}, "VmHWM");
    api_fault(&(struct api_fault){.method = "GET", .path = "/large-15", .ending = API_HANG});
    for (int i = 0; i < PODS; i++) {
        review_begin(&waiting[i], &guard,
                     (struct test_review){.pod = scenario_printf("p-%d", i), .node = "node-1"});
        sleep_ms(30); /* callers share no GET that was sent before they came */
    }
    for (int i = 0; i < PODS; i++)
        check(starts_with(review_end(&waiting[i]), "failed: 500 "), "none is allowed");
    long more = daemon_memory_mib(&(struct daemon){.pid = guard.pid}, "VmHWM") - before;
    check(more < MIB_MAX, "%ld MiB more than before, %zu GETs", more, api_count("GET", "/large-"));
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_pod_that_is_too_big_to_be_judged_is_denied),
        SCENARIO(a_pod_that_cannot_be_read_is_not_allowed),
        SCENARIO(reviews_that_wait_do_not_pile_up),
        SCENARIO(answers_to_reviews_that_wait_take_no_memory),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}

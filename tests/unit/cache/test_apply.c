/* The answer to a GET, if another object has the name by now. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "cache/watch/apply.h"
#include "support/load.h"

#define FIRST  "10000000-0000-4000-8000-000000000001"
#define SECOND "10000000-0000-4000-8000-000000000002"

static struct cluster cluster;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void setup(void)
{
    cluster_init(&cluster);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(successor, .init = setup, .fini = teardown);

struct text {
    char bytes[256];
};

static struct text text_of(const char *kind, const char *uid, const char *version)
{
    struct text out;

    (void)snprintf(out.bytes, sizeof out.bytes,
                   "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"web\","
                   "\"namespace\":\"default\",\"uid\":\"%s\",\"resourceVersion\":\"%s\"},\"spec\":{"
                   "}}",
                   kind, uid, version);
    return out;
}

/* The cache has the first object at version 100; the answer about it is the second one. */
static int learn(enum kind kind, const char *name, const char *version)
{
    const struct informer_target target = {.cluster = &cluster, .lock = &lock};
    const struct object_reference first = {kind, SLICE("default"), SLICE("web"), SLICE(FIRST)};
    struct error err = {0};

    load_text(&cluster, text_of(name, FIRST, "100").bytes);
    return apply_object(&target, &first, slice_of(text_of(name, SECOND, version).bytes), 100, 1,
                        &err);
}

Test(successor, of_a_pod_that_is_older_than_the_cache_proves_nothing)
{
    cr_expect_eq(learn(KIND_POD, "Pod", "50"), ERROR_UNAVAILABLE);
    cr_expect_eq(learn(KIND_POD, "Pod", "200"), 0, "it is newer");
}

Test(successor, of_a_claim_that_is_older_than_the_cache_proves_nothing)
{
    cr_expect_eq(learn(KIND_CLAIM, "PersistentVolumeClaim", "50"), ERROR_UNAVAILABLE);
    cr_expect_eq(learn(KIND_CLAIM, "PersistentVolumeClaim", "200"), 0, "it is newer");
}

/* Claims that are not ReadWriteOncePod: which pod has one for itself since its runtime mounts it.
 */
#include "cache/cluster/reservation.h"
#include "policy/exclusive.h"
#include "unit/policy/defer_volume.h"

struct sharing_row {
    const char *entries;
    const char *holder; /* its runtime class, and whether it is deferred: "microvm", "microvm!" */
    const char *pod;    /* the runtime class; empty: none */
    enum verdict_code code;
    const char *reason;
    const char *mode; /* of the claim; NULL: ReadWriteOnce */
    bool is_locked;   /* claimLock: Annotation */
    bool is_agreed;   /* another replica locks all claims of the class */
};

#define EXCLUSIVE ENTRY_BEGIN ", nonExclusiveClaims: Exclusive}"
#define ALLOW     ENTRY_BEGIN ", nonExclusiveClaims: Allow}"
#define REFUSE    ENTRY_BEGIN "}"

static void load_holder(struct cluster *cluster, const char *holder)
{
    char text[1024];
    size_t length = strcspn(holder, "!");

    if (holder[0] == '\0')
        return;
    (void)snprintf(
        text, sizeof text,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"db-0\",\"uid\":\"h\"%s},"
        "\"spec\":{\"nodeName\":\"node-2\",\"runtimeClassName\":\"%.*s\",\"volumes\":[{\"name\":\"v"
        "\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}",
        holder[length] == '!' ? ",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"v\"}" : "",
        (int)length, holder);
    load_text(cluster, text);
}

static void check_sharing(const struct sharing_row *row)
{
    struct config *config = load_config("Auto", row->entries);
    char claim[256], runtime[64] = "", text[4096];
    struct cluster cluster;
    struct verdict verdict;
    struct arena arena;

    if (row->is_locked)
        config->read_write_once_pod.claim_lock = CLAIM_LOCK_ANNOTATION;
    (void)snprintf(claim, sizeof claim, CLAIM("%s", ""), or_else(row->mode, "ReadWriteOnce"));
    if (row->pod[0] != '\0')
        (void)snprintf(runtime, sizeof runtime, ",\"runtimeClassName\":\"%s\"", row->pod);
    struct row pod_row = {.claim = claim, .pod = runtime};
    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    load_volume(&cluster, &pod_row);
    load_holder(&cluster, row->holder);
    struct pod_object pod = read_pod(&pod_row, &arena, text, sizeof text);
    const struct agreed_class agreed = {.name = SLICE("fast-storage")};
    const struct agreed_classes classes = {&agreed, row->is_agreed};
    struct view view = {.cluster = &cluster, .config = config, .agreed = &classes};
    policy_prefilter(&view, &pod, &arena, &verdict);
    cr_expect_str_eq(code_text(verdict.code), code_text(row->code));
    if (row->reason != NULL) {
        cr_assert_eq(verdict.reason_count, 1);
        cr_expect(slice_equal(verdict.reasons[0], slice_of(row->reason)), "%.*s",
                  SLICE_ARG(verdict.reasons[0]));
    }
    arena_dispose(&arena);
    cluster_dispose(&cluster);
    config_free(config);
}

#define SHARING(name, entries_, holder_, pod_, code_, ...) \
    Test(non_exclusive_claims, name) \
    { \
        check_sharing(&(struct sharing_row){.entries = (entries_), \
                                            .holder = (holder_), \
                                            .pod = (pod_), \
                                            .code = (code_), \
                                            __VA_ARGS__}); \
    }

#define IN_USE "claim default/data is in use by pod default/db-0 on node-2"

SHARING(exclusive_a_pod_that_would_be_deferred_needs_it_for_itself, EXCLUSIVE, "", "microvm",
        CODE_SUCCESS, .reason = NULL)
SHARING(exclusive_another_pod_shares_it, EXCLUSIVE, "", "runc", CODE_SKIP, .reason = NULL)
SHARING(exclusive_two_pods_of_the_node_share_it, EXCLUSIVE, "runc", "", CODE_SKIP, .reason = NULL)
SHARING(exclusive_a_deferred_holder_is_in_the_way_of_everyone, EXCLUSIVE, "microvm!", "",
        CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
        .reason = IN_USE ", whose container runtime mounts it (deferFSMount)")
SHARING(exclusive_a_deferred_holder_is_in_the_way_of_its_like, EXCLUSIVE, "microvm!", "microvm",
        CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
        .reason = IN_USE ", whose container runtime mounts it (deferFSMount)")
SHARING(exclusive_any_holder_is_in_the_way_of_one_that_would_be_deferred, EXCLUSIVE, "runc",
        "microvm", CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
        .reason = IN_USE ", and this pod's container runtime would mount it (deferFSMount)")
SHARING(exclusive_with_read_write_many, EXCLUSIVE, "microvm!", "",
        CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
        .reason = IN_USE ", whose container runtime mounts it (deferFSMount)",
        .mode = "ReadWriteMany")
SHARING(refuse_nobody_is_deferred_so_they_share_it, REFUSE, "microvm", "microvm", CODE_SKIP,
        .reason = NULL)
SHARING(refuse_one_that_was_deferred_before_is_in_the_way, REFUSE, "microvm!", "",
        CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
        .reason = IN_USE ", whose container runtime mounts it (deferFSMount)")
SHARING(allow_deferred_pods_share_it, ALLOW, "microvm!", "microvm", CODE_SKIP, .reason = NULL)
SHARING(allow_a_deferred_pod_shares_it_with_any, ALLOW, "microvm!", "runc", CODE_SKIP,
        .reason = NULL)
SHARING(without_an_entry_a_deferred_holder_is_in_the_way, "", "microvm!", "",
        CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
        .reason = IN_USE ", whose container runtime mounts it (deferFSMount)")
SHARING(read_write_once_pod_says_no_more_than_that, EXCLUSIVE, "microvm!", "",
        CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, .reason = IN_USE, .mode = "ReadWriteOncePod")
SHARING(with_the_annotation_lock_nobody_shares_what_could_be_deferred_alone, EXCLUSIVE, "runc", "",
        CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, .is_locked = true)
SHARING(with_the_annotation_lock_others_share, ALLOW, "runc", "", CODE_SKIP, .is_locked = true)
SHARING(nobody_shares_what_another_replica_could_defer_alone, "", "runc", "",
        CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, .is_locked = true, .is_agreed = true)
SHARING(nobody_shares_it_though_it_is_allowed_here, ALLOW, "microvm!", "microvm",
        CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, .is_locked = true, .is_agreed = true)
SHARING(one_claimguard_alone_needs_no_such_lock, "", "runc", "", CODE_SKIP, .is_agreed = true)

/* A claim that is not bound yet may come to be deferred: it is for the first that passes. */
Test(non_exclusive_claims, exclusive_an_unbound_claim_is_taken_by_one_pod)
{
    struct config *config = load_config("Auto", EXCLUSIVE);
    struct row row = {.claim = "\"spec\":{\"storageClassName\":\"fast-storage\",\"accessModes\":["
                               "\"ReadWriteOnce\"]},\"status\":{\"phase\":\"Pending\"}"};
    struct cluster cluster;
    struct verdict verdict;
    struct arena arena;
    char text[4096];

    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    load_volume(&cluster, &row);
    struct pod_object pod = read_pod(&row, &arena, text, sizeof text);
    struct view view = {.cluster = &cluster, .config = config};
    policy_prefilter(&view, &pod, &arena, &verdict);
    cr_expect_eq(verdict.code, CODE_SUCCESS);
    cr_expect(verdict.exclusive != NULL && verdict.exclusive[0]);
    arena_dispose(&arena);
    cluster_dispose(&cluster);
    config_free(config);
}

/* One that is being bound shares the claim: nobody takes it alone until that is over. */
Test(non_exclusive_claims, a_bind_that_shares_it_is_in_the_way_of_one_that_needs_it_for_itself)
{
    struct config *config = load_config("Auto", EXCLUSIVE);
    struct row row = {.claim = CLAIM("ReadWriteOnce", "")};
    struct claim_reference reference = {.name = SLICE("data")};
    struct pod_object sharer = {
        .meta = {.ns = SLICE("default"), .name = SLICE("s"), .uid = SLICE("us")},
        .claims = &reference,
        .claim_count = 1};
    struct cluster cluster;
    struct verdict verdict;
    struct error err = {0};
    struct arena arena;
    char text[4096];
    bool failed = false;

    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    load_volume(&cluster, &row);
    struct pod_object pod = read_pod(&row, &arena, text, sizeof text);
    struct view view = {.cluster = &cluster, .config = config};
    cr_assert_eq(reservation_take(&cluster, &sharer, NULL, true, 1000, &err), 0);
    policy_prefilter(&view, &pod, &arena, &verdict);
    cr_expect_eq(verdict.code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    cr_expect(slice_equal(verdict.reserved_for, SLICE("us")));
    policy_prefilter(&view, &sharer, &arena, &verdict);
    cr_expect_eq(verdict.code, CODE_SKIP, "sharers share");
    struct uid uid = uid_take(&cluster.names, SLICE("us"), &failed);
    cr_expect(reservation_undo(&cluster, &uid));
    uid_release(&cluster.names, uid);
    policy_prefilter(&view, &pod, &arena, &verdict);
    cr_expect_eq(verdict.code, CODE_SUCCESS);
    arena_dispose(&arena);
    cluster_dispose(&cluster);
    config_free(config);
}

/* The verdict on a pod `web-0`, of which the cache has this, when a pod holds the claim. */
static enum verdict_code evaluate_beside(const char *cached, const char *asked)
{
    struct config *config = load_config("Auto", "");
    struct cluster cluster;
    struct verdict verdict;
    struct pod_object pod;
    struct arena arena;
    struct pull json;
    char text[4096];

    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    load_volume(&cluster, &(struct row){.claim = CLAIM("ReadWriteMany", "")});
    (void)snprintf(text, sizeof text,
                   "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\","
                   "\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-0\",\"uid\":\"u\"},\"spec\":{"
                   "\"volumes\":[%s]}},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
                   "\"name\":\"h\",\"uid\":\"uh\"},\"spec\":{\"nodeName\":\"n\",\"volumes\":[{"
                   "\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}]}",
                   cached);
    load_text(&cluster, text);
    pull_init(&json, slice_of(asked));
    cr_assert(pod_read(&json, &arena, &pod), "%s: %s", asked, json.problem);
    struct view view = {.cluster = &cluster, .config = config};
    policy_prefilter(&view, &pod, &arena, &verdict);
    arena_dispose(&arena);
    cluster_dispose(&cluster);
    config_free(config);
    return verdict.code;
}

#define VOLUME(name_, claim_, more_) \
    "{\"name\":\"" name_ "\",\"persistentVolumeClaim\":{\"claimName\":\"" claim_ "\"" more_ "}}"
#define ASKED(name_, uid_, volumes_) \
    "{\"metadata\":{\"name\":\"" name_ "\",\"uid\":\"" uid_ "\"},\"spec\":{\"volumes\":[" volumes_ \
    "]}}"
#define DEFERRED ",\"deferFSMount\":true"

/* A scheduler that is older than the field drops it. */
Test(non_exclusive_claims, a_field_counts_that_only_the_cache_knows)
{
    cr_expect_eq(evaluate_beside(VOLUME("v", "data", DEFERRED),
                                 ASKED("web-0", "u", VOLUME("v", "data", ""))),
                 CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    cr_expect_eq(evaluate_beside(VOLUME("v", "data", ""),
                                 ASKED("web-0", "u", VOLUME("v", "data", DEFERRED))),
                 CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, "what the request says stays");
}

Test(non_exclusive_claims, a_field_counts_only_for_the_pod_and_the_volume_that_have_it)
{
    const char *cached = VOLUME("v", "data", DEFERRED) "," VOLUME("w", "logs", DEFERRED);

    cr_expect_eq(evaluate_beside(cached, ASKED("web-0", "x", VOLUME("v", "data", ""))), CODE_SKIP,
                 "another UID");
    cr_expect_eq(evaluate_beside(cached, ASKED("web-0", "", VOLUME("v", "data", ""))), CODE_SKIP,
                 "no UID");
    cr_expect_eq(evaluate_beside(cached, ASKED("web-1", "u", VOLUME("v", "data", ""))), CODE_SKIP,
                 "another name");
    cr_expect_eq(evaluate_beside(cached, ASKED("web-0", "u", VOLUME("x", "data", ""))), CODE_SKIP,
                 "another volume");
    cr_expect_eq(evaluate_beside(VOLUME("v", "logs", DEFERRED),
                                 ASKED("web-0", "u", VOLUME("v", "data", ""))),
                 CODE_SKIP, "another claim");
}

static bool is_violated(const char *entries, const char *holder, const char *mode)
{
    struct config *config = load_config("Auto", entries);
    char claim[256];
    struct cluster cluster;

    (void)snprintf(claim, sizeof claim, CLAIM("%s", ""), mode);
    cluster_init(&cluster);
    load_volume(&cluster, &(struct row){.claim = claim});
    load_holder(&cluster, holder);
    load_text(&cluster,
              "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"bold\",\"uid\":"
              "\"b\"},\"spec\":{\"nodeName\":\"node-1\",\"volumes\":[{\"name\":\"v\","
              "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}");
    bool is_violated =
        exclusive_is_violated(&(struct view){.cluster = &cluster, .config = config},
                              cluster_find_claim(&cluster, SLICE("default"), SLICE("data")));
    cluster_dispose(&cluster);
    config_free(config);
    return is_violated;
}

Test(non_exclusive_claims, a_holder_beside_one_that_needs_it_for_itself_is_a_violation)
{
    cr_expect(is_violated(EXCLUSIVE, "microvm!", "ReadWriteOnce"));
    cr_expect_not(is_violated(EXCLUSIVE, "microvm", "ReadWriteOnce"), "not deferred");
    cr_expect_not(is_violated(ALLOW, "microvm!", "ReadWriteOnce"), "they may share");
    cr_expect_not(is_violated(EXCLUSIVE, "", "ReadWriteOnce"), "there is one holder");
    cr_expect_not(is_violated(EXCLUSIVE, "microvm!", "ReadWriteOncePod"),
                  "the cluster counts those");
}

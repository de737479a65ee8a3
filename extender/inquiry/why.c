/* The causes in their order, and the answer. */
#include "extender/inquiry/why.h"

#include <stdlib.h>

#include "extender/inquiry/why_internal.h"
#include "extender/report/explain.h"

enum { POD_ARENA_BYTES_MAX = 512 << 20 };

/* In the order in which one should look: what a claim lacks before where its volume can be used,
 * and that before what a node does with it. */
static const struct {
    const char *word;
    unsigned stages; /* enum why_stage */
    why_finder *find;
} causes[] = {
    {"DeletionHeldByFinalizer", WHY_ANY, why_finalizers},
    {"NamespaceGivenUp", WHY_WAITING, why_given_up},
    {"ClaimMissing", WHY_WAITING, why_claim_missing},
    {"ClaimOfAnotherPod", WHY_WAITING, why_claim_of_another},
    {"ClaimDeleting", WHY_WAITING | WHY_RUNNING, why_claim_deleting},
    {"ClaimLost", WHY_WAITING, why_claim_lost},
    {"StorageClassMissing", WHY_WAITING, why_class_missing},
    {"ClaimUnbound", WHY_WAITING, why_claim_unbound},
    {"WaitsForFirstConsumer", WHY_WAITING, why_first_consumer},
    {"VolumeNotProvisioned", WHY_WAITING, why_not_provisioned},
    {"VolumeMissing", WHY_WAITING, why_volume_missing},
    {"VolumeDeleting", WHY_WAITING | WHY_RUNNING, why_volume_deleting},
    {"VolumeAttributesClass", WHY_WAITING, why_attributes_class},
    {"DriverMode", WHY_WAITING, why_driver_mode},
    {"ClaimInUse", WHY_WAITING, why_in_use},
    {"ClaimLocked", WHY_WAITING, why_locked},
    {"VolumeNodeAffinity", WHY_WAITING, why_affinity},
    {"VolumeZone", WHY_WAITING, why_zone},
    {"VolumesApart", WHY_WAITING, why_apart},
    {"StorageClassTopology", WHY_SCHEDULING, why_topology},
    {"VolumeInUseElsewhere", WHY_SCHEDULING, why_elsewhere},
    {"DriverNotRegistered", WHY_WAITING, why_not_registered},
    {"AttachLimit", WHY_SCHEDULING, why_limit},
    {"NoNodeLeft", WHY_SCHEDULING, why_no_node},
    {"MultiAttach", WHY_STARTING, why_multi_attach},
    {"AttachFailed", WHY_STARTING, why_attach_failed},
    {"NotAttached", WHY_STARTING, why_not_attached},
    {"DeferralRefused", WHY_WAITING, why_deferral},
};

/* An answer that is being made. */
struct answer {
    const struct inquiry *inquiry;
    const struct config *config;
    struct why_asked **asked; /* by name */
    size_t asked_count;
    const struct claim **claims; /* that the pods name, by address */
    size_t claim_count;
    struct naming *namings; /* by claim; first those of pods that have not ended */
    size_t naming_count;
    struct who_index index;
    struct arena arena; /* of one pod */
    struct why_shared shared;
    json_t *pods;
    struct why_notes notes;
};

/* ---- the pods ---- */

static int compare_asked(const void *a, const void *b)
{
    const struct why_asked *x = *(struct why_asked *const *)a, *y = *(struct why_asked *const *)b;
    int order = slice_compare(x->ns, y->ns);

    return order != 0 ? order : slice_compare(x->name, y->name);
}

static bool sort_asked(struct answer *answer, struct why *why)
{
    size_t count = 0;

    for (const struct why_asked *asked = why->asked; asked != NULL; asked = asked->next)
        count++;
    answer->asked = calloc(count + 1, sizeof *answer->asked);
    if (answer->asked == NULL)
        return false;
    for (struct why_asked *asked = why->asked; asked != NULL; asked = asked->next)
        answer->asked[answer->asked_count++] = asked;
    qsort((void *)answer->asked, count, sizeof *answer->asked, compare_asked);
    return true;
}

/* ---- the pods that name their claims ---- */

static int compare_addresses(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const struct claim *const *)a;
    uintptr_t y = (uintptr_t) * (const struct claim *const *)b;

    return (x > y) - (x < y);
}

static bool find_claims(struct answer *answer)
{
    const struct cluster *cluster = &answer->inquiry->cluster;
    size_t room = 0;

    for (size_t i = 0; i < answer->asked_count; i++)
        room += answer->asked[i]->claim_count;
    answer->claims = calloc(room + 1, sizeof *answer->claims);
    if (answer->claims == NULL)
        return false;
    for (size_t i = 0; i < answer->asked_count; i++) {
        const struct pod *pod =
            cluster_find_pod(cluster, answer->asked[i]->ns, answer->asked[i]->name);
        for (size_t j = 0; pod != NULL && j < pod->use_count && answer->claim_count < room; j++)
            answer->claims[answer->claim_count++] = claim_at(pod->uses[j].claim);
    }
    qsort((void *)answer->claims, answer->claim_count, sizeof *answer->claims, compare_addresses);
    return true;
}

static int compare_namings(const void *a, const void *b)
{
    const struct naming *x = a, *y = b;
    int order = compare_addresses(&x->claim, &y->claim);

    if (order != 0 || x->pod->is_terminal == y->pod->is_terminal)
        return order != 0 ? order : slice_compare(pod_name(x->pod), pod_name(y->pod));
    return x->pod->is_terminal ? 1 : -1;
}

static bool add_naming(struct answer *answer, const struct naming *naming, size_t *room)
{
    if (answer->naming_count == *room) {
        *room = *room * 2 + 64;
        struct naming *grown = realloc(answer->namings, *room * sizeof *grown);
        if (grown == NULL)
            return false;
        answer->namings = grown;
    }
    answer->namings[answer->naming_count++] = *naming;
    return true;
}

static bool find_namings(struct answer *answer)
{
    struct table_walk walk = {.at = 0};
    size_t room = 0;

    for (const struct pod *pod; answer->claim_count != 0 &&
                                (pod = cluster_next_pod(&answer->inquiry->cluster, &walk)) != NULL;)
        for (size_t i = 0; i < pod->use_count; i++) {
            const struct naming naming = {claim_at(pod->uses[i].claim), pod};
            if (bsearch((const void *)&naming.claim, (const void *)answer->claims,
                        answer->claim_count, sizeof *answer->claims, compare_addresses) != NULL &&
                !add_naming(answer, &naming, &room))
                return false;
        }
    if (answer->naming_count != 0)
        qsort(answer->namings, answer->naming_count, sizeof *answer->namings, compare_namings);
    return true;
}

/* ---- one pod ---- */

static json_t *describe_nodes(const struct why_pod *pod)
{
    json_t *names = json_array();
    size_t left = 0, closed = 0;
    int rc = names == NULL ? -1 : 0;

    for (size_t i = 0; i < pod->node_count && rc == 0; i++) {
        const struct why_node *node = &pod->nodes[i];
        if (node->is_out)
            continue;
        closed += node->node->is_unschedulable || node->node->is_not_ready ? 1 : 0;
        if (left++ < WHY_NAMES_SHOWN_MAX)
            rc = json_array_append_new(names, value_text(node->name));
    }
    json_t *object = json_object();
    rc |= value_put(object, "total", json_integer((json_int_t)pod->node_count)) |
          value_put(object, "left", json_integer((json_int_t)left)) |
          value_put(object, "leftClosed", json_integer((json_int_t)closed)) |
          value_put(object, "names", names);
    return value_whole(object, rc);
}

/* claimguard's verdict on the pod, as in a dry run, without each node. */
static int put_verdict(json_t *object, const struct why_pod *pod)
{
    static const char *const keys[] = {"schedulable", "preFilter", "warnings", "preemption"};
    struct slice *names = arena_alloc(pod->arena, (pod->node_count + 1) * sizeof *names);
    json_t *verdict = json_object();
    int rc = 0;

    for (size_t i = 0; names != NULL && i < pod->node_count; i++)
        names[i] = pod->nodes[i].name;
    const struct explained_nodes nodes = {names, pod->node_count, false};
    json_t *explained =
        names == NULL ? NULL : explain_pod(&pod->view, &pod->object, &nodes, pod->arena);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        rc |= value_put(verdict, keys[i], json_incref(json_object_get(explained, keys[i])));
    json_decref(explained);
    return value_put(object, "verdict", value_whole(verdict, rc));
}

static const char *stage_text(const struct why_pod *pod)
{
    switch (pod->stage) {
    case WHY_SCHEDULING: return pod->pod->is_gated ? "Gated" : "Scheduling";
    case WHY_STARTING: return "Starting";
    case WHY_RUNNING: return "Running";
    default: return "Finished";
    }
}

/* is_complete: the input has all that the causes are found by. */
static json_t *describe_pod(struct why_pod *pod, bool is_complete)
{
    json_t *object = who_waiter(&pod->who);

    (void)json_object_del(object, "waitsFor"); /* the causes say that */
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        pod->word = causes[i].word;
        if ((causes[i].stages & (unsigned)pod->stage) != 0)
            causes[i].find(pod);
    }
    int rc = pod->rc | value_put(object, "stage", json_string(stage_text(pod))) |
             value_put(object, "terminating", json_boolean(pod->pod->is_terminating)) |
             value_put(object, "node", value_text(pod_node(pod->pod))) |
             (!pod_is_assigned(pod->pod)
                  ? 0
                  : value_put(object, "nodeState",
                              json_string(who_node_state_text(pod->who.node_state)))) |
             value_put(object, "state", value_text(who_state(&pod->who))) |
             value_put(object, "causes", json_incref(pod->causes)) |
             value_put(object, "complete", json_boolean(is_complete));
    if (pod->stage == WHY_SCHEDULING)
        rc |= put_verdict(object, pod) | value_put(object, "nodes", describe_nodes(pod));
    return value_whole(object, rc);
}

/* False: no memory. */
static bool add_pod(struct answer *answer, const struct why_asked *asked)
{
    struct why_pod pod = {.inquiry = answer->inquiry,
                          .shared = &answer->shared,
                          .view = {.cluster = &answer->inquiry->cluster, .config = answer->config},
                          .causes = json_array(),
                          .arena = &answer->arena};

    arena_reset(&answer->arena);
    inquiry_forget_details(answer->inquiry);
    pod.pod = cluster_find_pod(&answer->inquiry->cluster, asked->ns, asked->name);
    bool is_gathered =
        pod.causes != NULL && pod.pod != NULL &&
        why_gather(&pod, &answer->index, answer->namings, answer->naming_count, asked);
    int rc = -1;
    if (is_gathered)
        rc =
            json_array_append_new(answer->pods, describe_pod(&pod, why_note(&answer->notes, &pod)));
    json_decref(pod.causes);
    return rc == 0;
}

/* ---- the answer ---- */

static void mark_found(const struct why *why, const struct answer *answer, bool *found)
{
    for (size_t i = 0; i < why->question->count; i++) {
        found[i] = false;
        for (size_t j = 0; j < answer->asked_count && !found[i]; j++)
            found[i] = operand_is(&why->question->operands[i], answer->asked[j]->ns,
                                  answer->asked[j]->name);
    }
}

json_t *why_answer(struct why *why, const struct inquiry *inquiry, const struct config *config,
                   bool *found)
{
    struct answer answer = {.inquiry = inquiry, .config = config, .pods = json_array()};

    answer.notes.is_of_namespace =
        inquiry->snapshot == NULL && why_namespace(why->question).len != 0;
    json_t *object = json_object();

    workloads_forget(inquiry->workloads);
    arena_init(&answer.arena, POD_ARENA_BYTES_MAX);
    why_shared_init(&answer.shared);
    bool is_whole = !why->has_no_memory && answer.pods != NULL && sort_asked(&answer, why) &&
                    find_claims(&answer) && find_namings(&answer) &&
                    who_index_attachments(&answer.index, &inquiry->cluster);
    for (size_t i = 0; is_whole && i < answer.asked_count; i++)
        is_whole = add_pod(&answer, answer.asked[i]);
    if (is_whole)
        mark_found(why, &answer, found);
    arena_dispose(&answer.arena);
    why_shared_dispose(&answer.shared);
    free(answer.namings);
    free((void *)answer.claims);
    free((void *)answer.asked);
    free((void *)answer.index.attachments);
    int rc = value_put(object, "pods", answer.pods) |
             value_put(object, "notKnown", why_unknown(inquiry, &answer.notes));
    return value_whole(object, is_whole ? rc : -1);
}

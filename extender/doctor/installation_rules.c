#include "extender/doctor/installation_rules.h"

#include <stdio.h>
#include <stdlib.h>

#include "extender/doctor/go_text.h"
#include "extender/doctor/scheduler_rules.h"

enum { NAMES_SHOWN = 3 };

/* ---- marks ---- */

static bool names_mark(const json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    bool found = text != NULL && strstr(text, MARK) != NULL;

    free(text);
    return found;
}

const char *installation_find_marker(const struct installation *installation)
{
    const json_t *policy, *binding;
    size_t i, j;

    json_array_foreach (installation->objects[INSTALLED_MARKER], i, policy)
        if (names_mark(policy))
            json_array_foreach (installation->objects[INSTALLED_MARKER_BINDING], j, binding)
                if (strcmp(installed_string(binding, "spec", "policyName", NULL),
                           installed_string(policy, "metadata", "name", NULL)) == 0)
                    return installed_string(policy, "metadata", "name", NULL);
    return NULL;
}

static void check_unmarked(const struct examined *examined, const struct scheduler_file *file,
                           struct findings *findings)
{
    const struct installation *installation = examined->installation;
    struct slice names = SLICE("");
    struct location where = {.file = NULL};
    size_t count = 0, unknown = 0;

    for (size_t i = 0; i < installation->pod_count; i++) {
        const struct installed_pod *pod = &installation->pods[i];
        if (pod->is_marked || pod->is_assigned || !scheduler_has_profile(file, pod->scheduler))
            continue;
        unknown += !pod->is_mark_known;
        if (!pod->is_mark_known)
            continue;
        if (count++ == 0)
            where = finding_object(findings, "Pod", pod->ns, pod->name);
        else if (count <= NAMES_SHOWN)
            names =
                arena_printf(findings->arena, "%.*s%s%.*s/%.*s", SLICE_ARG(names),
                             names.len == 0 ? "" : ", ", SLICE_ARG(pod->ns), SLICE_ARG(pod->name));
    }
    if (unknown != 0)
        finding_unread(findings,
                       "marks of %zu pods: this snapshot has no resources of containers (that of "
                       "claimguard snapshot has)",
                       unknown);
    if (count != 0)
        (void)finding_add(findings, "CG804", where,
                          "delete it: its controller, or you, create it again",
                          "it has claims and no mark, so %s binds it without claimguard%s%.*s%s",
                          file->path, names.len == 0 ? "" : "; so are ", SLICE_ARG(names),
                          count > NAMES_SHOWN ? " and more" : "");
}

static void check_marks(const struct examined *examined, struct findings *findings)
{
    const struct installation *installation = examined->installation;
    const char *marker = installation_find_marker(installation);

    for (size_t i = 0; i < examined->scheduler_count; i++) {
        const struct scheduler_extender *own = examined->schedulers[i].own;
        if (own == NULL)
            continue;
        if (own->managed_count == 0 && marker != NULL)
            (void)finding_add(findings, "CG802", finding_place(own->at),
                              "managedResources: [{name: " MARK ", ignoredByScheduler: true}]",
                              "MutatingAdmissionPolicy %s marks pods, and claimguard is called for "
                              "all pods",
                              marker);
        if (own->managed_count != 0 && marker == NULL && installation->is_known[INSTALLED_MARKER] &&
            installation->is_known[INSTALLED_MARKER_BINDING])
            (void)finding_add(findings, "CG801", finding_place(own->managed[0].name.at),
                              "add the components admission and marks",
                              "no MutatingAdmissionPolicy with a binding sets " MARK
                              ": claimguard is called for no pod");
        if (own->managed_count != 0)
            check_unmarked(examined, &examined->schedulers[i], findings);
    }
}

/* ---- LimitRanges ---- */

static bool is_zero(const json_t *quantity)
{
    const char *text = json_string_value(quantity);

    return text != NULL ? strtod(text, NULL) == 0 : json_number_value(quantity) == 0;
}

static void check_limit(const json_t *range, const json_t *limit, struct findings *findings)
{
    static const struct {
        const char *key, *what;
        bool refuses;
    } keys[] = {
        {"min", "the API server refuses marked pods", true},
        {"maxLimitRequestRatio", "the API server refuses marked pods", true},
        {"default", "containers without the mark get it, with another quantity than 0", false},
        {"max", "containers without the mark get it, with another quantity than 0", false},
        {"defaultRequest", "containers without the mark get it, with another quantity than 0",
         false},
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *quantity = json_object_get(json_object_get(limit, keys[i].key), MARK);
        if (quantity == NULL || is_zero(quantity))
            continue;
        struct finding *finding =
            finding_add(findings, "CG803", installed_place(findings, "LimitRange", range),
                        "remove " MARK " from it", "%s of " MARK ": %s", keys[i].key, keys[i].what);
        if (finding != NULL && !keys[i].refuses)
            finding->level = LEVEL_WARNING;
        return;
    }
}

static void check_limit_ranges(const struct installation *installation, struct findings *findings)
{
    const json_t *range, *limit;
    size_t i, j;

    json_array_foreach (installation->objects[INSTALLED_LIMIT_RANGE], i, range)
        json_array_foreach (json_object_get(json_object_get(range, "spec"), "limits"), j, limit)
            check_limit(range, limit, findings);
}

/* ---- schedulers ---- */

/* Whether a file has the scheduler, and claimguard among its extenders. */
static bool is_guarded(const struct examined *examined, struct slice scheduler)
{
    for (size_t i = 0; i < examined->scheduler_count; i++)
        if (scheduler_has_profile(&examined->schedulers[i], scheduler) &&
            examined->schedulers[i].own != NULL)
            return true;
    return false;
}

/* Whether the pod names a claim that is ReadWriteOncePod; which one. */
static const struct claim *exclusive_claim(const struct installation *installation,
                                           const struct installed_pod *pod)
{
    const struct pod *record = cluster_find_pod(&installation->inquiry.cluster, pod->ns, pod->name);

    for (size_t i = 0; record != NULL && i < record->use_count; i++) {
        const struct claim *claim = claim_at(record->uses[i].claim);
        if (claim->exists && claim->is_rwop)
            return claim;
    }
    return NULL;
}

enum { SCHEDULERS_MAX = 100 };

/* One finding for each scheduler that no file guards. */
static void check_schedulers(const struct examined *examined, struct findings *findings)
{
    const struct installation *installation = examined->installation;
    struct slice seen[SCHEDULERS_MAX];
    size_t seen_count = 0;

    for (size_t i = 0; i < installation->pod_count; i++) {
        const struct installed_pod *pod = &installation->pods[i];
        const struct claim *claim = exclusive_claim(installation, pod);
        size_t known = 0;
        while (known < seen_count && !slice_equal(seen[known], pod->scheduler))
            known++;
        if (claim == NULL || known < seen_count || seen_count == SCHEDULERS_MAX ||
            is_guarded(examined, pod->scheduler))
            continue;
        seen[seen_count++] = pod->scheduler;
        (void)finding_add(
            findings, "CG805", finding_object(findings, "Pod", pod->ns, pod->name),
            "call claimguard from that scheduler, or add the component admission",
            "it is for the scheduler %.*s, which calls claimguard in no file, and its "
            "claim %.*s is ReadWriteOncePod",
            SLICE_ARG(pod->scheduler), SLICE_ARG(claim_name(claim)));
    }
}

/* A host's resolver does not know names of Services. */
static void check_host_network(const struct examined *examined, struct findings *findings)
{
    for (size_t i = 0;
         examined->installation->is_scheduler_on_host && i < examined->scheduler_count; i++) {
        const struct scheduler_extender *own = examined->schedulers[i].own;
        struct url url;
        if (own == NULL ||
            !scheduler_has_profile(&examined->schedulers[i], SLICE("default-scheduler")) ||
            !go_url(&url, own->url_prefix.text, findings->arena) ||
            !(slice_ends_with(url.host, SLICE(".svc")) || slice_has(url.host, SLICE(".svc."))))
            continue;
        (void)finding_add(findings, "CG807", finding_place(own->url_prefix.at),
                          "urlPrefix: https://CLUSTER-IP:8888, and tlsConfig: {serverName: "
                          "claimguard.claimguard.svc}",
                          "%.*s is a Service's name, and kube-scheduler's pod is on the host's "
                          "network, with the host's DNS",
                          SLICE_ARG(url.host));
    }
}

void installation_rules_check(const struct examined *examined, struct findings *findings)
{
    check_marks(examined, findings);
    check_limit_ranges(examined->installation, findings);
    if (examined->scheduler_count != 0)
        check_schedulers(examined, findings);
    check_host_network(examined, findings);
}

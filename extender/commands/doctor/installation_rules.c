#include "extender/commands/doctor/doctor.h"

#include <stdlib.h>

enum { NAMES_SHOWN = 3 };

/* ---- marks ---- */

struct slice installation_find_marker(const struct installation *installation)
{
    for (const struct marker *policy = NULL;
         (policy = installation_next(installation, KIND_MARKER, policy)) != NULL;)
        for (const struct marker *binding = NULL;
             policy->has_mark &&
             (binding = installation_next(installation, KIND_MARKER_BINDING, binding)) != NULL;)
            if (slice_equal(binding->policy, policy->meta.name))
                return policy->meta.name;
    return SLICE("");
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
        gaps_add(&findings->gaps, GAP_RULE(CG804),
                 "marks of %zu pods: this snapshot has no resources of containers (that of "
                 "claimguard snapshot has)",
                 unknown);
    if (count != 0)
        finding_add(findings, CG804, where, "delete it: its controller, or you, create it again",
                    "it has claims and no mark, so %s binds it without claimguard%s%.*s%s",
                    file->path, names.len == 0 ? "" : "; so are ", SLICE_ARG(names),
                    count > NAMES_SHOWN ? " and more" : "");
}

static void check_marks(const struct examined *examined, struct findings *findings)
{
    const struct installation *installation = examined->installation;
    struct slice marker = installation_find_marker(installation);

    for (const struct scheduler_file *file = NULL;
         (file = examined_next(examined, file)) != NULL;) {
        const struct scheduler_extender *own = file->own;
        if (own->managed_count == 0 && marker.len != 0)
            finding_add(findings, CG802, finding_place(own->at),
                        "managedResources: [{name: " MARK ", ignoredByScheduler: true}]",
                        "MutatingAdmissionPolicy %.*s marks pods, and claimguard is called for "
                        "all pods",
                        SLICE_ARG(marker));
        if (own->managed_count != 0 && marker.len == 0 &&
            installation_knows(installation, KIND_MARKER) &&
            installation_knows(installation, KIND_MARKER_BINDING))
            finding_add(findings, CG801, finding_place(own->managed[0].name.at),
                        "add the component marks",
                        "no MutatingAdmissionPolicy with a binding sets " MARK
                        ": claimguard is called for no pod");
        if (own->managed_count != 0)
            check_unmarked(examined, file, findings);
    }
}

/* ---- LimitRanges ---- */

static bool is_zero(struct slice quantity)
{
    return strtod(quantity.ptr, NULL) == 0; /* in JSON, a character follows that is of no number */
}

static void check_limit(const struct limit_range *range, const struct limit *limit,
                        struct findings *findings)
{
    static const char refuses[] = "the API server refuses marked pods";
    static const char sets[] = "containers without the mark get it, with another quantity than 0";
    const struct {
        const char *key;
        struct slice quantity;
        const char *what;
    } rows[] = {
        {"min", limit->min, refuses},
        {"maxLimitRequestRatio", limit->ratio, refuses},
        {"default", limit->limit_default, sets},
        {"max", limit->max, sets},
        {"defaultRequest", limit->request_default, sets},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].quantity.len == 0 || is_zero(rows[i].quantity))
            continue;
        finding_lower(
            finding_add(findings, CG803, installed_place(findings, KIND_LIMIT_RANGE, &range->meta),
                        "remove " MARK " from it", "%s of " MARK ": %s", rows[i].key, rows[i].what),
            rows[i].what == refuses ? LEVEL_ERROR : LEVEL_WARNING);
        return;
    }
}

static void check_limit_ranges(const struct installation *installation, struct findings *findings)
{
    for (const struct limit_range *range = NULL;
         (range = installation_next(installation, KIND_LIMIT_RANGE, range)) != NULL;) {
        const struct limit *limits = range->limits.items;
        for (size_t i = 0; i < range->limits.count; i++)
            check_limit(range, &limits[i], findings);
    }
}

/* ---- schedulers ---- */

/* Whether a file has the scheduler, and claimguard among its extenders. */
static bool is_guarded(const struct examined *examined, struct slice scheduler)
{
    for (const struct scheduler_file *file = NULL; (file = examined_next(examined, file)) != NULL;)
        if (scheduler_has_profile(file, scheduler))
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

/* One finding for each scheduler that no file guards. */
static void check_schedulers(const struct examined *examined, struct findings *findings)
{
    const struct installation *installation = examined->installation;
    struct example_pods *seen = arena_alloc(findings->arena, sizeof *seen);

    findings->has_failed = findings->has_failed || seen == NULL;
    for (size_t i = 0; seen != NULL && i < installation->pod_count; i++) {
        const struct installed_pod *pod = &installation->pods[i];
        const struct claim *claim = exclusive_claim(installation, pod);
        if (claim == NULL || is_guarded(examined, pod->scheduler) || !example_pods_add(seen, pod))
            continue;
        finding_add(findings, CG805, finding_object(findings, "Pod", pod->ns, pod->name),
                    "call claimguard from that scheduler, or apply manifests/webhooks.yaml",
                    "it is for the scheduler %.*s, which calls claimguard in no file, and its "
                    "claim %.*s is ReadWriteOncePod",
                    SLICE_ARG(pod->scheduler), SLICE_ARG(claim_name(claim)));
    }
    if ((seen != NULL && seen->has_left_out) || installation->disks.has_left_out)
        gaps_add(&findings->gaps, GAP_RULE(CG520) | GAP_RULE(CG805),
                 "more schedulers than %d that pods of one namespace name", SCHEDULERS_OF_ONE_MAX);
}

/* A host's resolver does not know names of Services. */
static void check_host_network(const struct examined *examined, struct findings *findings)
{
    if (!examined->installation->is_scheduler_on_host)
        return;
    for (const struct scheduler_file *file = NULL;
         (file = examined_next(examined, file)) != NULL;) {
        const struct scheduler_extender *own = file->own;
        struct slice host = own->has_url ? own->url.host : SLICE("");
        if (!scheduler_has_profile(file, SLICE("default-scheduler")) ||
            !(slice_ends_with(host, SLICE(".svc")) || slice_has(host, SLICE(".svc."))))
            continue;
        finding_add(findings, CG807, finding_place(own->url_prefix.at),
                    "urlPrefix: https://CLUSTER-IP:8888, and tlsConfig: {serverName: "
                    "claimguard.claimguard.svc}",
                    "%.*s is a Service's name, and kube-scheduler's pod is on the host's "
                    "network, with the host's DNS",
                    SLICE_ARG(host));
    }
}

void doctor_check_pods(const struct examined *examined, struct findings *findings)
{
    if (examined->installation == NULL)
        return;
    check_marks(examined, findings);
    check_limit_ranges(examined->installation, findings);
    if (examined->scheduler_count != 0)
        check_schedulers(examined, findings);
    check_host_network(examined, findings);
}

#include "extender/commands/doctor/doctor.h"

#include <stdio.h>

#include "config/base/quantity.h"
#include "extender/report/advice_rows.h"
#include "extender/version.h"
#include "policy/exclusive.h"

#define NAME      SLICE("claimguard")
#define NOT_READY SLICE("not ready")

enum {
    NAMES_SHOWN = 3,
    /* docs/configuration.md and docs/operations.md: itself, calls, reviews, a pod with its claim */
    OWN_BYTES = 20 << 20,
    CALLS_BYTES_MIN = 64 << 20,
    REVIEWS_BYTES = 32 << 20,
    POD_BYTES = 450,
    CACHE_BYTES = 64 << 20, /* cache.maxBytes that the limits of manifests/ allow for */
};

static const struct config *config_of(const struct examined *examined)
{
    return examined->config == NULL ? NULL : examined->config->config;
}

static const struct guard *find_deployment(const struct installation *installation)
{
    return installation_find(installation, KIND_DEPLOYMENT, NAME);
}

/* The next of claimguard's own pods, as installation_next. */
static const struct guard *next_pod(const struct installation *installation,
                                    const struct guard *after)
{
    return installation_next(installation, KIND_POD, after);
}

bool guard_is_absent(const struct installation *installation)
{
    return installation_knows(installation, KIND_DEPLOYMENT) &&
           find_deployment(installation) == NULL && next_pod(installation, NULL) == NULL;
}

/* ---- how many ---- */

static void report_replicas(const struct examined *examined, struct slice what,
                            struct findings *findings)
{
    const struct config *config = config_of(examined);

    if (config != NULL && config->read_write_once_pod.claim_lock == CLAIM_LOCK_LOCAL)
        finding_add(findings, CG601,
                    CONFIG_PLACE(examined->config, "readWriteOncePod", "claimLock"),
                    "readWriteOncePod: {claimLock: Annotation}", "claimLock is Local, and %.*s",
                    SLICE_ARG(what));
}

static void check_replicas(const struct examined *examined, const struct guard *deployment,
                           struct findings *findings)
{
    if (deployment->replicas > 1)
        report_replicas(examined,
                        arena_printf(findings->arena, "the Deployment %.*s/%.*s has %lld replicas",
                                     SLICE_ARG(deployment->meta.ns),
                                     SLICE_ARG(deployment->meta.name),
                                     (long long)deployment->replicas),
                        findings);
}

/* Those of a node, which the API server shows by a mirror. */
static void check_static_pods(const struct examined *examined, struct findings *findings)
{
    struct slice names = SLICE("");
    size_t count = 0;

    for (const struct guard *pod = NULL; (pod = next_pod(examined->installation, pod)) != NULL;)
        if (pod->mirror.len != 0 && ++count <= NAMES_SHOWN)
            names = arena_printf(findings->arena, "%.*s%s%.*s/%.*s", SLICE_ARG(names),
                                 count == 1 ? "" : ", ", SLICE_ARG(pod->meta.ns),
                                 SLICE_ARG(pod->meta.name));
    if (count > 1)
        report_replicas(examined,
                        arena_printf(findings->arena, "%zu static pods run claimguard: %.*s%s",
                                     count, SLICE_ARG(names), count > NAMES_SHOWN ? ", ..." : ""),
                        findings);
}

/* ---- a container ---- */

/* The container of claimguard; NULL: there is none of that name. */
static const struct guard_container *find_container(const struct guard *guard)
{
    const struct guard_container *containers = guard->containers.items;

    for (size_t i = 0; i < guard->containers.count; i++)
        if (slice_equal(containers[i].name, NAME))
            return &containers[i];
    return NULL;
}

static int64_t bytes_needed(const struct config *config, size_t pods)
{
    int64_t calls = 2 * config->server.max_request_bytes;
    int64_t cache = config->cache.max_bytes - CACHE_BYTES;

    return OWN_BYTES + (cache < 0 ? 0 : cache) +
           (calls < CALLS_BYTES_MIN ? CALLS_BYTES_MIN : calls) +
           (config->admission.listen.len == 0 ? 0 : REVIEWS_BYTES) + (int64_t)pods * POD_BYTES;
}

static void check_memory(const struct examined *examined, struct location place,
                         struct slice limit_text, struct findings *findings)
{
    const struct config *config = config_of(examined);
    size_t pods = examined->installation->all_pod_count;
    char change[64], cache[64] = "";
    int64_t limit;

    if (config == NULL || !quantity_bytes(&limit, limit_text))
        return;
    int64_t needed = bytes_needed(config, pods);
    long long mib = (needed + (1 << 20) - 1) / (1 << 20);
    long long body_mib = config->server.max_request_bytes / (1 << 20);
    if (limit >= needed)
        return;
    if (config->cache.max_bytes > CACHE_BYTES)
        (void)snprintf(cache, sizeof cache, ", cache.maxBytes of %lld MiB",
                       (long long)(config->cache.max_bytes >> 20));
    (void)snprintf(change, sizeof change, "limits: {memory: %lldMi}", mib);
    struct slice kept = arena_copy(findings->arena, slice_of(change));
    finding_add(findings, CG607, place, kept.ptr == NULL ? "" : kept.ptr,
                "its memory limit is %.*s; with maxRequestBytes of %lld MiB%s and %zu pods, it may "
                "take %lld MiB",
                SLICE_ARG(limit_text), body_mib, cache, pods, mib);
}

/* The tag of an image, if it is a version; else empty. */
static struct slice tag_of(struct slice image)
{
    if (image.len == 0 || memchr(image.ptr, '@', image.len) != NULL)
        return SLICE("");
    const char *slash = memrchr(image.ptr, '/', image.len), *end = image.ptr + image.len;
    const char *begin = slash == NULL ? image.ptr : slash;
    const char *tag = memchr(begin, ':', (size_t)(end - begin));
    if (tag == NULL)
        return SLICE("");
    tag += 1 + (end - tag > 1 && tag[1] == 'v');
    struct slice version = {tag, (size_t)(end - tag)};
    return version.len != 0 && *tag >= '0' && *tag <= '9' && slice_has(version, SLICE("."))
               ? version
               : SLICE("");
}

static void check_container(const struct examined *examined, struct location place,
                            const struct guard *guard, struct findings *findings)
{
    const struct guard_container *container = find_container(guard);

    if (container == NULL)
        return;
    struct slice version = tag_of(container->image);
    check_memory(examined, place, container->memory, findings);
    if (version.len != 0 && !slice_equal(version, SLICE(CLAIMGUARD_VERSION)))
        finding_add(findings, CG608, place, "call the doctor of its image",
                    "it runs claimguard %.*s, and this doctor is of " CLAIMGUARD_VERSION,
                    SLICE_ARG(version));
}

/* ---- whether all are the same ---- */

static struct slice image_of(const struct guard *guard)
{
    const struct guard_container *container = guard == NULL ? NULL : find_container(guard);

    return container == NULL ? SLICE("") : container->image;
}

/* Pods are compared with the Deployment; without it, with the first static pod. */
static void check_images(const struct installation *installation, const struct guard *deployment,
                         struct findings *findings)
{
    struct slice wanted = image_of(deployment);

    for (const struct guard *pod = NULL; (pod = next_pod(installation, pod)) != NULL;) {
        struct slice image = image_of(pod);
        if (image.len == 0 || pod->deletion_timestamp.len != 0)
            continue;
        if (wanted.len == 0)
            wanted = image;
        if (!slice_equal(image, wanted))
            finding_add(findings, CG614, installed_place(findings, KIND_POD, &pod->meta),
                        arena_printf(findings->arena, "image: %.*s", SLICE_ARG(wanted)).ptr,
                        "it runs %.*s, and other claimguards %.*s", SLICE_ARG(image),
                        SLICE_ARG(wanted));
    }
}

/* Each claimguard writes there what its configuration says. */
static void check_agreement(const struct installation *installation, struct findings *findings)
{
    const struct config_map *map =
        installation_find(installation, KIND_CONFIG_MAP, SLICE(AGREEMENT_NAME));

    if (map != NULL && slice_has(map->data, SLICE("\"claimLock.Local\"")) &&
        slice_has(map->data, SLICE("\"claimLock.Annotation\"")))
        finding_add(findings, CG615, installed_place(findings, KIND_CONFIG_MAP, &map->meta),
                    "readWriteOncePod: {claimLock: Annotation}, in the configuration of each",
                    "some claimguards have claimLock: Local, and others Annotation");
}

/* ---- who schedules it ---- */

/* claimguard's own pods wait for a scheduler that waits for claimguard. */
static void check_own_scheduler(const struct examined *examined, const struct guard *deployment,
                                struct findings *findings)
{
    struct slice name =
        deployment->scheduler.len == 0 ? SLICE("default-scheduler") : deployment->scheduler;

    if (deployment->node.len != 0)
        return;
    for (const struct scheduler_file *file = NULL;
         (file = examined_next(examined, file)) != NULL;) {
        const struct scheduler_extender *own = file->own;
        if (own->managed_count != 0 || own->ignorable.is_true || !scheduler_has_profile(file, name))
            continue;
        finding_add(findings, CG806, installed_place(findings, KIND_DEPLOYMENT, &deployment->meta),
                    "schedulerName: ANOTHER-SCHEDULER",
                    "its pods are for the scheduler %.*s, which binds no pod without "
                    "claimguard (%s)",
                    SLICE_ARG(name), file->path);
        return;
    }
}

/* ---- the Deployment ---- */

/* Whether the condition of that type has that status. *message is what it says; empty: nothing. */
static bool has_condition(const struct guard *guard, struct slice type, struct slice status,
                          struct slice *message)
{
    const struct condition *found = details_condition(&guard->conditions, type);

    *message = found == NULL ? SLICE("") : found->message;
    return found != NULL && slice_equal(found->status, status);
}

static void check_available(const struct guard *deployment, struct findings *findings)
{
    struct location place = installed_place(findings, KIND_DEPLOYMENT, &deployment->meta);
    int64_t count = deployment->replicas, available = deployment->available;
    struct slice failure; /* why it makes no pods, as its controller says */

    if (!has_condition(deployment, SLICE("ReplicaFailure"), SLICE("True"), &failure))
        failure = SLICE("");
    if (count <= 0)
        finding_add(findings, CG611, place, "replicas: 1",
                    "it has 0 replicas: nobody answers its schedulers");
    else if (deployment->has_status && available < count)
        finding_lower(finding_add(findings, CG611, place, "",
                                  "%lld of %lld replicas %s available%s%.*s", (long long)available,
                                  (long long)count, available == 1 ? "is" : "are",
                                  failure.len == 0 ? "" : ": ", SLICE_ARG(failure)),
                      available <= 0 ? LEVEL_ERROR : LEVEL_WARNING);
}

/* ---- its pods ---- */

/* Of the first container that waits and not only starts; or of one that has just ended. */
static bool container_waits(const struct pull_items *statuses, struct waiting *out)
{
    const struct guard_status *items = statuses->items;

    for (size_t i = 0; i < statuses->count; i++) {
        struct slice waits = items[i].waiting.reason, ended = items[i].ended.reason;
        bool is_starting = waits.len == 0 || slice_equal(waits, SLICE("ContainerCreating")) ||
                           slice_equal(waits, SLICE("PodInitializing"));
        *out = is_starting ? items[i].ended : items[i].waiting;
        if (!is_starting || (ended.len != 0 && !slice_equal(ended, SLICE("Completed"))))
            return true;
    }
    return false;
}

/* The event of a volume that cannot be mounted: a Secret or ConfigMap that is missing. */
static bool mount_fails(const struct installation *installation, const struct guard *pod,
                        struct waiting *out)
{
    bool is_found = false;

    for (const struct event *event = NULL;
         (event = installation_next(installation, KIND_EVENT, event)) != NULL;)
        if (slice_equal(event->pod_uid, pod->meta.uid) && slice_equal(event->pod, pod->meta.name)) {
            *out = (struct waiting){event->reason, event->message};
            is_found = true;
        }
    return is_found;
}

/* Why a pod that is not ready does not run. False: it is ready, or its state does not say. */
static bool find_reason(const struct installation *installation, const struct guard *pod,
                        struct waiting *out)
{
    struct slice message;
    bool has_ready = details_condition(&pod->conditions, SLICE("Ready")) != NULL;

    if (!pod->has_status || pod->deletion_timestamp.len != 0 ||
        has_condition(pod, SLICE("Ready"), SLICE("True"), &message))
        return false;
    if (has_condition(pod, SLICE("PodScheduled"), SLICE("False"), &out->message)) {
        out->reason = SLICE("Pending");
        return true;
    }
    if (container_waits(&pod->init_statuses, out) || container_waits(&pod->statuses, out) ||
        mount_fails(installation, pod, out))
        return true;
    bool is_pending = slice_equal(pod->phase, SLICE("Pending"));
    *out = (struct waiting){is_pending ? SLICE("Pending") : NOT_READY, message};
    return is_pending || has_ready;
}

static const char *mend_of(const struct waiting *waiting)
{
    static const struct {
        const char *part, *mend;
    } rows[] = {
        {"Image", "image: one that the node can pull"},
        {"FailedMount",
         "create what the message says is missing (Secret claimguard-tls: claimguard "
         "certificates; ConfigMap: " ADVICE_TEXT_APPLY ")"},
        {"CrashLoopBackOff", "the log of its last container says why it ends: " ADVICE_TEXT_LOGS},
        {"OOMKilled", "limits: {memory: more}"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (slice_has(waiting->reason, slice_of(rows[i].part)))
            return rows[i].mend;
    return "";
}

static void check_pod(const struct installation *installation, const struct guard *pod,
                      struct findings *findings)
{
    struct waiting waiting;

    if (!find_reason(installation, pod, &waiting))
        return;
    struct finding *finding =
        finding_add(findings, CG612, installed_place(findings, KIND_POD, &pod->meta),
                    mend_of(&waiting), "%.*s%s%.*s", SLICE_ARG(waiting.reason),
                    waiting.message.len == 0 ? "" : ": ", SLICE_ARG(waiting.message));
    if (slice_equal(waiting.reason, NOT_READY)) /* it may have just started */
        finding_lower(finding, LEVEL_WARNING);
}

/* ---- what it is installed with ---- */

/* Reports an object that is not there, if all of its kind were read. */
static void check_object(const struct installation *installation, const struct guard *deployment,
                         enum kind kind, struct slice name, struct findings *findings)
{
    if (installation_knows(installation, kind) &&
        installation_find(installation, kind, name) == NULL)
        finding_add(findings, CG613, installed_place(findings, KIND_DEPLOYMENT, &deployment->meta),
                    ADVICE_TEXT_APPLY, "there is no %s %s/%.*s", kind_text(kind), installation->ns,
                    SLICE_ARG(name));
}

/* Whether a scheduler is given that calls no Service, so that there need be none. */
static bool needs_no_service(const struct examined *examined)
{
    for (const struct scheduler_file *file = NULL; (file = examined_next(examined, file)) != NULL;)
        if (slice_has(file->own->url_prefix.text, SLICE(".svc")))
            return false;
    return examined->scheduler_count != 0;
}

static void check_objects(const struct examined *examined, const struct guard *deployment,
                          struct findings *findings)
{
    const struct mounted_map *maps = deployment->volumes.items;

    for (size_t i = 0; i < deployment->volumes.count; i++)
        if (maps[i].name.len != 0 && !maps[i].is_optional)
            check_object(examined->installation, deployment, KIND_CONFIG_MAP, maps[i].name,
                         findings);
    if (!needs_no_service(examined))
        check_object(examined->installation, deployment, KIND_SERVICE, NAME, findings);
}

/* ---- all ---- */

static void check_deployment(const struct examined *examined, const struct guard *deployment,
                             struct findings *findings)
{
    check_replicas(examined, deployment, findings);
    check_own_scheduler(examined, deployment, findings);
    check_container(examined, installed_place(findings, KIND_DEPLOYMENT, &deployment->meta),
                    deployment, findings);
    check_available(deployment, findings);
    check_objects(examined, deployment, findings);
}

static void report_absent(const struct installation *installation, struct findings *findings)
{
    gaps_add(&findings->gaps, RULES_OF_GUARD,
             installation_knows(installation, KIND_DEPLOYMENT)
                 ? "claimguard itself: it is not installed in namespace %s (no Deployment "
                   "claimguard, no static pod; -n names another namespace)"
                 : "claimguard itself: whether it is installed in namespace %s is not "
                   "known, as no Deployments were read",
             installation->ns);
}

void doctor_check_guard(const struct examined *examined, struct findings *findings)
{
    const struct installation *installation = examined->installation;
    size_t static_pods = 0;

    if (installation == NULL)
        return;
    const struct guard *deployment = find_deployment(installation);
    if (deployment != NULL)
        check_deployment(examined, deployment, findings);
    check_static_pods(examined, findings);
    check_images(installation, deployment, findings);
    check_agreement(installation, findings);
    for (const struct guard *pod = NULL; (pod = next_pod(installation, pod)) != NULL;) {
        check_pod(installation, pod, findings);
        if (pod->mirror.len != 0 && static_pods++ == 0)
            check_container(examined, installed_place(findings, KIND_POD, &pod->meta), pod,
                            findings);
    }
    if (deployment == NULL && static_pods == 0)
        report_absent(installation, findings);
}

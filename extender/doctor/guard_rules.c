#include "extender/doctor/guard_rules.h"

#include "config/base/quantity.h"
#include "extender/version.h"

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

/* ---- how many ---- */

static void report_replicas(const struct examined *examined, struct slice what,
                            struct findings *findings)
{
    const struct config *config = config_of(examined);

    if (config != NULL && config->read_write_once_pod.claim_lock == CLAIM_LOCK_LOCAL)
        (void)finding_add(findings, "CG601",
                          config_place(examined->config, (const char *const[]){"readWriteOncePod",
                                                                               "claimLock", NULL}),
                          "readWriteOncePod: {claimLock: Annotation}",
                          "claimLock is Local, and %.*s", SLICE_ARG(what));
}

static void check_replicas(const struct examined *examined, const json_t *deployment,
                           struct findings *findings)
{
    const json_t *replicas = json_object_get(json_object_get(deployment, "spec"), "replicas");
    json_int_t count = replicas == NULL ? 1 : json_integer_value(replicas);

    if (count > 1)
        report_replicas(examined,
                        arena_printf(findings->arena, "the Deployment %s/%s has %lld replicas",
                                     installed_string(deployment, "metadata", "namespace", NULL),
                                     installed_string(deployment, "metadata", "name", NULL),
                                     (long long)count),
                        findings);
}

/* The API server shows a static pod by a mirror of it. */
static bool is_static(const json_t *pod)
{
    return *installed_string(pod, "metadata", "annotations", "kubernetes.io/config.mirror", NULL) !=
           '\0';
}

static void check_static_pods(const struct examined *examined, struct findings *findings)
{
    struct slice names = SLICE("");
    const json_t *pod;
    size_t i, count = 0;

    json_array_foreach (examined->installation->guards, i, pod)
        if (is_static(pod) && ++count <= NAMES_SHOWN)
            names = arena_printf(findings->arena, "%.*s%s%s/%s", SLICE_ARG(names),
                                 count == 1 ? "" : ", ",
                                 installed_string(pod, "metadata", "namespace", NULL),
                                 installed_string(pod, "metadata", "name", NULL));
    if (count > 1)
        report_replicas(examined,
                        arena_printf(findings->arena, "%zu static pods run claimguard: %.*s%s",
                                     count, SLICE_ARG(names), count > NAMES_SHOWN ? ", ..." : ""),
                        findings);
}

/* ---- a container ---- */

/* The container of claimguard; NULL: there is none of that name. */
static const json_t *find_container(const json_t *spec)
{
    const json_t *container;
    size_t i;

    json_array_foreach (json_object_get(spec, "containers"), i, container)
        if (strcmp(installed_string(container, "name", NULL), "claimguard") == 0)
            return container;
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
                         const json_t *container, struct findings *findings)
{
    const struct config *config = config_of(examined);
    const char *text = installed_string(container, "resources", "limits", "memory", NULL);
    size_t pods = examined->installation->all_pod_count;
    char change[64], cache[64] = "";
    int64_t limit;

    if (config == NULL || !quantity_bytes(&limit, slice_of(text)))
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
    (void)finding_add(
        findings, "CG607", place, kept.ptr == NULL ? "" : kept.ptr,
        "its memory limit is %s; with maxRequestBytes of %lld MiB%s and %zu pods, it may "
        "take %lld MiB",
        text, body_mib, cache, pods, mib);
}

/* The tag of an image, if it is a version; else "". */
static const char *tag_of(const char *image)
{
    const char *slash = strrchr(image, '/'), *tag = strchr(slash == NULL ? image : slash, ':');

    if (tag == NULL || strchr(image, '@') != NULL)
        return "";
    tag += 1 + (tag[1] == 'v');
    return *tag >= '0' && *tag <= '9' && strchr(tag, '.') != NULL ? tag : "";
}

static void check_container(const struct examined *examined, struct location place,
                            const json_t *spec, struct findings *findings)
{
    const json_t *container = find_container(spec);
    const char *version = tag_of(installed_string(container, "image", NULL));

    if (container == NULL)
        return;
    check_memory(examined, place, container, findings);
    if (*version != '\0' && strcmp(version, CLAIMGUARD_VERSION) != 0)
        (void)finding_add(findings, "CG608", place, "call the doctor of its image",
                          "it runs claimguard %s, and this doctor is of " CLAIMGUARD_VERSION,
                          version);
}

/* ---- who schedules it ---- */

/* claimguard's own pods wait for a scheduler that waits for claimguard. */
static void check_own_scheduler(const struct examined *examined, const json_t *deployment,
                                struct findings *findings)
{
    const json_t *template = json_object_get(json_object_get(deployment, "spec"), "template");
    const char *name = installed_string(template, "spec", "schedulerName", NULL);

    if (*name == '\0')
        name = "default-scheduler";
    if (*installed_string(template, "spec", "nodeName", NULL) != '\0')
        return;
    for (size_t i = 0; i < examined->scheduler_count; i++) {
        const struct scheduler_extender *own = examined->schedulers[i].own;
        if (own == NULL || own->managed_count != 0 || own->ignorable.is_true ||
            !scheduler_has_profile(&examined->schedulers[i], slice_of(name)))
            continue;
        (void)finding_add(findings, "CG806", installed_place(findings, "Deployment", deployment),
                          "schedulerName: ANOTHER-SCHEDULER",
                          "its pods are for the scheduler %s, which binds no pod without "
                          "claimguard (%s)",
                          name, examined->schedulers[i].path);
        return;
    }
}

/* ---- all ---- */

static void check_deployment(const struct examined *examined, const json_t *deployment,
                             struct findings *findings)
{
    const json_t *template = json_object_get(json_object_get(deployment, "spec"), "template");

    check_replicas(examined, deployment, findings);
    check_own_scheduler(examined, deployment, findings);
    check_container(examined, installed_place(findings, "Deployment", deployment),
                    json_object_get(template, "spec"), findings);
}

void guard_rules_check(const struct examined *examined, struct findings *findings)
{
    const struct installation *installation = examined->installation;
    const json_t *pod, *deployment = installation_find(installation, INSTALLED_DEPLOYMENT,
                                                       installation->ns, "claimguard");
    size_t i, static_pods = 0;

    if (deployment != NULL)
        check_deployment(examined, deployment, findings);
    check_static_pods(examined, findings);
    json_array_foreach (installation->guards, i, pod)
        if (is_static(pod) && static_pods++ == 0)
            check_container(examined, installed_place(findings, "Pod", pod),
                            json_object_get(pod, "spec"), findings);
    if (deployment == NULL && static_pods == 0)
        finding_unread(
            findings,
            installation->is_known[INSTALLED_DEPLOYMENT]
                ? "claimguard itself: it is not installed in namespace %s (no Deployment "
                  "claimguard, no static pod; -n names another namespace)"
                : "claimguard itself: whether it is installed in namespace %s is not "
                  "known, as no Deployments were read",
            installation->ns);
}

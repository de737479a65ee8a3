#include "extender/doctor/running_rules.h"

#include <stdio.h>

#include "extender/report/advice_rows.h"

#define NAME      "claimguard"
#define NOT_READY "not ready"

static const json_t *find_deployment(const struct installation *installation)
{
    return installation_find(installation, INSTALLED_DEPLOYMENT, installation->ns, NAME);
}

bool running_is_absent(const struct installation *installation)
{
    return installation->is_known[INSTALLED_DEPLOYMENT] && find_deployment(installation) == NULL &&
           json_array_size(installation->guards) == 0;
}

/* ---- the Deployment ---- */

/* The condition of that type; NULL: there is none. */
static const json_t *find_condition(const json_t *object, const char *type)
{
    const json_t *conditions = json_object_get(json_object_get(object, "status"), "conditions");
    const json_t *condition;
    size_t i;

    json_array_foreach (conditions, i, condition)
        if (strcmp(installed_string(condition, "type", NULL), type) == 0)
            return condition;
    return NULL;
}

/* Why the Deployment makes no pods, as its controller says; "": it does. */
static const char *failure_of(const json_t *deployment)
{
    const json_t *failed = find_condition(deployment, "ReplicaFailure");

    return strcmp(installed_string(failed, "status", NULL), "True") != 0
               ? ""
               : installed_string(failed, "message", NULL);
}

static void check_deployment(const json_t *deployment, struct findings *findings)
{
    const json_t *wanted = json_object_get(json_object_get(deployment, "spec"), "replicas");
    const json_t *status = json_object_get(deployment, "status");
    json_int_t count = wanted == NULL ? 1 : json_integer_value(wanted);
    json_int_t available = json_integer_value(json_object_get(status, "availableReplicas"));
    const char *failure = failure_of(deployment);

    if (count <= 0)
        (void)finding_add(findings, "CG611", installed_place(findings, "Deployment", deployment),
                          "replicas: 1", "it has 0 replicas: nobody answers its schedulers");
    else if (status != NULL && available < count)
        finding_lower(finding_add(findings, "CG611",
                                  installed_place(findings, "Deployment", deployment), "",
                                  "%lld of %lld replicas %s available%s%s", (long long)available,
                                  (long long)count, available == 1 ? "is" : "are",
                                  *failure == '\0' ? "" : ": ", failure),
                      available <= 0 ? LEVEL_ERROR : LEVEL_WARNING);
}

/* ---- its pods ---- */

/* What a pod waits for. */
struct waiting {
    const char *reason, *message;
};

/* Of the first container that waits and not only starts; or of one that has just ended. */
static bool container_waits(const json_t *pod, const char *key, struct waiting *out)
{
    const json_t *statuses = json_object_get(json_object_get(pod, "status"), key), *status;
    size_t i;

    json_array_foreach (statuses, i, status) {
        const char *waits = installed_string(status, "state", "waiting", "reason", NULL);
        const char *ended = installed_string(status, "state", "terminated", "reason", NULL);
        if (*waits != '\0' && strcmp(waits, "ContainerCreating") != 0 &&
            strcmp(waits, "PodInitializing") != 0) {
            *out = (struct waiting){waits,
                                    installed_string(status, "state", "waiting", "message", NULL)};
            return true;
        }
        if (*ended != '\0' && strcmp(ended, "Completed") != 0) {
            *out = (struct waiting){
                ended, installed_string(status, "state", "terminated", "message", NULL)};
            return true;
        }
    }
    return false;
}

/* The event of a volume that cannot be mounted: a Secret or ConfigMap that is missing. */
static bool mount_fails(const struct installation *installation, const json_t *pod,
                        struct waiting *out)
{
    const json_t *event;
    size_t i;

    *out = (struct waiting){"", ""};
    json_array_foreach (installation->objects[INSTALLED_EVENT], i, event)
        if (strcmp(installed_string(event, "reason", NULL), "FailedMount") == 0 &&
            strcmp(installed_string(event, "involvedObject", "uid", NULL),
                   installed_string(pod, "metadata", "uid", NULL)) == 0 &&
            strcmp(installed_string(event, "involvedObject", "name", NULL),
                   installed_string(pod, "metadata", "name", NULL)) == 0)
            *out = (struct waiting){"FailedMount", installed_string(event, "message", NULL)};
    return *out->reason != '\0';
}

/* Why a pod that is not ready does not run. False: it is ready, or its state does not say. */
static bool find_reason(const struct installation *installation, const json_t *pod,
                        struct waiting *out)
{
    const json_t *scheduled = find_condition(pod, "PodScheduled");
    const json_t *ready = find_condition(pod, "Ready");

    if (json_object_get(pod, "status") == NULL ||
        *installed_string(pod, "metadata", "deletionTimestamp", NULL) != '\0' ||
        strcmp(installed_string(ready, "status", NULL), "True") == 0)
        return false;
    if (strcmp(installed_string(scheduled, "status", NULL), "False") == 0) {
        *out = (struct waiting){"Pending", installed_string(scheduled, "message", NULL)};
        return true;
    }
    if (container_waits(pod, "initContainerStatuses", out) ||
        container_waits(pod, "containerStatuses", out) || mount_fails(installation, pod, out))
        return true;
    bool is_pending = strcmp(installed_string(pod, "status", "phase", NULL), "Pending") == 0;
    *out = (struct waiting){is_pending ? "Pending" : NOT_READY,
                            installed_string(ready, "message", NULL)};
    return is_pending || ready != NULL;
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
        if (strstr(waiting->reason, rows[i].part) != NULL)
            return rows[i].mend;
    return "";
}

static void check_pod(const struct installation *installation, const json_t *pod,
                      struct findings *findings)
{
    struct waiting waiting;

    if (!find_reason(installation, pod, &waiting))
        return;
    struct finding *finding = finding_add(findings, "CG612", installed_place(findings, "Pod", pod),
                                          mend_of(&waiting), "%s%s%s", waiting.reason,
                                          *waiting.message == '\0' ? "" : ": ", waiting.message);
    if (strcmp(waiting.reason, NOT_READY) == 0) /* it may have just started */
        finding_lower(finding, LEVEL_WARNING);
}

/* ---- what it is installed with ---- */

static void report_missing(const struct installation *installation, const json_t *deployment,
                           const char *kind, const char *name, struct findings *findings)
{
    (void)finding_add(findings, "CG613", installed_place(findings, "Deployment", deployment),
                      ADVICE_TEXT_APPLY, "there is no %s %s/%s", kind, installation->ns, name);
}

/* Each ConfigMap that the pods mount and cannot do without. */
static void check_config_maps(const struct installation *installation, const json_t *deployment,
                              struct findings *findings)
{
    const json_t *template = json_object_get(json_object_get(deployment, "spec"), "template");
    const json_t *volume;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(template, "spec"), "volumes"), i, volume) {
        const json_t *source = json_object_get(volume, "configMap");
        const char *name = installed_string(source, "name", NULL);
        if (*name != '\0' && !json_is_true(json_object_get(source, "optional")) &&
            installation_find(installation, INSTALLED_CONFIG_MAP, installation->ns, name) == NULL)
            report_missing(installation, deployment, "ConfigMap", name, findings);
    }
}

/* Whether a scheduler is given that calls no Service, so that there need be none. */
static bool needs_no_service(const struct examined *examined)
{
    for (size_t i = 0; i < examined->scheduler_count; i++) {
        const struct scheduler_extender *own = examined->schedulers[i].own;
        if (own != NULL && slice_has(own->url_prefix.text, SLICE(".svc")))
            return false;
    }
    return examined->scheduler_count != 0;
}

/* ---- all ---- */

void running_rules_check(const struct examined *examined, struct findings *findings)
{
    const struct installation *installation = examined->installation;
    const json_t *deployment = find_deployment(installation), *pod;
    size_t i;

    json_array_foreach (installation->guards, i, pod)
        check_pod(installation, pod, findings);
    if (deployment == NULL)
        return;
    check_deployment(deployment, findings);
    if (installation->is_known[INSTALLED_CONFIG_MAP])
        check_config_maps(installation, deployment, findings);
    if (installation->is_known[INSTALLED_SERVICE] && !needs_no_service(examined) &&
        installation_find(installation, INSTALLED_SERVICE, installation->ns, NAME) == NULL)
        report_missing(installation, deployment, "Service", NAME, findings);
}

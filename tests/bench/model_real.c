/* Objects as a real cluster has them, owners and conditions included. */
#include <stdio.h>

#include "model_internal.h"

enum { STATEFUL_PODS = 20 };

#define TIME "2026-11-20T19:37:44Z"

/* As the control plane and the nodes write status. */
static const char status_managed_fields[] =
    ",{\"manager\":\"kubelet\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"" TIME
    "\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\""
    ":\\\"ContainersReady\\\"}\":{\".\":{},\"f:lastProbeTime\":{},\"f:lastTransitionTime\":{},"
    "\"f:status\":{},\"f:type\":{}},\"k:{\\\"type\\\":\\\"Initialized\\\"}\":{\".\":{},"
    "\"f:lastProbeTime\":{},\"f:lastTransitionTime\":{},\"f:status\":{},\"f:type\":{}},"
    "\"k:{\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:lastProbeTime\":{},\"f:lastTransitionTime\":"
    "{},\"f:status\":{},\"f:type\":{}}},\"f:containerStatuses\":{},\"f:hostIP\":{},\"f:phase\":{},"
    "\"f:podIP\":{},\"f:podIPs\":{\".\":{},\"k:{\\\"ip\\\":\\\"10.42.7.19\\\"}\":{\".\":{},"
    "\"f:ip\":{}}},\"f:startTime\":{}}},\"subresource\":\"status\"}]";

static void put_managed_fields(struct buf *out)
{
    struct slice first = slice_of(model_managed_fields);

    first.len--; /* without its bracket */
    buf_put(out, first);
    buf_put(out, SLICE(status_managed_fields));
}

static bool is_stateful(const struct model *model, unsigned i)
{
    return i >= model->deployments;
}

/* Of the pods that wait, every other one waits for its neighbour's claim. */
static unsigned claim_of(const struct model *model, unsigned i)
{
    unsigned neighbour = i ^ 2;
    bool is_other = is_stateful(model, i) && !model_pod_is_assigned(model, i) && i % 2 == 1 &&
                    neighbour < model->pods;

    return (is_other ? neighbour : i) % model->claims;
}

/* ---- nodes ---- */

static void put_condition(const char *type, const char *status, const char *rest, struct buf *out)
{
    buf_printf(out,
               "{\"type\":\"%s\",\"status\":\"%s\",\"lastProbeTime\":null,"
               "\"lastTransitionTime\":\"" TIME "\"%s}",
               type, status, rest);
}

void model_put_real_node(const struct model *model, unsigned i, struct buf *out)
{
    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Node\","));
    model_put_meta(model, "ip-10-20-node", 10, i, out);
    buf_printf(out,
               ",\"labels\":{\"kubernetes.io/os\":\"linux\",\"kubernetes.io/arch\":\"amd64\","
               "\"kubernetes.io/hostname\":\"ip-10-20-node-%u\",\"topology.kubernetes.io/zone\":"
               "\"zone-%u\"}},\"spec\":{\"podCIDR\":\"10.42.0.0/24\"},\"status\":{\"capacity\":{"
               "\"cpu\":\"8\",\"memory\":\"32Gi\",\"pods\":\"110\"},\"conditions\":[",
               i, i % 3);
    put_condition("MemoryPressure", "False", ",\"reason\":\"KubeletHasSufficientMemory\"", out);
    buf_put(out, SLICE(","));
    put_condition("DiskPressure", "False", ",\"reason\":\"KubeletHasNoDiskPressure\"", out);
    buf_put(out, SLICE(","));
    put_condition("Ready", "True", ",\"reason\":\"KubeletReady\"", out);
    buf_put(out, SLICE("]}}"));
}

/* ---- claims and volumes ---- */

static void put_storage_labels(unsigned i, struct buf *out)
{
    buf_printf(out, ",\"labels\":{\"app.kubernetes.io/name\":\"web-%u\"}", i / STATEFUL_PODS);
}

void model_put_real_claim(const struct model *model, unsigned i, struct buf *out)
{
    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\","));
    model_put_meta(model, "data-web-frontend", 20, i, out);
    put_storage_labels(i, out);
    buf_printf(out,
               ",\"namespace\":\"team-%03u\",\"annotations\":{\"pv.kubernetes.io/bind-completed\":"
               "\"yes\",\"pv.kubernetes.io/bound-by-controller\":\"yes\","
               "\"volume.beta.kubernetes.io/storage-provisioner\":\"plugin1.example.com\","
               "\"volume.kubernetes.io/selected-node\":\"ip-10-20-node-%u\","
               "\"volume.kubernetes.io/storage-provisioner\":\"plugin1.example.com\"},"
               "\"finalizers\":[\"kubernetes.io/pvc-protection\"]",
               model_namespace(model, i), i % (model->nodes == 0 ? 1 : model->nodes));
    put_managed_fields(out);
    buf_printf(out,
               "},\"spec\":{\"accessModes\":[\"%s\"],\"resources\":{\"requests\":{\"storage\":"
               "\"10Gi\"}},\"storageClassName\":\"fast-storage\",\"volumeMode\":\"Filesystem\","
               "\"volumeName\":\"pvc-",
               model_access_mode(model, i));
    model_put_uid(model, 20, i, out);
    buf_printf(out,
               "\"},\"status\":{\"phase\":\"Bound\",\"accessModes\":[\"%s\"],\"capacity\":{"
               "\"storage\":\"10Gi\"}}}",
               model_access_mode(model, i));
}

void model_put_real_volume(const struct model *model, unsigned i, struct buf *out)
{
    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{"
                       "\"name\":\"pvc-"));
    model_put_uid(model, 20, i, out);
    buf_put(out, SLICE("\",\"uid\":\""));
    model_put_uid(model, 50, i, out);
    buf_printf(out,
               "\",\"resourceVersion\":\"%u\",\"creationTimestamp\":\"" TIME "\",\"annotations\":{"
               "\"pv.kubernetes.io/provisioned-by\":\"plugin1.example.com\"},\"finalizers\":["
               "\"kubernetes.io/pv-protection\",\"external-attacher/plugin1-example-com\"]",
               1000 + i);
    put_managed_fields(out);
    buf_printf(out,
               "},\"spec\":{\"accessModes\":[\"%s\"],\"capacity\":{\"storage\":\"10Gi\"},\"csi\":{"
               "\"driver\":\"plugin1.example.com\",\"fsType\":\"ext4\",\"volumeAttributes\":{"
               "\"storage.kubernetes.io/csiProvisionerIdentity\":\"1763667464-plugin1\"},"
               "\"volumeHandle\":\"vol-%017u\"},\"claimRef\":{\"apiVersion\":\"v1\",\"kind\":"
               "\"PersistentVolumeClaim\",\"namespace\":\"team-%03u\",\"name\":"
               "\"data-web-frontend-%u\",\"uid\":\"",
               model_access_mode(model, i), i, model_namespace(model, i), i);
    model_put_uid(model, 20, i, out);
    buf_printf(out,
               "\"},\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{"
               "\"key\":\"topology.kubernetes.io/zone\",\"operator\":\"In\",\"values\":[\"zone-%u\""
               "]}]}]}},\"persistentVolumeReclaimPolicy\":\"Delete\",\"storageClassName\":"
               "\"fast-storage\",\"volumeMode\":\"Filesystem\"},\"status\":{\"phase\":\"Bound\"}}",
               i % 3);
}

/* ---- pods ---- */

static void put_owner(const struct model *model, unsigned i, struct buf *out)
{
    if (is_stateful(model, i))
        buf_printf(out,
                   ",\"app.kubernetes.io/name\":\"db-%u\",\"apps.kubernetes.io/pod-index\":\"%u\","
                   "\"controller-revision-hash\":\"db-%u-6c8d9f7b5\","
                   "\"statefulset.kubernetes.io/pod-name\":\"web-frontend-7d9f8b6c5d-%u\"},"
                   "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\","
                   "\"name\":\"db-%u\"",
                   i / STATEFUL_PODS, i % STATEFUL_PODS, i / STATEFUL_PODS, i, i / STATEFUL_PODS);
    else
        buf_printf(out,
                   ",\"app.kubernetes.io/name\":\"web-%u\",\"pod-template-hash\":\"7d9f8b6c5d\"},"
                   "\"generateName\":\"web-%u-7d9f8b6c5d-\",\"ownerReferences\":[{\"apiVersion\":"
                   "\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"web-%u-7d9f8b6c5d\"",
                   i, i, i);
    buf_put(out, SLICE(",\"uid\":\""));
    model_put_uid(model, 60, is_stateful(model, i) ? i / STATEFUL_PODS : i, out);
    buf_put(out, SLICE("\",\"controller\":true,\"blockOwnerDeletion\":true}]"));
}

static void put_running(unsigned i, struct buf *out)
{
    static const char *const types[] = {"PodReadyToStartContainers", "Initialized", "Ready",
                                        "ContainersReady", "PodScheduled"};

    buf_put(out, SLICE("\"conditions\":["));
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        buf_put(out, t == 0 ? SLICE("") : SLICE(","));
        put_condition(types[t], "True", "", out);
    }
    buf_printf(out,
               "],\"containerStatuses\":[{\"containerID\":\"containerd://%064u\",\"image\":"
               "\"registry.example/team/app:1.2.3\",\"imageID\":\"registry.example/team/app@"
               "sha256:%064u\",\"lastState\":{},\"name\":\"app\",\"ready\":true,\"restartCount\":0,"
               "\"started\":true,\"state\":{\"running\":{\"startedAt\":\"" TIME "\"}}}],"
               "\"hostIP\":\"10.20.%u.%u\",\"phase\":\"Running\",\"podIP\":\"10.42.%u.%u\","
               "\"startTime\":\"" TIME "\"",
               i, i, i >> 8 & 255, i & 255, i >> 8 & 255, i & 255);
}

static void put_pending(const struct model *model, struct buf *out)
{
    char message[512];

    (void)snprintf(message, sizeof message,
                   ",\"reason\":\"Unschedulable\",\"message\":\"0/%u nodes are available: %u "
                   "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access "
                   "mode already in-use by another pod. no new claims to deallocate, preemption: "
                   "0/%u nodes are available: %u No preemption victims found for incoming pod.\"",
                   model->nodes, model->nodes, model->nodes, model->nodes);
    buf_put(out, SLICE("\"conditions\":["));
    put_condition("PodScheduled", "False", message, out);
    buf_put(out, SLICE("],\"phase\":\"Pending\""));
}

void model_put_real_pod(const struct model *model, unsigned i, struct buf *out)
{
    unsigned claim = claim_of(model, i);

    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Pod\","));
    model_put_meta(model, "web-frontend-7d9f8b6c5d", 30, i, out);
    buf_printf(out,
               ",\"namespace\":\"team-%03u\",\"labels\":{\"app.kubernetes.io/part-of\":\"shop\"",
               model_namespace(model, claim));
    put_owner(model, i, out);
    put_managed_fields(out);
    buf_printf(out,
               "},\"spec\":{\"volumes\":[{\"name\":\"data\",\"persistentVolumeClaim\":{"
               "\"claimName\":\"data-web-frontend-%u\"}},{\"name\":\"kube-api-access-8xq2m\","
               "\"projected\":{\"defaultMode\":420,\"sources\":[{\"serviceAccountToken\":{"
               "\"expirationSeconds\":3607,\"path\":\"token\"}},{\"configMap\":{\"items\":[{"
               "\"key\":\"ca.crt\",\"path\":\"ca.crt\"}],\"name\":\"kube-root-ca.crt\"}}]}}],",
               claim);
    buf_put(out, slice_of(model_containers));
    if (model_pod_is_assigned(model, i))
        buf_printf(out, ",\"nodeName\":\"ip-10-20-node-%u\"",
                   (unsigned)(model_share(model, 3, i) * model->nodes));
    buf_printf(out,
               ",\"priority\":%u,\"preemptionPolicy\":\"PreemptLowerPriority\"},\"status\":{"
               "\"qosClass\":\"Burstable\",",
               (unsigned)(model_share(model, 4, i) * 3) * 100);
    if (model_pod_is_assigned(model, i))
        put_running(i, out);
    else
        put_pending(model, out);
    buf_put(out, SLICE("}}"));
}

/* Its pod is pod i. One of a hundred adds its new pod before it removes the old one. */
void model_put_deployment(const struct model *model, unsigned i, struct buf *out)
{
    buf_put(out, SLICE("{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\","));
    model_put_meta(model, "web", 70, i, out);
    buf_printf(out, ",\"namespace\":\"team-%03u\",\"generation\":1",
               model_namespace(model, claim_of(model, i)));
    put_managed_fields(out);
    buf_printf(out,
               "},\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{"
               "\"app.kubernetes.io/name\":\"web-%u\"}},\"strategy\":{\"type\":\"%s\"},"
               "\"template\":{\"metadata\":{\"labels\":{\"app.kubernetes.io/name\":\"web-%u\"}},"
               "\"spec\":{\"volumes\":[{\"name\":\"data\",\"persistentVolumeClaim\":{"
               "\"claimName\":\"data-web-frontend-%u\"}}],",
               i, i % 100 == 0 ? "RollingUpdate" : "Recreate", i, claim_of(model, i));
    buf_put(out, slice_of(model_containers));
    buf_put(out, SLICE("}}},\"status\":{\"availableReplicas\":1,\"conditions\":["));
    put_condition("Available", "True", ",\"reason\":\"MinimumReplicasAvailable\"", out);
    buf_put(out, SLICE("],\"observedGeneration\":1,\"readyReplicas\":1,\"replicas\":1}}"));
}

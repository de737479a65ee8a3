#include "model_internal.h"

/* splitmix64: a number for each (seed, stream, index), in any order */
static uint64_t mix(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint64_t z = seed + (stream << 40) + index * UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static double share(uint64_t number)
{
    return (double)(number >> 11) / 9007199254740992.0;
}

double model_share(const struct model *model, uint64_t stream, unsigned i)
{
    return share(mix(model->seed, stream, i));
}

bool model_claim_is_exclusive(const struct model *model, unsigned i)
{
    return share(mix(model->seed, 1, i)) < model->exclusive_share;
}

bool model_pod_is_assigned(const struct model *model, unsigned i)
{
    return share(mix(model->seed, 2, i)) >= model->pending_share;
}

void model_put_uid(const struct model *model, uint64_t stream, unsigned i, struct buf *out)
{
    uint64_t a = mix(model->seed, stream, i), b = mix(model->seed, stream + 1, i);

    buf_printf(out, "%08x-%04x-4%03x-8%03x-%012llx", (unsigned)(a >> 32),
               (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff), (unsigned)(b >> 48 & 0xfff),
               (unsigned long long)(b & UINT64_C(0xffffffffffff)));
}

static unsigned namespaces(const struct model *model)
{
    return 1 + model->pods / 500;
}

/* Pod i and claim i are in the namespace of claim i % claims, so that they can meet. */
unsigned model_namespace(const struct model *model, unsigned claim)
{
    return claim % namespaces(model);
}

void model_put_meta(const struct model *model, const char *name, uint64_t stream, unsigned i,
                    struct buf *out)
{
    buf_printf(out, "\"metadata\":{\"name\":\"%s-%u\",", name, i);
    buf_put(out, SLICE("\"uid\":\""));
    model_put_uid(model, stream, i, out);
    buf_printf(out, "\",\"resourceVersion\":\"%u\",\"creationTimestamp\":\"2026-11-20T19:37:44Z\"",
               1000 + i);
}

const char model_managed_fields[] =
    ",\"managedFields\":[{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\","
    "\"apiVersion\":\"v1\",\"time\":\"2026-11-20T19:46:13Z\",\"fieldsType\":\"FieldsV1\","
    "\"fieldsV1\":"
    "{\"f:metadata\":{\"f:generateName\":{},\"f:labels\":{\".\":{},\"f:app\":{},\"f:pod-template-"
    "hash\""
    ":{}},\"f:ownerReferences\":{\".\":{},\"k:{\\\"uid\\\":\\\"52cb4c2f\\\"}\":{}}},\"f:spec\":{"
    "\"f:containers\":{\"k:{\\\"name\\\":\\\"app\\\"}\":{\".\":{},\"f:env\":{\".\":{},\"k:{"
    "\\\"name\\\""
    ":\\\"POD_NAME\\\"}\":{\".\":{},\"f:name\":{},\"f:valueFrom\":{\".\":{},\"f:fieldRef\":{}}}},"
    "\"f:image\":{},\"f:imagePullPolicy\":{},\"f:name\":{},\"f:resources\":{\".\":{},\"f:"
    "requests\":{"
    "\".\":{},\"f:cpu\":{},\"f:memory\":{}}},\"f:terminationMessagePath\":{},"
    "\"f:terminationMessagePolicy\":{},\"f:volumeMounts\":{\".\":{},\"k:{\\\"mountPath\\\":\\\"/"
    "data\\\""
    "}\":{\".\":{},\"f:mountPath\":{},\"f:name\":{}}}}},\"f:dnsPolicy\":{},\"f:"
    "enableServiceLinks\":{},"
    "\"f:restartPolicy\":{},\"f:schedulerName\":{},\"f:securityContext\":{},"
    "\"f:terminationGracePeriodSeconds\":{},\"f:volumes\":{\".\":{},\"k:{\\\"name\\\":\\\"data\\\"}"
    "\":{"
    "\".\":{},\"f:name\":{},\"f:persistentVolumeClaim\":{\".\":{},\"f:claimName\":{}}}}}}}]";

const char model_containers[] =
    "\"containers\":[{\"name\":\"app\",\"image\":\"registry.example/team/app:1.2.3\",\"env\":[{"
    "\"name\":\"POD_NAME\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":"
    "\"metadata.name\"}}}],\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"}},"
    "\"volumeMounts\":[{\"name\":\"data\",\"mountPath\":\"/data\"}],\"terminationMessagePath\":"
    "\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":"
    "\"IfNotPresent\"}],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,"
    "\"dnsPolicy\""
    ":\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\","
    "\"tolerations\":["
    "{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
    "\"tolerationSeconds\":300},{\"key\":\"node.kubernetes.io/"
    "unreachable\",\"operator\":\"Exists\","
    "\"effect\":\"NoExecute\",\"tolerationSeconds\":300}],\"enableServiceLinks\":true";

void model_put_node(const struct model *model, unsigned i, struct buf *out)
{
    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Node\","));
    model_put_meta(model, "ip-10-20-node", 10, i, out);
    buf_put(
        out,
        SLICE(",\"labels\":{\"kubernetes.io/os\":\"linux\"}},\"spec\":{},\"status\":{\"capacity\":"
              "{\"cpu\":\"8\",\"memory\":\"32Gi\",\"pods\":\"110\"}}}"));
}

/* The one of node i, as a kubelet writes it. */
void model_put_csi_node(const struct model *model, unsigned i, struct buf *out)
{
    bool has_driver = share(mix(model->seed, 5, i)) < model->driver_share;

    buf_printf(
        out,
        "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSINode\",\"metadata\":{\"name\":"
        "\"ip-10-20-node-%u\",\"annotations\":{\"storage.alpha.kubernetes.io/"
        "migrated-plugins\":\"kubernetes.io/aws-ebs,kubernetes.io/azure-disk,"
        "kubernetes.io/azure-file,kubernetes.io/cinder,kubernetes.io/gce-pd,"
        "kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume\"},\"ownerReferences\":[{"
        "\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"ip-10-20-node-%u\",\"uid\":\"",
        i, i);
    model_put_uid(model, 10, i, out);
    buf_printf(out, "\"}]},\"spec\":{\"drivers\":[{\"name\":\"metrics.example.com\"}%s]}}",
               has_driver ? ",{\"name\":\"plugin1.example.com\"}" : "");
}

const char *model_access_mode(const struct model *model, unsigned claim)
{
    return model_claim_is_exclusive(model, claim) ? "ReadWriteOncePod" : "ReadWriteOnce";
}

void model_put_claim(const struct model *model, unsigned i, struct buf *out)
{
    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\","));
    model_put_meta(model, "data-web-frontend", 20, i, out);
    buf_printf(out,
               ",\"namespace\":\"team-%03u\"},\"spec\":{\"accessModes\":[\"%s\"],\"resources\":{"
               "\"requests\":{\"storage\":\"10Gi\"}},\"storageClassName\":\"fast-storage\","
               "\"volumeMode\":\"Filesystem\",\"volumeName\":\"pvc-",
               model_namespace(model, i), model_access_mode(model, i));
    model_put_uid(model, 20, i, out);
    buf_put(out, SLICE("\"},\"status\":{\"phase\":\"Bound\",\"accessModes\":[\"ReadWriteOnce\"],"
                       "\"capacity\":{\"storage\":\"10Gi\"}}}"));
}

/* The one that claim i is bound to. */
void model_put_volume(const struct model *model, unsigned i, struct buf *out)
{
    buf_put(out,
            SLICE("{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":"
                  "\"pvc-"));
    model_put_uid(model, 20, i, out);
    buf_printf(out,
               "\"},\"spec\":{\"accessModes\":[\"%s\"],"
               "\"csi\":{\"driver\":\"plugin1.example.com\",\"fsType\":\"ext4\"},"
               "\"claimRef\":{\"namespace\":\"team-%03u\",\"name\":\"data-web-frontend-%u\"}}}",
               model_access_mode(model, i), model_namespace(model, i), i);
}

static void put_volumes(long claim, struct buf *out)
{
    buf_put(out, SLICE("\"volumes\":[{\"name\":\"config\",\"configMap\":{\"name\":\"web\","
                       "\"defaultMode\":420}}"));
    if (claim >= 0)
        buf_printf(out,
                   ",{\"name\":\"data\",\"persistentVolumeClaim\":{\"claimName\":"
                   "\"data-web-frontend-%ld\"}}",
                   claim);
    buf_put(out, SLICE("],"));
}

/* As a Deployment of twenty replicas has them. */
static void put_namespace_and_labels(unsigned ns, unsigned app, struct buf *out)
{
    buf_printf(out,
               ",\"namespace\":\"team-%03u\",\"labels\":{\"app.kubernetes.io/name\":\"web-%u\","
               "\"app.kubernetes.io/part-of\":\"shop\",\"pod-template-hash\":\"7d9f8b6c5d\"}",
               ns, app);
}

void model_put_pod(const struct model *model, unsigned i, struct buf *out)
{
    long claim = model->claims == 0 ? -1 : (long)(i % model->claims);

    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Pod\","));
    model_put_meta(model, "web-frontend-7d9f8b6c5d", 30, i, out);
    put_namespace_and_labels(model_namespace(model, claim < 0 ? i : (unsigned)claim), i / 20, out);
    buf_put(out, slice_of(model_managed_fields));
    buf_put(out, SLICE("},\"spec\":{"));
    put_volumes(claim, out);
    buf_put(out, slice_of(model_containers));
    if (model_pod_is_assigned(model, i))
        buf_printf(out, ",\"nodeName\":\"ip-10-20-node-%u\"",
                   (unsigned)(mix(model->seed, 3, i) % (model->nodes == 0 ? 1 : model->nodes)));
    buf_printf(out,
               ",\"priority\":%u,\"preemptionPolicy\":\"PreemptLowerPriority\"},\"status\":{"
               "\"phase\":\"%s\",\"qosClass\":\"Burstable\"}}",
               (unsigned)(mix(model->seed, 4, i) % 3) * 100,
               model_pod_is_assigned(model, i) ? "Running" : "Pending");
}

void model_put_review(const struct model *model, unsigned i, struct buf *out)
{
    unsigned ns = model_namespace(model, model->claims == 0 ? i : i % model->claims);

    buf_printf(
        out,
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
        "\"uid\":\"705ab4f5-6393-11e8-b7cc-42010a800002\",\"kind\":{\"group\":\"\",\"version\":"
        "\"v1\",\"kind\":\"Binding\"},\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":"
        "\"pods\"},\"subResource\":\"binding\",\"requestKind\":{\"group\":\"\",\"version\":\"v1\","
        "\"kind\":\"Binding\"},\"requestResource\":{\"group\":\"\",\"version\":\"v1\","
        "\"resource\":\"pods\"},\"requestSubResource\":\"binding\",\"name\":"
        "\"web-frontend-7d9f8b6c5d-%u\",\"namespace\":\"team-%03u\",\"operation\":\"CREATE\","
        "\"userInfo\":{\"username\":\"system:kube-scheduler\",\"groups\":["
        "\"system:authenticated\"]},\"object\":{\"kind\":\"Binding\",\"apiVersion\":\"v1\",",
        i, ns);
    model_put_meta(model, "web-frontend-7d9f8b6c5d", 30, i, out);
    buf_printf(out,
               ",\"namespace\":\"team-%03u\"},\"target\":{\"kind\":\"Node\",\"name\":"
               "\"ip-10-20-node-0\"}},\"oldObject\":null,\"dryRun\":false,\"options\":{\"kind\":"
               "\"CreateOptions\",\"apiVersion\":\"meta.k8s.io/v1\"}}}",
               ns);
}

/* The pod of a call, which does not exist yet. */
static void put_asking_pod(const struct model *model, long claim, struct buf *out)
{
    buf_put(out, SLICE("\"Pod\":{"));
    model_put_meta(model, model->asked_name == NULL ? "web-frontend-new" : model->asked_name, 40,
                   (unsigned)(claim + 1), out);
    put_namespace_and_labels(claim < 0 ? 0 : model_namespace(model, (unsigned)claim), 1, out);
    buf_put(out, slice_of(model_managed_fields));
    buf_put(out, SLICE("},\"spec\":{"));
    if (model->runtime_class != NULL)
        buf_printf(out, "\"runtimeClassName\":\"%s\",", model->runtime_class);
    put_volumes(claim, out);
    buf_put(out, slice_of(model_containers));
    buf_put(out, SLICE(",\"priority\":50},\"status\":{\"phase\":\"Pending\"}}"));
}

void model_put_filter(const struct model *model, long claim, unsigned names, struct buf *out)
{
    buf_put(out, SLICE("{"));
    put_asking_pod(model, claim, out);
    buf_put(out, SLICE(",\"Nodes\":null,\"NodeNames\":["));
    for (unsigned i = 0; i < names; i++)
        buf_printf(out, "%s\"ip-10-20-node-%u\"", i == 0 ? "" : ",", i);
    buf_put(out, SLICE("]}\n"));
}

static const char volcano_resources[] =
    "{\"MilliCPU\":100,\"Memory\":134217728,\"ScalarResources\":{\"pods\":1},\"MaxTaskNum\":0}";

/* A TaskInfo but for its Pod: as encoding/json writes it, in the order of its fields. */
static void put_task(unsigned i, struct buf *out)
{
    buf_printf(out,
               "\"UID\":\"%08x-0000-4000-8000-000000000000\",\"Job\":\"team-000/job-%u\",\"Name\":"
               "\"web-frontend-%u\",\"Namespace\":\"team-000\",\"TaskRole\":\"worker\","
               "\"Resreq\":%s,\"InitResreq\":%s,\"DRAResreq\":null,\"ResourceClaimKeys\":null,"
               "\"ResourceClaimDRAResreq\":null,\"NodeName\":\"ip-10-20-node-0\","
               "\"EvictionOccurred\":false,\"JobAllocatedHyperNode\":\"\",\"Status\":64,"
               "\"LastTransaction\":null,\"Priority\":1,\"VolumeReady\":false,\"Preemptable\":"
               "false,\"BestEffort\":false,\"HasRestartableInitContainer\":false,\"SchGated\":"
               "false,\"RevocableZone\":\"\",\"NumaInfo\":{\"Policy\":\"\",\"ResMap\":{}},",
               i, i, i, volcano_resources, volcano_resources);
}

/* A NodeInfo of node 0. */
static void put_node_info(const struct model *model, unsigned pods, struct buf *out)
{
    buf_put(out, SLICE("{\"Name\":\"ip-10-20-node-0\",\"Node\":"));
    model_put_node(model, 0, out);
    buf_put(out, SLICE(",\"State\":{\"Phase\":1,\"Reason\":\"\"}"));
    for (const char *const *name = (const char *const[]){"Releasing", "Pipelined", "Idle", "Used",
                                                         "Allocatable", "Capacity", NULL};
         *name != NULL; name++)
        buf_printf(out, ",\"%s\":%s", *name, volcano_resources);
    buf_put(out, SLICE(",\"ResourceUsage\":{\"MetricsTime\":\"0001-01-01T00:00:00Z\","
                       "\"CPUUsageAvg\":null,\"MEMUsageAvg\":null},\"Tasks\":{"));
    for (unsigned i = 0; i < pods; i++) {
        buf_printf(out, "%s\"team-000/web-frontend-%u\":{", i == 0 ? "" : ",", i);
        put_task(i, out);
        buf_put(out, SLICE("\"Pod\":"));
        model_put_pod(model, i, out);
        buf_put(out, SLICE(",\"PodAnnotations\":null,\"CustomBindErrHandlerSucceeded\":false}"));
    }
    buf_put(out, SLICE("},\"NumaInfo\":null,\"UnassignedNumaPods\":null,\"NumaSchedulerInfo\":null,"
                       "\"RevocableZone\":\"\",\"Others\":{},\"OversubscriptionNode\":false,"
                       "\"OfflineJobEvicting\":false,\"OversubscriptionResource\":{\"MilliCPU\":0,"
                       "\"Memory\":0,\"ScalarResources\":null,\"MaxTaskNum\":0},\"ImageStates\":"
                       "{},\"Generation\":0,\"BindGeneration\":0}"));
}

void model_put_predicate(const struct model *model, long claim, unsigned pods, struct buf *out)
{
    buf_put(out, SLICE("{\"task\":{"));
    put_task(0, out);
    put_asking_pod(model, claim, out);
    buf_put(out, SLICE(",\"PodAnnotations\":null,\"CustomBindErrHandlerSucceeded\":false},"
                       "\"node\":"));
    put_node_info(model, pods, out);
    buf_put(out, SLICE("}"));
}

/* The pods of StatefulSets, with their claims and volumes: all fields that claimguard stores, and
 * few that it skips, so that half a million fit into a file. The names are those that a StatefulSet
 * gives: pod db-7-3 has claim data-db-7-3. */
#include "model_internal.h"

static unsigned set_of(const struct model *model, unsigned i)
{
    return i / model->set_pods;
}

static void put_name(const struct model *model, unsigned i, struct buf *out)
{
    buf_printf(out, "orders-db-%u-%u", set_of(model, i), i % model->set_pods);
}

/* "metadata" without its end. stream: of the UID. */
static void put_meta(const struct model *model, const char *before_name, uint64_t stream,
                     unsigned i, struct buf *out)
{
    buf_printf(out, "\"metadata\":{\"name\":\"%s", before_name);
    put_name(model, i, out);
    buf_printf(out, "\",\"namespace\":\"team-%03u\",\"uid\":\"",
               set_of(model, i) % (1 + model->pods / 500));
    model_put_uid(model, stream, i, out);
    buf_printf(out, "\",\"resourceVersion\":\"%u\",\"creationTimestamp\":\"2026-11-20T19:37:44Z\"",
               1000 + i);
}

void model_put_stateful_claim(const struct model *model, unsigned i, struct buf *out)
{
    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\","));
    put_meta(model, "data-", 20, i, out);
    buf_printf(out,
               "},\"spec\":{\"accessModes\":[\"%s\"],\"resources\":{\"requests\":{\"storage\":"
               "\"10Gi\"}},\"storageClassName\":\"fast-storage\",\"volumeMode\":\"Filesystem\","
               "\"volumeName\":\"pvc-",
               model_access_mode(model, i));
    model_put_uid(model, 20, i, out);
    buf_put(out, SLICE("\"},\"status\":{\"phase\":\"Bound\"}}"));
}

void model_put_stateful_volume(const struct model *model, unsigned i, struct buf *out)
{
    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{"
                       "\"name\":\"pvc-"));
    model_put_uid(model, 20, i, out);
    buf_put(out, SLICE("\",\"uid\":\""));
    model_put_uid(model, 50, i, out);
    buf_printf(out,
               "\",\"resourceVersion\":\"%u\"},\"spec\":{\"accessModes\":[\"%s\"],\"csi\":{"
               "\"driver\":\"plugin1.example.com\",\"fsType\":\"ext4\",\"volumeHandle\":"
               "\"vol-%017u\"},\"claimRef\":{\"apiVersion\":\"v1\",\"kind\":"
               "\"PersistentVolumeClaim\",\"namespace\":\"team-%03u\",\"name\":\"data-",
               2000 + i, model_access_mode(model, i), i,
               set_of(model, i) % (1 + model->pods / 500));
    put_name(model, i, out);
    buf_put(out, SLICE("\",\"uid\":\""));
    model_put_uid(model, 20, i, out);
    buf_put(out, SLICE("\"},\"storageClassName\":\"fast-storage\",\"volumeMode\":\"Filesystem\"},"
                       "\"status\":{\"phase\":\"Bound\"}}"));
}

/* As the StatefulSet controller and a Helm chart write them. */
static void put_labels_and_owner(const struct model *model, unsigned i, struct buf *out)
{
    unsigned set = set_of(model, i);

    buf_printf(out,
               ",\"labels\":{\"app.kubernetes.io/component\":\"database\","
               "\"app.kubernetes.io/instance\":\"orders-%u\",\"app.kubernetes.io/managed-by\":"
               "\"Helm\",\"app.kubernetes.io/name\":\"db\",\"apps.kubernetes.io/pod-index\":\"%u\","
               "\"controller-revision-hash\":\"orders-db-%u-%08x\",\"helm.sh/chart\":\"db-14.0.4\","
               "\"statefulset.kubernetes.io/pod-name\":\"",
               set, i % model->set_pods, set, (unsigned)(model_share(model, 70, set) * 4294967295));
    put_name(model, i, out);
    buf_printf(out,
               "\"},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\","
               "\"name\":\"orders-db-%u\",\"uid\":\"",
               set);
    model_put_uid(model, 60, set, out);
    buf_put(out, SLICE("\",\"controller\":true,\"blockOwnerDeletion\":true}]"));
}

void model_put_stateful_pod(const struct model *model, unsigned i, struct buf *out)
{
    bool is_assigned = model_pod_is_assigned(model, i);

    buf_put(out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Pod\","));
    put_meta(model, "", 30, i, out);
    if (model->has_labels)
        put_labels_and_owner(model, i, out);
    buf_put(out, SLICE("},\"spec\":{\"volumes\":[{\"name\":\"data\",\"persistentVolumeClaim\":{"
                       "\"claimName\":\"data-"));
    put_name(model, i, out);
    buf_put(out, SLICE("\"}}],\"containers\":[{\"name\":\"db\",\"volumeMounts\":[{\"name\":"
                       "\"data\",\"mountPath\":\"/data\"}]}]"));
    if (is_assigned)
        buf_printf(out, ",\"nodeName\":\"ip-10-20-node-%u\"",
                   (unsigned)(model_share(model, 3, i) * model->nodes));
    buf_printf(out,
               ",\"priority\":%u,\"preemptionPolicy\":\"PreemptLowerPriority\"},\"status\":{"
               "\"phase\":\"%s\"}}",
               (unsigned)(model_share(model, 4, i) * 3) * 100, is_assigned ? "Running" : "Pending");
}

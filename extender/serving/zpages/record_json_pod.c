/* A pod's record as a Pod. */
#include <stdio.h>

#include "cache/objects/label_selector.h"
#include "config/base/scope.h"
#include "extender/serving/zpages/record_json.h"

/* The volumes that the annotation names; or the text that opts the pod out. Names that are none of
 * its volumes are left out. */
static void put_annotation(struct buf *out, const struct pod_mounts *mounts)
{
    SCOPED_BUF(names, SIZE_MAX);

    names.share = out->share;
    if (mounts_opt_out(mounts))
        buf_put(&names, SLICE(DEFER_FS_MOUNT_OPT_OUT));
    for (uint32_t i = 0; !mounts_opt_out(mounts) && i < mounts->volume_count; i++)
        if (mounts->volumes[i].is_annotated)
            buf_printf(&names, "%s%.*s", names.len == 0 ? "" : ",",
                       SLICE_ARG(mounts->volumes[i].name));
    json_text(out, DEFER_FS_MOUNT_ANNOTATION, buf_slice(&names));
    out->failed = out->failed || names.failed;
}

/* The claims for which claimguard has deferred them. */
static void put_deferred_for(struct buf *out, const struct pod_mounts *mounts)
{
    SCOPED_BUF(list, SIZE_MAX);

    list.share = out->share;
    for (uint32_t i = 0; i < mounts->volume_count; i++)
        if (mounts->volumes[i].deferred_for.len != 0)
            buf_printf(&list, "%s%.*s=%.*s", list.len == 0 ? "" : ",",
                       SLICE_ARG(mounts->volumes[i].name),
                       SLICE_ARG(mounts->volumes[i].deferred_for));
    json_text(out, DEFERRED_FOR_ANNOTATION, buf_slice(&list));
    out->failed = out->failed || list.failed;
}

static void put_metadata(struct buf *out, const struct pod *pod)
{
    const struct pod_mounts *mounts = pod_mounts(pod);

    record_json_begin(out, KIND_POD, name_text(pod->ns), pod_name(pod), pod->version);
    record_json_uid(out, "uid", &pod->uid);
    json_text(out, "creationTimestamp", pod_created(pod));
    record_json_deletion(out, pod->is_terminating);
    if (pod->labels.step != 0) {
        json_key(out, "labels");
        labels_write(name_text(pod->labels), pod_name(pod), out);
    }
    if (mounts != NULL && mounts->annotation.len + mounts_defer(mounts) != 0) {
        json_begin(out, "annotations", '{');
        put_annotation(out, mounts);
        put_deferred_for(out, mounts);
        json_end(out, '}');
    }
    json_end(out, '}');
}

/* ---- volumes ---- */

static void put_field(struct buf *out, uint8_t field)
{
    if (field != DEFER_FIELD_UNSET)
        json_value(out, "deferFSMount", field == DEFER_FIELD_TRUE ? SLICE("true") : SLICE("false"));
}

static void put_claim_source(struct buf *out, struct slice claim, uint8_t field)
{
    json_begin(out, "persistentVolumeClaim", '{');
    json_text(out, "claimName", claim);
    put_field(out, field);
    json_end(out, '}');
}

static void put_ephemeral_source(struct buf *out, uint8_t field)
{
    json_begin(out, "ephemeral", '{');
    put_field(out, field);
    json_end(out, '}');
}

static void put_csi_source(struct buf *out, const struct pod_volume *volume)
{
    json_begin(out, "csi", '{');
    json_text(out, "driver", volume->driver);
    json_text(out, "fsType", volume->fs_type);
    json_presence(out, "nodePublishSecretRef", volume->has_secret);
    put_field(out, volume->field);
    json_end(out, '}');
}

static void put_volume(struct buf *out, const struct pod_volume *volume)
{
    json_begin(out, NULL, '{');
    json_text(out, "name", volume->name);
    switch (volume->source) {
    case VOLUME_SOURCE_CLAIM: put_claim_source(out, volume->claim, volume->field); break;
    case VOLUME_SOURCE_EPHEMERAL: put_ephemeral_source(out, volume->field); break;
    case VOLUME_SOURCE_CSI: put_csi_source(out, volume); break;
    default: break;
    }
    json_end(out, '}');
}

/* A volume for a claim of which nothing but its use is kept. That of a generic ephemeral volume is
 * named <pod>-<volume>. */
static void put_use(struct buf *out, const struct pod *pod, const struct use *use)
{
    uint8_t field = use->is_deferred ? DEFER_FIELD_TRUE : DEFER_FIELD_UNSET;
    struct slice claim = claim_name(claim_at(use->claim));
    size_t before = (size_t)pod->name_len + 1;
    char name[16];

    (void)snprintf(name, sizeof name, "claim-%u", use->index);
    json_begin(out, NULL, '{');
    if (use->is_ephemeral && claim.len >= before) {
        json_text(out, "name", (struct slice){claim.ptr + before, claim.len - before});
        put_ephemeral_source(out, field);
    } else {
        json_text(out, "name", slice_of(name));
        put_claim_source(out, claim, field);
    }
    json_end(out, '}');
}

static void put_volumes(struct buf *out, const struct pod *pod)
{
    const struct pod_mounts *mounts = pod_mounts(pod);

    json_begin(out, "volumes", '[');
    for (uint32_t i = 0; mounts != NULL && i < mounts->volume_count; i++)
        put_volume(out, &mounts->volumes[i]);
    for (unsigned i = 0; mounts == NULL && i < pod->use_count; i++)
        put_use(out, pod, &pod->uses[i]);
    json_end(out, ']');
}

/* ---- containers ---- */

/* A container that mounts the volumes of which containers mount a subPath, or which containers with
 * seLinuxOptions mount: which of them it was is not kept, and does not matter. */
static void put_container(struct buf *out, const struct pod_mounts *mounts, bool has_selinux)
{
    json_begin(out, NULL, '{');
    if (has_selinux) {
        json_begin(out, "securityContext", '{');
        json_presence(out, "seLinuxOptions", true);
        json_end(out, '}');
    }
    json_begin(out, "volumeMounts", '[');
    for (uint32_t i = 0; i < mounts->volume_count; i++) {
        const struct pod_volume *volume = &mounts->volumes[i];
        if (!(has_selinux ? volume->has_selinux : volume->has_sub_path))
            continue;
        json_begin(out, NULL, '{');
        json_text(out, "name", volume->name);
        json_text(out, "subPath", has_selinux ? SLICE("") : SLICE("unknown"));
        json_end(out, '}');
    }
    json_end(out, ']');
    json_end(out, '}');
}

static void put_mounts(struct buf *out, const struct pod_mounts *mounts)
{
    json_text(out, "runtimeClassName", mounts->runtime_class);
    json_begin(out, "securityContext", '{');
    json_presence(out, "fsGroup", mounts->has_fs_group);
    json_text(out, "fsGroupChangePolicy", mounts->fs_group_change_policy);
    json_presence(out, "seLinuxOptions", mounts->has_selinux);
    json_end(out, '}');
    json_begin(out, "containers", '[');
    put_container(out, mounts, false);
    put_container(out, mounts, true);
    json_end(out, ']');
}

/* ---- the pod ---- */

/* A pod without a priority names a class that is not known. */
static void put_spec(struct buf *out, const struct pod *pod)
{
    const struct pod_mounts *mounts = pod_mounts(pod);

    json_begin(out, "spec", '{');
    json_text(out, "nodeName", pod_node(pod));
    if (pod->has_no_priority)
        json_text(out, "priorityClassName", SLICE("unknown"));
    else
        json_number(out, "priority", pod->priority);
    json_text(out, "preemptionPolicy", pod->never_preempts ? SLICE("Never") : SLICE(""));
    if (pod->is_gated)
        json_value(out, "schedulingGates", SLICE("[{\"name\":\"unknown\"}]"));
    if (pod->is_grouped)
        json_value(out, "schedulingGroup", SLICE("{\"podGroupName\":\"unknown\"}"));
    put_volumes(out, pod);
    if (mounts != NULL)
        put_mounts(out, mounts);
    json_end(out, '}');
}

static struct slice phase_text(const struct pod *pod)
{
    if (pod->is_terminal)
        return SLICE("Succeeded"); /* or Failed: both have ended */
    if (pod->is_pending)
        return SLICE("Pending");
    return pod_is_assigned(pod) ? SLICE("Running") : SLICE("");
}

void record_json_pod(struct buf *out, const struct pod *pod)
{
    put_metadata(out, pod);
    put_spec(out, pod);
    json_begin(out, "status", '{');
    json_text(out, "phase", phase_text(pod));
    json_text(out, "nominatedNodeName", pod_nominated_node(pod));
    json_end(out, '}');
    json_end(out, '}');
}

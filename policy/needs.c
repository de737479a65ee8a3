#include "policy/needs.h"

/* What reads objects, as bits. */
enum feature {
    ALWAYS = 1,          /* who holds which claim; whether a node exists */
    PREEMPTION = 2,      /* violations of budgets: preempt, and own preemptions */
    DEFERRAL = 4,        /* of claims; an inline volume needs no object */
    READ_WRITE_ONCE = 8, /* access modes; whether the driver attaches */
    CSI_VOLUMES = 16,    /* drivers: of volumes and provisioners, their modes, on nodes */
    VOLUME_ATTRIBUTES_CLASSES = 32, /* classes, and whose they are: the volume's, or to provision */
};

/* A kind that is not here is read by none. */
static const unsigned readers[KIND_COUNT] = {
    [KIND_POD] = ALWAYS,
    [KIND_NODE] = ALWAYS,
    [KIND_CLAIM] = ALWAYS,
    [KIND_VOLUME] = DEFERRAL | READ_WRITE_ONCE | CSI_VOLUMES | VOLUME_ATTRIBUTES_CLASSES,
    [KIND_STORAGE_CLASS] = CSI_VOLUMES | VOLUME_ATTRIBUTES_CLASSES,
    [KIND_CSI_DRIVER] = READ_WRITE_ONCE | CSI_VOLUMES,
    [KIND_CSI_NODE] = CSI_VOLUMES,
    [KIND_VOLUME_ATTRIBUTES_CLASS] = VOLUME_ATTRIBUTES_CLASSES,
    [KIND_POD_DISRUPTION_BUDGET] = PREEMPTION,
};

/* Whether a claim's mount may be deferred: only then its volume is read. For a mount that is
 * deferred already, only its entry counts. */
static bool may_defer_claims(const struct config *config)
{
    bool is_so = false;

    for (size_t i = 0; i < config->defer_fs_mount.entry_count; i++)
        is_so = is_so || config->defer_fs_mount.entries[i].storage_class.len != 0;
    return is_so && config->defer_fs_mount.apply != DEFER_DISABLED;
}

static unsigned features(const struct config *config)
{
    unsigned in_force = ALWAYS;

    if (config->read_write_once_pod.preemption == SWITCH_ENABLED)
        in_force |= PREEMPTION;
    if (may_defer_claims(config))
        in_force |= DEFERRAL;
    if (config->read_write_once.mode != MODE_OFF)
        in_force |= READ_WRITE_ONCE;
    if (config->csi_volumes.mode != MODE_OFF)
        in_force |= CSI_VOLUMES;
    if (config->volume_attributes_classes.mode != MODE_OFF)
        in_force |= VOLUME_ATTRIBUTES_CLASSES;
    return in_force;
}

bool policy_needs(const struct config *config, enum kind kind)
{
    return (readers[kind] & features(config)) != 0;
}

unsigned policy_needed_kinds(const struct config *config)
{
    unsigned kinds = 0;

    for (int kind = 0; kind < KIND_COUNT; kind++)
        kinds |= policy_needs(config, (enum kind)kind) ? 1U << kind : 0;
    return kinds;
}

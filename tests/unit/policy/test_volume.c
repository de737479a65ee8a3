/* Which volume a claim has, and whether it is attached: each answer. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "policy/volume.h"
#include "support/load.h"

#define UID    "00000000-0000-4000-8000-000000000001"
#define EARLY  "00000000-0000-4000-8000-000000000002"
#define CLAIM  "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: ns, name: data, "
#define VOLUME "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}, spec: {"
#define CSI    "csi: {driver: d, volumeHandle: h}"
#define REF    "claimRef: {namespace: ns, name: data}"
#define DRIVER "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: d}, spec: {"

static struct cluster cluster;

/* A cluster with the claim, in that phase, and the objects; each but the claim may be NULL. */
static const struct claim *load(const char *spec, const char *phase, const char *volume,
                                const char *driver)
{
    char text[1024];

    cluster_init(&cluster);
    cr_assert(snprintf(text, sizeof text,
                       CLAIM "uid: " UID "}, spec: {accessModes: [ReadWriteOnce]%s}, "
                             "status: {phase: %s}}",
                       spec, phase) < (int)sizeof text);
    load_text(&cluster, text);
    if (volume != NULL)
        load_text(&cluster, volume);
    if (driver != NULL)
        load_text(&cluster, driver);
    return cluster_find_claim(&cluster, SLICE("ns"), SLICE("data"));
}

static const struct state {
    const char *spec, *phase, *volume, *uid;
    enum volume_state state;
} states[] = {
    {"", "Pending", NULL, "", VOLUME_UNBOUND},
    {"", "Pending", VOLUME REF "}}", "", VOLUME_UNBOUND},
    {", volumeName: pv", "Bound", NULL, "", VOLUME_UNKNOWN},
    {", volumeName: pv", "Bound", VOLUME REF "}}", "", VOLUME_BOUND},
    {", volumeName: pv", "Bound", VOLUME REF "}}", UID, VOLUME_BOUND},
    {", volumeName: pv", "Pending", VOLUME REF "}}", "", VOLUME_BOUND},
    {", volumeName: pv", "Bound", VOLUME CSI "}}", "", VOLUME_BOUND},
    {", volumeName: pv", "Pending", VOLUME CSI "}}", "", VOLUME_OF_ANOTHER},
    {", volumeName: pv", "Bound", VOLUME "claimRef: {namespace: ns, name: other}}}", "",
     VOLUME_OF_ANOTHER},
    {", volumeName: pv", "Lost", NULL, "", VOLUME_LOST},
    {", volumeName: pv", "Lost", VOLUME REF "}}", "", VOLUME_LOST},
    {", volumeName: pv", "Lost", VOLUME REF "}}", EARLY, VOLUME_OF_EARLIER},
    {", volumeName: pv", "Bound", VOLUME REF "}}", EARLY, VOLUME_OF_EARLIER},
};

Test(volume, a_claim_has_a_volume_or_a_reason_why_not)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        const struct state *row = &states[i];
        const struct claim *claim = load(row->spec, row->phase, row->volume, NULL);
        cr_assert_not_null(claim);
        cr_expect_eq(volume_state_of(&cluster, claim, slice_of(row->uid)), row->state, "row %zu",
                     i);
        if (row->uid[0] == '\0')
            cr_expect_eq(volume_of(&cluster, claim) != NULL, row->state == VOLUME_BOUND, "row %zu",
                         i);
        cluster_dispose(&cluster);
    }
}

static const struct attach {
    const char *source, *driver;
    enum attachment known, unknown; /* with all CSIDrivers, and without */
} attaches[] = {
    {CSI, NULL, ATTACHMENT_YES, ATTACHMENT_UNKNOWN},
    {CSI, DRIVER "}}", ATTACHMENT_YES, ATTACHMENT_YES},
    {CSI, DRIVER "attachRequired: false}}", ATTACHMENT_NO, ATTACHMENT_NO},
    {"iscsi: {iqn: i}", NULL, ATTACHMENT_YES, ATTACHMENT_YES},
    {"nfs: {server: s}", NULL, ATTACHMENT_NO, ATTACHMENT_NO},
};

Test(volume, is_attached_or_not_or_not_known)
{
    for (size_t i = 0; i < sizeof attaches / sizeof *attaches; i++) {
        char volume[512];
        cr_assert(snprintf(volume, sizeof volume, VOLUME REF ", accessModes: [ReadWriteOnce], %s}}",
                           attaches[i].source) < (int)sizeof volume);
        const struct claim *claim = load(", volumeName: pv", "Bound", volume, attaches[i].driver);
        cr_expect_eq(volume_attachment_of(&cluster, claim, true), attaches[i].known, "row %zu", i);
        cr_expect_eq(volume_attachment_of(&cluster, claim, false), attaches[i].unknown, "row %zu",
                     i);
        cr_expect_eq(volume_is_on_one_node(&cluster, volume_of(&cluster, claim)),
                     attaches[i].known == ATTACHMENT_YES, "row %zu", i);
        cluster_dispose(&cluster);
    }
}

/*
 * audit_checks: applies the rules of `claimguard audit` to an inventory. audit_checks.c calls the
 * rules of each file audit_checks_*.c, which share what stands below audit_check().
 *
 * Pure: reads the inventory, and adds to the report. Threads: one.
 */
#ifndef EXTENDER_COMMANDS_AUDIT_AUDIT_CHECKS_H
#define EXTENDER_COMMANDS_AUDIT_AUDIT_CHECKS_H

#include "config/config.h"
#include "extender/commands/audit/audit_report.h"
#include "policy/volume.h"

struct audit_options {
    struct slice schedulers;     /* names of others that call claimguard, joined by ',' */
    const struct config *config; /* claimguard's; NULL: not known */
};

/* Adds all findings and all gaps, sorted. The inventory is linked. */
void audit_check(struct inventory *inventory, const struct audit_options *options,
                 struct audit_report *report);

/* ---- what the rules share ---- */

enum { CLAIMS_NAMED_MAX = 3 };

/* What a gap names: the first ones, for people. */
struct audit_some {
    size_t count;
    struct slice shown;
};

/* How volumes that manifests make by hand are a claim's, as Kubernetes binds them; the last is the
 * first that counts. Which one of those that fit a claim gets, is not known. */
enum audit_match { MATCH_NONE, MATCH_FITS, MATCH_KEPT, MATCH_NAMED };

/* The nearest of those, and what they have in common. */
struct audit_candidates {
    const struct claim_record *claim;
    enum audit_match match;
    size_t nearness;
    const struct volume_record *first;
    enum attachment attachment; /* of all */
    bool is_any_for_one_node, are_on_one_host;
    bool differ;
};

struct audit_check {
    struct inventory *inventory;
    const struct cluster *cluster;
    const struct audit_options *options;
    struct audit_report *report;
    struct audit_candidates candidates; /* of the claim that was asked about last */
    const struct name *counted_class;   /* the StorageClass that was asked about last: whether */
    bool are_enough;                    /* manifests make a volume for each claim of it */
    struct names noted;                 /* what is in these, each once */
    struct audit_some differing;        /* objects of one name that differ, where none is nearest */
    struct audit_some unknown;          /* claims whose access modes the input lacks */
    struct audit_some made;             /* claims that StatefulSets of the input make */
    struct audit_some fields;           /* whose values are variables, or new */
    size_t unknown_volumes;             /* uses of claims whose volumes the input lacks */
    size_t unknown_attachment;          /* findings that depend on whether a volume is attached */
    bool has_inline;                    /* a driver of an inline volume was to be found */
    bool has_class;                     /* a claim names a VolumeAttributesClass */
    bool has_deleting;                  /* a class may be in use by a volume that the input lacks */
    bool has_driver;                    /* a driver was to be found on nodes */
};

/* One more, unless it was noted before. */
void audit_note(struct audit_check *check, struct audit_some *some, struct slice text);

/* What a field of the object says is not known: "accessModes". */
void audit_note_unknown(struct audit_check *check, const char *field, const struct record *record);

void audit_check_claims(struct audit_check *check);
void audit_check_workloads(struct audit_check *check);
void audit_check_drivers(struct audit_check *check);
void audit_check_pods(struct audit_check *check);

/* ---- claims ---- */

/* Files of one repository may have different objects of one name. Of these, those count that are
 * nearest to what names them: in its file, else in the deepest folder that both are in. If these
 * differ, it is not known which one counts, and a gap says so. audit_nearest.c */

/* The claim that a volume of the object names; NULL: it is not known, or not in the input. */
struct claim_record *audit_claim_of(struct audit_check *check, const struct record *record,
                                    const struct volume_use *use);

/* Whether an inline volume's driver, which is in the input, supports none. */
bool audit_refuses_inline(struct audit_check *check, const struct record *record,
                          struct driver_record *driver);

/* The PersistentVolume that the claim is bound to, or will be: it names the volume, or the volume's
 * claimRef names it. NULL: none, or it is not in the input. */
const struct resource *audit_volume_of(struct audit_check *check, const struct claim_record *claim);

/* The CSI driver of its volume, or the provisioner of an unbound claim; empty: not known. Without
 * a storageClassName, that of the default StorageClass, which the API server gives the claim. */
struct slice audit_driver_of(struct audit_check *check, const struct claim_record *claim);

/* Whether the claim's volume is attached to a node before it is mounted. Without a volume, that of
 * volumes that manifests make by hand and that fit decides, if there is one for each claim of the
 * class; and the class. */
enum attachment audit_attachment(struct audit_check *check, const struct claim_record *claim);

/* Whether all pods with the claim run on the node that its volume's nodeAffinity names. */
bool audit_is_on_one_host(struct audit_check *check, const struct claim_record *claim);

/* Whether the claim belongs to one pod. */
static inline bool audit_is_for_one_pod(const struct claim_record *claim)
{
    return (claim->modes & ACCESS_READ_WRITE_ONCE_POD) != 0;
}

/* Whether its volume can be attached to one node only, if it is attached: by the volume's access
 * modes; before it is bound, by the claim's. */
bool audit_is_for_one_node(struct audit_check *check, const struct claim_record *claim);

/* Why one pod at a time gets the claim, for people: its access mode, or, if *level is lowered to a
 * warning, that claimguard's configuration defers its mount for pods of that template, unless a
 * field of theirs prevents it. NULL: several pods may have it. */
const char *audit_one_pod_reason(const struct audit_check *check, const struct pod_spec *spec,
                                 const struct claim_record *claim, enum level *level);

/* ---- pods and templates ---- */

/* Whether the controller is in the input, so that what is wrong is reported there. */
bool audit_is_covered(const struct inventory *inventory, const struct pod_record *pod);

/* Whether the node has all labels of the selector (both as in label_selector.h); and whether that
 * is one node by its name. */
bool audit_selects(struct slice selector, struct slice labels);
bool audit_names_host(struct slice selector);

/* CG401: the claim of a pod or a template is placed without claimguard. Adds a finding for the
 * first claim that belongs to one pod. */
void audit_check_placement(struct audit_check *check, const struct pod_record *pod,
                           bool node_is_chosen);

#endif

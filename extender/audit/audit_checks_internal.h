/* audit_checks_internal: what the files audit_checks*.c share. Only they include it. */
#ifndef EXTENDER_AUDIT_AUDIT_CHECKS_INTERNAL_H
#define EXTENDER_AUDIT_AUDIT_CHECKS_INTERNAL_H

#include "extender/audit/audit_checks.h"
#include "extender/audit/claim_facts.h"

enum { CLAIMS_NAMED_MAX = 3 };

struct audit_check {
    const struct inventory *inventory;
    const struct audit_options *options;
    struct audit_report *report;
    size_t unknown_claims;      /* names of claims that the input lacks */
    struct slice unknown_names; /* some of them, for people */
    size_t unknown_volumes;     /* uses of claims whose volumes the input lacks */
    size_t unknown_attachment;  /* findings that depend on whether a volume is attached */
    bool has_inline;            /* a driver of an inline volume was to be found */
    bool has_class;             /* a claim names a VolumeAttributesClass */
    bool has_deleting;          /* a class may be in use by a volume that the input lacks */
    bool has_driver;            /* a driver was to be found on nodes */
};

/* Whether the controller is in the input, so that what is wrong is reported there. */
bool audit_is_covered(const struct inventory *inventory, struct slice ns,
                      enum record_kind owner_kind, struct slice owner);

void audit_check_claims(struct audit_check *check);    /* CG101, CG105 */
void audit_check_workloads(struct audit_check *check); /* CG102, CG103, CG104, CG106, CG401 */
void audit_check_drivers(struct audit_check *check);   /* CG201, CG202, CG203 */
void audit_check_classes(struct audit_check *check);   /* CG301 to CG305 */
void audit_check_pods(struct audit_check *check);      /* CG401, CG402 */

/* Whether the node has all labels of the selector (both as in label_selector.h); and whether that
 * is one node by its name. */
bool audit_selects(struct slice selector, struct slice labels);
bool audit_names_host(struct slice selector);

/* Why one pod at a time gets the claim, for people: its access mode, or, if *level is lowered to a
 * warning, that claimguard's configuration defers its mount for pods of that template, unless a
 * field of theirs prevents it. NULL: several pods may have it. */
const char *audit_one_pod_reason(const struct audit_check *check, const struct pod_spec *spec,
                                 const struct claim_record *claim, enum level *level);

/* CG401: the claim of a pod or a template is placed without claimguard. Adds a finding for the
 * first claim that belongs to one pod. */
void audit_check_placement(struct audit_check *check, const struct record *record,
                           const struct pod_spec *spec, bool node_is_chosen);

#endif

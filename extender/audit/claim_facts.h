/*
 * claim_facts: what is known of a claim: its volume, who may use it, and whether the volume is
 * attached to a node. What the input does not say is not known, and is never guessed.
 *
 * Pure. Threads: any.
 */
#ifndef EXTENDER_AUDIT_CLAIM_FACTS_H
#define EXTENDER_AUDIT_CLAIM_FACTS_H

#include "extender/audit/inventory.h"

/* The claim that a volume names, in that namespace; NULL: it is not in the input, or the input has
 * it twice with different access modes. */
const struct claim_record *claim_of_use(const struct inventory *inventory, struct slice ns,
                                        const struct volume_use *use);

/* The PersistentVolume that the claim is bound to; NULL: none, or it is not in the input. */
const struct volume_record *claim_volume(const struct inventory *inventory,
                                         const struct claim_record *claim);

/* Whether the claim belongs to one pod. */
static inline bool claim_is_for_one_pod(const struct claim_record *claim)
{
    return (claim->modes & ACCESS_READ_WRITE_ONCE_POD) != 0;
}

/* Whether its volume can be attached to one node only, if it is attached: by the volume's access
 * modes, as IsMultiAttachAllowed of Kubernetes' pkg/volume/util; before it is bound, by the
 * claim's.
 */
bool claim_is_for_one_node(const struct inventory *inventory, const struct claim_record *claim);

enum attachment { ATTACHMENT_UNKNOWN, ATTACHMENT_NO, ATTACHMENT_YES };

/* Whether the claim's volume is attached to a node before it is mounted. */
enum attachment claim_attachment(const struct inventory *inventory,
                                 const struct claim_record *claim);

/* The CSI driver of its volume, or the provisioner of an unbound claim; empty: not known. */
struct slice claim_driver(const struct inventory *inventory, const struct claim_record *claim);

#endif

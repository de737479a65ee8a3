/*
 * rivals: the pods that hold claims against a pod, and the candidate nodes of a preemption on which
 * all of them go. They are found once for all candidates, because they are the same on each node.
 *
 * Ownership: all is in the caller's arena and in the cluster. Errors: false, there is no memory.
 */
#ifndef POLICY_RIVALS_H
#define POLICY_RIVALS_H

#include "policy/holders.h"
#include "policy/policy.h"

struct rival {
    const struct pod *pod;
    enum hold hold;
    struct slice uid;                   /* as text: so the scheduler names its victims */
    const struct candidate *offered_by; /* the last candidate that offers it */
};

struct rivals {
    struct rival *items;
    size_t count;
    bool is_reserved;         /* a claim is being bound: nothing on any node helps */
    const struct pod **going; /* these have room for all of them */
    char (*texts)[UID_TEXT_BYTES];
};

/* room: the number of rivals that will be added. */
bool rivals_init(struct rivals *rivals, size_t room, struct arena *arena);

/* The pod may hold several claims, and be added for each. NULL: a claim is reserved. */
void rivals_add(struct rivals *rivals, const struct pod *pod, enum hold hold);

/* Sets what is out in each candidate. Called once. The cost: a binary search for each victim that
 * is offered, and a look at each rival that is offered or on the candidate's node. */
bool rivals_evaluate(struct rivals *rivals, const struct cluster *cluster,
                     const struct pod_object *pod, struct arena *arena,
                     struct candidate *candidates, size_t count);

#endif

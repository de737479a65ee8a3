/* A scheduler that calls claimguard: it must not bind a pod whose claim another pod holds. That one
 * is only nominated: kube-scheduler's own plugin VolumeRestrictions does not see it, and claimguard
 * does. */
#include "extender/commands/verify/races.h"

enum {
    /* of trial_wait */
    WAITS_FOR_CLAIM = 100,
    WAITS_FOR_SCHEDULER = 80,
    WAITS_FOR_WATCH = 10, /* until claimguard knows of the nomination; the second time more */
    ATTEMPTS = 2,
};

static const struct trial_pod holder = {"holder", "bound", NULL, false};

/* A scheduler takes a pod only if its claim is bound. */
static int await_claim(struct trial *trial, bool *is_bound, struct error *err)
{
    struct trial_object claim = {.is_there = false};

    *is_bound = false;
    for (int i = 0; i < WAITS_FOR_CLAIM && !*is_bound; i++) {
        if (trial_wait(trial, err) < 0 ||
            trial_read(trial, "persistentvolumeclaims", holder.claim, &claim, err) < 0)
            return err->code;
        *is_bound = slice_equal(claim.phase, SLICE("Bound"));
    }
    return 0;
}

/* *why: what could not be done; empty: the claim is held. */
static int hold_claim(struct trial *trial, struct slice *why, struct error *err)
{
    struct slice uid;
    bool is_done;

    *why = SLICE("");
    if (trial_claim(trial, holder.claim, true, err) < 0 || await_claim(trial, &is_done, err) < 0)
        return err->code;
    if (!is_done) {
        *why = SLICE("its claim is not bound to its volume: does kube-controller-manager run?");
        return 0;
    }
    if (trial_create_pod(trial, &holder, &uid, err) < 0 ||
        trial_nominate(trial, holder.name, &is_done, err) < 0)
        return err->code;
    if (!is_done)
        *why = SLICE("no node is ready");
    return 0;
}

/* Only claimguard names the holder. */
static bool is_stopped(const struct trial_object *pod)
{
    return slice_has(pod->message, SLICE("/holder"));
}

/* Creates the second pod, and waits until the scheduler has decided. *out: what it is then. */
static int watch_pod(struct trial *trial, const char *scheduler, int attempt,
                     struct trial_object *out, struct error *err)
{
    const struct trial_pod waits = {attempt == 0 ? "waits" : "waits-again", holder.claim, scheduler,
                                    false};
    struct slice uid;

    for (int i = 0; i < WAITS_FOR_WATCH * (1 + 2 * attempt); i++)
        if (trial_wait(trial, err) < 0)
            return err->code;
    if (trial_create_pod(trial, &waits, &uid, err) < 0)
        return err->code;
    *out = (struct trial_object){.is_there = false};
    for (int i = 0; i < WAITS_FOR_SCHEDULER && out->node.len == 0 && !is_stopped(out); i++)
        if (trial_wait(trial, err) < 0 || trial_read(trial, "pods", waits.name, out, err) < 0)
            return err->code;
    return trial_remove(trial, "pods", waits.name, err);
}

static int describe(const struct trial *trial, const char *scheduler,
                    const struct trial_object *pod, struct verify_row *row, struct error *err)
{
    struct arena *arena = &trial->api->arena;

    bool is_reviewed = slice_has(pod->message, SLICE("admission webhook"));

    if (pod->node.len != 0 || is_stopped(pod))
        row->holds = pod->node.len != 0 || is_reviewed ? HOLDS_NO : HOLDS_YES;
    if (is_reviewed)
        row->seen = arena_printf(
            arena, "%s does not call claimguard: only the review of its Binding stops the pod",
            scheduler);
    else if (pod->node.len != 0)
        row->seen = arena_printf(arena, "%s has bound a second pod to %.*s", scheduler,
                                 SLICE_ARG(pod->node));
    else if (pod->message.len != 0)
        row->seen = arena_printf(arena, "%s says: %.*s", scheduler, SLICE_ARG(pod->message));
    else
        row->seen = arena_printf(arena, "no scheduler %s has tried the pod", scheduler);
    return row->seen.ptr == NULL ? error_no_memory(err) : 0;
}

int race_scheduler(struct trial *trial, const char *scheduler, struct verify_row *row,
                   struct error *err)
{
    struct trial_object pod = {.node = SLICE("?")};

    if (scheduler == NULL)
        return 0;
    if (hold_claim(trial, &row->seen, err) < 0)
        return err->code;
    if (row->seen.len != 0)
        return 0;
    for (int i = 0; i < ATTEMPTS && pod.node.len != 0; i++)
        if (watch_pod(trial, scheduler, i, &pod, err) < 0)
            return err->code;
    return describe(trial, scheduler, &pod, row, err);
}

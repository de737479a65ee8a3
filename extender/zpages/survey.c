#include "extender/zpages/survey.h"

#include "extender/bind/deferral.h"
#include "extender/zpages/scan.h"
#include "policy/defer_fs_mount.h"
#include "policy/exclusive.h"

enum { USES_A_STEP = 256 }; /* uses that are checked under one lock: about 50 microseconds */

struct surveying {
    struct state *state;
    struct view view; /* valid under the lock */
    struct survey found;
    struct buf *shown;
    unsigned left; /* uses that this step may still check */
};

/* Whether the step continues after so many uses. */
static bool spend(struct surveying *surveying, uint32_t uses)
{
    surveying->left -= uses < surveying->left ? uses : surveying->left;
    return surveying->left != 0;
}

static bool check_claim(void *context, const struct table_record *record)
{
    const struct claim *claim = (const struct claim *)(const void *)record;
    struct surveying *surveying = context;

    surveying->found.violations += exclusive_is_violated(&surveying->view, claim);
    return spend(surveying, claim->deferred == 0 ? 0 : claim->refs);
}

static bool check_pod(void *context, const struct table_record *record)
{
    const struct pod *pod = (const struct pod *)(const void *)record;
    struct surveying *surveying = context;
    size_t known = surveying->found.orphans;
    size_t most = surveying->shown == NULL || known >= SURVEY_ORPHANS_SHOWN_MAX
                      ? 0
                      : SURVEY_ORPHANS_SHOWN_MAX - known;

    if (!pod_defers(pod))
        return true;
    surveying->found.orphans += deferral_pod_orphans(&surveying->view, pod, most, surveying->shown);
    return spend(surveying, pod_mounts(pod)->volume_count);
}

static void check_all(struct surveying *surveying, const struct table *table, scan_visit *visit)
{
    struct scan scan = {.from = 0};
    bool has_more = true;

    while (has_more) {
        (void)pthread_rwlock_rdlock(&surveying->state->lock);
        surveying->view = state_view(surveying->state);
        surveying->left = USES_A_STEP;
        has_more =
            surveying->state->cluster.deferring != NULL && scan_on(&scan, table, visit, surveying);
        (void)pthread_rwlock_unlock(&surveying->state->lock);
    }
}

struct survey survey_take(struct state *state, struct buf *shown)
{
    struct surveying surveying = {.state = state, .shown = shown};

    check_all(&surveying, &state->cluster.claims, check_claim);
    check_all(&surveying, &state->cluster.pods, check_pod);
    return surveying.found;
}

/* The API server's side of the webhooks: a Binding, or a pod to create, is reviewed before it is
 * checked and stored. Without an answer it is refused, or with failurePolicy Ignore, not reviewed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/serving/bind/bind.h"
#include "simulation/admission.h"

/* What the API server works on. */
struct arrival {
    struct posted posted; /* its texts are copies */
    stored *then;
    void *context;
};

static void end(struct arrival *arrival, unsigned status, struct slice answer)
{
    if (arrival->then != NULL)
        arrival->then(arrival->context, status, answer);
    free((char *)(uintptr_t)arrival->posted.path);
    free((char *)(uintptr_t)arrival->posted.body);
    free(arrival);
}

/* ---- after the review ---- */

/* A dry run is checked, and not stored; here it always passes. */
static void store(void *context)
{
    struct arrival *arrival = context;
    const struct posted *posted = &arrival->posted;
    struct buf answer;
    unsigned status = 201;

    buf_init(&answer, 1 << 16);
    if (!posted->is_dry_run)
        status = posted->created != NULL
                     ? server_create(posted, &answer)
                     : server_handle("POST", posted->path, slice_of(posted->body), posted, &answer);
    end(arrival, status, buf_slice(&answer));
    buf_dispose(&answer);
}

/* How much later the API server may store what was allowed: it abandons a request after 60 s. One
 * replica alone relies on nothing being slower than its own restart. */
static uint64_t draw_pause(const struct arrival *arrival)
{
    uint64_t age_ns = world.now_ns - arrival->posted.came_ns;
    uint64_t longest_ns = 60 * SECOND;

    if (world.store_after_ns != 0)
        return world.store_after_ns;
    if (!world.has_faults || !one_in(8))
        return below(5 * MILLISECOND);
    if (!replicas_outlast_requests())
        longest_ns = age_ns + 1900 * MILLISECOND;
    return age_ns < longest_ns ? below(longest_ns - age_ns) : 0;
}

/* By another webhook, which is asked at the same time: one that lets no such pod have a node. */
static bool is_denied_too(const struct posted *posted)
{
    const char *name = posted->path + strlen(PODS_PATH);
    const struct sim_pod *pod = posted->created;

    if (pod == NULL)
        pod = server_find_pod(name, strcspn(name, "/"));
    return pod != NULL && pod->is_denied && (posted->created == NULL || pod->node >= 0);
}

static void reviewed(void *context, const char *answer)
{
    struct arrival *arrival = context;
    struct posted *posted = &arrival->posted;
    bool is_denied = is_denied_too(posted);
    bool is_allowed = answer != NULL && strstr(answer, "\"allowed\":true") != NULL;

    trace("the review of %s%s: %s%s",
          posted->created != NULL ? posted->created->name : posted->path + strlen(PODS_PATH),
          posted->is_dry_run ? " (dry run)" : "", answer == NULL ? "-" : answer,
          is_denied ? ", and another webhook denies it" : "");
    world.reviews++;
    world.denials += answer != NULL && !is_allowed;
    posted->is_unreviewed = answer == NULL && world.fails_open && !posted->is_own;
    if (!is_allowed && !(answer == NULL && world.fails_open))
        end(arrival, answer == NULL ? 500 : 409, SLICE("{\"message\":\"denied\"}"));
    else if (is_denied)
        end(arrival, 403, SLICE("{\"message\":\"another webhook denied it\"}"));
    else if (world.has_faults && one_in(15)) /* then etcd fails */
        end(arrival, 500, SLICE("{\"message\":\"etcdserver: request timed out\"}"));
    else
        later(draw_pause(arrival), true, store, arrival);
}

/* ---- the review ---- */

/* What is reviewed: the path's resource, and the name. */
static void put_resource(struct buf *body, const struct posted *posted)
{
    const char *name = posted->path + strlen(PODS_PATH);
    bool is_old_path = posted->created == NULL && one_in(5);

    buf_printf(body, "\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"%s\"},",
               is_old_path ? "bindings" : "pods");
    if (posted->created != NULL && one_in(2)) /* else the name was generated */
        buf_printf(body, "\"name\":\"%s\",", posted->created->name);
    else if (posted->created == NULL && !is_old_path)
        buf_printf(body, "\"subResource\":\"binding\",\"name\":\"%.*s\",", (int)strcspn(name, "/"),
                   name);
}

static void put_review(struct buf *body, const struct posted *posted)
{
    buf_printf(body,
               "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
               "\"uid\":\"r-%u\",",
               ++world.review_count);
    put_resource(body, posted);
    buf_printf(body,
               "\"namespace\":\"ns\",\"operation\":\"CREATE\",\"userInfo\":{\"username\":\"%s\"},"
               "\"object\":%s,\"oldObject\":null,\"dryRun\":%s,\"options\":null}}",
               posted->is_own ? "system:serviceaccount:claimguard:claimguard"
                              : "system:kube-scheduler",
               posted->body, posted->is_dry_run ? "true" : "false");
}

static void ignore_answer(void *context, const char *answer)
{
    (void)context;
    (void)answer;
}

/* The webhook's Service chooses a replica. */
static unsigned draw_reviewer(void)
{
    return world.reviewer != 0 ? world.reviewer - 1 : (unsigned)below(world.replica_count);
}

/* A connection may die under a review, which is then sent
 * again. */
static void ask(struct arrival *arrival)
{
    enum admit_path path = arrival->posted.created != NULL ? ADMIT_POD : ADMIT_BINDING;
    struct buf body;

    buf_init(&body, 1 << 16);
    put_review(&body, &arrival->posted);
    if (world.has_faults && one_in(20)) {
        world.repeated++;
        replica_review(draw_reviewer(), path, buf_text(&body), ignore_answer, NULL);
    }
    replica_review(draw_reviewer(), path, buf_text(&body), reviewed, arrival);
    buf_dispose(&body);
}

void post_arrives(const struct posted *posted, stored *then, void *context)
{
    struct arrival *arrival = malloc(sizeof *arrival);

    if (arrival == NULL)
        abort();
    *arrival = (struct arrival){.posted = *posted, .then = then, .context = context};
    if (posted->came_ns == 0)
        arrival->posted.came_ns = world.now_ns;
    arrival->posted.path = strdup(posted->path);
    arrival->posted.body = strdup(posted->body);
    if (world.has_admission)
        ask(arrival);
    else
        store(arrival);
}

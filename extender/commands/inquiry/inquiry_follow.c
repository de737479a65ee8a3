#include "extender/commands/inquiry/inquiry_follow.h"

#include <stdio.h>
#include <stdlib.h>

#include "cache/client/call.h"
#include "cache/watch/reflector_run.h"
#include "config/base/clock.h"
#include "config/base/log.h"
#include "config/base/text.h"

enum {
    FAILURES_MAX = 3,      /* at the beginning */
    REPORTED_FAILURES = 2, /* later: so many in a row are reported */
};

struct following;

/* One kind. */
struct followed {
    struct following *following;
    struct reflector_run run;
    struct resource_status status;
    bool is_wanted;
    bool is_reported; /* that it is not answered */
};

struct following {
    struct inquiry *inquiry;
    const struct inquiry_wish *wish;
    const struct inquiry_follower *follower;
    struct api api;
    struct followed kinds[KIND_COUNT];
    bool has_changed;
    uint64_t pause_end_ns; /* `changed` is not called before */
};

/* ---- the sink of the reflectors ---- */

static struct cluster *cluster_of(const struct followed *followed)
{
    return &followed->following->inquiry->cluster;
}

static void begin(void *context, enum kind kind, bool overrides, uint64_t asked_ns)
{
    cluster_list_begin(cluster_of(context), kind, overrides, asked_ns);
}

static void drop_details(void *context, const struct object *object)
{
    const struct followed *followed = context;
    details_store_drop(followed->following->inquiry->details, object->kind, object->meta.ns,
                       object->meta.name);
}

static void end(void *context, enum kind kind, uint64_t version)
{
    struct followed *followed = context;
    const struct gone_listener listener = {followed, drop_details};

    while (cluster_list_end(cluster_of(followed), kind, version, &listener))
        continue;
    followed->following->has_changed = true;
}

static int take(void *context, enum watch_change change, const struct object *object,
                struct slice text, struct error *err)
{
    struct followed *followed = context;
    struct following *following = followed->following;
    struct type type = {.kind = ""};
    const struct source_text source_text = {.type = &type, .text = text};

    following->has_changed = true;
    if (change == CHANGE_DELETE) {
        cluster_delete(cluster_of(followed), object);
        drop_details(followed, object);
        return 0;
    }
    int rc = inquiry_take(following->inquiry, following->wish, &source_text, object, err);
    return rc < 0 ? rc : cluster_apply(cluster_of(followed), object, err);
}

static void keep(void *context, enum kind kind, struct slice ns, struct slice name)
{
    cluster_list_keep(cluster_of(context), kind, ns, name);
}

static void unserved(void *context, enum kind kind)
{
    struct followed *followed = context;

    (void)kind;
    followed->following->has_changed = true;
}

static void progressed(void *context)
{
    (void)context;
}

/* ---- kinds that cannot be read ---- */

static bool is_synced(const struct followed *followed)
{
    return atomic_load(&followed->status.is_synced);
}

static bool was_refused(const struct followed *followed, enum restart reason)
{
    return !is_synced(followed) && atomic_load(&followed->status.restarts[reason]) != 0;
}

static void find_gap(const struct followed *followed)
{
    enum kind kind = followed->run.reflector.kind;
    enum list_gap *gap = &followed->following->inquiry->gaps[kind], before = *gap;

    *gap = was_refused(followed, RESTART_FORBIDDEN)   ? GAP_FORBIDDEN
           : atomic_load(&followed->status.is_absent) ? GAP_UNSERVED
                                                      : GAP_NONE;
    if (*gap != before)
        followed->following->has_changed = true;
}

/* Before the first list is complete. */
static int check_beginning(const struct followed *followed, struct error *err)
{
    const struct reflector *reflector = &followed->run.reflector;
    bool is_needed = reflector->kind == KIND_POD || reflector->kind == KIND_CLAIM;
    const char *server = followed->following->inquiry->kubeconfig->server;
    const char *resource = kind_resource(reflector->kind), *problem = followed->run.problem;

    if (was_refused(followed, RESTART_UNAUTHORIZED))
        return error_set(err, ERROR_UNAVAILABLE,
                         "%s: the list of %s was answered with status 401: these credentials are "
                         "not accepted",
                         server, resource);
    if (was_refused(followed, RESTART_FORBIDDEN))
        return !is_needed ? 0
                          : error_set(err, ERROR_UNAVAILABLE,
                                      "%s: the list of %s was answered with status 403: these "
                                      "credentials may not list and watch them",
                                      server, resource);
    return is_synced(followed) || reflector->failures <= FAILURES_MAX
               ? 0
               : error_set(err, ERROR_UNAVAILABLE, "%s: no good answer to the list of %s: %s",
                           server, resource, problem[0] == '\0' ? "timeout" : problem);
}

/* Says once that a kind is not answered any more, and once that it is again. */
static void report_outage(struct followed *followed)
{
    const struct reflector *reflector = &followed->run.reflector;
    bool is_away = is_synced(followed) && reflector->failures >= REPORTED_FAILURES;

    if (is_away && !followed->is_reported) {
        char problem[REFUSAL_BYTES_MAX];
        (void)snprintf(problem, sizeof problem, "%s", followed->run.problem);
        make_printable(problem);
        (void)fprintf(stderr,
                      "claimguard: %s are not answered; what is shown may be old, until they are "
                      "again%s%s\n",
                      kind_resource(reflector->kind), problem[0] == '\0' ? "" : ": ", problem);
        followed->is_reported = true;
    } else if (followed->is_reported && reflector->failures == 0) {
        (void)fprintf(stderr, "claimguard: %s are answered again\n",
                      kind_resource(reflector->kind));
        followed->is_reported = false;
    }
}

/* ---- following ---- */

/* Whether each kind is known, or has a gap. Negative: an error. */
static int look(struct following *following, struct error *err)
{
    int is_ready = 1;

    following->inquiry->left_out = 0;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct followed *followed = &following->kinds[kind];
        if (!followed->is_wanted)
            continue;
        if (check_beginning(followed, err) < 0)
            return err->code;
        find_gap(followed);
        report_outage(followed);
        following->inquiry->left_out += atomic_load(&followed->status.skipped);
        if (!is_synced(followed) && following->inquiry->gaps[kind] == GAP_NONE)
            is_ready = 0;
    }
    return is_ready;
}

static int report_change(struct following *following, struct error *err)
{
    uint64_t started_ns = monotonic_ns();

    following->has_changed = false;
    if (following->follower->changed(following->follower->context, err) < 0)
        return err->code;
    uint64_t now_ns = monotonic_ns();
    uint64_t pause_ns = (now_ns - started_ns) * (FOLLOW_SHARE_OF_TIME_MAX - 1);
    uint64_t least_ns = FOLLOW_PAUSE_MS * NS_PER_MS;
    following->pause_end_ns = now_ns + (pause_ns < least_ns ? least_ns : pause_ns);
    return 0;
}

/* Sends what is due, and waits for answers, but not for long. */
static void work(struct following *following)
{
    uint64_t now_ns = monotonic_ns(), next_ns = now_ns + FOLLOW_LOOK_MS * NS_PER_MS;

    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct followed *followed = &following->kinds[kind];
        uint64_t at_ns = followed->is_wanted ? reflector_run_step(&followed->run, now_ns) : next_ns;
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    uint64_t wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
    http_client_poll(following->api.client, (int)((wait_ns + NS_PER_MS - 1) / NS_PER_MS));
}

static int follow(struct following *following, struct error *err)
{
    while (!following->follower->is_over(following->follower->context)) {
        work(following);
        int rc = look(following, err);
        if (rc > 0 && following->has_changed && monotonic_ns() >= following->pause_end_ns)
            rc = report_change(following, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void init_kinds(struct following *following)
{
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct followed *followed = &following->kinds[kind];
        const struct reflector_sink sink = {followed, begin, end, take, keep, unserved};
        followed->following = following;
        followed->is_wanted = (following->wish->kinds & 1U << kind) != 0;
        followed->run.client = following->api.client;
        followed->run.progressed = progressed;
        reflector_init(&followed->run.reflector, (enum kind)kind, &sink, &followed->status,
                       (uint32_t)monotonic_ns() + (uint32_t)kind);
        followed->run.reflector.ns = following->wish->ns;
    }
}

int inquiry_follow(struct inquiry *inquiry, const struct inquiry_wish *wish,
                   const struct inquiry_follower *follower, struct error *err)
{
    struct following *following = calloc(1, sizeof *following);

    if (following == NULL)
        return error_no_memory(err);
    following->inquiry = inquiry;
    following->wish = wish;
    following->follower = follower;
    following->has_changed = true;
    log_configure(LOG_ERROR, LOG_TEXT); /* the command reports the result itself */
    int rc = api_open(&following->api, inquiry->kubeconfig, err);
    init_kinds(following);
    if (rc == 0)
        rc = follow(following, err);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        reflector_run_stop(&following->kinds[kind].run);
        reflector_dispose(&following->kinds[kind].run.reflector);
    }
    api_close(&following->api);
    free(following);
    return rc;
}

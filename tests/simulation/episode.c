/*
 * Episodes: users come and go, things fail, then nothing fails any more and everything has to
 * settle.
 *
 *     simulation [--steps N] [--seed S] [--agreement] [--trace]
 *
 * --agreement: only worlds in which two replicas follow an agreement. Runs episodes of seeds S,
 * S+1, ... until N steps were taken. A step is one event: a request or an answer that arrives, a
 * watch event that is taken, a lock that is reached. Each episode follows from its seed alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/base/clock.h"
#include "config/base/log.h"
#include "simulation/fiber.h"
#include "simulation/world.h"

/* ---- the end of an episode ---- */

/* It has memory enough, and reads its lists again; the last time after what it kept is removed. */
static void take_back(void *context)
{
    struct replica *replica = context;

    if (world.is_over || !replica->is_up)
        return;
    replica->state.cluster.allowance_limits = (struct allowance_limits){.namespace_bytes = 0};
    replica_relist(replica, KIND_POD);
    replica_relist(replica, KIND_CLAIM);
    replica_relist(replica, KIND_POD_DISRUPTION_BUDGET);
}

/* From now on nothing fails, and nobody comes. */
static void calm_down(void *context)
{
    (void)context;
    if (world.is_over)
        return;
    trace("no faults from now on");
    world.has_faults = false;
    world.api_down_until_ns = world.gets_fail_until_ns = 0;
    server_set_budget(100);
    for (unsigned i = 0; i < world.replica_count; i++) {
        if (world.is_mixed || world.moves_lock) /* now all of them have one configuration */
            replica_crash(&world.replicas[i]);
    }
    for (unsigned i = 0; world.gives_up && i < world.replica_count; i++)
        for (unsigned times = 0; times < 8; times++)
            later(times * 20 * SECOND, true, take_back, &world.replicas[i]);
    world.is_mixed = world.moves_lock = world.gives_up = false;
    for (unsigned i = 0; i < world.replica_count; i++) {
        world.replicas[i].agrees_again_ns = 0;
        replica_start(&world.replicas[i]);
    }
    for (unsigned i = 0; i < world.scheduler_count; i++)
        scheduler_start(&world.schedulers[i]);
}

/* ---- what has to be true ---- */

/* No reservation outlives its rules: it ends with its time (looked at once a second, by a thread
 * that may have to wait), and with its pod's binding or end as soon as they are known. Returns how
 * many there are. */
static size_t check_list(const struct cluster *cluster, const struct reservation *reservation,
                         bool is_in_doubt)
{
    int64_t longest_ms = world.ttl_ms > BINDING_DEAD_MS ? world.ttl_ms : BINDING_DEAD_MS;
    uint64_t longest_ns = (uint64_t)longest_ms * MILLISECOND;
    size_t listed = 0;

    for (; reservation != NULL; reservation = reservation->next, listed++) {
        struct slice name = name_slice(reservation->name);
        if (reservation->is_doubtful != is_in_doubt)
            broken("the reservation of %.*s is in the wrong list", SLICE_ARG(name));
        if (reservation_find(cluster, &reservation->uid) != reservation)
            broken("the reservation of %.*s is not found by its UID", SLICE_ARG(name));
        const struct pod *pod = cluster_find_pod(cluster, name_slice(reservation->ns), name);
        /* one that was in doubt until now is late, and the next to end */
        if (reservation->expires_ns + 3 * SECOND < monotonic_ns() && !reservation->is_doubtful &&
            !reservation->is_late)
            broken("a reservation of %.*s has outlived its time", SLICE_ARG(name));
        if (reservation->expires_ns > monotonic_ns() + longest_ns)
            broken("a reservation of %.*s is for too long", SLICE_ARG(name));
        if (pod != NULL && memcmp(&pod->uid, &reservation->uid, sizeof pod->uid) == 0 &&
            pod_is_assigned(pod))
            broken("%.*s is bound, and has a reservation", SLICE_ARG(name));
        size_t left = 0;
        for (size_t i = 0; i < reservation->claim_count; i++)
            left += reservation_has(reservation, reservation->claims[i]);
        if (left != reservation->left_count)
            broken("a reservation of %.*s is not what its claims say", SLICE_ARG(name));
    }
    return listed;
}

static void check_reservations(const struct replica *replica)
{
    const struct cluster *cluster = &replica->state.cluster;
    size_t listed = check_list(cluster, cluster->reservations, false) +
                    check_list(cluster, cluster->in_doubt, true);

    if (listed != cluster->reserved.count)
        broken("%zu reservations are listed, of %u", listed, cluster->reserved.count);
}

static void check_replicas(void)
{
    for (unsigned i = 0; i < world.replica_count; i++)
        if (world.replicas[i].is_up)
            check_reservations(&world.replicas[i]);
}

/* ---- an episode ---- */

static bool has_agreement_only;

static void trace_settings(uint64_t seed)
{
    trace("seed %llu: %u replica(s), %u scheduler(s), claimLock %s, TTL %lld ms%s%s%s%s%s%s%s%s",
          (unsigned long long)seed, world.replica_count, world.scheduler_count,
          world.is_annotation ? "Annotation" : "Local", (long long)world.ttl_ms,
          world.preempts ? ", preemption" : "", world.respects_budgets ? ", budgets" : "",
          !world.has_faults ? ""
          : world.is_hard   ? ", many faults"
                            : ", faults",
          world.fails_open      ? ", admission that is ignored if it fails"
          : world.has_admission ? ", admission"
                                : "",
          world.gives_up ? ", with little memory" : "",
          world.is_mixed ? ", deferral with different entries"
          : world.defers ? ", deferral"
                         : "",
          world.moves_lock ? ", after Local or beside it" : "",
          !world.is_for_one_node                  ? ""
          : world.read_write_once == MODE_ENFORCE ? ", volumes for one node"
                                                  : ", volumes for one node, with a warning");
}

/* While both kinds of lock are wanted, each is in force for some minutes, in turn. What Local binds
 * may be late only if it does not crash. */
static void move_lock(void)
{
    if (!world.agrees)
        world.agrees = world.moves_lock =
            world.is_annotation && world.replica_count == 2 && (has_agreement_only || one_in(3));
    else
        world.moves_lock = one_in(3);
    world.is_stable = world.is_stable || world.moves_lock;
    world.local = (unsigned)below(2);
    if (world.agrees && !world.moves_lock)
        (void)snprintf(world.agreed[AGREED_ANNOTATION].value, TEXT_MAX, "in force");
    if (world.is_mixed && one_in(2)) {
        (void)snprintf(world.agreed[AGREED_CLASS].value, TEXT_MAX, "in force");
    } else if (world.is_mixed) { /* it is announced, and in force when all is over */
        world.entry_from_ns = 10 * SECOND + below(60 * SECOND);
        later(world.entry_from_ns, true, replica_restart, &world.replicas[below(2)]);
    }
}

static void set_up(uint64_t seed)
{
    static const int64_t ttls[] = {1000, 5000, 30000};
    static const uint64_t timeouts_ms[] = {1000, 5000, 10000};

    world_begin(seed);
    world.is_annotation = has_agreement_only || one_in(2);
    world.replica_count = has_agreement_only ? 2 : world.is_annotation ? (unsigned)below(2) + 1 : 1;
    world.scheduler_count = (unsigned)below(2) + 1;
    world.respects_budgets = one_in(2);
    world.preempts = !one_in(4);
    world.ttl_ms = ttls[below(3)];
    world.has_faults = !one_in(8);
    world.is_hard = one_in(2);
    world.is_stable = one_in(4);
    world.is_late = one_in(4);
    world.has_admission = one_in(2);
    world.fails_open = world.has_admission && one_in(4);
    world.has_ephemeral = one_in(3);
    world.gives_up = !has_agreement_only && one_in(8);
    world.review_timeout_ms = timeouts_ms[below(3)];
    world.defers = has_agreement_only || one_in(2);
    world.agrees = world.is_mixed =
        world.is_annotation && world.defers && world.replica_count == 2 && !one_in(4);
    move_lock();
    world.is_for_one_node = one_in(2);
    world.read_write_once = one_in(4) ? MODE_WARN : MODE_ENFORCE;
    world.field = (enum field_support)below(3);
    world.scheduler_is_older = one_in(2);
    world.end_ns = (world.agrees ? 120 : 30) * SECOND + below(60 * SECOND);
    trace_settings(seed);
    world_populate();
    for (unsigned i = 0; i < world.scheduler_count; i++) {
        struct scheduler *scheduler = &world.schedulers[i];
        scheduler->is_plain = world.has_admission && one_in(2);
        scheduler->preempts = !scheduler->is_plain && one_in(2);
        scheduler->sees_claims = (scheduler->is_plain || scheduler->preempts) && one_in(2);
    }
    later(0, true, users_act, NULL);
    later(world.end_ns, true, calm_down, NULL);
}

/* Returns whether all was well; and how it went, in the world. */
static bool run_episode(uint64_t seed)
{
    char failure[sizeof world.failure];

    set_up(seed);
    /* of a pod that another webhook denies, the claims go to others after three times 65 s; what is
     * announced at the end is in force 90 s later; and a
     * scheduler that has lost the last answer to preempt asks again after its flush, in 300 s */
    uint64_t settles = world.has_admission ? 800 : 400;
    world_run(world.end_ns + settles * SECOND, check_replicas);
    if (world.failure[0] == '\0')
        check_settled();
    memcpy(failure, world.failure, sizeof failure);
    if (failure[0] != '\0' && is_traced)
        printf("%9.3f BROKEN: %s\n", (double)world.now_ns / 1e9, failure);
    world_end();
    memcpy(world.failure, failure, sizeof failure);
    return failure[0] == '\0';
}

struct sums {
    uint64_t steps;
    unsigned episodes, bound, created, evicted, rejected, refused_binds, lost, repeated, deferred,
        reviews, denials;
};

static void add_up(struct sums *sums)
{
    sums->steps += world.steps;
    sums->episodes++;
    sums->bound += world.bound;
    sums->created += world.created;
    sums->evicted += world.evicted;
    sums->rejected += world.rejected;
    sums->refused_binds += world.refused_binds;
    sums->lost += world.lost;
    sums->repeated += world.repeated;
    sums->deferred += world.deferred;
    sums->reviews += world.reviews;
    sums->denials += world.denials;
}

static int usage(void)
{
    fputs("Usage: simulation [--steps N] [--seed S] [--agreement] [--trace]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t steps = 100000, seed = 1;
    struct sums sums = {0};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0)
            is_traced = true;
        else if (strcmp(argv[i], "--agreement") == 0)
            has_agreement_only = true;
        else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
            steps = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 10);
        else
            return usage();
    }
    log_configure(is_traced ? LOG_WARN : LOG_ERROR, LOG_TEXT);
    while (sums.steps < steps) {
        if (!run_episode(seed)) {
            printf("seed %llu, step %llu: %s\nsee it with: --seed %llu --steps 1%s --trace\n",
                   (unsigned long long)seed, (unsigned long long)world.steps, world.failure,
                   (unsigned long long)seed, has_agreement_only ? " --agreement" : "");
            return 1;
        }
        uint64_t hash = world.trace;
        add_up(&sums);
        if (sums.episodes % 50 == 1 && (!run_episode(seed) || world.trace != hash)) {
            printf("seed %llu does not replay\n", (unsigned long long)seed);
            return 1;
        }
        seed++;
    }
    printf("%llu steps in %u episodes: %u pods bound, %u created with their node, %u rejections, "
           "%u refused binds, %u pods evicted, %u deferrals, %u reviews, %u denials, %u messages "
           "lost, %u sent twice\n",
           (unsigned long long)sums.steps, sums.episodes, sums.bound, sums.created, sums.rejected,
           sums.refused_binds, sums.evicted, sums.deferred, sums.reviews, sums.denials, sums.lost,
           sums.repeated);
    fibers_dispose();
    return 0;
}

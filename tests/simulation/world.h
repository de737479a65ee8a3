/*
 * world: a cluster in one thread, in which everything that happens follows from a seed: an API
 * server, schedulers, claimguard replicas, users, kubelets, their clock, and the network between
 * them, with delays, lost requests, lost answers, crashes and restarts. The replicas are the real
 * code (cache, policy, verbs, locks, evictions) but for the informer, its requests and the clock,
 * whose functions transport.c and clock.c have.
 *
 *     world.c      what happens when, and chance
 *     server.c     the API server: objects, versions, watch log
 *     requests.c   the same: requests and preconditions
 *     binding_checks.c  what a Binding must never do
 *     transport.c  informer.h and requests.h for the replicas (call.h)
 *     fate.c       what happens to their requests on the way
 *     clock.c      clock.h for the replicas; locks at which another thread comes in
 *     fiber.c      a call on a stack of its own, which waits while other things happen
 *     replica.c    start, crash, lists and watches
 *     replica_calls.c   calls of the verbs, and reviews
 *     admission.c  the API server's side of a review (admission.h)
 *     client.c     Bindings of others than claimguard, and the pods that they create
 *     scheduler.c  cycles, filter and bind calls, as kube-scheduler makes them (scheduler.h)
 *     scheduler_queue.c    which pod a scheduler tries when
 *     scheduler_preempt.c  its preempt calls
 *     scheduler_view.c  what VolumeRestrictions sees
 *     forger.c     calls of a client that is no scheduler
 *     episode.c    random worlds, and what has to hold throughout
 *     users.c      their users and faults
 *     settled.c    what has to hold when everything has had its time
 *     *_rows.c     small worlds, each for one rule of binding, creation, preemption, deferral or
 *                  requeues
 *
 * Not in it: inline CSI volumes, volumes that appear late, webhooks that take annotations off
 * claims, and Volcano. Of generic ephemeral volumes, only one claim, whose pods are no VMs.
 */
#ifndef SIMULATION_WORLD_H
#define SIMULATION_WORLD_H

#include "cache/client/api_path.h"
#include "cache/watch/apply.h"
#include "extender/serving/live/expiry.h"
#include "extender/serving/live/handlers.h"
#include "extender/serving/preemption/preemption.h"
#include "extender/serving/verbs/verbs.h"

#define SECOND      UINT64_C(1000000000)
#define MILLISECOND UINT64_C(1000000)

enum {
    PODS_MAX = 4096, /* in one episode, gone ones too */
    CLAIMS = 3,
    NODES = 3,
    NAMES = 6, /* of pods: few, so that they are used again */
    REPLICAS_MAX = 2,
    SCHEDULERS_MAX = 2,
    LOG_MAX = 65536,
    TEXT_MAX = 96,
    CLAIM_LATE_SECONDS = 30, /* that a watch of claims may be late */
};

/* The pods that own the claim of world.has_ephemeral have this name. */
#define EPHEMERAL_OWNER "p5"

/* ---- the API server's objects ---- */

struct sim_pod {
    char name[16], uid[40];
    uint64_t version;
    int priority;
    bool never, is_grouped; /* preemptionPolicy Never; schedulingGroup */
    unsigned claims;        /* bits */
    unsigned ephemeral;     /* those of them that are created for it, after it */
    bool is_protected;      /* by the budget */
    unsigned scheduler;
    bool is_vm, opts_out; /* runtimeClassName; claimguard.io/defer-fs-mount: disabled */
    unsigned annotated,
        fields;          /* bits of the claims whose mount is deferred, by where it says so */
    unsigned own_fields; /* those that the user has set */
    char
        deferred_for[2 * TEXT_MAX]; /* the annotation: for which claims claimguard has decided it */
    int node, nominated;            /* -1: none */
    bool exists, is_terminating, is_finished;
    uint64_t gone_ns;    /* when it went, or finished; 0: it did not */
    uint64_t asked_ns;   /* when its scheduler asked about it, with nodes; 0: never */
    uint64_t evicted_ns; /* by claimguard */
    uint64_t eviction_sent_ns;
    uint64_t bind_ns;       /* when its scheduler called bind; 0: never */
    uint64_t reviewed_ns;   /* when a Binding of another client was; 0: never */
    uint64_t looked_ns;     /* before it was decided to bind it, nobody looked at its claims */
    bool is_bound_by_other; /* than claimguard */
    bool is_unreviewed;     /* nobody answered about it, and failurePolicy is Ignore */
    bool is_denied;         /* another webhook lets it have no node */
    uint64_t edited_ns;     /* when a user removed the annotation; 0: never */
    uint64_t created_ns;
    unsigned requeues;          /* by claimguard's annotation */
    unsigned preemption;        /* accepted, by claimguard */
    unsigned eviction_requests; /* all of them but trials */
    int evicted_for;       /* index of the one pod for which it can have been; -1: of several */
    unsigned evicted_by;   /* incarnation of the replica */
    char condition[256];   /* why it is not scheduled */
    char fenced[TEXT_MAX]; /* the annotation */
};

struct sim_claim {
    char name[8], uid[40], holder[TEXT_MAX], locked_at[24];
    uint64_t version;
    bool is_rwop, is_unbound; /* unbound: to no volume yet */
    bool is_absent;
    const struct sim_pod *owner; /* it was created for that pod; NULL: by a user */
    bool is_slow;                /* of a storage class that defers nothing */
    char admitted[16]; /* the annotation: the lock is for a Binding, or pod, of another client */
    unsigned lives;    /* how often it was created: each time with another UID */
    uint64_t created_ns, removed_ns;
};

/* What a watch sends, in order. */
struct log_entry {
    enum kind kind;
    enum watch_change change;
    uint64_t version;
    int pod; /* index; -1: it is no pod */
    char *text;
};

struct server {
    struct sim_pod pods[PODS_MAX];
    size_t pod_count;
    struct sim_claim claims[CLAIMS];
    int64_t disruptions_allowed;
    uint64_t version;
    struct log_entry log[LOG_MAX];
    size_t log_count;
};

/* ---- what happens to requests ---- */

enum fate {
    FATE_NONE,
    FATE_LOST,       /* never applied: 503, a 200 of another server, or the connection dies */
    FATE_UNSENT,     /* it waited for its turn until its time was over, and the caller knows */
    FATE_UNANSWERED, /* applied, and nothing comes back: the client waits until its time is over */
    FATE_CUT,        /* applied, and the connection dies */
    FATE_ORPHANED,   /* the connection dies, and it is applied later */
    FATE_REPEATED,   /* applied, and a client or proxy that heard nothing sends it again: the answer
                        is what the API server says to the second */
    FATE_DENIED, /* the same, but the second is refused by something that does not know the first:
                    409, 403 or 429 */
};

/* A fault of the next requests of a kind, for rows. */
struct planned_fault {
    unsigned count;     /* so many; 0: none */
    const char *method; /* NULL: any */
    const char *path;   /* a part of it; NULL: any */
    enum fate fate;
    unsigned status;   /* of FATE_LOST and FATE_DENIED; 0: any of theirs */
    uint64_t after_ns; /* when one of FATE_ORPHANED is applied, FATE_NONE answered; 0: chance */
};

/* ---- who talks to it ---- */

struct replica {
    unsigned index;
    bool is_up, is_synced, is_agreeing;
    unsigned incarnation; /* one more with each start */
    struct state state;
    struct handlers *handlers;
    struct informer *informer;
    struct kubeconfig kubeconfig;
    uint64_t watched[KIND_COUNT]; /* version */
    uint64_t pods_listed_ns;      /* when the last list of pods was read */
    unsigned lists[KIND_COUNT];   /* how many were begun: what a former watch brings is late */
    bool is_watching[KIND_COUNT], is_listing[KIND_COUNT];
    uint64_t last_due_ns[KIND_COUNT];
    uint64_t agrees_again_ns; /* until then, it may not read the agreement */
    unsigned evicting;        /* attempts under way */
};

enum pod_queue { QUEUE_NONE, QUEUE_ACTIVE, QUEUE_UNSCHEDULABLE, QUEUE_CYCLE, QUEUE_BINDING };

struct scheduler {
    unsigned index, replica;
    bool is_up, preempts, is_busy;
    bool is_plain;    /* it has no extender, and posts its Bindings itself */
    bool sees_claims; /* VolumeRestrictions is enabled: it sees by itself who uses a claim, asks
                         filter only when nobody does, and preempt about the one node that helps */
    unsigned incarnation;
    uint64_t last_due_ns;
    bool has_moved; /* something happened since the cycle began */
    struct queued {
        enum pod_queue queue;
        uint64_t ready_ns, since_ns;
        unsigned attempts;
        const char *text; /* the pod as it was last seen, of the log */
        bool is_assigned;
    } pods[PODS_MAX];
    const char *seen[PODS_MAX]; /* any scheduler's pods, as it saw them last; NULL: none, or gone */
};

/* What the API server makes of deferFSMount. */
enum field_support {
    FIELD_ABSENT, /* an older one: refuses it, and strips it from what it shows and writes */
    FIELD_GATED,  /* its feature gate is off: it lists the field, and drops it with 200 */
    FIELD_KNOWN,
};

/* What is agreed about. */
enum { AGREED_LOCAL, AGREED_ANNOTATION, AGREED_CLASS, AGREED };

struct world {
    uint64_t random, now_ns, end_ns;
    unsigned randoms;      /* that were drawn by getrandom */
    uint64_t steps, trace; /* trace: a hash of all that happened */
    bool has_faults, is_annotation, is_over;
    bool is_stable;     /* no replica crashes */
    bool is_late;       /* the watches often are */
    bool has_admission; /* Bindings and pods are reviewed */
    bool fails_open;    /* failurePolicy is Ignore, not Fail */
    bool gives_up;      /* a replica may keep little of the namespace (cache/cluster/allowance.h) */
    bool has_ephemeral; /* the last claim is only there while the pod that owns it is */
    uint64_t review_timeout_ms; /* of the webhooks */
    unsigned reviewer;          /* 1 + the replica that is asked for reviews; 0: chance */
    uint64_t store_after_ns;    /* how long after its review it is stored; 0: chance */
    unsigned review_count;      /* for their UIDs */
    bool defers;                /* an entry, Exclusive, for the claims' storage class and the VMs */
    bool agrees;   /* the replicas follow an agreement (extender/serving/bind/agreement.h) */
    bool is_mixed; /* and start with the entry, or without */
    uint64_t entry_from_ns; /* before, nobody has the entry */
    bool moves_lock;        /* and replica 0 or 1 has claimLock Local, the other one Annotation */
    unsigned local;         /* which one; the other comes later */
    struct agreed_text {
        char value[TEXT_MAX]; /* empty: there is none */
    } agreed[AGREED];         /* the agreement's ConfigMap */
    uint64_t agreed_version;
    enum field_support field;
    uint64_t field_since_ns;    /* when the API server came to be as it is */
    bool scheduler_is_older;    /* than the field: it does not pass it on */
    bool annotation_is_removed; /* by a webhook, from what is written */
    int apply;                  /* enum defer_apply */
    unsigned lost_bindings;     /* so many, or pods, are not stored, and answered with 500 */
    unsigned lost_preempts;     /* so many answers to preempt never arrive */
    unsigned edits;             /* before so many Bindings, a user removes the annotation */
    unsigned touches;           /* before so many Bindings, a controller patches the pod */
    bool is_for_one_node; /* the volumes are ReadWriteOnce, and attached; and so are claims that are
                             to be shared */
    int read_write_once;  /* enum policy_mode */
    bool is_full;         /* no node passes the schedulers' own plugins: claimguard is not asked */
    unsigned termination_seconds; /* of a victim; 0: chance */
    bool trials_lie; /* an eviction that is tried would do, and is refused when it is real */
    uint64_t api_down_until_ns;
    uint64_t gets_fail_until_ns; /* 503, or no answer; everything else goes through */
    bool is_hard;                /* FATE_CUT and what follows it happen; GETs fail for seconds */
    struct planned_fault fault;
    struct server server;
    struct replica replicas[REPLICAS_MAX];
    struct scheduler schedulers[SCHEDULERS_MAX];
    unsigned replica_count, scheduler_count;
    bool respects_budgets, preempts;
    int64_t ttl_ms;
    /* what happened, for the summary */
    unsigned bound, evicted, rejected, refused_binds, lost, repeated, deferred, requests, failures;
    unsigned created, reviews, denials; /* created: with their node */
    char failure[512];                  /* empty: all is well */
};

extern struct world world;

extern bool is_traced; /* what happens is printed */

/* A world with nothing in it but chance; its settings can be changed until it is populated. Then
 * time passes, until something is broken at most; check: NULL, or called after each event.
 * world_end frees all of it. */
void world_begin(uint64_t seed);
void world_populate(void);
void world_run(uint64_t until_ns, void (*check)(void));
void world_end(void);

/* Less than bound; whether one in n. */
uint64_t below(uint64_t bound);
bool one_in(unsigned n);

/* After that time, run is called. counts: as a step. */
void later(uint64_t delay_ns, bool counts, void (*run)(void *context), void *context);

/* Something that must not be. */
void broken(const char *format, ...) PRINTF_LIKE(1, 2);

/* What happened, when it is to be shown. */
void trace(const char *format, ...) PRINTF_LIKE(1, 2);

/* ---- server.c ---- */

void server_init(void);
void server_dispose(void);
struct sim_pod *server_create_pod(const char *name, const struct sim_pod *properties);
/* The same in two steps: the pod gets its UID, and does not exist before it is stored. */
struct sim_pod *server_name_pod(const char *name, const struct sim_pod *properties, int node);
void server_store_pod(struct sim_pod *pod);
void server_terminate(struct sim_pod *pod, uint64_t grace_ns);
uint64_t termination_ns(unsigned most_seconds); /* of a victim */
void server_finish(struct sim_pod *pod);
void server_touch(struct sim_pod *pod);
void server_set_budget(int64_t allowed);
void server_replace(enum field_support field); /* by one that is of another version or setting */
void server_change_claim(unsigned claim, bool is_rwop, bool is_unbound);
void server_remove_claim(unsigned claim);
bool server_is_used(unsigned claim);
void server_create_claim(unsigned claim); /* one that was removed */
struct sim_pod *server_find_pod(const char *name, size_t len);
struct sim_pod *server_pod_of(const char *uid, size_t len); /* also one that is gone */
bool pod_is_there(const struct sim_pod *pod);               /* exists, and not finished */

/* The objects of a kind as they are now, each by put. */
void server_list(enum kind kind, void (*put)(void *context, enum kind kind, struct slice text),
                 void *context);

/* The fields of the pod that the API server shows. */
unsigned server_shown_fields(const struct sim_pod *pod);

/* The claims of the pod, as bits, whose mount is deferred. */
unsigned server_deferred_claims(const struct sim_pod *pod);

/* The object as text; and that it has changed, which makes a version and a watch event. */
void server_write_pod(const struct sim_pod *pod, struct buf *out);
void server_write_claim(const struct sim_claim *claim, struct buf *out);
void server_publish(struct sim_pod *pod);
void server_publish_claim(struct sim_claim *claim);

/* ---- requests.c ---- */

/* What all paths of pods begin with. */
#define PODS_PATH "/api/v1/namespaces/ns/pods/"

/* One request; returns the status, and the answer's body. posted: of a Binding; else NULL. */
struct posted;
unsigned server_handle(const char *method, const char *path, struct slice body,
                       const struct posted *posted, struct buf *answer);

/* Stores the pod that was posted. */
unsigned server_create(const struct posted *posted, struct buf *answer);

/* ---- binding_checks.c ---- */

/* The pod has just been bound. known: its fields before. */
void check_binding(const struct sim_pod *pod, unsigned known);

/* ---- fate.c ---- */

/* Whether a request may be applied as late as the API server allows: what a replica knows of it is
 * still known then. */
bool replicas_outlast_requests(void);

/* ---- transport.c ---- */

struct requests {
    struct replica *replica;
};

struct informer {
    struct requests requests;
    struct informer_target target;
};
void requests_crash(struct replica *replica);

/* ---- replica.c ---- */

void replica_start(struct replica *replica);
void replica_crash(struct replica *replica);
void replica_come(void *replica);              /* it starts, unless all is over */
void replica_restart(void *replica);           /* it crashes, and starts some seconds later */
void replica_configure(struct config *config); /* as the world says */
void replica_relist(struct replica *replica, enum kind kind);
void replica_notified(struct replica *replica, size_t index); /* of the log */

/* Applies an object to the target's cluster, as a list or a watch sends it. */
void take_object(const struct informer_target *target, enum kind kind, enum watch_change change,
                 struct slice text);

/* The kinds that are in this world. */
enum { WATCHED_KINDS = 5 };
extern const enum kind watched_kinds[WATCHED_KINDS];

/* ---- replica_calls.c ---- */

/* Calls a verb over the network. answer is called once: with NULL when none came. */
typedef void answered(void *context, const char *answer);
void replica_call(unsigned replica, enum verb verb, const char *body, answered *answer,
                  void *context);

/* The same of an admission webhook; NULL also if the replica could not decide. */
void replica_review(unsigned replica, enum admit_path path, const char *body, answered *answer,
                    void *context);

/* ---- scheduler_view.c: what a scheduler with VolumeRestrictions sees by itself ---- */

/* The node of a pod that uses one of the pod's claims, as far as the scheduler has seen; -1: it is
 * none of those. exclusive: ReadWriteOncePod claims alone. */
int node_in_the_way(const struct scheduler *scheduler, size_t other, const struct sim_pod *pod,
                    bool exclusive);

/* Whether the pod's claims are in use; *helps: the node on which evictions would free them all, -1:
 * there is none. */
bool sees_conflict(const struct scheduler *scheduler, const struct sim_pod *pod, int *helps);

/* Whether it asks claimguard about the pod, as things are: it may see that no node helps. */
bool scheduler_asks(const struct scheduler *scheduler, const struct sim_pod *pod);

/* ---- settled.c ---- */

/* Every pod that could be bound is, and every preemption that is allowed was done. */
void check_settled(void);

/* ---- users.c ---- */

/* Does something, and comes again, until the world's end. */
void users_act(void *context);

/* ---- forger.c ---- */

/* Calls about the pod, now and then, while it is being bound, or just was. */
void forge_sometimes(struct sim_pod *pod, unsigned replica);

/* ---- scheduler.c ---- */

void scheduler_start(struct scheduler *scheduler);
void scheduler_crash(struct scheduler *scheduler);
void scheduler_notified(struct scheduler *scheduler, size_t index);

#endif

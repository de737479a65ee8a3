/*
 * installation: what `claimguard doctor` reads of a cluster, apart from what verdicts read: the
 * objects that claimguard is installed with, and those that can get in its way; and a few fields of
 * each pod with claims. From a snapshot or from a live cluster (extender/commands/inquiry).
 *
 * An object that cannot be decoded is left out.
 *
 * Ownership: installation_dispose; texts are in the arena. Threads: one.
 */
#ifndef EXTENDER_COMMANDS_DOCTOR_INSTALLATION_H
#define EXTENDER_COMMANDS_DOCTOR_INSTALLATION_H

#include "cache/objects/details.h"
#include "extender/commands/doctor/doctor_rules.h"
#include "extender/commands/inquiry/inquiry.h"

enum {
    INSTALLED_OBJECTS_MAX = 20000 /* of a kind */,
    INSTALLED_GUARDS_MAX = 100,
    SCHEDULERS_MAX = 1000,
    SCHEDULERS_OF_ONE_MAX = 8, /* of these, of one namespace */
};

/* ---- objects ---- */

/* What the struct of each object begins with. A Service has no more. */
struct installed {
    struct slice ns, name;
    struct slice uid; /* empty: a manifest, which no API server has taken */
};

/* A Deployment, or a pod of claimguard: with the label of manifests/, in its namespace or
 * kube-system, so that nobody else makes some. */
struct guard {
    struct installed meta;
    struct slice account, scheduler, node; /* of its pods */
    struct pull_items containers;          /* struct guard_container */
    struct pull_items volumes;             /* struct mounted_map */
    bool has_status;                       /* a file may leave it out */
    struct pull_items conditions;          /* struct condition */

    int64_t replicas, available; /* of a Deployment */

    struct slice deletion_timestamp, phase;    /* of a pod */
    struct slice mirror;                       /* not empty: it shows a static pod */
    struct pull_items init_statuses, statuses; /* struct guard_status */
};

struct guard_container {
    struct slice name, image, memory /* its limit */;
};

struct mounted_map {
    struct slice name; /* of a ConfigMap; empty: it is another volume */
    bool is_optional;
};

struct waiting {
    struct slice reason, message;
};

struct guard_status {
    struct waiting waiting, ended;
};

struct endpoint_slice {
    struct installed meta;
    struct slice service;
    struct pull_items endpoints; /* struct endpoint */
};

struct endpoint {
    struct slice ready; /* as JSON; empty: it is */
};

/* A ValidatingWebhookConfiguration. */
struct webhooks {
    struct installed meta;
    struct pull_items items; /* struct webhook */
};

#define NAMESPACE_LABEL "kubernetes.io/metadata.name" /* each namespace has its name as this */

struct webhook {
    struct slice name, policy /* for failures */, bundle, url;
    struct slice service_ns, service, path;
    int64_t port;                  /* of the Service; 0: not said */
    struct pull_items rules;       /* struct webhook_rule */
    struct slice ns_label;         /* the only one of these that it selects; empty: any */
    struct pull_items expressions; /* struct namespace_expression, which each select, too */
};

struct webhook_rule {
    struct pull_items resources, operations, groups, versions; /* struct slice */
    struct slice scope;
};

struct namespace_expression {
    struct slice key, operator;
    struct pull_items values; /* struct slice */
};

/* A MutatingAdmissionPolicy, its binding, or that of a ValidatingAdmissionPolicy. */
struct marker {
    struct installed meta;
    bool has_mark;       /* it names the mark, anywhere */
    struct slice policy; /* of a binding */
};

struct limit_range {
    struct installed meta;
    struct pull_items limits; /* struct limit */
};

/* Quantities of the mark; empty: none. */
struct limit {
    struct slice min, max, ratio, limit_default, request_default;
};

struct config_map {
    struct installed meta;
    struct slice data; /* as JSON; empty: none */
};

/* One that says that a volume cannot be mounted. */
struct event {
    struct installed meta;
    struct slice pod, pod_uid, reason, message;
};

/* The kinds of these, without pods. */
enum { INSTALLED_KINDS = 10 };
struct installed_kind {
    enum kind kind;
    struct pull_table table;
    size_t size;    /* of its struct */
    uint64_t rules; /* bits GAP_RULE: those that need it */
};
extern const struct installed_kind installed_kinds[INSTALLED_KINDS];

struct installed_list {
    struct pull_items items; /* the struct of the kind */
    bool is_seen;            /* the cluster has some */
    bool is_cut;             /* there are more than are read */
};

/* ---- pods ---- */

/* A pod with claims that is not finished; or one of any kind, as an example. */
struct installed_pod {
    struct slice ns, name, scheduler;
    bool is_marked;     /* requests claimguard.io/claims */
    bool is_mark_known; /* its containers were read whole: claimguard's own snapshots leave all out
                           but their volumes */
    bool is_assigned;   /* to a node */
};

/* One pod of each scheduler. A namespace has some of them, whatever names of schedulers its pods
 * have. */
struct example_pods {
    struct installed_pod items[SCHEDULERS_MAX];
    size_t count;
    bool has_left_out; /* there were more */
};

/* Whether the pod was added: it is the first one of its scheduler, and there is room. */
bool example_pods_add(struct example_pods *examples, const struct installed_pod *pod);

/* The pod of that scheduler; NULL: there is none. */
const struct installed_pod *example_pods_find(const struct example_pods *examples,
                                              struct slice scheduler);

/* ---- all ---- */

struct installation {
    struct inquiry inquiry;
    struct arena arena;
    const char *ns;                                /* of claimguard */
    struct installed_list lists[KIND_NAMED_COUNT]; /* of KIND_POD: claimguard's own pods */
    struct installed_pod *pods;
    size_t pod_count;
    size_t all_pod_count;      /* also without claims, and finished */
    struct example_pods disks; /* pods that name a disk in their own volumes, of those that
                                  VolumeRestrictions compares */
    bool is_scheduler_on_host; /* a pod of kube-scheduler is on the host's network, with its DNS */
};

/* Reads the cluster. origin: as inquiry_open. Errors: as inquiry_read. */
int installation_read(struct installation *out, const struct inquiry_origin *origin, const char *ns,
                      struct error *err);
void installation_dispose(struct installation *installation);

/* Whether all objects of a kind were read: of most, all in claimguard's namespace. */
bool installation_knows(const struct installation *installation, enum kind kind);

/* The next object of a kind, behind that one; after: NULL: the first one. NULL: there is no other.
 * Of a kind that has namespaces, all are in claimguard's, but pods and LimitRanges. */
const void *installation_next(const struct installation *installation, enum kind kind,
                              const void *after);

/* The object of that name; NULL: there is none. */
const void *installation_find(const struct installation *installation, enum kind kind,
                              struct slice name);

/* Its place, for findings. */
struct location installed_place(struct findings *findings, enum kind kind,
                                const struct installed *object);

#endif

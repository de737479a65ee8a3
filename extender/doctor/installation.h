/*
 * installation: what `claimguard doctor` reads of a cluster, apart from what verdicts read: the
 * objects that claimguard is installed with, and those that can get in its way, as JSON; and a few
 * fields of each pod with claims. From a snapshot or from a live cluster (extender/inquiry).
 *
 * Ownership: installation_dispose. Threads: one.
 */
#ifndef EXTENDER_DOCTOR_INSTALLATION_H
#define EXTENDER_DOCTOR_INSTALLATION_H

#include <jansson.h>

#include "cache/objects/objects.h"
#include "extender/doctor/findings.h"
#include "extender/inquiry/inquiry.h"

/* The kinds that are kept as JSON. */
enum installed {
    INSTALLED_DEPLOYMENT,
    INSTALLED_SERVICE,
    INSTALLED_ENDPOINT_SLICE,
    INSTALLED_WEBHOOKS,       /* ValidatingWebhookConfiguration */
    INSTALLED_MARKER,         /* MutatingAdmissionPolicy */
    INSTALLED_MARKER_BINDING, /* MutatingAdmissionPolicyBinding */
    INSTALLED_LIMIT_RANGE,
    INSTALLED_CONFIG_MAP,
    INSTALLED_EVENT, /* FailedMount, the others are not looked at */
    INSTALLED_COUNT
};

enum {
    INSTALLED_OBJECTS_MAX = 20000 /* of a kind */,
    INSTALLED_DISKS_MAX = 100,
    INSTALLED_GUARDS_MAX = 100
};

/* A pod with claims that is not finished. */
struct installed_pod {
    struct slice ns, name, scheduler;
    bool is_marked;     /* requests claimguard.io/claims */
    bool is_mark_known; /* its containers were read whole: claimguard's own snapshots leave all out
                           but their volumes */
    bool is_assigned;   /* to a node */
};

/* A pod that names a disk in its own volumes, of those that VolumeRestrictions compares; the first
 * one of its scheduler. */
struct installed_disk {
    struct slice ns, name, scheduler;
};

struct installation {
    struct inquiry inquiry;
    struct arena arena; /* of the pods */
    const char *ns;     /* of claimguard */
    json_t *objects[INSTALLED_COUNT];
    bool is_known[INSTALLED_COUNT]; /* that all objects of the kind were read */
    bool is_cut[INSTALLED_COUNT];   /* there are more objects, or larger ones, than are read */
    struct installed_pod *pods;
    size_t pod_count;
    size_t all_pod_count;         /* also without claims, and finished */
    json_t *guards;               /* claimguard's own pods: with the label of manifests/, in its
                             namespace or kube-system, so that nobody else makes some; at most
                                     INSTALLED_GUARDS_MAX */
    struct installed_disk *disks; /* at most INSTALLED_DISKS_MAX */
    size_t disk_count;
    bool is_scheduler_on_host; /* a pod of kube-scheduler is on the host's network, with its DNS */
};

/* "Deployments", for people. */
const char *installed_text(enum installed kind);

/* Reads the cluster. origin: as inquiry_open. Errors: as inquiry_read; ERROR_TOO_BIG. */
int installation_read(struct installation *out, const struct inquiry_origin *origin, const char *ns,
                      struct error *err);
void installation_dispose(struct installation *installation);

/* Lists, of a live cluster, the objects that inquiry does not list. What may not be listed is not
 * known, and what is too large is cut. */
int installation_read_live(struct installation *installation, struct error *err);

/* The fields that are read of a kind beside those of cache/objects; {NULL, 0}: none. */
struct pull_table installation_table(enum kind kind);

/* Keeps an object, if it is of such a kind. Returns whether it is; negative: an error. */
int installation_take(struct installation *installation, const struct type *type, struct slice text,
                      struct error *err);

/* The object of that name; NULL: there is none. ns: NULL for kinds without namespaces. */
const json_t *installation_find(const struct installation *installation, enum installed kind,
                                const char *ns, const char *name);

/* The pod with a disk of that scheduler; NULL: there is none. */
const struct installed_disk *installation_find_disk(const struct installation *installation,
                                                    struct slice scheduler);

/* Its place, for findings. */
struct location installed_place(struct findings *findings, const char *kind, const json_t *object);

/* A text of an object, by keys up to a NULL ("metadata", "name"); "": there is none. */
const char *installed_string(const json_t *object, ...) __attribute__((sentinel));

#endif

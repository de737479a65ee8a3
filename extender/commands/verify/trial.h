/*
 * trial: what `claimguard verify` makes in a cluster, and removes: a namespace of a random name,
 * and in it claims and pods; perhaps a PersistentVolume and a ValidatingWebhookConfiguration of the
 * same name. All have the label app.kubernetes.io/managed-by, by which a later run finds what an
 * earlier one has left.
 *
 * No container runs, and no image is pulled: pods are bound to a node that does not exist. A claim
 * has a StorageClass that does not exist, so no provisioner makes a volume, and no volume of
 * anybody is bound to it: claimguard and the API server keep such a claim to one pod as well. Pods
 * that a scheduler may bind to a real node have a claim whose volume can never be mounted, and
 * their image is never pulled.
 *
 *     extern struct api api;
 *     struct error problem;
 *     struct trial trial;
 *     int rc = trial_begin(&trial, &api, 60000, err);
 *     if (rc == 0)
 *         rc = trial_claim(&trial, "data", false, err);
 *     if (trial_end(&trial, &problem) < 0)
 *         (void)fprintf(stderr, "%s\n", problem.message);
 *
 * Errors: ERROR_UNAVAILABLE: the API server refuses, or does not answer; ERROR_TIMEOUT: the time of
 * the trial is over. Threads: one.
 */
#ifndef EXTENDER_COMMANDS_VERIFY_TRIAL_H
#define EXTENDER_COMMANDS_VERIFY_TRIAL_H

#include "cache/client/call.h"

#define TRIAL_PREFIX  "claimguard-verify-"
#define TRIAL_WEBHOOK "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

struct trial {
    struct api *api; /* borrowed; has all texts */
    char name[32];   /* of all that has no namespace, of the StorageClass, of the node, and of the
                        scheduler that pods name */
    bool has_namespace, has_volume, has_webhook; /* perhaps: to be removed */
    uint64_t ends_ns;                            /* of monotonic_ns */
    int64_t ends_s;                              /* since 1970 */
};

/* A pod of the trial. */
struct trial_pod {
    const char *name, *claim;
    const char *scheduler; /* NULL: nobody's */
    bool names_node;       /* it is created with spec.nodeName */
};

/* Removes what runs that are over have left, and makes the namespace. Ownership: trial_end, also
 * after an error. */
int trial_begin(struct trial *out, struct api *api, int64_t ms, struct error *err);

/* Removes all, whether or not it is interrupted. Errors: something may be left, which err names. */
int trial_end(struct trial *trial, struct error *err);

/* Errors: ERROR_TIMEOUT: its time is over. */
int trial_check_time(const struct trial *trial, struct error *err);

/* A ReadWriteOncePod claim. has_volume: with the volume of the trial (once). */
int trial_claim(struct trial *trial, const char *name, bool has_volume, struct error *err);

/* Requests, for api_call and api_call_all. A path that is NULL: no memory. uid: empty: none. */
struct request trial_pod_request(const struct trial *trial, const struct trial_pod *pod,
                                 const char *query);
struct request trial_binding_request(const struct trial *trial, const char *pod, struct slice uid,
                                     bool is_old_path, const char *query);

/* Creates a pod. *uid: its own, in the arena of api. */
int trial_create_pod(struct trial *trial, const struct trial_pod *pod, struct slice *uid,
                     struct error *err);

/* What the API server has of an object of the trial. */
struct trial_object {
    bool is_there;
    struct slice uid, node, phase; /* of a pod, a claim */
    struct slice message;          /* of a pod's condition PodScheduled, if it is False */
};

/* resource: "pods" or "persistentvolumeclaims". */
int trial_read(struct trial *trial, const char *resource, const char *name,
               struct trial_object *out, struct error *err);

/* Nominates a pod without a node to one on which pods can run: then it holds its claims
 * (docs/policies.md). *is_done: false: no such node was found. */
int trial_nominate(struct trial *trial, const char *pod, bool *is_done, struct error *err);

/* Deletes a pod or a claim at once. */
int trial_remove(struct trial *trial, const char *resource, const char *name, struct error *err);

/* Writes the metadata of an object with that name, and the labels of the trial. */
void trial_put_metadata(const struct trial *trial, const char *name, struct buf *out);

/* Sends the body, which is freed, and expects success. what: "pod first", for messages. */
int trial_post(struct trial *trial, const char *path, struct buf *body, const char *what,
               struct request_answer *answer, struct error *err);

/* Deletes an object without a namespace; that it is not there is no error. */
int trial_delete(struct trial *trial, const char *path, struct slice name, struct error *err);

/* Sleeps a moment, for what the cluster does by itself. Errors: as trial_check_time; interrupted.
 */
int trial_wait(const struct trial *trial, struct error *err);

#endif

/*
 * review: the bodies of a webhook call: AdmissionReview of admission.k8s.io/v1, read without a
 * tree. What is read borrows from the body and from the arena.
 *
 * Keys are compared exactly, as API servers do. A key that appears twice is refused.
 *
 * Errors: ERROR_INVALID "body:LINE:COL: path: what is wrong"; without a place if a value is
 * missing. ERROR_TOO_BIG: a pod that is well-formed, but over a limit of claimguard; what was read
 * of it is set.
 *
 * Threads: any.
 */
#ifndef EXTENDER_SERVING_ADMISSION_REVIEW_H
#define EXTENDER_SERVING_ADMISSION_REVIEW_H

#include "extender/serving/protocol/protocol.h"

enum { REVIEW_UID_BYTES_MAX = 128, USER_NAME_BYTES_MAX = 1024 };

/* The request of an AdmissionReview. */
struct review {
    struct slice uid; /* of the review */
    struct slice resource, sub_resource, operation, ns, name;
    struct slice user_name; /* cut: an API server takes any length */
    bool is_dry_run;
    struct slice object; /* the extent of the object in the body; {NULL, 0}: there is none */
};

int review_read(struct review *out, struct slice body, struct arena *arena, struct error *err);

/* Whether the review is about the creation of a Binding, by either path; of a pod. */
bool review_is_of_binding(const struct review *review);
bool review_is_of_pod(const struct review *review);

/* Read the object of the review, which is in the body. The namespace is that of the review. The
 * UID of a Binding's pod may be empty; *annotation is what it sets for deferrals ({NULL, 0}: not).
 * A pod that names its node has a UID; this and the names have only the characters of such: they
 * become part of requests, and no pod that exists vouches for them. */
int review_read_binding(struct bind_request *out, struct slice *annotation,
                        const struct review *review, struct slice body, struct arena *arena,
                        struct error *err);
int review_read_pod(struct pod_object *out, const struct review *review, struct slice body,
                    struct arena *arena, struct error *err);

/* Whether the object is the mirror pod of a static pod (annotation kubernetes.io/config.mirror). */
bool review_is_of_mirror_pod(const struct review *review, struct arena *arena);

/* The answer to a review. */
struct review_answer {
    bool is_allowed;
    unsigned code;        /* of a denial: an HTTP status */
    const char *reason;   /* of a denial: a metav1.StatusReason */
    struct slice message; /* of a denial */
    const struct slice *warnings;
    size_t warning_count;
};

void review_write(struct buf *out, const struct review *review, const struct review_answer *answer);

#endif

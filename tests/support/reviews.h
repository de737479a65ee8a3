/*
 * reviews: what an API server sends to claimguard's admission webhooks, over TLS, in a scenario.
 *
 *     admission_start(&guard, "");
 *     check(strcmp(admit(&guard, &(struct test_review){.pod = "a", .node = "node-1"}), "allowed")
 * == 0, "its claim is free");
 */
#ifndef TESTS_SUPPORT_REVIEWS_H
#define TESTS_SUPPORT_REVIEWS_H

#include "support/scenario.h"

/* Files server.crt and server.key in the scenario's folder, which last for a month. */
void scenario_certificate(void);

/* As guard_start and guard_launch, with admission webhooks on a free port. */
void admission_start(struct guard *guard, const char *config);
void admission_launch(struct guard *guard, const char *config);
uint16_t admission_port(const struct guard *guard);

/* The review of a Binding, with the pod's UID as the API server has it, or that
 * of nobody. */
struct test_review {
    const char *pod, *node;
    const char *ns;      /* NULL: "default" */
    const char *uid;     /* NULL: as above */
    const char *user;    /* NULL: a scheduler */
    const char *timeout; /* of the webhook, "1s"; NULL: "10s" */
    bool is_dry_run;
    bool is_old_path; /* bindings, and not pods/binding */
    bool has_no_uid;
    const char *annotation; /* claimguard.io/defer-fs-mount of the Binding; NULL: none */
    void *connection;       /* of review_connect, which it ends; NULL: one of its own */
};

/* A connection for one review: where reviews have to wait at the same time, TLS is done before. */
void *review_connect(const struct guard *guard);

/* "allowed", "allowed; WARNING; ...", "denied: 409 MESSAGE", "denied: 409 REASON: MESSAGE"
 * if the reason is not Conflict, or "failed: STATUS BODY"; STATUS is 0
 * if there was no answer. Valid for the life of the process. Fails unless the answer is well-formed
 * and has the review's UID. */
const char *admit(const struct guard *guard, const struct test_review *review);

/* A pod that is being created: the API server does not have it yet. */
struct test_creation {
    struct test_pod pod;
    const char *uid;     /* NULL: one that depends on its name alone */
    const char *timeout; /* as above */
    bool is_dry_run;
};

/* What the review of the creation is answered: as admit. */
const char *admit_creation(const struct guard *guard, const struct test_creation *creation);

/* The API server stores the pod. */
void create(const struct test_creation *creation);

bool is_admitted(const struct guard *guard, const char *pod, const char *node);

/* Whether the answer begins so; if not, prints it. */
bool starts_with(const char *answer, const char *text);

/* A review in parallel to the scenario. */
struct review_beside {
    pthread_t thread;
    const struct guard *guard;
    struct test_review review;
    const char *answer;
};
void review_begin(struct review_beside *beside, const struct guard *guard,
                  struct test_review review);

/* Waits for the answer. */
const char *review_end(struct review_beside *beside);

#endif

#include "extender/doctor/rights.h"

#include <jansson.h>

#include "extender/certificates/api_call.h"
#include "extender/report/advice_rows.h"
#include "policy/agreed.h"
#include "policy/needs.h"

#define SERVICE_ACCOUNT "system:serviceaccount:"
#define MANIFESTS_USER  SERVICE_ACCOUNT "claimguard:claimguard" /* whom rbac.yaml binds */
#define REVIEWS         "/apis/authorization.k8s.io/v1/"

enum { REVIEW_BYTES_MAX = 16 << 10 };

struct right {
    const char *verb, *group, *resource, *subresource;
    bool is_fatal;
};

struct asking {
    struct rights *rights;
    struct api api;
    struct arena *arena;
};

static void put_user(struct buf *out, struct slice user)
{
    struct slice prefix = SLICE(SERVICE_ACCOUNT);

    buf_put(out, SLICE("\"user\":"));
    buf_json(out, user);
    buf_put(out, SLICE(",\"groups\":[\"system:authenticated\""));
    if (user.len > prefix.len && memcmp(user.ptr, prefix.ptr, prefix.len) == 0) {
        const char *ns = user.ptr + prefix.len, *colon = strchr(ns, ':');
        buf_put(out, SLICE(",\"system:serviceaccounts\""));
        if (colon != NULL)
            buf_printf(out, ",\"system:serviceaccounts:%.*s\"", (int)(colon - ns), ns);
    }
    buf_put(out, SLICE("],"));
}

/* Where claimguard looks for the agreement. The context of its kubeconfig is not known here. */
static struct slice own_namespace(const char *user)
{
    size_t prefix_len = sizeof SERVICE_ACCOUNT - 1;
    bool is_account = strncmp(user, SERVICE_ACCOUNT, prefix_len) == 0;
    const char *ns = is_account ? user + prefix_len : "";

    return agreed_namespace(SLICE(""), (struct slice){ns, strcspn(ns, ":")});
}

static void put_review(struct buf *out, const struct rights *rights, const struct right *right)
{
    buf_printf(out, "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"%s\",\"spec\":{",
               rights->is_self ? "SelfSubjectAccessReview" : "SubjectAccessReview");
    if (!rights->is_self)
        put_user(out, slice_of(rights->user));
    buf_printf(out,
               "\"resourceAttributes\":{\"verb\":\"%s\",\"group\":\"%s\",\"resource\":\"%s\","
               "\"subresource\":\"%s\"",
               right->verb, right->group, right->resource, right->subresource);
    if (strcmp(right->resource, "configmaps") == 0) { /* one object alone */
        buf_put(out, SLICE(",\"name\":\"" AGREEMENT_NAME "\",\"namespace\":"));
        buf_json(out, own_namespace(rights->user));
    }
    buf_put(out, SLICE("}}}"));
}

static int send_review(struct asking *asking, const struct right *right,
                       struct request_answer *answer, struct error *err)
{
    struct buf body;

    buf_init(&body, REVIEW_BYTES_MAX);
    put_review(&body, asking->rights, right);
    struct request request = {
        .method = "POST",
        .path = asking->rights->is_self ? REVIEWS "selfsubjectaccessreviews"
                                        : REVIEWS "subjectaccessreviews",
        .content_type = "application/json",
        .body = buf_slice(&body),
    };
    int rc = body.failed ? error_no_memory(err) : api_call(&asking->api, &request, answer, err);
    buf_dispose(&body);
    return rc;
}

static bool is_allowed(struct slice body)
{
    json_t *review = json_loadb(body.ptr, body.len, 0, NULL);
    bool allowed = json_is_true(json_object_get(json_object_get(review, "status"), "allowed"));

    json_decref(review);
    return allowed;
}

static int ask(struct asking *asking, const struct right *right, struct error *err)
{
    struct rights *rights = asking->rights;
    struct request_answer answer = {.status = 0};

    if (send_review(asking, right, &answer, err) < 0)
        return err->code;
    if (answer.status == 403 && !rights->is_self) {
        rights->is_self = true;
        if (send_review(asking, right, &answer, err) < 0)
            return err->code;
    }
    if (answer.status != 201)
        return api_refused(&answer, "an access review", err);
    if (is_allowed(answer.body))
        return 0;
    rights->is_fatal = rights->is_fatal || right->is_fatal;
    rights->missing =
        arena_printf(asking->arena, "%.*s%s%s %s%s%s", SLICE_ARG(rights->missing),
                     rights->missing.len == 0 ? "" : ", ", right->verb, right->resource,
                     *right->subresource == '\0' ? "" : "/", right->subresource);
    return rights->missing.ptr == NULL ? error_no_memory(err) : 0;
}

/* What it watches: without one of them, it is never ready. */
static int ask_kinds(struct asking *asking, const struct config *config, struct error *err)
{
    static const char *const verbs[] = {"list", "watch", "get"};
    int rc = 0;

    for (int kind = 0; kind < KIND_COUNT && rc == 0; kind++) {
        const char *version = kind_api_version((enum kind)kind), *slash = strchr(version, '/');
        struct slice group =
            slash == NULL ? SLICE("") : (struct slice){version, (size_t)(slash - version)};
        int count = kind == KIND_POD || kind == KIND_CLAIM ? 3 : 2;
        struct slice text = arena_copy(asking->arena, group);
        if (!policy_needs(config, (enum kind)kind))
            continue;
        for (int i = 0; i < count && rc == 0; i++)
            rc = text.ptr == NULL ? error_no_memory(err)
                                  : ask(asking,
                                        &(struct right){verbs[i], text.ptr,
                                                        kind_resource((enum kind)kind), "", true},
                                        err);
    }
    return rc;
}

/* What it writes. */
static int ask_writes(struct asking *asking, const struct config *config, struct error *err)
{
    bool preempts = config->read_write_once_pod.preemption == SWITCH_ENABLED;
    bool respects = config->read_write_once_pod.respects_budgets;
    bool locks = config->read_write_once_pod.claim_lock == CLAIM_LOCK_ANNOTATION;
    bool nominates = config->read_write_once.mode == MODE_ENFORCE;
    const struct {
        bool is_needed;
        struct right right;
    } rows[] = {
        {true, {"create", "", "pods", "binding", true}},
        {true, {"patch", "", "pods", "", locks}},
        {true, {"create", "", "events", "", false}},
        {locks, {"patch", "", "persistentvolumeclaims", "", true}},
        {locks, {"get", "", "configmaps", "", true}},
        {locks, {"patch", "", "configmaps", "", true}},
        {preempts && respects, {"create", "", "pods", "eviction", false}},
        {preempts && !respects, {"delete", "", "pods", "", false}},
        {preempts || nominates, {"patch", "", "pods", "status", false}},
    };
    int rc = 0;

    for (size_t i = 0; i < sizeof rows / sizeof *rows && rc == 0; i++)
        if (rows[i].is_needed)
            rc = ask(asking, &rows[i].right, err);
    return rc;
}

int rights_ask(struct rights *out, const struct config *config, const struct kubeconfig *kubeconfig,
               struct arena *arena, struct error *err)
{
    struct asking asking = {.rights = out, .arena = arena};
    int rc = api_open(&asking.api, kubeconfig, err);

    if (rc == 0)
        rc = ask_kinds(&asking, config, err);
    if (rc == 0)
        rc = ask_writes(&asking, config, err);
    api_close(&asking.api);
    return rc;
}

void rights_check(const struct rights *rights, struct findings *findings)
{
    if (rights->is_self)
        finding_unread(
            findings,
            "rights of claimguard's user: these credentials may not ask about others%s%.*s",
            rights->missing.len == 0 ? "" : "; they may not: ", SLICE_ARG(rights->missing));
    if (rights->missing.len == 0 || rights->is_self)
        return;
    const char *change = strcmp(rights->user, MANIFESTS_USER) == 0
                             ? ADVICE_TEXT_APPLY_RIGHTS
                             : "helm upgrade, if the chart has installed it; else the objects of "
                               "manifests/rbac.yaml with this user as subject";
    struct finding *finding =
        finding_add(findings, "CG901", (struct location){.name = slice_of(rights->user)}, change,
                    "may not: %.*s", SLICE_ARG(rights->missing));
    if (finding != NULL && !rights->is_fatal)
        finding->level = LEVEL_WARNING;
}

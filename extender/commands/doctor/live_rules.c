/* What only a live cluster shows: rights, the API server's version, and how claimguard answers. */
#include "extender/commands/doctor/doctor.h"

#include <stdlib.h>
#include <unistd.h>

#include "cache/client/call.h"
#include "config/base/text.h"
#include "extender/report/advice_rows.h"
#include "policy/exclusive.h"

/* ---- what the API server answers ---- */

/* To an access review; at /version; at the path of an API group. */
struct server_answer {
    bool is_allowed;
    struct slice major, minor, version; /* "1", "37" or "37+", "v1.37.1" */
    struct pull_items resources;        /* struct api_resource */
};

struct api_resource {
    struct slice name;
};

static const struct pull_field answer_fields[] = {
    PULL_IN("status", PULL_FIELD("allowed", PULL_BOOLEAN, server_answer, is_allowed)),
    PULL_FIELD("major", PULL_STRING, server_answer, major),
    PULL_FIELD("minor", PULL_STRING, server_answer, minor),
    PULL_FIELD("gitVersion", PULL_STRING, server_answer, version),
    PULL_ITEMS_IN("resources", server_answer, resources, api_resource,
                  PULL_FIELD("name", PULL_STRING, api_resource, name)),
};

/* False: it is no such answer. */
static bool read_answer(struct server_answer *out, struct slice body, struct arena *arena)
{
    return pull_fields_of(body, answer_fields, PULL_FIELD_COUNT(answer_fields), arena, out);
}

/* ---- rights ---- */

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
    struct api *api;
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
    int rc = body.failed ? error_no_memory(err) : api_call(asking->api, &request, answer, err);
    buf_dispose(&body);
    return rc;
}

static int ask(struct asking *asking, const struct right *right, struct error *err)
{
    struct rights *rights = asking->rights;
    struct request_answer answer = {.status = 0};
    struct server_answer review = {.is_allowed = false};

    if (send_review(asking, right, &answer, err) < 0)
        return err->code;
    if (answer.status == 403 && !rights->is_self) {
        rights->is_self = true;
        if (send_review(asking, right, &answer, err) < 0)
            return err->code;
    }
    if (answer.status != 201)
        return api_refused(&answer, "an access review", err);
    if (read_answer(&review, answer.body, asking->arena) && review.is_allowed)
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

void rights_check(const struct rights *rights, struct findings *findings)
{
    if (rights->is_self)
        gaps_add(&findings->gaps, GAP_RULE(CG901),
                 "rights of claimguard's user: these credentials may not ask about others%s%.*s",
                 rights->missing.len == 0 ? "" : "; they may not: ", SLICE_ARG(rights->missing));
    if (rights->missing.len == 0 || rights->is_self)
        return;
    const char *change = strcmp(rights->user, MANIFESTS_USER) == 0
                             ? ADVICE_TEXT_APPLY_RIGHTS
                             : "helm upgrade, if the chart has installed it; else the objects of "
                               "manifests/rbac.yaml with this user as subject";
    finding_lower(finding_add(findings, CG901, (struct location){.name = slice_of(rights->user)},
                              change, "may not: %.*s", SLICE_ARG(rights->missing)),
                  rights->is_fatal ? LEVEL_ERROR : LEVEL_WARNING);
}

/* ---- versions ---- */

enum {
    MINOR_EXCLUSIVE = 27, /* from then on, the gate ReadWriteOncePod is on by default */
};

/* *out is all zero before. Returns 1; 0: there is no good answer; or an error. */
static int get(struct api *api, const char *path, struct server_answer *out, struct error *err)
{
    struct request_answer answer;

    if (api_get(api, path, &answer, err) < 0)
        return err->code;
    return answer.status == 200 && read_answer(out, answer.body, &api->arena);
}

/* *out: 0: it is not known, or not of 1.MINOR. */
static int ask_minor(struct server_answer *version, unsigned *out, struct api *api,
                     struct error *err)
{
    int rc = get(api, "/version", version, err);

    *out = 0;
    if (rc > 0 && slice_equal(version->major, SLICE("1")) && version->minor.len != 0)
        *out = (unsigned)strtoul(version->minor.ptr, NULL, 10);
    return rc < 0 ? rc : 0;
}

/* Whether VolumeAttributesClasses in v1 are known not to be served. */
static int lacks_classes(struct api *api, struct error *err)
{
    struct server_answer group = {.is_allowed = false};
    int rc = get(api, "/apis/storage.k8s.io/v1", &group, err);

    if (rc <= 0)
        return rc;
    const struct api_resource *items = group.resources.items;
    for (size_t i = 0; i < group.resources.count; i++)
        if (slice_equal(items[i].name, SLICE("volumeattributesclasses")))
            return 0;
    return 1;
}

/* The rule CG902. An answer, or a refusal (403), may leave the version unknown. */
static int check_version(struct api *api, const struct config *config, struct findings *findings,
                         struct error *err)
{
    const struct location place = {.name = SLICE("the API server")};
    struct server_answer version = {.is_allowed = false};
    unsigned minor;

    if (ask_minor(&version, &minor, api, err) < 0)
        return err->code;
    int lacks = lacks_classes(api, err);
    if (lacks < 0)
        return lacks;
    if (minor == 0)
        gaps_add(&findings->gaps, GAP_RULE(CG902), "the API server's version: it is not known");
    else if (minor < MINOR_EXCLUSIVE)
        finding_add(findings, CG902, place, "Kubernetes 1.29",
                    "%.*s: claims can be ReadWriteOncePod only with the feature gate of that "
                    "name, before 1.27",
                    SLICE_ARG(version.version));
    if (lacks > 0 && config->volume_attributes_classes.mode != MODE_OFF)
        finding_lower(finding_add(findings, CG902, place,
                                  "volumeAttributesClasses: {mode: Off}, or Kubernetes 1.34",
                                  "%.*s does not serve VolumeAttributesClasses in v1: no class "
                                  "counts as missing",
                                  SLICE_ARG(version.version)),
                      LEVEL_NOTE);
    return 0;
}

int server_ask(struct rights *out, const struct kubeconfig *kubeconfig, const struct config *config,
               struct findings *findings, struct error *err)
{
    struct api api;
    struct asking asking = {out, &api, findings->arena};
    int rc = api_open(&api, kubeconfig, err);

    if (rc == 0)
        rc = ask_kinds(&asking, config, err);
    if (rc == 0)
        rc = ask_writes(&asking, config, err);
    if (rc == 0)
        rc = check_version(&api, config, findings, err);
    api_close(&api);
    return rc;
}

/* ---- a call as the scheduler makes it ---- */

enum { BODY_SHOWN = 200 };

/* A file or data of tlsConfig. False: it cannot be read here, which is noted. */
static bool read_pem(struct pem *out, const struct setting *setting, struct findings *findings)
{
    *out = (struct pem){.file = NULL};
    if (!setting->is_set)
        return true;
    if (slice_ends_with(setting->at->key, SLICE("Data"))) {
        if (base64_decode(setting->text, findings->arena, &out->data))
            return true;
        gaps_add(&findings->gaps, 0, "urlPrefix: %.*s in %s is not base64",
                 SLICE_ARG(setting->at->key), setting->at->path);
        return false;
    }
    out->file = arena_copy(findings->arena, setting->text).ptr;
    if (out->file != NULL && access(out->file, R_OK) == 0)
        return true;
    gaps_add(&findings->gaps, 0, "urlPrefix: %.*s of %s cannot be read on this machine",
             SLICE_ARG(setting->text), setting->at->path);
    return false;
}

/* kube-scheduler checks no certificate with enableHTTPS and without a CA (CG508). */
static bool read_target(struct kubeconfig *out, const struct scheduler_extender *own,
                        struct findings *findings)
{
    const struct url *url = &own->url;

    *out = (struct kubeconfig){.proxy_url = ""};
    if (!own->has_url)
        return false; /* CG507 says so */
    bool is_v6 = memchr(url->host.ptr, ':', url->host.len) != NULL;
    out->server = arena_printf(findings->arena, "%.*s://%s%.*s%s:%u", SLICE_ARG(url->scheme),
                               is_v6 ? "[" : "", SLICE_ARG(url->host), is_v6 ? "]" : "", url->port)
                      .ptr;
    if (own->server_name.is_set)
        out->server_name = arena_copy(findings->arena, own->server_name.text).ptr;
    findings->has_failed = findings->has_failed || out->server == NULL;
    if (out->server == NULL || slice_equal(url->scheme, SLICE("http")))
        return out->server != NULL;
    out->skips_verification =
        own->insecure.is_true || (own->enable_https.is_true && !own->ca.is_set);
    return read_pem(&out->ca, &own->ca, findings) && read_pem(&out->cert, &own->cert, findings) &&
           read_pem(&out->key, &own->key, findings);
}

struct outcome {
    unsigned status; /* 0: no answer */
    struct slice body;
    struct error err; /* why there is none */
};

static int call(struct outcome *out, const struct kubeconfig *target, struct arena *arena,
                struct error *err)
{
    struct request_answer answer;
    struct api api;

    *out = (struct outcome){.status = 0};
    int rc = api_open(&api, target, err);
    if (rc == 0 && api_get(&api, "/readyz", &answer, &out->err) == 0) {
        out->status = answer.status;
        out->body = arena_copy(arena, answer.body);
    }
    api_close(&api);
    return rc;
}

static void report_status(const struct outcome *outcome, struct location place,
                          struct findings *findings)
{
    size_t len = outcome->body.len < BODY_SHOWN ? outcome->body.len : BODY_SHOWN;

    if (outcome->status != 200)
        finding_add(findings, CG905, place, "look at /readyz?verbose and at its log",
                    "called from this machine, /readyz answers with status %u: %.*s",
                    outcome->status, (int)len, len == 0 ? "" : outcome->body.ptr);
}

int probe_scheduler(const struct scheduler_file *scheduler, struct findings *findings,
                    struct error *err)
{
    const struct scheduler_extender *own = scheduler->own;
    struct kubeconfig target;
    struct outcome first, second = {.status = 0};

    if (own == NULL || !read_target(&target, own, findings))
        return 0;
    if (call(&first, &target, findings->arena, err) < 0)
        return err->code;
    struct location place = finding_place(own->url_prefix.at);
    if (first.status != 0) {
        report_status(&first, place, findings);
        return 0;
    }
    bool is_checked = !target.skips_verification && strncmp(target.server, "https", 5) == 0;
    target.skips_verification = true;
    if (is_checked && call(&second, &target, findings->arena, err) < 0)
        return err->code;
    if (second.status != 0)
        finding_add(findings, CG904, place, "call claimguard certificates",
                    "the certificate is refused, called from this machine: %s", first.err.message);
    else
        finding_add(findings, CG903, place, "", "called from this machine: %s", first.err.message);
    return 0;
}

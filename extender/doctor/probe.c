#include "extender/doctor/probe.h"

#include <unistd.h>

#include "config/base/base64.h"
#include "extender/certificates/api_call.h"
#include "extender/doctor/go_text.h"

enum { BODY_SHOWN = 200 };

/* ---- what the scheduler would use ---- */

/* A file or data of tlsConfig. False: it cannot be read here, which is noted. */
static bool read_pem(struct pem *out, const struct setting *setting, struct findings *findings)
{
    *out = (struct pem){.file = NULL};
    if (!setting->is_set)
        return true;
    if (slice_ends_with(setting->at->key, SLICE("Data"))) {
        if (base64_decode(setting->text, findings->arena, &out->data))
            return true;
        finding_unread(findings, "urlPrefix: %.*s in %s is not base64", SLICE_ARG(setting->at->key),
                       setting->at->path);
        return false;
    }
    out->file = arena_copy(findings->arena, setting->text).ptr;
    if (out->file != NULL && access(out->file, R_OK) == 0)
        return true;
    finding_unread(findings, "urlPrefix: %.*s of %s cannot be read on this machine",
                   SLICE_ARG(setting->text), setting->at->path);
    return false;
}

/* kube-scheduler checks no certificate with enableHTTPS and without a CA (CG508). */
static bool read_target(struct kubeconfig *out, const struct scheduler_extender *own,
                        struct findings *findings)
{
    const struct yaml_node *name =
        scheduler_value(scheduler_value(own->at, "tlsConfig"), "serverName");
    struct url url;

    *out = (struct kubeconfig){.proxy_url = ""};
    if (!go_url(&url, own->url_prefix.text, findings->arena))
        return false; /* CG507 says so */
    bool is_v6 = memchr(url.host.ptr, ':', url.host.len) != NULL;
    out->server = arena_printf(findings->arena, "%.*s://%s%.*s%s:%u", SLICE_ARG(url.scheme),
                               is_v6 ? "[" : "", SLICE_ARG(url.host), is_v6 ? "]" : "", url.port)
                      .ptr;
    if (name != NULL)
        out->server_name = arena_copy(findings->arena, name->text).ptr;
    findings->has_failed = findings->has_failed || out->server == NULL;
    if (out->server == NULL || slice_equal(url.scheme, SLICE("http")))
        return out->server != NULL;
    out->skips_verification =
        own->insecure.is_true || (own->enable_https.is_true && !own->ca.is_set);
    return read_pem(&out->ca, &own->ca, findings) && read_pem(&out->cert, &own->cert, findings) &&
           read_pem(&out->key, &own->key, findings);
}

/* ---- the call ---- */

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
    if (rc == 0 && api_call(&api, &(struct request){.method = "GET", .path = "/readyz"}, &answer,
                            &out->err) == 0) {
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
        (void)finding_add(findings, "CG905", place, "look at /readyz?verbose and at its log",
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
        (void)finding_add(findings, "CG904", place, "call claimguard certificates",
                          "the certificate is refused, called from this machine: %s",
                          first.err.message);
    else
        (void)finding_add(findings, "CG903", place, "", "called from this machine: %s",
                          first.err.message);
    return 0;
}

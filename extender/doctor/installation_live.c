/* The objects of an installation that inquiry does not list: one GET for each kind. */
#include <stdio.h>

#include "extender/certificates/api_call.h"
#include "extender/doctor/installation.h"

enum { PATH_BYTES = 512 };

/* Paths of lists, with claimguard's namespace where they have one. */
static const char *const paths[INSTALLED_COUNT] = {
    [INSTALLED_DEPLOYMENT] = "/apis/apps/v1/namespaces/%s/deployments",
    [INSTALLED_SERVICE] = "/api/v1/namespaces/%s/services",
    [INSTALLED_ENDPOINT_SLICE] = "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices",
    [INSTALLED_WEBHOOKS] = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    [INSTALLED_MARKER] = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    [INSTALLED_MARKER_BINDING] =
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
    [INSTALLED_LIMIT_RANGE] = "/api/v1/limitranges",
};

static void put_path(char path[PATH_BYTES], const char *format, const char *ns)
{
    const char *hole = strstr(format, "%s");

    if (hole == NULL)
        (void)snprintf(path, PATH_BYTES, "%s", format);
    else
        (void)snprintf(path, PATH_BYTES, "%.*s%s%s", (int)(hole - format), format, ns, hole + 2);
}

static int list_kind(struct installation *installation, struct api *api, enum installed kind,
                     struct error *err)
{
    struct request_answer answer;
    char path[PATH_BYTES];

    put_path(path, paths[kind], installation->ns);
    if (api_call(api, &(struct request){.method = "GET", .path = path}, &answer, err) < 0)
        return error_wrap(err, "%s", installed_text(kind));
    if (answer.status == 404) { /* this API server does not serve them */
        installation->is_known[kind] = true;
        return 0;
    }
    if (answer.status == 403)
        return 0;
    if (answer.status != 200)
        return api_refused(&answer, installed_text(kind), err);
    json_t *list = json_loadb(answer.body.ptr, answer.body.len, JSON_ALLOW_NUL, NULL);
    json_t *items = json_incref(json_object_get(list, "items"));
    json_decref(list);
    if (!json_is_array(items)) {
        json_decref(items);
        return error_set(err, ERROR_INVALID, "%s: the answer is no list", installed_text(kind));
    }
    json_decref(installation->objects[kind]);
    installation->objects[kind] = items;
    installation->is_known[kind] = true;
    return 0;
}

int installation_read_live(struct installation *installation, struct error *err)
{
    struct api api;
    int rc = api_open(&api, installation->inquiry.kubeconfig, err);

    for (int kind = 0; kind < INSTALLED_COUNT && rc == 0; kind++)
        rc = list_kind(installation, &api, (enum installed)kind, err);
    api_close(&api);
    return rc;
}

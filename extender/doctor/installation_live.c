/* The objects of an installation that inquiry does not list: by pages. */
#include <string.h>

#include "extender/certificates/api_call.h"
#include "extender/doctor/installation.h"

enum {
    LISTED_OBJECTS = 20, /* of 256 KiB each: within API_ANSWER_BYTES_MAX */
    TOKEN_BYTES = 4096,
};

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
    [INSTALLED_CONFIG_MAP] = "/api/v1/namespaces/%s/configmaps",
    [INSTALLED_EVENT] = "/api/v1/namespaces/%s/events",
};

/* A page of the list of a kind. token: of the page before, as the API server gave it. */
static struct slice page_path(struct api *api, const struct installation *installation,
                              enum installed kind, const char *token)
{
    const char *format = paths[kind], *hole = strstr(format, "%s");
    size_t len = hole == NULL ? strlen(format) : (size_t)(hole - format);

    return arena_printf(&api->arena, "%.*s%s%s?limit=%d%s%s%s", (int)len, format,
                        hole == NULL ? "" : installation->ns, hole == NULL ? "" : hole + 2,
                        LISTED_OBJECTS,
                        kind == INSTALLED_EVENT ? "&fieldSelector=reason%3DFailedMount" : "",
                        *token == '\0' ? "" : "&continue=", token);
}

/* Whether the token can stand in a query as it is: base64 of the API server. */
static bool is_token(const char *token)
{
    return token[strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=."
                               "~")] == '\0';
}

/* Adds the items of a page. Returns whether there are more, with the token for them; negative: an
 * error. */
static int take_page(struct installation *installation, enum installed kind, struct slice body,
                     char token[TOKEN_BYTES], struct error *err)
{
    json_t *list = json_loadb(body.ptr, body.len, JSON_ALLOW_NUL, NULL);
    const json_t *items = json_object_get(list, "items");
    const char *next = installed_string(list, "metadata", "continue", NULL);
    bool is_list = json_is_array(items);
    int rc = 0;

    if (!is_list)
        rc = error_set(err, ERROR_INVALID, "%s: the answer is no list", installed_text(kind));
    else if (json_array_extend(installation->objects[kind], (json_t *)items) < 0)
        rc = error_no_memory(err);
    else if (*next != '\0') {
        rc = 1;
        if (json_array_size(installation->objects[kind]) >= INSTALLED_OBJECTS_MAX ||
            strlen(next) >= TOKEN_BYTES || !is_token(next))
            rc = 0;
        installation->is_cut[kind] = rc == 0;
        if (rc == 1)
            memcpy(token, next, strlen(next) + 1);
    }
    json_decref(list);
    return rc;
}

/* A kind that cannot be read whole, since its objects are too large, is cut. */
static int list_kind(struct installation *installation, struct api *api, enum installed kind,
                     struct error *err)
{
    struct request_answer answer;
    char token[TOKEN_BYTES] = "";
    int more = 1;

    while (more == 1) {
        arena_reset(&api->arena);
        struct slice path = page_path(api, installation, kind, token);
        if (path.ptr == NULL)
            return error_no_memory(err);
        int rc = api_call(api, &(struct request){.method = "GET", .path = path.ptr}, &answer, err);
        installation->is_cut[kind] = rc == ERROR_TOO_BIG;
        if (rc == ERROR_TOO_BIG) {
            *err = (struct error){0};
            break;
        }
        if (rc < 0)
            return error_wrap(err, "%s", installed_text(kind));
        if (answer.status == 403)
            return 0;
        if (answer.status == 404) /* this API server does not serve them */
            break;
        if (answer.status == 410 && *token != '\0') { /* the list has changed too often */
            installation->is_cut[kind] = true;
            break;
        }
        if (answer.status != 200)
            return api_refused(&answer, installed_text(kind), err);
        more = take_page(installation, kind, answer.body, token, err);
        if (more < 0)
            return err->code;
    }
    installation->is_known[kind] = !installation->is_cut[kind];
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

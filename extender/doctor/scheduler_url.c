#include "extender/doctor/scheduler_url.h"

#include "extender/certificates/api_call.h"
#include "extender/doctor/go_text.h"

bool scheduler_url_is(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

/* The credentials of the kubeconfig, for another server. */
static int aim(struct kubeconfig *out, const struct kubeconfig *kubeconfig, const char *text,
               struct arena *arena, struct error *err)
{
    struct url url;

    if (!go_url(&url, slice_of(text), arena))
        return error_set(err, ERROR_INVALID, "%s: not a URL", text);
    bool is_local = go_is_loopback(url.host), is_plain = slice_equal(url.scheme, SLICE("http"));
    if (is_plain && !is_local)
        return error_set(err, ERROR_INVALID, "%s: credentials are not sent in plain text", text);
    size_t scheme = url.scheme.len + strlen("://");
    struct slice server =
        arena_copy(arena, (struct slice){text, scheme + strcspn(text + scheme, "/")});
    if (server.ptr == NULL)
        return error_no_memory(err);
    bool is_same = strcmp(server.ptr, kubeconfig->server) == 0;
    *out = *kubeconfig;
    out->server = server.ptr;
    if (!is_same)
        out->server_name = NULL;
    out->skips_verification = is_same ? kubeconfig->skips_verification : is_local;
    return 0;
}

static int fetch(struct slice *out, const struct kubeconfig *kubeconfig, const char *path,
                 struct arena *arena, struct error *err)
{
    struct request_answer answer = {.status = 0};
    struct api api;
    int rc = api_open(&api, kubeconfig, err);

    if (rc == 0)
        rc = api_call(&api, &(struct request){.method = "GET", .path = path}, &answer, err);
    if (rc == 0 && answer.status != 200)
        rc = error_set(err, ERROR_UNAVAILABLE, "%s%s: status %u%s%.*s", api.server, path,
                       answer.status, answer.message.len == 0 ? "" : ": ",
                       SLICE_ARG(answer.message));
    if (rc == 0) {
        *out = arena_copy(arena, answer.body);
        rc = out->ptr == NULL ? error_no_memory(err) : 0;
    }
    api_close(&api);
    return rc;
}

int scheduler_url_read(struct scheduler_file *out, const char *url,
                       const struct inquiry_origin *origin, struct arena *arena, struct error *err)
{
    struct kubeconfig *kubeconfig = NULL, aimed = {.server = ""};
    struct slice text = {NULL, 0};

    if (kubeconfig_load(&kubeconfig, origin->kubeconfig, origin->context, true, err) < 0)
        return err->code;
    int rc = aim(&aimed, kubeconfig, url, arena, err);
    if (rc == 0) {
        const char *path = url + strlen(aimed.server);
        rc = fetch(&text, &aimed, *path == '\0' ? "/configz" : path, arena, err);
    }
    kubeconfig_free(kubeconfig);
    return rc < 0 ? rc : scheduler_text_read(out, url, text, arena, err);
}

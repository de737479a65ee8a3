#include "extender/certificates/webhook.h"

#include <gnutls/gnutls.h>
#include <stdio.h>

#include "cache/json/pull_fields.h"
#include "config/base/base64.h"

#define PATH "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/claimguard"

enum { PATCH_BYTES_MAX = 4 << 20 };

/* ---- reading ---- */

static bool read_items(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field service[] = {
        PULL_FIELD("name", PULL_STRING, webhook, service),
        PULL_FIELD("namespace", PULL_STRING, webhook, service_ns)};
    static const struct pull_field client[] = {
        PULL_FIELD("caBundle", PULL_STRING, webhook, bundle),
        {.key = "service", .type = PULL_OBJECT, PULL_MEMBERS(service)},
    };
    static const struct pull_field fields[] = {
        PULL_FIELD("name", PULL_STRING, webhook, name),
        {.key = "clientConfig", .type = PULL_OBJECT, PULL_MEMBERS(client)},
    };
    struct webhook_configuration *out = field;
    struct pull_items items = {.size = sizeof(struct webhook)};

    if (!pull_field_array(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, &items))
        return false;
    out->items = items.items;
    out->count = items.count;
    return true;
}

static bool parse(struct webhook_configuration *out, struct slice body, struct arena *arena)
{
    static const struct pull_field meta[] = {
        PULL_FIELD("uid", PULL_STRING, webhook_configuration, uid),
        PULL_FIELD("resourceVersion", PULL_STRING, webhook_configuration, version)};
    static const struct pull_field fields[] = {
        {.key = "metadata", .type = PULL_OBJECT, PULL_MEMBERS(meta)},
        {.key = "webhooks", .type = PULL_READ, .read = read_items},
    };
    struct pull json;

    pull_init(&json, body);
    return pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, out) &&
           out->uid.len != 0 && out->version.len != 0;
}

int webhook_read(struct webhook_configuration *out, struct api *api, struct error *err)
{
    struct request_answer answer;

    *out = (struct webhook_configuration){.count = 0};
    if (api_call(api, &(struct request){.method = "GET", .path = PATH}, &answer, err) < 0)
        return error_wrap(err, WEBHOOK_NAME);
    if (answer.status == 404)
        return 0;
    if (answer.status == 403)
        (void)api_refused(&answer, WEBHOOK_NAME, &out->refusal);
    else if (answer.status != 200)
        return api_refused(&answer, WEBHOOK_NAME, err);
    else if (!parse(out, answer.body, &api->arena))
        return error_set(err, ERROR_INVALID, WEBHOOK_NAME ": the answer is no such object");
    return 0;
}

int webhook_add_hosts(const struct webhook_configuration *configuration, struct hosts *hosts,
                      struct error *err)
{
    char name[HOST_BYTES * 2];

    for (size_t i = 0; i < configuration->count; i++) {
        const struct webhook *webhook = &configuration->items[i];
        (void)snprintf(name, sizeof name, "%.*s.%.*s.svc", SLICE_ARG(webhook->service),
                       SLICE_ARG(webhook->service_ns));
        if (webhook->service.len != 0 && hosts_add(hosts, name, err) < 0)
            return error_wrap(err, WEBHOOK_NAME);
    }
    return 0;
}

void webhook_compare(struct webhook_configuration *configuration, struct slice bundle,
                     struct arena *arena)
{
    configuration->wrong_count = 0;
    for (size_t i = 0; i < configuration->count; i++) {
        struct webhook *webhook = &configuration->items[i];
        struct slice text = {NULL, 0};
        webhook->is_wrong =
            !base64_decode(webhook->bundle, arena, &text) || !slice_equal(text, bundle);
        configuration->wrong_count += webhook->is_wrong;
    }
}

/* ---- writing ---- */

/* A strategic merge patch: the API server merges webhooks by name. */
static void put_patch(struct buf *out, const struct webhook_configuration *configuration,
                      const gnutls_datum_t *bundle)
{
    bool is_first = true;

    buf_put(out, SLICE("{\"metadata\":{\"uid\":"));
    buf_json(out, configuration->uid);
    buf_put(out, SLICE(",\"resourceVersion\":"));
    buf_json(out, configuration->version);
    buf_put(out, SLICE("},\"webhooks\":["));
    for (size_t i = 0; i < configuration->count; i++) {
        if (!configuration->items[i].is_wrong)
            continue;
        buf_put(out, is_first ? SLICE("{\"name\":") : SLICE(",{\"name\":"));
        buf_json(out, configuration->items[i].name);
        buf_put(out, SLICE(",\"clientConfig\":{\"caBundle\":\""));
        buf_put(out, (struct slice){(const char *)bundle->data, bundle->size});
        buf_put(out, SLICE("\"}}"));
        is_first = false;
    }
    buf_put(out, SLICE("]}"));
}

static int send_patch(struct slice patch, struct api *api, struct error *err)
{
    struct request_answer answer;
    struct request request = {.method = "PATCH",
                              .path = PATH "?fieldManager=claimguard",
                              .content_type = "application/strategic-merge-patch+json",
                              .body = patch};

    if (api_call(api, &request, &answer, err) < 0)
        return error_wrap(err, WEBHOOK_NAME);
    return answer.status == 200 ? 0 : api_refused(&answer, WEBHOOK_NAME, err);
}

int webhook_write(const struct webhook_configuration *configuration, struct slice bundle,
                  struct api *api, struct error *err)
{
    gnutls_datum_t plain = {(unsigned char *)(uintptr_t)bundle.ptr, (unsigned)bundle.len};
    gnutls_datum_t encoded = {NULL, 0};
    struct buf patch;

    if (configuration->wrong_count == 0)
        return 0;
    if (gnutls_base64_encode2(&plain, &encoded) < 0)
        return error_no_memory(err);
    buf_init(&patch, PATCH_BYTES_MAX);
    put_patch(&patch, configuration, &encoded);
    int rc = patch.failed ? error_no_memory(err) : send_patch(buf_slice(&patch), api, err);
    buf_dispose(&patch);
    gnutls_free(encoded.data);
    return rc;
}

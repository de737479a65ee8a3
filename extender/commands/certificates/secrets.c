#include "extender/commands/certificates/secrets.h"

#include <gnutls/gnutls.h>
#include <stdio.h>

#include "cache/client/api_path.h"
#include "cache/json/pull_fields.h"
#include "config/base/text.h"

#define WEBHOOK_PATH \
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/claimguard"

enum { SECRET_BYTES_MAX = 1 << 20, WEBHOOK_BYTES_MAX = 4 << 20 };
enum { NAME_OF_SECRET, NAME_OF_CRT, NAME_OF_KEY };

static const char *const secret_names[CERTIFICATE_COUNT] = {"claimguard-ca", "claimguard-tls",
                                                            "claimguard-client"};

/* ---- requests ---- */

/* Asks for an object. name: for messages. */
static int get(struct api *api, const char *path, const char *name, struct request_answer *answer,
               struct error *err)
{
    return api_get(api, path, answer, err) < 0 ? error_wrap(err, "%s", name) : 0;
}

/* Sends a body, unless it could not be made. */
static int send(struct api *api, struct request *request, const struct buf *body, const char *name,
                struct error *err)
{
    struct request_answer answer;

    if (request->path == NULL || body->failed)
        return error_no_memory(err);
    request->body = buf_slice(body);
    if (api_call(api, request, &answer, err) < 0)
        return error_wrap(err, "%s", name);
    return answer.status / 100 == 2 ? 0 : api_refused(&answer, name, err);
}

/* The beginning of a patch, which fails if the object is another one, or was changed. */
static void put_precondition(struct buf *out, struct slice uid, struct slice version)
{
    request_begin_patch(out, uid, version);
    buf_put(out, SLICE("},"));
}

/* "key":"text in base64" */
static void put_base64(struct buf *out, const char *key, struct slice text)
{
    gnutls_datum_t plain = {(unsigned char *)(uintptr_t)text.ptr, (unsigned)text.len};
    gnutls_datum_t encoded = {NULL, 0};

    if (gnutls_base64_encode2(&plain, &encoded) < 0) {
        out->failed = true;
        return;
    }
    buf_printf(out, "\"%s\":\"%.*s\"", key, (int)encoded.size, (const char *)encoded.data);
    gnutls_memset(encoded.data, 0, encoded.size);
    gnutls_free(encoded.data);
}

/* ---- Secrets: reading ---- */

/* The collection, or the Secret. Ownership: in the arena. NULL: out of memory. */
static const char *path_of(const struct secrets *secrets, const char *name, const char *query,
                           struct arena *arena)
{
    struct buf path;

    buf_init(&path, SECRET_BYTES_MAX);
    buf_put(&path, SLICE("/api/v1/namespaces/"));
    api_path_escape(&path, slice_of(secrets->ns));
    buf_printf(&path, "/secrets%s%s%s", name[0] == '\0' ? "" : "/", name, query);
    const char *text = buf_text(&path);
    struct slice copy = arena_copy(arena, slice_of(text == NULL ? "" : text));
    buf_dispose(&path);
    return copy.len == 0 ? NULL : copy.ptr;
}

struct remote_secret {
    struct slice kind, uid, version, manager, crt, key, bundle;
};

static const struct pull_field secret_fields[] = {
    PULL_FIELD("kind", PULL_STRING, remote_secret, kind),
    PULL_IN("metadata", PULL_FIELD("uid", PULL_STRING, remote_secret, uid),
            PULL_FIELD("resourceVersion", PULL_STRING, remote_secret, version),
            PULL_IN("annotations", PULL_FIELD("cert-manager.io/certificate-name", PULL_STRING,
                                              remote_secret, manager))),
    PULL_IN("data", PULL_FIELD("tls.crt", PULL_STRING, remote_secret, crt),
            PULL_FIELD("tls.key", PULL_STRING, remote_secret, key),
            PULL_FIELD("ca.crt", PULL_STRING, remote_secret, bundle)),
};

/* Decodes a value of the Secret into *out, which stays NULL if there is none. */
static int decode(char **out, struct slice value, const char *name, struct arena *arena,
                  struct error *err)
{
    struct slice text;

    if (value.len == 0)
        return 0;
    if (!base64_decode(value, arena, &text))
        return error_set(err, ERROR_INVALID, "%s: is not base64", name);
    if (text.len > PEM_BYTES_MAX)
        return error_set(err, ERROR_TOO_BIG, "%s: over %d bytes", name, PEM_BYTES_MAX);
    *out = strndup(text.ptr, text.len);
    return *out == NULL ? error_no_memory(err) : 0;
}

static int take_secret(struct secret *secret, struct pem_pair *pair, struct slice body,
                       struct arena *arena, struct error *err)
{
    struct remote_secret remote = {.kind = {NULL, 0}};

    if (!pull_fields_of(body, secret_fields, PULL_FIELD_COUNT(secret_fields), arena, &remote) ||
        !slice_equal(remote.kind, SLICE("Secret")) || remote.uid.len == 0 ||
        remote.version.len == 0)
        return error_set(err, ERROR_INVALID, "%s: the answer is no such Secret",
                         secret->names[NAME_OF_SECRET].ptr);
    if (remote.manager.len != 0)
        return error_set(
            err, ERROR_INVALID,
            "%s: cert-manager makes and renews it: use it with certificates: Files, or "
            "delete its Certificate and it",
            secret->names[NAME_OF_SECRET].ptr);
    secret->uid = remote.uid;
    secret->version = remote.version;
    if (remote.bundle.len != 0 && !base64_decode(remote.bundle, arena, &secret->bundle))
        secret->bundle = (struct slice){NULL, 0}; /* it is replaced */
    int rc = decode(&pair->crt, remote.crt, pair->crt_name, arena, err);
    return rc < 0 ? rc : decode(&pair->key, remote.key, pair->key_name, arena, err);
}

static int name_secret(struct secret *secret, const char *ns, const char *name,
                       struct pem_pair *pair, struct arena *arena)
{
    static const char *const parts[] = {"", ": tls.crt", ": tls.key"};

    for (int i = 0; i < 3; i++) {
        secret->names[i] = arena_printf(arena, "Secret %s/%s%s", ns, name, parts[i]);
        if (secret->names[i].ptr == NULL)
            return ERROR_NO_MEMORY;
    }
    pair->crt_name = secret->names[NAME_OF_CRT].ptr;
    pair->key_name = secret->names[NAME_OF_KEY].ptr;
    return 0;
}

static int read_secret(struct secrets *secrets, enum certificate which, struct pem_pair *pair,
                       struct api *api, struct error *err)
{
    struct secret *secret = &secrets->items[which];
    const char *path = path_of(secrets, secret_names[which], "", &api->arena);
    struct request_answer answer;

    if (path == NULL ||
        name_secret(secret, secrets->ns, secret_names[which], pair, &api->arena) < 0)
        return error_no_memory(err);
    const char *name = secret->names[NAME_OF_SECRET].ptr;
    if (get(api, path, name, &answer, err) < 0)
        return err->code;
    if (answer.status == 404)
        return 0;
    if (answer.status != 200)
        return api_refused(&answer, name, err);
    return take_secret(secret, pair, answer.body, &api->arena, err);
}

int secrets_read(struct secrets *out, const char *ns, struct certificates *certificates,
                 struct api *api, struct error *err)
{
    int rc = 0;

    *out = (struct secrets){.ns = ns};
    *certificates = (struct certificates){.entries = {{.until_s = 0}}};
    for (int i = 0; i < CERTIFICATE_COUNT && rc == 0; i++)
        rc = read_secret(out, (enum certificate)i, &certificates->entries[i].pair, api, err);
    return rc;
}

void secrets_compare(const struct secrets *secrets, struct certificates *certificates)
{
    struct slice bundle = slice_of(certificates->entries[CERTIFICATE_AUTHORITY].pair.crt);

    for (int i = CERTIFICATE_AUTHORITY + 1; i < CERTIFICATE_COUNT; i++)
        if (certificates->entries[i].action == ACTION_KEPT &&
            !slice_equal(secrets->items[i].bundle, bundle))
            certificates->entries[i].action = ACTION_UPDATED;
}

/* ---- Secrets: writing ---- */

static void put_data(struct buf *out, const struct pem_pair *pair, const char *bundle)
{
    buf_put(out, SLICE("\"data\":{"));
    put_base64(out, "tls.crt", slice_of(pair->crt));
    buf_put(out, SLICE(","));
    put_base64(out, "tls.key", slice_of(pair->key));
    if (bundle != NULL) {
        buf_put(out, SLICE(","));
        put_base64(out, "ca.crt", slice_of(bundle));
    }
    buf_put(out, SLICE("}"));
}

static void put_new(struct buf *out, const struct secrets *secrets, const char *name)
{
    buf_printf(out,
               "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"type\":\"kubernetes.io/tls\","
               "\"metadata\":{\"name\":\"%s\",\"namespace\":",
               name);
    buf_json(out, slice_of(secrets->ns));
    buf_put(out, SLICE(",\"labels\":{\"app.kubernetes.io/name\":\"claimguard\"}},"));
}

/* The body for a new Secret, or the patch of the one that was read. */
static void put_body(struct buf *out, const struct secrets *secrets, enum certificate which,
                     const struct certificates *certificates)
{
    const struct secret *secret = &secrets->items[which];
    const char *bundle = certificates->entries[CERTIFICATE_AUTHORITY].pair.crt;

    if (secret->uid.len == 0)
        put_new(out, secrets, secret_names[which]);
    else
        put_precondition(out, secret->uid, secret->version);
    put_data(out, &certificates->entries[which].pair,
             which == CERTIFICATE_AUTHORITY ? NULL : bundle);
    buf_put(out, SLICE("}"));
}

static int send_secret(const struct secrets *secrets, enum certificate which,
                       const struct buf *body, struct api *api, struct error *err)
{
    const struct secret *secret = &secrets->items[which];
    bool is_new = secret->uid.len == 0;
    struct request request = {
        .method = is_new ? "POST" : "PATCH",
        .path = path_of(secrets, is_new ? "" : secret_names[which], "?fieldManager=claimguard",
                        &api->arena),
        .content_type = is_new ? "application/json" : "application/merge-patch+json",
    };

    return send(api, &request, body, secret->names[NAME_OF_SECRET].ptr, err);
}

int secrets_write(const struct secrets *secrets, const struct certificates *certificates,
                  enum certificate which, struct api *api, struct error *err)
{
    struct buf body;

    if (certificates->entries[which].action == ACTION_KEPT)
        return 0;
    buf_init(&body, SECRET_BYTES_MAX);
    put_body(&body, secrets, which, certificates);
    int rc = send_secret(secrets, which, &body, api, err);
    buf_wipe(&body);
    return rc;
}

/* ---- the webhook configuration ---- */

static const struct pull_field webhook_fields[] = {
    PULL_FIELD("name", PULL_STRING, webhook, name),
    PULL_IN("clientConfig", PULL_FIELD("caBundle", PULL_STRING, webhook, bundle),
            PULL_IN("service", PULL_FIELD("name", PULL_STRING, webhook, service),
                    PULL_FIELD("namespace", PULL_STRING, webhook, service_ns))),
};
static const struct pull_field configuration_fields[] = {
    PULL_IN("metadata", PULL_FIELD("uid", PULL_STRING, webhook_configuration, uid),
            PULL_FIELD("resourceVersion", PULL_STRING, webhook_configuration, version)),
    PULL_ITEMS_OF("webhooks", webhook_configuration, webhooks, webhook, webhook_fields),
};

int webhook_read(struct webhook_configuration *out, struct api *api, struct error *err)
{
    struct request_answer answer;

    *out = (struct webhook_configuration){.wrong_count = 0};
    if (get(api, WEBHOOK_PATH, WEBHOOK_NAME, &answer, err) < 0)
        return err->code;
    if (answer.status == 404)
        return 0;
    if (answer.status == 403)
        (void)api_refused(&answer, WEBHOOK_NAME, &out->refusal);
    else if (answer.status != 200)
        return api_refused(&answer, WEBHOOK_NAME, err);
    else if (!pull_fields_of(answer.body, configuration_fields,
                             PULL_FIELD_COUNT(configuration_fields), &api->arena, out) ||
             out->uid.len == 0 || out->version.len == 0)
        return error_set(err, ERROR_INVALID, WEBHOOK_NAME ": the answer is no such object");
    return 0;
}

int webhook_add_hosts(const struct webhook_configuration *configuration, struct hosts *hosts,
                      struct error *err)
{
    const struct webhook *items = configuration->webhooks.items;
    char name[HOST_BYTES * 2];

    for (size_t i = 0; i < configuration->webhooks.count; i++) {
        const struct webhook *webhook = &items[i];
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
    struct webhook *items = configuration->webhooks.items;

    configuration->wrong_count = 0;
    for (size_t i = 0; i < configuration->webhooks.count; i++) {
        struct webhook *webhook = &items[i];
        struct slice text = {NULL, 0};
        webhook->is_wrong =
            !base64_decode(webhook->bundle, arena, &text) || !slice_equal(text, bundle);
        configuration->wrong_count += webhook->is_wrong;
    }
}

/* A strategic merge patch: the API server merges webhooks by name. */
static void put_webhooks(struct buf *out, const struct webhook_configuration *configuration,
                         struct slice bundle)
{
    const struct webhook *items = configuration->webhooks.items;
    bool is_first = true;

    put_precondition(out, configuration->uid, configuration->version);
    buf_put(out, SLICE("\"webhooks\":["));
    for (size_t i = 0; i < configuration->webhooks.count; i++) {
        if (!items[i].is_wrong)
            continue;
        buf_put(out, is_first ? SLICE("{\"name\":") : SLICE(",{\"name\":"));
        buf_json(out, items[i].name);
        buf_put(out, SLICE(",\"clientConfig\":{"));
        put_base64(out, "caBundle", bundle);
        buf_put(out, SLICE("}}"));
        is_first = false;
    }
    buf_put(out, SLICE("]}"));
}

int webhook_write(const struct webhook_configuration *configuration, struct slice bundle,
                  struct api *api, struct error *err)
{
    struct request request = {.method = "PATCH",
                              .path = WEBHOOK_PATH "?fieldManager=claimguard",
                              .content_type = "application/strategic-merge-patch+json"};
    struct buf patch;

    if (configuration->wrong_count == 0)
        return 0;
    buf_init(&patch, WEBHOOK_BYTES_MAX);
    put_webhooks(&patch, configuration, bundle);
    int rc = send(api, &request, &patch, WEBHOOK_NAME, err);
    buf_dispose(&patch);
    return rc;
}

#include "extender/certificates/secrets.h"

#include <gnutls/gnutls.h>

#include "cache/client/api_path.h"
#include "cache/json/pull_fields.h"
#include "config/base/base64.h"

enum { BODY_BYTES_MAX = 1 << 20 };
enum { NAME_OF_SECRET, NAME_OF_CRT, NAME_OF_KEY };

static const char *const secret_names[CERTIFICATE_COUNT] = {"claimguard-ca", "claimguard-tls",
                                                            "claimguard-client"};

/* The collection, or the Secret. Ownership: in the arena. NULL: out of memory. */
static const char *path_of(const struct secrets *secrets, const char *name, const char *query,
                           struct arena *arena)
{
    struct buf path;

    buf_init(&path, BODY_BYTES_MAX);
    buf_put(&path, SLICE("/api/v1/namespaces/"));
    api_path_escape(&path, slice_of(secrets->ns));
    buf_printf(&path, "/secrets%s%s%s", name[0] == '\0' ? "" : "/", name, query);
    const char *text = buf_text(&path);
    struct slice copy = arena_copy(arena, slice_of(text == NULL ? "" : text));
    buf_dispose(&path);
    return copy.len == 0 ? NULL : copy.ptr;
}

/* ---- reading ---- */

struct remote_secret {
    struct slice kind, uid, version, manager, crt, key, bundle;
};

#define FIELD(key_, member_) \
    { \
        .key = (key_), .type = PULL_STRING, .offset = offsetof(struct remote_secret, member_) \
    }

static bool parse(struct remote_secret *out, struct slice body, struct arena *arena)
{
    static const struct pull_field annotations[] = {
        FIELD("cert-manager.io/certificate-name", manager)};
    static const struct pull_field meta[] = {
        FIELD("uid", uid),
        FIELD("resourceVersion", version),
        {.key = "annotations", .type = PULL_OBJECT, PULL_MEMBERS(annotations)},
    };
    static const struct pull_field data[] = {FIELD("tls.crt", crt), FIELD("tls.key", key),
                                             FIELD("ca.crt", bundle)};
    static const struct pull_field fields[] = {
        FIELD("kind", kind),
        {.key = "metadata", .type = PULL_OBJECT, PULL_MEMBERS(meta)},
        {.key = "data", .type = PULL_OBJECT, PULL_MEMBERS(data)},
    };
    struct pull json;

    pull_init(&json, body);
    return pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, out) &&
           slice_equal(out->kind, SLICE("Secret")) && out->uid.len != 0 && out->version.len != 0;
}

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

    if (!parse(&remote, body, arena))
        return error_set(err, ERROR_INVALID, "%s: the answer is no such Secret",
                         secret->names[NAME_OF_SECRET].ptr);
    if (remote.manager.len != 0)
        return error_set(err, ERROR_INVALID, "%s: cert-manager makes and renews it",
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
    if (api_call(api, &(struct request){.method = "GET", .path = path}, &answer, err) < 0)
        return error_wrap(err, "%s", secret->names[NAME_OF_SECRET].ptr);
    if (answer.status == 404)
        return 0;
    if (answer.status != 200)
        return api_refused(&answer, secret->names[NAME_OF_SECRET].ptr, err);
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

/* ---- writing ---- */

static void put_value(struct buf *out, const char *key, const char *text)
{
    gnutls_datum_t plain = {(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};
    gnutls_datum_t encoded = {NULL, 0};

    if (gnutls_base64_encode2(&plain, &encoded) < 0) {
        out->failed = true;
        return;
    }
    buf_printf(out, "\"%s\":\"%.*s\"", key, (int)encoded.size, (const char *)encoded.data);
    gnutls_memset(encoded.data, 0, encoded.size);
    gnutls_free(encoded.data);
}

static void put_data(struct buf *out, const struct pem_pair *pair, const char *bundle)
{
    buf_put(out, SLICE("\"data\":{"));
    put_value(out, "tls.crt", pair->crt);
    buf_put(out, SLICE(","));
    put_value(out, "tls.key", pair->key);
    if (bundle != NULL) {
        buf_put(out, SLICE(","));
        put_value(out, "ca.crt", bundle);
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

    if (secret->uid.len == 0) {
        put_new(out, secrets, secret_names[which]);
    } else {
        buf_put(out, SLICE("{\"metadata\":{\"uid\":"));
        buf_json(out, secret->uid);
        buf_put(out, SLICE(",\"resourceVersion\":"));
        buf_json(out, secret->version);
        buf_put(out, SLICE("},"));
    }
    put_data(out, &certificates->entries[which].pair,
             which == CERTIFICATE_AUTHORITY
                 ? NULL
                 : certificates->entries[CERTIFICATE_AUTHORITY].pair.crt);
    buf_put(out, SLICE("}"));
}

static int send_secret(const struct secrets *secrets, enum certificate which, struct slice body,
                       struct api *api, struct error *err)
{
    const struct secret *secret = &secrets->items[which];
    bool is_new = secret->uid.len == 0;
    struct request_answer answer;
    struct request request = {
        .method = is_new ? "POST" : "PATCH",
        .path = path_of(secrets, is_new ? "" : secret_names[which], "?fieldManager=claimguard",
                        &api->arena),
        .content_type = is_new ? "application/json" : "application/merge-patch+json",
        .body = body,
    };

    if (request.path == NULL)
        return error_no_memory(err);
    if (api_call(api, &request, &answer, err) < 0)
        return error_wrap(err, "%s", secret->names[NAME_OF_SECRET].ptr);
    if (answer.status / 100 == 2)
        return 0;
    return api_refused(&answer, secret->names[NAME_OF_SECRET].ptr, err);
}

int secrets_write(const struct secrets *secrets, const struct certificates *certificates,
                  struct api *api, struct error *err)
{
    struct buf body;
    int rc = 0;

    buf_init(&body, BODY_BYTES_MAX);
    for (int i = 0; i < CERTIFICATE_COUNT && rc == 0; i++) {
        if (certificates->entries[i].action == ACTION_KEPT)
            continue;
        buf_reset(&body, BODY_BYTES_MAX);
        put_body(&body, secrets, (enum certificate)i, certificates);
        rc = body.failed ? error_no_memory(err)
                         : send_secret(secrets, (enum certificate)i, buf_slice(&body), api, err);
    }
    if (body.bytes != NULL)
        gnutls_memset(body.bytes, 0, body.capacity);
    buf_dispose(&body);
    return rc;
}

#include "cache/client/credentials.h"

#include <errno.h>
#include <stdio.h>

#include "cache/json/pull_fields.h"
#include "config/base/clock.h"
#include "config/base/file_read.h"
#include "config/base/log.h"

enum { CREDENTIALS_ARENA_BYTES_MAX = 4 * 1024 * 1024 };

#define DAY_MS INT64_C(86400000)

void credentials_init(struct credentials *credentials, const struct kubeconfig *kubeconfig)
{
    *credentials = (struct credentials){.kubeconfig = kubeconfig,
                                        .token = slice_of(kubeconfig->token),
                                        .cert = kubeconfig->cert,
                                        .key = kubeconfig->key};
    arena_init(&credentials->arena, CREDENTIALS_ARENA_BYTES_MAX);
}

void credentials_dispose(struct credentials *credentials)
{
    plugin_stop(&credentials->run);
    arena_dispose(&credentials->arena);
}

/* ---- a token in a file ---- */

static int read_token(struct credentials *credentials, uint64_t now_ns, struct error *err)
{
    const char *path = credentials->kubeconfig->token_file;

    if (credentials->read_ns != 0 && now_ns - credentials->read_ns < TOKEN_FRESH_MS * NS_PER_MS)
        return 0;
    credentials->read_ns = 0;
    arena_reset(&credentials->arena);
    char *token = arena_alloc(&credentials->arena, TOKEN_BYTES_MAX);
    size_t length = 0;
    if (token == NULL)
        return error_no_memory(err);
    if (file_read(path, token, TOKEN_BYTES_MAX, &length, err) < 0)
        return err->code;
    while (length > 0 && strchr(" \r\n\t", token[length - 1]) != NULL)
        length--;
    credentials->token = (struct slice){token, length};
    if (length == 0 || length == TOKEN_BYTES_MAX)
        return error_set(err, ERROR_INVALID, "%s: holds no token", path);
    credentials->read_ns = now_ns;
    return 0;
}

/* ---- the ExecCredential that a plugin prints ---- */

struct exec_credential {
    struct slice kind, api_version, token, cert, key, expires;
};

#define FIELD(key_, member_) \
    { \
        .key = (key_), .type = PULL_STRING, .offset = offsetof(struct exec_credential, member_) \
    }

static int read_answer(const struct plugin_run *run, struct arena *arena,
                       struct exec_credential *out, struct error *err)
{
    static const struct pull_field status_fields[] = {
        FIELD("token", token),
        FIELD("clientCertificateData", cert),
        FIELD("clientKeyData", key),
        FIELD("expirationTimestamp", expires),
    };
    static const struct pull_field fields[] = {
        FIELD("kind", kind),
        FIELD("apiVersion", api_version),
        {.key = "status", .type = PULL_OBJECT, PULL_MEMBERS(status_fields)},
    };
    struct pull json;

    pull_init(&json, buf_slice(&run->text));
    if (!pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, out) ||
        !pull_finish(&json))
        return error_set(err, ERROR_INVALID, "%s: its output is not an ExecCredential: %s",
                         run->command,
                         json.problem); /* never its output, which contains a secret */
    return 0;
}

static int check_answer(const struct credentials *credentials, const struct exec_credential *answer,
                        struct error *err)
{
    const char *command = credentials->run.command;
    const char *version = credentials->kubeconfig->exec.api_version;

    if (!slice_equal(answer->kind, SLICE("ExecCredential")) ||
        !slice_equal(answer->api_version, slice_of(version)))
        return error_set(err, ERROR_INVALID, "%s: printed no %s ExecCredential", command, version);
    if ((answer->token.len == 0 && answer->cert.len == 0) ||
        (answer->cert.len == 0) != (answer->key.len == 0))
        return error_set(err, ERROR_INVALID,
                         "%s: status has neither a token nor a certificate with its key", command);
    if (answer->expires.len != 0 && time_parse(answer->expires) == 0)
        return error_set(err, ERROR_INVALID, "%s: status.expirationTimestamp is no RFC 3339 time",
                         command);
    return 0;
}

/* When the credential expires, and when the plugin runs again. */
static void set_times(struct credentials *credentials, struct slice expires, uint64_t now_ns,
                      int64_t now_ms)
{
    credentials->given_ns = now_ns;
    credentials->renew_ns = credentials->end_ns = UINT64_MAX;
    if (expires.len == 0)
        return;
    int64_t life_ms = time_parse(expires) - now_ms, most_ms = CREDENTIALS_LIFE_DAYS_MAX * DAY_MS;
    if (life_ms < CREDENTIALS_LIFE_MS_MIN)
        life_ms = CREDENTIALS_LIFE_MS_MIN;
    if (life_ms > most_ms) /* nanoseconds until the year 9999 do not fit 64 bits */
        life_ms = most_ms;
    int64_t early_ms = life_ms / 2 < CREDENTIALS_EARLY_MS ? life_ms / 2 : CREDENTIALS_EARLY_MS;
    credentials->end_ns = now_ns + (uint64_t)life_ms * NS_PER_MS;
    credentials->renew_ns = now_ns + (uint64_t)(life_ms - early_ms) * NS_PER_MS;
}

/* Replaces the credential by the plugin's output. */
static int take_answer(struct credentials *credentials, uint64_t now_ns, int64_t now_ms,
                       struct error *err)
{
    const struct kubeconfig *kubeconfig = credentials->kubeconfig;
    struct exec_credential answer = {0};
    struct arena arena;

    arena_init(&arena, CREDENTIALS_ARENA_BYTES_MAX);
    if (read_answer(&credentials->run, &arena, &answer, err) < 0 ||
        check_answer(credentials, &answer, err) < 0) {
        arena_dispose(&arena);
        return err->code;
    }
    /* the text is freed, so copy what may point into it */
    struct slice token = arena_copy(&arena, answer.token);
    struct slice cert = arena_copy(&arena, answer.cert);
    struct slice key = arena_copy(&arena, answer.key);
    if (token.ptr == NULL || cert.ptr == NULL || key.ptr == NULL) {
        arena_dispose(&arena);
        return error_no_memory(err);
    }
    set_times(credentials, answer.expires, now_ns, now_ms);
    arena_dispose(&credentials->arena);
    credentials->arena = arena;
    credentials->token = token;
    credentials->cert = cert.len == 0 ? kubeconfig->cert : (struct pem){.data = cert};
    credentials->key = key.len == 0 ? kubeconfig->key : (struct pem){.data = key};
    credentials->is_given = true;
    credentials->generation++;
    return 0;
}

/* ---- when the plugin runs ---- */

static uint64_t pause_ns(unsigned troubles)
{
    uint64_t pause_ms =
        troubles > 6 ? PLUGIN_PAUSE_MS_MAX : (uint64_t)PLUGIN_PAUSE_MS_MIN << (troubles - 1);

    return (pause_ms < PLUGIN_PAUSE_MS_MAX ? pause_ms : PLUGIN_PAUSE_MS_MAX) * NS_PER_MS;
}

/* Starts the plugin, or checks a running one. */
static int move_plugin(struct credentials *credentials, uint64_t now_ns, int64_t now_ms,
                       struct error *err)
{
    if (credentials->run.pid == 0)
        return plugin_start(&credentials->run, credentials->kubeconfig, now_ns, err) < 0
                   ? err->code
                   : PLUGIN_RUNS;
    int rc = plugin_step(&credentials->run, now_ns, err);
    return rc == PLUGIN_DONE ? take_answer(credentials, now_ns, now_ms, err) : rc;
}

static void attend_plugin(struct credentials *credentials, uint64_t now_ns, int64_t now_ms)
{
    bool is_due = !credentials->is_given || now_ns >= credentials->renew_ns;
    struct error err = {0};

    if (credentials->run.pid == 0 && (!is_due || now_ns < credentials->retry_ns))
        return;
    int rc = move_plugin(credentials, now_ns, now_ms, &err);
    if (rc == PLUGIN_RUNS)
        return;
    plugin_stop(&credentials->run);
    if (rc == 0) {
        credentials->failures = 0;
        return;
    }
    credentials->problem = err;
    credentials->retry_ns = now_ns + pause_ns(++credentials->failures);
    log_warn("the credential plugin failed", LOG_STR("error", err.message));
}

int credentials_get(struct credentials *credentials, uint64_t now_ns, int64_t now_ms,
                    struct error *err)
{
    if (credentials->kubeconfig->token_file != NULL)
        return read_token(credentials, now_ns, err);
    if (credentials->kubeconfig->exec.argv == NULL)
        return CREDENTIALS_READY;
    attend_plugin(credentials, now_ns, now_ms);
    if (credentials->is_given && now_ns < credentials->end_ns)
        return CREDENTIALS_READY;
    if (credentials_are_coming(credentials))
        return CREDENTIALS_COME;
    *err = credentials->problem;
    return err->code;
}

bool credentials_are_coming(const struct credentials *credentials)
{
    return credentials->run.pid != 0;
}

void credentials_reject(struct credentials *credentials, unsigned generation, uint64_t now_ns)
{
    bool was_steady = now_ns - credentials->given_ns >= CREDENTIALS_STEADY_MS * NS_PER_MS;

    credentials->read_ns = 0;
    if (!credentials->is_given || generation != credentials->generation)
        return; /* a newer credential is in use already */
    credentials->is_given = false;
    credentials->refusals = was_steady ? 0 : credentials->refusals + 1;
    credentials->retry_ns = was_steady ? now_ns : now_ns + pause_ns(credentials->refusals);
    (void)error_set(&credentials->problem, ERROR_UNAVAILABLE,
                    "the API server refuses what %s gave (401)",
                    credentials->kubeconfig->exec.argv[0]);
}

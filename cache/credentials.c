#include "cache/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/pull_fields.h"
#include "config/base/buf.h"

enum { CREDENTIALS_ARENA_BYTES_MAX = 4 * 1024 * 1024, EXEC_OUTPUT_BYTES_MAX = 1024 * 1024 };

extern char **environ;

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
    arena_dispose(&credentials->arena);
}

void credentials_reject(struct credentials *credentials)
{
    credentials->has_plugin_answer = false;
}

int64_t time_parse(struct slice text)
{
    char copy[32];
    struct tm tm = {0};

    if (text.len < sizeof "2026-11-20T10:00:00Z" - 1 || text.len >= sizeof copy)
        return 0;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    const char *end = strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm);
    if (end != NULL && *end == '.')
        end += 1 + strspn(end + 1, "0123456789"); /* fractions do not matter */
    if (end == NULL || strcmp(end, "Z") != 0)
        return 0;
    return (int64_t)timegm(&tm) * 1000;
}

/* ---- a token in a file ---- */

static int read_token(struct credentials *credentials, struct error *err)
{
    const char *path = credentials->kubeconfig->token_file;
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return error_system(err, errno, "%s", path);
    arena_reset(&credentials->arena);
    char *token = arena_alloc(&credentials->arena, TOKEN_BYTES_MAX);
    size_t length = token == NULL ? 0 : fread(token, 1, TOKEN_BYTES_MAX, file);
    bool has_failed = ferror(file) != 0;
    (void)fclose(file); /* read only: nothing is lost */
    while (length > 0 && strchr(" \r\n\t", token[length - 1]) != NULL)
        length--;
    credentials->token = (struct slice){token, length};
    if (has_failed || length == 0 || length == TOKEN_BYTES_MAX)
        return error_set(err, ERROR_INVALID, "%s: holds no token", path);
    return 0;
}

/* ---- a credential plugin ---- */

/* What a plugin prints: an ExecCredential. */
struct exec_credential {
    struct slice kind, api_version, token, cert, key, expires;
};

#define FIELD(key_, member_) \
    { \
        .key = (key_), .type = PULL_STRING, .offset = offsetof(struct exec_credential, member_) \
    }

static int read_credential(struct credentials *credentials, struct slice text, struct error *err)
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
    const char *command = credentials->kubeconfig->exec.argv[0];
    struct exec_credential found = {0};
    struct pull json;

    pull_init(&json, text);
    if (!pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), &credentials->arena,
                     &found) ||
        !pull_finish(&json))
        return error_set(err, ERROR_INVALID, "%s: what it printed is no ExecCredential: %s",
                         command, json.problem); /* never what it said: it holds a secret */
    if (!slice_equal(found.kind, SLICE("ExecCredential")) ||
        !slice_equal(found.api_version, SLICE("client.authentication.k8s.io/v1")))
        return error_set(err, ERROR_INVALID,
                         "%s: printed no client.authentication.k8s.io/v1 ExecCredential", command);
    if ((found.token.len == 0 && found.cert.len == 0) ||
        (found.cert.len == 0) != (found.key.len == 0))
        return error_set(err, ERROR_INVALID,
                         "%s: status has neither a token nor a certificate with its key", command);
    credentials->expires_ms = found.expires.len == 0 ? 0 : time_parse(found.expires);
    if (found.expires.len != 0 && credentials->expires_ms == 0)
        return error_set(err, ERROR_INVALID, "%s: status.expirationTimestamp is no time in UTC",
                         command);
    /* the text goes away: copy what may point into it */
    credentials->token = arena_printf(&credentials->arena, "%.*s", SLICE_ARG(found.token));
    if (found.cert.len != 0) {
        credentials->cert.data = arena_printf(&credentials->arena, "%.*s", SLICE_ARG(found.cert));
        credentials->key.data = arena_printf(&credentials->arena, "%.*s", SLICE_ARG(found.key));
        if (credentials->cert.data.ptr == NULL || credentials->key.data.ptr == NULL)
            return error_no_memory(err);
    }
    credentials->has_plugin_answer = credentials->token.ptr != NULL;
    return credentials->has_plugin_answer ? 0 : error_no_memory(err);
}

/* KUBERNETES_EXEC_INFO, as the plugin API wants it. */
static bool write_info(const struct kubeconfig *kubeconfig, struct buf *out)
{
    buf_put(out, SLICE("KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":"
                       "\"client.authentication.k8s.io/v1\",\"spec\":{\"interactive\":false"));
    if (kubeconfig->exec.wants_cluster_info) {
        buf_put(out, SLICE(",\"cluster\":{\"server\":"));
        buf_json(out, slice_of(kubeconfig->server));
        if (kubeconfig->server_name != NULL) {
            buf_put(out, SLICE(",\"tls-server-name\":"));
            buf_json(out, slice_of(kubeconfig->server_name));
        }
        if (kubeconfig->skips_verification)
            buf_put(out, SLICE(",\"insecure-skip-tls-verify\":true"));
        buf_put(out, SLICE("}"));
    }
    buf_put(out, SLICE("}}\0"));
    return !out->failed;
}

/* Our environment, the plugin's own variables, and its info; NULL without memory. */
static char **make_environment(const struct kubeconfig *kubeconfig, char *info, struct arena *arena)
{
    size_t inherited = 0, added = 0;

    while (environ[inherited] != NULL)
        inherited++;
    while (kubeconfig->exec.env[added] != NULL)
        added++;
    char **variables = arena_alloc(arena, (inherited + added + 2) * sizeof *variables);
    if (variables == NULL)
        return NULL;
    /* the plugin's come first: getenv finds the first */
    for (size_t i = 0; i < added; i++)
        variables[i] = (char *)(uintptr_t)kubeconfig->exec.env[i];
    variables[added] = info;
    memcpy(variables + added + 1, environ, inherited * sizeof *variables);
    return variables;
}

/* Reads all that comes, until the end or the deadline. */
static int read_output(int fd, const char *command, struct buf *out, struct error *err)
{
    time_t deadline = time(NULL) + EXEC_SECONDS_MAX;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char piece[4096];

    for (;;) {
        time_t left = deadline - time(NULL);
        int rc = left <= 0 ? 0 : poll(&ready, 1, (int)left * 1000);
        if (rc < 0 && errno == EINTR)
            continue;
        if (rc <= 0)
            return error_set(err, ERROR_TIMEOUT, "%s: no answer in %d s", command,
                             EXEC_SECONDS_MAX);
        ssize_t count = read(fd, piece, sizeof piece);
        if (count <= 0)
            return 0;
        buf_put(out, (struct slice){piece, (size_t)count});
        if (out->failed)
            return error_set(err, ERROR_TOO_BIG, "%s: printed over %d KiB", command,
                             EXEC_OUTPUT_BYTES_MAX / 1024);
    }
}

static int spawn_plugin(const struct kubeconfig *kubeconfig, char **environment, int output,
                        pid_t *pid, struct error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;

    (void)sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK); /* serve blocks signals */
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    int rc = posix_spawnp(pid, kubeconfig->exec.argv[0], &actions, &attributes,
                          (char *const *)(uintptr_t)kubeconfig->exec.argv, environment);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    if (rc == 0)
        return 0;
    const char *hint = kubeconfig->exec.install_hint;
    return error_system(err, rc, "credential plugin %s%s%s", kubeconfig->exec.argv[0],
                        hint == NULL ? "" : ": ", hint == NULL ? "" : hint);
}

static int run_plugin(struct credentials *credentials, struct buf *out, struct error *err)
{
    const struct kubeconfig *kubeconfig = credentials->kubeconfig;
    struct buf info;
    int ends[2] = {-1, -1}, status = 0;
    pid_t pid = 0;

    buf_init(&info, CREDENTIALS_ARENA_BYTES_MAX);
    char **environment = write_info(kubeconfig, &info)
                             ? make_environment(kubeconfig, info.bytes, &credentials->arena)
                             : NULL;
    int rc = environment == NULL           ? error_no_memory(err)
             : pipe2(ends, O_CLOEXEC) != 0 ? error_system(err, errno, "pipe")
                                           : 0;
    if (rc == 0) {
        rc = spawn_plugin(kubeconfig, environment, ends[1], &pid, err);
        (void)close(ends[1]);
        if (rc == 0) {
            rc = read_output(ends[0], kubeconfig->exec.argv[0], out, err);
            if (rc < 0)
                (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
        }
        (void)close(ends[0]);
    }
    buf_dispose(&info);
    if (rc == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        return error_set(err, ERROR_UNAVAILABLE, "%s: failed with exit status %d",
                         kubeconfig->exec.argv[0], WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return rc;
}

static int ask_plugin(struct credentials *credentials, struct error *err)
{
    struct buf out;

    arena_reset(&credentials->arena);
    credentials->token = (struct slice){NULL, 0};
    credentials->has_plugin_answer = false;
    buf_init(&out, EXEC_OUTPUT_BYTES_MAX);
    int rc = run_plugin(credentials, &out, err);
    if (rc == 0)
        rc = read_credential(credentials, buf_slice(&out), err);
    buf_dispose(&out);
    return rc;
}

int credentials_refresh(struct credentials *credentials, int64_t now_ms, struct error *err)
{
    const struct kubeconfig *kubeconfig = credentials->kubeconfig;

    if (kubeconfig->token_file != NULL)
        return read_token(credentials, err);
    if (kubeconfig->exec.argv == NULL)
        return 0;
    bool is_good =
        credentials->has_plugin_answer &&
        (credentials->expires_ms == 0 || now_ms + EXEC_EARLY_MS < credentials->expires_ms);
    return is_good ? 0 : ask_plugin(credentials, err);
}

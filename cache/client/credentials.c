#include "cache/client/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/json/pull_fields.h"
#include "config/base/clock.h"
#include "config/base/file.h"
#include "config/base/log.h"
#include "config/base/text.h"

enum {
    CREDENTIALS_ARENA_BYTES_MAX = 4 * 1024 * 1024,
    INFO_BYTES_MAX = 64 * 1024,
    ENVIRONMENT_BYTES_MAX = 4 * 1024 * 1024,
    REAP_STEP_MS = 5,
};

enum { PLUGIN_DONE, PLUGIN_RUNS };

#define DAY_MS INT64_C(86400000)

extern char **environ;

/* ---- a plugin: its environment ---- */

/* KUBERNETES_EXEC_INFO, as the plugin API defines it. */
static bool write_info(const struct kubeconfig *kubeconfig, struct buf *out)
{
    buf_put(out, SLICE("KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":"));
    buf_json(out, slice_of(kubeconfig->exec.api_version));
    buf_put(out, SLICE(",\"spec\":{\"interactive\":false"));
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

static bool has_name(char *const *variables, size_t count, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1; /* with the sign */

    for (size_t i = 0; i < count; i++)
        if (strncmp(variables[i], variable, length) == 0)
            return true;
    return false;
}

/* The environment, with each name once, because programs differ in which of two they use. The info
 * has priority over the kubeconfig's variables, and these over ours; of two with one name in the
 * kubeconfig, the last counts. NULL: no memory. */
static char **make_environment(const struct kubeconfig *kubeconfig, char *info, struct arena *arena)
{
    const char **own = kubeconfig->exec.env;
    size_t inherited = 0, added = 0, count = 0;

    while (environ[inherited] != NULL)
        inherited++;
    while (own[added] != NULL)
        added++;
    char **variables = arena_alloc(arena, (inherited + added + 2) * sizeof *variables);
    if (variables == NULL)
        return NULL;
    variables[count++] = info;
    for (size_t i = added; i-- > 0;)
        if (!has_name(variables, count, own[i]))
            variables[count++] = (char *)(uintptr_t)own[i];
    for (size_t i = 0; i < inherited; i++)
        if (!has_name(variables, count, environ[i]))
            variables[count++] = environ[i];
    return variables; /* the arena's memory is zeroed: it ends with NULL */
}

/* ---- a plugin: its start ---- */

/* Attributes as for a process that a shell starts: no signal blocked or ignored, only the three
 * standard descriptors, and its own process group. */
static int spawn(struct plugin_run *run, const struct kubeconfig *kubeconfig, char **environment,
                 int output, struct error *err)
{
    const char *hint = kubeconfig->exec.install_hint;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, ignored;

    (void)sigemptyset(&none);
    (void)sigemptyset(&ignored);
    (void)sigaddset(&ignored, SIGPIPE);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    (void)posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETPGROUP);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &ignored);
    int rc = posix_spawnp(&run->pid, run->command, &actions, &attributes,
                          (char *const *)(uintptr_t)kubeconfig->exec.argv, environment);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    if (rc == 0)
        return 0;
    run->pid = 0;
    return error_system(err, rc, "credential plugin %s%s%s", run->command, hint == NULL ? "" : ": ",
                        hint == NULL ? "" : hint);
}

static int start(struct plugin_run *run, const struct kubeconfig *kubeconfig, char **environment,
                 struct error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_system(err, errno, "pipe");
    int rc = spawn(run, kubeconfig, environment, ends[1], err);
    (void)close(ends[1]);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (rc < 0)
        (void)close(ends[0]);
    run->output = ends[0];
    return rc;
}

/* Starts the plugin. Errors: ERROR_SYSTEM, ERROR_NO_MEMORY; it does not run. */
static int plugin_start(struct plugin_run *run, const struct kubeconfig *kubeconfig,
                        uint64_t now_ns, struct error *err)
{
    struct arena arena;
    struct buf info;

    *run = (struct plugin_run){.command = kubeconfig->exec.argv[0],
                               .deadline_ns = now_ns + PLUGIN_SECONDS_MAX * UINT64_C(1000000000)};
    arena_init(&arena, ENVIRONMENT_BYTES_MAX);
    buf_init(&info, INFO_BYTES_MAX);
    buf_init(&run->text, PLUGIN_OUTPUT_BYTES_MAX);
    char **environment =
        write_info(kubeconfig, &info) ? make_environment(kubeconfig, info.bytes, &arena) : NULL;
    int rc = environment == NULL ? error_no_memory(err) : start(run, kubeconfig, environment, err);
    buf_dispose(&info);
    arena_dispose(&arena);
    return rc;
}

/* ---- a plugin: its end ---- */

static void read_output(struct plugin_run *run)
{
    char piece[4096];

    for (ssize_t count; !run->text.failed && (count = read(run->output, piece, sizeof piece)) > 0;)
        buf_put(&run->text, (struct slice){piece, (size_t)count});
}

static int check_output(const struct plugin_run *run, struct error *err)
{
    return run->text.failed ? error_set(err, ERROR_TOO_BIG, "%s: printed over %d KiB", run->command,
                                        PLUGIN_OUTPUT_BYTES_MAX / 1024)
                            : PLUGIN_DONE;
}

/* The plugin has ended. If it failed, its children are killed; else they may continue (the master
 * connection of ssh). */
static int reap(struct plugin_run *run, const siginfo_t *info, struct error *err)
{
    bool has_exited = info->si_code == CLD_EXITED;

    read_output(run); /* its last output; do not wait for children that have the pipe open */
    if (!has_exited || info->si_status != 0)
        (void)kill(-run->pid, SIGKILL);
    (void)waitpid(run->pid, NULL, 0);
    (void)close(run->output);
    run->pid = 0;
    if (has_exited && info->si_status == 0)
        return check_output(run, err);
    return error_set(err, ERROR_UNAVAILABLE,
                     has_exited ? "%s: failed with exit status %d" : "%s: was ended by signal %d",
                     run->command, info->si_status);
}

/* Reads its output. PLUGIN_DONE: it has succeeded, and text is its output. Errors:
 * ERROR_TIMEOUT, ERROR_TOO_BIG, ERROR_UNAVAILABLE (its exit status), ERROR_SYSTEM. */
static int plugin_step(struct plugin_run *run, uint64_t now_ns, struct error *err)
{
    siginfo_t info = {.si_pid = 0};

    if (waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return error_system(err, errno, "%s", run->command);
    if (info.si_pid != 0)
        return reap(run, &info, err);
    read_output(run);
    if (check_output(run, err) < 0)
        return err->code;
    if (now_ns >= run->deadline_ns)
        return error_set(err, ERROR_TIMEOUT, "%s: has not ended after %d s", run->command,
                         PLUGIN_SECONDS_MAX);
    return PLUGIN_RUNS;
}

/* A process that cannot be killed (its disk hangs) stays until claimguard ends. */
static void kill_group(const struct plugin_run *run)
{
    const struct timespec pause = {.tv_nsec = REAP_STEP_MS * 1000000L};

    (void)kill(-run->pid, SIGKILL);
    for (int i = 0; i < PLUGIN_KILL_MS / REAP_STEP_MS && waitpid(run->pid, NULL, WNOHANG) == 0; i++)
        (void)nanosleep(&pause, NULL);
}

/* Kills the plugin, if it runs, and its children. Frees the text. */
static void plugin_stop(struct plugin_run *run)
{
    if (run->pid != 0) {
        kill_group(run);
        (void)close(run->output);
    }
    buf_dispose(&run->text);
    *run = (struct plugin_run){.pid = 0};
}

/* ---- credentials ---- */

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

static int read_answer(const struct plugin_run *run, struct arena *arena,
                       struct exec_credential *out, struct error *err)
{
    static const struct pull_field status_fields[] = {
        PULL_FIELD("token", PULL_STRING, exec_credential, token),
        PULL_FIELD("clientCertificateData", PULL_STRING, exec_credential, cert),
        PULL_FIELD("clientKeyData", PULL_STRING, exec_credential, key),
        PULL_FIELD("expirationTimestamp", PULL_STRING, exec_credential, expires),
    };
    static const struct pull_field fields[] = {
        PULL_FIELD("kind", PULL_STRING, exec_credential, kind),
        PULL_FIELD("apiVersion", PULL_STRING, exec_credential, api_version),
        PULL_NESTED("status", status_fields),
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

#include "cache/client/credential_plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { INFO_BYTES_MAX = 64 * 1024, ENVIRONMENT_BYTES_MAX = 4 * 1024 * 1024, REAP_STEP_MS = 5 };

extern char **environ;

/* ---- its environment ---- */

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

/* ---- starting ---- */

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

int plugin_start(struct plugin_run *run, const struct kubeconfig *kubeconfig, uint64_t now_ns,
                 struct error *err)
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

/* ---- its end ---- */

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

int plugin_step(struct plugin_run *run, uint64_t now_ns, struct error *err)
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

void plugin_stop(struct plugin_run *run)
{
    if (run->pid != 0) {
        kill_group(run);
        (void)close(run->output);
    }
    buf_dispose(&run->text);
    *run = (struct plugin_run){.pid = 0};
}

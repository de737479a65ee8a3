#include "cache/client/kubeconfig.h"

#include <stdlib.h>
#include <unistd.h>

#include "cache/client/kubeconfig_internal.h"

enum { KUBECONFIG_FILES_MAX = 16, KUBECONFIG_ARENA_BYTES_MAX = 64 * 1024 * 1024 };

struct files {
    const char *paths[KUBECONFIG_FILES_MAX];
    const struct yaml_node *roots[KUBECONFIG_FILES_MAX];
    size_t count;
    struct arena *arena;
};

/* ---- entries by name ---- */

/* The entry of that name in the list of the first file that has it. */
static int find_entry(const struct files *files, const char *list, const char *member,
                      struct slice name, struct kubeconfig_entry *out, struct error *err)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct yaml_node *item = yaml_items(yaml_value(files->roots[i], list));
        for (; item != NULL; item = item->next) {
            const struct yaml_node *given = yaml_value(item, "name");
            if (given == NULL || !slice_equal(given->text, name))
                continue;
            *out =
                (struct kubeconfig_entry){files->paths[i], list, given, yaml_value(item, member)};
            if (out->body != NULL && out->body->type == YAML_MAPPING)
                return 0;
            return yaml_fail(err, item, "%s[%.*s].%s: expected a mapping", list, SLICE_ARG(name),
                             member);
        }
    }
    return error_set(err, ERROR_INVALID, "%s:1:1: %s: there is no \"%.*s\"", files->paths[0], list,
                     SLICE_ARG(name));
}

/* The entry that a context names: its cluster, or its user. */
static int follow(const struct files *files, const struct kubeconfig_entry *context,
                  const char *member, const char *list, struct kubeconfig_entry *out,
                  struct error *err)
{
    const char *name = NULL;

    if (kubeconfig_text(context, context->body, member, &name, err) < 0)
        return err->code;
    if (name == NULL)
        return kubeconfig_fail(err, context, NULL, member, "is missing");
    return find_entry(files, list, member, slice_of(name), out, err);
}

static int find_context(const struct files *files, const char *wanted, struct kubeconfig_entry *out,
                        struct error *err)
{
    struct slice name = slice_of(wanted);

    for (size_t i = 0; i < files->count && name.len == 0; i++) {
        const struct yaml_node *current = yaml_value(files->roots[i], "current-context");
        if (!yaml_is_null(current))
            name = current->text;
    }
    if (name.len == 0)
        return error_set(err, ERROR_INVALID, "%s:1:1: current-context is missing: use --context",
                         files->paths[0]);
    return find_entry(files, "contexts", "context", name, out, err);
}

static int read_files(struct files *files, struct kubeconfig *out, const char *wanted,
                      struct error *err)
{
    struct kubeconfig_entry context = {0}, cluster = {0}, user = {0};

    for (size_t i = 0; i < files->count; i++) {
        struct yaml_node *root = NULL;
        if (yaml_load(&root, files->paths[i], files->arena, err) < 0)
            return err->code;
        if (root->type != YAML_MAPPING)
            return yaml_fail(err, root, "expected a kubeconfig (kind: Config)");
        files->roots[i] = root;
    }
    if (find_context(files, wanted, &context, err) < 0)
        return err->code;
    out->origin = context.path;
    if (kubeconfig_text(&context, context.body, "namespace", &out->ns, err) < 0 ||
        follow(files, &context, "cluster", "clusters", &cluster, err) < 0 ||
        kubeconfig_read_cluster(&cluster, out, err) < 0 ||
        follow(files, &context, "user", "users", &user, err) < 0)
        return err->code;
    return kubeconfig_read_user(&user, out, err);
}

/* ---- files ---- */

/* The paths of $KUBECONFIG. Files that do not exist are ignored, as in kubectl. */
static int split_paths(struct files *files, const char *list, struct error *err)
{
    while (*list != '\0') {
        size_t length = strcspn(list, ":");
        char *path = arena_alloc(files->arena, length + 1);
        if (path == NULL)
            return error_no_memory(err);
        memcpy(path, list, length);
        if (length != 0 && access(path, F_OK) == 0) {
            if (files->count == KUBECONFIG_FILES_MAX)
                return error_set(err, ERROR_TOO_BIG, "KUBECONFIG: over %d files",
                                 KUBECONFIG_FILES_MAX);
            files->paths[files->count++] = path;
        }
        list += length + (list[length] == ':');
    }
    return 0;
}

/* What each pod has: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/ */
static int use_service_account(struct kubeconfig *out, const char *host, const char *port,
                               struct error *err)
{
    bool is_ipv6 = strchr(host, ':') != NULL;

    out->origin = "the service account";
    out->server = arena_printf(&out->arena, is_ipv6 ? "https://[%s]:%s" : "https://%s:%s", host,
                               port == NULL ? "443" : port)
                      .ptr;
    out->proxy_url =
        ""; /* no proxy, even if the environment names one: the API server is in the cluster */
    out->ca.file = SERVICE_ACCOUNT_DIR "/ca.crt";
    out->token_file = SERVICE_ACCOUNT_DIR "/token";
    return out->server == NULL ? error_no_memory(err) : 0;
}

/* Called before any thread starts, so getenv is safe. */
static const char *variable(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe) */
    return value == NULL || *value == '\0' ? NULL : value;
}

/* *is_in_pod: there is no file, but a service account. */
static int choose_files(struct files *files, const char *path, bool may_use_home, bool *is_in_pod,
                        struct error *err)
{
    const char *list = path == NULL ? variable("KUBECONFIG") : NULL;
    const char *home = variable("HOME");

    if (path != NULL)
        files->paths[files->count++] = path;
    if (list != NULL && split_paths(files, list, err) < 0)
        return err->code;
    if (files->count == 0 && list != NULL)
        return error_set(err, ERROR_NOT_FOUND, "KUBECONFIG=%s: no such file", list);
    *is_in_pod = files->count == 0 && variable("KUBERNETES_SERVICE_HOST") != NULL;
    if (files->count == 0 && !*is_in_pod && may_use_home && home != NULL) {
        const char *fallback = arena_printf(files->arena, "%s/.kube/config", home).ptr;
        if (fallback != NULL && access(fallback, F_OK) == 0)
            files->paths[files->count++] = fallback;
    }
    if (files->count == 0 && !*is_in_pod)
        return error_set(err, ERROR_NOT_FOUND,
                         "no cluster: give --kubeconfig, or set KUBECONFIG, or run in a pod%s",
                         may_use_home ? ", or have a file ~/.kube/config" : "");
    return 0;
}

static int load(struct kubeconfig *out, const char *path, const char *context, bool may_use_home,
                struct error *err)
{
    struct files files = {.arena = &out->arena};
    bool is_in_pod = false;

    if (choose_files(&files, path, may_use_home, &is_in_pod, err) < 0)
        return err->code;
    return is_in_pod ? use_service_account(out, variable("KUBERNETES_SERVICE_HOST"),
                                           variable("KUBERNETES_SERVICE_PORT"), err)
                     : read_files(&files, out, context, err);
}

size_t kubeconfig_contexts(const char *path, struct arena *arena, struct slice *names, size_t max)
{
    struct files files = {.arena = arena};
    struct error err = {0};
    bool is_in_pod = false;
    size_t count = 0;

    if (choose_files(&files, path, true, &is_in_pod, &err) < 0)
        return 0;
    for (size_t i = 0; i < files.count; i++) {
        struct yaml_node *root = NULL;
        const struct yaml_node *item = yaml_load(&root, files.paths[i], arena, &err) < 0
                                           ? NULL
                                           : yaml_items(yaml_value(root, "contexts"));
        for (; item != NULL && count < max; item = item->next) {
            const struct yaml_node *name = yaml_value(item, "name");
            if (name != NULL && name->type == YAML_SCALAR)
                names[count++] = name->text;
        }
    }
    return count;
}

int kubeconfig_load(struct kubeconfig **out, const char *path, const char *context,
                    bool may_use_home, struct error *err)
{
    struct kubeconfig *kubeconfig = calloc(1, sizeof *kubeconfig);

    if (kubeconfig == NULL)
        return error_no_memory(err);
    arena_init(&kubeconfig->arena, KUBECONFIG_ARENA_BYTES_MAX);
    if (load(kubeconfig, path, context, may_use_home, err) < 0) {
        kubeconfig_free(kubeconfig);
        return err->code;
    }
    *out = kubeconfig;
    return 0;
}

void kubeconfig_free(struct kubeconfig *kubeconfig)
{
    if (kubeconfig == NULL)
        return;
    arena_dispose(&kubeconfig->arena);
    free(kubeconfig);
}

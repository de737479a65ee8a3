#include "cache/client/kubeconfig.h"

#include <stdlib.h>
#include <unistd.h>

#include "config/base/base64.h"
#include "config/yaml_node.h"

enum { KUBECONFIG_FILES_MAX = 16, KUBECONFIG_ARENA_BYTES_MAX = 64 * 1024 * 1024 };

#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* A named entry (a cluster, a user, a context), and the file that has it. */
struct entry {
    const char *path;
    const char *list; /* "clusters", ... */
    const struct yaml_node *name, *body;
};

struct files {
    const char *paths[KUBECONFIG_FILES_MAX];
    const struct yaml_node *roots[KUBECONFIG_FILES_MAX];
    size_t count;
    struct arena *arena;
};

static const struct yaml_node *find_key(const struct yaml_node *mapping, const char *key)
{
    if (mapping == NULL || mapping->type != YAML_MAPPING)
        return NULL;
    for (const struct yaml_node *child = mapping->first; child != NULL; child = child->next)
        if (slice_equal(child->key, slice_of(key)))
            return child;
    return NULL;
}

static bool is_null(const struct yaml_node *node)
{
    return node == NULL || (node->type == YAML_SCALAR && !node->is_quoted &&
                            (node->text.len == 0 || slice_equal(node->text, SLICE("null")) ||
                             slice_equal(node->text, SLICE("~"))));
}

/* "FILE:LINE:COL: clusters[prod].server: problem" */
static int fail(struct error *err, const struct entry *entry, const struct yaml_node *at,
                const char *key, const char *problem)
{
    struct slice name = entry->name == NULL ? SLICE("") : entry->name->text;

    return yaml_fail(err, entry->path, at == NULL ? entry->body : at, "%s[%.*s].%s: %s",
                     entry->list, SLICE_ARG(name), key, problem);
}

/* A string of the entry; *out stays as it is when the key is missing. The arena ends scalars with a
 * NUL. */
static int get_text(const struct entry *entry, const struct yaml_node *mapping, const char *key,
                    const char **out, struct error *err)
{
    const struct yaml_node *node = find_key(mapping, key);

    if (is_null(node))
        return 0;
    if (node->type != YAML_SCALAR)
        return fail(err, entry, node, key, "expected a string");
    if (memchr(node->text.ptr, '\0', node->text.len) != NULL)
        return fail(err, entry, node, key, "has a NUL character");
    *out = node->text.ptr;
    return 0;
}

static int get_switch(const struct entry *entry, const char *key, bool *out, struct error *err)
{
    const char *text = NULL;

    if (get_text(entry, entry->body, key, &text, err) < 0)
        return err->code;
    if (text == NULL || strcmp(text, "false") == 0)
        return 0;
    if (strcmp(text, "true") != 0)
        return fail(err, entry, find_key(entry->body, key), key, "expected true or false");
    *out = true;
    return 0;
}

/* A file's name, which is relative to the kubeconfig file that names it. */
static int get_file(const struct entry *entry, const char *key, struct arena *arena,
                    const char **out, struct error *err)
{
    const char *name = NULL;
    const char *slash = strrchr(entry->path, '/');

    if (get_text(entry, entry->body, key, &name, err) < 0)
        return err->code;
    if (name == NULL || *name == '\0')
        return 0;
    *out = name;
    if (*name == '/' || slash == NULL)
        return 0;
    *out = arena_printf(arena, "%.*s/%s", (int)(slash - entry->path), entry->path, name).ptr;
    return *out == NULL ? error_no_memory(err) : 0;
}

/* PEM text: data goes before a file, as in client-go. */
static int get_pem(const struct entry *entry, const char *file_key, const char *data_key,
                   struct arena *arena, struct pem *out, struct error *err)
{
    const char *data = NULL;

    if (get_file(entry, file_key, arena, &out->file, err) < 0 ||
        get_text(entry, entry->body, data_key, &data, err) < 0)
        return err->code;
    if (data == NULL || *data == '\0')
        return 0;
    out->file = NULL;
    if (!base64_decode(slice_of(data), arena, &out->data))
        return fail(err, entry, find_key(entry->body, data_key), data_key, "is not base64");
    return 0;
}

static int refuse(const struct entry *entry, const char *key, const char *why, struct error *err)
{
    const struct yaml_node *node = find_key(entry->body, key);
    return is_null(node) ? 0 : fail(err, entry, node, key, why);
}

/* ---- the parts of a context ---- */

static int read_cluster(const struct entry *entry, struct kubeconfig *out, struct error *err)
{
    if (get_text(entry, entry->body, "server", &out->server, err) < 0 ||
        get_text(entry, entry->body, "tls-server-name", &out->server_name, err) < 0 ||
        get_text(entry, entry->body, "proxy-url", &out->proxy_url, err) < 0 ||
        get_switch(entry, "insecure-skip-tls-verify", &out->skips_verification, err) < 0 ||
        get_pem(entry, "certificate-authority", "certificate-authority-data", &out->arena, &out->ca,
                err) < 0)
        return err->code;
    const struct yaml_node *at = find_key(entry->body, "server");
    if (out->server == NULL ||
        (strncmp(out->server, "https://", 8) != 0 && strncmp(out->server, "http://", 7) != 0))
        return fail(err, entry, at, "server", "expected https://HOST:PORT");
    size_t length = strlen(out->server);
    while (length > 0 && out->server[length - 1] == '/')
        length--;
    out->server = arena_printf(&out->arena, "%.*s", (int)length, out->server).ptr;
    if (out->server == NULL)
        return error_no_memory(err);
    if (out->skips_verification && (out->ca.file != NULL || out->ca.data.len != 0))
        return fail(err, entry, find_key(entry->body, "insecure-skip-tls-verify"),
                    "insecure-skip-tls-verify", "contradicts certificate-authority");
    return 0;
}

/* Strings that end with NULL, of a sequence whose items `convert` makes into one each. */
static int read_strings(const struct entry *entry, const struct yaml_node *list, const char *key,
                        const char *first, struct arena *arena, const char ***out,
                        const char *(*convert)(const struct yaml_node *item, struct arena *arena),
                        struct error *err)
{
    size_t count = first != NULL;

    if (!is_null(list) && list->type != YAML_SEQUENCE)
        return fail(err, entry, list, key, "expected a list");
    const struct yaml_node *items = is_null(list) ? NULL : list->first;
    for (const struct yaml_node *item = items; item != NULL; item = item->next)
        count++;
    const char **strings = arena_alloc(arena, (count + 1) * sizeof *strings);
    if (strings == NULL)
        return error_no_memory(err);
    *out = strings;
    if (first != NULL)
        *strings++ = first;
    for (const struct yaml_node *item = items; item != NULL; item = item->next) {
        *strings = convert(item, arena);
        if (*strings++ == NULL)
            return fail(err, entry, item, key, "this item is not what it should be");
    }
    return 0;
}

static const char *convert_argument(const struct yaml_node *item, struct arena *arena)
{
    (void)arena;
    return item->type == YAML_SCALAR ? item->text.ptr : NULL;
}

/* {name: A, value: B} -> "A=B" */
static const char *convert_variable(const struct yaml_node *item, struct arena *arena)
{
    const struct yaml_node *name = find_key(item, "name"), *value = find_key(item, "value");

    if (name == NULL || name->type != YAML_SCALAR || (value != NULL && value->type != YAML_SCALAR))
        return NULL;
    return arena_printf(arena, "%.*s=%.*s", SLICE_ARG(name->text),
                        SLICE_ARG(value == NULL ? SLICE("") : value->text))
        .ptr;
}

static int check_exec(const struct entry *entry, const struct yaml_node *exec, const char *version,
                      const char *mode, struct error *err)
{
    if (strcmp(version, "client.authentication.k8s.io/v1") != 0 &&
        strcmp(version, "client.authentication.k8s.io/v1beta1") != 0)
        return fail(err, entry, exec, "exec.apiVersion",
                    "expected client.authentication.k8s.io/v1 or v1beta1");
    if (mode != NULL && strcmp(mode, "Always") == 0)
        return fail(err, entry, exec, "exec.interactiveMode",
                    "Always: claimguard has no terminal to offer");
    return 0;
}

static int read_exec(const struct entry *entry, struct kubeconfig *out, struct error *err)
{
    const struct yaml_node *exec = find_key(entry->body, "exec");
    const char *command = NULL, *version = "", *info = NULL, *mode = NULL;

    if (is_null(exec))
        return 0;
    if (get_text(entry, exec, "command", &command, err) < 0 ||
        get_text(entry, exec, "apiVersion", &version, err) < 0 ||
        get_text(entry, exec, "provideClusterInfo", &info, err) < 0 ||
        get_text(entry, exec, "interactiveMode", &mode, err) < 0 ||
        get_text(entry, exec, "installHint", &out->exec.install_hint, err) < 0)
        return err->code;
    if (command == NULL || *command == '\0')
        return fail(err, entry, exec, "exec.command", "is missing");
    if (check_exec(entry, exec, version, mode, err) < 0)
        return err->code;
    out->exec.api_version = version;
    out->exec.wants_cluster_info = info != NULL && strcmp(info, "true") == 0;
    /* a command with a slash is relative to the file, any other is sought in $PATH */
    const char *slash = strrchr(entry->path, '/');
    if (*command != '/' && strchr(command, '/') != NULL && slash != NULL)
        command =
            arena_printf(&out->arena, "%.*s/%s", (int)(slash - entry->path), entry->path, command)
                .ptr;
    if (command == NULL)
        return error_no_memory(err);
    if (read_strings(entry, find_key(exec, "args"), "exec.args", command, &out->arena,
                     &out->exec.argv, convert_argument, err) < 0)
        return err->code;
    return read_strings(entry, find_key(exec, "env"), "exec.env", NULL, &out->arena, &out->exec.env,
                        convert_variable, err);
}

static int read_user(const struct entry *entry, struct kubeconfig *out, struct error *err)
{
    static const char *const unknown[] = {"as",       "as-uid",  "as-groups", "as-user-extra",
                                          "username", "password"};

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (refuse(entry, unknown[i], "is not supported", err) < 0)
            return err->code;
    if (refuse(entry, "auth-provider", "was removed from Kubernetes: use exec", err) < 0 ||
        get_text(entry, entry->body, "token", &out->token, err) < 0 ||
        get_file(entry, "tokenFile", &out->arena, &out->token_file, err) < 0 ||
        get_pem(entry, "client-certificate", "client-certificate-data", &out->arena, &out->cert,
                err) < 0 ||
        get_pem(entry, "client-key", "client-key-data", &out->arena, &out->key, err) < 0)
        return err->code;
    bool has_cert = out->cert.file != NULL || out->cert.data.len != 0;
    bool has_key = out->key.file != NULL || out->key.data.len != 0;
    if (has_cert != has_key)
        return fail(err, entry, NULL, has_cert ? "client-key" : "client-certificate", "is missing");
    return read_exec(entry, out, err);
}

/* ---- finding them ---- */

/* The entry of that name in the list of the first file that has it. */
static int find_entry(const struct files *files, const char *list, const char *member,
                      struct slice name, struct entry *out, struct error *err)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct yaml_node *entries = find_key(files->roots[i], list);
        if (entries == NULL || entries->type != YAML_SEQUENCE)
            continue;
        for (const struct yaml_node *item = entries->first; item != NULL; item = item->next) {
            const struct yaml_node *given = find_key(item, "name");
            if (given == NULL || !slice_equal(given->text, name))
                continue;
            *out = (struct entry){files->paths[i], list, given, find_key(item, member)};
            if (out->body != NULL && out->body->type == YAML_MAPPING)
                return 0;
            return yaml_fail(err, files->paths[i], item, "%s[%.*s].%s: expected a mapping", list,
                             SLICE_ARG(name), member);
        }
    }
    return error_set(err, ERROR_INVALID, "%s:1:1: %s: there is no \"%.*s\"", files->paths[0], list,
                     SLICE_ARG(name));
}

/* What a context says of its cluster or its user. */
static int follow(const struct files *files, const struct entry *context, const char *member,
                  const char *list, struct entry *out, struct error *err)
{
    const char *name = NULL;

    if (get_text(context, context->body, member, &name, err) < 0)
        return err->code;
    if (name == NULL)
        return fail(err, context, NULL, member, "is missing");
    return find_entry(files, list, member, slice_of(name), out, err);
}

static int find_context(const struct files *files, const char *wanted, struct entry *out,
                        struct error *err)
{
    struct slice name = slice_of(wanted);

    for (size_t i = 0; i < files->count && name.len == 0; i++) {
        const struct yaml_node *current = find_key(files->roots[i], "current-context");
        if (!is_null(current))
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
    struct entry context = {0}, cluster = {0}, user = {0};

    for (size_t i = 0; i < files->count; i++) {
        struct yaml_node *root = NULL;
        if (yaml_load(&root, files->paths[i], files->arena, err) < 0)
            return err->code;
        if (root->type != YAML_MAPPING)
            return yaml_fail(err, files->paths[i], root, "expected a kubeconfig (kind: Config)");
        files->roots[i] = root;
    }
    if (find_context(files, wanted, &context, err) < 0)
        return err->code;
    out->origin = context.path;
    if (follow(files, &context, "cluster", "clusters", &cluster, err) < 0 ||
        read_cluster(&cluster, out, err) < 0 ||
        follow(files, &context, "user", "users", &user, err) < 0)
        return err->code;
    return read_user(&user, out, err);
}

/* ---- where they come from ---- */

/* The paths of $KUBECONFIG; files that are not there are passed over, as kubectl does. */
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

/* What every pod finds: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/ */
static int use_service_account(struct kubeconfig *out, const char *host, const char *port,
                               struct error *err)
{
    bool is_ipv6 = strchr(host, ':') != NULL;

    out->origin = "the service account";
    out->server = arena_printf(&out->arena, is_ipv6 ? "https://[%s]:%s" : "https://%s:%s", host,
                               port == NULL ? "443" : port)
                      .ptr;
    out->proxy_url = ""; /* the API server is in the cluster, whatever the environment says */
    out->ca.file = SERVICE_ACCOUNT_DIR "/ca.crt";
    out->token_file = SERVICE_ACCOUNT_DIR "/token";
    return out->server == NULL ? error_no_memory(err) : 0;
}

/* The environment is read before any thread is there. */
static const char *variable(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe) */
    return value == NULL || *value == '\0' ? NULL : value;
}

static int load(struct kubeconfig *out, const char *path, const char *context, bool may_use_home,
                struct error *err)
{
    struct files files = {.arena = &out->arena};
    const char *list = path == NULL ? variable("KUBECONFIG") : NULL;
    const char *host = variable("KUBERNETES_SERVICE_HOST");
    const char *home = variable("HOME");

    if (path != NULL)
        files.paths[files.count++] = path;
    if (list != NULL && split_paths(&files, list, err) < 0)
        return err->code;
    if (files.count == 0 && list != NULL)
        return error_set(err, ERROR_NOT_FOUND, "KUBECONFIG=%s: no such file", list);
    if (files.count == 0 && host != NULL)
        return use_service_account(out, host, variable("KUBERNETES_SERVICE_PORT"), err);
    if (files.count == 0 && may_use_home && home != NULL) {
        const char *fallback = arena_printf(&out->arena, "%s/.kube/config", home).ptr;
        if (fallback != NULL && access(fallback, F_OK) == 0)
            files.paths[files.count++] = fallback;
    }
    if (files.count == 0)
        return error_set(err, ERROR_NOT_FOUND,
                         "no cluster: give --kubeconfig, or set KUBECONFIG, or run in a pod");
    return read_files(&files, out, context, err);
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

/*
 * The entries of a kubeconfig: what a cluster and a user say.
 */
#include <curl/curl.h>

#include "cache/client/kubeconfig_internal.h"
#include "config/base/text.h"

int kubeconfig_fail(struct error *err, const struct kubeconfig_entry *entry,
                    const struct yaml_node *at, const char *key, const char *problem)
{
    struct slice name = entry->name == NULL ? SLICE("") : entry->name->text;

    return yaml_fail(err, at == NULL ? entry->body : at, "%s[%.*s].%s: %s", entry->list,
                     SLICE_ARG(name), key, problem);
}

int kubeconfig_text(const struct kubeconfig_entry *entry, const struct yaml_node *mapping,
                    const char *key, const char **out, struct error *err)
{
    const struct yaml_node *node = yaml_value(mapping, key);

    if (yaml_is_null(node))
        return 0;
    if (node->type != YAML_SCALAR)
        return kubeconfig_fail(err, entry, node, key, "expected a string");
    if (memchr(node->text.ptr, '\0', node->text.len) != NULL)
        return kubeconfig_fail(err, entry, node, key, "has a NUL character");
    *out = node->text.ptr;
    return 0;
}

static int get_switch(const struct kubeconfig_entry *entry, const char *key, bool *out,
                      struct error *err)
{
    const char *text = NULL;

    if (kubeconfig_text(entry, entry->body, key, &text, err) < 0)
        return err->code;
    if (text == NULL || strcmp(text, "false") == 0)
        return 0;
    if (strcmp(text, "true") != 0)
        return kubeconfig_fail(err, entry, yaml_value(entry->body, key), key,
                               "expected true or false");
    *out = true;
    return 0;
}

/* The path of a file, whose name is relative to the kubeconfig file. NULL: no memory. */
static const char *resolve(const struct kubeconfig_entry *entry, const char *name,
                           struct arena *arena)
{
    const char *slash = strrchr(entry->path, '/');

    return *name == '/' || slash == NULL
               ? name
               : arena_printf(arena, "%.*s/%s", (int)(slash - entry->path), entry->path, name).ptr;
}

static int get_file(const struct kubeconfig_entry *entry, const char *key, struct arena *arena,
                    const char **out, struct error *err)
{
    const char *name = NULL;

    if (kubeconfig_text(entry, entry->body, key, &name, err) < 0)
        return err->code;
    if (name == NULL || *name == '\0')
        return 0;
    *out = resolve(entry, name, arena);
    return *out == NULL ? error_no_memory(err) : 0;
}

/* PEM text. Data has priority over a file, as in client-go. */
static int get_pem(const struct kubeconfig_entry *entry, const char *file_key, const char *data_key,
                   struct arena *arena, struct pem *out, struct error *err)
{
    const char *data = NULL;

    if (get_file(entry, file_key, arena, &out->file, err) < 0 ||
        kubeconfig_text(entry, entry->body, data_key, &data, err) < 0)
        return err->code;
    if (data == NULL || *data == '\0')
        return 0;
    out->file = NULL;
    if (!base64_decode(slice_of(data), arena, &out->data))
        return kubeconfig_fail(err, entry, yaml_value(entry->body, data_key), data_key,
                               "is not base64");
    return 0;
}

static int refuse(const struct kubeconfig_entry *entry, const char *key, const char *why,
                  struct error *err)
{
    const struct yaml_node *node = yaml_value(entry->body, key);
    return yaml_is_null(node) ? 0 : kubeconfig_fail(err, entry, node, key, why);
}

/* ---- a cluster ---- */

/* Whether it is https://HOST[:PORT][/PATH], or the same with http, and a URL that libcurl accepts;
 * without a user and a password, which messages would show. */
static bool is_server(const char *text)
{
    const char *host = strstr(text, "://") + 3;
    CURLU *url = curl_url();
    bool is_good = url != NULL && *host != '\0' && *host != '/' &&
                   curl_url_set(url, CURLUPART_URL, text, CURLU_DISALLOW_USER) == CURLUE_OK;

    curl_url_cleanup(url);
    return is_good;
}

static bool has_scheme(const char *text)
{
    return strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0;
}

int kubeconfig_read_cluster(const struct kubeconfig_entry *entry, struct kubeconfig *out,
                            struct error *err)
{
    if (kubeconfig_text(entry, entry->body, "server", &out->server, err) < 0 ||
        kubeconfig_text(entry, entry->body, "tls-server-name", &out->server_name, err) < 0 ||
        kubeconfig_text(entry, entry->body, "proxy-url", &out->proxy_url, err) < 0 ||
        get_switch(entry, "insecure-skip-tls-verify", &out->skips_verification, err) < 0 ||
        get_pem(entry, "certificate-authority", "certificate-authority-data", &out->arena, &out->ca,
                err) < 0)
        return err->code;
    const struct yaml_node *at = yaml_value(entry->body, "server");
    if (out->server == NULL || !has_scheme(out->server) || !is_server(out->server))
        return kubeconfig_fail(err, entry, at, "server", "expected https://HOST:PORT");
    size_t length = strlen(out->server);
    while (length > 0 && out->server[length - 1] == '/')
        length--;
    out->server = arena_copy(&out->arena, (struct slice){out->server, length}).ptr;
    if (out->server == NULL)
        return error_no_memory(err);
    if (out->skips_verification && (out->ca.file != NULL || out->ca.data.len != 0))
        return kubeconfig_fail(err, entry, yaml_value(entry->body, "insecure-skip-tls-verify"),
                               "insecure-skip-tls-verify", "contradicts certificate-authority");
    return 0;
}

/* ---- a user ---- */

/* Memory for the texts of a list of the entry, for `more` others, and for NULL at the end. NULL: an
 * error. */
static const char **make_texts(const struct kubeconfig_entry *entry, const struct yaml_node *list,
                               const char *key, size_t more, struct arena *arena, struct error *err)
{
    size_t count = more + 1;

    if (!yaml_is_null(list) && list->type != YAML_SEQUENCE) {
        (void)kubeconfig_fail(err, entry, list, key, "expected a list");
        return NULL;
    }
    for (const struct yaml_node *item = yaml_items(list); item != NULL; item = item->next)
        count++;
    const char **texts = arena_alloc(arena, count * sizeof *texts);
    if (texts == NULL)
        (void)error_no_memory(err);
    return texts;
}

/* The command and its arguments, as argv. */
static int read_arguments(const struct kubeconfig_entry *entry, const struct yaml_node *exec,
                          const char *command, struct kubeconfig *out, struct error *err)
{
    const struct yaml_node *args = yaml_value(exec, "args");
    const char **argv = make_texts(entry, args, "exec.args", 1, &out->arena, err);

    if (argv == NULL)
        return err->code;
    out->exec.argv = argv;
    *argv++ = command;
    for (const struct yaml_node *item = yaml_items(args); item != NULL; item = item->next) {
        if (item->type != YAML_SCALAR)
            return kubeconfig_fail(err, entry, item, "exec.args", "expected a string");
        *argv++ = item->text.ptr;
    }
    return 0;
}

/* {name: A, value: B} -> "A=B" */
static int read_environment(const struct kubeconfig_entry *entry, const struct yaml_node *exec,
                            struct kubeconfig *out, struct error *err)
{
    const struct yaml_node *variables = yaml_value(exec, "env");
    const char **env = make_texts(entry, variables, "exec.env", 0, &out->arena, err);

    if (env == NULL)
        return err->code;
    out->exec.env = env;
    for (const struct yaml_node *item = yaml_items(variables); item != NULL; item = item->next) {
        const struct yaml_node *name = yaml_value(item, "name");
        const struct yaml_node *value = yaml_value(item, "value");
        if (name == NULL || name->type != YAML_SCALAR ||
            (value != NULL && value->type != YAML_SCALAR))
            return kubeconfig_fail(err, entry, item, "exec.env", "expected a name and a value");
        *env = arena_printf(&out->arena, "%.*s=%.*s", SLICE_ARG(name->text),
                            SLICE_ARG(value == NULL ? SLICE("") : value->text))
                   .ptr;
        if (*env++ == NULL)
            return error_no_memory(err);
    }
    return 0;
}

static int check_exec(const struct kubeconfig_entry *entry, const struct yaml_node *exec,
                      const char *version, const char *mode, struct error *err)
{
    if (strcmp(version, "client.authentication.k8s.io/v1") != 0 &&
        strcmp(version, "client.authentication.k8s.io/v1beta1") != 0)
        return kubeconfig_fail(err, entry, exec, "exec.apiVersion",
                               "expected client.authentication.k8s.io/v1 or v1beta1");
    if (mode != NULL && strcmp(mode, "Always") == 0)
        return kubeconfig_fail(err, entry, exec, "exec.interactiveMode",
                               "Always is not supported, because claimguard has no terminal");
    return 0;
}

static int read_exec(const struct kubeconfig_entry *entry, struct kubeconfig *out,
                     struct error *err)
{
    const struct yaml_node *exec = yaml_value(entry->body, "exec");
    const char *command = NULL, *version = "", *info = NULL, *mode = NULL;

    if (yaml_is_null(exec))
        return 0;
    if (kubeconfig_text(entry, exec, "command", &command, err) < 0 ||
        kubeconfig_text(entry, exec, "apiVersion", &version, err) < 0 ||
        kubeconfig_text(entry, exec, "provideClusterInfo", &info, err) < 0 ||
        kubeconfig_text(entry, exec, "interactiveMode", &mode, err) < 0 ||
        kubeconfig_text(entry, exec, "installHint", &out->exec.install_hint, err) < 0)
        return err->code;
    if (command == NULL || *command == '\0')
        return kubeconfig_fail(err, entry, exec, "exec.command", "is missing");
    if (check_exec(entry, exec, version, mode, err) < 0)
        return err->code;
    out->exec.api_version = version;
    out->exec.wants_cluster_info = info != NULL && strcmp(info, "true") == 0;
    if (strchr(command, '/') != NULL) /* any other is in $PATH */
        command = resolve(entry, command, &out->arena);
    if (command == NULL)
        return error_no_memory(err);
    if (read_arguments(entry, exec, command, out, err) < 0)
        return err->code;
    return read_environment(entry, exec, out, err);
}

int kubeconfig_read_user(const struct kubeconfig_entry *entry, struct kubeconfig *out,
                         struct error *err)
{
    static const char *const unknown[] = {"as",       "as-uid",  "as-groups", "as-user-extra",
                                          "username", "password"};

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (refuse(entry, unknown[i], "is not supported", err) < 0)
            return err->code;
    if (refuse(entry, "auth-provider", "was removed from Kubernetes; use exec", err) < 0 ||
        kubeconfig_text(entry, entry->body, "token", &out->token, err) < 0 ||
        get_file(entry, "tokenFile", &out->arena, &out->token_file, err) < 0 ||
        get_pem(entry, "client-certificate", "client-certificate-data", &out->arena, &out->cert,
                err) < 0 ||
        get_pem(entry, "client-key", "client-key-data", &out->arena, &out->key, err) < 0)
        return err->code;
    bool has_cert = out->cert.file != NULL || out->cert.data.len != 0;
    bool has_key = out->key.file != NULL || out->key.data.len != 0;
    if (has_cert != has_key)
        return kubeconfig_fail(err, entry, NULL, has_cert ? "client-key" : "client-certificate",
                               "is missing");
    return read_exec(entry, out, err);
}

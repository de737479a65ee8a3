#include "extender/commands/doctor/scheduler_file.h"

#include "cache/client/call.h"

#define API_VERSION "kubescheduler.config.k8s.io/v1"
#define KIND        "KubeSchedulerConfiguration"

/* ---- values ---- */

bool scheduler_is_boolean(const struct yaml_node *node, bool *value)
{
    static const char *const words[] = {"true", "yes", "on", "y", "false", "no", "off", "n"};

    *value = false;
    if (node->type != YAML_SCALAR || node->is_quoted)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (slice_equal_fold(node->text, slice_of(words[i]))) {
            *value = i < 4;
            return true;
        }
    }
    return false;
}

const struct yaml_node *scheduler_value(const struct yaml_node *node, const char *key)
{
    const struct yaml_node *value = yaml_value(node, key);

    return yaml_is_null(value) ? NULL : value;
}

static struct setting read_setting(const struct yaml_node *mapping, const char *key)
{
    const struct yaml_node *value = scheduler_value(mapping, key);
    struct setting setting = {.at = value == NULL ? mapping : value};

    if (value == NULL)
        return setting;
    if (value->type == YAML_SCALAR)
        setting.text = value->text;
    setting.is_set = value->type != YAML_SCALAR || value->text.len != 0;
    (void)scheduler_is_boolean(value, &setting.is_true);
    return setting;
}

/* The data wins over the file. */
static struct setting read_either(const struct yaml_node *mapping, const char *data,
                                  const char *file)
{
    struct setting setting = read_setting(mapping, data);

    return setting.is_set ? setting : read_setting(mapping, file);
}

static int check_count(const struct yaml_node *item, size_t count, size_t most, struct error *err)
{
    return count < most ? 0 : yaml_fail(err, item, "over %zu items in this list", most);
}

/* ---- extenders ---- */

static int read_managed(struct scheduler_extender *extender, struct arena *arena, struct error *err)
{
    const struct yaml_node *item = yaml_items(scheduler_value(extender->at, "managedResources"));

    for (; item != NULL; item = item->next) {
        if (check_count(item, extender->managed_count, SCHEDULER_MANAGED_MAX, err) < 0)
            return err->code;
        extender->managed = arena_grow(arena, extender->managed, extender->managed_count,
                                       sizeof *extender->managed);
        if (extender->managed == NULL)
            return error_no_memory(err);
        extender->managed[extender->managed_count++] = (struct managed_resource){
            .name = read_setting(item, "name"),
            .ignored_by_scheduler = read_setting(item, "ignoredByScheduler"),
        };
    }
    return 0;
}

static int read_extender(struct scheduler_extender *out, const struct yaml_node *node,
                         struct arena *arena, struct error *err)
{
    const struct yaml_node *tls = scheduler_value(node, "tlsConfig");
    const struct yaml_node *tls_place = tls == NULL ? node : tls;

    *out = (struct scheduler_extender){
        .at = node,
        .url_prefix = read_setting(node, "urlPrefix"),
        .filter_verb = read_setting(node, "filterVerb"),
        .preempt_verb = read_setting(node, "preemptVerb"),
        .prioritize_verb = read_setting(node, "prioritizeVerb"),
        .bind_verb = read_setting(node, "bindVerb"),
        .weight = read_setting(node, "weight"),
        .enable_https = read_setting(node, "enableHTTPS"),
        .http_timeout = read_setting(node, "httpTimeout"),
        .node_cache_capable = read_setting(node, "nodeCacheCapable"),
        .ignorable = read_setting(node, "ignorable"),
        .ca = read_either(tls_place, "caData", "caFile"),
        .insecure = read_setting(tls_place, "insecure"),
        .cert = read_either(tls_place, "certData", "certFile"),
        .key = read_either(tls_place, "keyData", "keyFile"),
        .server_name = read_setting(tls_place, "serverName"),
    };
    out->has_url = go_url(&out->url, out->url_prefix.text, arena);
    return read_managed(out, arena, err);
}

static int read_extenders(struct scheduler_file *file, struct arena *arena, struct error *err)
{
    const struct yaml_node *item = yaml_items(scheduler_value(file->root, "extenders"));

    for (; item != NULL; item = item->next) {
        if (check_count(item, file->extender_count, SCHEDULER_EXTENDERS_MAX, err) < 0)
            return err->code;
        file->extenders =
            arena_grow(arena, file->extenders, file->extender_count, sizeof *file->extenders);
        if (file->extenders == NULL)
            return error_no_memory(err);
        if (read_extender(&file->extenders[file->extender_count++], item, arena, err) < 0)
            return err->code;
    }
    return 0;
}

/* ---- profiles ---- */

static const struct yaml_node *find_fit_ignored(const struct yaml_node *profile)
{
    const struct yaml_node *item = yaml_items(scheduler_value(profile, "pluginConfig"));

    for (; item != NULL; item = item->next) {
        const struct yaml_node *name = scheduler_value(item, "name");
        if (name != NULL && slice_equal(name->text, SLICE("NodeResourcesFit")))
            return scheduler_value(scheduler_value(item, "args"), "ignoredResources");
    }
    return NULL;
}

static struct scheduler_profile read_profile(const struct yaml_node *node)
{
    return (struct scheduler_profile){
        .at = node,
        .name = read_setting(node, "schedulerName").text,
        .plugins = scheduler_value(node, "plugins"),
        .fit_ignored = find_fit_ignored(node),
    };
}

static int read_profiles(struct scheduler_file *file, struct arena *arena, struct error *err)
{
    const struct yaml_node *first = yaml_items(scheduler_value(file->root, "profiles"));
    struct scheduler_profile profile = {.at = file->root}; /* without a list: all defaults */

    for (const struct yaml_node *item = first; file->profile_count == 0 || item != NULL;
         item = item->next) {
        if (item != NULL)
            profile = read_profile(item);
        if (check_count(profile.at, file->profile_count, SCHEDULER_PROFILES_MAX, err) < 0)
            return err->code;
        file->profiles =
            arena_grow(arena, file->profiles, file->profile_count, sizeof *file->profiles);
        if (file->profiles == NULL)
            return error_no_memory(err);
        file->profiles[file->profile_count++] = profile;
        if (item == NULL)
            break;
    }
    if (file->profile_count == 1 && scheduler_value(first, "schedulerName") == NULL)
        file->profiles[0].name = SLICE("default-scheduler");
    return 0;
}

bool scheduler_has_profile(const struct scheduler_file *file, struct slice name)
{
    for (size_t i = 0; i < file->profile_count; i++)
        if (slice_equal(file->profiles[i].name, name))
            return true;
    return false;
}

/* ---- the file ---- */

static int check_type(const struct scheduler_file *file, const char *key, const char *expected,
                      struct error *err)
{
    const struct yaml_node *value = scheduler_value(file->root, key);

    if (value == NULL)
        return yaml_fail(err, file->root, "%s is missing (%s)", key, expected);
    if (!slice_equal(value->text, slice_of(expected)))
        return yaml_fail(err, value, "%s: expected %s", key, expected);
    return 0;
}

static int read_root(struct scheduler_file *out, const struct yaml_node *root, struct arena *arena,
                     struct error *err)
{
    const struct yaml_node *running = scheduler_value(root, "componentconfig"); /* of /configz */

    out->root = running == NULL ? root : running;
    if (out->root->type != YAML_MAPPING)
        return yaml_fail(err, out->root, "expected a mapping");
    if (running != NULL && (scheduler_value(running, "apiVersion") == NULL ||
                            scheduler_value(running, "kind") == NULL)) /* that of 1.35 */
        return yaml_fail(err, running,
                         "this kube-scheduler shows its configuration without a version, which is "
                         "not read: name its file");
    if (check_type(out, "apiVersion", API_VERSION, err) < 0 ||
        check_type(out, "kind", KIND, err) < 0 || read_profiles(out, arena, err) < 0)
        return err->code;
    return read_extenders(out, arena, err);
}

/* ---- plugins ---- */

/* The item of profile.plugins.POINT.LIST with that name; NULL if there is none. */
static const struct yaml_node *find_plugin(const struct scheduler_profile *profile,
                                           const char *point, const char *list, const char *name)
{
    const struct yaml_node *set = scheduler_value(profile->plugins, point);
    const struct yaml_node *item = yaml_items(scheduler_value(set, list));

    for (; item != NULL; item = item->next) {
        const struct yaml_node *named = scheduler_value(item, "name");
        if (named != NULL && slice_equal(named->text, slice_of(name)))
            return item;
    }
    return NULL;
}

/* The item that disables the plugin at that point, by its name or by "*". */
static const struct yaml_node *find_disabled(const struct scheduler_profile *profile,
                                             const char *point, const char *plugin)
{
    const struct yaml_node *item = find_plugin(profile, point, "disabled", plugin);

    return item != NULL ? item : find_plugin(profile, point, "disabled", "*");
}

bool scheduler_plugin_works(const struct scheduler_profile *profile, const char *plugin,
                            const char *point, const struct yaml_node **because)
{
    *because = NULL;
    if (find_plugin(profile, point, "enabled", plugin) != NULL)
        return true;
    *because = find_disabled(profile, point, plugin);
    if (*because != NULL)
        return false;
    if (find_plugin(profile, "multiPoint", "enabled", plugin) != NULL)
        return true;
    *because = find_disabled(profile, "multiPoint", plugin);
    return *because == NULL;
}

/* ---- a running one ---- */

/* The credentials of the kubeconfig, for another server. */
static int aim(struct kubeconfig *out, const struct kubeconfig *kubeconfig, const char *text,
               struct arena *arena, struct error *err)
{
    struct url url;

    if (!go_url(&url, slice_of(text), arena))
        return error_set(err, ERROR_INVALID, "%s: not a URL", text);
    bool is_local = go_is_loopback(url.host), is_plain = slice_equal(url.scheme, SLICE("http"));
    if (is_plain && !is_local)
        return error_set(err, ERROR_INVALID, "%s: credentials are not sent in plain text", text);
    size_t scheme = url.scheme.len + strlen("://");
    struct slice server =
        arena_copy(arena, (struct slice){text, scheme + strcspn(text + scheme, "/")});
    if (server.ptr == NULL)
        return error_no_memory(err);
    bool is_same = strcmp(server.ptr, kubeconfig->server) == 0;
    *out = *kubeconfig;
    out->server = server.ptr;
    if (!is_same)
        out->server_name = NULL;
    out->skips_verification = is_same ? kubeconfig->skips_verification : is_local;
    return 0;
}

static int fetch(struct slice *out, const struct kubeconfig *kubeconfig, const char *path,
                 struct arena *arena, struct error *err)
{
    struct request_answer answer = {.status = 0};
    struct api api;
    int rc = api_open(&api, kubeconfig, err);

    if (rc == 0)
        rc = api_get(&api, path, &answer, err);
    if (rc == 0 && answer.status != 200)
        rc = error_set(err, ERROR_UNAVAILABLE, "%s%s: status %u%s%.*s", api.server, path,
                       answer.status, answer.message.len == 0 ? "" : ": ",
                       SLICE_ARG(answer.message));
    if (rc == 0) {
        *out = arena_copy(arena, answer.body);
        rc = out->ptr == NULL ? error_no_memory(err) : 0;
    }
    api_close(&api);
    return rc;
}

static int fetch_url(struct slice *out, const char *url, const struct inquiry_origin *origin,
                     struct arena *arena, struct error *err)
{
    struct kubeconfig *kubeconfig = NULL, aimed = {.server = ""};

    if (kubeconfig_load(&kubeconfig, origin->kubeconfig, origin->context, true, err) < 0)
        return err->code;
    int rc = aim(&aimed, kubeconfig, url, arena, err);
    if (rc == 0) {
        const char *path = url + strlen(aimed.server);
        rc = fetch(out, &aimed, *path == '\0' ? "/configz" : path, arena, err);
    }
    kubeconfig_free(kubeconfig);
    return rc;
}

/* ---- either ---- */

int scheduler_file_read(struct scheduler_file *out, const char *name,
                        const struct inquiry_origin *origin, struct arena *arena, struct error *err)
{
    bool is_url = strncmp(name, "http://", 7) == 0 || strncmp(name, "https://", 8) == 0;
    struct yaml_node *root = NULL;
    struct slice text = {NULL, 0};

    *out = (struct scheduler_file){.path = name};
    if (is_url && fetch_url(&text, name, origin, arena, err) < 0)
        return err->code;
    int rc =
        is_url ? yaml_load_text(&root, name, text, arena, err) : yaml_load(&root, name, arena, err);
    return rc < 0 ? err->code : read_root(out, root, arena, err);
}

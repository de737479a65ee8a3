#include "extender/doctor/scheduler_file.h"

#define API_VERSION "kubescheduler.config.k8s.io/v1"
#define KIND        "KubeSchedulerConfiguration"

/* ---- values ---- */

bool scheduler_is_null(const struct yaml_node *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};

    if (node->type != YAML_SCALAR || node->is_quoted)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal(node->text, slice_of(words[i])))
            return true;
    return false;
}

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
    if (node == NULL || node->type != YAML_MAPPING)
        return NULL;
    for (const struct yaml_node *child = node->first; child != NULL; child = child->next)
        if (slice_equal(child->key, slice_of(key)))
            return scheduler_is_null(child) ? NULL : child;
    return NULL;
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

/* The first item of a list; NULL if it is none. */
static const struct yaml_node *first_item(const struct yaml_node *list)
{
    return list == NULL || list->type != YAML_SEQUENCE ? NULL : list->first;
}

static int check_count(const struct yaml_node *item, size_t count, size_t most, struct error *err)
{
    return count < most ? 0 : yaml_fail(err, item->path, item, "over %zu items in this list", most);
}

/* ---- extenders ---- */

static int read_managed(struct scheduler_extender *extender, struct arena *arena, struct error *err)
{
    const struct yaml_node *item = first_item(scheduler_value(extender->at, "managedResources"));

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
    };
    return read_managed(out, arena, err);
}

static int read_extenders(struct scheduler_file *file, struct arena *arena, struct error *err)
{
    const struct yaml_node *item = first_item(scheduler_value(file->root, "extenders"));

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
    const struct yaml_node *item = first_item(scheduler_value(profile, "pluginConfig"));

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
    const struct yaml_node *first = first_item(scheduler_value(file->root, "profiles"));
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
        return yaml_fail(err, file->path, file->root, "%s is missing (%s)", key, expected);
    if (!slice_equal(value->text, slice_of(expected)))
        return yaml_fail(err, file->path, value, "%s: expected %s", key, expected);
    return 0;
}

static int read_root(struct scheduler_file *out, const struct yaml_node *root, struct arena *arena,
                     struct error *err)
{
    const struct yaml_node *running = scheduler_value(root, "componentconfig"); /* of /configz */

    out->root = running == NULL ? root : running;
    if (out->root->type != YAML_MAPPING)
        return yaml_fail(err, out->path, out->root, "expected a mapping");
    if (running != NULL && (scheduler_value(running, "apiVersion") == NULL ||
                            scheduler_value(running, "kind") == NULL)) /* that of 1.35 */
        return yaml_fail(err, out->path, running,
                         "this kube-scheduler shows its configuration without a version, which is "
                         "not read: name its file");
    if (check_type(out, "apiVersion", API_VERSION, err) < 0 ||
        check_type(out, "kind", KIND, err) < 0 || read_profiles(out, arena, err) < 0)
        return err->code;
    return read_extenders(out, arena, err);
}

int scheduler_text_read(struct scheduler_file *out, const char *path, struct slice text,
                        struct arena *arena, struct error *err)
{
    struct yaml_node *root = NULL;

    *out = (struct scheduler_file){.path = path};
    return yaml_load_text(&root, path, text, arena, err) < 0 ? err->code
                                                             : read_root(out, root, arena, err);
}

int scheduler_file_read(struct scheduler_file *out, const char *path, struct arena *arena,
                        struct error *err)
{
    struct yaml_node *root = NULL;

    *out = (struct scheduler_file){.path = path};
    return yaml_load(&root, path, arena, err) < 0 ? err->code : read_root(out, root, arena, err);
}

/* ---- plugins ---- */

/* The item of profile.plugins.POINT.LIST with that name; NULL if there is none. */
static const struct yaml_node *find_plugin(const struct scheduler_profile *profile,
                                           const char *point, const char *list, const char *name)
{
    const struct yaml_node *set = scheduler_value(profile->plugins, point);
    const struct yaml_node *item = first_item(scheduler_value(set, list));

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

/* What the files say: that of a kube-scheduler, and claimguard's configuration, also against it. */
#include "extender/commands/doctor/doctor.h"

enum {
    DEFAULT_PORT = 8888,
    BIND_MS = 4000, /* that a bind may take: extender/serving/bind/bind.h */
    TIMEOUT_MS_MAX = 30000,
};

/* ---- which extender is claimguard ---- */

static bool is_own(const struct scheduler_extender *extender, const struct config *config)
{
    struct slice host;
    uint16_t port = DEFAULT_PORT;

    for (size_t i = 0; i < extender->managed_count; i++)
        if (slice_equal(extender->managed[i].name.text, SLICE(MARK)))
            return true;
    if (slice_has(extender->url_prefix.text, SLICE("claimguard")))
        return true;
    if (config != NULL)
        (void)config_split_address(config->server.listen, &host, &port);
    return extender->has_url && extender->url.port == port;
}

void scheduler_find_own(struct scheduler_file *file, const struct config *config)
{
    file->own = NULL;
    for (size_t i = 0; i < file->extender_count && file->own == NULL; i++)
        if (is_own(&file->extenders[i], config))
            file->own = &file->extenders[i];
}

const struct scheduler_file *examined_next(const struct examined *examined,
                                           const struct scheduler_file *after)
{
    const struct scheduler_file *end = examined->schedulers + examined->scheduler_count;

    for (const struct scheduler_file *file = after == NULL ? examined->schedulers : after + 1;
         file < end; file++)
        if (file->own != NULL)
            return file;
    return NULL;
}

/* Without an extender: where the first one should be. */
static void report_missing(const struct scheduler_file *file, struct findings *findings)
{
    const struct yaml_node *list = scheduler_value(file->root, "extenders");

    finding_add(findings, CG502, finding_place(list == NULL ? file->root : list),
                "- urlPrefix: https://claimguard.claimguard.svc:8888",
                file->extender_count == 0
                    ? "the file has no extenders: this scheduler does not call claimguard"
                    : "none of the extenders is claimguard: this scheduler does not call it");
}

/* ---- verbs ---- */

static void check_verb(const struct setting *verb, const char *key, const char *served,
                       enum doctor_rule if_missing, const char *without, struct findings *findings)
{
    struct slice change = arena_printf(findings->arena, "%s: %s", key, served);

    if (!verb->is_set)
        finding_add(findings, if_missing, finding_place(verb->at),
                    change.ptr == NULL ? "" : change.ptr, "%s is missing: %s", key, without);
    else if (!slice_equal(verb->text, slice_of(served)))
        finding_add(findings, CG506, finding_place(verb->at), change.ptr == NULL ? "" : change.ptr,
                    "%s: claimguard has no path /%.*s", key, SLICE_ARG(verb->text));
}

static void check_verbs(const struct scheduler_extender *own, struct findings *findings)
{
    check_verb(&own->filter_verb, "filterVerb", "filter", CG503,
               "claimguard is not asked, and every node passes", findings);
    check_verb(&own->bind_verb, "bindVerb", "bind", CG504,
               "kube-scheduler binds by itself, and two pods may get one claim", findings);
    check_verb(&own->preempt_verb, "preemptVerb", "preempt", CG505,
               "kube-scheduler chooses victims without claimguard", findings);
    if (own->prioritize_verb.is_set)
        finding_add(findings, CG506, finding_place(own->prioritize_verb.at), "remove this key",
                    "prioritizeVerb: claimguard gives no scores");
}

/* ---- the address ---- */

/* kube-scheduler: with enableHTTPS and no CA, nothing is verified; without enableHTTPS, an https
 * server is verified by the authorities of the scheduler's own system. */
static void check_https(const struct scheduler_extender *own, struct findings *findings)
{
    if (own->insecure.is_true)
        finding_add(findings, CG508, finding_place(own->insecure.at), "remove this key",
                    "tlsConfig.insecure is true: the server's certificate is not checked");
    else if (!own->ca.is_set && own->enable_https.is_true)
        finding_add(findings, CG508, finding_place(own->enable_https.at),
                    "tlsConfig: {caFile: /etc/kubernetes/claimguard/ca.crt}",
                    "enableHTTPS without a CA in tlsConfig: the server's certificate is not "
                    "checked");
    else if (!own->ca.is_set)
        finding_add(findings, CG509, finding_place(own->url_prefix.at),
                    "tlsConfig: {caFile: /etc/kubernetes/claimguard/ca.crt}",
                    "https without a CA in tlsConfig and without enableHTTPS: only the "
                    "system's own authorities count, and claimguard's is not among them");
    if (own->cert.is_set != own->key.is_set)
        finding_add(findings, CG511, finding_place(own->cert.is_set ? own->cert.at : own->key.at),
                    own->cert.is_set ? "keyFile: /etc/kubernetes/claimguard/client.key"
                                     : "certFile: /etc/kubernetes/claimguard/client.crt",
                    "tlsConfig has %s: kube-scheduler shows no certificate",
                    own->cert.is_set ? "a certificate without its key"
                                     : "a key without its certificate");
}

static void check_url(const struct scheduler_extender *own, struct findings *findings)
{
    if (!own->has_url) {
        finding_add(findings, CG507, finding_place(own->url_prefix.at),
                    "urlPrefix: https://claimguard.claimguard.svc:8888",
                    "urlPrefix \"%.*s\" is no URL of http or https",
                    SLICE_ARG(own->url_prefix.text));
        return;
    }
    if (own->url.path.len != 0)
        finding_add(findings, CG506, finding_place(own->url_prefix.at), "urlPrefix without a path",
                    "urlPrefix ends in %.*s: claimguard's paths have nothing before them",
                    SLICE_ARG(own->url.path));
    if (slice_equal(own->url.scheme, SLICE("https")))
        check_https(own, findings);
    else if (own->enable_https.is_true)
        finding_add(findings, CG509, finding_place(own->url_prefix.at), "urlPrefix: https://...",
                    "enableHTTPS is true, and urlPrefix begins with http: the calls are "
                    "plain text");
}

/* ---- calls ---- */

static void check_timeout(const struct scheduler_extender *own, struct findings *findings)
{
    const struct setting *timeout = &own->http_timeout;
    int64_t ms = 0;

    if (!timeout->is_set || !go_duration_ms(&ms, timeout->text) || ms == 0)
        return; /* 5 s; or the file is refused */
    if (ms < 0 || ms > TIMEOUT_MS_MAX)
        finding_add(findings, CG513, finding_place(timeout->at), "httpTimeout: 5s",
                    "httpTimeout: %.*s: while a call hangs, this scheduler tries no other "
                    "pod",
                    SLICE_ARG(timeout->text));
    else if (ms <= BIND_MS)
        finding_add(findings, CG513, finding_place(timeout->at), "httpTimeout: 5s",
                    "httpTimeout: %.*s: a bind may take four seconds, and is given up "
                    "before it has ended",
                    SLICE_ARG(timeout->text));
}

static void check_calls(const struct scheduler_extender *own, struct findings *findings)
{
    if (own->ignorable.is_true)
        finding_add(findings, CG510, finding_place(own->ignorable.at), "ignorable: false",
                    "ignorable is true: while claimguard does not answer, pods are bound "
                    "without it");
    if (!own->node_cache_capable.is_true)
        finding_add(findings, CG512, finding_place(own->node_cache_capable.at),
                    "nodeCacheCapable: true",
                    "nodeCacheCapable is not true: each call carries whole Node objects");
    check_timeout(own, findings);
}

/* ---- managed resources ---- */

/* Whether an extender has ignoredByScheduler for the resource. NULL: for any. */
static bool is_ignored(const struct scheduler_file *file, const struct slice *resource)
{
    for (size_t i = 0; i < file->extender_count; i++)
        for (size_t j = 0; j < file->extenders[i].managed_count; j++) {
            const struct managed_resource *managed = &file->extenders[i].managed[j];
            if (managed->ignored_by_scheduler.is_true &&
                (resource == NULL || slice_equal(managed->name.text, *resource)))
                return true;
        }
    return false;
}

static void check_managed(const struct scheduler_extender *own, struct findings *findings)
{
    const struct managed_resource *mark = NULL;

    for (size_t i = 0; i < own->managed_count; i++)
        if (slice_equal(own->managed[i].name.text, SLICE(MARK)))
            mark = &own->managed[i];
    if (own->managed_count != 0 && mark == NULL)
        finding_add(findings, CG514, finding_place(own->managed[0].name.at),
                    "- {name: " MARK ", ignoredByScheduler: true}",
                    "managedResources does not have " MARK
                    ": pods with the mark of manifests/marks are bound without claimguard");
    if (mark != NULL && !mark->ignored_by_scheduler.is_true)
        finding_add(findings, CG515, finding_place(mark->ignored_by_scheduler.at),
                    "ignoredByScheduler: true",
                    "a pod that requests 1 of " MARK
                    " instead of 0 (a LimitRange can do that) fits no node");
}

/* The list of the extenders takes the place of the profile's. */
static void check_ignored(const struct scheduler_file *file,
                          const struct scheduler_profile *profile, struct findings *findings)
{
    const struct yaml_node *list = profile->fit_ignored;

    if (list == NULL || list->type != YAML_SEQUENCE || !is_ignored(file, NULL))
        return;
    for (const struct yaml_node *item = list->first; item != NULL; item = item->next)
        if (!is_ignored(file, &item->text)) {
            finding_add(findings, CG516, finding_place(list), "ignoredByScheduler: false",
                        "profile %.*s: ignoredResources has no effect, because an extender "
                        "has ignoredByScheduler: %.*s counts",
                        SLICE_ARG(profile->name), SLICE_ARG(item->text));
            return;
        }
}

/* ---- plugins ---- */

static const struct {
    enum doctor_rule rule;
    const char *plugin, *points[5], *what;
} plugin_rules[] = {
    {CG517,
     "VolumeBinding",
     {"preFilter", "filter", "reserve", "preBind", NULL},
     "unbound claims are not bound to volumes"},
    {CG518, "NodeVolumeLimits", {"preFilter", "filter", NULL}, "no node has an attach limit"},
    {CG519,
     "DefaultPreemption",
     {"postFilter", NULL},
     "this scheduler preempts for no pod, and calls preempt never"},
};

/* The first of the points, which end with NULL, at which the plugin does not work; NULL: at none.
 */
static const char *find_stopped(const struct scheduler_profile *profile, const char *plugin,
                                const char *const *points, const struct yaml_node **because)
{
    for (; *points != NULL; points++)
        if (!scheduler_plugin_works(profile, plugin, *points, because))
            return *points;
    return NULL;
}

static void check_plugins(const struct scheduler_profile *profile, struct findings *findings)
{
    const struct yaml_node *because;

    for (size_t i = 0; i < sizeof plugin_rules / sizeof *plugin_rules; i++) {
        const char *plugin = plugin_rules[i].plugin;
        const char *point = find_stopped(profile, plugin, plugin_rules[i].points, &because);
        if (point != NULL)
            finding_add(findings, plugin_rules[i].rule, finding_place(because), "remove this item",
                        "profile %.*s: %s is disabled (%s): %s", SLICE_ARG(profile->name), plugin,
                        point, plugin_rules[i].what);
    }
}

/* manifests/scheduler/second-scheduler.yaml disables it on purpose. */
static void check_restrictions(const struct scheduler_profile *profile,
                               const struct installation *installation, struct findings *findings)
{
    static const char *const points[] = {"preFilter", "filter", NULL};
    const struct yaml_node *because;
    const struct installed_pod *disk =
        installation == NULL ? NULL : example_pods_find(&installation->disks, profile->name);

    if (find_stopped(profile, "VolumeRestrictions", points, &because) == NULL ||
        (installation != NULL && disk == NULL))
        return;
    if (disk != NULL)
        finding_add(findings, CG520, finding_place(because), "remove this item",
                    "profile %.*s: VolumeRestrictions is disabled, and pod %.*s/%.*s has a "
                    "disk in its own volumes: another pod with that disk may get its node",
                    SLICE_ARG(profile->name), SLICE_ARG(disk->ns), SLICE_ARG(disk->name));
    else
        finding_lower(finding_add(findings, CG520, finding_place(because),
                                  "nothing, if no pod has a disk in its own volumes",
                                  "profile %.*s: VolumeRestrictions is disabled: claimguard names "
                                  "the holders of claims, and nothing compares disks in pods' own "
                                  "volumes",
                                  SLICE_ARG(profile->name)),
                      LEVEL_NOTE);
}

static void check_file(const struct scheduler_file *file, const struct installation *installation,
                       struct findings *findings)
{
    for (size_t i = 0; i < file->profile_count; i++) {
        check_plugins(&file->profiles[i], findings);
        check_restrictions(&file->profiles[i], installation, findings);
        check_ignored(file, &file->profiles[i], findings);
    }
    if (file->own == NULL) {
        report_missing(file, findings);
        return;
    }
    check_verbs(file->own, findings);
    check_url(file->own, findings);
    check_calls(file->own, findings);
    check_managed(file->own, findings);
}

void doctor_check_schedulers(const struct examined *examined, struct findings *findings)
{
    for (size_t i = 0; i < examined->scheduler_count; i++)
        check_file(&examined->schedulers[i], examined->installation, findings);
}

/* ---- claimguard's configuration ---- */

#define TLS_SECTION "tls: {certFile: ..., keyFile: ..., clientCAFile: ...}"
/* A file that was not named may have the section, and then a second one ends the start. */
#define ALL_FILES " (if another file has it: --config with a folder of both)"

struct location config_place(const struct config_file *file, const char *const *keys)
{
    const struct yaml_node *found = file->root;

    for (; *keys != NULL; keys++) {
        const struct yaml_node *child = scheduler_value(found, *keys);
        if (child == NULL)
            break;
        found = child;
    }
    return finding_place(found);
}

static void check_port(const struct config_file *file, struct findings *findings)
{
    const struct config *config = file->config;
    struct slice host;
    uint16_t port;
    bool has_tls = config_has_tls(config, &config->server.tls);

    if (!config_split_address(config->server.listen, &host, &port) ||
        (host.len != 0 && go_is_loopback(host)) || config_asks_clients(config))
        return;
    finding_add(
        findings, CG602,
        has_tls ? CONFIG_PLACE(file, "server", "tls") : CONFIG_PLACE(file, "server", "listen"),
        has_tls ? "clientCAFile: /etc/claimguard-tls/ca.crt" : TLS_SECTION ALL_FILES,
        "server.listen %.*s is open to other hosts, and %s", SLICE_ARG(config->server.listen),
        has_tls ? "clients need no certificate" : "without TLS");
}

static void check_tls(const struct config_file *file, const struct scheduler_extender *own,
                      struct findings *findings)
{
    const struct config *config = file->config;
    bool has_tls = config_has_tls(config, &config->server.tls);
    bool is_https = slice_equal(own->url.scheme, SLICE("https"));

    if (is_https != has_tls)
        finding_add(findings, CG603,
                    is_https ? CONFIG_PLACE(file, "server") : finding_place(own->url_prefix.at),
                    is_https ? "server: {" TLS_SECTION "}" ALL_FILES : "urlPrefix: https://...",
                    "urlPrefix %.*s of %s: %s has %s TLS", SLICE_ARG(own->url_prefix.text),
                    own->at->path, file->path, is_https ? "no" : "a port with");
    else if (is_https && config_asks_clients(config) && !own->cert.is_set && !own->key.is_set)
        finding_add(findings, CG604, finding_place(own->url_prefix.at),
                    "tlsConfig: {certFile: /etc/kubernetes/claimguard/client.crt, "
                    "keyFile: /etc/kubernetes/claimguard/client.key}",
                    "tlsConfig has no certificate, and the port of %s asks for one", file->path);
}

static void check_address(const struct config_file *file, const struct scheduler_extender *own,
                          struct findings *findings)
{
    struct slice host;
    uint16_t port;
    bool is_local = go_is_loopback(own->url.host);

    if (!config_split_address(file->config->server.listen, &host, &port))
        return;
    if (!is_local && host.len != 0 && go_is_loopback(host))
        finding_add(findings, CG605, CONFIG_PLACE(file, "server", "listen"),
                    "urlPrefix: http://127.0.0.1:8888 for a scheduler on the same host; for "
                    "others, server: {listen: \":8888\"} with server.tls",
                    "server.listen is %.*s, and %s calls %.*s",
                    SLICE_ARG(file->config->server.listen), own->at->path,
                    SLICE_ARG(own->url_prefix.text));
    else if (is_local && port != 0 && own->url.port != port)
        finding_add(findings, CG605, finding_place(own->url_prefix.at), "",
                    "urlPrefix has port %u, and server.listen in %s is %.*s", own->url.port,
                    file->path, SLICE_ARG(file->config->server.listen));
}

static void check_lock(const struct examined *examined, struct findings *findings)
{
    const struct scheduler_extender *first = NULL;

    for (const struct scheduler_file *file = NULL;
         (file = examined_next(examined, file)) != NULL;) {
        const struct scheduler_extender *own = file->own;
        if (!own->has_url)
            continue;
        if (first == NULL)
            first = own;
        if (slice_equal(first->url.host, own->url.host) && first->url.port == own->url.port)
            continue;
        finding_add(findings, CG606,
                    CONFIG_PLACE(examined->config, "readWriteOncePod", "claimLock"),
                    "readWriteOncePod: {claimLock: Annotation}", "%s calls %.*s, and %s calls %.*s",
                    first->at->path, SLICE_ARG(first->url_prefix.text), own->at->path,
                    SLICE_ARG(own->url_prefix.text));
        return;
    }
}

void doctor_check_config(const struct examined *examined, struct findings *findings)
{
    const struct config_file *config = examined->config;

    if (config == NULL)
        return;
    check_port(config, findings);
    for (const struct scheduler_file *file = NULL;
         (file = examined_next(examined, file)) != NULL;) {
        if (!file->own->has_url)
            continue; /* another rule says so */
        check_tls(config, file->own, findings);
        check_address(config, file->own, findings);
    }
    if (config->config->read_write_once_pod.claim_lock == CLAIM_LOCK_LOCAL)
        check_lock(examined, findings);
}

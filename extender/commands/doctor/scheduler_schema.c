#include "extender/commands/doctor/doctor.h"

#include <stdio.h>

#include "config/base/text.h"

enum value_type { TEXT, FLAG, NUMBER, DURATION, ANY, SECTION, LIST };

/* A key of a mapping. Tables end with a NULL key. */
struct member {
    const char *key;
    enum value_type type;
    const struct member *members; /* of a section, or of the items of a list */
};

/* ---- the keys ---- */

#define VALUE(type_, key_) \
    { \
        (key_), (type_), NULL \
    }
#define MEMBERS(type_, key_, ...) \
    { \
        (key_), (type_), (const struct member[]) \
        { \
            __VA_ARGS__, VALUE(ANY, NULL) \
        } \
    }
#define PLUGINS(key_)    MEMBERS(LIST, key_, VALUE(TEXT, "name"), VALUE(NUMBER, "weight"))
#define PLUGIN_SET(key_) MEMBERS(SECTION, key_, PLUGINS("enabled"), PLUGINS("disabled"))

static const struct member root[] = {
    VALUE(TEXT, "apiVersion"),
    VALUE(TEXT, "kind"),
    VALUE(NUMBER, "parallelism"),
    MEMBERS(SECTION, "leaderElection", VALUE(FLAG, "leaderElect"), VALUE(DURATION, "leaseDuration"),
            VALUE(DURATION, "renewDeadline"), VALUE(DURATION, "retryPeriod"),
            VALUE(TEXT, "resourceLock"), VALUE(TEXT, "resourceName"),
            VALUE(TEXT, "resourceNamespace")),
    MEMBERS(SECTION, "clientConnection", VALUE(TEXT, "kubeconfig"),
            VALUE(TEXT, "acceptContentTypes"), VALUE(TEXT, "contentType"), VALUE(NUMBER, "qps"),
            VALUE(NUMBER, "burst")),
    VALUE(FLAG, "enableProfiling"),
    VALUE(FLAG, "enableContentionProfiling"),
    VALUE(NUMBER, "percentageOfNodesToScore"),
    VALUE(NUMBER, "podInitialBackoffSeconds"),
    VALUE(NUMBER, "podMaxBackoffSeconds"),
    MEMBERS(
        LIST, "profiles", VALUE(TEXT, "schedulerName"), VALUE(NUMBER, "percentageOfNodesToScore"),
        MEMBERS(SECTION, "plugins", PLUGIN_SET("preEnqueue"), PLUGIN_SET("queueSort"),
                PLUGIN_SET("preFilter"), PLUGIN_SET("filter"), PLUGIN_SET("postFilter"),
                PLUGIN_SET("preScore"), PLUGIN_SET("score"), PLUGIN_SET("reserve"),
                PLUGIN_SET("permit"), PLUGIN_SET("preBind"), PLUGIN_SET("bind"),
                PLUGIN_SET("postBind"), PLUGIN_SET("multiPoint"), PLUGIN_SET("placementGenerate"),
                PLUGIN_SET("placementScore"), PLUGIN_SET("podGroupPostFilter")),
        MEMBERS(LIST, "pluginConfig", VALUE(TEXT, "name"), VALUE(ANY, "args"))),
    MEMBERS(
        LIST, "extenders", VALUE(TEXT, "urlPrefix"), VALUE(TEXT, "filterVerb"),
        VALUE(TEXT, "preemptVerb"), VALUE(TEXT, "prioritizeVerb"), VALUE(NUMBER, "weight"),
        VALUE(TEXT, "bindVerb"), VALUE(FLAG, "enableHTTPS"),
        MEMBERS(SECTION, "tlsConfig", VALUE(FLAG, "insecure"), VALUE(TEXT, "serverName"),
                VALUE(TEXT, "certFile"), VALUE(TEXT, "keyFile"), VALUE(TEXT, "caFile"),
                VALUE(TEXT, "certData"), VALUE(TEXT, "keyData"), VALUE(TEXT, "caData")),
        VALUE(DURATION, "httpTimeout"), VALUE(FLAG, "nodeCacheCapable"),
        MEMBERS(LIST, "managedResources", VALUE(TEXT, "name"), VALUE(FLAG, "ignoredByScheduler")),
        VALUE(FLAG, "ignorable")),
    VALUE(FLAG, "delayCacheUntilActive"),
    VALUE(ANY, NULL),
};

/* ---- keys and types ---- */

static const char *type_text(enum value_type type)
{
    static const char *const texts[] = {
        "a string",  "true or false", "a number", "a duration, such as 5s",
        "any value", "a mapping",     "a list"};

    return texts[type];
}

static bool is_number(const struct yaml_node *node)
{
    double number;

    return node->type == YAML_SCALAR && !node->is_quoted && go_number(&number, node->text);
}

static bool has_type(const struct yaml_node *node, enum value_type type)
{
    bool value;
    int64_t ms;

    switch (type) {
    case TEXT:
        return node->type == YAML_SCALAR && !scheduler_is_boolean(node, &value) && !is_number(node);
    case FLAG: return scheduler_is_boolean(node, &value);
    case NUMBER: return is_number(node);
    case DURATION:
        return node->type == YAML_SCALAR && !is_number(node) && go_duration_ms(&ms, node->text);
    case ANY: return true;
    case SECTION: return node->type == YAML_MAPPING;
    case LIST: return node->type == YAML_SEQUENCE;
    }
    return true;
}

static const struct member *find_member(const struct member *members, struct slice key)
{
    while (members->key != NULL && !slice_equal(key, slice_of(members->key)))
        members++;
    return members->key == NULL ? NULL : members;
}

static void check_value(const struct yaml_node *node, const struct member *member,
                        struct findings *findings);

/* An unknown key is probably one that is written in other cases, or nearly the same. */
static void report_key(const struct yaml_node *node, const struct member *members,
                       struct findings *findings)
{
    struct slice change = SLICE("remove this key");
    char typed[NEAREST_BYTES_MAX + 1];
    struct nearest nearest = {.typed = typed};
    const char *meant = NULL;

    (void)snprintf(typed, sizeof typed, "%.*s", SLICE_ARG(node->key));
    for (; members->key != NULL; members++) {
        nearest_offer(&nearest, members->key);
        meant = slice_equal_fold(node->key, slice_of(members->key)) ? members->key : meant;
    }
    meant = meant == NULL ? nearest.word : meant;
    if (meant != NULL)
        change = arena_printf(findings->arena, "%s: ...", meant);
    finding_add(findings, CG501, finding_place(node), change.ptr == NULL ? "" : change.ptr,
                "kube-scheduler knows no key \"%.*s\" here (keys have exactly one spelling)",
                SLICE_ARG(node->key));
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static void check_mapping(const struct yaml_node *mapping, const struct member *members,
                          struct findings *findings)
{
    for (const struct yaml_node *child = mapping->first; child != NULL; child = child->next) {
        const struct member *member = find_member(members, child->key);
        if (member == NULL)
            report_key(child, members, findings);
        else
            check_value(child, member, findings);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static void check_value(const struct yaml_node *node, const struct member *member,
                        struct findings *findings)
{
    if (yaml_is_null(node))
        return;
    if (!has_type(node, member->type)) {
        finding_add(findings, CG501, finding_place(node), "", "%s: expected %s", member->key,
                    type_text(member->type));
        return;
    }
    if (member->type == SECTION)
        check_mapping(node, member->members, findings);
    if (member->type != LIST)
        return;
    for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
        if (item->type == YAML_MAPPING)
            check_mapping(item, member->members, findings);
        else if (!yaml_is_null(item))
            finding_add(findings, CG501, finding_place(item), "", "%s: expected a list of mappings",
                        member->key);
    }
}

/* ---- values ---- */

static void check_names(const struct scheduler_file *file, struct findings *findings)
{
    for (size_t i = 0; i < file->profile_count; i++) {
        const struct scheduler_profile *a = &file->profiles[i];
        if (a->name.len == 0)
            finding_add(findings, CG501, finding_place(a->at), "schedulerName: NAME",
                        "the profile has no schedulerName: only a single profile may do "
                        "without");
        for (size_t j = 0; j < i && a->name.len != 0; j++)
            if (slice_equal(a->name, file->profiles[j].name)) {
                finding_add(findings, CG501, finding_place(scheduler_value(a->at, "schedulerName")),
                            "schedulerName: ANOTHER-NAME",
                            "another profile has the schedulerName %.*s, too", SLICE_ARG(a->name));
                break;
            }
    }
}

/* Whether an extender, or an item of the same one, manages the resource before that item. */
static bool is_managed_before(const struct scheduler_file *file, size_t extender_index,
                              size_t item_index, struct slice name)
{
    for (size_t i = 0; i <= extender_index; i++) {
        const struct scheduler_extender *other = &file->extenders[i];
        size_t end = i == extender_index ? item_index : other->managed_count;
        for (size_t j = 0; j < end; j++)
            if (slice_equal(other->managed[j].name.text, name))
                return true;
    }
    return false;
}

static void check_managed(const struct scheduler_file *file, size_t index,
                          struct findings *findings)
{
    const struct scheduler_extender *entry = &file->extenders[index];

    for (size_t i = 0; i < entry->managed_count; i++) {
        const struct setting *name = &entry->managed[i].name;
        if (!go_is_extended_resource(name->text))
            finding_add(findings, CG501, finding_place(name->at), "name: claimguard.io/claims",
                        "\"%.*s\" is no name of an extended resource (DOMAIN/NAME)",
                        SLICE_ARG(name->text));
        else if (is_managed_before(file, index, i, name->text))
            finding_add(findings, CG501, finding_place(name->at), "remove this item",
                        "the resource %.*s is managed twice: \"duplicate extender managed "
                        "resource name\"",
                        SLICE_ARG(name->text));
    }
}

static void check_extender(const struct scheduler_extender *entry, struct findings *findings)
{
    double weight = 0;

    (void)go_number(&weight, entry->weight.text);
    if (entry->prioritize_verb.is_set && weight <= 0)
        finding_add(findings, CG501, finding_place(entry->prioritize_verb.at), "weight: 1",
                    "prioritizeVerb needs a positive weight");
    if (entry->ca.is_set && entry->insecure.is_true)
        finding_add(findings, CG501, finding_place(entry->insecure.at), "insecure: false",
                    "tlsConfig has a CA and insecure: true: \"specifying a root certificates "
                    "file with the insecure flag is not allowed\"");
}

static void check_extenders(const struct scheduler_file *file, struct findings *findings)
{
    size_t binders = 0;

    for (size_t i = 0; i < file->extender_count; i++) {
        const struct scheduler_extender *entry = &file->extenders[i];
        check_extender(entry, findings);
        check_managed(file, i, findings);
        binders += entry->bind_verb.is_set;
        if (entry->bind_verb.is_set && binders == 2)
            finding_add(findings, CG501, finding_place(entry->bind_verb.at), "remove this key",
                        "two extenders have a bindVerb: \"only one extender can implement "
                        "bind\"");
    }
}

void doctor_check_schema(const struct examined *examined, struct findings *findings)
{
    for (size_t i = 0; i < examined->scheduler_count; i++) {
        const struct scheduler_file *file = &examined->schedulers[i];
        check_mapping(file->root, root, findings);
        check_names(file, findings);
        check_extenders(file, findings);
    }
}

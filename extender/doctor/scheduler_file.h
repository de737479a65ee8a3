/*
 * scheduler_file: a file of kube-scheduler (kubescheduler.config.k8s.io/v1,
 * KubeSchedulerConfiguration), as far as claimguard depends on it. Each value keeps its place.
 *
 * Threads: any; a struct scheduler_file does not change after it is read.
 */
#ifndef EXTENDER_DOCTOR_SCHEDULER_FILE_H
#define EXTENDER_DOCTOR_SCHEDULER_FILE_H

#include "config/base/arena.h"
#include "config/base/error.h"
#include "config/yaml_node.h"

enum {
    SCHEDULER_PROFILES_MAX = 500,
    SCHEDULER_EXTENDERS_MAX = 100,
    SCHEDULER_MANAGED_MAX = 100, /* of one extender */
};

/* One value. */
struct setting {
    const struct yaml_node *at; /* the value; if it is not set, the mapping that lacks it */
    bool is_set;                /* not missing, null or empty */
    bool is_true;               /* a boolean that is true */
    struct slice text;          /* of a scalar; else empty */
};

struct managed_resource {
    struct setting name, ignored_by_scheduler;
};

struct scheduler_extender {
    const struct yaml_node *at;
    struct setting url_prefix, filter_verb, preempt_verb, prioritize_verb, bind_verb, weight;
    struct setting enable_https, http_timeout, node_cache_capable, ignorable;
    struct setting ca, insecure, cert, key; /* of tlsConfig: the file or the data */
    struct managed_resource *managed;
    size_t managed_count;
};

struct scheduler_profile {
    const struct yaml_node *at;          /* the root, if the file has no profiles */
    struct slice name;                   /* default-scheduler, if the only profile has none */
    const struct yaml_node *plugins;     /* NULL: none are changed */
    const struct yaml_node *fit_ignored; /* ignoredResources of NodeResourcesFit; NULL: not set */
};

struct scheduler_file {
    const char *path;
    const struct yaml_node *root;       /* of the KubeSchedulerConfiguration */
    struct scheduler_profile *profiles; /* at least one */
    size_t profile_count;
    struct scheduler_extender *extenders;
    size_t extender_count;
    const struct scheduler_extender *own; /* claimguard: scheduler_find_own; NULL: there is none */
};

/*
 * Reads a file of one document: a configuration, or what a kube-scheduler answers at /configz,
 * which is the configuration that it runs with. What kube-scheduler would refuse, apart from that,
 * is read as far as possible: scheduler_schema.h finds it. Ownership: all is in the arena, and path
 * is borrowed. Errors: as yaml_load; ERROR_INVALID with FILE:LINE:COL for another apiVersion or
 * kind, and for too many items.
 */
int scheduler_file_read(struct scheduler_file *out, const char *path, struct arena *arena,
                        struct error *err);

/* The same of a text; path: for messages. */
int scheduler_text_read(struct scheduler_file *out, const char *path, struct slice text,
                        struct arena *arena, struct error *err);

/* Whether the file has a profile of that name. */
bool scheduler_has_profile(const struct scheduler_file *file, struct slice name);

/* The value of that key; NULL if the node is no mapping, or has no such key, or it is null. */
const struct yaml_node *scheduler_value(const struct yaml_node *node, const char *key);

/* Whether a plain scalar reads as YAML's null, or as a boolean (of YAML 1.1, as kube-scheduler). */
bool scheduler_is_null(const struct yaml_node *node);
bool scheduler_is_boolean(const struct yaml_node *node, bool *value);

/*
 * Whether a plugin that kube-scheduler enables by default is in effect at an extension point
 * ("filter"), as mergePluginSet and expandMultiPointPlugins of kube-scheduler 1.37 decide. If not,
 * *because is the item of `disabled` that says so.
 */
bool scheduler_plugin_works(const struct scheduler_profile *profile, const char *plugin,
                            const char *point, const struct yaml_node **because);

#endif

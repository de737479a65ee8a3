/*
 * scheduler_file: a file of kube-scheduler (kubescheduler.config.k8s.io/v1,
 * KubeSchedulerConfiguration), as far as claimguard depends on it. Each value keeps its place.
 * Texts in it are read as kube-scheduler, a Go program, reads them. A running kube-scheduler is
 * asked for it: GET /configz of its secure port, or through the API server's proxy of pods, with
 * the credentials of a kubeconfig.
 *
 * The certificate of a server on loopback is not checked, because kube-scheduler makes its own.
 * Elsewhere, the kubeconfig's authority has to have signed it, and there is no plain text:
 * credentials are sent to it.
 *
 * Threads: any; a struct scheduler_file does not change after it is read.
 */
#ifndef EXTENDER_COMMANDS_DOCTOR_SCHEDULER_FILE_H
#define EXTENDER_COMMANDS_DOCTOR_SCHEDULER_FILE_H

#include <stdint.h>

#include "config/yaml_node.h"
#include "extender/commands/inquiry/inquiry.h"

/* ---- texts, as kube-scheduler reads them ---- */

/* Reads a duration as time.ParseDuration: "5s", "1m30s", "1.5s", "-1s", "0". False if it has
 * another form. Less than a millisecond is 0. */
bool go_duration_ms(int64_t *out, struct slice text);

/* Whether a text is a number of YAML, and which. */
bool go_number(double *out, struct slice text);

/* Whether it may be the name of an extended resource: DOMAIN/NAME, and not of kubernetes.io. */
bool go_is_extended_resource(struct slice name);

/* A URL without user and query. */
struct url {
    struct slice scheme, host; /* in small letters; an IPv6 address has no brackets */
    unsigned port;             /* that of the scheme, if the URL has none */
    struct slice path;         /* without slashes at its end; empty: the root */
};

/* Reads http://HOST[:PORT][/PATH] or the same with https. False if it has another form, or without
 * memory. Ownership: the texts are in the arena. */
bool go_url(struct url *out, struct slice text, struct arena *arena);

/* Whether a host is this machine: localhost, 127.0.0.0/8 or ::1. */
bool go_is_loopback(struct slice host);

/* ---- the file ---- */

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
    struct setting server_name;             /* of tlsConfig */
    struct url url;                         /* urlPrefix, if it is one */
    bool has_url;
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
 * Reads a file of one document, a configuration; or, by a URL that begins with http:// or https://,
 * the one with which a kube-scheduler runs, as it answers it at /configz. A file may also have that
 * answer. What kube-scheduler would refuse, apart from that, is read as far as possible:
 * doctor_check_schema finds it. origin: where the kubeconfig is, for a URL.
 * Ownership: all is in the arena, and name is borrowed. Errors: as yaml_load and kubeconfig_load;
 * ERROR_INVALID with FILE:LINE:COL for another apiVersion or kind, and for too many items;
 * ERROR_UNAVAILABLE: there is no such answer.
 */
int scheduler_file_read(struct scheduler_file *out, const char *name,
                        const struct inquiry_origin *origin, struct arena *arena,
                        struct error *err);

/* Whether the file has a profile of that name. */
bool scheduler_has_profile(const struct scheduler_file *file, struct slice name);

/* The value of that key; NULL if the node is no mapping, or has no such key, or it is null. */
const struct yaml_node *scheduler_value(const struct yaml_node *node, const char *key);

/* Whether a plain scalar reads as a boolean (of YAML 1.1, as kube-scheduler). */
bool scheduler_is_boolean(const struct yaml_node *node, bool *value);

/*
 * Whether a plugin that kube-scheduler enables by default is in effect at an extension point
 * ("filter"), as mergePluginSet and expandMultiPointPlugins of kube-scheduler 1.37 decide. If not,
 * *because is the item of `disabled` that says so.
 */
bool scheduler_plugin_works(const struct scheduler_profile *profile, const char *plugin,
                            const char *point, const struct yaml_node **because);

#endif

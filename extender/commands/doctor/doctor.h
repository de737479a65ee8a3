/*
 * doctor: all that `claimguard doctor` has read, and the checks: each adds findings of its rules,
 * and what it could not check. What was not read, or is right, gives no findings.
 *
 * Threads: any; pure, apart from the findings that they add. doctor_check_certificates reads files.
 * Of what only a live cluster shows: one.
 */
#ifndef EXTENDER_COMMANDS_DOCTOR_DOCTOR_H
#define EXTENDER_COMMANDS_DOCTOR_DOCTOR_H

#include <gnutls/x509.h>

#include "config/config.h"
#include "extender/commands/doctor/installation.h"
#include "extender/commands/doctor/scheduler_file.h"

/* ---- certificates ---- */

/* Those of a PEM text, in its order: a bundle of authorities, or a certificate and those between it
 * and its authority. All zero: empty. Ownership: certificate_list_free. */
struct certificate_list {
    gnutls_x509_crt_t *items;
    unsigned count;
};

enum { CERTIFICATE_SOON_S = 14 * 24 * 60 * 60 /* as in ClaimguardCertificateExpires */ };

/* How long a certificate is valid yet. */
enum certificate_life { LIFE_LONG, LIFE_ENDS_SOON, LIFE_ENDED, LIFE_NOT_BEGUN };

/* False if the text has no certificate, or one that cannot be read; the list is then empty. */
bool certificate_list_read(struct certificate_list *out, struct slice pem);
void certificate_list_free(struct certificate_list *list);

/* Of the one that lives longest. The list is not empty. now_s: since 1970. */
enum certificate_life certificate_list_life(const struct certificate_list *list, int64_t now_s);

/* Whether one of the authorities has signed the first certificate of the chain, or one between has.
 * Their times do not matter. */
bool certificate_list_signs(const struct certificate_list *authorities,
                            const struct certificate_list *chain);

/* Whether both have a certificate of one key, as an authority and its renewed self do. */
bool certificate_list_shares_key(const struct certificate_list *a,
                                 const struct certificate_list *b);

/* Whether the first one is for that DNS name or IP address. */
bool certificate_list_is_for(const struct certificate_list *list, struct slice host);

/* Those that the schedulers' files and the configuration name; empty lists: not named, or not on
 * this machine. */
struct certificates_read {
    struct certificate_list server, client_ca, admission; /* of the configuration */
    struct certificate_list authority; /* the CA of the first scheduler that has one */
    struct location authority_place;
    bool is_one_pair; /* server.tls and admission.tls name one file */
};

void certificates_read_free(struct certificates_read *read);

/* ---- all that was read ---- */

/* claimguard's configuration. */
struct config_file {
    const char *path;
    const struct config *config;
    const struct yaml_node *root; /* of the same file or folder; borrowed */
};

struct examined {
    const struct scheduler_file *schedulers;
    size_t scheduler_count;
    const struct config_file *config; /* NULL: not given */
    struct certificates_read *certificates;
    const struct installation *installation; /* NULL: no cluster */
    int64_t now_s;                           /* since 1970 */
};

/* The next file, behind that one, in which an extender is claimguard; after: NULL: the first one.
 * NULL: there is no other. */
const struct scheduler_file *examined_next(const struct examined *examined,
                                           const struct scheduler_file *after);

/* The line of a key of claimguard's configuration; if it does not have the key, that of its
 * section; without that, the beginning. keys: from the root, up to a NULL. */
struct location config_place(const struct config_file *file, const char *const *keys);

#define CONFIG_PLACE(file, ...) config_place(file, (const char *const[]){__VA_ARGS__, NULL})

/*
 * Finds the first extender that is claimguard, and stores it in the file: it manages
 * claimguard.io/claims, its urlPrefix names claimguard, or its port is that of the configuration's
 * server.listen (config NULL: 8888).
 */
void scheduler_find_own(struct scheduler_file *file, const struct config *config);

/* The name of a policy that sets the mark and has a binding; empty: there is none. */
struct slice installation_find_marker(const struct installation *installation);

/* Whether there is no claimguard where one would be: neither a Deployment nor a pod. False if
 * Deployments were not read. */
bool guard_is_absent(const struct installation *installation);

/* ---- webhooks ---- */

enum { WEBHOOK_ENTRIES_MAX = 64 };

/* One that calls claimguard. */
struct webhook_entry {
    const struct webhook *webhook;
    struct location place;
    bool is_binding; /* reviews Bindings; else pods */
    bool fails;      /* failurePolicy Fail */
    bool is_applied; /* of a cluster; else of a manifest */
};

/* All of them. */
struct webhook_entries {
    struct webhook_entry items[WEBHOOK_ENTRIES_MAX];
    size_t count;
};

/* Texts are in the findings' arena. */
void webhook_entries_read(struct webhook_entries *out, const struct installation *installation,
                          struct findings *findings);

/* The best that they do for the Bindings of a namespace, as far as its name decides. */
enum review { REVIEW_NONE, REVIEW_OR_IGNORE, REVIEW_OR_FAIL };
enum review webhook_entries_review(const struct webhook_entries *entries, struct slice ns);

/* ---- the checks ---- */

/* For what kube-scheduler refuses a file, so that it does not start: keys that it does not know,
 * values of another type, and values that it checks (kube-scheduler 1.37), as far as they concern
 * claimguard: CG501. tests/e2e compares it with the real kube-scheduler. */
void doctor_check_schema(const struct examined *examined, struct findings *findings);

/* A file of kube-scheduler: its extender entry, and the plugins that have to stay in effect: CG502
 * to CG520. */
void doctor_check_schedulers(const struct examined *examined, struct findings *findings);

/* claimguard's configuration, also against the schedulers' files: CG602 to CG606. */
void doctor_check_config(const struct examined *examined, struct findings *findings);

/* The certificates that the files name, and whether they fit together: CG609 and CG610. Fills in
 * examined->certificates. Ownership: certificates_read_free. */
void doctor_check_certificates(const struct examined *examined, struct findings *findings);

/* Pods that claimguard is not called for, and whose Bindings nobody reviews: CG808. */
void doctor_check_unreviewed(const struct examined *examined, struct findings *findings);

/* claimguard's own Deployment and pods: how many there are, their memory and version, who schedules
 * them, whether they run, and alike: CG601, CG607, CG608, CG611 to CG615, CG806. */
void doctor_check_guard(const struct examined *examined, struct findings *findings);

/* Marks of pods, and the schedulers that pods name: CG801 to CG805, CG807. */
void doctor_check_pods(const struct examined *examined, struct findings *findings);

/* The admission webhooks that call claimguard: CG701 to CG709. */
void doctor_check_webhooks(const struct examined *examined, struct findings *findings);

/* ---- what only a live cluster shows ---- */

/* Whether claimguard's user may do there what its configuration makes it do (manifests/rbac.yaml):
 * the API server is asked by SubjectAccessReviews; if these are forbidden, by
 * SelfSubjectAccessReviews, about the user of the credentials. */
struct rights {
    const char *user;     /* claimguard's; borrowed */
    bool is_self;         /* the reviews were about the user of the credentials instead */
    struct slice missing; /* "list pods, patch pods/status"; empty: none */
    bool is_fatal;        /* one is missing without which no pod is bound */
};

/* Asks about each right that the configuration needs (out->user has to be set), and what the API
 * server's version lacks: CG902. Ownership: texts are in the findings' arena.
 * Errors: ERROR_UNAVAILABLE. */
int server_ask(struct rights *out, const struct kubeconfig *kubeconfig, const struct config *config,
               struct findings *findings, struct error *err);

/* CG901. */
void rights_check(const struct rights *rights, struct findings *findings);

/* CG903 to CG905: asks claimguard for /readyz, which changes nothing, from this machine, as
 * kube-scheduler would: at the host and port of its urlPrefix, with its tlsConfig.
 * Errors: no memory, or no HTTP client. */
int probe_scheduler(const struct scheduler_file *scheduler, struct findings *findings,
                    struct error *err);

#endif

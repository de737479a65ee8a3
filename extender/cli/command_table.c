#include "extender/cli/commands.h"

#include <string.h>

#define AT(member) offsetof(struct arguments, member)
#define HELP_FLAG  "help", 'h', FLAG_SWITCH, AT(help), NULL, NULL, "show this help"
#define CONFIG_FLAG \
    "config", 'c', FLAG_TEXT, AT(config), "FILE|FOLDER", VALUES_FILES, \
        "configuration file, or a folder of them (without it: the defaults)"
#define SNAPSHOT_FLAG \
    "snapshot", 's', FLAG_TEXT, AT(snapshot), "FILE", VALUES_FILES, \
        "cluster snapshot in JSON or YAML: a file, a directory, or - for standard input"
#define KUBECONFIG_FLAG \
    "kubeconfig", 'k', FLAG_TEXT, AT(kubeconfig), "FILE", VALUES_FILES, \
        "kubeconfig of the cluster (without it: $KUBECONFIG, or the pod's service account)"
#define CLUSTER_KUBECONFIG_FLAG \
    "kubeconfig", 'k', FLAG_TEXT, AT(kubeconfig), "FILE", VALUES_FILES, \
        "kubeconfig of the cluster (without it: $KUBECONFIG, the pod's service account, or " \
        "~/.kube/config)"
#define CONTEXT_FLAG \
    "context", '\0', FLAG_TEXT, AT(context), "NAME", VALUES_CONTEXTS, \
        "context of the kubeconfig, instead of its current one"
#define NAMESPACE_FLAG(help_) "namespace", 'n', FLAG_TEXT, AT(ns), "NAME", VALUES_NAMESPACES, help_
#define ALL_NAMESPACES_FLAG(help_) \
    "all-namespaces", 'A', FLAG_SWITCH, AT(all_namespaces), NULL, NULL, help_
#define ALL_FLAG(help_) "all", 'a', FLAG_SWITCH, AT(all), NULL, NULL, help_
#define OUTPUT_FLAG \
    "output", 'o', FLAG_TEXT, AT(output), "FORMAT", "table json yaml", \
        "table (default), json or yaml"
#define SCHEDULER_CONFIG_FLAG \
    "scheduler-config", '\0', FLAG_NAMES, 0, "FILE|URL", VALUES_FILES, \
        "file of a kube-scheduler (KubeSchedulerConfiguration), or https://HOST:10259/configz; " \
        "may be repeated"
#define FAIL_ON_FLAG \
    "fail-on", '\0', FLAG_TEXT, AT(fail_on), "LEVEL", "error warning note never", \
        "exit with 1 for findings of that level or a higher one: error, warning (default), note " \
        "or never"

static const struct flag serve_flags[] = {
    {CONFIG_FLAG},
    {SNAPSHOT_FLAG},
    {KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {"listen", 'l', FLAG_TEXT, AT(listen), "ADDR:PORT", NULL,
     "address for the scheduler, instead of server.listen; port 0: any free port"},
    {"metrics-listen", 'm', FLAG_TEXT, AT(metrics_listen), "ADDR:PORT", NULL,
     "address for probes and Prometheus, instead of server.metricsListen"},
    {"log-level", '\0', FLAG_TEXT, AT(log_level), "LEVEL", "debug info warn error",
     "debug, info (default), warn or error"},
    {"log-format", '\0', FLAG_TEXT, AT(log_format), "FORMAT", "text json",
     "text (default) or json"},
    {HELP_FLAG},
    {.name = NULL},
};
static const struct flag dry_run_flags[] = {
    {SNAPSHOT_FLAG},
    {"pod", 'p', FLAG_TEXT, AT(pod), "NS/NAME|FILE", VALUES_PODS_OR_FILES,
     "pod to check: a pod of the snapshot, or a manifest (- for standard input)"},
    {"all-pending", 'a', FLAG_SWITCH, AT(all_pending), NULL, NULL,
     "check each pod of the snapshot that is not assigned to a node"},
    {NAMESPACE_FLAG("namespace of --pod NAME; with --all-pending: only its pods (default: all)")},
    {"node", '\0', FLAG_NAMES, 0, "NAME", VALUES_NODES, "check this node only; may be repeated"},
    {"output", 'o', FLAG_TEXT, AT(output), "FORMAT", "table wide json yaml",
     "table (default), wide, json or yaml"},
    {CONFIG_FLAG},
    {HELP_FLAG},
    {.name = NULL},
};
static const struct flag who_flags[] = {
    {SNAPSHOT_FLAG},
    {CLUSTER_KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {NAMESPACE_FLAG("namespace of the claims (default: that of the context)")},
    {ALL_NAMESPACES_FLAG("claims of these names in all namespaces")},
    {ALL_FLAG("what pods wait for of claims, that for which most wait first")},
    {"watch", 'w', FLAG_SWITCH, AT(watch), NULL, NULL,
     "follow a live cluster, and show each change, until interrupted"},
    {CONFIG_FLAG},
    {OUTPUT_FLAG},
    {HELP_FLAG},
    {.name = NULL},
};
static const struct flag why_flags[] = {
    {SNAPSHOT_FLAG},
    {CLUSTER_KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {NAMESPACE_FLAG("namespace of the pods (default: that of the context)")},
    {ALL_NAMESPACES_FLAG("pods of these names in all namespaces")},
    {ALL_FLAG("what pods wait for, that for which most wait first")},
    {CONFIG_FLAG},
    {OUTPUT_FLAG},
    {HELP_FLAG},
    {.name = NULL},
};
static const struct flag snapshot_flags[] = {
    {CLUSTER_KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {NAMESPACE_FLAG("only objects of this namespace, and what has none (default: all)")},
    {"output", 'o', FLAG_TEXT, AT(output), "FILE", VALUES_FILES,
     "file to write; - (default): standard output"},
    {HELP_FLAG},
    {.name = NULL},
};
static const struct flag certificates_flags[] = {
    {"output", 'o', FLAG_TEXT, AT(output), "FOLDER", VALUES_FOLDERS,
     "write PEM files into this folder, and ask no cluster"},
    {CLUSTER_KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {NAMESPACE_FLAG("claimguard's namespace (default: claimguard)")},
    {"host", '\0', FLAG_NAMES, 0, "NAME", NULL,
     "one more DNS name or IP address of the server; may be repeated"},
    {"life", '\0', FLAG_TEXT, AT(life), "DURATION", NULL,
     "of new certificates of server and client (default: 8760h)"},
    {"authority-life", '\0', FLAG_TEXT, AT(authority_life), "DURATION", NULL,
     "of a new certificate of the authority (default: 87600h)"},
    {"renew-before", '\0', FLAG_TEXT, AT(renew_before), "DURATION", NULL,
     "renew what ends within that time (default: a third of its life)"},
    {"dry-run", '\0', FLAG_SWITCH, AT(is_dry_run), NULL, NULL, "only show what would be done"},
    {"format", 'f', FLAG_TEXT, AT(format), "FORMAT", "table json yaml",
     "table (default), json or yaml"},
    {HELP_FLAG},
    {.name = NULL},
};
static const struct flag audit_flags[] = {
    {"config", 'c', FLAG_TEXT, AT(config), "FILE|FOLDER", VALUES_FILES,
     "claimguard's configuration, which some rules read"},
    {SNAPSHOT_FLAG},
    {CLUSTER_KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {NAMESPACE_FLAG(
        "only this namespace, which is also that of objects without one (default: all)")},
    {ALL_NAMESPACES_FLAG("all namespaces")},
    {"output", 'o', FLAG_TEXT, AT(output), "FORMAT", "table json yaml sarif junit",
     "table (default), json, yaml, sarif or junit"},
    {FAIL_ON_FLAG},
    {"disable", '\0', FLAG_NAMES, 0, "CODE,...", VALUES_AUDIT_CODES,
     "without these rules; may be repeated"},
    {"exclude", '\0', FLAG_TEXT, AT(exclude), "PATTERN,...", NULL,
     "leave out files and folders of the folders: their names, or paths from there; * matches "
     "any characters"},
    {"baseline", '\0', FLAG_TEXT, AT(baseline), "FILE", VALUES_FILES,
     "known findings, which do not count"},
    {"write-baseline", '\0', FLAG_TEXT, AT(write_baseline), "FILE", VALUES_FILES,
     "write the findings to this file, as the baseline of later calls"},
    {"settings", '\0', FLAG_TEXT, AT(settings), "FILE", VALUES_FILES,
     "settings of the repository (without it: .claimguard-audit.yaml in the folder or above)"},
    {"schedulers", '\0', FLAG_TEXT, AT(schedulers), "NAME,...", NULL,
     "other schedulers that call claimguard, for CG401"},
    {"explain", '\0', FLAG_TEXT, AT(explain), "CODE", VALUES_AUDIT_RULES,
     "print the page of this rule, or of all rules, and exit"},
    {HELP_FLAG},
    {.name = NULL},
};
static const struct flag doctor_flags[] = {
    {SCHEDULER_CONFIG_FLAG},
    {"config", 'c', FLAG_TEXT, AT(config), "FILE|FOLDER", VALUES_FILES,
     "claimguard's configuration: a file, or a folder of them"},
    {SNAPSHOT_FLAG},
    {CLUSTER_KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {NAMESPACE_FLAG("claimguard's namespace (default: claimguard)")},
    {"output", 'o', FLAG_TEXT, AT(output), "FORMAT", "table json yaml sarif junit",
     "table (default), json, yaml, sarif or junit"},
    {"probe", '\0', FLAG_SWITCH, AT(probe), NULL, NULL,
     "also call claimguard at urlPrefix from this machine, with the scheduler's certificates"},
    {FAIL_ON_FLAG},
    {"explain", '\0', FLAG_TEXT, AT(explain), "CODE", VALUES_DOCTOR_RULES,
     "print the page of a rule, or of \"all\", and check nothing"},
    {HELP_FLAG},
    {.name = NULL},
};
static const struct flag verify_flags[] = {
    {CLUSTER_KUBECONFIG_FLAG},
    {CONTEXT_FLAG},
    {NAMESPACE_FLAG("claimguard's namespace (default: claimguard)")},
    {"scheduler", '\0', FLAG_TEXT, AT(scheduler), "NAME", NULL,
     "also try the scheduler of this schedulerName, which is to call claimguard"},
    {"without-claimguard", '\0', FLAG_SWITCH, AT(without_claimguard), NULL, NULL,
     "also ask what the webhooks say while claimguard does not answer (failurePolicy)"},
    {SCHEDULER_CONFIG_FLAG},
    {"config", 'c', FLAG_TEXT, AT(config), "FILE|FOLDER", VALUES_FILES,
     "claimguard's configuration (default: that of the cluster)"},
    {"timeout", '\0', FLAG_TEXT, AT(timeout), "DURATION", NULL,
     "give up after that time, from 10s to 1h (default: 3m)"},
    {OUTPUT_FLAG},
    {"fail-on", '\0', FLAG_TEXT, AT(fail_on), "LEVEL", "error warning note never",
     "exit with 1 also for findings of that level or a higher one (default: never)"},
    {HELP_FLAG},
    {.name = NULL},
};
static const struct flag version_flags[] = {
    {OUTPUT_FLAG},
    {HELP_FLAG},
    {.name = NULL},
};
static const struct flag plain_flags[] = {{HELP_FLAG}, {.name = NULL}};

const struct command command_table[] = {
    {"serve", "[--kubeconfig FILE | --snapshot FILE] [--config FILE|FOLDER] ...",
     "answer the extender calls of kube-scheduler",
     "Answers POST /filter, /prefilter, /preempt and /bind, and GET /livez, /healthz, /readyz,\n"
     "/metrics, /statusz, /debug/cache and /debug/snapshot; and, with admission.listen in the\n"
     "configuration, POST /admit/binding and /admit/pod on a port of its own. The objects come\n"
     "from a live cluster, by list and watch, or from a snapshot. With a snapshot, a bind\n"
     "changes only claimguard's memory. SIGHUP or a change of the configuration file reloads\n"
     "it. After SIGTERM, claimguard answers the requests that it has accepted, for five seconds\n"
     "at most, and exits.\n",
     serve_flags, NULL, NULL, command_serve},
    {"snapshot", "[--kubeconfig FILE] [--context NAME] [-n NAME] [-o FILE]",
     "write a snapshot of a live cluster to a file, for other commands",
     "Lists the objects that claimguard's commands need, and writes only the fields that\n"
     "they read: no environment variables, no secrets; of annotations, claimguard's own and the\n"
     "node that a scheduler has chosen for a volume. What the credentials may not list is left\n"
     "out with a message, except pods and claims.\n",
     snapshot_flags, NULL, NULL, command_snapshot},
    {"dry-run", "--snapshot FILE (--pod NS/NAME|FILE | --all-pending) [--node NAME]... ...",
     "check pods of a cluster snapshot",
     "Shows whether claimguard would let the pod pass, which pods hold its claims, and whether\n"
     "preemption would help. \"claimguard snapshot\" writes a snapshot; GET /debug/snapshot of a\n"
     "server answers with one, and its reservations; so does \"kubectl get -A -o json\" with the\n"
     "kinds pods, pvc, pv, nodes, pdb, storageclasses, csidrivers, csinodes,\n"
     "volumeattributesclasses, priorityclasses and volumeattachments (the README has the line).\n"
     "Exit status: 0: schedulable; 1: not schedulable (with --all-pending: not all pods are);\n"
     "2: no verdict, because of bad usage, bad input or another failure.\n",
     dry_run_flags, NULL, NULL, command_dry_run},
    {"audit", "[FILE|FOLDER... | --snapshot FILE | --kubeconfig FILE] [-o FORMAT] ...",
     "find claims and workloads that wait, or will wait, for ever",
     "Reads manifests, charts, a snapshot, or a live cluster, and applies the rules that\n"
     "--explain all prints. In a repository, before a rollout:\n"
     "    helm template charts/web -f prod.yaml | claimguard audit -\n"
     "    claimguard audit deploy/ -o sarif --fail-on never > claimguard.sarif\n"
     "An object with the comment \"# claimguard:ignore CG102 reason\", or the annotation\n"
     "claimguard.io/audit-ignore: \"CG102: reason\", is not reported for that rule. Folders with\n"
     "Chart.yaml or kustomization.yaml are rendered by helm, kustomize or kubectl, which may\n"
     "fetch what these name. What the input does not have is never reported as wrong.\n"
     "Without files, the cluster is that of --kubeconfig, of $KUBECONFIG, of the pod's service\n"
     "account, or of ~/.kube/config.\n"
     "Exit status: 0: nothing above a note; 1: warnings or errors; 2: bad usage, or something was\n"
     "not read.\n",
     audit_flags, "[FILE|FOLDER...]", VALUES_FILES, command_audit},
    {"who", "(CLAIM... | --all) [--snapshot FILE | --watch] [-n NAME | -A] [-o FORMAT] ...",
     "show who holds a claim, who waits for it, and what would free it",
     "Shows which pods hold the claims and which wait for them, where their volumes are attached,\n"
     "finalizers, budgets and locks, and what frees each claim. A claim is NAME, NAMESPACE/NAME,\n"
     "or pvc/NAME. With --all, it lists what pods wait for, of all namespaces unless\n"
     "--namespace is given. With --watch, it shows each change: on a terminal, the present state;\n"
     "otherwise a line for each claim that has changed, or with -o json an object on a line.\n"
     "Exit status: 0: each claim was found; 2: one was not, or another failure.\n",
     who_flags, "[CLAIM...]", VALUES_CLAIMS, command_who},
    {"why", "(POD... | --all) [--snapshot FILE] [-n NAME | -A] [-o FORMAT] ...",
     "show why a pod waits, as far as its claims are the cause, and what would help",
     "Shows each cause that has to do with the pod's claims and volumes, in the order in which\n"
     "one should look: claims that are missing, unbound, lost or in use; where their volumes can\n"
     "be used; drivers, attach limits and attachments. A pod is NAME, NAMESPACE/NAME, or\n"
     "pod/NAME. deployment/NAME, statefulset/NAME, job/NAME, pvc/NAME, node/NAME and so on are\n"
     "the pods of that object that wait. With --all, it lists what pods wait for, of all\n"
     "namespaces unless --namespace is given.\n"
     "Exit status: 0: each object was found; 2: one was not, or another failure.\n",
     why_flags, "[POD...]", VALUES_PODS, command_why},
    {"certificates", "[-o FOLDER | --kubeconfig FILE] [--host NAME]... [--dry-run] ...",
     "make and renew the certificates for TLS",
     "Makes an authority, and a certificate of it for claimguard and for a scheduler. A later\n"
     "call renews what ends soon, or lacks a name; the authority keeps its key, and is never\n"
     "replaced. With --output, they are files: ca.crt, ca.key, tls.crt, tls.key (of claimguard),\n"
     "client.crt, client.key. Otherwise they are the Secrets claimguard-ca, claimguard-tls and\n"
     "claimguard-client, and a ValidatingWebhookConfiguration claimguard gets its caBundle.\n",
     certificates_flags, NULL, NULL, command_certificates},
    {"doctor", "[--scheduler-config FILE|URL]... [--config FILE|FOLDER] ...",
     "find what keeps claimguard from working",
     "Reads the files of kube-schedulers, claimguard's configuration, and the cluster. Says what\n"
     "is wrong in them and between them, what breaks, and the line to change; and what was not\n"
     "checked. The cluster is a snapshot (docs/doctor.md says of what), or that of --kubeconfig;\n"
     "if no file is named, that of $KUBECONFIG, of the pod's service account, or of\n"
     "~/.kube/config.\n"
     "Exit status: 0: nothing above a note (--fail-on); 1: warnings or errors; 2: bad usage or\n"
     "input.\n",
     doctor_flags, NULL, NULL, command_doctor},
    {"verify", "[--kubeconfig FILE] [--scheduler NAME] [--without-claimguard] ...",
     "prove in a cluster that no claim gets two pods",
     "Binds two pods to one ReadWriteOncePod claim, in each way that the cluster has, and looks\n"
     "whether the second one is stopped. Says which rows of docs/guarantees.md hold; and if one\n"
     "does not, what the API server says of the webhook, and what doctor finds.\n"
     "It makes a namespace claimguard-verify-..., and removes it, also when it is interrupted. It\n"
     "runs no container and pulls no image. What a killed run has left, the next one removes.\n"
     "Exit status: 0: each row holds; 1: one does not; 2: one could not be tried.\n",
     verify_flags, NULL, NULL, command_verify},
    {"check-config", "FILE|FOLDER", "check a configuration, and print it with its defaults",
     "Exit status: 0: it is good; 2: it has an error, which is printed as FILE:LINE:COL.\n",
     plain_flags, "FILE|FOLDER", VALUES_FILES, command_check_config},
    {"completion", "bash|zsh|fish", "print a script with which a shell completes claimguard",
     "Completes commands, options and their values, and the names that a snapshot or a kubeconfig\n"
     "has. Load it when the shell starts, for bash in ~/.bashrc:\n"
     "    source <(claimguard completion bash)\n"
     "for zsh in ~/.zshrc, behind compinit:\n"
     "    source <(claimguard completion zsh)\n"
     "for fish, in a file that it reads by itself:\n"
     "    claimguard completion fish > ~/.config/fish/completions/claimguard.fish\n",
     plain_flags, "bash|zsh|fish", "bash zsh fish", command_completion},
    {"man", "[COMMAND]", "print a man page",
     "The page of claimguard, or of the command, in mdoc, the language of man pages:\n"
     "    claimguard man dry-run | man -l -\n",
     plain_flags, "[COMMAND]", VALUES_COMMANDS, command_man},
    {"version", "[-o FORMAT]", "print the version",
     "Prints the version, the git revision, and which version of the configuration file it reads\n"
     "(-o json, -o yaml).\n",
     version_flags, NULL, NULL, command_version},
    {.name = NULL},
};

const struct command *command_find(const char *name)
{
    for (const struct command *command = command_table; command->name != NULL; command++)
        if (strcmp(name, command->name) == 0)
            return command;
    return NULL;
}

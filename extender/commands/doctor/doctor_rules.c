#include "extender/commands/doctor/doctor_rules.h"

#include "config/yaml_node.h"
#include "extender/report/advice_rows.h"

#define RULE(code_, level_, title_, why_, mend_) \
    [code_] = {.code = #code_, .level = (level_), .title = (title_), .why = (why_), .mend = (mend_)}

const struct rule doctor_rules[DOCTOR_RULE_COUNT + 1] = {
    /* 5xx: a file of kube-scheduler */
    RULE(CG501, LEVEL_ERROR, "kube-scheduler refuses the file",
         "kube-scheduler (1.37) does not start with it: an unknown key, a value of another\n"
         "type, two profiles of one name, a resource that is managed twice, two extenders with\n"
         "a `bindVerb`. Older versions may refuse more keys.",
         "what the finding says. `kube-scheduler --config FILE --write-config-to /dev/null`\n"
         "tries the file."),
    RULE(CG502, LEVEL_ERROR, "no extender is claimguard",
         "This scheduler never calls claimguard, so its pods may get claims that other pods\n"
         "have, unless admission reviews their Bindings. An extender counts as claimguard if\n"
         "`urlPrefix` has the word claimguard or the port of `server.listen`, or if it manages\n"
         "`claimguard.io/claims`.",
         "add the entry of `extenders:` in `manifests/tls/default-scheduler.yaml`."),
    RULE(CG503, LEVEL_ERROR, "the extender has no filterVerb",
         "Pods are chosen for nodes without a check of their claims.", "`filterVerb: filter`"),
    RULE(CG504, LEVEL_ERROR, "the extender has no bindVerb",
         "kube-scheduler binds the pods itself. Two schedulers then give one claim to two\n"
         "pods, and no mount is deferred.",
         "`bindVerb: bind`"),
    RULE(CG505, LEVEL_WARNING, "the extender has no preemptVerb",
         "kube-scheduler preempts without asking who holds the claims: it may evict pods in\n"
         "vain.",
         "`preemptVerb: preempt`"),
    RULE(CG506, LEVEL_ERROR, "the extender calls a path that claimguard does not have",
         "claimguard answers with 404. For `filter`, `bind` and `preempt`, the pod's attempt\n"
         "fails; kube-scheduler ignores a failed `prioritize`.",
         "`filterVerb: filter`, `preemptVerb: preempt`, `bindVerb: bind`, no `prioritizeVerb`,\n"
         "and no path in `urlPrefix`."),
    RULE(CG507, LEVEL_ERROR, "urlPrefix is not a URL",
         "Each call fails. With `ignorable: false`, no pod is bound.",
         "`urlPrefix: https://HOST:8888`"),
    RULE(CG508, LEVEL_ERROR, "the server's certificate is not checked",
         "With `enableHTTPS` and no CA, or with `insecure`, kube-scheduler accepts any\n"
         "certificate. Anyone between the two can read the pods and answer for claimguard.",
         "`tlsConfig: {caFile: /etc/kubernetes/claimguard/ca.crt}`"),
    RULE(CG509, LEVEL_ERROR, "https and enableHTTPS do not fit together",
         "The scheme in `urlPrefix` decides whether calls are encrypted, not `enableHTTPS`.\n"
         "With `https` alone, the certificate is checked with the authorities of the\n"
         "scheduler's system, which do not include claimguard's.",
         "`https` in `urlPrefix`, `enableHTTPS: true`, and a CA in `tlsConfig`; or `http`, and\n"
         "neither of the others."),
    RULE(CG510, LEVEL_ERROR, "the extender is ignorable",
         "While claimguard is away or answers with an error, pods are bound without it, and a\n"
         "claim may get two pods.",
         "`ignorable: false`"),
    RULE(CG511, LEVEL_ERROR, "tlsConfig has half a client certificate",
         "kube-scheduler needs the certificate and its key to show one. Without it,\n"
         "claimguard's `clientCAFile` refuses each call.",
         "both `certFile` and `keyFile`."),
    RULE(CG512, LEVEL_WARNING, "nodeCacheCapable is not true",
         "kube-scheduler sends whole Node objects with each call: with 5,000 nodes, it was\n"
         "five times slower. It also scores nodes as if no pod ran on them\n"
         "(kubernetes#141781).",
         "`nodeCacheCapable: true`"),
    RULE(CG513, LEVEL_WARNING, "httpTimeout is too long or too short",
         "A call that hangs delays all pods for that long (a negative time: for ever). A\n"
         "`bind` may take four seconds: a shorter time gives up binds that succeed.",
         "`httpTimeout: 5s`, which is also the default."),
    RULE(CG514, LEVEL_WARNING, "managedResources does not have claimguard.io/claims",
         "kube-scheduler calls claimguard only for pods that request one of\n"
         "`managedResources`. The component `marks` sets `claimguard.io/claims`: these pods\n"
         "are bound without claimguard. This is right only if something else sets the resource\n"
         "that is named.",
         "`managedResources: [{name: claimguard.io/claims, ignoredByScheduler: true}]`"),
    RULE(CG515, LEVEL_NOTE, "the mark counts as a resource of nodes",
         "A mark has the quantity 0, which fits every node. If a LimitRange (CG803) or a user\n"
         "sets 1, the pod fits no node.",
         "`ignoredByScheduler: true`"),
    RULE(CG516, LEVEL_WARNING, "ignoredResources of NodeResourcesFit is replaced",
         "If any extender has a resource with `ignoredByScheduler: true`, kube-scheduler\n"
         "replaces `ignoredResources` of each profile by the extenders' resources. Those that\n"
         "only the profile names count again, and their pods may fit no node.",
         "name the resource under `managedResources` of its extender with `ignoredByScheduler:\n"
         "true`, or set `ignoredByScheduler: false` for `claimguard.io/claims`, whose quantity\n"
         "is 0."),
    RULE(CG517, LEVEL_ERROR, "the plugin VolumeBinding is disabled",
         "It binds claims that wait for their first pod, and rejects nodes that a volume does\n"
         "not reach. Without it, pods are bound with claims that have no volume.",
         "remove VolumeBinding (or `*`) from `disabled`."),
    RULE(CG518, LEVEL_WARNING, "the plugin NodeVolumeLimits is disabled",
         "Nobody counts the volumes of a node, not even claimguard. Pods on nodes that can\n"
         "attach no more wait in ContainerCreating.",
         "remove NodeVolumeLimits (or `*`) from `disabled`."),
    RULE(CG519, LEVEL_WARNING, "the plugin DefaultPreemption is disabled",
         "kube-scheduler never preempts, nor calls `preempt`. claimguard still evicts holders\n"
         "of claims (`readWriteOncePod.preemption`); nothing else is freed.",
         "remove DefaultPreemption (or `*`) from `disabled`."),
    RULE(CG520, LEVEL_WARNING, "the plugin VolumeRestrictions is disabled",
         "`second-scheduler.yaml` disables it, so that the pod's event names the holder ([its\n"
         "price](../manifests/README.md#volumerestrictions)). Nothing else keeps two pods that\n"
         "name one GCE disk, EBS volume, iSCSI target or RBD image in their own `volumes` off\n"
         "one node. Without a cluster, this is a note; with one, it is reported only if a pod\n"
         "of that scheduler has such a volume.",
         "nothing, if no pod has such a volume; else remove VolumeRestrictions (or `*`) from\n"
         "`disabled`."),
    /* 6xx: claimguard's own configuration, and what it has to agree with */
    RULE(CG601, LEVEL_ERROR, "several replicas with claimLock: Local",
         "Each replica, or static pod, knows only its own reservations. If `filter` reaches\n"
         "one and `bind` another, a claim may get two pods.",
         "`readWriteOncePod: {claimLock: Annotation}`, in force before there is a second\n"
         "replica; or `replicas: 1`."),
    RULE(CG602, LEVEL_WARNING, "anyone may call the scheduler's port",
         "`server.listen` is not on loopback, and callers need no certificate. Anyone who\n"
         "reaches the port can have pods bound, and read which pod has a claim.",
         "`server.tls` with `clientCAFile` (manifests/README.md#tls)."),
    RULE(CG603, LEVEL_ERROR, "only one side uses TLS",
         "The scheduler calls with http and claimguard expects TLS, or the reverse: each call\n"
         "fails.",
         "`server.tls` in claimguard's configuration and `https` in `urlPrefix`, or neither."),
    RULE(CG604, LEVEL_ERROR, "the scheduler shows no client certificate",
         "claimguard's `server.tls` has a `clientCAFile`, so each call without a certificate\n"
         "fails.",
         "`certFile` and `keyFile` in the extender's `tlsConfig`."),
    RULE(CG605, LEVEL_ERROR, "claimguard does not listen where the scheduler calls",
         "`server.listen` is on loopback and `urlPrefix` is not, or the ports differ: each\n"
         "call fails with `connection refused`.",
         "`urlPrefix: http://127.0.0.1:8888`, with the port of `server.listen`, for a\n"
         "scheduler on the same host. For calls from elsewhere, `server: {listen: \":8888\"}`\n"
         "together with `server.tls`: without it, anyone who reaches the port can have pods\n"
         "bound."),
    RULE(CG606, LEVEL_WARNING, "schedulers call several claimguards with claimLock: Local",
         "The files name different addresses. Unless these are names of one claimguard, each\n"
         "does not know the other's reservations.",
         "`readWriteOncePod: {claimLock: Annotation}`, or one address."),
    RULE(CG607, LEVEL_WARNING, "the memory limit is too small",
         "The kernel ends a container that takes more, and no pod is bound until it runs\n"
         "again. claimguard takes 20 MiB, 450 bytes for each pod, twice `maxRequestBytes` (at\n"
         "least 64 MiB) for all calls together, and 32 MiB if `admission.listen` is set.",
         "`limits: {memory: ...}` of the container, or a smaller `server.maxRequestBytes`."),
    RULE(CG608, LEVEL_NOTE, "claimguard has another version than this doctor",
         "What doctor says of the configuration and the rights is true of its own version. It\n"
         "compares tags of images that are versions.",
         "call the doctor of the image that runs."),
    RULE(CG609, LEVEL_ERROR, "a certificate cannot be used, or not for long",
         "It has ended, begins later, or is no PEM text: calls fail. If it ends within two\n"
         "weeks, this is a warning. Only files on this machine are read, and data in the\n"
         "files.",
         "`claimguard certificates` renews those that it has made. Restart kube-scheduler\n"
         "after a change."),
    RULE(CG610, LEVEL_ERROR, "a certificate is not one that the other side believes",
         "The CA in `tlsConfig` has not signed claimguard's certificate; or that is for other\n"
         "names than the host in `urlPrefix` (or `tlsConfig.serverName`); or the authority in\n"
         "`clientCAFile` has not signed the scheduler's. Each call fails. Only files on this\n"
         "machine are compared; `--probe` (CG904) needs none of claimguard's.",
         "`claimguard certificates` makes all of them; `--host NAME` adds a name."),
    RULE(CG611, LEVEL_ERROR, "claimguard is not available",
         "No replica of the Deployment is available: its schedulers bind no pod, and webhooks\n"
         "with `failurePolicy: Fail` refuse what they review. If only some are available, this\n"
         "is a warning.",
         "what CG612 says of its pods; without any pod, what\n"
         "`" ADVICE_TEXT_STATE "` says."),
    RULE(CG612, LEVEL_ERROR, "a pod of claimguard does not run",
         "It waits for a node, an image or a volume, or ends at once. If it is only not ready,\n"
         "this is a warning. The message is the scheduler's or the kubelet's. A missing Secret\n"
         "shows in the Events of its volumes: doctor reads no Secrets.",
         "what the message names."),
    RULE(CG613, LEVEL_ERROR, "an object of the installation is missing",
         "Without the ConfigMaps that they mount, the Deployment's pods cannot start. Without\n"
         "the Service, nobody reaches claimguard by its name.",
         "`" ADVICE_TEXT_APPLY "` again."),
    RULE(CG614, LEVEL_WARNING, "claimguards of several versions run",
         "A pod's image is not that of the Deployment, or of the other static pods: an update\n"
         "has not ended, or is stuck. Both versions keep claims to one pod. What is new in the\n"
         "later one holds only in its own answers.",
         "wait for the update; if it does not end, CG612 says why."),
    RULE(CG615, LEVEL_WARNING, "claimguards have two configurations",
         "The ConfigMap `claimguard-agreement` has both kinds of `claimLock`. Each is in force\n"
         "in turn, and meanwhile the claimguards of the other kind bind no pod with claims.\n"
         "While `claimLock` changes, this lasts for about two minutes.",
         "`readWriteOncePod: {claimLock: Annotation}` for each of them."),
    /* 7xx: the webhooks that call claimguard */
    RULE(CG701, LEVEL_ERROR, "a webhook has no caBundle",
         "The API server cannot call claimguard. With `failurePolicy: Ignore`, Bindings are\n"
         "applied without a review; with `Fail`, no pod is bound. In manifests, it may be\n"
         "missing: what runs in the cluster writes it.",
         "`claimguard certificates` writes it, each time that webhooks are applied."),
    RULE(CG702, LEVEL_ERROR, "a webhook's caBundle has no valid certificate",
         "It is no PEM text, or all of its certificates have ended; the effect is that of\n"
         "CG701. If the last one ends within two weeks, this is a warning.",
         "`claimguard certificates` writes the authority's certificate again."),
    RULE(CG703, LEVEL_ERROR, "a webhook's Service has no ready endpoint",
         "No claimguard is ready, or the Service is missing or selects other pods. The effect\n"
         "is that of CG701.",
         "look at claimguard's pods and their `/readyz?verbose`; apply\n"
         "`manifests/service.yaml` again."),
    RULE(CG704, LEVEL_NOTE, "Bindings are applied while claimguard does not answer",
         "The webhook's `failurePolicy` is `Ignore`, as the component `failure-policy-ignore`\n"
         "and the profile `observe` set it: a Binding that cannot be reviewed is applied, and\n"
         "two pods may get one claim. The metric `claimguard_exclusive_claim_violations`\n"
         "reports this.",
         "remove that component."),
    RULE(CG705, LEVEL_WARNING, "a namespace that is not reviewed has exclusive claims",
         "The `namespaceSelector` of each webhook for Bindings leaves the namespace out. Its\n"
         "ReadWriteOncePod claims are only safe from schedulers with the extender.",
         "remove the namespace from the selector, or use only schedulers with the extender\n"
         "there."),
    RULE(CG706, LEVEL_ERROR, "a path for Bindings is not reviewed",
         "The API server takes a Binding at `pods/binding` and, from older clients, at\n"
         "`bindings`. The webhook lets one of them pass.",
         "`resources: [pods/binding, bindings]`"),
    RULE(CG707, LEVEL_ERROR, "webhooks call claimguard, which serves no admission",
         "`admission.listen` is not set, so each review fails. The effect is that of CG701.",
         "`manifests/claimguard.yaml` has it."),
    RULE(CG708, LEVEL_ERROR, "a webhook's caBundle is of another authority",
         "The API server does not believe claimguard's certificate; the effect is that of\n"
         "CG701. If `admission.tls` is not on this machine, and is the pair of `server.tls`,\n"
         "the bundle is compared with the scheduler's CA. Without a common key, one of the two\n"
         "is wrong: this is a warning.",
         "`claimguard certificates` writes the authority's certificate again."),
    RULE(CG709, LEVEL_NOTE, "a namespace that never waits for claimguard has exclusive claims",
         "A webhook says `failurePolicy: Fail`, but not for this namespace: `kube-system`,\n"
         "`claimguard` and some others are left out, so that the cluster can heal. While\n"
         "claimguard does not answer, two pods of this namespace may get one of its claims.",
         "keep pods with such claims in another namespace; or, if none of its pods is needed\n"
         "for a node or claimguard to start, take the namespace out of the list in\n"
         "`manifests/webhooks.yaml`."),
    /* 8xx: marks, pods and their schedulers */
    RULE(CG801, LEVEL_ERROR, "nothing in the cluster sets the mark",
         "The scheduler calls claimguard only for pods that request one of its\n"
         "`managedResources`, and no MutatingAdmissionPolicy with a binding sets\n"
         "`claimguard.io/claims`. Pods with claims are bound without claimguard, unless a\n"
         "webhook of your own sets it.",
         "the component `marks`, or remove `managedResources` until it is there."),
    RULE(CG802, LEVEL_NOTE, "pods are marked, and claimguard is called for all",
         "With the component `marks`, kube-scheduler need not call claimguard for pods without\n"
         "claims. Without `managedResources`, it calls for each pod.",
         "`managedResources: [{name: claimguard.io/claims, ignoredByScheduler: true}]`"),
    RULE(CG803, LEVEL_ERROR, "a LimitRange has the mark",
         "With `min` or `maxLimitRequestRatio`, the API server refuses marked pods: a mark has\n"
         "the quantity 0. With `default`, `defaultRequest` or `max`, each container gets the\n"
         "resource, also of pods without claims; with a quantity of 1, they fit no node unless\n"
         "the scheduler has `ignoredByScheduler: true`. This is a warning.",
         "remove `claimguard.io/claims` from the LimitRange."),
    RULE(CG804, LEVEL_WARNING, "pending pods with claims have no mark",
         "The scheduler has `managedResources`, so it binds unmarked pods without claimguard.\n"
         "They were created before the policy, or while it was not in force. A pod cannot be\n"
         "marked later.",
         "delete them, so that their controllers create them again."),
    RULE(CG805, LEVEL_WARNING, "a scheduler without claimguard has pods with exclusive claims",
         "No file has a profile of that name and calls claimguard. What that scheduler binds\n"
         "is not checked, unless admission reviews its Bindings.",
         "name its file with `--scheduler-config`, if it has one; else call claimguard from\n"
         "it, or apply `manifests/webhooks.yaml`."),
    RULE(CG806, LEVEL_ERROR, "claimguard's own pods need claimguard",
         "The Deployment's pods are for a scheduler that binds no pod without claimguard. Once\n"
         "none runs, none is ever bound.",
         "the profile `default-scheduler` with `managedResources`, or a static pod, or another\n"
         "`schedulerName` ([all\n"
         "ways](../manifests/README.md#use-the-clusters-own-scheduler))."),
    RULE(CG807, LEVEL_ERROR, "the scheduler cannot resolve the Service's name",
         "kube-scheduler's pod is on the host's network with the host's `dnsPolicy`, which\n"
         "knows no names of Services: each call fails.",
         "the Service's ClusterIP in `urlPrefix`, and its name as `tlsConfig.serverName`."),
    RULE(CG808, LEVEL_ERROR, "pods are marked, and nobody reviews the Bindings of the others",
         "With `managedResources`, a scheduler does not call claimguard for an unmarked pod.\n"
         "If a mutating webhook adds a pod's claim after the policy has run, that pod has no\n"
         "mark, and may be bound to another pod's claim, unless its Binding is reviewed. If no\n"
         "file has `managedResources`, this is a warning.",
         "apply `manifests/webhooks.yaml`, and until then no `managedResources`."),
    /* 9xx: what only a live cluster shows */
    RULE(CG901, LEVEL_ERROR, "claimguard's user lacks rights",
         "Without a right to list, watch or bind, claimguard is never ready, or binds no pod.\n"
         "Without another one, pods are not requeued, nobody is evicted, or Events are\n"
         "missing: this is a warning. The user is `admission.ownUser`, or else the service\n"
         "account of the Deployment in `--namespace`. This is not checked if the credentials\n"
         "may not create SubjectAccessReviews.",
         "in the namespace `claimguard`, `" ADVICE_TEXT_APPLY_RIGHTS "`. In another\n"
         "one, that would bind the rights to the wrong user: `helm upgrade`, if the chart has\n"
         "installed claimguard, or the objects of `rbac.yaml` with your user as subject."),
    RULE(CG902, LEVEL_WARNING, "the API server lacks what claimguard checks",
         "Before 1.27, an API server refuses ReadWriteOncePod claims, unless its feature gate\n"
         "is on. Without VolumeAttributesClasses in v1 (since 1.34), no class counts as\n"
         "missing: this is a note.",
         "a newer Kubernetes; or `volumeAttributesClasses: {mode: Off}`."),
    RULE(CG903, LEVEL_WARNING, "claimguard cannot be reached from this machine",
         "`--probe` calls `/readyz` at the host and port of `urlPrefix`, with the certificates\n"
         "of `tlsConfig`. The scheduler's machine may reach what this one does not.",
         "call doctor where the scheduler runs; then look at the Service, at network policies,\n"
         "and at the client certificate."),
    RULE(CG904, LEVEL_ERROR, "claimguard's certificate is not one that the scheduler believes",
         "The CA of `tlsConfig` has not signed it, or it has ended, or it is for other names\n"
         "than the host in `urlPrefix` (or `tlsConfig.serverName`). Each call fails. Without a\n"
         "check of the certificate, the server does answer.",
         "`claimguard certificates --host NAME` adds a name; the scheduler's `caFile` has to\n"
         "be the `ca.crt` of the Secret `claimguard-tls`."),
    RULE(CG905, LEVEL_WARNING, "claimguard is not ready",
         "Until it has read all that it watches, it binds no pod: its answers have `Error`\n"
         "set. With a status other than 503, another program answers at `urlPrefix`.",
         "`/readyz?verbose` says what is missing."),
    RULE(CG906, LEVEL_ERROR, "the API server cannot call a webhook",
         "Only `claimguard verify` finds this, after a race that claimguard should have decided\n"
         "and did not: it lets the API server call the webhook about an object of its own\n"
         "namespace, and prints what the API server says. With `failurePolicy: Ignore`, nothing\n"
         "is reviewed; with `Fail`, no pod is bound.",
         "the line that the finding names."),
    RULE(CG907, LEVEL_ERROR, "a Binding was not reviewed",
         "Only `claimguard verify` finds this: two pods got one claim. No webhook calls\n"
         "claimguard; or the API server can call it, and did not, as its `rules`,\n"
         "`namespaceSelector`, `objectSelector` or `matchConditions` leave the request out.",
         "the webhooks of `manifests/webhooks.yaml`."),
    [DOCTOR_RULE_COUNT] = {.code = NULL},
};

struct location finding_place(const struct yaml_node *node)
{
    struct place at = node->key_at.line != 0 ? node->key_at : node->at;

    return (struct location){
        .file = node->path, .line = (uint32_t)at.line, .column = (uint32_t)at.column};
}

struct location finding_object(struct findings *findings, const char *kind, struct slice ns,
                               struct slice name)
{
    struct slice text = arena_printf(findings->arena, "%s %.*s%s%.*s", kind, SLICE_ARG(ns),
                                     ns.len == 0 ? "" : "/", SLICE_ARG(name));

    findings->has_failed = findings->has_failed || text.ptr == NULL;
    return (struct location){.name = text};
}

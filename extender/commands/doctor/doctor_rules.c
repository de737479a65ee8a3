#include "extender/commands/doctor/doctor_rules.h"

#include "config/yaml_node.h"
#include "extender/report/advice_rows.h"

#define RULE(code_, level_, title_, why_, mend_) \
    [code_] = {.code = #code_, .level = (level_), .title = (title_), .why = (why_), .mend = (mend_)}

const struct rule doctor_rules[DOCTOR_RULE_COUNT + 1] = {
    /* 5xx: a file of kube-scheduler */
    RULE(CG501, LEVEL_ERROR, "kube-scheduler refuses the file",
         "kube-scheduler (1.37) does not start with it: a key that it does not know, a value of\n"
         "another type, two profiles of one name, a resource that is managed twice, two extenders\n"
         "with a `bindVerb`. An older kube-scheduler may refuse more keys.",
         "what the finding says. `kube-scheduler --config FILE --write-config-to /dev/null` tries\n"
         "the file."),
    RULE(CG502, LEVEL_ERROR, "no extender is claimguard",
         "This scheduler never calls claimguard: its pods get claims that other pods have, unless\n"
         "admission reviews their Bindings. An extender counts as claimguard if `urlPrefix` has\n"
         "the word claimguard or the port of `server.listen`, or if it manages\n"
         "`claimguard.io/claims`.",
         "add the entry of `extenders:` in `manifests/tls/default-scheduler.yaml`."),
    RULE(
        CG503, LEVEL_ERROR, "the extender has no filterVerb",
        "Without it, kube-scheduler lets all nodes pass, and reports nothing. Pods are chosen for\n"
        "nodes without a check of their claims.",
        "`filterVerb: filter`"),
    RULE(CG504, LEVEL_ERROR, "the extender has no bindVerb",
         "kube-scheduler binds pods by itself, so claimguard takes no claim at the moment that\n"
         "counts. Two schedulers then give one claim to two pods, and no mount is deferred.",
         "`bindVerb: bind`"),
    RULE(CG505, LEVEL_WARNING, "the extender has no preemptVerb",
         "When kube-scheduler preempts, it does not ask which pods hold the claims: it may evict\n"
         "pods, and the claim is still in use.",
         "`preemptVerb: preempt`"),
    RULE(
        CG506, LEVEL_ERROR, "the extender calls a path that claimguard does not have",
        "claimguard answers such a call with 404. For `filter`, `bind` and `preempt`, the pod's\n"
        "attempt fails; for `prioritize`, kube-scheduler ignores the failure after each call.",
        "`filterVerb: filter`, `preemptVerb: preempt`, `bindVerb: bind`, no `prioritizeVerb`, and\n"
        "no path in `urlPrefix`."),
    RULE(CG507, LEVEL_ERROR, "urlPrefix is not a URL",
         "Each call fails, and with `ignorable: false` no pod is bound.",
         "`urlPrefix: https://HOST:8888`"),
    RULE(CG508, LEVEL_ERROR, "the server's certificate is not checked",
         "With `enableHTTPS` and no CA, or with `insecure`, kube-scheduler accepts any\n"
         "certificate. Anyone between the two reads the pods, and answers for claimguard.",
         "`tlsConfig: {caFile: /etc/kubernetes/claimguard/ca.crt}`"),
    RULE(CG509, LEVEL_ERROR, "https and enableHTTPS do not fit together",
         "The scheme in `urlPrefix` decides whether calls are encrypted, not `enableHTTPS`. With\n"
         "`https` and without a CA and `enableHTTPS`, the certificate is checked with the\n"
         "authorities of the scheduler's system, which do not include claimguard's.",
         "`https` in `urlPrefix`, `enableHTTPS: true`, and a CA in `tlsConfig`; or `http`, and\n"
         "neither of the others."),
    RULE(CG510, LEVEL_ERROR, "the extender is ignorable",
         "While claimguard is away or answers with an error, kube-scheduler skips it, in `filter`\n"
         "and in `bind`: pods are bound without it, and a claim may get two pods.",
         "`ignorable: false`"),
    RULE(CG511, LEVEL_ERROR, "tlsConfig has half a client certificate",
         "kube-scheduler shows a client certificate only if it has both the certificate and its\n"
         "key. Without one, claimguard's `clientCAFile` refuses each call.",
         "both `certFile` and `keyFile`."),
    RULE(CG512, LEVEL_WARNING, "nodeCacheCapable is not true",
         "kube-scheduler then sends whole Node objects with each call, instead of their names: a\n"
         "scheduler of 5,000 nodes was five times slower. It also scores the nodes as if no pod\n"
         "ran on them (kubernetes#141781).",
         "`nodeCacheCapable: true`"),
    RULE(CG513, LEVEL_WARNING, "httpTimeout is too long or too short",
         "kube-scheduler tries one pod at a time, so a call that hangs delays all pods for that\n"
         "long (a negative time: for ever). A `bind` may take four seconds: a shorter time gives "
         "up\n"
         "binds that succeed.",
         "`httpTimeout: 5s`, which is also the default."),
    RULE(CG514, LEVEL_WARNING, "managedResources does not have claimguard.io/claims",
         "kube-scheduler calls claimguard only for pods that request one of `managedResources`.\n"
         "The component `marks` sets `claimguard.io/claims`, so marked pods are bound without\n"
         "claimguard. This is right only if something else sets the resource that is named.",
         "`managedResources: [{name: claimguard.io/claims, ignoredByScheduler: true}]`"),
    RULE(CG515, LEVEL_NOTE, "the mark counts as a resource of nodes",
         "A mark has the quantity 0, which fits every node. If a LimitRange sets 1 (CG803), or a\n"
         "user does, the pod fits no node unless the scheduler ignores the resource.",
         "`ignoredByScheduler: true`"),
    RULE(CG516, LEVEL_WARNING, "ignoredResources of NodeResourcesFit is replaced",
         "If any extender has a resource with `ignoredByScheduler: true`, kube-scheduler replaces\n"
         "`ignoredResources` of each profile by the extenders' resources. Resources that only the\n"
         "profile names count again, and their pods may fit no node.",
         "name the resource under `managedResources` of its extender with `ignoredByScheduler:\n"
         "true`, or set `ignoredByScheduler: false` for `claimguard.io/claims`, whose quantity is "
         "0."),
    RULE(
        CG517, LEVEL_ERROR, "the plugin VolumeBinding is disabled",
        "claimguard relies on it: it binds claims that wait for their first pod, and rejects "
        "nodes\n"
        "that a volume does not reach. Without it, pods are bound with claims that have no volume.",
        "remove VolumeBinding (or `*`) from `disabled`."),
    RULE(CG518, LEVEL_WARNING, "the plugin NodeVolumeLimits is disabled",
         "Nobody counts the volumes of a node: pods are bound to nodes that can attach no more, "
         "and\n"
         "wait in ContainerCreating. claimguard leaves this count to kube-scheduler.",
         "remove NodeVolumeLimits (or `*`) from `disabled`."),
    RULE(
        CG519, LEVEL_WARNING, "the plugin DefaultPreemption is disabled",
        "kube-scheduler preempts for no pod, and never calls `preempt`. claimguard still preempts\n"
        "holders of claims by itself (`readWriteOncePod.preemption`), and nothing else is freed.",
        "remove DefaultPreemption (or `*`) from `disabled`."),
    RULE(
        CG520, LEVEL_WARNING, "the plugin VolumeRestrictions is disabled",
        "`second-scheduler.yaml` disables it, so that the pod's event names the holder of a claim\n"
        "([its price](../manifests/README.md#volumerestrictions)). Nothing else keeps two pods "
        "that\n"
        "name one GCE disk, EBS volume, iSCSI target or RBD image in their own `volumes` off one\n"
        "node. With a cluster, it is a warning if a pod of that scheduler has such a volume, and\n"
        "else nothing is reported. Without a cluster, it is a note.",
        "nothing, if no pod has such a volume; else remove VolumeRestrictions (or `*`) from\n"
        "`disabled`."),
    /* 6xx: claimguard's own configuration, and what it has to agree with */
    RULE(CG601, LEVEL_ERROR, "several replicas with claimLock: Local",
         "Each replica of the Deployment, or static pod, knows only its own reservations: a "
         "`filter`\n"
         "reaches one of them, the `bind` another one, and a claim may get two pods.",
         "`readWriteOncePod: {claimLock: Annotation}`, in force before there is a second replica; "
         "or\n"
         "`replicas: 1`."),
    RULE(CG602, LEVEL_WARNING, "anyone may call the scheduler's port",
         "`server.listen` is not on loopback, and callers need no certificate. Anyone who reaches\n"
         "the port can have pods bound, and read which pod has a claim.",
         "`server.tls` with `clientCAFile` (the component `tls`)."),
    RULE(CG603, LEVEL_ERROR, "only one side uses TLS",
         "The scheduler calls with http and claimguard expects TLS, or the other way round: each\n"
         "call fails.",
         "`server.tls` in claimguard's configuration and `https` in `urlPrefix`, or neither."),
    RULE(CG604, LEVEL_ERROR, "the scheduler shows no client certificate",
         "claimguard's `server.tls` has a `clientCAFile`, so it refuses callers without a\n"
         "certificate: each call fails in the handshake.",
         "`certFile` and `keyFile` in the extender's `tlsConfig`."),
    RULE(
        CG605, LEVEL_ERROR, "claimguard does not listen where the scheduler calls",
        "`server.listen` is on loopback and `urlPrefix` is not, or the ports differ: each call\n"
        "fails with `connection refused`.",
        "`urlPrefix: http://127.0.0.1:8888`, with the port of `server.listen`, for a scheduler on\n"
        "the same host. For calls from elsewhere, `server: {listen: \":8888\"}` together with\n"
        "`server.tls`: without it, anyone who reaches the port can have pods bound."),
    RULE(CG606, LEVEL_WARNING, "schedulers call several claimguards with claimLock: Local",
         "The files name different addresses. If these are two claimguards (and not two names of\n"
         "one Service), they do not know each other's reservations.",
         "`readWriteOncePod: {claimLock: Annotation}`, or one address."),
    RULE(CG607, LEVEL_WARNING, "the memory limit is too small",
         "The kernel ends a container that takes more, and no pod is bound until it runs again.\n"
         "claimguard takes 20 MiB, 450 bytes for each pod, twice `maxRequestBytes` (at least\n"
         "64 MiB) for all calls together, and 32 MiB for reviews, if `admission.listen` is set.",
         "`limits: {memory: ...}` of the container, or a smaller `server.maxRequestBytes`."),
    RULE(CG608, LEVEL_NOTE, "claimguard has another version than this doctor",
         "What doctor says of the configuration and of the rights is true of its own version. The\n"
         "version is the tag of the image; other tags are not compared.",
         "call the doctor of the image that runs."),
    RULE(CG609, LEVEL_ERROR, "a certificate cannot be used, or not for long",
         "It has ended, or begins later, or is no PEM text: calls fail in the handshake. If it "
         "ends\n"
         "within two weeks, this is a warning. Only files on this machine are read, and data in "
         "the\n"
         "files; kube-scheduler reads its own when it starts, so restart it after a change.",
         "`claimguard certificates` renews those that it has made."),
    RULE(CG610, LEVEL_ERROR, "a certificate is not one that the other side believes",
         "The CA in `tlsConfig` has not signed claimguard's certificate, or that is for other "
         "names\n"
         "than the host in `urlPrefix` (or `tlsConfig.serverName`), or the authority in\n"
         "`clientCAFile` has not signed the scheduler's: each call fails in the handshake. Only\n"
         "files on this machine are compared; `--probe` (CG904) needs none of claimguard's.",
         "`claimguard certificates` makes all of them; `--host NAME` adds a name."),
    RULE(CG611, LEVEL_ERROR, "claimguard is not available",
         "Its Deployment has no replica that is available: its schedulers bind no pod, and "
         "webhooks\n"
         "with `failurePolicy: Fail` refuse what they review. If only some are (then a warning), "
         "the\n"
         "others are not there when one goes.",
         "what CG612 says of its pods; without any pod, what\n"
         "`" ADVICE_TEXT_STATE "` says."),
    RULE(
        CG612, LEVEL_ERROR, "a pod of claimguard does not run",
        "It waits for a node, an image or a volume, or it ends at once, or it is not ready (then "
        "a\n"
        "warning). The message is the scheduler's or the kubelet's. A missing Secret shows in the\n"
        "Events of its volumes: doctor reads no Secrets.",
        "what the message names."),
    RULE(CG613, LEVEL_ERROR, "an object of the installation is missing",
         "The Deployment's pods cannot start without the ConfigMaps that they mount. Without the\n"
         "Service, schedulers and webhooks that call it by name cannot reach claimguard.",
         "`" ADVICE_TEXT_APPLY "` again."),
    /* 7xx: the webhooks that call claimguard */
    RULE(CG701, LEVEL_ERROR, "a webhook has no caBundle",
         "The API server cannot call claimguard. With `failurePolicy: Ignore`, Bindings are "
         "applied\n"
         "without a review; with `Fail`, no pod is bound.",
         "`claimguard certificates` writes it, each time that webhooks are applied."),
    RULE(
        CG702, LEVEL_ERROR, "a webhook's caBundle has no valid certificate",
        "It is no PEM text, or all of its certificates have ended: the API server does not "
        "believe\n"
        "claimguard's certificate. If the last one ends within two weeks, this is a warning. What\n"
        "becomes of Bindings: CG701.",
        "`claimguard certificates` writes the authority's certificate again."),
    RULE(CG703, LEVEL_ERROR, "a webhook's Service has no ready endpoint",
         "No claimguard is ready, or the Service selects other pods, or there is no such Service.\n"
         "What becomes of Bindings: CG701.",
         "look at claimguard's pods and their `/readyz?verbose`; apply `manifests/service.yaml` "
         "again."),
    RULE(CG704, LEVEL_NOTE, "Bindings are applied while claimguard does not answer",
         "The webhook's `failurePolicy` is `Ignore`, as the component `admission` sets it: a "
         "Binding\n"
         "that cannot be reviewed is applied, and two pods may get one claim. This is reported\n"
         "(`claimguard_exclusive_claim_violations`).",
         "the component `admission-fail`, once reviews are seen to arrive."),
    RULE(CG705, LEVEL_WARNING, "a namespace that is not reviewed has exclusive claims",
         "Each webhook for Bindings leaves the namespace out (`namespaceSelector`), and it has\n"
         "ReadWriteOncePod claims: for them, only schedulers with the extender are kept from a\n"
         "second pod.",
         "remove the namespace from the selector, or use only schedulers with the extender there."),
    RULE(CG706, LEVEL_ERROR, "a path for Bindings is not reviewed",
         "The API server takes a Binding at `pods/binding` and, from older clients, at `bindings`. "
         "A\n"
         "webhook that names one of them lets the other pass.",
         "`resources: [pods/binding, bindings]`"),
    RULE(CG707, LEVEL_ERROR, "webhooks call claimguard, which serves no admission",
         "`admission.listen` is not set, so claimguard has no port for reviews: each call fails.\n"
         "What becomes of Bindings: CG701.",
         "the component `admission` writes it into the ConfigMap."),
    RULE(CG708, LEVEL_ERROR, "a webhook's caBundle is of another authority",
         "The API server does not believe claimguard's certificate. What becomes of Bindings: "
         "CG701.\n"
         "If `admission.tls` is not on this machine, and is the pair of `server.tls`, the bundle "
         "is\n"
         "compared with the scheduler's CA. Without a common key, one of the two is wrong (then a\n"
         "warning).",
         "`claimguard certificates` writes the authority's certificate again."),
    RULE(
        CG709, LEVEL_NOTE, "a namespace that never waits for claimguard has exclusive claims",
        "A webhook says `failurePolicy: Fail`, but not for this namespace: `admission-fail`\n"
        "leaves out `kube-system` and `claimguard`, so that the cluster can heal. While "
        "claimguard\n"
        "does not answer, a Binding there is applied without it, and two pods may get one claim.\n"
        "Pods of other namespaces cannot: a pod names only claims of its own namespace.",
        "keep pods with such claims in another namespace; or, if none of its pods is needed for a\n"
        "node or claimguard to start, take the namespace out of the list in\n"
        "`manifests/admission/webhooks.yaml`."),
    /* 8xx: marks, pods and their schedulers */
    RULE(
        CG801, LEVEL_ERROR, "nothing in the cluster sets the mark",
        "The scheduler calls claimguard only for pods that request one of its `managedResources`,\n"
        "and no MutatingAdmissionPolicy with a binding sets `claimguard.io/claims`. Pods with "
        "claims\n"
        "are bound without claimguard, unless a webhook of your own sets it.",
        "the components `admission` and `marks`, or remove `managedResources` until they are\n"
        "there."),
    RULE(CG802, LEVEL_NOTE, "pods are marked, and claimguard is called for all",
         "The component `marks` is there so that kube-scheduler need not call claimguard for pods\n"
         "without claims. Without `managedResources`, it calls for each pod.",
         "`managedResources: [{name: claimguard.io/claims, ignoredByScheduler: true}]`"),
    RULE(
        CG803, LEVEL_ERROR, "a LimitRange has the mark",
        "With `min` or `maxLimitRequestRatio`, the API server refuses marked pods: a mark has the\n"
        "quantity 0. With `default`, `defaultRequest` or `max` (then a warning), it gives the\n"
        "resource to each container that does not have it, also of pods without claims: with a\n"
        "quantity of 1, they fit no node unless the scheduler has `ignoredByScheduler: true`.",
        "remove `claimguard.io/claims` from the LimitRange."),
    RULE(
        CG804, LEVEL_WARNING, "pending pods with claims have no mark",
        "The scheduler has `managedResources`, so it binds unmarked pods without claimguard. They\n"
        "were created before the policy, or while it was not in force; a pod cannot be marked "
        "later.",
        "delete them, so that their controllers create them again."),
    RULE(
        CG805, LEVEL_WARNING, "a scheduler without claimguard has pods with exclusive claims",
        "None of the files has a profile of that name and calls claimguard. What that scheduler\n"
        "binds is not checked, unless admission reviews its Bindings.",
        "name its file with `--scheduler-config`, if it has one; else call claimguard from it, or\n"
        "add the component `admission`."),
    RULE(CG806, LEVEL_ERROR, "claimguard's own pods need claimguard",
         "The Deployment's pods are for a scheduler that binds no pod without claimguard: once\n"
         "none runs, none is ever bound.",
         "a static pod, or the components `admission` and `marks` with `managedResources`, or\n"
         "another `schedulerName`\n"
         "([all ways](../manifests/README.md#use-the-clusters-own-scheduler))."),
    RULE(CG807, LEVEL_ERROR, "the scheduler cannot resolve the Service's name",
         "kube-scheduler's pod is on the host's network, and its `dnsPolicy` is that of the host:\n"
         "names of Services are not known there, and each call fails.",
         "the Service's ClusterIP in `urlPrefix`, and its name as `tlsConfig.serverName`."),
    RULE(
        CG808, LEVEL_ERROR, "pods are marked, and nobody reviews the Bindings of the others",
        "With `managedResources`, a scheduler does not call claimguard for an unmarked pod. A pod\n"
        "to which a mutating webhook adds its claim has no mark, since the policy has run before:\n"
        "it is bound to a claim that another pod has, unless its Binding is reviewed. If no file\n"
        "has `managedResources`, this is a warning.",
        "the component `admission`, and until then no `managedResources`."),
    /* 9xx: what only a live cluster shows */
    RULE(
        CG901, LEVEL_ERROR, "claimguard's user lacks rights",
        "It may not do what its configuration needs. Without a right to list, watch or bind,\n"
        "claimguard is never ready, or binds no pod. Otherwise (then a warning) pods are not\n"
        "requeued, nobody is evicted, or Events are missing. The user is `admission.ownUser` of "
        "the\n"
        "configuration; if no file sets it, the service account of the Deployment in the\n"
        "namespace `--namespace`. If the credentials may not create SubjectAccessReviews, this is\n"
        "not checked.",
        "in the namespace `claimguard`, `" ADVICE_TEXT_APPLY_RIGHTS "`. In another one,\n"
        "that would bind the rights to the wrong user: `helm upgrade`, if the chart has installed\n"
        "claimguard, or the objects of `rbac.yaml` with your user as subject."),
    RULE(
        CG902, LEVEL_WARNING, "the API server lacks what claimguard checks",
        "Before 1.27, an API server refuses claims with ReadWriteOncePod, unless its feature gate\n"
        "is on: then there is nothing to protect but ReadWriteOnce claims. Without\n"
        "VolumeAttributesClasses in v1 (since 1.34), no class counts as missing (a note).",
        "a newer Kubernetes; or `volumeAttributesClasses: {mode: Off}`, which says the same as "
        "the\n"
        "cluster does."),
    RULE(
        CG903, LEVEL_WARNING, "claimguard cannot be reached from this machine",
        "`--probe` calls `/readyz` at the host and port of `urlPrefix`, with the certificates of\n"
        "`tlsConfig`. It says nothing of other machines: a scheduler may reach what this one does\n"
        "not, and know names of Services that this one does not.",
        "call doctor where the scheduler runs; then look at the Service, at network policies, and\n"
        "at the client certificate."),
    RULE(
        CG904, LEVEL_ERROR, "claimguard's certificate is not one that the scheduler believes",
        "The CA of `tlsConfig` has not signed it, or it has ended, or it is for other names than\n"
        "the host in `urlPrefix` (or `tlsConfig.serverName`): each call fails. `--probe` has seen\n"
        "that the server answers if its certificate is not checked.",
        "`claimguard certificates --host NAME` adds a name; the scheduler's `caFile` has to be "
        "the\n"
        "`ca.crt` of the Secret `claimguard-tls`."),
    RULE(CG905, LEVEL_WARNING, "claimguard is not ready",
         "Until it has read all that it watches, its answers have `Error` set: no pod is bound.\n"
         "With a status other than 503, another program answers at `urlPrefix`.",
         "`/readyz?verbose` says what is missing."),
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
